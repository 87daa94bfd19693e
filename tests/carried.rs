//! Answers that are signed on another machine and brought back: what is signed is what was shown,
//! and counts once, for one call of one home.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::{Still, end, new_home, records};
use syscap::Beside;
use syscap::approvals::{CarriedAnswer, CarriedAsk, Unsound, reason_given};
use syscap::format::{
    ASK_LIFE_MS, ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, CONTROL_CONTEXT, Control,
    ControlBody as _, EffectClass, Head, HomeId, Leaf, RecordKind, RefusalKind, Role, Seq, Signed,
    leaf, preimage,
};
use syscap::host::HostTool;
use syscap::keys::{KeyFile, KeyUse, Seal, SecretKey, adding};
use syscap::policy::Policy;
use syscap::prelude::*;

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    clock: Still,
    sent: Arc<AtomicU64>,
    rt: Runtime,
}

fn world() -> World {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Still::default());
    let sent = Arc::new(AtomicU64::new(0));
    let home = folder.path().join("home");
    let counted = Arc::clone(&sent);
    let send = HostTool::new("mail.send", EffectClass::ExternalWrite)
        .unwrap()
        .text("to", "To whom.")
        .run(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok("sent")
        });
    let options = Options::new().clock(clock.clone()).tool(send).unwrap();
    let rt = options.create(&home).unwrap();
    World { _folder: folder, home, clock, sent, rt }
}

impl World {
    fn agent(&self) -> Session {
        let token = self.rt.issue(Grant::to("researcher").tools(["mail.send"])).unwrap();
        self.rt.session("researcher", token).unwrap()
    }

    fn key(&self) -> SecretKey {
        let path = self.home.join("keys/approver.key");
        KeyFile::read_as(&path, KeyUse::Role(Role::Approver)).unwrap().open().unwrap()
    }

    fn carry(&self, ask: Seq) -> CarriedAsk {
        Options::new().inspect(&self.home).unwrap().carry(ask).unwrap().unwrap()
    }

