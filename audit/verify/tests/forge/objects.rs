//! Control documents that are missing, changed or of another kind.

use syscap_format::{Object, ObjectKind};
use syscap_verify::Fault;

use kernel_support::{driver::log::Log, driver::scenario::everything};

/// Every object of a log with all kinds of records is named by one.
#[test]
fn every_object_is_needed_as_it_is() {
    let whole = Log::of(&everything());
    assert_eq!(whole.faults(), []);
    for kind in ObjectKind::ALL {
        let of_kind = |object: &&Object| object.kind == *kind;
        assert!(whole.objects.iter().filter(of_kind).count() >= 1, "{kind}");
    }
    for place in 0..whole.objects.len() {
        let first = |log: &Log| log.faults().first().map(|(_, fault)| *fault);
        let mut log = whole.clone();
        log.objects.remove(place);
        assert_eq!(first(&log), Some(Fault::ObjectMissing));

        for byte in 0..whole.objects[place].bytes.len() {
            // The signature of a token is no part of what names it.
            let wire = whole.objects[place].kind == ObjectKind::Token;
            let tail = byte + 64 >= whole.objects[place].bytes.len();
            if byte % 7 != 0 && !tail {
                continue;
            }
            let mut log = whole.clone();
            log.objects[place].bytes[byte] ^= 1 << (byte % 8);
            let found = if wire && tail { Fault::BadSignature } else { Fault::ObjectUnsound };
            assert_eq!(first(&log), Some(found), "object {place} byte {byte}");
        }
        let mut log = whole.clone();
        let kind = log.objects[place].kind;
        log.objects[place].kind =
            if kind == ObjectKind::Token { ObjectKind::Policy } else { ObjectKind::Token };
        assert_eq!(first(&log), Some(Fault::ObjectUnsound));
    }
}
