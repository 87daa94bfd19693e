//! The home, by the process that serves it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use syscap::approvals::{Waited, WaitingCall, answer_in_client};
use syscap::format::json::from_data;
use syscap::format::{
    Amounts, ApprovalAnswer, ApprovalChannel, Budget, Dimension, GRANTS_MAX, Label, Manifest,
    ObjectId, Reason, Role, Seq, TokenId, ToolId,
};
use syscap::incoming::ReadBy;
use syscap::plain::shell_word;
use syscap::provide::{Offer, Provider};
use syscap::view::{Choice, RUN_MARK, Stamp, TokenDetail, TokenInfo, TokenStanding, View, Whose};
use syscap::{Connect, Error, Grant, Runtime};

use crate::governed::kernelside::{
    Accepted, KernelSession, Kernelside, Lack, ShownCall, Unreached,
};
use crate::options::Options;
use crate::say::say;
use crate::token::home_session::HomeSession;
use crate::token::standing::{Lacks, ended, is_frozen, is_stopped, newer};

/// Most tools that a command names.
const TOOLS_NAMED_MAX: usize = 8;

/// Longer than it takes to issue a token: by so much less one lives that is issued in the place of
/// another, so that it never outlives that.
const ISSUED_WITHIN_MS: u64 = 5_000;

pub(crate) struct HomeKernel {
    pub(super) runtime: Runtime,
    pub(super) options: Options,
    /// A token and how often it is one that was issued once more. A token never changes that, and a
    /// call that is refused again and again must not have the log read again and again.
    counted: Mutex<Option<(TokenId, u32)>>,
    /// The token that was issued here.
    issued: Mutex<Option<TokenId>>,
    /// The record that opened the first session: all that is called here stands behind it.
    since: OnceLock<Seq>,
}

impl HomeKernel {
    /// Connects to its server; what comes from that is read by `by`.
    pub(crate) fn open(options: &Options, by: ReadBy) -> Result<Self, Error> {
        let connect = Connect::to(&options.home).stays().read_by(by);
        let connect = match &options.starter {
            Some(starter) => connect.starting(starter.clone()),
            None => connect,
        };
        let connect = if options.headless { connect.headless() } else { connect };
        let runtime = connect.open()?;
        let (issued, counted) = (Mutex::default(), Mutex::default());
        let since = OnceLock::new();
        Ok(Self { runtime, options: options.clone(), issued, counted, since })
    }

    /// Closes it: who still uses it is told.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.runtime.close()
    }
}

/// True if the home, or its server, has no room for more tools.
fn has_no_room(error: &Error) -> bool {
    match error {
        Error::TooManyTools => true,
        Error::Holder(says) => *says == Error::TooManyTools.to_string(),
        _ => false,
    }
}

/// Offers all tools; where there is no room for all at the home, those for which there is.
fn provide(
    runtime: &Runtime,
    tools: Vec<Manifest>,
    provider: &Arc<dyn Provider>,
) -> Result<Vec<Offer>, Error> {
    let (mut offers, mut rest, mut without) = (Vec::new(), vec![tools], 0_usize);
    while let Some(mut part) = rest.pop() {
        match runtime.provide(part.clone(), Arc::clone(provider)) {
            Ok(more) => offers.extend(more),
            Err(error) if has_no_room(&error) && part.len() > 1 => {
                let second = part.split_off(part.len() / 2);
                rest.extend([second, part]);
            }
            Err(error) if has_no_room(&error) => without = without.saturating_add(1),
            Err(error) => return Err(error),
        }
    }
    if without > 0 {
        say(&format!(
            "there is no room at the home for {without} tools: they are not offered; \
             `syscap tools forget` makes room"
        ));
    }
    Ok(offers)
}

impl Kernelside for HomeKernel {
    fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Unreached> {
        provide(&self.runtime, tools, &provider).map_err(Unreached::from)
    }

    fn withdraw(&self, tools: &[ToolId]) -> Result<(), Unreached> {
        self.runtime.withdraw(tools).map_err(Unreached::from)
    }

