//! Options and operands of programs, as far as a table knows them. What it doesn't know is an
//! error: an option may change what all others mean.

use crate::said::Piece;

/// What a value or an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Text.
    Data,
    /// A file that is read, or a folder that is listed.
    Read,
    /// A folder all of which is read, or a file.
    ReadAll,
    /// A file that is written.
    Write,
}

/// A program's options and operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    /// One-letter options without a value.
    pub(crate) flags: &'static str,
    /// Long options without a value; with `=` at the end, one that may have one after `=`.
    pub(crate) long: &'static [&'static str],
    /// Options with a value: `-n`, `--lines`.
    pub(crate) valued: &'static [(&'static str, Use)],
    /// Whether `-20` is an option.
    pub(crate) numbers: bool,
    /// Whether no option, also of those that are not listed, does more than those that are.
    pub(crate) harmless: bool,
    pub(crate) operands: Operands,
}

/// What stands beside the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Nothing that means anything.
    None,
    /// All of that.
    All(Use),
    /// The first is read, the second written.
    Copy,
}

/// A command line that was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// The options that were given, as the table writes them.
    pub(crate) options: Vec<&'static str>,
    pub(crate) flags: String,
    pub(crate) values: Vec<(&'static str, Use, Piece)>,
    pub(crate) operands: Vec<Piece>,
}

impl Line {
    pub(crate) fn has(&self, flags: &str) -> bool {
        self.flags.chars().any(|flag| flags.contains(flag))
    }

    pub(crate) fn says(&self, option: &str) -> bool {
        self.options.contains(&option) || self.values.iter().any(|(name, ..)| *name == option)
    }

    pub(crate) fn value(&self, option: &str) -> Option<&Piece> {
        self.values.iter().find(|(name, ..)| *name == option).map(|(.., value)| value)
    }
}

impl Spec {
    pub(crate) const PLAIN: Self = Self {
        name: "",
        flags: "",
        long: &[],
        valued: &[],
        numbers: false,
        harmless: false,
        operands: Operands::None,
    };

    /// Reads a command line.
    pub(crate) fn line(&self, args: &[Piece]) -> Result<Line, String> {
        let mut line = Line::default();
        let (mut args, mut ended) = (args.iter(), false);
        while let Some(arg) = args.next() {
            // All that it can be is that option, with a text.
            if let Piece::Pattern { option, .. } = arg
                && let Some(option) = self.takes(option).filter(|_| !ended)
            {
                line.values.push((option, Use::Data, Piece::Many));
                continue;
            }
            let text = match arg {
                Piece::Literal(text) => text,
                Piece::Pattern { dash: false, .. } | Piece::Stream => {
                    line.operands.push(arg.clone());
                    continue;
                }
                _ if ended || self.harmless => {
                    line.operands.push(arg.clone());
                    continue;
                }
                _ => return Err("a word that may be an option".to_owned()),
            };
            if ended || text == "-" || !text.starts_with('-') {
                line.operands.push(arg.clone());
            } else if text == "--" {
                ended = true;
            } else if let Some(long) = text.strip_prefix("--") {
                self.long(long, text, &mut args, &mut line)?;
            } else {
                self.short(text, &mut args, &mut line)?;
            }
        }
        Ok(line)
    }

    /// The option that begins so, where its value is text.
    fn takes(&self, begins: &str) -> Option<&'static str> {
        let (name, _) = begins.split_once('=')?;
        let found = self.valued.iter().find(|(option, _)| *option == name);
        found.filter(|(_, kind)| *kind == Use::Data).map(|(option, _)| *option)
    }

    fn long<'a>(
        &self,
        long: &str,
        text: &str,
        args: &mut impl Iterator<Item = &'a Piece>,
        line: &mut Line,
    ) -> Result<(), String> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let listed = |of: &&&str| {
            let plain = of.trim_end_matches('=');
            plain == name && (value.is_none() || of.ends_with('='))
        };
        if let Some(found) = self.long.iter().find(listed) {
            line.options.push(found.trim_end_matches('='));
            return Ok(());
        }
        let is = |of: &&(&str, Use)| of.0.strip_prefix("--") == Some(name);
        let Some((option, kind)) = self.valued.iter().find(is) else {
            return Err(format!("{text} is not known"));
        };
        let value = match value {
            Some(value) => Piece::Literal(value.to_owned()),
            None => next(text, args)?,
        };
        line.values.push((option, *kind, value));
        Ok(())
    }

    fn short<'a>(
        &self,
        text: &str,
        args: &mut impl Iterator<Item = &'a Piece>,
        line: &mut Line,
    ) -> Result<(), String> {
        let rest = text.strip_prefix('-').unwrap_or(text);
        if self.numbers && rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        let mut flags = rest.chars();
        while let Some(flag) = flags.next() {
            let is = |of: &&(&str, Use)| of.0.strip_prefix('-').is_some_and(|f| one(f, flag));
            if let Some((option, kind)) = self.valued.iter().find(is) {
                let value = match flags.as_str() {
                    "" => next(text, args)?,
                    rest => Piece::Literal(rest.to_owned()),
                };
                line.values.push((option, *kind, value));
                return Ok(());
            }
            if !self.flags.contains(flag) {
                return Err(format!("-{flag} is not known"));
            }
            line.flags.push(flag);
        }
        Ok(())
    }
}

fn one(text: &str, c: char) -> bool {
    let mut chars = text.chars();
    chars.next() == Some(c) && chars.next().is_none()
}

fn next<'a>(option: &str, args: &mut impl Iterator<Item = &'a Piece>) -> Result<Piece, String> {
    match args.next() {
        Some(Piece::Many | Piece::Pattern { .. }) | None => {
            Err(format!("the value of {option} can't be told"))
        }
        Some(value) => Ok(value.clone()),
    }
}
