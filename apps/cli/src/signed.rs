//! Who stands behind a signed event: by which key, by which channel, because of what.

use std::path::Path;

use syscap::audit::SqliteReader;
use syscap::format::{ApprovalBody, ApprovalChannel, Body, ControlBody as _, PublicKey, Record};
use syscap::kernel::{StoreError, vault_entry};

use crate::keys::name::KeyNames;
use crate::output::{Object, array, plain};

/// Hexadecimal digits of a key that are shown beside its name.
const DIGITS: usize = 12;

/// The people of a signed event.
pub(crate) struct SignedBy {
    keys: Vec<(PublicKey, Option<String>)>,
    channel: Option<ApprovalChannel>,
    pub(crate) because: Because,
}

/// The reason that an event commits to.
pub(crate) enum Because {
    Said(String),
    /// The event commits to none.
    Unsaid,
    /// The vault does not have it any more.
    Erased,
    /// The vault has another text.
    Altered,
    /// Nobody looked.
    Unread,
}

impl Because {
    /// As it is shown, where there is anything to be shown.
    pub(crate) fn shown(&self) -> Option<String> {
        match self {
            Self::Said(text) => Some(plain(text).into_owned()),
            Self::Unsaid | Self::Unread => None,
            Self::Erased => Some("(erased)".to_owned()),
            Self::Altered => Some("(altered: the record commits to another text)".to_owned()),
        }
    }
}

impl SignedBy {
    /// Those of a record; `None` where it is no signed event. Without `reader` the reason is left out.
    pub(crate) fn of(
        record: &Record,
        names: &KeyNames,
        reader: Option<&mut SqliteReader>,
    ) -> Result<Option<Self>, StoreError> {
        let Some(control) = record.body.control() else { return Ok(None) };
        let keys = control.signatures.iter().map(|signed| signed.key);
        let keys = keys.map(|key| (key, names.of(&key).map(str::to_owned))).collect();
        let channel = match &record.body {
            Body::Approval(_) => ApprovalBody::from_bytes(&control.body).ok().map(|it| it.means),
            _ => None,
        };
        let because = match (record.body.cause(), reader) {
            (Some(cause), Some(reader)) => {
                let entry = vault_entry(reader, record.seq, record.seq)?;
                match entry.text(&cause) {
                    Some(text) => Because::Said(text.to_owned()),
                    None if entry.texts.is_empty() => Because::Erased,
                    None => Because::Altered,
                }
            }
            (None, _) => Because::Unsaid,
            (Some(_), None) => Because::Unread,
        };
        Ok(Some(Self { keys, channel, because }))
    }

    /// The keys, by their names: `alice (3b6a12f07c55..), 9f0177ac21d3..`.
    pub(crate) fn keys(&self) -> String {
        let all = self.keys.iter().map(|(key, name)| shown(key, name.as_deref()));
        all.collect::<Vec<_>>().join(", ")
    }

    /// The keys.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter().map(|(key, _)| key)
    }

    /// The name of the first key that has one.
    pub(crate) fn first_name(&self) -> Option<&str> {
        self.keys.iter().find_map(|(_, name)| name.as_deref())
    }

    /// The channel of an answer.
    pub(crate) const fn channel(&self) -> Option<&'static str> {
        match self.channel {
            Some(channel) => Some(channel.name()),
            None => None,
        }
    }

    /// The same for programs.
    pub(crate) fn json(&self, object: Object) -> Object {
        let key = |(key, name): &(PublicKey, Option<String>)| {
            let object = Object::new().shown("key", key);
            text_or_null(object, "name", name.as_deref()).finish()
        };
        let object = object.json("signed_by", &array(self.keys.iter().map(key)));
        let object = text_or_null(object, "channel", self.channel());
        match &self.because {
            Because::Said(text) => object.text("because", text),
            Because::Unsaid => object.json("because", "null"),
            Because::Unread => object,
            Because::Erased => object.json("because", "null").text("because_kept", "erased"),
            Because::Altered => object.json("because", "null").text("because_kept", "altered"),
        }
    }
}

fn text_or_null(object: Object, key: &str, value: Option<&str>) -> Object {
    match value {
        Some(value) => object.text(key, value),
        None => object.json(key, "null"),
    }
}

/// A key by its name, where it has one.
pub(crate) fn shown(key: &PublicKey, name: Option<&str>) -> String {
    let key: String = key.to_string().chars().take(DIGITS).collect();
    match name {
        Some(name) => format!("{} ({key}..)", plain(name)),
        None => format!("{key}.."),
    }
}

/// The names of a home's keys; without them where they can't be read, which is told.
pub(crate) fn names(home: &Path) -> KeyNames {
    KeyNames::read(home).unwrap_or_else(|problem| {
        crate::exit::diagnose(&format!("the names of keys are not shown: {problem}"));
        KeyNames::default()
    })
}
