//! The home, as the page has it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use syscap::Runtime;
use syscap::approvals::WaitingCall;
use syscap::audit::SqliteReader;
use syscap::format::{
    AgentId, ApprovalAnswer, EffectClass, Freeze, FreezeTarget, Manifest, Role, Seq, TokenId,
    ToolId,
};
use syscap::view::TokenStanding;
use syscap_console::{Answer, Home, Problem, Stretch, Wanted, Wish};

use super::overview;
use super::person::{ANSWER_TIME, Desk, Done, QUESTIONS_MAX, Question};
use crate::approvals::{self, Approver, sets};
use crate::exit::Failure;
use crate::freeze;
use crate::http::{self, Connector};
use crate::log::timeline::{self, Filter};
use crate::output::{Object, array, quote, word_of};
use crate::parse;
use crate::resume::own;
use crate::runtime::{self, People};
use crate::signing;
use crate::starter::{self, Presence};
use crate::token::{self, Gift, narrow, show};
use crate::tools::{self, accept};

/// How often it is looked whether anything else is on record.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// A home and its server.
pub(super) struct ServedHome {
    home: PathBuf,
    /// The server stays for it.
    server: Mutex<Option<Runtime>>,
    desk: Desk,
    /// Held while a question stands.
    one: Mutex<()>,
    /// When the person was asked, in the last minute.
    questions: Mutex<Vec<Instant>>,
}

impl ServedHome {
    /// Connects to the server; starts one where there is none.
    pub(super) fn reach(home: &Path, desk: Desk) -> Result<Self, Failure> {
        let server = starter::reach(home, People::PRESENT, Presence::Stays)?;
        Ok(Self {
            home: home.to_path_buf(),
            server: Mutex::new(Some(server)),
            desk,
            one: Mutex::default(),
            questions: Mutex::default(),
        })
    }

