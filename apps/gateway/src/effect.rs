//! What a foreign tool does to the world: the operator says, hints may only raise.

use rmcp::model::ToolAnnotations;
use syscap::kernel::manifest::EffectClass;

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
    ///
    /// # Errors
    /// [`BadClassRule`].
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

/// Whether the operator vouches for what servers say of their own tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hints {
    /// They are a stranger's word: they may only raise.
    #[default]
    Unconfirmed,
    /// The operator takes them as they are.
    Confirmed,
}

/// The class of a tool, by its names: upstream, as clients see it, and its id.
///
/// The rule that says most of a name decides; of two that say as much the graver one. Where no
/// rule speaks, confirmed hints do, and else it is an external write.
pub(crate) fn class(
    names: &[&str],
    rules: &[ClassRule],
    hints: Hints,
    annotations: Option<&ToolAnnotations>,
) -> EffectClass {
    let fits = |rule: &ClassRule| names.iter().filter_map(|name| rule.fits(name)).max();
    let told = rules.iter().filter_map(|rule| fits(rule).map(|fit| (fit, rule.class)));
    let told = told.max_by_key(|(fit, class)| (*fit, class.code())).map(|(_, class)| class);
    match (told, hints) {
        (Some(class), Hints::Unconfirmed) => graver(class, raised(annotations)),
        (Some(class), Hints::Confirmed) => class,
        (None, Hints::Confirmed) => annotations.map_or(EffectClass::ExternalWrite, as_annotated),
        (None, Hints::Unconfirmed) => EffectClass::ExternalWrite,
    }
}

/// What a hint makes of a tool at the least. Only what is said counts, not what is left out.
fn raised(annotations: Option<&ToolAnnotations>) -> Option<EffectClass> {
    let annotations = annotations?;
    if annotations.destructive_hint == Some(true) && annotations.read_only_hint != Some(true) {
        return Some(EffectClass::ExternalWrite);
    }
    (annotations.open_world_hint == Some(true)).then_some(EffectClass::ExternalRead)
}

fn graver(class: EffectClass, least: Option<EffectClass>) -> EffectClass {
    match least {
        Some(least) if least.code() > class.code() => {
            // An external read of a local writer still writes.
            match (class, least) {
                (EffectClass::LocalWrite, EffectClass::ExternalRead) => EffectClass::ExternalWrite,
                _ => least,
            }
        }
        _ => class,
    }
}

/// What annotations say, with the protocol's defaults where they say nothing.
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
        assert_eq!(of("read_file"), EffectClass::Read);
        assert_eq!(of("read_and_mark"), EffectClass::LocalWrite);
        assert_eq!(of("other"), EffectClass::Pure);
        let both = super::tests::rules(&["read=a*", "local_write=a*"]);
        assert_eq!(class(&["ab"], &both, Hints::Unconfirmed, None), EffectClass::LocalWrite);
    }

    /// A stranger's hint never lowers; only confirmed ones speak where the operator doesn't.
    #[test]
    fn hints_only_raise() {
        let reads = ToolAnnotations::new().read_only(true).open_world(false);
        let hint = |hints| class(&["x"], &[], hints, Some(&reads));
        assert_eq!(hint(Hints::Unconfirmed), EffectClass::ExternalWrite);
        assert_eq!(hint(Hints::Confirmed), EffectClass::Read);
        let told = rules(&["read=x"]);
        let of = |annotations: &ToolAnnotations| {
            class(&["x"], &told, Hints::Unconfirmed, Some(annotations))
        };
        assert_eq!(of(&ToolAnnotations::new()), EffectClass::Read);
        let destroys = ToolAnnotations::new().destructive(true);
        assert_eq!(of(&destroys), EffectClass::ExternalWrite);
        assert_eq!(of(&ToolAnnotations::new().open_world(true)), EffectClass::ExternalRead);
        let told = rules(&["local_write=x"]);
        let open = ToolAnnotations::new().open_world(true);
        let raised = class(&["x"], &told, Hints::Unconfirmed, Some(&open));
        assert_eq!(raised, EffectClass::ExternalWrite);
        let told = rules(&["irreversible=x"]);
        let kept = class(&["x"], &told, Hints::Unconfirmed, Some(&destroys));
        assert_eq!(kept, EffectClass::Irreversible);
    }

    #[test]
    fn rules_have_one_form() {
        assert_eq!(ClassRule::parse("read"), Err(BadClassRule::Form));
        assert_eq!(ClassRule::parse("read="), Err(BadClassRule::Form));
        assert!(matches!(ClassRule::parse("write=x"), Err(BadClassRule::Class(_))));
        assert!(matches!(ClassRule::parse("read=*x"), Err(BadClassRule::Star(_))));
    }
}
