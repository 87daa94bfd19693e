//! Whatever comes in whatever order: nothing is overspent, nothing is answered unrecorded, and
//! the log replays to the same state, byte for byte.

mod oddities;

use kernel_support::{
    FromStore,
    fault::{FaultPoint, FaultStore},
    sim::{self, Ending, Policed, Sim, links::PLACES, rule::Rule, tokens::rows},
};
use std::collections::BTreeMap;
use syscap_audit::memory::MemoryStore;
use syscap_format::{
    budget::{Amounts, Dimension},
    cbor::{Canonical, Item, Profile},
    control::{ControlBody as _, FreezeChange, Revocation, Role},
    decision::Verdict as PolicySays,
    hash::args_hash,
    id::Seq,
    provenance::Source,
    reason::Reason,
    record::{Answer, ApprovalBody, Body, HomeLimits},
    token::{Grant, Grants},
};
use syscap_kernel::{
    kernel::{Event, Kernel},
    store::{Room, vault_entry},
};
use syscap_verify::{Extent, Options as VerifyOptions, Verdict, verify};

use oddities::oddities;
use proptest::{prelude::*, strategy::ValueTree as _};

#[derive(Clone, Debug)]
enum Step {
    Issue { agent: u8, calls: u64, units: u64, life_ms: u64 },
    Derive { parent: usize, calls: u64, units: u64, life_ms: u64 },
    Renew { old: usize, calls: u64, units: u64 },
    Open { agent: u8, token: usize },
    Spend { session: usize, units: u64, tries: u64, lost: bool, key: Option<u8> },
    Trim { session: usize, units: u64, lie: &'static str, named: Option<usize> },
    Look { session: usize },
    Propose { session: usize, writer: Source, change: u8, base: Option<usize> },
    Rule { number: u8, shadow: Option<u8> },
    Refer { session: usize, record: u64 },
    Walk { session: usize, place: usize, record: Option<u64> },
    Link { from: usize, to: usize },
    Found { lookup: usize, ending: Ending },
    Bad { session: usize, form: u8 },
    Close { session: usize },
    Revoke { token: usize, how: u8 },
    Cancel { call: usize, session: Option<usize> },
    Freeze(bool),
    Charge { session: usize, tokens: u64 },
    Give { agent: u8, added: u64 },
    Answer { ask: usize, said: u8, by: Role },
    End { job: usize, ending: Ending },
    Late,
    Commit,
    Room(bool),
    Tick,
    Time { wall: i64, boot: u64 },
    Crash,
    Shutdown,
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        6 => Just(Ending::Runs),
        1 => Just(Ending::Panics),
        1 => Just(Ending::TimesOut),
        1 => Just(Ending::Dropped),
    ]
}

/// Mostly who may answer.
fn answerer() -> impl Strategy<Value = Role> {
    prop_oneof![9 => Just(Role::Approver), 1 => Just(Role::Operator)]
}

/// What `trim` is told to do wrong.
fn lie() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(""), 1 => Just(", \"greedy\": true"), 2 => Just(", \"long\": true")]
}

fn writer() -> impl Strategy<Value = Source> {
    prop_oneof![2 => Just(Source::Agent), 2 => proptest::sample::select(Source::ALL)]
}

/// Changes of a state, most of them sound for one writer or another.
const CHANGES: [&str; 12] = [
    r#"{"goal.aim": 1}"#,
    r#"{"goal.aim": 7}"#,
    r#"{"goal.aim": "high", "goal.b": [1, {"c": 2.5}]}"#,
    r#"{"goal.aim": null, "goal.b": 3}"#,
    r#"{"goal.none": null}"#,
    r#"{"fact.seen": true, "fact.b": {"x": 1}}"#,
    r#"{"fact.seen": null}"#,
    r#"{"fact.seen": 2}"#,
    r#"{"goal.aim": 2, "fact.seen": 1}"#,
    r#"{"policy.x": 1}"#,
    r#"{"goal.Bad": 1}"#,
    "[]",
];

