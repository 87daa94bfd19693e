//! kill -9 while a call waits for a person, was approved, or goes on: what was said stays said, and
//! is used once.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use host_support::{end, new_home, records};
use syscap::approvals::SetTerms;
use syscap::format::{
    ApprovalAnswer, Body, EffectClass, Name, Recovered, Resource, Scope, Seq, UnixMillis,
};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Typed};
use syscap::prelude::*;

const HOME: &str = "SYSCAP_ASKS_HOME";
const STAGE: &str = "SYSCAP_ASKS_STAGE";

/// Sends by adding a line to a file, and says so; one that is told to hangs after that.
struct Send {
    to: String,
}

impl Typed for Send {
    type Answer = u64;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, syscap::format::Refused> {
        let to = args.text("to")?.to_owned();
        let name = Name::new(&to).map_err(|_| args.bad("to", "a short name"))?;
        Ok(Planned::new(Self { to }).touches("to", Resource::Name(name), "to"))
    }

    fn run(self, _: &ToolCall) -> Result<u64, Failure> {
        // Only the process that is killed leaves a mark.
        let Ok(home) = std::env::var(HOME) else { return Ok(1) };
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(format!("{home}.sent")).unwrap();
        writeln!(file, "{}", self.to).unwrap();
        file.sync_all().unwrap();
        if std::env::var(STAGE).as_deref() == Ok("runs") {
            say("sent");
            loop {
                std::thread::park();
            }
        }
        Ok(1)
    }
}

/// A line that the parent reads whole.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

fn options() -> Options {
    let send = HostTool::new("mail.send", EffectClass::ExternalWrite)
        .unwrap()
        .text("to", "To whom.")
        .needs("to")
        .typed::<Send>();
    Options::new().tool(send).unwrap()
}

fn send(agent: &Session) -> ToolResult {
    agent.call("mail.send", args! { "to": "ada" }).unwrap()
}

fn token_of(home: &Path) -> TokenId {
    let log = Options::new().inspect(home).unwrap();
    log.kernel().tokens().next().unwrap().id
}

fn waiting(rt: &Runtime) -> Vec<Seq> {
    rt.look(|kernel| kernel.asks().map(|ask| ask.ask).collect()).unwrap()
}

/// Not a test: the process that is killed, once it has said how far it is.
#[test]
fn child() {
    let (Ok(home), Ok(stage)) = (std::env::var(HOME), std::env::var(STAGE)) else { return };
    let home = Path::new(&home);
    let rt = options().open(home).unwrap();
    let token = token_of(home);
    let agent = rt.session("a", token).unwrap();
    match &*stage {
        "asks" => say(&send(&agent).ask().unwrap().to_string()),
        "approves" => {
            rt.answer(waiting(&rt)[0], ApprovalAnswer::Once, None).unwrap();
            say("approved");
        }
        "sets" => {
            let end = rt.look(|kernel| kernel.now()).unwrap().plus(3_600_000);
            let terms = SetTerms { uses: 2, scopes: None, expires: Some(end) };
            rt.answer_set(waiting(&rt)[0], &terms, None).unwrap();
            assert_eq!(send(&agent).reason(), None);
            say("used");
        }
        "runs" => drop(send(&agent)),
        other => panic!("{other}"),
    }
    loop {
        std::thread::park();
    }
}

/// Runs the child until it has said something, kills it, and says what.
fn killed(home: &Path, stage: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_asks::child", "--nocapture"])
        .env(HOME, home)
        .env(STAGE, stage)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let own = |line: &String| {
        let own = ["approved", "used", "sent"];
        own.contains(&line.as_str()) || line.parse::<u64>().is_ok()
    };
    let said = lines.into_iter().find(own).expect("the child broke off");
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

fn sent(home: &Path) -> usize {
    let lines = fs::read_to_string(home.with_extension("sent")).unwrap_or_default();
    lines.lines().count()
}

fn home() -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, home) = new_home();
    let rt = options().create(&home).unwrap();
    let people = Scope::names(["ada"]).unwrap();
    rt.issue(Grant::to("a").tools(["mail.send"]).scope("to", people)).unwrap();
    rt.close().unwrap();
    (folder, home)
}

fn opened(home: &Path) -> (Runtime, Session) {
    let rt = options().open(home).unwrap();
    let agent = rt.session("a", token_of(home)).unwrap();
    (rt, agent)
}

#[test]
fn requests_and_approvals_outlive_the_process() {
    let (_folder, home) = home();
    let ask: u64 = killed(&home, "asks").parse().unwrap();
    let (rt, agent) = opened(&home);
    assert_eq!((send(&agent).ask(), waiting(&rt)), (Some(Seq::new(ask)), vec![Seq::new(ask)]));
    drop((agent, rt));
    assert_eq!(killed(&home, "approves"), "approved");
    let (rt, agent) = opened(&home);
    let done = send(&agent);
    assert_eq!(done.reason(), None);
    assert!(send(&agent).ask().is_some_and(|anew| anew > Seq::new(ask)));
    drop(agent);
    end(&rt, &home);
}

/// It was approved once, and may have been done: nobody does it again for that.
#[test]
fn interrupted_approved_call_is_not_repeated() {
    let (_folder, home) = home();
    killed(&home, "asks");
    killed(&home, "approves");
    assert_eq!(killed(&home, "runs"), "sent");
    assert_eq!(sent(&home), 1);
    let (rt, agent) = opened(&home);
    let recovered = records(&home).into_iter().filter_map(|record| match record.body {
        Body::Recovery(recovery) => Some(recovery.verdict),
        _ => None,
    });
    assert_eq!(recovered.collect::<Vec<_>>(), [Recovered::Unknown]);
    assert!(send(&agent).ask().is_some());
    assert_eq!((waiting(&rt).len(), sent(&home)), (1, 1));
    drop(agent);
    end(&rt, &home);
}

#[test]
fn standing_approval_outlives_the_process() {
    let (_folder, home) = home();
    killed(&home, "asks");
    assert_eq!(killed(&home, "sets"), "used");
    assert_eq!(sent(&home), 1);
    let (rt, agent) = opened(&home);
    let left: Vec<(u64, UnixMillis)> =
        rt.look(|kernel| kernel.sets().map(|set| (set.left, set.until)).collect()).unwrap();
    assert_eq!(left.iter().map(|(left, _)| *left).collect::<Vec<_>>(), [1]);
    assert_eq!(send(&agent).reason(), None);
    assert!(send(&agent).ask().is_some());
    drop(agent);
    end(&rt, &home);
}
