//! What a very call does to the world: less than its tool can, and never more.

use host_support::{end, new_home, records};
use syscap::format::{
    Body, Canonical, EffectClass, Item, Manifest, Param, ParamType, Refused, TxOutcome,
};
use syscap::kernel::{Demands, Permit, Plan, Ran, Request, Tool};
use syscap::prelude::*;

/// A tool that says of each call what it does.
struct Says(Manifest);

struct Said {
    demands: Demands,
    effect: Option<EffectClass>,
}

impl Tool for Says {
    type Plan = Said;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, request: &Request<'_>) -> Result<Said, Refused> {
        let name = request.args.get("effect").and_then(Item::as_text);
        let effect = EffectClass::ALL.iter().find(|class| Some(class.name()) == name).copied();
        Ok(Said { demands: Demands::default(), effect })
    }
}

impl Plan for Said {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn effect(&self) -> Option<EffectClass> {
        self.effect
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(Canonical::null(), TxOutcome::Committed)
    }
}

#[test]
fn a_call_is_judged_by_what_it_does_and_that_is_never_more_than_its_tool_does() {
    let (_dir, home) = new_home();
    let manifest = Manifest::new(ToolId::new("says").unwrap(), EffectClass::ExternalWrite);
    let manifest = manifest.param(Param::optional("effect", ParamType::Text, ""));
    let rt = Options::new().tool(Says(manifest)).unwrap().create(&home).unwrap();
    let session = rt.session("a", rt.issue(Grant::to("a").tools(["says"])).unwrap()).unwrap();
    let say = |args| session.call("says", args).unwrap();
    // The preset lets reads run and asks about writes.
    assert_eq!(say(args! { "effect": "external_read" }).reason(), None);
    assert_eq!(say(args! { "effect": "pure" }).reason(), None);
    assert_eq!(say(args! {}).reason(), Some(Reason::Asked));
    // Irreversible would need more than one person's yes: what it says beyond its manifest is not
    // believed, and the manifest is.
    let most = say(args! { "effect": "irreversible" });
    assert_eq!(most.reason(), Some(Reason::Asked));
    let classes: Vec<_> = records(&home)
        .iter()
        .filter_map(|record| match &record.body {
            Body::Intent(intent) => Some((intent.effect, intent.call_effect)),
            Body::Ask(ask) => Some((ask.effect, ask.call_effect)),
            _ => None,
        })
        .collect();
    let write = EffectClass::ExternalWrite;
    assert_eq!(
        classes,
        [
            (write, EffectClass::ExternalRead),
            (write, EffectClass::Pure),
            (write, write),
            (write, write)
        ]
    );
    end(&rt, &home);
}
