//! The meaning of a document: plain and slow, so that it can be read as the definition.
//!
//! The compiled engine must say the same of every question, and tests hold it to that. Analysis
//! evaluates every witness here before it shows it.
//!
//! * A test says of one value that something holds, does not hold, or can't be said.
//! * `all`, `any` and `not` join that after Kleene.
//! * A constraint is *applicable* where its subject is the call's. An applicable allow *grants*
//!   where its condition holds. An applicable deny *applies* where its condition holds or can't be
//!   said. Constraints that grant or apply *match*.
//! * Where an allow grants, the verdict is at least `allow`, and `degrade` where an allow that
//!   grants takes something away. If none grants it is the strictest `on_fail` of the applicable
//!   allows, and `deny` if there is none. Each deny that applies raises it to its own `on_fail`.
//! * Obligations are those of all that match, united.

use alloc::vec::Vec;
use core::net::IpAddr;

use syscap_format::{Cidr, ConstraintId, Host, Obligation, ParamType, Verdict};

use crate::document::{Ask, Attribute, Condition, Constant, Constraint, Document, Effect, Subject};
use crate::limits::LIST_MAX;
use crate::risk::WithRisk;
use crate::truth::Truth;
use crate::value::{Other, Value, Values, host_of, path_text};

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The first, by id, of those that contributed exactly the verdict: of an allow that grants
    /// `allow`, or `degrade` where it takes something away; of an applicable allow where none
    /// grants, and of a deny that applies, its `on_fail`. `None` where nothing is applicable.
    pub deciding: Option<ConstraintId>,
    /// Allows that grant and denies that apply, by id.
    pub matches: Vec<ConstraintId>,
    /// The obligations beside the verdict, united.
    pub obligations: Vec<Obligation>,
}

/// Decides a call by a document. A missing `risk` is computed from the call's tool and effect
/// class.
#[must_use]
pub fn decide(document: &Document, values: &dyn Values) -> Outcome {
    let values = WithRisk::new(document, values);
    let applicable: Vec<&Constraint> = document
        .constraints
        .iter()
        .filter(|constraint| is_about(&constraint.subject, &values))
        .collect();
    let matching: Vec<&Constraint> =
        applicable.iter().copied().filter(|constraint| holds(constraint, &values)).collect();
    let granted = matching.iter().any(|constraint| constraint.effect == Effect::Allow);

    let mut contributions: Vec<(Verdict, &Constraint)> = Vec::new();
    for constraint in &applicable {
        let verdict = match constraint.effect {
            Effect::Deny if holds(constraint, &values) => constraint.on_fail.verdict(),
            Effect::Allow if holds(constraint, &values) => of_grant(constraint),
            Effect::Allow if !granted => constraint.on_fail.verdict(),
            _ => continue,
        };
        contributions.push((verdict, constraint));
    }
    let allows = applicable.iter().any(|constraint| constraint.effect == Effect::Allow);
    let base = if allows { Verdict::Allow } else { Verdict::Deny };
    let verdict = contributions.iter().map(|(verdict, _)| *verdict).fold(base, Verdict::max);
    let deciding = contributions.iter().find(|(contributed, _)| *contributed == verdict);
    let obligations = matching.iter().flat_map(|constraint| constraint.obligations.iter().cloned());
    Outcome {
        verdict,
        deciding: deciding.map(|(_, constraint)| constraint.id.clone()),
        matches: matching.iter().map(|constraint| constraint.id.clone()).collect(),
        obligations: Obligation::unite(obligations.collect()),
    }
}

/// True if a constraint's subject is the call's. A subject that names something is not about a call
/// of which that is missing.
#[must_use]
pub fn is_about(subject: &Subject, values: &dyn Values) -> bool {
    let names = |attribute, name| values.value(attribute) == Value::Text(name);
    match subject {
        Subject::All => true,
        Subject::Tool(tool) => names(&Attribute::Tool, tool.as_str()),
        Subject::Capability(class) => names(&Attribute::EffectClass, class.name()),
    }
}

/// True if an applicable constraint matches: an allow grants, a deny applies.
fn holds(constraint: &Constraint, values: &dyn Values) -> bool {
    is_match(constraint.effect, eval(&constraint.when, values))
}

/// True if an applicable constraint with a condition of that truth matches.
pub(crate) fn is_match(effect: Effect, truth: Truth) -> bool {
    match effect {
        Effect::Allow => truth == Truth::True,
        Effect::Deny => truth != Truth::False,
    }
}

