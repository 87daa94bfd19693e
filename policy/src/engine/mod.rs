//! The engine `ss01`: constraints in three-valued logic, strictest verdict first.
//!
//! A document is read whole or refused whole, compiled once, and then asked. Its meaning is defined
//! by [`semantics`](crate::semantics); this module only computes the same faster.

mod advise;
mod code;
mod compile;
mod decide;
mod explain;
mod gates;
mod number;
mod outers;
mod run;
mod source;
mod tools;
mod view;
mod words;

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::fmt;
use syscap_kernel::{Advice, Level, PolicyEngine, Question, object_of};

use syscap_format::{Decision, EngineIdentity, Obligation, PolicyHash, PolicyObject, ToolId};

pub use explain::{Explained, Explanation, Tree};

use crate::document::{self, Document, Example, LoadError, LoadFault, Parsed};
use crate::limits::EXAMPLES_WORK_MAX;
use crate::risk::WithRisk;
use crate::scenario::Scenario;
use crate::seen::Seen;
use crate::semantics::matches;
use crate::value::Values;
use crate::within_token::WithinToken;
use decide::Compiled;

/// A policy: a document that was checked and compiled.
///
/// ```
/// use syscap_policy::Policy;
///
/// let policy = Policy::from_json(
///     br#"{"v": 1, "constraints": [{
///         "id": "reads", "effect": "allow", "subject": {"capability": "read"},
///         "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "Reads are fine."
///     }]}"#,
/// )?;
/// assert_eq!(policy.written().constraints.len(), 1);
/// assert_eq!(Policy::from_json(policy.to_json().as_bytes())?.hash(), policy.hash());
/// # Ok::<(), syscap_policy::LoadError>(())
/// ```
pub struct Policy {
    document: Document,
    bytes: Box<[u8]>,
    compiled: Compiled,
    tools: Box<[ToolId]>,
    elevated: Option<Level>,
    client: Option<Level>,
}

impl Policy {
    /// The name of the engine, as policy hashes have it.
    pub const ENGINE: &str = "ss01";
    /// The version of its semantics.
    pub const VERSION: u64 = 1;

    /// Reads a document as JSON, of at most
    /// [`TEXT_BYTES_MAX`](crate::limits::TEXT_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its place.
    pub fn from_json(text: &[u8]) -> Result<Self, LoadError> {
        Self::from_cbor(document::text(text)?.as_bytes())
    }

