//! One check: its steps, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{PipeReader, PipeWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::Grade;
use crate::judge::{Found, judge};
use crate::look::seen;
use crate::set::Check;
use crate::subject::{Answer, Fault, Subject};
use crate::world::World;

pub(crate) type Table = Map<String, Value>;

/// Budgets and life of a token that the set says nothing of.
const CALLS: u64 = 1_000;
const BYTES: u64 = 1 << 20;
const UNITS: u64 = 1_000_000;
const LIFE_MS: u64 = 3_600_000;
/// How long behind the check's clock a log may begin.
const BEGINS_MS: u64 = 600_000;
/// Longest text that a set can ask for by `{x N}`.
const FILL_MAX: usize = 1 << 20;

/// A subject that runs in this process: it reads requests, and writes answers.
pub type Host = fn(PipeReader, PipeWriter);

/// How the runner starts and judges.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// The subject's command.
    pub command: Vec<String>,
    /// The subject, where it is no command. No signal reaches it: checks of a kill, and of a full
    /// disk, are unproved.
    pub here: Option<Host>,
    /// A second verifier of exports: a command that takes a folder.
    pub second: Vec<String>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The URL of an MCP gateway that speaks HTTP. Without a command it runs already: nobody can
    /// kill it, and checks of a kill are unproved.
    pub url: Option<String>,
    /// The words by which this program is the MCP server behind a gateway; a folder follows.
    pub own: Vec<String>,
    /// The folder of the server behind a gateway that runs already.
    pub upstream: PathBuf,
    /// The file for the subject's standard error; none by default.
    pub log: Option<PathBuf>,
}

impl Means {
    /// True if the subject runs already, and the runner can't end it.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.command.is_empty() && self.here.is_none()
    }
}

/// Why a check went no further.
pub(crate) enum Stop {
    Fault(Fault),
    /// Something that must never be seen was seen.
    Fails(String),
    /// The check shows nothing.
    Unproved(String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A call that was sent.
pub(crate) struct Sent {
    id: u64,
    call: Table,
    pub(crate) answer: Option<Answer>,
}

pub(crate) struct Run<'r, 's> {
    means: &'r Means,
    subject: &'r mut Option<Subject>,
    pub(crate) world: World<'s>,
    tokens: BTreeMap<String, String>,
    /// How long they live, in ms.
    lives: BTreeMap<String, u64>,
    pub(crate) sent: BTreeMap<String, Sent>,
    /// Effects that the subject says it has made: by what would show them.
    pub(crate) said: BTreeMap<String, u64>,
    keys: BTreeSet<String>,
    pub(crate) exports: BTreeMap<String, Found>,
    pub(crate) was_killed: bool,
    pub(crate) was_raced: bool,
    calls: u64,
}

/// Starts a subject; what it claims.
pub(crate) fn start(
    means: &Means,
    blocks: Option<u64>,
    place: Option<&World<'_>>,
) -> Result<(Subject, Value), Fault> {
    let mut subject = Subject::spawn(means, blocks)?;
    let ask = place.map_or_else(Table::new, place_of);
    let Answer::Done(said) = subject.ask("start", ask)? else {
        return Err(Fault::Form("`start` was refused".to_owned()));
    };
    let pids = said.get("pids").and_then(Value::as_array);
    let pids = pids.ok_or_else(|| Fault::Form("`start` names no `pids`".to_owned()))?;
    subject.names(pids.iter().filter_map(Value::as_u64).collect());
    Ok((subject, said))
}

fn place_of(world: &World<'_>) -> Table {
    let text = |path: &Path| Value::from(path.to_string_lossy().into_owned());
    Table::from_iter([
        ("folder".to_owned(), text(&world.home())),
        ("files".to_owned(), text(&world.files())),
        ("server".to_owned(), world.url().into()),
        ("clock".to_owned(), world.clock().into()),
    ])
}

/// The second look at a check that passed, when all have ended: an effect may come late.
pub(crate) struct Late<'s> {
    world: World<'s>,
    never: Vec<Table>,
}

impl Late<'_> {
    /// Why it is no pass after all.
    pub(crate) fn look(&self) -> Result<Option<String>, Fault> {
        if let Some(path) = self.world.changed()? {
            return Ok(Some(format!("{path} was touched after the end")));
        }
        for never in &self.never {
            // What is of answers and exports has not changed.
            if matches!(seen(&self.world, never), Ok(Some(true))) {
                return Ok(Some(format!("seen after the end: {}", Value::Object(never.clone()))));
            }
        }
        Ok(None)
    }
}