    fn accept(&self, tools: &[(ToolId, ObjectId)]) -> Result<Accepted, Unreached> {
        match self.runtime.accept_as(tools) {
            Ok(_) => Ok(Accepted::Recorded),
            Err(Error::Signer(_)) => Ok(Accepted::Waits),
            Err(error) => Err(Unreached::from(error)),
        }
    }

    fn built_in(&self) -> Result<Vec<Manifest>, Unreached> {
        self.runtime.manifests(Whose::Holders).map_err(Unreached::from)
    }

    fn recorded(&self) -> Result<Vec<Manifest>, Unreached> {
        self.runtime.manifests(Whose::All).map_err(Unreached::from)
    }

    fn open_session(&self, tools: &[ToolId]) -> Result<Arc<dyn KernelSession>, Unreached> {
        let token = self.token(tools)?;
        self.fits_timeout(&token.limits)?;
        say(&format!("{} calls by token {}, until {}", token.agent, token.id, token.expires));
        self.session(token)
    }

    fn widen(&self, tools: &[ToolId]) -> Result<Option<Arc<dyn KernelSession>>, Unreached> {
        let Some(issued) = *self.issued.lock().unwrap_or_else(PoisonError::into_inner) else {
            return Ok(None);
        };
        let view = self.view(Some(issued))?;
        let Some(before) = view.token(issued).filter(|token| token.is_live(view.now)) else {
            return Ok(None);
        };
        let has = |tool: &ToolId| before.tools.contains(tool);
        // What an operator has issued or taken back since counts.
        if tools.iter().all(has) || !self.is_newest(&view, before) {
            return Ok(None);
        }
        // It gives no more to use, and forgets nothing that was read.
        let (budget, label) = (before.rest(), before.label);
        let token = self.issued_for(&view, tools, budget, label, None)?;
        self.session(token).map(Some)
    }

    fn grow(
        &self,
        from: TokenId,
        tools: &[ToolId],
    ) -> Result<Option<Arc<dyn KernelSession>>, Unreached> {
        if self.options.token.is_some() || self.options.settled.is_some() {
            return Ok(None);
        }
        let view = self.view(Some(from))?;
        let Some(before) = view.token(from) else { return Ok(None) };
        let newer = tools.iter().find_map(|tool| newer(&view, before, &Lacks::Tool(tool)));
        if let Some(newer) = newer {
            say(&format!("going on by token {}, which grants more", newer.id));
            return self.session(newer.clone()).map(Some);
        }
        let meant: Vec<&str> =
            tools.iter().filter(|tool| self.options.may_grant(tool)).map(ToolId::as_str).collect();
        let goes_on = before.is_live(view.now) && !is_stopped(&view, before);
        if meant.is_empty() || !goes_on || !self.is_newest(&view, before) {
            return Ok(None);
        }
        let grant = self.whole(from)?.grant_like()?;
        // No longer and no more than what there is left.
        let left = before.expires.since(view.now).saturating_sub(ISSUED_WITHIN_MS);
        let life = Duration::from_millis(left);
        let grant = grant.tools(&meant).budget(before.rest()).expires_in(life);
        let id = self.runtime.issue(grant)?;
        self.is_issued(from, id);
        say(&format!("issued {id} in the place of {from}, with {} besides", meant.join(", ")));
        self.session(self.known(id)?).map(Some)
    }

    fn stamp(&self) -> Result<Stamp, Unreached> {
        self.runtime.stamp().map_err(Unreached::from)
    }

