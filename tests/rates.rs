//! Rates: what agents did of late, as a policy is told, held against a list of all that happened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::rules::world::{World, allow_all, constraint, document};
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{self, Ending, Policed, Shared, Sim};
use proptest::prelude::*;
use syscap::audit::MemoryStore;
use syscap::format::{
    AgentId, AggregatePhase, Amounts, Body, CallFields, Decision, Dimension, EngineIdentity,
    HomeLimits, Item, Record, Seq, TokenBody, TokenId, ToolId, UnixMillis, Verdict,
};
use syscap::kernel::{Anchor, Event, History, Kernel, Parts, Past, PolicyEngine, Question};
use syscap::prelude::*;

/// What a policy was told: the tool, the time, the counts.
type Told = Arc<Mutex<Vec<(ToolId, UnixMillis, History)>>>;

/// A policy that notes what it is told, and decides by the units.
struct Watch(Told);

impl PolicyEngine for Watch {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("watch"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let all = |told: History, past: &Past| told.with(*past, question.history.get(*past));
        let history = Past::ALL.iter().fold(History::none(), all);
        let told = (question.manifest.tool.clone(), question.now, history);
        self.0.lock().unwrap().push(told);
        Decision::plain(match question.args.get("units").and_then(Item::as_uint) {
            Some(13) => Verdict::Deny,
            Some(14) => Verdict::Ask,
            _ => Verdict::Allow,
        })
    }
}

fn watched() -> (Sim, Told) {
    let (world, told) = (Shared::default(), Told::default());
    let parts = watching(&world, &told);
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    (Sim::of(store, HomeLimits::default(), Policed::ByToken, (world, parts)), told)
}

fn watching(world: &Shared, told: &Told) -> Parts {
    Parts { engine: Box::new(Watch(Arc::clone(told))), ..sim::parts(world) }
}

/// Widths of buckets, and spans, in milliseconds.
const SPANS: [(&str, u64, u64); 3] =
    [("minute", 5_000, 60_000), ("hour", 300_000, 3_600_000), ("day", 7_200_000, 86_400_000)];

/// Something that happened: when, by whom, with which tool, and how much of what.
struct Happened {
    time: u64,
    agent: AgentId,
    tool: Option<ToolId>,
    what: &'static str,
    count: u64,
}

fn bytes(amounts: &Amounts) -> u64 {
    amounts.get(Dimension::DiskWriteBytes) + amounts.get(Dimension::EgressBytes)
}

/// All that a log says has happened.
fn happened(log: &[Record], roots: &BTreeMap<TokenId, AgentId>) -> Vec<Happened> {
    let mut agents: BTreeMap<Seq, AgentId> = BTreeMap::new();
    let mut all: Vec<Happened> = Vec::new();
    let mut places: BTreeMap<Seq, usize> = BTreeMap::new();
    for record in log {
        let time = record.time.get();
        let by = |agents: &BTreeMap<Seq, AgentId>, call: &CallFields| {
            Some((agents.get(&call.session?)?.clone(), call.tool_id.clone()))
        };
        let mut push = |by: Option<(AgentId, Option<ToolId>)>, what, count| {
            let Some((agent, tool)) = by else { return };
            all.push(Happened { time, agent, tool, what, count });
        };
        match &record.body {
            Body::Session(change) if change.session.is_none() => {
                agents.insert(record.seq, roots[&change.token].clone());
            }
            Body::Intent(intent) => {
                push(by(&agents, &intent.call), "calls", 1);
                push(by(&agents, &intent.call), "bytes", bytes(&intent.call.held));
                places.insert(record.seq, all.len() - 1);
            }
            Body::Outcome(outcome) => {
                all[places[&outcome.intent]].count = bytes(&outcome.call.used)
            }
            Body::Recovery(broken) => all[places[&broken.intent]].count = bytes(&broken.used),
            Body::Refusal(refusal) => push(by(&agents, &refusal.call), "refusals", 1),
            Body::Ask(ask) => push(by(&agents, &ask.call), "refusals", 1),
            Body::Refusals(counted) if counted.phase == AggregatePhase::Open => {
                let by = counted.session.map(|session| (agents[&session].clone(), None));
                push(by, "refusals", counted.answers_max);
            }
            _ => {}
        }
    }
    all
}

