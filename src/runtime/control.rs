//! An operator's actions on a home: tokens, freezes, policies, tools.

use std::time::Duration;

use syscap_format::{
    ApprovalAnswer, Control, ControlBody, Freeze, ObjectId, PolicyObject, RecordKind, Seq,
    TextHash, TokenId, ToolId,
};
use syscap_kernel::{PolicyEngine, object_of};
use syscap_policy::Policy;

use crate::approvals::asks::SetTerms;
use crate::driver::guard::GuardedEngine;
use crate::home::engine;
use crate::runtime::Runtime;
use crate::runtime::backend::Step;
use crate::runtime::submit::{Beside, Configured, Submission};
use crate::server::Holding;
use crate::transport::{Ask, Command};
use crate::{Error, Grant};

impl Runtime {
    /// Signs and registers a token. It is valid from now on. Then the agent's workspace and the
    /// roots that the token names are made where they are missing.
    ///
    /// # Errors
    /// [`Error::BadName`] or [`Error::Scope`] where the grant is not sound; [`Error::NoSuch`] where
    /// there is no tool of a name; [`Error::BaseContainsHome`] where a root leads into a home;
    /// [`Error::Refused`] where the kernel refuses the token, with the reason on record;
    /// [`Error::HolderGone`]. After none of them a folder was made. [`Error::Base`] where the
    /// workspace or a root can't be made: the token is registered then.
    pub fn issue(&self, grant: Grant) -> Result<TokenId, Error> {
        // What is not sound is said in the same words, whoever holds the home.
        grant.grants(&grant.agent()?)?;
        self.act(Ask::Issue(Box::new(grant)))
    }

    /// Hands a part of a token on: signs and registers one that gives no more, to the same agent or
    /// one below it (`team` to `team/researcher`), with the budget and to the end of its parent
    /// where the grant doesn't say less. Its use is charged to all ancestors, and it ends with any
    /// of them. `workspace` is that of the parent's agent. The parent must be
    /// [delegable](Grant::delegable), and held by this home.
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let team = Grant::to("team").tools(["fs.read", "fs.write"]).workspace().delegable(1);
    /// let team = rt.issue(team)?;
    /// let part = Grant::to("team/reader").tools(["fs.read"]).read("workspace/notes");
    /// let reader = rt.session("team/reader", rt.attenuate(team, part)?)?;
    /// let outside = reader.call("fs.read", args! { "path": "keys.txt" })?;
    /// assert_eq!(outside.reason(), Some(syscap_format::Reason::OutOfScope));
    /// // What would give more is refused, on the record.
    /// let more = Grant::to("team/writer").tools(["fs.write"]).write("shared");
    /// assert!(matches!(rt.attenuate(team, more), Err(Error::Refused(_))));
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Runtime::issue`]; [`Error::NoSuch`] where there is no such token; [`Error::Refused`] as
    /// `no_delegation`, as `wrong_issuer` where somebody else holds it, or as `out_of_scope` with
    /// the name of what would give more.
    pub fn attenuate(&self, parent: TokenId, grant: Grant) -> Result<TokenId, Error> {
        self.issue(grant.from(parent))
    }

    /// Registers a token that was signed elsewhere. It names [a head](Runtime::durable) of this
    /// home's log, not older than what its issuer has signed since. Once the kernel has taken it,
    /// the roots that it names are made where they are missing.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record: no folder was made; [`Error::Base`] where a
    /// root can't be made: the token is registered then; [`Error::HolderGone`], after which it may
    /// have been done.
    pub fn register(&self, wire: &[u8]) -> Result<TokenId, Error> {
        self.act(Ask::Register(wire.to_vec()))
    }

    /// Ends a token, and all that was derived from it, for ever.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no such token; [`Error::HolderGone`].
    pub fn revoke(&self, token: TokenId) -> Result<Seq, Error> {
        self.home.operate(&Command::Revoke(token))
    }

    /// Answers a call that [waits](syscap_format::ToolResult::ask) for a person, by this
    /// process's own key of the approvers: who calls this says that a person did. Once approved,
    /// the same call goes on when the agent makes it again; `why` of a no is told to the agent. A
    /// no also ends what was answered by [`Runtime::answer_set`].
    ///
    /// # Errors
    /// [`Error::Refused`] where nothing waits there any more, the key may not answer, or not that,
    /// with the reason on record; else as [`Runtime::look`].
    pub fn answer(
        &self,
        ask: Seq,
        answer: ApprovalAnswer,
        why: Option<&str>,
    ) -> Result<Seq, Error> {
        self.here(|holding| holding.answer(ask, answer, None, why))
    }

    /// As [`Runtime::answer`], for more calls than the one that waits.
    ///
    /// # Errors
    /// As [`Runtime::answer`]; [`Error::Refused`] too where these terms are none that may be given.
    pub fn answer_set(&self, ask: Seq, terms: &SetTerms, why: Option<&str>) -> Result<Seq, Error> {
        self.here(|holding| holding.answer(ask, ApprovalAnswer::Set, Some(terms), why))
    }

    /// Begins or ends a freeze of an agent, a tool or the kernel.
    ///
    /// ```
    /// use syscap::{format::Freeze, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?;
    /// rt.freeze(&Freeze::all())?;
    /// let refused = agent.call("echo", args! { "value": "hello" })?;
    /// assert_eq!(refused.reason(), Some(Reason::Frozen));
    /// rt.freeze(&Freeze::all().thaw())?;
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where the name is not of its form; [`Error::HolderGone`].
    pub fn freeze(&self, freeze: &Freeze) -> Result<Seq, Error> {
        self.home.operate(&Command::Freeze(freeze.clone()))
    }

