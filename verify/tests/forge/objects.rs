//! Control documents that are missing, changed or of another kind.

use syscap_format::{
    control::ToolsChange,
    id::ObjectId,
    object::{Object, ObjectKind, ToolEntry, ToolsObject},
    record::{Body, Kind},
};
use syscap_verify::Fault;

use super::tools::{boxed, event, home};
use kernel_support::driver::{
    log::Log,
    scenario::{everything, small},
    tool,
};

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

/// A list of tools may not call one by another's manifest.
#[test]
fn a_listed_manifest_is_that_of_its_tool() {
    let mut log = Log::of(&small(|_, _| {}));
    let found = log.objects.iter().find(|object| object.kind == ObjectKind::Tools).unwrap();
    let manifest = ToolsObject::from_bytes(&found.bytes).unwrap().tools[0].manifest;
    let entry = ToolEntry { tool: tool("other"), manifest };
    let list = ToolsObject { tools: [entry].into() };
    let id = ObjectId::from_bytes(*list.hash().as_bytes());
    log.objects.push(Object { kind: ObjectKind::Tools, id, bytes: list.to_bytes() });
    let place = log.places(Kind::Outcome)[2] + 1;
    log.forge(|r| {
        let change = ToolsChange { tools: list.hash() };
        let body = Body::Tools(boxed(event(&home(r), 2, &change)));
        super::tools::insert(r, place, body);
    });
    assert_eq!(log.faults(), [(place, Fault::ObjectUnsound)]);
}
