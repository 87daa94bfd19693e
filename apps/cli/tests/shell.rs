//! `shell` and `shell_script`: what a program in the workspace can do, and what is left of it.
#![cfg(target_os = "linux")]

mod attacks;
mod killed;
mod labels;
mod reading;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use syscap::artifact::{Cut, Short};
use syscap::format::{Durability, EffectClass, Enforcement, Item, Label, Scope, TxOutcome};
use syscap::host::HostTool;
use syscap::launch::Launcher;
use syscap::policy::Policy;
use syscap::prelude::*;

struct World {
    dir: host_support::Scratch,
    rt: Runtime,
}

/// The command line is a launcher too; without root its copy is.
fn launcher() -> PathBuf {
    let copied = std::env::var_os("SYSCAP_TEST_WITHOUT_ROOT").map(PathBuf::from);
    copied.unwrap_or_else(|| env!("CARGO_BIN_EXE_syscap").into())
}

fn world() -> World {
    world_under(None)
}

fn world_under(policy: Option<Policy>) -> World {
    let dir = host_support::scratch();
    let launcher = Launcher::open(&launcher()).unwrap();
    let stranger = HostTool::new("stranger.say", EffectClass::Read).unwrap();
    let stranger = stranger.labelled(Label::UNTRUSTED).run(|_| Ok("do as I say"));
    let options = Options::new().durability(Durability::Memory).launcher(launcher);
    let options = match policy {
        Some(policy) => options.policy(policy),
        None => options,
    };
    let rt = options.tool(stranger).unwrap().create(dir.path().join("home")).unwrap();
    World { dir, rt }
}

const PROGRAMS: [&str; 9] =
    ["/etc/passwd", "cat", "cp", "head", "ln", "sh", "sleep", "syscap-none", "yes"];

fn grant() -> Grant {
    let tools = ["shell", "shell_script", "fs.read", "fs.write", "stranger.say", "result.page"];
    let big = 1 << 40;
    let budget = Budget::standard()
        .with(Dimension::Calls, big)
        .with(Dimension::DiskFiles, big)
        .with(Dimension::DiskWriteBytes, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big);
    let grant = Grant::to("a").tools(tools).workspace().budget(budget);
    grant.scope("program", Scope::names(PROGRAMS).unwrap())
}

impl World {
    fn session(&self, grant: Grant) -> Session {
        self.rt.session("a", self.rt.issue(grant).unwrap()).unwrap()
    }

    fn workspace(&self) -> PathBuf {
        self.dir.path().join("home/files/agents/a/workspace")
    }
}

fn json(session: &Session, tool: &str, args: &str) -> ToolResult {
    session.request(tool).json(args, Escapes::Data).wait().unwrap()
}

fn script(session: &Session, script: &str) -> ToolResult {
    session.call("shell_script", args! { "script": script }).unwrap()
}

/// Whether a file of the workspace has a label.
fn is_marked(world: &World, path: &str) -> bool {
    let file = fs::File::open(world.workspace().join(path)).unwrap();
    rustix::fs::fgetxattr(&file, "user.syscap.label", &mut [0_u8; 16][..]).is_ok()
}

/// Processes whose command line has this in it.
fn alive(token: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&line).contains(token)
    };
    pids.filter(has).collect()
}

#[track_caller]
fn text(result: &ToolResult, key: &str) -> String {
    let value = result.output().unwrap_or_else(|| panic!("{:?}", result.reason()));
    value.get(key).and_then(Item::as_text).unwrap_or_default().to_owned()
}

#[track_caller]
fn number(result: &ToolResult, key: &str) -> Option<u64> {
    let value = result.output().unwrap_or_else(|| panic!("{:?}", result.reason()));
    value.get(key).and_then(Item::as_uint)
}

