//! Tools: plan once, run once, by leave of the kernel.
//!
//! A [`Plan`] holds the parsed arguments, says what it would touch and cost, and later runs:
//! what was checked is what runs. Its [`Permit`] names the plan's own type, so a permit for one
//! tool can't run another's plan; it has no public constructor, is not `Clone`, is consumed by
//! the run, and carries the run's lifetime, so that it can't be kept for another. The kernel
//! owns the tools and hands out only [`Job`]s, in which plan and permit are sealed together.

use alloc::{boxed::Box, format, vec::Vec};
use core::{fmt, marker::PhantomData};

use crate::approvals::conditions::{Condition, Inspect};
use crate::call::links::Resolve;
pub use crate::meter::{Meter, OverHold};
use syscap_format::{
    AgentId, Amounts, CallDigest, Canonical, Dimension, EffectClass, Enforcement, ErrorKind, Item,
    Label, Leaf, Manifest, OutcomeFlags, Profile, Reason, Refused, Resource, ResultHash, Retry,
    Salt, Seq, Status, TokenBody, ToolGrant, ToolId, TxOutcome, result_hash,
};

/// The input of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The calling agent.
    pub agent: &'a AgentId,
    /// The resolved arguments after defaults: a map that fits the manifest.
    pub args: Item<'a>,
    /// The token's grant for this tool.
    pub grant: &'a ToolGrant,
    /// The token, for a tool that hands on of it.
    pub token: &'a TokenBody,
    /// Which call it is; `None` where one of the log is only decided again, and will not run.
    pub live: Option<Live>,
}

/// The host's name for a request, echoed with its answer. The host must not use one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A run that a crash broke off: its intent is durable, and it has no outcome.
#[derive(Clone, Copy, Debug)]
pub struct Broken<'a> {
    /// The input of its plan.
    pub request: Request<'a>,
    /// Position of the intent, as its permit had it.
    pub intent: Seq,
    /// Leaf of the intent.
    pub leaf: Leaf,
}

/// A tool's proof about a run that a crash interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Its effect was made, whole.
    Done,
    /// Its effect was not made, and won't be: should the run still be on its way somewhere, it
    /// fails. The most that it has used; `calls` are charged besides.
    NotDone(Amounts),
    /// It can't tell.
    Unknown,
}

/// A call that came in, by the host's own names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The host's name for the request.
    pub ticket: Ticket,
    /// The session that it came through.
    pub session: Seq,
    /// The label of everything that the session has read so far; data that a tool stores for it
    /// gets this label.
    pub label: Label,
}

/// One thing that a plan would touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// The dimension of the grant that must permit it.
    pub dimension: &'static str,
    /// The resource.
    pub resource: Resource,
    /// The argument that named it, for the refusal.
    pub argument: &'static str,
}

/// The resources that a plan would touch, and the most that it may use of the counted dimensions.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// The resources that it would touch.
    pub resources: Vec<Demand>,
    /// The amounts that it may use, beyond the hold of its manifest.
    pub hold: Amounts,
}

/// A tool whose intent is durable before it runs.
pub trait Tool: Send + Sync + 'static {
    /// The plan that it makes of a call's arguments.
    type Plan: Plan;

    /// The kernel's knowledge of it. It must always return the same.
    fn manifest(&self) -> &Manifest;

    /// The resolver of an argument's links, which must be followed before the call is planned.
    /// Asked without I/O, and not again for what was found.
    ///
    /// # Errors
    /// What is wrong with the arguments, by [`Refused`].
    fn resolver(&self, _request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        Ok(None)
    }

    /// Parses the arguments, once, without I/O.
    ///
    /// # Errors
    /// What is wrong with them, by [`Refused`].
    fn plan(&self, request: &Request<'_>) -> Result<Self::Plan, Refused>;

    /// A dimension that the manifest declares and that no plan of this tool ever compares, where
    /// that is known before any call. The kernel takes no such tool.
    fn never_compared(&self) -> Option<&str> {
        None
    }

    /// The inspector of the state that the call would change, before a person is asked about it.
    /// The state must be unchanged when the call runs ([`Permit::conditions`]). Asked without I/O.
    ///
    /// # Errors
    /// What is wrong with the arguments, by [`Refused`].
    fn inspector(&self, _request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        Ok(None)
    }

    /// Says what became of a run that a crash broke off, and clears away what it left, or finishes
    /// what had begun and nobody can take back. Asked while a home is opened, before anything is
    /// called; nobody asks a tool that only reads. It must report only what it can prove.
    fn probe(&self, _broken: &Broken<'_>) -> Finding {
        Finding::Unknown
    }
}

