//! The signatures of a runtime: tokens and control events.

use std::sync::{MutexGuard, PoisonError};

use syscap_format::{
    AgentId, CONTROL_CONTEXT, Control, ControlBody, Freeze, FreezeBecause, Grants, Head,
    MapBuilder, PublicKey, Reason, RecordKind, Refused, Revocation, Role, Root, Salt, Scope, Seq,
    Signed, TOKEN_CONTEXT, TextHash, Token, TokenBody, TokenId, UnixMillis, VaultText, preimage,
};
use syscap_kernel::{Ack, Ancestor, Event, Halt, Kernel, Ticket};

use syscap_syscalls::beneath::FsError;
use syscap_syscalls::fs::PATH_DIMENSION;
use syscap_syscalls::org::{Part, workspace_of};

use crate::driver::core::Answer;
use crate::error::Error;
use crate::keys::SignerError;
use crate::runtime::grant::Grant;
use crate::server::issuing::{self, Signing};
use crate::server::{Holding, Inner, acknowledged};

/// The version of a record of a freeze with a cause.
const WITH_CAUSE: u64 = 3;

impl Holding {
    /// See [`Runtime::issue`](crate::Runtime::issue).
    pub(crate) fn issue(&self, grant: Grant) -> Result<TokenId, Error> {
        let agent = grant.agent()?;
        if let Some(parent) = grant.parent {
            return self.derive(&grant, agent, parent);
        }
        // Refused before anybody is asked to sign.
        let grants = grant.grants(&agent)?;
        self.core.look(|kernel| {
            let grants = issuing::named(kernel, &grants)?;
            issuing::compared(kernel, &grants, grant.renews)
        })?;
        let Inner { home, files, .. } = &*self.inner;
        grant.shared().try_for_each(|path| home.check_root(files, path))?;
        self.prepare(Role::Issuer)?;
        let holder = self.holder_of(&grant)?;
        let _one_at_a_time = self.signing();
        let (issuer, nonce) = (self.signing_key(Role::Issuer)?, self.core.salts.bytes()?);
        let body = self.core.look(|kernel| {
            let now = kernel.now();
            issuing::root(kernel, &grant, &Signing { issuer, holder, nonce, begins: now })
        })?;
        let (head, body) = (body.head, body.to_bytes());
        let signature = self.inner.signer.sign(Role::Issuer, &preimage(TOKEN_CONTEXT, &body))?;
        let token = self.registered(Token::wire(&body, &signature), head)?;
        // Nothing is made before the kernel has taken the token.
        files.prepare(&agent)?;
        grant.shared().try_for_each(|path| files.prepare_root(path))?;
        Ok(token)
    }

    /// See [`Runtime::attenuate`](crate::Runtime::attenuate).
    fn derive(&self, grant: &Grant, agent: AgentId, parent: TokenId) -> Result<TokenId, Error> {
        let (above, now) = self.above(parent)?;
        let grants = grant.grants(workspace_of(&above))?;
        let grants = self.core.look(|kernel| issuing::named(kernel, &grants))?;
        let child = self.child(parent, &above, self.core.salts.bytes()?, now)?;
        let child = TokenBody {
            holder: self.holder_of(grant)?,
            agent,
            depth_max: child.depth.saturating_add(grant.levels),
            expires: grant.life_ms().map_or(above.expires, |life| child.not_before.plus(life)),
            grants,
            budget: grant.budget_or(above.budget),
            caveats: issuing::caveats(grant, child.not_before),
            flags: grant.flags.and(above.flags),
            renews: grant.renews,
            ..child
        };
        self.registered_child(&child)
    }

    /// Hands on a part of a token for an agent that another has made.
    pub(crate) fn hand_on(&self, part: &Part) -> Result<TokenId, Error> {
        let (above, now) = self.above(part.parent)?;
        let child = self.child(part.parent, &above, part.nonce, now)?;
        let holder = (part.levels > 0).then_some(child.issuer);
        let child = TokenBody {
            holder,
            agent: part.agent.clone(),
            depth_max: child.depth.saturating_add(part.levels),
            expires: part.life_ms.map_or(above.expires, |life| child.not_before.plus(life)),
            grants: part.grants.clone(),
            budget: part.budget,
            ext: TokenBody::ext_with(part.label),
            ..child
        };
        self.registered_child(&child)
    }

    /// A token to derive from, and the kernel's time.
    fn above(&self, parent: TokenId) -> Result<(TokenBody, UnixMillis), Error> {
        let look = |kernel: &Kernel| {
            let above = kernel.token(&parent).map(|above| above.body.clone());
            (above, kernel.now())
        };
        let (above, now) = self.core.look(look);
        let got = || Error::NoSuch { what: "the token", got: parent.to_string() };
        Ok((above.ok_or_else(got)?, now))
    }

