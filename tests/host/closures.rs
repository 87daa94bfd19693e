//! Closures: what they see, what they bring, and how they fail.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use syscap::format::{
    Canonical, EffectClass, Encoder, Enforcement, Item, Label, ObligationKind, Param, ParamType,
    Profile, Refused, TxOutcome,
};
use syscap::host::{Failure, HostTool};
use syscap::prelude::*;

use super::world::{World, options};

#[test]
fn a_closure_is_a_tool() {
    let lookup = HostTool::new("org.lookup", EffectClass::Read)
        .unwrap()
        .text("name", "Whose.")
        .run(|call| Ok(call.text("name")?.to_uppercase()));
    let world = World::with(options().tool(lookup).unwrap(), &["org.lookup"]);
    let result = world.agent.call("org.lookup", args! { "name": "ada" }).unwrap();
    assert_eq!(result.text().unwrap(), "ADA");
    assert_eq!(result.tx_outcome(), TxOutcome::NoOp);
    assert_eq!(result.receipt().enforcement, Enforcement::Delegated);
    assert_eq!(world.outcome().call.enforcement, Some(Enforcement::Delegated));
    // What it declares is checked before it sees the call.
    for (args, reason) in [
        (args! {}, Reason::MissingArgument),
        (args! { "name": 1_u64 }, Reason::BadArgument),
        (args! { "name": "ada", "bcc": "eve" }, Reason::UnknownArgument),
    ] {
        assert_eq!(world.agent.call("org.lookup", args).unwrap().reason(), Some(reason));
    }
    assert_eq!(world.outcomes().len(), 1);
    world.close();
}

#[test]
fn a_name_that_is_none_is_an_error() {
    for name in ["", "Org", "org lookup", "org..x", "1st"] {
        HostTool::new(name, EffectClass::Read).unwrap_err();
    }
    let twice = || HostTool::new("twice", EffectClass::Read).unwrap().run(|_| Ok(()));
    let options = options().tool(twice()).unwrap();
    assert!(matches!(options.tool(twice()), Err(Error::Registry(_))));
    let bad = HostTool::new("bad", EffectClass::Read).unwrap().text("x", "").text("x", "");
    let other = super::world::options();
    assert!(matches!(other.tool(bad.run(|_| Ok(()))), Err(Error::Registry(_))));
}

#[test]
fn a_closure_sees_its_call() {
    let see = HostTool::new("see", EffectClass::LocalWrite)
        .unwrap()
        .described("Sees.")
        .text("word", "")
        .integer("number", "")
        .boolean("flag", "")
        .arg(Param::optional("more", ParamType::Int, "").within(1, 9))
        .arg(Param::optional("bytes", ParamType::Bytes, ""))
        .hold(Dimension::DiskFiles, 3)
        .labelled(Label::UNTRUSTED)
        .run(|call| {
            assert_eq!(call.args().bytes("bytes")?, &[7][..]);
            assert_eq!(call.hold().get(Dimension::DiskFiles), 3);
            assert!(!call.is_read_only() && !call.is_cancelled());
            Ok(args! {
                "agent": call.agent().as_str(),
                "tool": call.tool().as_str(),
                "intent": call.intent().get(),
                "session": call.session().get(),
                "word": call.text("word")?,
                "number": call.integer("number")?,
                "flag": call.boolean("flag")?,
                "more": call.args().maybe_integer("more")?.is_some(),
                "less": call.args().maybe_text("none")?.is_some(),
                "cap": u64::try_from(call.result_bytes_max())?,
            })
        });
    let world = World::with(options().tool(see).unwrap(), &["see"]);
    let bytes: &[u8] = &[7];
    let args = args! { "word": "w", "number": -5_i64, "flag": true, "bytes": bytes };
    let result = world.agent.call("see", args.clone()).unwrap();
    let value = result.value().unwrap();
    let text = |key: &str| value.get(key).and_then(Item::as_text).unwrap();
    let number = |key: &str| value.get(key).and_then(Item::as_int).unwrap();
    let flag = |key: &str| value.get(key).and_then(Item::as_bool).unwrap();
    assert_eq!((text("agent"), text("tool"), text("word")), ("a", "see", "w"));
    assert_eq!(number("intent"), i128::from(world.outcome().intent.get()));
    assert_eq!(number("session"), i128::from(world.agent.number().get()));
    assert_eq!((number("number"), number("cap")), (-5, 1 << 20));
    assert_eq!((flag("flag"), flag("more"), flag("less")), (true, false, false));
    assert_eq!(result.tx_outcome(), TxOutcome::Committed);
    assert_eq!(world.outcome().label, Label::UNTRUSTED);
    let over = world.agent.call("see", args.with("more", 10_u64)).unwrap();
    assert_eq!(over.reason(), Some(Reason::BadArgument));
    world.close();
}