    /// Asks the server. One that has gone is looked for again at the next request.
    fn ask<T>(&self, ask: impl FnOnce(&Runtime) -> Result<T, syscap::Error>) -> Result<T, Problem> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if server.is_none() {
            let reached = starter::reach(&self.home, People::PRESENT, Presence::Stays);
            *server = Some(reached.map_err(|failure| problem(&failure))?);
        }
        let Some(access) = &*server else { return Err(gone("the server has gone")) };
        ask(access).map_err(|error| {
            let words = error.to_string();
            *server = None;
            gone(&words)
        })
    }

    fn status(&self) -> Result<String, Problem> {
        let view = self.ask(Runtime::view)?;
        let (home, head) = (word_of(&self.home), view.head.get());
        let frozen: Vec<String> = view.frozen.iter().map(freeze::named).collect();
        let stopped = match frozen.is_empty() {
            true => String::new(),
            false => format!(", frozen: {}", frozen.join(", ")),
        };
        let line = format!("{home}, record {head}, {} running{stopped}", view.running.len());
        let frozen = array(frozen.iter().map(|one| quote(one)));
        Ok(Object::new().text("line", &line).uint("head", head).json("frozen", &frozen).finish())
    }

    /// A call, for the page and for what it wishes: two of the same state are equal.
    fn whole(&self, ask: Seq) -> Result<(WaitingCall, Option<EffectClass>, String), Problem> {
        let (call, object) =
            approvals::whole_json(&self.home, ask).map_err(|failure| problem(&failure))?;
        // By the manifest that the request names, and not by a word of the server's.
        let class = timeline::class_of(&self.home, ask).map_err(|failure| problem(&failure))?;
        let read = timeline::untrusted_before(&self.home, ask);
        let read = read.map_err(|failure| problem(&failure))?;
        let object = object.flag("untrusted", call.label.is_untrusted()).json("has_read", &read);
        let object = class.iter().fold(object, |it, class| it.text("class", class.name()));
        Ok((call, class, object.finish()))
    }

    fn answer(
        &self,
        ask: u64,
        answer: Answer,
        why: Option<String>,
        shown: &str,
    ) -> Result<String, Problem> {
        let (call, class, now) = self.whole(Seq::new(ask))?;
        if now != shown {
            return Err(is_another());
        }
        let mut terms = None;
        let answer = match answer {
            Answer::Once => ApprovalAnswer::Once,
            Answer::More { uses, minutes } => {
                let at = token::now(self.ask(Runtime::view)?.now);
                let life = Some((at, Duration::from_secs(minutes.saturating_mul(60))));
                let exact = sets::terms(&self.home, &call, uses, life, false);
                terms = Some(exact.map_err(|failure| problem(&failure))?);
                ApprovalAnswer::Set
            }
            Answer::Deny => ApprovalAnswer::Deny,
            _ => return Err(Problem::new(400, "bad_field", "no such answer")),
        };
        if answer != ApprovalAnswer::Deny && (call.approved.is_none() || call.superseded) {
            return Err(Problem::new(409, "changed", "nobody can approve this any more"));
        }
        if answer == ApprovalAnswer::Deny {
            let approver = Approver::of(&self.home).map_err(|failure| problem(&failure))?;
            // A no takes away: where no passphrase is needed it is done at once.
            if !approver.is_sealed() {
                let seq = approver.answer(call.ask, answer, None, why.as_deref());
                let seq = seq.map_err(|failure| problem(&failure))?;
                self.desk.tell(format!("denied {ask} by record {seq}, at a click"));
                return Ok(on_record(seq));
            }
        }
        let call = Box::new(call);
        self.asked(|reply| Question::Answer { call, class, answer, terms, why, reply })
            .map(Object::finish)
    }

    /// Has the person decide, at the terminal.
    fn asked(
        &self,
        question: impl FnOnce(SyncSender<Done>) -> Question,
    ) -> Result<Object, Problem> {
        let busy = || {
            let words = "another question stands at the terminal: answer it first";
            Problem::new(409, "busy", words)
        };
        let _one = match self.one.try_lock() {
            Ok(one) => one,
            // It guards no data: a question that ended in a panic stands no more.
            Err(TryLockError::Poisoned(one)) => one.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(busy()),
        };
        let minute = Duration::from_secs(60);
        let mut asked = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|at| at.elapsed() < minute);
        if asked.len() >= QUESTIONS_MAX {
            return Err(Problem::new(429, "too_many", "at most 6 questions a minute"));
        }
        asked.push(Instant::now());
        drop(asked);
        let (reply, answered) = sync_channel(1);
        self.desk.questions.try_send(question(reply)).map_err(|error| match error {
            TrySendError::Full(_) => busy(),
            TrySendError::Disconnected(_) => gone("nobody is at the terminal any more"),
        })?;
        match answered.recv_timeout(ANSWER_TIME) {
            Ok(Ok(Some(seq))) => Ok(Object::new().uint("record", seq.get())),
            Ok(Ok(None)) => Ok(Object::new().text("said", "done at the terminal")),
            Ok(Err(problem)) => Err(problem),
            Err(_) => {
                let words = "no answer: what is decided at the terminal is on record there";
                Err(Problem::new(504, "no_answer", words))
            }
        }
    }

    fn accept(&self, tool: &str, shown: &str) -> Result<String, Problem> {
        let id = ToolId::new(tool).ok_or_else(|| Problem::new(400, "bad_field", "no tool"))?;
        let (detail, now) =
            tools::to_accept(&self.home, &id).map_err(|failure| problem(&failure))?;
        let offered = detail.offered.as_ref().filter(|_| now == shown);
        let Some(offered) = offered.map(Manifest::id) else {
            return Err(is_another());
        };
        let line = format!(
            "accept the definition of {id}: {} {}, manifest {offered}",
            detail.info.title, detail.manifest.effect
        );
        let home = self.home.clone();
        let act = Box::new(move || {
            let access = runtime::connected(&home).map_err(Failure::home(&home))?;
            let nobody = || Failure::Nobody { folder: home.clone(), why: "nobody offers it" };
            accept::record(&home, &access.ok_or_else(nobody)?, &[(id, offered)]).map(Some)
        });
        self.asked(|reply| Question::Act { line, act, reply }).map(Object::finish)
    }

    /// The agents that have a token which can be used, and these whole.
    fn agents(&self) -> Result<String, Problem> {
        let view = self.ask(Runtime::view)?;
        let mut agents: BTreeMap<&AgentId, Vec<String>> = BTreeMap::new();
        for info in view.tokens.iter().filter(|info| info.standing == TokenStanding::Live) {
            let found = self.ask(|access| access.tokens(&info.id.to_string()))?;
            let whole = found.iter().map(show::json);
            agents.entry(&info.agent).or_default().extend(whole);
        }
        let agents = agents.into_iter().map(|(agent, tokens)| {
            let resume = own::json(&self.home, agent).map_err(|failure| problem(&failure))?;
            let stops = |freeze: &Freeze| match freeze.target {
                FreezeTarget::Agent => {
                    AgentId::new(&freeze.name).is_some_and(|frozen| agent.is_within(&frozen))
                }
                FreezeTarget::Kernel => true,
                FreezeTarget::Tool => false,
            };
            let object = Object::new()
                .text("agent", agent.as_str())
                .flag("frozen", view.frozen.iter().any(stops))
                .json("tokens", &array(tokens));
            Ok(resume.iter().fold(object, |object, own| object.json("resume", own)).finish())
        });
        Ok(array(agents.collect::<Result<Vec<_>, Problem>>()?))
    }

    fn revoke(&self, token: &str) -> Result<String, Problem> {
        let wrong = || Problem::new(400, "bad_field", "no token's id");
        let token = TokenId::from_hex(token).ok_or_else(wrong)?;
        let seq = runtime::operate(&self.home, |operator| operator.revoke(token));
        let seq = seq.map_err(|failure| problem(&failure))?;
        self.desk.tell(format!("revoked {token} by record {seq}, at a click"));
        Ok(on_record(seq))
    }

    fn thaw(&self, agent: &str) -> Result<String, Problem> {
        let wrong = || Problem::new(400, "bad_field", "`agent` is no agent's name");
        let agent = AgentId::new(agent).ok_or_else(wrong)?;
        let (home, line) = (self.home.clone(), format!("let {agent} run again"));
        let act = Box::new(move || freeze::record(&home, &Freeze::agent(&agent).thaw()).map(Some));
        self.asked(|reply| Question::Act { line, act, reply }).map(Object::finish)
    }

    fn narrow(
        &self,
        agent: &str,
        without: Option<&str>,
        keep: &[String],
    ) -> Result<String, Problem> {
        let wrong = || Problem::new(400, "bad_field", "no such agent, tool or path");
        let agent = AgentId::new(agent).ok_or_else(wrong)?;
        let tool = without.map(|tool| ToolId::new(tool).ok_or_else(wrong)).transpose()?;
        let keep = keep.iter().map(|path| parse::root(path).map_err(|_| wrong()));
        let keep: Vec<String> = keep.collect::<Result<_, _>>()?;
        for role in [Role::Issuer, Role::Revoker] {
            // The terminal is somebody else's at this moment.
            if signing::is_sealed(&self.home, role).map_err(|failure| problem(&failure))? {
                let home = word_of(&self.home);
                let words = format!(
                    "the {role} key is sealed: at a terminal, syscap token narrow {home} --agent {agent}"
                );
                return Err(Problem::new(409, "sealed", words));
            }
        }
        let without = tool.into_iter().collect();
        let said = narrow::take_away(&self.home, agent.clone(), without, keep);
        let said = said.map_err(|failure| problem(&failure))?;
        self.desk.tell(format!("narrowed the tokens of {agent}, at a click"));
        let resume = self.resume(&agent)?;
        let said = [said, resume.unwrap_or_default()];
        let said: Vec<&str> = said.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        Ok(Object::new().text("said", &said.join("\n")).finish())
    }

    /// The tool that the card is of, if it is still as it was shown.
    fn connector(&self, tool: &str, shown: &str) -> Result<Connector, Problem> {
        let id = ToolId::new(tool).ok_or_else(|| Problem::new(400, "bad_field", "no tool"))?;
        let connector = Connector::of(&self.home, &id).map_err(|failure| problem(&failure))?;
        if connector.json() == shown {
            return Ok(connector);
        }
        Err(is_another())
    }

    fn connect(&self, tool: &str, changes: &str, shown: String) -> Result<String, Problem> {
        let connector = self.connector(tool, &shown)?;
        let wrong = |failure: Failure| Problem::new(400, "bad_field", failure.to_string());
        let (manifest, lines) = connector.with(changes).map_err(wrong)?;
        if lines.is_empty() {
            return Err(Problem::new(409, "same", "it is set so already"));
        }
        let line = format!("set {tool} ({}): {}", manifest.effect, lines.join("; "));
        let home = self.home.clone();
        let act = Box::new(move || {
            // Somebody may have set it meanwhile.
            let now = Connector::of(&home, &manifest.tool)?;
            if now.json() != shown {
                let advice = "is another by now: look at it again".to_owned();
                return Err(Failure::Usage { what: manifest.tool.to_string(), advice });
            }
            now.record(manifest).map(Some)
        });
        self.asked(|reply| Question::Act { line, act, reply }).map(Object::finish)
    }

    fn secret(&self, tool: &str, name: &str, shown: &str) -> Result<String, Problem> {
        let connector = self.connector(tool, shown)?;
        let places = connector.places(name).ok_or_else(|| {
            let home = word_of(&self.home);
            let command = format!("syscap secret set {home} {name} --origin URL");
            Problem::new(409, "no_server", format!("say where it may be sent: {command}"))
        })?;
        let line = format!("set the secret {name}, which is sent to {}", places.join(", "));
        let name = name.to_owned();
        let act = Box::new(move || connector.set_secret(&name, &places).map(|()| None));
        self.asked(|reply| Question::Act { line, act, reply }).map(Object::finish)
    }

    fn gift(&self, agent: &str, tool: &str) -> Result<Gift, Problem> {
        let wrong = || Problem::new(400, "bad_field", "no such agent or tool");
        let agent = AgentId::new(agent).ok_or_else(wrong)?;
        let tool = ToolId::new(tool).ok_or_else(wrong)?;
        Gift::of(&self.home, &agent, &tool).map_err(|failure| problem(&failure))
    }

    /// An agent's resume follows its token.
    fn resume(&self, agent: &AgentId) -> Result<Option<String>, Problem> {
        own::follow(&self.home, agent).map_err(|failure| problem(&failure))
    }

    fn give(&self, agent: &str, tool: &str, shown: &str) -> Result<String, Problem> {
        let gift = self.gift(agent, tool)?;
        if gift.json() != shown {
            return Err(is_another());
        }
        let (line, agent) = (gift.line(), gift.agent().clone());
        let act = Box::new(move || gift.record().map(Some));
        let done = self.asked(|reply| Question::Act { line, act, reply })?;
        let resume = self.resume(&agent)?;
        Ok(resume.iter().fold(done, |done, words| done.text("said", words)).finish())
    }

    fn freeze(&self, agent: &str) -> Result<String, Problem> {
        let agent = AgentId::new(agent)
            .ok_or_else(|| Problem::new(400, "bad_field", "`agent` is no agent's name"))?;
        let freeze = Freeze::agent(&agent);
        let seq = runtime::operate(&self.home, |operator| operator.freeze(&freeze));
        let seq = seq.map_err(|failure| problem(&failure))?;
        self.desk.tell(format!("froze {agent} by record {seq}, at a click"));
        Ok(on_record(seq))
    }
}

