//! Which calls are evidence, and of what.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use syscap_format::{AgentId, Canonical, Item, Manifest, Seq, ToolId};
use syscap_kernel::Demand;
use syscap_policy::{Attribute, Value, Values, argument};

use super::left_out::{LeftOuts, Why, leave_out};
use super::recording::{Authority, Context, Ended, Lost, Observation, Recording, Touched};

/// A call that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'r> {
    pub(super) observation: &'r Observation,
    pub(super) args: &'r Canonical,
    /// Which task it belongs to.
    pub(super) task: usize,
}

impl Call<'_> {
    /// The resources that it touched, as far as they are known.
    pub(super) fn demands(&self) -> &[Demand] {
        match &self.observation.touched {
            Touched::Known(demands) => demands,
            Touched::Unknown => &[],
        }
    }

    pub(super) fn item(&self) -> Item<'_> {
        self.args.item()
    }
}

/// A learned condition asks for nothing but the call's arguments.
impl Values for Call<'_> {
    fn value(&self, attribute: &Attribute) -> Value<'_> {
        match attribute {
            Attribute::Argument(name, fields) => {
                argument(self.item(), self.demands(), name, fields)
            }
            _ => Value::Missing,
        }
    }
}

/// The task of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task<'r> {
    Named(&'r [u8]),
    Session(Seq),
}

/// The calls of one agent, sorted by what they are good for.
pub(super) struct Evidence<'r> {
    /// Calls that count, by tool.
    pub(super) tools: BTreeMap<&'r ToolId, Vec<Call<'r>>>,
    /// Calls in sessions that had been given a stranger's word. They can confirm, not widen.
    pub(super) untrusted: Vec<Call<'r>>,
    /// The tools as they are now.
    pub(super) manifests: BTreeMap<&'r ToolId, &'r Arc<Manifest>>,
    pub(super) sessions: BTreeSet<Seq>,
    /// How many tasks there are.
    pub(super) tasks: usize,
}

impl<'r> Evidence<'r> {
    pub(super) fn of(
        agent: &AgentId,
        recording: &'r Recording,
        ceiling: &Authority,
        left_out: &mut LeftOuts,
    ) -> Self {
        let mine = |observation: &&Observation| {
            recording
                .sessions
                .get(&observation.session)
                .is_some_and(|session| session.agent == *agent)
        };
        let calls = || recording.calls.iter().filter(mine);
        // A tool is what it was last.
        let manifests: BTreeMap<_, _> = calls()
            .filter_map(|call| call.manifest.as_ref().map(|manifest| (&call.tool, manifest)))
            .collect();
        let mut tasks = BTreeMap::new();
        let mut found = Self {
            tools: BTreeMap::new(),
            untrusted: Vec::new(),
            manifests,
            sessions: BTreeSet::new(),
            tasks: 0,
        };
        for observation in calls() {
            let (args, context) = match found.take(observation, ceiling) {
                Ok(taken) => taken,
                Err(why) => {
                    leave_out(left_out, agent, observation, why);
                    continue;
                }
            };
            let session = recording.sessions.get(&observation.session);
            let named = session.and_then(|session| session.task.as_deref());
            let task = named.map_or(Task::Session(observation.session), Task::Named);
            if context == Context::Untrusted {
                found.untrusted.push(Call { observation, args, task: usize::MAX });
                continue;
            }
            let next = tasks.len();
            let task = *tasks.entry(task).or_insert(next);
            found.sessions.insert(observation.session);
            let call = Call { observation, args, task };
            found.tools.entry(&observation.tool).or_default().push(call);
        }
        found.tasks = tasks.len();
        found
    }

    /// The class of a call, if it counts.
    fn take(
        &self,
        observation: &'r Observation,
        ceiling: &Authority,
    ) -> Result<(&'r Canonical, Context), Why> {
        match observation.ended {
            Ended::Done => {}
            Ended::Failed => return Err(Why::Failed),
            Ended::ToolFailed => return Err(Why::ToolFailed),
            Ended::Refused(reason) => return Err(Why::Refused(reason)),
            Ended::Open => return Err(Why::Open),
        }
        let args = observation.args.as_ref().map_err(|lost| match lost {
            Lost::Erased => Why::Erased,
            Lost::Altered => Why::Altered,
        })?;
        let then = observation.manifest.as_ref().ok_or(Why::ToolChanged)?;
        let now = self.manifests.get(&observation.tool).ok_or(Why::ToolChanged)?;
        if !is_same(then, now) {
            return Err(Why::ToolChanged);
        }
        let grant = ceiling.grants.get(&observation.tool).ok_or(Why::BeyondToken)?;
        let demands = match &observation.touched {
            Touched::Known(demands) => &demands[..],
            Touched::Unknown => &[],
        };
        if demands.iter().any(|demand| !grant.permits(demand.dimension, &demand.resource)) {
            return Err(Why::BeyondToken);
        }
        Ok((args, observation.context))
    }
}

/// True if evidence about one holds for the other: words and labels may have changed.
fn is_same(then: &Manifest, now: &Manifest) -> bool {
    let described = |manifest: &Manifest| {
        let params = manifest.params.iter();
        params.map(|param| (param.name.clone(), param.kind, param.presence)).collect::<Vec<_>>()
    };
    then.effect == now.effect
        && then.extra == now.extra
        && then.dimensions == now.dimensions
        && described(then) == described(now)
}
