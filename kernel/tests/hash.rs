//! The domains of hashing are BLAKE3's `derive_key` contexts, and no two are alike.

use std::collections::BTreeSet;

use syscap_kernel::hash::{Domain, leaf};

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

/// RFC 6962's leaf of no bytes, as in the test vectors of Certificate Transparency.
#[test]
fn the_leaf_is_that_of_certificate_transparency() {
    let empty = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
    assert_eq!(leaf(b"").to_string(), empty);
}
