//! Tools that attached processes run: offered, called, given up, lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use host_support::end;
use syscap::format::{
    Amounts, Body, Canonical, Dimension, Enforcement, Item, Manifest, MapBuilder, OutcomeFlags,
    Record, Refused, Retry, Seq, TxOutcome, definition_hash,
};
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::verify::Soundness;
use syscap::{CallContext, Runtime, Written};

use crate::attach::world::*;

#[test]
fn a_tool_runs_where_it_was_offered() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let [one, other] = [(); 2].map(|()| Runtime::connect(&home).unwrap());
    let (gate, others) = (Gate::opened(), Gate::opened());
    let offers = one.provide(vec![manifest("t.a"), manifest("t.b")], gate.provider()).unwrap();
    assert!(offers.iter().all(|offer| offer.standing == Standing::Ready));
    let taken = one.provide(vec![manifest("echo")], gate.provider()).unwrap();
    assert_eq!(taken[0].standing, Standing::Taken);
    other.provide(vec![manifest("t.a")], others.provider()).unwrap();

    let caller_of = |access: &Runtime| caller(access, &["t.a", "t.b"]);
    let args = args! { "n": 3_u64 };
    let mut takes_n = manifest("t.n");
    takes_n.extra = syscap::format::Extra::Taken;
    one.provide(vec![takes_n], gate.provider()).unwrap();
    let agent = caller(&holder, &["t.n"]);
    let answer = agent.request("t.n").args(args).context(CallContext::tag(7)).wait().unwrap();
    assert_eq!((answer.reason(), answer.tx_outcome()), (None, TxOutcome::Committed));
    assert_eq!(
        (answer.text().unwrap(), answer.delivered().item().get("n").unwrap().as_uint()),
        ("done", Some(3))
    );
    assert_eq!(outcome(&home, &answer).call.enforcement, Some(Enforcement::Delegated));
    let came = gate.came();
    assert_eq!((came.len(), came[0].2), (1, 7));
    assert_eq!(came[0].0, outcome(&home, &answer).intent);

    // A session's calls go to what its own process offers first.
    for (access, gate, rest) in [(&one, &gate, &others), (&other, &others, &gate)] {
        let before = (gate.came().len(), rest.came().len());
        assert_eq!(call(&caller_of(access), "t.a", args! {}).unwrap().reason(), None);
        assert_eq!((gate.came().len(), rest.came().len()), (before.0 + 1, before.1));
    }
    // What is withdrawn, or whose process has gone, nobody runs.
    let caller = caller_of(&holder);
    one.withdraw(&[tool("t.b")]).unwrap();
    assert_eq!(call(&caller, "t.b", args! {}).unwrap().reason(), Some(Reason::NoProvider));
    one.close().unwrap();
    until("it has left", || {
        let view = holder.view().unwrap();
        !view.tool(&tool("t.n")).unwrap().provided && view.tool(&tool("t.a")).unwrap().provided
    });
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
    other.close().unwrap();
    until("it has left", || !holder.view().unwrap().tool(&tool("t.a")).unwrap().provided);
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), Some(Reason::NoProvider));
}

#[test]
fn a_changed_definition_waits_for_an_operator() {
    let (_dir, home) = home();
    let _holder = Runtime::open(&home).unwrap();
    let [runs, decides] = [(); 2].map(|()| Runtime::connect(&home).unwrap());
    let gate = Gate::opened();
    let defined = |definition: &str| {
        let definition = Some(definition_hash(Canonical::text(definition).item()));
        Manifest { definition, ..manifest("t.a") }
    };
    runs.provide(vec![defined("first")], gate.provider()).unwrap();
    let caller = caller(&decides, &["t.a"]);
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
    let offers = runs.provide(vec![defined("second")], gate.provider()).unwrap();
    assert_eq!(offers[0].standing, Standing::Changed);
    assert_eq!(offers[0].manifest.definition, defined("first").definition);
    assert_eq!(decides.view().unwrap().tool(&tool("t.a")).unwrap().standing, Standing::Changed);
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), Some(Reason::ToolChanged));
    assert_eq!(gate.came().len(), 1);
    decides.accept(&[tool("t.a")]).unwrap();
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
    assert!(matches!(decides.accept(&[tool("t.a")]), Err(Error::NoSuch { .. })));
}

