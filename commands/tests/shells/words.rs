//! Whether a program's arguments are such as were told.

use syscap_commands::Piece;

pub(crate) fn fits(words: &[Piece], argv: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return argv.is_empty() };
    let tail = |from: usize| argv.get(from..).is_some_and(|argv| fits(rest, argv));
    match first {
        Piece::Literal(text) => argv.first().is_some_and(|word| word == text) && tail(1),
        Piece::One | Piece::Stream => !argv.is_empty() && tail(1),
        Piece::Many => (0..=argv.len()).any(tail),
        Piece::Pattern { folder, .. } => {
            // `find` also finds the folder itself.
            let own = |word: &str| word.starts_with(folder) || format!("{word}/") == *folder;
            let most = argv.iter().take_while(|word| own(word)).count();
            (1..=most).any(tail)
        }
    }
}