    fn go_on(
        &self,
        ended: TokenId,
        lack: &Lack,
    ) -> Result<Option<Arc<dyn KernelSession>>, Unreached> {
        let view = self.view(Some(ended))?;
        let Some(ended) = view.token(ended) else { return Ok(None) };
        let lacks = match (&lack.tool, lack.scope) {
            (Some(tool), _) => Lacks::Tool(tool),
            (None, true) => Lacks::Scope,
            (None, false) => Lacks::Life,
        };
        let newer = match self.options.settled.or(self.options.token) {
            Some(named) => self.successor(named)?,
            None => newer(&view, ended, &lacks).cloned(),
        };
        if let Some(newer) = newer.filter(|newer| newer.issued > ended.issued) {
            say(&format!("going on by token {}, which was issued since", newer.id));
            return self.session(newer).map(Some);
        }
        if !lack.renewable || !self.may_renew(&view, ended)? {
            return Ok(None);
        }
        let id = self.issue_again(ended.id)?;
        self.is_issued(ended.id, id);
        say(&format!(
            "{} had used up token {}: issued {id} like it, renewal {} of {}",
            ended.agent,
            ended.id,
            self.renewals_of(id)?,
            self.options.renewals.unwrap_or_default()
        ));
        self.session(self.known(id)?).map(Some)
    }

    fn ended(&self, token: TokenId) -> Result<Option<String>, Unreached> {
        let view = self.view(Some(token))?;
        Ok(view.token(token).and_then(|token| ended(token, view.now)))
    }

    fn stopped(&self, token: TokenId) -> Result<Option<Reason>, Unreached> {
        let view = self.runtime.view()?;
        let reason = match view.token(token) {
            Some(token) if is_frozen(&view, &token.agent) => Some(Reason::Frozen),
            Some(token) if token.revoked => Some(Reason::Revoked),
            Some(token) if token.expires <= view.now => Some(Reason::Expired),
            Some(_) => None,
            None => Some(Reason::Revoked),
        };
        Ok(reason)
    }

    fn needs_another_window(&self, ask: Seq) -> Result<bool, Unreached> {
        self.is_for_a_window(ask)
    }

    fn shown(&self, ask: Seq) -> Result<Option<ShownCall>, Unreached> {
        // Inside, whoever speaks for the client is the agent.
        if self.options.is_in_run() {
            return Ok(None);
        }
        // Nobody is asked whose answer could not be signed.
        let keys = syscap::Home::at(&self.options.home).keys();
        if syscap::FileKeys::open(&keys)?.needs_person(Role::Approver) {
            return Ok(None);
        }
        let found = self.runtime.waiting()?.0.into_iter().find(|call| call.ask == ask);
        Ok(found.filter(|call| call.means.contains(&ApprovalChannel::Elicitation)).and_then(shown))
    }

    fn wait(&self, ask: Seq, limit: Duration) -> Result<Waited, Unreached> {
        self.runtime.wait(&self.options.agent, ask, limit).map_err(Unreached::from)
    }

    fn answer(&self, ask: Seq, answer: ApprovalAnswer) -> Result<(), Unreached> {
        let means = ApprovalChannel::Elicitation;
        answer_in_client(&self.options.home, &self.runtime, ask, answer, means)?;
        Ok(())
    }

    fn home(&self) -> String {
        let home = &self.options.home;
        let home = std::path::absolute(home).unwrap_or_else(|_| home.clone());
        shell_word(&home.to_string_lossy()).into_owned()
    }
}

/// A time in hours, minutes or seconds, whichever has no rest.
fn lasting(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds.is_multiple_of(3_600) => format!("{} h", seconds.div_euclid(3_600)),
        seconds if seconds.is_multiple_of(60) => format!("{} min", seconds.div_euclid(60)),
        seconds => format!("{seconds} s"),
    }
}

/// The showable parts of a waiting call; `None` if they are incomplete.
fn shown(call: WaitingCall) -> Option<ShownCall> {
    let conditions = call.conditions.iter().map(|one| {
        let seen = one.seen.as_deref().unwrap_or("nothing is there");
        format!("{}, as it is now: {} {seen}", one.subject, one.kind.name())
    });
    Some(ShownCall {
        agent: call.agent.to_string(),
        tool: call.tool.to_string(),
        args: from_data(call.args?.item()),
        touches: call.resources.iter().cloned().chain(conditions).collect(),
        constraint: call.constraint,
        untrusted: call.label.is_untrusted(),
    })
}

