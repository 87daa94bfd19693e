//! The crates that the kernel signs and hashes with do what the golden counts say.

use crate::common::data;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::Value;

fn bytes(value: &Value) -> Vec<u8> {
    let digit = |digit: u8| u8::try_from(char::from(digit).to_digit(16).unwrap()).unwrap();
    let (pairs, rest) = value.as_str().unwrap().as_bytes().as_chunks::<2>();
    assert!(rest.is_empty());
    pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

/// Whether the signature passes `verify_strict`; `None` where the key itself is refused.
fn strict(key: &[u8], message: &[u8], signature: &[u8]) -> Option<bool> {
    let key = VerifyingKey::from_bytes(key.try_into().unwrap()).ok()?;
    let verified = Signature::from_slice(signature)
        .and_then(|signature| key.verify_strict(message, &signature));
    Some(verified.is_ok())
}

fn is_lax(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    use ed25519_dalek::Verifier as _;
    let key = VerifyingKey::from_bytes(key.try_into().unwrap()).unwrap();
    Signature::from_slice(signature).and_then(|sig| key.verify(message, &sig)).is_ok()
}

fn flagged(case: &Value, flag: &str) -> bool {
    case["flags"].as_array().is_some_and(|flags| flags.iter().any(|found| found == flag))
}

#[test]
fn cctv_strict_accepts_43_of_914() {
    let Some(cases) = data::json("ed25519/cctv_ed25519vectors.json") else { return };
    let cases = cases.as_array().unwrap();
    let (mut passed, mut lax, mut odd_keys) = (0, 0, 0);
    for case in cases {
        let (key, signature) = (bytes(&case["key"]), bytes(&case["sig"]));
        let message = case["msg"].as_str().unwrap().as_bytes();
        let accepted = strict(&key, message, &signature).unwrap();
        for flag in ["non_canonical_A", "non_canonical_R", "low_order_A", "low_order_R"] {
            assert!(!(accepted && flagged(case, flag)), "{}", case["number"]);
        }
        passed += usize::from(accepted);
        lax += usize::from(is_lax(&key, message, &signature));
        odd_keys += usize::from(flagged(case, "non_canonical_A"));
    }
    assert_eq!((cases.len(), passed, lax, odd_keys), (914, 43, 208, 226));
}

#[test]
fn speccheck_strict_accepts_number_3_alone() {
    let Some(cases) = data::json("ed25519/speccheck_cases.json") else { return };
    let cases = cases.as_array().unwrap();
    let accepted = |case: &Value| {
        let (key, signature) = (bytes(&case["pub_key"]), bytes(&case["signature"]));
        strict(&key, &bytes(&case["message"]), &signature) == Some(true)
    };
    let passed: Vec<usize> = (0..cases.len()).filter(|n| accepted(&cases[*n])).collect();
    assert_eq!((cases.len(), passed), (12, vec![3]));
}

#[test]
fn wycheproof_agrees_on_all_151() {
    let Some(suite) = data::json("ed25519/wycheproof_ed25519_test.json") else { return };
    let (mut agreed, mut total) = (0, 0);
    for group in suite["testGroups"].as_array().unwrap() {
        let key = bytes(&group["publicKey"]["pk"]);
        for case in group["tests"].as_array().unwrap() {
            let accepted = strict(&key, &bytes(&case["msg"]), &bytes(&case["sig"])).unwrap();
            total += 1;
            agreed += usize::from(accepted == (case["result"] == "valid"));
        }
    }
    assert_eq!((agreed, total), (151, 151));
}

#[test]
fn blake3_agrees_on_all_35() {
    let Some(suite) = data::json("blake3/test_vectors.json") else { return };
    let context = suite["context_string"].as_str().unwrap();
    let cases = suite["cases"].as_array().unwrap();
    for case in cases {
        let length = usize::try_from(case["input_len"].as_u64().unwrap()).unwrap();
        let input: Vec<u8> = (0..=250).cycle().take(length).collect();
        let (hash, derived) = (bytes(&case["hash"]), bytes(&case["derive_key"]));
        assert_eq!(blake3::hash(&input).as_bytes()[..], hash[..32], "{length}");
        assert_eq!(blake3::derive_key(context, &input)[..], derived[..32], "{length}");
        for (mut hasher, expected) in
            [(blake3::Hasher::new(), hash), (blake3::Hasher::new_derive_key(context), derived)]
        {
            let mut output = vec![0; expected.len()];
            for chunk in input.chunks(1000) {
                hasher.update(chunk);
            }
            hasher.finalize_xof().fill(&mut output);
            assert_eq!(output, expected, "{length}");
        }
    }
    assert_eq!(cases.len(), 35);
}
