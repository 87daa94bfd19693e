//! The home behind the gateway, and the token that its client calls by: chosen, renewed, ended.

pub(crate) mod home;
pub(crate) mod home_session;
pub(crate) mod incoming;
pub(crate) mod news;
pub(crate) mod next;
pub(crate) mod renewal;
pub(crate) mod run;
pub(crate) mod standing;
