//! Answers: made when their record is, released when it is durable.

use alloc::{boxed::Box, vec::Vec};

use crate::{machine::Kernel, run::flight::Waiting, tool::Ticket};
use syscap_format::{
    Amounts, CallFields, Canonical, Enforcement, Leaf, Obligation, Reason, Receipt, Seq,
    ToolResult, TxOutcome,
};

/// The parts of an answer, beside its record's fields.
pub(crate) struct Reply {
    pub(crate) ticket: Ticket,
    pub(crate) intent: Option<(Seq, Leaf)>,
    pub(crate) reason: Option<Reason>,
    pub(crate) delivered: Canonical,
    pub(crate) tx: TxOutcome,
    pub(crate) left: Amounts,
    /// The obligations by which the policy degraded the call.
    pub(crate) degraded: Vec<Obligation>,
}

impl Kernel {
    /// Makes the answer, to be released when its record is durable.
    pub(crate) fn answer(&mut self, seq: Seq, leaf: Leaf, fields: &CallFields, reply: Reply) {
        let ticket = reply.ticket;
        let result = self.result(seq, leaf, fields, reply);
        self.waiting.push_back((seq, Waiting::Reply(ticket, Box::new(result))));
    }

    pub(crate) fn result(
        &self,
        seq: Seq,
        leaf: Leaf,
        fields: &CallFields,
        reply: Reply,
    ) -> ToolResult {
        let receipt = Receipt {
            home: self.state.home,
            intent: reply.intent,
            outcome_seq: seq,
            outcome_leaf: leaf,
            used: fields.used,
            left: reply.left,
            enforcement: fields.enforcement.unwrap_or(Enforcement::None),
        };
        let Reply { reason, delivered, tx, degraded, .. } = reply;
        ToolResult::new(fields, reason, delivered, tx, degraded, receipt)
    }
}
