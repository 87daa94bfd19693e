//! What counts, and what is left out.

use syscap_format::Reason;

use super::*;

const PAY: (&str, EffectClass) = ("bank.pay", EffectClass::ExternalWrite);

#[test]
fn a_call_that_brought_nothing_teaches_nothing() {
    let mut world = World::new(&[PAY]);
    world.calls("bank.pay", [r#"{"to": "ann"}"#; 2]);
    let session = world.session("");
    world.call(session, "bank.pay", r#"{"to": "eve"}"#).ended = Ended::Refused(Reason::Denied);
    world.call(session, "bank.pay", r#"{"to": "eve"}"#).ended = Ended::Failed;
    world.call(session, "bank.pay", r#"{"to": "eve"}"#).ended = Ended::Open;
    world.call(session, "bank.pay", r#"{"to": "eve"}"#).ended = Ended::ToolFailed;
    world.call(session, "bank.pay", r#"{"to": "eve"}"#).args = Err(Lost::Erased);
    world.call(session, "bank.pay", r#"{"to": "eve"}"#).args = Err(Lost::Altered);
    let proposal = world.propose();
    assert_eq!(class(&proposal, "bank.pay", "to"), Class::Values);
    assert_eq!(verdict(&proposal, AGENT, "bank.pay", r#"{"to": "ann"}"#), Verdict::Allow);
    assert_eq!(verdict(&proposal, AGENT, "bank.pay", r#"{"to": "eve"}"#), Verdict::Deny);
    let whys = [Why::Failed, Why::ToolFailed, Why::Open, Why::Erased, Why::Altered];
    for why in whys.into_iter().chain([Why::Refused(Reason::Denied)]) {
        assert_eq!(left_out(&proposal, why), 1, "{why:?}");
    }
    assert_eq!(proposal.agents[0].seen, Support { calls: 2, sessions: 2, tasks: 2 });
}

/// A tool that was only called in vain, or only after a stranger's word, is not granted.
#[test]
fn a_tool_without_evidence_is_not_granted() {
    let mut world = World::new(&[PAY, ("bank.close", EffectClass::Irreversible)]);
    world.calls("bank.pay", [r#"{"to": "ann"}"#; 2]);
    let session = world.session("");
    world.call(session, "bank.close", "{}").context = Context::Untrusted;
    world.call(session, "bank.close", "{}").ended = Ended::Failed;
    let proposal = world.propose();
    assert!(proposal.agents[0].grants.get(&tool("bank.close")).is_none());
    assert_eq!(verdict(&proposal, AGENT, "bank.close", "{}"), Verdict::Deny);
    assert_eq!(left_out(&proposal, Why::Untrusted), 1);
}

/// What a session does after a stranger's word confirms, and never widens.
#[test]
fn a_strangers_word_widens_nothing() {
    let mut world = World::new(&[PAY]);
    world.calls("bank.pay", [r#"{"to": "ann", "n": 5}"#; 3]);
    let before = world.propose();
    for args in [r#"{"to": "ann", "n": 5}"#, r#"{"to": "eve", "n": 5}"#, r#"{"to": "ann", "n": 9}"#]
    {
        let session = world.session("");
        world.call(session, "bank.pay", args).context = Context::Untrusted;
    }
    let after = world.propose();
    assert_eq!(before.policy.hash(), after.policy.hash());
    assert_eq!(before.agents[0].grants, after.agents[0].grants);
    assert_eq!(before.agents[0].budget, after.agents[0].budget);
    assert_eq!(after.agents[0].seen, before.agents[0].seen);
    assert_eq!(after.agents[0].tools[0].confirmed, 1);
    assert_eq!(left_out(&after, Why::Untrusted), 2);
}

/// A tool that is another by now is learned anew; new words for it are no change.
#[test]
fn calls_of_a_changed_tool_are_left_out() {
    let mut world = World::new(&[PAY]);
    world.calls("bank.pay", [r#"{"to": "eve"}"#; 2]);
    for call in &mut world.recording.calls {
        call.manifest = Some(Arc::new(manifest("bank.pay", EffectClass::Read)));
    }
    world.calls("bank.pay", [r#"{"to": "ann"}"#; 2]);
    let old = world.recording.calls[3].manifest.clone().unwrap();
    world.recording.calls[2].manifest =
        Some(Arc::new(Arc::unwrap_or_clone(old).described("Pay", "Pays.")));
    let proposal = world.propose();
    assert_eq!(left_out(&proposal, Why::ToolChanged), 2);
    assert_eq!(proposal.agents[0].seen.calls, 2);
    assert_eq!(verdict(&proposal, AGENT, "bank.pay", r#"{"to": "eve"}"#), Verdict::Deny);
}

/// Agents learn apart: what one does is nothing to the other, and neither is anybody else.
#[test]
fn agents_are_learned_apart() {
    let mut world = World::new(&[PAY]);
    world.calls("bank.pay", [r#"{"to": "ann"}"#; 2]);
    for to in ["bob", "bob"] {
        let session = world.session("");
        world.recording.sessions.get_mut(&session).unwrap().agent = AgentId::new("other").unwrap();
        world.call(session, "bank.pay", &format!(r#"{{"to": "{to}"}}"#));
    }
    let proposal = world.propose();
    let says = |agent: &str, to: &str| {
        verdict(&proposal, agent, "bank.pay", &format!(r#"{{"to": "{to}"}}"#))
    };
    assert_eq!((says(AGENT, "ann"), says(AGENT, "bob")), (Verdict::Allow, Verdict::Deny));
    assert_eq!((says("other", "bob"), says("other", "ann")), (Verdict::Allow, Verdict::Deny));
    assert_eq!(says("third", "ann"), Verdict::Deny);
    let only = Settings { agents: vec![agent()], ..few() };
    assert_eq!(world.propose_with(&only).agents.len(), 1);
}

/// Five sessions for one task are one piece of evidence.
#[test]
fn sessions_of_one_task_are_no_independent_evidence() {
    let mut world = World::new(&[PAY]);
    for (task, to) in [("a", "ann"), ("a", "ann"), ("b", "bob"), ("b", "bob")] {
        let session = world.session(task);
        world.call(session, "bank.pay", &format!(r#"{{"to": "{to}"}}"#));
    }
    let by_task = world.propose();
    assert_eq!(by_task.agents[0].seen, Support { calls: 4, sessions: 4, tasks: 2 });
    assert_eq!(class(&by_task, "bank.pay", "to"), Class::Free);
    for session in world.recording.sessions.values_mut() {
        session.task = None;
    }
    assert_eq!(class(&world.propose(), "bank.pay", "to"), Class::Values);
}
