//! Waiting for a person's answer.

use std::{path::PathBuf, thread};

use host_support::{Still, end, new_home, verdict};
use syscap::approvals::{SetTerms, Waited, WaitingCall};
use syscap::format::{ASK_LIFE_MS, ApprovalAnswer, EffectClass, Seq};
use syscap::host::HostTool;
use syscap::prelude::*;
use syscap::verify::Soundness;

/// Longer than any of this takes: an answer that is not heard is a test that fails, late.
const LONG: Duration = Duration::from_secs(120);

fn options() -> Options {
    let send = HostTool::new("mail.send", EffectClass::ExternalWrite).unwrap();
    Options::new().tool(send.text("to", "To whom.").run(|_| Ok("sent"))).unwrap()
}

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    clock: Still,
    rt: Runtime,
}

fn world() -> World {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Still::default());
    let home = folder.path().join("home");
    let rt = options().clock(clock.clone()).create(&home).unwrap();
    World { _folder: folder, home, clock, rt }
}

impl World {
    fn agent(&self, name: &str) -> Session {
        let token = self.rt.issue(Grant::to(name).tools(["mail.send"])).unwrap();
        self.rt.session(name, token).unwrap()
    }

    fn end(self) {
        end(&self.rt, &self.home);
    }
}

fn send(agent: &Session, to: &str) -> ToolResult {
    agent.call("mail.send", args! { "to": to }).unwrap()
}

#[test]
fn an_answer_is_heard_and_the_call_goes_on() {
    let world = world();
    let agent = world.agent("a");
    let asks = ["ada", "bob"].map(|to| send(&agent, to).ask().unwrap());
    let heard = thread::scope(|scope| {
        let waits = asks.map(|ask| {
            scope.spawn({
                let agent = &agent;
                move || agent.wait(ask, LONG).unwrap()
            })
        });
        world.rt.answer(asks[0], ApprovalAnswer::Once, None).unwrap();
        world.rt.answer(asks[1], ApprovalAnswer::Deny, Some("not now")).unwrap();
        waits.map(|wait| wait.join().unwrap())
    });
    assert_eq!(heard, [Waited::Approved, Waited::Denied]);
    assert_eq!(send(&agent, "ada").text().unwrap(), "sent");
    assert_eq!(send(&agent, "bob").reason(), Some(Reason::ApprovalDenied));
    // What has run waits for nobody; what was refused stays so.
    assert_eq!(agent.wait(asks[0], LONG).unwrap(), Waited::Over);
    assert_eq!(agent.wait(asks[1], LONG).unwrap(), Waited::Denied);
    world.end();
}

#[test]
fn waiting_ends_with_its_limit() {
    let world = world();
    let agent = world.agent("a");
    let ask = send(&agent, "ada").ask().unwrap();
    assert_eq!(agent.wait(ask, Duration::ZERO).unwrap(), Waited::Waiting);
    assert_eq!(agent.wait(ask, Duration::from_millis(1)).unwrap(), Waited::Waiting);
    // It pays nothing, and leaves nothing on record.
    let head = world.rt.look(|kernel| kernel.head().seq).unwrap();
    assert_eq!(head, ask);
    // Of another agent's call nothing is told, nor of what there is not.
    let other = world.agent("b");
    for none in [ask, Seq::new(1), Seq::new(999_999)] {
        assert_eq!(other.wait(none, LONG).unwrap(), Waited::Over);
    }
    world.end();
}

#[test]
fn unanswered_request_expires() {
    let world = world();
    let agent = world.agent("a");
    let ask = send(&agent, "ada").ask().unwrap();
    let heard = thread::scope(|scope| {
        let wait = scope.spawn(|| agent.wait(ask, LONG).unwrap());
        world.clock.forward(ASK_LIFE_MS);
        wait.join().unwrap()
    });
    assert_eq!(heard, Waited::Expired);
    let agent = world.agent("a");
    assert!(send(&agent, "ada").ask().is_some_and(|anew| anew > ask));
    world.end();
}

