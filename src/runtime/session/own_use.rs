//! Tools that an agent's program offers by its ticket and runs itself.

use syscap_format::Seq;

use crate::server::request::Request;
use crate::tools::host::uses::{Begun, OwnUse, Reported, Settled};
use crate::transport::message::{BeginOwn, SettleOwn};
use crate::transport::reply::{Leave, OnRecord};
use crate::{Error, Session};

impl Session {
    /// Asks for leave to use a tool that this process offers and runs itself, by a
    /// [ticket](crate::Runtime::ticket) that says that it may, and tells of afterwards by
    /// [`settle_use`](Self::settle_use). If no report comes within the tool's limit, or before the
    /// session ends, the effect is unknown and it is charged in full.
    ///
    /// # Errors
    /// [`Error::Refused`] as [`NotBound`](syscap_format::Reason::NotBound) where the ticket does not
    /// say so, or this process does not offer the tool, and as
    /// [`Overloaded`](syscap_format::Reason::Overloaded) where the agents' uses leave no room;
    /// [`Error::HolderGone`]. After any of them the use must not be made.
    pub fn begin_use(&self, used: &OwnUse) -> Result<Begun, Error> {
        let unasked = self.home.asks_nobody();
        let begin =
            |session| Request::Begin(Box::new(BeginOwn { session, used: used.clone(), unasked }));
        self.told(begin).map(|leave: Leave| leave.into())
    }

    /// Reports what a use came to that was begun in this session, by its intent; gives the answer that
    /// is on record. Of one whose time was over the report is recorded as late: it stays charged.
    ///
    /// # Errors
    /// [`Error::Refused`] as [`UnknownReference`](syscap_format::Reason::UnknownReference) where no such
    /// use of this session is out, or it was reported already; [`Error::HolderGone`].
    pub fn settle_use(&self, intent: Seq, reported: &Reported) -> Result<Settled, Error> {
        let settle =
            |session| Request::Settle(SettleOwn { session, intent, reported: reported.clone() });
        self.told(settle).map(|settled: OnRecord| settled.into())
    }
}