/// Runs a check. A fault of the runner's own is an error.
pub(crate) fn run<'s>(
    check: &Check,
    means: &Means,
    subject: &mut Option<Subject>,
    world: World<'s>,
) -> Result<(Grade, Late<'s>), Fault> {
    let mut run = Run {
        means,
        subject,
        world,
        tokens: BTreeMap::new(),
        lives: BTreeMap::new(),
        sent: BTreeMap::new(),
        said: BTreeMap::new(),
        keys: BTreeSet::new(),
        exports: BTreeMap::new(),
        was_killed: false,
        was_raced: false,
        calls: 0,
    };
    let grade = match run.all(check) {
        Ok(()) => Grade::Pass,
        Err(Stop::Fails(why)) => Grade::Fail(why),
        Err(Stop::Unproved(why)) => Grade::Unproved(why),
        Err(Stop::Fault(fault @ Fault::Harness(_))) => return Err(fault),
        Err(Stop::Fault(fault)) => {
            *run.subject = None;
            Grade::Fault(fault)
        }
    };
    // What it is still at must not be in the way of the next check.
    if run.sent.values().any(|sent| sent.answer.is_none()) {
        *run.subject = None;
    }
    Ok((grade, Late { world: run.world, never: check.never.clone() }))
}

pub(crate) fn bad(check: &Table) -> Stop {
    Stop::Fault(Fault::Harness(format!(
        "the set has no such step: {}",
        Value::Object(check.clone())
    )))
}

pub(crate) fn text<'a>(of: &'a Table, key: &str) -> Result<&'a str, Stop> {
    of.get(key).and_then(Value::as_str).ok_or_else(|| bad(of))
}

/// A text in which `{x 9}` stands for nine times `x`.
fn filled(text: &str) -> String {
    let parts = text.split_once("{x ").and_then(|(before, rest)| {
        let (count, behind) = rest.split_once('}')?;
        let count = count.parse::<usize>().ok().filter(|count| *count <= FILL_MAX)?;
        Some(format!("{before}{}{behind}", "x".repeat(count)))
    });
    parts.unwrap_or_else(|| text.to_owned())
}

/// A token that is not quite one; `None` where the set has another word.
fn altered(token: Value, how: &str) -> Option<Value> {
    let text = token.as_str()?;
    let mut letters: Vec<char> = text.chars().collect();
    match how {
        "" => return Some(token),
        "cut" => drop(letters.pop()),
        "longer" => letters.push('0'),
        "changed" => {
            let last = letters.last_mut()?;
            *last = if *last == '0' { '1' } else { '0' };
        }
        _ => return None,
    }
    Some(letters.into_iter().collect::<String>().into())
}

impl Run<'_, '_> {
    fn subject(&mut self) -> Result<&mut Subject, Stop> {
        self.subject.as_mut().ok_or(Stop::Fault(Fault::Died))
    }

    fn all(&mut self, check: &Check) -> Result<(), Stop> {
        if self.subject.is_none() {
            *self.subject = Some(start(self.means, None, None)?.0);
        }
        let mut reset = place_of(&self.world);
        reset.insert("seed".to_owned(), 7.into());
        reset.insert("policy".to_owned(), check.policy.clone());
        reset.insert("approvers".to_owned(), check.approvers.clone());
        self.done("reset", reset)?;
        for step in &check.steps {
            self.step(step)?;
        }
        self.world.still();
        self.answers()?;
        if let Some(subject) = self.subject.as_mut() {
            subject.is_quiet()?;
        }
        self.effects_are_within()?;
        for never in &check.never {
            self.never(never)?;
        }
        check.must.iter().try_for_each(|must| self.must(must))
    }

    /// Asks for what must be done for the check to show anything.
    fn done(&mut self, verb: &str, rest: Table) -> Result<Value, Stop> {
        match self.subject()?.ask(verb, rest)? {
            Answer::Done(value) => Ok(value),
            Answer::Refused(_) => Err(Stop::Unproved(format!("`{verb}` was refused"))),
            Answer::Unsupported => Err(Stop::Unproved(format!("it has no `{verb}`"))),
        }
    }

