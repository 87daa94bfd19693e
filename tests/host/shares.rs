//! Shares of what the broker of clients' uses has for all agents together.

use syscap::format::{Canonical, EffectClass, Outcome, TxOutcome};
use syscap::host::{Begun, Reported, Settled, ToolUse};
use syscap::prelude::*;

use super::uses::{Desk, manifest};

/// A desk where agents have tokens for many uses at once.
struct Shared {
    desk: Desk,
    tokens: Vec<(&'static str, TokenId)>,
}

impl Shared {
    fn new() -> Self {
        let desk = Desk::new();
        let of = |agent: &'static str| {
            let budget = Budget::working_day()
                .with(Dimension::Concurrent, 1_000)
                .with(Dimension::Calls, 10_000)
                .with(Dimension::EgressBytes, 1 << 20);
            let grant = Grant::to(agent).tools(["client.run"]).budget(budget);
            (agent, desk.client.issue(grant).unwrap())
        };
        let tokens = ["flood", "quiet"].map(of).to_vec();
        Self { desk, tokens }
    }

    fn begin(&self, agent: &str, conversation: u64, n: u64) -> Result<Begun, Error> {
        let (_, token) = self.tokens.iter().find(|(name, _)| *name == agent).unwrap();
        let used = ToolUse {
            agent: AgentId::new(agent).unwrap(),
            conversation: format!("c{conversation}"),
            id: Some(format!("u{n}")),
            ..self.desk.used("", n)
        };
        let manifest = manifest("client.run", EffectClass::ExternalWrite);
        self.desk.client.begin_use(*token, &used, &manifest)
    }

    fn is_out(&self, agent: &str, conversation: u64, n: u64) -> bool {
        matches!(self.begin(agent, conversation, n), Ok(Begun::Out(_)))
    }
}

impl Shared {
    /// The outcomes of so many uses, which come on record a moment after they were abandoned.
    fn abandoned(&self, count: usize) -> Vec<Outcome> {
        for _ in 0..2_000 {
            let outcomes = self.desk.outcomes();
            if outcomes.len() >= count {
                assert_eq!(outcomes.len(), count);
                return outcomes;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("they are not abandoned");
    }
}

fn reason(begun: Result<Begun, Error>) -> String {
    format!("{:?}", begun.map(drop).unwrap_err())
}

#[test]
fn flood_of_conversations_keeps_no_other_agent_out() {
    let shared = Shared::new();
    // One is the desk's own agent's, whose last is not taken.
    assert!((0..63).all(|n| shared.is_out("flood", n, n)));
    // It has most itself, and none of its conversations is idle.
    assert!(shared.begin("flood", 64, 64).is_err(), "of its own there is no more");
    assert!(shared.is_out("quiet", 0, 0) && shared.is_out("quiet", 1, 1));
    // The conversations that were silent longest gave way, with their uses.
    let gone = shared.abandoned(2);
    assert!(gone.iter().all(|outcome| outcome.tx == TxOutcome::Unknown));
    shared.desk.close();
}

#[test]
fn flood_of_uses_keeps_no_other_agent_out() {
    let shared = Shared::new();
    assert!((0..256).all(|n| shared.is_out("flood", 0, n)));
    let refused = reason(shared.begin("flood", 0, 256));
    assert!(refused.contains("overloaded") || refused.contains("Overloaded"), "{refused}");
    assert!(shared.is_out("quiet", 0, 0));
    shared.abandoned(1);
    shared.desk.close();
}

#[test]
fn names_of_one_agent_take_no_others_share() {
    let shared = Shared::new();
    let named = |agent: &'static str, n: u64| {
        let (_, token) = shared.tokens.iter().find(|(name, _)| *name == agent).unwrap();
        let name = format!("client.{agent}_{n}");
        let used = ToolUse {
            agent: AgentId::new(agent).unwrap(),
            tool: ToolId::new(&name).unwrap(),
            ..shared.desk.used(&format!("{agent}{n}"), n)
        };
        let manifest = manifest(&name, EffectClass::ExternalWrite);
        shared.desk.client.begin_use(*token, &used, &manifest)
    };
    assert!((0..64).all(|n| named("flood", n).is_ok()));
    assert!(named("flood", 64).is_err());
    assert!(named("quiet", 0).is_ok());
    shared.desk.close();
}

/// The vault keeps arguments and reports: each use pays for its own and for what was reported before.
#[test]
fn flood_of_events_pays_for_its_bytes() {
    const BUDGET: u64 = 1 << 20;
    let desk = Desk::new();
    let budget = Budget::working_day().with(Dimension::DiskWriteBytes, BUDGET);
    let grant = |agent: &str| Grant::to(agent).tools(["client.run"]);
    let flooding = desk.client.issue(grant("flood").budget(budget)).unwrap();
    let quiet = desk.client.issue(grant("quiet").budget(Budget::working_day())).unwrap();
    let manifest = manifest("client.run", EffectClass::ExternalWrite);
    let made = |agent: &str, token: TokenId, n: u64| {
        let args = args! { "n": n, "text": "x".repeat(10_000) }.finish();
        let (agent, size) = (AgentId::new(agent).unwrap(), args.as_bytes().len());
        let used = ToolUse { agent, args, ..desk.used(&format!("u{n}"), n) };
        match desk.client.begin_use(token, &used, &manifest).unwrap() {
            Begun::Out(_) => {
                let report = Canonical::text(&"y".repeat(100_000));
                let size = size + report.as_bytes().len();
                let answer = desk.client.settle_use(token, &used, &Reported::Result(report));
                assert!(matches!(answer, Ok(Settled::Answered(a)) if a.reason().is_none()));
                Ok(u64::try_from(size).unwrap())
            }
            Begun::Answered(answer) => Err(answer.reason()),
        }
    };
    let (mut bytes, mut uses) = (0, 0);
    let refused = loop {
        match made("flood", flooding, uses) {
            Ok(size) => (bytes, uses) = (bytes + size, uses + 1),
            Err(reason) => break reason,
        }
    };
    assert_eq!((refused, uses), (Some(Reason::OverBudget), BUDGET / 110_000 + 1));
    let paid = |outcomes: &[Outcome]| -> u64 {
        outcomes.iter().map(|one| one.call.used.get(Dimension::DiskWriteBytes)).sum()
    };
    // All but the last report, which the next use would have paid.
    let all = paid(&desk.outcomes());
    assert!(all <= BUDGET && bytes - all < 101_000 && all < bytes, "{all} of {bytes}");
    assert!(made("quiet", quiet, 1_000).is_ok());
    desk.close();
}
