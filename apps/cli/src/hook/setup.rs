//! `syscap hook --setup`: the client's tools on record, a token for them, and the client's settings.

use std::{env, path::Path, sync::Arc, time::Duration};

use syscap::format::{
    Amounts, Dimension, EffectClass, Extra, Label, Manifest, ObjectId, Param, ParamType,
    RESULT_BYTES_MAX, Reason, Refused, Role, TokenId, ToolId, TxOutcome,
};
use syscap::host::MACHINE_ROOT;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::syscalls::stated::{ArgumentKind, Declared, PathRoot, Stated};
use syscap::view::{RUN_MARK, ToolDetail, Whose};
use syscap::{Beside, Grant, Inspection, Runtime};

use super::client::Client;
use super::user_settings::{Place, UserSettings, Written};
use super::{Hook, version};
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::output::{Object, Out, array, plain, word_of};
use crate::signing::{self, Hand};
use crate::{runtime, terminal, tools};

/// How much longer the client waits than the hook takes at most, in seconds: it must start, and
/// say that it denies the use.
const SPARE_SECONDS: u64 = 20;
/// The amount reserved beyond the limit.
const SLACK_US: u64 = 1_000_000;

impl Hook {
    pub(super) fn set_up(&self, out: &mut Out) -> Ended {
        if self.inside.is_some() && self.token.is_none() {
            let advice = "is granted by `syscap run` alone".to_owned();
            return Err(Failure::Usage { what: "--inside".to_owned(), advice });
        }
        // `syscap run` writes the settings of a client that it starts.
        let settings = match self.inside {
            Some(_) => None,
            None => Some(self.settings(&self.command()?)),
        };
        // What can't be written is seen before anything is signed.
        let writes = settings.as_deref().filter(|_| !self.print);
        let place = self.place();
        let written =
            writes.map(|text| UserSettings::with(self.client, place, text)).transpose()?;
        if let Some(file) = &written
            && !self.agreed(file)?
        {
            return Ok(Exit::Failed);
        }
        let hands = self.hands()?;
        runtime::with(&self.home, |access| self.prepare(&hands, access, Label::PUBLIC).map(drop))?;
        match (&written, &settings) {
            (Some(file), _) => {
                tell_of(file, file.write()?);
                let home = word_of(&self.home);
                tell(&format!("next: restart the client; see its calls: syscap log show {home}"));
            }
            (None, Some(text)) => out.line(text)?,
            (None, None) => return Ok(Exit::Done),
        }
        if self.client == Client::ClaudeCode
            && let Some(problem) = version::installed().and_then(version::Version::lets_tools_run)
        {
            diagnose(&format!("warning: {problem}"));
        }
        Ok(Exit::Done)
    }

    /// Takes out what a set-up for this home has put into the client's settings.
    pub(super) fn take_out(&self) -> Ended {
        let home = self.home.canonicalize().unwrap_or_else(|_| self.home.clone());
        let file = UserSettings::without(self.client, self.place(), &home)?;
        for entry in file.edited() {
            diagnose(&format!("edited since, and left: {}", plain(entry)));
        }
        if file.change().is_none() && !file.edited().is_empty() {
            return Ok(Exit::Failed);
        }
        if file.change().is_none() {
            tell(&format!("{} has no hook of {}", file.path().display(), home.display()));
            return Ok(Exit::Done);
        }
        if !self.agreed(&file)? {
            return Ok(Exit::Failed);
        }
        file.write()?;
        tell(&format!(
            "the hook is taken out of {}: the client's tools run without syscap from its next start on; \
             the token stands: syscap token list {}",
            file.path().display(),
            word_of(&self.home)
        ));
        Ok(Exit::Done)
    }

    fn place(&self) -> Place {
        if self.project { Place::Project } else { Place::User }
    }

    /// Shows what changes in the file, and asks at a terminal; elsewhere `--yes` is needed.
    fn agreed(&self, file: &UserSettings) -> Result<bool, Failure> {
        let Some((before, after)) = file.change() else { return Ok(true) };
        let path = file.path().display();
        if self.project {
            diagnose(&format!(
                "warning: {path}: whoever may write this folder takes the hook off, an agent that works \
                 here among them"
            ));
        }
        if self.yes {
            return Ok(true);
        }
        if !terminal::is_there() {
            let advice = "would be changed, and there is no terminal to ask at: --yes does it, --print \
                          shows what belongs there";
            return Err(Failure::Usage { what: path.to_string(), advice: advice.to_owned() });
        }
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let mut aside = Out::aside();
        aside.text(&format!("{path}:"))?;
        let difference = tools::between(&lines(before), &lines(after));
        difference.unified.iter().try_for_each(|line| aside.text(line))?;
        aside.flush()?;
        let answer = terminal::ask_shown("Change it so? y, n: ").map_err(Failure::Stream)?;
        Ok(matches!(answer.trim(), "y" | "yes"))
    }

