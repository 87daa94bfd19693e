//! Programs that list, print and pack, and forms of theirs that do more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use syscap_commands::{Effect, Mark, Place, Repository, Said, analyse, programs};

fn said(text: &str) -> Said {
    let mut place = Place::at("/p").unwrap();
    place.search = vec!["/usr/bin".to_owned()];
    place.repository = Repository::Plain("/p".to_owned());
    for name in programs() {
        place.found.insert(name.to_owned(), format!("/usr/bin/{name}"));
    }
    analyse(text, &place)
}

fn are_unknown(texts: &[&str]) {
    for text in texts {
        assert!(!said(text).is_known(), "{text}");
    }
}

fn only_read(texts: &[&str]) {
    for text in texts {
        let said = said(text);
        assert_eq!((said.is_known(), said.effect()), (true, Effect::Read), "{text}: {said:?}");
    }
}

#[test]
fn archives_are_listed_and_made_and_not_unpacked() {
    only_read(&["tar tzf a.tgz", "tar -tvf a.tar", "tar tf a.tar sub/x", "tar tJf a.txz | head"]);
    let made = said("tar czf out.tgz src");
    assert_eq!((made.is_known(), made.effect()), (true, Effect::LocalWrite));
    assert!(made.reads.iter().any(|area| area.path() == "/p/src" && area.is_tree()));
    assert!(made.writes.iter().any(|area| area.path() == "/p/out.tgz"));
    assert!(made.programs.contains("gzip"));
    are_unknown(&[
        "tar xzf a.tgz",
        "tar tf host:a.tar",
        "tar cf host:a.tar src",
        "tar tf a.tar --to-command=sh",
        "tar -tf a.tar --checkpoint-action=exec=x --checkpoint=1",
        "tar cf a.tar src --use-compress-program=x",
        "tar -I x -tf a",
        "tar tIf x a",
        "tar cf a.tar -C / etc",
        "tar cf a.tar @b",
        "tar cf a.tar *",
        "tar cf - src",
        "tar ctf a src",
        "tar tfz a",
        "tar tzjf a",
        "tar rf a.tar x",
        "tar chf a.tar src",
        "tar",
        "tar tf",
        "tar tf $x",
    ]);
}

#[test]
fn what_prints_may_also_write() {
    only_read(&[
        "xxd a.bin | head",
        "xxd -l 16 -c 8 a.bin",
        "base64 a",
        "base64 -d a.b64",
        "column -t a",
        "fold -w 80 a",
        "hostname",
        "pgrep -f server",
        "ls -R src",
        "ls -laR",
        "basename \"$x\"",
        "dirname $x",
        "python3 --version && node -v",
        "grep -rn x --include=*.py .",
        "grep -rn x --include=*.py --exclude-dir=node* src | head",
        "git clean -n",
        "git clean -nd",
        "git worktree list",
        "echo $((1 + 2 * (3 - 4)))",
        "[ \"$x\" = a ]",
        "[ \"$x\" != a ] && ls",
    ]);
    assert!(said("xxd -r a b").writes.iter().any(|area| area.path() == "/p/b"));
    assert!(said("ls -R src").reads.iter().any(syscap_commands::Area::is_tree));
    assert!(said("ls -R").reads.iter().any(|area| area.path() == "/p" && area.is_tree()));
    assert!(said("git clean -f").marks.contains(&Mark::Irreversible));
    assert!(said("git clean -nf src").marks.contains(&Mark::Irreversible));
    are_unknown(&[
        "xxd -ps a b",
        "xxd -postscript a b",
        "base64 -o a b",
        "grep -rn x --include* .",
        "grep -rn x --pre=*.py .",
        "grep -rn x --*=a .",
        "rg x --pre=*",
        "sort --compress-program=* a",
        "sort --output=* a",
        "hostname other",
        "hostname -F a",
        "pgrep -F a",
        "ls -RL src",
        "git worktree add ../x",
        "git worktree remove x",
        "git clean -i",
        "echo $((x))",
        "echo $((a[$(touch y)]))",
        "echo $((1 + `touch y`))",
    ]);
}

#[test]
fn awk_compares_where_it_prints_nothing() {
    only_read(&[
        "awk 'NR>1' a",
        "awk -F, 'NR>1 {s+=$2} END {print s}' a.csv",
        "awk '$3 >= 100 {print $1}' a",
        "awk '$1 ~ /x/ {print}' a",
        "awk '/}/ {print}' a",
    ]);
    are_unknown(&[
        "awk '{print > \"f\"}' a",
        "awk '{print > f}' a",
        "awk 'NR>1 {print > f}' a",
        "awk 'NR>1 {print >> f}' a",
        "awk '/}/ {print > f}' a",
        "awk '\"}\" {print > f}' a",
        "awk '$1 ~ /{/ {print} NR>1' a",
        "awk 'NR>1 {while (getline < f) x}' a",
        "awk 'getline < f' a",
        "awk '{print | \"sh\"}' a",
        "awk 'NR>1 }{ {print > f}' a",
        "awk '{system(\"x\")}' a",
        "awk 'NR>1; # {\\n {print > f}' a",
    ]);
}
