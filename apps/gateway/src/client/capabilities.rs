//! A client's capabilities, and the wire on which it states them.

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ElicitRequestParams, InputRequest};
use rmcp::service::RequestContext;

use crate::options::Question;

/// Which of the two wires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WireKind {
    /// With `initialize`: a server may ask the client at any time.
    #[default]
    Session,
    /// Without: a server may only answer that it needs more.
    Stateless,
}

/// A client's capabilities, by its own statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Able {
    pub(crate) wire: WireKind,
    /// Without extensions: none passes through.
    pub(crate) capabilities: ClientCapabilities,
}

impl Able {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let modern = context.protocol_version().is_some_and(|version| !version.has_initialize());
        let wire = if modern { WireKind::Stateless } else { WireKind::Session };
        Self::new(wire, context.client_capabilities().unwrap_or_default())
    }

    pub(crate) fn new(wire: WireKind, declared: ClientCapabilities) -> Self {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = declared.roots;
        capabilities.sampling = declared.sampling;
        capabilities.elicitation = declared.elicitation;
        Self { wire, capabilities }
    }

    /// The capabilities that a server is told of, given the operator's permissions.
    pub(crate) fn told(&self, asks: &[Question]) -> Self {
        let mut told = self.clone();
        let has = |question| asks.contains(&question);
        let capabilities = &mut told.capabilities;
        capabilities.sampling = capabilities.sampling.take().filter(|_| has(Question::Sampling));
        capabilities.elicitation =
            capabilities.elicitation.take().filter(|_| has(Question::Elicitation));
        capabilities.roots = capabilities.roots.take().filter(|_| has(Question::Roots));
        told
    }

    /// The capabilities for a server of the older wire: it asks at any time, so only a client that
    /// can be asked has any there.
    pub(crate) fn in_session(&self) -> ClientCapabilities {
        match self.wire {
            WireKind::Session => self.capabilities.clone(),
            WireKind::Stateless => ClientCapabilities::default(),
        }
    }

    /// True if the client has stated that it can be asked that.
    pub(crate) fn can(&self, request: &InputRequest) -> bool {
        match request {
            InputRequest::CreateMessage(_) => self.capabilities.sampling.is_some(),
            InputRequest::ListRoots(_) => self.capabilities.roots.is_some(),
            InputRequest::Elicitation(elicit) => self.can_elicit(&elicit.params),
            _ => false,
        }
    }

    fn can_elicit(&self, params: &ElicitRequestParams) -> bool {
        let Some(elicitation) = &self.capabilities.elicitation else { return false };
        match params {
            ElicitRequestParams::UrlElicitationParams { .. } => elicitation.url.is_some(),
            // A client that names no mode means forms.
            _ => elicitation.form.is_some() || elicitation.url.is_none(),
        }
    }
}
