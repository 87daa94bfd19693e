//! What bash and dash really run must be what was said, or it was said to be unknown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "shells/stubs.rs"]
mod stubs;
#[path = "shells/words.rs"]
mod words;

use proptest::prelude::*;
use syscap_commands::Mark;

use stubs::Stubs;

/// Runs a command in the real shells, and says what was wrong.
fn check(stubs: &Stubs, text: &str) -> Result<bool, String> {
    let said = stubs.analyse(text);
    let unknown = said.marks.contains(&Mark::Unknown);
    for shell in ["bash", "dash"] {
        let ran = stubs.run(shell, text);
        if unknown {
            continue;
        }
        for argv in &ran.programs {
            let told = said.commands.iter().any(|simple| words::fits(&simple.words, argv));
            if !told {
                return Err(format!("{shell} ran {argv:?} of {text:?}: {:?}", said.commands));
            }
        }
        for file in &ran.files {
            let covers = |path: &str, tree: bool| {
                file == path || (tree && file.starts_with(&format!("{path}/")))
            };
            if !said.writes.iter().any(|area| covers(&area.path(), area.is_tree())) {
                return Err(format!("{shell} made {file} of {text:?}: {:?}", said.writes));
            }
        }
    }
    Ok(!unknown)
}

#[test]
fn what_shells_run_is_what_was_said() {
    let stubs = Stubs::new();
    let corpus = include_str!("shells/corpus.txt");
    let (mut known, mut all, mut wrong) = (0, 0, Vec::new());
    for text in corpus.split("\n---\n").map(|text| text.trim_matches('\n')) {
        all += 1;
        match check(&stubs, text) {
            Ok(is_known) => known += usize::from(is_known),
            Err(problem) => wrong.push(problem),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{known} of {all} are known");
    // Most of them must be known: else nothing was compared.
    assert!(all >= 120 && known * 3 >= all * 2, "{known} of {all}");
}

/// Pieces that mean something to a shell, put together at random.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        " ",
        " ",
        " ",
        " ",
        "a",
        "b c",
        "'q r'",
        "\"d q\"",
        "\\ ",
        "\\\\",
        "'",
        "\"",
        "$x",
        "${x}",
        "$(cat a)",
        "`cat b`",
        "\"$(grep 'a)' f)\"",
        "; ",
        " && ",
        " || ",
        " | ",
        " & ",
        "\n",
        " > out",
        " >> out",
        " 2>&1",
        " < a",
        "cat ",
        "grep ",
        "ls ",
        "echo ",
        "cd sub",
        "rm ",
        "( ",
        " )",
        "{ ",
        "; }",
        "*",
        "sub/*",
        "?",
        "[ab]",
        "{a,b}",
        "{}",
        "~",
        "#",
        " # c",
        "!",
        "=",
        "a=b ",
        "if ",
        "then ",
        "fi",
        "for f in a b; do ",
        "; done",
        "while ",
        "do ",
        "\\\n",
        "<<E\nx $(cat a)\nE\n",
        "<<'E'\nx $(cat a)\nE\n",
        "<<< w ",
        "&> out",
        ">&2",
        "$((1+1))",
        "$'a\\tb'",
        "-n",
        "--",
        "env ",
        "xargs ",
        "timeout 1 ",
        "sh -c ",
        "'cat a'",
        "\"a$(echo \"b\")c\"",
        "<(cat a)",
        "$(",
        ")",
        "eval ",
        "exec ",
        "command ",
        "[ -f a ]",
        "\t",
        ",",
        "..",
        "/",
        "sub/",
        "\"",
        "'",
        "\\'",
        "\\\"",
        "$",
        "$@",
        "\"$@\"",
        "a\\",
        ";;",
        "for g in 'q r' sub/*; do ",
        "for g in -n '*' sub; do ",
        "\"$f\"",
        "$f",
        "\"$g\"",
        "cat \"$g\"",
        "cat $g",
        "rm \"x$g/a\"",
        "> \"out$g\"",
        "read -r g; ",
        "for g in a; do :; done; ",
        "[[ -f ",
        "[[ a == ",
        " ]]",
        "continue; ",
        "$((2*3))",
    ]);
    fixed.prop_map(str::to_owned)
}

/// `SYSCAP_CASES` asks for more.
fn config() -> ProptestConfig {
    let asked = std::env::var("SYSCAP_CASES").ok().and_then(|text| text.parse().ok());
    let cases = asked.unwrap_or(250);
    ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}

/// Two loops that a text begins with.
fn head() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "for g in a sub/c; do for f in sub/* e.txt; do ",
        "for f in 'b c' a; do for g in \"$f\" x; do ",
        "for f in sub/*; do for g in b; do ",
        "for g in sub; do for f in '*' $g; do ",
        "for f in a b; do for g in sub/d*; do ",
    ]);
    fixed.prop_map(str::to_owned)
}

/// What the body of the inner one may consist of.
fn step() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "cat \"$f\"; ",
        "cat $f; ",
        "cat \"$g\"; ",
        "cat \"$f/$g\"; ",
        "cat \"x$f.c\" \"$g\".*; ",
        "cat \"$g\"/*; ",
        "cat sub/$g; ",
        "cat a > \"$f.o\"; ",
        "cat \"$(cat \"$f\")x\" < a | echo; ",
        "cat \"$f\" | grep \"$g\"; ",
        "sh -c 'cat \"$f\"'; ",
        "env cat \"$g\"; ",
        "( cat \"$f\" ) & ",
        "[ -f \"$g\" ] && ",
        "[ \"$f\" = sub/c ] || ",
        "[[ -d \"$f\" ]] && ",
        "[[ \"$f\" == s* ]] || ",
        "read f; ",
        "echo b | while read -r g; do cat z; done; ",
        "cd sub; ",
        "for f in a 'b c'; do ",
        "for g in \"$f\" -n; do ",
        "for h in \"$g\"; do cat \"$h\"; done; ",
        "while read -r h; do ",
        "if cat e; then ",
        "fi; ",
        "done; ",
        "$f; ",
        "echo $((1 + 2)); ",
    ]);
    fixed.prop_map(str::to_owned)
}

/// All that a text opens is ended.
fn ended(head: &str, steps: &[String]) -> String {
    let mut open = vec!["done; ".to_owned(); 2];
    let mut text = head.to_owned();
    for step in steps {
        match step.as_str() {
            "done; " | "fi; " if open.last() != Some(step) => continue,
            "done; " | "fi; " => {
                // No body is empty.
                text.push_str("cat z; ");
                drop(open.pop());
            }
            step if step.ends_with("do ") => open.push("done; ".to_owned()),
            step if step.ends_with("then ") => open.push("fi; ".to_owned()),
            _ => {}
        }
        text.push_str(step);
    }
    for end in open.iter().rev() {
        text.push_str("cat \"$f\" z; ");
        text.push_str(end);
    }
    text
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn what_loops_run_is_what_was_said(
        head in head(),
        steps in prop::collection::vec(step(), 1..5),
    ) {
        thread_local!(static STUBS: Stubs = Stubs::new());
        let text = ended(&head, &steps);
        let checked = STUBS.with(|stubs| check(stubs, &text));
        prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }

    #[test]
    fn what_shells_run_of_random_texts_is_what_was_said(
        pieces in prop::collection::vec(piece(), 1..9)
    ) {
        thread_local!(static STUBS: Stubs = Stubs::new());
        let text = pieces.concat();
        let checked = STUBS.with(|stubs| check(stubs, &text));
        prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }
}
