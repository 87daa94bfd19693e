//! The question to an engine.

use super::Found;
use crate::context::Context;
use crate::history::{Doer, Told};
use crate::policy::Question;
use crate::tool::{AnyPlan, Demand};
use syscap_format::{Amounts, Item};

/// The question about a call. All in it is the kernel's own.
pub(crate) fn question<'a>(
    context: &'a Context<'_>,
    found: Found<'a>,
    (args, plan): (Item<'a>, &dyn AnyPlan),
    (demands, hold, left): (&'a [Demand], &'a Amounts, &'a Amounts),
) -> Question<'a> {
    Question {
        agent: &context.session.agent,
        token: context.session.token_id,
        body: context.token.body,
        grant: found.grant,
        manifest: &found.tool.manifest,
        effect: plan.class(&found.tool.manifest),
        args,
        demands,
        hold,
        left,
        history: Told::by_log(Doer {
            rates: &context.state.rates,
            agent: &context.session.root,
            tool: &found.tool.manifest.tool,
            now: context.now,
        }),
        facts: context.facts,
        source: context.source,
        now: context.now,
    }
}
