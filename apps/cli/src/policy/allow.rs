//! `syscap policy allow`: one tool runs unasked for a while.
//!
//! It is a constraint with an end in the policy in force, so that no rule of the kernel is another one:
//! an allow of the tool for one agent while `now.ms` lies below its end. When it is over it grants
//! nothing, and the next `policy allow` takes it out of the document.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use syscap::format::{
    AgentId, Canonical, ConstraintId, Decision, EffectClass, Item, Manifest, PolicyHash, Profile,
    SET_LIFE_MS, Seq, ToolId, UnixMillis, Verdict, json,
};
use syscap::kernel::object_of;
use syscap::policy::{Explained, Policy, Scenario, Truth};
use syscap::{Inspection, PolicyPlace, Runtime};

use super::set;
use super::target::Loaded;
use crate::approvals::left;
use crate::exit::{Ended, Exit, Failure, tell};
use crate::hook::client::Client;
use crate::near::hint;
use crate::output::{Object, Out};
use crate::signing::Hand;
use crate::token::now;
use crate::{parse, runtime};

/// The beginning of the ids of these constraints.
const PREFIX: &str = "allow-until/";

/// Which tool, for whom, until when.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap policy allow home notes.add_note --agent me --for 1h

The tool then runs unasked for that agent, whatever it is given within its token, and whatever the
agent has read. A deny of the policy still holds. What can't be undone, what runs code that it is given
and what needs an elevated approval is refused. Other standing approvals end with the policy that they
were given under; those are named first.")]
pub(crate) struct Allow {
    /// The home.
    home: PathBuf,
    /// The tool, by its id or a client's own name (claude_code:WebFetch).
    #[arg(value_name = "TOOL", value_parser = parse::tool)]
    tool: ToolId,
    /// The agent.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// How long: 30m, 8h; a day at most.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse::life)]
    life: Duration,
    /// Why: on record as a commitment, the text in the vault.
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

impl Allow {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let life = u64::try_from(self.life.as_millis()).unwrap_or(u64::MAX);
        if life > SET_LIFE_MS {
            let advice = "is a day at most".to_owned();
            return Err(Failure::Usage { what: "--for".to_owned(), advice });
        }
        let loaded = Loaded::of(&self.home)?;
        let at = self.now()?;
        let until = at.plus(life);
        let hand = set::hand_for(&self.home, self.because.as_deref())?;
        let seq = runtime::with(&self.home, |access| {
            self.check(loaded.policy()?)?;
            let document = self.document(&loaded.object.document, at, until)?;
            let policy = access.read_policy(json::from_data(document.item()).as_bytes())?;
            self.tell_what_ends()?;
            self.put(access, &hand, loaded.hash, &policy)
        })?;
        let tool = Client::shown_with_id(&self.tool, None);
        let text = format!(
            "{} may use {tool} unasked until {until} ({}), by record {seq}",
            self.agent,
            left(until, at)
        );
        let json = Object::new()
            .shown("agent", &self.agent)
            .shown("tool", &self.tool)
            .shown("until", until)
            .uint("until_ms", until.get())
            .uint("record", seq.get());
        out.both(&text, json)?;
        Ok(Exit::Done)
    }

    fn now(&self) -> Result<UnixMillis, Failure> {
        Ok(now(runtime::look(&self.home)?.kernel().now()))
    }

    /// That the tool is one that may run unasked, and that something is asked about it.
    fn check(&self, policy: &Policy) -> Result<(), Failure> {
        // From the log: of what is signed here the server has no say.
        let log = runtime::look(&self.home)?;
        let manifests: Vec<&Manifest> = log.kernel().manifests().collect();
        let Some(manifest) = manifests.iter().copied().find(|it| it.tool == self.tool) else {
            let all: Vec<&str> = manifests.iter().map(|manifest| manifest.tool.as_str()).collect();
            let near = hint(self.tool.as_str(), "; it has", &all);
            return Err(self.refused(&format!("the home has no such tool{near}")));
        };
        if manifest.effect == EffectClass::Irreversible {
            return Err(self.refused("can't be undone: each call needs a person"));
        }
        if manifest.runs_code() {
            return Err(self.refused("runs what it is given: each call needs a person"));
        }
        let explained = policy.explain_values(&self.scenario(manifest)?);
        let own = self.id()?;
        let holds = |one: &&Explained| one.truth == Truth::True && one.id != own;
        let mut held = explained.constraints.iter().filter(holds);
        if let Some(deny) = held.clone().find(|one| one.effect.name() == "deny") {
            let why = format!("{} says otherwise, and stays: {}", deny.id, deny.reason);
            return Err(self.refused(&why));
        }
        if let Some(allow) = held.find(|one| one.effect.name() == "allow") {
            let why = format!("runs unasked already, by {}: {}", allow.id, allow.reason);
            return Err(self.refused(&why));
        }
        let Decision { verdict, deciding, .. } = explained.decision;
        // The constraint asks where it does not grant: it must not ask about what is denied now.
        match (verdict, deciding) {
            (Verdict::Ask, _) => Ok(()),
            (_, Some(id)) => Err(self.refused(&format!("is not asked about but denied, by {id}"))),
            (_, None) => Err(self.refused("is not asked about but denied: nothing allows it")),
        }
    }

