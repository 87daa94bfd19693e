//! The body of a root token, made by its signer from a grant and the log.

use std::collections::BTreeSet;

use syscap_format::summary::nearest;
use syscap_format::{
    Budget, Canonical, Grants, Manifest, PublicKey, Reason, Refused, Scope, ScopeDimension,
    ScopeType, TokenBody, TokenId, ToolGrant, ToolId, UnixMillis,
};
use syscap_kernel::{Clock as _, Entropy as _, Kernel};

use syscap_syscalls::{fs::PATH_DIMENSION, marks::Mark, shell::DOES_DIMENSION};

use crate::inspect::view::RUN_MARK;
use crate::tools::commands::runs_text;
use crate::{Error, Grant, Inspection, SignerError, SystemClock, SystemEntropy};

/// How long a token lives where that is not said.
const LIFE_MS: u64 = 3_600_000;
/// How far a token that is signed beside the holder begins before this machine's time: the kernel's
/// may be a little behind it. It ends as much before the time that was asked for, so that its life
/// is the one that was asked for; of a short one that is a tenth of it.
const EARLIER_MS: u64 = 60_000;

/// By whom, to whom and when.
pub(crate) struct Signing {
    pub(crate) issuer: PublicKey,
    pub(crate) holder: Option<PublicKey>,
    pub(crate) nonce: [u8; 16],
    pub(crate) begins: UnixMillis,
}

/// The body of a root, over the last record that is durable.
pub(crate) fn root(kernel: &Kernel, grant: &Grant, signing: &Signing) -> Result<TokenBody, Error> {
    let agent = grant.agent()?;
    let grants = named(kernel, &grant.grants(&agent)?)?;
    compared(kernel, &grants, grant.renews)?;
    Ok(TokenBody {
        version: 2,
        nonce: signing.nonce,
        issuer: signing.issuer,
        holder: signing.holder,
        agent,
        parent: None,
        depth: 0,
        depth_max: grant.levels,
        not_before: signing.begins,
        expires: grant.ends.unwrap_or_else(|| signing.begins.plus(life_ms(grant))),
        epoch: kernel.epoch(),
        grants,
        budget: grant.budget_or(Budget::standard()),
        caveats: caveats(grant, signing.begins),
        policy: None,
        flags: grant.flags,
        ext: TokenBody::ext_with(grant.label),
        audience: kernel.home(),
        head: kernel.durable(),
        renews: grant.renews,
    })
}

fn life_ms(grant: &Grant) -> u64 {
    grant.life_ms().unwrap_or(LIFE_MS)
}

/// Grants under the tools' own ids: aliases resolved, unknown tools refused. The mark of a run is no
/// tool, and gives no right.
pub(crate) fn named(kernel: &Kernel, grants: &Grants) -> Result<Grants, Error> {
    let mut named = Grants::new();
    for (tool, grant) in grants.iter() {
        if tool.as_str() == RUN_MARK {
            named = named.with(tool.clone(), ToolGrant::new());
            continue;
        }
        let called = |m: &&Manifest| m.tool == *tool || m.aliases.contains(tool);
        let found: Option<ToolId> =
            kernel.manifests().find(called).map(|manifest| manifest.tool.clone());
        let got = tool.as_str().to_owned();
        let found = found.ok_or(Error::NoSuch { what: "the tool", got })?;
        named = named.with(found, grant.clone());
    }
    Ok(named)
}

