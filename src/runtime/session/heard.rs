//! Users' messages to an agent, put on record.

use syscap_format::{Label, Seq};

use crate::transport::{Ask, Heard};
use crate::{Error, Session};

impl Session {
    /// Puts on record what a user said to the agent: the text lies in the vault, salted, and can
    /// be erased there. One that is longer than
    /// [`TEXT_BYTES_MAX`](syscap_format::TEXT_BYTES_MAX) bytes is several records of kind
    /// `input`, of which the first is given back; a mebibyte is the most. It costs nothing, and
    /// what the text carries the session carries from there on. That a user said it is the host's
    /// word: not on the agents' lane.
    ///
    /// ```
    /// use syscap::{format::Label, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?;
    /// agent.heard("Tell me about bees.", Label::PUBLIC)?;
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with [`TooLarge`](syscap_format::Reason::TooLarge) where it is
    /// empty or longer, or where the disk has no room; else as [`Session::call`].
    pub fn heard(&self, text: &str, label: Label) -> Result<Seq, Error> {
        self.ask(|session| Ask::Heard(Box::new(Heard { session, text: text.to_owned(), label })))
    }
}
