//! The dimensions that the tools of this workspace compare, each with the type of its scopes.
//!
//! This is the one place where a dimension has its name and its type. The command line, the
//! library, the import of resumes, `syscap tools argument` and the tools themselves read it here.
//! A host's own tool may compare other dimensions; its manifest gives them a type
//! ([`ArgumentResource`](crate::manifest::ArgumentResource)).

use alloc::boxed::Box;

use super::ScopeType;
use crate::id::ToolId;

/// How a manifest declares a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredBy {
    /// By its own name.
    Itself,
    /// By the name of another: a call may compare this one in addition.
    Beside(&'static str),
    /// By the name of another: a call may compare this one in the place of that one.
    InsteadOf(&'static str),
    /// By no name: only the tool of this id reads the scope, and it needs none.
    Tool(&'static str),
}

/// A dimension: its name, and the type of the scopes that a grant gives in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeDimension {
    /// Its name in grants and manifests.
    pub name: &'static str,
    /// The type of its scopes.
    pub kind: ScopeType,
    /// How a manifest declares it.
    pub declared_by: DeclaredBy,
}

/// Declares the table.
macro_rules! dimensions {
    ($( $(#[$doc:meta])* $constant:ident $name:literal $kind:ident $by:expr; )*) => {
        $(
            $(#[$doc])*
            pub const $constant: ScopeDimension = ScopeDimension {
                name: $name,
                kind: ScopeType::$kind,
                declared_by: $by,
            };
        )*

        impl ScopeDimension {
            /// All of them.
            pub const ALL: &'static [Self] = &[ $( $constant, )* ];
        }
    };
}

use DeclaredBy::{Beside, InsteadOf, Itself, Tool};

dimensions! {
    /// Files and folders below roots.
    PATH "path" Paths Itself;
    /// Hosts of URLs, by name or suffix.
    HOST "host" Hosts Itself;
    /// Addresses that a URL names, or that names of private networks lead to.
    ADDRESS "address" Cidrs InsteadOf("host");
    /// Ports that are not their scheme's own.
    PORT "port" Ports Beside("host");
    /// Schemes that anybody on the way can read: `http`.
    SCHEME "scheme" Names Beside("host");
    /// Routes that an operator has set.
    ROUTE "route" Names Itself;
    /// Purposes for which something is sent.
    PURPOSE "purpose" Names Itself;
    /// Recipients, by address of mail or name.
    RECIPIENT "recipient" Names Itself;
    /// Recipients, by the host of their address of mail.
    RECIPIENT_HOST "recipient_host" Hosts InsteadOf("recipient");
    /// Agents that may be sent to.
    OUTBOX "outbox" Names Itself;
    /// Agents that may be seen.
    AGENT "agent" Names Tool("org.list_agents");
    /// Programs that may be started.
    PROGRAM "program" Names Itself;
    /// The effects of commands besides running programs and touching files.
    DOES "does" Names Beside("program");
    /// Networks that a program may reach.
    NETWORK "network" Names Beside("program");
    /// Levels of confinement below the best.
    CONFINEMENT "confinement" Names Beside("program");
    /// Collections of vectors.
    COLLECTION "collection" Names Itself;
}

impl ScopeDimension {
    /// The dimension of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|dimension| dimension.name == name)
    }

    /// True if a resource in `compared` compares a dimension that a manifest declares as
    /// `declared`.
    #[must_use]
    pub fn compares(compared: &str, declared: &str) -> bool {
        let instead = Self::named(compared).map(|dimension| dimension.declared_by);
        compared == declared || matches!(instead, Some(InsteadOf(other)) if other == declared)
    }

    /// True if a tool that declares these dimensions may compare a resource in `dimension`.
    #[must_use]
    pub fn is_declared(dimension: &str, tool: &ToolId, declared: &[Box<str>]) -> bool {
        let has = |name: &str| declared.iter().any(|known| **known == *name);
        has(dimension)
            || match Self::named(dimension).map(|dimension| dimension.declared_by) {
                Some(Beside(other) | InsteadOf(other)) => has(other),
                Some(Tool(only)) => tool.as_str() == only,
                Some(Itself) | None => false,
            }
    }
}
