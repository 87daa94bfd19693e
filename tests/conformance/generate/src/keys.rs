//! Vectors of `tokens.md`, Ed25519: every case in which two verifiers are known to differ.
//!
//! Keys and signatures are made with parts of small order in every combination, and with points
//! that have a second encoding, as the suites of CCTV, Wycheproof and ed25519-speccheck do.

use curve25519_dalek::constants::{ED25519_BASEPOINT_TABLE, EIGHT_TORSION};
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity as _;
use serde_json::json;
use sha2::{Digest as _, Sha512};
use syscap_format::{PublicKey, Signature};

use crate::case::{Cases, Of, hex};

/// The order of the group, little-endian.
const L: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

const SMALL: Of = Of("SYSCAP-KEY-003", "a key of small order signs every message");
const SMALL_R: Of = Of("SYSCAP-KEY-005", "batches and single verification differ");
const EQUATION: Of = Of("SYSCAP-KEY-006", "a cofactor hides a part of small order");
const ENCODING: Of = Of("SYSCAP-KEY-002", "one key has two names");
const ENCODING_R: Of = Of("SYSCAP-KEY-004", "one signature has two encodings");

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    keys(&mut cases);
    plain(&mut cases);
    mixed(&mut cases);
    other_encodings(&mut cases);
    cases
}

fn scalar(of: &str) -> Scalar {
    Scalar::from_bytes_mod_order_wide(&Sha512::digest(of.as_bytes()).into())
}

fn challenge(r: &[u8; 32], a: &[u8; 32], message: &[u8]) -> Scalar {
    let hash = Sha512::new().chain_update(r).chain_update(a).chain_update(message);
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

/// A signature, held against ours: the message has no context.
fn add(
    cases: &mut Cases,
    of: Of,
    comment: &str,
    key: [u8; 32],
    message: &[u8],
    sig: [u8; 64],
    valid: bool,
) {
    let found =
        PublicKey::new(key).and_then(|key| key.verify(b"", message, &Signature::from_bytes(sig)));
    assert_eq!(found.is_ok(), valid, "{of:?} {comment} {found:?}");
    let given = json!({
        "kind": "signature", "key": hex(&key), "message": hex(message), "signature": hex(&sig),
    });
    cases.add(of, valid, comment, given);
}

fn joined(r: [u8; 32], s: [u8; 32]) -> [u8; 64] {
    let mut joined = [0; 64];
    joined[..32].copy_from_slice(&r);
    joined[32..].copy_from_slice(&s);
    joined
}

/// A point with a part of small order.
fn point(scalar: &Scalar, torsion: usize) -> EdwardsPoint {
    scalar * ED25519_BASEPOINT_TABLE + EIGHT_TORSION[torsion]
}

/// `S + L`, which has the same value.
fn plus_order(s: [u8; 32]) -> [u8; 32] {
    let (mut sum, mut carry) = ([0; 32], 0_u16);
    for (place, (s, l)) in sum.iter_mut().zip(s.into_iter().zip(L)) {
        let all = u16::from(s) + u16::from(l) + carry;
        (*place, carry) = (all.to_le_bytes()[0], all >> 8);
    }
    sum
}

/// Encodings of points of small order, canonical or not: `y` is 0, 1, -1 or of order 8, also with
/// the prime added, and with each sign.
fn small() -> Vec<[u8; 32]> {
    let mut found: Vec<[u8; 32]> =
        EIGHT_TORSION.iter().map(|point| point.compress().to_bytes()).collect();
    let mut prime = [0xff; 32];
    (prime[0], prime[31]) = (0xed, 0x7f);
    for more in 0..2 {
        let mut encoded = prime;
        encoded[0] += more;
        found.push(encoded);
    }
    let ones: Vec<[u8; 32]> = found
        .iter()
        .map(|encoded| {
            let mut other = *encoded;
            other[31] ^= 0x80;
            other
        })
        .collect();
    found.extend(ones);
    found.sort_unstable();
    found.dedup();
    found
}

fn keys(cases: &mut Cases) {
    let mut key = |of, comment: &str, bytes: [u8; 32], valid| {
        assert_eq!(PublicKey::new(bytes).is_ok(), valid, "{comment} {}", hex(&bytes));
        let encoded = [&[0x58, 0x20][..], &bytes].concat();
        cases.add(
            of,
            valid,
            comment,
            json!({"kind": "type", "type": "bstr of 32 key", "bytes": hex(&encoded)}),
        );
    };
    for n in 0..4 {
        let bytes = point(&scalar(&format!("key {n}")), 2 * n).compress().to_bytes();
        key(SMALL, "a point that is not of small order", bytes, true);
        key(ENCODING, "the canonical encoding of a point", bytes, true);
    }
    small().into_iter().for_each(|bytes| key(SMALL, "a point of small order", bytes, false));
    // `y` from the prime up to 2^255 - 1, and numbers that are no `y` of a point.
    for low in 0xee..=0xff_u8 {
        for high in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, high);
            if low > 0xee {
                key(ENCODING, "a coordinate above the prime", bytes, false);
            }
        }
    }
    for y in 2..40_u8 {
        let mut bytes = [0; 32];
        bytes[0] = y;
        if curve25519_dalek::edwards::CompressedEdwardsY(bytes).decompress().is_none() {
            key(ENCODING, "no point has this coordinate", bytes, false);
        }
    }
}

