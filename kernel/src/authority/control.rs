//! Control events: tokens, sessions, policy, revocation, freeze, keys, charges.

use alloc::{boxed::Box, vec::Vec};

use crate::events::Ack;
use crate::halt::{Forgery, Halt};
use crate::machine::Kernel;
use crate::policy::{PolicyEngine, object_of};
use crate::run::flight::Waiting;
use crate::store::Ancestor;
use crate::tool::Ticket;
use syscap_format::{
    AgentId, Amounts, BodyView, CONTROL_BODY_BYTES_MAX, Cancel, CancelBody, Charge, ConfigChange,
    Control, ControlBody, CreditChange, Dimension, Freeze, FreezeBecause, FreezeTarget, Head,
    Input, Issue, KeyChange, Notify, OBJECT_BYTES_MAX, Object, Opened, Opening, PolicyBecause,
    PolicyChange, PolicyHash, Reason, RecordKind, Recovery, RedactBody, Refused, Resolution,
    Revocation, RevocationList, Role, SESSIONS_MAX, Seq, SessionChange, SessionPhase, SignedEvent,
    Snapshot, SnapshotId, TEXT_BYTES_MAX, TextHash, Token, TokenBody, TokenId, VaultText,
    VaultWrite, attenuates,
};

/// The key under which what a user said is committed to.
const TEXT: u64 = 12;

/// The engines after a change of policy.
struct NewEngines {
    /// Another engine in force; `None` where it is the one that the kernel has.
    policy: Option<(PolicyHash, Box<dyn PolicyEngine>)>,
    shadow: NewShadow,
    objects: Vec<Object>,
}

/// The shadow after a change of policy.
enum NewShadow {
    Kept,
    Dropped,
    Other(PolicyHash, Box<dyn PolicyEngine>),
}

impl Kernel {
    /// A signed event that needs nothing but itself, and the text that it commits to, where that
    /// was brought along.
    pub(crate) fn control(
        &mut self,
        ticket: Ticket,
        kind: RecordKind,
        control: Control,
        ancestor: Option<Ancestor>,
        text: Option<VaultText>,
    ) -> Result<(), Halt> {
        let checked = self.authorised(kind, &control, ancestor);
        let checked = checked.and_then(|()| self.sensible(kind, &control));
        let checked = checked.and_then(|()| match &text {
            text if kind == RecordKind::Approval => self.answerable(&control, text.as_ref()),
            Some(text) => is_the_cause(kind, &control.body, text),
            // A commitment without its text stands as one whose text was erased: nothing that
            // stops is turned away for its words.
            None => Ok(()),
        });
        if let Err(refused) = checked {
            return self.refuse_control(ticket, refused);
        }
        let event = SignedEvent { control };
        let body = match kind {
            RecordKind::Key => BodyView::Key(&event),
            RecordKind::Revoke => BodyView::Revoke(&event),
            RecordKind::Freeze if FreezeBecause::from_bytes(&event.control.body).is_ok() => {
                BodyView::FreezeBecause(&event)
            }
            RecordKind::Freeze => BodyView::Freeze(&event),
            RecordKind::Config => BodyView::Config(&event),
            RecordKind::Credit => BodyView::Credit(&event),
            RecordKind::Approval => BodyView::Approval(&event),
            RecordKind::Recovery => return self.resolve(ticket, event.control),
            RecordKind::Cancel => {
                let intent = CancelBody::from_bytes(&event.control.body).map(|body| body.intent);
                let intent =
                    intent.map_err(|_| Halt::Contradiction { seq: self.state.head.seq })?;
                let control = Some(event.control);
                let cancel = Cancel { intent, session: None, control };
                return self.record(ticket, BodyView::Cancel(&cancel), text);
            }
            _ => return self.refuse_control(ticket, Refused::new(Reason::BadControl)),
        };
        self.gap &= !confirms_time(kind, &event.control.body);
        self.record(ticket, body, text)
    }