impl HomeKernel {
    fn session(&self, token: TokenInfo) -> Result<Arc<dyn KernelSession>, Unreached> {
        let agent = self.options.agent.as_str();
        let session = self.runtime.session(agent, token.id)?;
        let since = *self.since.get_or_init(|| session.number());
        Ok(Arc::new(HomeSession::new(session, token, &self.options.home, since)))
    }

    /// The present state; of this agent's tokens and sessions all that can be shown.
    fn view(&self, token: Option<TokenId>) -> Result<View, Unreached> {
        self.runtime.view_of(&self.options.agent, token).map_err(Unreached::from)
    }

    /// The token that can be used in the place of one that was named.
    fn successor(&self, named: TokenId) -> Result<Option<TokenInfo>, Unreached> {
        let next = self.runtime.successor(named)?.map(|next| next.info);
        Ok(next.filter(|next| next.standing == TokenStanding::Live))
    }

    /// A token whole.
    pub(super) fn whole(&self, token: TokenId) -> Result<TokenDetail, Unreached> {
        let no = || Error::NoSuch { what: "the token", got: token.to_string() };
        Ok(self.runtime.tokens(&token.to_string())?.pop().ok_or_else(no)?)
    }

    /// True if no token of the agent was issued after that one.
    fn is_newest(&self, view: &View, token: &TokenInfo) -> bool {
        let newest = view.tokens.iter().find(|token| token.agent == self.options.agent);
        newest.is_some_and(|newest| newest.id == token.id)
    }

    /// A budget is of a token that is issued here; one that there is has its own.
    fn say_that_limits_are_unheard(&self, token: &TokenInfo) {
        if self.options.limits.iter().all(|(of, most)| token.limits.get(*of) == *most) {
            return;
        }
        let limits: Vec<String> =
            self.options.limits.iter().map(|(of, most)| format!("{}={most}", of.name())).collect();
        let few = token.tools.get(..TOOLS_NAMED_MAX.min(token.tools.len())).unwrap_or_default();
        let tools: Vec<&str> = few.iter().map(ToolId::as_str).collect();
        // A command that named only some would grant less without a word.
        let tools = match few.len() < token.tools.len() {
            true => "TOOL,..".to_owned(),
            false => tools.join(","),
        };
        let (home, agent) = (self.home(), &token.agent);
        say(&format!(
            "--budget changes nothing: the calls go by token {}, which was issued before with a \
             budget of its own; another is issued with: syscap token issue {home} --agent {agent} \
             --tool {tools} --budget {}",
            token.id,
            limits.join(",")
        ));
    }

    /// Notes that one took the place of another: what was issued here goes on as that.
    fn is_issued(&self, before: TokenId, now: TokenId) {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if *issued == Some(before) {
            *issued = Some(now);
        }
    }

    fn known(&self, token: TokenId) -> Result<TokenInfo, Unreached> {
        let view = self.view(Some(token))?;
        let none = || format!("there is no token {token} here");
        let known = view.token(token).cloned();
        known.ok_or_else(|| Unreached::of("there is no such token", none()))
    }

    /// The command that issues a token once more.
    fn reissue(&self, token: TokenId) -> String {
        format!("syscap token reissue {} {token}", self.home())
    }

