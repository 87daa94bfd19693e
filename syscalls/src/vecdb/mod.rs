//! `vecdb.upsert`, `vecdb.query`, `vecdb.delete`: vectors, and the exact search for the nearest.
//!
//! Which collections a call reaches comes from the token's scope (the dimension
//! [`COLLECTION_DIMENSION`]): names such as `acme/docs`, tenant first. So no argument leads from
//! one tenant to another. The search looks at every vector, so what it finds does not depend on the
//! order of insertion, and the same is found again.
//!
//! A vector has a direction or is refused: NaN, infinities and zero vectors make an engine answer
//! with anything. Filters are a tree of tests, never text. Each vector keeps the label of what the
//! session had read that put it there; a query brings the labels of what it found.

mod collection;
mod filter;
mod query;
mod store;
mod write;

pub use query::QUERY_HITS_MAX;
pub use write::UPSERT_ITEMS_MAX;

use std::sync::Arc;

use syscap_format::{
    Dimension, EffectClass, Item, ItemKind, Manifest, Name, Param, ParamType, Reason, Refused,
    Resource, Scope, ToolId, dimension,
};
use syscap_kernel::{Demand, Registry, Request};

use crate::beneath::{FsError, Opener};
use crate::calls::{self, NotAdded, Shared};
use crate::fs::refusal;

/// The dimension of a grant that names collections.
pub const COLLECTION_DIMENSION: &str = dimension::COLLECTION.name;
/// Most numbers of a vector.
pub const DIMENSIONS_MAX: usize = 4_096;
/// Longest id of a vector, in bytes.
pub const ID_BYTES_MAX: usize = 128;
/// Most vectors of a collection.
pub const VECTORS_MAX: usize = 2_000_000;

/// The collections over one base directory.
#[derive(Clone, Debug)]
pub struct Vectors {
    store: Arc<store::Store>,
}

impl Vectors {
    /// The tools over an open base.
    pub fn over(base: Arc<dyn Opener>) -> Self {
        Self { store: Arc::new(store::Store::over(base)) }
    }

    /// Adds the three tools.
    pub fn add_to(&self, registry: &mut Registry) -> Result<(), NotAdded> {
        calls::add_read::<query::Query>(registry, &self.store)?;
        calls::add::<write::Upsert>(registry, &self.store)?;
        calls::add::<write::Delete>(registry, &self.store)
    }
}

impl Shared for Arc<store::Store> {
    fn base(&self) -> &dyn Opener {
        store::Store::base(self)
    }
}

fn manifest(verb: &str, effect: EffectClass) -> Option<Manifest> {
    let mut manifest = Manifest::new(ToolId::new(&format!("vecdb.{verb}"))?, effect)
        .alias(ToolId::new(&format!("vecdb_{verb}"))?)
        .needs(COLLECTION_DIMENSION)
        .param(
            Param::optional(
                "collection",
                ParamType::Text,
                "Which collection; the one that is granted, if it is one.",
            )
            .within(1, 200),
        );
    // A collection is read as a whole by the first call, and looked through by each.
    let hold = manifest.hold.with(Dimension::CpuUs, 10_000_000);
    manifest.hold = hold.with(Dimension::WallUs, 60_000_000);
    Some(manifest)
}

/// The collection that a call names, or the only one that its token does.
fn collection_of(request: &Request<'_>) -> Result<Name, Refused> {
    let refused = |got: &str| Refused::new(Reason::BadArgument).field("collection").got(got);
    let granted = match request.grant.scope(COLLECTION_DIMENSION) {
        Some(Scope::Names(names)) => names.as_slice(),
        _ => &[],
    };
    let name = match (request.args.get("collection").and_then(Item::as_text), granted) {
        (Some(name), _) => name,
        (None, [only]) => only.as_str(),
        (None, _) => {
            let refused = Refused::new(Reason::MissingArgument).field("collection");
            return Err(refused.allowed("one of those that are granted"));
        }
    };
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    let is_part = |part: &str| {
        (1..=64).contains(&part.len()) && !part.starts_with('.') && part.bytes().all(allowed)
    };
    let form = "parts of a to z, 0 to 9, `.`, `_` and `-`, joined by `/`";
    if !name.split('/').all(is_part) || name.split('/').count() > 4 {
        return Err(refused(name).allowed(form));
    }
    Name::new(name).map_err(|_| refused(name).allowed(form))
}

fn demand(name: &Name) -> Demand {
    let resource = Resource::Name(name.clone());
    Demand { dimension: COLLECTION_DIMENSION, resource, argument: "collection" }
}

/// The vector of length one in the direction of a list of numbers.
fn unit(item: Option<Item<'_>>, field: &'static str) -> Result<Vec<f32>, Refused> {
    let refused = |got: &str, allowed: &str| {
        Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
    };
    let form = format!("1 to {DIMENSIONS_MAX} numbers");
    let list = item.filter(|item| item.kind() == ItemKind::Array);
    let list = list.ok_or_else(|| refused("no list", &form))?;
    if !(1..=DIMENSIONS_MAX).contains(&list.count()) {
        return Err(refused(&format!("{} numbers", list.count()), &form));
    }
    let numbers: Option<Vec<f64>> = list.elements().map(number).collect();
    let numbers = numbers.ok_or_else(|| refused("what is no number", &form))?;
    collection::unit(numbers.into_iter())
        .ok_or_else(|| refused("no direction", "finite numbers, not all of them zero"))
}

fn number(item: Item<'_>) -> Option<f64> {
    match item.kind() {
        ItemKind::Float => item.as_float(),
        // An integer that a float does not hold is none of an embedding.
        ItemKind::Uint | ItemKind::Negative => i32::try_from(item.as_int()?).ok().map(f64::from),
        _ => None,
    }
}

/// An id: text without control characters.
fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// An error of the file layer.
fn wrong(error: FsError) -> Refused {
    match error {
        FsError::TooLarge => Refused::new(Reason::Quota).field("collection"),
        error => refusal(error).field("collection"),
    }
}
