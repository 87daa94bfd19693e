//! Where nobody is there to be asked, nothing waits for a person.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::{end, records};
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{self, Policed, Sim};
use syscap::Connect;
use syscap::audit::MemoryStore;
use syscap::format::{
    AgentId, ApprovalAnswer, Body, EffectClass, HomeLimits, Manifest, MapBuilder,
};
use syscap::host::{Begun, HostTool, ToolUse};
use syscap::prelude::*;

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

fn agent(rt: &Runtime) -> Session {
    let token = rt.issue(Grant::to("a").tools(["mail.send"])).unwrap();
    rt.session("a", token).unwrap()
}

fn send(agent: &Session, to: &str) -> ToolResult {
    agent.call("mail.send", args! { "to": to }).unwrap()
}

fn asks(home: &Path) -> usize {
    records(home).iter().filter(|record| matches!(record.body, Body::Ask(_))).count()
}

#[test]
fn a_headless_home_asks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (home, sent) = (folder.path().join("home"), Arc::new(AtomicU64::new(0)));
    let rt = options(&sent).headless().create(&home).unwrap();
    let caller = agent(&rt);
    for to in ["ada", "ada", "bob"] {
        let refused = send(&caller, to);
        assert_eq!((refused.reason(), refused.ask()), (Some(Reason::Asked), None));
        assert_eq!(refused.retry(), Some(Retry::Ask));
        assert!(matches!(records(&home).pop().unwrap().body, Body::Refusal(_)));
    }
    // What the policy asks nobody about runs as ever.
    assert_eq!((asks(&home), sent.load(Ordering::SeqCst)), (0, 0));
    end(&rt, &home);
    // It is of the holder, not of the home.
    let rt = options(&sent).open(&home).unwrap();
    assert!(send(&agent(&rt), "ada").ask().is_some());
    end(&rt, &home);
}

#[test]
fn approved_call_continues_headless() {
    let folder = tempfile::tempdir().unwrap();
    let (home, sent) = (folder.path().join("home"), Arc::new(AtomicU64::new(0)));
    let rt = options(&sent).create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["mail.send"])).unwrap();
    let first = send(&rt.session("a", token).unwrap(), "ada").ask().unwrap();
    rt.close().unwrap();
    let rt = options(&sent).headless().open(&home).unwrap();
    let caller = rt.session("a", token).unwrap();
    // It waits from before, and is answered from elsewhere.
    assert_eq!(send(&caller, "ada").ask(), Some(first));
    rt.answer(first, ApprovalAnswer::Once, None).unwrap();
    assert_eq!(send(&caller, "ada").reason(), None);
    assert_eq!(send(&caller, "ada").ask(), None);
    assert_eq!((asks(&home), sent.load(Ordering::SeqCst)), (1, 1));
    end(&rt, &home);
}

/// Who attaches follows the process that holds the home, in both ways.
#[test]
fn connected_client_follows_the_servers_headless_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (home, sent) = (folder.path().join("home"), Arc::new(AtomicU64::new(0)));
    options(&sent).create(&home).unwrap().close().unwrap();
    let holder = options(&sent).headless().open(&home).unwrap();
    let other = Runtime::connect(&home).unwrap();
    let refused = send(&agent(&other), "ada");
    assert_eq!((refused.reason(), refused.ask()), (Some(Reason::Asked), None));
    other.close().unwrap();
    holder.close().unwrap();
    let holder = options(&sent).open(&home).unwrap();
    let other = Runtime::connect(&home).unwrap();
    assert!(send(&agent(&other), "bob").ask().is_some());
    other.close().unwrap();
    holder.close().unwrap();
    assert_eq!(asks(&home), 1);
}

/// A client that says that nobody is there is asked by no call of its own; others' calls wait.
#[test]
fn headless_client_is_refused_at_once_and_others_wait() {
    let folder = tempfile::tempdir().unwrap();
    let (home, sent) = (folder.path().join("home"), Arc::new(AtomicU64::new(0)));
    let server = options(&sent).create(&home).unwrap();
    let alone = Connect::to(&home).headless().open().unwrap();
    let other = Runtime::connect(&home).unwrap();
    let token = server.issue(Grant::to("a").tools(["mail.send"])).unwrap();
    let [alone_session, session] = [&alone, &other].map(|rt| rt.session("a", token).unwrap());
    let refused = send(&alone_session, "ada");
    assert_eq!((refused.reason(), refused.ask()), (Some(Reason::Asked), None));
    let (says, heard) = std::sync::mpsc::channel();
    let call = alone_session.request("mail.send").args(args! { "to": "ada" });
    call.submit(move |answer| says.send(answer.unwrap()).unwrap());
    assert_eq!(heard.recv().unwrap().ask(), None);
    // A tool that the client runs itself, as a hook asks for it.
    let manifest = Manifest::new(ToolId::new("own.tool").unwrap(), EffectClass::ExternalWrite);
    let used = |id: &str| ToolUse {
        agent: AgentId::new("a").unwrap(),
        conversation: "c".to_owned(),
        id: Some(id.to_owned()),
        tool: manifest.tool.clone(),
        args: MapBuilder::new().finish(),
        place: None,
        location: None,
        part: None,
    };
    // It is on record from the first use on.
    drop(other.begin_use(token, &used("0"), &manifest).unwrap());
    let token = server.issue(Grant::to("a").tools(["own.tool"])).unwrap();
    let begun = alone.begin_use(token, &used("1"), &manifest).unwrap();
    let Begun::Answered(refused) = begun else { panic!("{begun:?}") };
    assert_eq!((refused.reason(), refused.ask()), (Some(Reason::Asked), None));
    assert_eq!(asks(&home), 0);
    let begun = other.begin_use(token, &used("2"), &manifest).unwrap();
    assert!(matches!(begun, Begun::Answered(waits) if waits.ask().is_some()));
    assert!(send(&session, "ada").ask().is_some());
    assert_eq!((asks(&home), sent.load(Ordering::SeqCst)), (2, 0));
    alone.close().unwrap();
    other.close().unwrap();
    end(&server, &home);
}

/// The kernel itself, without a host: it changes no state but what the refusal pays.
#[test]
fn a_kernel_without_a_head_parks_nothing() {
    const CALL: &str = r#"{"tool_id": "trim", "args": {"units": 21}}"#;
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    let token = sim.issue("a0", 60, 200, 500_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = *sim.sessions.last().unwrap();
    let other = sim.reopened().unwrap();
    let kernel = std::mem::replace(&mut sim.kernel, other);
    sim.kernel = kernel.headless();
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    let reply = sim.reply_to(ticket).unwrap();
    assert_eq!((reply.reason(), reply.ask()), (Some(Reason::Asked), None));
    assert_eq!((sim.kernel.asks().count(), sim.jobs.len()), (0, 0));
    let last = sim::records(&mut sim).pop().unwrap();
    assert!(matches!(last.body, Body::Refusal(_)), "{last:?}");
    let image = sim.kernel.state_image();
    assert_eq!(sim.reopened().unwrap().state_image(), image);
}
