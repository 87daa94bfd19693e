//! A tool given to an agent by the console's page: one more tool for the newest of its tokens, with what
//! is left of that.

use std::path::{Path, PathBuf};

use syscap::format::{AgentId, Grants, Manifest, Seq, TokenId, ToolGrant, ToolId};
use syscap::view::{TokenDetail, TokenStanding};

use super::{narrow, now};
use crate::exit::Failure;
use crate::output::{Object, array, quote, word_of};
use crate::runtime;

/// A tool that an agent has no token for, and the token that would grant it.
pub(crate) struct Gift {
    home: PathBuf,
    manifest: Manifest,
    /// The token that another is to replace.
    old: TokenDetail,
    grant: ToolGrant,
    /// The token that the scopes are from.
    scopes_of: Option<TokenId>,
}

impl Gift {
    /// With the scopes that the agent's last token for the tool had; without one, with those that the
    /// replaced token has for other tools.
    pub(crate) fn of(home: &Path, agent: &AgentId, tool: &ToolId) -> Result<Self, Failure> {
        let log = runtime::look(home)?;
        let (kernel, at) = (log.kernel(), now(log.kernel().now()));
        let bad = |what: String, advice: &str| Failure::Usage { what, advice: advice.to_owned() };
        let manifest = kernel.manifests().find(|manifest| manifest.tool == *tool);
        let none = || bad(tool.to_string(), "is no tool on record");
        let manifest = manifest.ok_or_else(none)?.clone();
        let of_agent = || kernel.tokens().rev().filter(|token| token.body.agent == *agent);
        let live = |token: &TokenId| {
            let found = log.tokens_named(&token.to_string(), at).pop();
            found.filter(|token| token.info.standing == TokenStanding::Live)
        };
        let mut roots = of_agent().filter(|token| token.body.parent.is_none());
        let old = roots.find_map(|token| live(&token.id)).ok_or_else(|| {
            bad(agent.to_string(), "has no token that can be used; see `syscap token issue`")
        })?;
        if old.body.grants.get(tool).is_some() {
            return Err(bad(format!("{tool} of {agent}"), "is granted already"));
        }
        let last = of_agent().find_map(|token| Some((token.id, token.body.grants.get(tool)?)));
        let (grant, scopes_of) = match last {
            Some((token, grant)) => (grant.clone(), Some(token)),
            None => (like_others(&manifest, &old.body.grants), None),
        };
        let gift = Self { home: home.to_path_buf(), manifest, old, grant, scopes_of };
        // Says before anybody is asked that it can't be replaced.
        gift.old.replaced_by(gift.grants()).map(drop)?;
        Ok(gift)
    }

    pub(crate) const fn agent(&self) -> &AgentId {
        &self.old.body.agent
    }

    fn grants(&self) -> Grants {
        let tool = self.manifest.tool.clone();
        self.old.body.grants.clone().with(tool, self.grant.clone())
    }

    /// For the page.
    pub(crate) fn json(&self) -> String {
        let Self { home, manifest, old, grant, scopes_of } = self;
        let scopes = grant.iter().map(|(dimension, scope)| {
            Object::new().text("dimension", dimension).shown("scope", scope).finish()
        });
        let lacks = manifest.dimensions.iter().filter(|need| grant.scope(need).is_none());
        let (tool, token) = (&manifest.tool, old.info.id);
        let object = Object::new()
            .shown("agent", &old.body.agent)
            .shown("tool", tool)
            .text("class", manifest.effect.name())
            .shown("token", token)
            .shown("expires", old.body.expires)
            .json("scopes", &array(scopes))
            .json("lacks", &array(lacks.map(|need| quote(need))))
            .text(
                "command",
                &format!("syscap token reissue {} {token} --tool {tool} --left", word_of(home)),
            );
        scopes_of.iter().fold(object, |object, token| object.shown("scopes_of", token)).finish()
    }

    /// In one line.
    pub(crate) fn line(&self) -> String {
        let Self { manifest, old, grant, .. } = self;
        let scopes = grant.iter().map(|(dimension, scope)| format!("{dimension} {scope}"));
        let scopes: Vec<String> = scopes.collect();
        let scopes = if scopes.is_empty() { "no scopes".to_owned() } else { scopes.join("; ") };
        let (agent, tool) = (&old.body.agent, &manifest.tool);
        format!("give {agent} {tool} ({}): {scopes}", manifest.effect)
    }

    /// Has the token replaced; the record by which the old one ended.
    pub(crate) fn record(self) -> Result<Seq, Failure> {
        let signers = narrow::Signers::of(&self.home)?;
        let grants = self.grants();
        let done = narrow::replace(&self.home, &signers, &self.old, &grants, "replaced")?;
        Ok(done.revoked)
    }
}

/// What a tool needs, as other tools of a token have it: no more than the agent reaches already.
fn like_others(manifest: &Manifest, grants: &Grants) -> ToolGrant {
    let scope = |need: &str| grants.iter().find_map(|(_, grant)| grant.scope(need));
    let found = manifest.dimensions.iter().filter_map(|need| Some((need, scope(need)?.clone())));
    found.fold(ToolGrant::new(), |grant, (need, scope)| grant.with(need, scope))
}
