//! `syscap token issue` and `syscap token attenuate`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use syscap::format::{
    AgentId, Budget, Dimension, Manifest, PublicKey, Reason, Refused, Rights, Role, Root,
    RootedPath, Rule, Scope, ScopeDimension, ScopeType, TokenId, ToolId,
};
use syscap::syscalls::net::{URL_PATH_DIMENSION, URL_ROOT};
use syscap::view::TokenInfo;
use syscap::{Error, Grant, Home, Inspection, Runtime};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out};
use crate::token::{TokenName, narrow, now};
use crate::{parse, runtime, signing};

/// Sign a token, put it on record, and print its id.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap token issue home --agent researcher --tool fs.read,fs.write \\
    --read workspace --write workspace --budget calls=100 --expires 1h

A token lists what one agent may do: tools, folders and other scopes, and a budget. Without --budget
it has the standard budget, without --expires it is valid for an hour.")]
pub(crate) struct Issue {
    /// The home.
    home: PathBuf,
    #[command(flatten)]
    part: Part,
    /// The public key (hexadecimal) of the holder, who may attenuate the token in this home's place.
    #[arg(long, value_name = "KEY", value_parser = parse::key, help_heading = "Delegation")]
    held_by: Option<PublicKey>,
    /// The token of the same agent that this one replaces. It answers that token's idempotency keys,
    /// so a call that is sent again is not made again.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse, help_heading = "Life")]
    renews: Option<TokenName>,
    /// The token must be renewed within this time by `syscap token renew`, or it counts as revoked.
    #[arg(long, value_name = "DURATION", value_parser = parse::life, help_heading = "Life")]
    renew_by: Option<Duration>,
    /// Refuse every call (stale_revocations) while the home's revocation list is older than this or
    /// missing (`syscap revoke --list`).
    #[arg(long, value_name = "DURATION", value_parser = parse::life, help_heading = "Life")]
    fresh_within: Option<Duration>,
}

/// Which token goes on, and how long.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Signs and registers a token that renews the other and grants nothing itself: the renewed one keeps
its tools, its budget and its own end. What was not renewed in time stays as revoked for ever.")]
pub(crate) struct Renew {
    /// The home.
    home: PathBuf,
    /// The token, which was issued with --renew-by.
    #[arg(value_name = "ID", value_parser = TokenName::parse)]
    token: TokenName,
    /// By when, from now on, it must be renewed again.
    #[arg(long, value_name = "DURATION", value_parser = parse::life)]
    renew_by: Duration,
}

impl Renew {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let Self { home, token, renew_by } = self;
        let token = token.of(&home)?;
        let log = runtime::look(&home)?;
        let old = log.kernel().token(&token).filter(|old| old.renew_by.is_some());
        let agent = old.map(|old| old.body.agent.clone()).ok_or_else(|| {
            let advice = "is no token that must be renewed; see `syscap token list`".to_owned();
            Failure::Usage { what: token.to_string(), advice }
        })?;
        let grant = Grant::to(agent.as_str()).budget(Budget::none());
        let grant = grant.renews(token).expires_in(renew_by);
        let hand = signing::hand(&home, Role::Issuer)?;
        let issue = |access: &Runtime| hand.issue(access, &grant).map_err(Failure::from);
        let id = runtime::with(&home, issue)?;
        let json = Object::new().shown("token_id", id).shown("renewed", token);
        out.both(&format!("{token} renewed by {id}"), json)?;
        Ok(Exit::Done)
    }
}

