//! Tokens: no byte of a wire can be changed, and a child can only take away.

use ed25519_dalek::VerifyingKey;
use proptest::prelude::*;
use syscap_format::{
    Canonical, Confidentiality, Grants, Integrity, Label, MapBuilder, PublicKey, Resource, Rights,
    Root, RootedPath, Rule, Scope, SignatureError, Token, TokenBody, ToolGrant, ToolId, self_test,
};

use crate::mutated::{key, root, signed};

fn paths(rules: &[(&str, u8)]) -> Scope {
    let rule = |(path, rights): &(&str, u8)| Rule {
        path: RootedPath::new(
            Root::named("shared").unwrap(),
            path.split('/').filter(|n| !n.is_empty()),
        )
        .unwrap(),
        rights: Rights::from_bits(*rights).unwrap(),
    };
    Scope::paths(rules.iter().map(rule)).unwrap()
}

/// Every bit of a wire, flipped: refused.
#[test]
fn no_bit_of_a_wire_can_be_changed() {
    let wire = signed(&root().to_bytes(), &key(1));
    let id = Token::read(&wire).unwrap().id();
    for place in 0..wire.len() {
        for bit in 0..8 {
            let mut changed = wire.clone();
            changed[place] ^= 1 << bit;
            assert!(Token::read(&changed).is_err(), "byte {place}, bit {bit}");
        }
        assert!(Token::read(&wire[..place]).is_err(), "cut at {place}");
    }
    // The id is of the body alone: signing again makes no second token.
    assert_eq!(TokenBody::id_of(&root().to_bytes()), id);
}

/// What stands in a token as a label, and is none, is the most careful one.
#[test]
fn a_session_begins_with_the_label_in_its_token() {
    let worst = Label::new(Integrity::Untrusted, Confidentiality::Sensitive);
    let secret = Label::new(Integrity::Untrusted, Confidentiality::Secret).with_categories(1 << 31);
    let with = |ext: Canonical| TokenBody { ext, ..root() }.label();
    for label in [Label::PUBLIC, Label::UNTRUSTED, worst, secret] {
        assert_eq!(with(TokenBody::ext_with(label)), label);
    }
    assert_eq!(TokenBody::ext_with(Label::PUBLIC), MapBuilder::new().finish());
    let named = MapBuilder::new().uint("session_labels", 7).text("label", "x").finish();
    assert_eq!(with(named), Label::PUBLIC);
    for bad in [
        MapBuilder::new().text("session_label", "public"),
        MapBuilder::new().uint("session_label", 12),
        MapBuilder::new().uint("session_label", u64::MAX),
        MapBuilder::new().boolean("session_label", false),
        MapBuilder::new().item("session_label", MapBuilder::new().finish().item()),
    ] {
        assert_eq!(with(bad.finish()), worst);
    }
}

#[test]
fn keys_have_one_encoding() {
    assert_eq!(self_test(), Ok(()));
    let mut identity = [0; 32];
    identity[0] = 1;
    assert_eq!(PublicKey::new(identity), Err(SignatureError::Weak));
    // The same with the sign of an x that is 0 set: a second name, of a key that is refused anyway.
    identity[31] = 0x80;
    assert_eq!(PublicKey::new(identity), Err(SignatureError::Weak));
    // Every coordinate at the prime and above it, with either sign, and those below: the library
    // encodes the point that it decodes, and a key that is not what comes out has another name.
    let (mut taken, mut others) = (0, 0);
    for low in 0_u8..=0xff {
        for high in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, high);
            let decoded = VerifyingKey::from_bytes(&bytes).ok();
            let same = decoded.map(|key| key.to_edwards().compress().to_bytes() == bytes);
            match PublicKey::new(bytes) {
                Ok(_) => {
                    assert_eq!(same, Some(true), "{low:x} {high:x}");
                    taken += 1;
                }
                Err(SignatureError::Weak) => assert!(decoded.unwrap().is_weak()),
                Err(_) => {
                    assert_ne!(same, Some(true), "{low:x} {high:x}");
                    others += usize::from(same == Some(false));
                }
            }
        }
    }
    assert!(taken > 100 && others > 10, "{taken} keys, {others} with another name");
}

fn rules() -> impl Strategy<Value = Vec<(String, u8)>> {
    let path = proptest::sample::select(vec!["", "a", "b", "a/x", "a/y", "a/x/z"]);
    proptest::collection::btree_map(path, 1_u8..8, 1..4)
        .prop_map(|map| map.into_iter().map(|(path, rights)| (path.to_owned(), rights)).collect())
}

proptest! {
    /// Where a child's grants are below its parent's, what it may touch its parent may.
    #[test]
    fn grants_below_permit_no_more(
        a in rules(),
        b in rules(),
        path in "(a|b|c)(/(x|y)(/z)?)?",
        rights in 1_u8..8,
    ) {
        let grants = |rules: &[(String, u8)]| {
            let rules: Vec<(&str, u8)> = rules.iter().map(|(p, r)| (p.as_str(), *r)).collect();
            Grants::new().with(
                ToolId::new("fs.read").unwrap(),
                ToolGrant::new().with("path", paths(&rules)),
            )
        };
        let (a, b) = (grants(&a), grants(&b));
        let tool = ToolId::new("fs.read").unwrap();
        let path = RootedPath::new(Root::named("shared").unwrap(), path.split('/')).unwrap();
        let resource = Resource::Path { path, needs: Rights::from_bits(rights).unwrap() };
        let permits = |g: &Grants| g.get(&tool).is_some_and(|g| g.permits("path", &resource));
        if a.leq(&b) {
            prop_assert!(!permits(&a) || permits(&b));
        }
        prop_assert_eq!(permits(&a.meet(&b)), permits(&a) && permits(&b));
        prop_assert!(a.meet(&b).leq(&a) && a.meet(&b).leq(&b));
    }
}