#[test]
fn a_set_is_an_answer_too() {
    let folder = tempfile::tempdir().unwrap();
    let policy = r#"{"v": 1, "constraints": [{"id": "writes", "effect": "allow",
        "subject": {"tool_id": "fs.write"}, "when": {"op": "eq", "args": ["args.path", ""]},
        "on_fail": "ask", "reason": "Somebody looks."}]}"#;
    let policy = syscap::policy::Policy::from_json(policy.as_bytes()).unwrap();
    let rt = Options::new().policy(policy).create(folder.path().join("home")).unwrap();
    let grant = Grant::to("a").tools(["fs.write"]).workspace();
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    let write = || agent.call("fs.write", args! { "path": "a.txt", "text": "x" }).unwrap();
    let ask = write().ask().unwrap();
    rt.answer_set(ask, &SetTerms { uses: 2, scopes: None, expires: None }, None).unwrap();
    assert_eq!(agent.wait(ask, LONG).unwrap(), Waited::Approved);
    assert_eq!(write().reason(), None);
    assert_eq!(agent.wait(ask, LONG).unwrap(), Waited::Approved);
    assert_eq!(write().reason(), None);
    assert_eq!(agent.wait(ask, LONG).unwrap(), Waited::Over);
    rt.close().unwrap();
}

/// A home that is closed is not kept from it by whoever waits.
#[test]
fn waiting_caller_does_not_keep_the_home_open() {
    let world = world();
    let agent = world.agent("a");
    let ask = send(&agent, "ada").ask().unwrap();
    thread::scope(|scope| {
        let wait = scope.spawn(|| agent.wait(ask, LONG));
        world.rt.close().unwrap();
        assert!(matches!(wait.join().unwrap(), Err(Error::Closed)));
    });
    assert_eq!(verdict(&world.home), Soundness::Sound);
}

#[test]
fn connected_client_waits_too() {
    let (_folder, home) = new_home();
    options().create(&home).unwrap().close().unwrap();
    let holder = options().open(&home).unwrap();
    let other = Runtime::connect(&home).unwrap();
    let token = other.issue(Grant::to("a").tools(["mail.send"])).unwrap();
    let agent = other.session("a", token).unwrap();
    let ask = send(&agent, "ada").ask().unwrap();
    assert_eq!(agent.wait(ask, Duration::ZERO).unwrap(), Waited::Waiting);
    // Of another agent nothing is told.
    let stranger = AgentId::new("b").unwrap();
    assert_eq!(other.wait(&stranger, ask, LONG).unwrap(), Waited::Over);
    // Both hear of it, whoever answered.
    let own = holder.session("a", token).unwrap();
    thread::scope(|scope| {
        let waits = [&agent, &own].map(|agent| scope.spawn(|| agent.wait(ask, LONG).unwrap()));
        holder.answer(ask, ApprovalAnswer::Once, None).unwrap();
        for wait in waits {
            assert_eq!(wait.join().unwrap(), Waited::Approved);
        }
    });
    assert_eq!(send(&agent, "ada").reason(), None);
    // A wait outlasts its server, and ends none that is told to end.
    let ask = send(&agent, "bob").ask().unwrap();
    thread::scope(|scope| {
        let wait = scope.spawn(|| agent.wait(ask, LONG).unwrap());
        let since = std::time::Instant::now();
        holder.close().unwrap();
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
        let next = options().open(&home).unwrap();
        next.answer(ask, ApprovalAnswer::Deny, None).unwrap();
        assert_eq!(wait.join().unwrap(), Waited::Denied);
        other.close().unwrap();
        next.close().unwrap();
    });
}

/// What waits is asked of the server, from its own process and from others, and is what the log says,
/// whether it was answered, denied or set anew since.
#[test]
fn server_says_what_waits_as_the_log_does() {
    let (_folder, home) = new_home();
    let server = options().create(&home).unwrap();
    let client = Runtime::connect(&home).unwrap();
    let token = client.issue(Grant::to("a").tools(["mail.send"])).unwrap();
    let agent = client.session("a", token).unwrap();
    assert!(client.waiting().unwrap().0.is_empty());
    let asks = ["ada", "bob", "cy"].map(|to| send(&agent, to).ask().unwrap());
    server.answer(asks[1], ApprovalAnswer::Once, None).unwrap();
    server.answer(asks[2], ApprovalAnswer::Deny, None).unwrap();
    let shown = |waits: Vec<WaitingCall>| waits.iter().map(|call| format!("{call:?}")).collect();
    let logged: Vec<String> = shown(Options::new().inspect(&home).unwrap().waiting().unwrap());
    assert_eq!(logged.len(), 3);
    let told: [Vec<String>; 2] =
        [&server, &client].map(|access| shown(access.waiting().unwrap().0));
    assert_eq!(told, [logged.clone(), logged]);
    client.close().unwrap();
    server.close().unwrap();
}