/// Which token is issued once more, and what differs.
#[derive(Args, Debug)]
#[command(after_long_help = "\
The new token grants the same agent the same tools, roots, scopes and limits, with nothing used, for
as long a life. Whoever goes on by it begins with what the sessions of the old one, and of those that
it renewed, were given. A gateway that ran out goes on by it with its next call. The old one is left as it is.
A command that a refusal prints ends in --dry-run where it would grant more than the token did.")]
pub(crate) struct Reissue {
    /// The home.
    home: PathBuf,
    /// The token.
    #[arg(value_name = "ID", value_parser = TokenName::parse)]
    token: TokenName,
    /// A tool that it grants besides, without roots or scopes but those given here; may be given
    /// again.
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    tool: Vec<String>,
    /// A root to read below, for all its tools besides those that they have; may be given again.
    #[arg(long, value_name = "ROOT", value_parser = parse::root)]
    read: Vec<String>,
    /// A root to write below, in the same way.
    #[arg(long, value_name = "ROOT", value_parser = parse::root)]
    write: Vec<String>,
    /// The scope of its tools in another dimension; may be given again.
    #[arg(long, value_name = "DIMENSION=VALUE", value_parser = parse::scope)]
    scope: Vec<(String, String)>,
    /// A limit that is another, such as calls=100; may be given again.
    #[arg(long, value_name = "DIMENSION=AMOUNT", value_delimiter = ',',
          value_parser = parse::limit)]
    budget: Vec<(Dimension, u64)>,
    /// How long it lives: 90s, 15m, 1h, 7d.
    #[arg(long, value_name = "DURATION", value_parser = parse::life)]
    expires: Option<Duration>,
    /// Refill nothing: the new token has what is left of the old one, and its end, and the old one is
    /// revoked, as by `syscap token narrow`.
    #[arg(long, conflicts_with_all = ["budget", "expires", "dry_run"])]
    left: bool,
    /// Issue nothing: show which tools, scopes, limits and life the new token would have that the
    /// old one did not.
    #[arg(long)]
    dry_run: bool,
}

impl Reissue {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let Self { home, token, tool, read, write, scope, budget, expires, left, dry_run } = self;
        let token = token.of(&home)?;
        let log = runtime::look(&home)?;
        let tool = resolved(tool, || Ok(on_record(&log)))?;
        let grant = log.grant_like(token)?.tools(&tool);
        let grant = read.iter().fold(grant, |grant, root| grant.read(root));
        let grant = write.iter().fold(grant, |grant, root| grant.write(root));
        let scopes = scopes(&scope, || Ok(manifests(&log)))?.into_iter();
        let grant = scopes.fold(grant, |grant, (dimension, scope)| grant.scope(&dimension, scope));
        let grant = grant.besides()?;
        let grant = expires.iter().fold(grant, |grant, life| grant.expires_in(*life));
        let limits = budget.iter();
        let grant = limits.fold(grant, |grant, (dimension, limit)| grant.limit(*dimension, *limit));
        if left {
            let at = now(log.kernel().now());
            let old = log.tokens_named(&token.to_string(), at).pop();
            let old = old.ok_or_else(|| Failure::unknown(token, &home))?;
            // Nobody signs it: any key does.
            let grants = log.token(&grant, old.body.issuer, || Ok(old.body.issuer))?.grants;
            let signers = narrow::Signers::of(&home)?;
            let done = narrow::replace(&home, &signers, &old, &grants, "replaced")?;
            let json = Object::new().shown("token_id", done.token).shown("like", token);
            return out.both(&done.token.to_string(), json).map(|()| Exit::Done);
        }
        if dry_run {
            return added(&home, &log, token, Asked { grant, expires }, out);
        }
        let hand = signing::hand(&home, Role::Issuer)?;
        let id = runtime::with(&home, |access: &Runtime| {
            hand.issue(access, &grant).map_err(|error| named(error, access))
        })?;
        let json = Object::new().shown("token_id", id).shown("like", token);
        out.both(&id.to_string(), json)?;
        Ok(Exit::Done)
    }
}

/// The grant of a new token, and its life if one is given.
struct Asked {
    grant: Grant,
    expires: Option<Duration>,
}