    fn bring(&self, answer: &CarriedAnswer) -> Result<Seq, Reason> {
        let beside = answer.why.clone().map_or(Beside::Nothing, Beside::Why);
        let brought = self.rt.submit_with(RecordKind::Approval, answer.control.clone(), &beside);
        brought.map_err(|error| {
            let Error::Refused(refused) = error else { panic!("{error}") };
            let last = records(&self.home).pop().unwrap();
            let Body::Refusal(refusal) = last.body else { panic!("not on record") };
            let said = (refusal.refusal_kind, refusal.reason);
            assert_eq!(said, (RefusalKind::Control, refused.reason()));
            refused.reason()
        })
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// It still waits, and nothing has run.
    fn waits(&self, ask: Seq) {
        assert_eq!(self.rt.look(|kernel| kernel.asks().next().unwrap().ask).unwrap(), ask);
        assert_eq!(self.rt.look(|kernel| kernel.asks().next().unwrap().approved).unwrap(), Some(0));
        assert_eq!(self.sent(), 0);
    }

    fn end(self) {
        end(&self.rt, &self.home);
    }

    /// One more approver, whose key does not lie in the home.
    fn another(&self) -> SecretKey {
        let entropy = syscap::SystemEntropy;
        let (_, key) =
            KeyFile::generate(KeyUse::Role(Role::Approver), &Seal::Open, &entropy).unwrap();
        let change = self.rt.look(|kernel| {
            let proof = key.possession(&kernel.home(), Role::Approver);
            adding(kernel.roles().set(Role::Approver).unwrap(), proof).unwrap()
        });
        self.rt.control(&change.unwrap()).unwrap();
        key
    }
}

fn send(agent: &Session) -> ToolResult {
    agent.call("mail.send", args! { "to": "ada" }).unwrap()
}

fn signed(
    ask: &CarriedAsk,
    answer: ApprovalAnswer,
    key: &SecretKey,
) -> Result<CarriedAnswer, Unsound> {
    ask.check()?.sign(answer, None, &key.public_key(), |message| Ok(key.sign(message)))
}

/// What somebody signs who looks at nothing.
fn blind(ask: &CarriedAsk, counter: u64, means: ApprovalChannel, key: &SecretKey) -> CarriedAnswer {
    let (scopes, uses, expires, reason) = (None, None, None, None);
    let (named, answer) = (leaf(&ask.record), ApprovalAnswer::Once);
    let body = ApprovalBody { ask: named, answer, means, scopes, uses, expires, reason };
    let (body, key, public) = (body.to_bytes(), key, key.public_key());
    let message =
        Control::message(&ask.home, &ask.head, &public, counter, RecordKind::Approval, &body);
    let signature = key.sign(&preimage(CONTROL_CONTEXT, &message));
    let control = Control::by_one(ask.head, body, Signed { key: public, counter, signature });
    CarriedAnswer { home: ask.home, ask: ask.ask, control, why: None }
}

#[test]
fn a_carried_answer_lets_one_call_through() {
    let world = world();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    let carried = world.carry(ask);
    let checked = carried.check().unwrap();
    let shown = checked.call();
    assert_eq!((shown.ask, shown.agent.as_str()), (ask, "researcher"));
    let to = shown.args.as_ref().unwrap().item().get("to").unwrap().as_text().map(str::to_owned);
    assert_eq!(to.as_deref(), Some("ada"));
    let (key, why) = (world.key(), reason_given("as she asked", [7; 32]));
    let sign = |message: &[u8]| Ok(key.sign(message));
    let answer = checked.sign(ApprovalAnswer::Once, Some(why), &key.public_key(), sign).unwrap();
    world.waits(ask);
    let by = world.bring(&answer).unwrap();
    let done = send(&agent);
    assert_eq!((done.text().unwrap(), world.sent()), ("sent", 1));
    let all = records(&world.home);
    let named = all.iter().find_map(|record| match &record.body {
        Body::Intent(intent) => intent.approval,
        _ => None,
    });
    assert_eq!(named, Some(by));
    let Body::Approval(event) = &all[usize::try_from(by.get()).unwrap()].body else { panic!() };
    let body = ApprovalBody::from_bytes(&event.control.body).unwrap();
    assert_eq!((body.answer, body.means), (ApprovalAnswer::Once, ApprovalChannel::File));
    assert!(send(&agent).ask().is_some_and(|anew| anew > ask));
    world.end();
}

#[test]
fn an_altered_record_is_of_no_call() {
    let world = world();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    // Somebody acts after it, so that the head says nothing of the record.
    world.agent();
    let mut carried = world.carry(ask);
    let place = carried.record.windows(10).position(|bytes| bytes == b"researcher").unwrap();
    carried.record[place] = b'b';
    let checked = carried.check().unwrap();
    assert_eq!(checked.call().agent.as_str(), "besearcher");
    let answer = signed(&carried, ApprovalAnswer::Once, &world.key()).unwrap();
    assert_eq!(world.bring(&answer), Err(Reason::UnknownAsk));
    world.waits(ask);
    world.end();
}

#[test]
fn altered_request_is_not_signed_elsewhere() {
    let world = world();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    let fine = world.carry(ask);
    assert_eq!(fine.head.seq, ask);
    let key = world.key();
    let change = |change: &dyn Fn(&mut CarriedAsk)| {
        let mut other = fine.clone();
        change(&mut other);
        signed(&other, ApprovalAnswer::Once, &key).unwrap_err()
    };
    let other = args! { "to": "bob" }.finish().as_bytes().to_vec();
    assert_eq!(change(&|ask| ask.arguments.clone_from(&other)), Unsound::Arguments);
    assert_eq!(change(&|ask| ask.arguments.clear()), Unsound::Arguments);
    assert_eq!(change(&|ask| ask.record.clear()), Unsound::Record);
    assert_eq!(change(&|ask| ask.record.push(0)), Unsound::Record);
    let boot = records(&world.home)[1].encode();
    assert_eq!(change(&|ask| ask.record.clone_from(&boot)), Unsound::Record);
    assert_eq!(change(&|ask| ask.ask = Seq::new(1)), Unsound::Record);
    assert_eq!(change(&|ask| ask.head.seq = Seq::new(1)), Unsound::Head);
    // The record that is the last one has its leaf.
    assert_eq!(change(&|ask| ask.head.leaf = Leaf::from_bytes([1; 32])), Unsound::Head);
    assert_eq!(change(&|ask| ask.keys.clear()), Unsound::Key);
    assert_eq!(change(&|ask| ask.keys[0].1 = 0), Unsound::Counter);
    // It would use up all that the key ever has.
    assert_eq!(change(&|ask| ask.keys[0].1 = u64::MAX), Unsound::Counter);
    assert_eq!(signed(&fine, ApprovalAnswer::Set, &key).unwrap_err(), Unsound::Answer);
    world.waits(ask);
    world.end();
}

#[test]
fn an_answer_counts_once_and_in_its_own_home() {
    let world = world();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    let (key, fine) = (world.key(), world.carry(ask));
    // Signed for another home, or over what it never had.
    let other = CarriedAsk { home: HomeId::from_bytes([1; 32]), ..fine.clone() };
    let answer = signed(&other, ApprovalAnswer::Once, &key).unwrap();
    assert_eq!(world.bring(&answer), Err(Reason::BadSignature));
    let head = Head { seq: fine.head.seq.next(), leaf: Leaf::from_bytes([1; 32]) };
    let other = CarriedAsk { head, ..fine.clone() };
    let answer = signed(&other, ApprovalAnswer::Once, &key).unwrap();
    assert_eq!(world.bring(&answer), Err(Reason::UnknownHead));
    // A reason that nobody has signed.
    let answer = signed(&fine, ApprovalAnswer::Once, &key).unwrap();
    let put = CarriedAnswer { why: Some(reason_given("yes", [1; 32])), ..answer.clone() };
    assert_eq!(world.bring(&put), Err(Reason::BadControl));
    world.waits(ask);
    // What came in between does no harm: its head is one that was.
    world.bring(&answer).unwrap();
    assert_eq!(world.bring(&answer), Err(Reason::StaleCounter));
    assert_eq!(send(&agent).reason(), None);
    assert_eq!(world.bring(&answer), Err(Reason::StaleCounter));
    let fresh = blind(&world_head(&world, &fine), fine.keys[0].1 + 1, ApprovalChannel::File, &key);
    assert_eq!(world.bring(&fresh), Err(Reason::UnknownAsk));
    assert_eq!(world.sent(), 1);
    world.end();
}

/// The same, over where the log ends now.
fn world_head(world: &World, ask: &CarriedAsk) -> CarriedAsk {
    CarriedAsk { head: world.rt.durable().unwrap(), ..ask.clone() }
}

#[test]
fn late_answer_is_refused() {
    let world = world();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    let answer = signed(&world.carry(ask), ApprovalAnswer::Once, &world.key()).unwrap();
    world.clock.forward(ASK_LIFE_MS);
    let refused = world.bring(&answer).unwrap_err();
    assert_eq!(refused, Reason::ApprovalExpired);
    assert_eq!(world.sent(), 0);
    assert!(Options::new().inspect(&world.home).unwrap().carry(ask).unwrap().is_none());
    world.end();
}

#[test]
fn a_key_that_was_not_asked_does_not_count() {
    let world = world();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    let carried = world.carry(ask);
    // An approver, but not when it was asked.
    let late = world.another();
    assert_eq!(signed(&carried, ApprovalAnswer::Once, &late).unwrap_err(), Unsound::Key);
    // Not even where the file says that it may.
    let mut forged = carried.clone();
    forged.keys.push((late.public_key(), 1));
    assert_eq!(signed(&forged, ApprovalAnswer::Once, &late).unwrap_err(), Unsound::Key);
    // With other approvers nothing waits that was asked of those before: it is asked anew.
    let answer = blind(&carried, 1, ApprovalChannel::File, &late);
    assert_eq!(world.bring(&answer), Err(Reason::UnknownAsk));
    assert!(send(&agent).ask().unwrap() > ask);
    world.end();
}

/// Two sign the same file, each elsewhere; who needs another means does not sign.
#[test]
fn two_sign_what_was_exported_once() {
    let world = world();
    let second = world.another();
    let keys: Vec<_> = world
        .rt
        .look(|kernel| kernel.roles().set(Role::Approver).unwrap().keys().collect())
        .unwrap();
    let policy = |means: &str| {
        let text = format!(
            r#"{{"v": 1, "params": {{"elevated": {{"keys": ["{}", "{}"], "approvals": 2,
                "means": ["{means}"]}}}},
              "constraints": [{{"id": "all", "effect": "allow", "subject": null,
                "when": {{"op": "all", "args": []}}, "on_fail": "block", "reason": "Fine."}},
                {{"id": "mails", "effect": "deny",
                "subject": {{"tool_id": "mail.send"}}, "when": {{"op": "all", "args": []}},
                "on_fail": "ask", "reason": "Two look at it.",
                "obligations": [{{"type": "approval", "level": "elevated"}}]}}]}}"#,
            keys[0], keys[1]
        );
        Policy::from_json(text.as_bytes()).unwrap()
    };
    world.rt.set_policy(policy("terminal")).unwrap();
    let ask = send(&world.agent()).ask().unwrap();
    let carried = world.carry(ask);
    assert_eq!(signed(&carried, ApprovalAnswer::Once, &second).unwrap_err(), Unsound::Means);
    let answer = blind(&carried, 1, ApprovalChannel::File, &second);
    assert_eq!(world.bring(&answer), Err(Reason::BadControl));
    world.rt.set_policy(policy("file")).unwrap();
    let agent = world.agent();
    let ask = send(&agent).ask().unwrap();
    let carried = world.carry(ask);
    let both =
        [&world.key(), &second].map(|key| signed(&carried, ApprovalAnswer::Once, key).unwrap());
    world.bring(&both[0]).unwrap();
    assert_eq!((send(&agent).ask(), world.sent()), (Some(ask), 0));
    world.bring(&both[1]).unwrap();
    assert_eq!((send(&agent).reason(), world.sent()), (None, 1));
    world.end();
}

