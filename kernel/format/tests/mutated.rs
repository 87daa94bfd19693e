//! Tokens that somebody has changed: a wire that was touched is refused, and one that the rightful
//! holder of its parent has signed anew gives no more than the parent did.
//!
//! Of each kind 5,000 are made; with `SYSCAP_LONG` a million.

use ed25519_dalek::{Signer, SigningKey};
use syscap_format::{
    AgentId, Budget, Dimension, Grants, Head, HomeId, Leaf, MapBuilder, PolicyHash, PublicKey,
    Rights, Root, RootedPath, Rule, Scope, Seq, Signature, TOKEN_CONTEXT, Token, TokenBody,
    TokenFlags, ToolGrant, ToolId, UnixMillis, attenuates, preimage,
};

/// Numbers that are the same each time (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

pub(crate) fn key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n; 32])
}

fn public(n: u8) -> PublicKey {
    PublicKey::new(key(n).verifying_key().to_bytes()).unwrap()
}

pub(crate) fn signed(bytes: &[u8], signer: &SigningKey) -> Vec<u8> {
    let signature = signer.sign(&preimage(TOKEN_CONTEXT, bytes)).to_bytes();
    Token::wire(bytes, &Signature::from_bytes(signature))
}

fn grants(folders: &[(&str, Rights)], teams: &[&str]) -> Grants {
    let rule = |(path, rights): &(&str, Rights)| Rule {
        path: RootedPath::new(Root::named("shared").unwrap(), path.split('/')).unwrap(),
        rights: *rights,
    };
    let paths = Scope::paths(folders.iter().map(rule)).unwrap();
    let mail = ToolGrant::new()
        .with("team", Scope::names(teams).unwrap())
        .with("host", Scope::hosts(["*.example.com"]).unwrap())
        .with("size", Scope::ints(0, 500).unwrap());
    let tool = |name| ToolId::new(name).unwrap();
    Grants::new()
        .with(tool("fs.read"), ToolGrant::new().with("path", paths))
        .with(tool("mail"), mail)
}

pub(crate) fn root() -> TokenBody {
    TokenBody {
        version: 2,
        nonce: [1; 16],
        issuer: public(1),
        holder: Some(public(2)),
        agent: AgentId::new("team").unwrap(),
        parent: None,
        depth: 0,
        depth_max: 3,
        not_before: UnixMillis::new(1_000),
        expires: UnixMillis::new(50_000),
        epoch: 7,
        grants: grants(
            &[("notes", Rights::READ.union(Rights::WRITE)), ("public", Rights::READ)],
            &["red", "blue"],
        ),
        budget: Budget::standard().with(Dimension::Calls, 90).with(Dimension::EgressBytes, 4_000),
        caveats: Vec::new(),
        policy: Some(PolicyHash::from_bytes([5; 32])),
        flags: TokenFlags::default(),
        ext: MapBuilder::new().finish(),
        audience: HomeId::from_bytes([9; 32]),
        head: Some(Head { seq: Seq::new(3), leaf: Leaf::from_bytes([4; 32]) }),
        renews: None,
    }
}

fn child(parent: &Token) -> TokenBody {
    TokenBody {
        nonce: [2; 16],
        issuer: public(2),
        holder: Some(public(3)),
        agent: AgentId::new("team/reader").unwrap(),
        parent: Some(parent.id()),
        depth: 1,
        depth_max: 2,
        not_before: UnixMillis::new(2_000),
        expires: UnixMillis::new(40_000),
        grants: grants(&[("notes/a", Rights::READ)], &["red"]),
        budget: Budget::standard().with(Dimension::Calls, 20).with(Dimension::EgressBytes, 400),
        head: None,
        ..parent.body().clone()
    }
}

/// Changes some bytes: one is turned, put in, left out, or put elsewhere.
fn touch(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut touched = bytes.to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(touched.len());
        match dice.below(6) {
            0..3 => touched[at] ^= 1 << dice.below(8),
            3 => touched[at] = u8::try_from(dice.below(256)).unwrap(),
            4 => touched.insert(at, u8::try_from(dice.below(256)).unwrap()),
            _ if touched.len() > 1 => drop(touched.remove(at)),
            _ => {}
        }
    }
    touched
}

fn times() -> usize {
    if std::env::var_os("SYSCAP_LONG").is_some() { 1_000_000 } else { 5_000 }
}

#[test]
fn a_wire_that_was_touched_is_refused() {
    let parent = Token::read(&signed(&root().to_bytes(), &key(1))).unwrap();
    let wires = [signed(&root().to_bytes(), &key(1)), signed(&child(&parent).to_bytes(), &key(2))];
    let (mut dice, mut refused) = (Dice(1), 0);
    while refused < times() {
        let wire = &wires[dice.below(2)];
        let touched = touch(wire, &mut dice);
        if touched == *wire {
            continue;
        }
        assert!(Token::read(&touched).is_err(), "{touched:02x?}");
        refused += 1;
    }
    println!("{refused} wires refused");
}

/// Whoever holds the parent may sign what they like: what is taken for a child gives no more.
#[test]
fn mutated_child_token_gives_no_more_than_its_parent() {
    let parent = Token::read(&signed(&root().to_bytes(), &key(1))).unwrap();
    let bytes = child(&parent).to_bytes();
    let (mut dice, mut refused, mut taken) = (Dice(2), 0, 0);
    for _ in 0..times() {
        let touched = touch(&bytes, &mut dice);
        let read = Token::read(&signed(&touched, &key(2)));
        let derives = |child: &Token| attenuates(child.body(), parent.id(), parent.body());
        let Some(child) = read.ok().filter(|child| derives(child).is_ok()) else {
            refused += 1;
            continue;
        };
        taken += 1;
        let (own, above) = (child.body(), parent.body());
        assert!(own.grants.leq(&above.grants), "{own:?}");
        assert!(own.budget.leq(&above.budget), "{own:?}");
        assert!(own.agent.is_within(&above.agent), "{own:?}");
        assert!(above.not_before <= own.not_before && own.expires <= above.expires, "{own:?}");
        assert!(own.depth == above.depth + 1 && own.depth_max <= above.depth_max, "{own:?}");
        assert!(own.flags.has(above.flags) && own.policy == above.policy, "{own:?}");
        assert_eq!((own.issuer, own.audience), (public(2), above.audience));
        assert!(own.parent == Some(parent.id()) && own.epoch >= above.epoch, "{own:?}");
    }
    // Most of what can be changed at random is refused; a nonce is anybody's.
    println!("{refused} refused, {taken} taken");
    assert!(taken > 0 && refused > taken);
}
