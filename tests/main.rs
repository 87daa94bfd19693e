//! The whole system: homes, sessions, tools and what outlives a crash, through the crate `syscap`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod approvals;
mod arguments;
mod artifacts;
mod attach;
mod attacks;
mod audit_fields;
mod bases;
mod calendar_tools;
mod callers;
mod carried;
mod client_means;
mod crash;
mod crash_tools;
mod credits;
mod delegation;
mod durable;
mod effects;
mod email_tools;
mod faults;
mod file_tools;
mod file_trees;
mod files;
mod fixtures;
mod forged;
mod full_disk;
mod headless;
mod homes;
mod host;
mod idle;
mod inputs;
mod kept_labels;
mod keys;
mod killed_asks;
mod killed_drafts;
mod learn;
mod liars;
mod links;
mod locations;
mod looks;
mod memory_tools;
mod named;
mod no_bypass;
mod no_std;
mod notify;
mod openers;
mod org_crash;
mod org_messages;
mod org_tools;
mod organisations;
mod other_places;
mod preconditions;
mod privacy;
mod rates;
mod reads;
mod reasons;
mod recovery;
mod remote;
mod repair;
mod replay;
mod results;
mod resume;
mod reviews;
mod revocation;
mod roots;
mod rules;
mod runtime;
mod seed_envelopes;
mod seeds;
mod sets;
mod signed_beside;
mod slow_store;
mod sources;
mod spec;
mod stalls;
mod stated;
mod stores;
mod stranger;
mod swap;
mod tidy;
mod together;
mod tool_reasons;
mod tools;
mod vector_attacks;
mod vector_tools;
mod vectors;
mod verified;
mod waited;
mod way;
mod web;
