//! A call as the kernel asks about it.

use syscap_format::{
    AgentId, Amounts, Budget, Canonical, Dimension, EffectClass, FactKey, Facts, Grants, HomeId,
    Manifest, MapBuilder, PublicKey, Resource, Rights, Root, RootedPath, Source, TokenBody,
    TokenFlags, TokenId, ToolGrant, ToolId, UnixMillis, json,
};
use syscap_kernel::{Demand, History, Question};

/// Everything that a question borrows.
pub struct Asked {
    pub agent: AgentId,
    pub token: TokenId,
    pub body: TokenBody,
    pub grant: ToolGrant,
    pub manifest: Manifest,
    pub args: Canonical,
    pub demands: Vec<Demand>,
    pub hold: Amounts,
    pub left: Amounts,
    pub history: History,
    pub facts: Facts,
    pub now: UnixMillis,
}

/// Thursday, 1 January 1970, 13:00 in UTC.
pub const NOW: u64 = 13 * 3_600_000;

/// The key whose point is the group's base.
const KEY: [u8; 32] = {
    let mut key = [0x66; 32];
    key[0] = 0x58;
    key
};

impl Asked {
    /// `bob` calls a tool with arguments in JSON; nothing else is so.
    pub fn new(tool: &str, class: EffectClass, args: &str) -> Self {
        let agent = AgentId::new("bob").unwrap();
        Self {
            token: TokenId::from_bytes([0xab; 32]),
            body: TokenBody {
                version: 2,
                nonce: [0; 16],
                issuer: PublicKey::new(KEY).unwrap(),
                holder: None,
                agent: agent.clone(),
                parent: None,
                depth: 0,
                depth_max: 0,
                not_before: UnixMillis::new(0),
                expires: UnixMillis::new(NOW + 60_000),
                epoch: 0,
                grants: Grants::new(),
                budget: Budget::standard(),
                caveats: Vec::new(),
                policy: None,
                flags: TokenFlags::default(),
                ext: MapBuilder::new().finish(),
                audience: HomeId::from_bytes([0; 32]),
                head: None,
                renews: None,
            },
            agent,
            grant: ToolGrant::new(),
            manifest: Manifest::new(ToolId::new(tool).unwrap(), class),
            args: json::to_cbor(args.as_bytes()).unwrap(),
            demands: Vec::new(),
            hold: Amounts::ZERO.with(Dimension::Calls, 1),
            left: Amounts::ZERO.with(Dimension::Calls, 100),
            history: History::none(),
            facts: Facts::default(),
            now: UnixMillis::new(NOW),
        }
    }

    /// An argument that names a resource.
    pub fn demand(mut self, argument: &'static str, resource: Resource) -> Self {
        self.demands.push(Demand { dimension: "any", resource, argument });
        self
    }

    /// An argument that names a path: `shared/a`, or one in `bob`'s workspace.
    pub fn path(self, argument: &'static str, path: &str) -> Self {
        self.demand(argument, Resource::Path { path: rooted(path), needs: Rights::READ })
    }

    /// A fact, as JSON; one that was erased where there is none.
    pub fn fact(mut self, key: &str, value: Option<&str>) -> Self {
        let value = value.map(|text| json::to_cbor(text.as_bytes()).unwrap());
        self.facts.set(FactKey::new(key).unwrap(), value);
        self
    }

    pub fn question(&self) -> Question<'_> {
        Question {
            described: None,
            agent: &self.agent,
            token: self.token,
            body: &self.body,
            grant: &self.grant,
            manifest: &self.manifest,
            effect: self.manifest.effect,
            args: self.args.item(),
            demands: &self.demands,
            hold: &self.hold,
            left: &self.left,
            history: self.history.into(),
            facts: &self.facts,
            source: Source::Agent,
            now: self.now,
        }
    }
}

/// A path by its text.
pub fn rooted(path: &str) -> RootedPath {
    let mut parts = path.split('/');
    let root = match parts.next().unwrap() {
        "workspace" => Root::Workspace(AgentId::new("bob").unwrap()),
        name => Root::named(name).unwrap(),
    };
    RootedPath::new(root, parts).unwrap()
}
