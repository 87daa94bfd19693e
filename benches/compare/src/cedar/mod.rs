//! syscap's documents and scenarios as Cedar's policies and requests, where both can say the same.
//!
//! | syscap | Cedar |
//! |---|---|
//! | allow, deny with `on_fail` block | `permit`, `forbid` |
//! | a tool as subject | `action == Action::"TOOL"` |
//! | an effect class as subject | `context["call.effect"] == "CLASS"` |
//! | an attribute | `context["ATTRIBUTE"]`, by its whole name |
//! | a path, a host, an agent | its text; `within` and `domain` are `==` or `like` |
//! | an address | `ip(..)`; one that is IPv4 within IPv6 is IPv4, as here |
//!
//! All else is [`Outside`]. What Cedar evaluates differently is kept out by types that are
//! declared and by guards: an attribute that may be missing is asked about only behind
//! `exists`, or in `any` behind `missing`, where Cedar stops before it would err.

mod condition;
mod outside;

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid, PolicySet,
    Request, RestrictedExpression,
};
use condition::{Writer, literal, long};
pub use outside::Outside;
use syscap_format::EffectClass;
use syscap_policy::{
    Attribute, Document, Effect, Given, OnFail, Scenario, Subject, path_text, risk,
};

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// An integer.
    Int,
    /// `false` or `true`.
    Bool,
    /// A path below a root.
    Path,
    /// A host.
    Host,
    /// An address.
    Address,
    /// An agent.
    Agent,
}

/// Whether an attribute is there in every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Always,
    /// It may be missing.
    Sometimes,
}

/// Types of facts and arguments, which have none by themselves.
#[derive(Clone, Debug, Default)]
pub struct Declared(BTreeMap<Attribute, (Kind, Presence)>);

impl Declared {
    /// With the type of an attribute.
    #[must_use]
    pub fn with(mut self, attribute: Attribute, kind: Kind, presence: Presence) -> Self {
        self.0.insert(attribute, (kind, presence));
        self
    }

    /// All that was declared.
    pub fn iter(&self) -> impl Iterator<Item = (&Attribute, Kind, Presence)> {
        self.0.iter().map(|(attribute, (kind, presence))| (attribute, *kind, *presence))
    }

    fn of(&self, attribute: &Attribute) -> Option<(Kind, Presence)> {
        let kind = match attribute {
            Attribute::Fact(..) | Attribute::Argument(..) => {
                return self.0.get(attribute).copied();
            }
            Attribute::Tool | Attribute::EffectClass | Attribute::TokenId => Kind::Text,
            Attribute::Agent => Kind::Agent,
            Attribute::TokenReadOnly => Kind::Bool,
            _ => Kind::Int,
        };
        Some((kind, Presence::Always))
    }
}

/// A document as Cedar's policies.
#[derive(Clone, Debug)]
pub struct Policies {
    text: String,
    set: PolicySet,
    /// What is asked about and declared as always there.
    asked: BTreeSet<Attribute>,
    declared: Declared,
    risk: BTreeMap<String, u8>,
}

/// What Cedar says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its decision.
    pub decision: Decision,
    /// Policies that could not be evaluated, which Cedar skips.
    pub errors: Vec<String>,
}

impl Policies {
    /// Translates a document.
    ///
    /// # Errors
    /// The first thing that is outside of the shared fragment.
    pub fn of(document: &Document, declared: &Declared) -> Result<Self, Outside> {
        let (text, asked) = text(document, declared)?;
        let set = parse(&text)?;
        let points = document.risk.iter();
        let risk = points.map(|(tool, points)| (tool.as_str().to_owned(), *points)).collect();
        Ok(Self { text, set, asked, declared: declared.clone(), risk })
    }

    /// The policies as text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The policies as Cedar read them.
    #[must_use]
    pub const fn set(&self) -> &PolicySet {
        &self.set
    }

    /// Translates a scenario, which must give all that is asked about, each as it was declared.
    ///
    /// # Errors
    /// The first thing that is outside of the shared fragment.
    pub fn request(&self, scenario: &Scenario) -> Result<Request, Outside> {
        for attribute in &self.asked {
            if *attribute != Attribute::Risk && scenario.get(attribute).is_none() {
                return Err(Outside::NotGiven(attribute.to_string()));
            }
        }
        for (attribute, given) in scenario.iter() {
            let declared = self.declared.of(attribute).map(|(kind, _)| kind);
            if declared.is_none() || declared != kind_of(given) {
                return Err(Outside::Value(attribute.to_string()));
            }
        }
        self.request_as_given(scenario)
    }

