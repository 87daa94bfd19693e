//! Requests: what each verb does at the home stands here, once, for whoever asks.

use syscap_format::Encoder;
use syscap_format::field::Field;

use crate::Error;
use crate::inspect::view::{Stamp, ToolDetail, View, manifests};
use crate::server::Holding;
use crate::server::client::Client;
use crate::transport::message::{Aborted, Ask, Begin, Charge, Heard, Opening, Proposed, Settle};
use crate::transport::reply::{Answered, Leave};

impl Holding {
    /// Does what a client asks for on the operator's channel, and gives the answer as bytes: the
    /// process that holds the home reads them as a connected one does.
    pub(crate) fn serve(&self, client: &Client, ask: Ask) -> Result<Vec<u8>, Error> {
        match ask {
            Ask::Issue(grant) => body(self.issue(*grant)),
            Ask::Register(wire) => body(self.register(&wire)),
            Ask::Policy(object) => body(self.set_policy_object(&object)),
            Ask::Shadow(object) => body(self.set_shadow_object(&object)),
            Ask::NoShadow => body(self.clear_shadow()),
            Ask::ReadPolicy(document) => body(self.read_policy(&document).map(drop)),
            Ask::Accept(tools) => body(self.accept(&tools)),
            Ask::AcceptAs(tools) => body(self.accept_as(&tools)),
            Ask::Forget(tools) => body(self.forget(&tools)),
            Ask::Configure(change) => body(self.configure(&change)),
            Ask::Submit(submission) => body(self.submit_with(&submission)),
            Ask::Purge => body(self.purge()),
            Ask::Waiting => body(self.waiting()),
            Ask::Wait(waits) => body(self.wait(&waits)),
            Ask::Stay(stays) => body(Ok(self.stays(client.number, stays))),
            Ask::Provide(tools) => body(client.provide(self, tools)),
            Ask::Withdraw(tools) => body(client.withdraw(self, &tools)),
            Ask::View => {
                // The kernel's time is that of its last event.
                self.tick();
                body(Ok(View::of(self)))
            }
            Ask::ViewOf(looked) => body(Ok(View::of_agent(self, &looked.agent, looked.token))),
            Ask::Stamp => body(Ok(Stamp::of(self))),
            Ask::Tool(tool) => body(ToolDetail::of(self, &tool)),
            Ask::Manifests(whose) => body(Ok(manifests(self, whose))),
            Ask::Begin(asked) => {
                let Begin { token, used, manifest } = *asked;
                body(self.desk().begin(self, token, used, manifest).map(Leave::from))
            }
            Ask::Settle(asked) => {
                let Settle { token, used, reported } = *asked;
                body(self.desk().settle(self, token, &used, reported).map(Answered))
            }
            Ask::Prompted(asked) => body(self.desk().heard(self, asked.token, &asked.prompt)),
            Ask::Open(Opening { agent, token }) => body(client.open(self, &agent, token)),
            Ask::Lend(session) => body(client.lend(self, session)),
            Ask::Charge(Charge { session, amounts }) => {
                body(client.session(session).and_then(|session| session.charge(amounts)))
            }
            Ask::Abort(Aborted { session, intent }) => {
                body(client.session(session).and_then(|session| session.cancel(intent)))
            }
            Ask::Propose(asked) => {
                let Proposed { session, writer, inputs, base, changes } = *asked;
                let session = client.session(session);
                body(session.and_then(|session| session.change(writer, inputs, changes, base)))
            }
            Ask::Heard(asked) => {
                let Heard { session, text, label } = *asked;
                body(client.session(session).and_then(|session| session.heard(&text, label)))
            }
        }
    }
}

/// An answer, as both sides read it; an error stays what it is.
fn body<T: Field>(answer: Result<T, Error>) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder::new();
    answer?.put(&mut encoder);
    Ok(encoder.into_bytes())
}
