//! The changes of a record of tools, compared with the record before it.

use std::collections::BTreeMap;

use syscap::audit::SqliteReader;
use syscap::format::{
    Body, ControlBody as _, Manifest, ObjectId, Record, Seq, ToolId, ToolsChange, ToolsObject,
};
use syscap::kernel::{Next, StoreError};

/// Most tools that are named of each sort.
const NAMED_MAX: usize = 20;

type OnRecord = BTreeMap<ToolId, ObjectId>;

/// Lines of names and words; none where the record is no such, or what it names is not there.
pub(super) fn changes(
    reader: &mut SqliteReader,
    record: &Record,
) -> Result<Vec<(&'static str, String)>, StoreError> {
    let Some(now) = on_record(reader, &record.body)? else { return Ok(Vec::new()) };
    let mut last = None;
    reader.records(Seq::new(0), &mut |seq, bytes| {
        if seq >= record.seq {
            return Next::Enough;
        }
        if let Ok(Record { body: body @ Body::Tools(_), .. }) = Record::decode(bytes) {
            last = Some(body);
        }
        Next::More
    })?;
    let before = match last {
        Some(body) => on_record(reader, &body)?,
        // The first is of all that there is.
        None => Some(OnRecord::new()),
    };
    let Some(before) = before else { return Ok(Vec::new()) };
    let (mut added, mut classes, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (tool, id) in &now {
        match before.get(tool) {
            None => added.push(match class(reader, id)? {
                Some(class) => format!("{tool} ({class})"),
                None => tool.to_string(),
            }),
            Some(old) if old != id => match (class(reader, old)?, class(reader, id)?) {
                (Some(old), Some(new)) if old != new => {
                    classes.push(format!("{tool} from {old} to {new}"));
                }
                _ => others.push(tool.to_string()),
            },
            Some(_) => {}
        }
    }
    let removed = before.keys().filter(|tool| !now.contains_key(*tool)).map(ToString::to_string);
    let said = [
        ("added", added),
        ("removed", removed.collect()),
        ("class of", classes),
        ("changed", others),
    ];
    Ok(said.into_iter().filter_map(|(name, tools)| Some((name, listed(&tools)?))).collect())
}

/// So many that a line can be read, and how many more.
fn listed(tools: &[String]) -> Option<String> {
    let named = tools.get(..NAMED_MAX).unwrap_or(tools);
    let more = tools.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!tools.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

fn on_record(reader: &mut SqliteReader, body: &Body) -> Result<Option<OnRecord>, StoreError> {
    let Body::Tools(event) = body else { return Ok(None) };
    let Ok(change) = ToolsChange::from_bytes(&event.control.body) else { return Ok(None) };
    let object = reader.object(&ObjectId::from_bytes(*change.tools.as_bytes()))?;
    let tools = object.and_then(|object| ToolsObject::from_bytes(&object.bytes).ok());
    Ok(tools.map(|of| of.tools.into_iter().map(|entry| (entry.tool, entry.manifest)).collect()))
}

fn class(reader: &mut SqliteReader, id: &ObjectId) -> Result<Option<&'static str>, StoreError> {
    let manifest = reader.object(id)?.and_then(|o| Manifest::from_bytes(&o.bytes).ok());
    Ok(manifest.map(|manifest| manifest.effect.name()))
}
