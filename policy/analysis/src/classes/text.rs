//! Texts: free ones, and those that must be a tool, an agent, a token or a path.

use alloc::{borrow::ToOwned, collections::BTreeSet, format, string::String, vec::Vec};

use syscap_format::{AgentId, TokenId, ToolId};
use syscap_policy::{Ask, Given};

use super::constants::text_constants;
use super::fresh::{Fresh, add, fresh};
use super::net;

/// An agent that no document is likely to name.
pub(super) const SOME_AGENT: &str = "some-agent";

/// Beginnings and ends that are asked for, with the empty one, the longest first.
fn ends<'a>(asks: &[&'a Ask]) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let (mut prefixes, mut suffixes) = (BTreeSet::from([""]), BTreeSet::from([""]));
    for ask in asks {
        match ask {
            Ask::Prefix(text) => prefixes.insert(&**text),
            Ask::Suffix(text) => suffixes.insert(&**text),
            _ => continue,
        };
    }
    (prefixes, suffixes)
}

/// Texts, and whether they stand for all.
///
/// A text that is no constant is told by its longest prefix and its longest suffix among the
/// constants. The same are those of the two with a character between them that no constant has,
/// so texts in which they overlap need not be looked at. Texts that are addresses are only
/// told by blocks and constants, or else not exactly.
pub(super) fn texts(asks: &[&Ask]) -> (Vec<String>, bool) {
    let equal: BTreeSet<&str> = text_constants(asks).into_iter().collect();
    let (prefixes, suffixes) = ends(asks);
    let used = equal.iter().chain(&prefixes).chain(&suffixes);
    let used: BTreeSet<char> = used.flat_map(|text| text.chars()).collect();
    // No hexadecimal digits: a text with one of these is no address.
    let mut fresh = ('g'..='z').chain('G'..='Z').chain('\u{100}'..='\u{2fff}');
    let fresh = fresh.find(|c| !used.contains(c));
    let mut all: Vec<String> = equal.iter().map(|&text| text.to_owned()).collect();
    for prefix in &prefixes {
        for suffix in &suffixes {
            let middle = fresh.map(String::from).unwrap_or_default();
            all.push(format!("{prefix}{middle}{suffix}"));
        }
    }
    let blocks = net::blocks(asks);
    if blocks.is_empty() {
        return (all, fresh.is_some());
    }
    let (addresses, all_of_them) = net::address_texts(asks, &equal);
    all.extend(addresses);
    (all, fresh.is_some() && all_of_them && prefixes.len() == 1 && suffixes.len() == 1)
}

/// Tools: those that are named, and some that stand for all others; whether they do.
pub(crate) fn tools(named: Vec<ToolId>, asks: &[&Ask]) -> (Vec<ToolId>, bool) {
    let mut all: BTreeSet<ToolId> = named.into_iter().collect();
    all.extend(text_constants(asks).into_iter().filter_map(ToolId::new));
    let (prefixes, suffixes) = ends(asks);
    let named: Vec<String> = all.iter().map(|tool| tool.as_str().to_owned()).collect();
    let used = || {
        let ends = prefixes.iter().chain(&suffixes).copied();
        ends.chain(named.iter().map(String::as_str))
    };
    let short = ('a'..='z').map(|c| format!("{c}"));
    let mut fresh = core::iter::once("some_tool".to_owned())
        .chain(short)
        .chain((0..).map(|n| format!("z{n}q")));
    let fresh = fresh.find(|part| !used().any(|text| text.contains(&**part)));
    let fresh = fresh.unwrap_or_default();
    let mut exact = true;
    for prefix in &prefixes {
        for suffix in &suffixes {
            let text = format!("{prefix}{fresh}{suffix}");
            match ToolId::new(&text) {
                Some(tool) => {
                    all.insert(tool);
                }
                // Only its length may be at fault, where a shorter one might do.
                None => exact &= text.len() <= ToolId::BYTES_MAX,
            }
        }
    }
    (all.into_iter().collect(), exact)
}

