//! What a hook found that a shell command would do.
//!
//! A hook reads a command in a process of its own, and sends the finding along with the call. The
//! server never reads a command: it compares a finding with the grant, and takes a call without
//! one, or with one that is odd, for a command of which nothing is known.

use std::collections::BTreeSet;

use syscap_format::{
    cbor::{Canonical, Encoder, Item, Kind, MapBuilder, Profile},
    manifest::EffectClass,
};
use syscap_syscalls::marks::Mark;

/// Most entries of one list of a finding.
const ENTRIES_MAX: usize = 512;
/// The entries of a finding: all must be there, and no other.
const KEYS: [&str; 7] = ["effect", "hosts", "marks", "programs", "reads", "repositories", "writes"];

/// What a command would run and touch. It stands in the argument `place` as `finding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What the command does to the world: [`EffectClass::Read`] to
    /// [`EffectClass::ExternalWrite`].
    pub effect: EffectClass,
    /// Absolute paths that it reads. A path that ends in `/` is a folder and all below it.
    pub reads: BTreeSet<String>,
    /// Absolute paths that it makes, changes or removes.
    pub writes: BTreeSet<String>,
    /// Folders whose git repository it changes.
    pub repositories: BTreeSet<String>,
    /// Programs that it runs, by name.
    pub programs: BTreeSet<String>,
    /// Hosts that it reaches.
    pub hosts: BTreeSet<String>,
    /// What else it does.
    pub marks: BTreeSet<Mark>,
}

impl Finding {
    /// The finding as data; `None` where it has more entries than are taken, or breaks a bound of
    /// the codec.
    #[must_use]
    pub fn to_data(&self) -> Option<Canonical> {
        let marks = self.marks.iter().map(|mark| mark.name().to_owned()).collect();
        let mut map = MapBuilder::new().text("effect", self.effect.name());
        for (key, texts) in [
            ("hosts", &self.hosts),
            ("marks", &marks),
            ("programs", &self.programs),
            ("reads", &self.reads),
            ("repositories", &self.repositories),
            ("writes", &self.writes),
        ] {
            map = map.item(key, list(texts)?.item());
        }
        Some(map.finish())
    }

    /// Reads a finding; `None` where it has not the form, or its class is less than what it lists.
    #[must_use]
    pub fn read(item: Item<'_>) -> Option<Self> {
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

fn list(texts: &BTreeSet<String>) -> Option<Canonical> {
    if texts.len() > ENTRIES_MAX {
        return None;
    }
    let mut encoder = Encoder::new();
    encoder.array(texts.len());
    texts.iter().for_each(|text| encoder.text(text));
    Canonical::check(encoder.into_bytes(), Profile::DATA).ok()
}

fn texts(map: Item<'_>, key: &str) -> Option<BTreeSet<String>> {
    let list = map.get(key).filter(|list| list.kind() == Kind::Array)?;
    let texts = list.elements().take(ENTRIES_MAX.saturating_add(1));
    let texts: BTreeSet<String> =
        texts.map(|text| text.as_text().map(str::to_owned)).collect::<Option<_>>()?;
    (texts.len() <= ENTRIES_MAX).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Finding {
            effect: EffectClass::ExternalWrite,
            reads: set(&["/project/", "/project/a"]),
            writes: set(&["/project/b"]),
            repositories: set(&["/project/"]),
            programs: set(&["cat", "git"]),
            hosts: set(&["example.org"]),
            marks: BTreeSet::from([Mark::ProjectCode]),
        }
    }

    #[test]
    fn finding_as_data_is_read_back() {
        let data = finding().to_data().unwrap();
        assert_eq!(Finding::read(data.item()), Some(finding()));
    }

    #[test]
    fn finding_of_another_form_is_none() {
        let data = finding().to_data().unwrap();
        let without = |gone: &str| {
            let kept = data.item().entries().filter(|(key, _)| *key != gone);
            kept.fold(MapBuilder::new(), |map, (key, value)| map.item(key, value))
        };
        for key in KEYS {
            assert_eq!(Finding::read(without(key).finish().item()), None, "{key}");
            let odd = without(key).text(key, "odd").finish();
            assert_eq!(Finding::read(odd.item()), None, "{key}");
        }
        let odd = list(&BTreeSet::from(["odd".to_owned()])).unwrap();
        assert_eq!(Finding::read(without("marks").item("marks", odd.item()).finish().item()), None);
        let more = data.item().entries().fold(MapBuilder::new(), |map, (k, v)| map.item(k, v));
        assert_eq!(Finding::read(more.text("more", "").finish().item()), None);
        let many = (0..=ENTRIES_MAX).map(|n| n.to_string()).collect();
        assert_eq!(Finding { hosts: many, ..finding() }.to_data(), None);
        assert_eq!(Finding::read(Item::NULL), None);
    }

    #[test]
    fn class_below_what_is_listed_is_none() {
        let read = |finding: &Finding| Finding::read(finding.to_data().unwrap().item()).is_some();
        let bare = Finding {
            effect: EffectClass::Read,
            writes: BTreeSet::new(),
            repositories: BTreeSet::new(),
            hosts: BTreeSet::new(),
            marks: BTreeSet::new(),
            ..finding()
        };
        assert!(read(&bare));
        for (listed, least) in [
            (bare.clone(), EffectClass::Read),
            (Finding { writes: finding().writes, ..bare.clone() }, EffectClass::LocalWrite),
            (
                Finding { repositories: finding().repositories, ..bare.clone() },
                EffectClass::LocalWrite,
            ),
            (Finding { hosts: finding().hosts, ..bare.clone() }, EffectClass::ExternalRead),
            (Finding { marks: finding().marks, ..bare.clone() }, EffectClass::ExternalWrite),
            (finding(), EffectClass::ExternalWrite),
        ] {
            for effect in EffectClass::ALL.iter().copied() {
                let fits = effect >= least && effect <= EffectClass::ExternalWrite;
                assert_eq!(read(&Finding { effect, ..listed.clone() }), fits, "{effect:?}");
            }
        }
    }
}
