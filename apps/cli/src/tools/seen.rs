//! A home's tools, and the answer to unknown names.

use std::path::Path;

use syscap::format::{Manifest, ToolId, ToolsChange};
use syscap::provide::Standing;
use syscap::view::{ToolDetail, View, Whose};
use syscap::{Error, Inspection, Runtime};

use crate::{exit::Failure, near::near, runtime};

/// A change of tools that can be signed.
pub(crate) fn changed(change: Option<ToolsChange>) -> Result<ToolsChange, Failure> {
    change.ok_or_else(|| Failure::Usage {
        what: "the tools on record".to_owned(),
        advice: "are not those of this program: first `syscap tools accept HOME --own`".to_owned(),
    })
}

/// A home's state: by its server, else by its log.
pub(super) struct Seen {
    pub(super) view: View,
    /// The manifests on record.
    pub(super) manifests: Vec<Manifest>,
    /// The holder, where there is one.
    pub(super) access: Option<Runtime>,
}

impl Seen {
    pub(super) fn of(home: &Path) -> Result<Self, Failure> {
        match runtime::connected(home).map_err(Failure::home(home))? {
            Some(access) => {
                let mut seen = Self::at(access)?;
                // Of very many the holder tells but the first.
                if usize::try_from(seen.view.frozen_in_all) != Ok(seen.view.frozen.len()) {
                    seen.view.frozen = runtime::look(home)?.kernel().frozen();
                }
                Ok(seen)
            }
            None => {
                let log = runtime::look(home)?;
                let manifests = log.kernel().manifests().cloned().collect();
                let mut view = log.view();
                view.frozen = log.kernel().frozen();
                Ok(Self { view, manifests, access: None })
            }
        }
    }

    pub(super) fn at(access: Runtime) -> Result<Self, Failure> {
        let (view, manifests) = (access.view()?, access.manifests(Whose::All)?);
        Ok(Self { view, manifests, access: Some(access) })
    }

    /// The tool of that name or alias, whole.
    pub(super) fn tool(&self, home: &Path, tool: &ToolId) -> Result<ToolDetail, Failure> {
        let found = match &self.access {
            Some(access) => access.tool(tool),
            None => runtime::look(home)?.tool(tool),
        };
        found.map_err(|error| self.known(error))
    }

    /// Names what there is in the place of a tool that is not there.
    fn known(&self, error: Error) -> Failure {
        let Error::NoSuch { what: "the tool", got } = error else { return error.into() };
        let tools: Vec<&str> = self.view.tools.iter().map(|info| info.tool.as_str()).collect();
        let aliases = self.manifests.iter().flat_map(|manifest| &manifest.aliases);
        let all = tools.iter().copied().chain(aliases.map(ToolId::as_str));
        let hint = match near(&got, all) {
            Some(near) => format!(", did you mean {near}?"),
            None if tools.is_empty() => String::new(),
            None => format!("; it has: {}", tools.join(", ")),
        };
        Failure::Usage { what: got, advice: format!("the home has no such tool{hint}") }
    }
}

pub(super) fn detail_at(access: &Runtime, tool: &ToolId) -> Result<ToolDetail, Failure> {
    access.tool(tool).map_err(|error| match Seen::at(access.clone()) {
        Ok(seen) => seen.known(error),
        // What is wrong is wrong, also where nobody can say what would be right.
        Err(_) => error.into(),
    })
}

/// Why a tool is not one that another process runs.
pub(super) fn not_delegated(access: &Runtime, got: String) -> Failure {
    match ToolId::new(&got).map(|tool| detail_at(access, &tool)) {
        Some(Err(why)) => why,
        Some(Ok(detail)) if detail.info.delegated => {
            let advice = format!("is another name of {}: use that", detail.info.tool);
            Failure::Usage { what: got, advice }
        }
        _ => built_in(got),
    }
}

fn built_in(tool: String) -> Failure {
    let advice = "is built in, or set by `syscap http set`: nobody offers it".to_owned();
    Failure::Usage { what: tool, advice }
}

/// A tool that another process runs.
pub(super) fn delegated(access: &Runtime, tool: &ToolId) -> Result<ToolDetail, Failure> {
    let detail = detail_at(access, tool)?;
    if detail.info.delegated { Ok(detail) } else { Err(built_in(tool.to_string())) }
}

/// The tool of that name or alias, as it is on record.
pub(super) fn on_record<'l>(log: &'l Inspection, tool: &ToolId) -> Option<&'l Manifest> {
    log.kernel().manifests().find(|it| it.tool == *tool || it.aliases.contains(tool))
}

/// A tool whose offer is to be accepted. What it is compared with is what the log has, and what is
/// signed is the id of what is shown: of both the server's word is not taken.
pub(super) fn to_accept(
    log: &Inspection,
    tool: &ToolId,
    detail: ToolDetail,
) -> Result<ToolDetail, Failure> {
    let ToolDetail { mut info, manifest, offered } = detail;
    let on_record = on_record(log, tool).cloned();
    let named = on_record.as_ref().map_or(tool, |manifest| &manifest.tool);
    if info.tool != *named || offered.iter().any(|offered| offered.tool != *named) {
        let got = format!("it has {} in the place of {named}", info.tool);
        return Err(Error::Holder(got).into());
    }
    info.offered = offered.as_ref().map(Manifest::id);
    if offered.is_some() {
        info.standing = if on_record.is_some() { Standing::Changed } else { Standing::New };
    }
    // What is new is shown whole, as it is offered.
    let manifest = on_record.or_else(|| offered.clone()).unwrap_or(manifest);
    Ok(ToolDetail { info, manifest, offered })
}

pub(super) fn names(tools: &[ToolId]) -> String {
    crate::output::array(tools.iter().map(|tool| crate::output::quote(tool.as_str())))
}
