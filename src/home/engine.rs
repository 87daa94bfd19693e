//! The runtime's policy: which engine a home opens with, and how another one comes in force.

use syscap_format::{
    Control, ControlBody, Decision, EngineIdentity, ObjectId, ObjectKind, PolicyChange, PolicyHash,
    PolicyObject, Reason, Refused, Seq, ToolId, VaultText, Verdict,
};
use syscap_kernel::{
    Anchor, Event, Halt, Kernel, Parts, PolicyEngine, Question, Registry, Store, object_of,
};
use syscap_policy::{LoadError, Policy};

use crate::{Error, driver::core::Answer, driver::guard::GuardedEngine, server::Holding};

/// Opens a kernel with an engine that was given, else with the one whose policy is on record. A
/// shadow is always the one on record.
pub(crate) fn open(
    store: &mut dyn Store,
    engine: Option<Box<dyn PolicyEngine>>,
    registry: Registry,
    anchor: &Anchor,
) -> Result<Kernel, Error> {
    let given = engine.is_some();
    let engine = engine.unwrap_or_else(|| Box::new(NoEngine));
    let mut kernel = Kernel::open(store, Parts { engine, registry }, anchor)?;
    let policy = kernel.policy_hash().filter(|_| !given);
    for hash in [policy, kernel.shadow_hash()].into_iter().flatten() {
        // One that this version has no engine for stays out: calls are refused until the policy
        // is set anew.
        if let Some(engine) = on_record(store, hash)?
            && !kernel.adopt(engine)
        {
            return Err(Error::Halted(Halt::Contradiction { seq: kernel.head().seq }));
        }
    }
    Ok(kernel)
}

/// Reads a document in either form.
pub(crate) fn parse(document: &[u8]) -> Result<Policy, LoadError> {
    // A canonical map begins with a byte that no text in UTF-8 begins with.
    match document.first() {
        Some(0xa0..=0xbf) => Policy::from_cbor(document),
        _ => Policy::from_json(document),
    }
}

/// The engine for a policy that the store has the document of.
fn on_record(
    store: &mut dyn Store,
    hash: PolicyHash,
) -> Result<Option<Box<dyn PolicyEngine>>, Error> {
    let object = store.object(&ObjectId::from_bytes(*hash.as_bytes()))?;
    let object = object.filter(|object| object.kind == ObjectKind::Policy);
    let object = object.and_then(|object| PolicyObject::from_bytes(&object.bytes).ok());
    Ok(object.and_then(|object| syscap_policy::engine(&object)))
}

/// Stands where a home's policy has no engine. It denies; but the kernel refuses every call
/// before it would ask.
struct NoEngine;

impl PolicyEngine for NoEngine {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("none"), version: 0 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::plain(Verdict::Deny)
    }
}

impl Holding {
    /// See [`Runtime::set_policy`](crate::Runtime::set_policy).
    pub(crate) fn set_policy(&self, engine: Box<dyn PolicyEngine>) -> Result<Seq, Error> {
        let policy = object_of(&*engine).hash();
        self.change_policy(vec![engine], |kernel| {
            Some(PolicyChange { policy, shadow: kernel.shadow_hash() })
        })
    }

    /// See [`Runtime::submit_policy`](crate::Runtime::submit_policy).
    pub(crate) fn submit_policy(
        &self,
        control: Control,
        engine: impl PolicyEngine + 'static,
    ) -> Result<Seq, Error> {
        let engine = Box::new(GuardedEngine::new(engine));
        self.submit_engines(control, vec![engine], None)
    }

    /// The same with an engine that this version has for the object, or, where the change needs
    /// no other than those in force, with none.
    pub(crate) fn submit_policy_object(
        &self,
        control: Control,
        object: Option<&PolicyObject>,
        why: Option<VaultText>,
    ) -> Result<Seq, Error> {
        let engine = object.map(|object| self.engine_for(object)).transpose()?;
        self.submit_engines(control, engine.into_iter().collect(), why)
    }

    fn submit_engines(
        &self,
        control: Control,
        engines: Vec<Box<dyn PolicyEngine>>,
        why: Option<VaultText>,
    ) -> Result<Seq, Error> {
        self.submit_as(control, |ticket, control, ancestor| {
            Event::Policy(ticket, control, ancestor, engines, why)
        })
    }

