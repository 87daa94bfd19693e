//! Hostile texts: bounded, and no panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::{process::Command, time::Instant};

use proptest::prelude::*;
use syscap_commands::{
    COMMANDS_MAX, Effect, Mark, NESTING_MAX, Place, TEXT_BYTES_MAX, WORDS_MAX, analyse,
};

fn place() -> Place {
    Place::at("/project").unwrap()
}

fn is_unknown(text: &str) -> bool {
    let said = analyse(text, &place());
    assert!(said.marks.contains(&Mark::Unknown) != said.is_known());
    assert!(said.is_known() || said.effect() == Effect::ExternalWrite);
    !said.is_known()
}

#[test]
fn what_is_too_long_too_deep_or_too_much_is_unknown() {
    let long = |count: usize, text: &str| text.repeat(count);
    assert!(!is_unknown("echo a"));
    assert!(is_unknown(&format!("echo {}", "a".repeat(TEXT_BYTES_MAX))));
    assert!(is_unknown(&long(COMMANDS_MAX + 1, "echo a;")));
    assert!(is_unknown(&format!("echo {}", long(WORDS_MAX + 1, "a "))));
    assert!(is_unknown(&format!(
        "{}echo a{}",
        long(NESTING_MAX + 1, "("),
        long(NESTING_MAX + 1, ")")
    )));
    assert!(is_unknown(&format!("{}echo a{}", long(20, "$(echo "), long(20, ")"))));
    let shells = (0..9)
        .fold("echo a".to_owned(), |text, _| format!("sh -c '{}'", text.replace('\'', r"'\''")));
    assert!(is_unknown(&shells));
}

/// What a parser's stack or time could grow with.
const OPEN: &[&str] = &[
    "(",
    "{ ",
    "$(",
    "`",
    "\"",
    "'",
    "\"$(",
    "${",
    "$((",
    "((",
    "[[ ",
    "if ",
    "while ",
    "for ",
    "case x in (",
    "! ",
    "time ",
    "a() ",
    "a() {",
    "<(",
    "<<a ",
    "<<",
    "$",
    "\\",
    "a=(",
    "a[",
    "function f ",
    "coproc ",
    "until ",
    "if true; then ",
    "while true; do ",
    "& ",
    "; ",
    "| ",
    "|| ",
    "&& ",
    "a|",
    "a&&",
    "a;",
    "a\n",
    "> a ",
    "2>&1 ",
    "<<<",
    "{a,",
    "*",
    "?",
    "[",
    "~",
    "a=b ",
    "$'",
    "$\"",
    "#",
    "# \n",
    "\\\n",
    "@(",
    "!(",
    "+(",
    "case a in a) ",
    "select x in ",
];

/// Each many times, and closed.
fn hostile() -> Vec<String> {
    let mut texts = Vec::new();
    for open in OPEN {
        for count in [1, 2, 11, 12, 13, 24, 100, 1_000, 30_000 / open.len()] {
            texts.push(open.repeat(count));
            let close = match open.trim() {
                "(" | "$(" | "<(" | "a=(" => ")",
                "{" | "a() {" => "; }",
                "${" => "}",
                "$((" | "((" => "))",
                _ => "",
            };
            texts.push(format!("{}a{}", open.repeat(count), close.repeat(count)));
        }
    }
    texts
}

/// In a process of its own: an overflow of the stack ends it.
#[test]
fn hostile_texts_end_no_process() {
    if std::env::var_os("SYSCAP_HOSTILE").is_some() {
        for text in hostile() {
            let begun = Instant::now();
            is_unknown(&text);
            let took = begun.elapsed().as_millis();
            if took > 200 {
                println!(
                    "{took} ms: {} of {}",
                    text.len(),
                    text.chars().take(24).collect::<String>()
                );
            }
        }
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own);
    child.args(["--exact", "hostile_texts_end_no_process", "--nocapture"]);
    let output = child.env("SYSCAP_HOSTILE", "1").output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn any_text_is_read(text in "[ -~\n\t]{0,60}|\\PC{0,20}") {
        is_unknown(&text);
    }

    #[test]
    fn any_mix_of_signs_is_read(
        signs in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "{", "}", "$", "`", "\"", "'", "\\", "\n", ";", "&", "|", "<", ">", " ", "a",
            "if", "fi", "do", "=", "[", "]", "*", "#", "<<", "E", "-", "/", ".", "!", "~", "cd ",
        ]), 0..40)
    ) {
        is_unknown(&signs.concat());
    }
}
