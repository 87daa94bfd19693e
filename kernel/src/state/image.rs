//! The state as its image.

use alloc::vec::Vec;

use crate::authority::tokens::TokenIndex;
use crate::state::fold::{OpenIntent, State};
use crate::state::idempotency::{KeySlot, KeyState, KeyUse};
use crate::state::sessions::{Session, Streak};
use syscap_format::{
    AgentImage, FactImage, KeyImage, KeyStanding, KeysChangedImage, Label, OpenImage,
    ReleasedImage, RowImage, RunningImage, Seq, SessionImage, SignerImage, StateImage,
    UnreportedImage,
};

/// Version of the image's form.
const VERSION: u64 = 3;

impl State {
    /// The image's canonical bytes.
    pub(crate) fn image(&self) -> Vec<u8> {
        StateImage {
            version: VERSION,
            home: self.home,
            head: self.head,
            time: self.time,
            boot: self.boot,
            ended: self.ended,
            durability: self.durability,
            limits: self.limits.clone(),
            roles: self.roles.clone(),
            recovery: self.recovery,
            signers: each(&self.signers, |(key, signer)| SignerImage {
                key: *key,
                counter: signer.counter,
                last: signer.last,
            }),
            policy: self.policy,
            shadow: self.shadow,
            tools: self.tools,
            tokens: self.tokens.images().collect(),
            sessions: each(&self.sessions, |(number, session)| {
                session.image(*number, self.label_of(session))
            }),
            agents: each(&self.agents, |(agent, state)| AgentImage {
                agent: agent.clone(),
                head: state.id(),
                facts: each(state.facts(), |(key, fact)| FactImage {
                    key: key.clone(),
                    fact: fact.id,
                    written: fact.written,
                }),
                ancestors: state.ancestors().collect(),
            }),
            frozen: self.frozen.kernel,
            frozen_agents: self.frozen.agents.iter().cloned().collect(),
            frozen_tools: self.frozen.tools.iter().cloned().collect(),
            open: each(&self.open, |(intent, open)| open_image(*intent, open)),
            running: each(&self.running, |(intent, run)| RunningImage {
                intent: *intent,
                token: place(run.token),
            }),
            keys: self.keys.iter().map(|(slot, used)| key_image(slot, used)).collect(),
            recovered: self.recovered.iter().copied().collect(),
            unconfirmed_before: self.unconfirmed_before,
            unbound: self.unbound.image(),
            keys_changed: each(&self.replaced.keys, |(role, changed)| KeysChangedImage {
                role: *role,
                changed: *changed,
            }),
            policy_changed: self.replaced.policy,
            tools_changed: self.replaced.tools,
            asks: self.asks.images().collect(),
            sets: self.sets.images().collect(),
            epoch: self.epoch,
            revoked_keys: self.revoked_keys.iter().copied().collect(),
            accounts: self.credits.images().collect(),
            rates: self.rates.images(self.time).collect(),
            notify: self.notify.clone(),
            list: self.tokens.list().cloned(),
            unreported: each(&self.unreported, |(intent, run)| UnreportedImage {
                intent: *intent,
                token: place(run.token),
                tool: run.tool.clone(),
                effect: run.effect,
            }),
        }
        .to_bytes()
    }
}

impl Session {
    fn image(&self, number: Seq, label: Label) -> SessionImage {
        SessionImage {
            session: number,
            agent: self.agent.clone(),
            token: place(self.token),
            snapshot: self.snapshot,
            row: self.streak.image(),
            label,
            released: each(self.all(), |released| ReleasedImage {
                outcome: released.outcome,
                intent: released.intent,
                result_hash: released.result_hash,
            }),
        }
    }
}

impl Streak {
    fn image(&self) -> RowImage {
        let aggregate = self.aggregate;
        RowImage {
            in_a_row: u64::from(self.in_a_row),
            next_max: self.next_max,
            opened: aggregate.map(|aggregate| aggregate.opened),
            answers_max: aggregate.map_or(0, |aggregate| aggregate.answers_max),
            reserved: aggregate.map_or(0, |aggregate| aggregate.reserved),
        }
    }
}

fn open_image(intent: Seq, open: &OpenIntent) -> OpenImage {
    let slot = open.key.as_ref();
    OpenImage {
        intent,
        token: place(open.token),
        session: open.session,
        held: open.held,
        effect: open.effect,
        key_agent: slot.map(|slot| slot.agent.clone()),
        key_tool: slot.map(|slot| slot.tool.clone()),
        key: slot.map(|slot| slot.key.clone()),
        cancelled: open.cancelled,
    }
}

fn key_image(slot: &KeySlot, used: &KeyUse) -> KeyImage {
    let (standing, outcome) = match used.state {
        KeyState::InFlight => (KeyStanding::InFlight, None),
        KeyState::Done(outcome) => (KeyStanding::Done, Some(outcome)),
        KeyState::Unknown(said) => (KeyStanding::Unknown, Some(said)),
    };
    KeyImage {
        agent: slot.agent.clone(),
        tool: slot.tool.clone(),
        key: slot.key.clone(),
        intent: used.intent,
        sent: used.sent,
        token: place(used.token),
        until: used.until,
        standing,
        outcome,
        result_hash: used.result.map(|(hash, _)| hash),
        status: used.result.map(|(_, status)| status),
        degraded: used.degraded.clone(),
        label: used.label,
        given: used.given,
    }
}

fn place(token: TokenIndex) -> u64 {
    u64::from(token.get())
}

fn each<I: IntoIterator, T>(all: I, image: impl Fn(I::Item) -> T) -> Vec<T> {
    all.into_iter().map(image).collect()
}
