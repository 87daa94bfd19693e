//! A policy's view of the kernel's question.

use alloc::{boxed::Box, vec::Vec};
use core::cell::OnceCell;

use syscap_format::{Fact, Item, ItemKind, Resource, TokenFlags};
use syscap_kernel::{Demand, Question};

use crate::document::{Attribute, Document};
use crate::limits::LIST_MAX;
use crate::risk;
use crate::value::{Other, Value, Values};

/// The attributes of a call that the kernel asks about.
#[derive(Debug)]
pub struct Seen<'q> {
    question: &'q Question<'q>,
    risk: u8,
    /// The token's id in hexadecimal digits, written out where a condition asks for it.
    token: OnceCell<[u8; 64]>,
}

/// An attribute, with the one resource that most arguments name kept out of a list.
pub(crate) enum Read<'v> {
    /// A value.
    Plain(Value<'v>),
    /// The one resource that an argument names.
    Resource(Value<'v>),
}

impl<'q> Seen<'q> {
    /// The view of a question.
    pub fn new(question: &'q Question<'q>, document: &Document) -> Self {
        let manifest = question.manifest;
        let written = document.risk.get(&manifest.tool).copied().unwrap_or_default();
        let risk = risk::base(question.effect).max(written);
        Self { question, risk, token: OnceCell::new() }
    }

    pub(crate) const fn question(&self) -> &'q Question<'q> {
        self.question
    }

    pub(crate) fn read(&self, attribute: &Attribute) -> Read<'_> {
        let question = self.question;
        Read::Plain(match attribute {
            Attribute::Fact(key, fields) => match question.facts.get(key) {
                Fact::Missing => Value::Missing,
                Fact::Erased => Value::Erased,
                Fact::Known(item) => field(item, fields),
            },
            Attribute::Argument(name, fields) => return self.argument(name, fields),
            Attribute::Tool => Value::Text(question.manifest.tool.as_str()),
            Attribute::EffectClass => Value::Text(question.effect.name()),
            Attribute::Agent => Value::Agent(question.agent.as_str()),
            Attribute::ArgumentBytes => size(question.args.as_bytes().len()),
            Attribute::Hold(dimension) => number(question.hold.get(*dimension)),
            Attribute::TokenId => {
                let digits = self.token.get_or_init(|| hex(question.token.as_bytes()));
                Value::Text(core::str::from_utf8(digits).unwrap_or_default())
            }
            Attribute::TokenDepth => number(question.body.depth),
            Attribute::TokenReadOnly => Value::Bool(question.body.flags.has(TokenFlags::READ_ONLY)),
            Attribute::TokenLeftMs => number(question.body.expires.since(question.now)),
            Attribute::Budget(dimension) => number(question.left.get(*dimension)),
            Attribute::History(past) => number(question.history.get(*past)),
            Attribute::NowMs | Attribute::NowHour | Attribute::NowWeekday => {
                time(attribute, question.now.get()).map_or(Value::Missing, number)
            }
            Attribute::Risk => Value::Int(i128::from(self.risk)),
        })
    }

    fn argument(&self, name: &str, fields: &[Box<str>]) -> Read<'_> {
        let Question { args, demands, described, .. } = *self.question;
        match described.filter(|described| described.argument == name && fields.is_empty()) {
            Some(described) => Read::Resource(resource(&described.resource)),
            None => read_argument(args, demands, name, fields),
        }
    }
}

/// The value of `args.NAME.FIELDS` for a call with these arguments and demands: the resources that
/// the argument names, if it names any and no field is asked for; else the arguments' own value.
#[must_use]
pub fn argument<'v>(
    args: Item<'v>,
    demands: &'v [Demand],
    name: &str,
    fields: &[Box<str>],
) -> Value<'v> {
    plain(read_argument(args, demands, name, fields))
}

fn read_argument<'v>(
    args: Item<'v>,
    demands: &'v [Demand],
    name: &str,
    fields: &[Box<str>],
) -> Read<'v> {
    if fields.is_empty() {
        let mut named = demands.iter().filter(|demand| demand.argument == name);
        if let Some(first) = named.next() {
            let first = resource(&first.resource);
            let Some(second) = named.next() else { return Read::Resource(first) };
            let mut all = Vec::from([first, resource(&second.resource)]);
            all.extend(named.map(|demand| resource(&demand.resource)));
            return Read::Plain(Value::Resources(all));
        }
    }
    Read::Plain(match args.get(name) {
        Some(item) => field(item, fields),
        None => Value::Missing,
    })
}

