//! Tests for input to the broker that is no use of its own.

use syscap_format::DefinitionHash;

use crate::args;
use crate::{Options, server::desk::*, tools::provide::Cancel};

const SESSION: Seq = Seq::new(5);

fn used() -> ToolUse {
    ToolUse {
        agent: AgentId::new("a").unwrap(),
        conversation: "c".to_owned(),
        id: Some("u".to_owned()),
        tool: ToolId::new("client.run").unwrap(),
        args: args! { "n": 1_u64 }.finish(),
        place: None,
        location: None,
        part: None,
    }
}

fn sent() -> Use {
    Use {
        is_own: false,
        number: 0,
        token: TokenId::from_bytes([1; 32]),
        session: SESSION,
        used: used(),
        args: used().args,
        effect: EffectClass::ExternalWrite,
        stage: Stage::Sent,
        cancelled: false,
        awaited: true,
    }
}

fn call(tag: u64) -> HostCall {
    HostCall {
        tool: used().tool,
        definition: DefinitionHash::from_bytes([2; 32]),
        agent: used().agent,
        session: SESSION,
        intent: Seq::new(9),
        args: used().args,
        hold: Amounts::ZERO,
        result_bytes_max: 1_000,
        read_only: false,
        tag,
        cancel: Cancel::new(),
    }
}

/// A tag is the caller's own to choose: it says nothing of whose call it is.
#[test]
fn a_call_that_is_no_use_of_the_desk_takes_none() {
    let desk = Desk::default();
    desk.0.lock().uses.insert(7, sent());
    let others = [
        HostCall { tag: 8, ..call(7) },
        HostCall { session: Seq::new(6), ..call(7) },
        HostCall { agent: AgentId::new("b").unwrap(), ..call(7) },
        HostCall { tool: ToolId::new("client.look").unwrap(), ..call(7) },
        HostCall { args: args! { "n": 2_u64 }.finish(), ..call(7) },
    ];
    let provider = Uses(Arc::clone(&desk.0));
    for other in others {
        assert!(!desk.0.take(&other));
        let cancel = other.cancel.clone();
        let ran = provider.run(other);
        assert_eq!(ran.result.unwrap_err().reason(), Reason::Cancelled);
        assert_eq!((ran.tx, ran.used), (TxOutcome::NoOp, Amounts::ZERO));
        // Nor does it give one up.
        cancel.cancel();
        let state = desk.0.lock();
        let one = state.uses.get(&7).unwrap();
        assert!(matches!(one.stage, Stage::Sent) && !one.cancelled);
    }
    assert!(desk.0.take(&call(7)));
    assert!(matches!(desk.0.lock().uses[&7].stage, Stage::Out(intent) if intent == Seq::new(9)));
    // It is taken once.
    assert!(!desk.0.take(&call(7)));
}

#[test]
fn tags_can_not_be_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Options::new().make(&folder.path().join("home")).unwrap();
    let desk = Desk::default();
    let tags: Vec<u64> = (0..4).map(|_| desk.enter(&runtime, sent()).unwrap()).collect();
    for (at, tag) in tags.iter().enumerate() {
        assert!(*tag > 1 << 16, "{tag}");
        let near = |other: &u64| other.abs_diff(*tag) < 1 << 16;
        assert!(!tags[..at].iter().any(near), "{tags:?}");
    }
    runtime.end().unwrap();
}
