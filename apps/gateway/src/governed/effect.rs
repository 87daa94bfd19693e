//! The effect class of a foreign tool: by the operator; hints may only raise it.

use rmcp::model::ToolAnnotations;
use syscap::format::EffectClass;

/// `CLASS=TOOL,TOOL*`: what the operator says of tools, by their upstream names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    class: EffectClass,
    tools: Vec<String>,
}

/// A rule that is not of its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadClassRule {
    /// No `=`, or nothing after it.
    #[error("it must be CLASS=TOOL,TOOL*")]
    Form,
    /// Not an effect class.
    #[error(
        "{0:?} is no effect class: pure, read, local_write, external_read, external_write, \
             irreversible"
    )]
    Class(String),
    /// A star that stands elsewhere than at the end.
    #[error("{0:?}: a * may stand only at the end")]
    Star(String),
}

impl ClassRule {
    /// Reads `CLASS=TOOL,TOOL*`.
    pub fn parse(text: &str) -> Result<Self, BadClassRule> {
        let (class, tools) = text.split_once('=').ok_or(BadClassRule::Form)?;
        let known = EffectClass::ALL.iter().find(|known| known.name() == class);
        let class = *known.ok_or_else(|| BadClassRule::Class(class.to_owned()))?;
        let tools: Vec<String> = tools.split(',').map(String::from).collect();
        for tool in &tools {
            let stem = tool.strip_suffix('*').unwrap_or(tool);
            if tool.is_empty() {
                return Err(BadClassRule::Form);
            }
            if stem.contains('*') {
                return Err(BadClassRule::Star(tool.clone()));
            }
        }
        Ok(Self { class, tools })
    }

    /// How well it fits: the length of what it says of the name; an exact name beats any star.
    fn fits(&self, name: &str) -> Option<usize> {
        let fit = |tool: &String| match tool.strip_suffix('*') {
            Some(stem) => name.starts_with(stem).then_some(stem.len()),
            None => (name == tool).then_some(usize::MAX),
        };
        self.tools.iter().filter_map(fit).max()
    }
}

/// Decides if the operator vouches for the servers' hints about their own tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hints {
    /// They are a stranger's word: they may only raise.
    #[default]
    Unconfirmed,
    /// The operator takes them as they are.
    Confirmed,
}

/// The class of a tool, by its names: upstream, as clients see it, and its id. `None` where
/// nobody who counts has said.
///
/// The rule that says most of a name decides; of two that say as much the graver one. If no rule
/// applies, confirmed hints decide.
pub(crate) fn class(
    names: &[&str],
    rules: &[ClassRule],
    hints: Hints,
    annotations: Option<&ToolAnnotations>,
) -> Option<EffectClass> {
    let fits = |rule: &ClassRule| names.iter().filter_map(|name| rule.fits(name)).max();
    let told = rules.iter().filter_map(|rule| fits(rule).map(|fit| (fit, rule.class)));
    let told = told.max_by_key(|(fit, class)| (*fit, class.code())).map(|(_, class)| class);
    match (told, hints) {
        (Some(class), Hints::Unconfirmed) => Some(raised(class, annotations)),
        (Some(class), Hints::Confirmed) => Some(class),
        (None, Hints::Confirmed) => annotations.map(as_annotated),
        (None, Hints::Unconfirmed) => None,
    }
}

/// Why a class is proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The operator says so on the command line.
    Said,
    /// The server says so.
    Hinted,
    /// Its name begins with a word that says so.
    Named,
    /// Its description begins with a word that says so.
    Described,
    /// No rule and no hint.
    Default,
}

impl Because {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Said => "by --class",
            Self::Hinted => "the server's hint",
            Self::Named => "its name",
            Self::Described => "its description",
            Self::Default => "the server gives no hint",
        }
    }
}

/// Words with which the names of tools begin that only look, and of those that can't be undone. The
/// place that they look at is unknown: so it may be elsewhere.
const LOOKS: [&str; 10] =
    ["read", "get", "list", "search", "find", "show", "describe", "query", "view", "count"];
const ENDS: [&str; 8] = ["delete", "remove", "drop", "destroy", "purge", "send", "pay", "publish"];

