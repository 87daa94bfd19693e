//! `syscap token narrow`: less than a token grants, in its place.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{AgentId, Budget, Grants, Revocation, Role, Seq, TokenId, ToolId};
use syscap::view::{RUN_MARK, TokenDetail, TokenStanding};
use syscap::{Beside, Grant};

use super::{TokenName, now};
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::output::{Object, Out, array, quote, word_of};
use crate::signing::{self, Hand, Person};
use crate::{parse, runtime};

/// The reason on record for the end of the old token.
const CAUSE: &str = "narrowed";

/// Which tokens, and what they lose.
#[derive(Args, Debug)]
#[command(
    override_usage = "syscap token narrow <HOME> <ID|--agent NAME> [--without TOOL].. [--path PATHS].. \
                      [--dry-run]",
    after_long_help = "\
Each token that has something to lose is revoked, as `narrowed`, and another is in its place that renews
it: with less, what was left of its budget, and its own end. Where no token can be issued nothing ends.
A call in between is refused. Gateways and runs go on by the new token with their next call; label, idempotency
keys and standing approvals stay. What was derived from the old token ends with it, and is listed."
)]
pub(crate) struct Narrow {
    /// The home.
    home: PathBuf,
    #[command(flatten)]
    which: Which,
    /// A tool that it grants no more; may be given again.
    #[arg(long, value_name = "TOOL", value_delimiter = ',', value_parser = parse::tool)]
    without: Vec<ToolId>,
    /// The only paths that stay, with all below them: workspace/notes,shared; may be given again.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', value_parser = parse::root)]
    path: Vec<String>,
    /// Issue and revoke nothing: show what each token would lose.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Which {
    /// The token, which was derived from no other.
    #[arg(value_name = "ID", value_parser = TokenName::parse)]
    id: Option<TokenName>,
    /// All tokens of this agent that can be used and were derived from no other.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
}

/// Takes tools, and all paths but those, from each token of an agent's that can be used; what it says
/// for people.
pub(crate) fn take_away(
    home: &Path,
    agent: AgentId,
    without: Vec<ToolId>,
    path: Vec<String>,
) -> Result<String, Failure> {
    let which = Which { id: None, agent: Some(agent) };
    let narrow = Narrow { home: home.to_path_buf(), which, without, path, dry_run: false };
    let lines = Out::lines(|out| narrow.run(out).map(drop))?;
    Ok(lines.join("\n"))
}