/// Agents: those that are named, one right below each, and one elsewhere; whether they stand for all.
pub(crate) fn agents(asks: &[&Ask], more: Option<&AgentId>) -> (Vec<AgentId>, bool) {
    let mut named: BTreeSet<AgentId> =
        text_constants(asks).into_iter().filter_map(AgentId::new).collect();
    named.extend(asks.iter().filter_map(|ask| match ask {
        Ask::Within(outer) => AgentId::new(outer),
        _ => None,
    }));
    named.extend(more.cloned());
    // One that is right below a named one, and not named itself, is within no other.
    let is_free = |agent: &AgentId| !named.contains(agent);
    let (mut all, mut exact) = (named.iter().cloned().collect::<Vec<_>>(), true);
    let outers = named.iter().map(|agent| format!("{agent}/")).chain([String::new()]);
    for outer in outers {
        let make = |part: &str| AgentId::new(&format!("{outer}{part}"));
        exact &= add(&mut all, fresh(SOME_AGENT, named.len(), make, is_free));
    }
    (all, exact)
}

/// Ids of tokens, and whether they stand for all.
pub(super) fn token_ids(asks: &[&Ask]) -> (Vec<String>, bool) {
    let valid = |text: &str| TokenId::from_hex(text).is_some();
    let equal = text_constants(asks);
    let mut all: Vec<String> =
        equal.iter().filter(|text| valid(text)).map(|&text| text.to_owned()).collect();
    let (prefixes, suffixes) = ends(asks);
    let free = prefixes.len() == 1 && suffixes.len() == 1;
    let fresh = (0..=all.len()).map(|n| format!("{n:064x}"));
    let fresh: Vec<String> = fresh.filter(|text| !all.contains(text)).take(1).collect();
    all.extend(fresh);
    for prefix in &prefixes {
        for suffix in &suffixes {
            let room = 64_usize.checked_sub(prefix.len().saturating_add(suffix.len()));
            let fill = |digit: char| {
                let middle: String = core::iter::repeat_n(digit, room?).collect();
                Some(format!("{prefix}{middle}{suffix}"))
            };
            let digits = "0123456789abcdef".chars();
            all.extend(digits.filter_map(fill).filter(|text| valid(text)));
        }
    }
    (all, free)
}

/// Paths: those that are named, one right below each, and one elsewhere; whether they stand for all.
pub(super) fn paths(asks: &[&Ask]) -> (Vec<Given>, bool) {
    let named = named_paths(asks);
    let mut all: Vec<Given> = named.iter().filter_map(|text| Given::path(text)).collect();
    let exact = unnamed(&named, &mut all, Given::path);
    (all, exact)
}

/// Adds one right below each that is named, and one elsewhere, of which none is named or leads to
/// one that is; whether that is all.
fn unnamed(
    named: &BTreeSet<&str>,
    all: &mut Vec<Given>,
    make: impl Fn(&str) -> Option<Given>,
) -> bool {
    let leads = |path: &str, to: &str| {
        to.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut exact = true;
    for outer in named.iter().map(|outer| format!("{outer}/")).chain([String::new()]) {
        let make = |part: &str| {
            let path = format!("{outer}{part}");
            Some((make(&path)?, path))
        };
        let is_free = |(_, path): &(Given, String)| !named.iter().any(|to| leads(path, to));
        exact &= match fresh("other", named.len(), make, is_free) {
            Fresh::Found((given, _)) => add(all, Fresh::Found(given)),
            Fresh::Empty => true,
            Fresh::Unknown => false,
        };
    }
    exact
}

/// Trees: what begins at a path that is named, above one, right below one or elsewhere holds each
/// set of the named that a tree can hold. Whether they stand for all.
pub(super) fn trees(asks: &[&Ask]) -> (Vec<Given>, bool) {
    let named = named_paths(asks);
    let mut begin: BTreeSet<&str> = named.clone();
    for text in &named {
        begin.extend(text.match_indices('/').filter_map(|(end, _)| text.get(..end)));
    }
    let mut all: Vec<Given> = begin.iter().filter_map(|text| Given::tree(text)).collect();
    let exact = unnamed(&named, &mut all, Given::tree);
    (all, exact)
}

fn named_paths<'a>(asks: &[&'a Ask]) -> BTreeSet<&'a str> {
    let mut named: BTreeSet<&str> = text_constants(asks).into_iter().collect();
    named.extend(asks.iter().filter_map(|ask| match ask {
        Ask::Within(outer) => Some(&**outer),
        _ => None,
    }));
    named
}
