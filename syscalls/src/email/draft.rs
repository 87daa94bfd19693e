//! `email.draft`.

use std::{fmt::Write as _, sync::Arc};

use syscap_format::{
    AgentId, Amounts, Canonical, Dimension, EffectClass, Item, ItemKind, Leaf, Manifest,
    MapBuilder, Param, ParamType, Reason, Refused, Seq, ToolId, TxOutcome,
};
use syscap_kernel::{Broken, Clock, Demands, Finding, Permit, Plan, Ran, Request, Tool};

use super::{RECIPIENT_DIMENSION, address::Address, message::Meant, recipient::demand};
use crate::beneath::{
    Discarded, Effect, Existing, FolderMode, FsError, Location, Opener, Parents, Write,
};
use crate::fs::{hex, meter_of, refusal, temp_name, tx_of};
use crate::turns::wait_of;

/// Most recipients of a message, of all three kinds together.
pub const RECIPIENTS_MAX: usize = 100;
/// Longest subject, in bytes.
pub const SUBJECT_BYTES_MAX: u64 = 512;
/// Longest body, in bytes.
pub const BODY_BYTES_MAX: u64 = 256 << 10;
/// The most that a message is longer than its body by its encoding: three times, and its headers.
const OVERHEAD_BYTES: u64 = 128 << 10;
/// Folders that a first draft makes: the agent's, those of its mail, and three of the Maildir.
const FOLDERS: u64 = 7;
/// The host of a message's id: the name that belongs to nobody (RFC 2606).
const ID_HOST: &str = "syscap.invalid";

/// `email.draft`: keeps a message for a person to look at and send. It sends nothing.
pub struct EmailDraft {
    manifest: Manifest,
    base: Arc<dyn Opener>,
    clock: Arc<dyn Clock>,
}

impl EmailDraft {
    /// The tool over an open base; the message's date is of that clock.
    pub fn over(base: Arc<dyn Opener>, clock: Arc<dyn Clock>) -> Option<Self> {
        let list = |name, what| Param::optional(name, ParamType::Any, what);
        let to = "Who it is for: an address, or a list of them.";
        let manifest = Manifest::new(ToolId::new("email.draft")?, EffectClass::LocalWrite)
            .alias(ToolId::new("email_draft")?)
            .described("Draft a message", "Keeps a message for a person to send.")
            .param(Param::required("to", ParamType::Any, to))
            .param(
                Param::required("subject", ParamType::Text, "Its subject.")
                    .within(1, SUBJECT_BYTES_MAX),
            )
            .param(Param::required("body", ParamType::Text, "Its text.").within(1, BODY_BYTES_MAX))
            .param(list("cc", "Who gets a copy."))
            .param(list("bcc", "Who gets a copy, unseen by the others."))
            .needs(RECIPIENT_DIMENSION);
        Some(Self { manifest: base.promised(manifest), base, clock })
    }
}

impl Tool for EmailDraft {
    type Plan = EmailDraftPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<EmailDraftPlan, Refused> {
        let [to, cc, bcc] = recipients(request)?;
        let demand = |(argument, address)| demand(request.grant, argument, address);
        let all = [("to", &to), ("cc", &cc), ("bcc", &bcc)];
        let all = all.into_iter().flat_map(|(name, list)| list.iter().map(move |one| (name, one)));
        let text = |name| request.args.get(name).and_then(Item::as_text).unwrap_or_default();
        let size = u64::try_from(text("body").len()).unwrap_or(u64::MAX);
        Ok(EmailDraftPlan {
            demands: Demands {
                resources: all.map(demand).collect::<Result<_, _>>()?,
                hold: uses(size),
            },
            agent: request.agent.clone(),
            subject: subject(text("subject"))?.to_owned(),
            body: body(text("body"))?,
            to,
            cc,
            bcc,
            base: Arc::clone(&self.base),
            clock: Arc::clone(&self.clock),
        })
    }

    /// As of `fs.write`: who takes the temporary file away has proved that nothing was kept.
    fn probe(&self, broken: &Broken<'_>) -> Finding {
        let at = location(broken.request.agent, "cur", &file_name(broken.intent, broken.leaf));
        let (Ok(at), Ok(temp)) = (at, temp_name(broken.intent, broken.leaf)) else {
            return Finding::Unknown;
        };
        match self.base.discard(&at, &temp) {
            Ok(Discarded::Removed { size_bytes }) => {
                let used = Amounts::ZERO.with(Dimension::DiskWriteBytes, size_bytes);
                Finding::NotDone(used.with(Dimension::DiskFiles, FOLDERS.saturating_add(1)))
            }
            _ => Finding::Unknown,
        }
    }
}

fn uses(body_bytes: u64) -> Amounts {
    let most = body_bytes.saturating_mul(3).saturating_add(OVERHEAD_BYTES);
    let files = FOLDERS.saturating_add(1);
    Amounts::ZERO.with(Dimension::DiskWriteBytes, most).with(Dimension::DiskFiles, files)
}

fn bad(field: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
}

/// The recipients of `to`, `cc` and `bcc`; none twice.
fn recipients(request: &Request<'_>) -> Result<[Vec<Address>; 3], Refused> {
    let mut seen: Vec<Address> = Vec::new();
    let mut list = |name: &'static str| -> Result<Vec<Address>, Refused> {
        let found = addresses(request, name)?;
        for address in &found {
            if seen.iter().any(|known| known.is_same_mailbox(address)) {
                return Err(bad(name, address.as_str(), "each recipient once"));
            }
            seen.push(address.clone());
            if seen.len() > RECIPIENTS_MAX {
                return Err(bad(name, "more recipients", &format!("at most {RECIPIENTS_MAX}")));
            }
        }
        Ok(found)
    };
    let all = [list("to")?, list("cc")?, list("bcc")?];
    match all.first() {
        Some(to) if !to.is_empty() => Ok(all),
        _ => Err(bad("to", "nobody", "an address, or a list of them")),
    }
}

