//! Whether a repository's own configuration runs anything.

/// Keys that name no program, no other file and no other folder, by section.
const PLAIN: &[(&str, &[&str])] = &[
    ("advice", &[]),
    ("branch", &["merge", "rebase", "remote"]),
    ("color", &["branch", "diff", "status", "ui"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "symlinks",
        ],
    ),
    ("fetch", &["prune"]),
    ("init", &["defaultbranch"]),
    ("merge", &["conflictstyle", "ff"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default"]),
    ("rebase", &["autosquash", "autostash"]),
    ("remote", &["fetch", "prune", "pushurl", "url"]),
    ("user", &["email", "name"]),
];

/// Whether the text of a repository's `config` holds nothing that runs a program, or leads to
/// another file or folder. What is not known does.
#[must_use]
pub fn is_plain_config(text: &str) -> bool {
    let mut keys: Option<(&str, &[&str])> = None;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(name) = header.strip_suffix(']') else { return false };
            let (section, below) = name.split_once(' ').unwrap_or((name, ""));
            let quoted = |text: &str| {
                let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                inner.is_some_and(|text| !text.contains(['"', '\\', ']']))
            };
            if !below.is_empty() && !quoted(below) {
                return false;
            }
            let section = section.to_ascii_lowercase();
            keys = PLAIN.iter().find(|(known, _)| *known == section).copied();
            if keys.is_none() {
                return false;
            }
            continue;
        }
        let Some((section, known)) = keys else { return false };
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let is_known = section == "advice"
            || known.contains(&&*key)
            || (key == "bare" && section == "core" && value == "false");
        // A remote may be a program, and a line may go on.
        if !is_known || value.contains("::") || value.starts_with('-') || value.contains('\\') {
            return false;
        }
    }
    true
}