/// What a call finds, by all that has happened.
fn expected(all: &[Happened], agent: &AgentId, tool: &ToolId, now: u64) -> History {
    let mut history = History::none();
    for past in Past::ALL {
        let parts: Vec<&str> = past.name().split('.').collect();
        let (_, width, span) = *SPANS.iter().find(|(name, ..)| *name == parts[2]).unwrap();
        let counts = |one: &&Happened| {
            let counts = now / width - one.time / width <= 12;
            // All of the span, and nothing that is older by more than a bucket.
            assert!(counts || now - one.time >= span);
            assert!(!counts || now - one.time < span + width);
            let of_tool = parts[1] == "agent" || one.tool.as_ref() == Some(tool);
            counts && one.what == parts[0] && one.agent == *agent && of_tool
        };
        history = history.with(*past, all.iter().filter(counts).map(|one| one.count).sum());
    }
    history
}

#[derive(Clone, Debug)]
enum Step {
    Spend { session: usize, units: u64, tries: u64 },
    Look { session: usize },
    Bad { session: usize, often: u8 },
    End { job: usize, ending: Ending },
    Commit,
    Wait(u64),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let ending = prop_oneof![4 => Just(Ending::Runs), 1 => Just(Ending::TimesOut)];
    prop_oneof![
        8 => (0_usize..4, 0_u64..20, 0_u64..20)
            .prop_map(|(session, units, tries)| Step::Spend { session, units, tries }),
        4 => (0_usize..4).prop_map(|session| Step::Look { session }),
        2 => (0_usize..4, 1_u8..22).prop_map(|(session, often)| Step::Bad { session, often }),
        6 => (0_usize..4, ending).prop_map(|(job, ending)| Step::End { job, ending }),
        3 => Just(Step::Commit),
        6 => proptest::sample::select(&[
            1, 900, 4_000, 5_000, 60_000, 64_999, 290_000, 3_000_000, 20_000_000, 90_000_000,
        ][..])
        .prop_map(Step::Wait),
        1 => Just(Step::Crash),
    ]
}

/// Two agents, and one that the first has handed something on to.
fn begin() -> (Sim, Told, BTreeMap<TokenId, AgentId>) {
    let (mut sim, told) = watched();
    let year = 7_000_000_000;
    let (one, two) = (sim.issue("a0", 900, 9_000, year), sim.issue("a1", 900, 9_000, year));
    let mut body = sim.derived(one, sim::tokens::budget(900, 9_000), year - 1_000).unwrap();
    let child = AgentId::new("a0/b").unwrap();
    body.agent = child.clone();
    let ticket = sim.ticket();
    let wire = Sim::wire_by(&sim::keys::holder(), &body);
    sim.event(Event::Issue(ticket, wire, None));
    let handed_on = TokenBody::id_of(&body.to_bytes());
    let agent = |name| AgentId::new(name).unwrap();
    let roots = [(one, agent("a0")), (two, agent("a1")), (handed_on, agent("a0"))];
    (sim, told, roots.into())
}

fn seats(sim: &mut Sim, roots: &BTreeMap<TokenId, AgentId>) {
    for token in roots.keys() {
        let agent = sim.kernel.token(token).unwrap().body.agent.clone();
        sim.open(agent.as_str(), *token);
    }
    sim.commit();
}

/// Hands a call in, and holds what the policy was told of it against what has happened before.
fn ask(sim: &mut Sim, told: &Told, roots: &BTreeMap<TokenId, AgentId>, call: (usize, String)) {
    let session = sim.sessions[call.0 % sim.sessions.len()];
    sim.commit();
    let before = sim::records(sim);
    let asked = told.lock().unwrap().len();
    sim.submit_json(session, &call.1);
    let told = told.lock().unwrap();
    for (tool, now, history) in &told[asked..] {
        let all = happened(&before, roots);
        let token = before.iter().find_map(|record| match &record.body {
            Body::Session(change) if record.seq == session => Some(change.token),
            _ => None,
        });
        let wanted = expected(&all, &roots[&token.unwrap()], tool, now.get());
        assert_eq!(*history, wanted, "of {tool} at {now}");
    }
}