    /// Reads a document as canonical CBOR, of at most
    /// [`DOCUMENT_BYTES_MAX`](crate::limits::DOCUMENT_BYTES_MAX) bytes. It need not be in
    /// canonical form as a document: constraints may stand in any order.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its place.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, LoadError> {
        let (policy, examples) = Self::read(bytes)?;
        let about_all = examples.iter().filter(|example| example.verdict.is_some()).count();
        let work = about_all.saturating_mul(policy.document.constraints.len());
        match examples.last() {
            Some(last) if work > EXAMPLES_WORK_MAX => {
                Err(last.error(LoadFault::TooManyExamples, "", last.id.as_str()))
            }
            _ => examples.iter().try_for_each(|example| policy.check(example)),
        }?;
        Ok(policy)
    }

    /// A policy and its examples, which are not held against it.
    fn read(bytes: &[u8]) -> Result<(Self, Vec<Example<'_>>), LoadError> {
        let Parsed { document, bytes, examples, tools, elevated, client, .. } =
            Parsed::read(bytes)?;
        let compiled = Compiled::new(&document);
        let tools = tools.into_iter().collect();
        Ok((Self { document, bytes, compiled, tools, elevated, client }, examples))
    }

    /// The written document.
    pub const fn written(&self) -> &Document {
        &self.document
    }

    /// The written document, with each test that a parameter or `params.risk` decides left open,
    /// for an analysis: its results hold for all parameters. `None` where there is no such test.
    pub fn opened(&self) -> Option<Document> {
        Parsed::opened(&self.bytes)
    }

    /// The canonical document as indented JSON, for people: it reads as the same policy.
    pub fn to_json(&self) -> String {
        document::json(&self.bytes)
    }

    /// The policy's hash, as the kernel works it out.
    pub fn hash(&self) -> PolicyHash {
        object_of(self).hash()
    }

    /// Every tool that is named anywhere: in subjects, constants of `call.tool` and parameters.
    /// Sorted.
    pub fn tools(&self) -> impl Iterator<Item = &ToolId> {
        self.tools.iter()
    }

    /// The decision on any values, such as a scenario's. As `risk`, where it is missing, stands
    /// what follows from the call's tool and effect class.
    pub fn decide_values(&self, values: &dyn Values) -> Decision {
        let values = WithRisk::new(&self.document, values);
        self.compiled.run(&values).decision(&self.document)
    }

    /// The decision on a call, and what each constraint that applies had to do with it.
    pub fn explain(&self, question: &Question<'_>) -> Explanation {
        let decision = self.decide(question);
        explain::explain(&self.document, &Seen::new(question, &self.document), decision)
    }

    /// The decision on any values, and what each constraint that applies had to do with it.
    pub fn explain_values(&self, values: &dyn Values) -> Explanation {
        let decision = self.decide_values(values);
        explain::explain(&self.document, &WithRisk::new(&self.document, values), decision)
    }

    /// Holds an example against the policy.
    fn check(&self, example: &Example<'_>) -> Result<(), LoadError> {
        let scenario = Scenario::from_item(example.given)
            .map_err(|error| example.error(LoadFault::Scenario, ".given", &format!("{error}")))?;
        if let Some(wanted) = example.holds {
            let constraints = &self.document.constraints;
            let place = constraints.binary_search_by(|constraint| constraint.id.cmp(&example.id));
            let found = place.ok().and_then(|place| constraints.get(place));
            let holds = found.is_some_and(|one| matches(&self.document, one, &scenario));
            if wanted != holds {
                // What would hold is not suggested: the constraint may be what is wrong.
                return Err(example.error(LoadFault::Example, ".holds", example.id.as_str()));
            }
        }
        match example.verdict {
            Some(wanted) if wanted != self.decide_values(&scenario).verdict => {
                Err(example.error(LoadFault::Example, ".verdict", example.id.as_str()))
            }
            _ => Ok(()),
        }
    }
}

impl Policy {
    /// True if the answer of an agent's own client may count as a person's: `params.client_means`.
    #[must_use]
    pub const fn lets_clients_answer(&self) -> bool {
        self.client.is_some()
    }
}

impl PolicyEngine for Policy {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from(Self::ENGINE), version: Self::VERSION }
    }

    fn document(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let seen = Seen::new(question, &self.document);
        self.compiled.run(&seen).decision(&self.document)
    }

    fn tools(&self) -> Vec<ToolId> {
        self.tools.to_vec()
    }

    fn level(&self, name: &str) -> Option<Level> {
        match name {
            Obligation::ELEVATED => self.elevated.clone(),
            "client" => self.client.clone(),
            _ => None,
        }
    }

    fn advise(&self, question: &Question<'_>, decision: &Decision) -> Advice {
        let seen = Seen::new(question, &self.document);
        let allows = || self.compiled.allows(&seen, &self.document);
        advise::advise(&self.document, &seen, decision, allows)
    }
}

impl fmt::Debug for Policy {
    /// Its hash and how many constraints it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("hash", &self.hash())
            .field("constraints", &self.document.constraints.len())
            .finish()
    }
}

/// The engine that a policy's object names: `within-token` with the empty map, or `ss01` with a
/// document that reads as these very bytes. `None` for any other.
#[must_use]
pub fn engine(object: &PolicyObject) -> Option<Box<dyn PolicyEngine>> {
    if *object == object_of(&WithinToken) {
        return Some(Box::new(WithinToken));
    }
    let named = *object.engine.name == *Policy::ENGINE && object.engine.version == Policy::VERSION;
    // Its examples held when it came in force, and say nothing about what it means.
    let policy = if named { Policy::read(&object.document).ok()?.0 } else { return None };
    let same = *policy.bytes == *object.document;
    if same { Some(Box::new(policy)) } else { None }
}
