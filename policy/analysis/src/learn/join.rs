//! Joins a proposal with the policy in force: of each call the stricter of the two verdicts stands.
//!
//! A deny of the policy in force is taken over as it is. An allow with a condition becomes a deny
//! with the same `on_fail`, where no allow that overlaps with it grants: what asked still asks. A
//! call that no allow covers stays denied, and an allow's bounds stay. A person's denial becomes a
//! deny of that very call. An operator loosens each by its name.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use syscap_format::{
    AgentId, Canonical, Item, ItemKind, MapBuilder, ObligationKind, Profile, Seq, ToolId,
};
use syscap_kernel::PolicyEngine as _;
use syscap_policy::{LoadError, Policy, limits::TEXT_CONSTANT_BYTES_MAX};

/// The prefix of the ids of constraints that stand for a person's denial.
const DENIED: &str = "denied/";
/// The prefix of the ids of constraints that keep an allow's condition.
const KEPT: &str = "kept/";
/// Names of parameters that have a meaning of their own.
const MEANING: [&str; 5] = ["tools", "agents", "risk", "elevated", "client_means"];

/// A call that a person denied.
#[derive(Clone, Debug)]
pub struct Denial {
    /// The record that asked.
    pub ask: Seq,
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolId,
    /// Its arguments; `None` where they are not known any more.
    pub args: Option<Canonical>,
    /// The arguments that name a path, and the path as policies compare it.
    pub paths: BTreeMap<String, String>,
}

impl Denial {
    /// The name by which an operator loosens it.
    pub fn id(&self) -> String {
        format!("{DENIED}{}", self.ask)
    }
}

/// The parts that can be loosened, by name: the constraints of the policy in force, its denial of
/// all that none of them allows, and the denials.
#[must_use]
pub fn constraint_names(
    proposed: &Policy,
    in_force: &Policy,
    denials: &[Denial],
) -> BTreeSet<String> {
    let (own, theirs) = (document(proposed), document(in_force));
    let allows = allows_of(&theirs);
    let defaults = allows_of(&own).into_iter().filter_map(|one| default_deny(one, &allows));
    let defaults: Vec<String> = defaults.map(|(id, _)| id).collect();
    let written = in_force.written().constraints.iter().map(|one| one.id.to_string());
    // What stands for an agent's list goes with the whole list.
    let written = written.filter(|id| !id.starts_with("params.agents."));
    written.chain(defaults).chain(denials.iter().map(Denial::id)).collect()
}

/// A proposed policy with what the policy in force restricts, and what people denied.
///
/// # Errors
/// A document that does not load: together they are more than a policy can say.
pub fn join(
    proposed: &Policy,
    in_force: &Policy,
    denials: &[Denial],
    loosened: &BTreeSet<String>,
) -> Result<Policy, LoadError> {
    let (own_document, theirs) = (document(proposed), document(in_force));
    let lists = [&own_document, &theirs].map(|list| list.item().get("constraints"));
    let [Some(own), Some(constraints)] = lists else {
        return Policy::from_cbor(&proposed.document());
    };
    let allows = allows_of(&theirs);
    let stands = |one: &&Item<'_>| id_of(**one).is_some_and(|id| !loosened.contains(id));
    let noted: Vec<Item<'_>> = allows.iter().filter(stands).copied().collect();
    let mut all: Vec<Canonical> = own.elements().map(|one| noticed(one, &noted)).collect();
    let mut taken: BTreeSet<String> = own.elements().filter_map(id_of).map(String::from).collect();
    for one in allows_of(&own_document) {
        if let Some((id, deny)) = default_deny(one, &allows)
            && !loosened.contains(&id)
            && taken.insert(id)
        {
            all.push(deny);
        }
    }
    for one in &noted {
        let id = format!("{KEPT}{}", id_of(*one).unwrap_or_default());
        all.extend(bounding(*one).map(|made| renamed(made.item(), &free(&mut taken, &id))));
    }
    for one in constraints.elements() {
        let Some(id) = id_of(one).filter(|id| !loosened.contains(*id)) else { continue };
        let restricts = match is(one, "deny") {
            true => Some(renamed(one, &free(&mut taken, id))),
            false => kept(one, &allows)
                .map(|made| renamed(made.item(), &free(&mut taken, &format!("{KEPT}{id}")))),
        };
        all.extend(restricts);
    }
    for denial in denials.iter().filter(|denial| !loosened.contains(&denial.id())) {
        all.push(denied(denial, &free(&mut taken, &denial.id())));
    }
    let params = theirs.item().get("params").map(|params| used(params, &all, loosened));
    let list = Canonical::list(all.into_iter());
    let map = MapBuilder::new().uint("v", 1).item("constraints", list.item());
    let map = match &params {
        Some(params) => map.item("params", params.item()),
        None => map,
    };
    Policy::from_cbor(map.finish().as_bytes())
}

