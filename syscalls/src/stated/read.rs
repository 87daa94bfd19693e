//! The statements as they stand in a manifest: a map with the earlier values.

use std::collections::BTreeMap;

use syscap_format::{Canonical, EffectClass, Item, Manifest, MapBuilder, ParamType, Rights};

use super::{ArgumentKind, Declared, PathRoot, ROOTS_MAX, Stated, StatedError};

/// An argument as it is declared, and the type that it had.
type KeptArgument = (Declared, Option<ParamType>);

/// The statements, each with the earlier value.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) class: Option<(EffectClass, EffectClass)>,
    pub(super) arguments: BTreeMap<Box<str>, KeptArgument>,
}

impl Kept {
    /// The statements in a manifest; none in that of a tool of another kind.
    pub(super) fn of(manifest: &Manifest) -> Result<Self, StatedError> {
        match (&manifest.settings, manifest.definition) {
            (Some(settings), Some(_)) => Self::read(settings.item()).ok_or(StatedError::Form),
            _ => Ok(Self::default()),
        }
    }

    pub(super) fn stated(&self) -> Stated {
        let arguments = self.arguments.iter();
        Stated {
            class: self.class.map(|(class, _)| class),
            arguments: arguments
                .map(|(name, (declared, _))| (name.clone(), declared.clone()))
                .collect(),
        }
    }

    fn read(item: Item<'_>) -> Option<Self> {
        let mut kept = Self::default();
        for (key, value) in item.entries() {
            match key {
                "class" => kept.class = Some((class(value.get("is")?)?, class(value.get("was")?)?)),
                "arguments" => {
                    let read = |(name, value)| Some((Box::from(name), argument(value)?));
                    kept.arguments = value.entries().map(read).collect::<Option<_>>()?;
                }
                // A statement of a later version must not be taken for none.
                _ => return None,
            }
        }
        Some(kept)
    }

    /// The map; `None` where nothing is stated.
    pub(super) fn to_canonical(&self) -> Option<Canonical> {
        if self.class.is_none() && self.arguments.is_empty() {
            return None;
        }
        let mut map = MapBuilder::new();
        if let Some((is, was)) = self.class {
            let class = MapBuilder::new().text("is", is.name()).text("was", was.name()).finish();
            map = map.item("class", class.item());
        }
        if !self.arguments.is_empty() {
            let mut all: Vec<(&str, Canonical)> = Vec::new();
            for (name, (declared, was)) in &self.arguments {
                all.push((name, written(declared, *was)));
            }
            let entries = all.iter().map(|(name, value)| (*name, value.item())).collect();
            map = map.item("arguments", Canonical::map(entries).item());
        }
        Some(map.finish())
    }
}

fn class(item: Item<'_>) -> Option<EffectClass> {
    let name = item.as_text()?;
    EffectClass::ALL.iter().copied().find(|class| class.name() == name)
}

fn argument(item: Item<'_>) -> Option<KeptArgument> {
    let texts = |key: &str| item.get(key).into_iter().flat_map(Item::elements);
    let roots = texts("roots").map(|root| PathRoot::parse(root.as_text()?));
    let roots: Vec<PathRoot> = roots.collect::<Option<_>>()?;
    if roots.len() > ROOTS_MAX {
        return None;
    }
    let kind = ArgumentKind::named(item.get("is")?.as_text()?, roots)?;
    let needs = match item.get("needs") {
        Some(bits) => Some(Rights::from_bits(u8::try_from(bits.as_uint()?).ok()?)?),
        None => None,
    };
    let was = match item.get("was") {
        Some(was) => {
            let name = was.as_text()?;
            Some(ParamType::ALL.iter().copied().find(|kind| kind.name() == name)?)
        }
        None => None,
    };
    let known = ["is", "was", "needs", "roots"];
    let all_known = item.entries().all(|(key, _)| known.contains(&key));
    all_known.then_some((Declared { kind, needs }, was))
}

fn written(declared: &Declared, was: Option<ParamType>) -> Canonical {
    let mut map = MapBuilder::new().text("is", declared.kind.name());
    if let Some(was) = was {
        map = map.text("was", was.name());
    }
    if let Some(needs) = declared.needs {
        map = map.uint("needs", u64::from(needs.bits()));
    }
    if !declared.kind.roots().is_empty() {
        let roots = declared.kind.roots().iter().map(|root| Canonical::text(&root.to_string()));
        map = map.item("roots", Canonical::list(roots.collect::<Vec<_>>().into_iter()).item());
    }
    map.finish()
}