/// Parsed arguments of a [`Tool`], ready to run.
pub trait Plan: Send + Sized + 'static {
    /// The resources that it would touch, and the amounts that it would use.
    fn demands(&self) -> &Demands;
    /// The dimensions that its tool declares and in which this very call touches nothing: no
    /// argument named a resource there. In each other one it must demand something, or the kernel
    /// refuses the call by [`Reason::NotCompared`]. The first 16 count.
    fn untouched(&self) -> &[&'static str] {
        &[]
    }
    /// The effect class of this very call, if it is less than the manifest's, as for a request that
    /// only reads. The policy decides by it. More than the manifest it never is.
    fn effect(&self) -> Option<EffectClass> {
        None
    }
    /// One more resource by which it describes the call to policies, under a name that is none of
    /// the tool's arguments: `args.NAME` there. Scopes don't see it, nor does whoever is asked.
    fn described(&self) -> Option<&Demand> {
        None
    }
    /// The location where the run acts, in words, as the program states it that runs the tool. The
    /// person who is asked sees it. An answer holds at the same location only. Scopes and policy
    /// don't see it. If it is longer than 4,089 bytes nobody can be asked about the call.
    fn location(&self) -> Option<&str> {
        None
    }
    /// Runs it. The only I/O of a call.
    fn run(self, permit: Permit<'_, Self>) -> Ran<'_>;
}

/// A built-in tool that only reads: its intent is made durable together with its outcome, before
/// the answer leaves.
pub trait ReadTool: Send + Sync + 'static {
    /// The plan that it makes of a call's arguments.
    type Plan: ReadPlan;

    /// The kernel's knowledge of it; its class must be `pure` or `read`.
    fn manifest(&self) -> &Manifest;

    /// The resolver of an argument's links, which must be followed before the call is planned.
    /// Asked without I/O, and not again for what was found.
    ///
    /// # Errors
    /// What is wrong with the arguments, by [`Refused`].
    fn resolver(&self, _request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        Ok(None)
    }

    /// Parses the arguments, once, without I/O.
    ///
    /// # Errors
    /// What is wrong with them, by [`Refused`].
    fn plan(&self, request: &Request<'_>) -> Result<Self::Plan, Refused>;
}

/// Parsed arguments of a [`ReadTool`], ready to run.
pub trait ReadPlan: Send + Sized + 'static {
    /// The resources that it would touch, and the amounts that it would use.
    fn demands(&self) -> &Demands;
    /// As [`Plan::untouched`].
    fn untouched(&self) -> &[&'static str] {
        &[]
    }
    /// Runs it.
    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_>;
}

/// The common part of both kinds of permit.
pub(crate) struct PermitCore {
    pub(crate) intent: Seq,
    pub(crate) tool: ToolId,
    pub(crate) leaf: Leaf,
    pub(crate) digest: CallDigest,
    pub(crate) salt: Salt,
    pub(crate) result_bytes_max: usize,
    pub(crate) read_only: bool,
    pub(crate) live: Live,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) meter: Meter,
    pub(crate) enforcement: Enforcement,
    pub(crate) flags: OutcomeFlags,
    pub(crate) label: Label,
}

/// What a run gives back.
enum Given {
    Result(Canonical),
    /// The tool failed by its own word: what it gave, and what the caller may do next.
    Failure(Canonical, Option<Retry>),
    Refused(Refused),
}

