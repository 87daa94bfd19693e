//! Vectors of `tokens.md`, Tokens: bodies by themselves, and children of a parent.

use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::json;
use syscap_format::{
    AgentId, Budget, Canonical, Decoder, Dimension, Encoder, Grants, Head, HomeId, Leaf,
    MapBuilder, PolicyHash, Profile, PublicKey, Scope, Seq, Signature, TOKEN_BYTES_MAX,
    TOKEN_CONTEXT, TOKEN_DEPTH_MAX, TOKEN_LIFE_MS_MAX, Token, TokenBody, TokenFlags, TokenId,
    ToolGrant, ToolId, UnixMillis, attenuates, preimage,
};

use crate::case::{Cases, Of, hex};
use crate::scopes::{paths, written};

type Change = fn(&mut TokenBody);
type AnyChange<'a> = &'a dyn Fn(&mut TokenBody);

fn key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n; 32])
}

fn public(n: u8) -> PublicKey {
    PublicKey::new(key(n).verifying_key().to_bytes()).expect("a key")
}

fn signed(context: &[u8], body: &[u8], by: u8) -> Vec<u8> {
    let signature = key(by).sign(&preimage(context, body)).to_bytes();
    Token::wire(body, &Signature::from_bytes(signature))
}

fn wire(body: &TokenBody, by: u8) -> Vec<u8> {
    signed(TOKEN_CONTEXT, &body.to_bytes(), by)
}

fn tool(id: &str) -> ToolId {
    ToolId::new(id).expect(id)
}

