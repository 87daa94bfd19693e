//! What a loop's variable holds, and tests in double brackets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use syscap_commands::{Effect, Mark, Place, Said, analyse, programs};

fn place() -> Place {
    let mut place = Place::at("/p").unwrap();
    place.search = vec!["/usr/bin".to_owned()];
    place.writable = ["/p".to_owned()].into();
    for name in programs() {
        place.found.insert(name.to_owned(), format!("/usr/bin/{name}"));
    }
    place
}

fn said(text: &str) -> Said {
    analyse(text, &place())
}

fn known(text: &str) -> Said {
    let said = said(text);
    assert!(said.is_known(), "{text}: {:?}", said.reasons);
    said
}

/// What it reads and writes: a path, or a folder with all below it.
fn paths(text: &str) -> (Vec<String>, Vec<String>) {
    let said = known(text);
    let path = |area: &syscap_commands::Area| match area.is_tree() {
        true => format!("{}/**", area.path()),
        false => area.path(),
    };
    (said.reads.iter().map(path).collect(), said.writes.iter().map(path).collect())
}

fn reads(text: &str, expected: &[&str]) {
    let (reads, writes) = paths(text);
    assert_eq!((reads, writes.len()), (expected.iter().map(|it| (*it).to_owned()).collect(), 0));
}

fn are_unknown(texts: &[&str]) {
    for text in texts {
        assert!(!said(text).is_known(), "{text}");
    }
}

#[test]
fn each_value_is_what_the_variable_holds() {
    reads("for f in a src/b; do cat \"$f\"; done", &["/p/a", "/p/src/b"]);
    reads("for f in a src/b; do cat $f; done", &["/p/a", "/p/src/b"]);
    reads("for f in a; do cat \"x/${f}.rs\"; done", &["/p/x/a.rs"]);
    reads("for f in 'a b'; do cat \"$f\"; done", &["/p/a b"]);
    reads("for f in /etc/passwd; do cat \"$f\"; done", &["/etc/passwd"]);
    reads("for f in src/*.rs; do wc -l \"$f\"; done", &["/p/src/**"]);
    reads("for d in */; do ls \"$d/src\"; done", &["/p/**"]);
    reads("for d in packages/*; do cat \"$d/a.json\" \"$d\"/*.md; done", &["/p/packages/**"]);
    reads("for d in src/*; do [ -f \"$d/a\" ] && cat \"$d/a\"; done", &["/p/src/**"]);
    reads(
        "for a in x y; do for b in 1 2; do cat $a/$b; done; done",
        &["/p/x/1", "/p/x/2", "/p/y/1", "/p/y/2"],
    );
    let (read, written) = paths("for f in a b; do cp \"$f\" \"$f.bak\"; done");
    assert_eq!((read.len(), written.len()), (2, 4));
    assert!(written.iter().all(|path| path.contains(".bak")), "{written:?}");
    // What may be an option is one.
    let forced = said("for f in -rf; do rm $f x; done");
    assert!(forced.marks.contains(&Mark::Irreversible), "{:?}", forced.reasons);
    // What git goes by is named by no pattern.
    assert!(said("for f in .git/config; do cat > \"$f\"; done").marks.contains(&Mark::Hides));
}