fn document(policy: &Policy) -> Canonical {
    Canonical::check(policy.document(), Profile::CONTROL).unwrap_or_else(|_| Canonical::null())
}

fn id_of(constraint: Item<'_>) -> Option<&str> {
    constraint.get("id").and_then(Item::as_text)
}

fn is(constraint: Item<'_>, effect: &str) -> bool {
    constraint.get("effect").and_then(Item::as_text) == Some(effect)
}

/// A constraint under another id. Its examples are of the whole document that it stood in.
fn renamed(constraint: Item<'_>, id: &str) -> Canonical {
    let id = Canonical::text(id);
    let others = constraint.entries().filter(|(key, _)| !matches!(*key, "id" | "examples"));
    Canonical::map(others.chain([("id", id.item())]).collect())
}

/// An id that no constraint has yet.
fn free(taken: &mut BTreeSet<String>, id: &str) -> String {
    let more = (2..u64::MAX).map(|n| format!("{id}.{n}"));
    let mut all = core::iter::once(id.to_string()).chain(more);
    let id = all.find(|id| !taken.contains(id)).unwrap_or_default();
    taken.insert(id.clone());
    id
}

/// The subject of a constraint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About<'a> {
    All,
    Tool(&'a str),
    Class(&'a str),
}

impl<'a> About<'a> {
    fn of(constraint: Item<'a>) -> Self {
        let subject = constraint.get("subject");
        let text = |key| subject.and_then(|it| it.get(key)).and_then(Item::as_text);
        match (text("tool_id"), text("capability")) {
            (Some(tool), _) => Self::Tool(tool),
            (None, Some(class)) => Self::Class(class),
            (None, None) => Self::All,
        }
    }

    /// True if a call can be of both.
    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Tool(one), Self::Tool(other)) | (Self::Class(one), Self::Class(other)) => {
                one == other
            }
            _ => true,
        }
    }

    /// The condition that a call is of it.
    fn condition(self) -> Option<Canonical> {
        match self {
            Self::All => None,
            Self::Tool(tool) => Some(equal("call.tool", &Canonical::text(tool))),
            Self::Class(class) => Some(equal("call.effect", &Canonical::text(class))),
        }
    }
}

fn operation(op: &str, args: Vec<Canonical>) -> Canonical {
    let args = Canonical::list(args.into_iter());
    MapBuilder::new().text("op", op).item("args", args.item()).finish()
}

fn equal(attribute: &str, value: &Canonical) -> Canonical {
    operation("eq", Vec::from([Canonical::text(attribute), value.clone()]))
}

/// True if a condition always holds.
fn is_always(when: Item<'_>) -> bool {
    when.get("op").and_then(Item::as_text) == Some("all")
        && when.get("args").is_some_and(|args| args.count() == 0)
}

/// The deny that keeps what comes of an allow where nothing grants; `None` where something always
/// does.
fn kept(allow: Item<'_>, allows: &[Item<'_>]) -> Option<Canonical> {
    let about = About::of(allow);
    let mut grants = Vec::new();
    for other in allows {
        let (theirs, when) = (About::of(*other), other.get("when")?);
        if !about.overlaps(theirs) {
            continue;
        }
        let is_wider = theirs == about || theirs == About::All;
        if is_wider && is_always(when) {
            return None;
        }
        let when = Canonical::from(when);
        grants.push(match theirs.condition().filter(|_| !is_wider) {
            Some(of_it) => operation("all", Vec::from([of_it, when])),
            None => when,
        });
    }
    let when = operation("not", Vec::from([operation("any", grants)]));
    let effect = Canonical::text("deny");
    // What it asks of a run that it lets through is kept apart.
    let left = |key: &str| matches!(key, "effect" | "when" | "examples" | "obligations");
    let others = allow.entries().filter(|(key, _)| !left(key));
    let own = [("effect", effect.item()), ("when", when.item())];
    Some(Canonical::map(others.chain(own).collect()))
}

fn allows_of(document: &Canonical) -> Vec<Item<'_>> {
    let all = document.item().get("constraints").into_iter().flat_map(Item::elements);
    all.filter(|one| is(*one, "allow")).collect()
}

/// The deny of what a proposed allow is about and no allow in force covers, with its name; `None`
/// where one covers all of it.
fn default_deny(proposed: Item<'_>, allows: &[Item<'_>]) -> Option<(String, Canonical)> {
    let about = About::of(proposed);
    let mut covered = Vec::new();
    for theirs in allows.iter().map(|allow| About::of(*allow)) {
        if theirs == About::All || theirs == about {
            return None;
        }
        covered.extend(theirs.condition().filter(|_| about.overlaps(theirs)));
    }
    let when = match covered.is_empty() {
        true => operation("all", Vec::new()),
        false => operation("not", Vec::from([operation("any", covered)])),
    };
    let id = match about {
        About::All => format!("{KEPT}default"),
        About::Tool(name) | About::Class(name) => format!("{KEPT}default/{name}"),
    };
    let subject = proposed.get("subject").map_or_else(Canonical::null, Canonical::from);
    let deny = MapBuilder::new()
        .text("id", &id)
        .text("effect", "deny")
        .item("subject", subject.item())
        .item("when", when.item())
        .text("on_fail", "block")
        .text("reason", "The policy in force allows nothing of this.")
        .finish();
    Some((id, deny))
}

