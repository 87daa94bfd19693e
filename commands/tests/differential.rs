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
    ]);
    fixed.prop_map(str::to_owned)
}

/// `SYSCAP_CASES` asks for more.
fn config() -> ProptestConfig {
    let asked = std::env::var("SYSCAP_CASES").ok().and_then(|text| text.parse().ok());
    let cases = asked.unwrap_or(250);
    ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]
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
