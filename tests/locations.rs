//! Where a delegated tool acts: stated by its provider, shown to the person who is asked, and compared
//! at each repeat and by standing approvals.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use host_support::{end, new_home};
use syscap::approvals::{Rows, SetTerms, WaitingCall};
use syscap::format::{
    Amounts, ApprovalAnswer, Canonical, EffectClass, Manifest, Param, ParamType, Scope, ScopeType,
    Seq, TxOutcome,
};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider};

/// Asks a person about all that acts.
const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "db", "effect": "deny", "subject": {"capability": "external_write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

/// Counts its runs, at a location that may change.
struct At {
    location: Mutex<Option<&'static str>>,
    runs: AtomicU64,
}

impl At {
    fn new(location: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self { location: Mutex::new(location), runs: AtomicU64::new(0) })
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Provider for At {
    fn run(&self, _: HostCall) -> HostRan {
        self.runs.fetch_add(1, Ordering::SeqCst);
        HostRan::new(Ok(Canonical::text("done")), TxOutcome::Committed, Amounts::ZERO)
    }

    fn location(&self, _: &ToolId) -> Option<String> {
        self.location.lock().unwrap().map(str::to_owned)
    }
}

fn tools() -> Vec<Manifest> {
    let tool = |name: &str| Manifest::new(ToolId::new(name).unwrap(), EffectClass::ExternalWrite);
    let table = Param::optional("table", ParamType::Text, "Which one.");
    let text = Param::optional("text", ParamType::Text, "What.");
    let drop = tool("db.drop").param(table).param(text.clone());
    vec![drop.resource("table", "table", ScopeType::Names), tool("db.say").param(text)]
}

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
    token: TokenId,
}

fn world() -> World {
    let (folder, home) = new_home();
    let options = Options::new().policy(Policy::from_json(POLICY.as_bytes()).unwrap());
    let rt = options.create(&home).unwrap();
    rt.provide(tools(), At::new(None)).unwrap();
    let grant = Grant::to("a").tools(["db.drop", "db.say"]);
    let grant = grant.scope("table", Scope::names(["users", "tmp"]).unwrap());
    let token = rt.issue(grant).unwrap();
    World { _folder: folder, home, rt, token }
}

impl World {
    /// Another process, which offers the tools at that location, and its session.
    fn at(&self, location: Option<&'static str>) -> (Runtime, Session, Arc<At>) {
        let (other, at) = (Runtime::connect(&self.home).unwrap(), At::new(location));
        other.provide(tools(), Arc::clone(&at) as Arc<dyn Provider>).unwrap();
        let session = other.session("a", self.token).unwrap();
        (other, session, at)
    }

    fn rows(&self) -> Rows {
        Rows::open(&self.home).unwrap()
    }

    fn waiting(&self, ask: Seq) -> WaitingCall {
        let log = Options::new().inspect(&self.home).unwrap();
        log.waiting().unwrap().into_iter().find(|call| call.ask == ask).unwrap()
    }

    fn standing(&self, ask: Seq) -> Result<Seq, Option<Reason>> {
        let now = self.rt.look(|kernel| kernel.now()).unwrap();
        let terms = SetTerms { uses: 9, scopes: None, expires: Some(now.plus(60_000)) };
        self.rt.answer_set(ask, &terms, None).map_err(|error| match error {
            Error::Refused(refused) => Some(refused.reason()),
            _ => None,
        })
    }
}

fn drop_table(session: &Session, table: &str) -> ToolResult {
    session.call("db.drop", args! { "table": table }).unwrap()
}

#[test]
fn approval_at_one_location_is_none_at_another() {
    let world = world();
    let (_one, staging, at_staging) = world.at(Some("server db staging"));
    let (_two, prod, at_prod) = world.at(Some("server db prod"));
    let (_three, unstated, at_none) = world.at(None);
    let ask = drop_table(&staging, "users").ask().unwrap();
    let shown = world.waiting(ask);
    assert_eq!(shown.location.as_deref(), Some("server db staging"));
    assert_eq!(shown.resources, ["table: users"]);
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    for (session, location) in [(&prod, Some("server db prod")), (&unstated, None)] {
        let other = drop_table(session, "users").ask().unwrap();
        assert_ne!(other, ask);
        assert_eq!(world.waiting(other).location.as_deref(), location);
    }
    assert_eq!((at_staging.runs(), at_prod.runs(), at_none.runs()), (0, 0, 0));
    // The same place later: another process, and another session.
    let (_four, later, at_later) = world.at(Some("server db staging"));
    assert_eq!(drop_table(&later, "users").reason(), None);
    assert_eq!((at_later.runs(), at_prod.runs()), (1, 0));
    drop((staging, prod, unstated, later));
    end(&world.rt, &world.home);
}

#[test]
fn standing_approval_holds_at_its_location_alone_also_after_a_restart() {
    let world = world();
    let (one, staging, at_staging) = world.at(Some("server db staging"));
    let ask = drop_table(&staging, "users").ask().unwrap();
    world.standing(ask).unwrap();
    assert_eq!(drop_table(&staging, "users").reason(), None);
    let (two, prod, at_prod) = world.at(Some("server db prod"));
    let (three, unstated, _) = world.at(None);
    assert!(drop_table(&prod, "users").ask().is_some());
    assert!(drop_table(&unstated, "users").ask().is_some());
    assert!(drop_table(&staging, "tmp").ask().is_some());
    assert_eq!((at_staging.runs(), at_prod.runs()), (1, 0));
    drop((staging, prod, unstated, one, two, three));
    let World { _folder, home, rt, token } = world;
    rt.close().unwrap();
    let rt = Options::new().open(&home).unwrap();
    let world = World { _folder, home, rt, token };
    let (_four, staging, at_staging) = world.at(Some("server db staging"));
    let (_five, prod, at_prod) = world.at(Some("server db prod"));
    assert_eq!(drop_table(&staging, "users").reason(), None);
    assert!(drop_table(&prod, "users").ask().is_some());
    assert_eq!((at_staging.runs(), at_prod.runs()), (1, 0));
    drop((staging, prod));
    end(&world.rt, &world.home);
}

/// A location is no resource: what names none is in no standing approval, wherever it acts.
#[test]
fn call_that_names_a_location_alone_takes_no_standing_approval() {
    let world = world();
    let (_one, session, at) = world.at(Some("server db"));
    let say = || session.call("db.say", args! { "text": "x" }).unwrap();
    let ask = say().ask().unwrap();
    let shown = world.waiting(ask);
    assert_eq!((shown.uses_max, shown.resources.len()), (0, 0));
    assert_eq!(world.standing(ask), Err(Some(Reason::BadControl)));
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    assert_eq!(say().reason(), None);
    assert_eq!(at.runs(), 1);
    drop(session);
    end(&world.rt, &world.home);
}

/// A provider that moves between the decision and the run would act elsewhere than was approved.
#[test]
fn provider_that_offers_anew_elsewhere_is_asked_about_again() {
    let world = world();
    let (other, session, at) = world.at(Some("here"));
    let ask = drop_table(&session, "users").ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    *at.location.lock().unwrap() = Some("there");
    other.provide(tools(), Arc::clone(&at) as Arc<dyn Provider>).unwrap();
    assert!(drop_table(&session, "users").ask().is_some_and(|anew| anew != ask));
    assert_eq!(at.runs(), 0);
    *at.location.lock().unwrap() = Some("here");
    other.provide(tools(), Arc::clone(&at) as Arc<dyn Provider>).unwrap();
    assert_eq!(drop_table(&session, "users").reason(), None);
    assert_eq!(at.runs(), 1);
    drop(session);
    end(&world.rt, &world.home);
}

/// The compared location of a call that is asked about beside the last like it.
#[test]
fn request_says_how_its_location_differs_from_the_last_like_it() {
    let world = world();
    let (_one, staging, _) = world.at(Some("staging"));
    let (_two, prod, _) = world.at(Some("prod"));
    let ask = drop_table(&staging, "users").ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    assert_eq!(drop_table(&staging, "users").reason(), None);
    let (here, there) = (drop_table(&staging, "users").ask().unwrap(), drop_table(&prod, "users"));
    let compared = |ask: Seq| world.rows().compared(&world.waiting(ask)).unwrap().unwrap();
    assert_eq!(compared(here).location, None);
    let differs = compared(there.ask().unwrap());
    let changed = differs.location.unwrap();
    let both = (changed.was.as_deref(), changed.is.as_deref());
    assert_eq!(both, (Some("\"staging\""), Some("\"prod\"")));
    assert_eq!(differs.changed, Some(Vec::new()));
    drop((staging, prod));
    end(&world.rt, &world.home);
}