impl Home for ServedHome {
    fn look(&self, wanted: &Wanted) -> Result<String, Problem> {
        match wanted {
            Wanted::Status => self.status(),
            Wanted::Approvals => {
                approvals::list_json(&self.home).map_err(|failure| problem(&failure))
            }
            Wanted::Approval(ask) => self.whole(Seq::new(*ask)).map(|(_, _, json)| json),
            Wanted::Timeline(_) | Wanted::Record(_) => logged(&self.home, wanted),
            Wanted::Home => {
                let view = self.ask(Runtime::view)?;
                overview::json(&self.home, &view).map_err(|failure| problem(&failure))
            }
            Wanted::Agents => self.agents(),
            Wanted::Tools => tools::store_json(&self.home).map_err(|failure| problem(&failure)),
            Wanted::Tool(tool) => {
                let id =
                    ToolId::new(tool).ok_or_else(|| Problem::new(404, "unknown", "no tool"))?;
                let whole = tools::whole_json(&self.home, &id);
                whole.map(|(_, json)| json).map_err(|failure| problem(&failure))
            }
            Wanted::Connectors => http::list_json(&self.home).map_err(|failure| problem(&failure)),
            Wanted::Connector(tool) => {
                let id = parse::tool(tool)
                    .map_err(|error| Problem::new(400, "bad_field", error.to_string()))?;
                let connector = Connector::of(&self.home, &id);
                connector.map(|it| it.json()).map_err(|failure| problem(&failure))
            }
            Wanted::Gift { agent, tool } => self.gift(agent, tool).map(|gift| gift.json()),
            _ => Err(Problem::new(404, "unknown", "no such panel")),
        }
    }

