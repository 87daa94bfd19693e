//! The conformance vectors of `docs/spec/tokens.md`.

use serde_json::Value;
use syscap_format::{
    Decoder, Host, Profile, PublicKey, Resource, Rights, Root, RootedPath, Scope, Signature, Token,
    attenuates,
};

use crate::common::vectors::{bytes, cases};

fn is_valid(case: &Value) -> bool {
    case["result"] == "valid"
}

fn scope(bytes: &[u8]) -> Option<Scope> {
    let mut decoder = Decoder::new(bytes, Profile::CONTROL);
    let scope = Scope::decode(&mut decoder).ok()?;
    let mut again = syscap_format::Encoder::new();
    scope.encode(&mut again);
    assert_eq!(again.into_bytes(), bytes[..decoder.position()]);
    decoder.finish().ok().map(|()| scope)
}

#[test]
fn signatures_verify_as_the_vectors_say() {
    let all = cases("keys.json", "signature");
    assert!(all.len() > 200);
    for case in all {
        let signature = Signature::from_bytes(bytes(&case, "signature").try_into().unwrap());
        let found = PublicKey::new(bytes(&case, "key").try_into().unwrap())
            .and_then(|key| key.verify(b"", &bytes(&case, "message"), &signature));
        assert_eq!(found.is_ok(), is_valid(&case), "{case}");
    }
    for case in cases("keys.json", "type") {
        let key = PublicKey::new(bytes(&case, "bytes")[2..].try_into().unwrap());
        assert_eq!(key.is_ok(), is_valid(&case), "{case}");
    }
}

#[test]
fn scopes_have_the_forms_and_the_order_that_the_vectors_say() {
    for case in cases("scopes.json", "scope") {
        assert_eq!(scope(&bytes(&case, "bytes")).is_some(), is_valid(&case), "{case}");
    }
    for case in cases("scopes.json", "at_most") {
        let [a, b] = ["scope", "of"].map(|key| scope(&bytes(&case, key)).unwrap());
        assert_eq!(a.leq(&b), is_valid(&case), "{case}");
    }
    for case in cases("scopes.json", "permits") {
        let scope = scope(&bytes(&case, "scope")).unwrap();
        assert_eq!(scope.permits(&resource(&case["resource"])), is_valid(&case), "{case}");
    }
}

fn resource(said: &Value) -> Resource {
    let text = |key: &str| said[key].as_str();
    if let Some(host) = text("host") {
        return Resource::Host(Host::new(host).unwrap());
    }
    if let Some(address) = text("address") {
        return Resource::Addr(address.parse().unwrap());
    }
    let root = match text("owner") {
        Some(owner) => Root::Workspace(syscap_format::AgentId::new(owner).unwrap()),
        None => Root::named(text("root").unwrap()).unwrap(),
    };
    let below = said["path"].as_array().unwrap().iter().map(|part| part.as_str().unwrap());
    let needs = u8::try_from(said["needs"].as_u64().unwrap()).unwrap();
    Resource::Path {
        path: RootedPath::new(root, below).unwrap(),
        needs: Rights::from_bits(needs).unwrap(),
    }
}

#[test]
fn tokens_are_read_and_derive_as_the_vectors_say() {
    let reason = |found: Result<(), syscap_format::Refused>| match found {
        Ok(()) => Value::Null,
        Err(refused) => refused.reason().name().into(),
    };
    for case in cases("tokens.json", "token") {
        let found = Token::read(&bytes(&case, "wire"));
        if let Ok(token) = &found {
            assert_eq!(case["token_id"], token.id().to_string(), "{case}");
        }
        assert_eq!(reason(found.map(|_| ())), case["reason"], "{case}");
    }
    for case in cases("tokens.json", "derive") {
        let [parent, child] =
            ["parent", "child"].map(|key| Token::read(&bytes(&case, key)).unwrap());
        let found = attenuates(child.body(), parent.id(), parent.body());
        assert_eq!(reason(found), case["reason"], "{case}");
    }
}
