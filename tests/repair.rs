//! Refusals are repairable: an error object names what its caller must change, and a call that is
//! changed there is taken at the first retry. What can't be repaired says so, and nothing leaks.

pub(crate) mod world;

use self::world::{MARK, World, seat};
use serde_json::Value;
use syscap::args;
use syscap::format::{Freeze, FreezeChange, FreezeTarget, Revocation};
use syscap::prelude::*;

/// A block of `repair/cases.txt`, which says what its lines are.
pub(crate) struct Case {
    name: &'static str,
    reason: &'static str,
    field: Option<&'static str>,
    retry: &'static str,
    before: Option<&'static str>,
    setup: Option<&'static str>,
    policy: Vec<String>,
    call: &'static str,
    mend: Option<&'static str>,
}

/// All of them.
pub(crate) fn cases() -> Vec<Case> {
    let text = include_str!("repair/cases.txt");
    let blocks = text.split("\n== ").skip(1).map(|block| {
        let mut lines = block.lines();
        let name = lines.next().unwrap();
        let told: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let [reason, field, retry] = told[..] else { panic!("{name}: {told:?}") };
        let lines: Vec<&str> = lines.collect();
        let all = |key: &str| {
            let found = lines.iter().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            found.collect::<Vec<&'static str>>()
        };
        let one = |key: &str| all(key).first().copied();
        Case {
            name,
            reason,
            field: Some(field).filter(|field| *field != "-"),
            retry,
            before: one("before"),
            setup: one("setup"),
            policy: all("policy").into_iter().map(str::to_owned).collect(),
            call: one(">").unwrap_or_else(|| panic!("{name}: no call")),
            mend: one("<"),
        }
    });
    blocks.collect()
}

/// What a case's placeholders stand for in a home.
struct Places {
    record: u64,
    other_token: Option<TokenId>,
}

impl Places {
    fn filled(&self, text: &str) -> String {
        let mut filled = text
            .replace("<LF>", "\n")
            .replace("<record>", &self.record.to_string())
            .replace("<before>", &self.record.wrapping_sub(1).to_string());
        if let Some(token) = self.other_token {
            filled = filled.replace("<other token>", &token.to_string());
        }
        // `<x*300>`
        while let Some((before, rest)) = filled.split_once('<') {
            let (times, after) = rest.split_once('>').unwrap();
            let (what, count) = times.split_once('*').unwrap();
            filled = format!("{before}{}{after}", what.repeat(count.parse().unwrap()));
        }
        filled
    }
}

impl Case {
    /// Does what comes first, in the case's own home.
    fn set_up(&self, world: &World) -> Places {
        let mut places = Places { record: 0, other_token: None };
        if let Some(call) = self.before {
            places.record = world.before(call);
        }
        let own = world.session.token();
        let runtime = &world.runtime;
        let tokens = || runtime.look(|kernel| kernel.tokens().map(|t| t.id).collect::<Vec<_>>());
        places.other_token = tokens().unwrap().into_iter().find(|id| *id != own);
        let freeze = |target, name: &str| {
            let freeze = Freeze { target, name: name.into(), change: FreezeChange::Freeze };
            runtime.freeze(&freeze).unwrap();
        };
        match self.setup {
            None => {}
            Some("revoked") => drop(runtime.control(&Revocation::subtree(own)).unwrap()),
            Some("frozen agent") => freeze(FreezeTarget::Agent, "a"),
            Some("frozen tool") => freeze(FreezeTarget::Tool, "echo"),
            Some("spent") => while world.send(self.call).0.is_none() {},
            Some("link") => {
                let link = world.files().join("agents/a/workspace/link.txt");
                std::os::unix::fs::symlink("notes.txt", link).unwrap();
            }
            Some("other session") => {
                let other = seat(runtime, Budget::standard());
                let result = other.call("echo", args! { "value": MARK }).unwrap();
                places.record = result.receipt().outcome_seq.get();
            }
            Some(other) => panic!("{}: no setup {other}", self.name),
        }
        places
    }

    /// A home of the case's own, and the call that is refused there.
    pub(crate) fn prepared(&self) -> (World, String) {
        let world = World::new(&self.policy);
        let call = self.set_up(&world).filled(self.call);
        (world, call)
    }
}

/// A merge patch (RFC 7396).
fn merged(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut map = match target {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    for (key, value) in patch {
        let old = map.remove(&key);
        if !value.is_null() {
            map.insert(key, merged(old.unwrap_or(Value::Null), value));
        }
    }
    Value::Object(map)
}

/// Whether a patch touches the field that an error names: an argument, one of its fields, or one of
/// the envelope's. What has no field in the call (a reference, the budget) can be any.
fn touches(patch: &Value, field: &str) -> bool {
    let first = field.split('.').next().unwrap();
    let within = |value: &Value| value.as_object().is_some_and(|map| map.contains_key(first));
    let named = ["envelope", "$ref", "result", "disk_write_bytes"].contains(&first);
    named || within(patch) || patch.get("args").is_some_and(within)
}

/// Constants of denies, other agents, their tokens' scopes, contents and names of files, facts:
/// nothing of these stands in an error object, but where the caller wrote it itself.
fn leaks(sent: &str, told: &Value) -> bool {
    let fields = told.as_object().into_iter().flatten();
    let own = |key: &str| key == "got" && sent.contains(MARK);
    fields.clone().any(|(key, value)| value.to_string().contains(MARK) && !own(key))
}

#[test]
fn refused_call_is_taken_once_what_the_error_names_is_mended() {
    let cases = cases();
    assert!(cases.len() >= 140, "{} cases", cases.len());
    let judge = |case: &Case| {
        let world = World::new(&case.policy);
        let places = case.set_up(&world);
        let sent = places.filled(case.call);
        let (reason, error) = world.send(&sent);
        let told = |key: &str| error.get(key).and_then(Value::as_str);
        let mut wrong = Vec::new();
        if (told("reason"), told("field"), told("retry"))
            != (Some(case.reason), case.field, Some(case.retry))
        {
            wrong.push(format!("{}: {reason:?} {error}", case.name));
        }
        if leaks(&sent, &error) {
            wrong.push(format!("{}: leaks: {error}", case.name));
        }
        if case.mend.is_some() != (case.retry == "fix") {
            wrong.push(format!("{}: `fix` says that it can be mended", case.name));
        }
        if let Some(mend) = case.mend {
            let patch: Value = serde_json::from_str(&places.filled(mend)).unwrap();
            if !case.field.is_some_and(|field| touches(&patch, field)) {
                wrong.push(format!("{}: the mend is elsewhere: {patch}", case.name));
            }
            let call = merged(serde_json::from_str(&sent).unwrap_or(Value::Null), patch);
            let (reason, answer) = world.send(&call.to_string());
            if reason.is_some() {
                wrong.push(format!("{}: {call}: {answer}", case.name));
            }
        }
        world.runtime.close().unwrap();
        wrong
    };
    let (one, two) = cases.split_at(cases.len() / 2);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let two = scope.spawn(|| two.iter().flat_map(judge).collect::<Vec<_>>());
        one.iter().flat_map(judge).chain(two.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The search for leaks finds what is there: a path into another's workspace is shown to its
/// caller.
#[test]
fn mark_of_another_agent_is_found_where_the_caller_wrote_it() {
    let case = cases().into_iter().find(|case| case.name == "another's workspace").unwrap();
    let (world, sent) = case.prepared();
    let (_, error) = world.send(&sent);
    assert!(error["got"].to_string().contains(MARK), "{error}");
    assert!(leaks("", &error) && !leaks(&sent, &error), "{error}");
}
