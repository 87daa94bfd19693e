//! The domains of hashing are BLAKE3's `derive_key` contexts, and no two are alike.

use std::collections::BTreeSet;

use syscap_format::{
    Domain, FactKey, MapBuilder, Salt, changes_hash, fact_id, leaf, matches_digest,
};

#[test]
fn context_keys_are_the_hashes_of_their_contexts() {
    for domain in Domain::ALL {
        let key = blake3::hazmat::hash_derive_key_context(domain.context());
        assert_eq!(*domain.context_key(), key, "{}", domain.context());
    }
}

#[test]
fn domains_hash_as_derive_key_does_and_differ() {
    let (first, second): (&[u8], &[u8]) = (b"one item, ", b"in two parts");
    let mut seen = BTreeSet::new();
    for domain in Domain::ALL {
        let hash = domain.hash(&[first, second]);
        assert_eq!(hash, blake3::derive_key(domain.context(), b"one item, in two parts"));
        assert!(seen.insert(hash) && seen.insert(*domain.context_key()), "{}", domain.context());
    }
}

/// Facts, changes and matches are hashed as `docs/spec` says: the bytes here are by hand.
#[test]
fn facts_changes_and_matches_are_hashed_as_written() {
    let salt = Salt::from_bytes([7; 32]);
    let changes = MapBuilder::new().uint("fact.a", 5).finish();
    let key = FactKey::new("fact.a").expect("a key");
    let salted = |head: u8| [&[head, 0x58, 0x20][..], &[7; 32]].concat();
    let fact = [&salted(0x83)[..], b"\x66fact.a\x05"].concat();
    let value = changes.item().get("fact.a").expect("a value");
    assert_eq!(
        *fact_id(&salt, &key, value).as_bytes(),
        blake3::derive_key("syscap 2026-11-22 fact v1", &fact)
    );
    let changed = [&salted(0x82)[..], b"\xa1\x66fact.a\x05"].concat();
    assert_eq!(
        *changes_hash(&salt, changes.item()).as_bytes(),
        blake3::derive_key("syscap 2026-11-21 arguments v1", &changed)
    );
    let places = [0x83, 0x00, 0x18, 0x18, 0x19, 0x01, 0x2c];
    assert_eq!(
        matches_digest(&[0, 24, 300]),
        blake3::derive_key("syscap 2026-11-22 matches v1", &places)
    );
}

/// RFC 6962's leaf of no bytes, as in the test vectors of Certificate Transparency.
#[test]
fn the_leaf_is_that_of_certificate_transparency() {
    let empty = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
    assert_eq!(leaf(b"").to_string(), empty);
}