fn addresses(request: &Request<'_>, name: &'static str) -> Result<Vec<Address>, Refused> {
    let form = "an address such as ann@example.com, or a list of them: no names, quotes, comments";
    let parse = |item: Item<'_>| {
        let text = item.as_text().ok_or_else(|| bad(name, "what is no text", form))?;
        Address::parse(text).ok_or_else(|| bad(name, text, form))
    };
    match request.args.get(name) {
        None => Ok(Vec::new()),
        Some(item) if item.kind() == ItemKind::Null => Ok(Vec::new()),
        Some(item) if item.kind() == ItemKind::Array => item.elements().map(parse).collect(),
        Some(item) => Ok(vec![parse(item)?]),
    }
}

/// A subject is one line that says what it shows, in every program.
fn subject(text: &str) -> Result<&str, Refused> {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if text.contains(hidden) || text.contains("=?") || text.trim() != text {
        let allowed = "one line without control characters, invisible ones (as U+200D, which \
                       joins emoji), `=?`, and spaces at its ends";
        return Err(bad("subject", text, allowed));
    }
    Ok(text)
}

/// Lines end with a line feed, the last one too.
fn body(text: &str) -> Result<String, Refused> {
    let mut text = text.replace("\r\n", "\n");
    if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        let allowed = "text without control characters other than line feed and tabulator";
        return Err(bad("body", "a control character", allowed));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Unique over all homes that share a base, and marked as a draft.
fn file_name(intent: Seq, leaf: Leaf) -> String {
    format!("{intent}.{}.syscap:2,D", id(leaf))
}

fn id(leaf: Leaf) -> String {
    hex(leaf.as_bytes()).chars().take(32).collect()
}

fn location(agent: &AgentId, folder: &str, file: &str) -> Result<Location, FsError> {
    let agent = agent.folder();
    let names = ["agents", agent.as_str(), "mail", "Drafts", folder, file];
    let names = names.into_iter().filter(|name| !name.is_empty());
    Location::new(&names.collect::<Vec<_>>())
}

/// A planned `email.draft`.
pub struct EmailDraftPlan {
    demands: Demands,
    agent: AgentId,
    to: Vec<Address>,
    cc: Vec<Address>,
    bcc: Vec<Address>,
    subject: String,
    body: String,
    base: Arc<dyn Opener>,
    clock: Arc<dyn Clock>,
}

impl Plan for EmailDraftPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        match self.keep(&mut permit) {
            Ok(result) => permit.ok(result, TxOutcome::Committed),
            Err((refused, effect)) => permit.failed(refused, tx_of(effect)),
        }
    }
}

impl EmailDraftPlan {
    fn keep(&self, permit: &mut Permit<'_, Self>) -> Result<Canonical, (Refused, Effect)> {
        let not_done = |refused| (refused, Effect::NotDone);
        let wrong = |error| not_done(refusal(error).field("to"));
        let mut id = id(permit.leaf());
        let file = file_name(permit.intent(), permit.leaf());
        write!(id, "@{ID_HOST}").map_err(|_| not_done(Refused::new(Reason::Failed)))?;
        let unix_s = i64::try_from(self.clock.read().wall.get() / 1_000).unwrap_or(0);
        let (to, cc, bcc) = (&self.to[..], &self.cc[..], &self.bcc[..]);
        let meant =
            Meant { to, cc, bcc, subject: &self.subject, body: &self.body, id: &id, unix_s };
        let content = meant.to_bytes().ok_or_else(|| {
            not_done(bad("body", "a text that mail can't carry", "what is read as it was written"))
        })?;
        // A Maildir has all three.
        for folder in ["new", "tmp"] {
            self.folder(permit, folder).map_err(not_done)?;
        }
        let at = location(&self.agent, "cur", &file).map_err(wrong)?;
        let temp = temp_name(permit.intent(), permit.leaf()).map_err(wrong)?;
        let job = Write {
            content: &content,
            existing: Existing::Refuse,
            expected: None,
            made_from: None,
            temp: &temp,
            label: permit.live().label,
        };
        let (wait, parents) = (wait_of(permit.hold()), Parents::Create(FolderMode::Private));
        let meter = &mut meter_of(permit);
        let turn = self.base.turn(&at, parents, job.content, wait, meter);
        let written = turn.and_then(|turn| self.base.write(turn, &job, meter));
        written.map_err(|failure| (refusal(failure.error).field("body"), failure.effect))?;
        let recipients = to.len().saturating_add(cc.len()).saturating_add(bcc.len());
        let size = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let result = MapBuilder::new()
            .text("message_id", &id)
            .text("file", &file)
            .uint("bytes", size(content.len()))
            .uint("recipients", size(recipients));
        Ok(result.finish())
    }

    fn folder(&self, permit: &mut Permit<'_, Self>, name: &str) -> Result<(), Refused> {
        let wrong = |error| refusal(error).field("to");
        let at = location(&self.agent, name, "").map_err(wrong)?;
        match self.base.visit(&at) {
            Err(FsError::NotFound) => {}
            seen => return seen.map_err(wrong),
        }
        let made = self.base.make_folders(&at, FolderMode::Private).map_err(wrong)?;
        Ok(permit.meter(Dimension::DiskFiles, u64::from(made))?)
    }
}