/// Prints what a grant permits beyond a token: a line for each tool, scope and limit, and one for a
/// longer life.
fn added(home: &Path, log: &Inspection, token: TokenId, asked: Asked, out: &mut Out) -> Ended {
    let unknown = || Failure::unknown(token, home);
    let old = log.kernel().token(&token).ok_or_else(unknown)?.body;
    // Nobody signs it: any key does.
    let new = log.token(&asked.grant, old.issuer, || Ok(old.issuer))?;
    let mut more = Vec::new();
    for (tool, grant) in new.grants.iter() {
        let had = old.grants.get(tool);
        if had.is_none() {
            more.push((tool.as_str(), None));
        }
        let scopes = grant.iter().filter(|(dimension, scope)| {
            let had = had.and_then(|had| had.scope(dimension));
            !had.is_some_and(|had| scope.leq(had))
        });
        more.extend(scopes.map(|scope| (tool.as_str(), Some(scope))));
    }
    let limits = Dimension::ALL.into_iter().filter_map(|dimension| {
        let limit = new.budget.amounts().get(dimension);
        (limit > old.budget.amounts().get(dimension)).then_some((dimension, limit))
    });
    let limits: Vec<(Dimension, u64)> = limits.collect();
    let had = Duration::from_millis(old.expires.since(old.not_before));
    let life = asked.expires.filter(|life| *life > had);
    for (tool, scope) in &more {
        let json = Object::new().shown("like", token).text("tool", tool);
        match scope {
            None => out.both(&format!("+ {tool}"), json)?,
            Some((dimension, scope)) => out.both(
                &format!("+ {tool}  {dimension}: {scope}"),
                json.text("dimension", dimension).shown("scope", scope),
            )?,
        }
    }
    for (dimension, limit) in &limits {
        let json = Object::new().shown("like", token).text("budget", dimension.name());
        out.both(&format!("+ {}={limit}", dimension.name()), json.uint("limit", *limit))?;
    }
    if let Some(life) = life {
        let json = Object::new().shown("like", token).uint("life_s", life.as_secs());
        out.both(&format!("+ life: {} s", life.as_secs()), json)?;
    }
    out.flush()?;
    match more.is_empty() && limits.is_empty() && life.is_none() {
        true => tell("nothing was issued; the new token would hold what the old one did at first"),
        false => tell("nothing was issued; the same command without --dry-run grants this"),
    }
    Ok(Exit::Done)
}

/// The delegated part, and its holder.
#[derive(Args, Debug)]
pub(crate) struct Attenuate {
    /// The home.
    home: PathBuf,
    /// The token of which a part is handed on; one that was issued with --delegable.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse)]
    from: TokenName,
    #[command(flatten)]
    part: Part,
}

/// The token's contents.
#[derive(Args, Debug)]
struct Part {
    /// The agent that may use it.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// A tool that it grants (may be repeated). `notes.*` is every tool on record now whose name
    /// begins so, `*` every tool.
    #[arg(long, value_name = "TOOL", required = true, value_delimiter = ',')]
    tool: Vec<String>,
    /// A folder to read below: workspace, shared, shared/docs (may be repeated).
    #[arg(long, value_name = "ROOT", value_parser = parse::root, help_heading = "Scopes")]
    read: Vec<String>,
    /// A folder to write below (may be repeated).
    #[arg(long, value_name = "ROOT", value_parser = parse::root, help_heading = "Scopes")]
    write: Vec<String>,
    /// A scope other than paths, as a tool needs it: collection=acme/docs, host=*.example.com,
    /// port=8443, address=10.1.0.0/16, scheme=http (may be repeated, also of one dimension).
    #[arg(long, value_name = "DIMENSION=VALUE", value_parser = parse::scope)]
    #[arg(help_heading = "Scopes")]
    scope: Vec<(String, String)>,
    /// A limit such as calls=100 (may be repeated). The other limits are those of the standard
    /// budget, or of the token that this one is attenuated from.
    #[arg(long, value_name = "DIMENSION=AMOUNT", value_delimiter = ',',
          value_parser = parse::limit, help_heading = "Budget")]
    budget: Vec<(Dimension, u64)>,
    /// How long it is valid: 90s, 15m, 1h, 7d. If absent an hour, or as long as the token that it is
    /// attenuated from.
    #[arg(long, value_name = "DURATION", value_parser = parse::life, help_heading = "Life")]
    expires: Option<Duration>,
    /// How many levels it may be attenuated by `syscap token attenuate`.
    #[arg(long, value_name = "LEVELS", default_value_t = 0, help_heading = "Delegation")]
    delegable: u64,
}

