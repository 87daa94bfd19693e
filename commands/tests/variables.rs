//! What sets variables, or runs what an index says, without looking like it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use syscap_commands::{Effect, Mark, Place, Said, analyse, programs};

fn said(text: &str) -> Said {
    let mut place = Place::at("/p").unwrap();
    place.search = vec!["/usr/bin".to_owned()];
    for name in programs() {
        place.found.insert(name.to_owned(), format!("/usr/bin/{name}"));
    }
    analyse(text, &place)
}

fn are_unknown(texts: &[&str]) {
    for text in texts {
        let said = said(text);
        assert!(!said.is_known(), "{text}");
        assert_eq!(said.effect(), Effect::ExternalWrite, "{text}");
    }
}

fn are_known(texts: &[&str]) {
    for text in texts {
        let said = said(text);
        assert!(said.is_known(), "{text}: {:?}", said.reasons);
    }
}

#[test]
fn a_command_of_the_shells_own_sets_nothing_unseen() {
    are_unknown(&[
        "sleep 0 & wait -n -p 'a[$(touch /tmp/pwn)]'",
        "wait -p PATH -n; ls",
        "wait -pPATH -n",
        "wait -n",
        "wait $x",
        "wait \"$x\"",
        "wait 'a[$(touch x)]'",
        "command wait -p PATH -n",
        "for x in '-p PATH -n'; do wait $x; done",
        "printf -v PATH x",
        "printf -vPATH x",
        "printf -v 'a[$(touch x)]' x",
        "printf -- -v",
        "printf 'a%n' PATH; ls",
        "printf 'a%5n' PATH",
        "printf 'a%-*n' 1 PATH",
        "printf '%%%n' PATH",
        "printf 'a%ln' PATH",
        "printf '%'",
        "command printf '%n' PATH",
        "test -v 'a[$(touch x)]'",
        "[ -v 'a[$(touch x)]' ]",
        "[ ! -v 'a[$(touch x)]' ]",
        "[ -R 'a[$(touch x)]' ]",
        "test 'a[$(touch x)]' -eq 1",
        "test 1 -lt 'a[$(touch x)]'",
        "[ 1 -eq 1 -a -v 'a[$(touch x)]' ]",
        "exit 'a[$(touch x)]'",
        "exit -p",
    ]);
    are_known(&[
        "sleep 1 & wait",
        "wait 12",
        "sleep 1 & wait %1",
        "wait %+ %sleep",
        "exit",
        "exit 1",
        "ls; exit $?",
        "printf '%s\\n' a b",
        "printf '%-10s|%5.2f|%%|%d\\n' a 1 2",
        "printf '100%% of %q\\n' a",
        "printf hello",
        "[ \"$x\" -eq 1 ]",
        "[ 3 -gt -1 ]",
        "[ \"$x\" '=' a ]",
        "test -f a",
    ]);
}

#[test]
fn a_loop_sets_nothing_that_programs_go_by() {
    are_unknown(&[
        "for PATH in .; do ls; done",
        "for path in .; do ls; done",
        "for https_proxy in http://a; do curl -s https://a.example; done",
        "for all_proxy in http://a; do curl -s https://a.example; done",
        "for npm_config_registry in http://a; do npm run x; done",
        "for histchars in a; do ls; done",
    ]);
    are_known(&["for f in a b; do echo \"$f\"; done"]);
}

const OTHERS: &str = ". alias bg bind break builtin caller compgen complete compopt continue \
    coproc declare dirs disown enable eval fc fg getopts hash help history jobs kill let local \
    logout mapfile popd pushd read readarray readonly return shift shopt source suspend \
    times trap typeset ulimit umask unalias unset chdir getopt";

/// None of them is in the table, but what is given here is what makes them dangerous.
#[test]
fn no_other_command_of_the_shells_own_is_known() {
    let given = [
        "PATH",
        "-v PATH",
        "-p PATH",
        "PATH=.",
        "'a[$(touch x)]'",
        "-n PATH",
        "-i 'PATH=a[0]'",
        "-P",
        "-e",
        "-L a",
        "-f x y",
        "1",
        "",
    ];
    for name in OTHERS.split_whitespace() {
        for given in given {
            are_unknown(&[&format!("{name} {given}"), &format!("command {name} {given}")]);
        }
    }
    are_unknown(&[
        "cd -P a",
        "cd -L a",
        "cd -e a",
        "cd -@ a",
        "cd -",
        "cd a b",
        "command -p ls",
        "export PATH=.",
        "export -n PATH",
        "export 'CI[$(touch x)]=1'",
        "export PATH",
        "set -a",
        "set -o posix",
        "set -k",
        "set -- a",
        "set PATH=.",
        "exec -a x ls",
        "pwd -L",
        "command cd a",
        "command export CI=1",
        "builtin cd a",
    ]);
    assert!(said("eval ls").marks.contains(&Mark::Hides));
}

/// To bash `{NAME}>file` sets `NAME` to a descriptor's number.
#[test]
fn a_name_in_braces_before_a_redirection_sets_a_variable() {
    are_unknown(&[
        ": {PATH}>o; cat f.txt",
        "true {PATH}<f.txt && ls",
        "echo {CDPATH}>o; ls",
        "echo a {PATH}>>o",
        "echo {PATH}>|o",
        "echo {PATH}<>o",
        "echo {PATH}>&2",
        "echo {PATH}<&0",
        "echo {PATH}<&-",
        "echo {PATH}>&-",
        "echo {PATH}&>o",
        "cat {PATH}<<E\na\nE",
        "cat {PATH}<<'E'\na\nE",
        "cat {PATH}<<-E\na\nE",
        "cat {PATH}<<<a",
        "cat {PATH}< <(ls)",
        "echo {a[0]}>o",
        "echo {a[$(touch x)]}>o",
        "echo {a['0']}>o",
        "echo {a[\"0 1\"]}>o",
        "echo {PA\\\nTH}>o",
        "echo {PATH}\\\n>o",
        "echo \\\n{PATH}>o",
        "echo a >b {PATH}>o c",
        "exec {PATH}>o",
        "command echo {PATH}>o",
        "{PATH}>o",
        "{PATH}>o ls",
        "<f {PATH}>o ls",
        "CI=1 {PATH}>o ls",
        "{ ls; } {PATH}>o",
        "(ls) {PATH}>o",
        "if true; then ls; fi {PATH}>o",
        "for x in a; do ls; done {PATH}>o",
        "while true; do ls; done {PATH}<f",
        "sh -c ': {PATH}>o; ls'",
        "echo \"$(echo {PATH}>o)\"",
        "ls | cat {PATH}>o",
        "echo {a[x=1]}>o",
        "echo {a[1;1]}>o",
    ]);
    are_known(&["echo a{x}>o", "echo {x}", "echo {x} a >o", "echo '{x}' b 2>&1", "echo {}>o"]);
}