    /// The token that is named; else the agent's newest that goes on and grants one of these tools,
    /// or, where there are none and the home's own are wanted, one of those; else a new one. A
    /// revoked token stays revoked, and a spent one is issued again only as often as the operator
    /// allowed: else an operator must issue the next.
    fn token(&self, tools: &[ToolId]) -> Result<TokenInfo, Unreached> {
        let named = self.options.settled.or(self.options.token);
        let view = self.view(named)?;
        let agent = &self.options.agent;
        if let Some(id) = named {
            let mut known = self.known(id)?;
            if ended(&known, view.now).is_some() {
                known = self.successor(id)?.unwrap_or(known);
            }
            self.say_that_limits_are_unheard(&known);
            return match ended(&known, view.now) {
                Some(why) if known.is_live(view.now) => Ok(self.begins_spent(known, &why)),
                None => Ok(known),
                Some(why) => {
                    // One that renews it takes its place.
                    let next = match self.options.settled {
                        Some(_) => "and the run goes on by it",
                        None => "and this line goes on by it",
                    };
                    let reissue = self.reissue(id);
                    Err(Unreached::of(
                        format!("the token {why}; an operator can issue it once more"),
                        format!("token {id} {why}; go on with: {reissue}, {next}"),
                    ))
                }
            };
        }
        let built_in =
            |tool: &ToolId| view.tools.iter().any(|own| !own.delegated && own.tool == *tool);
        let grants = |token: &TokenInfo| match (tools.is_empty(), self.options.built_in) {
            (true, false) => true,
            (true, true) => token.tools.iter().any(built_in),
            // A token of an earlier run is taken only with the same tools.
            (false, _) if self.options.is_in_run() => {
                tools.iter().all(|tool| token.tools.contains(tool))
            }
            (false, _) => token.tools.iter().any(|tool| tools.contains(tool)),
        };
        let mut renews = None;
        match view.choose(agent, self.options.owner(), grants) {
            Choice::Use(token) => {
                self.say_that_limits_are_unheard(token);
                return Ok(token.clone());
            }
            Choice::Revoked(revoked) => {
                return Err(Unreached::of(
                    "the agent's last token was revoked; an operator can issue another",
                    format!(
                        "the last token of {agent} was revoked; issue another, go on as before \
                         with: {}, or name an older one by --token",
                        self.reissue(revoked.id)
                    ),
                ));
            }
            Choice::Spent(spent) if !self.may_renew(&view, spent)? => {
                let why = ended(spent, view.now).unwrap_or_default();
                return Ok(self.begins_spent(spent.clone(), &why));
            }
            Choice::Spent(spent) => {
                let id = self.issue_again(spent.id)?;
                say(&format!("{agent} had used up token {}: issued {id} like it", spent.id));
                return self.known(id);
            }
            Choice::Expired(expired) => renews = Some(self.replaces(&view, expired)?),
            Choice::Unfit(_) | Choice::None => {}
        }
        self.issued_for(&view, tools, self.options.budget(), view.last_read(agent), renews)
    }

    /// The token that a new one takes the place of: one that expired, where that is allowed.
    fn replaces(&self, view: &View, expired: &TokenInfo) -> Result<TokenId, Unreached> {
        let (agent, at) = (&self.options.agent, expired.expires);
        let is_counted = self.options.renewals.is_some();
        if is_counted && !self.may_renew(view, expired)? {
            let reissue = self.reissue(expired.id);
            return Err(Unreached::of(
                "the agent's last token has expired; an operator can issue it once more",
                format!(
                    "the last token of {agent} expired at {at}, and --renew allows no other; go on \
                     with: {reissue}"
                ),
            ));
        }
        let end = if is_counted { "" } else { " (--renew 0 ends that)" };
        say(&format!("the last token of {agent} expired at {at}; this line allows another{end}"));
        Ok(expired.id)
    }

    /// By one that is spent the gateway begins all the same: it goes on with the next call once an
    /// operator has issued another, and until then each refusal says how.
    fn begins_spent(&self, token: TokenInfo, why: &str) -> TokenInfo {
        let (id, reissue) = (token.id, self.reissue(token.id));
        // One that is named stays the one that is meant.
        let or = match (self.options.settled, self.options.token) {
            (Some(_), _) => "and the run goes on by it",
            (None, Some(_)) => "and name the new one by --token",
            (None, None) => "or start with --renew N",
        };
        say(&format!("WARNING: token {id} {why}; go on with: {reissue}, {or}"));
        token
    }

