//! `time`: a word of bash's own, and a program to sh and dash. What is listed of processes, and
//! build tools that are given their program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "seen/place.rs"]
mod place;

use syscap_commands::{Effect, Mark, Said, analyse};

use place::{has, place, said};

fn writes(text: &str) -> Vec<String> {
    said(text).writes.iter().map(|area| area.path()).collect()
}

/// A program changes nobody's folder but its own.
#[test]
fn what_is_timed_may_stay_where_it_is() {
    for text in ["time cd a; touch x", "time cd a && touch x", "time -p cd a; touch x"] {
        assert_eq!(writes(text), ["/p/a/x", "/p/x"], "{text}");
    }
    assert_eq!(writes("time ! cd a || touch x"), ["/p/a/x", "/p/x"]);
    assert!(has("! time cd a; touch x", Mark::Unknown));
    assert_eq!(writes("time (cd a && touch x)"), ["/p/a/x"]);
    assert_eq!(writes("time touch a; touch b"), ["/p/a", "/p/b"]);
    // Only the first command of a pipeline is timed by the program.
    assert_eq!(writes("time true | touch a"), ["/p/a"]);
}

/// It runs programs, where the shell has commands of its own.
#[test]
fn what_is_timed_may_be_a_program() {
    let without = |name: &str| {
        let mut place = place();
        place.found.remove(name);
        place
    };
    for (name, text) in [("cd", "cd a"), ("echo", "echo a"), ("true", "true | cat")] {
        assert!(analyse(text, &without(name)).is_known(), "{text}");
        assert!(!analyse(&format!("time {text}"), &without(name)).is_known(), "{text}");
        assert!(analyse(&format!("time {text}"), &place()).is_known(), "{text}");
        assert!(said(&format!("time {text}")).needs.contains(name), "{text}");
    }
    // A variable before it is the name of a program.
    assert!(said("CI=1 ls").is_known());
    assert!(!said("time CI=1 ls").is_known());
}

/// What is not there at all does nothing; what an agent could have put there does anything.
#[test]
fn a_time_of_the_agents_own_is_unknown() {
    let texts = ["time ls", "time { ls; }", "time ! ls", "time for a in b; do ls; done"];
    let all = |place: &syscap_commands::Place| {
        let said = |text: &str| analyse(text, place).is_known();
        texts.map(said)
    };
    let mut none = place();
    none.found.remove("time");
    assert_eq!(all(&none), [true; 4]);
    none.search.push("/p/bin".to_owned());
    assert_eq!(all(&none), [false; 4]);
    let mut own = place();
    own.found.insert("time".to_owned(), "/p/bin/time".to_owned());
    assert_eq!(all(&own), [false; 4]);
    for (name, text) in
        [("{", "time { ls; }"), ("!", "time ! ls"), ("while", "time while ls; do ls; done")]
    {
        let mut own = place();
        own.found.insert(name.to_owned(), "/p/bin/own".to_owned());
        assert!(!analyse(text, &own).is_known(), "{text}");
        assert!(said(text).needs.contains(name), "{text}");
    }
    assert!(said("time ls").needs.contains("time"));
}

#[test]
fn processes_are_listed() {
    for text in [
        "ps",
        "ps -e",
        "ps -ef",
        "ps -eF",
        "ps aux",
        "ps auxww",
        "ps axf",
        "ps -p 12",
        "ps -eo pid,ppid,args",
        "ps -u bob -o pid,time",
        "ps -fu root",
        "ps -aux",
        "ps -ax --sort=-rss",
        "ps -eu 0,1000",
        "ps -ep 1",
        "ps -C node",
        "ps aux --sort=-rss",
        "ps -e --no-headers",
        "ps -p 1 -o comm=",
        "ps aux | grep node",
    ] {
        let said = said(text);
        assert!(said.is_known() && said.effect() == Effect::Read, "{text}");
    }
    // Some letters without a dash show what processes have in their environment.
    for text in ["ps e", "ps auxe", "ps eww", "ps auxE", "ps x.y", "ps --frob"] {
        assert!(!said(text).is_known(), "{text}");
    }
    // What can't be read with a dash is read without, all of it.
    for text in [
        "ps -auxe",
        "ps -auxeww",
        "ps -aux -e",
        "ps -ax -ef",
        "ps -e -ux",
        "ps -aeux",
        "ps -u me",
        "ps -e -u \"$x\"",
        "ps -e -tx",
        "ps -ux -C e",
    ] {
        assert!(!said(text).is_known(), "{text}");
    }
}

fn of_input(text: &str) -> Said {
    let said = said(text);
    assert!(!said.is_known() && said.marks.contains(&Mark::Hides), "{text}");
    said
}

/// What it does then is no code of the project's, whatever its name.
#[test]
fn a_makefile_from_the_input_is_unknown() {
    for text in [
        "make -f -",
        "make -f-",
        "make -sf - all",
        "make -ksf-",
        "make --file=-",
        "make --file -",
        "make --makefile=-",
        "make --mak=-",
        "make -f /dev/stdin",
        "make -f/dev/fd/0",
        "make --file=/proc/self/fd/0",
        "curl https://x.example/m | make -f -",
        "make -f - < a",
        "make -C a -f -",
        "gmake -f -",
        "just -f -",
        "just --justfile=/dev/stdin",
        "rake -f -",
        "ninja -f /dev/stdin",
        "cmake -P /dev/stdin",
        "timeout 9 make -f -",
        "task -t /dev/stdin",
    ] {
        if text.starts_with("gmake") {
            assert!(!said(text).is_known(), "{text}");
            continue;
        }
        of_input(text);
    }
    for text in [
        "make --eval=x:;ls",
        "make --eval x",
        "make --ev=x",
        "make -E x",
        "make -sE x",
        "rake -e x",
        "rake -p x",
        "rake --execute=x",
    ] {
        assert!(!said(&text.replace(';', "\\;")).is_known(), "{text}");
    }
    for text in [
        "make",
        "make -f Makefile.am all",
        "make -j8 -k test",
        "make -C sub",
        "make CFLAGS=-O2",
        "make -fother.mk",
        "make --file=a/b.mk",
        "make -e test",
        "make V=1 X=-",
        "cmake -S . -B build",
        "just test",
        "rake test",
        "ninja -C build",
        "make --environment-overrides a",
        "make -CEngine",
        "gcc -c a.c -o a.o",
        "black -",
    ] {
        let said = said(text);
        assert!(said.is_known() && said.marks.contains(&Mark::ProjectCode), "{text}");
        assert!(!has(text, Mark::Hides), "{text}");
    }
}
