//! The kinds of name in an argument, and the reading of its text.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use syscap_format::{
    EffectClass, Host, Item, ItemKind, ParamType, Reason, Refused, Resource, Rights,
};
use syscap_kernel::{Demand, DistinctDemands, Request};

use super::path::PathRoot;
use crate::email::{self, RECIPIENT_DIMENSION};
use crate::fs::PATH_DIMENSION;
#[cfg(feature = "http")]
use crate::net::{self, target::Target};
use crate::net::{ADDRESS_DIMENSION, HOST_DIMENSION};

/// The kind of name in an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A file or a folder, below one of these roots.
    Path(Vec<PathRoot>),
    /// A folder and all that lies below it.
    Tree(Vec<PathRoot>),
    /// A URL of http or https.
    Url,
    /// A host, by its name or its address.
    Host,
    /// Whom something is sent to: an address of mail, or a name.
    Recipient,
    /// Code to be run: nothing bounds it, and no approval covers more than the one call.
    Command,
}

impl ArgumentKind {
    /// The words for it.
    pub const NAMES: [&'static str; 6] = ["path", "tree", "url", "host", "recipient", "command"];

    /// The word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::Tree(_) => "tree",
            Self::Url => "url",
            Self::Host => "host",
            Self::Recipient => "recipient",
            Self::Command => "command",
        }
    }

    /// The kind of that word; of paths below these roots.
    pub fn named(name: &str, roots: Vec<PathRoot>) -> Option<Self> {
        Some(match name {
            "path" => Self::Path(roots),
            "tree" => Self::Tree(roots),
            "url" => Self::Url,
            "host" => Self::Host,
            "recipient" => Self::Recipient,
            "command" => Self::Command,
            _ => return None,
        })
    }

    /// The roots, of paths.
    pub fn roots(&self) -> &[PathRoot] {
        match self {
            Self::Path(roots) | Self::Tree(roots) => roots,
            _ => &[],
        }
    }

    /// The dimension in which a token must have a scope.
    pub const fn dimension(&self) -> Option<&'static str> {
        match self {
            Self::Path(_) | Self::Tree(_) => Some(PATH_DIMENSION),
            Self::Url | Self::Host => Some(HOST_DIMENSION),
            Self::Recipient => Some(RECIPIENT_DIMENSION),
            Self::Command => None,
        }
    }
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An argument as an operator declares it.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The kind of name.
    pub kind: ArgumentKind,
    /// The rights at a path; by default those of the tool's class.
    pub needs: Option<Rights>,
}

impl Declared {
    /// By the tool's class.
    pub const fn new(kind: ArgumentKind) -> Self {
        Self { kind, needs: None }
    }

    /// Says what is done at a path.
    pub const fn needing(mut self, needs: Rights) -> Self {
        self.needs = Some(needs);
        self
    }

    /// Adds what the argument's texts name.
    pub(super) fn demand(
        &self,
        name: &str,
        given: Item<'_>,
        request: &Request<'_>,
        class: EffectClass,
        demands: &mut DistinctDemands,
    ) -> Result<(), Refused> {
        let argument = kept(name);
        let bad = || {
            let refused = Refused::new(Reason::BadArgument).field(argument);
            refused.allowed(&format!("a {}, or a list of such", self.kind))
        };
        if given.kind() != ItemKind::Array {
            let text = given.as_text().ok_or_else(bad)?;
            return self.one(argument, text, request, class, demands);
        }
        for element in given.elements() {
            if demands.is_over() {
                break;
            }
            self.one(argument, element.as_text().ok_or_else(bad)?, request, class, demands)?;
        }
        Ok(())
    }

