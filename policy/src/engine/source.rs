//! Where compiled conditions read from: the kernel's question, or any values.

use syscap_format::manifest::EffectClass;

use crate::{
    Value, Values,
    document::{Attribute, Document},
    risk,
    seen::{Read, Seen},
};

/// What the engine reads of a call.
pub(super) trait Source {
    fn read(&self, attribute: &Attribute) -> Read<'_>;
    /// The tool, where it is known.
    fn tool(&self) -> Option<&str>;
    /// Its effect class, where it is known.
    fn class(&self) -> Option<EffectClass>;
}

impl Source for Seen<'_> {
    #[inline]
    fn read(&self, attribute: &Attribute) -> Read<'_> {
        Seen::read(self, attribute)
    }

    #[inline]
    fn tool(&self) -> Option<&str> {
        Some(self.question().manifest.tool.as_str())
    }

    #[inline]
    fn class(&self) -> Option<EffectClass> {
        Some(self.question().manifest.effect)
    }
}

/// Any values, with the risk that follows from them where none is given.
pub(super) struct Open<'a> {
    values: &'a dyn Values,
    risk: Option<i128>,
}

impl<'a> Open<'a> {
    pub(super) fn new(values: &'a dyn Values, document: &Document) -> Self {
        let mut open = Self { values, risk: None };
        if let Some(class) = open.class() {
            let points = risk::points(document, open.tool().unwrap_or_default(), class);
            open.risk = Some(i128::from(points));
        }
        open
    }

    fn text(&self, attribute: &Attribute) -> Option<&str> {
        match self.values.value(attribute) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Values for Open<'_> {
    fn value(&self, attribute: &Attribute) -> Value<'_> {
        match (self.values.value(attribute), attribute, self.risk) {
            (Value::Missing, Attribute::Risk, Some(points)) => Value::Int(points),
            (value, ..) => value,
        }
    }
}

impl Source for Open<'_> {
    fn read(&self, attribute: &Attribute) -> Read<'_> {
        Read::Plain(self.value(attribute))
    }

    fn tool(&self) -> Option<&str> {
        self.text(&Attribute::Tool)
    }

    fn class(&self) -> Option<EffectClass> {
        let name = self.text(&Attribute::EffectClass)?;
        EffectClass::ALL.iter().copied().find(|class| class.name() == name)
    }
}
