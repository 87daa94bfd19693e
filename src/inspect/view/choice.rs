//! The choice of an agent's token, and the freezes that stop it.

use syscap_format::{AgentId, Freeze, FreezeTarget, Label};

use crate::inspect::view::{TokenInfo, View};

/// An agent's token where none is named, and what it is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'v> {
    /// The newest valid token that fits and has something left.
    Use(&'v TokenInfo),
    /// The newest that fits is valid, and used up.
    Spent(&'v TokenInfo),
    /// The newest that fits was revoked, or, where none that fits is valid, the agent's newest.
    Revoked(&'v TokenInfo),
    /// None that fits is valid; this is the newest valid one.
    Unfit(&'v TokenInfo),
    /// None is valid; this is the newest that fits, which expired.
    Expired(&'v TokenInfo),
    /// The agent has no token that fits, and none that is valid.
    None,
}

/// The owner of the tokens that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An agent outside of any run.
    Agent,
    /// A run: nothing outside goes by its tokens.
    Run,
}

/// A tool that no home has: a token that grants it was issued for a run.
pub const RUN_MARK: &str = "syscap.run";
/// The parts of tools' names that are a client's shell inside a run, as tokens grant it that were
/// issued before [`RUN_MARK`].
const INSIDE: [&str; 2] = ["contained", "contained_online"];

impl TokenInfo {
    /// True if it was issued for a run.
    #[must_use]
    pub fn is_of_run(&self) -> bool {
        self.tools.iter().any(|tool| {
            let parts: Vec<&str> = tool.as_str().split('.').collect();
            // A tool of that name, such as `docker.contained`, is no shell.
            tool.as_str() == RUN_MARK
                || matches!(*parts, [_, inside, _] if INSIDE.contains(&inside))
        })
    }
}

impl View {
    /// Which of an agent's tokens is used where none is named; hook, gateway and run choose alike. A
    /// token that grants nothing, as one that only renews another, is passed over, and so is one of
    /// a run ([`TokenInfo::is_of_run`]) unless `whose` says otherwise. One that is revoked is not
    /// replaced by an older one: who revoked it has stopped the agent.
    pub fn choose(
        &self,
        agent: &AgentId,
        whose: Owner,
        fits: impl Fn(&TokenInfo) -> bool,
    ) -> Choice<'_> {
        let is_meant = |token: &TokenInfo| token.is_of_run() == (whose == Owner::Run);
        let own = || {
            let own = self.tokens.iter().filter(|it| it.agent == *agent && !it.tools.is_empty());
            own.filter(|token| is_meant(token))
        };
        let is_live = |token: &&TokenInfo| token.is_live(self.now);
        let fitting = || own().filter(|token| fits(token));
        let mut since_revoked = fitting().take_while(|token| !token.revoked);
        if let Some(token) = since_revoked.find(|token| is_live(token) && !token.is_spent()) {
            return Choice::Use(token);
        }
        // Who revoked the newest has stopped the agent.
        let stopped = own().next().filter(|token| token.revoked);
        match stopped.or_else(|| fitting().next()) {
            Some(token) if token.revoked => Choice::Revoked(token),
            Some(token) if token.is_live(self.now) => Choice::Spent(token),
            found => {
                let expired = found.map_or(Choice::None, Choice::Expired);
                own().find(is_live).map_or(expired, Choice::Unfit)
            }
        }
    }

    /// The label of what the sessions by an agent's last token were given: with it begins what is
    /// issued unasked, where it renews none. Only what an operator issues anew by hand begins clean.
    pub fn last_read(&self, agent: &AgentId) -> Label {
        let last = self.tokens.iter().find(|token| token.agent == *agent);
        last.map_or(Label::PUBLIC, |token| token.label)
    }

    /// The freeze that stops an agent: of the home, of the agent, or of an agent above it. Freezes
    /// that are not shown (`frozen_in_all`) are not seen.
    pub fn stopped_by(&self, agent: &AgentId) -> Option<&Freeze> {
        self.frozen.iter().find(|freeze| stops(freeze, agent))
    }
}

pub(crate) fn stops(freeze: &Freeze, agent: &AgentId) -> bool {
    match freeze.target {
        FreezeTarget::Kernel => true,
        FreezeTarget::Agent => agent.lineage().any(|name| *name == *freeze.name),
        FreezeTarget::Tool => false,
    }
}

#[cfg(test)]
mod tests {
    use syscap_format::{Amounts, Dimension, HomeId, Label, Seq, TokenId, ToolId, UnixMillis};

    use super::*;
    use crate::driver::counters::Counts;

    /// A token of these words: what it grants (`fit`, `other`, `nothing`, `run`), and whether it was
    /// revoked, is spent or has expired.
    fn token(number: u8, words: &str) -> TokenInfo {
        let (grants, state) = words.split_once(' ').unwrap_or((words, ""));
        // `run` fits too, and was issued for a run.
        let names: &[&str] = match grants {
            "nothing" => &[],
            "run" => &["t.fit", RUN_MARK],
            "other" => &["t.other"],
            _ => &["t.fit"],
        };
        let mut token = TokenInfo {
            id: TokenId::from_bytes([number; 32]),
            agent: AgentId::new("a").unwrap(),
            issued: Seq::new(number.into()),
            expires: UnixMillis::new(2_000),
            revoked: state == "revoked",
            tools: names.iter().map(|name| ToolId::new(name).unwrap()).collect(),
            limits: Amounts::ZERO,
            used: Amounts::ZERO,
            held: Amounts::ZERO,
            left: Amounts::ZERO.with(Dimension::Calls, 1),
            exhausted: state == "spent",
            label: Label::PUBLIC,
            standing: crate::inspect::view::TokenStanding::Live,
        };
        if state == "expired" {
            token.expires = UnixMillis::new(1_000);
        }
        token
    }

    #[test]
    fn newest_valid_token_that_fits_is_chosen() {
        let view = |tokens: &[&str]| {
            let of = |(n, words): (usize, &&str)| token(u8::try_from(n + 1).unwrap(), words);
            let mut tokens: Vec<TokenInfo> = tokens.iter().enumerate().map(of).collect();
            tokens.reverse();
            View {
                home: HomeId::from_bytes([0; 32]),
                head: Seq::new(1),
                now: UnixMillis::new(1_500),
                policy: None,
                shadow: None,
                frozen: Vec::new(),
                frozen_in_all: 0,
                tools: Vec::new(),
                tools_in_all: 0,
                tokens,
                tokens_in_all: 0,
                sessions: Vec::new(),
                sessions_in_all: 0,
                running: Vec::new(),
                running_in_all: 0,
                counts: Counts::default(),
            }
        };
        // Oldest first; then what is chosen, and which it is.
        let cases: &[(&[&str], (&str, u64))] = &[
            (&[], ("none", 0)),
            (&["nothing"], ("none", 0)),
            (&["fit", "fit"], ("use", 2)),
            (&["fit", "fit revoked"], ("revoked", 2)),
            (&["fit revoked", "fit"], ("use", 2)),
            (&["fit", "fit revoked", "fit spent"], ("spent", 3)),
            (&["fit revoked", "fit spent"], ("spent", 2)),
            (&["fit", "other revoked"], ("use", 1)),
            (&["fit", "run revoked"], ("use", 1)),
            (&["run"], ("none", 0)),
            (&["fit", "fit spent", "other"], ("use", 1)),
            (&["fit revoked", "other"], ("revoked", 1)),
            (&["fit expired", "other revoked"], ("revoked", 2)),
            (&["fit expired", "fit spent"], ("spent", 2)),
            (&["fit spent", "other"], ("spent", 1)),
            (&["fit expired", "other"], ("unfit", 2)),
            (&["other"], ("unfit", 1)),
            (&["other expired"], ("none", 0)),
            (&["fit expired", "other expired"], ("expired", 1)),
        ];
        let of =
            |name: &str| TokenInfo { tools: vec![ToolId::new(name).unwrap()], ..token(1, "fit") };
        assert!(of("claude_code.contained.bash").is_of_run());
        assert!(of("gemini_cli.contained_online.run_shell_command").is_of_run());
        assert!(!of("docker.contained").is_of_run() && !of("contained.look").is_of_run());
        for (tokens, expected) in cases {
            let view = view(tokens);
            let tool = ToolId::new("t.fit").unwrap();
            let agent = AgentId::new("a").unwrap();
            let chosen =
                match view.choose(&agent, Owner::Agent, |token| token.tools.contains(&tool)) {
                    Choice::Use(token) => ("use", token.issued.get()),
                    Choice::Spent(token) => ("spent", token.issued.get()),
                    Choice::Revoked(token) => ("revoked", token.issued.get()),
                    Choice::Unfit(token) => ("unfit", token.issued.get()),
                    Choice::Expired(token) => ("expired", token.issued.get()),
                    Choice::None => ("none", 0),
                };
            assert_eq!(chosen, *expected, "{tokens:?}");
            let stranger = AgentId::new("b").unwrap();
            assert_eq!(view.choose(&stranger, Owner::Agent, |_| true), Choice::None);
            let of_runs = view.choose(&agent, Owner::Run, |_| true);
            let is_one = tokens.iter().any(|words| words.starts_with("run"));
            assert_eq!(of_runs != Choice::None, is_one, "{tokens:?}");
        }
    }
}
