//! The kernel's subjects: calls, prompts, resources, and the tools as they are pinned.

pub(crate) mod asks;
pub(crate) mod calls;
pub(crate) mod catalog;
pub(crate) mod data;
pub(crate) mod disown;
pub(crate) mod effect;
pub(crate) mod flight;
pub(crate) mod kernelside;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod numbers;
pub(crate) mod offer;
pub(crate) mod passing;
pub(crate) mod provider;
pub(crate) mod refusal;
pub(crate) mod repeats;
pub(crate) mod result;
pub(crate) mod survey;
pub(crate) mod twins;