impl PermitCore {
    fn finish<'r>(self, given: Given, tx: TxOutcome) -> Ran<'r> {
        let ended = match given {
            Given::Result(result) => self.checked(&result, None).map(|()| (result, None)),
            Given::Failure(output, retry) => {
                let object = Refused::tool_failed(output.item(), tx, retry);
                self.checked(&output, Some(&object)).map(|()| (object, Some(Reason::ToolFailed)))
            }
            Given::Refused(refused) => Err(refused.by_tool(Reason::is_of_a_refused_run)),
        };
        let (delivered, reason) = ended.unwrap_or_else(|refused| {
            (refused.error_object(ErrorKind::Failed(tx)), Some(refused.reason()))
        });
        let status = if reason.is_some() { Status::Error } else { Status::Ok };
        let result_hash = result_hash(&self.salt, status.code(), delivered.item());
        Ran {
            intent: self.intent,
            digest: self.digest,
            reason,
            delivered,
            result_hash,
            used: self.meter.used,
            tx,
            enforcement: self.enforcement,
            flags: self.flags.when(reason.is_none()),
            label: self.label,
            brand: PhantomData,
        }
    }

    /// Checks the length of what a tool gave, and how deep it nests where it is delivered.
    fn checked(&self, given: &Canonical, within: Option<&Canonical>) -> Result<(), Refused> {
        let length = given.as_bytes().len();
        if length > self.result_bytes_max {
            let refused = Refused::new(Reason::ResultTooLarge).field("result");
            let refused = refused.got(&format!("{length} bytes"));
            return Err(refused.allowed(&format!("at most {} bytes", self.result_bytes_max)));
        }
        // A tool may have nested what was canonical one level too deep.
        match Item::check(within.unwrap_or(given).as_bytes(), Profile::DATA) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refused::new(Reason::TooDeep).field("result")),
        }
    }
}

/// One run of one type of plan. Neither can be exchanged for another: both are invariant. A plan
/// must run for any `'r`, so it can put nothing that carries `'r` where it would outlive the run.
type Brand<'r, P> = PhantomData<(fn(&'r ()) -> &'r (), fn(P) -> P)>;