/// The names of all tools on record.
fn on_record(log: &Inspection) -> Vec<ToolId> {
    log.kernel().manifests().map(|manifest| manifest.tool.clone()).collect()
}

/// The names of all tools that a token grants.
fn granted(log: &Inspection, token: TokenId) -> Vec<ToolId> {
    let token = log.kernel().token(&token);
    token
        .map(|token| token.body.grants.iter().map(|(tool, _)| tool.clone()).collect())
        .unwrap_or_default()
}

/// The tools by their names: what a pattern means is settled here, once. A pattern that means none
/// is a mistake.
fn resolved(
    words: Vec<String>,
    there: impl FnOnce() -> Result<Vec<ToolId>, Failure>,
) -> Result<Vec<String>, Failure> {
    if !words.iter().any(|word| word.contains('*')) {
        return Ok(words);
    }
    let there = there()?;
    let mut names: Vec<String> = Vec::new();
    for word in words {
        if !word.contains('*') {
            names.push(word);
            continue;
        }
        let bad = |advice: String| Failure::Usage { what: format!("--tool {word}"), advice };
        let pattern = parse::tools(&word).map_err(|error| bad(error.to_string()))?;
        let before = names.len();
        names.extend(there.iter().map(ToString::to_string).filter(|tool| pattern.include(tool)));
        if names.len() == before {
            let all: Vec<&str> = there.iter().map(ToolId::as_str).collect();
            return Err(bad(format!("names no tool; there are {}", all.join(", "))));
        }
    }
    // One may be meant by several words.
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

/// How long a token lives where nobody says so.
const LIFE: Duration = Duration::from_secs(3_600);

impl Issue {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let Self { home, mut part, held_by, renews, renew_by, fresh_within } = self;
        part.tool = resolved(part.tool, || Ok(on_record(&runtime::look(&home)?)))?;
        let life = part.expires.unwrap_or(LIFE);
        if renew_by.is_some_and(|by| by >= life) {
            let advice = "must come before the token's end: say when that is, with --expires";
            return Err(Failure::Usage {
                what: "--renew-by".to_owned(),
                advice: advice.to_owned(),
            });
        }
        let grant = held_by.iter().fold(part.grant(&home)?, |grant, key| grant.held_by(*key));
        let renews = TokenName::of_any(renews.as_ref(), &home)?;
        let grant = renews.iter().fold(grant, |grant, token| grant.renews(*token));
        let grant = renew_by.iter().fold(grant, |grant, time| grant.renew_within(*time));
        let grant = fresh_within.iter().fold(grant, |grant, time| grant.fresh_within(*time));
        let hand = signing::hand(&home, Role::Issuer)?;
        part.tell(&home, |access| hand.issue(access, &grant), out)
    }
}

impl Attenuate {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let Self { home, from, mut part } = self;
        let from = from.of(&home)?;
        part.tool = resolved(part.tool, || Ok(granted(&runtime::look(&home)?, from)))?;
        let grant = part.grant(&home)?;
        let derive = |access: &Runtime| match access.attenuate(from, grant.clone()) {
            Err(Error::Refused(refused)) if refused.reason() == Reason::OutOfScope => {
                let whole =
                    access.view()?.token(from).and_then(|whole| part.exceeds(whole, &refused));
                let refused = whole
                    .iter()
                    .fold(refused, |refused, (more, most)| refused.got(more).allowed(most));
                Err(Error::Refused(refused))
            }
            derived => derived,
        };
        part.tell(&home, derive, out)
    }
}

