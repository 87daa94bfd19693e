//! Calls that wait for a person: asked once, answered by who may, and run once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ed25519_dalek::{Signer as _, SigningKey};
use host_support::{end, new_home, records};
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::keys::public_of;
use kernel_support::sim::{self, Ending, Policed, Sim};
use syscap::audit::MemoryStore;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, EffectClass, HomeLimits, KeyChange,
    POSSESSION_CONTEXT, Possession, Record, RecordKind, RefusalKind, Role, RoleSet, Seq, Signature,
    VaultText, possession, preimage,
};
use syscap::host::HostTool;
use syscap::kernel::{Ack, Event};
use syscap::prelude::*;

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    sent: Arc<AtomicU64>,
    rt: Runtime,
}

fn options(sent: &Arc<AtomicU64>) -> Options {
    let sent = Arc::clone(sent);
    let send = HostTool::new("mail.send", EffectClass::ExternalWrite)
        .unwrap()
        .text("to", "To whom.")
        .run(move |_| {
            sent.fetch_add(1, Ordering::SeqCst);
            Ok("sent")
        });
    Options::new().tool(send).unwrap()
}

fn world() -> World {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::default());
    let home = folder.path().join("home");
    let rt = options(&sent).create(&home).unwrap();
    World { _folder: folder, home, sent, rt }
}

impl World {
    fn agent(&self, name: &str) -> Session {
        let token = self.rt.issue(Grant::to(name).tools(["mail.send"])).unwrap();
        self.rt.session(name, token).unwrap()
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    fn last(&self) -> Record {
        records(&self.home).pop().unwrap()
    }
}

fn send(agent: &Session, to: &str) -> ToolResult {
    agent.call("mail.send", args! { "to": to }).unwrap()
}

#[test]
fn denial_for_one_agent_is_none_for_another() {
    let world = world();
    let (one, other) = (world.agent("a"), world.agent("b"));
    let ask = send(&one, "ada").ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Deny, None).unwrap();
    assert_eq!(send(&one, "ada").reason(), Some(Reason::ApprovalDenied));
    assert!(send(&other, "ada").ask().is_some());
}

#[test]
fn an_approved_call_goes_on_once() {
    let world = world();
    let agent = world.agent("a");
    let asked = send(&agent, "ada");
    assert_eq!((asked.reason(), asked.retry()), (Some(Reason::Asked), Some(Retry::Ask)));
    let ask = asked.ask().unwrap();
    let record = world.last();
    assert_eq!((record.seq, asked.receipt().outcome_seq), (ask, ask));
    assert!(matches!(record.body, Body::Ask(_)));
    // It waits, and asks no more; what differs in a letter asks for itself.
    assert_eq!(send(&agent, "ada").ask(), Some(ask));
    assert!(matches!(world.last().body, Body::Refusal(_)));
    let other = send(&agent, "adam").ask().unwrap();
    assert_ne!(other, ask);
    assert_eq!(world.sent(), 0);
    let answered = world.rt.answer(ask, ApprovalAnswer::Once, Some("as she asked")).unwrap();
    // The first, and no other: neither these arguments of another, nor others of this one.
    let stranger = world.agent("b");
    assert!(send(&stranger, "ada").ask().is_some_and(|own| own != ask));
    assert_eq!(send(&agent, "adam").ask(), Some(other));
    assert_eq!(world.sent(), 0);
    let done = send(&agent, "ada");
    assert_eq!((done.text().unwrap(), world.sent()), ("sent", 1));
    let intent = done.receipt().intent.unwrap().0;
    let by = records(&world.home).into_iter().find_map(|record| match record.body {
        Body::Intent(body) if record.seq == intent => body.approval,
        _ => None,
    });
    assert_eq!(by, Some(answered));
    // Once: another time a person is asked anew.
    assert!(send(&agent, "ada").ask().is_some_and(|anew| anew > ask));
    assert_eq!(world.sent(), 1);
    end(&world.rt, &world.home);
}

