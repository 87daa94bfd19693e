//! Names, documents and words that mean harm.

use std::{fs, process::Stdio};

use syscap::kernel::PolicyEngine as _;
use syscap::policy::{Policy, Preset};

use super::{tools, when};
use crate::cli::support::{Run, TestHome, run, syscap};

/// Whatever stands in a name or a file, nothing that a terminal would obey is printed.
#[test]
fn hostile_text_is_never_printed_raw() {
    let home = TestHome::new();
    let clean = |run: &Run| {
        let hidden =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!run.out.contains(hidden) && !run.err.contains(hidden), "{:?}", run.err);
        assert!(run.err.lines().count() <= 1, "{:?}", run.err);
    };
    let names = ["\u{1b}[31mred", "a\nb", "a\rb\u{9b}1m", "\u{202e}txt", "preset:\u{1b}[2J"];
    for name in names {
        let beside = home.text_beside(name);
        for target in [name, &*beside] {
            for command in ["hash", "show", "check"] {
                let run = run(["policy", command, target]);
                assert!([1, 2].contains(&run.code), "{name:?}");
                clean(&run);
            }
        }
    }
    for words in [
        &["who-can", "preset:coder", "\u{1b}[31m"][..],
        &["\u{9b}2J"],
        &["diff", "a", "b", "\u{1b}"],
    ] {
        let run = run(["policy"].iter().chain(words));
        assert_eq!(run.code, 2);
        assert!(!run.err.contains(|c: char| c.is_control() && c != '\n'), "{:?}", run.err);
    }
    let good = tools(&[("fs.read", when("eq", "fact.x", "y"))]);
    let hostile = "\\u001b[31m\\u009b\\u202e\\n\\u007f";
    for (right, wrong) in [
        ("\"on_fail\"", format!("\"{hostile}\"")),
        ("fs.read", hostile.to_owned()),
        ("fact.x", format!("fact.{hostile}")),
        ("allow.fs", hostile.to_owned()),
    ] {
        for flags in [&[][..], &["--json"]] {
            let run = {
                let file = home.file("policy.json", &good.replacen(right, &wrong, 1));
                run(["policy", "check", &file].iter().chain(flags))
            };
            assert_eq!(run.code, 1);
            clean(&run);
        }
    }
    // Where it may stand it is shown, and what is shown reads as the same.
    let written = good.replace("\"y\"", &format!("\"{hostile}\"")).replace("Because", hostile);
    let file = home.file("hostile.json", &written);
    let shown = run(["policy", "show", &file]).fine();
    clean(&shown);
    let again = home.file("again.json", &shown.out);
    let hash = |file: &str| run(["policy", "hash", file]).fine().out;
    assert_eq!(hash(&file), hash(&again));
    clean(&run(["policy", "check", &file]));
    clean(&run(["policy", "diff", &file, "preset:standard"]));
    let call = r#"{"call.tool":"fs.read","call.effect":"read","call.agent":"a"}"#;
    let given = call.replacen('}', &format!(",\"fact.x\":\"{hostile}\"}}"), 1);
    clean(&run(["policy", "explain", &file, "--given", &given]).fine());
}

/// What is wrong with a command line is said without colours, and of its words nothing is lost
/// and nothing is obeyed, on a terminal neither.
#[test]
fn a_terminal_obeys_no_word_of_the_command_line() {
    let words: [(&[&str], &str); 5] = [
        (&["policy", "\u{1b}[31mred"], "\\u001b[31mred"),
        (&["--\u{1b}]0;title\u{7}"], "--\\u001b]0;title\\u0007"),
        (&["policy", "diff", "a", "b", "\u{202e}c\u{9b}2J"], "\\u202ec\\u009b2J"),
        (&["policy", "who-can", "preset:coder", "a\nb"], "a\\u000ab"),
        (&["policy", "diff", "a", "b", "--limit", "\u{1b}[2J"], "\\u001b[2J"),
    ];
    for (words, shown) in words {
        let output = syscap().args(words).env("CLICOLOR_FORCE", "1").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{said}");
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
        assert!(said.contains(shown) && !said.contains('\u{202e}'), "{said:?}");
    }
    let plain = syscap().args(["policy", "frob"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!plain.stderr.contains(&0x1b) && plain.status.code() == Some(2));
    // The name that the program was started by is a word like the others.
    let home = TestHome::new();
    let name = home.beside("\u{1b}[31m");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_syscap"), &name).unwrap();
    for word in ["frob", "--help"] {
        let output = std::process::Command::new(&name).arg(word).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(!said.contains(&0x1b), "{:?}", String::from_utf8_lossy(&said));
    }
}

/// The same on a terminal, where there is a program that makes one.
#[test]
fn a_terminal_gets_no_escapes() {
    let mut command = std::process::Command::new("script");
    let binary = env!("CARGO_BIN_EXE_syscap");
    let line = format!("'{binary}' policy \"$(printf '\\033[31mred')\"");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    let Ok(output) = command.stdin(Stdio::null()).output() else { return };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if said.is_empty() {
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said:?}");
    assert!(!said.contains('\u{1b}') && said.contains("\\u001b[31mred"), "{said:?}");
}

/// Documents that were changed in one place are sound or are not, in one line.
#[test]
fn no_document_breaks_the_command() {
    let home = TestHome::new();
    let file = home.text_beside("changed");
    let policy = Policy::preset(Preset::Mailer).unwrap();
    for sound in [Preset::Mailer.document().as_bytes().to_vec(), policy.document()] {
        for part in 0..40 {
            let mut changed = sound.clone();
            let at = sound.len() * part / 40;
            changed[at] ^= 1 << (part % 8);
            fs::write(&file, &changed).unwrap();
            let run = run(["policy", "hash", &file]);
            assert!([0, 1].contains(&run.code), "byte {at}");
            assert_eq!(run.err.lines().count(), usize::from(run.code == 1), "byte {at}");
        }
    }
    fs::write(&file, vec![b'['; 1 << 20]).unwrap();
    run(["policy", "hash", &file]).failed(1);
    fs::write(&file, vec![b' '; 5 << 20]).unwrap();
    run(["policy", "hash", &file]).failed(1);
    run(["policy", "hash", "/dev/zero"]).failed(1);
    run(["policy", "hash", "/dev/null"]).failed(1);
}