/// A closure that asks for what it does not declare has failed, and says what it lacks.
#[test]
fn a_getter_that_does_not_fit_fails_the_run() {
    let tool = |name: &str| HostTool::new(name, EffectClass::Read).unwrap().integer("n", "");
    let options = options()
        .tool(tool("missing").run(|call| Ok(call.text("m")?.to_owned())))
        .unwrap()
        .tool(tool("mistyped").run(|call| Ok(call.text("n")?.to_owned())))
        .unwrap()
        .tool(tool("large").run(|call| Ok(call.integer("n")?)))
        .unwrap();
    let world = World::with(options, &["missing", "mistyped", "large"]);
    let call = |tool: &str, n: u64| world.agent.call(tool, args! { "n": n }).unwrap();
    for (tool, n, says) in
        [("missing", 1, "302"), ("mistyped", 1, "303"), ("large", u64::MAX, "303")]
    {
        let result = call(tool, n);
        assert_eq!(result.reason(), Some(Reason::ToolFailed), "{tool}");
        assert!(result.output().unwrap().as_text().unwrap().contains(says), "{tool}");
    }
    assert_eq!(call("large", 7).value().unwrap().as_uint(), Some(7));
    world.close();
}

/// What a run says of its effect stands on record; where it says nothing, that is not known.
#[test]
fn failures_say_what_became_of_the_effect() {
    use EffectClass::{ExternalRead, ExternalWrite, Irreversible, LocalWrite, Pure, Read};
    let fail = |kind: &str| -> Result<(), Failure> {
        Err(match kind {
            "plain" => Failure::new("out of tea"),
            "before" => Failure::new("out of tea").without_effect(),
            "undone" => Failure::new("out of tea").rolled_back(),
            "file" => Failure::from(io::Error::from(io::ErrorKind::NotFound)),
            "denied" => Failure::from(io::Error::from(io::ErrorKind::PermissionDenied)),
            "other" => Failure::from("x".parse::<u64>().unwrap_err()),
            "refused" => Failure::from(Refused::new(Reason::Busy).field("tea")),
            _ => Failure::because(Refused::new(Reason::TimedOut)),
        })
    };
    let classes = [Pure, Read, ExternalRead, LocalWrite, ExternalWrite, Irreversible];
    let mut options = options();
    for class in classes {
        let tool = HostTool::new(&format!("fail.{}", class.name()), class).unwrap();
        let tool = tool.text("kind", "").run(move |call| fail(call.text("kind")?));
        options = options.tool(tool).unwrap();
    }
    let world = World::with(
        options,
        &classes
            .map(|class| format!("fail.{}", class.name()))
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    let call = |class: EffectClass, kind: &str| {
        let tool = format!("fail.{}", class.name());
        let result = world.agent.call(&tool, args! { "kind": kind }).unwrap();
        let told: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
        assert_eq!(told["retry"], result.retry().unwrap().name());
        (result.reason().unwrap(), result.tx_outcome(), result.retry().unwrap())
    };
    for class in [Pure, Read, ExternalRead] {
        assert_eq!(call(class, "plain"), (Reason::ToolFailed, TxOutcome::NoOp, Retry::Fix));
    }
    for class in [LocalWrite, ExternalWrite, Irreversible] {
        // What may have been done is not sent again unasked.
        assert_eq!(call(class, "plain"), (Reason::ToolFailed, TxOutcome::Unknown, Retry::Ask));
        assert_eq!(call(class, "before"), (Reason::ToolFailed, TxOutcome::NoOp, Retry::Fix));
        assert_eq!(call(class, "undone"), (Reason::ToolFailed, TxOutcome::RolledBack, Retry::Fix));
    }
    for (kind, reason) in [
        ("file", Reason::NotFound),
        ("denied", Reason::AccessDenied),
        ("other", Reason::ToolFailed),
        ("refused", Reason::Busy),
        // Only the kernel can say that.
        ("lie", Reason::Failed),
    ] {
        assert_eq!(call(Read, kind).0, reason, "{kind}");
    }
    world.close();
}

/// Its words are a result's: whole, within the same limits, hashed and kept as one, and the session is
/// given their label.
#[test]
fn failing_tool_is_answered_in_its_own_words() {
    let words = "a line\n\u{1b}[31m".repeat(50);
    let said = words.clone();
    let fails = HostTool::new("fails", EffectClass::ExternalWrite)
        .unwrap()
        .text("how", "")
        .labelled(Label::UNTRUSTED)
        .run(move |call| {
            Err::<(), _>(match call.text("how")? {
                "words" => Failure::new(&said),
                "map" => {
                    Failure::output(args! { "stderr": "no", "code": 2_u64 }).retry(Retry::Never)
                }
                "milder" => Failure::new("no").without_effect().retry(Retry::Wait),
                "deep" => {
                    // With the object around it one level more than data may have.
                    let deep = (0..Profile::DATA.depth_max())
                        .fold(Canonical::null(), |inner, _| Canonical::list([inner].into_iter()));
                    Failure::output(deep)
                }
                _ => Failure::new(&"x".repeat((1 << 20) + 1)),
            })
        });
    let echo = HostTool::new("say", EffectClass::Pure).unwrap().run(|_| Ok(1_u64));
    let options = options().tool(fails).unwrap().tool(echo).unwrap();
    let world = World::with(options, &["fails", "say"]);
    let call = |how: &str| world.agent.call("fails", args! { "how": how }).unwrap();
    let label = || world.rt.view().unwrap().token(world.agent.token()).unwrap().label;
    assert!(!label().is_untrusted());
    let answer = call("words");
    assert_eq!((answer.status(), answer.reason()), (Status::Error, Some(Reason::ToolFailed)));
    assert_eq!(answer.output().and_then(Item::as_text), Some(&*words));
    assert_eq!((answer.tx_outcome(), answer.retry()), (TxOutcome::Unknown, Some(Retry::Ask)));
    assert!(answer.value().is_err() && answer.text().is_err());
    let outcome = world.outcome();
    assert_eq!((outcome.reason, outcome.label), (answer.reason(), Label::UNTRUSTED));
    assert_eq!(outcome.call.result_hash, Some(answer.result_hash()));
    assert!(label().is_untrusted(), "a failing tool's words are a stranger's too");
    let map = call("map");
    assert_eq!(map.retry(), Some(Retry::Never));
    let code = map.output().and_then(|map| map.get("code")).and_then(Item::as_uint);
    assert_eq!(code, Some(2));
    assert_eq!(
        (call("milder").retry(), call("milder").tx_outcome()),
        (Some(Retry::Fix), TxOutcome::NoOp)
    );
    assert_eq!(call("deep").reason(), Some(Reason::TooDeep));
    assert_eq!(call("large").reason(), Some(Reason::ResultTooLarge));
    world.close();
}

#[test]
fn metered_use_is_charged_up_to_its_hold() {
    let send = |name: &str| {
        HostTool::new(name, EffectClass::ExternalWrite)
            .unwrap()
            .integer("n", "")
            .hold(Dimension::EgressBytes, 10)
    };
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let obeys = send("obeys").run(move |call| {
        let n = u64::try_from(call.integer("n")?)?;
        for _ in 0..n {
            call.meter(Dimension::EgressBytes, 1)?;
            count.fetch_add(1, Ordering::SeqCst);
        }
        Ok(n)
    });
    let shrugs = send("shrugs").run(|call| {
        call.meter(Dimension::EgressBytes, 4)?;
        // Not counted, and neither is what is no run's to count.
        call.meter(Dimension::EgressBytes, 7).unwrap_err();
        call.meter(Dimension::EgressBytes, u64::MAX).unwrap_err();
        call.meter(Dimension::Calls, 1).unwrap_err();
        call.meter(Dimension::CpuUs, 1).unwrap_err();
        call.meter(Dimension::DiskFiles, 1).unwrap_err();
        Ok(())
    });
    let world =
        World::with(options().tool(obeys).unwrap().tool(shrugs).unwrap(), &["obeys", "shrugs"]);
    let used = |result: &ToolResult| result.receipt().used.get(Dimension::EgressBytes);
    let within = world.agent.call("obeys", args! { "n": 10_u64 }).unwrap();
    assert_eq!((within.reason(), used(&within)), (None, 10));
    let over = world.agent.call("obeys", args! { "n": 11_u64 }).unwrap();
    assert_eq!(over.reason(), Some(Reason::OverHold));
    assert_eq!((over.tx_outcome(), used(&over)), (TxOutcome::Unknown, 10));
    assert_eq!(sent.load(Ordering::SeqCst), 20);
    let shrugged = world.agent.call("shrugs", args! { "n": 0_u64 }).unwrap();
    assert_eq!((shrugged.reason(), used(&shrugged)), (None, 4));
    world.close();
}

/// So many lists, one in the other.
fn nested(levels: usize) -> Canonical {
    let mut encoder = Encoder::new();
    (0..levels).for_each(|_| encoder.array(1));
    encoder.null();
    Canonical::check(encoder.into_bytes(), Profile::DATA).unwrap()
}

#[test]
fn a_result_that_can_not_be_delivered_is_a_failure() {
    let long = HostTool::new("long", EffectClass::LocalWrite)
        .unwrap()
        .integer("n", "")
        .result_bytes_max(100)
        .run(|call| Ok("x".repeat(usize::try_from(call.integer("n")?)?)));
    let deepest = usize::from(Profile::DATA.depth_max());
    let deep = HostTool::new("deep", EffectClass::LocalWrite).unwrap().boolean("more", "");
    let deep = deep.run(move |call| {
        let inner = nested(deepest);
        Ok(if call.boolean("more")? { args! { "in": inner }.finish() } else { inner })
    });
    let world = World::with(options().tool(long).unwrap().tool(deep).unwrap(), &["long", "deep"]);
    let call = |tool: &str, args| world.agent.call(tool, args).unwrap();
    assert_eq!(call("long", args! { "n": 98_u64 }).reason(), None);
    let large = call("long", args! { "n": 99_u64 });
    assert_eq!(large.reason(), Some(Reason::ResultTooLarge));
    // The effect was made all the same.
    assert_eq!(large.tx_outcome(), TxOutcome::Committed);
    assert_eq!(call("deep", args! { "more": false }).reason(), None);
    assert_eq!(call("deep", args! { "more": true }).reason(), Some(Reason::TooDeep));
    world.close();
}

#[test]
fn a_closure_that_panics_is_charged_in_full_and_others_go_on() {
    let bad = HostTool::new("bad", EffectClass::ExternalWrite)
        .unwrap()
        .hold(Dimension::EgressBytes, 10)
        .run(|call| -> Result<(), Failure> {
            call.meter(Dimension::EgressBytes, 1)?;
            panic!("a closure that panics")
        });
    let good = HostTool::new("good", EffectClass::Read).unwrap().run(|_| Ok(true));
    let world = World::with(options().tool(bad).unwrap().tool(good).unwrap(), &["bad", "good"]);
    let result = world.agent.call("bad", args! {}).unwrap();
    assert_eq!(result.reason(), Some(Reason::Panicked));
    assert_eq!(result.tx_outcome(), TxOutcome::Unknown);
    assert_eq!(result.receipt().used.get(Dimension::EgressBytes), 10);
    assert_eq!(world.agent.call("good", args! {}).unwrap().reason(), None);
    world.close();
}

/// A run that is given up hears of it, is recorded when it is back, and does not cost the token.
#[test]
fn a_closure_hears_that_it_was_given_up() {
    let heard = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&heard);
    let slow = HostTool::new("slow", EffectClass::LocalWrite)
        .unwrap()
        .limit(Duration::from_millis(20))
        .run(move |call| {
            while !call.is_cancelled() {
                std::thread::yield_now();
            }
            note.store(true, Ordering::SeqCst);
            Ok("too late")
        });
    let world = World::with(options().tool(slow).unwrap(), &["slow", "echo"]);
    let result = world.agent.call("slow", args! {}).unwrap();
    assert_eq!(result.reason(), Some(Reason::TimedOut));
    assert_eq!(result.tx_outcome(), TxOutcome::Unknown);
    world.until(World::is_back);
    assert!(heard.load(Ordering::SeqCst));
    let echo = world.agent.call("echo", args! { "value": true }).unwrap();
    assert_eq!(echo.reason(), None, "the token is not exhausted by it");
    world.close_after(1);
}

#[test]
fn only_a_tool_that_honours_it_is_asked_to_change_nothing() {
    let asked = Arc::new(AtomicU64::new(0));
    let tool =
        |name: &str| HostTool::new(name, EffectClass::LocalWrite).unwrap().boolean("careful", "");
    let count = |asked: &Arc<AtomicU64>| {
        let asked = Arc::clone(asked);
        move |call: &syscap::host::ToolCall| {
            asked.fetch_add(u64::from(call.is_read_only()), Ordering::SeqCst);
            Ok(())
        }
    };
    let honest = tool("honest").honours(ObligationKind::ReadOnly).run(count(&asked));
    let plain = tool("plain").run(count(&asked));
    let options = options().tool(honest).unwrap().tool(plain).unwrap();
    let world = World::with(options, &["honest", "plain"]);
    let call = |tool: &str| world.agent.call(tool, args! { "careful": true }).unwrap();
    assert_eq!(call("honest").reason(), None);
    assert_eq!(call("plain").reason(), Some(Reason::Obligation));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    world.close();
}