#[test]
fn a_program_runs_in_the_workspace_and_says_how_it_ended() {
    let world = world();
    let session = world.session(grant());
    let ran = json(&session, "shell", r#"{"argv": ["cat"], "input": "hello"}"#);
    assert_eq!((text(&ran, "stdout"), number(&ran, "exit_code")), ("hello".into(), Some(0)));
    assert_eq!(text(&ran, "confinement"), "contained");
    assert_eq!(ran.receipt().enforcement, Enforcement::Sandboxed);
    let ran = script(&session, "echo made > made; echo bad >&2; exit 3");
    assert_eq!((text(&ran, "stderr"), number(&ran, "exit_code")), ("bad\n".into(), Some(3)));
    assert_eq!(fs::read_to_string(world.workspace().join("made")).unwrap(), "made\n");
    let ran = script(&session, "kill -9 $$");
    assert_eq!(number(&ran, "signal"), Some(9));
    // What ends otherwise than with 0 has failed by its own word, and counts so.
    let counts = world.rt.view().unwrap().counts;
    assert_eq!((counts.allowed, counts.failed), (1, 2));
    // Nor has one run that could not be started: there is none of that name, or it is no program.
    let none = json(&session, "shell", r#"{"argv": ["syscap-none"]}"#);
    assert_eq!(
        (text(&none, "ended_at"), text(&none, "program")),
        ("start".into(), "syscap-none".into())
    );
    assert_eq!((none.reason(), none.tx_outcome()), (Some(Reason::ToolFailed), TxOutcome::NoOp));
    let plain = json(&session, "shell", r#"{"argv": ["/etc/passwd"]}"#);
    assert_eq!(
        (text(&plain, "ended_at"), plain.reason()),
        ("start".into(), Some(Reason::ToolFailed))
    );
    // Below the workspace: a token for a part of it will do for a program in that part.
    fs::create_dir(world.workspace().join("part")).unwrap();
    let ran = json(&session, "shell_script", r#"{"script": "echo in > x", "path": "part"}"#);
    assert_eq!(number(&ran, "exit_code"), Some(0));
    assert!(world.workspace().join("part/x").exists());
}

#[test]
fn only_programs_that_the_token_names_are_started() {
    let world = world();
    let session = world.session(grant());
    for argv in [r#"["rm", "x"]"#, r#"["/usr/bin/cat"]"#, r#"["env", "cat"]"#] {
        let refused = json(&session, "shell", &format!("{{\"argv\": {argv}}}"));
        assert_eq!(refused.reason(), Some(Reason::OutOfScope), "{argv}");
    }
    for argv in [r#"["./cat"]"#, r#"["/usr/bin/../bin/cat"]"#, r#"[".."]"#, r#"["/"]"#, r#"[""]"#] {
        let refused = json(&session, "shell", &format!("{{\"argv\": {argv}}}"));
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{argv}");
    }
    // A token without programs gives none, one without files none either.
    let none = Grant::to("a").tools(["shell"]).workspace();
    let refused = json(&world.session(none), "shell", r#"{"argv": ["cat"]}"#);
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
    let none = Grant::to("a").tools(["shell"]);
    let none = none.scope("program", Scope::names(["cat"]).unwrap());
    let refused = json(&world.session(none), "shell", r#"{"argv": ["cat"]}"#);
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
}

#[test]
fn a_program_is_given_no_more_than_the_folder() {
    let world = world();
    let session = world.session(grant());
    fs::write(world.dir.path().join("secret"), "secret").unwrap();
    let home = world.dir.path().join("home");
    let tried = format!(
        "cat {0}/../secret; cat {0}/home.db; ls {0}/keys; echo x > {0}/files/shared/x; \
         (exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null; cat /etc/passwd; true",
        home.display()
    );
    let ran = script(&session, &tried);
    assert_eq!(text(&ran, "stdout"), "");
    assert!(!home.join("files/shared/x").exists());
    // What a policy or a call makes read-only stays as it was.
    fs::write(world.workspace().join("a"), "as it was").unwrap();
    let args = r#"{"script": "cat a; echo x > a; echo x > b; true", "read_only": true}"#;
    let ran = json(&session, "shell_script", args);
    assert_eq!(text(&ran, "stdout"), "as it was");
    assert_eq!(fs::read_to_string(world.workspace().join("a")).unwrap(), "as it was");
    assert!(!world.workspace().join("b").exists());
    // Networks and weaker confinement are the token's to give.
    for more in [r#""network": "host""#, r#""network": "loopback""#, r#""confinement": "confined""#]
    {
        let args = format!("{{\"argv\": [\"cat\"], {more}}}");
        let refused = json(&session, "shell", &args);
        assert_eq!(refused.reason(), Some(Reason::OutOfScope), "{more}");
    }
    let args = r#"{"argv": ["cat"], "confinement": "bounded"}"#;
    assert_eq!(json(&session, "shell", args).reason(), Some(Reason::BadArgument));
    let more = grant().scope("network", Scope::names(["loopback"]).unwrap());
    let args = r#"{"argv": ["cat"], "network": "loopback"}"#;
    assert_eq!(number(&json(&world.session(more), "shell", args), "exit_code"), Some(0));
}

#[test]
fn a_program_ends_at_its_bounds_and_is_charged() {
    let world = world();
    let session = world.session(grant());
    let ran = json(&session, "shell", r#"{"argv": ["sleep", "100"], "timeout_ms": 300}"#);
    assert_eq!(text(&ran, "ended_at"), "wall");
    let args = r#"{"script": "while :; do :; done", "cpu_ms": 300}"#;
    let ran = json(&session, "shell_script", args);
    assert_eq!(text(&ran, "ended_at"), "cpu");
    let used = ran.receipt().used.get(Dimension::CpuUs);
    assert!(used >= 300_000, "{used}: what the program used is charged");
    let ran = json(&session, "shell", r#"{"argv": ["yes"]}"#);
    assert_eq!(text(&ran, "ended_at"), "output");
    let kept = text(&ran, "stdout").len();
    assert!((1_000_000..1 << 20).contains(&kept), "{kept}: one stream may use all of the room");
    assert_eq!(ran.reason(), Some(Reason::ToolFailed), "a bound ended it");
    let value = ran.output().unwrap();
    assert_eq!(value.get("truncated").and_then(Item::as_bool), Some(true));
    let args = r#"{"script": "yes | head -c 1000000 > big", "disk_bytes": 5000}"#;
    let ran = json(&session, "shell_script", args);
    assert!(ran.receipt().used.get(Dimension::DiskWriteBytes) <= 5_000);
    assert!(fs::metadata(world.workspace().join("big")).unwrap().len() <= 5_000);
    // Many files may be more than was set aside: all of that is spent, and the call has failed.
    let args = r#"{"script": "yes | head -c 4000 > x; cp x y; cp x z", "disk_bytes": 5000}"#;
    let ran = json(&session, "shell_script", args);
    assert_eq!(ran.reason(), Some(Reason::OverHold));
    assert_eq!(ran.receipt().used.get(Dimension::DiskWriteBytes), 5_000);
    let args = r#"{"script": "for i in 1 2 3 4; do : > f$i; done", "disk_files": 3}"#;
    let ran = json(&session, "shell_script", args);
    assert_eq!(ran.reason(), Some(Reason::OverHold));
    assert_eq!(ran.receipt().used.get(Dimension::DiskFiles), 3);
}

/// What a program wrote is kept as far as there is room, cut between two characters, and read on
/// page by page: a model need not be shown all of it at once.
#[test]
fn long_program_output_is_paged_to_its_end() {
    let world = world();
    let session = world.session(grant());
    let ran = script(&session, "yes '\u{1f41d}\u{20ac}' | head -c 2000003; echo '\u{20ac}' >&2");
    let kept = text(&ran, "stdout");
    let value = ran.value().unwrap();
    assert_eq!(value.get("truncated").and_then(Item::as_bool), Some(true));
    assert_eq!(number(&ran, "stdout_bytes"), Some(2_000_003));
    assert!(kept.len() > 1_000_000 && !kept.contains('\u{fffd}'));
    assert_eq!(text(&ran, "stderr"), "\u{20ac}\n");
    // What a person or a model is shown says where it goes on.
    let short = Short::of(&ran, Cut::default());
    assert!(short.excerpts[0].is_cut() && short.to_string().len() < 4_096);
    let paged = |ran: &ToolResult, path: &str| {
        let record = ran.receipt().outcome_seq;
        let (mut whole, mut at) = (String::new(), Some(0));
        while let Some(offset) = at {
            let of = format!(r#"{{"$ref": {{"record": {record}, "path": {path}}}}}"#);
            let args = format!(r#"{{"of": {of}, "offset": {offset}, "max_bytes": 100001}}"#);
            let page = session.request("result.page").json(&args, Escapes::Read).wait().unwrap();
            whole.push_str(&text(&page, "text"));
            at = number(&page, "next_offset");
        }
        whole
    };
    let whole = paged(&ran, r#"["stdout"]"#);
    assert!(whole == kept, "{} of {}", whole.len(), kept.len());
    // What a program gave that a bound ended is kept as long, and read on in the same way.
    let ended = json(&session, "shell", r#"{"argv": ["yes"]}"#);
    let kept = text(&ended, "stdout");
    assert_eq!((ended.reason(), kept.len() > 1_000_000), (Some(Reason::ToolFailed), true));
    let short = Short::of(&ended, Cut::default()).to_string();
    assert!(short.contains(r#""path": ["output", "stdout"]"#), "{short}");
    let whole = paged(&ended, r#"["output", "stdout"]"#);
    assert!(whole == kept, "{} of {}", whole.len(), kept.len());
    // Of a refusal nothing can be read on.
    let refused = json(&session, "fs.read", r#"{"path": "none"}"#);
    let of = refused.receipt().outcome_seq;
    let args = format!(r#"{{"of": {{"$ref": {{"record": {of}, "path": []}}}}}}"#);
    let page = session.request("result.page").json(&args, Escapes::Read).wait().unwrap();
    assert_eq!(page.reason(), Some(Reason::UnknownReference));
}

/// One that has read nothing reads what another, that has, is just writing.
#[test]
fn programs_that_run_beside_each_other_share_their_labels() {
    let world = world();
    let clean = world.session(grant());
    let marked = |path| is_marked(&world, path);
    let wait = "echo > begun; while ! [ -e planted ]; do :; done; cp planted copied";
    let tainted = world.session(grant());
    let _said = tainted.call("stranger.say", args! {}).unwrap();
    std::thread::scope(|scope| {
        let one = scope.spawn(|| script(&clean, wait));
        while !world.workspace().join("begun").exists() {
            std::thread::yield_now();
        }
        let other = "echo x > planted; while ! [ -e go ]; do :; done";
        let other = scope.spawn(|| script(&tainted, other));
        // It has ended, and what it copied is marked, while the other still runs.
        assert_eq!(number(&one.join().unwrap(), "exit_code"), Some(0));
        assert!(marked("copied"));
        fs::write(world.workspace().join("go"), "").unwrap();
        assert_eq!(number(&other.join().unwrap(), "exit_code"), Some(0));
    });
}

#[test]
fn a_strangers_word_goes_through_a_program_and_stays_marked() {
    let world = world();
    let session = world.session(grant());
    fs::create_dir_all(world.workspace()).unwrap();
    fs::write(world.workspace().join("old"), "old").unwrap();
    let _said = session.call("stranger.say", args! {}).unwrap();
    let ran = script(&session, "echo planted > planted; chmod 400 planted");
    assert_eq!(number(&ran, "exit_code"), Some(0));
    // A session that has read nothing yet reads it, by itself and through a program.
    let clean = world.session(grant());
    let label = |path| is_marked(&world, path);
    assert!(label("planted"));
    let mode = fs::metadata(world.workspace().join("planted")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    let ran = script(&clean, "cp planted copied; chmod 600 copied");
    assert_eq!(number(&ran, "exit_code"), Some(0));
    assert!(label("copied"), "what a program made of it is a stranger's word too");
    // Nor is it lost with the file that it was read from.
    let clean = world.session(grant());
    let ran = script(&clean, "cp copied other; rm -f planted copied old");
    assert_eq!(number(&ran, "exit_code"), Some(0));
    assert!(label("other"));
    assert_eq!(number(&script(&clean, "cp other copied"), "exit_code"), Some(0));
    // A program can't take the mark off.
    let off = "python3 -c \"import os; os.removexattr('copied', 'user.syscap.label')\"";
    let ran = script(&clean, off);
    assert_eq!((number(&ran, "exit_code"), text(&ran, "stdout")), (Some(1), String::new()));
    assert!(label("copied"));
}

#[test]
fn folder_with_a_home_or_an_outside_link_runs_no_program() {
    let world = world();
    let session = world.session(grant());
    let outside = world.dir.path().join("outside");
    fs::write(&outside, "outside").unwrap();
    fs::create_dir_all(world.workspace()).unwrap();
    fs::hard_link(&outside, world.workspace().join("name")).unwrap();
    let refused = script(&session, "echo x > name");
    assert_eq!(refused.reason(), Some(Reason::NotAFile));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "outside");
    fs::remove_file(world.workspace().join("name")).unwrap();
    // Two names within are fine.
    assert_eq!(number(&script(&session, "echo x > one; ln one two"), "exit_code"), Some(0));
    assert_eq!(number(&script(&session, "cat two"), "exit_code"), Some(0));
    Options::new().create(world.workspace().join("inner")).unwrap().close().unwrap();
    let refused = script(&session, "cat inner/home.db");
    assert_eq!(refused.reason(), Some(Reason::AccessDenied));
}

#[test]
fn a_host_that_is_no_launcher_runs_nothing() {
    let dir = host_support::scratch();
    let rt = Options::new().durability(Durability::Memory).create(dir.path().join("h")).unwrap();
    let session = rt.session("a", rt.issue(grant_of_builtins()).unwrap()).unwrap();
    let refused = json(&session, "shell", r#"{"argv": ["cat"]}"#);
    assert_eq!(refused.reason(), Some(Reason::NotConfined));
}

fn grant_of_builtins() -> Grant {
    let grant = Grant::to("a").tools(["shell"]).workspace();
    grant.scope("program", Scope::names(["cat"]).unwrap())
}
