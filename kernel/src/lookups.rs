//! Counts look-ups where this crate is tested: what a call is about is found once, from its bytes
//! to its intent.

/// A tool is looked up by its name.
pub(crate) fn tool() {
    #[cfg(test)]
    tests::count(&tests::TOOLS);
}

/// A token is looked up, by its id or by its place.
pub(crate) fn token() {
    #[cfg(test)]
    tests::count(&tests::TOKENS);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use alloc::{boxed::Box, sync::Arc, vec::Vec};

    use core::sync::atomic::{AtomicU32, Ordering};

    use crate::events::{Event, Submit};
    use crate::lifecycle::boot::{NewHome, Parts};
    use crate::machine::Kernel;
    use crate::policy::{PolicyEngine, Question};
    use crate::registry::Registry;
    use crate::state::agents::AgentState;
    use crate::state::sessions::Session;
    use crate::time::Reading;
    use crate::tool::Ticket;
    use crate::tool::{Demands, Permit, Plan, Ran, Request, Tool};
    use syscap_format::{
        AgentId, Budget, CallSalts, Canonical, Decision, Durability, EffectClass, EngineIdentity,
        Form, Grants, HomeLimits, Manifest, MapBuilder, PublicKey, Refused, Roles, Salt, Seq,
        Source, TokenBody, TokenFlags, TokenId, ToolGrant, ToolId, TxOutcome, UnixMillis, Verdict,
    };

    pub(crate) static TOOLS: AtomicU32 = AtomicU32::new(0);
    pub(crate) static TOKENS: AtomicU32 = AtomicU32::new(0);

    pub(crate) fn count(of: &AtomicU32) {
        of.fetch_add(1, Ordering::Relaxed);
    }

    struct Allows;

    impl PolicyEngine for Allows {
        fn identity(&self) -> EngineIdentity {
            EngineIdentity { name: Box::from("allows"), version: 1 }
        }

        fn document(&self) -> Vec<u8> {
            Canonical::null().into_bytes()
        }

        fn decide(&self, _: &Question<'_>) -> Decision {
            Decision::plain(Verdict::Allow)
        }
    }

    struct Nothing(Manifest);
    struct NothingPlan(Demands);

    impl Tool for Nothing {
        type Plan = NothingPlan;

        fn manifest(&self) -> &Manifest {
            &self.0
        }

        fn plan(&self, _: &Request<'_>) -> Result<NothingPlan, Refused> {
            Ok(NothingPlan(Demands::default()))
        }
    }

    impl Plan for NothingPlan {
        fn demands(&self) -> &Demands {
            &self.0
        }

        fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
            permit.ok(Canonical::null(), TxOutcome::Committed)
        }
    }

    /// A kernel that has what a call needs, put there by hand: nobody has signed for it.
    fn ready() -> Option<(Kernel, Seq)> {
        let tool = ToolId::new("nothing")?;
        // The curve's base point: some key.
        let mut point = [0x66; 32];
        point[0] = 0x58;
        let key = PublicKey::new(point).ok()?;
        let mut registry = Registry::new();
        registry.add(Nothing(Manifest::new(tool.clone(), EffectClass::LocalWrite))).ok()?;
        let new = NewHome {
            entropy: [7; 32],
            origin: Box::from("here"),
            limits: HomeLimits::default(),
            durability: Durability::Memory,
            roles: Roles::new([key; 5]),
            recovery: None,
        };
        let parts = Parts { engine: Box::new(Allows), registry };
        let mut kernel = Kernel::create(new, parts, reading()).ok()?;
        let (software, durability) = (Box::from("here"), Durability::Memory);
        let boot = Event::Boot {
            ticket: Ticket(0),
            id: [0; 16],
            software,
            durability,
            probed: Vec::new(),
        };
        kernel.handle(boot, reading());
        let agent = AgentId::new("a0")?;
        let body = TokenBody {
            version: 2,
            nonce: [0; 16],
            issuer: key,
            holder: None,
            agent: agent.clone(),
            parent: None,
            depth: 0,
            depth_max: 0,
            not_before: UnixMillis::default(),
            expires: reading().wall.plus(1),
            epoch: 0,
            grants: Grants::new().with(tool, ToolGrant::new()),
            budget: Budget::standard(),
            caveats: Vec::new(),
            policy: None,
            flags: TokenFlags::default(),
            ext: MapBuilder::new().finish(),
            audience: kernel.home(),
            head: None,
            renews: None,
        };
        let id = TokenId::from_bytes([9; 32]);
        let (engine, tools) = (kernel.engine_hash(), kernel.registry_hash());
        let (state, number) = (&mut kernel.state, Seq::GENESIS);
        (state.policy, state.tools) = (Some(engine), Some(tools));
        let token = state.tokens.insert(id, Arc::new(body), None, Seq::GENESIS)?;
        let head = AgentState::genesis(agent.clone());
        let (caller, root) = (agent.clone(), agent.clone());
        let session = Session::new(caller, root, None, token, id, head.id());
        state.agents.insert(agent, head);
        state.sessions.insert(number, session);
        Some((kernel, number))
    }

    fn reading() -> Reading {
        Reading { wall: UnixMillis::new(1_800_000_000_000), boottime_ms: 1 }
    }

    #[test]
    fn a_call_is_looked_up_once() {
        let (mut kernel, session) = ready().unwrap();
        let args = MapBuilder::new().finish();
        let envelope = MapBuilder::new().text("tool_id", "nothing").item("args", args.item());
        let salt = Salt::from_bytes([0; 32]);
        let submit = Submit {
            proof: None,
            unasked: false,
            ticket: Ticket(1),
            session,
            received: envelope.finish().into_bytes(),
            form: Form::Cbor,
            source: Source::Agent,
            salts: CallSalts { call: salt, args: salt, result: salt },
        };
        let before = kernel.head().seq;
        TOOLS.store(0, Ordering::Relaxed);
        TOKENS.store(0, Ordering::Relaxed);
        kernel.handle(Event::Submit(submit), reading());
        assert_eq!(kernel.halted(), None);
        assert_eq!(kernel.head().seq, before.next());
        assert_eq!(kernel.state.open.len(), 1, "an intent");
        assert_eq!(TOOLS.load(Ordering::Relaxed), 1, "the tool");
        assert_eq!(TOKENS.load(Ordering::Relaxed), 1, "the token");
    }
}
