//! A token's grants: tools, and for each its scopes by dimension.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};
use crate::field::Field;
use crate::id::ToolId;
use crate::limits::{DIMENSIONS_MAX, GRANTS_MAX};
use crate::scope::{Resource, Scope};
use crate::summary::nearest;

/// The scopes that a token gives one tool, by dimension. A dimension that is absent permits
/// nothing.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGrant {
    scopes: Vec<(Box<str>, Scope)>,
}

impl ToolGrant {
    /// No scope in any dimension: enough for a tool that touches nothing.
    pub const fn new() -> Self {
        Self { scopes: Vec::new() }
    }

    /// This grant with the scope of one dimension set.
    pub fn with(mut self, dimension: &str, scope: Scope) -> Self {
        match self.scopes.iter_mut().find(|(name, _)| **name == *dimension) {
            Some((_, old)) => *old = scope,
            None => self.scopes.push((Box::from(dimension), scope)),
        }
        self.scopes.sort_by(|(a, _), (b, _)| order(a, b));
        self
    }

    /// The scope of a dimension.
    pub fn scope(&self, dimension: &str) -> Option<&Scope> {
        self.scopes.iter().find(|(name, _)| **name == *dimension).map(|(_, scope)| scope)
    }

    /// The dimensions and their scopes, in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Scope)> {
        self.scopes.iter().map(|(name, scope)| (&**name, scope))
    }

    /// True if `resource` may be touched in `dimension`.
    #[must_use]
    pub fn permits(&self, dimension: &str, resource: &Resource) -> bool {
        self.scope(dimension).is_some_and(|scope| scope.permits(resource))
    }

    /// True if this grant permits no more than `other`.
    #[must_use]
    pub fn leq(&self, other: &Self) -> bool {
        self.iter().all(|(name, scope)| other.scope(name).is_some_and(|wider| scope.leq(wider)))
    }

    /// The grant that both permit.
    pub fn meet(&self, other: &Self) -> Self {
        let scopes = self
            .iter()
            .filter_map(|(name, scope)| Some((Box::from(name), scope.meet(other.scope(name)?)?)));
        Self { scopes: scopes.collect() }
    }
}

/// The tools that a token grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    tools: Vec<(ToolId, ToolGrant)>,
}

impl Grants {
    /// Nothing.
    pub const fn new() -> Self {
        Self { tools: Vec::new() }
    }

    /// These grants with that of one tool set.
    #[must_use]
    pub fn with(mut self, tool: ToolId, grant: ToolGrant) -> Self {
        match self.tools.iter_mut().find(|(name, _)| *name == tool) {
            Some((_, old)) => *old = grant,
            None => self.tools.push((tool, grant)),
        }
        self.tools.sort_by(|(a, _), (b, _)| order(a.as_str(), b.as_str()));
        self
    }

    /// The grant of a tool.
    pub fn get(&self, tool: &ToolId) -> Option<&ToolGrant> {
        self.tools.iter().find(|(name, _)| name == tool).map(|(_, grant)| grant)
    }

    /// The tools and their grants, in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&ToolId, &ToolGrant)> {
        self.tools.iter().map(|(tool, grant)| (tool, grant))
    }

    /// True if these grants permit no more than `other`.
    #[must_use]
    pub fn leq(&self, other: &Self) -> bool {
        self.iter().all(|(tool, grant)| other.get(tool).is_some_and(|wider| grant.leq(wider)))
    }

    /// The grants that both permit.
    pub fn meet(&self, other: &Self) -> Self {
        let tools = self
            .iter()
            .filter_map(|(tool, grant)| Some((tool.clone(), grant.meet(other.get(tool)?))));
        Self { tools: tools.collect() }
    }

    /// The tools' names, for a refusal: first those most like the one that was asked for.
    pub fn names(&self, got: &str) -> String {
        nearest(got, self.tools.iter().map(|(tool, _)| tool.as_str()))
    }
}

/// The order of text keys in canonical CBOR: by length, then by bytes.
fn order(a: &str, b: &str) -> core::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl Field for Grants {
    const SHAPE: &'static str = "map {text tool: map {text dimension: [uint type, value]}}";

    fn put(&self, encoder: &mut Encoder) {
        encoder.map(self.tools.len());
        for (tool, grant) in &self.tools {
            encoder.text(tool.as_str());
            encoder.map(grant.scopes.len());
            for (dimension, scope) in &grant.scopes {
                encoder.text(dimension);
                scope.encode(encoder);
            }
        }
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut grants = Self::new();
        decoder.text_map(|tool, decoder| {
            let fault = decoder.fault(DecodeFault::Value);
            let tool = ToolId::new(tool).ok_or(fault)?;
            let mut grant = ToolGrant::new();
            decoder.text_map(|dimension, decoder| {
                let fault = decoder.fault(DecodeFault::Value);
                let scope = Scope::decode(decoder)?;
                grant.scopes.push((Box::from(dimension), scope));
                if grant.scopes.len() > DIMENSIONS_MAX { Err(fault) } else { Ok(()) }
            })?;
            grants.tools.push((tool, grant));
            if grants.tools.len() > GRANTS_MAX { Err(fault) } else { Ok(()) }
        })?;
        Ok(grants)
    }
}