    /// Translates a scenario without a look at what was declared: where a value is missing, or
    /// of another type, both engines do as they do.
    ///
    /// # Errors
    /// A value that has no like, or no tool, class or agent.
    pub fn request_as_given(&self, scenario: &Scenario) -> Result<Request, Outside> {
        let named = |attribute: Attribute| match scenario.get(&attribute) {
            Some(Given::Text(text)) => Ok(&**text),
            Some(Given::Agent(agent)) => Ok(agent.as_str()),
            _ => Err(Outside::NotGiven(attribute.to_string())),
        };
        let (tool, agent) = (named(Attribute::Tool)?, named(Attribute::Agent)?);
        let class = named(Attribute::EffectClass)?;
        let mut pairs = BTreeMap::new();
        if let Some(class) = EffectClass::ALL.iter().find(|found| found.name() == class) {
            let written = self.risk.get(tool).copied().unwrap_or_default();
            let points = i64::from(risk::base(*class).max(written));
            pairs.insert(Attribute::Risk.to_string(), RestrictedExpression::new_long(points));
        }
        for (attribute, given) in scenario.iter() {
            pairs.insert(attribute.to_string(), value(given, attribute)?);
        }
        let context = Context::from_pairs(pairs).map_err(refused)?;
        let (agent, tool) = (uid("Agent", agent)?, uid("Action", tool)?);
        Request::new(agent, tool, uid("Home", "this")?, context, None).map_err(refused)
    }

    /// What Cedar decides.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Answer {
        let response = Authorizer::new().is_authorized(request, &self.set, &Entities::empty());
        let errors = response.diagnostics().errors().map(ToString::to_string).collect();
        Answer { decision: response.decision(), errors }
    }
}

/// A document as the text of Cedar's policies, and what they take to be there.
///
/// # Errors
/// The first thing that is outside of the shared fragment.
pub fn text(
    document: &Document,
    declared: &Declared,
) -> Result<(String, BTreeSet<Attribute>), Outside> {
    let mut writer = Writer::new(declared);
    let mut text = String::new();
    for constraint in &document.constraints {
        let id = constraint.id.as_str();
        if constraint.on_fail != OnFail::Block {
            return Err(Outside::OnFail(id.to_owned()));
        }
        if !constraint.obligations.is_empty() {
            return Err(Outside::Obligations(id.to_owned()));
        }
        let word = match constraint.effect {
            Effect::Allow => "permit",
            Effect::Deny => "forbid",
        };
        text.push_str(&format!("@id({})\n{word}(principal, action", literal(id)));
        if let Subject::Tool(tool) = &constraint.subject {
            text.push_str(&format!(" == Action::{}", literal(tool.as_str())));
        }
        text.push_str(", resource) when { ");
        if let Subject::Capability(class) = &constraint.subject {
            let (key, class) = (Attribute::EffectClass.to_string(), literal(class.name()));
            text.push_str(&format!("context[{}] == {class} && ", literal(&key)));
        }
        writer.condition(&constraint.when, &BTreeSet::new(), &mut text)?;
        text.push_str(" };\n");
    }
    Ok((text, writer.asked))
}

/// Policies as Cedar reads them.
///
/// # Errors
/// What Cedar says against them.
pub fn parse(text: &str) -> Result<PolicySet, Outside> {
    text.parse().map_err(refused)
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, Outside> {
    let kind: EntityTypeName = kind.parse().map_err(refused)?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

fn refused(why: impl ToString) -> Outside {
    Outside::Refused(why.to_string())
}

const fn kind_of(given: &Given) -> Option<Kind> {
    Some(match given {
        Given::Text(_) => Kind::Text,
        Given::Int(_) => Kind::Int,
        Given::Bool(_) => Kind::Bool,
        Given::Path(_) => Kind::Path,
        Given::Host(_) => Kind::Host,
        Given::Address(_) => Kind::Address,
        Given::Agent(_) => Kind::Agent,
        Given::Tree(_) | Given::Erased | Given::Other(_) | Given::List(_) | Given::Resources(_) => {
            return None;
        }
    })
}

fn value(given: &Given, attribute: &Attribute) -> Result<RestrictedExpression, Outside> {
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    Ok(match given {
        Given::Text(one) => text(one),
        Given::Agent(agent) => text(agent.as_str()),
        Given::Host(host) => text(host.as_str()),
        Given::Path(path) => text(&path_text(path)),
        Given::Int(n) => RestrictedExpression::new_long(long(*n)?),
        Given::Bool(value) => RestrictedExpression::new_bool(*value),
        Given::Address(address) => RestrictedExpression::new_ip(address.to_canonical().to_string()),
        Given::Tree(_) | Given::Erased | Given::Other(_) | Given::List(_) | Given::Resources(_) => {
            return Err(Outside::Value(attribute.to_string()));
        }
    })
}
