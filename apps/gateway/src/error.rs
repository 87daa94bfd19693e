//! Why a gateway did not run, or not to its end.

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The home can't be used.
    #[error(transparent)]
    Home(#[from] syscap::Error),
    /// The threads that it needs can't be had.
    #[error("no threads: {0}")]
    Threads(std::io::Error),
    /// The client closed its input before it sent `initialize`.
    #[error("the client closed its input before it sent `initialize`: no server was started")]
    NoClient,
    /// It could not begin.
    #[error("{0}")]
    Begin(String),
    /// A server may not be started as its command has it: what it names, or would see, must be another.
    #[error("server {server}: {why}")]
    Unsafe {
        /// The server.
        server: String,
        /// Why, and what to do.
        why: String,
    },
    /// Two servers have one name, or one has a name that is not of its form.
    #[error("{0:?} can't be the name of a server here; name it apart: --name SERVER")]
    Name(String),
}