    fn changed(&self, since: Option<u64>, limit: Duration) -> Result<u64, Problem> {
        let failed = |error: syscap::Error| gone(&error.to_string());
        // By a connection of its own: what waits must not keep others waiting.
        let watching = Runtime::connect(&self.home).map_err(failed)?;
        let mut reader = SqliteReader::open(&self.home).map_err(|error| failed(error.into()))?;
        let (began, mut count) = (Instant::now(), u64::MAX);
        let changed = loop {
            // A request is told of at once, any other record within a second.
            count = watching.watch(count, LOOK).map_err(failed)?;
            let head = reader.head().map_err(|error| failed(error.into()))?;
            let changed = count.saturating_add(head.map_or(0, |head| head.seq.get()));
            if since != Some(changed) || began.elapsed() > limit {
                break changed;
            }
        };
        watching.close().map_err(failed)?;
        Ok(changed)
    }

    fn act(&self, wish: Wish) -> Result<String, Problem> {
        match wish {
            Wish::Answer { ask, answer, why, shown } => self.answer(ask, answer, why, &shown),
            Wish::Freeze { agent } => self.freeze(&agent),
            Wish::Accept { tool, shown } => self.accept(&tool, &shown),
            Wish::Narrow { agent, tool } => self.narrow(&agent, Some(&tool), &[]),
            Wish::Paths { agent, keep } => self.narrow(&agent, None, &keep),
            Wish::Revoke { token } => self.revoke(&token),
            Wish::Thaw { agent } => self.thaw(&agent),
            Wish::Give { agent, tool, shown } => self.give(&agent, &tool, &shown),
            Wish::Connect { tool, changes, shown } => self.connect(&tool, &changes, shown),
            Wish::Secret { tool, name, shown } => self.secret(&tool, &name, &shown),
            _ => Err(Problem::new(400, "bad_field", "no such act")),
        }
    }
}

