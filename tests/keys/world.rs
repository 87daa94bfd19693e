//! A home, and keys to sign for it elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::new_home;
use syscap::audit::SqliteReader;
use syscap::format::{Control, KeyChange, Record, RecordKind, Role, RoleSet, Seq};
use syscap::kernel::Next;
use syscap::keys::{KeyFile, KeyUse, Passphrase, Passphrases, Seal, SecretKey};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};
use syscap::{Beside, FileKeys, Inspection, Options, SignerError, SystemEntropy};
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) home: PathBuf,
}

impl World {
    /// A home whose keys are not sealed.
    pub(crate) fn new() -> Self {
        Self::with(Options::new())
    }

    /// A home whose keys `secret` seals.
    pub(crate) fn sealed() -> Self {
        Self::with(Options::new().seal(seal()))
    }

    pub(crate) fn with(options: Options) -> Self {
        let (dir, home) = new_home();
        options.create(&home).unwrap().close().unwrap();
        Self { dir, home }
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.home.join("keys")
    }

    pub(crate) fn path(&self, role: Role) -> PathBuf {
        KeyUse::Role(role).path(&self.keys())
    }

    pub(crate) fn file(&self, role: Role) -> KeyFile {
        KeyFile::read(&self.path(role)).unwrap()
    }

    pub(crate) fn open(&self) -> Runtime {
        Runtime::open(&self.home).unwrap()
    }

    pub(crate) fn log(&self) -> Inspection {
        Options::new().inspect(&self.home).unwrap()
    }

    pub(crate) fn set(&self, role: Role) -> RoleSet {
        self.log().kernel().roles().set(role).unwrap().clone()
    }

    /// The operator's key, unsealed.
    pub(crate) fn operator(&self) -> SecretKey {
        self.file(Role::Operator).unseal(&passphrase()).unwrap()
    }

    /// A change of keys that a key signs, over the log as it is.
    pub(crate) fn change(&self, change: &KeyChange, key: &SecretKey) -> Control {
        self.log().sign(change, &key.public_key(), |message| Ok(key.sign(message))).unwrap()
    }

    /// The same on record.
    pub(crate) fn put(&self, rt: &Runtime, change: &KeyChange, key: &SecretKey) -> Seq {
        rt.submit_with(RecordKind::Key, self.change(change, key), &Beside::Nothing).unwrap()
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut keep = |_, bytes: &[u8]| {
            records.push(Record::decode(bytes).unwrap());
            Next::More
        };
        SqliteReader::open(&self.home).unwrap().records(Seq::GENESIS, &mut keep).unwrap();
        records
    }

    pub(crate) fn count(&self, kind: RecordKind) -> usize {
        self.records().iter().filter(|record| record.body.kind() == kind).count()
    }

    /// The home at rest is sound, anchored by its trust file.
    pub(crate) fn is_sound(&self) {
        let trust = TrustSource::File(self.home.join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        let report = verify_home(&self.home, &options).unwrap();
        assert_eq!(report.verdict(), Soundness::Sound, "{:?}", report.findings);
    }

    /// Writes a file as an agent, and says whether it is there.
    pub(crate) fn writes(&self, rt: &Runtime, token: TokenId, name: &str) -> bool {
        let agent = rt.session("a", token).unwrap();
        let answer = agent.call("fs.write", args! { "path": name, "text": "x" }).unwrap();
        let there = self.home.join("files/agents/a/workspace").join(name).exists();
        assert_eq!(answer.reason().is_none(), there, "{name}");
        there
    }
}

/// A token that lets `a` write in its workspace.
pub(crate) fn token(rt: &Runtime) -> TokenId {
    let grant = Grant::to("a").tools(["fs.write", "echo"]).workspace();
    rt.issue(grant.budget(Budget::standard())).unwrap()
}

pub(crate) fn passphrase() -> Passphrase {
    Passphrase::new(b"secret".to_vec()).unwrap()
}

pub(crate) fn seal() -> Seal {
    Seal::By(passphrase())
}

/// A key that belongs to nobody yet.
pub(crate) fn key(role: Role) -> (KeyFile, SecretKey) {
    KeyFile::generate(KeyUse::Role(role), &Seal::Open, &SystemEntropy).unwrap()
}

/// Every file of a folder, to compare or to put back.
pub(crate) fn copy_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// A person who always says the same, and counts how often.
pub(crate) struct Says(pub(crate) &'static [u8], pub(crate) Arc<AtomicU64>);

impl Passphrases for Says {
    fn ask(&self, _: KeyUse) -> Result<Passphrase, SignerError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(Passphrase::new(self.0.to_vec()).unwrap())
    }
}

/// The home's keys with a person, and how often they were asked.
pub(crate) fn asked(world: &World, says: &'static [u8]) -> (FileKeys, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let keys = FileKeys::open(&world.keys()).unwrap();
    (keys.asking(Says(says, Arc::clone(&count))), count)
}
