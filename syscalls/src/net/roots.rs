//! Certificates of authorities that an operator trusts.

use ureq::tls::{PemItem, parse_pem};

/// Longest file, in bytes: what stands in settings stands in the log.
const PEM_BYTES_MAX: usize = 16 << 10;

/// The certificates in a text of PEM, in DER; `None` where there are none, or something else is
/// among them.
pub(super) fn read(pem: &str) -> Option<Vec<Vec<u8>>> {
    if pem.len() > PEM_BYTES_MAX {
        return None;
    }
    let all: Option<Vec<Vec<u8>>> = parse_pem(pem.as_bytes())
        .map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate.der().to_vec()),
            _ => None,
        })
        .collect();
    all.filter(|all| !all.is_empty())
}
