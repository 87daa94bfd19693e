//! What lets a refused call through, or who can: no refusal is the end of the road.

use std::sync::Arc;

use syscap::format::{
    cbor::Item,
    envelope::TxOutcome,
    id::{Seq, TokenId, ToolId},
    manifest::EffectClass,
    reason::Reason,
};

use crate::{
    gateway::Gateway,
    kernelside::{CallOutcome, blocking},
    refusal::Aside,
};

/// What is told beside the kernel's own words of a call that was refused, or failed. Where what it
/// did is not known, the intent's record is, which its idempotency key finds.
pub(crate) async fn aside(
    gateway: &Arc<Gateway>,
    tool: &str,
    (outcome, key): (&CallOutcome, &str),
) -> Aside {
    let Some(reason) = outcome.reason else { return Aside::default() };
    let catalog = gateway.catalog();
    let id = ToolId::new(tool);
    let class = id.as_ref().and_then(|id| catalog.class(id));
    let Some(open) = gateway.open() else { return Aside::default() };
    let (token, key) = (open.session.token().id, key.to_owned());
    if reason == Reason::OutcomeUnknown {
        let intent = blocking(move || open.session.intent_of(&key)).await.ok().flatten();
        let next = Some(unknown(gateway, intent));
        return Aside { effect: Some(TxOutcome::Unknown), intent, next, ..Aside::default() };
    }
    let home = gateway.kernel.home();
    let asked = Asked { reason, outcome, token, home: &home, tool, class };
    let next = match reason {
        Reason::Revoked | Reason::Expired | Reason::Exhausted | Reason::OverBudget => {
            Some(ended(gateway, token, &home).await)
        }
        _ => asked.command(),
    };
    // What a tool counts as matters where a policy was asked.
    let class = class.filter(|_| asked.is_the_policys());
    let effect = (outcome.tx == TxOutcome::Unknown).then_some(outcome.tx);
    Aside { class, constraint: outcome.constraint.clone(), next, effect, intent: None }
}

/// Who says what became of a call of which nobody knows it, and how.
pub(crate) fn unknown(gateway: &Gateway, intent: Option<Seq>) -> String {
    let home = gateway.kernel.home();
    match intent {
        Some(intent) => format!(
            "look at what it should have done before it is made again; an operator sees it with: \
             syscap log show {home} {intent}, and says what became of it with: \
             syscap recover resolve {home} {intent} done (or not-done)"
        ),
        None => format!(
            "look at what it should have done before it is made again; an operator sees what was \
             broken off with: syscap recover list {home}"
        ),
    }
}

/// Who goes on where the token does not let it through, and how.
pub(crate) async fn ended(gateway: &Arc<Gateway>, token: TokenId, home: &str) -> String {
    let kernel = Arc::clone(&gateway.kernel);
    let ended = blocking(move || kernel.ended(token)).await.and_then(|ended| ended);
    match ended {
        Ok(Some(ended)) => ended,
        // It lives, and has less left than that: what the same has once more may be enough.
        Ok(None) | Err(_) => {
            format!("an operator can issue it once more with: syscap token reissue {home} {token}")
        }
    }
}

/// The words that grant what was out of scope, where it is a path: `read docs/a.txt of me`. Of
/// others only whoever knows the tool can say in which dimension they are.
fn scoped(got: &str) -> Option<String> {
    let (rights, path) = [("read, write ", 3), ("read ", 1), ("write ", 2)]
        .iter()
        .find_map(|(words, rights)| Some((*rights, got.strip_prefix(words)?)))?;
    let path = path.strip_prefix("all below ").unwrap_or(path);
    let root = path.split(['/', ' ']).next().filter(|root| !root.is_empty())?;
    let word = |bit, word: &str| (rights & bit != 0).then(|| format!("{word} {root}"));
    let words: Vec<String> =
        [word(1, "--read"), word(2, "--write")].into_iter().flatten().collect();
    Some(words.join(" "))
}

/// A call that was refused.
struct Asked<'a> {
    reason: Reason,
    outcome: &'a CallOutcome,
    token: TokenId,
    home: &'a str,
    tool: &'a str,
    class: Option<EffectClass>,
}

impl Asked<'_> {
    /// Whether what the tool counts as may have to do with it.
    const fn is_the_policys(&self) -> bool {
        self.reason.is_a_verdict() || matches!(self.reason, Reason::Obligation | Reason::Reduced)
    }

    /// The command that goes on, where the reason alone says which.
    fn command(&self) -> Option<String> {
        let Self { home, token, tool, .. } = self;
        let got = self.outcome.delivered.item().get("got").and_then(Item::as_text);
        let asked = got.unwrap_or_default();
        let words = match self.reason {
            // Nothing waits then: as many of the agent's calls do as may, as a rule.
            Reason::Asked if asked.is_empty() && self.class != Some(EffectClass::Irreversible) => {
                format!(
                    "nobody was asked: as many of this agent's calls wait as may (32), which an \
                     operator answers: syscap approvals list {home}; or the policy names nobody \
                     who may approve this: syscap policy show {home}"
                )
            }
            // Somebody elevated must approve, and nobody is named.
            Reason::Asked if asked.is_empty() => format!(
                "nobody is named who may approve what is as grave as this: an operator names \
                 somebody in the policy (params.elevated, docs/approvals.md), or says that the \
                 tool counts as less with: syscap tools class {home} {tool} external_write"
            ),
            Reason::Asked => format!(
                "a person approves it with: syscap approvals approve {home} {asked}; then make the \
                 same call again"
            ),
            Reason::Denied | Reason::Constraint | Reason::Obligation | Reason::Reduced => {
                let by = self.outcome.constraint.as_ref();
                let by = by.map_or_else(String::new, |by| format!(" (constraint {by})"));
                format!("what the policy says{by} an operator sees with: syscap policy show {home}")
            }
            Reason::NotGranted => format!(
                "an operator grants it besides with: \
                 syscap token reissue {home} {token} --tool {tool}"
            ),
            Reason::OutOfScope => {
                let more = scoped(asked)?;
                format!(
                    "an operator grants it besides with: \
                     syscap token reissue {home} {token} {more}"
                )
            }
            Reason::ToolChanged => {
                format!("an operator accepts it with: syscap tools accept {home} {tool}")
            }
            Reason::Frozen => format!(
                "an operator sees what is frozen with: syscap top {home} --once; and ends it \
                 with: syscap thaw {home} --all (or --agent NAME, --tool NAME)"
            ),
            _ => return None,
        };
        Some(words)
    }
}