fn step() -> impl Strategy<Value = Step> {
    let small = 0_usize..6;
    prop_oneof![
        3 => (0_u8..3, 0_u64..40, 0_u64..60, 1_u64..100_000).prop_map(
            |(agent, calls, units, life_ms)| Step::Issue { agent, calls, units, life_ms }
        ),
        6 => (0_usize..3, 0_u64..40, 0_u64..60, 1_u64..80_000).prop_map(
            |(parent, calls, units, life_ms)| Step::Derive { parent, calls, units, life_ms }
        ),
        4 => (0_usize..6, 10_u64..40, 10_u64..60)
            .prop_map(|(old, calls, units)| Step::Renew { old, calls, units }),
        8 => (0_u8..3, 0_usize..10).prop_map(|(agent, token)| Step::Open { agent, token }),
        20 => (
            small.clone(),
            0_u64..30,
            0_u64..40,
            proptest::bool::weighted(0.15),
            proptest::option::weighted(0.7, 0_u8..2),
        )
            .prop_map(|(session, units, tries, lost, key)| {
                Step::Spend { session, units, tries, lost, key }
            }),
        12 => (small.clone(), 0_u64..24, lie(), proptest::option::of(0_usize..4)).prop_map(
            |(session, units, lie, named)| Step::Trim { session, units, lie, named }
        ),
        // One that is asked about, as often alike as it takes until somebody has answered.
        4 => (0_usize..2).prop_map(|session| {
            Step::Spend { session, units: 21, tries: 21, lost: false, key: None }
        }),
        6 => small.clone().prop_map(|session| Step::Look { session }),
        12 => (small.clone(), writer(), 0_u8..12, proptest::option::weighted(0.3, 0_usize..8))
            .prop_map(|(session, writer, change, base)| {
                Step::Propose { session, writer, change, base }
            }),
        2 => (Rule::ALL, proptest::option::of(Rule::ALL))
            .prop_map(|(number, shadow)| Step::Rule { number, shadow }),
        3 => (small.clone(), 0_u64..80)
            .prop_map(|(session, record)| Step::Refer { session, record }),
        4 => (small.clone(), 0_usize..8, proptest::option::weighted(0.3, 0_u64..80))
            .prop_map(|(session, place, record)| Step::Walk { session, place, record }),
        2 => (0_usize..8, 0_usize..8).prop_map(|(from, to)| Step::Link { from, to }),
        5 => (small.clone(), ending()).prop_map(|(lookup, ending)| Step::Found { lookup, ending }),
        6 => (small.clone(), 0_u8..8).prop_map(|(session, form)| Step::Bad { session, form }),
        1 => small.clone().prop_map(|session| Step::Close { session }),
        1 => (small.clone(), 0_u8..80).prop_map(|(token, how)| Step::Revoke { token, how }),
        1 => (small.clone(), proptest::option::of(small.clone()))
            .prop_map(|(call, session)| Step::Cancel { call, session }),
        1 => proptest::bool::weighted(0.2).prop_map(Step::Freeze),
        1 => (small.clone(), 0_u64..600)
            .prop_map(|(session, tokens)| Step::Charge { session, tokens }),
        1 => (0_u8..3, 20_u64..400).prop_map(|(agent, added)| Step::Give { agent, added }),
        4 => (small.clone(), 0_u8..12, answerer())
            .prop_map(|(ask, said, by)| Step::Answer { ask, said, by }),
        12 => (small, ending()).prop_map(|(job, ending)| Step::End { job, ending }),
        2 => Just(Step::Late),
        10 => Just(Step::Commit),
        1 => proptest::bool::weighted(0.8).prop_map(Step::Room),
        1 => Just(Step::Tick),
        3 => (-1_000_000_i64..1_000_000, 0_u64..90_000)
            .prop_map(|(wall, boot)| Step::Time { wall, boot }),
        1 => Just(Step::Crash),
        1 => Just(Step::Shutdown),
    ]
}

