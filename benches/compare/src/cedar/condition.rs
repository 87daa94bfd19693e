//! Conditions as Cedar expressions.

use std::{collections::BTreeSet, fmt::Write as _};

use syscap_policy::{Ask, Attribute, Condition, Constant, Test};

use super::{Declared, Kind, Outside, Presence};

/// Writes conditions, and remembers what they ask about.
pub(super) struct Writer<'a> {
    declared: &'a Declared,
    pub(super) asked: BTreeSet<Attribute>,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(declared: &'a Declared) -> Self {
        Self { declared, asked: BTreeSet::new() }
    }

    /// One condition. Cedar evaluates from left to right and stops early, so `there` is what is
    /// known to be there whenever this part is evaluated.
    pub(super) fn condition(
        &mut self,
        condition: &Condition,
        there: &BTreeSet<&Attribute>,
        to: &mut String,
    ) -> Result<(), Outside> {
        let (parts, empty, joint, guards): (_, _, _, fn(&Condition) -> BTreeSet<&Attribute>) =
            match condition {
                Condition::All(parts) => (parts, "true", " && ", there_if_true),
                Condition::Any(parts) => (parts, "false", " || ", there_if_false),
                Condition::Not(part) => {
                    to.push_str("!(");
                    self.condition(part, there, to)?;
                    to.push(')');
                    return Ok(());
                }
                Condition::Test(test) => return self.test(test, there, to),
            };
        if parts.is_empty() {
            to.push_str(empty);
            return Ok(());
        }
        let mut there = there.clone();
        for (n, part) in parts.iter().enumerate() {
            to.push_str(if n == 0 { "(" } else { joint });
            self.condition(part, &there, to)?;
            there.extend(guards(part));
        }
        to.push(')');
        Ok(())
    }

    fn test(
        &mut self,
        test: &Test,
        there: &BTreeSet<&Attribute>,
        to: &mut String,
    ) -> Result<(), Outside> {
        let name = test.attribute.to_string();
        let Some((kind, presence)) = self.declared.of(&test.attribute) else {
            return Err(Outside::Undeclared(name));
        };
        let key = literal(&name);
        if let Ask::Exists | Ask::Missing = test.ask {
            if presence == Presence::Always {
                self.asked.insert(test.attribute.clone());
            }
            let not = if test.ask == Ask::Missing { "!" } else { "" };
            let _ = write!(to, "{not}(context has {key})");
            return Ok(());
        }
        if presence == Presence::Sometimes && !there.contains(&test.attribute) {
            return Err(Outside::Unguarded(name));
        }
        if presence == Presence::Always {
            self.asked.insert(test.attribute.clone());
        }
        let value = format!("context[{key}]");
        let text = match (&test.ask, kind) {
            (Ask::Eq(constant), _) => {
                format!("{value} == {}", of_constant(constant, kind, &name)?)
            }
            (Ask::In(constants), _) => {
                let each = constants.iter().map(|constant| of_constant(constant, kind, &name));
                let each: Vec<String> = each.collect::<Result<_, _>>()?;
                format!("[{}].contains({value})", each.join(", "))
            }
            (Ask::Lt(n), Kind::Int) => format!("{value} < {}", long(*n)?),
            (Ask::Le(n), Kind::Int) => format!("{value} <= {}", long(*n)?),
            (Ask::Gt(n), Kind::Int) => format!("{value} > {}", long(*n)?),
            (Ask::Ge(n), Kind::Int) => format!("{value} >= {}", long(*n)?),
            (Ask::Prefix(start), Kind::Text) => format!("{value} like \"{}*\"", pattern(start)),
            (Ask::Suffix(end), Kind::Text) => format!("{value} like \"*{}\"", pattern(end)),
            (Ask::Within(outer), Kind::Path | Kind::Agent) => {
                let below = pattern(outer);
                format!("({value} == {} || {value} like \"{below}/*\")", literal(outer))
            }
            (Ask::Domain(domain), Kind::Host) => {
                let (same, below) = (literal(domain.as_str()), pattern(domain.as_str()));
                format!("({value} == {same} || {value} like \"*.{below}\")")
            }
            (Ask::Cidr(block), Kind::Address) => format!("{value}.isInRange(ip(\"{block}\"))"),
            _ => return Err(Outside::Test(name)),
        };
        to.push_str(&text);
        Ok(())
    }
}

/// What is there wherever a condition holds.
fn there_if_true(condition: &Condition) -> BTreeSet<&Attribute> {
    match condition {
        Condition::All(parts) => parts.iter().flat_map(there_if_true).collect(),
        Condition::Not(part) => there_if_false(part),
        Condition::Test(test) if test.ask == Ask::Exists => BTreeSet::from([&test.attribute]),
        Condition::Any(_) | Condition::Test(_) => BTreeSet::new(),
    }
}

/// What is there wherever a condition does not hold.
fn there_if_false(condition: &Condition) -> BTreeSet<&Attribute> {
    match condition {
        Condition::Any(parts) => parts.iter().flat_map(there_if_false).collect(),
        Condition::Not(part) => there_if_true(part),
        Condition::Test(test) if test.ask == Ask::Missing => BTreeSet::from([&test.attribute]),
        Condition::All(_) | Condition::Test(_) => BTreeSet::new(),
    }
}

/// A constant as it equals values of a type. Of a host its normal form; one that is no host
/// equals none, as its text equals no host's.
fn of_constant(constant: &Constant, kind: Kind, name: &str) -> Result<String, Outside> {
    match (constant, kind) {
        (Constant::Bool(value), Kind::Bool) => Ok(value.to_string()),
        (Constant::Int(n), Kind::Int) => long(*n).map(|n| n.to_string()),
        (Constant::Text(text), Kind::Text | Kind::Agent | Kind::Path) => Ok(literal(text)),
        (Constant::Text(text), Kind::Host) => {
            let host = syscap_policy::host_of(text);
            Ok(host.map_or_else(|| literal(text), |host| literal(host.as_str())))
        }
        _ => Err(Outside::Test(name.to_owned())),
    }
}

pub(super) fn long(n: i128) -> Result<i64, Outside> {
    i64::try_from(n).map_err(|_| Outside::Integer(n))
}

/// A string literal.
pub(super) fn literal(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Text in a pattern of `like`, where a star stands for itself.
fn pattern(text: &str) -> String {
    escaped(text).replace('*', "\\*")
}

fn escaped(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, ' '..='~') && !matches!(c, '"' | '\\') {
            to.push(c);
        } else {
            let _ = write!(to, "\\u{{{:x}}}", u32::from(c));
        }
    }
    to
}
