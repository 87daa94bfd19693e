//! Words, as far as they can be told before the shell runs.
//!
//! What shells read differently, or what may run something that is not seen, is not told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::{
    ParserOptions,
    word::{self, Parameter, ParameterExpr, SpecialParameter, TildeExpr, WordPiece},
};

use crate::{said::Piece, walk::Bound};

/// A word that was read.
pub(crate) struct Evaluated {
    pub(crate) piece: Piece,
    /// Commands whose output is part of it.
    pub(crate) inner: Vec<String>,
    /// Why it may run what is not seen.
    pub(crate) opaque: Option<&'static str>,
}

pub(crate) fn options() -> ParserOptions {
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

pub(crate) fn evaluate(raw: &str, home: Option<&str>, bound: &Bound) -> Evaluated {
    let plain = |piece| Evaluated { piece, inner: Vec::new(), opaque: None };
    if matches!(raw, "[" | "]" | "!" | "{}" | "=" | "==" | "!=") {
        return plain(Piece::Literal(raw.to_owned()));
    }
    let parsed = catch_unwind(AssertUnwindSafe(|| word::parse(raw, &options())));
    let Ok(Ok(pieces)) = parsed else {
        return Evaluated { opaque: Some("a word that can't be read"), ..plain(Piece::Many) };
    };
    let mut word = Word {
        raw,
        home,
        bound,
        text: String::new(),
        wild: None,
        found: None,
        one: false,
        many: false,
        dollar: false,
        inner: Vec::new(),
        opaque: None,
    };
    for piece in &pieces {
        word.add(&piece.piece, Quoted::No);
    }
    word.finish()
}

/// Whether a word is `{..}`, unquoted and with something in it.
pub(crate) fn is_in_braces(raw: &str) -> bool {
    let raw = raw.replace("\\\n", "");
    let inner = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.is_empty())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    No,
    Yes,
}

struct Word<'w> {
    raw: &'w str,
    home: Option<&'w str>,
    bound: &'w Bound,
    text: String,
    /// Where the first wildcard stands.
    wild: Option<usize>,
    /// Where a name stands that a pattern has found, and below which folder.
    found: Option<(usize, String, bool)>,
    one: bool,
    many: bool,
    /// Whether what stands last is a `$`.
    dollar: bool,
    inner: Vec<String>,
    opaque: Option<&'static str>,
}