/// How long a call may take, and how long the person whom it asks takes.
const MAY_TAKE: Duration = Duration::from_millis(700);
const ASKED: Duration = Duration::from_millis(1_500);

/// Asks a person by a call of its own.
struct Asks {
    own: OnceLock<Session>,
    others: OnceLock<Session>,
}

impl Provider for Asks {
    fn run(&self, call: HostCall) -> HostRan {
        let name = call.tool.as_str();
        if name == "t.person" {
            thread::sleep(ASKED);
            return HostRan::new(Ok(Canonical::null()), TxOutcome::NoOp, Amounts::ZERO);
        }
        let by = if name == "t.by_another" { &self.others } else { &self.own };
        let within = if name == "t.unsaid" { Vec::new() } else { vec![call.intent] };
        let map = MapBuilder::new().text("tool_id", "t.person");
        let envelope = map.item("args", MapBuilder::new().finish().item()).finish();
        let ((told, answer), context) = (channel(), CallContext { tag: 0, within, unasked: false });
        let tell =
            move |answer: Result<ToolResult, _>| told.send(answer.unwrap().reason()).unwrap();
        let call = by.get().unwrap().envelope(envelope.as_bytes(), Written::Cbor);
        call.context(context).submit(tell);
        assert_eq!(answer.recv().unwrap(), None, "{name}");
        HostRan::new(Ok(Canonical::null()), TxOutcome::Committed, Amounts::ZERO)
    }
}

/// While a call asks a person its time stands still, in its limit and in what it costs, whoever
/// holds the home. That it asks is said by the process that made it, and by no other.
#[test]
fn a_persons_time_is_not_the_tools() {
    let tries = |holds: bool| {
        let (_dir, home) = home();
        let holder = Runtime::open(&home).unwrap();
        let attached = Runtime::connect(&home).unwrap();
        let (runs, other) = if holds { (&holder, &attached) } else { (&attached, &holder) };
        let names = ["t.asks", "t.unsaid", "t.by_another", "t.person"];
        let tools = names.map(|name| {
            let mut manifest = manifest(name);
            let most = if name == "t.person" { 60_000 } else { MAY_TAKE.as_millis() };
            manifest.wall_ms_max = Some(u64::try_from(most).unwrap());
            manifest
        });
        let asks = Arc::new(Asks { own: OnceLock::new(), others: OnceLock::new() });
        runs.provide(tools.to_vec(), Arc::clone(&asks) as Arc<dyn Provider>).unwrap();
        let own = asks.own.get_or_init(|| caller(runs, &names));
        asks.others.get_or_init(|| caller(other, &["t.person"]));
        let answers = thread::scope(|scope| {
            let calls = ["t.unsaid", "t.by_another", "t.asks"];
            let calls = calls.map(|name| scope.spawn(move || call(own, name, args! {}).unwrap()));
            calls.map(|call| call.join().unwrap())
        });
        assert_eq!(
            answers.each_ref().map(|answer| answer.reason()),
            [Some(Reason::TimedOut), Some(Reason::TimedOut), None],
            "{holds}"
        );
        let wall = outcome(&home, &answers[2]).call.used.get(Dimension::WallUs);
        assert!(Duration::from_micros(wall) < MAY_TAKE, "{wall}");
        until("all have ended", || holder.view().unwrap().running.is_empty());
        drop(asks);
        attached.close().unwrap();
        end(&holder, &home);
    };
    thread::scope(|scope| [true, false].map(|holds| drop(scope.spawn(move || tries(holds)))));
}