impl Narrow {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        if self.without.is_empty() && self.path.is_empty() {
            let advice = "say what it loses: --without TOOL, --path PATHS".to_owned();
            return Err(Failure::Usage { what: "token narrow".to_owned(), advice });
        }
        let (mut narrowed, tokens) = (0_u32, self.tokens()?);
        let signers = if self.dry_run { None } else { Some(Signers::of(&self.home)?) };
        for old in tokens {
            let grants = old.less(&self.without, &self.path)?;
            if grants == old.body.grants {
                continue;
            }
            narrowed = narrowed.saturating_add(1);
            let lost = Lost::of(&old, &grants);
            let Some(signers) = &signers else {
                let first = format!("{} would lose:", old.info.id);
                lost.show(&old, first, Object::new().shown("narrowed", old.info.id), out)?;
                continue;
            };
            let ended = derived(&self.home, old.info.id)?;
            let done = replace(&self.home, signers, &old, &grants, CAUSE)?;
            let json = Object::new().shown("token_id", done.token).shown("narrowed", old.info.id);
            let first =
                format!("{} narrowed to {}, by record {}", old.info.id, done.token, done.revoked);
            lost.show(&old, first, json.uint("record", done.revoked.get()), out)?;
            for (id, agent) in ended {
                diagnose(&format!(
                    "{id} of {agent}, which was derived from it, has ended: see `syscap token show`, and \
                     hand a part of {} on by `syscap token attenuate`",
                    done.token
                ));
            }
        }
        match narrowed {
            0 => tell("no token that can be used has any of this: nothing was changed"),
            _ if self.dry_run => {
                tell("nothing was changed; the same command without --dry-run does this")
            }
            _ => {}
        }
        Ok(Exit::Done)
    }

    /// The tokens that are meant, whole.
    fn tokens(&self) -> Result<Vec<TokenDetail>, Failure> {
        let log = runtime::look(&self.home)?;
        let (kernel, at) = (log.kernel(), now(log.kernel().now()));
        let whole = |id: TokenId| log.tokens_named(&id.to_string(), at).pop();
        if let Some(name) = &self.which.id {
            let id = name.of(&self.home)?;
            let token = whole(id).ok_or_else(|| Failure::unknown(id, &self.home))?;
            if let Some(parent) = token.body.parent {
                let advice = format!(
                    "was derived from {parent}: revoke it (`syscap token revoke`), and hand a smaller part \
                     on (`syscap token attenuate --from {parent}`)"
                );
                return Err(Failure::Usage { what: id.to_string(), advice });
            }
            if token.info.standing != TokenStanding::Live {
                let advice = format!(
                    "can't be used ({}): nothing is to be taken",
                    token.info.standing.name()
                );
                return Err(Failure::Usage { what: id.to_string(), advice });
            }
            return Ok(vec![token]);
        }
        let of_agent = kernel.tokens().filter(|token| {
            Some(&token.body.agent) == self.which.agent.as_ref() && token.body.parent.is_none()
        });
        let all = of_agent.filter_map(|token| whole(token.id));
        Ok(all.filter(|token| token.info.standing == TokenStanding::Live).collect())
    }
}

/// The live tokens that were derived from one, and their agents.
fn derived(home: &Path, token: TokenId) -> Result<Vec<(TokenId, AgentId)>, Failure> {
    let log = runtime::look(home)?;
    let (kernel, at) = (log.kernel(), now(log.kernel().now()));
    let mut line = vec![token];
    let mut found = Vec::new();
    // Each was registered after the one that it was derived from.
    for next in kernel.tokens() {
        if next.body.parent.is_some_and(|parent| line.contains(&parent)) {
            line.push(next.id);
            if TokenStanding::of(&next, at) == TokenStanding::Live {
                found.push((next.id, next.body.agent.clone()));
            }
        }
    }
    Ok(found)
}

/// One token in the place of another.
pub(super) struct Replaced {
    pub(super) token: TokenId,
    /// The record by which the old one ended.
    pub(super) revoked: Seq,
}

/// Whoever signs: a passphrase is asked for once, before anything changes.
pub(super) struct Signers {
    issuer: Hand,
    revoker: Person,
}

impl Signers {
    pub(super) fn of(home: &Path) -> Result<Self, Failure> {
        let issuer = signing::hand(home, Role::Issuer)?;
        Ok(Self { issuer, revoker: signing::own(home, Role::Revoker)? })
    }

    fn issue(&self, home: &Path, grant: &Grant) -> Result<TokenId, Failure> {
        runtime::with(home, |access| self.issuer.issue(access, grant).map_err(Failure::from))
    }

    fn revoke(&self, home: &Path, token: TokenId, cause: &str) -> Result<Seq, Failure> {
        let why = signing::salted::<Revocation>(cause)?;
        let body = Revocation { cause: Some(why.hash()), ..Revocation::subtree(token) };
        let beside = Beside::Why(why);
        runtime::with(home, |access| {
            self.revoker.submit(access, |_| Ok(body.clone()), &beside, Failure::from)
        })
    }
}