/// Declares a kind of permit.
macro_rules! permit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[must_use = "a permit must be finished"]
        pub struct $name<'r, P> {
            core: PermitCore,
            brand: Brand<'r, P>,
        }

        impl<'r, P> $name<'r, P> {
            const fn seal(core: PermitCore) -> Self {
                Self { core, brand: PhantomData }
            }

            /// The tool that it is for.
            pub const fn tool(&self) -> &ToolId {
                &self.core.tool
            }

            /// Position of the intent: unique in the log.
            pub const fn intent(&self) -> Seq {
                self.core.intent
            }

            /// The call that it is for, by the host's own names.
            pub const fn live(&self) -> Live {
                self.core.live
            }

            /// Leaf of the intent: unique over all homes, and no secret.
            pub const fn leaf(&self) -> Leaf {
                self.core.leaf
            }

            /// Names the plan that it is for. It must not be written down: it is not salted.
            pub const fn digest(&self) -> CallDigest {
                self.core.digest
            }

            /// The reserved amounts.
            pub const fn hold(&self) -> &Amounts {
                self.core.meter.hold()
            }

            /// The largest result that can be delivered, in bytes: by the manifest, or by the
            /// policy where it asks for less.
            pub const fn result_bytes_max(&self) -> usize {
                self.core.result_bytes_max
            }

            /// True if the policy requires that this run changes nothing. Only a tool whose
            /// manifest says that it honours `read_only` is asked, or one that only reads.
            #[must_use]
            pub const fn is_read_only(&self) -> bool {
                self.core.read_only
            }

            /// The preconditions that held when a person approved this very call. If one of them
            /// fails, the run must change nothing, and fails with [`Reason::Changed`]: then the
            /// same call asks anew. Empty where nobody was asked.
            pub fn conditions(&self) -> &[Condition] {
                &self.core.conditions
            }

            /// Counts units *before* they are used.
            ///
            /// # Errors
            /// [`OverHold`]: the units must not be used.
            pub fn meter(&mut self, dimension: Dimension, amount: u64) -> Result<(), OverHold> {
                self.core.meter.count(dimension, amount)
            }

            /// Adds processor time that other processes used for this run, in microseconds. The
            /// host measures the time of the run's own thread.
            pub fn used_elsewhere(&mut self, cpu_us: u64) {
                let used = self.core.meter.used.get(Dimension::CpuUs).saturating_add(cpu_us);
                self.core.meter.used.set(Dimension::CpuUs, used);
            }

            /// Says how the scope was enforced.
            pub fn enforced_by(&mut self, enforcement: Enforcement) {
                self.core.enforcement = enforcement;
            }

            /// Says that the result tells of a failure, as a program's exit code does: the record of
            /// the outcome has the fact.
            pub fn tells_of_a_failure(&mut self) {
                self.core.flags = OutcomeFlags::TOOL_FAILED;
            }

            /// Says what the result brings, beside what the manifest says of all results: the
            /// label of what was kept earlier and is now given back.
            pub fn brings(&mut self, label: Label) {
                self.core.label = self.core.label.join(label);
            }

            /// Gives the permit back with a result.
            pub fn ok(self, result: Canonical, tx: TxOutcome) -> Ran<'r> {
                self.core.finish(Given::Result(result), tx)
            }

            /// Gives the permit back of a tool that failed by its own word, with what it gave, as
            /// [`Refused::tool_failed`] has it.
            pub fn tool_failed(self, out: Canonical, retry: Option<Retry>, tx: TxOutcome) -> Ran<'r> {
                self.core.finish(Given::Failure(out, retry), tx)
            }

            /// Gives the permit back with what went wrong.
            pub fn failed(self, why: Refused, tx: TxOutcome) -> Ran<'r> {
                self.core.finish(Given::Refused(why), tx)
            }
        }

        impl<P> fmt::Debug for $name<'_, P> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} {})"), self.core.tool, self.core.intent)
            }
        }
    };
}

permit! {
    /// Leave to run one plan of type `P`, once. Its intent is durable.
    Permit
}
permit! {
    /// Leave to run one reading plan of type `P`, once. Its intent is in the log, and will be
    /// durable together with its outcome before the answer leaves.
    ReadPermit
}

/// The result of a run. Only a permit makes one.
#[must_use = "a run must be reported to the kernel"]
#[derive(Debug)]
pub struct Ran<'r> {
    pub(crate) intent: Seq,
    pub(crate) digest: CallDigest,
    pub(crate) reason: Option<Reason>,
    pub(crate) delivered: Canonical,
    pub(crate) result_hash: ResultHash,
    pub(crate) used: Amounts,
    pub(crate) tx: TxOutcome,
    pub(crate) enforcement: Enforcement,
    pub(crate) flags: OutcomeFlags,
    pub(crate) label: Label,
    brand: Brand<'r, ()>,
}

impl Ran<'_> {
    /// Position of the intent that it belongs to.
    pub const fn intent(&self) -> Seq {
        self.intent
    }

    /// True if there is a result that tells of a failure.
    #[must_use]
    pub const fn tells_of_a_failure(&self) -> bool {
        self.flags.has(OutcomeFlags::TOOL_FAILED)
    }
}

/// A plan sealed together with its permit.
#[must_use = "a job must be run, or reported as lost"]
pub struct Job {
    pub(crate) plan: Box<dyn AnyPlan>,
    pub(crate) permit: PermitCore,
    pub(crate) wall_ms_max: Option<u64>,
}

impl Job {
    /// Runs the plan.
    pub fn run(self) -> Ran<'static> {
        self.plan.run(self.permit)
    }

    /// Position of the intent: what [`crate::Event::Lost`] names.
    pub const fn intent(&self) -> Seq {
        self.permit.intent
    }

    /// After how many milliseconds the host gives the run up, where the manifest says so.
    pub const fn wall_ms_max(&self) -> Option<u64> {
        self.wall_ms_max
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} {})", self.permit.tool, self.permit.intent)
    }
}