#[test]
fn waiting_request_outlives_session_and_server() {
    let world = world();
    let token = world.rt.issue(Grant::to("a").tools(["mail.send"])).unwrap();
    let first = world.rt.session("a", token).unwrap();
    let ask = send(&first, "ada").ask().unwrap();
    first.close().unwrap();
    world.rt.close().unwrap();
    let rt = options(&world.sent).open(&world.home).unwrap();
    rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    rt.close().unwrap();
    // Approved, and not run: that too is in the log.
    let rt = options(&world.sent).open(&world.home).unwrap();
    let again = rt.session("a", token).unwrap();
    assert_eq!(send(&again, "ada").reason(), None);
    assert_eq!(world.sent(), 1);
    end(&rt, &world.home);
}

#[test]
fn a_no_is_told_with_its_reason() {
    let world = world();
    let agent = world.agent("a");
    let ask = send(&agent, "ada").ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Deny, Some("not on a Friday")).unwrap();
    for _ in 0..2 {
        let refused = send(&agent, "ada");
        assert_eq!(refused.reason(), Some(Reason::ApprovalDenied));
        assert_eq!((refused.retry(), refused.ask()), (Some(Retry::Never), None));
        let told = refused.delivered().item().get("allowed").unwrap();
        assert_eq!(told.as_text(), Some("not on a Friday"));
    }
    // What was said lies in the vault, and not in the log.
    let log = records(&world.home);
    let said = b"Friday";
    assert!(!log.iter().any(|record| record.encode().windows(6).any(|bytes| bytes == said)));
    assert!(matches!(world.rt.answer(ask, ApprovalAnswer::Once, None), Err(Error::Refused(_))));
    assert_eq!(world.sent(), 0);
    end(&world.rt, &world.home);
}