/// What was there when it was asked is signed with it: another file's digest, or none, is not.
#[test]
fn changed_precondition_is_not_signed() {
    let (_folder, home) = new_home();
    let policy = r#"{"v": 1, "constraints": [{"id": "writes", "effect": "allow",
        "subject": {"tool_id": "fs.write"}, "when": {"op": "eq", "args": ["args.path", ""]},
        "on_fail": "ask", "reason": "Somebody looks."}]}"#;
    let policy = Policy::from_json(policy.as_bytes()).unwrap();
    let rt = Options::new().policy(policy).create(&home).unwrap();
    let grant = Grant::to("a").tools(["fs.write"]).workspace();
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    let workspace = home.join("files/agents/a/workspace");
    std::fs::write(workspace.join("a.txt"), "old").unwrap();
    let write = || agent.call("fs.write", args! { "path": "a.txt", "text": "new" }).unwrap();
    let ask = write().ask().unwrap();
    let carried = Options::new().inspect(&home).unwrap().carry(ask).unwrap().unwrap();
    let path = home.join("keys/approver.key");
    let key = KeyFile::read_as(&path, KeyUse::Role(Role::Approver)).unwrap().open().unwrap();
    let seen = carried.check().unwrap().call().conditions.clone();
    assert_eq!(seen.len(), 1);
    let digest = seen[0].seen.clone().unwrap();
    let place = carried.texts.iter().position(|text| *text.text == *digest).unwrap();
    let mut other = carried.clone();
    other.texts[place].text = "0".repeat(64).into();
    assert_eq!(signed(&other, ApprovalAnswer::Once, &key).unwrap_err(), Unsound::Conditions);
    other.texts.remove(place);
    assert_eq!(signed(&other, ApprovalAnswer::Once, &key).unwrap_err(), Unsound::Conditions);
    let answer = signed(&carried, ApprovalAnswer::Once, &key).unwrap();
    rt.submit(RecordKind::Approval, answer.control).unwrap();
    // It is bound to that, however it was answered.
    std::fs::write(workspace.join("a.txt"), "other").unwrap();
    assert_eq!(write().reason(), Some(Reason::Changed));
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "other");
    end(&rt, &home);
}
