//! `syscap learn`: the least capability that recorded calls show a need for.

mod found;
mod json;
mod text;

use std::{fs::OpenOptions, io::Write as _, path::PathBuf, time::Duration};
use syscap::Inspection;
use syscap::analysis::learn::{Allowed, Proposal, Settings, constraint_names, join, propose};
use syscap::format::{AgentId, FactKey, Role, Seq, TokenId};
use syscap::kernel::object_of;
use syscap::learn::{self, Recorded, Scan};
use syscap::policy::Policy;

use clap::Args;

use self::found::Found;
use crate::exit::{Ended, Exit, Failure, diagnose};
use crate::output::{Form, Out};
use crate::{parse, runtime, signing};

/// The input of the learner, and its settings.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Put preset:recording in force first (`syscap policy set HOME preset:recording`), let the agents
work under tokens that name all that they could need, with budgets, on data that you vouch for,
and learn then. Each line of the proposal says what it is made from. A call that was refused, that
failed, or that was made after a stranger's word was read widens nothing; nothing is wider than the
newest token of the recording. The policy in force is joined to it: what asked still asks, what a
person denied stays denied, unless --loosen names it; each call on record that it would let run all
the same is listed. Where a session had been given a stranger's word the record that
brought it is named, with what was called after it; what failed or was refused is marked with `!`.
What the proposal would have said of the calls on record is found by deciding each once more, and
said at the end, before the policy. Without --apply nothing is written, and another process may hold
the home. Values of arguments stand in the policy, in the clear: look at it before you apply it.
Exit codes: 0 something was proposed, 1 there is nothing to learn from.")]
pub(crate) struct Learn {
    /// The home.
    home: PathBuf,
    /// The agent to learn for; may be given again. All, where none is named.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Vec<AgentId>,
    /// The first record to learn from.
    #[arg(long, value_name = "RECORD", default_value_t = 0)]
    since: u64,
    /// The key of the agents' state that says what a session was for, such as goal.task: sessions
    /// for the same count as one.
    #[arg(long, value_name = "KEY", value_parser = parse::fact_key)]
    by: Option<FactKey>,
    /// How many of a hundred tasks may be refused something by what is narrowed.
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = parse::percent)]
    refused: u64,
    /// How many times the most that was seen a number may be.
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    headroom: u64,
    /// For how many sessions the token's budget is to last.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    sessions: u64,
    /// A tool to grant though nobody called it, or NAME.* for those below a name that only read;
    /// as far as the token of the recording grants it. May be given again.
    #[arg(long, value_name = "TOOL", value_parser = allowed)]
    allow: Vec<Allowed>,
    /// A constraint of the policy in force that the proposal need not keep, by its name there; or
    /// denied/RECORD, what a person denied. May be given again.
    #[arg(long, value_name = "CONSTRAINT")]
    loosen: Vec<String>,
    /// Write the policy to a new file, as `syscap policy check` and `policy set` take it.
    #[arg(long, value_name = "FILE")]
    policy_out: Option<PathBuf>,
    /// Put the policy in force and issue the tokens.
    #[arg(long)]
    apply: bool,
    /// How long the tokens live, with --apply: 90s, 15m, 1h, 7d.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse::life)]
    expires: Duration,
}

fn allowed(text: &str) -> Result<Allowed, parse::BadWord> {
    Allowed::parse(text).ok_or(parse::BadWord::Tool)
}

/// The result of `--apply`.
struct Applied {
    policy: Seq,
    tokens: Vec<(AgentId, TokenId)>,
}