    /// The signers that [`Hook::prepare`] needs.
    pub(crate) fn hands(&self) -> Result<Hands, Failure> {
        let operator = signing::hand(&self.home, Role::Operator)?;
        Ok(Hands { operator, issuer: signing::hand(&self.home, Role::Issuer)? })
    }

    /// The block for the client's settings, with this command.
    pub(crate) fn settings(&self, command: &str) -> String {
        self.client.settings(command, self.patience)
    }

    /// The client's tools on record, and a token for them. Sessions by one that is new begin with
    /// that label.
    pub(crate) fn prepare(
        &self,
        hands: &Hands,
        access: &Runtime,
        begins: Label,
    ) -> Result<TokenId, Failure> {
        // What is named is checked before anything is put on record.
        if self.token.is_none() || !self.roots.is_empty() {
            drop(self.of_files()?);
        }
        let known = self.client.known().iter().map(|known| known.name.to_owned());
        let names: Vec<String> = known.chain(self.named(access)?).collect();
        let others = self.client.other().map(|tool| Ok(self.manifest_of_others(tool)));
        let manifests: Result<Vec<Manifest>, Failure> = names
            .iter()
            .map(|name| {
                let advice = "is too long a name for a tool".to_owned();
                let bad = || Failure::Usage { what: name.clone(), advice };
                Ok(self.manifest(name, self.tool(name).ok_or_else(bad)?))
            })
            .chain(others)
            .collect();
        let tools = pin(access, &hands.operator, manifests?)?;
        if !self.roots.is_empty() {
            self.declare(access, &hands.operator, &names)?;
        }
        let token = match self.own_token()? {
            Some(token) => token,
            None => {
                let (shell, files) = (Self::of_shell()?, self.of_files()?);
                let mut grant = Grant::to(self.agent.as_str()).begins_with(begins);
                for (name, tool) in names.iter().zip(&tools) {
                    let scopes = match self.client.file_argument(name) {
                        _ if self.is_black_box(name) => Some(&shell),
                        Some(_) => Some(&files),
                        None => None,
                    };
                    grant = match scopes {
                        Some(scopes) => grant.tool_with(tool.clone(), scopes.clone()),
                        None => grant.tools([tool.as_str()]),
                    };
                }
                if let Some(others) = self.client.other() {
                    grant = grant.tools([others.as_str()]);
                }
                if self.workspace.is_some() {
                    // It is a run's alone.
                    grant = grant.tools([RUN_MARK]);
                }
                let grant = grant.budget(self.budget());
                hands.issuer.issue(access, &grant.expires_in(self.expires))?
            }
        };
        if self.trust_results {
            diagnose(&format!(
                "warning: the results of {} tools count as trusted: what a stranger wrote into \
                 them counts as the operator's word",
                tools.len()
            ));
        }
        tell(&format!("{} tools on record, token {token}", tools.len()));
        if self.roots.is_empty() {
            tell("not limited: Read, Write and Edit may name any path; limit them: --root FOLDER");
        }
        Ok(token)
    }

    /// States what the client's tools for files name: a path of this machine, which the token's
    /// scopes hold to the roots.
    fn declare(&self, access: &Runtime, hand: &Hand, names: &[String]) -> Result<(), Failure> {
        let on_record = access.manifests(Whose::All)?;
        let mut set = Vec::new();
        for name in names {
            let (Some(argument), Some(tool)) =
                (self.client.file_argument(name), self.client.tool(name))
            else {
                continue;
            };
            let bad = |advice: String| Failure::Usage { what: name.clone(), advice };
            let root = PathRoot::parse(&format!("{MACHINE_ROOT}=/"))
                .ok_or_else(|| bad("has no root".to_owned()))?;
            let declared = Declared::new(ArgumentKind::Path(vec![root]));
            for manifest in on_record.iter().filter(|manifest| manifest.tool == tool) {
                let mut stated = Stated::of(manifest).map_err(|error| bad(error.to_string()))?;
                if stated.arguments.get(argument) != Some(&declared) {
                    stated.arguments.insert(Box::from(argument), declared.clone());
                    set.push(stated.on(manifest).map_err(|error| bad(error.to_string()))?);
                }
            }
        }
        if !set.is_empty() {
            tools::stated::record(access, hand, &set)?;
        }
        Ok(())
    }

