//! Links of an argument, followed before the call is judged.
//!
//! A path that may be followed through links names a place that only the file system knows. So it
//! is looked up first, by an effect of its own and outside the kernel's lock, and what was found
//! takes the argument's place: scope, policy, record and run are about that, and about nothing
//! else. The kernel puts it there itself. A refused call keeps its argument as sent: a refusal
//! discloses neither the target of a link nor its existence.

use alloc::{boxed::Box, string::String};
use core::fmt;

use syscap_format::{ArgsHash, Reason, Refused};

/// Follows the links of one argument. Made without I/O, by [`Tool::resolver`].
///
/// [`Tool::resolver`]: crate::tool::Tool::resolver
pub trait Resolve: Send {
    /// The argument. The tool's manifest must declare it as a path.
    fn argument(&self) -> &'static str;

    /// The argument's target, as the tool itself reads it: without links, so that the plan can open
    /// it by name. It must look at nothing but what the token's scope lets be followed.
    ///
    /// # Errors
    /// By [`Refused`], in which nothing may depend on what a link leads to.
    fn resolve(self: Box<Self>) -> Result<String, Refused>;
}

/// A look-up of an argument, for the host to run.
#[must_use = "a call waits for it"]
pub struct Resolving(pub(crate) Box<dyn Resolve>);

impl Resolving {
    /// Follows the links.
    ///
    /// # Errors
    /// What is to be told of it.
    pub fn run(self) -> Result<Found, Refused> {
        self.0.resolve().map(Found).map_err(|why| why.by_tool(Reason::is_of_a_look))
    }
}

impl fmt::Debug for Resolving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resolving({})", self.0.argument())
    }
}

/// The target of an argument. Only a look-up makes one.
#[derive(Clone)]
#[must_use = "a call waits for it"]
pub struct Found(pub(crate) String);

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Found(..)")
    }
}

/// A look-up that the host was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Lookup {
    /// The commitment to the resolved arguments that it is for: with other arguments, or another
    /// manifest, what it finds means nothing.
    pub(crate) of: Option<ArgsHash>,
    pub(crate) argument: &'static str,
    /// How many it makes of this call.
    pub(crate) tries: u32,
}

/// An argument that was looked up, as it stood before.
pub(crate) struct AsSent {
    pub(crate) argument: &'static str,
    pub(crate) text: Box<str>,
}

impl AsSent {
    /// Lets a refusal that is about the argument show it as it was sent.
    pub(crate) fn shown(&self, refused: Refused) -> Refused {
        if refused.is_about(self.argument) { refused.got(&self.text) } else { refused }
    }
}