    /// An empty child of a token, derived by this home's holder: it grants nothing, and can't be
    /// delegated.
    fn child(
        &self,
        parent: TokenId,
        above: &TokenBody,
        nonce: [u8; 16],
        now: UnixMillis,
    ) -> Result<TokenBody, Error> {
        let depth = above.depth.saturating_add(1);
        Ok(TokenBody {
            version: 2,
            nonce,
            issuer: self.inner.signer.holder_key()?,
            holder: None,
            agent: above.agent.clone(),
            parent: Some(parent),
            depth,
            depth_max: depth,
            not_before: above.not_before.max(now),
            expires: above.expires,
            epoch: above.epoch,
            grants: Grants::new(),
            budget: above.budget,
            caveats: Vec::new(),
            policy: above.policy,
            flags: above.flags,
            ext: MapBuilder::new().finish(),
            audience: above.audience,
            head: None,
            renews: None,
        })
    }

    fn registered_child(&self, child: &TokenBody) -> Result<TokenId, Error> {
        let body = child.to_bytes();
        let signature = self.inner.signer.sign_as_holder(&preimage(TOKEN_CONTEXT, &body))?;
        self.registered(Token::wire(&body, &signature), None)
    }

    /// The key that may delegate the grant; none if it can't be delegated.
    fn holder_of(&self, grant: &Grant) -> Result<Option<PublicKey>, Error> {
        match (grant.holder, grant.levels) {
            (Some(holder), _) => Ok(Some(holder)),
            (None, 0) => Ok(None),
            (None, _) => Ok(Some(self.inner.signer.holder_key()?)),
        }
    }