impl Part {
    fn tell(
        &self,
        home: &Path,
        issue: impl Fn(&Runtime) -> Result<TokenId, Error>,
        out: &mut Out,
    ) -> Ended {
        let new = self.new_roots(home)?;
        let (id, rootless, scopeless) = runtime::with(home, |access| {
            let id = issue(access).map_err(|error| named(error, access))?;
            Ok((id, self.rootless(access)?, self.scopeless(access)))
        })?;
        let json = Object::new().shown("token_id", id).shown("agent", &self.agent);
        out.both(&id.to_string(), json)?;
        out.flush()?;
        for root in new {
            tell(&format!("{root} is a new folder, beside workspace and shared: was it meant?"));
        }
        for tool in rootless {
            tell(&format!("{tool} needs a root, and is given none: see --read and --write"));
        }
        for (tool, dimension) in scopeless {
            tell(&format!("{tool} needs a {dimension}, and is given none: see --scope"));
        }
        self.doubts().iter().for_each(|doubt| tell(doubt));
        Ok(Exit::Done)
    }

    /// The roots that are not there yet: whoever is granted one has it made.
    fn new_roots(&self, home: &Path) -> Result<BTreeSet<&str>, Failure> {
        let base = Home::at(home).base()?;
        let firsts = self.read.iter().chain(&self.write).filter_map(|root| root.split('/').next());
        let is_new = |root: &&str| *root != "workspace" && !base.join(root).exists();
        Ok(firsts.filter(is_new).collect())
    }

    /// The tools that can do nothing with what they are given.
    fn rootless(&self, access: &Runtime) -> Result<Vec<ToolId>, Failure> {
        if !self.read.is_empty() || !self.write.is_empty() {
            return Ok(Vec::new());
        }
        let granted = self.tool.iter().filter_map(|tool| ToolId::new(tool));
        let mut found = Vec::new();
        for tool in granted {
            // An alias, say: it was granted, and is left alone.
            let Ok(detail) = access.tool(&tool) else { continue };
            if detail.manifest.dimensions.iter().any(|dimension| **dimension == *"path") {
                found.push(tool);
            }
        }
        Ok(found)
    }

    /// The tools that can do nothing without a scope that they are not given, and its dimension.
    fn scopeless(&self, access: &Runtime) -> Vec<(ToolId, String)> {
        let given = |dimension: &str| {
            let is = |given: &str| ScopeDimension::compares(given, dimension);
            dimension == "path" || self.scope.iter().any(|(given, _)| is(given))
        };
        let granted = self.tool.iter().filter_map(|tool| ToolId::new(tool));
        let mut found = Vec::new();
        for tool in granted {
            // An alias, say: it was granted, and is left alone.
            let Ok(detail) = access.tool(&tool) else { continue };
            let lacking = detail.manifest.dimensions.iter().find(|dimension| !given(dimension));
            found.extend(lacking.map(|dimension| (tool, dimension.to_string())));
        }
        found
    }

    /// Scopes that may have been meant otherwise.
    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        for (dimension, value) in &self.scope {
            if value.contains(',') {
                doubts.push(format!("{dimension}={value} is one name: give --scope for each"));
            }
        }
        doubts
    }

    /// The part that exceeds a token's parent, and the parent's value.
    fn exceeds(&self, whole: &TokenInfo, refused: &Refused) -> Option<(String, String)> {
        if refused.is_about("agent") && !self.agent.is_within(&whole.agent) {
            return Some((format!("--agent {}", self.agent), format!("{} or below", whole.agent)));
        }
        let tools: Vec<&str> = whole.tools.iter().map(ToolId::as_str).collect();
        if let Some(more) = self.tool.iter().find(|tool| !tools.contains(&tool.as_str())) {
            return Some((format!("--tool {more}"), tools.join(", ")));
        }
        let over = |(dimension, limit): &&(Dimension, u64)| *limit > whole.limits.get(*dimension);
        if let Some((dimension, limit)) = self.budget.iter().find(over) {
            let most = whole.limits.get(*dimension);
            return Some((
                format!("--budget {}={limit}", dimension.name()),
                format!("{most} at most"),
            ));
        }
        if refused.is_about("expires") {
            let life = self.expires.map_or(0, |life| life.as_secs());
            let most = format!("until {} at most", whole.expires);
            return Some((format!("--expires {life}s"), most));
        }
        let roots: Vec<&str> = self.read.iter().chain(&self.write).map(String::as_str).collect();
        let most = "the roots and rights that `syscap token show` has of it".to_owned();
        refused.is_about("grants").then(|| (roots.join(", "), most))
    }

    fn grant(&self, home: &Path) -> Result<Grant, Failure> {
        let grant = Grant::to(self.agent.as_str()).tools(&self.tool).delegable(self.delegable);
        let grant = self.read.iter().fold(grant, |grant, root| grant.read(root));
        let grant = self.write.iter().fold(grant, |grant, root| grant.write(root));
        let grant = self.expires.iter().fold(grant, |grant, life| grant.expires_in(*life));
        let limits = self.budget.iter();
        let grant = limits.fold(grant, |grant, (dimension, limit)| grant.limit(*dimension, *limit));
        let scopes = scopes(&self.scope, || on_home(home))?.into_iter();
        Ok(scopes.fold(grant, |grant, (dimension, scope)| grant.scope(&dimension, scope)))
    }
}