    /// A new token for these tools.
    fn issued_for(
        &self,
        view: &View,
        tools: &[ToolId],
        budget: Budget,
        label: Label,
        renews: Option<TokenId>,
    ) -> Result<TokenInfo, Unreached> {
        let own = view.tools.iter().filter(|tool| !tool.delegated);
        let own: Vec<ToolId> = own.map(|tool| tool.tool.clone()).collect();
        let id = self.issue(tools, &own, budget, label, renews)?;
        *self.issued.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
        self.known(id)
    }

    /// True if a token may be issued again here: as often as the operator allowed, and not if an
    /// operator has stopped its agent since, by any means.
    fn may_renew(&self, view: &View, token: &TokenInfo) -> Result<bool, Unreached> {
        let most = self.options.renewals.unwrap_or(0);
        Ok(most > 0 && !is_stopped(view, token) && self.renewals_of(token.id)? < most)
    }

    /// How often a token is one that was issued once more, by the log: over restarts, and by
    /// whomever.
    fn renewals_of(&self, token: TokenId) -> Result<u32, Unreached> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = counted.filter(|(of, _)| *of == token) {
            return Ok(count);
        }
        let (mut count, mut now) = (0_u32, self.whole(token)?.body);
        while let Some(before) = now.renews {
            let before = self.whole(before)?.body;
            // One that ends no later took its place with less, and refilled nothing.
            count = count.saturating_add(u32::from(now.expires > before.expires));
            now = before;
        }
        *counted = Some((token, count));
        Ok(count)
    }

    fn issue_again(&self, token: TokenId) -> Result<TokenId, Unreached> {
        let grant = self.whole(token)?.grant_like()?;
        self.runtime.issue(grant).map_err(Unreached::from)
    }

    fn issue(
        &self,
        tools: &[ToolId],
        own: &[ToolId],
        budget: Budget,
        label: Label,
        renews: Option<TokenId>,
    ) -> Result<TokenId, Unreached> {
        let agent = &self.options.agent;
        let mut granted: Vec<&str> = tools.iter().map(ToolId::as_str).collect();
        let mut grant = Grant::to(agent.as_str());
        if self.options.built_in {
            granted.extend(own.iter().map(ToolId::as_str));
            grant = grant.workspace();
        }
        if granted.len().saturating_add(usize::from(self.options.is_in_run())) > GRANTS_MAX {
            let many = format!(
                "there are {} tools, and a token grants {GRANTS_MAX} at most",
                granted.len()
            );
            let how = "issue one for those that are needed, and name it by --token";
            return Err(Unreached::of(&*many, format!("{many}; {how}")));
        }
        let count = granted.len();
        if self.options.is_in_run() {
            granted.push(RUN_MARK);
        }
        self.fits_timeout(budget.amounts())?;
        let grant = grant.tools(granted).budget(budget).expires_in(self.options.expires);
        let grant = grant.begins_with(label);
        let grant = renews.map_or(grant.clone(), |old| grant.renews(old));
        let token = self.runtime.issue(grant)?;
        say(&format!(
            "issued token {token} to {agent}: {count} tools, {}, {} calls; end it: syscap revoke {} \
             {:.12}",
            lasting(self.options.expires),
            budget.amounts().get(Dimension::Calls),
            self.home(),
            token.to_string()
        ));
        Ok(token)
    }

    /// A call that may take longer than a token may wait in all is never let through.
    fn fits_timeout(&self, budget: &Amounts) -> Result<(), Unreached> {
        let Some(timeout) = self.options.timeout else { return Ok(()) };
        let limit = budget.get(Dimension::WallUs);
        if timeout.as_micros() <= limit.into() {
            return Ok(());
        }
        Err(Unreached::of(
            "a call may run for longer than the token may wait in all",
            format!(
                "--timeout {} s is more than the token may wait in all ({} s); take a shorter one, \
                 or a token with more: --budget wall_us={}",
                timeout.as_secs(),
                Duration::from_micros(limit).as_secs(),
                timeout.as_micros()
            ),
        ))
    }
}