    fn step(&mut self, step: &Table) -> Result<(), Stop> {
        let has = |key: &str| step.contains_key(key);
        let said = |key: &str| text(step, key);
        let number = |key: &str| step.get(key).and_then(Value::as_i64).ok_or_else(|| bad(step));
        let world = &mut self.world;
        if has("grant") {
            return self.grant(step);
        } else if has("call") || has("together") {
            return self.calls(step);
        } else if has("approve") {
            return self.approve(step);
        } else if has("revoke") {
            let token = self.token(said("revoke")?);
            return self.done("revoke", Table::from_iter([("token".to_owned(), token)])).map(drop);
        } else if has("advance") {
            let rest = Table::from_iter([("ms".to_owned(), number("advance")?.into())]);
            return self.done("advance", rest).map(drop);
        } else if has("folder") {
            world.folder(said("folder")?)?;
        } else if has("put") {
            world.put(said("put")?, said("text")?)?;
        } else if has("link") {
            world.link(said("link")?, &world.placed(said("to")?))?;
        } else if has("hard_link") {
            world.hard_link(said("hard_link")?, said("to")?)?;
        } else if has("race") {
            world.race(said("race")?, said("with")?);
            self.was_raced = true;
        } else if has("still") {
            world.still();
        } else if has("hold") {
            world.hold(said("hold")?);
        } else if has("release") {
            world.release(said("release")?);
        } else if has("hit") {
            return self.hit(said("hit")?);
        } else if has("wait") {
            return self.wait(said("wait")?);
        } else if has("cut") {
            let bytes = number("cut")?;
            world.cut_home(u64::try_from(bytes).map_err(|_| bad(step))?)?;
        } else {
            return self.life(step);
        }
        Ok(())
    }

    /// Waits until a tool asks for a page, or a call is answered without that.
    fn hit(&mut self, path: &str) -> Result<(), Stop> {
        let deadline = Instant::now().checked_add(self.means.timeout);
        while !self.world.wait(path, Duration::from_millis(20)) {
            let ids: Vec<u64> = self.sent.values().map(|sent| sent.id).collect();
            let subject = self.subject()?;
            subject.is_quiet()?;
            let is_late = deadline.is_none_or(|at| Instant::now() > at);
            if is_late || ids.iter().any(|id| subject.has_answered(*id)) {
                return Err(Stop::Unproved(format!("nothing asked for {path}")));
            }
        }
        Ok(())
    }

    /// Steps of the subject's life, and what is looked at meanwhile.
    fn life(&mut self, step: &Table) -> Result<(), Stop> {
        let here = || Stop::Unproved("it runs in this process".to_owned());
        if step.contains_key("kill") {
            if self.subject.as_ref().is_some_and(|subject| !subject.is_apart()) {
                return Err(here());
            }
            self.was_killed = true;
            let killed = self.subject.take().map_or(Ok(()), |mut subject| subject.kill());
            self.sent.values_mut().for_each(|sent| {
                sent.answer.get_or_insert(Answer::Refused(None));
            });
            return killed.map_err(Stop::Fault);
        } else if step.contains_key("start") {
            let blocks = step.get("blocks").and_then(Value::as_u64);
            if blocks.is_some() && self.means.here.is_some() {
                return Err(here());
            }
            let may_fail = step.get("may_fail").and_then(Value::as_bool).unwrap_or(false);
            match start(self.means, blocks, Some(&self.world)) {
                Ok((subject, _)) => *self.subject = Some(subject),
                // A home that is damaged need not open.
                Err(Fault::Harness(why)) => return Err(Fault::Harness(why).into()),
                Err(_) if may_fail => *self.subject = None,
                Err(fault) => return Err(fault.into()),
            }
        } else if step.contains_key("stop") {
            self.answers()?;
            let stopped = self.subject.take().map(|mut subject| subject.stop());
            match stopped {
                Some(Ok(Answer::Unsupported)) => {
                    return Err(Stop::Unproved("it has no `stop`".to_owned()));
                }
                Some(Err(fault)) => return Err(fault.into()),
                _ => {}
            }
        } else if step.contains_key("export") {
            return self.export(text(step, "export")?);
        } else if let Some(Value::Object(never)) = step.get("never") {
            return self.never(never);
        } else if let Some(Value::Object(must)) = step.get("must") {
            return self.must(must);
        } else {
            return Err(bad(step));
        }
        Ok(())
    }