    /// Signs a control event of any kind that needs nothing but itself: a revocation of another
    /// target than [`Runtime::revoke`]'s, say, or the end of a call that is out.
    ///
    /// ```
    /// use syscap::{format::Revocation, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let team = rt.issue(Grant::to("team").tools(["echo"]).delegable(1))?;
    /// let part = rt.attenuate(team, Grant::to("team/a").tools(["echo"]))?;
    /// // What was derived from it so far ends, and it lives.
    /// rt.control(&Revocation::children(team))?;
    /// let revoked = |token| rt.view().map(|view| view.token(token).is_some_and(|t| t.revoked));
    /// assert_eq!((revoked(team)?, revoked(part)?), (false, true));
    /// // So ends every root token that there is.
    /// rt.control(&Revocation::epoch(1))?;
    /// assert!(revoked(team)?);
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; else as [`Runtime::look`].
    pub fn control<B: ControlBody>(&self, body: &B) -> Result<Seq, Error> {
        self.here(|holding| holding.control(body))
    }

    /// The same with a reason in a person's words: `body` is given the commitment to it. The words
    /// lie in the vault, under the record, and can be erased.
    ///
    /// ```
    /// use syscap::{format::Revocation, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let token = rt.issue(Grant::to("a").tools(["echo"]))?;
    /// rt.control_because("left the team", |why| Revocation::subtree(token).because(why))?;
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Runtime::control`]; so too where the body does not commit to it, or it is empty or
    /// longer than [`TEXT_BYTES_MAX`](syscap_format::TEXT_BYTES_MAX).
    pub fn control_because<B: ControlBody>(
        &self,
        why: &str,
        body: impl Fn(TextHash) -> B,
    ) -> Result<Seq, Error> {
        self.here(|holding| holding.control_because(why, &body))
    }

    /// Records a control event that was signed elsewhere, by as many keys of its role as that
    /// asks for: of any kind that needs nothing but itself.
    ///
    /// # Errors
    /// As [`Runtime::submit_with`].
    pub fn submit(&self, kind: RecordKind, control: Control) -> Result<Seq, Error> {
        self.submit_with(kind, control, &Beside::Nothing)
    }

    /// Records a control event that was signed elsewhere, of any kind, with what it needs beside
    /// itself.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; [`Error::NoSuch`] where a tool is not there
    /// to be accepted or forgotten; [`Error::HolderGone`], after which it may have been done.
    pub fn submit_with(
        &self,
        kind: RecordKind,
        control: Control,
        beside: &Beside,
    ) -> Result<Seq, Error> {
        let beside = beside.clone();
        self.act(Ask::Submit(Box::new(Submission { kind, control, beside })))
    }

    /// Leaves no byte of erased rows in the free room and the journal of the home's files. False
    /// where a reader of the database is in the way: the next idle time or opening goes on.
    ///
    /// # Errors
    /// [`Error::Halted`] where the store fails; [`Error::HolderGone`].
    pub fn purge(&self) -> Result<bool, Error> {
        self.act(Ask::Purge)
    }

    /// Reads a policy document for this home: it must load, and name the home's tools by their
    /// own ids. A tool that the home doesn't have is no error: it may come. It is JSON, or
    /// canonical CBOR where it begins with a byte that no text begins with.
    ///
    /// # Errors
    /// [`Error::Policy`]; the refusal is on record, and the policy in force stays;
    /// [`Error::Refused`] where only the holder finds a fault in it; [`Error::HolderGone`].
    pub fn read_policy(&self, document: &[u8]) -> Result<Policy, Error> {
        let read = self.act(Ask::ReadPolicy(document.to_vec()));
        match (read, engine::parse(document)) {
            (Ok(()) | Err(Error::Refused(_)), Err(error)) => Err(Error::Policy(error)),
            (Ok(()), Ok(policy)) => Ok(policy),
            (Err(error), _) => Err(error),
        }
    }

    /// Puts another policy in force: each call is decided by the one or by the other, and its
    /// record names which. The shadow, if there is one, stays. If another process is the server,
    /// that one's own engine for the same document takes effect.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record: also where the holder has no engine for it,
    /// or its document is not sound; [`Error::HolderGone`].
    pub fn set_policy(&self, engine: impl PolicyEngine + 'static) -> Result<Seq, Error> {
        self.engine(engine, Holding::set_policy, Ask::Policy)
    }

    /// As [`Runtime::set_policy`], with an engine that the holder has for the object.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; also where there is no engine for it, or
    /// its document is not sound; [`Error::HolderGone`].
    pub fn set_policy_object(&self, policy: &PolicyObject) -> Result<Seq, Error> {
        self.act(Ask::Policy(policy.clone()))
    }

    /// Asks another policy beside the one in force, for the record only: what it would have said
    /// stands in each call's records. It never changes what happens. As with
    /// [`Runtime::set_policy`], another process that holds the home asks its own engine.
    ///
    /// # Errors
    /// As [`Runtime::set_policy`].
    pub fn set_shadow(&self, engine: impl PolicyEngine + 'static) -> Result<Seq, Error> {
        self.engine(engine, Holding::set_shadow, Ask::Shadow)
    }

    /// As [`Runtime::set_shadow`], with an engine that the holder has for the object.
    ///
    /// # Errors
    /// As [`Runtime::set_policy_object`].
    pub fn set_shadow_object(&self, policy: &PolicyObject) -> Result<Seq, Error> {
        self.act(Ask::Shadow(policy.clone()))
    }

    /// Asks no policy beside the one in force any more.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; [`Error::HolderGone`].
    pub fn clear_shadow(&self) -> Result<Seq, Error> {
        self.act(Ask::NoShadow)
    }

    /// Puts a policy in force by a change that was signed elsewhere, by the policy key of this
    /// home.
    ///
    /// # Errors
    /// [`Error::Refused`], with the reason on record; else as [`Runtime::look`].
    pub fn submit_policy(
        &self,
        control: Control,
        engine: impl PolicyEngine + 'static,
    ) -> Result<Seq, Error> {
        self.here(|holding| holding.submit_policy(control, engine))
    }

    fn engine(
        &self,
        engine: impl PolicyEngine + 'static,
        here: impl Fn(&Holding, Box<dyn PolicyEngine>) -> Result<Seq, Error>,
        ask: impl Fn(PolicyObject) -> Ask,
    ) -> Result<Seq, Error> {
        let engine = GuardedEngine::new(engine);
        let (object, mut engine) = (object_of(&engine), Some(engine));
        self.home.each(|up| {
            let Some(held) = up.held() else { return up.ask(ask(object.clone()), Duration::MAX) };
            // Only here: a server that ended took the object, and the next may be this process.
            let Some(engine) = engine.take() else { return Step::Done(Err(Error::HolderGone)) };
            let _working = held.works();
            Step::Done(here(&held.holding, Box::new(engine)))
        })
    }

    /// Puts the definitions on record that are offered at present, in the place of those that
    /// are there: an operator accepts the change.
    ///
    /// # Errors
    /// [`Error::NoSuch`] where nobody offers another definition of a tool that is named;
    /// [`Error::TooManyTools`] where they are too long; [`Error::Refused`], with the reason on
    /// record; [`Error::HolderGone`].
    pub fn accept(&self, tools: &[ToolId]) -> Result<Seq, Error> {
        self.act(Ask::Accept(tools.to_vec()))
    }

    /// The same for definitions that somebody has looked at: each must be offered as the manifest
    /// of that id.
    ///
    /// # Errors
    /// As [`Runtime::accept`].
    pub fn accept_as(&self, tools: &[(ToolId, ObjectId)]) -> Result<Seq, Error> {
        self.act(Ask::AcceptAs(tools.to_vec()))
    }

    /// Takes delegated tools off the record. One that is offered again is new.
    ///
    /// # Errors
    /// [`Error::NoSuch`] where one is not a delegated tool; [`Error::Refused`], with the reason
    /// on record; [`Error::HolderGone`].
    pub fn forget(&self, tools: &[ToolId]) -> Result<Seq, Error> {
        self.act(Ask::Forget(tools.to_vec()))
    }

    /// Sets tools, or unsets them, by one signed record: their manifests are those that
    /// [`Network::manifest`](syscap_syscalls::net::Network::manifest) makes of settings. They can
    /// be called at once by who is granted them, and are there when the home is opened again.
    ///
    /// ```
    /// use syscap::{Configured, format::json, prelude::*, syscalls::net::Network};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let settings = br#"{"base_url": "https://api.example.com/v1"}"#;
    /// let settings = json::to_data(settings).expect("JSON");
    /// let tool = ToolId::new("create_ticket").expect("a name");
    /// let manifest = Network::manifest(tool, settings).expect("settings");
    /// rt.configure(&Configured { set: vec![manifest], unset: Vec::new() })?;
    /// rt.issue(Grant::to("a").tools(["create_ticket"]))?;
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Registry`] where another tool has a name; [`Error::NoSuch`] where what is to be
    /// unset was not set; [`Error::BadName`] where settings can't be used; [`Error::Refused`], with
    /// the reason on record; [`Error::HolderGone`].
    pub fn configure(&self, change: &Configured) -> Result<Seq, Error> {
        self.act(Ask::Configure(Box::new(change.clone())))
    }
}
