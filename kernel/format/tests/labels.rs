//! Labels: joining, and their numbers.

use syscap_format::field::Field as _;
use syscap_format::*;

fn all() -> impl Iterator<Item = Label> {
    Integrity::ALL.iter().flat_map(|integrity| {
        Confidentiality::ALL.iter().flat_map(|confidentiality| {
            [0, 1, u32::MAX]
                .map(|bits| Label::new(*integrity, *confidentiality).with_categories(bits))
        })
    })
}

/// Joining is a least upper bound: order and repetition do not matter, and nothing is lost.
#[test]
fn joining_only_raises() {
    for a in all() {
        assert_eq!(a.join(a), a);
        assert_eq!(a.join(Label::PUBLIC), a);
        for b in all() {
            let both = a.join(b);
            assert_eq!(both, b.join(a));
            assert_eq!(both.join(a), both);
            assert_eq!(both.is_untrusted(), a.is_untrusted() || b.is_untrusted());
            assert!(both.confidentiality() >= a.confidentiality());
            assert_eq!(both.categories(), a.categories() | b.categories());
        }
    }
}

/// A label has one number, and no other number is a label.
#[test]
fn numbers_and_labels_are_the_same() {
    for label in all() {
        let mut encoder = Encoder::new();
        label.put(&mut encoder);
        let bytes = encoder.into_bytes();
        assert_eq!(Label::take(&mut Decoder::new(&bytes, Profile::CONTROL)), Ok(label));
    }
    for number in [10, 0xff, 0x80, 1 << 40, u64::MAX] {
        let mut encoder = Encoder::new();
        encoder.uint(number);
        let bytes = encoder.into_bytes();
        Label::take(&mut Decoder::new(&bytes, Profile::CONTROL)).unwrap_err();
    }
}
