//! Provenance: the origin of a call. The host says who brought it about; all else is the caller's
//! word, which is recorded and is never authority.

use alloc::{boxed::Box, vec::Vec};

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder, Item};
use crate::field::{code, shape};
use crate::id::Seq;
use crate::limits::{PROVENANCE_INPUTS_MAX, TRACE_BYTES_MAX};
use crate::time::UnixMillis;

code! {
    /// The source of a call.
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
    /// The origin of a call.
    pub struct Provenance {
        /// The source, as the host states it.
        1 => pub source: Source,
        /// When, by the caller's clock.
        2 => pub time: Option<UnixMillis>,
        /// Records whose results went into it.
        3 => pub inputs: Vec<Seq>,
        /// The caller's trace id.
        4 => pub trace: Option<Box<str>>,
        /// The source that the caller claims, if it claims one; it decides nothing.
        5 => pub claimed: Option<Source>,
    }
}

impl Provenance {
    /// Provenance of a call that `source` brought about at `time`, of which its caller says
    /// nothing.
    pub const fn new(source: Source, time: UnixMillis) -> Self {
        let inputs = Vec::new();
        Self { source, time: Some(time), inputs, trace: None, claimed: None }
    }

    /// Reads the envelope's form: a map with text keys `source`, `time`, `inputs`, `trace`. Its
    /// `source` is a claim; `source` is the host's word. Unknown keys are kept in the envelope
    /// and mean nothing.
    pub(crate) fn from_envelope(item: Item<'_>, source: Source) -> Result<Self, DecodeError> {
        let mut provenance = Self::new(source, UnixMillis::default());
        provenance.time = None;
        let mut decoder = Decoder::new(item.as_bytes(), crate::cbor::Profile::DATA);
        let fault = decoder.fault(DecodeFault::Value);
        decoder.text_map(|key, decoder| {
            match key {
                "source" => {
                    let name = decoder.text()?;
                    let claimed = Source::ALL.iter().copied().find(|s| s.name() == name);
                    provenance.claimed = Some(claimed.ok_or(fault)?);
                }
                "time" => provenance.time = Some(UnixMillis::new(decoder.uint()?)),
                "inputs" => decoder.each(|decoder| {
                    provenance.inputs.push(Seq::new(decoder.uint()?));
                    Ok(())
                })?,
                "trace" => provenance.trace = Some(Box::from(decoder.text()?)),
                _ => drop(decoder.item()?),
            }
            Ok(())
        })?;
        provenance.claimed.ok_or(fault)?;
        let trace_len = provenance.trace.as_ref().map_or(0, |trace| trace.len());
        if provenance.inputs.len() > PROVENANCE_INPUTS_MAX || trace_len > TRACE_BYTES_MAX {
            return Err(fault);
        }
        Ok(provenance)
    }

    /// The envelope's form; in a result, with the claim.
    pub(crate) fn put_envelope(&self, encoder: &mut Encoder) {
        let inputs = (!self.inputs.is_empty()).then_some(&self.inputs);
        let given = [self.time.is_some(), self.trace.is_some(), inputs.is_some()];
        let given = given.into_iter().chain([self.claimed.is_some()]).filter(|given| *given);
        encoder.map(given.count().saturating_add(1));
        // In canonical order: shorter keys first.
        if let Some(time) = self.time {
            encoder.text("time");
            encoder.uint(time.get());
        }
        if let Some(trace) = &self.trace {
            encoder.text("trace");
            encoder.text(trace);
        }
        if let Some(inputs) = inputs {
            encoder.text("inputs");
            encoder.array(inputs.len());
            inputs.iter().for_each(|seq| encoder.uint(seq.get()));
        }
        encoder.text("source");
        encoder.text(self.source.name());
        if let Some(claimed) = self.claimed {
            encoder.text("claimed");
            encoder.text(claimed.name());
        }
    }
}