impl Word<'_> {
    fn add(&mut self, piece: &WordPiece, quoted: Quoted) {
        self.told(piece);
        match piece {
            WordPiece::Text(text) if quoted == Quoted::No => self.unquoted(text),
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => self.text.push_str(text),
            WordPiece::EscapeSequence(text) => self.escape(text, quoted),
            WordPiece::DoubleQuotedSequence(pieces) => {
                pieces.iter().for_each(|piece| self.add(&piece.piece, Quoted::Yes));
            }
            WordPiece::TildeExpansion(TildeExpr::Home) if self.text.is_empty() => match self.home {
                Some(home) => self.text.push_str(home),
                None => self.one = true,
            },
            WordPiece::TildeExpansion(_) => self.many = true,
            // To dash it is `$` and a quoted text, which an escaped quote ends: what stands behind
            // that is commands to one shell and text to the other.
            WordPiece::AnsiCQuotedText(_) => self.hide("$'..', which shells read differently"),
            WordPiece::GettextDoubleQuotedSequence(_) => self.hide("a translated text"),
            // A variable's text is calculated again, and may run what an index says.
            WordPiece::ArithmeticExpression(sum) if is_of_numbers(&sum.value) => self.one = true,
            WordPiece::ArithmeticExpression(_) => self.hide("arithmetic"),
            WordPiece::ParameterExpansion(expression) => self.parameter(expression, quoted),
            WordPiece::CommandSubstitution(command) => self.substitute(command, quoted),
            WordPiece::BackquotedCommandSubstitution(command) if command.contains('\\') => {
                self.hide("escapes in backquotes");
            }
            WordPiece::BackquotedCommandSubstitution(command) => self.substitute(command, quoted),
        }
    }

    /// What is text to the parser and no text to shells: `${ ls; }`, and a substitution whose end
    /// it has not found, as where a here-document in it has a bracket.
    fn told(&mut self, piece: &WordPiece) {
        match piece {
            WordPiece::Text(text) => {
                let begins = ['{', '(', '['];
                let inside = ["${", "$(", "$[", "`"].iter().any(|sign| text.contains(sign));
                if inside || (self.dollar && text.starts_with(begins)) {
                    self.hide("a substitution that can't be read");
                }
                self.dollar = text.ends_with('$');
            }
            // A line that goes on is nothing.
            WordPiece::EscapeSequence(text) if text == "\\\n" => {}
            _ => self.dollar = false,
        }
    }

    fn hide(&mut self, why: &'static str) {
        self.many = true;
        self.opaque.get_or_insert(why);
    }

    fn unknown(&mut self, quoted: Quoted) {
        match quoted {
            Quoted::Yes => self.one = true,
            Quoted::No => self.many = true,
        }
    }

    fn substitute(&mut self, command: &str, quoted: Quoted) {
        // Right behind the word that ends a here-document some shells take `)` for the end of the
        // substitution, and others for text of the document.
        let documents = command.replace("<<<", "").contains("<<");
        if documents && !command.trim_end_matches([' ', '\t']).ends_with('\n') {
            self.hide("a here-document that may end elsewhere");
        }
        self.inner.push(command.to_owned());
        self.unknown(quoted);
    }

    /// Other forms than `$NAME` and `${NAME}` assign, index or nest.
    fn parameter(&mut self, expression: &ParameterExpr, quoted: Quoted) {
        let ParameterExpr::Parameter { parameter, indirect: false } = expression else {
            return self.hide("an expansion that is more than a name");
        };
        match parameter {
            Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) => {
                self.many = true;
            }
            Parameter::Named(name) => self.variable(name, quoted),
            Parameter::Special(_) | Parameter::Positional(_) => self.unknown(quoted),
            _ => self.hide("an element of an array"),
        }
    }

    /// What a loop's variable holds is text; unquoted it is split, and is a pattern again.
    fn variable(&mut self, name: &str, quoted: Quoted) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:@+%^".contains(c);
        match (self.bound.get(name), quoted) {
            (Some(Piece::Literal(text)), Quoted::Yes) => self.text.push_str(text),
            (Some(Piece::Literal(text)), Quoted::No)
                if !text.is_empty() && text.chars().all(plain) =>
            {
                self.text.push_str(text);
            }
            (Some(Piece::Pattern { folder, dash, .. }), Quoted::Yes) if self.found.is_none() => {
                self.found = Some((self.text.len(), folder.clone(), *dash));
            }
            _ => self.unknown(quoted),
        }
    }

    fn escape(&mut self, text: &str, quoted: Quoted) {
        let mut rest = text.chars();
        let escaped = match (rest.next(), rest.next(), rest.next()) {
            (Some('\\'), Some(c), None) => c,
            _ => return self.many = true,
        };
        match (escaped, quoted) {
            ('\n', _) => {}
            ('$' | '`' | '"' | '\\', Quoted::Yes) | (_, Quoted::No) => self.text.push(escaped),
            (_, Quoted::Yes) => self.text.push_str(text),
        }
    }

    fn unquoted(&mut self, text: &str) {
        let braces = !self.raw.contains(',') && !self.raw.contains("..");
        for c in text.chars() {
            let before = self.text.chars().next_back();
            let first = self.text.is_empty() && !self.one && !self.many;
            match c {
                '*' | '?' | '[' | ']' => {
                    self.wild.get_or_insert(self.text.len());
                    self.text.push(c);
                }
                '{' | '}' if braces => self.text.push(c),
                '~' if !first && !matches!(before, Some(':' | '=')) => self.text.push(c),
                '=' | '#' if !first => self.text.push(c),
                '_' | '-' | '.' | '/' | ',' | ':' | '@' | '+' | '%' | '^' => self.text.push(c),
                c if c.is_alphanumeric() => self.text.push(c),
                // A word ends there: the parser has found its end elsewhere.
                c if c.is_whitespace() || ";&|<>()".contains(c) => {
                    self.hide("a word that ends before its end");
                }
                _ => self.many = true,
            }
        }
    }

    fn finish(self) -> Evaluated {
        let Self { text, wild, found, one, many, inner, opaque, .. } = self;
        let piece = match (many, one, wild) {
            (true, _, _) | (false, true, Some(_)) => Piece::Many,
            (false, false, _) if found.is_some() => found
                .and_then(|(at, folder, dash)| around(&text, (at, &folder, dash), wild))
                .unwrap_or(Piece::Many),
            (false, true, None) => Piece::One,
            (false, false, None) => Piece::Literal(text),
            (false, false, Some(at)) => pattern(&text, at),
        };
        Evaluated { piece, inner, opaque }
    }
}

/// Whether it calculates with numbers, and with nothing else.
fn is_of_numbers(sum: &str) -> bool {
    sum.chars().all(|c| c.is_ascii_digit() || " +-*/%()".contains(c))
}

/// A word with a name in it that a pattern has found: with what stands before it, below the folder
/// in which that was found. What stands behind it must not lead out of there again.
fn around(
    text: &str,
    (at, folder, dash): (usize, &str, bool),
    wild: Option<usize>,
) -> Option<Piece> {
    let (before, after) = text.split_at_checked(at)?;
    let before_wild = wild.is_some_and(|wild| wild < at);
    // What is found by a second pattern may be `..` where it begins with a dot.
    let climbs = |part: &str| part == ".." || (wild.is_some() && part.starts_with('.'));
    // What was found may end in a slash, and then a dot behind it begins a name.
    let first = after.split('/').next().unwrap_or_default();
    let dots = !first.is_empty() && first.chars().all(|c| c == '.');
    if dots || climbs(first) {
        return None;
    }
    if before_wild || after.split('/').skip(1).any(climbs) || before.contains("..") {
        return None;
    }
    let path = format!("{before}{folder}");
    let folder = path.rfind('/').and_then(|slash| path.get(..=slash)).unwrap_or_default();
    let dash = if before.is_empty() { dash } else { before.starts_with('-') };
    let (folder, option) = (folder.to_owned(), String::new());
    Some(Piece::Pattern { folder, dash, option, one: wild.is_none() })
}

/// What a pattern finds lies below the folder before its first wildcard. Not so where a part of it
/// could be `..`.
fn pattern(text: &str, at: usize) -> Piece {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let (folder, stem) = before.rfind('/').map_or(("", before), |slash| {
        before.split_at_checked(slash.saturating_add(1)).unwrap_or((before, ""))
    });
    let climbs = |part: &str| part.starts_with('.');
    if stem.starts_with('.') || after.split('/').skip(1).any(climbs) {
        return Piece::Many;
    }
    let dash = at == 0 || text.starts_with('-');
    let option = if text.starts_with("--") { before.to_owned() } else { String::new() };
    Piece::Pattern { folder: folder.to_owned(), dash, option, one: false }
}
