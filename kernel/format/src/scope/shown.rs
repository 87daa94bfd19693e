//! Text for error messages: escaped, and never long.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use super::{Ints, Resource};
use crate::summary::nearest;

/// Characters of one name that a message shows: enough to know it by.
const CHARS_MAX: usize = 120;

/// Parts of one scope that a message shows: a model reads them all on every refusal.
const PARTS_MAX: usize = 16;

/// Text whose control and invisible characters are escaped and whose end may be cut.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().take(CHARS_MAX).try_for_each(|char| escaped(char, f))?;
        let cut = self.0.chars().nth(CHARS_MAX).is_some();
        if cut { f.write_str("...") } else { Ok(()) }
    }
}

/// Text whose control and invisible characters are escaped, all of it.
pub(super) struct Whole<'a>(pub(super) &'a str);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| escaped(char, f))
    }
}

fn escaped(char: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match char {
        '\'' | '"' => f.write_char(char),
        _ => write!(f, "{}", char.escape_debug()),
    }
}

/// What a resource may be, of a list: first what is most like the one that was refused.
pub(super) fn one_of<T: fmt::Display>(parts: &[T], refused: &Resource) -> String {
    let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
    format!("one of: {}", nearest(&refused.to_string(), names.iter().map(String::as_str)))
}

/// What an integer may be.
pub(super) fn from(scope: &Ints) -> String {
    let text = format!("{scope}");
    if text.contains(" to ") { format!("from {text}") } else { format!("one of: {text}") }
}

/// The first parts of a list, and how many more there are.
pub(super) fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, parts: &[T]) -> fmt::Result {
    for (n, part) in parts.iter().take(PARTS_MAX).enumerate() {
        if n > 0 {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(part, f)?;
    }
    match parts.len().saturating_sub(PARTS_MAX) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentId;
    use crate::scope::{Cidr, Host, Name, PortRange, Rights, Root, RootedPath, Rule, Scope};

    fn rule(root: Root, below: &[&str], rights: Rights) -> Rule {
        Rule { path: RootedPath::new(root, below).unwrap(), rights }
    }

    /// Of paths those with the rights that are needed, workspaces first, and what is taken out.
    #[test]
    fn paths_advise_where_the_rights_are() {
        let own = || Root::Workspace(AgentId::new("a").unwrap());
        let shared = || Root::named("shared").unwrap();
        let both = Rights::READ.union(Rights::WRITE);
        let scope = Scope::paths([
            rule(shared(), &["notes"], both),
            rule(shared(), &["public"], Rights::READ),
            rule(own(), &[], both),
            rule(own(), &["old"], Rights::READ),
        ])
        .unwrap();
        let asked =
            |needs| Resource::Path { path: RootedPath::new(shared(), ["x"]).unwrap(), needs };
        let allowed = "below workspace or below shared/notes, not below workspace/old";
        assert_eq!(scope.advice(&asked(Rights::WRITE)), allowed);
        assert_eq!(scope.advice(&asked(Rights::FOLLOW)), "nothing");
        assert_eq!(scope.advice(&asked(Rights::NONE)), "nothing");
    }

    /// The nearest stands first; a resource of another type gets nothing.
    #[test]
    fn lists_and_ranges_advise() {
        let hosts = Scope::hosts(["*.example.org", "docs.example.com"]).unwrap();
        let host = Resource::Host(Host::new("example.com").unwrap());
        assert_eq!(hosts.advice(&host), "one of: docs.example.com, *.example.org");
        let names = Scope::names(["rent", "water"]).unwrap();
        let name = Resource::Name(Name::new("waters").unwrap());
        assert_eq!(names.advice(&name), "one of: water, rent");
        assert_eq!(names.advice(&host), "nothing");
        let ports = [PortRange::new(443, 443).unwrap(), PortRange::new(8_000, 8_080).unwrap()];
        let ports = Scope::ports(ports).unwrap();
        assert_eq!(ports.advice(&Resource::Port(80)), "one of: 8000-8080, 443");
        assert_eq!(Scope::ints(1, 9).unwrap().advice(&Resource::Int(10)), "from 1 to 9");
        assert_eq!(Scope::ints(5, 5).unwrap().advice(&Resource::Int(10)), "one of: 5");
        let block = Cidr::new("10.0.0.0".parse().unwrap(), 8).unwrap();
        let scope = Scope::cidrs([block]).unwrap();
        let address = Resource::Addr("192.0.2.1".parse().unwrap());
        assert_eq!(scope.advice(&address), "an address of 10.0.0.0/8");
    }
}