/// The value of what was read.
fn plain(read: Read<'_>) -> Value<'_> {
    match read {
        Read::Plain(value) => value,
        Read::Resource(one) => Value::Resources(Vec::from([one])),
    }
}

impl Values for Seen<'_> {
    fn value(&self, attribute: &Attribute) -> Value<'_> {
        plain(self.read(attribute))
    }
}

fn number(n: u64) -> Value<'static> {
    Value::Int(i128::from(n))
}

fn size(bytes: usize) -> Value<'static> {
    number(u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn resource(resource: &Resource) -> Value<'_> {
    match resource {
        Resource::Name(name) => Value::Text(name.as_str()),
        Resource::Int(n) => Value::Int(*n),
        Resource::Path { path, .. } => Value::Path(path),
        Resource::Tree { path, .. } => Value::Tree(path),
        Resource::Host(host) => Value::Host(host),
        Resource::Port(port) => Value::Int(i128::from(*port)),
        Resource::Addr(address) => Value::Address(*address),
    }
}

/// The value below an item by the names of fields; missing where there is no map with that key.
fn field<'v>(item: Item<'v>, fields: &[Box<str>]) -> Value<'v> {
    let mut found = Some(item);
    for name in fields {
        found = found.and_then(|item| item.get(name));
    }
    found.map_or(Value::Missing, value)
}

fn value(item: Item<'_>) -> Value<'_> {
    match item.kind() {
        // A call may bring half a million elements, and every test would go through them.
        ItemKind::Array if !(1..=LIST_MAX).contains(&item.count()) => {
            Value::Other(Other::EmptyList)
        }
        ItemKind::Array => Value::List(item.elements().map(element).collect()),
        _ => element(item),
    }
}

/// An element of a list: one that is a list or a map itself can't be compared.
fn element(item: Item<'_>) -> Value<'_> {
    match item.kind() {
        ItemKind::Uint | ItemKind::Negative => match item.as_int() {
            Some(n) => Value::Int(n),
            None => Value::Other(Other::Null),
        },
        ItemKind::Text => Value::Text(item.as_text().unwrap_or_default()),
        ItemKind::Bool => Value::Bool(item.as_bool().unwrap_or_default()),
        ItemKind::Null => Value::Other(Other::Null),
        ItemKind::Float => Value::Other(Other::Float),
        ItemKind::Bytes => Value::Other(Other::Bytes),
        ItemKind::Map => Value::Other(Other::Map),
        ItemKind::Array => Value::Other(Other::EmptyList),
    }
}

/// The value of an attribute that varies with the time, at a time in milliseconds since 1970;
/// `None` for others.
#[must_use]
pub fn time(attribute: &Attribute, now_ms: u64) -> Option<u64> {
    match attribute {
        Attribute::NowMs => Some(now_ms),
        Attribute::NowHour => Some(hour(now_ms)),
        Attribute::NowWeekday => Some(weekday(now_ms)),
        _ => None,
    }
}

/// Hour of the day in UTC.
fn hour(ms: u64) -> u64 {
    ms.checked_div(3_600_000).and_then(|hours| hours.checked_rem(24)).unwrap_or_default()
}

/// Day of the week in UTC, 1 for Monday: the epoch was a Thursday.
fn weekday(ms: u64) -> u64 {
    let days = ms.checked_div(86_400_000).unwrap_or_default();
    days.saturating_add(3).checked_rem(7).unwrap_or_default().saturating_add(1)
}

fn hex(bytes: &[u8; 32]) -> [u8; 64] {
    let digit = |n: u8| if n < 10 { b'0' | n } else { b'a'.saturating_add(n.saturating_sub(10)) };
    let mut digits = [0; 64];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        if let [high, low] = pair {
            *high = digit(byte >> 4);
            *low = digit(byte & 15);
        }
    }
    digits
}
