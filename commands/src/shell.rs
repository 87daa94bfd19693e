//! Simple commands: their words, what they set, where their input and output go.

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Part,
    IoFileRedirectKind, IoFileRedirectTarget, IoHereDocument, IoRedirect, SimpleCommand,
};

use crate::{
    limits::{COMMANDS_MAX, WORDS_MAX},
    run::Run,
    said::{Mark, Piece, Redirect, Simple},
    walk::{Ends, Standing, Walk},
    word,
};

/// Variables that make programs say more or less, and do nothing else.
const HARMLESS: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
];

impl Walk<'_> {
    pub(crate) fn simple(&mut self, command: &SimpleCommand, standing: Standing) -> Ends {
        let SimpleCommand { prefix, word_or_name, suffix } = command;
        self.said.moved.next();
        let mut simple = Simple {
            words: Vec::new(),
            assignments: Vec::new(),
            redirects: Vec::new(),
            piped: standing.piped,
            background: standing.background,
            depth: self.depth,
        };
        for part in prefix.iter().flat_map(|prefix| &prefix.0) {
            self.part(part, &mut simple, true);
        }
        simple.words.extend(word_or_name.iter().map(|word| match self.word(&word.value) {
            // A variable's text in that place is never a word of the shell's grammar.
            Piece::Literal(_) if word.value.contains('$') => Piece::One,
            piece => piece,
        }));
        for part in suffix.iter().flat_map(|suffix| &suffix.0) {
            self.part(part, &mut simple, false);
        }
        if names_a_descriptor(command) {
            self.unknown("{NAME} before a redirection, which sets a variable");
        }
        if standing.timed && !simple.assignments.is_empty() {
            self.unknown("time: a variable, which may be the name of a program");
        }
        let (words, piped) = (simple.words.clone(), simple.piped);
        if !self.tell(simple) {
            return Ends::in_place(&self.bases.clone());
        }
        match words.is_empty() {
            true => Ends::in_place(&self.bases.clone()),
            false => Run { timed: standing.timed, ..Run::of(self, piped) }.command(&words),
        }
    }

    /// Keeps a command, unless there are too many.
    pub(crate) fn tell(&mut self, simple: Simple) -> bool {
        // Its words and redirections come before it.
        self.said.moved.next();
        let few = self.said.commands.len() < COMMANDS_MAX && simple.words.len() <= WORDS_MAX;
        match few {
            true => self.said.commands.push(simple),
            false => self.unknown("too many commands or words"),
        }
        few
    }

    /// `before`: before the program's name, where what looks like an assignment is one.
    fn part(&mut self, part: &Part, simple: &mut Simple, before: bool) {
        match part {
            Part::IoRedirect(redirect) => simple.redirects.extend(self.redirect(redirect)),
            Part::Word(word) => simple.words.push(self.word(&word.value)),
            Part::AssignmentWord(assignment, _) if before => {
                simple.assignments.push(self.assign(assignment));
            }
            Part::AssignmentWord(_, word) => simple.words.push(self.word(&word.value)),
            Part::ProcessSubstitution(_, shell) => {
                self.substituted(shell);
                simple.words.push(Piece::Stream);
            }
        }
    }

    /// What is run is looked into; but what stands right before or behind is part of the same word.
    fn substituted(&mut self, shell: &brush_parser::ast::SubshellCommand) {
        self.unknown("<( ) or >( )");
        let (bases, depth) = (self.bases.clone(), self.depth.saturating_add(1));
        let (place, table) = (self.place, self.table);
        let bound = self.bound.clone();
        let mut inner = Walk { place, said: self.said, bases, bound, depth, table };
        // Its input or output is the command's.
        inner.list(&shell.list, Standing { piped: true, background: true, timed: false });
    }

    fn assign(&mut self, assignment: &Assignment) -> String {
        let AssignmentName::VariableName(name) = &assignment.name else {
            self.unknown("an element of an array is set");
            return String::new();
        };
        let value = match &assignment.value {
            AssignmentValue::Scalar(word) => self.word(&word.value),
            AssignmentValue::Array(_) => {
                self.unknown("an array is set");
                return name.clone();
            }
        };
        self.sets(name, &value);
        name.clone()
    }

    /// A variable is set: most of them decide what programs do.
    pub(crate) fn sets(&mut self, name: &str, value: &Piece) {
        let fine = |c: char| c.is_ascii_alphanumeric() || "_.,:=+-".contains(c);
        let plain = matches!(value, Piece::Literal(text) if text.chars().all(fine));
        if !HARMLESS.contains(&name) || !plain {
            self.unknown(format!("{name} is set"));
        }
        if name.starts_with("HIST") {
            self.said.mark(Mark::Hides, "the shell's history");
        }
    }

    /// A word, with what is run for it.
    pub(crate) fn word(&mut self, raw: &str) -> Piece {
        let word = word::evaluate(raw, self.place.home.as_deref(), &self.bound);
        if let Some(why) = word.opaque {
            self.unknown(why);
        }
        word.inner.iter().for_each(|command| self.below(command));
        self.said.moved.next();
        // The shell lists the folder, whoever is given the names.
        if matches!(word.piece, Piece::Pattern { .. }) {
            Run::of(self, false).read(&word.piece);
        }
        word.piece
    }

    pub(crate) fn redirect(&mut self, redirect: &IoRedirect) -> Option<Redirect> {
        let (target, (reads, writes, appends)) = match redirect {
            IoRedirect::HereDocument(_, document) => {
                self.document(document);
                return None;
            }
            IoRedirect::HereString(_, word) => {
                self.word(&word.value);
                return None;
            }
            IoRedirect::OutputAndError(word, appends) => {
                // To other shells it ends the command, and the next begins behind it.
                self.unknown("&>, which shells read differently");
                (word, (false, true, *appends))
            }
            IoRedirect::File(_, kind, IoFileRedirectTarget::Filename(word)) => {
                (word, directions(kind))
            }
            IoRedirect::File(_, kind, IoFileRedirectTarget::Duplicate(word)) => {
                let digits = word.value.strip_suffix('-').unwrap_or(&word.value);
                if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                // A file to some shells, an error to others.
                self.unknown("where output goes");
                (word, directions(kind))
            }
            IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => return None,
            IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, shell)) => {
                self.substituted(shell);
                return None;
            }
        };
        let file = self.word(&target.value);
        let redirect = Redirect { file, reads, writes, appends };
        let mut run = Run::of(self, false);
        if redirect.reads {
            let areas = run.areas(&redirect.file);
            run.said().reads.extend(areas);
        }
        if redirect.writes {
            run.write(&redirect.file);
        }
        Some(redirect)
    }

    /// What a here-document holds is a text; but parts of it may be run.
    fn document(&mut self, document: &IoHereDocument) {
        let text = &document.doc.value;
        let tag = &document.here_end.value;
        let plain = tag.trim_matches(['\'', '"']);
        if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.unknown("a here-document whose end can't be told");
        }
        let runs = ["`", "$(", "${", "$[", "\\\n"];
        if document.requires_expansion && runs.iter().any(|sign| text.contains(sign)) {
            self.unknown("a here-document that is not quoted runs parts of it");
        }
        // In `$( )` bash ends it at the word of its end also where that line goes on and has a `)`.
        let ends = |line: &str| {
            let rest = line.trim_start_matches('\t').strip_prefix(plain);
            rest.is_some_and(|rest| rest.is_empty() || rest.contains(')'))
        };
        if text.lines().any(ends) {
            self.unknown("a here-document that may end before");
        }
    }
}

