//! What a look costs: the rows that are read, by who looks and by the server.

use std::process::Command;
use std::sync::mpsc::channel;
use std::{env, thread};

use host_support::new_home;
use syscap::approvals::{Rows, Waited};
use syscap::audit::rows_read;
use syscap::format::{ApprovalAnswer, EffectClass, Seq, ToolId};
use syscap::host::HostTool;
use syscap::prelude::*;
use syscap::view::Whose;

const CHILD: &str = "SYSCAP_TEST_LOOKS";
const LOOKS: u64 = 100;
const CALLS: usize = 1_000;

/// The rows that something reads.
fn rows<T>(act: impl FnOnce() -> T) -> (u64, T) {
    let before = rows_read();
    let done = act();
    (rows_read() - before, done)
}

fn echo(agent: &Session, calls: usize) {
    for _ in 0..calls / 10 {
        let call = |n| agent.request("echo").args(args! { "value": n });
        let answers = agent.wait_all((0..10).map(call)).unwrap();
        assert!(answers.iter().all(|answer| answer.status() == Status::Ok), "{answers:?}");
    }
}

fn options() -> Options {
    let mail = HostTool::new("mail.send", EffectClass::ExternalWrite).unwrap();
    Options::new().tool(mail.text("to", "To whom.").run(|_| Ok("sent"))).unwrap()
}

/// Not a test: the process whose reads are counted.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let records: u64 = if env::var_os("SYSCAP_LONG").is_some() { 100_000 } else { 3_000 };
    let (_folder, home) = new_home();
    let server = options().create(&home).unwrap();
    let many = Budget::standard().with(Dimension::Calls, 1_000_000);
    let token = server.issue(Grant::to("a").tools(["echo", "mail.send"]).budget(many)).unwrap();
    let agent = server.session("a", token).unwrap();
    let head = || server.durable().unwrap().seq.get();
    while head() < records {
        echo(&agent, 100);
    }
    let asks = ["ada", "bob", "cyd"];
    let asks = asks.map(|to| agent.call("mail.send", args! { "to": to }).unwrap().ask().unwrap());
    let ask = asks[0];
    let (folded, log) = rows(|| options().inspect(&home).unwrap());
    assert!(folded >= records, "{folded}");
    assert_eq!(log.waiting().unwrap().len(), 3);
    println!("records {}, rows of one replay {folded}", head());

    let client = Runtime::connect(&home).unwrap();
    let (tool, digits) = (ToolId::new("echo").unwrap(), token.to_string());
    type Look<'a> = Box<dyn Fn() + 'a>;
    let looks: [(&str, u64, Look<'_>); 10] = [
        ("waiting", 3 * 3, Box::new(|| assert_eq!(client.waiting().unwrap().0.len(), 3))),
        ("request", 2, Box::new(|| assert!(Rows::open(&home).unwrap().asked(ask).is_ok()))),
        ("sets", 0, Box::new(|| assert!(client.sets().unwrap().0.is_empty()))),
        ("states", 0, Box::new(|| assert_eq!(client.states().unwrap().len(), 1))),
        ("tokens", 0, Box::new(|| assert_eq!(client.tokens(&digits[..9]).unwrap().len(), 1))),
        ("view", 0, Box::new(|| assert_eq!(client.view().unwrap().sessions.len(), 1))),
        ("tool", 0, Box::new(|| assert_eq!(client.tool(&tool).unwrap().info.tool, tool))),
        ("manifests", 0, Box::new(|| assert!(!client.manifests(Whose::All).unwrap().is_empty()))),
        ("counts", 0, Box::new(|| assert!(client.counts().unwrap().calls > 0))),
        ("watch", 0, Box::new(|| assert!(client.watch(u64::MAX, Duration::ZERO).unwrap() > 0))),
    ];
    for (name, most, look) in looks {
        let (read, ()) = rows(|| (0..LOOKS).for_each(|_| look()));
        println!("{LOOKS} looks, {name}: {read} rows");
        assert!(read <= most * LOOKS, "{name}: {read}");
    }

    let (alone, ()) = rows(|| echo(&agent, CALLS));
    let (says, heard) = channel();
    let waits = |ask: Seq| {
        let (other, says) = (Runtime::connect(&home).unwrap(), says.clone());
        let a = agent.agent().clone();
        move || says.send(other.wait(&a, ask, Duration::from_secs(60)).unwrap()).unwrap()
    };
    let (waited, ()) = rows(|| {
        thread::scope(|scope| {
            drop(asks.map(|ask| scope.spawn(waits(ask))));
            echo(&agent, CALLS);
            for ask in asks {
                server.answer(ask, ApprovalAnswer::Once, None).unwrap();
            }
        });
    });
    assert!(heard.try_iter().take(3).all(|found| found == Waited::Approved));
    println!("{CALLS} calls: {alone} rows; beside three that wait: {waited}");
    assert!(waited < 500, "{waited}");
    client.close().unwrap();
    server.close().unwrap();
}

/// A look reads the rows that it shows, whatever the length of the log; who waits for a person reads
/// none for what others do meanwhile.
#[test]
fn looks_read_what_they_show() {
    let out = Command::new(env::current_exe().unwrap())
        .args(["--exact", "looks::child", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    println!("{said}");
    assert!(out.status.success(), "{said}\n{}", String::from_utf8_lossy(&out.stderr));
}