/// The obligations of an allow for each run.
fn obligations(allow: Item<'_>) -> Vec<Item<'_>> {
    allow.get("obligations").into_iter().flat_map(Item::elements).collect()
}

/// True if an allow gives a run less than it asked for.
fn takes_away(allow: Item<'_>) -> bool {
    obligations(allow).iter().any(|asked| {
        let kind = asked.get("type").and_then(Item::as_text);
        let kind = ObligationKind::ALL.iter().find(|one| kind == Some(one.name()));
        kind.is_some_and(|kind| kind.takes_away())
    })
}

/// The deny that keeps what an allow takes away: where it let a call run with less, so it does.
fn bounding(allow: Item<'_>) -> Option<Canonical> {
    if !takes_away(allow) {
        return None;
    }
    let (effect, on_fail) = (Canonical::text("deny"), Canonical::text("degrade"));
    let others =
        allow.entries().filter(|(key, _)| !matches!(*key, "effect" | "on_fail" | "examples"));
    let own = [("effect", effect.item()), ("on_fail", on_fail.item())];
    Some(Canonical::map(others.chain(own).collect()))
}

/// A proposed allow with what allows in force, which take nothing away, ask of the same calls.
fn noticed(proposed: Item<'_>, allows: &[Item<'_>]) -> Canonical {
    let about = About::of(proposed);
    let theirs = allows.iter().filter(|allow| !takes_away(**allow));
    let theirs = theirs.filter(|allow| about.overlaps(About::of(**allow)));
    let more: Vec<Canonical> =
        theirs.flat_map(|allow| obligations(*allow)).map(Canonical::from).collect();
    if more.is_empty() || !is(proposed, "allow") {
        return Canonical::from(proposed);
    }
    let mut all: Vec<Canonical> = obligations(proposed).into_iter().map(Canonical::from).collect();
    all.extend(more);
    let all = Canonical::list(all.into_iter());
    let others = proposed.entries().filter(|(key, _)| *key != "obligations");
    Canonical::map(others.chain([("obligations", all.item())]).collect())
}

/// The deny of what a person denied. Incomparable parts are left out: then it denies more.
fn denied(denial: &Denial, id: &str) -> Canonical {
    let mut all = Vec::from([equal("call.agent", &Canonical::text(denial.agent.as_str()))]);
    let args = denial.args.as_ref().map(|args| args.item().entries());
    for (name, value) in args.into_iter().flatten() {
        let path = denial.paths.get(name).map(|path| Canonical::text(path));
        let value = path.unwrap_or_else(|| Canonical::from(value));
        let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_name && !name.is_empty() && is_constant(value.item()) {
            all.push(equal(&format!("args.{name}"), &value));
        }
    }
    let subject = MapBuilder::new().text("tool_id", denial.tool.as_str()).finish();
    MapBuilder::new()
        .text("id", id)
        .text("effect", "deny")
        .item("subject", subject.item())
        .item("when", operation("all", all).item())
        .text("on_fail", "block")
        .text(
            "reason",
            &format!("A person denied this call, by the request of record {}.", denial.ask),
        )
        .finish()
}

fn is_constant(value: Item<'_>) -> bool {
    match value.kind() {
        ItemKind::Text => value.as_text().is_some_and(|text| text.len() <= TEXT_CONSTANT_BYTES_MAX),
        ItemKind::Bool | ItemKind::Uint | ItemKind::Negative => true,
        _ => false,
    }
}

/// The parameters that these constraints ask for, and those that restrict by themselves.
fn used(params: Item<'_>, constraints: &[Canonical], loosened: &BTreeSet<String>) -> Canonical {
    let mut asked = BTreeSet::new();
    constraints.iter().for_each(|one| ask(one.item(), &mut asked));
    let keeps = |name: &str| match MEANING.contains(&name) {
        true => !loosened.contains(&format!("params.{name}")),
        false => asked.contains(name),
    };
    Canonical::map(params.entries().filter(|(name, _)| keeps(name)).collect())
}

/// The parameters that an item asks for, as `{"param": NAME}`.
fn ask<'a>(item: Item<'a>, asked: &mut BTreeSet<&'a str>) {
    match item.kind() {
        ItemKind::Array => item.elements().for_each(|one| ask(one, asked)),
        ItemKind::Map => {
            asked.extend(item.get("param").and_then(Item::as_text));
            item.entries().for_each(|(_, one)| ask(one, asked));
        }
        _ => {}
    }
}
