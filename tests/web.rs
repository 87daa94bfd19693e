//! `http_request`, the tools that operators make of it, and `net.egress`: against real servers on
//! this machine, hostile ones among them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "web/addresses.rs"]
mod addresses;
#[path = "web/answers.rs"]
mod answers;
#[path = "web/egress.rs"]
mod egress;
#[path = "web/hostile.rs"]
mod hostile;
#[path = "web/killed.rs"]
mod killed;
#[path = "seen/records.rs"]
mod records;
#[path = "web/requests.rs"]
mod requests;
#[path = "web/secrets.rs"]
mod secrets;
#[path = "web/server.rs"]
mod server;
#[path = "web/settings.rs"]
mod settings;
#[path = "web/tls.rs"]
mod tls;
#[path = "seen/verdict.rs"]
mod verdict;
#[path = "web/world.rs"]
mod world;
