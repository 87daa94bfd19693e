//! The places where a session read untrusted content, and the session's later calls.

use std::collections::{BTreeMap, VecDeque};

use syscap_analysis::learn::Ended;
use syscap_format::{AgentId, CallFields, EffectClass, Label, Seq, ToolId};

/// Most sessions that are told of: of more, the newest.
pub const POISONED_MAX: usize = 256;
/// Most calls that are named of one session: the first.
pub const AFTER_MAX: usize = 16;

/// A session that was given a stranger's word before it wrote, or asked something outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poisoned {
    /// The session.
    pub session: Seq,
    /// The agent of the session.
    pub agent: AgentId,
    /// The origin of the content.
    pub origin: Origin,
    /// The later calls that do more than read here: the first [`AFTER_MAX`].
    pub after: Vec<After>,
    /// How many such calls there are.
    pub after_in_all: u64,
}

/// The origin of untrusted content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A result: the record that delivered it, and the tool.
    Result(Seq, ToolId),
    /// Another session of the token had it, or whoever made the agent or issued the token.
    Beginning,
}

/// A call after a stranger's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Its record.
    pub seq: Seq,
    /// The tool.
    pub tool: ToolId,
    /// The effect class of the call.
    pub effect: EffectClass,
    /// How it ended.
    pub ended: Ended,
}

/// The state of a walk along a log.
#[derive(Default)]
pub(crate) struct Track {
    /// The first result that carried a stranger's word, of each session that had one.
    came: BTreeMap<Seq, (Seq, ToolId)>,
    found: BTreeMap<Seq, Poisoned>,
    /// In the order in which they were found.
    order: VecDeque<Seq>,
    /// Calls whose end is not known yet, with their session and place.
    open: BTreeMap<Seq, (Seq, usize)>,
    pub(crate) dropped: u64,
}

impl Track {
    /// Something was delivered to a session.
    pub(crate) fn delivered(&mut self, seq: Seq, call: &CallFields, label: Label) {
        if let (true, Some(session), Some(tool)) =
            (label.is_untrusted(), call.session, &call.tool_id)
        {
            self.came.entry(session).or_insert_with(|| (seq, tool.clone()));
        }
    }

    /// A call was let run, or asked about: its record says what its session had been given.
    pub(crate) fn called(
        &mut self,
        seq: Seq,
        call: &CallFields,
        effect: EffectClass,
        given: Label,
        ended: Ended,
    ) {
        if given.is_untrusted() {
            self.add(seq, call, effect, ended);
        }
    }

    /// A call was refused: its record does not say what its session had been given, the results do.
    pub(crate) fn refused(
        &mut self,
        seq: Seq,
        call: &CallFields,
        effect: EffectClass,
        ended: Ended,
    ) {
        let given = |session| self.came.contains_key(&session) || self.found.contains_key(&session);
        if call.session.is_some_and(given) {
            self.add(seq, call, effect, ended);
        }
    }

    fn add(&mut self, seq: Seq, call: &CallFields, effect: EffectClass, ended: Ended) {
        let (Some(session), Some(agent), Some(tool)) =
            (call.session, &call.agent_id, &call.tool_id)
        else {
            return;
        };
        if effect.is_read_only() {
            return;
        }
        let came = self.came.get(&session).cloned();
        let order = &mut self.order;
        let poisoned = self.found.entry(session).or_insert_with(|| {
            order.push_back(session);
            Poisoned {
                session,
                agent: agent.clone(),
                origin: came.map_or(Origin::Beginning, |(seq, tool)| Origin::Result(seq, tool)),
                after: Vec::new(),
                after_in_all: 0,
            }
        });
        poisoned.after_in_all = poisoned.after_in_all.saturating_add(1);
        if poisoned.after.len() < AFTER_MAX {
            if ended == Ended::Open {
                self.open.insert(seq, (session, poisoned.after.len()));
            }
            poisoned.after.push(After { seq, tool: tool.clone(), effect, ended });
        }
        while self.order.len() > POISONED_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.found.remove(&oldest);
            self.open.retain(|_, (session, _)| *session != oldest);
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// A call that was let run has ended.
    pub(crate) fn ended(&mut self, intent: Seq, ended: Ended) {
        let Some((session, place)) = self.open.remove(&intent) else { return };
        let poisoned = self.found.get_mut(&session);
        if let Some(after) = poisoned.and_then(|poisoned| poisoned.after.get_mut(place)) {
            after.ended = ended;
        }
    }

    pub(crate) fn finish(self) -> Vec<Poisoned> {
        self.found.into_values().collect()
    }
}
