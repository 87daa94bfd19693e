//! The requests of both sides.

use syscap_format::field::{choice, shape};
use syscap_format::{
    AgentId, Amounts, Canonical, DefinitionHash, Label, Manifest, ObjectId, PROVENANCE_INPUTS_MAX,
    PolicyObject, Seq, SnapshotId, Source, TokenId, ToolId,
};

use crate::inspect::view::Whose;
use crate::runtime::grant::Grant;
use crate::runtime::session::call::Sent;
use crate::runtime::submit::{Configured, Submission};
use crate::server::lend::SessionTicket;
use crate::server::offered::{PREFIXES_MAX, Prefix};
use crate::tools::DELEGATED_MAX;
use crate::tools::host::uses::{OwnUse, Prompt, Reported, ToolUse};
use crate::tools::provide::{Cancel, HostCall, Location, Offered};
use crate::transport::frame::{Carries, Message};
use crate::transport::limits::TOOLS_MAX;

choice! {
    /// A request on either channel, by a session. It is all that there is on the agents' lane.
    pub(crate) enum AgentAsk {
        /// To have the session that was lent by this ticket.
        1 => Take(SessionTicket),
        /// To call a tool.
        2 => Call(Box<Call>),
        /// Cancels the call that was requested under this id.
        3 => Cancel(u64),
        /// To end a session.
        4 => Close(Seq),
        /// How a call of its agent stands that waits for a person, once it waits no more.
        5 => Wait(Awaited),
        /// The tools that a session's token grants.
        6 => Tools(Seq),
        /// What is left of a session's token.
        7 => Left(Seq),
        /// To offer tools by the ticket that the connection has shown.
        8 => Offer(Vec<Provided> [..TOOLS_MAX]),
        /// To take some of them back.
        9 => Withdraw(Vec<ToolId> [..DELEGATED_MAX]),
        /// For leave to use a tool that the connection offers and runs itself.
        10 => Begin(Box<BeginOwn>),
        /// What such a use came to.
        11 => Settle(SettleOwn),
    }
}

choice! {
    /// A request on the operator channel only.
    pub(crate) enum Ask {
        1 => Issue(Box<Grant>),
        2 => Policy(PolicyObject),
        3 => Shadow(PolicyObject),
        4 => NoShadow,
        5 => Open(Opening),
        6 => Lend(Seq),
        7 => Charge(Charge),
        8 => Propose(Box<Proposed>),
        9 => Provide(Vec<Provided> [..TOOLS_MAX]),
        10 => Withdraw(Vec<ToolId> [..DELEGATED_MAX]),
        11 => Accept(Vec<ToolId> [..DELEGATED_MAX]),
        12 => AcceptAs(Vec<(ToolId, ObjectId)> [..DELEGATED_MAX]),
        13 => Forget(Vec<ToolId> [..DELEGATED_MAX]),
        14 => ReadPolicy(Vec<u8>),
        15 => Submit(Box<Submission>),
        16 => Begin(Box<Begin>),
        17 => Settle(Box<Settle>),
        18 => View,
        19 => Tool(ToolId),
        20 => Manifests(Whose),
        21 => Abort(Aborted),
        22 => Register(Vec<u8>),
        23 => Configure(Box<Configured>),
        24 => ViewOf(Box<Looked>),
        25 => Stamp,
        26 => Heard(Box<Heard>),
        27 => Prompted(Box<Prompted>),
        28 => Purge,
        /// The server stays while this process does; or it leaves, and does not.
        29 => Stay(bool),
        /// How a call stands that waits for a person, once it waits no more.
        30 => Wait(Waits),
        /// The calls that wait.
        31 => Waiting,
        /// Counters since the home was opened.
        32 => Counts,
        /// The standing approvals.
        33 => Sets,
        /// The agents' states.
        34 => States,
        /// The tokens whose ids begin with these digits, two of them at most.
        35 => Tokens(String),
        /// How often what waits has changed, once it has.
        36 => Watch(Watched),
        /// The token that goes on in the place of that one.
        37 => Successor(TokenId),
        /// A ticket by which an agent's programs open sessions, while this connection is there.
        38 => Ticket(Ticketed),
    }
}

choice! {
    /// The server's request to a connected process.
    pub(crate) enum Order {
        /// Run a tool that the process offers.
        1 => Run(Box<Run>),
        /// Cancels the run that was requested under this id.
        2 => Cancel(u64),
        /// The holder ends: ask nothing more of it.
        3 => Closing,
    }
}

impl Message for AgentAsk {
    const CARRIES: Carries = Carries::AgentAsk;
}

impl Message for Ask {
    const CARRIES: Carries = Carries::Ask;
}

impl Message for Order {
    const CARRIES: Carries = Carries::Order;
}

shape! {
    /// A tool that the process offers.
    pub(crate) struct Provided {
        1 => pub(crate) manifest: Manifest,
        maybe {
            /// Where its runs act, in words.
            2 => pub(crate) location: String,
        }
    }
}

impl From<Offered> for Provided {
    fn from(Offered { manifest, location }: Offered) -> Self {
        Self { manifest, location: location.map(|location| location.as_str().to_owned()) }
    }
}

impl From<Provided> for Offered {
    fn from(Provided { manifest, location }: Provided) -> Self {
        Self { manifest, location: location.map(Location::new) }
    }
}

shape! {
    /// A call through a session.
    pub(crate) struct Call {
        1 => pub(crate) session: Seq,
        2 => pub(crate) sent: Sent,
    }
}

shape! {
    /// A session for an agent, whose name the holder checks, with a token.
    pub(crate) struct Opening {
        1 => pub(crate) agent: String,
        2 => pub(crate) token: TokenId,
    }
}

