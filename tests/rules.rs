//! The rules that were gathered from other policy engines and from their failures: one test each.
//!
//! Not here, because what they are about is not built yet: signed approvals and M of N (an `ask`
//! is refused, as `asked`), labels of references and their declassification, shell arguments,
//! URLs and redirects.

pub(crate) mod world;

use self::world::{World, allow_all, constraint, document};
use syscap::Error;
use syscap::Written;
use syscap::format::{
    Body, Control, ControlBody, EffectClass, Item, ObligationKind, PolicyChange, RefusalKind,
    SnapshotId, Source, Verdict,
};
use syscap::policy::{LoadFault, Policy};
use syscap::prelude::*;

#[test]
fn a_token_of_another_agent_is_refused() {
    let world = World::new(&allow_all());
    let (token, _) = world.seat("a", ["echo"]);
    let refused = world.runtime.session("b", token);
    assert!(
        matches!(refused, Err(Error::Refused(refused)) if refused.reason() == Reason::NotBound)
    );
}

/// A rule about an argument must not hold because the argument is not there.
#[test]
fn a_constraint_on_an_argument_that_is_missing_never_grants_and_always_restricts() {
    let grants = constraint(
        "list",
        "allow",
        r#"{"tool_id": "mail"}"#,
        r#"{"op": "not", "args": [{"op": "eq", "args": ["args.subject", "x"]}]}"#,
        "block",
    );
    let world = World::new(&document(&[grants]));
    let (_, agent) = world.seat("a", ["mail"]);
    let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
    assert_eq!(result.reason().map(Reason::code), Some(Reason::Constraint.code()));
    let args = args! { "to": "a@example.com", "subject": "y" };
    assert_eq!(agent.call("mail", args).unwrap().reason(), None);

    let restricts = constraint(
        "no-x",
        "deny",
        r#"{"tool_id": "mail"}"#,
        r#"{"op": "eq", "args": ["args.subject", "x"]}"#,
        "block",
    );
    let world = World::new(&document(&[every_call(), restricts]));
    let (_, agent) = world.seat("a", ["mail"]);
    let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
    assert!(matches!(result.reason(), Some(Reason::Constraint | Reason::Denied)));
    assert_eq!(world.effects.count(), 0);
}

