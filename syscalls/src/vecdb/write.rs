//! `vecdb.upsert` and `vecdb.delete`.

use std::{collections::HashSet, sync::Arc};

use syscap_format::{
    Amounts, Canonical, Dimension, EffectClass, Item, ItemKind, Label, Manifest, MapBuilder, Name,
    Param, ParamType, Reason, Refused, TxOutcome,
};
use syscap_kernel::{Demands, Permit, Request};

use super::filter::Scalar;
use super::store::{Frame, Held, Store, list};
use super::{VECTORS_MAX, collection_of, demand, is_id, manifest, unit, wrong};
use crate::beneath::Effect;
use crate::calls::{ChangeBy, ChangeCall, Changed};
use crate::fs::meter_of;

/// Most vectors of one call, and ids.
pub const UPSERT_ITEMS_MAX: usize = 1_000;
/// Most fields of metadata, and the most bytes of all of it.
const FIELDS_MAX: usize = 32;
const METADATA_BYTES_MAX: usize = 4 << 10;
/// Folders that a first write makes at most: those of the collections, and a collection's own.
const FOLDERS: u64 = 6;

/// A vector to put: its id, what stands beside it, its numbers at length one.
type Put = (Box<str>, Canonical, Vec<f32>);

/// `vecdb.upsert`: puts vectors, or replaces those of the same ids; all of a call, or none.
#[derive(Debug)]
pub(super) struct Upsert {
    name: Name,
    items: Vec<Put>,
    dimensions: usize,
}

impl ChangeCall for Upsert {
    type On = Arc<Store>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("upsert", EffectClass::LocalWrite)?
            .described("Put vectors", "Puts vectors into a collection, or replaces them.")
            .param(Param::required(
                "items",
                ParamType::List,
                "Maps of `id`, `embedding` and, if there is any, `metadata`: fields of text, \
                 integers and booleans.",
            ));
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let name = collection_of(request)?;
        let items = list(request.args.get("items"));
        if !(1..=UPSERT_ITEMS_MAX).contains(&items.len()) {
            let got = format!("{} items", items.len());
            return Err(bad(&got).allowed(&format!("1 to {UPSERT_ITEMS_MAX}")));
        }
        let items = items.into_iter().map(item).collect::<Result<Vec<Put>, Refused>>()?;
        let dimensions = items.first().map_or(0, |(.., unit)| unit.len());
        if items.iter().any(|(.., unit)| unit.len() != dimensions) {
            return Err(bad("vectors of several lengths").allowed("vectors of one length"));
        }
        let mut ids = HashSet::new();
        if let Some((id, ..)) = items.iter().find(|(id, ..)| !ids.insert(&**id)) {
            return Err(bad(&format!("{id} twice")).allowed("each id once"));
        }
        let size = Frame::put(Label::PUBLIC, dimensions, &items).bytes_max();
        let demands = Demands { resources: vec![demand(&name)], hold: uses(size) };
        Ok((Self { name, items, dimensions }, demands))
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let frame = Frame::put(permit.live().label, self.dimensions, &self.items);
        let fresh = change(on, &self.name, &frame, permit, |held| {
            let there = held.collection.dimensions();
            if there != 0 && there != self.dimensions {
                let refused = Refused::new(Reason::Mismatch).field("items");
                let refused = refused.got(&format!("vectors of {} numbers", self.dimensions));
                return Err(refused.allowed(&format!("{there} numbers, as those that are there")));
            }
            let fresh = self.items.iter().filter(|(id, ..)| !held.collection.has(id)).count();
            if held.collection.len().saturating_add(fresh) > VECTORS_MAX {
                let full = Refused::new(Reason::Quota).field("items");
                return Err(full.allowed(&format!("at most {VECTORS_MAX} vectors in all")));
            }
            Ok(fresh)
        })?;
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let replaced = self.items.len().saturating_sub(fresh);
        let map = MapBuilder::new().uint("created", count(fresh)).uint("replaced", count(replaced));
        Ok((map.finish(), TxOutcome::Committed))
    }
}

fn bad(got: &str) -> Refused {
    Refused::new(Reason::BadArgument).field("items").got(got)
}

fn uses(size_bytes: u64) -> Amounts {
    Amounts::ZERO.with(Dimension::DiskWriteBytes, size_bytes).with(Dimension::DiskFiles, FOLDERS)
}

