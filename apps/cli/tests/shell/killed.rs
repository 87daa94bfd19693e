//! kill -9 of the host while a program of an agent's runs.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use syscap::format::{Body, Recovered, Scope};
use syscap::launch::Launcher;
use syscap::prelude::*;
use syscap::verify::Soundness;

use crate::shell::alive;
use host_support::{records, verdict};

const HOME: &str = "SYSCAP_SHELL_KILLED_HOME";
const NAP: &str = "SYSCAP_SHELL_KILLED_NAP";

/// Not a test: the process that is killed.
#[test]
fn child() {
    let (Ok(home), Ok(nap)) = (std::env::var(HOME), std::env::var(NAP)) else { return };
    let launcher = Launcher::open(&crate::shell::launcher()).unwrap();
    let rt = Options::new().launcher(launcher).open(&home).unwrap();
    let token = rt.view().unwrap().tokens[0].id;
    let session = rt.session("a", token).unwrap();
    println!("ready");
    crate::shell::script(
        &session,
        &format!("echo begun > begun; (setsid sleep {nap} &); sleep {nap}; :"),
    );
}

/// Nothing of it goes on, all that was set aside is charged, and what became of it is unknown.
#[test]
fn a_program_ends_with_its_host_and_is_charged_whole() {
    let dir = host_support::scratch();
    let home = dir.path().join("home");
    let nap = format!("602.{:07}", std::process::id());
    let rt = Runtime::create(&home).unwrap();
    let big = 1 << 40;
    let budget = Budget::standard()
        .with(Dimension::DiskWriteBytes, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big);
    let grant = Grant::to("a").tools(["shell_script"]).workspace().budget(budget);
    let grant = grant.scope("program", Scope::names(["sh"]).unwrap());
    let token = rt.issue(grant).unwrap();
    let dimensions = [Dimension::CpuUs, Dimension::WallUs, Dimension::DiskWriteBytes];
    let left = |rt: &Runtime| {
        let view = rt.view().unwrap();
        dimensions.map(|dimension| view.token(token).unwrap().left.get(dimension))
    };
    let before = left(&rt);
    rt.close().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shell::killed::child", "--nocapture"])
        .env(HOME, &home)
        .env(NAP, &nap)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().ends_with("ready") {}
    let until = |what: &dyn Fn() -> bool| {
        let is_so = (0..6_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            what()
        });
        assert!(is_so, "it did not come to be");
    };
    until(&|| alive(&nap).len() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until(&|| alive(&nap).is_empty());
    let rt = Runtime::open(&home).unwrap();
    let after = left(&rt);
    rt.close().unwrap();
    let all = records(&home);
    let intents = all.iter().filter_map(|record| match &record.body {
        Body::Intent(intent) => Some((record.seq, intent.call.held)),
        _ => None,
    });
    let intents: Vec<_> = intents.collect();
    let [(intent, held)] = intents[..] else { panic!("{}", intents.len()) };
    let recovered = all.iter().find_map(|record| match &record.body {
        Body::Recovery(recovery) => Some((recovery.intent, recovery.verdict)),
        _ => None,
    });
    assert_eq!(recovered, Some((intent, Recovered::Unknown)));
    for (at, dimension) in dimensions.into_iter().enumerate() {
        assert!(held.get(dimension) > 0);
        assert_eq!(before[at] - after[at], held.get(dimension), "{dimension:?}");
    }
    assert!(fs::exists(home.join("files/agents/a/workspace/begun")).unwrap());
    assert_eq!(verdict(&home), Soundness::Sound);
}