    /// See [`Runtime::set_shadow`](crate::Runtime::set_shadow).
    pub(crate) fn set_shadow(&self, engine: Box<dyn PolicyEngine>) -> Result<Seq, Error> {
        let shadow = Some(object_of(&*engine).hash());
        self.change_policy(vec![engine], |kernel| {
            Some(PolicyChange { policy: kernel.policy_hash()?, shadow })
        })
    }

    /// See [`Runtime::set_policy_object`](crate::Runtime::set_policy_object).
    pub(crate) fn set_policy_object(&self, object: &PolicyObject) -> Result<Seq, Error> {
        let (engine, policy) = (self.engine_for(object)?, object.hash());
        self.change_policy(vec![engine], |kernel| {
            Some(PolicyChange { policy, shadow: kernel.shadow_hash() })
        })
    }

    /// See [`Runtime::set_shadow_object`](crate::Runtime::set_shadow_object).
    pub(crate) fn set_shadow_object(&self, object: &PolicyObject) -> Result<Seq, Error> {
        let (engine, shadow) = (self.engine_for(object)?, Some(object.hash()));
        self.change_policy(vec![engine], |kernel| {
            Some(PolicyChange { policy: kernel.policy_hash()?, shadow })
        })
    }

    fn engine_for(&self, object: &PolicyObject) -> Result<Box<dyn PolicyEngine>, Error> {
        let engine = syscap_policy::engine(object);
        // Another encoding of the same document would be another policy.
        let engine = engine.filter(|engine| object_of(&**engine) == *object);
        if let Some(engine) = engine {
            return Ok(engine);
        }
        let why = Box::from("no engine of this version reads it");
        let place = Box::from("the document");
        match self.core.request(|ticket| Event::BadPolicy(ticket, place, why))? {
            Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
            _ => Err(Error::Halted(Halt::Halted)),
        }
    }

    /// See [`Runtime::clear_shadow`](crate::Runtime::clear_shadow).
    pub(crate) fn clear_shadow(&self) -> Result<Seq, Error> {
        self.change_policy(Vec::new(), |kernel| {
            Some(PolicyChange { policy: kernel.policy_hash()?, shadow: None })
        })
    }

    /// See [`Runtime::read_policy`](crate::Runtime::read_policy).
    pub(crate) fn read_policy(&self, document: &[u8]) -> Result<Policy, Error> {
        let read = parse(document).and_then(|policy| {
            let alias = policy.tools().find_map(|tool| self.alias(tool));
            match alias {
                Some((alias, tool)) => Err(LoadError::alias(&alias, &tool)),
                None => Ok(policy),
            }
        });
        match read {
            Ok(policy) => Ok(policy),
            Err(error) => {
                let (place, why) = (error.place.clone(), Box::from(error.to_string()));
                let answer = self.core.request(|ticket| Event::BadPolicy(ticket, place, why))?;
                match answer {
                    Answer::Ack(Err(_)) => Err(Error::Policy(error)),
                    _ => Err(Error::Halted(Halt::Halted)),
                }
            }
        }
    }

    /// Signs a change that is made from what is on record, and that nobody overtakes. If no engine
    /// implements the policy on record, the kernel refuses to continue.
    fn change_policy(
        &self,
        engines: Vec<Box<dyn PolicyEngine>>,
        change: impl FnOnce(&Kernel) -> Option<PolicyChange>,
    ) -> Result<Seq, Error> {
        let none = || Error::Refused(Refused::new(Reason::PolicyNotInForce));
        let body = || Ok(self.core.look(change).ok_or_else(none)?.to_bytes());
        let event =
            |ticket, control, ancestor| Event::Policy(ticket, control, ancestor, engines, None);
        self.sign_made(PolicyChange::KIND, body, event)
    }

    /// A tool's own id, where it was named by an alias: calls are decided under the id, so a
    /// constraint on the alias would never apply.
    fn alias(&self, named: &ToolId) -> Option<(ToolId, ToolId)> {
        self.core.look(|kernel| {
            let found = kernel.manifests().find(|manifest| manifest.aliases.contains(named))?;
            Some((named.clone(), found.tool.clone()))
        })
    }
}
