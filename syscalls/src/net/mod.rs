//! What leaves the machine: `http_request`, the tools that operators make of it, `net.egress`.
//!
//! A URL is read once ([`target`]), its name looked up once ([`lookup`]), every address judged
//! ([`address`], [`reach`]), and what was judged is connected to; bytes are counted on the wire. No
//! redirect is followed: where it leads is in the result, and going there is another call. Nothing
//! comes from the environment: no proxy, no certificates, no credentials.
//!
//! A template becomes a tool by [settings](Network::manifest): they stand in its manifest, which an
//! operator signs, so every call names them. [Secrets](secret) are named there, and never shown.

#[cfg(feature = "http")]
pub mod address;
#[cfg(feature = "http")]
mod answer;
#[cfg(feature = "http")]
mod egress;
#[cfg(feature = "http")]
mod exchange;
#[cfg(feature = "http")]
mod headers;
#[cfg(feature = "http")]
pub mod lookup;
#[cfg(feature = "http")]
mod make;
#[cfg(feature = "http")]
pub mod method;
mod names;
#[cfg(not(feature = "http"))]
mod off;
#[cfg(feature = "http")]
mod parcel;
#[cfg(feature = "http")]
mod parts;
#[cfg(feature = "http")]
pub mod reach;
#[cfg(feature = "http")]
mod request;
#[cfg(feature = "http")]
mod roots;
#[cfg(feature = "http")]
mod scrub;
#[cfg(feature = "http")]
pub mod secret;
#[cfg(feature = "http")]
mod settings;
#[cfg(feature = "http")]
pub mod target;
#[cfg(feature = "http")]
mod wire;

pub use self::names::{
    ADDRESS_DIMENSION, HOST_DIMENSION, HTTP_REQUEST, NET_EGRESS, PORT_DIMENSION, PURPOSE_DIMENSION,
    ROUTE_DIMENSION, SCHEME_DIMENSION,
};
#[cfg(not(feature = "http"))]
pub use self::off::{Network, NetworkError};
#[cfg(feature = "http")]
pub(crate) use self::request::resources as demands;
#[cfg(feature = "http")]
pub use self::{
    egress::{EgressPlan, NetEgress},
    make::NetworkError,
    parts::Network,
    request::{HttpPlan, HttpRequest, REQUEST_BYTES_MAX},
    settings::{RESPONSE_CHARS, RESPONSE_CHARS_MAX, SettingsError, TIMEOUT_MS, TIMEOUT_MS_MAX},
};