#[test]
fn what_it_holds_no_more_is_not_told() {
    are_unknown(&[
        // After the loop, and where another has set it.
        "for f in a; do :; done; cat \"$f\"",
        "for f in a; do for f in /etc/passwd; do :; done; cat \"$f\"; done",
        "for f in a; do while read -r x; do cat \"$f\"; for f in /etc/x; do :; done; done; done",
        "for f in a; do read -r f; cat \"$f\"; done",
        "for f in a b; do if true; then read f; fi; cat $f; done",
        "for g in a; do for f in *; do cat \"$g\"; for g in /etc/x; do :; done; done; done",
        "for f in a; do echo x | read f; cat \"$f\"; done",
        // Another shell has not the variable.
        "for f in a; do sh -c 'cat \"$f\"'; done",
        "for f in a; do find . -exec sh -c 'cat $f' x ';'; done",
        // It is split, and a pattern.
        "for f in 'a /etc/passwd'; do cat $f; done",
        "for f in '*'; do cat $f; done",
        "for f in src/*.rs; do wc -l $f; done",
        "for f in ''; do cat $f; done",
        // Out of the folder again.
        "for f in src/*; do cat \"$f/../../../etc/passwd\"; done",
        "for f in *; do cat x/\"$f\"/.*; done",
        "for f in ../*; do cat \"x/$f\"; done",
        "for f in a/../*; do cat \"$f\"; done",
        // What can't be told, or is too many.
        "for f in $(git ls-files); do cat \"$f\"; done",
        "for f in a $x; do cat \"$f\"; done",
        "for f in {a,b}; do cat \"$f\"; done",
        "for f; do cat \"$f\"; done",
        "for f in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do cat \"$f\"; done",
        // A name may be an option.
        "for f in *; do wc -l \"$f\"; done",
        // Of the shell's grammar nothing comes from a variable.
        "for c in ls; do $c; done",
        "for c in 'rm -rf x'; do \"$c\"; done",
        "for c in eval; do $c 'rm x'; done",
        "for PATH in x; do ls; done",
        "for f in PATH=x; do export \"$f\"; ls; done",
        "for f in '-p PATH -n'; do wait $f; done",
        "for f in '%n'; do printf \"$f\" PATH; done",
        "for f in 'a[$(touch x)]'; do [ \"$f\" -eq 1 ]; done",
    ]);
    // As often as loops multiply it is read once for all.
    let deep = "for a in 1 2 3 4 5 6 7 8; do ".repeat(6);
    are_unknown(&[&format!("{deep} cat $a; {}", "done; ".repeat(6))]);
}

#[test]
fn a_file_that_is_written_is_that_of_each_value() {
    let said = said("for f in a b; do sed -i s/x/y/ \"$f\"; done");
    assert_eq!((said.effect(), said.writes.len()), (Effect::LocalWrite, 2));
    let all = known("for f in src/*.rs; do sed -i s/x/y/ \"$f\"; done");
    assert!(all.writes.iter().all(syscap_commands::Area::is_tree));
}

#[test]
fn lines_are_read_into_plain_variables() {
    for text in [
        "cat a | while read -r line; do echo \"$line\"; done",
        "while read line; do echo $line; done < a",
        "while read -r one two; do [ \"$one\" = x ] && echo \"$two\"; done < a",
    ] {
        known(text);
    }
    are_unknown(&[
        "read",
        "read PATH",
        "read -r http_proxy",
        "read 'a[$(touch x)]'",
        "read -p x a",
        "read -a list",
        "read -u 3 a",
        "read \"$x\"",
        "IFS= read -r line",
        "while read -r f; do cat \"$f\"; done < list",
        "xargs read a",
        "env read a",
    ]);
}

#[test]
fn one_plain_test_in_double_brackets_is_known() {
    reads("[[ -d src ]]", &["/p/src"]);
    reads("[[ ! -f \"a b\" ]] && ls src", &["/p/a b", "/p/src"]);
    for text in ["[[ \"$x\" == a* ]]", "[[ $x != y ]]", "[[ -n \"$x\" ]]", "[[ -z $x ]]"] {
        known(text);
    }
    are_unknown(&[
        "[[ -f a && -f b ]]",
        "[[ a == b || touch == x ]]",
        "[[ a > b ]]",
        "[[ a < b ]]",
        "[[ ( -f a ) ]]",
        "[[ a == (a|b) ]]",
        "[[ a =~ b ]]",
        "[[ a -eq 1 ]]",
        "[[ 'a[$(touch x)]' -eq 1 ]]",
        "[[ -v 'a[$(touch x)]' ]]",
        "[[ -v x ]]",
        "[[ -R x ]]",
        "[[ -o errexit ]]",
        "[[ -t 'a[$(touch x)]' ]]",
        "[[ -f \"$x\" ]]",
    ]);
    assert_eq!(said("[[ -n $(cat /etc/passwd) ]]").reads.len(), 1);
    // To other shells it is a program.
    let mut own = place();
    own.search.insert(0, "/p/bin".to_owned());
    assert!(!analyse("[[ -d src ]]", &own).is_known());
    assert!(said("[[ -d src ]]").needs.contains("[["));
}