/// 64 threads make the call that was approved: one of them runs.
#[test]
fn an_approval_is_used_once() {
    let world = world();
    let budget = Budget::standard().with(Dimension::Concurrent, 64);
    let grant = Grant::to("a").tools(["mail.send"]).budget(budget);
    let agent = world.rt.session("a", world.rt.issue(grant).unwrap()).unwrap();
    let ask = send(&agent, "ada").ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    let ran = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                if send(&agent, "ada").reason().is_none() {
                    ran.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((ran.load(Ordering::SeqCst), world.sent()), (1, 1));
    end(&world.rt, &world.home);
}

/// Whoever asks too often is refused, others are not, and what waits stays bounded.
#[test]
fn a_flood_of_asks_is_bounded() {
    let world = world();
    let budget = Budget::standard().with(Dimension::Calls, 20_000);
    let grant = Grant::to("a").tools(["mail.send"]).budget(budget);
    let agent = world.rt.session("a", world.rt.issue(grant).unwrap()).unwrap();
    let asks = (0..10_000).filter(|n| send(&agent, &format!("to {n}")).ask().is_some()).count();
    assert_eq!(asks, 32);
    // They are told together, and cost no more than that: the log and the vault stay small.
    assert!(records(&world.home).len() < 200);
    assert!(send(&world.agent("b"), "ada").ask().is_some());
    assert_eq!(world.rt.look(|kernel| kernel.asks().count()).unwrap(), 33);
    end(&world.rt, &world.home);
}

fn asked() -> (Sim, Seq, Seq) {
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    let token = sim.issue("a0", 60, 200, 500_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = *sim.sessions.last().unwrap();
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    let ask = sim.reply_to(ticket).unwrap().ask().unwrap();
    (sim, session, ask)
}

/// The rule asks about 21 units, and 32 more, and so on.
const CALL: &str = r#"{"tool_id": "trim", "args": {"units": 21}}"#;

fn body(sim: &Sim, answer: ApprovalAnswer) -> ApprovalBody {
    let ask = sim.kernel.asks().next().unwrap().leaf;
    let (scopes, uses, expires, reason) = (None, None, None, None);
    ApprovalBody { ask, answer, means: ApprovalChannel::Signer, scopes, uses, expires, reason }
}

/// What the kernel says of an answer.
fn answered(sim: &mut Sim, event: Event) -> Result<Ack, Reason> {
    sim.acks.clear();
    sim.event(event);
    sim.commit();
    let (_, ack) = sim.acks.pop().unwrap();
    if ack.is_err() {
        let last = sim::records(sim).pop().unwrap();
        // On record, or counted with those before it.
        let refused = match &last.body {
            Body::Refusal(refusal) => refusal.refusal_kind == RefusalKind::Control,
            body => matches!(body, Body::Refusals(_)),
        };
        assert!(refused, "{last:?}");
    }
    ack.map_err(|refused| refused.reason())
}

#[test]
fn an_answer_that_does_not_count_changes_nothing() {
    let (mut sim, session, _) = asked();
    let ticket = sim.ticket();
    let good = body(&sim, ApprovalAnswer::Once);
    let by = |sim: &mut Sim, body: &ApprovalBody, role| sim.signed_by(body, role);
    let mut cases = Vec::new();
    // Not by an approver.
    for role in [Role::Issuer, Role::Policy, Role::Revoker, Role::Operator] {
        cases.push((by(&mut sim, &good, role), None, Reason::BadSignature));
    }
    let approver = Role::Approver;
    let nothing = syscap::format::Leaf::from_bytes([1; 32]);
    let other = ApprovalBody { ask: nothing, ..good.clone() };
    cases.push((by(&mut sim, &other, approver), None, Reason::UnknownAsk));
    for change in [
        ApprovalBody { answer: ApprovalAnswer::Set, ..good.clone() },
        ApprovalBody { answer: ApprovalAnswer::Set, uses: Some(0), ..good.clone() },
        ApprovalBody { uses: Some(3), ..good.clone() },
        ApprovalBody { scopes: Some(Default::default()), ..good.clone() },
        ApprovalBody { means: ApprovalChannel::ClientPrompt, ..good.clone() },
        ApprovalBody { expires: Some(sim.kernel.now()), ..good.clone() },
    ] {
        cases.push((by(&mut sim, &change, approver), None, Reason::BadControl));
    }
    // A reason that is not the one that was committed to.
    let text = |text: &str, field| VaultText {
        salt: syscap::format::Salt::from_bytes([9; 32]),
        field,
        text: text.into(),
    };
    let said = ApprovalBody { reason: Some(text("yes", 7).hash()), ..good.clone() };
    for why in [None, Some(text("no", 7)), Some(text("yes", 5))] {
        cases.push((by(&mut sim, &said, approver), why, Reason::BadControl));
    }
    cases.push((by(&mut sim, &good, approver), Some(text("yes", 7)), Reason::BadControl));
    // Signed for something else.
    let no = body(&sim, ApprovalAnswer::Deny);
    let mut turned = by(&mut sim, &no, approver);
    turned.body = syscap::format::ControlBody::to_bytes(&good);
    cases.push((turned, None, Reason::BadSignature));
    for (control, why, reason) in cases {
        let event = Event::Control(ticket, RecordKind::Approval, control, None, why);
        assert_eq!(answered(&mut sim, event), Err(reason));
        assert_eq!(sim.kernel.asks().next().unwrap().approved, Some(0));
    }
    sim::refused_with(&mut sim, session, CALL, Reason::Asked);
    // It goes on as if nothing had been tried.
    let control = sim.signed_by(&said, approver);
    let event =
        Event::Control(ticket, RecordKind::Approval, control.clone(), None, Some(text("yes", 7)));
    assert!(answered(&mut sim, event).is_ok());
    // Neither the same once more, nor another.
    let event = Event::Control(ticket, RecordKind::Approval, control, None, Some(text("yes", 7)));
    assert_eq!(answered(&mut sim, event), Err(Reason::StaleCounter));
    let late = by(&mut sim, &good, approver);
    let event = Event::Control(ticket, RecordKind::Approval, late, None, None);
    assert_eq!(answered(&mut sim, event), Err(Reason::UnknownAsk));
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    // What the vault has of the ask was fetched; now its intent is durable.
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    assert_eq!(sim.reply_to(ticket).map(ToolResult::status), Some(Status::Ok));
    sim.check();
}

/// Nobody was there in time: that is no refusal, and the next call asks anew.
#[test]
fn an_ask_expires() {
    let (mut sim, session, ask) = asked();
    let good = body(&sim, ApprovalAnswer::Once);
    sim.wall += 86_400_000;
    sim.boottime += 86_400_000;
    let control = sim.signed_by(&good, Role::Approver);
    let ticket = sim.ticket();
    let event = Event::Control(ticket, RecordKind::Approval, control, None, None);
    assert_eq!(answered(&mut sim, event), Err(Reason::ApprovalExpired));
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    let anew = sim.reply_to(ticket).unwrap().ask().unwrap();
    assert!(anew > ask);
    // So does an approval that was not used.
    let until = ApprovalBody {
        expires: Some(sim.kernel.now().plus(1_000)),
        ..body(&sim, ApprovalAnswer::Once)
    };
    let control = sim.signed_by(&until, Role::Approver);
    let ticket = sim.ticket();
    assert!(
        answered(&mut sim, Event::Control(ticket, RecordKind::Approval, control, None, None))
            .is_ok()
    );
    sim.wall += 1_000;
    sim.boottime += 1_000;
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    assert!(sim.reply_to(ticket).unwrap().ask().is_some_and(|third| third > anew));
}

/// Nobody approves what is their own: a key that holds the token, or one above it, does not count.
#[test]
fn holder_of_a_token_does_not_approve_its_calls() {
    let world = world();
    let approver = |kernel: &syscap::kernel::Kernel| {
        kernel.roles().set(Role::Approver).unwrap().keys().next().unwrap()
    };
    let approver = world.rt.look(approver).unwrap();
    let grant = Grant::to("a").tools(["mail.send"]).delegable(1).held_by(approver);
    let agent = world.rt.session("a", world.rt.issue(grant).unwrap()).unwrap();
    // There is nobody else who could answer: it is refused, and waits in vain for nobody.
    let asked = send(&agent, "ada");
    assert_eq!((asked.reason(), asked.ask()), (Some(Reason::Asked), None));
    assert!(matches!(world.last().body, Body::Refusal(_)));
    assert_eq!(world.rt.look(|kernel| kernel.asks().count()).unwrap(), 0);
    end(&world.rt, &world.home);
}

/// Two of three must approve; one key is not two, and one no ends it.
#[test]
fn as_many_approve_as_the_role_asks_for() {
    let (mut sim, session, _) = asked();
    let keys = [seeded(91), seeded(92), seeded(93)];
    let old = body(&sim, ApprovalAnswer::Once);
    let change = approvers(&sim, &keys, 2);
    let control = sim.signed(&change);
    let ticket = sim.ticket();
    let event = Event::Control(ticket, RecordKind::Key, control, None, None);
    assert!(answered(&mut sim, event).is_ok());
    // Who was asked before the change is not who is an approver now, and nothing waits for them.
    let control = sim.signed_by(&old, Role::Approver);
    let event = Event::Control(ticket, RecordKind::Approval, control, None, None);
    assert_eq!(answered(&mut sim, event), Err(Reason::BadSignature));
    assert_eq!(sim.kernel.asks().count(), 0);
    let ask = |sim: &mut Sim, units: u64| {
        let call = format!(r#"{{"tool_id": "trim", "args": {{"units": {units}}}}}"#);
        let ticket = sim.submit_json(session, &call);
        sim.commit();
        (call, sim.reply_to(ticket).unwrap().ask().unwrap())
    };
    let give = |sim: &mut Sim, ask: Seq, key: usize, answer| {
        let leaf = sim.kernel.asks().find(|waits| waits.ask == ask).unwrap().leaf;
        let body = ApprovalBody { ask: leaf, answer, ..old.clone() };
        let control = sim.signed_with(&body, &keys[key]);
        let ticket = sim.ticket();
        answered(sim, Event::Control(ticket, RecordKind::Approval, control, None, None)).map(drop)
    };
    let (call, first) = ask(&mut sim, 53);
    assert_eq!(give(&mut sim, first, 0, ApprovalAnswer::Once), Ok(()));
    sim::refused_with(&mut sim, session, &call, Reason::Asked);
    assert_eq!(give(&mut sim, first, 0, ApprovalAnswer::Once), Err(Reason::NotEligible));
    sim::refused_with(&mut sim, session, &call, Reason::Asked);
    assert_eq!(give(&mut sim, first, 2, ApprovalAnswer::Once), Ok(()));
    let ticket = sim.submit_json(session, &call);
    sim.commit();
    sim.commit();
    assert_eq!(sim.jobs.len(), 1);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reply_to(ticket).map(ToolResult::status), Some(Status::Ok));
    // One no is enough, and no yes comes after it.
    let (call, second) = ask(&mut sim, 85);
    assert_eq!(give(&mut sim, second, 0, ApprovalAnswer::Once), Ok(()));
    assert_eq!(give(&mut sim, second, 1, ApprovalAnswer::Deny), Ok(()));
    assert_eq!(give(&mut sim, second, 2, ApprovalAnswer::Once), Err(Reason::UnknownAsk));
    sim::refused_with(&mut sim, session, &call, Reason::ApprovalDenied);
    let image = sim.kernel.state_image();
    assert_eq!(sim.reopened().unwrap().state_image(), image);
}

fn seeded(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

/// These keys become the approvers, so many of whom must agree.
fn approvers(sim: &Sim, keys: &[SigningKey], threshold: u64) -> KeyChange {
    let role = Role::Approver;
    let mut sorted: Vec<&SigningKey> = keys.iter().collect();
    sorted.sort_by_key(|key| key.verifying_key().to_bytes());
    let proof = |key: &&SigningKey| {
        let message = possession(&sim.kernel.home(), role, &public_of(key));
        let signature = key.sign(&preimage(POSSESSION_CONTEXT, &message)).to_bytes();
        Possession { key: public_of(key), signature: Signature::from_bytes(signature) }
    };
    let set = RoleSet::any_of(role, sorted.iter().map(|key| public_of(key)));
    let proofs = sorted.iter().map(proof).collect();
    KeyChange { set: RoleSet { threshold, ..set }, proofs, cut_off: None }
}

/// What was approved under one token does not run under another that the approver holds.
#[test]
fn an_approval_is_not_carried_to_an_own_token() {
    let world = world();
    let approver = |kernel: &syscap::kernel::Kernel| {
        kernel.roles().set(Role::Approver).unwrap().keys().next().unwrap()
    };
    let approver = world.rt.look(approver).unwrap();
    let agent = world.agent("a");
    // It takes the place of the other: else it takes up nothing anyway.
    let own = Grant::to("a").tools(["mail.send"]).delegable(1).held_by(approver);
    let own = own.renews(agent.token());
    let own = world.rt.session("a", world.rt.issue(own).unwrap()).unwrap();
    let ask = send(&agent, "ada").ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    assert_eq!(send(&own, "ada").reason(), Some(Reason::Asked));
    assert_eq!(world.sent(), 0);
    assert_eq!(send(&agent, "ada").reason(), None);
    assert_eq!(world.sent(), 1);
    end(&world.rt, &world.home);
}

/// Being refused often is no reason not to be asked about something else.
#[test]
fn denied_requests_free_their_room() {
    let world = world();
    let agent = world.agent("a");
    for n in 0..40 {
        let ask = send(&agent, &format!("to {n}")).ask().unwrap();
        world.rt.answer(ask, ApprovalAnswer::Deny, None).unwrap();
    }
    assert_eq!(send(&agent, "to 0").reason(), Some(Reason::ApprovalDenied));
    assert!(send(&agent, "ada").ask().is_some());
    end(&world.rt, &world.home);
}

/// What would be refused anyway is refused at once: nobody is asked in vain.
#[test]
fn call_that_would_be_refused_is_not_asked() {
    let (_folder, home) = new_home();
    let tool = HostTool::new("mail.send", EffectClass::ExternalWrite).unwrap();
    let tool = tool.text("to", "To whom.").hold(Dimension::EgressBytes, 64).run(|_| Ok("sent"));
    let rt = Options::new().tool(tool).unwrap().create(&home).unwrap();
    let grant = |egress| {
        let budget = Budget::standard().with(Dimension::EgressBytes, egress);
        Grant::to("a").tools(["mail.send"]).budget(budget)
    };
    let poor = rt.session("a", rt.issue(grant(63)).unwrap()).unwrap();
    let refused = send(&poor, "ada");
    assert_eq!((refused.reason(), refused.ask()), (Some(Reason::OverBudget), None));
    assert_eq!(rt.look(|kernel| kernel.asks().count()).unwrap(), 0);
    let rich = rt.session("a", rt.issue(grant(64)).unwrap()).unwrap();
    assert!(send(&rich, "ada").ask().is_some());
    end(&rt, &home);
}
