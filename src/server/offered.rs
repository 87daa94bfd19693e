//! Tools that an agent's program offers by its ticket: below the prefixes that the operator has named,
//! and of no milder class than the operator has said.

use syscap_format::{EffectClass, Manifest, Reason, Refused, ToolId, field::shape};

use crate::server::Holding;
use crate::tools::provide::Offered;

/// Most new names that one ticket puts on record: more wait for an operator.
pub(crate) const NEW_NAMES_MAX: usize = 64;
/// Most prefixes of a ticket.
pub(crate) const PREFIXES_MAX: usize = 16;
shape! {
    /// Names that a ticket may offer tools under.
    pub struct Prefix {
        /// Their first components, or the whole name.
        1 => pub prefix: ToolId,
        /// The class of what is offered there. A tool's own word counts where it is more.
        2 => pub class: EffectClass,
    }
}

impl Prefix {
    /// The first components of tools that agents' clients run themselves: nobody else's tool may have
    /// such a name, or it would stand on record as a client's.
    pub const CLIENTS: [&str; 2] = ["claude_code", "gemini_cli"];

    fn covers(&self, tool: &ToolId) -> bool {
        begins(tool.as_str(), self.prefix.as_str())
    }
}

/// True if a name is another, or begins with it by whole components.
fn begins(name: &str, with: &str) -> bool {
    name.strip_prefix(with).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Holding {
    /// Refuses prefixes of which a name is somebody else's: a tool of the server's own, one of an agent's
    /// client, or one that was made from a foreign definition, as those of servers are.
    pub(crate) fn check_prefixes(&self, prefixes: &[Prefix]) -> Result<(), Refused> {
        let delegated = self.providers.delegated();
        let is_own = |manifest: &Manifest| delegated.iter().all(|(it, _)| it.tool != manifest.tool);
        for prefix in prefixes {
            let is_of = |client: &&str| begins(prefix.prefix.as_str(), client);
            let of_client = Prefix::CLIENTS.iter().any(is_of);
            let taken = self.look(|kernel| {
                let mut all = kernel.manifests();
                let foreign = |it: &&Manifest| it.definition.is_some() || is_own(it);
                let names = |it: &&Manifest| {
                    std::iter::once(&it.tool).chain(&it.aliases).any(|name| prefix.covers(name))
                };
                all.find(|it| names(it) && foreign(it)).map(|it| it.tool.clone())
            });
            if of_client || taken.is_some() {
                let refused = Refused::new(Reason::NotBound).field("prefix").got(&prefix.prefix);
                return Err(match taken {
                    Some(tool) => refused.allowed(&format_args!("names beside {tool}")),
                    None => refused.allowed("names that are no client's"),
                });
            }
        }
        Ok(())
    }
}

/// The tools as they are offered by a ticket with these prefixes.
pub(crate) fn bound(mut tools: Vec<Offered>, prefixes: &[Prefix]) -> Result<Vec<Offered>, Refused> {
    for Offered { manifest, .. } in &mut tools {
        let of = |tool: &ToolId| prefixes.iter().find(|prefix| prefix.covers(tool));
        let other = manifest.aliases.iter().find(|alias| of(alias).is_none());
        let Some(prefix) = of(&manifest.tool).filter(|_| other.is_none()) else {
            let got = other.unwrap_or(&manifest.tool);
            let all: Vec<&str> = prefixes.iter().map(|one| one.prefix.as_str()).collect();
            let refused = Refused::new(Reason::NotBound).field("tool").got(got);
            return Err(refused.allowed(&format_args!("names below: {}", all.join(", "))));
        };
        if prefix.class.code() > manifest.effect.code() {
            manifest.effect = prefix.class;
        }
    }
    Ok(tools)
}
