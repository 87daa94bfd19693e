//! What one process can cost the others: tools, tokens, places; and what it leaves when it goes.

use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use syscap::Runtime;
use syscap::format::{
    Amounts, Canonical, Manifest, MapBuilder, RecordKind, Source, TxOutcome, definition_hash,
};
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::verify::Soundness;
use syscap::view::Whose;

use crate::{attach::wire::*, attach::world::*};

/// Most tools of a home, and most that one process can have put on record.
const TOOLS: usize = 4_096;
const PINS: usize = 512;

fn many(count: usize, names: &str, description: &str) -> Vec<Manifest> {
    let tool = |n: usize| manifest(&format!("{names}{n:04}")).described("t", description);
    (0..count).map(tool).collect()
}

fn tools_in_all(access: &Runtime) -> usize {
    usize::try_from(access.view().unwrap().tools_in_all).unwrap()
}

/// How long it takes to be refused so often in a row.
fn refused_in_a_row(count: usize, mut refused: impl FnMut()) -> Duration {
    let since = Instant::now();
    (0..count).for_each(|_| refused());
    since.elapsed()
}

/// Past the refusals that have a record of their own each one waits longer, up to 50 ms: in process
/// before it is told, at the holder before more is read of its connection.
#[test]
fn repeated_refusals_wait_longer_each_time() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    // 1, 2, 4, 8, 16, 32 and 50 ms.
    let least = Duration::from_millis(113);
    for access in [&holder, &attached] {
        let agent = caller(access, &["echo"]);
        let refuse = || {
            let refused = agent.call("none", args! {}).unwrap();
            assert_eq!(refused.reason(), Some(Reason::UnknownTool));
        };
        assert!(refused_in_a_row(24, refuse) >= least);
        // Others of the same agent, and it after a call that goes through, have their own rows.
        for agent in [&caller(access, &["echo"]), &agent] {
            echo(agent).unwrap();
            let first = agent.call("none", args! {}).unwrap();
            assert_eq!(record(&home, first.receipt().outcome_seq).body.kind(), RecordKind::Refusal);
        }
    }
    // Where there is no session the connection waits.
    let mut stream = greeted_by(&home, &HELLO_AGENTS);
    let refuse = || {
        let answer = ask(&mut stream, &calling(1, Source::Agent));
        assert_eq!(refused(&answer), Some(Reason::NoSession.code()));
    };
    assert!(refused_in_a_row(24, refuse) >= least);
}

#[test]
fn long_tools_are_not_put_on_record_without_end() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let own = tools_in_all(&holder);
    let long = "x".repeat(30_000);
    let [all, some, looks] = [(); 3].map(|()| Runtime::connect(&home).unwrap());
    let gate = Gate::opened();
    // All of them at once, and bit by bit: what is on record has an end.
    assert!(all.provide(many(500, "all.x", &long), gate.provider()).is_err());
    let (mut taken, mut refused) = (0, 0);
    for part in 0..20 {
        let process = Runtime::connect(&home).unwrap();
        let tools = many(100, &format!("part{part}.x"), &long);
        match process.provide(tools, gate.provider()) {
            Ok(offers) => taken += offers.len(),
            Err(_) => refused += 1,
        }
    }
    assert_eq!((taken, refused), (100, 19));
    for access in [&looks, &holder] {
        let view = access.view().unwrap();
        assert_eq!((view.tools.len(), tools_in_all(access)), (own + 100, own + 100));
        let detail = access.tool(&tool("part0.x0007")).unwrap();
        assert_eq!(detail.manifest.description.len(), 30_000);
        assert_eq!((detail.info.manifest, detail.offered), (detail.manifest.id(), None));
        assert!(matches!(access.tool(&tool("t.no")), Err(Error::NoSuch { .. })));
        assert_eq!(access.manifests(Whose::All).unwrap().len(), own + 100);
        assert_eq!(access.manifests(Whose::Holders).unwrap().len(), own);
    }
    // Nor may what is offered in their place be longer, or be accepted.
    some.provide(vec![manifest("t.a")], gate.provider()).unwrap();
    let longer = "x".repeat(5 << 20);
    let other = |description: &str| vec![manifest("t.a").described("t", description)];
    assert!(some.provide(other(&longer), gate.provider()).is_err());
    let offers = some.provide(other(&longer[..3 << 20]), gate.provider()).unwrap();
    assert_eq!(offers[0].standing, Standing::Changed);
    assert_eq!(looks.tool(&tool("t.a")).unwrap().offered.unwrap().description.len(), 3 << 20);
    assert!(looks.accept(&[tool("t.a")]).is_err());
    // There is room again where something is forgotten.
    let names: Vec<_> = (0..100).map(|n| tool(&format!("part0.x{n:04}"))).collect();
    looks.forget(&names).unwrap();
    looks.accept(&[tool("t.a")]).unwrap();
    assert_eq!(tools_in_all(&looks), own + 1);
}