    /// A token by the name that the check has for it; any other text is sent as it is.
    fn token(&self, name: &str) -> Value {
        self.tokens.get(name).map_or(name, String::as_str).into()
    }

    fn grant(&mut self, step: &Table) -> Result<(), Stop> {
        let name = text(step, "grant")?.to_owned();
        let mut rest = step.clone();
        rest.remove("grant");
        let parent = rest.get("parent").and_then(Value::as_str).map(|name| self.token(name));
        let is_child = parent.is_some();
        rest.insert("parent".to_owned(), parent.unwrap_or(Value::Null));
        rest.entry("agent").or_insert("a".into());
        // A child's life ends before its parent's, also where the clock goes on between the two.
        let above = step.get("parent").and_then(Value::as_str).and_then(|of| self.lives.get(of));
        let life = above.map_or(LIFE_MS, |life| life / 2);
        let life = rest.entry("life_ms").or_insert(life.into()).as_u64();
        self.lives.insert(name.clone(), life.unwrap_or(LIFE_MS));
        rest.entry("depth").or_insert(0.into());
        let mut budget = json!({"calls": CALLS, "bytes": BYTES, "units": UNITS});
        if let (Some(Value::Object(said)), Some(all)) = (rest.get("budget"), budget.as_object_mut())
        {
            all.extend(said.clone());
        }
        rest.insert("budget".to_owned(), budget);
        match self.subject()?.ask("grant", rest)? {
            Answer::Done(value) => {
                let token = value.get("token").and_then(Value::as_str);
                let form = || Fault::Form("`grant` names no `token`".to_owned());
                self.tokens.insert(name, token.ok_or_else(form)?.to_owned());
                Ok(())
            }
            // One that asks for more than it may have need not be there.
            Answer::Refused(_) if is_child && step.contains_key("wide") => Ok(()),
            Answer::Refused(_) => Err(Stop::Unproved("`grant` was refused".to_owned())),
            Answer::Unsupported => Err(Stop::Unproved("it has no `grant`".to_owned())),
        }
    }

    /// One call, so many of them after each other, or several at once.
    fn calls(&mut self, step: &Table) -> Result<(), Stop> {
        let times = step.get("times").and_then(Value::as_u64).unwrap_or(1);
        let is_begun = step.contains_key("begin");
        let several = match step.get("together") {
            Some(Value::Array(calls)) => {
                calls.iter().filter_map(Value::as_object).cloned().collect()
            }
            Some(Value::Object(call)) => {
                let times = usize::try_from(times).map_err(|_| bad(step))?;
                vec![call.clone(); times]
            }
            _ => Vec::new(),
        };
        if several.is_empty() {
            // Of one whose store is broken the process may end at any moment.
            let may_fault = step.contains_key("may_fault");
            for _ in 0..times {
                let sent = self.send(step);
                let done = sent.and_then(|label| if is_begun { Ok(()) } else { self.wait(&label) });
                match done {
                    Err(Stop::Fault(Fault::Died)) if may_fault => {
                        *self.subject = None;
                        return Ok(());
                    }
                    done => done?,
                }
            }
            return Ok(());
        }
        let labels: Vec<String> =
            several.iter().map(|call| self.send(call)).collect::<Result<_, _>>()?;
        labels.iter().try_for_each(|label| self.wait(label))
    }

    fn send(&mut self, call: &Table) -> Result<String, Stop> {
        self.calls = self.calls.saturating_add(1);
        let mut rest = Table::new();
        let token = self.token(text(call, "by")?);
        let altered = altered(token, call.get("alter").and_then(Value::as_str).unwrap_or(""));
        rest.insert("token".to_owned(), altered.ok_or_else(|| bad(call))?);
        rest.insert("tool".to_owned(), text(call, "call")?.into());
        let agent = call.get("agent").cloned().unwrap_or_else(|| "a".into());
        rest.insert("agent".to_owned(), agent);
        let mut as_sent = call.clone();
        for key in ["args", "text", "key"] {
            if let Some(value) = call.get(key) {
                rest.insert(key.to_owned(), self.placed(value));
                as_sent.insert(key.to_owned(), self.placed(value));
            }
        }
        if !rest.contains_key("args") && !rest.contains_key("text") {
            return Err(bad(call));
        }
        let label = call.get("label").and_then(Value::as_str);
        let label = label.map_or_else(|| format!("#{}", self.calls), str::to_owned);
        let id = self.subject()?.begin("call", rest)?;
        self.sent.insert(label.clone(), Sent { id, call: as_sent, answer: None });
        Ok(label)
    }