fn apply(sim: &mut Sim, step: &Step) {
    let pick =
        |sim: &Sim, place: usize| sim.sessions.get(place % sim.sessions.len().max(1)).copied();
    match step {
        Step::Issue { agent, calls, units, life_ms } => {
            let agent = format!("a{agent}");
            match life_ms % 5 {
                0 => sim.lease(&agent, *calls, *units, *life_ms / 2 + 1),
                _ => sim.issue(&agent, *calls, *units, *life_ms),
            };
        }
        Step::Derive { parent, calls, units, life_ms } => {
            // Of the last ones: so that there are children of children.
            if let Some((parent, _)) = sim.tokens.iter().rev().nth(*parent).copied() {
                sim.derive(parent, *calls, *units, *life_ms);
            }
        }
        Step::Renew { old, calls, units } => {
            if let Some((old, _)) = sim.tokens.iter().rev().nth(*old).copied() {
                sim.renew(old, *calls, *units);
            }
        }
        Step::Open { agent, token } => {
            if let Some((token, _)) = sim.tokens.get(token % sim.tokens.len().max(1)).copied() {
                sim.open(&format!("a{agent}"), token);
            }
        }
        Step::Spend { session, units, tries, lost, key } => {
            if let Some(session) = pick(sim, *session) {
                let keyed =
                    key.map_or(String::new(), |key| format!(", \"idempotency_key\": \"k{key}\""));
                // Most calls with a key are those that it had before.
                let again = key.as_ref().filter(|_| tries % 4 > 0).map(|key| u64::from(*key) + 12);
                let (units, tries) = again.map_or((*units, *tries), |units| (units, units));
                let lost = *lost && again.is_none();
                let lost = if lost { ", \"lost\": true" } else { "" };
                let credits = tries % 5;
                let costs = format!(", \"credits\": {credits}");
                let args = format!("{{\"units\": {units}, \"tries\": {tries}{lost}{costs}}}");
                sim.submit_json(
                    session,
                    &format!("{{\"tool_id\": \"spend\", \"args\": {args}{keyed}}}"),
                );
            }
        }
        Step::Trim { session, units, lie, named } => {
            if let Some(session) = pick(sim, *session) {
                let named = named.and_then(|n| sim.snapshots.get(n % sim.snapshots.len().max(1)));
                let named =
                    named.map_or(String::new(), |id| format!(", \"state_snapshot_id\": \"{id}\""));
                let args = format!("{{\"units\": {units}{lie}}}");
                sim.submit_json(
                    session,
                    &format!("{{\"tool_id\": \"trim\", \"args\": {args}{named}}}"),
                );
            }
        }
        Step::Propose { session, writer, change, base } => {
            if let Some(session) = pick(sim, *session) {
                let base = base.and_then(|n| sim.snapshots.get(n % sim.snapshots.len().max(1)));
                let change = CHANGES[usize::from(*change) % CHANGES.len()];
                sim.propose_from(session, *writer, base.copied(), change);
            }
        }
        Step::Rule { number, shadow } => {
            sim.rule(*number, *shadow);
        }
        Step::Look { session } => {
            if let Some(session) = pick(sim, *session) {
                sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": [1, "x"]}}"#);
            }
        }
        Step::Refer { session, record } => {
            if let Some(session) = pick(sim, *session) {
                let at = format!("{{\"$ref\": {{\"record\": {record}, \"path\": [\"saw\"]}}}}");
                let args = format!("{{\"at\": {at}}}");
                sim.submit_json(session, &format!("{{\"tool_id\": \"look\", \"args\": {args}}}"));
            }
        }
        Step::Walk { session, place, record } => {
            if let Some(session) = pick(sim, *session) {
                let note = record.map_or(String::from("1"), |record| {
                    format!("{{\"$ref\": {{\"record\": {record}, \"path\": []}}}}")
                });
                let args = format!("{{\"at\": \"{}\", \"note\": {note}}}", PLACES[*place]);
                sim.submit_json(session, &format!("{{\"tool_id\": \"open\", \"args\": {args}}}"));
            }
        }
        Step::Link { from, to } => {
            let (from, to) = (PLACES[*from].to_owned(), PLACES[*to].to_owned());
            sim.world.lock().unwrap().links.insert(from, to);
        }
        Step::Found { lookup, ending } => sim.end_lookup(*lookup, *ending),
        Step::Bad { session, form } => {
            if let Some(session) = pick(sim, *session) {
                let bad = [
                    "",
                    "{",
                    r#"{"tool_id": "look", "tool_id": "look", "args": {}}"#,
                    r#"{"tool_id": "nothing", "args": {}}"#,
                    r#"{"tool_id": "look", "args": {"at": 1, "bcc": 2}}"#,
                    r#"{"tool_id": "look", "args": {"at": 1}, "agent_id": "other"}"#,
                    r#"{"tool_id": "look", "args": {"at": 1}, "v": 2}"#,
                    r#"{"tool_id": "spend", "args": {"units": -1}}"#,
                ];
                sim.submit_json(session, bad[usize::from(*form) % bad.len()]);
            }
        }
        Step::Close { session } => {
            if let Some(session) = pick(sim, *session) {
                let ticket = sim.ticket();
                sim.event(Event::CloseSession(ticket, session));
            }
        }
        Step::Revoke { token, how } => {
            if let Some((token, _)) = sim.tokens.get(token % sim.tokens.len().max(1)).copied() {
                let holder = sim.kernel.token(&token).and_then(|view| view.body.holder);
                let revocation = match (how, holder) {
                    (0..=11, _) => Revocation::children(token),
                    (12 | 13, _) => Revocation::epoch(sim.kernel.epoch() + 1),
                    (14, Some(holder)) => Revocation::key(holder),
                    (15, _) => return sim.list(token),
                    _ => Revocation::subtree(token),
                };
                sim.end(&revocation);
            }
        }
        Step::Cancel { call, session } => {
            let running: Vec<_> = sim.kernel.running().map(|(intent, ..)| intent).collect();
            let intent = running.get(call % running.len().max(1)).copied();
            let intent = intent.unwrap_or(Seq::new(*call as u64));
            match session.and_then(|session| pick(sim, session)) {
                Some(session) => sim.cancel_by(session, intent),
                None => sim.cancel(intent),
            };
        }
        Step::Freeze(on) => {
            sim.freeze(if *on { FreezeChange::Freeze } else { FreezeChange::Thaw });
        }
        Step::Charge { session, tokens } => {
            if let Some(session) = pick(sim, *session) {
                let amounts = Amounts::ZERO.with(Dimension::LlmTokens, *tokens);
                let ticket = sim.ticket();
                sim.event(Event::Charge(ticket, session, amounts));
            }
        }
        Step::Give { agent, added } => {
            sim.give(&format!("a{agent}"), *added);
        }
        Step::Answer { ask, said, by } => {
            let waiting = sim.kernel.asks().map(|found| (found.leaf, found.tool));
            let sets = sim.kernel.sets().map(|found| (found.leaf, found.tool));
            let all: Vec<_> = waiting.chain(sets).collect();
            if let Some((leaf, tool)) = all.get(ask % all.len().max(1)) {
                let until = Some(sim.kernel.now().plus(20_000));
                let grant = Grant::new().with("row", rows(0, 2));
                let rows = Grants::new().with(tool.clone(), grant);
                let (answer, terms) = match said {
                    0 => (Answer::Deny, (None, None, None)),
                    1 | 2 => (Answer::Once, (None, None, None)),
                    3 => (Answer::Set, (Some(2), None, None)),
                    4 => (Answer::Set, (Some(3), None, until)),
                    5 => (Answer::Set, (Some(0), None, until)),
                    6 => (Answer::Set, (Some(0), Some(rows), until)),
                    _ => (Answer::Set, (Some(4), Some(rows), until)),
                };
                sim.answer_set(*leaf, answer, terms, *by);
            }
        }
        Step::End { job, ending } => sim.end_job(*job, *ending),
        Step::Late => {
            if let Some(ran) = sim.late.pop() {
                sim.event(Event::Ran(ran, syscap_kernel::kernel::Measured::default()));
            }
        }
        Step::Commit => sim.commit(),
        Step::Room(enough) => {
            sim.event(Event::Room(if *enough { Room::Enough } else { Room::Reserve }));
        }
        Step::Tick => sim.event(Event::Tick),
        Step::Time { wall, boot } => {
            sim.wall = sim.wall.saturating_add_signed(*wall);
            sim.boottime += boot;
        }
        Step::Crash => {
            sim.crash().unwrap();
            sim.boot();
        }
        Step::Shutdown => {
            let ticket = sim.ticket();
            sim.event(Event::Shutdown(ticket));
            sim.commit();
            sim.crash().unwrap();
            sim.boot();
        }
    }
}