#[test]
fn a_home_that_is_full_of_tools_can_be_looked_at() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let own = tools_in_all(&holder);
    let gate = Gate::opened();
    let looks = Runtime::connect(&home).unwrap();
    let mut names = Vec::new();
    for process in 0..TOOLS / PINS {
        let access = Runtime::connect(&home).unwrap();
        let tools = many(PINS, &format!("process{process}.{}", "x".repeat(48)), &"y".repeat(500));
        names.extend(tools.iter().map(|manifest| manifest.tool.clone()));
        access.provide(tools.clone(), gate.provider()).unwrap();
        // It has had its share, also where it takes them back.
        let offered: Vec<_> = tools.into_iter().map(|manifest| manifest.tool).collect();
        access.withdraw(&offered).unwrap();
        assert!(access.provide(vec![manifest("t.more")], gate.provider()).is_err());
        access.close().unwrap();
    }
    assert_eq!(tools_in_all(&looks), own + TOOLS);
    let next = Runtime::connect(&home).unwrap();
    assert!(next.provide(vec![manifest("t.more")], gate.provider()).is_err());
    // As many tokens as fit, the newest: each names as many tools as a token can.
    let granted: Vec<&str> = names.iter().take(256).map(ToolId::as_str).collect();
    let mut token = None;
    for _ in 0..290 {
        token = Some(holder.issue(Grant::to("a").tools(granted.iter().copied())).unwrap());
    }
    let view = looks.view().unwrap();
    assert_eq!((view.tools.len(), view.tokens_in_all), (own + TOOLS, 290));
    assert_eq!(view.tokens[0].id, token.unwrap());
    assert!(view.tokens.len() > 200 && view.tokens.len() < 290);
    assert_eq!(looks.manifests(Whose::All).unwrap().len(), own + TOOLS);
    looks.forget(&names[..1]).unwrap();
    next.provide(vec![manifest("t.more")], gate.provider()).unwrap();
    assert_eq!(tools_in_all(&looks), own + TOOLS);
}

/// Tools of the same alias can't be.
fn contrary(count: usize, names: &str) -> Vec<Manifest> {
    let mut tools = many(count, names, "");
    tools.iter_mut().for_each(|tool| tool.aliases.push(self::tool("t.alias")));
    tools
}

#[test]
fn an_offer_that_fails_changes_nothing() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let (first, second) = (Gate::opened(), Gate::opened());
    let called = |access: &Runtime| {
        let caller = caller(access, &["t.a"]);
        assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
        (first.came().len(), second.came().len())
    };
    attached.provide(vec![manifest("t.a")], first.provider()).unwrap();
    // Too many, refused by the holder, and too many again.
    let mut tools = many(PINS, "t.x", "");
    tools.push(manifest("t.a"));
    assert!(attached.provide(tools, second.provider()).is_err());
    for tools in ["t.y", "t.z"] {
        let mut tools = contrary(PINS - 1, tools);
        tools.push(manifest("t.a").described("t", "another"));
        assert!(attached.provide(tools.clone(), second.provider()).is_err());
        tools.last_mut().unwrap().description = Box::from("");
        tools.last_mut().unwrap().title = manifest("t.a").title;
        assert!(attached.provide(tools, second.provider()).is_err());
    }
    assert_eq!(called(&holder), (1, 0));
    // Those that were refused take nobody's place.
    attached.provide(many(PINS - 1, "t.n", ""), second.provider()).unwrap();
    assert!(attached.provide(vec![manifest("t.more")], second.provider()).is_err());
    assert_eq!(called(&holder), (2, 0));
    // The next holder is offered what this one was.
    holder.close().unwrap();
    let next = Runtime::open(&home).unwrap();
    until("it is offered", || next.view().unwrap().tool(&tool("t.a")).unwrap().provided);
    assert_eq!(called(&next), (3, 0));
}

#[test]
fn another_home_in_the_place_of_the_one_in_use() {
    let (dir, home) = home();
    let (_other_dir, other) = crate::attach::world::home();
    let (moved, away) = (dir.path().join("moved"), dir.path().join("away"));
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::command(&home).unwrap();
    let caller = caller(&attached, &["echo"]);
    let id = attached.id();
    let refuses = || {
        assert!(matches!(attached.view(), Err(Error::OtherHome(_))));
        assert!(matches!(echo(&caller), Err(Error::OtherHome(_))));
        assert!(matches!(attached.issue(Grant::to("a")), Err(Error::OtherHome(_))));
    };
    holder.close().unwrap();
    fs::rename(&home, &moved).unwrap();
    fs::rename(&other, &home).unwrap();
    let before = records(&home).len();
    refuses();
    assert_eq!(records(&home).len(), before, "nothing was written to the other");
    // Nor is the process connected to whoever serves the other.
    let stranger = Runtime::open(&home).unwrap();
    refuses();
    let view = stranger.view().unwrap();
    assert_eq!((view.tokens_in_all, view.sessions_in_all), (0, 0));
    stranger.close().unwrap();
    fs::rename(&home, &away).unwrap();
    fs::rename(&moved, &home).unwrap();
    assert_eq!(attached.id(), id);
    assert_eq!(echo(&caller).unwrap().reason(), None);
}

