//! Faulty calls: what is sent, the reason it must be refused for, and what must have come about
//! once it is repaired.

pub(crate) mod arguments;
pub(crate) mod envelopes;
pub(crate) mod final_words;
pub(crate) mod paths;
pub(crate) mod policies;
pub(crate) mod scopes;

use serde_json::Value;
use syscap::prelude::Reason;

use super::world::World;

type Write = Box<dyn Fn(&World) -> String + Send + Sync>;
type Check = fn(&World, &Value) -> bool;

/// What the model is to do.
pub(crate) enum Then {
    /// Send another call, that succeeds, and of which this holds.
    Repair(Check),
    /// Give up.
    GiveUp,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) policy: Vec<String>,
    pub(crate) call: Write,
    pub(crate) reason: Reason,
    pub(crate) then: Then,
}

impl Case {
    /// With constraints beside those of every home.
    pub(crate) fn under(mut self, policy: impl IntoIterator<Item = String>) -> Self {
        self.policy.extend(policy);
        self
    }
}

/// A call of a tool that is to be repaired.
pub(crate) fn fix(
    name: &'static str,
    (tool, args): (&'static str, &'static str),
    reason: Reason,
    check: Check,
) -> Case {
    let text = format!(r#"{{"tool_id": "{tool}", "args": {args}}}"#);
    sent(name, move |_| text.clone(), reason, check)
}

/// Text that is to be repaired.
pub(crate) fn text(name: &'static str, text: &'static str, reason: Reason, check: Check) -> Case {
    sent(name, move |_| text.to_owned(), reason, check)
}

/// What is made from the home, and is to be repaired.
pub(crate) fn sent(
    name: &'static str,
    call: impl Fn(&World) -> String + Send + Sync + 'static,
    reason: Reason,
    check: Check,
) -> Case {
    Case { name, policy: Vec::new(), call: Box::new(call), reason, then: Then::Repair(check) }
}

/// What can't be repaired by its caller.
pub(crate) fn final_(
    name: &'static str,
    call: impl Fn(&World) -> String + Send + Sync + 'static,
    reason: Reason,
) -> Case {
    Case { name, policy: Vec::new(), call: Box::new(call), reason, then: Then::GiveUp }
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let mut all = envelopes::cases();
    all.extend(arguments::cases());
    all.extend(paths::cases());
    all.extend(scopes::cases());
    all.extend(policies::cases());
    all.extend(final_words::cases());
    all
}