    fn one(
        &self,
        argument: &'static str,
        text: &str,
        request: &Request<'_>,
        class: EffectClass,
        demands: &mut DistinctDemands,
    ) -> Result<(), Refused> {
        match &self.kind {
            ArgumentKind::Path(roots) | ArgumentKind::Tree(roots) => {
                let path = PathRoot::read(roots, text).ok_or_else(|| {
                    let allowed = PathRoot::forms(roots, text);
                    Refused::new(Reason::BadPath).field(argument).got(text).allowed(&allowed)
                })?;
                let needs = self.needs.unwrap_or_else(|| needs(class));
                let resource = match &self.kind {
                    ArgumentKind::Tree(_) => Resource::Tree { path, needs },
                    _ => Resource::Path { path, needs },
                };
                demands.push(Demand { dimension: PATH_DIMENSION, resource, argument });
            }
            ArgumentKind::Url => demands.extend(url(argument, text)?),
            ArgumentKind::Host => demands.push(host(argument, text)?),
            ArgumentKind::Recipient => {
                demands.push(email::recipient(request.grant, argument, text)?);
            }
            ArgumentKind::Command => {}
        }
        Ok(())
    }
}

/// The rights of a tool of a class at a path that it is given: one that does not only read may read
/// what it sends elsewhere, and write what it has read.
const fn needs(class: EffectClass) -> Rights {
    match class {
        EffectClass::Pure | EffectClass::Read | EffectClass::ExternalRead => Rights::READ,
        _ => Rights::READ.union(Rights::WRITE),
    }
}

#[cfg(feature = "http")]
fn url(argument: &'static str, text: &str) -> Result<Vec<Demand>, Refused> {
    let target = Target::absolute(text)
        .map_err(|fault| bad(argument, text, &format!("a URL; what {fault} is none")))?;
    let named = |demand: Demand| match demand.argument {
        "url" => Demand { argument, ..demand },
        _ => demand,
    };
    Ok(net::demands(&target)?.into_iter().map(named).collect())
}

/// A build that reads no URLs knows no resource of one.
#[cfg(not(feature = "http"))]
fn url(argument: &'static str, _: &str) -> Result<Vec<Demand>, Refused> {
    Err(Refused::new(Reason::NoProvider).field(argument))
}

fn host(argument: &'static str, text: &str) -> Result<Demand, Refused> {
    if let Ok(address) = text.parse::<IpAddr>() {
        let resource = Resource::Addr(address);
        return Ok(Demand { dimension: ADDRESS_DIMENSION, resource, argument });
    }
    let form = "the name of a host, or its address, and nothing else";
    let host = Host::new(&text.to_ascii_lowercase()).map_err(|_| bad(argument, text, form))?;
    Ok(Demand { dimension: HOST_DIMENSION, resource: Resource::Host(host), argument })
}

fn bad(argument: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(argument).got(got).allowed(allowed)
}

/// The type that an argument of a type has once it is known what it names.
pub(super) struct TypedParam(pub(super) ParamType);

impl TypedParam {
    /// `None` where that can't be told by an argument of the type.
    pub(super) const fn of(&self, kind: &ArgumentKind) -> Option<ParamType> {
        Some(match (self.0, kind) {
            (ParamType::Text, ArgumentKind::Path(_) | ArgumentKind::Tree(_)) => ParamType::Path,
            (ParamType::Text | ParamType::Code, ArgumentKind::Command) => ParamType::Code,
            (ParamType::List | ParamType::Argv, ArgumentKind::Command) => ParamType::Argv,
            // What may be anything may be what is run: text or not, nothing is known of it.
            (ParamType::Any, ArgumentKind::Command) => ParamType::Code,
            (ParamType::Text | ParamType::List | ParamType::Any, _) => self.0,
            _ => return None,
        })
    }
}

/// The name of an argument for as long as the process runs: what a call demands names its argument
/// without a lifetime. Each is kept once, and only a tool on record brings one.
pub(super) fn kept(name: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // Every change is one step.
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(name) {
        return known;
    }
    let leaked: &'static str = Box::leak(Box::from(name));
    kept.insert(leaked);
    leaked
}
