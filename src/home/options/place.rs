//! Options for the agents' files: their folder, the file backend, the launcher of programs, and
//! headless mode.

use std::path::Path;
#[cfg(feature = "shell")]
use std::sync::Arc;

#[cfg(feature = "shell")]
use syscap_launch::Launcher;
use syscap_syscalls::beneath::Openers;

use crate::home::claim::Claimed;
use crate::home::options::{Asks, Options, RecoveryKey};

impl Options {
    /// Puts the agents' files below a folder that exists, when the home is made.
    pub fn base(mut self, folder: impl AsRef<Path>) -> Self {
        self.base.folder = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Opens or makes a home over another's base: its agents' folders lie beside the other's, in
    /// `agents/.of/HOMEID`, from then on. All other folders of the base are common to both. A base
    /// that is nobody's, or this home's, stays or becomes its own.
    pub const fn shared_base(mut self) -> Self {
        self.base.claimed = Claimed::Share;
        self
    }

    /// Takes another home's base, with what its agents left there. Only of a home that is gone.
    pub const fn take_base(mut self) -> Self {
        self.base.claimed = Claimed::Take;
        self
    }

    /// Says what must open the agents' files, when the home is made. It stays with the home: where
    /// the system lacks that, the home is not opened. The record of each call names the backend.
    pub fn openers(mut self, openers: Openers) -> Self {
        self.base.openers = openers;
        self
    }

    /// The launcher for `shell` and `shell_script`. Without one the host itself does, if its `main`
    /// begins with [`launch::entry`](syscap_launch::entry); else those tools are refused with
    /// [`Reason::NotConfined`](crate::format::Reason::NotConfined).
    #[cfg(feature = "shell")]
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = Some(Arc::new(launcher));
        self
    }

    /// Holds the home where nobody is there to be asked, as in a build: a call that the policy asks
    /// a person about is refused as [`Asked`](syscap_format::Reason::Asked) at once, and does not
    /// wait. A call that was approved before continues. It is for as long as this process holds the
    /// home: one that attaches to another follows that one.
    ///
    /// ```
    /// use syscap::{format::EffectClass, host::HostTool, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let mail = HostTool::new("mail.send", EffectClass::ExternalWrite)?.run(|_| Ok("sent"));
    /// let rt = Options::new().tool(mail)?.headless().create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["mail.send"]))?)?;
    /// let refused = agent.call("mail.send", args! {})?;
    /// assert_eq!((refused.reason(), refused.ask()), (Some(Reason::Asked), None));
    /// # rt.close()
    /// # }
    /// ```
    pub fn headless(mut self) -> Self {
        self.asks = Asks::Refused;
        self
    }

    /// Makes the home without a recovery key: who steals the operator's key has the home for good.
    pub fn no_recovery(mut self) -> Self {
        self.recovery = RecoveryKey::Without;
        self
    }
}