/// What is read from the log alone.
pub(super) fn logged(home: &Path, wanted: &Wanted) -> Result<String, Problem> {
    match wanted {
        Wanted::Timeline(Stretch { before, agent, tool, since, refused, outside, .. }) => {
            let (agent, tool, since) = (agent.as_deref(), tool.as_deref(), since.as_deref());
            let filter = Filter::of(agent, tool, since, *refused, *outside);
            let filter = filter.map_err(|field| {
                let words = format!("`{field}` is not of the form that `syscap log show` takes");
                Problem::new(400, "bad_field", words)
            })?;
            let page = timeline::page(home, &filter, before.map(Seq::new));
            page.map_err(|failure| problem(&failure))
        }
        Wanted::Record(seq) => {
            let record =
                timeline::one(home, Seq::new(*seq)).map_err(|failure| problem(&failure))?;
            record.ok_or_else(|| Problem::new(404, "unknown", "the log has no such record"))
        }
        _ => Err(Problem::new(404, "unknown", "no such panel")),
    }
}

fn on_record(seq: Seq) -> String {
    Object::new().uint("record", seq.get()).finish()
}

/// What was shown of something is not what is there.
fn is_another() -> Problem {
    Problem::new(409, "changed", "it is another by now: look at it again")
}

pub(super) fn gone(words: &str) -> Problem {
    Problem::new(503, "no_server", words)
}

/// A failure of a command, for the page.
pub(super) fn problem(failure: &Failure) -> Problem {
    let (status, reason) = match failure {
        Failure::Usage { .. } => (409, "over"),
        Failure::Refused(refused) => (409, refused.reason().name()),
        Failure::Home { .. } | Failure::Holder(_) => (503, "no_server"),
        _ => (500, "failed"),
    };
    Problem::new(status, reason, failure.to_string())
}
