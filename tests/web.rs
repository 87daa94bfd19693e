//! `http_request`, the tools that operators make of it, and `net.egress`: against real servers on
//! this machine, hostile ones among them.

use host_support::records;
mod addresses;
mod answers;
mod egress;
mod hostile;
mod killed;
mod paths;
mod requests;
mod secrets;
mod settings;
mod tls;
mod world;
