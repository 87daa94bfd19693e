//! Paths of a program that is not ours: names below folders of its own, compared as text.
//!
//! The target of a name is that program's affair: links in it are not seen here. So what could be
//! read in two ways is refused: `.` and `..`, a backslash, `~`, what may be a URL or a drive.

use std::fmt;

use syscap_format::{Root, RootName, RootedPath};

/// Most roots of an argument.
pub const ROOTS_MAX: usize = 16;
/// Longest name of a folder, in bytes.
const FOLDER_BYTES_MAX: usize = 1_024;

/// A root, as tokens name it, and where its paths begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRoot {
    /// The root.
    pub root: RootName,
    /// The folder before the names below it.
    pub folder: Folder,
}

/// The text before the names below a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder {
    /// No text: the tool takes names as they are below the root.
    Relative,
    /// A folder, from `/` on, without a slash at its end; nothing for `/` itself.
    At(Box<str>),
}

impl PathRoot {
    /// Reads `ROOT` or `ROOT=/FOLDER`.
    pub fn parse(text: &str) -> Option<Self> {
        let (root, folder) = match text.split_once('=') {
            None => (text, Folder::Relative),
            Some((root, folder)) => (root, Folder::At(folder_of(folder)?)),
        };
        Some(Self { root: RootName::new(root).ok()?, folder })
    }

    /// The place that a text names, below the root whose folder is the longest that fits.
    pub(super) fn read(roots: &[Self], text: &str) -> Option<RootedPath> {
        let fits = |root: &&Self| root.below(text).is_some();
        let depth = |root: &&Self| match &root.folder {
            Folder::Relative => 0,
            Folder::At(folder) => folder.len(),
        };
        let root = roots.iter().filter(fits).max_by_key(depth)?;
        let mut below = root.below(text)?;
        // A folder may be named with a slash at its end.
        below = below.strip_suffix('/').unwrap_or(below);
        let names = below.split('/').filter(|_| !below.is_empty());
        RootedPath::new(Root::Named(root.root.clone()), names).ok()
    }

    /// The rest of a text behind the folder.
    fn below<'t>(&self, text: &'t str) -> Option<&'t str> {
        match &self.folder {
            Folder::Relative => {
                let first = text.split('/').next().unwrap_or_default();
                let plain = !text.starts_with(['/', '~']) && !first.contains(':');
                (plain && !text.is_empty()).then_some(text)
            }
            Folder::At(folder) => {
                let rest = text.strip_prefix(&**folder)?;
                match rest.strip_prefix('/') {
                    Some(rest) => Some(rest),
                    None => rest.is_empty().then_some(rest),
                }
            }
        }
    }

    /// How a text must be, for whoever wrote another: what is wrong with that, and what to write.
    pub(super) fn forms(roots: &[Self], text: &str) -> String {
        let forms: Vec<String> = roots
            .iter()
            .map(|root| match &root.folder {
                Folder::Relative => "a name without / before it".to_owned(),
                Folder::At(folder) if folder.is_empty() => "an absolute path".to_owned(),
                Folder::At(folder) => {
                    format!("an absolute path that begins with {folder}/")
                }
            })
            .collect();
        let forms = forms.join(", or ");
        // Names are looked at where the rest of the text fits.
        let below = roots.iter().find_map(|root| root.below(text));
        let found = below.unwrap_or_else(|| text.strip_prefix('/').unwrap_or(text));
        let found = found.strip_suffix('/').unwrap_or(found);
        let mut names = found.split('/');
        let wrong = match names.clone().any(|name| matches!(name, "." | "..")) {
            true => "and without `.` or `..` in it",
            false if text.contains('\\') => "and with / for \\",
            false if names.any(str::is_empty) && !found.is_empty() => "and without // in it",
            false => return forms,
        };
        format!("{forms}, {wrong}")
    }
}

impl fmt::Display for PathRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.folder {
            Folder::Relative => f.write_str(self.root.as_str()),
            Folder::At(folder) if folder.is_empty() => write!(f, "{}=/", self.root.as_str()),
            Folder::At(folder) => write!(f, "{}={folder}", self.root.as_str()),
        }
    }
}