/// The scopes of `--scope`: repeating a dimension permits more. Each scope has the type that the
/// dimension has in the table, or by the manifest of a tool that declares it; names where neither
/// says one.
pub(crate) fn scopes(
    words: &[(String, String)],
    tools: impl FnOnce() -> Result<Vec<Manifest>, Failure>,
) -> Result<Vec<(String, Scope)>, Failure> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (dimension, value) in words {
        values.entry(dimension).or_default().push(value);
    }
    let is_known = |dimension: &&str| ScopeDimension::named(dimension).is_some();
    let tools = if values.keys().all(is_known) { Vec::new() } else { tools()? };
    let scope = |(dimension, values): (&str, Vec<&str>)| {
        let table = ScopeDimension::named(dimension).map(|known| known.kind);
        let own = || tools.iter().find_map(|tool| tool.scope_type(dimension));
        let kind = table.or_else(own).unwrap_or(ScopeType::Names);
        // A host's own tool may have a dimension of that name.
        let of_urls = dimension == URL_PATH_DIMENSION && own().is_none();
        let scope = if of_urls { url_paths(&values) } else { Scope::read(kind, &values) };
        let kind = if of_urls { ScopeType::Paths } else { kind };
        let scope = scope.ok_or_else(|| Failure::Usage {
            what: format!("--scope {dimension}"),
            advice: format!("takes {kind}, and has a value of another form, or too many"),
        })?;
        Ok((dimension.to_owned(), scope))
    };
    values.into_iter().map(scope).collect()
}

/// Paths of URLs, as `url/api/v2` or `/api/v2`: for reading and writing, since a method is bounded
/// by the tool and the policy.
fn url_paths(values: &[&str]) -> Option<Scope> {
    let rule = |text: &&str| {
        let below = match text.strip_prefix('/') {
            Some(below) => below,
            None if *text == URL_ROOT => "",
            None => text.strip_prefix(URL_ROOT)?.strip_prefix('/')?,
        };
        let components = below.split('/').filter(|component| !component.is_empty());
        let path = RootedPath::new(Root::named(URL_ROOT).ok()?, components).ok()?;
        Some(Rule { path, rights: Rights::READ.union(Rights::WRITE) })
    };
    let rules: Option<Vec<Rule>> = values.iter().map(rule).collect();
    Scope::paths(rules?).ok()
}

/// The tools on record.
fn manifests(log: &Inspection) -> Vec<Manifest> {
    log.kernel().manifests().cloned().collect()
}

/// The same of a home that is not open yet.
fn on_home(home: &Path) -> Result<Vec<Manifest>, Failure> {
    runtime::look(home).map(|log| manifests(&log))
}

/// Names the tools there are, where one is asked for that is not there.
fn named(error: Error, access: &Runtime) -> Failure {
    let unknown = match &error {
        Error::NoSuch { what: "the tool", got } => got.clone(),
        _ => return error.into(),
    };
    match access.view() {
        Ok(view) => {
            let tools: Vec<&str> = view.tools.iter().map(|info| info.tool.as_str()).collect();
            let advice = format!("is no tool; there are {}", tools.join(", "));
            Failure::Usage { what: unknown, advice }
        }
        Err(_) => error.into(),
    }
}