/// The verifier, which shares nothing with `apply`, finds nothing wrong with the log.
fn verifies(sim: &mut Sim) {
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
    assert!(matches!(report.verdict(), Verdict::Sound | Verdict::Incomplete));
}

/// What was opened is what its record names: the path that the vault keeps, and it commits to.
fn opened_as_recorded(sim: &mut Sim) {
    let opened = sim.world.lock().unwrap().opened.clone();
    let intents: BTreeMap<_, _> = sim::records(sim)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Intent(intent) => Some((record.seq, intent.call)),
            _ => None,
        })
        .collect();
    for (intent, path) in &opened {
        let call = intents.get(intent).expect("on record");
        let entry = vault_entry(&mut sim.store, *intent, *intent).unwrap();
        let args = Canonical::check(entry.args.unwrap(), Profile::DATA).unwrap();
        let (tool, manifest) = (call.tool_id.as_ref().unwrap(), call.manifest.unwrap());
        let hash = args_hash(&entry.salts.unwrap().args, tool, &manifest, args.item());
        assert_eq!(call.args_hash, Some(hash));
        assert_eq!(args.item().get("at").and_then(Item::as_text), Some(path.as_str()));
    }
}

/// What is known of every agent's facts.
fn known(kernel: &Kernel) -> Vec<String> {
    kernel.states().map(|state| format!("{state:?}")).collect()
}