/// A folder from `/` on, by plain names.
fn folder_of(text: &str) -> Option<Box<str>> {
    let below = text.strip_prefix('/')?.trim_end_matches('/');
    if text == "/" {
        return Some(Box::default());
    }
    let plain = |name: &str| {
        !name.is_empty() && name != "." && name != ".." && !name.contains(['\\', '\0'])
    };
    let fits = text.len() <= FOLDER_BYTES_MAX && below.split('/').all(plain);
    fits.then(|| Box::from(format!("/{below}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(roots: &[&str], text: &str) -> Option<String> {
        let roots: Vec<PathRoot> =
            roots.iter().map(|root| PathRoot::parse(root).unwrap()).collect();
        PathRoot::read(&roots, text).map(|path| path.in_full())
    }

    #[test]
    fn all_of_a_machine_may_be_a_root() {
        let root = PathRoot::parse("machine=/").unwrap();
        assert_eq!(PathRoot::parse(&root.to_string()), Some(root));
        for (text, leads_to) in [
            ("/etc/passwd", Some("machine/etc/passwd")),
            ("/", Some("machine")),
            ("etc/passwd", None),
            ("/etc/../root", None),
            ("//etc", None),
        ] {
            assert_eq!(read(&["machine=/"], text).as_deref(), leads_to, "{text:?}");
        }
    }

    #[test]
    fn paths_begin_with_their_folder() {
        let roots = ["docs=/srv/docs", "drafts=/srv/docs/drafts/"];
        for (text, leads_to) in [
            ("/srv/docs/a.txt", Some("docs/a.txt")),
            ("/srv/docs", Some("docs")),
            ("/srv/docs/", Some("docs")),
            ("/srv/docs/drafts/b", Some("drafts/b")),
            ("/srv/docs/draftsb", Some("docs/draftsb")),
            ("/srv/docs2/a", None),
            ("/srv/docs/../x", None),
            ("/srv/docs/./x", None),
            ("/srv/docs//x", None),
            ("/srv/docs/a\\b", None),
            ("/srv/docs/a\0b", None),
            ("docs/a.txt", None),
            ("~/docs/a.txt", None),
            ("file:///srv/docs/a", None),
            ("", None),
        ] {
            assert_eq!(read(&roots, text).as_deref(), leads_to, "{text:?}");
        }
    }

    #[test]
    fn names_are_taken_as_they_are_where_no_folder_is_said() {
        for (text, leads_to) in [
            ("a.txt", Some("docs/a.txt")),
            ("a/b:c", Some("docs/a/b:c")),
            ("/etc/passwd", None),
            ("../a", None),
            ("a/../../b", None),
            ("~root/x", None),
            ("file:/etc/passwd", None),
            ("C:/x", None),
            ("", None),
        ] {
            assert_eq!(read(&["docs"], text).as_deref(), leads_to, "{text:?}");
        }
    }

    /// For a root with a folder the answer has the whole path, and suggests neither `ROOT=FOLDER`
    /// nor a relative path.
    #[test]
    fn mistyped_path_is_answered_with_the_right_form() {
        let docs = "an absolute path that begins with /srv/docs/";
        for (roots, text, told) in [
            (&["docs=/srv/docs"][..], "docs=/srv/docs/a", docs.to_owned()),
            (&["docs=/srv/docs"], "a.txt", docs.to_owned()),
            (&["docs=/srv/docs"], "", docs.to_owned()),
            (&["docs=/srv/docs"], "/srv/other", docs.to_owned()),
            (
                &["docs=/srv/docs"],
                "/srv/docs/../a",
                format!("{docs}, and without `.` or `..` in it"),
            ),
            (&["docs=/srv/docs"], "/srv/docs//a", format!("{docs}, and without // in it")),
            (&["docs=/srv/docs"], "/srv/docs/a\\b", format!("{docs}, and with / for \\")),
            (&["machine=/"], "etc/passwd", "an absolute path".to_owned()),
            (
                &["machine=/"],
                "/etc/./a",
                "an absolute path, and without `.` or `..` in it".to_owned(),
            ),
            (&["notes"], "/a", "a name without / before it".to_owned()),
            (&["docs=/srv/docs", "notes"], "/a", format!("{docs}, or a name without / before it")),
        ] {
            assert_eq!(read(roots, text), None, "{text}");
            let roots: Vec<PathRoot> =
                roots.iter().map(|root| PathRoot::parse(root).unwrap()).collect();
            assert_eq!(PathRoot::forms(&roots, text), told, "{text}");
        }
    }

    #[test]
    fn roots_have_one_form() {
        for wrong in ["", "workspace", "a/b", "docs=", "docs=x", "docs=/a/../b", "docs=//"] {
            assert_eq!(PathRoot::parse(wrong), None, "{wrong}");
        }
        assert_eq!(PathRoot::parse("docs=/a/b/").unwrap().to_string(), "docs=/a/b");
    }
}
