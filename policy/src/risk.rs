//! Risk: how much a call can spoil, in points from 0 to 100.

use syscap_format::EffectClass;

use crate::document::{Attribute, Document};
use crate::value::{Value, Values};

/// Points of an effect class: the more of the world it changes, and the less of that can be
/// undone, the more.
#[must_use]
pub const fn base(class: EffectClass) -> u8 {
    match class {
        EffectClass::Pure => 0,
        EffectClass::Read => 10,
        EffectClass::LocalWrite => 20,
        EffectClass::ExternalRead => 30,
        EffectClass::ExternalWrite => 60,
        EffectClass::Irreversible => 90,
    }
}

/// Points of a tool: those of its class, raised and never lowered by `params.risk`.
#[must_use]
pub fn points(document: &Document, tool: &str, class: EffectClass) -> u8 {
    let written = document.risk.iter().find(|(id, _)| id.as_str() == tool);
    base(class).max(written.map_or(0, |(_, points)| *points))
}

/// Values, with the risk that follows from the call's tool and effect class where none is given and
/// the class is known.
pub struct WithRisk<'a> {
    values: &'a dyn Values,
    points: Option<u8>,
}

impl<'a> WithRisk<'a> {
    /// Values of a call that the document is asked about.
    pub fn new(document: &Document, values: &'a dyn Values) -> Self {
        let mut all = Self { values, points: None };
        let tool = all.tool().unwrap_or_default();
        all.points = all.class().map(|class| points(document, tool, class));
        all
    }

    /// The call's tool, where it is known.
    pub(crate) fn tool(&self) -> Option<&'a str> {
        self.text(&Attribute::Tool)
    }

    /// Its effect class, where it is known.
    pub(crate) fn class(&self) -> Option<EffectClass> {
        let name = self.text(&Attribute::EffectClass)?;
        EffectClass::ALL.iter().copied().find(|class| class.name() == name)
    }

    fn text(&self, attribute: &Attribute) -> Option<&'a str> {
        match self.values.value(attribute) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Values for WithRisk<'_> {
    fn value(&self, attribute: &Attribute) -> Value<'_> {
        match (self.values.value(attribute), attribute, self.points) {
            (Value::Missing, Attribute::Risk, Some(points)) => Value::Int(i128::from(points)),
            (value, ..) => value,
        }
    }
}