/// Those that have nothing at the holder and ask nothing make room for the next, the one that was
/// silent longest first; who has a session keeps its place.
#[test]
fn idle_connection_makes_room_for_a_new_one() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let keeps = caller(&attached, &["echo"]);
    let asks = Runtime::connect(&home).unwrap();
    let mut idle: Vec<UnixStream> = (0..254).map(|_| greeted(&home)).collect();
    assert_eq!(holder.view().unwrap().counts.attached, 256);
    // It has been silent longest, and is not any more.
    assert!(asks.view().is_ok());
    let number = keeps.number();
    let newest = greeted(&home);
    assert!(is_dropped(idle.remove(0)));
    until("it has left", || holder.view().unwrap().counts.attached == 256);
    assert_eq!(asks.view().unwrap().counts.connections, 257, "the first has not come again");
    assert_eq!(echo(&keeps).unwrap().reason(), None);
    assert_eq!(keeps.number(), number);
    // Who was sent away comes again by itself.
    let more: Vec<UnixStream> = (0..256).map(|_| greeted(&home)).collect();
    assert!(asks.view().is_ok());
    assert_eq!(echo(&keeps).unwrap().reason(), None);
    assert_eq!(keeps.number(), number);
    drop((idle, newest, more));
}

/// Waits until it is given up, and panics then where it is told.
struct Panics;

impl Provider for Panics {
    fn run(&self, call: HostCall) -> HostRan {
        let (ends, ended) = channel::<()>();
        call.cancel.on_cancel(move || {
            drop(ends);
            panic!("a hook that panics");
        });
        ended.recv_timeout(Duration::from_secs(60)).unwrap_err();
        let result = Ok(MapBuilder::new().finish());
        HostRan::new(result, TxOutcome::Unknown, Amounts::ZERO)
    }
}

#[test]
fn a_hook_that_panics_keeps_nobodys_place() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    holder.provide(vec![manifest("t.p")], Arc::new(Panics)).unwrap();
    let running = |access: &Runtime| access.view().unwrap().running_in_all == 1;
    for _ in 0..3 {
        let attached = Runtime::connect(&home).unwrap();
        let caller = caller(&attached, &["t.p"]);
        std::thread::scope(|scope| {
            let out = scope.spawn(|| call(&caller, "t.p", args! {}));
            until("it runs", || running(&holder));
            attached.close().unwrap();
            assert!(matches!(out.join().unwrap(), Err(Error::HolderGone)));
        });
        until("it has left", || {
            let view = holder.view().unwrap();
            (view.counts.attached, view.sessions_in_all, view.running_in_all) == (0, 0, 0)
        });
    }
    let caller = caller(&holder, &["t.p"]);
    let view = Runtime::connect(&home).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| call(&caller, "t.p", args! {}).map(drop));
        until("it runs", || running(&view));
        holder.close().unwrap();
    });
    drop((caller, view));
    Runtime::open(&home).unwrap().close().unwrap();
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// Counts what it runs.
#[derive(Clone, Default)]
struct Counts(Arc<AtomicU64>);

impl Counts {
    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Provider for Counts {
    fn run(&self, _: HostCall) -> HostRan {
        self.0.fetch_add(1, Ordering::SeqCst);
        let result = Ok(MapBuilder::new().finish());
        HostRan::new(result, TxOutcome::Committed, Amounts::ZERO)
    }
}

/// A call that was let through for one definition never runs under another, however the two
/// follow one another.
#[test]
fn a_definition_that_nobody_accepted_never_runs() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let defined = |definition: &str| {
        manifest("t.a").defined_by(definition_hash(Canonical::text(definition).item()))
    };
    let (accepted, other) = (Counts::default(), Counts::default());
    attached.provide(vec![defined("first")], Arc::new(accepted.clone())).unwrap();
    let caller = caller(&holder, &["t.a"]);
    let stop = AtomicBool::new(false);
    let committed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let answer = call(&caller, "t.a", args! {}).unwrap();
                    let ran = u64::from(answer.reason().is_none());
                    committed.fetch_add(ran, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..150 {
            attached.provide(vec![defined("second")], Arc::new(other.clone())).unwrap();
            attached.provide(vec![defined("first")], Arc::new(accepted.clone())).unwrap();
        }
        until("some have run", || accepted.get() > 50);
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!((other.get(), accepted.get()), (0, committed.into_inner()));
}