/// The class that is proposed for a tool before a person has looked at it: by the command line, else
/// by the server's hints and the tool's name and description. A word that says that something can't
/// be undone counts whatever the hints say. Confirmed hints are taken as they are.
pub(crate) fn proposed(
    names: &[&str],
    description: &str,
    rules: &[ClassRule],
    hints: Hints,
    annotations: Option<&ToolAnnotations>,
) -> (EffectClass, Because) {
    if let Some(class) = class(names, rules, Hints::Unconfirmed, annotations) {
        return (class, Because::Said);
    }
    let says = |annotations: &&ToolAnnotations| {
        let hints = [annotations.read_only_hint, annotations.destructive_hint];
        hints.iter().chain([&annotations.open_world_hint]).any(Option::is_some)
    };
    let hinted = annotations.filter(says).map(|hints| (as_annotated(hints), Because::Hinted));
    let nothing = (EffectClass::ExternalWrite, Because::Default);
    if hints == Hints::Confirmed {
        return hinted.unwrap_or(nothing);
    }
    let name = names.first().copied().unwrap_or_default();
    if ENDS.iter().any(|word| begins(name, word)) {
        return (EffectClass::Irreversible, Because::Named);
    }
    // "Delete a note", "Deletes a note".
    let first = description.split_whitespace().next().unwrap_or_default();
    let verb = first.strip_suffix('s').unwrap_or(first);
    if ENDS.iter().any(|word| verb.eq_ignore_ascii_case(word)) {
        return (EffectClass::Irreversible, Because::Described);
    }
    hinted.unwrap_or(match LOOKS.iter().any(|word| begins(name, word)) {
        true => (EffectClass::ExternalRead, Because::Named),
        false => nothing,
    })
}

