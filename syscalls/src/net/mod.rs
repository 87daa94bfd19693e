//! What leaves the machine: `http_request`, the tools that operators make of it, `net.egress`.
//!
//! A URL is read once ([`target`]), its name looked up once ([`lookup`]), every address judged
//! ([`address`], [`reach`]), and what was judged is connected to; bytes are counted on the wire. No
//! redirect is followed: where it leads is in the result, and going there is another call. Nothing
//! comes from the environment: no proxy, no certificates, no credentials.
//!
//! A template becomes a tool by [settings](Network::manifest): they stand in its manifest, which an
//! operator signs, so every call names them. [Secrets](secret) are named there, and never shown.

pub mod address;
mod answer;
mod egress;
mod exchange;
mod headers;
pub mod lookup;
pub mod method;
mod parcel;
pub mod reach;
mod request;
mod roots;
mod scrub;
pub mod secret;
mod settings;
pub mod target;
mod wire;

use std::sync::Arc;

use syscap_format::{cbor::Canonical, id::ToolId, manifest::Manifest};
use syscap_kernel::registry::{Registry, RegistryError};

pub use self::{
    egress::{EgressPlan, NetEgress},
    request::{HttpPlan, HttpRequest, REQUEST_BYTES_MAX},
    settings::{RESPONSE_CHARS, RESPONSE_CHARS_MAX, SettingsError, TIMEOUT_MS, TIMEOUT_MS_MAX},
};
use self::{lookup::Lookup, secret::Secrets};

/// The template's id, and that of the tool where nothing is set.
pub const HTTP_REQUEST: &str = "http_request";
/// The id of `net.egress`.
pub const NET_EGRESS: &str = "net.egress";

/// The dimension of a grant that names hosts.
pub const HOST_DIMENSION: &str = "host";
/// The dimension of a grant that names ports other than 443 for `https` and 80 for `http`; where a
/// grant has it, it says it of all of them.
pub const PORT_DIMENSION: &str = "port";
/// The dimension of a grant that names blocks of addresses: those that URLs may name, and those
/// that are not of the Internet at large and that names may lead to.
pub const ADDRESS_DIMENSION: &str = "address";
/// The dimension of a grant that names `http`, which anybody on the way can read.
pub const SCHEME_DIMENSION: &str = "scheme";
/// The dimension of a grant that names routes.
pub const ROUTE_DIMENSION: &str = "route";
/// The dimension of a grant that names purposes.
pub const PURPOSE_DIMENSION: &str = "purpose";

/// What requests say of who makes them, where nothing else is set.
const USER_AGENT: &str = concat!("syscap/", env!("CARGO_PKG_VERSION"));

/// The network as tools have it: who looks names up, and who keeps secrets.
#[derive(Clone)]
pub struct Network {
    lookup: Arc<dyn Lookup>,
    secrets: Arc<dyn Secrets>,
}

impl Network {
    /// Of these two.
    #[must_use]
    pub fn new(lookup: Arc<dyn Lookup>, secrets: Arc<dyn Secrets>) -> Self {
        Self { lookup, secrets }
    }

    /// `http_request` where nothing is set.
    #[must_use]
    pub fn request(&self) -> Option<HttpRequest> {
        HttpRequest::standard(self)
    }

    /// `net.egress` without routes.
    #[must_use]
    pub fn egress(&self) -> Option<NetEgress> {
        NetEgress::standard(self)
    }

    /// The manifest of a tool that is set so: `net.egress` by its routes, any other by the
    /// template. Without settings that of the two built-in tools themselves.
    ///
    /// # Errors
    /// [`SettingsError`], by the field.
    pub fn manifest(tool: ToolId, settings: Canonical) -> Result<Manifest, SettingsError> {
        match tool.as_str() {
            NET_EGRESS => NetEgress::manifest_of(tool, settings),
            _ => HttpRequest::manifest_of(tool, settings),
        }
    }

    /// Whether a manifest is of a tool that this makes.
    #[must_use]
    pub fn makes(manifest: &Manifest) -> bool {
        let is_own = [HTTP_REQUEST, NET_EGRESS].contains(&manifest.tool.as_str());
        (manifest.settings.is_some() || is_own) && manifest.definition.is_none()
    }

    /// The manifest of a built-in tool where nothing is set; `None` of any other tool.
    #[must_use]
    pub fn unset(tool: &ToolId) -> Option<Manifest> {
        match tool.as_str() {
            HTTP_REQUEST => Some(request::unset(tool.clone())),
            NET_EGRESS => Some(egress::unset(tool.clone())),
            _ => None,
        }
    }

    /// Adds the tool that a manifest is of, as it stands.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn add(&self, manifest: &Manifest, registry: &mut Registry) -> Result<(), NetworkError> {
        match manifest.tool.as_str() {
            NET_EGRESS => registry.add(NetEgress::of(manifest, self)?)?,
            _ => registry.add(HttpRequest::of(manifest, self)?)?,
        }
        Ok(())
    }
}

/// Why a tool can't be made of its manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Its settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Its name.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