fn plain(cases: &mut Cases) {
    let of = Of("SYSCAP-KEY-001", "a signature that was made once has a second form");
    for n in 0..8_usize {
        let (a, r) = (scalar(&format!("a {n}")), scalar(&format!("r {n}")));
        let (key, nonce) = (point(&a, 0).compress().to_bytes(), point(&r, 0).compress().to_bytes());
        let message = vec![u8::try_from(n).expect("small"); n * 9];
        let s = (r + challenge(&nonce, &key, &message) * a).to_bytes();
        add(cases, of, "a plain signature", key, &message, joined(nonce, s), true);
        add(cases, of, "S plus the order", key, &message, joined(nonce, plus_order(s)), false);
        let mut high = s;
        high[31] |= 0x80;
        add(cases, of, "the highest bit of S", key, &message, joined(nonce, high), false);
        let other = [&message[..], b"."].concat();
        add(cases, EQUATION, "another message", key, &other, joined(nonce, s), false);
        add(
            cases,
            ENCODING_R,
            "the canonical encoding of R",
            key,
            &message,
            joined(nonce, s),
            true,
        );
        add(
            cases,
            SMALL_R,
            "an R that is not of small order",
            key,
            &message,
            joined(nonce, s),
            true,
        );
        let mut odd = nonce;
        odd[31] ^= 0x80;
        add(cases, EQUATION, "the other sign of R", key, &message, joined(odd, s), false);
    }
    let key = point(&scalar("a"), 0).compress().to_bytes();
    add(
        cases,
        EQUATION,
        "all zeros but R, which is the identity's",
        key,
        b"",
        {
            let mut zeros = [0; 64];
            zeros[0] = 1;
            zeros
        },
        false,
    );
}

/// Keys and nonces with every part of small order: some messages verify, and others would with a
/// cofactor alone.
fn mixed(cases: &mut Cases) {
    let (a, r) = (scalar("mixed a"), scalar("mixed r"));
    for (of_key, key_part) in EIGHT_TORSION.iter().enumerate() {
        for (of_nonce, nonce_part) in EIGHT_TORSION.iter().enumerate() {
            let key = point(&a, of_key).compress().to_bytes();
            let nonce = point(&r, of_nonce).compress().to_bytes();
            let (mut yes, mut no) = (false, false);
            for n in 0..64_u8 {
                let k = challenge(&nonce, &key, &[n]);
                let rest = nonce_part + k * key_part;
                let holds = rest.is_identity();
                let done = if holds { &mut yes } else { &mut no };
                if !std::mem::replace(done, true) {
                    let comment = format!("parts of small order {of_key} and {of_nonce}");
                    add(
                        cases,
                        EQUATION,
                        &comment,
                        key,
                        &[n],
                        joined(nonce, (r + k * a).to_bytes()),
                        holds,
                    );
                }
            }
        }
    }
}

/// Keys and nonces of small order in every encoding, alone and with each other.
fn other_encodings(cases: &mut Cases) {
    let (a, r) = (scalar("other a"), scalar("other r"));
    let (key, nonce) = (point(&a, 0).compress().to_bytes(), point(&r, 0).compress().to_bytes());
    let torsion: Vec<[u8; 32]> =
        EIGHT_TORSION.iter().map(|point| point.compress().to_bytes()).collect();
    for small in small() {
        let comment = if torsion.contains(&small) { "canonical" } else { "another encoding" };
        for n in 0..3_u8 {
            add(cases, SMALL, comment, small, &[n], joined(nonce, r.to_bytes()), false);
            let of = if comment == "canonical" { SMALL_R } else { ENCODING_R };
            let s = (challenge(&small, &key, &[n]) * a).to_bytes();
            add(cases, of, comment, key, &[n], joined(small, s), false);
        }
    }
    for small_key in &torsion {
        for small_nonce in &torsion {
            add(
                cases,
                SMALL,
                "both of small order, S is 0",
                *small_key,
                b"any",
                joined(*small_nonce, [0; 32]),
                false,
            );
        }
    }
}