/// To bash `{NAME}>file` sets `NAME` to a number, and `{NAME[..]}>file` may run what the index
/// says; to other shells it is a word, as it is to the parser. Whether a space stands between them
/// is not asked, since a line that goes on is none.
fn names_a_descriptor(command: &SimpleCommand) -> bool {
    let before = command.prefix.iter().flat_map(|prefix| &prefix.0).map(word_of);
    let name = command.word_or_name.iter().map(|word| Some(&*word.value));
    let behind = command.suffix.iter().flat_map(|suffix| &suffix.0).map(word_of);
    let parts: Vec<Option<&str>> = before.chain(name).chain(behind).collect();
    parts.windows(2).any(|pair| match pair {
        [Some(word), None] => word::is_in_braces(word),
        _ => false,
    })
}

fn word_of(part: &Part) -> Option<&str> {
    match part {
        Part::Word(word) | Part::AssignmentWord(_, word) => Some(&word.value),
        Part::IoRedirect(_) | Part::ProcessSubstitution(..) => None,
    }
}

const fn directions(kind: &IoFileRedirectKind) -> (bool, bool, bool) {
    match kind {
        IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => (true, false, false),
        IoFileRedirectKind::Append => (false, true, true),
        IoFileRedirectKind::ReadAndWrite => (true, true, true),
        IoFileRedirectKind::Write
        | IoFileRedirectKind::Clobber
        | IoFileRedirectKind::DuplicateOutput => (false, true, false),
    }
}