fn apply(sim: &mut Sim, told: &Told, roots: &BTreeMap<TokenId, AgentId>, step: &Step) {
    match step {
        Step::Spend { session, units, tries } => {
            let args = format!(r#"{{"units": {units}, "tries": {tries}}}"#);
            let json = format!(r#"{{"tool_id": "spend", "args": {args}}}"#);
            ask(sim, told, roots, (*session, json));
        }
        Step::Look { session } => {
            let json = r#"{"tool_id": "look", "args": {"at": 1}}"#;
            ask(sim, told, roots, (*session, json.to_owned()));
        }
        Step::Bad { session, often } => {
            let session = sim.sessions[session % sim.sessions.len()];
            for _ in 0..*often {
                sim.submit_json(session, r#"{"tool_id": "look", "args": {}}"#);
            }
        }
        Step::End { job, ending } => sim.end_job(*job, *ending),
        Step::Commit => sim.commit(),
        Step::Wait(ms) => (sim.wall, sim.boottime) = (sim.wall + ms, sim.boottime + ms),
        Step::Crash => {
            sim.commit();
            let parts = watching(&sim.world, told);
            sim.crash_into(|store| Kernel::open(store, parts, &Anchor::default()));
            sim.boot();
            seats(sim, roots);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_those_of_all_that_happened(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let (mut sim, told, roots) = begin();
        seats(&mut sim, &roots);
        for step in &steps {
            apply(&mut sim, &told, &roots, step);
        }
        sim.commit();
        while sim.kernel.wants_commit() {
            sim.commit();
        }
        // The log makes the same counts.
        let parts = watching(&sim.world, &told);
        let again = Kernel::open(&mut sim.store, parts, &Anchor::default()).unwrap();
        prop_assert_eq!(again.state_image(), sim.kernel.state_image());
    }
}

/// Calls in flight count, and what they have set aside until it is known what they used.
#[test]
fn calls_in_flight_count_against_rates() {
    let (mut sim, told, roots) = begin();
    seats(&mut sim, &roots);
    let last = |told: &Told| told.lock().unwrap().last().unwrap().2;
    let spend = r#"{"tool_id": "spend", "args": {"units": 9, "tries": 4}}"#;
    for calls in 0..4 {
        ask(&mut sim, &told, &roots, (0, spend.to_owned()));
        assert_eq!(last(&told).get(Past::CallsToolMinute), calls);
        assert_eq!(last(&told).get(Past::BytesAgentDay), 9 * calls);
    }
    sim.end_job(0, Ending::Runs);
    ask(&mut sim, &told, &roots, (0, spend.to_owned()));
    assert_eq!(last(&told).get(Past::BytesToolMinute), 3 * 9 + 4);
}

/// The example of the documentation, as it stands there.
#[test]
fn the_example_asks_from_the_thirtieth_call_on() {
    let page = include_str!("../docs/policy.md");
    let (_, after) = page.split_once("### An example of history\n").expect("the example");
    let document = after.split("```").nth(1).unwrap().strip_prefix("json").unwrap();
    let world = World::new(document);
    let (_, agent) = world.seat("a", ["echo", "fs.list"]);
    let call = || agent.call("echo", args! { "value": 1 }).unwrap().reason();
    for _ in 0..30 {
        assert_eq!(call(), None);
    }
    assert_eq!(call(), Some(Reason::Asked));
    let other = agent.call("fs.list", args! { "path": "." }).unwrap();
    assert_ne!(other.reason(), Some(Reason::Asked));
    world.clock.forward(59_999);
    assert_eq!(call(), Some(Reason::Asked));
    world.clock.forward(5_001);
    assert_eq!(call(), None);
}

/// A built-in tool has no limit of its own; a document gives it one, by what the log counts.
#[test]
fn a_built_in_tool_is_limited_by_a_document_and_by_counts_alone() {
    let deny = |when: &str| {
        document(&[
            constraint("all", "allow", "null", r#"{"op": "all", "args": []}"#, "block"),
            constraint("few", "deny", r#"{"tool_id": "current_time"}"#, when, "defer"),
        ])
    };
    let limited = deny(r#"{"op": "ge", "args": ["history.calls.tool.minute", 5]}"#);
    for (document, allowed) in [(allow_all(), 40), (limited, 5)] {
        let world = World::new(&document);
        let (_, agent) = world.seat("a", ["current_time", "echo"]);
        let (_, other) = world.seat("b", ["current_time"]);
        let call = |agent: &Session| agent.call("current_time", args! {}).unwrap().reason();
        // The clock stands still: how fast they come is no matter.
        let answers: Vec<Option<Reason>> = (0..40).map(|_| call(&agent)).collect();
        let done = answers.iter().take_while(|reason| reason.is_none()).count();
        assert_eq!(done, allowed);
        assert!(answers[done..].iter().all(|reason| *reason == Some(Reason::Deferred)));
        // Of this agent and this tool alone.
        assert_eq!(call(&other), None);
        assert_eq!(agent.call("echo", args! { "value": 1 }).unwrap().reason(), None);
        world.clock.forward(65_001);
        assert_eq!(call(&agent), None);
    }
}
