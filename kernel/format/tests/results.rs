//! Results of calls: read back, and nothing else.

use syscap_format::*;

use crate::common::vectors::{bytes, cases};

#[test]
fn results_are_read_as_the_vectors_say() {
    for case in cases("results.json", "result") {
        let bytes = bytes(&case, "bytes");
        let envelope = Canonical::from(Item::check(&bytes, Profile::DATA).unwrap());
        let found = ToolResult::from_canonical(&envelope);
        assert_eq!(found.is_some(), case["result"] == "valid", "{case}");
        let Some(result) = found else { continue };
        assert_eq!(result.to_canonical(), envelope, "{case}");
        for asked in result.degraded() {
            assert_eq!(Obligation::named(&asked.to_string()).as_ref(), Some(asked));
        }
        let (head, delivered) = (result.head(), result.delivered().clone());
        assert_eq!(ToolResult::from_parts(head.item(), delivered.clone()), Some(result));
        // What was delivered stands apart, and nowhere else.
        for key in ["result", "error"] {
            let entries = head.item().entries().chain([(key, delivered.item())]);
            let both = entries.fold(MapBuilder::new(), |map, (key, item)| map.item(key, item));
            assert_eq!(ToolResult::from_parts(both.finish().item(), delivered.clone()), None);
        }
    }
}

#[test]
fn error_objects_are_read_as_the_vectors_say() {
    for case in cases("errors.json", "error") {
        let bytes = bytes(&case, "bytes");
        let object = Item::check(&bytes, Profile::DATA).unwrap();
        let tx = TxOutcome::ALL.iter().find(|tx| case["tx"] == tx.name()).unwrap();
        let read = Refused::from_error_object(object, *tx);
        assert_eq!(read.is_some(), case["result"] == "valid", "{case}");
    }
}

#[test]
fn obligations_come_back_from_their_words() {
    let words = ["read_only 1", "result_cap", "result_cap x", "notify", "other 1", ""];
    for words in words {
        assert_eq!(Obligation::named(words), None, "{words}");
    }
    let elevated = Obligation::elevated();
    assert_eq!(Obligation::named(&elevated.to_string()), Some(elevated));
}
