//! The sources of policies: files, homes and presets.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use syscap::audit::SqliteReader;
use syscap::format::{EffectClass, ObjectId, ObjectKind, PolicyHash, PolicyObject, ToolId};
use syscap::kernel::{PolicyEngine, object_of};
use syscap::policy::limits::TEXT_BYTES_MAX;
use syscap::policy::{LoadError, Policy, Preset, WithinToken};
use syscap::syscalls::net::Network;

use crate::exit::{Exit, Failure};
use crate::near::hint;
use crate::{parse, runtime};

/// The target named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Preset(Preset),
    File(PathBuf),
    Home(PathBuf),
}

/// Which of a home's policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    InForce,
    Shadow,
}

impl Target {
    pub(super) fn of(word: &Path) -> Result<Self, Failure> {
        if let Some(name) = word.to_str().and_then(|word| word.strip_prefix("preset:")) {
            let usage = |error: parse::BadWord| Failure::Usage {
                what: format!("preset:{name}"),
                advice: error.to_string(),
            };
            return parse::preset(name).map(Self::Preset).map_err(usage);
        }
        let word = word.to_path_buf();
        let meta = fs::metadata(&word).map_err(Failure::file(&word))?;
        Ok(if meta.is_dir() { Self::Home(word) } else { Self::File(word) })
    }

    /// The file, where it is one.
    pub(super) fn file(&self) -> Option<PathBuf> {
        if let Self::File(file) = self { Some(file.clone()) } else { None }
    }

    /// A document's bytes; a home has none to give.
    pub(super) fn document(word: &Path) -> Result<(Self, Vec<u8>), Failure> {
        let target = Self::of(word)?;
        let bytes = match &target {
            Self::Preset(preset) => preset.document().as_bytes().to_vec(),
            Self::File(file) => read(file, TEXT_BYTES_MAX)?,
            Self::Home(_) => {
                let what = word.display().to_string();
                let advice = "is a folder; name a file or preset:NAME".to_owned();
                return Err(Failure::Usage { what, advice });
            }
        };
        Ok((target, bytes))
    }
}

/// The effect classes that calls of a tool can have: the one that is given, else those of the tool
/// in a home, of HTTP by its methods. A home is asked about its own tools only, by their own ids.
pub(super) fn classes_of(
    word: &Path,
    tool: &ToolId,
    given: Option<EffectClass>,
) -> Result<BTreeSet<EffectClass>, Failure> {
    let usage = |advice: String| Failure::Usage { what: tool.to_string(), advice };
    let Target::Home(folder) = Target::of(word)? else {
        let advice = "name its effect class with --effect, or ask a home";
        let given = given.ok_or_else(|| usage(advice.to_owned()))?;
        return Ok(BTreeSet::from([given]));
    };
    let home = runtime::look(&folder)?;
    let manifests = || home.kernel().manifests();
    if let Some(found) = manifests().find(|manifest| manifest.tool == *tool) {
        let own = || Network::classes(found);
        return Ok(given.map_or_else(own, |given| BTreeSet::from([given])));
    }
    if let Some(found) = manifests().find(|manifest| manifest.aliases.contains(tool)) {
        return Err(usage(format!("is another name of {}: use its own id", found.tool)));
    }
    let tools: Vec<&str> = manifests().map(|manifest| manifest.tool.as_str()).collect();
    Err(usage(format!("the home has no such tool{}", hint(tool.as_str(), "; it has", &tools))))
}

/// Reads a file, of which one byte more is kept than it may have.
pub(super) fn read(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let file = File::open(path).map_err(Failure::file(path))?;
    bounded(file, most).map_err(Failure::file(path))
}

/// Reads to the end, or to one byte more than `most`.
pub(super) fn bounded(input: impl io::Read, most: usize) -> io::Result<Vec<u8>> {
    let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    input.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if bytes are JSON: a map in canonical CBOR begins with a byte that no text begins with.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !matches!(bytes.first(), Some(0xa0..=0xbf))
}

/// Reads a document.
pub(super) fn parse(bytes: &[u8]) -> Result<Policy, LoadError> {
    let parsed = if is_text(bytes) { Policy::from_json(bytes) } else { Policy::from_cbor(bytes) };
    parsed.map_err(|error| LoadError { place: located(bytes, &error.place).into(), ..error })
}

/// A place in a file: of a byte of a text the line and the column, counted from 1, as `3:10`.
pub(super) fn located(bytes: &[u8], place: &str) -> String {
    let at = place.strip_prefix("byte ").and_then(|at| at.parse().ok());
    let before = at.filter(|_| is_text(bytes)).and_then(|at| bytes.get(..at));
    let Some(before) = before else { return place.to_owned() };
    let lines = before.split(|byte| *byte == b'\n');
    let (line, column) = lines.fold((0_usize, 1), |(line, _), text| {
        let chars = String::from_utf8_lossy(text).chars().count();
        (line.saturating_add(1), chars.saturating_add(1))
    });
    format!("{line}:{column}")
}