/// A plan whose type is forgotten. Crate-private, so a host can't run one with a permit that it
/// was given for another.
pub(crate) trait AnyPlan: Send {
    fn demands(&self) -> &Demands;
    fn untouched(&self) -> &[&'static str];
    /// The effect class of the call: never more than the manifest's.
    fn class(&self, manifest: &Manifest) -> EffectClass {
        manifest.effect
    }
    fn location(&self) -> Option<&str> {
        None
    }
    fn described(&self) -> Option<&Demand> {
        None
    }
    fn run(self: Box<Self>, core: PermitCore) -> Ran<'static>;
}

pub(crate) struct Full<P>(pub(crate) P);
pub(crate) struct Reading<P>(pub(crate) P);

impl<P: Plan> AnyPlan for Full<P> {
    fn demands(&self) -> &Demands {
        self.0.demands()
    }

    fn untouched(&self) -> &[&'static str] {
        self.0.untouched()
    }

    fn class(&self, manifest: &Manifest) -> EffectClass {
        self.0.effect().map_or(manifest.effect, |effect| effect.min(manifest.effect))
    }

    fn location(&self) -> Option<&str> {
        self.0.location()
    }

    fn described(&self) -> Option<&Demand> {
        self.0.described()
    }

    fn run(self: Box<Self>, core: PermitCore) -> Ran<'static> {
        self.0.run(Permit::seal(core))
    }
}

impl<P: ReadPlan> AnyPlan for Reading<P> {
    fn demands(&self) -> &Demands {
        self.0.demands()
    }

    fn untouched(&self) -> &[&'static str] {
        self.0.untouched()
    }

    fn run(self: Box<Self>, core: PermitCore) -> Ran<'static> {
        self.0.run(ReadPermit::seal(core))
    }
}

/// A tool whose plan's type is forgotten. All that a tool refuses before a run passes here, where
/// [`Refused::by_tool`] checks its reason.
pub(crate) trait AnyTool: Send + Sync {
    fn manifest(&self) -> &Manifest;
    fn never_compared(&self) -> Option<&str>;
    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused>;
    fn plan(&self, request: &Request<'_>) -> Result<Box<dyn AnyPlan>, Refused>;
    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused>;
    fn probe(&self, broken: &Broken<'_>) -> Finding;
}

impl<T: Tool> AnyTool for Full<T> {
    fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    fn never_compared(&self) -> Option<&str> {
        self.0.never_compared()
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        self.0.resolver(request).map_err(|why| why.by_tool(Reason::is_of_a_plan))
    }

    fn plan(&self, request: &Request<'_>) -> Result<Box<dyn AnyPlan>, Refused> {
        let plan = self.0.plan(request).map_err(|why| why.by_tool(Reason::is_of_a_plan))?;
        Ok(Box::new(Full(plan)))
    }

    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        self.0.inspector(request).map_err(|why| why.by_tool(Reason::is_of_a_look))
    }

    fn probe(&self, broken: &Broken<'_>) -> Finding {
        self.0.probe(broken)
    }
}

impl<T: ReadTool> AnyTool for Reading<T> {
    fn manifest(&self) -> &Manifest {
        self.0.manifest()
    }

    fn never_compared(&self) -> Option<&str> {
        None
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        self.0.resolver(request).map_err(|why| why.by_tool(Reason::is_of_a_plan))
    }

    fn plan(&self, request: &Request<'_>) -> Result<Box<dyn AnyPlan>, Refused> {
        let plan = self.0.plan(request).map_err(|why| why.by_tool(Reason::is_of_a_plan))?;
        Ok(Box::new(Reading(plan)))
    }

    fn inspector(&self, _: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        Ok(None)
    }

    fn probe(&self, _: &Broken<'_>) -> Finding {
        Finding::Unknown
    }
}
