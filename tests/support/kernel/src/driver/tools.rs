//! Four small tools, and a policy that allows everything but what it is asked to deny.

use syscap_format::{
    Amounts, Canonical, ConstraintId, Decision, Dimension, EffectClass, EngineIdentity, Label,
    Manifest, MapBuilder, Obligation, ObligationKind, Param, ParamType, Reason, Refused, Resource,
    TxOutcome, Verdict, matches_digest,
};
use syscap_kernel::{
    Demand, Demands, Permit, Plan, PolicyEngine, Question, Ran, ReadPermit, ReadPlan, ReadTool,
    Request, Tool,
};

/// Returns nothing; only reads.
pub struct Echo(Manifest);

impl Echo {
    pub fn new() -> Self {
        let text = Param::optional("text", ParamType::Text, "anything");
        Self(Manifest::new(super::tool("echo"), EffectClass::Pure).param(text))
    }
}

impl ReadTool for Echo {
    type Plan = EchoPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, _: &Request<'_>) -> Result<EchoPlan, Refused> {
        Ok(EchoPlan(Demands::default()))
    }
}

pub struct EchoPlan(Demands);

impl ReadPlan for EchoPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.ok(MapBuilder::new().finish(), TxOutcome::NoOp)
    }
}

/// Declares a tool that holds and then uses bytes of a dimension.
macro_rules! writer {
    ($tool:ident $plan:ident $name:literal $effect:ident $dimension:ident $($change:expr)?) => {
        pub struct $tool(Manifest);

        impl $tool {
            pub fn new() -> Self {
                let bytes = Param::required("bytes", ParamType::Int, "how many");
                let fail = Param::optional("fail", ParamType::Bool, "whether to fail");
                let manifest = Manifest::new(super::tool($name), EffectClass::$effect);
                let manifest = manifest.param(bytes).param(fail).needs("part");
                $(let manifest = $change(manifest);)?
                Self(manifest)
            }
        }

        impl Tool for $tool {
            type Plan = $plan;

            fn manifest(&self) -> &Manifest {
                &self.0
            }

            fn plan(&self, request: &Request<'_>) -> Result<$plan, Refused> {
                let bytes = request.args.get("bytes").and_then(|item| item.as_uint());
                let bytes = bytes.ok_or(Refused::new(Reason::BadArgument).field("bytes"))?;
                let fail = request.args.get("fail").and_then(|item| item.as_bool());
                let hold = Amounts::ZERO.with(Dimension::$dimension, bytes);
                // What it touches is named by the bytes, many to one.
                let resource = Resource::Int(i128::from(bytes % 16));
                let part = Demand { dimension: "part", resource, argument: "bytes" };
                let demands = Demands { resources: vec![part], hold };
                Ok($plan { demands, bytes, fail: fail.unwrap_or(false) })
            }
        }

        pub struct $plan {
            demands: Demands,
            bytes: u64,
            fail: bool,
        }

        impl Plan for $plan {
            fn demands(&self) -> &Demands {
                &self.demands
            }

            fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
                // One byte less than was held, so that something is freed.
                let used = self.bytes.saturating_sub(1);
                if permit.meter(Dimension::$dimension, used).is_err() || self.fail {
                    return permit.failed(Refused::new(Reason::Failed), TxOutcome::RolledBack);
                }
                permit.ok(Canonical::null(), TxOutcome::Committed)
            }
        }
    };
}

writer! { DiskWrite DiskWritePlan "disk.write" LocalWrite DiskWriteBytes scripted }
writer! { Post PostPlan "post" ExternalWrite EgressBytes }
writer! { Trim TrimPlan "trim" ExternalWrite EgressBytes generous }

/// May take what is to be run.
fn scripted(manifest: Manifest) -> Manifest {
    manifest.param(Param::optional("script", ParamType::Code, "what to run"))
}

/// Sets more aside than a plan needs, and keeps to all that only a tool can keep to. What it
/// brings is a stranger's word.
fn generous(mut manifest: Manifest) -> Manifest {
    manifest.label = Label::UNTRUSTED;
    manifest.hold = manifest.hold.with(Dimension::EgressBytes, 50);
    manifest.honours(ObligationKind::ResultCap).honours(ObligationKind::ReadOnly)
}

/// Allows all; denies 13 bytes of anything; of `trim` it says what the bytes are for. The number
/// makes it another policy.
pub struct AllowAll(u8);

impl AllowAll {
    pub const fn new(number: u8) -> Self {
        Self(number)
    }
}

impl PolicyEngine for AllowAll {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("allow-all"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa1, 0x01, self.0]
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let bytes = question.args.get("bytes").and_then(|item| item.as_uint());
        match bytes {
            Some(13) => Decision::plain(Verdict::Deny),
            Some(17 | 33) => Decision::plain(Verdict::Ask),
            Some(bytes) if question.manifest.tool.as_str() == "trim" => trimmed(bytes),
            _ => Decision::plain(Verdict::Allow),
        }
    }
}

/// What the tests' policy says of so many bytes of `trim`.
fn trimmed(bytes: u64) -> Decision {
    let cut = |max| Obligation::budget_cut(Dimension::EgressBytes, max).unwrap();
    let all = [Obligation::read_only(), cut(20), Obligation::result_cap(100)];
    let notify = Obligation::notify("trim");
    let (verdict, obligations) = match bytes {
        1 => (Verdict::Degrade, all.into_iter().chain([notify]).collect()),
        2 => (Verdict::Allow, vec![notify]),
        3 => (Verdict::Degrade, vec![cut(2)]),
        4 => (Verdict::Ask, vec![Obligation::elevated()]),
        5 => (Verdict::Defer, Vec::new()),
        6 => (Verdict::Allow, vec![Obligation::elevated()]),
        _ => (Verdict::Allow, Vec::new()),
    };
    let obligations = Obligation::unite(obligations);
    let decision = Decision { obligations, ..Decision::plain(verdict) };
    if bytes != 7 {
        return decision;
    }
    let matches = ["a", "b"].map(|name| ConstraintId::new(name).unwrap());
    Decision {
        deciding: Some(matches[0].clone()),
        matches: matches.into(),
        match_count: 3,
        matches_digest: Some(matches_digest(&[0, 1, 2])),
        ..decision
    }
}
