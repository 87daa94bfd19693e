//! A tool can't speak for the kernel or the policy: at each boundary only some reasons pass, and
//! the log verifies whatever a tool says.

use syscap::audit::MemoryStore;
use syscap::format::{
    Durability, EffectClass, Item, Manifest, Param, ParamType, Refused, TxOutcome,
};
use syscap::kernel::{
    Broken, Demands, Finding, Inspect, Permit, Plan, Ran, Request, Resolve, Tool,
};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::verify::{Extent, FromStore, Options as VerifyOptions, Soundness, verify};

const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "look", "effect": "deny", "subject": {"tool_id": "inspector"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

/// Whether a reason passes.
type Passes = fn(Reason) -> bool;

/// Where a tool can refuse, and which reasons pass there.
const BOUNDARIES: [(&str, Passes); 5] = [
    ("plan", Reason::is_of_a_plan),
    ("resolver", Reason::is_of_a_plan),
    ("lookup", Reason::is_of_a_look),
    ("inspector", Reason::is_of_a_look),
    ("run", Reason::is_of_a_refused_run),
];

/// A tool that refuses at the boundary that it is named after, by the reason that it is given.
struct Liar(Manifest);

impl Liar {
    fn at(boundary: &str) -> Self {
        let manifest = Manifest::new(ToolId::new(boundary).unwrap(), EffectClass::LocalWrite)
            .param(Param::required("reason", ParamType::Int, "").within(0, 1 << 20))
            .param(Param::required("at", ParamType::Path, "").within(1, 40));
        Self(manifest)
    }

    fn says(&self, boundary: &str, request: &Request<'_>) -> Result<(), Refused> {
        match self.0.tool.as_str() == boundary {
            true => Err(asked(request)),
            false => Ok(()),
        }
    }
}

fn asked(request: &Request<'_>) -> Refused {
    let code = request.args.get("reason").and_then(Item::as_uint).unwrap();
    Refused::new(Reason::from_code(code).unwrap()).field("at").got("a tool's word")
}

struct Says(Refused);

impl Resolve for Says {
    fn argument(&self) -> &'static str {
        "at"
    }

    fn resolve(self: Box<Self>) -> Result<String, Refused> {
        Err(self.0)
    }
}

struct LiarPlan(Demands, Refused);

impl Tool for Liar {
    type Plan = LiarPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        self.says("resolver", request)?;
        let lookup = self.says("lookup", request).err();
        Ok(lookup.map(|why| Box::new(Says(why)) as Box<dyn Resolve>))
    }

    fn plan(&self, request: &Request<'_>) -> Result<LiarPlan, Refused> {
        self.says("plan", request)?;
        Ok(LiarPlan(Demands::default(), asked(request)))
    }

    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        self.says("inspector", request).map(|()| None)
    }

    /// A probe gives no reason, so that it can give no wrong one.
    fn probe(&self, _: &Broken<'_>) -> Finding {
        Finding::Unknown
    }
}

impl Plan for LiarPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.failed(self.1, TxOutcome::Committed)
    }
}

/// What the kernel alone can say of a call, whichever boundary it comes from.
fn is_the_kernels(reason: Reason) -> bool {
    let code = reason.code();
    match reason {
        Reason::NotGranted | Reason::ToolChanged | Reason::NoProvider => false,
        Reason::NoDelegation | Reason::TooDeep | Reason::Panicked => false,
        Reason::TimedOut | Reason::NotRun | Reason::Abandoned => true,
        _ => !(300..400).contains(&code) && !(700..800).contains(&code),
    }
}

#[test]
fn reasons_of_tools_are_checked_at_every_boundary_and_the_log_verifies() {
    for (boundary, may_give) in BOUNDARIES {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = MemoryStore::new();
        let options = Options::new().tool(Liar::at(boundary)).unwrap();
        let options = options.store(memory.share()).durability(Durability::Memory);
        let options = options.policy(Policy::from_json(POLICY.as_bytes()).unwrap());
        let rt = options.create(folder.path().join("home")).unwrap();
        let token = rt.issue(Grant::to("a").tools([boundary, "echo"])).unwrap();
        let agent = rt.session("a", token).unwrap();
        for reason in Reason::ALL {
            let result = agent.call(boundary, args! { "reason": reason.code(), "at": "x" });
            let result = result.unwrap();
            let passes = may_give(*reason);
            let told = if passes { *reason } else { Reason::Failed };
            assert_eq!(result.reason(), Some(told), "{reason} at {boundary}");
            assert!(!(passes && is_the_kernels(*reason)), "{reason} at {boundary}");
            // A call that runs ends the row of refusals, so that each has a record of its own.
            assert_eq!(agent.call("echo", args! { "value": 1 }).unwrap().reason(), None);
        }
        rt.close().unwrap();
        let options = VerifyOptions::default();
        let report = verify(&mut FromStore(&mut memory), Extent::AtRest, &options).unwrap();
        assert_eq!(report.verdict(), Soundness::Sound, "{boundary}: {report:?}");
    }
}

/// What a run may say a look may say, and what a look may say a plan may say.
#[test]
fn reason_of_a_run_is_taken_at_every_boundary() {
    for reason in Reason::ALL {
        assert!(!reason.is_of_a_refused_run() || reason.is_of_a_look(), "{reason}");
        assert!(!reason.is_of_a_look() || reason.is_of_a_plan(), "{reason}");
        let kept = Refused::new(*reason).got("x").by_tool(Reason::is_of_a_refused_run);
        assert_eq!(kept.got_text().is_some(), reason.is_of_a_refused_run(), "{reason}");
    }
}