pub(super) fn preset_of(hash: PolicyHash) -> Option<Preset> {
    let is_this =
        |preset: &Preset| Policy::preset(*preset).is_ok_and(|policy| policy.hash() == hash);
    Preset::ALL.into_iter().find(is_this)
}

/// For the document in a file that is not sound.
pub(super) fn unsound(file: &Path) -> impl FnOnce(LoadError) -> Failure {
    let file = Some(file.to_path_buf());
    |error| Failure::Unsound { file, error: Box::new(error), exit: Exit::Failed }
}

/// A policy that was found.
pub(crate) struct Loaded {
    name: String,
    pub(crate) hash: PolicyHash,
    pub(crate) object: PolicyObject,
    engine: Engine,
}

/// The engine that can decide by it.
enum Engine {
    Document(Box<Policy>),
    WithinToken,
    Unknown,
}

impl Loaded {
    /// The policy that a word of the command line names: of a home, the one in force.
    pub(crate) fn of(word: &Path) -> Result<Self, Failure> {
        Self::which(word, Which::InForce)
    }

    pub(super) fn which(word: &Path, which: Which) -> Result<Self, Failure> {
        if let Target::Home(folder) = Target::of(word)? {
            return Self::of_home(&folder, which);
        }
        if which == Which::Shadow {
            let what = word.display().to_string();
            let advice = "has no shadow: name a home".to_owned();
            return Err(Failure::Usage { what, advice });
        }
        let (_, bytes) = Target::document(word)?;
        let policy = parse(&bytes).map_err(unsound(word))?;
        Ok(Self::new(&word.display().to_string(), object_of(&policy)))
    }

    fn of_home(folder: &Path, which: Which) -> Result<Self, Failure> {
        let home = runtime::look(folder)?;
        let (hash, lacks) = match which {
            Which::InForce => (home.kernel().policy_hash(), "has no policy on record yet"),
            Which::Shadow => (home.kernel().shadow_hash(), "has no shadow"),
        };
        let failed = |problem: &str| Failure::Policy {
            what: folder.display().to_string(),
            problem: problem.to_owned(),
        };
        let hash = hash.ok_or_else(|| failed(lacks))?;
        let found = Self::on_record(folder, hash)?;
        found.ok_or_else(|| failed("lacks the document of its policy"))
    }

    /// The policy of that hash, if a home has the document.
    pub(crate) fn on_record(folder: &Path, hash: PolicyHash) -> Result<Option<Self>, Failure> {
        let failed = |error| Failure::home(folder)(syscap::Error::Home(error));
        let mut reader = SqliteReader::open(folder).map_err(failed)?;
        let object = reader.object(&ObjectId::from_bytes(*hash.as_bytes())).map_err(failed)?;
        let object = object.filter(|object| object.kind == ObjectKind::Policy);
        let object = object.and_then(|object| PolicyObject::from_bytes(&object.bytes).ok());
        let object = object.filter(|object| object.hash() == hash);
        Ok(object.map(|object| Self::new(&folder.display().to_string(), object)))
    }

    fn new(name: &str, object: PolicyObject) -> Self {
        let engine = if object == object_of(&WithinToken) {
            Engine::WithinToken
        } else {
            // One that does not come to the same object was written by another version.
            let policy = Policy::from_cbor(&object.document);
            let policy = policy.ok().filter(|policy| object_of(policy) == object);
            policy.map_or(Engine::Unknown, |policy| Engine::Document(Box::new(policy)))
        };
        Self { name: name.to_owned(), hash: object.hash(), object, engine }
    }

    /// The document's policy, `None` where the engine has no document or is not known.
    pub(crate) fn document(&self) -> Option<&Policy> {
        match &self.engine {
            Engine::Document(policy) => Some(policy),
            Engine::WithinToken | Engine::Unknown => None,
        }
    }

    /// The policy, for what can be asked of a document only.
    pub(super) fn policy(&self) -> Result<&Policy, Failure> {
        self.document().ok_or_else(|| {
            self.failed(match &self.engine {
                Engine::WithinToken => "has no document: whatever the token permits is allowed",
                _ => "is not known to this program",
            })
        })
    }

    /// The engine that decides by it.
    pub(super) fn engine(&self) -> Result<&dyn PolicyEngine, Failure> {
        match &self.engine {
            Engine::Document(policy) => Ok(&**policy),
            Engine::WithinToken => Ok(&WithinToken),
            Engine::Unknown => Err(self.failed("is not known to this program")),
        }
    }

    /// True if this program can decide by it.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.engine, Engine::Unknown)
    }

    pub(crate) fn preset(&self) -> Option<Preset> {
        preset_of(self.hash)
    }

    fn failed(&self, problem: &str) -> Failure {
        let engine = &self.object.engine;
        let problem = format!("the engine {} {} {problem}", engine.name, engine.version);
        Failure::Policy { what: self.name.clone(), problem }
    }
}
