//! The source of compiled conditions: the kernel's question, or any values.

use syscap_format::EffectClass;

use crate::document::Attribute;
use crate::risk::WithRisk;
use crate::seen::{Read, Seen};
use crate::value::Values;

/// The engine's source of a call's values.
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
        Some(self.question().effect)
    }
}

impl Source for WithRisk<'_> {
    fn read(&self, attribute: &Attribute) -> Read<'_> {
        Read::Plain(self.value(attribute))
    }

    fn tool(&self) -> Option<&str> {
        WithRisk::tool(self)
    }

    fn class(&self) -> Option<EffectClass> {
        WithRisk::class(self)
    }
}
