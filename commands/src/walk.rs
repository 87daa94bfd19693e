//! From text to commands, and the folders that each may run in.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, catch_unwind},
};

use brush_parser::{
    Parser,
    ast::{
        AndOr, AndOrList, Command, CompoundCommand, CompoundList, CompoundListItem, Pipeline,
        Program, RedirectList, SeparatorOperator,
    },
};

use crate::{
    area::Base,
    limits::{
        BASES_MAX, BRACKETS_MAX, CASES_MAX, DEPTH_MAX, HOLDING_MAX, NESTING_MAX, ROUNDS_MAX,
        TEXT_BYTES_MAX, VALUES_MAX,
    },
    place::Place,
    run::Run,
    said::{Mark, Piece, Said},
    word,
};

/// What runs a program of the table, or a command of the shell's own.
pub(crate) type Table = for<'r, 'w> fn(Run<'r, 'w>, &str, &[Piece]) -> Ends;

/// The folders that a command may be in; `None` where that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bases(pub(crate) Option<BTreeSet<Base>>);

impl Bases {
    pub(crate) fn or(self, other: &Self) -> Self {
        let (Some(mut mine), Some(theirs)) = (self.0, &other.0) else { return Self(None) };
        mine.extend(theirs.iter().cloned());
        Self((mine.len() <= BASES_MAX).then_some(mine))
    }
}

/// Variables of loops, and what each holds while the body is read: a text, or a name that a pattern
/// finds. What is not here can't be told.
pub(crate) type Bound = BTreeMap<String, Piece>;

/// The folders after a command that has succeeded, and after one that has failed.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) done: Bases,
    pub(crate) failed: Bases,
}

impl Ends {
    pub(crate) fn in_place(bases: &Bases) -> Self {
        Self { done: bases.clone(), failed: bases.clone() }
    }

    fn either(self) -> Bases {
        self.done.or(&self.failed)
    }
}

/// How a command stands among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Another command's output is its input.
    pub(crate) piped: bool,
    pub(crate) background: bool,
    /// `time` comes before it, which to some shells is a program that runs it.
    pub(crate) timed: bool,
}

/// One reading of a text.
pub(crate) struct Walk<'w> {
    pub(crate) place: &'w Place,
    pub(crate) said: &'w mut Said,
    pub(crate) bases: Bases,
    pub(crate) bound: Bound,
    pub(crate) depth: usize,
    pub(crate) table: Table,
}

