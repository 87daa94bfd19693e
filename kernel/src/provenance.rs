//! Where a call came from, as the caller says. It is recorded; it is never authority.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    cbor::{DecodeError, Decoder, Fault, Item, MapBuilder},
    field::{List, code, shape},
    id::Seq,
    limits::{PROVENANCE_INPUTS_MAX, TRACE_BYTES_MAX},
    time::UnixMillis,
};

code! {
    /// Who brought a call about.
    pub enum Source {
        /// A person.
        User = 1 "user",
        /// An agent.
        Agent = 2 "agent",
        /// A tool's result.
        Tool = 3 "tool",
        /// An encoder of observations.
        Encoder = 4 "encoder",
        /// An observer.
        Observer = 5 "observer",
    }
}

shape! {
    /// Where a call came from.
    pub struct Provenance {
        /// Who brought it about.
        1 => pub source: Source,
        /// When, by the caller's clock.
        2 => pub time: Option<UnixMillis>,
        /// Records whose results went into it.
        3 => pub inputs: List<Seq>,
        /// The caller's trace id.
        4 => pub trace: Option<Box<str>>,
    }
}

impl Provenance {
    /// Provenance of a call by an agent at `time`, with no inputs named.
    #[must_use]
    pub const fn agent(time: UnixMillis) -> Self {
        Self { source: Source::Agent, time: Some(time), inputs: List(Vec::new()), trace: None }
    }

    /// Reads the envelope's form: a map with text keys `source`, `time`, `inputs`, `trace`.
    /// Unknown keys are kept in the envelope and mean nothing.
    pub(crate) fn from_envelope(item: Item<'_>) -> Result<Self, DecodeError> {
        let mut source = None;
        let mut provenance = Self { source: Source::Agent, ..Self::agent(UnixMillis::default()) };
        provenance.time = None;
        let mut decoder = Decoder::new(item.as_bytes(), crate::cbor::Profile::DATA);
        let fault = decoder.fault(Fault::Value);
        decoder.text_map(|key, decoder| {
            match key {
                "source" => {
                    let name = decoder.text()?;
                    source = Source::ALL.iter().copied().find(|s| s.name() == name);
                }
                "time" => provenance.time = Some(UnixMillis::new(decoder.uint()?)),
                "inputs" => decoder.each(|decoder| {
                    provenance.inputs.0.push(Seq::new(decoder.uint()?));
                    Ok(())
                })?,
                "trace" => provenance.trace = Some(Box::from(decoder.text()?)),
                _ => drop(decoder.item()?),
            }
            Ok(())
        })?;
        provenance.source = source.ok_or(fault)?;
        let trace_len = provenance.trace.as_ref().map_or(0, |trace| trace.len());
        if provenance.inputs.0.len() > PROVENANCE_INPUTS_MAX || trace_len > TRACE_BYTES_MAX {
            return Err(fault);
        }
        Ok(provenance)
    }

    /// The envelope's form.
    #[must_use]
    pub fn to_envelope(&self) -> crate::cbor::Canonical {
        let map = MapBuilder::new().text("source", self.source.name());
        let map = match self.time {
            Some(time) => map.uint("time", time.get()),
            None => map,
        };
        let map = match &self.trace {
            Some(trace) => map.text("trace", trace),
            None => map,
        };
        if self.inputs.0.is_empty() {
            return map.finish();
        }
        map.with("inputs", |encoder| {
            encoder.array(self.inputs.0.len());
            self.inputs.0.iter().for_each(|seq| encoder.uint(seq.get()));
        })
        .finish()
    }
}
