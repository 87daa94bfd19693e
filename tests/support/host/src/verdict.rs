//! What the verifier says of a home.

use std::path::Path;

use syscap::verify::{Options, Soundness, TrustSource, verify_home};

/// By what its own trust file says.
pub fn verdict(home: &Path) -> Soundness {
    let trust = TrustSource::File(home.join("trust.cbor"));
    let report = verify_home(home, &Options { trust, ..Options::default() }).unwrap();
    println!("{report:?}");
    report.verdict()
}
