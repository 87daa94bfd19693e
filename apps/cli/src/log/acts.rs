//! Operators' acts: their role, and the words for them.

use syscap::format::{
    Body, ConfigChange, ControlBody as _, Freeze, FreezeBecause, FreezeChange, FreezeTarget,
    Notify, RecordKind, RedactBody, Role,
};

use crate::output::plain;
use crate::signed::SignedBy;

/// Its signer, in the column of agents: `(revoker)`, `(approver alice)`. No agent has such a name. If
/// another role than its kind's may have signed, only the signature is mentioned.
pub(super) fn actor(body: &Body, by: Option<&SignedBy>) -> Option<String> {
    let name = by.and_then(SignedBy::first_name);
    let name = name.map_or_else(String::new, |name| format!(" {}", plain(name)));
    let signed = || Some(format!("(signed{name})"));
    match body {
        // By the operator's keys or the recovery key: the line has which.
        Body::Key(_) => return signed(),
        // By the role that the home's genesis names.
        Body::Freeze(event) | Body::FreezeBecause(event)
            if freeze(&event.control.body)
                .is_some_and(|freeze| freeze.change == FreezeChange::Thaw) =>
        {
            return signed();
        }
        Body::Cancel(cancel) if cancel.control.is_none() => return None,
        Body::Recovery(recovery) if recovery.control.is_none() => return None,
        _ => {}
    }
    match body.kind() {
        // The agent whose account it is stands there.
        RecordKind::Credit => None,
        kind => Role::of(kind).map(|role| format!("({}{name})", role.name())),
    }
}

/// The words for an operator's act; `said` is the text of its row.
pub(super) fn words(body: &Body, said: &str) -> Option<String> {
    Some(match body {
        Body::Revoke(_) => format!("revoked {said}"),
        Body::Freeze(event) | Body::FreezeBecause(event) => frozen(&event.control.body),
        Body::Policy(_) | Body::PolicyBecause(_) => format!("in force from here on: {said}"),
        Body::Key(_) => format!("gave other keys to {said}"),
        Body::Credit(_) => format!("was given {said}"),
        Body::Tools(_) => "tools were put on record".to_owned(),
        Body::Redact(event) => match RedactBody::from_bytes(&event.control.body) {
            Ok(body) => format!("erased what the vault kept of {} records", body.records.len()),
            Err(_) => "erased what can't be read".to_owned(),
        },
        Body::Config(event) => configured(&event.control.body),
        Body::Cancel(cancel) if cancel.control.is_some() => {
            format!("cancelled the call of record {}", cancel.intent)
        }
        Body::Recovery(recovery) if recovery.control.is_some() => {
            let (intent, verdict) = (recovery.intent, recovery.verdict);
            format!("said what became of the call of record {intent}: {verdict}")
        }
        _ => return None,
    })
}

/// The freeze of a body of either form.
pub(super) fn freeze(body: &[u8]) -> Option<Freeze> {
    let because = || FreezeBecause::from_bytes(body).ok().map(FreezeBecause::freeze);
    Freeze::from_bytes(body).ok().or_else(because)
}

fn frozen(body: &[u8]) -> String {
    let Some(freeze) = freeze(body) else { return "froze what can't be read".to_owned() };
    let what = match freeze.target {
        FreezeTarget::Kernel => "every call".to_owned(),
        target => format!("{target} {}", plain(&freeze.name)),
    };
    match freeze.change {
        FreezeChange::Freeze => format!("froze {what}"),
        FreezeChange::Thaw => format!("ended the freeze of {what}"),
    }
}

fn configured(body: &[u8]) -> String {
    if let Ok(ConfigChange { confirm_time: Some(time) }) = ConfigChange::from_bytes(body) {
        return format!("confirmed the time: {time}");
    }
    match Notify::from_bytes(body) {
        Ok(notify) if notify.program.is_empty() => "nobody is told of calls that wait".to_owned(),
        Ok(notify) => format!("{} is told of calls that wait", plain(&notify.program)),
        Err(_) => "the configuration was changed".to_owned(),
    }
}