/// The process that runs a call dies: what it did is not known, it is charged in full, and the
/// holder serves on.
#[test]
fn a_provider_that_vanishes() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let gate = Gate::new(WhenCancelled::GoesOn);
    let mut costly = manifest("t.wait");
    costly.hold = costly.hold.with(Dimension::EgressBytes, 1_000);
    attached.provide(vec![costly], gate.provider()).unwrap();
    let caller = caller(&holder, &["t.wait", "echo"]);
    let answer = std::thread::scope(|scope| {
        let out = scope.spawn(|| call(&caller, "t.wait", args! {}).unwrap());
        until("it runs", || !gate.came().is_empty());
        attached.close().unwrap();
        out.join().unwrap()
    });
    assert_eq!(
        (answer.reason(), answer.tx_outcome()),
        (Some(Reason::ProviderGone), TxOutcome::Unknown)
    );
    let outcome = outcome(&home, &answer);
    assert_eq!((outcome.reason, outcome.tx), (answer.reason(), answer.tx_outcome()));
    let view = holder.view().unwrap();
    let standing = view.token(caller.token()).unwrap();
    assert_eq!(standing.held, Amounts::ZERO);
    assert_eq!(standing.used.get(Dimension::EgressBytes), 1_000);
    assert_eq!(view.counts.failed, 1);
    assert_eq!(echo(&caller).unwrap().reason(), None);
    // Its own process is told that nobody waits.
    until("it is told", || gate.cancelled() == [outcome.intent]);
    gate.open();
    end(&holder, &home);
}

#[test]
fn a_provider_that_hangs_is_given_up() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let gate = Gate::new(WhenCancelled::GoesOn);
    let mut short = manifest("t.wait");
    short.wall_ms_max = Some(100);
    attached.provide(vec![short], gate.provider()).unwrap();
    let caller = caller(&holder, &["t.wait", "echo"]);
    let answer = call(&caller, "t.wait", args! {}).unwrap();
    assert_eq!(
        (answer.reason(), answer.tx_outcome()),
        (Some(Reason::TimedOut), TxOutcome::Unknown)
    );
    let outcome = outcome(&home, &answer);
    assert!(outcome.flags.has(OutcomeFlags::RUNNING));
    until("it is told", || gate.cancelled() == [outcome.intent]);
    assert_eq!(echo(&caller).unwrap().reason(), None);
    // It comes back late, and that is on record.
    gate.open();
    until("it is back", || {
        let late = |body: &Body| matches!(body, Body::Late(late) if late.intent == outcome.intent);
        records(&home).iter().any(|record| late(&record.body))
    });
    drop(attached);
    end(&holder, &home);
}

/// The thread that brought such a call is with its run: another answers it, as the thread that
/// brought the next calls does, and what comes late goes on record all the same.
#[test]
fn an_attached_call_that_hangs_is_given_up() {
    const CALLS: usize = 6;
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let [attached, other] = [(); 2].map(|()| Runtime::connect(&home).unwrap());
    let gate = Gate::new(WhenCancelled::GoesOn);
    let mut short = manifest("t.wait");
    short.wall_ms_max = Some(100);
    attached.provide(vec![short], gate.provider()).unwrap();
    let caller = Arc::new(caller(&other, &["t.wait", "echo"]));
    let (told, answers) = std::sync::mpsc::channel();
    for _ in 0..CALLS {
        let (caller, told) = (Arc::clone(&caller), told.clone());
        std::thread::spawn(move || {
            told.send(call(&caller, "t.wait", args! {}).unwrap()).unwrap();
        });
    }
    let answers = (0..CALLS).map(|_| answers.recv_timeout(Duration::from_secs(20)).unwrap());
    let mut given_up: Vec<Seq> = answers
        .map(|answer| {
            let came = (answer.reason(), answer.tx_outcome());
            assert_eq!(came, (Some(Reason::TimedOut), TxOutcome::Unknown));
            let outcome = outcome(&home, &answer);
            assert!(outcome.flags.has(OutcomeFlags::RUNNING));
            outcome.intent
        })
        .collect();
    given_up.sort();
    let sorted = |mut all: Vec<Seq>| {
        all.sort();
        all
    };
    until("all are told", || sorted(gate.cancelled()) == given_up);
    assert_eq!(echo(&caller).unwrap().reason(), None);
    gate.open();
    let late = |record: Record| match record.body {
        Body::Late(late) => Some(late.intent),
        _ => None,
    };
    until("all are back", || {
        sorted(records(&home).into_iter().filter_map(late).collect()) == given_up
    });
    // They hold nothing any more, and nobody is in the way of the home's end.
    let view = holder.view().unwrap();
    let standing = view.token(caller.token()).unwrap();
    assert_eq!(standing.held, Amounts::ZERO);
    assert_eq!(echo(&caller).unwrap().reason(), None);
    drop((attached, other));
    end(&holder, &home);
}