/// True if an example's scenario matches a constraint of a document: its subject holds and, for an
/// allow, its condition holds, or, for a deny, is not false.
#[must_use]
pub fn matches(document: &Document, constraint: &Constraint, values: &dyn Values) -> bool {
    let values = WithRisk::new(document, values);
    is_about(&constraint.subject, &values) && holds(constraint, &values)
}

/// The verdict of an allow that grants.
#[must_use]
pub fn of_grant(allow: &Constraint) -> Verdict {
    let takes = allow.obligations.iter().any(|obligation| obligation.kind.takes_away());
    if takes { Verdict::Degrade } else { Verdict::Allow }
}

/// The truth of a condition.
pub fn eval(condition: &Condition, values: &dyn Values) -> Truth {
    match condition {
        Condition::All(parts) => {
            parts.iter().map(|part| eval(part, values)).fold(Truth::True, Truth::and)
        }
        Condition::Any(parts) => {
            parts.iter().map(|part| eval(part, values)).fold(Truth::False, Truth::or)
        }
        Condition::Not(part) => eval(part, values).negate(),
        Condition::Test(test) => ask(&test.ask, &values.value(&test.attribute)),
    }
}

/// The truth of a test on one value.
pub fn ask(ask: &Ask, value: &Value<'_>) -> Truth {
    match (ask, value) {
        (_, Value::Resources(all)) => of_resources(ask, all),
        (Ask::Exists, _) => is_there(value),
        (Ask::Missing, _) => is_there(value).negate(),
        (Ask::Schema(kind), _) => is_of(*kind, value),
        // Of a longer list nothing is known.
        (_, Value::List(elements)) if elements.len() > LIST_MAX => Truth::Unknown,
        (_, Value::List(elements)) => agreed(ask, elements),
        _ => compare(ask, value),
    }
}