/// A home that a rule governs, with two agents that have something to spend.
fn ruled(point: FaultPoint) -> Sim {
    let store = FaultStore::new(MemoryStore::new(), point);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    sim.world.lock().unwrap().probes = true;
    for agent in ["a0", "a1"] {
        let token = sim.issue(agent, 60, 200, 10_000_000);
        sim.open(agent, token);
    }
    sim.commit();
    sim
}

/// The log on disk makes the state that the kernel has, byte for byte.
fn replays(sim: &mut Sim) {
    // A commit may lead to a further record: a call that was revoked before its run.
    while sim.kernel.wants_commit() {
        sim.commit();
    }
    sim.commit();
    let live = sim.kernel.state_image();
    let replayed = sim.reopened().unwrap();
    assert_eq!(String::from_utf8(replayed.state_image()), String::from_utf8(live));
    assert_eq!(known(&replayed), known(&sim.kernel));
}

fn cases() -> u32 {
    if std::env::var_os("SYSCAP_LONG").is_some() { 20_000 } else { 600 }
}

/// The random histories reach what there is to reach.
#[test]
fn histories_have_everything_in_them() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = proptest::collection::vec(step(), 60..120);
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..500 {
        let mut sim = ruled(FaultPoint::Nowhere);
        steps.new_tree(&mut runner).unwrap().current().iter().for_each(|s| apply(&mut sim, s));
        sim.commit();
        let log = sim::records(&mut sim);
        for (name, count) in oddities(&log) {
            *seen.entry(name).or_default() += count;
        }
        for record in &log {
            let paid = match &record.body {
                Body::Intent(intent) => intent.call.held.get(Dimension::CreditsMicro) > 0,
                _ => false,
            };
            *seen.entry("paid with credits").or_default() += u32::from(paid);
            let approved =
                matches!(&record.body, Body::Intent(intent) if intent.approval.is_some());
            *seen.entry("approved, ran").or_default() += u32::from(approved);
            *seen.entry("waits").or_default() += u32::from(matches!(record.body, Body::Ask(_)));
            if let Body::Intent(intent) = &record.body
                && let Some(by) = intent.approval
            {
                let of = &log[usize::try_from(by.get()).unwrap()].body;
                let Body::Approval(event) = of else { panic!("{of:?}") };
                let body = ApprovalBody::from_bytes(&event.control.body).unwrap();
                let set = body.answer == Answer::Set;
                *seen.entry("approved by a set, ran").or_default() += u32::from(set);
                let wide = body.scopes.is_some();
                *seen.entry("approved by a wider set, ran").or_default() += u32::from(wide);
            }
            let answered = matches!(record.body, Body::Approval(_));
            *seen.entry("answered").or_default() += u32::from(answered);
            let call = match &record.body {
                Body::Intent(intent) => &intent.call,
                Body::Refusal(refusal) => &refusal.call,
                Body::State(_) => {
                    *seen.entry("change").or_default() += 1;
                    continue;
                }
                _ => continue,
            };
            let verdict = call.decision.as_ref().map(|decision| decision.verdict);
            let degraded = verdict == Some(PolicySays::Degrade);
            let ran = matches!(record.body, Body::Intent(_));
            let refused_for = |reason| match &record.body {
                Body::Refusal(refusal) => refusal.reason == reason,
                _ => false,
            };
            let token = call.capability_token_id.and_then(|token| sim.kernel.token(&token));
            let lapsed = token.as_ref().is_some_and(|token| !token.revoked);
            let derived = token.is_some_and(|token| token.body.parent.is_some());
            for (name, is) in [
                ("degraded, ran", degraded && ran),
                ("not renewed", lapsed && refused_for(Reason::Revoked)),
                ("derived, ran", derived && ran),
                ("derived, too wide", call.session.is_none() && refused_for(Reason::OutOfScope)),
                ("derived too often", refused_for(Reason::NoDelegation)),
                ("degraded, refused", degraded && !ran),
                ("allowed, ran", verdict == Some(PolicySays::Allow) && ran),
                ("with a shadow, ran", call.shadow.is_some() && ran),
                ("with a shadow, refused", call.shadow.is_some() && !ran),
                ("another head, ran", call.head.is_some() && ran),
                ("denied", refused_for(Reason::Denied)),
                ("asked again", refused_for(Reason::Asked)),
                ("asked, said no", refused_for(Reason::ApprovalDenied)),
                ("deferred", refused_for(Reason::Deferred)),
                ("not kept", refused_for(Reason::Obligation)),
                ("another's snapshot", refused_for(Reason::UnknownSnapshot)),
                ("another's keys", refused_for(Reason::Namespace)),
                ("a bad change", refused_for(Reason::BadFact)),
                ("a stale change", refused_for(Reason::StaleSnapshot)),
            ] {
                *seen.entry(name).or_default() += u32::from(is);
            }
        }
        for (_, result) in &sim.replies {
            let walked = result.tool().is_some_and(|tool| tool.as_str() == "open");
            let is = |is| u32::from(walked && is);
            *seen.entry("walked").or_default() += is(result.reason().is_none());
            let out = result.reason() == Some(Reason::OutOfScope);
            *seen.entry("walked out").or_default() += is(out);
            let too_large = result.reason() == Some(Reason::ResultTooLarge);
            *seen.entry("a cap exceeded").or_default() += u32::from(too_large);
            let taken = !result.degraded().is_empty() && result.reason().is_none();
            *seen.entry("told what was taken").or_default() += u32::from(taken);
        }
    }
    assert!(seen.values().all(|count| *count >= 3), "{seen:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_order_never_overspends_and_replays(steps in proptest::collection::vec(step(), 1..120)) {
        let mut sim = ruled(FaultPoint::Nowhere);
        for step in &steps {
            apply(&mut sim, step);
            prop_assert_eq!(sim.kernel.halted(), None);
        }
        replays(&mut sim);
        verifies(&mut sim);
        opened_as_recorded(&mut sim);
        // Every call that was given up is on the books: after a restart nothing is open.
        sim.crash().unwrap();
        sim.boot();
        replays(&mut sim);
        verifies(&mut sim);
        sim.check();
    }

    #[test]
    fn a_store_that_stops_anywhere_loses_nothing_answered(
        steps in proptest::collection::vec(step(), 1..80),
        point in 4_u64..30,
        after in any::<bool>(),
    ) {
        let point = if after { FaultPoint::After(point) } else { FaultPoint::Before(point) };
        let mut sim = ruled(point);
        for step in &steps {
            if sim.kernel.halted().is_some() {
                break;
            }
            if matches!(step, Step::Crash | Step::Shutdown) {
                continue;
            }
            apply(&mut sim, step);
        }
        let answered: Vec<_> = sim
            .replies
            .iter()
            .map(|(_, result)| (result.receipt().outcome_seq, result.receipt().outcome_leaf))
            .collect();
        sim.crash().unwrap();
        let mut leaves = Vec::new();
        syscap_kernel::store::Store::records(
            &mut sim.store,
            syscap_format::id::Seq::GENESIS,
            &mut |_, bytes| {
                leaves.push(syscap_format::hash::leaf(bytes));
                syscap_kernel::store::Next::More
            },
        )
        .unwrap();
        for (seq, leaf) in answered {
            prop_assert_eq!(leaves[usize::try_from(seq.get()).unwrap()], leaf);
        }
        sim.boot();
        replays(&mut sim);
        verifies(&mut sim);
        sim.check();
    }
}
