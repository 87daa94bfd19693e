//! Whatever is wrong in one place is refused, with the fault that names it.

use crate::common::mutate::Mutation;
use crate::common::tree::{Flavour, Tree, cases, trees};
use crate::common::vectors::valid;
use proptest::prelude::*;
use syscap_format::{Canonical, DecodeError, DecodeFault, Decoder, Item, ItemKind, Profile};

/// Reads whatever comes, piece by piece where the decoder has a way for that.
fn read(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
    match decoder.peek()? {
        ItemKind::Uint => decoder.uint().map(|_| ()),
        ItemKind::Negative => decoder.int().map(|_| ()),
        ItemKind::Bytes => decoder.bytes().map(|_| ()),
        ItemKind::Text => decoder.text().map(|_| ()),
        ItemKind::Bool => decoder.boolean().map(|_| ()),
        ItemKind::Null => decoder.null(),
        ItemKind::Float => decoder.float().map(|_| ()),
        ItemKind::Array => decoder.each(read),
        ItemKind::Map => {
            let mut texts = decoder.clone();
            match texts.text_map(|_, decoder| read(decoder)) {
                Err(error) if error.fault == DecodeFault::KeyType => decoder.item().map(|_| ()),
                outcome => {
                    *decoder = texts;
                    outcome
                }
            }
        }
    }
}

/// Checks every mutant of the tree and says how many there were.
fn refused(mutation: Mutation, tree: &Tree) -> usize {
    let mutants = mutation.mutants(tree);
    let right = tree.bytes();
    assert!(Item::check(&right, Profile::DATA).is_ok(), "{tree:?}");
    assert_eq!(read(&mut Decoder::new(&right, Profile::DATA)), Ok(()));
    for bytes in &mutants {
        assert_ne!(*bytes, right);
        let error = Item::check(bytes, Profile::DATA).expect_err("a mutant is refused");
        assert!(mutation.faults().contains(&error.fault), "{mutation:?} {error:?} {bytes:x?}");
        assert!(error.at <= bytes.len());
        assert!(Item::check(bytes, Profile::CONTROL).is_err());
        assert_eq!(Canonical::check(bytes.clone(), Profile::DATA), Err(error));
        let mut decoder = Decoder::new(bytes, Profile::DATA);
        assert!(decoder.item().is_err() || decoder.finish().is_err());
        let mut decoder = Decoder::new(bytes, Profile::DATA);
        assert!(read(&mut decoder).is_err() || decoder.finish().is_err());
    }
    mutants.len()
}

#[test]
fn every_valid_vector_is_refused_in_every_mutation() {
    let mut vectors: Vec<Tree> = valid().into_iter().map(|(_, tree)| tree).collect();
    // All of them in one array, and in one map, so that each kind of value stands inside others.
    vectors.push(Tree::Array(vectors.clone()));
    let numbered = vectors.iter().enumerate();
    vectors.push(Tree::map(numbered.map(|(n, tree)| (n.to_string(), tree.clone()))));
    let mut total = 0;
    for mutation in Mutation::ALL {
        let count: usize = vectors.iter().map(|tree| refused(mutation, tree)).sum();
        assert!(count > 0, "{mutation:?} was never applied");
        total += count;
    }
    assert!(total > 2000, "{total}");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_trees_are_refused_in_every_mutation(tree in trees(Flavour::All)) {
        let applied = Mutation::ALL.iter().filter(|mutation| refused(**mutation, &tree) > 0);
        // Those that need no particular kind of value.
        prop_assert!(applied.count() >= 8);
    }
}