/// True if a name begins with a word, and not with a longer one.
fn begins(name: &str, word: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let rest = name.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// The class after what hints raise it by: that it destroys says that something changes, that
/// its world is open says where. Only what is said counts, not what is left out.
fn raised(class: EffectClass, annotations: Option<&ToolAnnotations>) -> EffectClass {
    let Some(annotations) = annotations else { return class };
    let destroys = annotations.destructive_hint == Some(true);
    let changes = destroys && annotations.read_only_hint != Some(true);
    let class = match class {
        EffectClass::Pure | EffectClass::Read if changes => EffectClass::LocalWrite,
        EffectClass::ExternalRead if changes => EffectClass::ExternalWrite,
        class => class,
    };
    match class {
        EffectClass::Pure | EffectClass::Read if annotations.open_world_hint == Some(true) => {
            EffectClass::ExternalRead
        }
        EffectClass::LocalWrite if annotations.open_world_hint == Some(true) => {
            EffectClass::ExternalWrite
        }
        class => class,
    }
}

/// The class by annotations, with the protocol's defaults where they say nothing.
fn as_annotated(annotations: &ToolAnnotations) -> EffectClass {
    let reads = annotations.read_only_hint == Some(true);
    let open = annotations.open_world_hint.unwrap_or(true);
    match (reads, open) {
        (true, false) => EffectClass::Read,
        (true, true) => EffectClass::ExternalRead,
        (false, false) => EffectClass::LocalWrite,
        (false, true) => EffectClass::ExternalWrite,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<ClassRule> {
        texts.iter().map(|text| ClassRule::parse(text).unwrap()).collect()
    }

    #[test]
    fn the_closest_rule_decides() {
        let rules = rules(&["read=read_*,list_*", "local_write=read_and_mark", "pure=*"]);
        let of = |name: &str| class(&[name], &rules, Hints::Unconfirmed, None);
        assert_eq!(of("read_file"), Some(EffectClass::Read));
        assert_eq!(of("read_and_mark"), Some(EffectClass::LocalWrite));
        assert_eq!(of("other"), Some(EffectClass::Pure));
        let both = super::tests::rules(&["read=a*", "local_write=a*"]);
        assert_eq!(class(&["ab"], &both, Hints::Unconfirmed, None), Some(EffectClass::LocalWrite));
    }

    /// A stranger's hint never lowers; only confirmed ones speak where the operator doesn't.
    #[test]
    fn hints_only_raise() {
        let reads = ToolAnnotations::new().read_only(true).open_world(false);
        let hint = |hints| class(&["x"], &[], hints, Some(&reads));
        assert_eq!(hint(Hints::Unconfirmed), None);
        assert_eq!(hint(Hints::Confirmed), Some(EffectClass::Read));
        assert_eq!(class(&["x"], &[], Hints::Confirmed, None), None);
        let told = rules(&["read=x"]);
        let of = |annotations: &ToolAnnotations| {
            class(&["x"], &told, Hints::Unconfirmed, Some(annotations))
        };
        assert_eq!(of(&ToolAnnotations::new()), Some(EffectClass::Read));
        let destroys = ToolAnnotations::new().destructive(true);
        assert_eq!(of(&destroys), Some(EffectClass::LocalWrite));
        let open = ToolAnnotations::new().open_world(true);
        assert_eq!(of(&open), Some(EffectClass::ExternalRead));
        let both = ToolAnnotations::new().destructive(true).open_world(true);
        assert_eq!(of(&both), Some(EffectClass::ExternalWrite));
        // A reader that says that it destroys contradicts itself: it says that it reads.
        assert_eq!(of(&destroys.clone().read_only(true)), Some(EffectClass::Read));
        for (said, hints, raised) in [
            ("local_write=x", &destroys, EffectClass::LocalWrite),
            ("local_write=x", &open, EffectClass::ExternalWrite),
            ("external_read=x", &destroys, EffectClass::ExternalWrite),
            ("irreversible=x", &both, EffectClass::Irreversible),
            ("external_write=x", &reads, EffectClass::ExternalWrite),
        ] {
            let class = class(&["x"], &rules(&[said]), Hints::Unconfirmed, Some(hints));
            assert_eq!(class, Some(raised), "{said}");
        }
    }

    #[test]
    fn proposals_say_why() {
        let reads = ToolAnnotations::new().read_only(true).open_world(false);
        let silent = ToolAnnotations::new();
        let described = |name: &str, description: &str, annotations: Option<&ToolAnnotations>| {
            proposed(&[name], description, &[], Hints::Unconfirmed, annotations)
        };
        let of = |name: &str, hints, annotations: Option<&ToolAnnotations>| {
            proposed(&[name], "", &rules(&["local_write=write_*"]), hints, annotations)
        };
        use EffectClass::{ExternalRead, ExternalWrite, Irreversible, LocalWrite, Read};
        let plain = Hints::Unconfirmed;
        assert_eq!(of("write_x", plain, Some(&reads)), (LocalWrite, Because::Said));
        assert_eq!(of("look_x", plain, Some(&reads)), (Read, Because::Hinted));
        // The strictest word counts.
        let destroys = ToolAnnotations::new().destructive(true);
        for hint in [&reads, &destroys, &silent] {
            assert_eq!(of("delete_x", plain, Some(hint)), (Irreversible, Because::Named));
            let deletes = described("x", "Deletes all.", Some(hint));
            assert_eq!(deletes, (Irreversible, Because::Described));
        }
        assert_eq!(of("write", plain, Some(&destroys)), (ExternalWrite, Because::Hinted));
        assert_eq!(described("x", "Undeletes it.", None), (ExternalWrite, Because::Default));
        for (name, proposes) in [
            ("get_note", (ExternalRead, Because::Named)),
            ("list", (ExternalRead, Because::Named)),
            ("getter", (ExternalWrite, Because::Default)),
            ("delete-note", (Irreversible, Because::Named)),
            ("note", (ExternalWrite, Because::Default)),
        ] {
            assert_eq!(of(name, plain, None), proposes, "{name}");
            assert_eq!(of(name, plain, Some(&silent)), proposes, "{name}");
            // Who takes hints as they are takes no guesses.
            let taken = of(name, Hints::Confirmed, None);
            assert_eq!(taken, (ExternalWrite, Because::Default), "{name}");
        }
    }

    #[test]
    fn rules_have_one_form() {
        assert_eq!(ClassRule::parse("read"), Err(BadClassRule::Form));
        assert_eq!(ClassRule::parse("read="), Err(BadClassRule::Form));
        assert!(matches!(ClassRule::parse("write=x"), Err(BadClassRule::Class(_))));
        assert!(matches!(ClassRule::parse("read=*x"), Err(BadClassRule::Star(_))));
    }
}
