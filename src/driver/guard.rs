//! Guards for the host's code: a panic is caught before it reaches the kernel.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use syscap_kernel::{
    Advice, Broken, Finding, Inspect, Level, PolicyEngine, Question, ReadTool, Request, Resolve,
    Tool, object_of,
};

use syscap_format::{
    Decision, EngineIdentity, Manifest, PolicyObject, Reason, Refused, ToolId, Verdict,
};

/// `None` where it panicked. The caller must not trust what it was changing.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Option<T> {
    // Sound because of the rule above: a kernel or a store that panicked is not used again, a
    // plan is consumed by its run, and tools and engines are only shared, never lent to change.
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(value) => Some(value),
        Err(panic) => {
            // It is the host's too, and might panic when it is dropped.
            mem::forget(panic);
            None
        }
    }
}

/// A tool whose call is refused where it panics while it plans. More than one kernel may be made
/// with it, one after the other.
pub(crate) struct Guarded<T>(pub(crate) Arc<T>);

impl<T: Tool> Tool for Guarded<T> {
    type Plan = T::Plan;

    fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    fn never_compared(&self) -> Option<&str> {
        self.0.never_compared()
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        caught(|| self.0.resolver(request)).unwrap_or_else(|| Err(Refused::new(Reason::Panicked)))
    }

    fn plan(&self, request: &Request<'_>) -> Result<T::Plan, Refused> {
        caught(|| self.0.plan(request)).unwrap_or_else(|| Err(Refused::new(Reason::Panicked)))
    }

    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        caught(|| self.0.inspector(request)).unwrap_or_else(|| Err(Refused::new(Reason::Panicked)))
    }

    fn probe(&self, broken: &Broken<'_>) -> Finding {
        caught(|| self.0.probe(broken)).unwrap_or(Finding::Unknown)
    }
}

impl<T: ReadTool> ReadTool for Guarded<T> {
    type Plan = T::Plan;

    fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        caught(|| self.0.resolver(request)).unwrap_or_else(|| Err(Refused::new(Reason::Panicked)))
    }

    fn plan(&self, request: &Request<'_>) -> Result<T::Plan, Refused> {
        caught(|| self.0.plan(request)).unwrap_or_else(|| Err(Refused::new(Reason::Panicked)))
    }
}

/// An engine that denies where it panics. Its identity is read once, on the host's own thread.
pub(crate) struct GuardedEngine<E> {
    engine: E,
    object: PolicyObject,
}

impl<E: PolicyEngine> GuardedEngine<E> {
    pub(crate) fn new(engine: E) -> Self {
        let object = object_of(&engine);
        Self { engine, object }
    }
}

impl<E: PolicyEngine> PolicyEngine for GuardedEngine<E> {
    fn identity(&self) -> EngineIdentity {
        self.object.engine.clone()
    }

    fn document(&self) -> Vec<u8> {
        self.object.document.clone()
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        caught(|| self.engine.decide(question)).unwrap_or_else(|| Decision::plain(Verdict::Deny))
    }

    fn tools(&self) -> Vec<ToolId> {
        caught(|| self.engine.tools()).unwrap_or_default()
    }

    fn level(&self, name: &str) -> Option<Level> {
        caught(|| self.engine.level(name)).flatten()
    }

    fn advise(&self, question: &Question<'_>, decision: &Decision) -> Advice {
        caught(|| self.engine.advise(question, decision)).unwrap_or_default()
    }
}

/// An engine that more than one kernel may be made with, one after the other.
pub(crate) struct SharedEngine(pub(crate) Arc<dyn PolicyEngine + Sync>);

impl PolicyEngine for SharedEngine {
    fn identity(&self) -> EngineIdentity {
        self.0.identity()
    }

    fn document(&self) -> Vec<u8> {
        self.0.document()
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        self.0.decide(question)
    }

    fn tools(&self) -> Vec<ToolId> {
        self.0.tools()
    }

    fn level(&self, name: &str) -> Option<Level> {
        self.0.level(name)
    }

    fn advise(&self, question: &Question<'_>, decision: &Decision) -> Advice {
        self.0.advise(question, decision)
    }
}
