//! Texts: free ones, and those that must be a tool, an agent, a token or a path.

use alloc::{borrow::ToOwned, collections::BTreeSet, format, string::String, vec::Vec};

use syscap_format::{AgentId, TokenId, ToolId};
use syscap_policy::{Ask, Given};

use super::{constants::text_constants, net};

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
/// told by blocks, or else not exactly.
pub(super) fn texts(asks: &[&Ask]) -> (Vec<String>, bool) {
    let equal = text_constants(asks);
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
    all.extend(net::addresses(asks).into_iter().flat_map(net::address_texts));
    (all, fresh.is_some() && prefixes.len() == 1 && suffixes.len() == 1)
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

/// Agents: those that are named, one below each, and one elsewhere.
pub(crate) fn agents(asks: &[&Ask], more: Option<&AgentId>) -> Vec<AgentId> {
    let mut named: BTreeSet<AgentId> =
        text_constants(asks).into_iter().filter_map(AgentId::new).collect();
    named.extend(asks.iter().filter_map(|ask| match ask {
        Ask::Within(outer) => AgentId::new(outer),
        _ => None,
    }));
    named.extend(more.cloned());
    let parts: BTreeSet<&str> = named.iter().flat_map(|agent| agent.as_str().split('/')).collect();
    let short = ('a'..='z').chain('0'..='9').map(|c| format!("{c}"));
    let long = core::iter::once(SOME_AGENT.to_owned()).chain((0..).map(|n| format!("agent-{n}")));
    let is_fresh = |part: &String| !parts.contains(&**part);
    let fresh: Vec<String> =
        long.filter(is_fresh).take(1).chain(short.filter(is_fresh).take(1)).collect();
    let below =
        |agent: &AgentId| fresh.iter().find_map(|part| AgentId::new(&format!("{agent}/{part}")));
    let children: Vec<AgentId> = named.iter().filter_map(below).collect();
    let elsewhere = fresh.first().and_then(|part| AgentId::new(part));
    let mut all: Vec<AgentId> = named.iter().cloned().collect();
    all.extend(children);
    all.extend(elsewhere);
    all
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

/// Paths: those that are named, one right below each, and one elsewhere.
pub(super) fn paths(asks: &[&Ask]) -> Vec<Given> {
    let named = named_paths(asks);
    let fresh = fresh(&named);
    let mut all: Vec<Given> = named.iter().filter_map(|text| Given::path(text)).collect();
    all.extend(named.iter().filter_map(|text| Given::path(&format!("{text}/{fresh}"))));
    all.extend(Given::path(&fresh));
    all
}

/// Trees: what begins at a path that is named, above one, right below one or elsewhere holds each
/// set of the named that a tree can hold.
pub(super) fn trees(asks: &[&Ask]) -> Vec<Given> {
    let named = named_paths(asks);
    let fresh = fresh(&named);
    let mut begin = BTreeSet::new();
    for text in &named {
        let above = text.match_indices('/').filter_map(|(end, _)| text.get(..end));
        begin.extend(above.map(str::to_owned));
    }
    begin.extend(named.iter().map(|text| format!("{text}/{fresh}")));
    begin.extend(named.into_iter().map(str::to_owned));
    begin.insert(fresh);
    begin.iter().filter_map(|text| Given::tree(text)).collect()
}

fn named_paths<'a>(asks: &[&'a Ask]) -> BTreeSet<&'a str> {
    let mut named: BTreeSet<&str> = text_constants(asks).into_iter().collect();
    named.extend(asks.iter().filter_map(|ask| match ask {
        Ask::Within(outer) => Some(&**outer),
        _ => None,
    }));
    named
}

/// A name that is no part of any.
fn fresh(named: &BTreeSet<&str>) -> String {
    let parts: BTreeSet<&str> = named.iter().flat_map(|text| text.split('/')).collect();
    let mut fresh = core::iter::once("other".to_owned()).chain((0..).map(|n| format!("other{n}")));
    fresh.find(|part| !parts.contains(&**part)).unwrap_or_default()
}
