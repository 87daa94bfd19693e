//! The finding of an earlier version's hook about a shell command, as it stands on record.

use std::collections::BTreeSet;

use syscap_format::{EffectClass, Item, ItemKind};
use syscap_syscalls::marks::Mark;

/// Most entries of one list of a finding.
const ENTRIES_MAX: usize = 512;
/// The entries of a finding: all must be there, and no other.
const KEYS: [&str; 7] = ["effect", "hosts", "marks", "programs", "reads", "repositories", "writes"];

/// A command's programs and paths, as a hook found them. It stands in the argument `place` as
/// `finding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The effect class of the command: [`EffectClass::Read`] to [`EffectClass::ExternalWrite`].
    pub(super) effect: EffectClass,
    /// Absolute paths that it reads. A path that ends in `/` is a folder and all below it.
    pub(super) reads: BTreeSet<String>,
    /// Absolute paths that it makes, changes or removes.
    pub(super) writes: BTreeSet<String>,
    /// Folders whose git repository it changes.
    pub(super) repositories: BTreeSet<String>,
    /// Programs that it runs, by name.
    pub(super) programs: BTreeSet<String>,
    /// Hosts that it reaches.
    pub(super) hosts: BTreeSet<String>,
    /// The further marks of the command.
    pub(super) marks: BTreeSet<Mark>,
}

impl Finding {
    /// Reads a finding; `None` where it has not the form, or its class is less than what it lists.
    pub(super) fn read(item: Item<'_>) -> Option<Self> {
        if item.kind() != ItemKind::Map || item.entries().any(|(key, _)| !KEYS.contains(&key)) {
            return None;
        }
        let effect = item.get("effect").and_then(Item::as_text)?;
        let of_name = |class: &&EffectClass| class.name() == effect;
        let mark = |text: &String| Mark::ALL.into_iter().find(|mark| mark.name() == text);
        let finding = Self {
            effect: *EffectClass::ALL.iter().find(of_name)?,
            reads: texts(item, "reads")?,
            writes: texts(item, "writes")?,
            repositories: texts(item, "repositories")?,
            programs: texts(item, "programs")?,
            hosts: texts(item, "hosts")?,
            marks: texts(item, "marks")?.iter().map(mark).collect::<Option<_>>()?,
        };
        let most = EffectClass::ExternalWrite;
        (finding.least()..=most).contains(&finding.effect).then_some(finding)
    }

    /// The least that a command does which does what is listed.
    fn least(&self) -> EffectClass {
        let changes = !self.writes.is_empty() || !self.repositories.is_empty();
        match (self.marks.is_empty(), self.hosts.is_empty()) {
            (false, _) => EffectClass::ExternalWrite,
            // No one class says both.
            (true, false) if changes => EffectClass::ExternalWrite,
            (true, false) => EffectClass::ExternalRead,
            (true, true) if changes => EffectClass::LocalWrite,
            (true, true) => EffectClass::Read,
        }
    }
}

fn texts(map: Item<'_>, key: &str) -> Option<BTreeSet<String>> {
    let list = map.get(key).filter(|list| list.kind() == ItemKind::Array)?;
    let texts = list.elements().take(ENTRIES_MAX.saturating_add(1));
    let texts: BTreeSet<String> =
        texts.map(|text| text.as_text().map(str::to_owned)).collect::<Option<_>>()?;
    (texts.len() <= ENTRIES_MAX).then_some(texts)
}

#[cfg(test)]
mod tests {
    use syscap_format::{Canonical, json};

    use super::*;

    const NOTHING: [(&str, &str); 7] = [
        ("effect", r#""read""#),
        ("hosts", "[]"),
        ("marks", "[]"),
        ("programs", r#"["cat"]"#),
        ("reads", r#"["/project/"]"#),
        ("repositories", "[]"),
        ("writes", "[]"),
    ];

    /// With this entry in the place of its own, or without it.
    fn with(entry: &str, value: Option<&str>) -> Canonical {
        let entries = NOTHING.iter().filter_map(|(key, own)| {
            let value = if *key == entry { value? } else { own };
            Some(format!(r#""{key}": {value}"#))
        });
        let entries: Vec<String> = entries.collect();
        json::to_data(format!("{{{}}}", entries.join(", ")).as_bytes()).unwrap()
    }

    #[test]
    fn finding_of_another_form_is_none() {
        let finding = Finding::read(with("", None).item()).unwrap();
        assert_eq!((finding.effect, finding.reads.len()), (EffectClass::Read, 1));
        for key in KEYS {
            assert_eq!(Finding::read(with(key, None).item()), None, "{key}");
            assert_eq!(Finding::read(with(key, Some(r#""odd""#)).item()), None, "{key}");
        }
        assert_eq!(Finding::read(with("marks", Some(r#"["odd"]"#)).item()), None);
        let many = (0..=ENTRIES_MAX).map(|n| format!(r#""{n}""#)).collect::<Vec<_>>().join(",");
        assert_eq!(Finding::read(with("hosts", Some(&format!("[{many}]"))).item()), None);
        let more = json::to_data(br#"{"effect": "read", "more": 1}"#).unwrap();
        assert_eq!(Finding::read(more.item()), None);
        assert_eq!(Finding::read(Item::NULL), None);
    }

    #[test]
    fn class_below_what_is_listed_is_none() {
        for (key, value, least) in [
            ("hosts", "[]", EffectClass::Read),
            ("writes", r#"["/project/b"]"#, EffectClass::LocalWrite),
            ("repositories", r#"["/project/"]"#, EffectClass::LocalWrite),
            ("hosts", r#"["example.org"]"#, EffectClass::ExternalRead),
            ("marks", r#"["project_code"]"#, EffectClass::ExternalWrite),
        ] {
            for class in EffectClass::ALL.iter().copied() {
                let map = with(key, Some(value));
                let class_of = format!(r#""{}""#, class.name());
                let listed = json::from_data(map.item())
                    .replace(r#""effect":"read""#, &format!(r#""effect":{class_of}"#));
                let read = Finding::read(json::to_data(listed.as_bytes()).unwrap().item());
                let fits = class >= least && class <= EffectClass::ExternalWrite;
                assert_eq!(read.is_some(), fits, "{key} {class:?}");
            }
        }
    }
}
