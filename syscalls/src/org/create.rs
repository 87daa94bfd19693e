//! `org.create_agent`.

use std::sync::Arc;

use syscap_format::{
    Amounts, Dimension, EffectClass, GRANTS_MAX, Leaf, Manifest, MapBuilder, Param, ParamType,
    Reason, Refused, TOKEN_DEPTH_MAX, TOKEN_LIFE_MS_MAX, TxOutcome,
};
use syscap_kernel::{Broken, Demands, Finding, Permit, Plan, Ran, Request, Tool};

use super::part::{id_of, wanted};
use super::registrar::{NotHandedOn, Part, Registrar};
use super::{LOOK_CPU_US, manifest};

/// `org.create_agent`: makes an agent below the caller, with a part of the caller's own token.
pub(super) struct CreateAgent {
    manifest: Manifest,
    registrar: Arc<dyn Registrar>,
}

impl CreateAgent {
    pub(super) fn new(registrar: Arc<dyn Registrar>) -> Option<Self> {
        let tools_max = u64::try_from(GRANTS_MAX).unwrap_or(u64::MAX);
        let list = |name, what| Param::optional(name, ParamType::List, what);
        let map = |name, what| Param::optional(name, ParamType::Map, what);
        let int = |name, what| Param::optional(name, ParamType::Int, what);
        let mut manifest = manifest("create_agent", EffectClass::LocalWrite)?
            .described("Create an agent", "Makes an agent below this one, with some of its rights.")
            .param(
                Param::required("name", ParamType::Text, "Its name, without this agent's.")
                    .within(1, 128),
            )
            .param(
                Param::required("tools", ParamType::List, "Which of this agent's tools it gets.")
                    .within(1, tools_max),
            )
            .param(list("read", "What it may read: a root, as in workspace/notes.").within(0, 64))
            .param(list("write", "What it may write: a root.").within(0, 64))
            .param(map(
                "scopes",
                "What else its tools may touch: for each dimension true, or some of the names.",
            ))
            .param(map("budget", "Limits that are lower than this agent's, by dimension."))
            .param(
                int("expires_in_s", "How long it lives, in seconds.")
                    .within(1, TOKEN_LIFE_MS_MAX / 1_000),
            )
            .param(
                int("levels", "How many levels of agents it may make itself.")
                    .within(0, TOKEN_DEPTH_MAX),
            );
        manifest.hold.set(Dimension::CpuUs, LOOK_CPU_US);
        Some(Self { manifest, registrar })
    }
}

impl Tool for CreateAgent {
    type Plan = CreateAgentPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<CreateAgentPlan, Refused> {
        let part = wanted(request, &*self.registrar)?;
        let registrar = Arc::clone(&self.registrar);
        Ok(CreateAgentPlan { demands: Demands::default(), part, registrar })
    }

    /// The token that the run makes has a nonce of the intent's. If it is registered all is done;
    /// if not, nothing is, and no other process can register it: the run ended with the server.
    fn probe(&self, broken: &Broken<'_>) -> Finding {
        let parent = id_of(broken.request.token);
        match self.registrar.was_handed_on(&parent, &nonce_of(broken.leaf)) {
            Some(true) => Finding::Done,
            Some(false) => Finding::NotDone(Amounts::ZERO),
            None => Finding::Unknown,
        }
    }
}

/// The nonce of the token that a call makes: the first half of its intent's leaf, which no two
/// intents share.
#[must_use]
pub fn nonce_of(leaf: Leaf) -> [u8; 16] {
    leaf.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A planned `org.create_agent`.
pub(super) struct CreateAgentPlan {
    demands: Demands,
    part: Part,
    registrar: Arc<dyn Registrar>,
}

impl Plan for CreateAgentPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(mut self, permit: Permit<'_, Self>) -> Ran<'_> {
        // What the agent is told to do comes from what its maker had read.
        self.part.label = permit.live().label;
        self.part.nonce = nonce_of(permit.leaf());
        let agent = self.part.agent.as_str();
        match self.registrar.hand_on(&self.part) {
            Ok(token) => {
                let made = MapBuilder::new().text("agent", agent).text("token", &token.to_string());
                permit.ok(made.finish(), TxOutcome::Committed)
            }
            Err(NotHandedOn::Exists) => {
                let refused = Refused::new(Reason::Exists).field("name").got(agent);
                permit.failed(refused.allowed("a name that is free"), TxOutcome::NoOp)
            }
            Err(NotHandedOn::Refused(why)) => permit.failed(told(&why), TxOutcome::NoOp),
            Err(NotHandedOn::Unsigned) => {
                let refused = Refused::new(Reason::NotHandedOn).field("token");
                permit.failed(refused.got("held elsewhere"), TxOutcome::NoOp)
            }
            Err(NotHandedOn::Unknown) => {
                permit.failed(Refused::new(Reason::Failed).field("token"), TxOutcome::Unknown)
            }
        }
    }
}

/// The refusal of the kernel after the plan: it ends too late, or the token has ended since.
fn told(why: &Refused) -> Refused {
    match why.reason() {
        Reason::OutOfScope if why.is_about("expires") => Refused::new(Reason::OutOfScope)
            .field("expires_in_s")
            .allowed("no longer than this agent's token lives"),
        reason => Refused::new(Reason::NotHandedOn).field("token").got(reason.name()),
    }
}
