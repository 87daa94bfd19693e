//! The kit's tool and policy: a tool that fills a result, and a policy of any size that allows it.

use syscap_format::{
    Amounts, Decision, EffectClass, Encoder, EngineIdentity, Manifest, MapBuilder, Param,
    ParamType, RESULT_BYTES_MAX, Reason, Refused, ToolId, TxOutcome, Verdict,
};
use syscap_kernel::{
    Demands, PolicyEngine, Question, Ran, ReadPermit, ReadPlan, ReadTool, Request,
};

/// The tool's name.
pub(super) const FILL: &str = "kit.fill";
/// The size of a result beside the requested bytes.
const FRAMING: usize = 64;
/// The most bytes that can be asked for.
pub(super) const FILL_MAX: usize = RESULT_BYTES_MAX.saturating_sub(FRAMING);

/// Answers with as many bytes as it is asked for.
pub(super) struct Fill(Manifest);

impl Fill {
    pub(super) fn new() -> Option<Self> {
        let bytes = Param::required("bytes", ParamType::Int, "how many");
        let mut manifest = Manifest::new(ToolId::new(FILL)?, EffectClass::Pure).param(bytes);
        manifest.hold = Amounts::ZERO;
        manifest.result_bytes_max = u64::try_from(RESULT_BYTES_MAX).ok()?;
        Some(Self(manifest))
    }
}

impl ReadTool for Fill {
    type Plan = FillPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, request: &Request<'_>) -> Result<FillPlan, Refused> {
        let bytes = request.args.get("bytes").and_then(|item| item.as_uint());
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        match bytes {
            Some(bytes) if bytes <= FILL_MAX => Ok(FillPlan { demands: Demands::default(), bytes }),
            _ => Err(Refused::new(Reason::BadArgument).field("bytes")),
        }
    }
}

pub(super) struct FillPlan {
    demands: Demands,
    bytes: usize,
}

impl ReadPlan for FillPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        // No two parts alike, so that those that were exchanged are found.
        let mut bytes = Vec::with_capacity(self.bytes.saturating_add(4));
        for part in (0_u32..).take(self.bytes.div_ceil(4)) {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        bytes.truncate(self.bytes);
        permit.ok(MapBuilder::new().bytes("fill", &bytes).finish(), TxOutcome::NoOp)
    }
}

/// Allows everything; its document is as long as it is told to be.
#[derive(Clone, Copy)]
pub(super) struct AllowAll {
    number: u64,
    document_bytes: usize,
}

impl AllowAll {
    pub(super) const fn of(number: u64, document_bytes: usize) -> Self {
        Self { number, document_bytes }
    }
}

impl PolicyEngine for AllowAll {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("syscap-kit"), version: self.number }
    }

    fn document(&self) -> Vec<u8> {
        let mut document = Encoder::new();
        document.bytes(&vec![0x5a; self.document_bytes]);
        document.into_bytes()
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::plain(Verdict::Allow)
    }
}