fn item(item: Item<'_>) -> Result<Put, Refused> {
    let form = "id, embedding and metadata";
    let known = |name: &str| matches!(name, "id" | "embedding" | "metadata");
    if item.kind() != ItemKind::Map {
        return Err(bad("an item that is no map").allowed(form));
    }
    if let Some((name, _)) = item.entries().find(|(name, _)| !known(name)) {
        return Err(bad(name).allowed(form));
    }
    let id = item.get("id").and_then(Item::as_text).filter(|id| is_id(id));
    let id = id.ok_or_else(|| bad("no id").allowed("an id of 1 to 128 bytes of text"))?;
    let unit = unit(item.get("embedding"), "items")?;
    Ok((Box::from(id), metadata(item.get("metadata"))?, unit))
}

fn metadata(item: Option<Item<'_>>) -> Result<Canonical, Refused> {
    let Some(item) = item else { return Ok(Canonical::map(Vec::new())) };
    let fine = item.kind() == ItemKind::Map
        && item.count() <= FIELDS_MAX
        && item.as_bytes().len() <= METADATA_BYTES_MAX
        && item.entries().all(|(_, value)| Scalar::of(value).is_some());
    if !fine {
        let form = format!(
            "at most {FIELDS_MAX} fields of text, integers and booleans, {METADATA_BYTES_MAX} bytes"
        );
        return Err(bad("other metadata").allowed(&form));
    }
    Ok(Canonical::from(item))
}

/// Looks at a collection, adds a frame to it, on disk and in memory.
fn change<P, T>(
    store: &Store,
    name: &Name,
    frame: &Frame,
    permit: &mut Permit<'_, P>,
    look: impl FnOnce(&Held) -> Result<T, Refused>,
) -> Result<T, (Refused, Effect)> {
    let changed = store.change(name.as_str(), frame, look, &mut meter_of(permit));
    let changed = changed.map_err(|failure| (wrong(failure.error), failure.effect))?;
    changed.map_err(|refused| (refused, Effect::NotDone))
}

/// `vecdb.delete`: removes vectors by their ids.
#[derive(Debug)]
pub(super) struct Delete {
    name: Name,
    ids: Vec<Box<str>>,
}

impl ChangeCall for Delete {
    type On = Arc<Store>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("delete", EffectClass::LocalWrite)?
            .described("Delete vectors", "Removes vectors from a collection, by their ids.")
            .param(Param::required("ids", ParamType::List, "Which."));
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let name = collection_of(request)?;
        let ids = list(request.args.get("ids")).into_iter();
        let ids = ids.map(|id| id.as_text().filter(|id| is_id(id)).map(Box::from));
        let ids: Option<Vec<Box<str>>> = ids.collect();
        let ids = ids.filter(|ids| (1..=UPSERT_ITEMS_MAX).contains(&ids.len()));
        let ids = ids.ok_or_else(|| {
            let refused = Refused::new(Reason::BadArgument).field("ids");
            refused.allowed(&format!("1 to {UPSERT_ITEMS_MAX} ids"))
        })?;
        let size = Frame::remove(Label::PUBLIC, 0, &ids).bytes_max();
        let demands = Demands { resources: vec![demand(&name)], hold: uses(size) };
        Ok((Self { name, ids }, demands))
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let found = |held: &Held| {
            let ids: HashSet<&str> = self.ids.iter().map(AsRef::as_ref).collect();
            ids.into_iter().filter(|id| held.collection.has(id)).count()
        };
        let look = |held: &Held| (found(held), held.collection.dimensions());
        let looked = on.look(self.name.as_str(), look);
        let (there, dimensions) = looked.map_err(|error| (wrong(error), Effect::NotDone))?;
        let deleted = |deleted: usize| {
            let deleted = u64::try_from(deleted).unwrap_or(u64::MAX);
            MapBuilder::new().uint("deleted", deleted).finish()
        };
        if there == 0 {
            return Ok((deleted(0), TxOutcome::NoOp));
        }
        let frame = Frame::remove(permit.live().label, dimensions, &self.ids);
        let gone = change(on, &self.name, &frame, permit, |held| Ok(found(held)))?;
        let tx = if gone == 0 { TxOutcome::NoOp } else { TxOutcome::Committed };
        Ok((deleted(gone), tx))
    }
}