    /// Puts a record in the log, and the text that it commits to in the vault. Once they are
    /// durable whoever asked is told.
    pub(crate) fn record(
        &mut self,
        ticket: Ticket,
        body: BodyView<'_>,
        text: Option<VaultText>,
    ) -> Result<(), Halt> {
        let (seq, _) = self.append(body)?;
        text.into_iter().for_each(|text| self.pending.keep(VaultWrite::texts(seq, [text].into())));
        let ack = match body {
            BodyView::Cancel(cancel) => Ack::Cancelled(seq, cancel.intent),
            _ => Ack::Recorded(seq),
        };
        self.acknowledge(seq, ticket, ack);
        Ok(())
    }

    /// A user has said something to an agent, through a session of it that is open.
    pub(crate) fn heard(
        &mut self,
        ticket: Ticket,
        input: &Input,
        text: VaultText,
    ) -> Result<(), Halt> {
        let open = self.state.sessions.get(&input.session);
        let its = open.is_some_and(|open| open.agent == input.agent);
        let fits = (1..=TEXT_BYTES_MAX).contains(&text.text.len());
        let said = (text.field, text.hash(), fits) == (TEXT, input.text, true);
        match self.takes_work() {
            Err(reason) => self.refuse_control(ticket, reason.into()),
            Ok(()) if its && said => self.record(ticket, BodyView::Input(input), Some(text)),
            Ok(()) => self.refuse_control(ticket, Refused::new(Reason::BadControl).field("input")),
        }
    }

    /// A session cancels a call of its own.
    pub(crate) fn cancel_own(
        &mut self,
        ticket: Ticket,
        session: Seq,
        intent: Seq,
    ) -> Result<(), Halt> {
        match self.state.cancellable(intent, Some(session)) {
            Ok(intent) => {
                let cancel = Cancel { intent, session: Some(session), control: None };
                self.record(ticket, BodyView::Cancel(&cancel), None)
            }
            Err(refused) => self.refuse_control(ticket, refused),
        }
    }

    /// Keys of the role signed it, as many as it asks for, each with a counter that has grown,
    /// and over a head that is durable and not before the last record that the key signed.
    pub(crate) fn authorised(
        &self,
        kind: RecordKind,
        control: &Control,
        ancestor: Option<Ancestor>,
    ) -> Result<(), Refused> {
        // All of it stands in the record: what is larger than a record may be is refused here,
        // since where the record is made there is no answer left but a halt.
        if control.body.len() > CONTROL_BODY_BYTES_MAX {
            let most = alloc::format!("a body of at most {CONTROL_BODY_BYTES_MAX} bytes");
            return Err(Refused::new(Reason::BadControl).field("body").allowed(&most));
        }
        self.is_durable(&control.head, ancestor)?;
        let role = self.state.limits.role_of(kind, &control.body).map_or("", Role::name);
        self.state.authorises(kind, control).map_err(|forgery| unsigned(forgery, role))
    }

    /// A head that a signer named is durable here: the kernel remembers it, or somebody has
    /// looked.
    fn is_durable(&self, head: &Head, ancestor: Option<Ancestor>) -> Result<(), Refused> {
        let known = Ancestor { home: self.state.home, head: *head };
        if self.remembers(head) || ancestor == Some(known) {
            return Ok(());
        }
        Err(Refused::new(Reason::UnknownHead).field("head").got(&alloc::format!("{}", head.seq)))
    }

    /// True if a head is one of the last durable ones. For any other a signed event needs an
    /// [`Ancestor`].
    #[must_use]
    pub fn remembers(&self, head: &Head) -> bool {
        self.pending.remembers(head)
    }

    /// The head of the durable log, for a signer to name.
    pub fn durable(&self) -> Option<Head> {
        self.pending.durable()
    }