impl Learn {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let home = runtime::look(&self.home)?;
        let scan = Scan { from: Seq::new(self.since), task: self.by.clone() };
        let recorded = home.recorded(&scan).map_err(Failure::home(&self.home))?;
        let settings = self.settings();
        let unsound =
            |error| Failure::Unsound { file: None, error: Box::new(error), exit: Exit::Failed };
        let mut proposal = propose(&recorded.recording, &settings).map_err(unsound)?;
        let empty = proposal.policy.written().constraints.is_empty();
        if !empty {
            proposal.policy = self.joined(&home, &recorded, &proposal)?;
        }
        let found = self.found(&home, &recorded, &proposal, &scan)?;
        if let Some(file) = self.policy_out.as_ref().filter(|_| !empty) {
            let created = OpenOptions::new().write(true).create_new(true).open(file);
            let written =
                created.and_then(|mut to| to.write_all(proposal.policy.to_json().as_bytes()));
            written.map_err(Failure::file(file))?;
        }
        // The proposal is printed before anything is done with it.
        if out.form() == Form::Text {
            text::print(out, &proposal, &recorded, &settings, &found)?;
            out.flush()?;
        }
        caution(&proposal, &settings, &home);
        let applied = if self.apply && !empty { Some(self.apply(&proposal)?) } else { None };
        match out.form() {
            Form::Json => {
                let json = json::proposal(&proposal, &recorded, applied.as_ref());
                out.line(&found.json(json, &recorded).finish())?;
            }
            Form::Text => text::applied(out, applied.as_ref())?,
        }
        for one in proposal.agents.iter().filter(|_| applied.is_some()) {
            diagnose(&format!(
                "warning: token {} of {}, of the recording, may still be good: revoke it",
                one.ceiling, one.agent
            ));
        }
        if empty {
            diagnose("there is nothing to learn from");
        }
        out.conclude(Ok(()), if empty { Exit::Failed } else { Exit::Done })
    }

    /// The proposed policy with all that the policy in force restricts, and that people denied.
    fn joined(
        &self,
        home: &Inspection,
        recorded: &Recorded,
        proposal: &Proposal,
    ) -> Result<Policy, Failure> {
        let unsound =
            |error| Failure::Unsound { file: None, error: Box::new(error), exit: Exit::Failed };
        let in_force = Policy::from_cbor(&home.kernel().engine().document()).map_err(unsound)?;
        let denied = &recorded.denied;
        let names = constraint_names(&proposal.policy, &in_force, denied);
        if let Some(name) = self.loosen.iter().find(|name| !names.contains(*name)) {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            let advice = format!("is no constraint in force; there are {}", all.join(", "));
            return Err(Failure::Usage { what: format!("--loosen {name}"), advice });
        }
        let loosened = self.loosen.iter().cloned().collect();
        join(&proposal.policy, &in_force, denied, &loosened).map_err(unsound)
    }

    /// The log's findings besides, and the proposal's verdicts.
    fn found(
        &self,
        home: &Inspection,
        recorded: &Recorded,
        proposal: &Proposal,
        scan: &Scan,
    ) -> Result<Found, Failure> {
        let failed = || Failure::home(&self.home);
        let is_meant = |agent: &AgentId| self.agent.is_empty() || self.agent.contains(agent);
        let poisoned = recorded.poisoned.iter().filter(|one| is_meant(&one.agent));
        Ok(Found {
            vault: home.verify_vault().map_err(failed())?,
            preview: home.preview(proposal, &recorded.denied, scan).map_err(failed())?,
            poisoned: poisoned.cloned().collect(),
        })
    }

    fn settings(&self) -> Settings {
        Settings {
            agents: self.agent.clone(),
            refused_percent: self.refused,
            headroom: self.headroom,
            sessions: self.sessions,
            allow: self.allow.clone(),
            ..Settings::default()
        }
    }

    /// The tokens first: a token alone widens nothing that the policy in force does not allow, and
    /// a policy without the tokens would leave the agents with wider ones.
    fn apply(&self, proposal: &Proposal) -> Result<Applied, Failure> {
        let hand = signing::hand(&self.home, Role::Issuer)?;
        runtime::with(&self.home, |access| {
            let mut tokens = Vec::new();
            for one in proposal.agents.iter().filter(|one| !one.tools.is_empty()) {
                let read = access.view_of(&one.agent, None)?.last_read(&one.agent);
                let grant = learn::grant(one).expires_in(self.expires).begins_with(read);
                let token = hand.issue(access, &grant)?;
                tokens.push((one.agent.clone(), token));
            }
            let policy = access.read_policy(proposal.policy.to_json().as_bytes())?;
            Ok(Applied { policy: access.set_policy_object(&object_of(&policy))?, tokens })
        })
    }
}

/// The warnings before the proposal is put in force.
fn caution(proposal: &Proposal, settings: &Settings, home: &Inspection) {
    for one in &proposal.agents {
        if !one.tools.is_empty() && one.least_percent() > settings.refused_percent {
            diagnose(&format!(
                "warning: {}: {} tasks can't promise {} %, so no argument is narrowed; \
                 record more, or say --refused {}",
                one.agent,
                one.seen.tasks,
                settings.refused_percent,
                one.least_percent()
            ));
        }
    }
    let proposed = |agent: &AgentId| proposal.agents.iter().any(|one| one.agent == *agent);
    let kernel = home.kernel();
    let mut others: Vec<&AgentId> = kernel
        .tokens()
        .filter(|token| !token.is_revoked(kernel.now()) && token.body.expires > kernel.now())
        .map(|token| &token.body.agent)
        .filter(|agent| !proposed(agent))
        .collect();
    others.sort();
    others.dedup();
    for agent in others {
        diagnose(&format!("warning: {agent} has a token, and this policy denies all of its calls"));
    }
}

/// Says what a policy that is about to come in force, or that is, is for, if it only records.
pub(crate) fn warn_of_policy(policy: &Policy) {
    if policy.is_recording() {
        diagnose(&format!("warning: {}", learn::RECORDING));
    }
}

/// Calls on record that were not looked at.
fn not_seen(recorded: &Recorded) -> Vec<(&'static str, &'static str, u64)> {
    let all = [
        ("dropped", "calls too many: the oldest", recorded.dropped),
        ("unnamed", "refusals without a tool or only counted", recorded.unnamed),
    ];
    all.into_iter().filter(|(.., count)| *count > 0).collect()
}
