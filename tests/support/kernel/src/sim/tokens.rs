//! Tokens of the simulated home.

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_format::{
    AgentId, Budget, Dimension, Grants, MapBuilder, Role, Scope, Signature, TOKEN_CONTEXT, Token,
    TokenBody, TokenFlags, TokenId, ToolGrant, ToolId, preimage,
};
use syscap_kernel::Event;

use super::Sim;
use super::keys::{holder, key, public, public_of};

/// Rows of what `trim` works on.
pub fn rows(least: i128, greatest: i128) -> Scope {
    Scope::ints(least, greatest).unwrap()
}

impl Sim {
    pub fn token_body(&mut self, agent: &str, budget: Budget, life_ms: u64) -> TokenBody {
        self.salt += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.salt.to_le_bytes());
        let now = self.kernel.now();
        let grants = Grants::new()
            .with(ToolId::new("spend").unwrap(), ToolGrant::new().with("row", rows(0, 1 << 40)))
            .with(ToolId::new("trim").unwrap(), ToolGrant::new().with("row", rows(0, 1 << 40)))
            .with(ToolId::new("look").unwrap(), ToolGrant::new())
            .with(ToolId::new("open").unwrap(), ToolGrant::new().with("path", self.paths.clone()));
        TokenBody {
            version: 2,
            nonce,
            issuer: public(Role::Issuer),
            holder: None,
            agent: AgentId::new(agent).unwrap(),
            parent: None,
            depth: 0,
            depth_max: 0,
            not_before: now,
            expires: now.plus(life_ms),
            epoch: self.kernel.epoch(),
            grants,
            budget,
            caveats: Vec::new(),
            policy: None,
            flags: TokenFlags::default(),
            ext: MapBuilder::new().finish(),
            audience: self.kernel.home(),
            head: Some(self.catch_up(&public(Role::Issuer))),
            renews: None,
        }
    }

    pub fn wire(body: &TokenBody) -> Vec<u8> {
        Self::wire_by(&key(Role::Issuer), body)
    }

    pub fn wire_by(key: &SigningKey, body: &TokenBody) -> Vec<u8> {
        let bytes = body.to_bytes();
        let signature = key.sign(&preimage(TOKEN_CONTEXT, &bytes)).to_bytes();
        Token::wire(&bytes, &Signature::from_bytes(signature))
    }

    /// What a token that is derived from a registered one says; it can be handed on as its parent
    /// can.
    pub fn derived(&mut self, parent: TokenId, budget: Budget, life_ms: u64) -> Option<TokenBody> {
        let above = self.kernel.token(&parent)?.body.clone();
        let now = self.kernel.now();
        self.salt += 1;
        let mut nonce = [1; 16];
        nonce[..8].copy_from_slice(&self.salt.to_le_bytes());
        Some(TokenBody {
            nonce,
            issuer: public_of(&holder()),
            parent: Some(parent),
            depth: above.depth + 1,
            depth_max: above.depth_max.max(above.depth + 1),
            not_before: now,
            expires: now.plus(life_ms),
            head: None,
            budget,
            caveats: Vec::new(),
            ..above
        })
    }

    /// Hands a token on, whether that may be or not.
    pub fn derive(&mut self, parent: TokenId, calls: u64, units: u64, life_ms: u64) {
        let Some(mut body) = self.derived(parent, budget(calls, units), life_ms) else { return };
        // Most fit.
        if !life_ms.is_multiple_of(4)
            && let Some(above) = self.kernel.token(&parent).map(|above| above.body)
        {
            body.expires = body.expires.min(above.expires);
            for (dimension, most) in above.budget.amounts().iter() {
                let own = body.budget.amounts().get(dimension);
                body.budget = body.budget.with(dimension, own.min(most));
            }
        }
        let ticket = self.ticket();
        self.event(Event::Issue(ticket, Self::wire_by(&holder(), &body), None));
        // What it spends is its root's.
        self.tokens.push((TokenBody::id_of(&body.to_bytes()), 0));
    }

    /// Lets a token take the place of another of its agent, whether that may be or not, and opens a
    /// session with it.
    pub fn renew(&mut self, old: TokenId, calls: u64, units: u64) {
        let Some(agent) = self.kernel.token(&old).map(|old| old.body.agent.clone()) else { return };
        let mut body = self.token_body(agent.as_str(), budget(calls, units), 1_000_000);
        body.renews = Some(old);
        let ticket = self.ticket();
        self.event(Event::Issue(ticket, Self::wire(&body), None));
        let id = TokenBody::id_of(&body.to_bytes());
        self.tokens.push((id, units));
        self.open(agent.as_str(), id);
    }

    /// Registers a token with so many calls and units, which can be handed on.
    pub fn issue(&mut self, agent: &str, calls: u64, units: u64, life_ms: u64) -> TokenId {
        let mut body = self.token_body(agent, budget(calls, units), life_ms);
        (body.holder, body.depth_max) = (Some(public_of(&holder())), 2);
        self.register(&body, units)
    }

    /// The same, which must be renewed within that time.
    pub fn lease(&mut self, agent: &str, calls: u64, units: u64, within_ms: u64) -> TokenId {
        let mut body = self.token_body(agent, budget(calls, units), within_ms * 2);
        (body.holder, body.depth_max) = (Some(public_of(&holder())), 2);
        body.caveats = vec![TokenBody::renew_by_caveat(body.not_before.plus(within_ms))];
        self.register(&body, units)
    }

    fn register(&mut self, body: &TokenBody, units: u64) -> TokenId {
        let id = TokenBody::id_of(&body.to_bytes());
        let ticket = self.ticket();
        self.event(Event::Issue(ticket, Self::wire(body), None));
        self.tokens.push((id, units));
        id
    }
}

/// So many calls and units, and enough of the rest.
pub fn budget(calls: u64, units: u64) -> Budget {
    Budget::none()
        .with(Dimension::Calls, calls)
        .with(Dimension::DiskWriteBytes, units)
        .with(Dimension::WallUs, 1_000_000)
        .with(Dimension::CpuUs, 1_000_000)
        .with(Dimension::LlmTokens, 1_000)
        .with(Dimension::CreditsMicro, 1_000)
        .with(Dimension::Concurrent, 4)
}