    /// The body is of its kind's form and speaks of things that there are.
    fn sensible(&self, kind: RecordKind, control: &Control) -> Result<(), Refused> {
        let bad = |field| Refused::new(Reason::BadControl).field(field);
        let body = &control.body;
        match kind {
            RecordKind::Key => {
                let change = KeyChange::from_bytes(body).map_err(|_| bad("body"))?;
                let allowed = self.state.allows(&change, &control.head);
                allowed.map_err(|forgery| unsigned(forgery, change.set.role.name()))
            }
            RecordKind::Revoke => self.state.ended_by(body).map(drop),
            RecordKind::Cancel => {
                let CancelBody { intent, .. } =
                    CancelBody::from_bytes(body).map_err(|_| bad("body"))?;
                self.state.cancellable(intent, None).map(drop)
            }
            RecordKind::Freeze => {
                let because = || FreezeBecause::from_bytes(body).map(FreezeBecause::freeze);
                let freeze = Freeze::from_bytes(body).or_else(|_| because());
                let freeze = freeze.map_err(|_| bad("body"))?;
                let fine = match freeze.target {
                    FreezeTarget::Agent => AgentId::new(&freeze.name).is_some(),
                    FreezeTarget::Tool => self.freezes_a_tool(&freeze.name),
                    FreezeTarget::Kernel => freeze.name.is_empty(),
                };
                if fine { Ok(()) } else { Err(bad("name")) }
            }
            RecordKind::Config => {
                match (Notify::from_bytes(body), ConfigChange::from_bytes(body)) {
                    (Ok(notify), _) if notify.is_sound() => Ok(()),
                    (_, Ok(ConfigChange { confirm_time: Some(_) })) => Ok(()),
                    _ => Err(bad("body")),
                }
            }
            RecordKind::Credit => {
                let change = CreditChange::from_bytes(body).map_err(|_| bad("body"))?;
                self.state.credits.after(&change).map(drop).ok_or_else(|| bad("added"))
            }
            RecordKind::Recovery => {
                let resolution = Resolution::from_bytes(body).map_err(|_| bad("body"))?;
                let recovered = self.state.recovered.contains(&resolution.intent);
                if recovered { Ok(()) } else { Err(bad("intent")) }
            }
            _ => Ok(()),
        }
    }

    /// A tool's own id. An alias would stop nothing, since calls are held against the id.
    fn freezes_a_tool(&self, name: &str) -> bool {
        let found = self.registry.find(name);
        found.is_some_and(|found| found.manifest.tool.as_str() == name)
    }

    /// An operator's word about an intent that was found open.
    fn resolve(&mut self, ticket: Ticket, control: Control) -> Result<(), Halt> {
        let Ok(Resolution { intent, verdict }) = Resolution::from_bytes(&control.body) else {
            return self.refuse_control(ticket, Refused::new(Reason::BadControl));
        };
        let control = Some(control);
        let recovery = Recovery { intent, verdict, used: Amounts::ZERO, control };
        self.record(ticket, BodyView::Recovery(&recovery), None)
    }

    /// Another policy, another shadow, or both, in one record. The kernel hashes the engines' own
    /// documents and compares; `engines` are those that it may lack.
    pub(crate) fn policy(
        &mut self,
        ticket: Ticket,
        control: Control,
        ancestor: Option<Ancestor>,
        engines: Vec<Box<dyn PolicyEngine>>,
        text: Option<VaultText>,
    ) -> Result<(), Halt> {
        let because = PolicyBecause::from_bytes(&control.body).map(|because| because.change());
        let has_cause = because.is_ok();
        let named = PolicyChange::from_bytes(&control.body).or(because);
        let is_why = |text| is_the_cause(RecordKind::Policy, &control.body, text);
        let checked = self
            .authorised(RecordKind::Policy, &control, ancestor)
            .and_then(|()| text.as_ref().map_or(Ok(()), is_why))
            .and_then(|()| match named {
                Ok(named) => self.engines_of(&named, engines),
                Err(_) => Err(Refused::new(Reason::BadControl).field("body")),
            });
        let NewEngines { policy, shadow, objects } = match checked {
            Ok(engines) => engines,
            Err(refused) => return self.refuse_control(ticket, refused),
        };
        let event = SignedEvent { control };
        let body = match has_cause {
            true => BodyView::PolicyBecause(&event),
            false => BodyView::Policy(&event),
        };
        let (seq, _) = self.append_with(body, objects)?;
        text.into_iter().for_each(|text| self.pending.keep(VaultWrite::texts(seq, [text].into())));
        if let Some((hash, engine)) = policy {
            (self.engine, self.engine_hash) = (engine, hash);
        }
        // None of the engines that were looked at names an alias.
        self.aliased = false;
        match shadow {
            NewShadow::Kept => {}
            NewShadow::Dropped => self.shadow = None,
            NewShadow::Other(hash, engine) => self.shadow = Some((hash, engine)),
        }
        self.acknowledge(seq, ticket, Ack::Recorded(seq));
        Ok(())
    }

