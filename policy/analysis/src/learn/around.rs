//! Draws scopes around resources.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

use syscap_format::{
    Cidr, Host, HostPattern, Hosts, Ints, Name, Names, PortRange, Resource, Rights, RootedPath,
    Rule, Scope,
};

use super::{narrowed::Reach, settings::Settings};

/// A scope that covers the resources, which are of one type; `None` where there is none of that
/// reach.
pub(super) fn around(reach: Reach, all: &[&Resource], settings: &Settings) -> Option<Scope> {
    match (all.first()?, reach) {
        (_, Reach::Granted) => None,
        (Resource::Path { .. }, _) => paths(reach, all, settings.files_min),
        (Resource::Host(_), Reach::Touched | Reach::Gathered) => {
            hosts(reach, all, settings.files_min)
        }
        (Resource::Int(_), Reach::Touched) => {
            let distinct: BTreeSet<i128> = each(all, int)?.into_iter().collect();
            let only = distinct.first().filter(|_| distinct.len() == 1)?;
            Scope::ints(*only, *only).ok()
        }
        (Resource::Int(_), Reach::Common) => {
            let (ints, times) = (each(all, int)?, i128::from(settings.headroom.max(1)));
            let least = ints.iter().min()?.min(&0).saturating_mul(times);
            let greatest = ints.iter().max()?.max(&0).saturating_mul(times);
            Scope::ints(least.max(Ints::MIN), greatest.min(Ints::MAX)).ok()
        }
        (Resource::Name(_), Reach::Touched) => Names::new(each(all, name)?).ok().map(Scope::Names),
        (Resource::Port(_), Reach::Touched) => Scope::ports(each(all, port)?).ok(),
        (Resource::Addr(_), Reach::Touched) => Scope::cidrs(each(all, block)?).ok(),
        _ => None,
    }
}

/// The result of `of` for each; `None` if one is of another type.
fn each<T>(all: &[&Resource], of: fn(&Resource) -> Option<T>) -> Option<Vec<T>> {
    all.iter().map(|one| of(one)).collect()
}

const fn int(resource: &Resource) -> Option<i128> {
    if let Resource::Int(n) = resource { Some(*n) } else { None }
}

fn name(resource: &Resource) -> Option<Name> {
    if let Resource::Name(name) = resource { Some(name.clone()) } else { None }
}

fn port(resource: &Resource) -> Option<PortRange> {
    if let Resource::Port(port) = resource { PortRange::new(*port, *port).ok() } else { None }
}

fn host(resource: &Resource) -> Option<Host> {
    if let Resource::Host(host) = resource { Some(host.clone()) } else { None }
}

fn path(resource: &Resource) -> Option<(RootedPath, Rights)> {
    if let Resource::Path { path, needs } = resource { Some((path.clone(), *needs)) } else { None }
}

fn block(resource: &Resource) -> Option<Cidr> {
    let Resource::Addr(address) = resource else { return None };
    let address = address.to_canonical();
    let bits = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
    Cidr::new(address, bits).ok()
}

/// Hosts themselves, or all hosts below a domain of which enough were seen. A domain has two
/// labels at least: what lies below one belongs to anybody.
fn hosts(reach: Reach, all: &[&Resource], enough: usize) -> Option<Scope> {
    let hosts: BTreeSet<Host> = each(all, host)?.into_iter().collect();
    let mut below: BTreeMap<&str, usize> = BTreeMap::new();
    for host in &hosts {
        for domain in domains(host.as_str()) {
            let count = below.entry(domain).or_default();
            *count = count.saturating_add(1);
        }
    }
    let gathered = |host: &Host| {
        let wide = |domain: &&str| below.get(domain).is_some_and(|count| *count >= enough);
        let domain = domains(host.as_str()).find(wide).and_then(|domain| Host::new(domain).ok());
        domain.and_then(|domain| HostPattern::below(domain).ok())
    };
    let patterns = hosts.iter().map(|host| {
        let wider = if reach == Reach::Gathered { gathered(host) } else { None };
        wider.unwrap_or_else(|| HostPattern::exact(host.clone()))
    });
    Hosts::new(patterns).ok().map(Scope::Hosts)
}

/// The domains strictly above a host, the nearest first.
fn domains(host: &str) -> impl Iterator<Item = &str> {
    let above = core::iter::successors(parent_of(host), |host| parent_of(host));
    above.take_while(|domain| domain.contains('.'))
}

fn parent_of(host: &str) -> Option<&str> {
    host.split_once('.').map(|(_, parent)| parent)
}

/// Rules for paths, each with the rights that what lies there needed. A rule holds for its path
/// and for all below it, where no longer one stands.
fn paths(reach: Reach, all: &[&Resource], enough: usize) -> Option<Scope> {
    let mut things: BTreeMap<RootedPath, Rights> = BTreeMap::new();
    for (path, rights) in each(all, path)? {
        give(&mut things, path, rights);
    }
    match reach {
        Reach::Gathered => gather(&mut things, enough),
        Reach::Common => join(&mut things),
        Reach::Touched | Reach::Granted => {}
    }
    Scope::paths(things.into_iter().map(|(path, rights)| Rule { path, rights })).ok()
}

fn give(things: &mut BTreeMap<RootedPath, Rights>, path: RootedPath, rights: Rights) {
    let entry = things.entry(path).or_insert(Rights::NONE);
    *entry = entry.union(rights);
}

/// Puts a folder in the place of enough things below it, from the deepest folders on. A gathered
/// folder counts as one thing: many files in one folder do not open the folder above it.
fn gather(things: &mut BTreeMap<RootedPath, Rights>, enough: usize) {
    let mut all: Vec<RootedPath> = things.keys().flat_map(folders).collect();
    all.sort_by_key(|folder| core::cmp::Reverse(folder.components().count()));
    all.dedup();
    for folder in all {
        let below: Vec<RootedPath> =
            things.keys().filter(|t| **t != folder && t.is_within(&folder)).cloned().collect();
        if below.len() >= enough {
            for thing in below {
                let rights = things.remove(&thing).unwrap_or(Rights::NONE);
                give(things, folder.clone(), rights);
            }
        }
    }
}

/// Puts the deepest folder of each root in the place of all that lies in that root.
fn join(things: &mut BTreeMap<RootedPath, Rights>) {
    let before = core::mem::take(things);
    for (path, rights) in &before {
        let of_root = || before.keys().filter(|other| other.root() == path.root());
        let common = folders(path).find(|folder| of_root().all(|other| other.is_within(folder)));
        give(things, common.unwrap_or_else(|| path.clone()), *rights);
    }
}

/// The folders above a path, the deepest first, the root itself last.
fn folders(path: &RootedPath) -> impl Iterator<Item = RootedPath> {
    let components: Vec<&str> = path.components().collect();
    (0..components.len()).rev().filter_map(move |count| {
        RootedPath::new(path.root().clone(), components.iter().take(count)).ok()
    })
}