impl Walk<'_> {
    pub(crate) fn unknown(&mut self, why: impl Into<String>) {
        self.said.mark(Mark::Unknown, why);
    }

    /// A whole text: the command, or that of a substitution or a `sh -c`.
    pub(crate) fn text(&mut self, text: &str) {
        if let Some(why) = unfit(text) {
            if text.chars().any(is_invisible) {
                self.said.mark(Mark::Hides, "characters that are not seen");
            }
            return self.unknown(why);
        }
        if has_lines(text) {
            self.unknown("[[ ]]: lines, which shells read differently");
        }
        if self.depth > DEPTH_MAX {
            return self.unknown("commands within commands, too deep");
        }
        match parse(text) {
            Some(program) => {
                for list in &program.complete_commands {
                    self.list(list, Standing::default());
                }
            }
            None => self.unknown("no shell command that can be read"),
        }
    }

    /// A text that another shell runs, which has not the variables of this one.
    pub(crate) fn anew(&mut self, text: &str) {
        let bound = std::mem::take(&mut self.bound);
        self.below(text);
        self.bound = bound;
    }

    /// A text that is run in a shell of its own, which begins as this one is.
    pub(crate) fn below(&mut self, text: &str) {
        self.apart(|walk| {
            walk.depth = walk.depth.saturating_add(1);
            walk.text(text);
        });
    }

    /// Runs something whose folder is its own affair.
    fn apart(&mut self, inner: impl FnOnce(&mut Walk<'_>)) {
        let (bases, depth) = (self.bases.clone(), self.depth);
        let (place, table, bound) = (self.place, self.table, self.bound.clone());
        inner(&mut Walk { place, said: self.said, bases, bound, depth, table });
    }

    pub(crate) fn list(&mut self, list: &CompoundList, standing: Standing) {
        for CompoundListItem(list, separator) in &list.0 {
            match separator {
                SeparatorOperator::Async => {
                    let standing = Standing { background: true, ..standing };
                    self.apart(|walk| walk.and_or(list, standing));
                }
                SeparatorOperator::Sequence => self.and_or(list, standing),
            }
        }
    }

    fn and_or(&mut self, list: &AndOrList, standing: Standing) {
        let mut ends = self.pipeline(&list.first, standing);
        for next in &list.additional {
            let pipeline = match next {
                AndOr::And(pipeline) => {
                    self.bases = ends.done.clone();
                    pipeline
                }
                AndOr::Or(pipeline) => {
                    self.bases = ends.failed.clone();
                    pipeline
                }
            };
            let after = self.pipeline(pipeline, standing);
            ends = match next {
                AndOr::And(_) => Ends { done: after.done, failed: ends.failed.or(&after.failed) },
                AndOr::Or(_) => Ends { done: ends.done.or(&after.done), failed: after.failed },
            };
        }
        self.bases = ends.either();
    }

    fn pipeline(&mut self, pipeline: &Pipeline, standing: Standing) -> Ends {
        let Pipeline { timed, bang, seq } = pipeline;
        let standing = Standing { timed: false, ..standing };
        let timed = timed.is_some();
        if timed {
            self.timed(*bang, seq.first());
        }
        let stayed = self.bases.clone();
        let ends = match &**seq {
            [one] => self.command(one, Standing { timed, ..standing }),
            many => {
                let before = self.bases.clone();
                for (at, command) in many.iter().enumerate() {
                    self.bases = before.clone();
                    let piped = at > 0 || standing.piped;
                    let timed = timed && at == 0;
                    let after = self.command(command, Standing { piped, timed, ..standing });
                    // Shells differ in whether the last one runs in the shell itself.
                    let after = after.either();
                    self.bases = before.clone().or(&after);
                }
                Ends::in_place(&self.bases.clone())
            }
        };
        // A program leaves the shell where it is.
        let ends = match timed {
            true => Ends { done: ends.done.or(&stayed), failed: ends.failed.or(&stayed) },
            false => ends,
        };
        match bang {
            true => Ends { done: ends.failed, failed: ends.done },
            false => ends,
        }
    }

    /// `time`: a word of bash's, and a program to others, which then runs what follows by its name.
    fn timed(&mut self, bang: bool, first: Option<&Command>) {
        let word = match first {
            _ if bang => Some("!"),
            Some(Command::Compound(CompoundCommand::BraceGroup(_), _)) => Some("{"),
            Some(Command::Compound(CompoundCommand::ForClause(_), _)) => Some("for"),
            Some(Command::Compound(CompoundCommand::IfClause(_), _)) => Some("if"),
            Some(Command::Compound(CompoundCommand::WhileClause(_), _)) => Some("while"),
            Some(Command::Compound(CompoundCommand::UntilClause(_), _)) => Some("until"),
            // Others are unknown, or an error to those shells.
            Some(_) | None => None,
        };
        for name in ["time"].into_iter().chain(word) {
            self.said.needs.insert(name.to_owned());
            if self.place.may_be_agents(name) {
                self.unknown(format!("time: {name} may be a program of the agent's"));
            }
        }
    }

    fn command(&mut self, command: &Command, standing: Standing) -> Ends {
        match command {
            Command::Simple(simple) => return self.simple(simple, standing),
            Command::Compound(compound, redirects) => {
                self.redirected(redirects.as_ref());
                self.compound(compound, standing);
            }
            Command::Function(_) => self.unknown("a function"),
            Command::ExtendedTest(test, redirects) => {
                self.redirected(redirects.as_ref());
                self.extended(&test.expr);
            }
        }
        Ends::in_place(&self.bases.clone())
    }

    fn redirected(&mut self, redirects: Option<&RedirectList>) {
        self.said.moved.next();
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, standing: Standing) {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, standing),
            CompoundCommand::Subshell(shell) => {
                self.apart(|walk| walk.list(&shell.list, standing));
            }
            CompoundCommand::IfClause(clause) => {
                let before = self.bases.clone();
                self.list(&clause.condition, standing);
                let at = self.bases.clone();
                self.list(&clause.then, standing);
                let mut after = before.or(&at).or(&self.bases);
                for branch in clause.elses.iter().flatten() {
                    self.bases = after.clone();
                    if let Some(condition) = &branch.condition {
                        self.list(condition, standing);
                    }
                    after = after.or(&self.bases);
                    self.bases = after.clone();
                    self.list(&branch.body, standing);
                    after = after.or(&self.bases);
                }
                self.bases = after;
            }
            CompoundCommand::ForClause(clause) => {
                if is_special(&clause.variable_name) {
                    self.unknown(format!("{} is set", clause.variable_name));
                }
                let name = &clause.variable_name;
                let words = clause.values.iter().flatten();
                let values: Vec<Piece> = words.map(|word| self.word(&word.value)).collect();
                let values = self.told(values);
                self.again(|walk| {
                    for value in &values {
                        match value {
                            Some(value) => walk.bound.insert(name.clone(), value.clone()),
                            None => walk.bound.remove(name),
                        };
                        walk.list(&clause.body.list, standing);
                    }
                    // From here on it holds the last of them, or what it held before.
                    walk.bound.remove(name);
                });
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.again(|walk| {
                    walk.list(&clause.0, standing);
                    walk.list(&clause.1.list, standing);
                });
            }
            CompoundCommand::CaseClause(_) => self.unknown("case"),
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                self.unknown("arithmetic");
            }
            CompoundCommand::Coprocess(_) => self.unknown("a coprocess"),
        }
    }

    /// The values that a loop's body is read for, each once; `None` where they can't be told, or
    /// are too many: then it is read once for them all.
    fn told(&mut self, mut values: Vec<Piece>) -> Vec<Option<Piece>> {
        for value in &mut values {
            if let Piece::Pattern { one, .. } = value {
                *one = true;
            }
        }
        values.dedup();
        let plain = |value: &Piece| matches!(value, Piece::Literal(_) | Piece::Pattern { .. });
        let rounds = self.said.rounds.saturating_add(values.len());
        let few = values.len() <= VALUES_MAX && rounds <= ROUNDS_MAX;
        if values.is_empty() || !few || !values.iter().all(plain) {
            return vec![None];
        }
        self.said.rounds = rounds;
        values.into_iter().map(Some).collect()
    }

    /// What is done again and again: where it changes the folder, that is not known any more, and
    /// neither is a variable that another loop in it sets. Then it is read once more, so that what
    /// it does there is unknown, too.
    fn again(&mut self, mut body: impl FnMut(&mut Self)) {
        let before = (self.bases.clone(), self.bound.clone());
        self.said.moved.begin_loop();
        body(self);
        if self.bound != before.1 {
            body(self);
        }
        if self.bases != before.0 {
            self.bases = Bases(None);
            body(self);
            self.bases = Bases(None);
        }
        self.said.moved.end_loop();
    }
}