    /// The engines that a change names: those that the kernel has, or some of those handed in.
    fn engines_of(
        &self,
        named: &PolicyChange,
        engines: Vec<Box<dyn PolicyEngine>>,
    ) -> Result<NewEngines, Refused> {
        let aliases = |engine: &dyn PolicyEngine| self.registry.alias_in(engine);
        let alias = engines.iter().find_map(|engine| aliases(&**engine));
        let own = || (named.policy == self.engine_hash).then(|| aliases(&*self.engine))?;
        if let Some((alias, tool)) = alias.or_else(own) {
            let refused = Refused::new(Reason::BadPolicy).field("tools");
            return Err(refused.got(alias.as_str()).allowed(tool.as_str()));
        }
        let hashed = engines.into_iter().map(|engine| (object_of(&*engine), engine));
        let mut hashed: Vec<_> =
            hashed.map(|(object, engine)| (object.hash(), object, engine)).collect();
        let mut take = |hash: PolicyHash| {
            let place = hashed.iter().position(|(found, _, _)| *found == hash)?;
            let (hash, object, engine) = hashed.swap_remove(place);
            Some((Object::policy(&object), (hash, engine)))
        };
        let wrong = |field| Refused::new(Reason::WrongPolicy).field(field);
        // What the kernel has it keeps: an engine that is handed in may be the shadow's then.
        let (first, policy) = if named.policy == self.engine_hash {
            (Object::policy(&object_of(&*self.engine)), None)
        } else {
            let (object, engine) = take(named.policy).ok_or_else(|| wrong("policy"))?;
            (object, Some(engine))
        };
        let mut objects = Vec::from([first]);
        let kept = self.shadow.as_ref().map(|(hash, _)| *hash);
        let shadow = match named.shadow {
            None => NewShadow::Dropped,
            Some(hash) => match take(hash) {
                Some((object, (hash, engine))) => {
                    objects.push(object);
                    NewShadow::Other(hash, engine)
                }
                None if kept == Some(hash) => NewShadow::Kept,
                None => return Err(wrong("shadow")),
            },
        };
        if let Some(object) = objects.iter().find(|object| object.bytes.len() > OBJECT_BYTES_MAX) {
            let size = object.bytes.len();
            return Err(Refused::new(Reason::BadPolicy)
                .field("size")
                .got(&alloc::format!("{size}")));
        }
        Ok(NewEngines { policy, shadow, objects })
    }

    /// A policy that the host could not make an engine of: refused, on the record.
    pub(crate) fn bad_policy(
        &mut self,
        ticket: Ticket,
        place: &str,
        why: &str,
    ) -> Result<(), Halt> {
        let refused = Refused::new(Reason::BadPolicy).field(place).got(why);
        self.refuse_control(ticket, refused)
    }

    /// Takes an engine for the policy, or for the shadow, that is on record, if it is one of them:
    /// what a home names when it is opened. No other engine can be put in force in this way, and
    /// none at all once the kernel has booted.
    #[must_use = "an engine that is not on record was not taken"]
    pub fn adopt(&mut self, engine: Box<dyn PolicyEngine>) -> bool {
        let hash = object_of(&*engine).hash();
        if self.clock.is_some() {
            return false;
        }
        // One policy may be both: then the engine in force is taken first.
        let lacks = self.engine_hash != hash || self.state.shadow != Some(hash);
        if self.state.policy == Some(hash) && lacks {
            self.aliased = self.registry.alias_in(&*engine).is_some();
            (self.engine, self.engine_hash) = (engine, hash);
        } else if self.state.shadow == Some(hash) {
            self.shadow = Some((hash, engine));
        } else {
            return false;
        }
        true
    }