/// Refuses a scope that no granted tool would compare: whoever grants it believes that it bounds
/// something. Roots are no such scopes, nor what is done below them: a grant may name them for
/// whoever it is handed on to, and for tools whose arguments an operator states later. Nor is what
/// the token that this one renews gives the same tool.
pub(crate) fn compared(
    kernel: &Kernel,
    grants: &Grants,
    renews: Option<TokenId>,
) -> Result<(), Error> {
    let renewed = renews.and_then(|token| kernel.token(&token)).map(|it| &it.body.grants);
    let has_had = |tool: &ToolId, dimension: &str| {
        renewed.and_then(|old| old.get(tool)).is_some_and(|old| old.scope(dimension).is_some())
    };
    let tools: Vec<(&Manifest, &ToolGrant)> = kernel
        .manifests()
        .filter_map(|manifest| Some((manifest, grants.get(&manifest.tool)?)))
        .collect();
    for (own, grant) in &tools {
        // Nothing else is known of a text that is run.
        if let Some(does) = grant.scope(DOES_DIMENSION).filter(|_| runs_text(own))
            && !has_had(&own.tool, DOES_DIMENSION)
            && !Scope::names([Mark::Unknown.name()]).is_ok_and(|only| only == *does)
        {
            let refused = Refused::new(Reason::BadScope).field(DOES_DIMENSION);
            return Err(refused.allowed(Mark::Unknown.name()).into());
        }
        let of_files = [PATH_DIMENSION, DOES_DIMENSION];
        for (dimension, scope) in grant.iter().filter(|(name, _)| !of_files.contains(name)) {
            if has_had(&own.tool, dimension) {
                continue;
            }
            let with = tools.iter().filter(|(_, grant)| grant.scope(dimension).is_some());
            let mut takes = with.filter(|(other, _)| other.declares(dimension)).peekable();
            if takes.peek().is_none() {
                return Err(undeclared(dimension, &tools).into());
            }
            let kinds: Vec<ScopeType> =
                takes.filter_map(|(other, _)| other.scope_type(dimension)).collect();
            if let Some(kind) = kinds.first()
                && !kinds.contains(&scope.scope_type())
            {
                let refused = Refused::new(Reason::BadScope).field(dimension);
                let got = scope.scope_type();
                return Err(refused.got(got.name()).allowed(kind.name()).into());
            }
        }
    }
    Ok(())
}

fn undeclared(dimension: &str, tools: &[(&Manifest, &ToolGrant)]) -> Refused {
    let own = tools.iter().flat_map(|(manifest, _)| manifest.dimensions.iter().map(|it| &**it));
    let known = ScopeDimension::ALL.iter().map(|known| known.name);
    let known = known.filter(|name| tools.iter().any(|(tool, _)| tool.declares(name)));
    let all: BTreeSet<&str> = own.chain(known).collect();
    let refused = Refused::new(Reason::BadScope).field(dimension).got(dimension);
    match all.is_empty() {
        true => refused.allowed("none: the tools take no scope"),
        false => refused.allowed(&nearest(dimension, all.into_iter())),
    }
}

/// The caveats of a grant, for a token that begins at that time.
pub(crate) fn caveats(grant: &Grant, begins: UnixMillis) -> Vec<Canonical> {
    let renew_by = grant.renew_ms.map(|within| TokenBody::renew_by_caveat(begins.plus(within)));
    let fresh = grant.fresh_ms.map(TokenBody::fresh_within_caveat);
    renew_by.into_iter().chain(fresh).collect()
}

impl Inspection {
    /// The body of a token for a signer outside the server, by a key of the issuer's: `syscap`
    /// signs it so where that key is sealed. It is registered by
    /// [`Runtime::register`](crate::Runtime::register).
    ///
    /// # Errors
    /// As [`Runtime::issue`](crate::Runtime::issue), before anything is signed; [`Error`] without
    /// random bytes; what `holder` says, who is asked for the home's own key of the holder's where
    /// the token can be handed on and names nobody. A token that is derived from another is its
    /// holder's to sign, and refused.
    pub fn token(
        &self,
        grant: &Grant,
        issuer: PublicKey,
        holder: impl FnOnce() -> Result<PublicKey, SignerError>,
    ) -> Result<TokenBody, Error> {
        if let Some(parent) = grant.parent {
            return Err(Error::NoSuch { what: "the root token", got: parent.to_string() });
        }
        let holder = match (grant.holder, grant.levels) {
            (None, 0) => None,
            (None, _) => Some(holder()?),
            named => named.0,
        };
        let mut nonce = [0; 16];
        SystemEntropy.fill(&mut nonce)?;
        let (kernel, wall) = (self.kernel(), SystemClock.read().wall);
        let life = grant.ends.map_or_else(|| life_ms(grant), |ends| ends.since(wall));
        let earlier = EARLIER_MS.min(life.div_euclid(10));
        let begins = UnixMillis::new(wall.get().saturating_sub(earlier)).max(kernel.now());
        root(kernel, grant, &Signing { issuer, holder, nonce, begins })
    }
}