    /// A value with the places that only the runner knows.
    fn placed(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let text = text.replace("{n}", &self.calls.to_string());
                Value::String(self.world.placed(&filled(&text)))
            }
            Value::Object(map) => {
                map.iter().map(|(key, one)| (key.clone(), self.placed(one))).collect()
            }
            other => other.clone(),
        }
    }

    fn wait(&mut self, label: &str) -> Result<(), Stop> {
        let Some(sent) = self.sent.get(label).filter(|sent| sent.answer.is_none()) else {
            return Ok(());
        };
        let (id, call) = (sent.id, sent.call.clone());
        let answer = self.subject()?.wait(id)?;
        match &answer {
            Answer::Done(value) => {
                if value.to_string().contains(&self.world.secret) {
                    let told = Value::Object(call);
                    return Err(Stop::Fails(format!("{told} was told what lies out of reach")));
                }
                self.believe(&call);
            }
            Answer::Refused(_) => {}
            Answer::Unsupported => return Err(Stop::Unproved("it has no `call`".to_owned())),
        }
        if let Some(sent) = self.sent.get_mut(label) {
            sent.answer = Some(answer);
        }
        Ok(())
    }

    /// Takes note of an effect that the subject says it has made.
    fn believe(&mut self, call: &Table) {
        let argument = |name: &str| call.get("args").and_then(|args| args.get(name));
        let effect = match call.get("call").and_then(Value::as_str) {
            Some("write") => {
                argument("path").and_then(Value::as_str).map(|path| format!("file {path}"))
            }
            Some("get") => {
                argument("page").and_then(Value::as_str).map(|page| format!("hit /{page}"))
            }
            Some("count") => {
                argument("by").and_then(Value::as_u64).map(|by| format!("hit /count/{by}"))
            }
            _ => None,
        };
        // A key that was used is answered again, without another effect.
        let key = call.get("key").and_then(Value::as_str).map(str::to_owned);
        let is_first = key.is_none_or(|key| self.keys.insert(key));
        if let Some(effect) = effect.filter(|_| is_first) {
            let times = self.said.entry(effect).or_default();
            *times = times.saturating_add(1);
        }
    }

    /// Takes the answers that nobody has waited for.
    fn answers(&mut self) -> Result<(), Stop> {
        let labels: Vec<String> = self.sent.keys().cloned().collect();
        labels.iter().try_for_each(|label| self.wait(label))
    }

    fn approve(&mut self, step: &Table) -> Result<(), Stop> {
        let label = text(step, "approve")?;
        let ask = match self.sent.get(label).and_then(|sent| sent.answer.as_ref()) {
            Some(Answer::Refused(Some(ask))) => ask.clone(),
            Some(_) => return Err(Stop::Unproved("the call did not wait for a person".to_owned())),
            // Any other text is sent as it is.
            None => label.to_owned(),
        };
        let said = |key: &str, or: &str| step.get(key).cloned().unwrap_or_else(|| or.into());
        let rest = Table::from_iter([
            ("ask".to_owned(), ask.into()),
            ("answer".to_owned(), said("answer", "yes")),
            ("by".to_owned(), said("by", "ann")),
        ]);
        match self.subject()?.ask("approve", rest)? {
            Answer::Refused(_) if step.contains_key("may") => Ok(()),
            Answer::Refused(_) => Err(Stop::Unproved("`approve` was refused".to_owned())),
            Answer::Unsupported => Err(Stop::Unproved("it has no `approve`".to_owned())),
            Answer::Done(_) => Ok(()),
        }
    }

    fn export(&mut self, name: &str) -> Result<(), Stop> {
        let folder = self.world.export(name);
        let to = Value::from(folder.to_string_lossy().into_owned());
        self.done("export", Table::from_iter([("to".to_owned(), to)]))?;
        let found = judge(&folder, &self.means.second)?;
        if found.verdict == "tampered" || found.verdict == "unreadable" {
            return Err(Stop::Fails(format!("the export {name} is {}", found.verdict)));
        }
        let clock = self.world.clock();
        if !(clock..clock.saturating_add(BEGINS_MS)).contains(&found.first_ms) {
            return Err(Stop::Fails(format!("the export {name} does not begin with this check")));
        }
        self.exports.insert(name.to_owned(), found);
        Ok(())
    }
}