/// Does what no provider should.
struct Bad;

impl Provider for Bad {
    fn run(&self, call: HostCall) -> HostRan {
        let ended = |result| HostRan::new(result, TxOutcome::Committed, Amounts::ZERO);
        match call.tool.as_str() {
            "bad.panics" => panic!("as it is meant to"),
            "bad.large" => ended(Ok(Canonical::text(&"x".repeat(call.result_bytes_max + 1)))),
            // No frame can hold it.
            "bad.huge" => ended(Ok(Canonical::text(&"x".repeat(17 << 20)))),
            // Its own word: it is on record, and what it brought is delivered.
            "bad.failed" => HostRan { failed: true, ..ended(Ok(Canonical::text("no"))) },
            "bad.never" => HostRan {
                failed: true,
                retry: Some(Retry::Never),
                ..ended(Ok(Canonical::text("no")))
            },
            "bad.errs" => HostRan { failed: true, ..ended(Err(Refused::new(Reason::NotFound))) },
            "bad.reason" => ended(Err(Refused::new(Reason::Revoked))),
            _ => {
                let used = Amounts::ZERO.with(Dimension::EgressBytes, u64::MAX);
                HostRan { used, ..ended(Ok(Canonical::null())) }
            }
        }
    }
}

#[test]
fn a_bad_provider_harms_only_its_calls() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let names = [
        "bad.panics",
        "bad.large",
        "bad.reason",
        "bad.uses",
        "bad.huge",
        "bad.failed",
        "bad.errs",
        "bad.never",
    ];
    let tools = names.map(|name| {
        let mut manifest = manifest(name);
        manifest.hold = manifest.hold.with(Dimension::EgressBytes, 5);
        manifest
    });
    attached.provide(tools.to_vec(), Arc::new(Bad)).unwrap();
    let caller = caller(&holder, &names);
    let came_to = names.map(|name| {
        let answer = call(&caller, name, args! {}).unwrap();
        assert_eq!(outcome(&home, &answer).reason, answer.reason());
        if answer.reason() == Some(Reason::ToolFailed) {
            assert_eq!(answer.output().and_then(Item::as_text), Some("no"));
            let stricter = if name == "bad.never" { Retry::Never } else { Retry::Fix };
            assert_eq!(answer.retry(), Some(stricter), "{name}");
        }
        (answer.reason(), answer.tx_outcome())
    });
    assert_eq!(came_to[0], (Some(Reason::Failed), TxOutcome::Unknown));
    assert_eq!(came_to[1], (Some(Reason::ResultTooLarge), TxOutcome::Committed));
    assert_ne!(came_to[2].0, Some(Reason::Revoked));
    assert!(came_to[2].0.is_some());
    assert_eq!(came_to[3], (None, TxOutcome::Committed));
    assert_eq!(came_to[4], came_to[1]);
    assert_eq!(came_to[5], (Some(Reason::ToolFailed), TxOutcome::Committed));
    assert_eq!(came_to[6], (Some(Reason::NotFound), TxOutcome::Committed));
    assert_eq!(came_to[7], came_to[5]);
    let counts = holder.view().unwrap().counts;
    assert_eq!((counts.allowed, counts.failed), (1, 7));
    let view = holder.view().unwrap();
    assert!(view.token(caller.token()).unwrap().used.get(Dimension::EgressBytes) <= 5 * 5);
    assert!(attached.view().is_ok(), "the connection lasts");
    drop(attached);
    end(&holder, &home);
}

