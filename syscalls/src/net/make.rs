//! Tools, of nothing or of their manifests.

use std::collections::BTreeSet;

use syscap_format::{Canonical, EffectClass, Manifest, ToolId};
use syscap_kernel::{Registry, RegistryError};

use super::egress::{self, NetEgress};
use super::names::{HTTP_REQUEST, NET_EGRESS};
use super::parts::Network;
use super::request::{self, HttpRequest};
use super::settings::{Settings, SettingsError};

impl Network {
    /// `http_request` where nothing is set.
    pub fn request(&self) -> Option<HttpRequest> {
        HttpRequest::standard(self)
    }

    /// `net.egress` without routes.
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

    /// True if this makes the tool of a manifest.
    #[must_use]
    pub fn makes(manifest: &Manifest) -> bool {
        let is_own = [HTTP_REQUEST, NET_EGRESS].contains(&manifest.tool.as_str());
        (manifest.settings.is_some() || is_own) && manifest.definition.is_none()
    }

    /// The effect classes that calls of a tool can have: of the template by the methods that are
    /// allowed; of any other tool the manifest's own. None where the settings can't be read: then
    /// there is no such tool.
    pub fn classes(manifest: &Manifest) -> BTreeSet<EffectClass> {
        if !Self::makes(manifest) || manifest.tool.as_str() == NET_EGRESS {
            return BTreeSet::from([manifest.effect]);
        }
        let settings = manifest.settings.as_ref().map(|settings| Settings::read(settings.item()));
        let settings = settings.unwrap_or_else(|| Ok(Settings::standard()));
        let methods = settings.map(|settings| settings.methods).unwrap_or_default();
        methods.into_iter().map(super::method::Method::effect).collect()
    }

    /// How long one request of a tool of the template may take, in milliseconds; `None` of any
    /// other tool.
    pub fn timeout_ms(manifest: &Manifest) -> Option<u64> {
        if !Self::makes(manifest) || manifest.tool.as_str() == NET_EGRESS {
            return None;
        }
        let Some(settings) = &manifest.settings else {
            return Some(Settings::standard().timeout_ms);
        };
        Settings::read(settings.item()).ok().map(|settings| settings.timeout_ms)
    }

    /// The manifest of a built-in tool where nothing is set; `None` of any other tool.
    pub fn unset(tool: &ToolId) -> Option<Manifest> {
        match tool.as_str() {
            HTTP_REQUEST => Some(request::unset(tool.clone())),
            NET_EGRESS => Some(egress::unset(tool.clone())),
            _ => None,
        }
    }

    /// Adds the tool that a manifest is of, as it stands.
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