    /// A call of it, as far as it is known before there is one.
    fn scenario(&self, manifest: &Manifest) -> Result<Scenario, Failure> {
        let given = Object::new()
            .text("call.tool", self.tool.as_str())
            .text("call.effect", manifest.effect.name())
            .text("call.agent", self.agent.as_str())
            .finish();
        let read = Scenario::from_json(given.as_bytes());
        read.map_err(|error| self.refused(&error.fault.to_string()))
    }

    /// The document with the constraint, without those that are over.
    fn document(
        &self,
        document: &[u8],
        at: UnixMillis,
        until: UnixMillis,
    ) -> Result<Canonical, Failure> {
        let unread = |_| self.refused("the policy in force can't be read");
        let document = Item::check(document, Profile::CONTROL).map_err(unread)?;
        let own = self.id()?;
        let stays = |one: &Item<'_>| {
            let id = one.get("id").and_then(Item::as_text).unwrap_or_default();
            id != own.as_str() && end_of(*one).is_none_or(|end| at < end)
        };
        let constraints = document.get("constraints").into_iter().flat_map(Item::elements);
        let mut all: Vec<String> = constraints.filter(stays).map(json::from_data).collect();
        all.push(self.constraint(&own, until));
        let others = document.entries().filter(|(key, _)| *key != "constraints");
        let members = others.map(|(key, value)| (key, json::from_data(value)));
        let object = members.fold(Object::new(), |object, (key, value)| object.json(key, &value));
        let text = object.json("constraints", &format!("[{}]", all.join(","))).finish();
        json::to_data(text.as_bytes()).map_err(|error| self.refused(&error.to_string()))
    }

    fn constraint(&self, id: &ConstraintId, until: UnixMillis) -> String {
        let is_its = r#"{"op":"eq","args":["call.agent","#;
        let when = format!(
            r#"{{"op":"all","args":[{is_its}"{}"]}},{{"op":"lt","args":["now.ms",{}]}}]}}"#,
            self.agent,
            until.get()
        );
        Object::new()
            .text("id", id.as_str())
            .text("effect", "allow")
            .json("subject", &Object::new().text("tool_id", self.tool.as_str()).finish())
            .json("when", &when)
            .text("on_fail", "ask")
            .text("reason", &format!("Unasked for {} until {until}.", self.agent))
            .finish()
    }

    fn id(&self) -> Result<ConstraintId, Failure> {
        let id = format!("{PREFIX}{}/{}", self.agent, self.tool);
        ConstraintId::new(&id).ok_or_else(|| self.refused("with this agent has too long a name"))
    }

    /// Says which standing approvals end: they hold under the policy that they were given under.
    fn tell_what_ends(&self) -> Result<(), Failure> {
        let log = runtime::look(&self.home)?;
        let asks: Vec<String> = log.kernel().sets().map(|set| set.ask.to_string()).collect();
        if !asks.is_empty() {
            let count = asks.len();
            let asks = asks.join(", ");
            tell(&format!("{count} standing approvals end with the policy in force: {asks}"));
        }
        Ok(())
    }

    /// Puts it in force in the place of that policy, and of no other one that came meanwhile.
    fn put(
        &self,
        access: &Runtime,
        hand: &Hand,
        before: PolicyHash,
        policy: &Policy,
    ) -> Result<Seq, Failure> {
        let same = |hash: Option<PolicyHash>| match hash == Some(before) {
            true => Ok(()),
            false => Err(self.refused("another policy was set meanwhile: look, and repeat this")),
        };
        let object = object_of(policy);
        let Hand::Person(person) = hand else {
            same(access.view()?.policy)?;
            return Ok(access.set_policy_object(&object)?);
        };
        let place = PolicyPlace::InForce(object.clone());
        let change = |log: &Inspection| {
            same(log.kernel().policy_hash())?;
            let change = log.policy_change(&place);
            change.ok_or_else(|| self.refused("there is no policy in force"))
        };
        set::submit(access, person, change, Some(object), self.because.as_deref())
    }

    fn refused(&self, why: &str) -> Failure {
        let what = Client::shown_with_id(&self.tool, None);
        Failure::Usage { what, advice: why.to_owned() }
    }
}

/// The end of a constraint that `policy allow` wrote.
fn end_of(constraint: Item<'_>) -> Option<UnixMillis> {
    let id = constraint.get("id").and_then(Item::as_text)?;
    id.strip_prefix(PREFIX)?;
    let mut tests = constraint.get("when")?.get("args")?.elements();
    let before = tests.find(|test| test.get("op").and_then(Item::as_text) == Some("lt"))?;
    let mut args = before.get("args")?.elements();
    args.next().filter(|subject| subject.as_text() == Some("now.ms"))?;
    args.next()?.as_uint().map(UnixMillis::new)
}
