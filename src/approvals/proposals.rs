//! Answers that cover more than one call, and the past calls that each would have covered.

use std::collections::BTreeMap;

use syscap_format::{
    AgentId, Body, Grants, Record, Resource, Rights, RootedPath, Rule, Scope, Seq, ToolGrant,
    ToolId,
};
use syscap_kernel::{Next, Store, StoreError, location_of, vault_entry};

use crate::Error;
use crate::approvals::{asks::WaitingCall, live::Rows};

/// How far back in the log a preview looks, in records: an answer is for what comes now.
const RECORDS_MAX: u64 = 100_000;

/// A bounded set that could be given to a call that waits, and what it would have covered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proposal {
    /// The scopes covered besides the resources of the call; `None` for those alone.
    pub scopes: Option<Grants>,
    /// The number of calls of this agent and tool that a person was asked about, among the last
    /// 100,000 records.
    pub asked: u64,
    /// How many of them it would have covered. One whose texts were erased counts as not covered.
    pub covered: u64,
}

impl Rows {
    /// The answers that cover more calls than the waiting one: first its own resources, then the
    /// folders that contain them. Empty where only this one call may be answered; none is wider
    /// than the call where its session had been given a stranger's word.
    ///
    /// # Errors
    /// [`Error::Home`]: the log or the vault can't be read.
    pub fn proposals(&mut self, call: &WaitingCall) -> Result<Vec<Proposal>, Error> {
        let mut all = Vec::new();
        if call.uses_max > 0 {
            all.push(None);
            if call.may_widen {
                all.extend(wider(&call.tool, &call.resources).map(Some));
            }
        }
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let head = self.head()?;
        let seen = asked(self.store(), head, &call.agent, &call.tool)?;
        let proposal = |scopes: Option<Grants>| {
            let covers = |texts: &&Vec<String>| covers(texts, call, scopes.as_ref());
            let covered = seen.iter().filter(covers).count();
            let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
            Proposal { asked: count(seen.len()), covered: count(covered), scopes }
        };
        Ok(all.into_iter().map(proposal).collect())
    }
}

/// The folders of the paths that a call touches, by the same rights, but not a whole root.
fn wider(tool: &ToolId, resources: &[String]) -> Option<Grants> {
    let mut rules: BTreeMap<&str, BTreeMap<RootedPath, Rights>> = BTreeMap::new();
    for (dimension, resource) in resources.iter().filter_map(|text| text.split_once(": ")) {
        let Some(Resource::Path { path, needs }) = Resource::path_in_full(resource) else {
            continue;
        };
        let mut components: Vec<&str> = path.components().collect();
        components.pop();
        if components.is_empty() {
            continue;
        }
        let Ok(folder) = RootedPath::new(path.root().clone(), components) else { continue };
        let rights = rules.entry(dimension).or_default().entry(folder).or_insert(Rights::NONE);
        *rights = rights.union(needs);
    }
    let mut grant = ToolGrant::new();
    for (dimension, folders) in rules {
        let rules = folders.into_iter().map(|(path, rights)| Rule { path, rights });
        grant = grant.with(dimension, Scope::paths(rules).ok()?);
    }
    let some = grant.iter().next().is_some();
    some.then(|| Grants::new().with(tool.clone(), grant))
}

fn covers(texts: &[String], call: &WaitingCall, scopes: Option<&Grants>) -> bool {
    let grant = scopes.and_then(|scopes| scopes.get(&call.tool));
    let within = |text: &str| {
        let resource = text.split_once(": ");
        let read = |(dimension, text)| Some((dimension, Resource::path_in_full(text)?));
        let found: Option<(&str, Resource)> = resource.and_then(read);
        found.zip(grant).is_some_and(|((dimension, one), grant)| grant.permits(dimension, &one))
    };
    let (resources, location) = parts(texts);
    location == call.location.as_deref()
        && !resources.is_empty()
        && resources.iter().all(|text| call.resources.contains(text) || within(text))
}

/// The resources among the texts of a request, and its location, which is the last.
pub(crate) fn parts(texts: &[String]) -> (&[String], Option<&str>) {
    match texts.split_last() {
        Some((last, resources)) if location_of(last).is_some() => (resources, location_of(last)),
        _ => (texts, None),
    }
}

/// Goes through the last records, the oldest first.
pub(crate) fn look_back(
    store: &mut dyn Store,
    head: Seq,
    mut each: impl FnMut(Seq, &[u8], Body),
) -> Result<(), StoreError> {
    let from = Seq::new(head.get().saturating_sub(RECORDS_MAX));
    let mut damaged = false;
    store.records(from, &mut |seq, bytes| match Record::decode(bytes) {
        Ok(record) => {
            each(seq, bytes, record.body);
            Next::More
        }
        Err(_) => {
            damaged = true;
            Next::Enough
        }
    })?;
    if damaged { Err(StoreError::Damaged) } else { Ok(()) }
}

/// The resources of the calls of that agent and tool that a person was asked about.
fn asked(
    store: &mut dyn Store,
    head: Seq,
    agent: &AgentId,
    tool: &ToolId,
) -> Result<Vec<Vec<String>>, StoreError> {
    let mut found = Vec::new();
    look_back(store, head, |seq, _, body| match body {
        Body::Ask(ask)
            if (ask.call.agent_id.as_ref(), ask.call.tool_id.as_ref())
                == (Some(agent), Some(tool)) =>
        {
            found.push((seq, ask.resources));
        }
        _ => {}
    })?;
    let texts = found.into_iter().map(|(seq, hashes)| {
        let entry = vault_entry(store, seq, seq)?;
        let texts = hashes.iter().map(|hash| entry.text(hash).map(str::to_owned));
        Ok(texts.collect::<Option<_>>().unwrap_or_default())
    });
    texts.collect()
}
