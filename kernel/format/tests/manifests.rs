//! What a later version added to a manifest and to a home's limits: absent where there is none.

use syscap_format::{
    ControlBody as _, DecodeFault, EffectClass, Freeze, HomeLimits, Manifest, Param, ParamType,
    RecordKind, Role, ToolId,
};

fn manifest() -> Manifest {
    Manifest::new(ToolId::new("mail.send").unwrap(), EffectClass::ExternalWrite)
}

/// Bytes with other items at their end, and another head.
fn with(bytes: &[u8], head: u8, end: &[u8]) -> Vec<u8> {
    let mut bytes = [bytes, end].concat();
    bytes[0] = head;
    bytes
}

#[test]
fn a_key_that_was_added_is_absent_where_there_is_nothing() {
    let (without, undo) = (manifest(), ToolId::new("mail.recall").unwrap());
    let with_it = manifest().compensated_by(undo.clone());
    let (old, new) = (without.to_bytes(), with_it.to_bytes());
    // A map of 15, and one of 16 with the same before the last.
    assert_eq!((old[0], new[0]), (0xaf, 0xb0));
    assert_eq!(new[1..old.len()], old[1..]);
    assert_eq!(new[old.len()..], [&[0x10, 0x6b][..], b"mail.recall"].concat());
    assert_eq!(Manifest::from_bytes(&old).unwrap(), without);
    assert_eq!(Manifest::from_bytes(&new).unwrap().compensated_by, Some(undo));
    assert_ne!(without.id(), with_it.id());
}

#[test]
fn other_encodings_of_a_manifest_are_refused() {
    let old = manifest().to_bytes();
    let fault = |bytes: &[u8]| Manifest::from_bytes(bytes).unwrap_err().fault;
    // Null where it should be absent: the same would have two forms.
    assert_eq!(fault(&with(&old, 0xb0, &[0x10, 0xf6])), DecodeFault::Type);
    assert_eq!(fault(&with(&old, 0xb0, &[0x14, 0x61, b'a'])), DecodeFault::Key, "another key");
    assert_eq!(fault(&with(&old, 0xae, &[])), DecodeFault::Key, "one too few");
    let two = [0x10, 0x61, b'a', 0x11, 0x61, b'b'];
    assert_eq!(fault(&with(&old, 0xb4, &two)), DecodeFault::Key, "more than there are");
    let turned = [0x11, 0xa0, 0x10, 0x61, b'a'];
    assert_eq!(fault(&with(&old, 0xb1, &turned)), DecodeFault::Key, "not in their order");
    let twice = [0x10, 0x61, b'a', 0x10, 0x61, b'a'];
    assert_eq!(fault(&with(&old, 0xb1, &twice)), DecodeFault::Key, "twice");
    let fine = [0x10, 0x61, b'a', 0x11, 0xa0];
    let both = Manifest::from_bytes(&with(&old, 0xb1, &fine)).unwrap();
    assert_eq!((both.compensated_by.is_some(), both.settings.is_some()), (true, true));
    let settings = Manifest::from_bytes(&with(&old, 0xb0, &[0x11, 0xa0])).unwrap();
    assert_eq!((settings.compensated_by.is_some(), settings.settings.is_some()), (false, true));
    assert_eq!(
        fault(&with(&old, 0xaf, &[0x10, 0x61, b'a'])),
        DecodeFault::Trailing,
        "beyond its end"
    );
    assert_eq!(fault(&with(&old, 0x8f, &[])), DecodeFault::Type);
}

#[test]
fn a_homes_limits_say_who_thaws() {
    let (new, old) = (HomeLimits::default(), HomeLimits { thaws: None, ..HomeLimits::default() });
    let (freeze, thaw) = (Freeze::all().to_bytes(), Freeze::all().thaw().to_bytes());
    for (limits, thaws) in [(&new, Role::Operator), (&old, Role::Revoker)] {
        assert_eq!(limits.role_of(RecordKind::Freeze, &thaw), Some(thaws));
        assert_eq!(limits.role_of(RecordKind::Freeze, &freeze), Some(Role::Revoker));
        // What is no body of its kind is refused whoever signed it.
        assert_eq!(limits.role_of(RecordKind::Freeze, b""), Some(Role::Revoker));
        assert_eq!(limits.role_of(RecordKind::Revoke, &thaw), Some(Role::Revoker));
        assert_eq!(limits.role_of(RecordKind::Policy, &thaw), Some(Role::Policy));
        assert_eq!(limits.role_of(RecordKind::Intent, &thaw), None);
    }
}

#[test]
fn code_is_what_a_call_says_is_to_be_run() {
    for kind in ParamType::ALL.iter().copied() {
        let tool = manifest().param(Param::optional("given", kind, ""));
        let runs = matches!(kind, ParamType::Code | ParamType::Argv);
        assert_eq!(tool.runs_code(), runs, "{kind}");
        assert_eq!(Manifest::from_bytes(&tool.to_bytes()).unwrap(), tool);
    }
}