    /// The tool as the kernel knows it: with any arguments, and results that are a stranger's
    /// words.
    pub(super) fn manifest(&self, name: &str, tool: ToolId) -> Manifest {
        let effect = self.effect(name);
        let label = if self.trust_results { Label::PUBLIC } else { Label::UNTRUSTED };
        let mut manifest = Manifest::new(tool, effect).labelled(label);
        let boundary = if self.is_shell_inside(name) { " inside a contained run" } else { "" };
        let description = format!("{name}, which {} runs itself{boundary}.", self.client.prefix());
        manifest = manifest.described(name, &description);
        manifest.extra = Extra::Taken;
        if self.is_black_box(name) || self.is_shell_inside(name) {
            let command = Param::required("command", ParamType::Code, "What the shell runs.");
            manifest = manifest.param(command);
        }
        if self.is_black_box(name) {
            manifest = manifest.param(Param::optional(
                "place",
                ParamType::Map,
                "Where: the hook's own word.",
            ));
        }
        self.limited(manifest)
    }

    /// The tool for all of the client's own that the list does not have: what such a one does is not
    /// known, and so it is asked about each time.
    pub(super) fn manifest_of_others(&self, tool: ToolId) -> Manifest {
        let client = self.client.prefix();
        let label = if self.trust_results { Label::PUBLIC } else { Label::UNTRUSTED };
        let about = format!("A tool that {client} runs itself, and that is not known here.");
        let manifest = Manifest::new(tool, EffectClass::ExternalWrite).labelled(label);
        let manifest = manifest.described("other", &about);
        let manifest =
            manifest.param(Param::required("tool", ParamType::Text, "The client's name for it."));
        let input = Param::required("input", ParamType::Code, "What it is given, as JSON.");
        self.limited(manifest.param(input))
    }

    fn limited(&self, mut manifest: Manifest) -> Manifest {
        let ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let us = ms.saturating_mul(1_000).saturating_add(SLACK_US);
        manifest.wall_ms_max = Some(ms);
        manifest.hold = manifest.hold.with(Dimension::WallUs, us);
        manifest.result_bytes_max = u64::try_from(RESULT_BYTES_MAX).unwrap_or(u64::MAX);
        manifest
    }

    /// The command that the client runs.
    fn command(&self) -> Result<String, Failure> {
        let program = env::current_exe().map_err(Failure::Stream)?;
        Ok(format!("{} {}", quoted(&path(&program)?), self.words()?))
    }

    /// The command that accepts a tool of the client's as the hook describes it now, and issues no
    /// token.
    pub(super) fn accepting(&self, name: &str, token: TokenId) -> Result<String, Failure> {
        let more = match self.token {
            Some(_) => String::new(),
            None => format!(" --token {token}"),
        };
        Ok(format!("syscap {}{more} --setup --print --tool {}", self.words()?, quoted(name)))
    }

    /// True if the set-up grants the tool of that name by its list.
    pub(super) fn is_of_setup(&self, name: &str) -> bool {
        let listed = self.client.known_as(name).is_some() || self.client.is_other(name);
        listed && !self.in_run
    }

    /// The command that puts the client's tools on record as they are listed now, and issues a token for
    /// them.
    pub(super) fn setting_up(&self) -> Result<String, Failure> {
        Ok(format!("syscap {} --setup", self.words()?))
    }

    fn words(&self) -> Result<String, Failure> {
        let home = self.home.canonicalize().map_err(Failure::file(&self.home))?;
        let mut words = vec!["hook".to_owned(), path(&home)?];
        words.extend(["--agent".to_owned(), self.agent.to_string()]);
        words.extend(["--client".to_owned(), self.client.option().to_owned()]);
        if let Some(token) = self.own_token()? {
            words.extend(["--token".to_owned(), token.to_string()]);
        }
        if let Some(inside) = self.inside {
            words.extend(["--inside".to_owned(), inside.option().to_owned()]);
        }
        for rule in &self.classes {
            words.extend(["--class".to_owned(), rule.text.clone()]);
        }
        words.extend(["--limit".to_owned(), format!("{}s", self.limit.as_secs())]);
        words.extend(["--patience".to_owned(), format!("{}s", self.patience.as_secs())]);
        words.extend(["--ask".to_owned(), self.ask.name().to_owned()]);
        if self.trust_results {
            words.push("--trust-results".to_owned());
        }
        if self.allow {
            words.push("--allow".to_owned());
        }
        if self.people.are_absent() {
            words.push("--headless".to_owned());
        }
        let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        Ok(quoted.join(" "))
    }
}

fn tell_of(file: &UserSettings, written: Written) {
    let path = file.path().display();
    match written {
        Written::Unchanged => tell(&format!("{path} has the hook already")),
        Written::New => tell(&format!("the hook is set up in {path}")),
        Written::Changed => {
            let backup = file.path().with_file_name(file.backup());
            let backup = backup.display();
            tell(&format!(
                "the hook is set up in {path}; as it was before the first time: {backup}"
            ));
        }
        Written::Gone => {}
    }
}

/// The signers of the client's tools, and of the token.
pub(crate) struct Hands {
    operator: Hand,
    issuer: Hand,
}

