//! What the programs share: a tool of the attacker's own, as any host may write one.
#![allow(dead_code, unused_imports, reason = "each program uses a part of it")]

pub use core::marker::PhantomData;

pub use syscap::format::{
    AgentId, Amounts, CallSalts, Canonical, Decision, Dimension, EffectClass, Form, Head, HomeId,
    Item, Manifest, MapBuilder, Refused, Salt, Seq, Source, Token, TokenBody, TokenId, ToolId,
    ToolResult, TxOutcome, UnixMillis, Verdict,
};
pub use syscap::kernel::Reading;
pub use syscap::kernel::Registry;
pub use syscap::kernel::{Batch, Store, Stored};
pub use syscap::kernel::{
    Demands, Job, Permit, Plan, Ran, ReadPermit, ReadPlan, ReadTool, Request, Tool,
};
pub use syscap::kernel::{Effect, Event, Kernel, Submit, Ticket};
pub use syscap::syscalls::fs::{FsRead, FsReadPlan, FsWrite, FsWritePlan};
pub use syscap::{Options, Runtime, Session};

/// A tool that writes.
pub struct Mine(pub Manifest);

impl Mine {
    pub fn new() -> Option<Self> {
        Some(Self(Manifest::new(ToolId::new("mine")?, EffectClass::LocalWrite)))
    }
}

/// What it plans.
pub struct MinePlan(pub Demands);

impl Tool for Mine {
    type Plan = MinePlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, _: &Request<'_>) -> Result<MinePlan, Refused> {
        Ok(MinePlan(Demands::default()))
    }
}

impl Plan for MinePlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(done(), TxOutcome::Committed)
    }
}

/// A tool that only reads.
pub struct Peek(pub Manifest);

impl Peek {
    pub fn new() -> Option<Self> {
        Some(Self(Manifest::new(ToolId::new("peek")?, EffectClass::Read)))
    }
}

/// What it plans.
pub struct PeekPlan(pub Demands);

impl ReadTool for Peek {
    type Plan = PeekPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, _: &Request<'_>) -> Result<PeekPlan, Refused> {
        Ok(PeekPlan(Demands::default()))
    }
}

impl ReadPlan for PeekPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.ok(done(), TxOutcome::NoOp)
    }
}

/// A result.
pub fn done() -> Canonical {
    MapBuilder::new().text("text", "done").finish()
}

/// Stands for any value that an attacker might hope to get hold of.
pub fn any<T>() -> T {
    panic!("only the types matter")
}
