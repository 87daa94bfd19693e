//! Each rule of the learner.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

mod arguments;
mod authority;
mod counting;
mod evidence;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use syscap_format::{
    AgentId, Amounts, Budget, Canonical, Dimension, EffectClass, Grants, Manifest, Param,
    ParamType, Resource, Rights, Root, RootedPath, Seq, TokenId, ToolGrant, ToolId, Verdict, json,
};
use syscap_kernel::Demand;

use super::*;

const AGENT: &str = "team/helper";

fn few() -> Settings {
    Settings { refused_percent: 34, ..Settings::default() }
}

fn agent() -> AgentId {
    AgentId::new(AGENT).unwrap()
}

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

fn token(byte: u8) -> TokenId {
    TokenId::from_bytes([byte; 32])
}

/// A tool with the arguments `to`, `n` and `cc`.
fn manifest(name: &str, effect: EffectClass) -> Manifest {
    let params = ["to", "n", "cc"];
    params.into_iter().fold(Manifest::new(tool(name), effect), |manifest, name| {
        manifest.param(Param::optional(name, ParamType::Any, ""))
    })
}

/// A recording in the making: token 1 grants every tool that is added.
struct World {
    recording: Recording,
    next: u64,
}

impl World {
    fn new(tools: &[(&str, EffectClass)]) -> Self {
        let mut recording = Recording::default();
        let mut grants = Grants::new();
        for (name, effect) in tools {
            grants = grants.with(tool(name), ToolGrant::new());
            recording.tools.push(manifest(name, *effect));
        }
        let budget = Budget::standard();
        let authority = Authority { issued: Seq::new(1), grants, budget };
        recording.tokens.insert(token(1), authority);
        Self { recording, next: 10 }
    }

    fn seq(&mut self) -> Seq {
        self.next += 1;
        Seq::new(self.next)
    }

    /// Opens a session for a task; one of its own where it has no name.
    fn session(&mut self, task: &str) -> Seq {
        let number = self.seq();
        let task = (!task.is_empty()).then(|| task.as_bytes().to_vec());
        let session = RecordedSession { agent: agent(), token: token(1), task };
        self.recording.sessions.insert(number, session);
        number
    }

    /// Adds a call that was done in a trusted session.
    fn call(&mut self, session: Seq, name: &str, args: &str) -> &mut Observation {
        let found = self.recording.tools.iter().find(|m| m.tool == tool(name)).cloned();
        let seq = self.seq();
        self.recording.calls.push(Observation {
            seq,
            session,
            tool: tool(name),
            manifest: found.map(Arc::new),
            args: Ok(json::to_cbor(args.as_bytes()).unwrap()),
            touched: Touched::Known(Vec::new()),
            ended: Ended::Done,
            context: Context::Trusted,
            held: Amounts::ZERO.with(Dimension::Calls, 1),
            used: Amounts::ZERO.with(Dimension::Calls, 1),
        });
        self.recording.calls.last_mut().unwrap()
    }

    /// Sessions of their own, each with one call.
    fn calls<'a>(&mut self, name: &str, each: impl IntoIterator<Item = &'a str>) {
        for args in each {
            let session = self.session("");
            self.call(session, name, args);
        }
    }

    /// With a bound that a few tasks can keep.
    fn propose(&self) -> Proposal {
        self.propose_with(&few())
    }

    fn propose_with(&self, settings: &Settings) -> Proposal {
        propose(&self.recording, settings).unwrap()
    }
}

/// What is said of an argument of the first agent's tool.
fn argument<'p>(proposal: &'p Proposal, name: &str, argument: &str) -> &'p ArgumentLine {
    let line = proposal.agents[0].tools.iter().find(|line| line.tool == tool(name)).unwrap();
    line.arguments.iter().find(|line| &*line.name == argument).unwrap()
}

fn class(proposal: &Proposal, name: &str, wanted: &str) -> Class {
    argument(proposal, name, wanted).class
}

/// What the policy says of a call of the agent's.
fn verdict(proposal: &Proposal, agent: &str, name: &str, args: &str) -> Verdict {
    let args: Canonical = json::to_cbor(args.as_bytes()).unwrap();
    let mut given = vec![
        format!("\"call.tool\": \"{name}\""),
        format!("\"call.agent\": \"{agent}\""),
        String::from("\"call.effect\": \"external_write\""),
    ];
    for (name, value) in args.item().entries() {
        given.push(format!("\"args.{name}\": {}", json::from_item(value)));
    }
    let text = format!("{{{}}}", given.join(", "));
    let scenario = json::to_cbor(text.as_bytes()).unwrap();
    let scenario = syscap_policy::Scenario::from_item(scenario.item()).unwrap();
    proposal.policy.decide_values(&scenario).verdict
}

fn left_out(proposal: &Proposal, why: Why) -> u64 {
    proposal.left_out.iter().filter(|one| one.why == why).map(|one| one.calls).sum()
}

fn path(text: &str) -> RootedPath {
    let (root, below) = text.split_once('/').unwrap_or((text, ""));
    let root = Root::named(root).unwrap();
    RootedPath::new(root, below.split('/').filter(|c| !c.is_empty())).unwrap()
}

fn touches(text: &str, needs: Rights) -> Touched {
    let resource = Resource::Path { path: path(text), needs };
    Touched::Known(vec![Demand { dimension: "fs.path", resource, argument: "path" }])
}
