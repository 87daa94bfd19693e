//! A tool as a catalogue shows it: what it is, takes, needs and is held to, and whether it can be
//! called now.

use syscap::format::{Extra, FreezeTarget, Manifest, Param, Presence, json};
use syscap::provide::Standing;
use syscap::view::{ToolInfo, View};

use crate::output::{Object, array, quote};

/// How a tool stands, in a word.
pub(crate) fn standing(info: &ToolInfo) -> &'static str {
    match (info.delegated, info.provided, info.standing) {
        (false, ..) => "built_in",
        (true, false, _) => "no_provider",
        (true, true, Standing::Ready) => "ready",
        (true, true, Standing::Changed | Standing::Taken) => "changed",
        (true, true, Standing::New) => "new",
    }
}

/// A tool in few words.
pub(crate) fn brief(info: &ToolInfo) -> Object {
    Object::new()
        .shown("tool", &info.tool)
        .text("standing", standing(info))
        .text("effect", info.effect.name())
        .shown("label", info.label)
        .text("title", &info.title)
        .shown("manifest", info.manifest)
}

/// A dimension in plain words, and the option that gives a token a scope in it.
pub(super) struct Permission {
    pub(super) about: &'static str,
    pub(super) given: String,
}

/// The dimensions that tools of this program and of its documentation name. For another dimension
/// the advice is that a token must name values in it.
pub(super) fn permission(dimension: &str) -> Permission {
    let about = match dimension {
        "path" => "files and folders below the roots that the token names, to read or to write",
        "program" => "programs that may be started, by name or absolute path",
        "network" => "networks that a program may reach: loopback, host",
        "confinement" => "a lower level of confinement than the best: confined",
        "collection" => "collections of vectors, by tenant and name",
        "calendar" => "calendars, by name",
        "recipient" => "addresses that a message may be for",
        "recipient_host" => "hosts at which anybody may be a recipient",
        "outbox" => "agents that may be sent to, by name",
        "host" => "hosts that may be reached, by name or suffix",
        "port" => "ports that may be reached",
        "address" => {
            "blocks of addresses that may be named, or that names of private networks lead to"
        }
        "scheme" => "http, which anybody on the way can read",
        "route" => "routes out, by the names that the operator gave them",
        "purpose" => "what may be said to be the purpose, by name",
        _ => "values that the token must name",
    };
    let given = match dimension {
        "path" => "--read ROOT, --write ROOT".to_owned(),
        dimension => format!("--scope {dimension}=VALUE"),
    };
    Permission { about, given }
}

/// Why no call of a tool would be let through at present, whatever the token; `None` where one
/// may be.
pub(super) fn why_not(view: &View, info: &ToolInfo) -> Option<&'static str> {
    let stands = match standing(info) {
        "no_provider" => Some("nobody offers it at present"),
        "changed" => Some("another definition is offered than is on record"),
        "new" => Some("it is not on record: accept it first"),
        _ => None,
    };
    let frozen = view.frozen.iter().find_map(|freeze| match freeze.target {
        FreezeTarget::Kernel => Some("every call is frozen"),
        FreezeTarget::Tool if *freeze.name == *info.tool.as_str() => Some("it is frozen"),
        FreezeTarget::Tool | FreezeTarget::Agent => None,
    });
    let lawless = view.policy.is_none().then_some("no policy is in force");
    stands.or(frozen).or(lawless)
}

/// Most characters of a description in a list.
const ABOUT_MAX: usize = 160;

/// The first line of what a tool does, and its other names: a stranger's description may be long.
pub(super) fn about(manifest: &Manifest) -> String {
    let line = manifest.description.lines().next().unwrap_or_default();
    let short: String = line.chars().take(ABOUT_MAX).collect();
    let cut = if short.len() < line.len() { ".." } else { "" };
    let names: Vec<&str> = manifest.aliases.iter().map(|alias| alias.as_str()).collect();
    match names.as_slice() {
        [] => format!("{short}{cut}"),
        names => format!("{short}{cut} Also: {}", names.join(", ")),
    }
}

/// One line on what a token must give, in the words of a command line; nothing where that is
/// nothing.
pub(super) fn needs(manifest: &Manifest) -> Option<String> {
    let each = manifest.dimensions.iter().map(|of| format!("{of} ({})", permission(of).given));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("needs {}", each.join("; ")))
}

/// All that a catalogue says of a tool.
pub(super) fn entry(view: &View, info: &ToolInfo, manifest: &Manifest) -> Object {
    let optional = |object: Object, key: &str, value: Option<String>| {
        object.json(key, value.as_deref().unwrap_or("null"))
    };
    let permissions = manifest.dimensions.iter().map(|dimension| {
        let Permission { about, given } = permission(dimension);
        let object = Object::new().text("dimension", dimension);
        object.text("about", about).text("given_by", &given).finish()
    });
    let limits = Object::new().uint("result_bytes", manifest.result_bytes_max);
    let limits = optional(limits, "wall_ms", manifest.wall_ms_max.map(|ms| ms.to_string()));
    let limits = limits.amounts("sets_aside", &manifest.hold);
    let others = match manifest.extra {
        Extra::Refused => "refused",
        Extra::Taken => "taken",
    };
    let why_not = why_not(view, info);
    let object = brief(info)
        .json("aliases", &array(manifest.aliases.iter().map(|alias| quote(alias.as_str()))))
        .text("description", &manifest.description)
        .json("arguments", &array(manifest.params.iter().map(argument)))
        .text("other_arguments", others)
        .json("permissions", &array(permissions))
        .json("limits", &limits.finish())
        .json("obligations", &array(manifest.honours.iter().map(|kind| quote(kind.name()))));
    let settings = manifest.settings.as_ref().map(|it| json::from_data(it.item()));
    let object = optional(object, "settings", settings);
    let undone = manifest.compensated_by.as_ref().map(|tool| quote(tool.as_str()));
    let object = optional(object, "undone_by", undone).flag("can_be_called", why_not.is_none());
    optional(object, "why_not", why_not.map(quote))
}

fn argument(param: &Param) -> String {
    let number = |object: Object, key: &str, value: Option<u64>| match value {
        Some(value) => object.uint(key, value),
        None => object,
    };
    let object = Object::new()
        .text("name", &param.name)
        .text("type", param.kind.name())
        .flag("required", param.presence == Presence::Required);
    let object = number(number(object, "min", param.min), "max", param.max);
    let object = match &param.default {
        Some(default) => object.json("default", &json::from_data(default.item())),
        None => object,
    };
    object.text("description", &param.description).finish()
}
