//! Artifacts: short forms of call results, for a chat, a model's context, or a later reader.
//!
//! None of it is stored. A result lies in the vault, whole, in a table of the home's database, and
//! its short form is made of it whenever it is asked for: so the two never differ, and with the
//! result its short form is erased.
//!
//! ```
//! use syscap::{artifact::{Cut, Short}, prelude::*};
//!
//! # fn main() -> Result<(), Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! let rt = Runtime::create(folder.path().join("home"))?;
//! let agent = rt.session("a", rt.issue(Grant::to("a").tools(["echo", "result.page"]))?)?;
//! let answer = agent.call("echo", args! { "value": "bees\nand hives" })?;
//! let record = answer.receipt().outcome_seq;
//! println!("{}", Short::of(&answer, Cut::default()));
//! // The same, of the last results, for the session's model.
//! let block = syscap::artifact::Block::of(&agent.artifacts(8)?, 4_096);
//! assert!(block.text.contains(&format!("#{record} echo ok")));
//! # rt.close()
//! # }
//! ```

mod block;
mod entry;
mod read;
mod short;

pub use crate::inspect::artifact::block::{BLOCK_BYTES_MIN, Block};
pub(crate) use crate::inspect::artifact::read::Walk;
pub use crate::inspect::artifact::read::{
    Artifact, Kept, LAST_MAX, Latest, Which, Whole, latest, whole,
};
pub use crate::inspect::artifact::short::{Cut, Excerpt, Short, parts};

use syscap_format::Seq;

use crate::{Error, Inspection};

impl Inspection {
    /// The newest results on record, the newest first.
    ///
    /// # Errors
    /// [`Error::Home`] where the store can't be read, or is damaged.
    pub fn artifacts(&self, which: &Which) -> Result<Vec<Artifact>, Error> {
        let head = self.kernel().head().seq;
        Ok(latest(&mut **self.store(), head, which)?.artifacts)
    }

    /// The result under a record, whole; `None` where none stands there.
    ///
    /// # Errors
    /// As [`Inspection::artifacts`].
    pub fn artifact(&self, record: Seq) -> Result<Option<Whole>, Error> {
        Ok(whole(&mut **self.store(), record)?)
    }
}