/// A root of key 1, held by key 2.
fn root() -> TokenBody {
    TokenBody {
        version: 2,
        nonce: [1; 16],
        issuer: public(1),
        holder: Some(public(2)),
        agent: AgentId::new("team").expect("an id"),
        parent: None,
        depth: 0,
        depth_max: 3,
        not_before: UnixMillis::new(1_000),
        expires: UnixMillis::new(100_000),
        epoch: 4,
        grants: Grants::new()
            .with(
                tool("fs.read"),
                ToolGrant::new().with("path", paths(r#"[["shared",null,[],3]]"#)),
            )
            .with(tool("echo"), ToolGrant::new()),
        budget: Budget::standard(),
        caveats: Vec::new(),
        policy: Some(PolicyHash::from_bytes([5; 32])),
        flags: TokenFlags::default(),
        ext: MapBuilder::new().text("org.example.note", "kept").finish(),
        audience: HomeId::from_bytes([7; 32]),
        head: Some(Head { seq: Seq::GENESIS, leaf: Leaf::from_bytes([7; 32]) }),
        renews: None,
    }
}

/// A child of `parent`, by key 2.
fn child(parent: &TokenBody) -> TokenBody {
    TokenBody {
        nonce: [2; 16],
        issuer: public(2),
        holder: None,
        agent: AgentId::new("team/researcher").expect("an id"),
        parent: Some(TokenBody::id_of(&parent.to_bytes())),
        head: None,
        depth: 1,
        depth_max: 2,
        not_before: UnixMillis::new(2_000),
        expires: UnixMillis::new(50_000),
        grants: Grants::new().with(
            tool("fs.read"),
            ToolGrant::new().with("path", paths(r#"[["shared",null,["a"],1]]"#)),
        ),
        budget: Budget::standard().with(Dimension::Calls, 10),
        flags: TokenFlags::READ_ONLY,
        ..parent.clone()
    }
}

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    wires(&mut cases);
    bodies(&mut cases);
    by_hand(&mut cases);
    derivations(&mut cases);
    cases
}

fn add(cases: &mut Cases, of: Of, comment: &str, wire: &[u8], valid: bool) {
    let found = Token::read(wire);
    assert_eq!(found.is_ok(), valid, "{of:?} {comment} {found:?}");
    let mut given = json!({"kind": "token", "wire": hex(wire)});
    match found {
        Ok(token) => given["token_id"] = json!(token.id().to_string()),
        Err(refused) => given["reason"] = json!(refused.reason().name()),
    }
    cases.add(of, valid, comment, given);
}

fn wires(cases: &mut Cases) {
    let of = Of("SYSCAP-TOK-001", "a wire of another form has the same body");
    let body = root().to_bytes();
    let good = wire(&root(), 1);
    add(cases, of, "a root", &good, true);
    let changed = |place: usize, to: u8| {
        let mut wire = good.clone();
        wire[place] = to;
        wire
    };
    for (comment, wire) in [
        ("version 1", changed(1, 1)),
        ("version 3", changed(1, 3)),
        ("algorithm 0", changed(2, 0)),
        ("algorithm 2", changed(2, 2)),
        ("an array of 3", changed(0, 0x83)),
        ("a byte more", [&good[..], &[0]].concat()),
        ("a byte less", good[..good.len() - 1].to_vec()),
        ("a signature of 63 bytes", {
            let mut encoder = Encoder::new();
            encoder.array(4);
            encoder.uint(2);
            encoder.uint(1);
            encoder.bytes(&body);
            encoder.bytes(&[0; 63]);
            encoder.into_bytes()
        }),
    ] {
        add(cases, of, comment, &wire, false);
    }
    let large = |len: usize| TokenBody {
        ext: MapBuilder::new().text("x", &"x".repeat(len)).finish(),
        ..root()
    };
    let room = TOKEN_BYTES_MAX - wire(&large(60_000), 1).len() + 60_000;
    add(cases, of, "as large as may be", &wire(&large(room), 1), true);
    add(cases, of, "a byte larger", &wire(&large(room + 1), 1), false);
    let of = Of("SYSCAP-TOK-002", "a token is taken from somebody who did not issue it");
    add(cases, of, "by its issuer", &good, true);
    add(cases, of, "by another key", &wire(&root(), 3), false);
    add(cases, of, "under another context", &signed(b"syscap/token/v1\0", &body, 1), false);
    add(cases, of, "without a context", &signed(b"", &body, 1), false);
    add(
        cases,
        of,
        "a bit of the signature changed",
        &changed(good.len() - 1, good[good.len() - 1] ^ 1),
        false,
    );
    let of = Of("SYSCAP-TOK-003", "signing again makes a second token, which is not revoked");
    add(cases, of, "the id is the body's", &good, true);
}

fn bodies(cases: &mut Cases) {
    const OTHER: TokenId = TokenId::from_bytes([1; 32]);
    let child_of: Change = |b| (b.parent, b.depth, b.head) = (Some(OTHER), 1, None);
    let version = Of("SYSCAP-TOK-010", "a later form is read as this one");
    let depth = Of("SYSCAP-TOK-011", "a chain grows without end");
    let parent = Of("SYSCAP-TOK-012", "a child passes for a root");
    let head =
        Of("SYSCAP-TOK-013", "a root that was signed before a revocation is registered after it");
    let renews = Of("SYSCAP-TOK-014", "a child keeps alive what its parent's issuer lets end");
    let life = Of("SYSCAP-TOK-015", "a token never ends");
    let ext = Of("SYSCAP-TOK-018", "an extension of another form is skipped");
    let renew_by = Of("SYSCAP-TOK-021", "a bound that never comes");
    let fresh = Of("SYSCAP-TOK-022", "a span of which nothing can fall short");
    let table: &[(Of, &str, bool, Change)] = &[
        (version, "2", true, |_| {}),
        (version, "1", false, |b| b.version = 1),
        (version, "3", false, |b| b.version = 3),
        (depth, "16", true, |b| b.depth_max = TOKEN_DEPTH_MAX),
        (depth, "17", false, |b| b.depth_max = TOKEN_DEPTH_MAX + 1),
        (depth, "below its own", false, |b| {
            (b.parent, b.depth, b.depth_max, b.head) = (Some(OTHER), 2, 1, None);
        }),
        (parent, "a child", true, child_of),
        (parent, "a root with a parent", false, |b| b.parent = Some(OTHER)),
        (parent, "a child without", false, |b| (b.depth, b.head) = (1, None)),
        (head, "a root's", true, |_| {}),
        (head, "a root without", false, |b| b.head = None),
        (head, "a child's", false, |b| (b.parent, b.depth) = (Some(OTHER), 1)),
        (renews, "a root's", true, |b| b.renews = Some(OTHER)),
        (renews, "a child's", false, |b| {
            (b.parent, b.depth, b.head, b.renews) = (Some(OTHER), 1, None, Some(OTHER));
        }),
        (life, "90 days", true, |b| b.expires = b.not_before.plus(TOKEN_LIFE_MS_MAX)),
        (life, "a millisecond", true, |b| b.expires = b.not_before.plus(1)),
        (life, "none", false, |b| b.expires = b.not_before),
        (life, "less than none", false, |b| b.expires = UnixMillis::new(1)),
        (life, "a millisecond more", false, |b| {
            b.expires = b.not_before.plus(TOKEN_LIFE_MS_MAX + 1)
        }),
        (ext, "an empty map", true, |b| b.ext = MapBuilder::new().finish()),
        (ext, "null", false, |b| b.ext = Canonical::null()),
        (renew_by, "within its life", true, |b| {
            b.caveats.push(TokenBody::renew_by_caveat(UnixMillis::new(1_001)))
        }),
        (renew_by, "at its beginning", false, |b| {
            b.caveats.push(TokenBody::renew_by_caveat(UnixMillis::new(1_000)));
        }),
        (renew_by, "at its end", false, |b| b.caveats.push(TokenBody::renew_by_caveat(b.expires))),
        (renew_by, "of a child", false, |b| {
            (b.parent, b.depth, b.head) = (Some(OTHER), 1, None);
            b.caveats.push(TokenBody::renew_by_caveat(UnixMillis::new(1_001)));
        }),
        (fresh, "one", true, |b| b.caveats.push(TokenBody::fresh_within_caveat(1))),
        (fresh, "none", false, |b| b.caveats.push(TokenBody::fresh_within_caveat(0))),
        (fresh, "too many", false, |b| {
            b.caveats.push(TokenBody::fresh_within_caveat(TOKEN_LIFE_MS_MAX + 1))
        }),
        (fresh, "of a child", false, |b| {
            (b.parent, b.depth, b.head) = (Some(OTHER), 1, None);
            b.caveats.push(TokenBody::fresh_within_caveat(1));
        }),
    ];
    for (of, comment, valid, change) in table {
        let mut body = root();
        change(&mut body);
        add(cases, *of, comment, &wire(&body, 1), *valid);
    }
    let of = Of("SYSCAP-TOK-016", "a grant costs more to check than a call");
    let granting = |tools: usize, dimensions: usize| {
        let mut grants = Grants::new();
        for n in 0..tools {
            let mut grant = ToolGrant::new();
            for d in 0..dimensions {
                grant = grant.with(&format!("d{d:02}"), Scope::ints(0, 1).expect("a range"));
            }
            grants = grants.with(tool(&format!("t{n:03}")), grant);
        }
        wire(&TokenBody { grants, ..root() }, 1)
    };
    add(cases, of, "256 tools", &granting(256, 0), true);
    add(cases, of, "257 tools", &granting(257, 0), false);
    add(cases, of, "16 dimensions", &granting(1, 16), true);
    add(cases, of, "17 dimensions", &granting(1, 17), false);
}

/// Bodies that no type holds: a key's value is replaced.
fn by_hand(cases: &mut Cases) {
    let body = root().to_bytes();
    let with = |key: u64, value: &[u8]| {
        let mut decoder = Decoder::new(&body, Profile::CONTROL);
        decoder.shape(20).expect("a body");
        let mut bytes = body[..1].to_vec();
        for n in 0..20 {
            decoder.key(n).expect("a key");
            let item = decoder.item().expect("a value");
            let mut head = Encoder::new();
            head.uint(n);
            bytes.extend(head.into_bytes());
            bytes.extend_from_slice(if n == key { value } else { item.as_bytes() });
        }
        signed(TOKEN_CONTEXT, &bytes, 1)
    };
    let flags = Of("SYSCAP-TOK-017", "a flag that takes something away is skipped");
    add(cases, flags, "both", &with(15, &[3]), true);
    add(cases, flags, "a bit that nobody knows", &with(15, &[4]), false);
    add(cases, flags, "one bit known, one not", &with(15, &[0x18, 0x21]), false);
    let caveats = Of("SYSCAP-TOK-020", "a condition that nobody knows is skipped");
    let (by, fresh) = ([0x82, 0x01, 0x19, 0x03, 0xe9], [0x82, 0x02, 0x01]);
    add(cases, caveats, "both", &with(13, &[&[0x82], &by[..], &fresh].concat()), true);
    for (comment, value) in [
        ("a number alone", vec![0x81, 0x01]),
        ("an unknown number", vec![0x81, 0x82, 0x03, 0x01]),
        ("twice", [&[0x82], &by[..], &by].concat()),
        ("in another order", [&[0x82], &fresh[..], &by].concat()),
        ("three items", vec![0x81, 0x83, 0x02, 0x01, 0x01]),
        ("text for a time", vec![0x81, 0x82, 0x01, 0x61, 0x61]),
        ("a key more", vec![0x80, 0x14, 0xf6]),
    ] {
        add(cases, caveats, comment, &with(13, &value), false);
    }
    let deep = Of("SYSCAP-TOK-019", "a body within a byte string is deeper than its profile");
    let nested = |depth: usize| {
        let mut ext = vec![0xa1, 0x61, 0x61];
        ext.extend(vec![0x81; depth - 3]);
        ext.push(0x80);
        with(16, &ext)
    };
    add(cases, deep, "16 levels", &nested(16), true);
    add(cases, deep, "17 levels", &nested(17), false);
    add(cases, deep, "a float", &with(16, &[0xa1, 0x61, 0x61, 0xf9, 0x3c, 0x00]), false);
}

fn derivations(cases: &mut Cases) {
    let of = |number: usize| {
        Of(
            [
                "SYSCAP-DER-001",
                "SYSCAP-DER-002",
                "SYSCAP-DER-003",
                "SYSCAP-DER-004",
                "SYSCAP-DER-005",
                "SYSCAP-DER-006",
                "SYSCAP-DER-007",
                "SYSCAP-DER-008",
                "SYSCAP-DER-009",
                "SYSCAP-DER-010",
                "SYSCAP-DER-011",
                "SYSCAP-DER-012",
                "SYSCAP-DER-013",
                "SYSCAP-DER-014",
                "SYSCAP-DER-015",
            ][number - 1],
            "a child has more than its parent",
        )
    };
    let mut add = |number, comment: &str, parent: &TokenBody, child: &TokenBody, by, valid| {
        let (parent, child) = (wire(parent, 1), wire(child, by));
        let read = |wire: &[u8]| Token::read(wire).expect(comment);
        let (above, below) = (read(&parent), read(&child));
        let found = attenuates(below.body(), above.id(), above.body());
        assert_eq!(found.is_ok(), valid, "{number} {comment} {found:?}");
        let mut given = json!({"kind": "derive", "parent": hex(&parent), "child": hex(&child)});
        if let Err(refused) = found {
            given["reason"] = json!(refused.reason().name());
        }
        cases.add(of(number), valid, comment, given);
    };
    for number in 1..=15 {
        add(number, "a rightful child", &root(), &child(&root()), 2, true);
    }
    let closed: [(&str, Change); 3] = [
        ("without holder", |p| p.holder = None),
        ("terminal", |p| p.flags = TokenFlags::TERMINAL),
        ("at its greatest depth", |p| p.depth_max = 0),
    ];
    for (comment, close) in closed {
        let mut parent = root();
        close(&mut parent);
        let below = TokenBody { flags: parent.flags, depth_max: 1, ..child(&parent) };
        add(1, comment, &parent, &below, 2, false);
    }
    let grant = |b: &mut TokenBody, id: &str, grant| b.grants = Grants::new().with(tool(id), grant);
    let by_issuer = TokenBody { issuer: public(1), ..child(&root()) };
    add(2, "by the parent's issuer", &root(), &by_issuer, 1, false);
    let table: &[(usize, &str, bool, AnyChange)] = &[
        (3, "another home", false, &|c| c.audience = HomeId::from_bytes([8; 32])),
        (4, "another parent", false, &|c| c.parent = Some(TokenId::from_bytes([0; 32]))),
        (5, "two more", false, &|c| (c.depth, c.depth_max) = (2, 2)),
        (6, "equal", true, &|c| c.depth_max = 3),
        (6, "deeper", false, &|c| c.depth_max = 4),
        (7, "the same agent", true, &|c| c.agent = AgentId::new("team").expect("an id")),
        (7, "a name that begins with the parent's", false, &|c| {
            c.agent = AgentId::new("teams").expect("an id")
        }),
        (7, "another agent", false, &|c| c.agent = AgentId::new("other/x").expect("an id")),
        (8, "equal", true, &|c| c.not_before = UnixMillis::new(1_000)),
        (8, "before", false, &|c| c.not_before = UnixMillis::new(999)),
        (9, "equal", true, &|c| c.expires = UnixMillis::new(100_000)),
        (9, "after", false, &|c| c.expires = UnixMillis::new(100_001)),
        (10, "above", true, &|c| c.epoch = 5),
        (10, "below", false, &|c| c.epoch = 3),
        (11, "another tool", false, &|c| grant(c, "fs.write", ToolGrant::new())),
        (11, "a wider scope", false, &|c| {
            grant(
                c,
                "fs.read",
                ToolGrant::new().with("path", paths(r#"[["shared",null,["a"],7]]"#)),
            );
        }),
        (11, "another dimension", false, &|c| {
            grant(c, "fs.read", ToolGrant::new().with("host", written(r#"[4,["a.example"]]"#)));
        }),
        (11, "a dimension less", true, &|c| grant(c, "fs.read", ToolGrant::new())),
        (12, "equal", true, &|c| c.budget = Budget::standard()),
        (12, "one more call", false, &|c| {
            let most = Budget::standard().amounts().get(Dimension::Calls);
            c.budget = Budget::standard().with(Dimension::Calls, most + 1);
        }),
        (13, "none", false, &|c| c.policy = None),
        (13, "another", false, &|c| c.policy = Some(PolicyHash::from_bytes([6; 32]))),
        (15, "other caveats and extensions", true, &|c| c.ext = MapBuilder::new().finish()),
    ];
    for (number, comment, valid, change) in table {
        let mut below = child(&root());
        change(&mut below);
        add(*number, comment, &root(), &below, 2, *valid);
    }
    let free = TokenBody { policy: None, ..root() };
    let below = TokenBody { policy: Some(PolicyHash::from_bytes([6; 32])), ..child(&free) };
    add(13, "one where the parent has none", &free, &below, 2, true);
    let strict = TokenBody { flags: TokenFlags::READ_ONLY, ..root() };
    let below = TokenBody { flags: TokenFlags::default(), ..child(&strict) };
    add(14, "a flag less", &strict, &below, 2, false);
}
