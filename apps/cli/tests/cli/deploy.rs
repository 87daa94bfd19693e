//! `docs/deploy.md`: its commands, its unit and its image.

use std::{fs, path::Path, process::Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::readme::{is_there, play_of};
use crate::cli::support::{TestHome, run, syscap, until};

const DOCUMENT: &str = "docs/deploy.md";

fn text() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(DOCUMENT)).unwrap()
}

/// The blocks of a language.
fn blocks(language: &str) -> Vec<String> {
    let text = text();
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// From the home that is made to the copy that is restored: one script, as it stands.
#[test]
fn deploy_page_script_runs_as_written() {
    if !is_there("sqlite3") {
        println!("skipped: there is no sqlite3 to make a backup with");
        return;
    }
    play_of(&["A build\n", "Copies\n"], &format!("../../{DOCUMENT}"), 28);
}

/// The unit is one that systemd takes, and its command serves until it is told to end.
#[test]
fn the_unit_is_sound_and_its_command_serves() {
    let units = blocks("ini");
    let (unit, drop_in) = (&units[0], &units[1]);
    let value = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.strip_prefix('=').unwrap().to_owned()
    };
    let command = value("ExecStart");
    let words: Vec<&str> = command.split(' ').collect();
    let [program, home] = [words[0], words[words.len() - 1]];
    assert_eq!((program, home), ("/usr/local/bin/syscap", "/var/lib/syscap/home"));
    let ours = TestHome::new();
    if is_there("systemd-analyze") {
        let mut both = unit.replace(program, syscap().get_program().to_str().unwrap());
        both.push_str(drop_in);
        let mine = ours.folder.path().join("syscap.service");
        for text in [&both, &unit.replace(program, env!("CARGO_BIN_EXE_syscap"))] {
            fs::write(&mine, text).unwrap();
            let ran = Command::new("systemd-analyze").arg("verify").arg(&mine).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            // Other units of the machine may be odd; what is said of this one counts.
            let of_it: Vec<&str> =
                said.lines().filter(|line| line.contains("syscap.service")).collect();
            assert_eq!((ran.status.success(), of_it), (true, vec![]), "{said}");
        }
    } else {
        println!("skipped: there is no systemd-analyze to verify the unit with");
    }
    let said = ours.beside("said");
    let err = fs::File::create(&said).unwrap();
    let args = words[1..words.len() - 1].iter().map(|word| (*word).to_owned());
    let mut child = syscap().args(args.chain([ours.path()])).stderr(err).spawn().unwrap();
    until("it serves", || fs::read_to_string(&said).is_ok_and(|said| said.contains("serving")));
    assert_eq!(value("KillSignal"), "SIGTERM");
    let id = i32::try_from(child.id()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(run(["verify", &ours.path(), "--json"]).fine().one()["end"], "clean");
}

/// Every command of the workflow, the unit's setup and the image is one that this program has.
#[test]
fn commands_elsewhere_are_commands() {
    let mut seen = 0;
    let lines = [blocks("yaml"), blocks("sh")].concat().join("\n");
    for line in lines.lines() {
        let Some((_, behind)) = line.rsplit_once("syscap ") else { continue };
        let before = &line[..line.len() - behind.len()];
        let is_ours = before.ends_with("run: syscap ")
            || before.ends_with("\"syscap ")
            || before.trim_start() == "syscap "
            || before.ends_with("syscap syscap ")
            || before.ends_with("sudo -u syscap syscap ");
        if !is_ours {
            continue;
        }
        let words: Vec<&str> =
            behind.split([' ', '"']).take_while(|w| *w != "--" && *w != "#").collect();
        let flags = words.iter().filter(|word| word.starts_with("--"));
        let command: Vec<&str> = words
            .iter()
            .take_while(|word| !word.contains(['/', '.', '-', '=']) && !word.is_empty())
            .copied()
            .collect();
        let help = run(command.iter().chain(&["--help"])).fine().out;
        for flag in flags {
            assert!(help.contains(flag), "{line}: {flag}");
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
    let image = &blocks("dockerfile")[0];
    assert!(image.contains(r#"CMD ["serve", "/var/lib/syscap/home"]"#), "{image}");
    assert!(image.contains("VOLUME /var/lib/syscap\n") && image.contains(":nonroot\n"), "{image}");
}
