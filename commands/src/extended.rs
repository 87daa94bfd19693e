//! `[[ .. ]]`: a test of bash's own, and to other shells a program of that name.

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate, Word};

use crate::{run::Run, said::Piece, walk::Walk};

impl Walk<'_> {
    /// One test of a file or of texts. What calculates may run what an index says; and where there
    /// are more of them, other shells take the second for a command.
    pub(crate) fn extended(&mut self, test: &ExtendedTestExpr) {
        self.said.needs.insert("[[".to_owned());
        if self.place.may_be_agents("[[") {
            self.unknown("[[ may be a program of the agent's");
        }
        let test = match test {
            ExtendedTestExpr::Not(test) => test,
            test => test,
        };
        match test {
            ExtendedTestExpr::UnaryTest(of, word) if is_of_a_file(of) => {
                // To bash it is one word, whatever stands in it.
                match self.compared(word) {
                    Piece::Many => self.unknown("[[: a file whose name can't be told"),
                    word => Run::of(self, false).read(&word),
                }
            }
            ExtendedTestExpr::UnaryTest(
                UnaryPredicate::StringHasNonZeroLength | UnaryPredicate::StringHasZeroLength,
                word,
            ) => drop(self.compared(word)),
            ExtendedTestExpr::BinaryTest(
                BinaryPredicate::StringExactlyMatchesPattern
                | BinaryPredicate::StringDoesNotExactlyMatchPattern
                | BinaryPredicate::StringExactlyMatchesString
                | BinaryPredicate::StringDoesNotExactlyMatchString,
                one,
                other,
            ) => drop((self.compared(one), self.compared(other))),
            _ => self.unknown("[[ ]]: more than one plain test"),
        }
    }

    fn compared(&mut self, word: &Word) -> Piece {
        // To other shells these redirect, or end the command.
        if word.value.contains(['<', '>', '(', ')', '|', '&', ';', '\n']) {
            self.unknown("[[ ]]: what shells read differently");
        }
        self.word(&word.value)
    }
}

const fn is_of_a_file(of: &UnaryPredicate) -> bool {
    matches!(
        of,
        UnaryPredicate::FileExists
            | UnaryPredicate::FileExistsAndIsBlockSpecialFile
            | UnaryPredicate::FileExistsAndIsCharSpecialFile
            | UnaryPredicate::FileExistsAndIsDir
            | UnaryPredicate::FileExistsAndIsRegularFile
            | UnaryPredicate::FileExistsAndIsSymlink
            | UnaryPredicate::FileExistsAndIsReadable
            | UnaryPredicate::FileExistsAndIsNotZeroLength
            | UnaryPredicate::FileExistsAndIsWritable
            | UnaryPredicate::FileExistsAndIsExecutable
    )
}