/// More requests than a connection may have in flight are turned away, and nothing of them is
/// done; the others are answered, and another connection notices nothing.
#[test]
fn requests_in_flight_are_bounded() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let [greedy, modest] = [(); 2].map(|()| Runtime::connect(&home).unwrap());
    let gate = Gate::new(WhenCancelled::Ends);
    holder.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let (many, few) = (caller(&greedy, &["t.wait"]), caller(&modest, &["echo"]));
    let (done, overloaded) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..600 {
            scope.spawn(|| match call(&many, "t.wait", args! {}) {
                Ok(answer) => {
                    assert_eq!(answer.reason(), None);
                    done.fetch_add(1, Ordering::SeqCst);
                }
                Err(Error::Refused(refused)) => {
                    assert_eq!(refused.reason(), Reason::Overloaded);
                    let said = (refused.got_text(), refused.allowed_text());
                    assert_eq!(said, (Some("256"), Some("at most 256")));
                    overloaded.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => panic!("{error}"),
            });
        }
        until("as many as may be run", || gate.came().len() == 256);
        until("the others are turned away", || overloaded.load(Ordering::SeqCst) == 344);
        assert_eq!(echo(&few).unwrap().reason(), None);
        gate.open();
    });
    assert_eq!((done.into_inner(), overloaded.into_inner()), (256, 344));
    assert_eq!(gate.came().len(), 256);
    assert_eq!(call(&many, "t.wait", args! {}).unwrap().reason(), None);
}

/// A holder that closes waits for what runs, but not for ever.
#[test]
fn a_run_that_never_ends_keeps_no_holder() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let gate = Gate::new(WhenCancelled::GoesOn);
    attached.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let caller = caller(&attached, &["t.wait"]);
    std::thread::scope(|scope| {
        let out = scope.spawn(|| call(&caller, "t.wait", args! {}));
        until("it runs", || !gate.came().is_empty());
        let since = std::time::Instant::now();
        holder.close().unwrap();
        assert!(since.elapsed() < Duration::from_secs(20));
        assert!(matches!(out.join().unwrap(), Err(Error::HolderGone)));
        gate.open();
    });
    // The outcome is on record: the next holder has nothing to recover.
    let intent = gate.came()[0].0;
    let of_it = |body: &Body| match body {
        Body::Outcome(outcome) if outcome.intent == intent => outcome.reason,
        _ => None,
    };
    let reasons: Vec<Reason> =
        records(&home).iter().filter_map(|record| of_it(&record.body)).collect();
    assert_eq!(reasons, [Reason::ProviderGone]);
    drop((caller, attached));
    Runtime::open(&home).unwrap().close().unwrap();
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// A holder that closes waits for the calls that run, its own and others', and then gives them
/// up.
#[test]
fn a_holder_that_closes_waits_for_calls() {
    let cases = [WhenCancelled::Ends, WhenCancelled::GoesOn]
        .into_iter()
        .flat_map(|waits| [true, false].map(|own| (waits, own)));
    for (waits, own) in cases {
        let (_dir, home) = home();
        let holder = Runtime::open(&home).unwrap();
        let attached = Runtime::connect(&home).unwrap();
        let gate = Gate::new(waits);
        holder.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
        let caller = caller(if own { &holder } else { &attached }, &["t.wait"]);
        let answer = std::thread::scope(|scope| {
            let out = scope.spawn(|| call(&caller, "t.wait", args! {}));
            until("it runs", || !gate.came().is_empty());
            if waits == WhenCancelled::GoesOn {
                // It ends by itself, while the holder waits.
                let gate = gate.clone();
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(500));
                    gate.open();
                });
            }
            holder.close().unwrap();
            out.join().unwrap().unwrap()
        });
        let ended = (waits == WhenCancelled::Ends).then_some(Reason::Cancelled);
        assert_eq!(answer.reason(), ended);
        assert_eq!(outcome(&home, &answer).reason, ended);
        assert_eq!(gate.cancelled().len(), usize::from(ended.is_some()), "own: {own}");
        drop((caller, attached));
        assert_eq!(verdict(&home), Soundness::Sound);
    }
}
