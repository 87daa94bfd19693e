//! `syscap http`: what an operator sets `http_request`, tools made of it and `net.egress` to.

mod connector;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use syscap::format::{
    Canonical, Item, Manifest, MapBuilder, PolicyHash, Profile, Role, Seq, ToolId, json,
};
use syscap::kernel::RegistryError;
use syscap::secrets::SecretFiles;
use syscap::syscalls::net::headers::is_anothers;
use syscap::syscalls::net::secret::Origin;
use syscap::syscalls::net::target::{Place, Target};
use syscap::syscalls::net::{HTTP_REQUEST, NET_EGRESS, Network};
use syscap::{Beside, Configured, Error, Home, Inspection};

pub(crate) use self::connector::{Connector, list_json};
use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out, word_of};
use crate::policy::Loaded;
use crate::signing::{self, Hand};
use crate::tools::changed;
use crate::{parse, runtime};

/// Longest settings, in bytes: they stand in the log.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;

/// A command on the tools that make requests.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Settings are a JSON object, of the fields that docs/http.md lists; all of them have defaults:

  base_url anywhere allowed_methods default_method default_headers default_query timeout_ms auto_approve
  response_format withhold max_response_chars title description agents secrets confidentiality roots proxy

of net.egress: routes confidentiality roots proxy. They stand in the tool's manifest, on record by
the operator's signature, so every call names them. Credentials are no settings: `syscap secret`.")]
pub(crate) enum Http {
    /// Make a tool of the template, or set it anew; http_request and net.egress can be set too.
    Set(Set),
    /// Show what a tool is set to.
    Show(Show),
    /// Take a tool off the record; http_request and net.egress are as they were before.
    Rm(Rm),
}

impl Http {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Set(set) => set.run(out),
            Self::Show(show) => show.run(out),
            Self::Rm(rm) => rm.run(out),
        }
    }
}

/// Which tool, and to what.
#[derive(Args, Debug)]
pub(crate) struct Set {
    /// The home.
    home: PathBuf,
    /// The tool's name, that of no other tool.
    #[arg(value_parser = parse::tool)]
    tool: ToolId,
    /// A file of JSON; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    settings: PathBuf,
}

impl Set {
    fn run(self, out: &mut Out) -> Ended {
        let manifest = manifest(&self.tool, &self.settings)?;
        let effect = manifest.effect;
        let settings = manifest.settings.clone().unwrap_or_else(Canonical::null);
        let change = Configured { set: vec![manifest], unset: Vec::new() };
        let seq = put(&self.home, &change)?;
        let json = Object::new().shown("tool", &self.tool).uint("record", seq.get());
        out.both(&format!("{} ({}) is set by record {seq}", self.tool, effect.name()), json)?;
        out.flush()?;
        let policy = runtime::look(&self.home)?.kernel().policy_hash();
        advice(&self.home, policy, &self.tool, &settings)?.iter().for_each(|line| tell(line));
        Ok(Exit::Done)
    }
}

/// The missing steps, and the calls that the policy in force allows already.
fn advice(
    home: &Path,
    policy: Option<PolicyHash>,
    tool: &ToolId,
    settings: &Canonical,
) -> Result<Vec<String>, Failure> {
    let (mut lines, word) = (Vec::new(), word_of(home));
    let known = SecretFiles::of(&Home::at(home)).list()?;
    for (server, secret) in secrets_of(settings.item()) {
        let Some(found) = known.iter().find(|info| info.name == secret) else {
            lines.push(format!(
                "there is no secret {secret} yet, and calls that need it are refused: \
                 `syscap secret set {word} {secret} --origin URL`"
            ));
            continue;
        };
        let target = server.and_then(|server| Target::absolute(server).ok());
        let (Some(target), Some(origins)) = (target, &found.origins) else { continue };
        let is_of = |origin: &String| Origin::parse(origin).is_some_and(|one| one.is_of(&target));
        if !origins.iter().any(is_of) {
            lines.push(format!(
                "the secret {secret} is for {} and not for {}: calls that need it are refused",
                origins.join(", "),
                server.unwrap_or_default()
            ));
        }
    }
    let headers = settings.item().get("default_headers").into_iter();
    let headers = headers.flat_map(|headers| headers.entries()).map(|(name, _)| name);
    lines.extend(headers.filter(|name| is_anothers(name)).map(|name| {
        format!(
            "{name}: some servers take it for the path, method, host or client of a request, and \
             no policy sees that"
        )
    }));
    if let Some(base) = settings.item().get("base_url").and_then(Item::as_text)
        && let Ok(target) = Target::absolute(base)
    {
        let scopes = scopes_of(&target).join(" ");
        lines.push(format!(
            "grant it: `syscap token issue {word} --agent NAME --tool {tool} {scopes}`"
        ));
    }
    let policy = policy.map(|hash| Loaded::on_record(home, hash)).transpose()?.flatten();
    let Some(policy) = policy else { return Ok(lines) };
    // It is in force, so it was read; this is advice.
    let document = Item::check(&policy.object.document, Profile::CONTROL).ok();
    let params = document.and_then(|document| document.get("params"));
    let listed = params.and_then(|params| params.get("auto_approve"));
    let is_listed =
        listed.is_some_and(|list| list.elements().any(|one| one.as_text() == Some(tool.as_str())));
    let approves = settings.item().get("auto_approve").and_then(|set| set.as_bool()) == Some(true);
    match (is_listed, approves) {
        (true, _) => lines.push(format!(
            "the policy in force names {tool} in `params.auto_approve`: nobody is asked about \
             what it writes"
        )),
        (false, true) => lines.push(format!(
            "auto_approve counts in the policy only: add {tool} to `params.auto_approve` of \
             the document that `syscap policy show {word}` prints, and put it in force with \
             `syscap policy set {word} FILE`"
        )),
        (false, false) => {}
    }
    Ok(lines)
}

