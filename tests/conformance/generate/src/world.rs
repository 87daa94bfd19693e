//! The parts of the document's examples: keys, salts, a home, a token.

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_format::{
    AgentId, Budget, CONTROL_CONTEXT, CallSalts, Control, ControlBody, Dimension, Durability,
    Grants, Head, HomeId, HomeLimits, MapBuilder, POSSESSION_CONTEXT, Possession, PublicKey,
    Rights, Role, Roles, Root, RootedPath, Rule, Salt, Scope, Seq, Signature, Signed,
    TOKEN_CONTEXT, Token, TokenBody, TokenFlags, TokenId, ToolGrant, ToolId, UnixMillis, leaf,
    possession, preimage, recovery_hash,
};
use syscap_kernel::{Event, Kernel, NewHome, Parts, Reading, Registry, Ticket};
use syscap_policy::WithinToken;

/// Seeds beyond those of the roles, which are their numbers.
pub(crate) const RECOVERY: u8 = 9;
pub(crate) const REVOKER_TOO: u8 = 10;
pub(crate) const ISSUER_NEXT: u8 = 11;

pub(crate) const TIME: u64 = 1_800_000_000_000;

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(crate) fn seed(role: Role) -> u8 {
    u8::try_from(role.code()).unwrap()
}

pub(crate) fn public(seed: u8) -> PublicKey {
    PublicKey::new(key(seed).verifying_key().to_bytes()).unwrap()
}

pub(crate) fn signed(seed: u8, context: &[u8], message: &[u8]) -> Signature {
    Signature::from_bytes(key(seed).sign(&preimage(context, message)).to_bytes())
}

/// An event that each of some keys signs as its first.
pub(crate) fn event<B: ControlBody>(home: &HomeId, head: Head, body: &B, seeds: &[u8]) -> Control {
    let body = body.to_bytes();
    let mut signatures: Vec<Signed> = seeds
        .iter()
        .map(|seed| {
            let (key, counter) = (public(*seed), 1);
            let message = Control::message(home, &head, &key, counter, B::KIND, &body);
            Signed { key, counter, signature: signed(*seed, CONTROL_CONTEXT, &message) }
        })
        .collect();
    signatures.sort_by_key(|signed| signed.key);
    Control { head, body, signatures }
}

pub(crate) fn proof(home: &HomeId, role: Role, seed: u8) -> Possession {
    let key = public(seed);
    let message = possession(home, role, &key);
    Possession { key, signature: signed(seed, POSSESSION_CONTEXT, &message) }
}

pub(crate) fn salts() -> CallSalts {
    let salt = |byte| Salt::from_bytes([byte; 32]);
    CallSalts { call: salt(0x11), args: salt(0x12), result: salt(0x13) }
}

pub(crate) fn agent() -> AgentId {
    AgentId::new("team/reader").unwrap()
}

pub(crate) fn reading(ms: u64) -> Reading {
    Reading { wall: UnixMillis::new(TIME + ms), boottime_ms: ms }
}

/// The home, made and opened.
pub(crate) fn opened(registry: Registry) -> Kernel {
    let roles = Role::IN_USE.map(|role| public(seed(role)));
    let new = NewHome {
        entropy: [0xe1; 32],
        origin: Box::from("syscap"),
        limits: HomeLimits::default(),
        durability: Durability::Full,
        roles: Roles::new(roles),
        recovery: Some(recovery_hash(&public(RECOVERY))),
    };
    let parts = Parts { engine: Box::new(WithinToken), registry };
    let mut kernel = Kernel::create(new, parts, reading(0)).unwrap();
    let boot = Event::Boot {
        ticket: Ticket(1),
        id: [0xb0; 16],
        software: Box::from("syscap 0.1.0"),
        durability: Durability::Full,
        probed: Vec::new(),
    };
    kernel.handle(boot, reading(1));
    kernel
}

/// A log: the home's id and its records.
pub(crate) struct Log {
    pub(crate) home: HomeId,
    pub(crate) records: Vec<Vec<u8>>,
}

impl Log {
    /// The home made, opened and closed.
    pub(crate) fn example() -> Self {
        let mut kernel = opened(Registry::new());
        kernel.handle(Event::Shutdown(Ticket(2)), reading(2));
        let batch = kernel.take_batch().unwrap();
        let records = batch.links().iter().map(|link| link.bytes.clone()).collect();
        Self { home: kernel.home(), records }
    }

    pub(crate) fn head(&self, seq: usize) -> Head {
        Head { seq: Seq::new(u64::try_from(seq).unwrap()), leaf: leaf(&self.records[seq]) }
    }

    /// A token for the home, over the head after its boot.
    pub(crate) fn token(&self) -> Vec<u8> {
        let path = RootedPath::new(Root::Workspace(agent()), [""; 0]).unwrap();
        let scope = Scope::paths([Rule { path, rights: Rights::READ }]).unwrap();
        let tool = ToolId::new("fs.read").unwrap();
        let grants = Grants::new().with(tool, ToolGrant::new().with("path", scope));
        let body = token_body(self.home, self.head(1), grants, TokenFlags::READ_ONLY).to_bytes();
        Token::wire(&body, &signed(seed(Role::Issuer), TOKEN_CONTEXT, &body))
    }

    pub(crate) fn token_id(&self) -> TokenId {
        Token::read(&self.token()).unwrap().id()
    }
}

pub(crate) fn token_body(home: HomeId, head: Head, grants: Grants, flags: TokenFlags) -> TokenBody {
    TokenBody {
        version: 2,
        nonce: [0xa0; 16],
        issuer: public(seed(Role::Issuer)),
        holder: None,
        agent: agent(),
        parent: None,
        depth: 0,
        depth_max: 0,
        not_before: UnixMillis::new(TIME),
        expires: UnixMillis::new(TIME + 3_600_000),
        epoch: 0,
        grants,
        budget: Budget::none()
            .with(Dimension::Calls, 100)
            .with(Dimension::CpuUs, 1_000_000)
            .with(Dimension::WallUs, 10_000_000)
            .with(Dimension::Concurrent, 4),
        caveats: Vec::new(),
        policy: None,
        flags,
        ext: MapBuilder::new().finish(),
        audience: home,
        head: Some(head),
        renews: None,
    }
}
