//! Rows of the vault: their one form, and bounds.

use syscap_format::*;

#[test]
fn a_row_is_canonical_and_reads_back() {
    let salt = |byte| Salt::from_bytes([byte; 32]);
    let salts = CallSalts { call: salt(1), args: salt(2), result: salt(3) };
    for len in [0, 1, 23, 24, 255, 256, 65_535, 65_536] {
        let (args, result) = (vec![7; len], vec![8; len]);
        for (with_salts, with_args, with_result) in [
            (Some(&salts), Some(&args[..]), Some(&result[..])),
            (Some(&salts), Some(&args[..]), None),
            (None, None, Some(&result[..])),
            (None, None, None),
        ] {
            let row = VaultWrite::row(with_salts, with_args, with_result);
            assert!(Item::check(&row, Profile::CONTROL).is_ok(), "{len}");
            let wanted = VaultEntry {
                salts: with_salts.copied(),
                args: with_args.map(Vec::from),
                result: with_result.map(Vec::from),
                ..VaultEntry::default()
            };
            assert_eq!(VaultEntry::from_row(&row), Some(wanted), "{len}");
        }
    }
}

#[test]
fn pieces_read_back_and_are_bounded() {
    let step = |path: &Canonical| ArgsPiece::Part(Seq::new(70_000), path.clone());
    let path = |bytes: &[u8]| Canonical::check(bytes.to_vec(), Profile::DATA).unwrap();
    let (root, deep) = (path(b"\x80"), path(b"\x83\x61a\x18\x18\x00"));
    let one = ArgsPiece::Bytes(vec![7; 300]);
    let salt = Salt::from_bytes([1; 32]);
    let salts = CallSalts { call: salt, args: salt, result: salt };
    let whole = vec![one.clone(), step(&root), ArgsPiece::Bytes(vec![1]), step(&deep)];
    let row = VaultWrite::row_of_pieces(&salts, &whole);
    assert!(Item::check(&row, Profile::CONTROL).is_ok());
    let entry = VaultEntry::from_row(&row).unwrap();
    assert_eq!((&entry.pieces, &entry.args, entry.to_row()), (&whole, &None, row));
    let many = |count| VaultWrite::row_of_pieces(&salts, &vec![one.clone(); count]);
    assert!(VaultEntry::from_row(&many(2 * REFERENCES_MAX + 1)).is_some());
    assert!(VaultEntry::from_row(&many(2 * REFERENCES_MAX + 2)).is_none());
    // A step is a key or a place.
    for other in [&b"\xa0"[..], b"\x81\x20", b"\x81\x80"] {
        assert!(
            VaultEntry::from_row(&VaultWrite::row_of_pieces(&salts, &[step(&path(other))]))
                .is_none()
        );
    }
}

#[test]
fn texts_read_back_and_are_bounded() {
    let text = |field: u64, len| VaultText {
        salt: Salt::from_bytes([7; 32]),
        field,
        text: "x".repeat(len).into(),
    };
    let entry = |texts| VaultEntry { texts, ..VaultEntry::default() };
    let whole = entry((0..16).map(|field| text(field, 300)).collect());
    assert!(Item::check(&whole.to_row(), Profile::CONTROL).is_ok());
    assert_eq!(VaultEntry::from_row(&whole.to_row()).as_ref(), Some(&whole));
    let (first, other) = (text(0, 300), text(0, 299));
    assert_eq!(whole.text(&first.hash()), Some(&*first.text));
    assert_eq!(whole.text(&other.hash()), None);
    assert!(VaultEntry::from_row(&entry(vec![text(5, TEXT_BYTES_MAX)]).to_row()).is_some());
    assert!(VaultEntry::from_row(&entry(vec![text(5, TEXT_BYTES_MAX + 1)]).to_row()).is_none());
    assert!(VaultEntry::from_row(&entry(vec![text(5, 1); 128]).to_row()).is_some());
    assert!(VaultEntry::from_row(&entry(vec![text(5, 1); 128 + 1]).to_row()).is_none());
}

#[test]
fn a_row_of_another_form_is_not_read() {
    let good = VaultWrite::row(None, None, Some(b"x"));
    let newer = [&good[..1], &[3], &good[2..]].concat();
    let in_no_pieces = [&good[..1], &[2], &good[2..]].concat();
    let keyed = [&good[..2], &[0x01], &good[3..]].concat();
    let longer = [&good[..], &[0]].concat();
    for other in [newer, in_no_pieces, keyed, longer, Vec::new()] {
        assert!(VaultEntry::from_row(&other).is_none(), "{other:?}");
    }
}
