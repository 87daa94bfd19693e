//! The fifth step: the tool parses the arguments into a plan, which is held against the scopes.

use alloc::borrow::Cow;

use crate::call::context::Context;
use crate::call::{Call, Dereferenced, Planned, Stepped};
use crate::demands::distinct;
use crate::tool::{Demand, Demands, Live, Request};
use syscap_format::{DIMENSIONS_MAX, Manifest, Reason, Refused, ScopeDimension, ToolGrant};

impl<'c, 'k> Call<'c, Dereferenced<'k>> {
    /// Lets the tool parse the arguments and holds the plan against the token's scopes.
    pub(crate) fn plan(self, context: &Context<'k>, live: Live) -> Stepped<'c, Planned<'k>> {
        let Self { fields, at } = self;
        let (tool, grant) = (at.found.tool, at.found.grant);
        let (agent, token) = (&context.session.agent, context.token.body);
        let request = Request { agent, args: at.args(), grant, token, live: Some(live) };
        let plan = tool.tool.plan(&request).map_err(|refused| at.stopped(refused))?;
        // Asked once: scopes, policy and budget see the same demands.
        let Demands { resources, hold: needed } = plan.demands();
        let (demands, needed) = match distinct(resources) {
            Ok(demands) => (demands, *needed),
            Err(refused) => return Err(at.stopped(refused)),
        };
        compared(&tool.manifest, &demands, plan.untouched())
            .and_then(|()| in_scope(&demands, grant))
            .map_err(|refused| at.stopped(refused))?;
        let hold = tool.manifest.hold_for(&needed);
        let at = Planned { resolved: at, plan, demands, needed, hold };
        Ok(Call { fields, at })
    }
}

/// Holds the plan against what its tool declares: a token's scope in a declared dimension bounds
/// nothing unless the plan names a resource there, or says that the call touches none.
fn compared(manifest: &Manifest, demands: &[Demand], untouched: &[&str]) -> Result<(), Refused> {
    let untouched = untouched.get(..DIMENSIONS_MAX).unwrap_or(untouched);
    let is_compared = |declared: &str| {
        untouched.contains(&declared)
            || demands.iter().any(|d| ScopeDimension::compares(d.dimension, declared))
    };
    let mut declared = manifest.dimensions.iter().map(|declared| &**declared);
    match declared.find(|declared| !is_compared(declared)) {
        None => Ok(()),
        Some(declared) => Err(Refused::new(Reason::NotCompared).field(declared)),
    }
}

fn in_scope(demands: &[Demand], grant: &ToolGrant) -> Result<(), Refused> {
    for demand in demands {
        let scope = grant.scope(demand.dimension);
        if !scope.is_some_and(|scope| scope.permits(&demand.resource)) {
            let allowed =
                scope.map_or(Cow::Borrowed("nothing"), |s| s.advice(&demand.resource).into());
            return Err(Refused::new(Reason::OutOfScope)
                .field(demand.argument)
                .got(&format_args!("{:#}", demand.resource))
                .allowed(&allowed));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscap_format::{Resource, Scope};

    fn demand(dimension: &'static str, row: i128) -> Demand {
        Demand { dimension, resource: Resource::Int(row), argument: "row" }
    }

    /// Each resource is held against the scopes, wherever it stands among them.
    #[test]
    fn resource_out_of_scope_is_refused_at_any_place() {
        let grant = ToolGrant::new().with("row", Scope::ints(0, 9).unwrap());
        let fine = [demand("row", 0), demand("row", 9)];
        assert_eq!(in_scope(&fine, &grant), Ok(()));
        for bad in [demand("row", 10), demand("other", 0)] {
            for place in 0..=fine.len() {
                let mut demands = fine.to_vec();
                demands.insert(place, bad.clone());
                let refused = in_scope(&demands, &grant).unwrap_err();
                assert_eq!(refused.reason(), Reason::OutOfScope, "{place}");
            }
        }
    }
}