    /// See [`Runtime::register`](crate::Runtime::register).
    pub(crate) fn register(&self, wire: &[u8]) -> Result<TokenId, Error> {
        // What is not a token is refused all the same, on the record.
        let token = Token::read(wire).ok();
        let head = token.as_ref().and_then(|token| token.body().head);
        let id = self.registered(wire.to_vec(), head)?;
        // As for a token that is signed here: the roots that it names are there once the kernel has
        // taken it. One that is a home is left alone, and is opened by no call.
        for root in token.iter().flat_map(|token| roots_of(token.body())) {
            match self.inner.files.prepare_root(root.name()) {
                Ok(()) | Err(FsError::Home) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(id)
    }

    fn registered(&self, wire: Vec<u8>, head: Option<Head>) -> Result<TokenId, Error> {
        let ancestor = self.ancestor(head)?;
        match self.core.request(|ticket| Event::Issue(ticket, wire, ancestor))? {
            Answer::Ack(Ok(Ack::Token(token))) => Ok(token),
            Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
            _ => Err(Error::Halted(Halt::Halted)),
        }
    }

    /// The proof that a head is durable, where the kernel does not remember it.
    pub(crate) fn ancestor(&self, head: Option<Head>) -> Result<Option<Ancestor>, Halt> {
        match head.filter(|head| !self.core.look(|kernel| kernel.remembers(head))) {
            Some(head) => self.core.ancestor(head),
            None => Ok(None),
        }
    }

    /// See [`Runtime::revoke`](crate::Runtime::revoke).
    pub(crate) fn revoke(&self, token: TokenId) -> Result<Seq, Error> {
        self.control(&Revocation::subtree(token))
    }

    /// See [`Runtime::freeze`](crate::Runtime::freeze).
    pub(crate) fn freeze(&self, freeze: &Freeze) -> Result<Seq, Error> {
        self.control(freeze)
    }

    /// Signs a control event of any kind that needs nothing but itself.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record.
    pub(crate) fn control<B: ControlBody>(&self, body: &B) -> Result<Seq, Error> {
        self.sign(body, |ticket, control, ancestor| {
            Event::Control(ticket, B::KIND, control, ancestor, None)
        })
    }

    /// See [`Runtime::control_because`](crate::Runtime::control_because).
    pub(crate) fn control_because<B: ControlBody>(
        &self,
        why: &str,
        body: impl FnOnce(TextHash) -> B,
    ) -> Result<Seq, Error> {
        let salt = Salt::from_bytes(self.core.salts.bytes()?);
        let text = VaultText { salt, field: B::CAUSE, text: Box::from(why) };
        let body = body(text.hash());
        self.sign(&body, |ticket, control, ancestor| {
            Event::Control(ticket, B::KIND, control, ancestor, Some(text))
        })
    }

    /// See [`Runtime::submit`](crate::Runtime::submit).
    pub(crate) fn submit(&self, kind: RecordKind, control: Control) -> Result<Seq, Error> {
        self.submit_as(control, |ticket, control, ancestor| {
            Event::Control(ticket, kind, control, ancestor, None)
        })
    }

    /// The same as it stands in a record of that version.
    pub(crate) fn submit_signed(
        &self,
        kind: RecordKind,
        version: u64,
        event: &[u8],
    ) -> Result<Seq, Error> {
        let bad = |_| Refused::new(Reason::BadControl).field("event");
        let unknown = || Refused::new(Reason::UnknownVersion).field("version").into();
        if version != kind.version() && (kind, version) != (RecordKind::Freeze, WITH_CAUSE) {
            return Err(unknown());
        }
        let control = Control::from_bytes(event).map_err(bad)?;
        // A body says which version its record gets.
        let has_cause =
            kind == RecordKind::Freeze && FreezeBecause::from_bytes(&control.body).is_ok();
        match has_cause == (version != kind.version()) {
            true => self.submit(kind, control),
            false => Err(unknown()),
        }
    }

    /// The same of any kind.
    pub(crate) fn submit_as(
        &self,
        control: Control,
        event: impl FnOnce(Ticket, Control, Option<Ancestor>) -> Event,
    ) -> Result<Seq, Error> {
        self.core.may_act()?;
        let ancestor = self.ancestor(Some(control.head))?;
        acknowledged(self.core.request(|ticket| event(ticket, control, ancestor)))
    }

    pub(crate) fn sign<B: ControlBody>(
        &self,
        body: &B,
        event: impl FnOnce(Ticket, Control, Option<Ancestor>) -> Event,
    ) -> Result<Seq, Error> {
        let body = body.to_bytes();
        let role = self.core.look(|kernel| kernel.limits().role_of(B::KIND, &body));
        self.sign_as(role, B::KIND, || Ok(body), event)
    }

    /// Signs a body that is made while nobody else signs: what it is made from stays so.
    pub(crate) fn sign_made(
        &self,
        kind: RecordKind,
        body: impl FnOnce() -> Result<Vec<u8>, Error>,
        event: impl FnOnce(Ticket, Control, Option<Ancestor>) -> Event,
    ) -> Result<Seq, Error> {
        self.sign_as(Role::of(kind), kind, body, event)
    }

    fn sign_as(
        &self,
        role: Option<Role>,
        kind: RecordKind,
        body: impl FnOnce() -> Result<Vec<u8>, Error>,
        event: impl FnOnce(Ticket, Control, Option<Ancestor>) -> Event,
    ) -> Result<Seq, Error> {
        let role = role.ok_or(SignerError::NoKey)?;
        self.core.may_act()?;
        self.prepare(role)?;
        let _one_at_a_time = self.signing();
        let key = self.signing_key(role)?;
        let (home, counter, head) =
            self.core.look(|kernel| (kernel.home(), kernel.counter(&key), kernel.durable()));
        let (counter, head) = (counter.saturating_add(1), head.ok_or(Halt::Empty)?);
        let body = body()?;
        let message = Control::message(&home, &head, &key, counter, kind, &body);
        let signature = self.inner.signer.sign(role, &preimage(CONTROL_CONTEXT, &message))?;
        let control = Control::by_one(head, body, Signed { key, counter, signature });
        // A signer may take its time: the head that it was given can be an old one by now.
        self.submit_as(control, event)
    }

    /// Has whoever signs do what may take long before anybody has to wait for it.
    pub(crate) fn prepare(&self, role: Role) -> Result<(), Error> {
        self.signing_key(role)?;
        Ok(self.inner.signer.prepare(role)?)
    }

    /// The key that signs for a role: one that the role has now, not one that it had.
    fn signing_key(&self, role: Role) -> Result<PublicKey, Error> {
        let signer = &self.inner.signer;
        let on_record = |key: &PublicKey| self.core.look(|k| k.roles().holds(role, key));
        if let Ok(key) = signer.public_key(role)
            && on_record(&key)
        {
            return Ok(key);
        }
        signer.renew(&self.core.look(|kernel| kernel.roles().clone()));
        let key = signer.public_key(role)?;
        if on_record(&key) { Ok(key) } else { Err(SignerError::NotOnRecord(role).into()) }
    }

    /// Held from reading a counter and a head until what was signed is durable.
    fn signing(&self) -> MutexGuard<'_, ()> {
        self.inner.signing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The roots that a token names, and that are nobody's own.
fn roots_of(token: &TokenBody) -> Vec<&Root> {
    let scopes = token.grants.iter().filter_map(|(_, grant)| grant.scope(PATH_DIMENSION));
    let rules = scopes.filter_map(|scope| match scope {
        Scope::Paths(paths) => Some(paths.rules()),
        _ => None,
    });
    rules.flatten().map(|rule| rule.path.root()).filter(|root| root.owner().is_none()).collect()
}