/// Puts tools on record; a definition that has changed is accepted: the operator asks for it.
fn pin(access: &Runtime, hand: &Hand, manifests: Vec<Manifest>) -> Result<Vec<ToolId>, Failure> {
    let offered = manifests.clone();
    let offers = access.provide(manifests, Arc::new(Elsewhere))?;
    let with = |standing: Standing| {
        let offers = offers.iter().filter(move |offer| offer.standing == standing);
        offers.map(|offer| offer.tool().clone()).collect::<Vec<_>>()
    };
    if let Some(taken) = with(Standing::Taken).first() {
        let advice = "is the name of another tool here".to_owned();
        return Err(Failure::Usage { what: taken.to_string(), advice });
    }
    let changed = [with(Standing::Changed), with(Standing::New)].concat();
    match hand {
        _ if changed.is_empty() => {}
        Hand::Holder => drop(access.accept(&changed)?),
        Hand::Person(person) => {
            let offers = changed.iter().map(|tool| access.tool(tool));
            let offers: Vec<ToolDetail> = offers.collect::<Result<_, _>>()?;
            // Nothing else than what was offered here: another may offer tools of these names too.
            let ours = offers.into_iter().filter_map(|detail| detail.offered);
            let ours = ours.filter(|manifest| offered.iter().any(|own| is_of(manifest, own)));
            let accepted: Vec<(ToolId, ObjectId)> =
                ours.map(|manifest| (manifest.tool.clone(), manifest.id())).collect();
            if accepted.len() < changed.len() {
                let what = format!("{} tools", changed.len().saturating_sub(accepted.len()));
                let advice = "another process offers others of these names".to_owned();
                return Err(Failure::Usage { what, advice });
            }
            let change = |log: &Inspection| tools::changed(log.tools_change(&accepted, &[]));
            let beside = Beside::Accepted(accepted.clone());
            person.submit(access, change, &beside, Failure::from)?;
        }
    }
    let tools: Vec<ToolId> = offers.iter().map(|offer| offer.tool().clone()).collect();
    access.withdraw(&tools)?;
    Ok(tools)
}

/// True if a manifest is one that was offered here: limits are the home's to complete.
fn is_of(manifest: &Manifest, own: &Manifest) -> bool {
    let (hold, wall_ms_max) = (own.hold, own.wall_ms_max);
    Manifest { hold, wall_ms_max, ..manifest.clone() } == *own
}

/// A provider for tools that do not run here.
struct Elsewhere;

impl Provider for Elsewhere {
    fn run(&self, _: HostCall) -> HostRan {
        let result = Err(Refused::new(Reason::ProviderGone));
        HostRan::new(result, TxOutcome::NoOp, Amounts::ZERO)
    }
}

impl Client {
    /// Its name on the command line.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::GeminiCli => "gemini-cli",
        }
    }

    /// The block for its settings.
    fn settings(self, command: &str, patience: Duration) -> String {
        let hook = Object::new().text("type", "command").text("command", command);
        let seconds = patience.as_secs().saturating_add(SPARE_SECONDS);
        let (events, every, timeout) = match self {
            Self::ClaudeCode => {
                (&["PreToolUse", "PostToolUse", "PostToolUseFailure"][..], "*", seconds)
            }
            Self::GeminiCli => {
                (&["BeforeTool", "AfterTool"][..], ".*", seconds.saturating_mul(1_000))
            }
        };
        let hook = hook.uint("timeout", timeout);
        let entry = |event: &str| {
            // Else a hook that can't be started, or is killed, lets the tool run.
            let hook = match (self, event) {
                (Self::ClaudeCode, "PreToolUse") => hook.clone().text("onFailure", "block"),
                _ => hook.clone(),
            };
            let hooks = array([hook.finish()]);
            array([Object::new().text("matcher", every).json("hooks", &hooks).finish()])
        };
        let hooks =
            events.iter().fold(Object::new(), |object, event| object.json(event, &entry(event)));
        // What its user says is of no tool, and what is over of many.
        let every = Object::new().json("hooks", &array([hook.finish()])).finish();
        let hooks = [Some(self.prompt_event()), self.batch_event()]
            .into_iter()
            .flatten()
            .fold(hooks, |hooks, event| hooks.json(event, &array([every.clone()])));
        Object::new().json("hooks", &hooks.finish()).finish()
    }
}

/// A path as a client's settings have it, which are JSON. One that JSON can't hold is refused, and
/// no other takes its place.
pub(crate) fn path(path: &Path) -> Result<String, Failure> {
    let advice = "is no UTF-8, and can't stand in a client's settings".to_owned();
    let bad = || Failure::Usage { what: path.display().to_string(), advice };
    path.to_str().map(str::to_owned).ok_or_else(bad)
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_words_back() {
        assert_eq!(quoted("/a/b.c"), "/a/b.c");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("read=a*"), "'read=a*'");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted(""), "''");
    }
}
