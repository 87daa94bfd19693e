//! Filters of the metadata beside a vector: a tree of tests, never a text.

use syscap_format::{Item, ItemKind, Reason, Refused};

/// How deep filters nest.
const DEPTH_MAX: usize = 8;
/// How many tests and connectives one filter has.
const NODES_MAX: usize = 64;
/// How many values an `in` has.
const VALUES_MAX: usize = 256;

const FORM: &str = "{\"field\": value}, or one of and, or, not, eq, in, range";

/// A filter. A test of a missing field does not hold.
#[derive(Debug)]
pub(super) enum Filter {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    In(Box<str>, Vec<Scalar>),
    Range(Box<str>, [Option<i128>; 2]),
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(Box<str>),
    Int(i128),
    Bool(bool),
}

impl Scalar {
    pub(super) fn of(item: Item<'_>) -> Option<Self> {
        match item.kind() {
            ItemKind::Text => item.as_text().map(|text| Self::Text(text.into())),
            ItemKind::Uint | ItemKind::Negative => item.as_int().map(Self::Int),
            ItemKind::Bool => item.as_bool().map(Self::Bool),
            _ => None,
        }
    }

    fn is(&self, item: Item<'_>) -> bool {
        match self {
            Self::Text(text) => item.as_text() == Some(text),
            Self::Int(n) => item.as_int() == Some(*n),
            Self::Bool(value) => item.as_bool() == Some(*value),
        }
    }
}

impl Filter {
    /// Reads the argument `filters`.
    pub(super) fn parse(item: Item<'_>) -> Result<Self, Refused> {
        let mut nodes = 0;
        Self::read(item, DEPTH_MAX, &mut nodes)
    }

    fn read(item: Item<'_>, depth: usize, nodes: &mut usize) -> Result<Self, Refused> {
        *nodes = nodes.saturating_add(1);
        let Some(depth) = depth.checked_sub(1).filter(|_| *nodes <= NODES_MAX) else {
            let limit = format!("at most {NODES_MAX} parts, {DEPTH_MAX} deep");
            return Err(refused("a larger filter").allowed(&limit));
        };
        if item.kind() != ItemKind::Map {
            return Err(refused(&format!("{:?}", item.kind())));
        }
        let mut all = Vec::new();
        for (name, inner) in item.entries() {
            all.push(match name {
                "and" => Self::All(Self::list(inner, depth, nodes)?),
                "or" => Self::Any(Self::list(inner, depth, nodes)?),
                "not" => Self::Not(Box::new(Self::read(inner, depth, nodes)?)),
                "eq" => Self::each(inner, nodes, |value| Some(vec![Scalar::of(value)?]))?,
                "in" => Self::each(inner, nodes, |values| {
                    let is_list = values.kind() == ItemKind::Array && values.count() <= VALUES_MAX;
                    is_list.then(|| values.elements().map(Scalar::of).collect::<Option<_>>())?
                })?,
                "range" => Self::ranges(inner, nodes)?,
                field => {
                    let value = Scalar::of(inner).ok_or_else(|| refused(field))?;
                    Self::In(field.into(), vec![value])
                }
            });
        }
        if all.len() == 1 { all.pop().ok_or_else(|| refused("{}")) } else { Ok(Self::All(all)) }
    }

    fn list(item: Item<'_>, depth: usize, nodes: &mut usize) -> Result<Vec<Self>, Refused> {
        if item.kind() != ItemKind::Array {
            return Err(refused(&format!("{:?}", item.kind())).allowed("a list of filters"));
        }
        item.elements().map(|one| Self::read(one, depth, nodes)).collect()
    }

    /// `{field: what, ..}`: of each field.
    fn each(
        item: Item<'_>,
        nodes: &mut usize,
        values: impl Fn(Item<'_>) -> Option<Vec<Scalar>>,
    ) -> Result<Self, Refused> {
        Self::fields(item, nodes, |field, inner| Some(Self::In(field.into(), values(inner)?)))
    }

    /// `{field: {gte, lte, gt, lt}, ..}`.
    fn ranges(item: Item<'_>, nodes: &mut usize) -> Result<Self, Refused> {
        Self::fields(item, nodes, |field, inner| {
            let mut bounds = [None, None];
            let [least, most] = &mut bounds;
            for (name, value) in inner.entries() {
                let value = value.as_int()?;
                match name {
                    "gte" => *least = Some(value),
                    "gt" => *least = Some(value.checked_add(1)?),
                    "lte" => *most = Some(value),
                    "lt" => *most = Some(value.checked_sub(1)?),
                    _ => return None,
                }
            }
            (inner.kind() == ItemKind::Map).then(|| Self::Range(field.into(), bounds))
        })
    }

    fn fields(
        item: Item<'_>,
        nodes: &mut usize,
        read: impl Fn(&str, Item<'_>) -> Option<Self>,
    ) -> Result<Self, Refused> {
        if item.kind() != ItemKind::Map {
            return Err(refused(&format!("{:?}", item.kind())));
        }
        let mut all = Vec::new();
        for (field, inner) in item.entries() {
            *nodes = nodes.saturating_add(1);
            if *nodes > NODES_MAX {
                return Err(refused("a larger filter"));
            }
            all.push(read(field, inner).ok_or_else(|| refused(field))?);
        }
        Ok(Self::All(all))
    }

    /// True if it holds of the metadata beside a vector.
    pub(super) fn matches(&self, metadata: Item<'_>) -> bool {
        match self {
            Self::All(all) => all.iter().all(|one| one.matches(metadata)),
            Self::Any(all) => all.iter().any(|one| one.matches(metadata)),
            Self::Not(one) => !one.matches(metadata),
            Self::In(field, values) => {
                metadata.get(field).is_some_and(|held| values.iter().any(|value| value.is(held)))
            }
            Self::Range(field, [least, most]) => {
                metadata.get(field).and_then(Item::as_int).is_some_and(|held| {
                    least.is_none_or(|least| least <= held) && most.is_none_or(|most| held <= most)
                })
            }
        }
    }
}

fn refused(got: &str) -> Refused {
    Refused::new(Reason::BadArgument).field("filters").got(got).allowed(FORM)
}