shape! {
    /// A ticket that a process has drawn, and what it opens.
    pub(crate) struct Ticketed {
        1 => pub(crate) ticket: SessionTicket,
        2 => pub(crate) agent: AgentId,
        3 => pub(crate) token: TokenId,
        /// The names under which it may offer tools.
        4 => pub(crate) prefixes: Vec<Prefix> [..PREFIXES_MAX],
        /// True if it may run them itself, and tell of it.
        5 => pub(crate) client_runs: bool,
    }
}

shape! {
    /// The agent whose tokens and sessions are viewed, and a token among them, however old.
    pub(crate) struct Looked {
        1 => pub(crate) agent: AgentId,
        2 => pub(crate) token: Option<TokenId>,
    }
}

shape! {
    /// A call of a session that is cancelled, on record.
    pub(crate) struct Aborted {
        1 => pub(crate) session: Seq,
        2 => pub(crate) intent: Seq,
    }
}

shape! {
    /// Model tokens and credits that were used in a session.
    pub(crate) struct Charge {
        1 => pub(crate) session: Seq,
        2 => pub(crate) amounts: Amounts,
    }
}

shape! {
    /// A change to the state of a session's agent.
    pub(crate) struct Proposed {
        1 => pub(crate) session: Seq,
        2 => pub(crate) writer: Source,
        // One more than the kernel takes, so that it is the kernel that refuses.
        3 => pub(crate) inputs: Vec<Seq> [..PROVENANCE_INPUTS_MAX + 1],
        4 => pub(crate) base: Option<SnapshotId>,
        5 => pub(crate) changes: Canonical,
    }
}

shape! {
    /// A call of an agent's that waits for a person, and for how long its answer is waited for.
    pub(crate) struct Waits {
        1 => pub(crate) agent: AgentId,
        2 => pub(crate) ask: Seq,
        /// In milliseconds; 30 seconds at most.
        3 => pub(crate) limit: u64,
    }
}

shape! {
    /// A call that waits for a person, of a session's agent, and for how long its answer is waited
    /// for.
    #[derive(Copy)]
    pub(crate) struct Awaited {
        1 => pub(crate) session: Seq,
        2 => pub(crate) ask: Seq,
        /// In milliseconds; 10 minutes at most.
        3 => pub(crate) limit: u64,
    }
}

shape! {
    /// What was seen of the calls that wait, and for how long a change is waited for.
    #[derive(Copy)]
    pub(crate) struct Watched {
        /// How often they had changed.
        1 => pub(crate) seen: u64,
        /// In milliseconds; 30 seconds at most.
        2 => pub(crate) limit: u64,
    }
}

shape! {
    /// A user's message to a session's agent.
    pub(crate) struct Heard {
        1 => pub(crate) session: Seq,
        2 => pub(crate) text: String,
        3 => pub(crate) label: Label,
    }
}

shape! {
    /// A user's message, in a conversation of an agent's client.
    pub(crate) struct Prompted {
        1 => pub(crate) token: TokenId,
        2 => pub(crate) prompt: Prompt,
    }
}

shape! {
    /// Leave to use a tool that an agent's client runs itself.
    pub(crate) struct Begin {
        1 => pub(crate) token: TokenId,
        2 => pub(crate) used: ToolUse,
        3 => pub(crate) manifest: Manifest,
        /// Nobody is there to be asked.
        4 => pub(crate) unasked: bool,
    }
}

shape! {
    /// Leave to use a tool in a session, by a ticket that has said so.
    pub(crate) struct BeginOwn {
        1 => pub(crate) session: Seq,
        2 => pub(crate) used: OwnUse,
        /// Nobody is there to be asked.
        3 => pub(crate) unasked: bool,
    }
}

shape! {
    /// The result of such a use, by its intent.
    pub(crate) struct SettleOwn {
        1 => pub(crate) session: Seq,
        2 => pub(crate) intent: Seq,
        3 => pub(crate) reported: Reported,
    }
}

shape! {
    /// The result of such a use.
    pub(crate) struct Settle {
        1 => pub(crate) token: TokenId,
        2 => pub(crate) used: ToolUse,
        3 => pub(crate) reported: Reported,
    }
}

shape! {
    /// A run of a tool that the process offers: what a [`HostCall`] says.
    pub(crate) struct Run {
        1 => tool: ToolId,
        2 => definition: DefinitionHash,
        3 => agent: AgentId,
        4 => session: Seq,
        5 => intent: Seq,
        6 => args: Canonical,
        7 => hold: Amounts,
        8 => result_bytes_max: u64,
        9 => read_only: bool,
        10 => tag: u64,
    }
}

impl From<HostCall> for Run {
    fn from(call: HostCall) -> Self {
        Self {
            tool: call.tool,
            definition: call.definition,
            agent: call.agent,
            session: call.session,
            intent: call.intent,
            args: call.args,
            hold: call.hold,
            result_bytes_max: u64::try_from(call.result_bytes_max).unwrap_or(u64::MAX),
            read_only: call.read_only,
            tag: call.tag,
        }
    }
}

impl From<Run> for HostCall {
    fn from(run: Run) -> Self {
        Self {
            tool: run.tool,
            definition: run.definition,
            agent: run.agent,
            session: run.session,
            intent: run.intent,
            args: run.args,
            hold: run.hold,
            result_bytes_max: usize::try_from(run.result_bytes_max).unwrap_or(usize::MAX),
            read_only: run.read_only,
            tag: run.tag,
            cancel: Cancel::new(),
        }
    }
}
