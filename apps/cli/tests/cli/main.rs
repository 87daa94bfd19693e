//! The real binary on real homes: every command, its flags, its exit codes and its JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../../../../tests/seen/absent.rs"]
mod absent;
mod approvals;
mod artifacts;
mod asked;
mod beside;
mod calls;
mod carried;
mod catalogue;
mod config;
mod credits;
mod damage;
mod demo;
mod deploy;
mod doctor;
mod ends;
mod full;
mod homes;
mod hook;
mod joined;
mod keys;
mod learn;
mod log_lines;
mod logs;
mod mcp;
mod policy;
mod readme;
mod recovers;
mod remedies;
mod resumes;
mod scopes;
mod serving;
mod stated;
mod states;
mod streams;
mod support;
mod terminal;
mod tokens;
mod tooling;
mod tops;
mod verify;
mod watch;
mod web;