    /// Registers a token: its signature is verified here, once.
    pub(crate) fn issue(
        &mut self,
        ticket: Ticket,
        wire: Vec<u8>,
        ancestor: Option<Ancestor>,
    ) -> Result<(), Halt> {
        let token = match self.issuable(&wire, ancestor) {
            Ok(token) => token,
            Err(refused) => return self.refuse_control(ticket, refused),
        };
        let id = token.id();
        let issue = Issue {
            token: id,
            issuer: token.body().issuer,
            parent: token.body().parent,
            agent: token.body().agent.clone(),
        };
        let objects = [Object::token(id, wire)].into();
        let (seq, _) = self.append_with(BodyView::Issue(&issue), objects)?;
        self.acknowledge(seq, ticket, Ack::Token(id));
        Ok(())
    }

    fn issuable(&self, wire: &[u8], ancestor: Option<Ancestor>) -> Result<Token, Refused> {
        if self.closing {
            return Err(Refused::new(Reason::Closing));
        }
        let token = Token::read(wire)?;
        let body = token.body();
        if self.state.tokens.find(&token.id()).is_some() {
            return Err(Refused::new(Reason::AlreadyIssued));
        }
        if let Some(field) = self.state.ended_before(&token) {
            return Err(Refused::new(Reason::Revoked).field(field));
        }
        match body.parent {
            Some(parent) => self.derives(body, parent)?,
            None => {
                self.state.issues(&token).map_err(|forgery| match forgery {
                    Forgery::Audience => Refused::new(Reason::WrongAudience).field("audience"),
                    Forgery::Role => Refused::new(Reason::WrongIssuer).field("issuer"),
                    other => unsigned(other, Role::Issuer.name()),
                })?;
                let renewable = self.state.renewable(body, self.now());
                renewable.map_err(|reason| Refused::new(reason).field("renews"))?;
                let head = body.head.ok_or(Refused::new(Reason::BadToken).field("head"))?;
                self.is_durable(&head, ancestor)?;
            }
        }
        if self.now() >= body.expires {
            return Err(Refused::new(Reason::Expired).field("expires"));
        }
        Ok(token)
    }

    /// Checks that a token may be derived from a parent that is registered here, and has not ended.
    fn derives(&self, child: &TokenBody, parent: TokenId) -> Result<(), Refused> {
        let tokens = &self.state.tokens;
        let above = tokens.find(&parent).and_then(|above| tokens.view(above));
        let above = above.ok_or(Refused::new(Reason::UnknownToken).field("parent"))?;
        if above.is_revoked(self.now()) {
            return Err(Refused::new(Reason::Revoked).field("parent"));
        }
        attenuates(child, parent, above.body)
    }

    /// Opens a slot for an agent with a token. A token that has ended may be bound: its calls
    /// are refused, with the reason, on the record.
    pub(crate) fn open_session(
        &mut self,
        ticket: Ticket,
        agent: AgentId,
        token: TokenId,
        opening: Option<Opening>,
    ) -> Result<(), Halt> {
        let body = self.state.tokens.find(&token).and_then(|token| self.state.tokens.body(token));
        let refused = match body {
            _ if self.closing => Some(Refused::new(Reason::Closing)),
            _ if self.state.sessions.len() >= SESSIONS_MAX => {
                Some(Refused::new(Reason::TooManySessions))
            }
            // The same for a missing and for a foreign token.
            Some(body) if body.agent == agent => self.opens(&token, opening),
            _ => Some(Refused::new(Reason::NotBound).field("capability_token_id")),
        };
        if let Some(refused) = refused {
            return self.refuse_control(ticket, refused);
        }
        let (snapshot, objects) = self.head_snapshot(&agent);
        let phase = SessionPhase::Open;
        let (session, principal) = (None, None);
        let change = SessionChange { phase, session, agent, token, snapshot, principal };
        let (seq, _) = self.append_with(BodyView::Session(&change), objects)?;
        self.remote.extend(opening.map(|opening| (seq, (opening.challenge, 0))));
        self.acknowledge(seq, ticket, Ack::Session(Opened { session: seq, snapshot }));
        Ok(())
    }

    /// The agent's head snapshot, and its object where this is the first time.
    fn head_snapshot(&self, agent: &AgentId) -> (SnapshotId, Vec<Object>) {
        match self.state.agents.get(agent) {
            Some(state) => (state.id(), Vec::new()),
            None => {
                let snapshot = Snapshot::genesis(agent.clone());
                (snapshot.id(), [Object::snapshot(&snapshot)].into())
            }
        }
    }

