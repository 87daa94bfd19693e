//! A host's own tool is asked when its home is opened.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::{new_home, records};
use kernel_support::fault::{FaultPoint, FaultStore};
use syscap::audit::SqliteStore;
use syscap::format::{Amounts, Body, Durability, EffectClass, Recovered, Recovery, Refused};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Transactional};
use syscap::kernel::{Broken, Finding};
use syscap::prelude::*;

static RUNS: AtomicU64 = AtomicU64::new(0);
/// What it was asked about: intent and text.
static ASKED: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

/// Says what its argument tells it to.
struct Told(String);

impl Transactional for Told {
    type Prepared = String;
    type Answer = String;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        let told = Self(args.text("told")?.to_owned());
        Ok(Planned::new(told).hold(Dimension::EgressBytes, 50))
    }

    fn prepare(self, _: &ToolCall) -> Result<String, Failure> {
        Ok(self.0)
    }

    fn commit(told: String, _: &ToolCall) -> Result<String, Failure> {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Ok(told)
    }

    fn probe(broken: &Broken<'_>) -> Finding {
        let told = broken.request.args.get("told").unwrap().as_text().unwrap().to_owned();
        ASKED.lock().unwrap().push((broken.intent.get(), told.clone()));
        assert_eq!(broken.request.agent.as_str(), "a");
        match told.as_str() {
            "done" => Finding::Done,
            "not" => Finding::NotDone(Amounts::ZERO.with(Dimension::EgressBytes, 9)),
            _ => panic!("a probe that panics"),
        }
    }
}

fn options() -> Options {
    let told = HostTool::new("t.told", EffectClass::ExternalWrite).unwrap();
    let told = told.compensated_by("t.untold").unwrap();
    let told = told.text("told", "What it says.").transactional::<Told>();
    let policy = syscap::policy::Policy::preset(syscap::policy::Preset::Recording).unwrap();
    Options::new().tool(told).unwrap().policy(policy)
}

#[test]
fn a_hosts_tool_is_asked_once_and_a_panic_says_nothing() {
    for (told, verdict, egress, again) in [
        ("done", Recovered::Done, 50, Some(Reason::OutcomeLost)),
        ("not", Recovered::NotDone, 9, None),
        ("panics", Recovered::Unknown, 50, Some(Reason::OutcomeUnknown)),
    ] {
        ASKED.lock().unwrap().clear();
        let (_folder, home) = new_home();
        let rt = options().create(&home).unwrap();
        let budget = Budget::standard().with(Dimension::EgressBytes, 1_000);
        let token = rt.issue(Grant::to("a").tools(["t.told"]).budget(budget)).unwrap();
        rt.close().unwrap();
        // The disk breaks after the intent: its run is never on record.
        let store = SqliteStore::open(&home, Durability::Full).unwrap();
        let store = FaultStore::new(store, FaultPoint::Before(4));
        let rt = options().store(store).open(&home).unwrap();
        let agent = rt.session("a", token).unwrap();
        let before = RUNS.load(Ordering::SeqCst);
        agent.request("t.told").args(args! { "told": told }).key("k").wait().unwrap_err();
        assert_eq!(RUNS.load(Ordering::SeqCst), before + 1);
        drop((agent, rt));
        for _ in 0..2 {
            let rt = options().open(&home).unwrap();
            rt.close().unwrap();
        }
        let recovery = |body| match body {
            Body::Recovery(recovery) => Some(*recovery),
            _ => None,
        };
        let said: Vec<Recovery> =
            records(&home).into_iter().filter_map(|record| recovery(record.body)).collect();
        assert_eq!(said.len(), 1);
        assert_eq!((said[0].verdict, said[0].used.get(Dimension::EgressBytes)), (verdict, egress));
        assert_eq!(*ASKED.lock().unwrap(), [(said[0].intent.get(), told.to_owned())], "once");
        // Who is asked about what nobody knows hears what takes it back.
        let unknown = Options::new().inspect(&home).unwrap().unresolved().unwrap();
        let undone = unknown.iter().map(|call| call.compensated_by.as_ref().map(ToolId::as_str));
        let wanted = (verdict == Recovered::Unknown).then_some(Some("t.untold"));
        assert_eq!(undone.collect::<Vec<_>>(), Vec::from_iter(wanted));
        let rt = options().open(&home).unwrap();
        let agent = rt.session("a", token).unwrap();
        let answer = agent.request("t.told").args(args! { "told": told }).key("k").wait().unwrap();
        assert_eq!(answer.reason(), again, "{told}");
        let ran = u64::from(again.is_none());
        assert_eq!(RUNS.load(Ordering::SeqCst), before + 1 + ran);
        drop(agent);
        rt.close().unwrap();
    }
}