/// The truth of a test on the resources that an argument names.
pub(crate) fn of_resources(ask: &Ask, all: &[Value<'_>]) -> Truth {
    match ask {
        Ask::Exists => Truth::True,
        Ask::Missing => Truth::False,
        Ask::Schema(ParamType::Any | ParamType::Text) => Truth::True,
        Ask::Schema(kind) => {
            let paths = all.iter().all(|one| matches!(one, Value::Path(_) | Value::Tree(_)));
            Truth::of(*kind == ParamType::Path && paths)
        }
        // What comes along with a trusted host must not hide behind it.
        _ if !all.iter().all(|one| is_asked(ask, one)) => Truth::Unknown,
        _ => agreed(ask, all),
    }
}

/// The truth that all share; unknown if there is none.
fn agreed(ask: &Ask, values: &[Value<'_>]) -> Truth {
    // What lies in a tree need not be alike: it stands for many already.
    if values.len() > 1 && values.iter().any(|value| matches!(value, Value::Tree(_))) {
        return Truth::Unknown;
    }
    values.iter().map(|value| compare(ask, value)).reduce(Truth::agree).unwrap_or(Truth::Unknown)
}

/// True if a resource has a type that the test is about.
#[must_use]
pub fn is_asked(ask: &Ask, resource: &Value<'_>) -> bool {
    let one_of = |constant: &Constant| match constant {
        Constant::Text(_) => {
            matches!(resource, Value::Text(_) | Value::Path(_) | Value::Tree(_) | Value::Host(_))
        }
        Constant::Int(_) => matches!(resource, Value::Int(_)),
        Constant::Bool(_) => false,
    };
    match ask {
        Ask::Eq(constant) => one_of(constant),
        Ask::In(constants) => constants.iter().any(one_of),
        Ask::Lt(_) | Ask::Le(_) | Ask::Gt(_) | Ask::Ge(_) => matches!(resource, Value::Int(_)),
        Ask::Prefix(_) | Ask::Suffix(_) => matches!(resource, Value::Text(_)),
        Ask::Within(_) => matches!(resource, Value::Path(_) | Value::Tree(_)),
        Ask::Domain(_) => matches!(resource, Value::Host(_)),
        Ask::Cidr(_) => matches!(resource, Value::Address(_)),
        Ask::Exists | Ask::Missing | Ask::Schema(_) => true,
    }
}

fn is_there(value: &Value<'_>) -> Truth {
    match value {
        Value::Erased => Truth::Unknown,
        Value::Missing => Truth::False,
        _ => Truth::True,
    }
}

fn is_of(kind: ParamType, value: &Value<'_>) -> Truth {
    use ParamType as Kind;
    Truth::of(match value {
        Value::Missing | Value::Erased => return Truth::Unknown,
        _ if kind == Kind::Any => true,
        Value::Bool(_) => kind == Kind::Bool,
        Value::Int(_) => matches!(kind, Kind::Int | Kind::Number),
        Value::Text(_) | Value::Agent(_) | Value::Host(_) => kind == Kind::Text,
        Value::Path(_) | Value::Tree(_) => matches!(kind, Kind::Path | Kind::Text),
        // Resources are asked about together.
        Value::Address(_) | Value::Resources(_) | Value::Other(Other::Null) => false,
        Value::Other(Other::Float) => kind == Kind::Number,
        Value::Other(Other::Bytes) => kind == Kind::Bytes,
        Value::Other(Other::Map) => kind == Kind::Map,
        Value::List(_) | Value::Other(Other::EmptyList) => kind == Kind::List,
    })
}

/// The truth of a test on one value, as it is: unknown where their types differ.
fn compare(ask: &Ask, value: &Value<'_>) -> Truth {
    match (ask, value) {
        (Ask::Eq(constant), value) => equals(constant, value),
        (Ask::In(constants), value) => {
            let each = constants.iter().map(|constant| equals(constant, value));
            each.fold(Truth::False, Truth::or)
        }
        (Ask::Lt(bound), Value::Int(n)) => Truth::of(n < bound),
        (Ask::Le(bound), Value::Int(n)) => Truth::of(n <= bound),
        (Ask::Gt(bound), Value::Int(n)) => Truth::of(n > bound),
        (Ask::Ge(bound), Value::Int(n)) => Truth::of(n >= bound),
        (Ask::Prefix(start), Value::Text(text)) => Truth::of(text.starts_with(&**start)),
        (Ask::Suffix(end), Value::Text(text)) => Truth::of(text.ends_with(&**end)),
        (Ask::Within(outer), Value::Agent(agent)) => Truth::of(is_below(agent, outer, '/')),
        (Ask::Within(outer), Value::Path(path)) => {
            Truth::of(is_below(&path_text(path), outer, '/'))
        }
        (Ask::Within(outer), Value::Tree(path)) => {
            let path = path_text(path);
            match is_below(&path, outer, '/') {
                false if is_below(outer, &path, '/') => Truth::Unknown,
                all => Truth::of(all),
            }
        }
        (Ask::Domain(domain), Value::Host(host)) => Truth::of(is_in_domain(host, domain)),
        (Ask::Cidr(block), Value::Address(address)) => Truth::of(is_in_block(*address, *block)),
        (Ask::Cidr(block), Value::Text(text)) => match text.parse() {
            Ok(address) => Truth::of(is_in_block(address, *block)),
            Err(_) => Truth::Unknown,
        },
        _ => Truth::Unknown,
    }
}

fn equals(constant: &Constant, value: &Value<'_>) -> Truth {
    match (constant, value) {
        (Constant::Bool(a), Value::Bool(b)) => Truth::of(a == b),
        (Constant::Int(a), Value::Int(b)) => Truth::of(a == b),
        (Constant::Text(a), Value::Text(b) | Value::Agent(b)) => Truth::of(&**a == *b),
        (Constant::Text(a), Value::Path(path)) => Truth::of(**a == *path_text(path)),
        // A tree holds it, or may, and more.
        (Constant::Text(a), Value::Tree(path)) if is_below(a, &path_text(path), '/') => {
            Truth::Unknown
        }
        (Constant::Text(_), Value::Tree(_)) => Truth::False,
        (Constant::Text(a), Value::Host(host)) => Truth::of(host_of(a).as_ref() == Some(*host)),
        _ => Truth::Unknown,
    }
}

/// True if a text is another, or that with a separator and more.
fn is_below(text: &str, outer: &str, separator: char) -> bool {
    match text.strip_prefix(outer) {
        Some(rest) => rest.is_empty() || rest.starts_with(separator),
        None => false,
    }
}

fn is_in_domain(host: &Host, domain: &Host) -> bool {
    match host.as_str().strip_suffix(domain.as_str()) {
        Some(rest) => rest.is_empty() || rest.ends_with('.'),
        None => false,
    }
}

fn is_in_block(address: IpAddr, block: Cidr) -> bool {
    let differ = match (address.to_canonical(), block.addr()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    // A block of all addresses fixes no bit.
    differ.leading_zeros() >= u32::from(block.prefix())
}
