//! `syscap resume import`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use syscap::Runtime;
use syscap::format::{AgentId, Dimension, Manifest, Role, Scope, TokenId, ToolId};
use syscap::resume::{Compiled, ResumeError};
use syscap::view::Whose;

use super::{Unused, read};
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::output::{Form, Object, Out, array, quote};
use crate::signing::{self, Hand};
use crate::token::scopes;
use crate::{parse, runtime};

/// Which resumes, and what they do not say.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A resume that lacks `name`, `permissions` or `permissions.tools`, or that can't be read, is skipped
with a warning; the others are imported, and the exit code is 1. A tool that is not there is told of
and gives nothing. An import takes nothing away: a token that was issued before stays until it is
revoked. docs/resume.md says what each section becomes.")]
pub(crate) struct Import {
    /// The home.
    home: PathBuf,
    /// The resumes.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The agent, for files that name none; a file that names another is skipped.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
    /// The scope of a dimension other than paths, which a resume does not have: program=git; may be
    /// given again.
    #[arg(long, value_name = "DIMENSION=VALUE", value_parser = parse::scope)]
    scope: Vec<(String, String)>,
    /// A limit such as calls=100; may be given again. Others are as the standard budget has them.
    #[arg(long, value_name = "DIMENSION=AMOUNT", value_delimiter = ',',
          value_parser = parse::limit)]
    budget: Vec<(Dimension, u64)>,
    /// How long the tokens live: 90s, 15m, 1h, 7d.
    #[arg(long, value_name = "DURATION", value_parser = parse::life, default_value = "1h")]
    expires: Duration,
    /// Say what would be granted, and issue nothing.
    #[arg(long)]
    dry_run: bool,
}

/// A resume as it was read: whose, what it grants, and the fields that nothing reads.
struct Understood {
    agent: AgentId,
    compiled: Compiled,
    unread: Vec<String>,
}

/// A token, and those that its agent had already.
struct Issued {
    token: TokenId,
    before: Vec<TokenId>,
}

impl Import {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        if self.dry_run {
            let log = runtime::look(&self.home)?;
            let tools: Vec<Manifest> = log.kernel().manifests().cloned().collect();
            let more = scopes(&self.scope, || Ok(tools.clone()))?;
            return self.each(&tools, &more, |_| Ok(None), out);
        }
        let hand = signing::hand(&self.home, Role::Issuer)?;
        runtime::with(&self.home, |access| {
            let tools = access.manifests(Whose::All)?;
            let more = scopes(&self.scope, || Ok(tools.clone()))?;
            let issue = |read: &Understood| self.issue(access, &hand, read).map(Some);
            self.each(&tools, &more, issue, out)
        })
    }

    fn each(
        &self,
        tools: &[Manifest],
        more: &[(String, Scope)],
        issue: impl Fn(&Understood) -> Result<Option<Issued>, Failure>,
        out: &mut Out,
    ) -> Ended {
        let mut exit = Exit::Done;
        for file in &self.files {
            match self.understood(file, tools, more) {
                Ok(read) => {
                    let issued = issue(&read)?;
                    say(file, &read, issued.as_ref(), out)?;
                }
                Err(why) => {
                    exit = Exit::Failed;
                    skip(file, &why, out)?;
                }
            }
        }
        Ok(exit)
    }

    fn understood(
        &self,
        file: &Path,
        tools: &[Manifest],
        more: &[(String, Scope)],
    ) -> Result<Understood, Unused> {
        let resume = read(file)?;
        let agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => resume.agent()?.clone(),
        };
        let compiled = resume.compile(&agent, tools, more)?;
        Ok(Understood { agent, compiled, unread: resume.unread() })
    }

    fn issue(&self, access: &Runtime, hand: &Hand, read: &Understood) -> Result<Issued, Failure> {
        let view = access.view()?;
        let grant = read.compiled.grant.clone().expires_in(self.expires);
        let grant = grant.begins_with(view.last_read(&read.agent));
        let limits = self.budget.iter();
        let grant = limits.fold(grant, |grant, (dimension, limit)| grant.limit(*dimension, *limit));
        let token = hand.issue(access, &grant)?;
        let lives = view.tokens.iter().filter(|old| {
            old.agent == read.agent && old.is_live(view.now) && !old.tools.is_empty()
        });
        Ok(Issued { token, before: lives.map(|old| old.id).collect() })
    }
}

fn say(
    file: &Path,
    Understood { agent, compiled, unread }: &Understood,
    issued: Option<&Issued>,
    out: &mut Out,
) -> Result<(), Failure> {
    let list = |texts: &[String]| array(texts.iter().map(|text| quote(text)));
    let grants = compiled.grants.iter().fold(Object::new(), |object, (tool, grant)| {
        let scopes = grant.iter();
        let scopes =
            scopes.fold(Object::new(), |it, (of, scope)| it.shown(of, format!("{scope:#}")));
        object.json(tool.as_str(), &scopes.finish())
    });
    let token = issued.map(|issued| issued.token.to_string());
    let object = Object::new()
        .shown("file", file.display())
        .shown("agent", agent)
        .json("token_id", &token.as_deref().map_or("null".to_owned(), quote))
        .json("grants", &grants.finish())
        .json("unknown_tools", &list(&compiled.unknown))
        .json("unread_fields", &list(unread));
    let named: Vec<&str> = compiled.tools.iter().map(ToolId::as_str).collect();
    let token = token.unwrap_or_else(|| "not issued".to_owned());
    out.both(format!("{token}  {agent}  {}", named.join(" ")).trim_end(), object)?;
    if issued.is_none() {
        for (tool, grant) in compiled.grants.iter() {
            for (dimension, scope) in grant.iter() {
                out.text(&format!("    {tool}  {dimension}: {scope:#}"))?;
            }
        }
    }
    out.flush()?;
    // What stands there may have been meant to bound something.
    for field in unread.iter().filter(|field| field.starts_with("permissions.")) {
        tell(&format!("{}: {field:?} is not read: it grants and bounds nothing", file.display()));
    }
    for name in &compiled.unknown {
        tell(&format!("{}: there is no tool {name:?}: it is not granted", file.display()));
    }
    for (tool, dimension) in &compiled.lacking {
        let how = if dimension == "path" { "`file_access`" } else { "--scope" };
        tell(&format!("{tool} needs a {dimension}, and is given none: see {how}"));
    }
    for old in issued.map(|issued| issued.before.as_slice()).unwrap_or_default() {
        tell(&format!("{agent} has another live token, which `syscap revoke HOME {old}` ends"));
    }
    Ok(())
}

/// Says that an agent is skipped, and why; the next one is not.
fn skip(file: &Path, why: &Unused, out: &mut Out) -> Result<(), Failure> {
    if out.form() == Form::Json {
        let object = Object::new().shown("file", file.display()).shown("skipped", why);
        out.line(&object.finish())?;
    }
    out.flush()?;
    let advice = match why {
        Unused::Resume(ResumeError::Missing { section: "name" }) => "; say it by --agent",
        _ => "",
    };
    diagnose(&format!("{}: skipped: {why}{advice}", file.display()));
    Ok(())
}
