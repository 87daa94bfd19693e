//! `syscap policy explain --record`: a decision that is in the log.

use std::{collections::BTreeSet, path::Path};

use syscap::audit::SqliteReader;
use syscap::format::{Body, CallFields, ConstraintId, Decision, Record, Seq, Shadow};
use syscap::kernel::StoreError;

use super::{json, target::Loaded};
use crate::exit::{Ended, Exit, Failure};
use crate::log::timeline::bytes_of;
use crate::output::{Form, Object, Out};

/// Prints the decision of a record. The policy that decided may be another than the one in force:
/// reasons are its own.
pub(super) fn show(home: &Path, seq: Seq, out: &mut Out) -> Ended {
    let failed = |problem: &str| {
        let problem = format!("record {seq} {problem}");
        Failure::Policy { what: home.display().to_string(), problem }
    };
    let bytes = find(home, seq)?.ok_or_else(|| failed("is not there"))?;
    let record = Record::decode(&bytes).map_err(|_| failed("can't be read"))?;
    let call = call(&record.body).ok_or_else(|| failed("is of no call"))?;
    let decision = call.decision.as_ref().ok_or_else(|| failed("holds no decision"))?;
    let policy = match call.policy_hash {
        Some(hash) => Loaded::on_record(home, hash)?,
        None => None,
    };
    let shown = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let agent = shown(call.agent_id.as_ref().map(ToString::to_string));
    let tool = shown(call.tool_id.as_ref().map(ToString::to_string));
    let hash = shown(call.policy_hash.map(|hash| hash.to_string()));
    out.text(&json::said_of(decision))?;
    out.text(&format!("record {seq}: {agent} called {tool} under policy {hash}"))?;
    let mut told = |word: &str, id: &ConstraintId| {
        let reason = policy.as_ref().and_then(|policy| reason(policy, id));
        let reason = reason.as_deref().unwrap_or("its reason is not known here");
        out.text(&format!("{word} {id}: {reason}"))
    };
    if let Some(id) = &decision.deciding {
        told("deciding", id)?;
    }
    let others = decision.matches.iter().filter(|id| Some(*id) != decision.deciding.as_ref());
    others.into_iter().try_for_each(|id| told("matched", id))?;
    if let Some(Shadow { policy, decision }) = &call.shadow {
        out.text(&format!("shadow {policy}: {}", json::said_of(decision)))?;
    }
    if out.form() == Form::Json {
        out.line(&json_of(seq, call, decision, policy.as_ref()))?;
    }
    Ok(Exit::Done)
}

fn json_of(seq: Seq, call: &CallFields, decision: &Decision, policy: Option<&Loaded>) -> String {
    let optional = |object: Object, key: &str, value: Option<String>| match value {
        Some(value) => object.text(key, &value),
        None => object.json(key, "null"),
    };
    let object = Object::new().uint("record", seq.get());
    let object = optional(object, "agent", call.agent_id.as_ref().map(ToString::to_string));
    let object = optional(object, "tool", call.tool_id.as_ref().map(ToString::to_string));
    let object = optional(object, "policy_hash", call.policy_hash.map(|hash| hash.to_string()));
    let named: BTreeSet<_> = decision.matches.iter().chain(&decision.deciding).collect();
    let reasons = named.into_iter().fold(Object::new(), |object, id| {
        optional(object, id.as_str(), policy.and_then(|policy| reason(policy, id)))
    });
    let object =
        object.json("decision", &json::decision(decision)).json("reasons", &reasons.finish());
    match &call.shadow {
        Some(Shadow { policy, decision }) => {
            let shadow = Object::new().shown("policy", policy);
            object.json("shadow", &shadow.json("decision", &json::decision(decision)).finish())
        }
        None => object.json("shadow", "null"),
    }
    .finish()
}

fn reason(policy: &Loaded, id: &ConstraintId) -> Option<String> {
    let constraints = &policy.document()?.written().constraints;
    let found = constraints.iter().find(|constraint| constraint.id == *id)?;
    Some(found.reason.to_string())
}

fn find(home: &Path, seq: Seq) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    bytes_of(&mut reader, seq).map_err(failed)
}

const fn call(body: &Body) -> Option<&CallFields> {
    match body {
        Body::Intent(intent) => Some(&intent.call),
        Body::Outcome(outcome) => Some(&outcome.call),
        Body::Refusal(refusal) => Some(&refusal.call),
        Body::Ask(ask) => Some(&ask.call),
        Body::Repeat(repeat) => Some(&repeat.call),
        _ => None,
    }
}