fn every_call() -> String {
    constraint("every-call", "allow", "null", r#"{"op": "all", "args": []}"#, "block")
}

/// One that is not sound is refused whole, on the record, and what was in force stays.
#[test]
fn a_malformed_constraint_refuses_the_whole_document() {
    let world = World::new(&allow_all());
    let (_, agent) = world.seat("a", ["echo"]);
    let before = world.runtime.look(|kernel| kernel.policy_hash()).unwrap();
    let sound = constraint("sound", "deny", "null", r#"{"op": "all", "args": []}"#, "block");
    let bad = sound.replace("\"all\"", "\"al\"").replace("sound", "bad");
    let error = world.runtime.read_policy(document(&[sound, bad]).as_bytes()).unwrap_err();
    let Error::Policy(error) = error else { panic!("{error}") };
    assert_eq!(error.fault, LoadFault::UnknownOp);
    assert_eq!(&*error.place, "constraints[1].when.op");
    assert_eq!(world.runtime.look(|kernel| kernel.policy_hash()).unwrap(), before);
    assert_eq!(agent.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
    let refusal = world.last_refusal();
    assert_eq!((refusal.reason, refusal.refusal_kind), (Reason::BadPolicy, RefusalKind::Control));
}

#[test]
fn oversized_and_contradictory_documents_are_refused_whole_and_recorded() {
    let allow = every_call();
    let deny = allow.replace("allow", "deny").replace("every-call", "no-call");
    let id = "x".repeat(64);
    let many: Vec<String> = (0..65_536)
        .map(|n| {
            let when = r#"{"op": "any", "args": []}"#;
            constraint(&format!("{id}{n:05}"), "deny", "null", when, "block")
        })
        .collect();
    let world = World::new(&allow_all());
    let before = world.runtime.look(|kernel| kernel.policy_hash()).unwrap();
    for (text, fault) in [
        (document(&[allow.clone(), deny]), LoadFault::Contradiction),
        (document(&[allow.clone(), allow.clone()]), LoadFault::DuplicateId),
        (document(&many), LoadFault::TooManyConstraints),
    ] {
        let refusals = world.refusals();
        let error = world.runtime.read_policy(text.as_bytes()).unwrap_err();
        let Error::Policy(error) = error else { panic!("{error}") };
        assert_eq!(error.fault, fault, "{error}");
        assert_eq!(world.refusals(), refusals + 1);
    }
    assert_eq!(world.runtime.look(|kernel| kernel.policy_hash()).unwrap(), before);
}

/// Cedar skips a `forbid` that it can't evaluate.
#[test]
fn a_deny_that_cannot_be_evaluated_restricts() {
    for when in [
        r#"{"op": "eq", "args": ["fact.region", "eu"]}"#,
        r#"{"op": "lt", "args": ["args.to", 5]}"#,
        r#"{"op": "within", "args": ["args.to", "shared"]}"#,
        r#"{"op": "not", "args": [{"op": "prefix", "args": ["goal.topic", "a"]}]}"#,
    ] {
        let deny = constraint("d", "deny", r#"{"tool_id": "mail"}"#, when, "block");
        let world = World::new(&document(&[every_call(), deny]));
        let (_, agent) = world.seat("a", ["mail"]);
        let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
        let refused = matches!(result.reason(), Some(Reason::Denied | Reason::Constraint));
        assert!(refused, "{when}: {:?}", result.reason());
        assert_eq!(world.effects.count(), 0);
    }
}

/// The two examples of the contract, as it writes them.
#[test]
fn the_contracts_own_examples_decide_as_it_says() {
    let no_mail = constraint(
        "constraint.no_send_email",
        "deny",
        r#"{"tool_id": "mail"}"#,
        r#"{"op": "all", "args": []}"#,
        "block",
    );
    let source = constraint(
        "constraint.requires_source",
        "deny",
        r#"{"tool_id": "fs.write"}"#,
        r#"{"op": "missing", "args": ["fact.source_ref"]}"#,
        "ask",
    );
    let world = World::new(&document(&[every_call(), no_mail, source]));
    let (_, agent) = world.seat("a", ["mail", "fs.write"]);
    let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
    assert_eq!(result.reason(), Some(Reason::Denied));
    let write = || agent.call("fs.write", args! { "path": "a.txt", "text": "x" }).unwrap();
    let asked = write();
    assert_eq!(asked.reason(), Some(Reason::Asked));
    assert!(asked.ask().is_some(), "it waits for a person");
    let fact = args! { "fact.source_ref": "doi:1" };
    world.runtime.observe(&agent, Source::Encoder, &[], fact).unwrap();
    assert_eq!(write().reason(), None);
}

/// The notice stands in the record of the refusal.
#[test]
fn an_obligation_that_cannot_be_kept_denies_and_the_notice_is_given_all_the_same() {
    let capped = constraint("cap", "allow", "null", r#"{"op": "all", "args": []}"#, "block")
        .replace(
            "\"reason\"",
            r#""obligations": [{"type": "result_cap", "bytes": 100},
               {"type": "notify", "topic": "watch"}], "reason""#,
        );
    let world = World::new(&document(&[capped]));
    let (_, agent) = world.seat("a", ["mail", "fs.read"]);
    let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
    assert_eq!(result.reason(), Some(Reason::Obligation));
    assert_eq!(world.effects.count(), 0);
    let decision = world.last_refusal().call.decision.unwrap();
    assert_eq!(decision.verdict, Verdict::Degrade);
    let notices: Vec<_> =
        decision.obligations.iter().filter(|o| o.kind == ObligationKind::Notify).collect();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].name.as_deref(), Some("watch"));
}

#[test]
fn obligations_of_all_constraints_are_united_and_the_smaller_cap_counts() {
    let with = |id: &str, obligations: &str| {
        constraint(id, "allow", "null", r#"{"op": "all", "args": []}"#, "block")
            .replace("\"reason\"", &format!(r#""obligations": [{obligations}], "reason""#))
    };
    let world = World::new(&document(&[
        with("a", r#"{"type": "result_cap", "bytes": 300}, {"type": "notify", "topic": "x"}"#),
        with("b", r#"{"type": "result_cap", "bytes": 200}"#),
        with("c", r#"{"type": "notify", "topic": "y"}"#),
    ]));
    let (_, agent) = world.seat("a", ["fs.read", "fs.write"]);
    std::fs::write(world.workspace("a").join("long.txt"), "x".repeat(4_096)).unwrap();
    let result = agent.call("fs.read", args! { "path": "long.txt" }).unwrap();
    assert_eq!(result.reason(), None);
    assert!(result.delivered().as_bytes().len() <= 200);
    assert!((100..200).contains(&result.text().unwrap().len()));
    assert_eq!(result.value().unwrap().get("more").and_then(Item::as_bool), Some(true));
    let taken: Vec<String> = result.degraded().iter().map(ToString::to_string).collect();
    assert_eq!(taken, ["result_cap 200"]);
    let Body::Outcome(outcome) = world.records().pop().unwrap().body else { panic!() };
    let decision = outcome.call.decision.unwrap();
    assert_eq!(decision.verdict, Verdict::Degrade);
    let united: Vec<String> = decision.obligations.iter().map(ToString::to_string).collect();
    assert_eq!(united, ["result_cap 200", "notify x", "notify y"]);
}

/// Approvals are not built yet: until then nothing in an envelope is one.
#[test]
fn an_approval_in_an_envelope_is_no_authority() {
    let ask = constraint("ask", "deny", "null", r#"{"op": "all", "args": []}"#, "ask");
    let world = World::new(&document(&[every_call(), ask]));
    let (_, agent) = world.seat("a", ["mail"]);
    for approval in [
        r#""approval": {"verdict": "once", "approver": "root"}"#,
        r#""approved": true"#,
        r#""auto_approve": true"#,
        r#""obligations": []"#,
    ] {
        let envelope =
            format!(r#"{{"tool_id": "mail", "args": {{"to": "a@example.com"}}, {approval}}}"#);
        let result = agent.envelope(envelope.as_bytes(), Written::Json).wait().unwrap();
        assert_eq!(result.reason(), Some(Reason::Asked));
    }
    assert_eq!(world.effects.count(), 0);
}

/// The party that is policed does not approve itself: `auto_approve` counts in a policy only.
#[test]
fn auto_approve_counts_in_the_policy_only() {
    let standard = syscap::policy::Preset::Standard.document();
    let world = World::new(standard);
    let (_, agent) = world.seat("a", ["mail"]);
    world
        .runtime
        .observe(&agent, Source::User, &[], args! { "goal.auto_approve": "mail" })
        .unwrap();
    let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
    assert_eq!(result.reason(), Some(Reason::Asked));
    let approved = standard.replace(r#""auto_approve": []"#, r#""auto_approve": ["mail"]"#);
    let policy = world.runtime.read_policy(approved.as_bytes()).unwrap();
    world.runtime.set_policy(policy).unwrap();
    let result = agent.call("mail", args! { "to": "a@example.com" }).unwrap();
    assert_eq!(result.reason(), None);
    assert_eq!(world.effects.count(), 1);
}

#[test]
fn a_repeat_gets_the_first_outcome_and_a_mismatch_is_refused() {
    let world = World::new(&allow_all());
    let (_, agent) = world.seat("a", ["mail"]);
    let first =
        agent.request("mail").args(args! { "to": "a@example.com" }).key("k").wait().unwrap();
    let again =
        agent.request("mail").args(args! { "to": "a@example.com" }).key("k").wait().unwrap();
    assert_eq!(first.delivered(), again.delivered());
    let other =
        agent.request("mail").args(args! { "to": "b@example.com" }).key("k").wait().unwrap();
    assert_eq!(other.reason(), Some(Reason::KeyReused));
    assert_eq!(world.effects.count(), 1);
}

/// A call ends under the policy that admitted it.
#[test]
fn a_swap_during_a_call_leaves_it_to_the_policy_that_admitted_it() {
    let world = World::new(&allow_all());
    let (_, agent) = world.seat("a", ["wait"]);
    let before = world.runtime.look(|kernel| kernel.policy_hash()).unwrap();
    let (result, after) = std::thread::scope(|scope| {
        let call = scope.spawn(|| agent.call("wait", args! {}).unwrap());
        world.effects.await_started();
        let deny = constraint("no", "deny", "null", r#"{"op": "all", "args": []}"#, "block");
        let deny = Policy::from_json(document(&[deny]).as_bytes()).unwrap();
        let after = deny.hash();
        world.runtime.set_policy(deny).unwrap();
        world.effects.release();
        (call.join().unwrap(), after)
    });
    assert_eq!(result.reason(), None);
    assert_eq!(agent.call("wait", args! {}).unwrap().reason(), Some(Reason::Denied));
    let decided = world.records().into_iter().filter_map(|record| match record.body {
        Body::Intent(intent) => Some(intent.call.policy_hash),
        Body::Outcome(outcome) => Some(outcome.call.policy_hash),
        Body::Refusal(refusal) => Some(refusal.call.policy_hash),
        _ => None,
    });
    assert_eq!(decided.collect::<Vec<_>>(), [before, before, Some(after)]);
}

/// A signed change that was used before, or was never signed, changes nothing.
#[test]
fn a_policy_that_is_rolled_back_or_unsigned_is_refused_and_recorded() {
    let world = World::new(&allow_all());
    let first = world.runtime.look(|kernel| kernel.policy_hash()).unwrap();
    let deny = constraint("no", "deny", "null", r#"{"op": "all", "args": []}"#, "block");
    let deny = Policy::from_json(document(&[deny]).as_bytes()).unwrap();
    let second = Some(deny.hash());
    world.runtime.set_policy(deny).unwrap();
    let old: Control = world
        .records()
        .into_iter()
        .find_map(|record| match record.body {
            Body::Policy(event) => Some(event.control),
            _ => None,
        })
        .unwrap();
    assert_eq!(Some(PolicyChange::from_bytes(&old.body).unwrap().policy), first);
    let engine = || Policy::from_json(allow_all().as_bytes()).unwrap();
    let replayed = world.control_policy(old.clone(), engine());
    assert_eq!(replayed, Reason::StaleCounter);
    let head = world.runtime.durable().unwrap();
    let mut stripped = Control { head, ..old.clone() };
    stripped.signatures[0].counter = u64::MAX;
    stripped.signatures[0].signature = syscap::format::Signature::from_bytes([0; 64]);
    assert_eq!(world.control_policy(stripped, engine()), Reason::BadSignature);
    let mut bumped = Control { head, ..old };
    bumped.signatures[0].counter = u64::MAX;
    assert_eq!(world.control_policy(bumped, engine()), Reason::BadSignature);
    assert_eq!(world.runtime.look(|kernel| kernel.policy_hash()).unwrap(), second);
    assert_eq!(world.last_refusal().reason, Reason::BadSignature);
}

#[test]
fn a_misspelt_word_is_named_with_its_near_miss() {
    let sound = every_call();
    for (from, to, near) in [
        (r#""effect": "allow""#, r#""effect": "alow""#, "allow"),
        (r#""on_fail": "block""#, r#""on_fail": "blok""#, "block"),
        (r#""effect""#, r#""efect""#, "effect"),
        (r#""op": "all""#, r#""op": "al""#, "all"),
    ] {
        let text = document(&[sound.replace(from, to)]);
        let error = Policy::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.suggestion.as_deref(), Some(near), "{error}");
        assert!(error.place.starts_with("constraints[0]"), "{error}");
    }
}

#[test]
fn a_folder_beside_the_one_that_is_named_is_not_within_it() {
    let drafts = constraint(
        "drafts",
        "allow",
        r#"{"tool_id": "fs.write"}"#,
        r#"{"op": "within", "args": ["args.path", "workspace/drafts"]}"#,
        "block",
    );
    let world = World::new(&document(&[drafts]));
    let (_, agent) = world.seat("a", ["fs.write"]);
    for path in ["drafts-evil/a.txt", "draft/a.txt", "drafts/../a.txt", "shared/drafts/a.txt"] {
        let args = args! { "path": path, "text": "x", "parents": true };
        let result = agent.call("fs.write", args).unwrap();
        assert_eq!(result.reason(), Some(Reason::Constraint), "{path}");
    }
    let args = args! { "path": "other/../drafts/./a.txt", "text": "x", "parents": true };
    assert_eq!(agent.call("fs.write", args).unwrap().reason(), None);
    assert!(world.workspace("a").join("drafts/a.txt").exists());
}

/// The link is created between the decision and the run as well as before it: what counts is what
/// is opened.
#[test]
fn a_link_that_leads_out_of_what_the_policy_allows_is_not_followed() {
    let world = World::new(&allow_all());
    let (_, agent) = world.seat("a", ["fs.read"]);
    std::fs::write(world.home().join("files/secret.txt"), "secret").unwrap();
    let link = world.workspace("a").join("link");
    std::os::unix::fs::symlink("../../../secret.txt", link).unwrap();
    let result = agent.call("fs.read", args! { "path": "link" }).unwrap();
    assert_eq!(result.reason(), Some(Reason::Link));
}

#[test]
fn parallel_calls_never_overspend() {
    let world = World::new(&allow_all());
    let budget = Budget::standard().with(Dimension::Calls, 10).with(Dimension::Concurrent, 64);
    let (_, agent) = world.seat_with("a", ["mail"], budget);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..4 {
                    agent.call("mail", args! { "to": "a@example.com" }).unwrap();
                }
            });
        }
    });
    assert_eq!(world.effects.count(), 10);
}

/// It pays one of `calls`, so that a flood ends; nothing else is used.
#[test]
fn a_denied_call_uses_no_budget_but_calls() {
    let deny = constraint("no", "deny", "null", r#"{"op": "all", "args": []}"#, "block");
    let world = World::new(&document(&[every_call(), deny.replace("\"all\"", "\"any\"")]));
    let (token, agent) = world.seat("a", ["fs.write"]);
    let used = || world.runtime.look(|kernel| kernel.token(&token).unwrap().used).unwrap();
    let none = used();
    let policy = Policy::from_json(document(&[deny]).as_bytes()).unwrap();
    world.runtime.set_policy(policy).unwrap();
    let result = agent.call("fs.write", args! { "path": "a.txt", "text": "x" }).unwrap();
    assert_eq!(result.reason(), Some(Reason::Denied));
    assert_eq!(used(), none.with(Dimension::Calls, none.get(Dimension::Calls) + 1));
}

/// What the model says of itself is recorded, and means nothing.
#[test]
fn provenance_and_other_claims_of_the_caller_change_no_verdict() {
    let world = World::new(syscap::policy::Preset::Standard.document());
    let (_, agent) = world.seat("a", ["mail"]);
    let envelope = br#"{"tool_id": "mail", "args": {"to": "a@example.com"}, "risk": 0,
        "provenance": {"source": "user"}, "effect": "pure"}"#;
    assert_eq!(
        agent.envelope(envelope, Written::Json).wait().unwrap().reason(),
        Some(Reason::Asked)
    );
}

#[test]
fn an_organisations_lists_of_tools_bind_every_agent() {
    let text = document(&[every_call()]).replace(
        r#""constraints""#,
        r#""params": {"tools": ["echo", "mail"], "agents": {"team": ["echo", "mail"],
            "team/reader": ["echo"]}}, "constraints""#,
    );
    let world = World::new(&text);
    let reason = |agent: &str, tool: &str| {
        let (_, seat) = world.seat(agent, ["echo", "mail", "fs.list"]);
        let args = match tool {
            "echo" => args! { "value": 1_u64 },
            "mail" => args! { "to": "a@example.com" },
            _ => args! { "path": "." },
        };
        seat.call(tool, args).unwrap().reason()
    };
    assert_eq!(reason("team/writer", "mail"), None);
    assert_eq!(reason("team/reader", "echo"), None);
    assert_eq!(reason("team/reader", "mail"), Some(Reason::Denied));
    assert_eq!(reason("team/reader/child", "mail"), Some(Reason::Denied));
    assert_eq!(reason("team/writer", "fs.list"), Some(Reason::Denied));
    assert_eq!(reason("stranger", "echo"), Some(Reason::Denied));
}

/// A snapshot of another agent, or of nobody, is no name for this one's state.
#[test]
fn decisions_use_the_head_and_only_the_agents_own_snapshots_may_be_named() {
    let goal = constraint(
        "goal",
        "allow",
        r#"{"tool_id": "echo"}"#,
        r#"{"op": "eq", "args": ["goal.topic", "bees"]}"#,
        "defer",
    );
    let world = World::new(&document(&[goal]));
    let (_, agent) = world.seat("a", ["echo"]);
    let (_, other) = world.seat("b", ["echo"]);
    let named = |snapshot: SnapshotId| {
        let envelope = format!(
            r#"{{"tool_id": "echo", "args": {{"value": 1}}, "state_snapshot_id": "{snapshot}"}}"#
        );
        agent.envelope(envelope.as_bytes(), Written::Json).wait().unwrap().reason()
    };
    assert_eq!(
        agent.call("echo", args! { "value": 1_u64 }).unwrap().reason(),
        Some(Reason::Deferred)
    );
    let first = agent.propose(args! { "goal.topic": "bees" }).unwrap().snapshot;
    assert_eq!(agent.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
    let second = agent.propose(args! { "goal.topic": "wasps" }).unwrap().snapshot;
    // Named is the snapshot under which it would be allowed; the head decides.
    assert_eq!(named(first), Some(Reason::Deferred));
    let call = world.last_refusal().call;
    assert_eq!((call.state_snapshot_id, call.head), (Some(first), Some(second)));
    let foreign = other.propose(args! { "goal.topic": "bees" }).unwrap().snapshot;
    assert_eq!(named(foreign), Some(Reason::UnknownSnapshot));
    assert_eq!(named(SnapshotId::from_bytes([7; 32])), Some(Reason::UnknownSnapshot));
}

#[test]
fn effect_classes_are_the_tools_own() {
    let world = World::new(syscap::policy::Preset::ReadOnly.document());
    let (_, agent) = world.seat("a", ["mail", "fs.write", "wait"]);
    assert_eq!(world.class_of("mail"), EffectClass::ExternalWrite);
    for (tool, args) in [
        ("mail", args! { "to": "a@example.com" }),
        ("fs.write", args! { "path": "a.txt", "text": "x" }),
        ("wait", args! {}),
    ] {
        assert_eq!(agent.call(tool, args).unwrap().reason(), Some(Reason::Denied), "{tool}");
    }
    assert_eq!(world.effects.count(), 0);
}
