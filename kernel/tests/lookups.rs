//! Links are followed by an effect of its own, between the arguments and the plan; then everything
//! is checked again with what was found in the argument's place.

use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{Ending, Sim, links, records};
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, CallFields, Canonical, FreezeChange, HomeLimits, Item, LOOKUPS_MAX, Profile, Reason,
    Rights, Seq, Status, ToolId, ToolsChange, VaultEntry, args_hash, sent_hash,
};
use syscap_kernel::{Event, Registry, ToolsDelta, vault_entry};

/// A home with one agent, a session of it, and links into a place that its token denies, out of
/// one and to what may be had.
fn seated(rights: Rights) -> (Sim, Seq) {
    let nowhere = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with_limits(nowhere, HomeLimits::default());
    sim.paths = links::scope(rights, Rights::NONE);
    let token = sim.issue("a0", 100, 100, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let mut world = sim.world.lock().unwrap();
    for (from, to) in [("in", "secret/s"), ("in2", "secret/none"), ("way", "a"), ("loop", "loop")] {
        world.links.insert(format!("shared/{from}"), format!("shared/{to}"));
    }
    drop(world);
    let session = sim.sessions[0];
    (sim, session)
}

fn call(at: &str) -> String {
    format!(r#"{{"tool_id": "open", "args": {{"at": "{at}"}}}}"#)
}

/// Follows what waits to be followed, runs what is to run, commits.
fn finish(sim: &mut Sim) {
    while !sim.lookups.is_empty() || !sim.jobs.is_empty() {
        sim.end_lookup(0, Ending::Runs);
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
}

/// The last call that got as far as its arguments, with what the vault has of it.
fn last(sim: &mut Sim) -> (CallFields, VaultEntry) {
    let found = records(sim).into_iter().rev().find_map(|record| match record.body {
        Body::Intent(intent) => Some((record.seq, intent.call)),
        Body::Refusal(refusal) => Some((record.seq, refusal.call)),
        _ => None,
    });
    let (seq, call) = found.unwrap();
    (call, vault_entry(&mut sim.store, seq, seq).unwrap())
}

/// Without the right to follow links, and for tools without paths, nothing is looked up: the same
/// records, and the run at once.
#[test]
fn only_a_grant_that_follows_links_is_looked_up() {
    let mut kinds = Vec::new();
    for rights in [Rights::READ, Rights::ALL] {
        let (mut sim, session) = seated(rights);
        let before = records(&mut sim).len();
        let look = r#"{"tool_id": "look", "args": {"at": 1}}"#;
        sim.submit_json(session, look);
        assert_eq!((sim.jobs.len(), sim.lookups.len()), (1, 0));
        let follows = rights == Rights::ALL;
        let ticket = sim.submit_json(session, &call("shared/way"));
        assert_eq!((sim.jobs.len(), sim.lookups.len()), if follows { (1, 1) } else { (2, 0) });
        finish(&mut sim);
        assert_eq!(sim.world.lock().unwrap().lookups, u64::from(follows));
        let opened = if follows { "shared/a" } else { "shared/way" };
        assert_eq!(sim.world.lock().unwrap().opened[0].1, opened);
        assert_eq!(sim.reply_to(ticket).unwrap().status(), Status::Ok);
        let kind = |record: &syscap_format::Record| record.body.kind();
        kinds.push(records(&mut sim)[before..].iter().map(kind).collect::<Vec<_>>());
    }
    kinds.iter_mut().for_each(|kinds| kinds.sort());
    assert_eq!(kinds[0], kinds[1], "it leaves no record of its own");
}

/// The record commits to what was found, what was sent is committed to as sent, and the rest of
/// the arguments is as it was.
#[test]
fn lookup_replaces_its_argument_only() {
    let (mut sim, session) = seated(Rights::ALL);
    let sent = r#"{"tool_id": "open", "args": {"at": "shared/way", "note": {"at": ["shared/way"]}},
        "idempotency_key": "k"}"#;
    let before = records(&mut sim).len();
    let first = sim.submit_json(session, sent);
    sim.commit();
    assert_eq!(records(&mut sim).len(), before, "nothing is on record while it is looked up");
    sim.end_lookup(0, Ending::Runs);
    let manifest = sim.kernel.manifests().find(|m| m.tool.as_str() == "open").unwrap().clone();
    finish(&mut sim);
    let (call, entry) = last(&mut sim);
    let args = Canonical::check(entry.args.unwrap(), Profile::DATA).unwrap();
    let expected = r#"{"at": "shared/a", "note": {"at": ["shared/way"]}}"#;
    assert_eq!(args, syscap_format::json::to_cbor(expected.as_bytes()).unwrap());
    let salts = entry.salts.unwrap();
    let hash = args_hash(&salts.args, &manifest.tool, &manifest.id(), args.item());
    assert_eq!(call.args_hash, Some(hash));
    let intent = records(&mut sim).into_iter().rev().find_map(|record| match record.body {
        Body::Intent(intent) => Some(intent),
        _ => None,
    });
    let as_sent = r#"{"at": "shared/way", "note": {"at": ["shared/way"]}}"#;
    let as_sent = syscap_format::json::to_cbor(as_sent.as_bytes()).unwrap();
    let hash = sent_hash(&salts.args, &manifest.tool, as_sent.item());
    assert_eq!(intent.unwrap().sent_hash, Some(hash));
    // So a repeat is known by what was sent, wherever the link leads by then.
    let elsewhere = String::from("shared/b");
    sim.world.lock().unwrap().links.insert(String::from("shared/way"), elsewhere);
    let again = sim.submit_json(session, sent);
    sim.commit();
    let (first, again) = (sim.reply_to(first).unwrap(), sim.reply_to(again).unwrap());
    assert_eq!(again.delivered(), first.delivered());
    let world = sim.world.lock().unwrap();
    assert_eq!((world.lookups, world.opened.len()), (1, 1));
}

/// What was found is judged by the scope, and a refusal shows what was sent: to the last byte the
/// same, wherever in that place a link leads.
#[test]
fn a_refusal_shows_what_was_sent() {
    let (mut sim, session) = seated(Rights::ALL);
    let mut told = Vec::new();
    for target in ["shared/secret/s", "shared/secret/none", "shared/secret"] {
        sim.world.lock().unwrap().links.insert(String::from("shared/in"), String::from(target));
        let ticket = sim.submit_json(session, &call("shared/in"));
        finish(&mut sim);
        assert_eq!(sim.reason_of(ticket), Some(Reason::OutOfScope));
        told.push(sim.reply_to(ticket).unwrap().delivered().clone());
    }
    assert_eq!(told[0].item().get("got").and_then(Item::as_text), Some("shared/in"));
    assert!(told.iter().all(|one| *one == told[0]));
    // So does what the tool itself says of the argument.
    let links = [("shared/odd", "Shared*/x"), ("shared/odd2", "Other*/y")];
    let told = links.map(|(from, to)| {
        sim.world.lock().unwrap().links.insert(String::from("shared/odd"), String::from(to));
        let ticket = sim.submit_json(session, &call("shared/odd"));
        finish(&mut sim);
        assert_eq!(sim.reason_of(ticket), Some(Reason::BadPath), "{from}");
        sim.reply_to(ticket).unwrap().delivered().clone()
    });
    assert_eq!(told[0].item().get("got").and_then(Item::as_text), Some("shared/odd"));
    assert_eq!(told[0], told[1]);
    // What can't be found is refused by whoever looks.
    let ticket = sim.submit_json(session, &call("shared/loop"));
    finish(&mut sim);
    assert_eq!(sim.reason_of(ticket), Some(Reason::OutOfScope));
    assert!(sim.world.lock().unwrap().opened.is_empty());
}

/// Between the two everything may have changed: it is checked again from the start.
#[test]
fn a_call_is_checked_again_after_its_links_were_followed() {
    type Between = fn(&mut Sim, Seq);
    let cases: [(Between, Reason); 5] = [
        (|sim, _| sim.revoke(sim.tokens[0].0), Reason::Revoked),
        (|sim, _| sim.freeze(FreezeChange::Freeze), Reason::Frozen),
        (|sim, _| sim.boottime += 2_000_000, Reason::Expired),
        (
            |sim, session| {
                let ticket = sim.ticket();
                sim.event(Event::CloseSession(ticket, session));
            },
            Reason::NoSession,
        ),
        (
            |sim, _| {
                let ticket = sim.ticket();
                sim.event(Event::Shutdown(ticket));
            },
            Reason::Closing,
        ),
    ];
    for (between, reason) in cases {
        let (mut sim, session) = seated(Rights::ALL);
        let ticket = sim.submit_json(session, &call("shared/way"));
        between(&mut sim, session);
        sim.commit();
        assert_eq!(sim.reply_to(ticket).map(|_| ()), None, "{reason}: it waits");
        finish(&mut sim);
        assert_eq!(sim.reason_of(ticket), Some(reason));
        assert!(sim.world.lock().unwrap().opened.is_empty(), "{reason}");
    }
}

/// A call that waits for its links holds a place, so that no flood of them fills the memory.
#[test]
fn calls_that_wait_for_their_links_are_counted() {
    let nowhere = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let limits = HomeLimits { in_flight_max: 2, ..HomeLimits::default() };
    let mut sim = Sim::with_limits(nowhere, limits);
    let token = sim.issue("a0", 100, 100, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let tickets = [(); 3].map(|()| sim.submit_json(session, &call("shared/a")));
    assert_eq!(sim.lookups.len(), 2);
    assert_eq!(sim.reason_of(tickets[2]), Some(Reason::Overloaded));
    finish(&mut sim);
    let answered = tickets.map(|ticket| sim.reason_of(ticket));
    assert_eq!(answered, [None, None, Some(Reason::Overloaded)]);
    assert_eq!(sim.world.lock().unwrap().opened.len(), 2);
}

/// What was found is for the arguments, and the tool, that it was looked up for: with another
/// definition it is looked up again, and not for ever.
#[test]
fn lookup_for_another_definition_is_repeated() {
    let (mut sim, session) = seated(Rights::ALL);
    let ticket = sim.submit_json(session, &call("shared/way"));
    for round in 1..=LOOKUPS_MAX {
        assert_eq!(sim.lookups.len(), 1, "{round}");
        let mut add = Registry::new();
        add.add_read(links::Open::described(&sim.world, &format!("{round}"))).unwrap();
        let delta = ToolsDelta { remove: vec![ToolId::new("open").unwrap()], add };
        let tools = sim.kernel.registry_hash_after(&delta).unwrap();
        let control = sim.signed(&ToolsChange { tools });
        let changed = sim.ticket();
        sim.event(Event::Tools(changed, control, None, delta));
        sim.commit();
        sim.end_lookup(0, Ending::Runs);
    }
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::Busy));
    assert_eq!(sim.world.lock().unwrap().lookups, u64::from(LOOKUPS_MAX));
    // Nobody changes it any more.
    let ticket = sim.submit_json(session, &call("shared/way"));
    finish(&mut sim);
    assert_eq!(sim.reply_to(ticket).unwrap().status(), Status::Ok);
}

/// A tool that names what is no path of its own, finds what is none, or breaks off: refused.
#[test]
fn a_tool_can_have_nothing_else_replaced() {
    let (mut sim, session) = seated(Rights::ALL);
    for (lie, field) in [("note", "note"), ("none", "none"), ("long", "at")] {
        let sent = format!(
            r#"{{"tool_id": "open", "args": {{"at": "shared/b", "note": "n", "lie": "{lie}"}}}}"#
        );
        let ticket = sim.submit_json(session, &sent);
        finish(&mut sim);
        assert_eq!(sim.reason_of(ticket), Some(Reason::Failed), "{lie}");
        let told = sim.reply_to(ticket).unwrap().delivered().clone();
        assert_eq!(told.item().get("field").and_then(Item::as_text), Some(field));
    }
    let ticket = sim.submit_json(session, &call("shared/way"));
    sim.end_lookup(0, Ending::Panics);
    finish(&mut sim);
    assert_eq!(sim.reason_of(ticket), Some(Reason::Panicked));
    assert!(sim.world.lock().unwrap().opened.is_empty());
}

/// A reference and a link in one call: each is asked for, and an answer to the one is none to the
/// other.
#[test]
fn references_and_links_are_both_fetched() {
    let (mut sim, session) = seated(Rights::ALL);
    let first = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": "shared/way"}}"#);
    finish(&mut sim);
    let record = sim.reply_to(first).unwrap().receipt().outcome_seq;
    let sent = format!(
        r#"{{"tool_id": "open", "args": {{"at": {{"$ref": {{"record": {record},
            "path": ["saw"]}}}}, "note": {{"$ref": {{"record": {record}, "path": []}}}}}}}}"#
    );
    let ticket = sim.submit_json(session, &sent);
    assert_eq!(sim.lookups.len(), 1);
    assert_eq!(sim.reply_to(ticket).map(|_| ()), None);
    finish(&mut sim);
    let reply = sim.reply_to(ticket).unwrap();
    assert_eq!(reply.value().unwrap().get("opened").and_then(Item::as_text), Some("shared/a"));
    let (_, entry) = last(&mut sim);
    let args = Canonical::check(entry.args.unwrap(), Profile::DATA).unwrap();
    let note = args.item().get("note").and_then(|note| note.get("saw"));
    assert_eq!(note.and_then(Item::as_text), Some("shared/way"), "a result is data");
}