/// Puts a token with other grants in the place of one: first one that grants nothing and renews it, so
/// that what is refused is refused before anything has ended; then the old one ends, and what it has
/// left is final; then the new one gets just that.
pub(super) fn replace(
    home: &Path,
    signers: &Signers,
    old: &TokenDetail,
    grants: &Grants,
    cause: &str,
) -> Result<Replaced, Failure> {
    let between = signers.issue(home, &old.replaced_by(Grants::new())?.budget(Budget::none()))?;
    if let Some(why) = before(home, old.info.id, between)? {
        // Two that went on would give what is left twice.
        signers.revoke(home, between, "another was first")?;
        return Err(Failure::Usage { what: old.info.id.to_string(), advice: why });
    }
    let revoked = signers.revoke(home, old.info.id, cause)?;
    let ended = whole(home, old.info.id)?;
    let grant = ended.replaced_by(grants.clone())?.renews(between);
    let token = signers.issue(home, &grant).inspect_err(|_| {
        diagnose(&format!(
            "{} has ended by record {revoked}, and nothing is in its place: see `syscap token show` for \
             what it had, and `syscap token issue --renews {between}`",
            old.info.id
        ));
    })?;
    // Else it would stand for a line that somebody has ended.
    signers.revoke(home, between, cause)?;
    Ok(Replaced { token, revoked })
}

/// Why a command whose own token that grants nothing is `own` does not go on: the old one has ended
/// already, or the first such token that was not revoked is another's.
fn before(home: &Path, old: TokenId, own: TokenId) -> Result<Option<String>, Failure> {
    let log = runtime::look(home)?;
    let (kernel, at) = (log.kernel(), now(log.kernel().now()));
    let Some(token) = kernel.token(&old).filter(|old| !old.is_revoked(at)) else {
        return Ok(Some("was revoked meanwhile".to_owned()));
    };
    let end = token.body.expires;
    let first = kernel.tokens().find(|token| {
        let is_nothing = token.body.grants.iter().next().is_none() && !token.is_revoked(at);
        // What renews a lease ends with that.
        is_nothing && token.body.renews == Some(old) && token.body.expires == end
    });
    let other = first.map(|token| token.id).filter(|first| *first != own);
    Ok(other.map(|other| {
        format!(
            "is being replaced by another command, which issued {other}; if that broke off: syscap revoke \
             {} {other}, and try again",
            word_of(home)
        )
    }))
}

/// A token whole, as the log has it.
fn whole(home: &Path, token: TokenId) -> Result<TokenDetail, Failure> {
    let log = runtime::look(home)?;
    let found = log.tokens_named(&token.to_string(), now(log.kernel().now())).pop();
    found.ok_or_else(|| Failure::unknown(token, home))
}

/// What a token grants no more.
struct Lost {
    tools: Vec<ToolId>,
    /// Tool, dimension, and what of that stays.
    scopes: Vec<(ToolId, String, String)>,
}

impl Lost {
    fn of(old: &TokenDetail, grants: &Grants) -> Self {
        let (mut tools, mut scopes) = (Vec::new(), Vec::new());
        for (tool, had) in old.body.grants.iter().filter(|(tool, _)| tool.as_str() != RUN_MARK) {
            let Some(has) = grants.get(tool) else {
                tools.push(tool.clone());
                continue;
            };
            let less = has.iter().filter(|(dimension, scope)| had.scope(dimension) != Some(scope));
            scopes.extend(
                less.map(|(dimension, scope)| {
                    (tool.clone(), dimension.to_owned(), scope.to_string())
                }),
            );
        }
        Self { tools, scopes }
    }

    fn show(
        &self,
        old: &TokenDetail,
        first: String,
        json: Object,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let tools = self.tools.iter().map(|tool| format!("- {tool}"));
        let kept = |(tool, dimension, scope): &(ToolId, String, String)| {
            format!("- {tool}  {dimension}: but {scope}")
        };
        let lines: Vec<String> =
            [first].into_iter().chain(tools).chain(self.scopes.iter().map(kept)).collect();
        let scopes = self.scopes.iter().map(|(tool, dimension, scope)| {
            let object = Object::new().shown("tool", tool).text("dimension", dimension);
            object.text("scope", scope).finish()
        });
        let json = json
            .shown("agent", &old.body.agent)
            .json("without", &array(self.tools.iter().map(|tool| quote(tool.as_str()))))
            .json("scopes", &array(scopes));
        out.all(&lines, json)
    }
}
