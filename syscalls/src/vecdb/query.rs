//! `vecdb.query`.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Encoder, Item, Label, Manifest, MapBuilder, Name, ObligationKind,
    Param, ParamType, Profile, Reason, Refused,
};
use syscap_kernel::{Demands, Request};

use super::collection::Hit;
use super::filter::Filter;
use super::store::{Held, Store};
use super::{collection_of, demand, manifest, unit, wrong};
use crate::calls::{ReadBy, ReadCall};

/// Most hits of one call.
pub const QUERY_HITS_MAX: u64 = 4_096;
/// How many hits, where a call doesn't say.
const HITS_DEFAULT: u64 = 10;
/// Most bytes of a result that are not its hits.
const FRAME_BYTES: usize = 128;

/// `vecdb.query`: the nearest vectors of a collection, by the cosine of the angle between.
#[derive(Debug)]
pub(super) struct Query {
    name: Name,
    unit: Vec<f32>,
    filter: Option<Filter>,
    k: usize,
}

impl ReadCall for Query {
    type On = Arc<Store>;

    fn manifest() -> Option<Manifest> {
        let mut manifest = manifest("query", EffectClass::Read)?
            .described("Search vectors", "Finds the vectors that are nearest to one.")
            .param(Param::required("embedding", ParamType::List, "The vector, as numbers."))
            .param(Param::optional(
                "filters",
                ParamType::Map,
                "What must be so of the metadata: {field: value}, and, or, not, eq, in, range.",
            ))
            .param(
                Param::optional("k", ParamType::Int, "How many at most; 10 if absent.")
                    .within(1, QUERY_HITS_MAX),
            )
            .honours(ObligationKind::ResultCap);
        manifest.result_bytes_max = 4 << 20;
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let name = collection_of(request)?;
        let unit = unit(request.args.get("embedding"), "embedding")?;
        let filter = request.args.get("filters").map(Filter::parse).transpose()?;
        let k = request.args.get("k").and_then(Item::as_uint).unwrap_or(HITS_DEFAULT);
        let demands = Demands { resources: vec![demand(&name)], ..Demands::default() };
        Ok((
            Self {
                name,
                unit,
                filter,
                k: usize::try_from(k.min(QUERY_HITS_MAX)).unwrap_or(usize::MAX),
            },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        let bytes_max = permit.result_bytes_max();
        let look = |held: &Held| self.among(held, bytes_max);
        let (result, label) = on.look(self.name.as_str(), look).map_err(wrong)??;
        permit.brings(label);
        Ok(result)
    }
}

impl Query {
    /// `{hits: [{id, score, metadata}], vectors, truncated}`: how many were looked at, and whether
    /// hits were left out because the result would have been too large; and `skipped_bytes`, where
    /// the end of the file can't be read.
    fn among(&self, held: &Held, bytes_max: usize) -> Result<(Canonical, Label), Refused> {
        let dimensions = held.collection.dimensions();
        if dimensions != 0 && dimensions != self.unit.len() {
            let refused = Refused::new(Reason::Mismatch).field("embedding");
            let refused = refused.got(&format!("{} numbers", self.unit.len()));
            return Err(refused.allowed(&format!("{dimensions} numbers")));
        }
        let hits = held.collection.nearest(&self.unit, self.k, self.filter.as_ref());
        let (mut label, mut room) = (Label::PUBLIC, bytes_max.saturating_sub(FRAME_BYTES));
        let mut shown = Vec::with_capacity(hits.len());
        for hit in &hits {
            let entry = entry(hit)?;
            match room.checked_sub(entry.as_bytes().len()) {
                Some(left) => room = left,
                None => break,
            }
            label = label.join(hit.record.label);
            shown.push(entry);
        }
        if shown.is_empty() {
            // That nothing fits the filter says something of all that was looked at.
            label = held.collection.label();
        }
        let is_cut = shown.len() < hits.len();
        let map = MapBuilder::new()
            .item("hits", Canonical::list(shown.into_iter()).item())
            .uint("vectors", u64::try_from(held.collection.len()).unwrap_or(u64::MAX))
            .boolean("truncated", is_cut);
        let map = match held.skipped_bytes {
            0 => map,
            bytes => map.uint("skipped_bytes", bytes),
        };
        Ok((map.finish(), label))
    }
}

fn entry(hit: &Hit<'_>) -> Result<Canonical, Refused> {
    let mut score = Encoder::new();
    score.float(f64::from(hit.score));
    let score = Canonical::check(score.into_bytes(), Profile::DATA);
    let score = score.map_err(|_| Refused::new(Reason::Failed).field("embedding"))?;
    let map = MapBuilder::new()
        .text("id", &hit.record.id)
        .item("score", score.item())
        .item("metadata", hit.record.metadata.item());
    Ok(map.finish())
}