    /// Closes a slot.
    pub(crate) fn close_session(&mut self, ticket: Ticket, session: Seq) -> Result<(), Halt> {
        match self.end_session(session)? {
            Some(seq) => self.acknowledge(seq, ticket, Ack::Recorded(seq)),
            None => {
                let refused = self.no_session();
                return self.refuse_control(ticket, refused);
            }
        }
        Ok(())
    }

    pub(crate) fn end_session(&mut self, session: Seq) -> Result<Option<Seq>, Halt> {
        self.close_aggregate(Some(session))?;
        self.remote.remove(&session);
        let Some(open) = self.state.sessions.get(&session) else {
            return Ok(None);
        };
        let change = SessionChange {
            phase: SessionPhase::Close,
            session: Some(session),
            agent: open.agent.clone(),
            token: open.token_id,
            snapshot: open.snapshot,
            principal: None,
        };
        let (seq, _) = self.append(BodyView::Session(&change))?;
        Ok(Some(seq))
    }

    /// The host posts usage after the fact.
    pub(crate) fn charge(
        &mut self,
        ticket: Ticket,
        session: Seq,
        amounts: Amounts,
    ) -> Result<(), Halt> {
        let chargeable = [Dimension::LlmTokens, Dimension::CreditsMicro];
        let fine = amounts.iter().all(|(d, amount)| amount == 0 || chargeable.contains(&d));
        let token = self.state.sessions.get(&session).map(|session| session.token_id);
        let (Some(token), true) = (token, fine) else {
            let refused = Refused::new(Reason::BadControl).field("charge");
            return self.refuse_control(ticket, refused.allowed("llm_tokens, credits_micro"));
        };
        let charge = Charge { token, session, amounts };
        self.record(ticket, BodyView::Charge(&charge), None)
    }

    pub(crate) fn acknowledge(&mut self, seq: Seq, ticket: Ticket, ack: Ack) {
        self.waiting.push_back((seq, Waiting::Ack(ticket, Ok(ack))));
    }
}

fn confirms_time(kind: RecordKind, body: &[u8]) -> bool {
    let change = || ConfigChange::from_bytes(body);
    kind == RecordKind::Config && change().is_ok_and(|change| change.confirm_time.is_some())
}

/// The text is the one that the body commits to.
pub(crate) fn is_the_cause(kind: RecordKind, body: &[u8], text: &VaultText) -> Result<(), Refused> {
    fn cause<B: ControlBody>(body: &[u8]) -> Option<(u64, TextHash)> {
        B::from_bytes(body).ok().and_then(|body| body.cause()).map(|cause| (B::CAUSE, cause))
    }
    let cause = match kind {
        RecordKind::Revoke => cause::<Revocation>(body).or_else(|| cause::<RevocationList>(body)),
        RecordKind::Cancel => cause::<CancelBody>(body),
        RecordKind::Redact => cause::<RedactBody>(body),
        RecordKind::Freeze => cause::<FreezeBecause>(body),
        RecordKind::Policy => cause::<PolicyBecause>(body),
        _ => None,
    };
    let fits = (1..=TEXT_BYTES_MAX).contains(&text.text.len());
    match cause {
        Some(cause) if fits && cause == (text.field, text.hash()) => Ok(()),
        _ => Err(Refused::new(Reason::BadControl).field("cause")),
    }
}

/// The refusal of an event, or a token, that is not signed as it must be.
fn unsigned(forgery: Forgery, role: &str) -> Refused {
    let bad = |field| Refused::new(Reason::BadSignature).field(field);
    match forgery {
        Forgery::Role => bad("key").allowed(role),
        Forgery::Threshold => bad("signatures").allowed("more keys of the role"),
        Forgery::Counter => Refused::new(Reason::StaleCounter).field("counter"),
        Forgery::StaleHead => Refused::new(Reason::StaleHead).field("head"),
        Forgery::Possession => bad("proofs"),
        Forgery::Form => Refused::new(Reason::BadControl).field("body"),
        _ => bad("signature"),
    }
}
