//! What the hook of an earlier version found that a shell command would do, as it stands on record.

use std::collections::BTreeSet;

use syscap_format::{
    cbor::{Item, Kind},
    manifest::EffectClass,
};
use syscap_syscalls::marks::Mark;

/// Most entries of one list of a finding.
const ENTRIES_MAX: usize = 512;
/// The entries of a finding: all must be there, and no other.
const KEYS: [&str; 7] = ["effect", "hosts", "marks", "programs", "reads", "repositories", "writes"];

/// What a command would run and touch. It stands in the argument `place` as `finding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What the command does to the world: [`EffectClass::Read`] to
    /// [`EffectClass::ExternalWrite`].
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
    /// What else it does.
    pub(super) marks: BTreeSet<Mark>,
}

impl Finding {
    /// Reads a finding; `None` where it has not the form, or its class is less than what it lists.
    pub(super) fn read(item: Item<'_>) -> Option<Self> {
        if item.kind() != Kind::Map || item.entries().any(|(key, _)| !KEYS.contains(&key)) {
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
    let list = map.get(key).filter(|list| list.kind() == Kind::Array)?;
    let texts = list.elements().take(ENTRIES_MAX.saturating_add(1));
    let texts: BTreeSet<String> =
        texts.map(|text| text.as_text().map(str::to_owned)).collect::<Option<_>>()?;
    (texts.len() <= ENTRIES_MAX).then_some(texts)
}
