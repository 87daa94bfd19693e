//! Network access: `http_request`, the tools that operators make of it, `net.egress`.
//!
//! A URL is read once ([`target`]), its name looked up once ([`lookup`]), every address judged
//! ([`address`], [`reach`]), and what was judged is connected to; bytes are counted on the wire. No
//! redirect is followed: where it leads is in the result, and going there is another call. No
//! proxy, certificate or credential comes from the environment.
//!
//! A template becomes a tool by [settings](Network::manifest): they stand in its manifest, which an
//! operator signs, so every call names them. [Secrets](secret) are named there, and never shown.

pub mod address;
mod answer;
mod egress;
mod exchange;
pub mod headers;
pub mod lookup;
mod make;
pub mod method;
mod names;
mod parcel;
mod parts;
pub mod reach;
mod request;
mod roots;
mod scrub;
pub mod secret;
mod settings;
pub mod target;
mod wire;

pub use self::names::{
    ADDRESS_DIMENSION, HOST_DIMENSION, HTTP_REQUEST, NET_EGRESS, PORT_DIMENSION, PURPOSE_DIMENSION,
    ROUTE_DIMENSION, SCHEME_DIMENSION, URL_PATH_DIMENSION, URL_ROOT,
};
pub(crate) use self::request::resources as demands;
pub use self::{
    egress::{EgressPlan, NetEgress},
    make::NetworkError,
    parts::Network,
    request::{HttpPlan, HttpRequest, REQUEST_BYTES_MAX},
    settings::{RESPONSE_CHARS, RESPONSE_CHARS_MAX, SettingsError, TIMEOUT_MS, TIMEOUT_MS_MAX},
};
