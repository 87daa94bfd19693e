//! `org.list_agents`, `org.create_agent`, `org.send_message`, and an agent's inbox: what agents of
//! one home are to each other.
//!
//! An agent makes others only below itself, and hands them a part of its own token: a token of its
//! own, registered as any other, so that all that holds of parts holds of it. The server signs and
//! registers it ([`Registrar`]), in the tool's run, outside the kernel's lock. The agent that is
//! made begins with the label of what the one that made it had read.
//!
//! A message goes to agents that the sender's grant names, exactly, and to nobody else. It lies in
//! the recipient's inbox, `agents/NAME/inbox` beneath the base directory, with the label of what
//! the sender had read, and gives it back to who reads it. Its fields are kept as they were sent,
//! those too that nobody here knows.

mod agents;
mod create;
mod inbox;
mod message;
mod part;
mod read;
mod registrar;
mod send;

pub use agents::AGENTS_MAX;
pub use create::nonce_of;
pub use inbox::{
    INBOX_BYTES_MAX, INBOX_MESSAGES_MAX, SENDER_BYTES_MAX, SENDER_MESSAGES_MAX, TREE_BYTES_MAX,
    TREE_MESSAGES_MAX,
};
pub use message::MESSAGE_BYTES_MAX;
pub use part::workspace_of;
pub use read::LIST_MAX;
pub use registrar::{Listed, NotHandedOn, Page, Part, Registrar, Seen};
pub use send::RECIPIENTS_MAX;

use std::sync::Arc;

use syscap_format::{AgentId, EffectClass, Manifest, ToolId, dimension};
use syscap_kernel::{Clock, Registry};

use crate::beneath::Opener;
use crate::calls::{self, NotAdded};
use crate::turns::Turns;

/// The dimension of a grant that names whom an agent may send messages to.
pub const OUTBOX_DIMENSION: &str = dimension::OUTBOX.name;
/// The dimension of a grant that names agents to be seen that are not below the caller.
pub const AGENT_DIMENSION: &str = dimension::AGENT.name;

/// The tools over one base directory and one home.
#[derive(Clone)]
pub struct Org {
    base: Arc<dyn Opener>,
    clock: Arc<dyn Clock>,
    registrar: Arc<dyn Registrar>,
    busy: Arc<Turns<AgentId>>,
}

impl Org {
    /// The tools over an open base, of the home that the registrar is for; messages are of that
    /// clock's time.
    pub fn over(
        base: Arc<dyn Opener>,
        clock: Arc<dyn Clock>,
        registrar: Arc<dyn Registrar>,
    ) -> Self {
        Self { base, clock, registrar, busy: Arc::default() }
    }

    /// Adds the six tools.
    pub fn add_to(&self, registry: &mut Registry) -> Result<(), NotAdded> {
        let registrar = || Arc::clone(&self.registrar);
        registry.add_read(agents::ListAgents::new(registrar()).ok_or(NotAdded::Name)?)?;
        registry.add(create::CreateAgent::new(registrar()).ok_or(NotAdded::Name)?)?;
        registry.add(send::SendMessage::new(self).ok_or(NotAdded::Name)?)?;
        calls::add_read::<read::List>(registry, &self.base)?;
        calls::add_read::<read::ReadOne>(registry, &self.base)?;
        calls::add::<read::DeleteOne>(registry, &self.base)
    }
}

/// The processor time of a first look at all tokens of a home, at most, in microseconds.
const LOOK_CPU_US: u64 = 5_000_000;

fn manifest(verb: &str, effect: EffectClass) -> Option<Manifest> {
    let alias = ToolId::new(verb)?;
    Some(Manifest::new(ToolId::new(&format!("org.{verb}"))?, effect).alias(alias))
}
