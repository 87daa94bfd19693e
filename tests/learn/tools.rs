//! The benchmark's tools, by what they do to the world; each answers with the text that was
//! recorded.

use std::sync::{Arc, Mutex};

use EffectClass::{ExternalWrite as Write, Irreversible as Final, Read};
use syscap::format::{
    Canonical, EffectClass, Label, Manifest, MapBuilder, Param, ParamType, Reason, Refused, ToolId,
    TxOutcome,
};
use syscap::kernel::{Demands, Permit, Plan, Ran, Request, Tool};

/// Suite, tool, class, arguments.
pub(crate) const TOOLS: [(&str, &str, EffectClass, &str); 35] = [
    ("banking", "get_balance", Read, ""),
    ("banking", "get_iban", Read, ""),
    ("banking", "get_most_recent_transactions", Read, "n"),
    ("banking", "get_scheduled_transactions", Read, ""),
    ("banking", "get_user_info", Read, ""),
    ("banking", "read_file", Read, "file_path"),
    ("banking", "schedule_transaction", Write, "recipient amount subject date recurring"),
    ("banking", "send_money", Final, "recipient amount subject date"),
    ("banking", "update_password", Write, "password"),
    (
        "banking",
        "update_scheduled_transaction",
        Write,
        "id recipient amount subject date recurring",
    ),
    ("banking", "update_user_info", Write, "first_name last_name street city"),
    ("workspace", "add_calendar_event_participants", Write, "event_id participants"),
    ("workspace", "append_to_file", Write, "file_id content"),
    ("workspace", "cancel_calendar_event", Write, "event_id"),
    (
        "workspace",
        "create_calendar_event",
        Write,
        "title start_time end_time description participants location",
    ),
    ("workspace", "create_file", Write, "filename content"),
    ("workspace", "delete_email", Final, "email_id"),
    ("workspace", "delete_file", Final, "file_id"),
    ("workspace", "get_current_day", Read, ""),
    ("workspace", "get_day_calendar_events", Read, "day"),
    ("workspace", "get_draft_emails", Read, ""),
    ("workspace", "get_file_by_id", Read, "file_id"),
    ("workspace", "get_received_emails", Read, ""),
    ("workspace", "get_sent_emails", Read, ""),
    ("workspace", "get_unread_emails", Read, ""),
    ("workspace", "list_files", Read, ""),
    ("workspace", "reschedule_calendar_event", Write, "event_id new_start_time new_end_time"),
    ("workspace", "search_calendar_events", Read, "query date"),
    ("workspace", "search_contacts_by_email", Read, "query"),
    ("workspace", "search_contacts_by_name", Read, "query"),
    ("workspace", "search_emails", Read, "query sender"),
    ("workspace", "search_files", Read, "query"),
    ("workspace", "search_files_by_filename", Read, "filename"),
    ("workspace", "send_email", Final, "recipients subject body attachments cc bcc"),
    ("workspace", "share_file", Write, "file_id email permission"),
];

/// What the next run brings: a text, or that it fails.
pub(crate) type Next = Arc<Mutex<(String, bool)>>;

/// A tool of the benchmark.
pub(crate) struct Recorded {
    manifest: Manifest,
    next: Next,
}

impl Recorded {
    /// All of them, with results of that label. Their own types are not declared: the tools of
    /// the benchmark convert what they get.
    pub(crate) fn all(label: Label, next: &Next) -> impl Iterator<Item = Self> {
        TOOLS.into_iter().map(move |(suite, name, effect, params)| {
            let tool = ToolId::new(&format!("{suite}.{name}")).unwrap();
            let manifest = Manifest::new(tool, effect).labelled(label);
            let manifest = params.split_whitespace().fold(manifest, |manifest, name| {
                manifest.param(Param::optional(name, ParamType::Any, ""))
            });
            Self { manifest, next: Arc::clone(next) }
        })
    }
}

impl Tool for Recorded {
    type Plan = Answer;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, _: &Request<'_>) -> Result<Answer, Refused> {
        Ok(Answer { demands: Demands::default(), next: Arc::clone(&self.next) })
    }
}

pub(crate) struct Answer {
    demands: Demands,
    next: Next,
}

impl Plan for Answer {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        let (text, failed) = self.next.lock().unwrap().clone();
        if failed {
            return permit.failed(Refused::new(Reason::Failed), TxOutcome::NoOp);
        }
        let result: Canonical = MapBuilder::new().text("text", &text).finish();
        permit.ok(result, TxOutcome::Committed)
    }
}
