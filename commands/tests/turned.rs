//! What a second review found: words and lines that shells and programs take for something else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[allow(dead_code, reason = "one of its helpers is others'")]
#[path = "seen/place.rs"]
mod seen;

use seen::{place, said};
use syscap_commands::analyse;

fn are_unknown(texts: &[&str]) {
    for text in texts {
        assert!(!said(text).is_known(), "{text}");
    }
}

fn are_known(texts: &[&str]) {
    for text in texts {
        assert!(said(text).is_known(), "{text}: {:?}", said(text).reasons);
    }
}

#[test]
fn a_pattern_with_a_folder_may_be_an_option() {
    are_unknown(&[
        "sort -o/tmp/* a",
        "for f in -o/tmp/*; do sort \"$f\" a; done",
        "tar cf a.tar --use-compress-program=./x/* b",
        "grep -f/etc/* x",
    ]);
    are_known(&["sort src/* a", "wc -l ./-o/*"]);
}

#[test]
fn what_a_pattern_found_may_end_in_a_slash() {
    are_unknown(&[
        "for d in sub/*/; do cat \"$d\"../secret; done",
        "for d in sub/*/; do ls \"$d\"..; done",
        "for d in sub/*/; do cat \"$d\".*; done",
        "for d in sub/*/; do for k in \"$d.\"; do cat \"$k./secret\"; done; done",
    ]);
    are_known(&["for f in sub/*; do cat \"$f.bak\" \"$f\"; done"]);
}

#[test]
fn behind_a_file_xxd_takes_an_option_for_another() {
    are_unknown(&["xxd a -p", "xxd -r a -p", "xxd a -c 16"]);
    are_known(&["xxd -c 16 a", "xxd -r -p a b"]);
}

#[test]
fn lines_in_double_brackets_are_commands_to_others() {
    are_unknown(&["[[\ntouch == x ]]", "[[ # ]]\ntouch == x ]]", "[[ -f a\n]] && ls"]);
    are_known(&["[[ -f a ]]\nls", "grep '[[:space:]]' a\nls"]);
}

#[test]
fn an_archive_that_a_pattern_finds_may_be_on_another_host() {
    are_unknown(&["for f in a*; do tar tf \"$f\"; done"]);
    are_known(&["for f in sub/*; do tar tf \"$f\"; done"]);
}

#[test]
fn tar_runs_what_the_archive_was_packed_with() {
    let mut place = place();
    place.search.push("/p/bin".to_owned());
    assert!(!analyse("tar tf a.tar", &place).is_known());
    assert!(analyse("tar cf a.tar b", &place).is_known());
    are_known(&["tar tf a.tar"]);
}

#[test]
fn a_file_may_tell_ls_to_go_down() {
    let all = said("ls * /etc");
    let tree = all.reads.iter().any(|area| area.is_tree() && area.path() == "/etc");
    assert!(tree, "{:?}", all.reads);
}