/// Variables that shells or programs go by.
pub(crate) fn is_special(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_lowercase())
        || matches!(name, "path" | "cdpath" | "fpath" | "module_path" | "mailpath" | "manpath")
        || matches!(name, "auto_resume" | "histchars")
        // They are lower case by custom; one that is exported already is what programs then see.
        || name.ends_with("_proxy")
        || name.starts_with("npm_")
}

/// Words that begin what holds other commands.
const HOLDS: &[&str] = &[
    "!", "case", "coproc", "do", "elif", "else", "for", "function", "if", "select", "then", "time",
    "until", "while",
];

fn parse(text: &str) -> Option<Program> {
    let read = || Parser::new(text.as_bytes(), &word::options()).parse_program();
    catch_unwind(AssertUnwindSafe(read)).ok()?.ok()
}

/// Characters that show nothing, or a space, or change the order in which others are shown. Not
/// the selectors of variants: signs in messages of commits have them.
const INVISIBLE: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

fn is_invisible(c: char) -> bool {
    INVISIBLE.iter().any(|range| range.contains(&c))
        || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Whether a line may end right behind `[[`, or right before `]]`: to other shells another command
/// begins there.
fn has_lines(text: &str) -> bool {
    let mut opened = text.split("[[").skip(1).map(|rest| rest.trim_start_matches([' ', '\t']));
    let ends = |rest: &str| rest.starts_with(['\n', '#', '\\']);
    let closes = |line: &str| line.trim_start().starts_with("]]");
    opened.any(ends) || (text.contains("[[") && text.lines().any(closes))
}

/// Why a text is not read at all.
fn unfit(text: &str) -> Option<&'static str> {
    if text.len() > TEXT_BYTES_MAX {
        return Some("too long a command");
    }
    if text.chars().any(|c| is_invisible(c) || (!c.is_ascii() && c.is_whitespace())) {
        return Some("characters that shells read differently");
    }
    let (mut open, mut most) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' | b'[' => open = open.saturating_add(1),
            b')' | b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    if most > NESTING_MAX {
        return Some("too many brackets");
    }
    // Words that hold others in themselves, wherever they stand.
    let words = text.split(|c: char| c.is_whitespace() || ";&|(){}".contains(c));
    let (mut holds, mut cases) = (0_usize, 0_usize);
    for word in words.filter(|word| HOLDS.contains(word)) {
        holds = holds.saturating_add(1);
        // The parser's time doubles with each.
        cases = cases.saturating_add(usize::from(matches!(word, "case" | "select" | "coproc")));
    }
    let functions = text.matches(')').count();
    (holds > HOLDING_MAX || cases > CASES_MAX || functions > BRACKETS_MAX)
        .then_some("too many commands within others")
}