/// The secrets that settings name, also those of routes, each with the URL of the server that it
/// would be sent to.
fn secrets_of(settings: Item<'_>) -> impl Iterator<Item = (Option<&str>, &str)> {
    let routes = settings.get("routes").into_iter().flat_map(|routes| routes.entries());
    let all =
        std::iter::once((settings, "base_url")).chain(routes.map(|(_, route)| (route, "url")));
    all.flat_map(|(item, url)| {
        let server = item.get(url).and_then(Item::as_text);
        let named = item.get("secrets").into_iter().flat_map(|list| list.elements());
        let named = named.filter_map(|placed| placed.get("secret").and_then(Item::as_text));
        named.map(|name| (server, name)).collect::<Vec<_>>()
    })
}

/// The scopes that a token needs for a server.
fn scopes_of(target: &Target) -> Vec<String> {
    let mut scopes = match target.place() {
        Place::Name(name) => vec![format!("--scope host={}", name.as_str())],
        Place::Address(address) => vec![format!("--scope address={address}")],
    };
    let usual = if target.is_secure() { 443 } else { 80 };
    if target.port() != usual {
        scopes.push(format!("--scope port={}", target.port()));
    }
    if !target.is_secure() {
        scopes.push("--scope scheme=http".to_owned());
    }
    scopes
}

fn manifest(tool: &ToolId, path: &Path) -> Result<Manifest, Failure> {
    let name = if path == Path::new("-") { "standard input" } else { "the settings" };
    let text = read(path).map_err(|source| Failure::File { path: path.to_path_buf(), source })?;
    let bad = |why: String| Failure::Usage { what: name.to_owned(), advice: why };
    if u64::try_from(text.len()).is_ok_and(|length| length > SETTINGS_BYTES_MAX) {
        return Err(bad(format!("have more than {SETTINGS_BYTES_MAX} bytes")));
    }
    let settings = json::to_data(&text).map_err(|error| bad(error.to_string()))?;
    made(tool.clone(), bounded(settings), name)
}

/// The manifest of a tool with these settings, which have that name in words.
fn made(tool: ToolId, settings: Canonical, name: &str) -> Result<Manifest, Failure> {
    let bad = |why: String| Failure::Usage { what: name.to_owned(), advice: why };
    Network::manifest(tool, settings).map_err(|error| bad(error.to_string()))
}

/// The same settings, where they name a base and don't say whether other URLs may be called:
/// they may not.
fn bounded(settings: Canonical) -> Canonical {
    let item = settings.item();
    if item.get("base_url").is_none() || item.get("anywhere").is_some() {
        return settings;
    }
    let own = MapBuilder::new().boolean("anywhere", false);
    item.entries().fold(own, |map, (name, value)| map.item(name, value)).finish()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = SETTINGS_BYTES_MAX.saturating_add(1);
    if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut text)?;
    } else {
        fs::File::open(path)?.take(most).read_to_end(&mut text)?;
    }
    Ok(text)
}

/// Has the change recorded, by whoever signs for the operator.
fn put(home: &Path, change: &Configured) -> Result<Seq, Failure> {
    let hand = signing::hand(home, Role::Operator)?;
    let said = |error| match error {
        Error::Registry(RegistryError::Duplicate(tool)) => taken(&tool.to_string()),
        Error::NoSuch { what: "a tool that an operator has set", got } => Failure::Usage {
            what: got,
            advice: "is no tool that was set; `syscap tools list` shows those there are".to_owned(),
        },
        error => error.into(),
    };
    runtime::with(home, |access| match &hand {
        Hand::Holder => access.configure(change).map_err(said),
        Hand::Person(person) => {
            let body = |log: &Inspection| changed(log.settings_change(change));
            let beside = Beside::Configured(Box::new(change.clone()));
            person.submit(access, body, &beside, said)
        }
    })
}

fn taken(tool: &str) -> Failure {
    let advice = "is the name of another tool, which no settings can change".to_owned();
    Failure::Usage { what: tool.to_owned(), advice }
}

/// Which tool.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The tool.
    #[arg(value_parser = parse::tool)]
    tool: ToolId,
}

impl Show {
    fn run(self, out: &mut Out) -> Ended {
        let log = runtime::look(&self.home)?;
        let found = log.kernel().manifests().find(|manifest| manifest.tool == self.tool);
        let is_own = [HTTP_REQUEST, NET_EGRESS].contains(&self.tool.as_str());
        let settings = match found {
            Some(manifest) if manifest.settings.is_some() || is_own => manifest.settings.as_ref(),
            _ => {
                let advice = "makes no requests; `syscap http set` makes a tool that does";
                let (what, advice) = (self.tool.to_string(), advice.to_owned());
                return Err(Failure::Usage { what, advice });
            }
        };
        // The same text sets it again.
        let text = settings.map_or_else(|| "{}".to_owned(), |set| json::from_data(set.item()));
        out.line(&text)?;
        Ok(Exit::Done)
    }
}

/// Which tools.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// The home.
    home: PathBuf,
    /// The tools.
    #[arg(value_name = "TOOL", value_parser = parse::tool, required = true)]
    tools: Vec<ToolId>,
}

impl Rm {
    fn run(self, out: &mut Out) -> Ended {
        let change = Configured { set: Vec::new(), unset: self.tools };
        let seq = put(&self.home, &change)?;
        let json = Object::new().uint("record", seq.get());
        out.both(&format!("taken off by record {seq}"), json)?;
        Ok(Exit::Done)
    }
}
