//! Homes among the files that agents may have: whatever a token grants, and whenever they came
//! there, nothing in a home is opened, and no tool makes one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use host_support::by_cap_std;
use syscap::audit::MemoryStore;
use syscap::format::{
    AgentId, Canonical, Durability, Grants, Item, MapBuilder, Paths, PublicKey, Rights, Role, Root,
    RootedPath, Rule, Scope, Signature, TOKEN_CONTEXT, Token, TokenBody, TokenFlags, ToolGrant,
    ToolId, preimage,
};
use syscap::keys::Seal;
use syscap::prelude::*;
use syscap::syscalls::beneath::KEY_FILE_BEGINS;
use syscap::{FileKeys, Signer, SystemEntropy};

const TOOLS: [&str; 3] = ["fs.read", "fs.list", "fs.write"];

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    base: PathBuf,
    rt: Runtime,
}

/// A home whose agents' files lie elsewhere, with a project and, beside it, another home.
fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let (home, base) = (dir.path().join("home"), dir.path().join("base"));
    fs::create_dir_all(base.join("proj/src")).unwrap();
    fs::write(base.join("proj/src/a.txt"), "code").unwrap();
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let rt = options.base(&base).create(&home).unwrap();
    make_home(&base.join("other"));
    World { _dir: dir, home, base, rt }
}

fn make_home(folder: &Path) {
    Options::new().durability(Durability::Process).create(folder).unwrap().close().unwrap();
}

fn scope(root: &str) -> Scope {
    let path = RootedPath::new(Root::named(root).unwrap(), [""; 0]).unwrap();
    Scope::Paths(Paths::new([Rule { path, rights: Rights::ALL }]).unwrap())
}

impl World {
    /// An agent with a token whose scope nobody looked at when it was issued.
    fn seat(&self, root: &str) -> Session {
        let grant = Grant::to("a").tools(TOOLS).scope("path", scope(root));
        self.rt.session("a", self.rt.issue(grant).unwrap()).unwrap()
    }

    /// The same by a token that was signed elsewhere.
    fn registered(&self, root: &str) -> Session {
        let keys = FileKeys::open(&self.home.join("keys")).unwrap();
        let grant = ToolGrant::new().with("path", scope(root));
        let grants = TOOLS.into_iter().fold(Grants::new(), |grants, tool| {
            grants.with(ToolId::new(tool).unwrap(), grant.clone())
        });
        let now = self.rt.look(|kernel| kernel.now()).unwrap();
        let body = TokenBody {
            version: 2,
            nonce: [7; 16],
            issuer: keys.public_key(Role::Issuer).unwrap(),
            holder: None,
            agent: AgentId::new("a").unwrap(),
            parent: None,
            depth: 0,
            depth_max: 0,
            not_before: now,
            expires: now.plus(60_000),
            epoch: 0,
            grants,
            budget: Budget::standard(),
            caveats: Vec::new(),
            policy: None,
            flags: TokenFlags::default(),
            ext: MapBuilder::new().finish(),
            audience: self.rt.id(),
            head: Some(self.rt.durable().unwrap()),
            renews: None,
        }
        .to_bytes();
        let signature = keys.sign(Role::Issuer, &preimage(TOKEN_CONTEXT, &body)).unwrap();
        let token = self.rt.register(&Token::wire(&body, &signature)).unwrap();
        self.rt.session("a", token).unwrap()
    }
}

/// What all tools say of a path, which must be that access is denied.
fn denied(agent: &Session, path: &str) -> [Canonical; 3] {
    let results = [
        agent.call("fs.read", args! { "path": path }),
        agent.call("fs.list", args! { "path": path }),
        agent.call("fs.write", args! { "path": path, "text": "x", "parents": true }),
    ];
    results.map(|result| {
        let result = result.unwrap();
        assert_eq!(result.reason(), Some(Reason::AccessDenied), "{path}");
        result.delivered().clone()
    })
}

fn read(agent: &Session, path: &str) -> Result<String, Reason> {
    let result = agent.call("fs.read", args! { "path": path }).unwrap();
    result.reason().map_or_else(|| Ok(result.text().unwrap().to_owned()), Err)
}

fn listed(agent: &Session, path: &str) -> Result<BTreeSet<String>, Reason> {
    let result = agent.call("fs.list", args! { "path": path }).unwrap();
    if let Some(reason) = result.reason() {
        return Err(reason);
    }
    let entries = result.value().unwrap().get("entries").unwrap();
    let name = |entry: Item<'_>| entry.get("name").and_then(Item::as_text).unwrap().to_owned();
    Ok(entries.elements().map(name).collect())
}

fn write(agent: &Session, path: &str, text: &str) -> Option<Reason> {
    let args = args! { "path": path, "text": text, "parents": true };
    agent.call("fs.write", args).unwrap().reason()
}

/// Every name below, with what a file holds.
fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            }
            let content = if kind.is_file() { fs::read(entry.path()).unwrap() } else { vec![] };
            found.push((entry.path(), content));
        }
    }
    found.sort();
    found
}

/// A root that is a home, and one that holds a home deeper: by a scope in a grant, and by a token
/// that was signed elsewhere. What is asked for is refused alike, whether it is there or not.
#[test]
fn a_home_in_a_root_is_not_opened() {
    let world = world();
    make_home(&world.base.join("proj/deep/inner"));
    let trees = || ["other", "proj"].map(|root| tree(&world.base.join(root)));
    let before = trees();
    for (root, at) in [("other", "other"), ("proj", "proj/deep/inner")] {
        for agent in [world.seat(root), world.registered(root)] {
            let first = denied(&agent, &format!("{at}/home.db"));
            for path in [
                "keys/operator.key",
                "keys/none",
                "keys",
                "trust.cbor",
                "none",
                "none/none",
                "files/agents/b/workspace/x",
                "home.db-wal",
            ] {
                assert_eq!(denied(&agent, &format!("{at}/{path}")), first, "{path}");
            }
            assert_eq!(listed(&agent, at), Err(Reason::AccessDenied));
        }
    }
    let agent = world.seat("proj");
    assert_eq!(read(&agent, "proj/src/a.txt"), Ok(String::from("code")));
    assert_eq!(listed(&agent, "proj/deep"), Ok(BTreeSet::from([String::from("inner")])));
    assert!(trees() == before, "something was changed");
}

/// Between two calls a folder becomes a home, and is one no more: no look is older than the folder.
#[test]
fn a_root_that_becomes_a_home_is_one_at_once() {
    let world = world();
    let agent = world.seat("proj");
    for round in 0..50 {
        let folder = world.base.join(format!("proj/later{round}"));
        let at = format!("proj/later{round}");
        fs::create_dir(&folder).unwrap();
        assert_eq!(listed(&agent, &at), Ok(BTreeSet::new()));
        fs::write(folder.join("home.db"), "").unwrap();
        assert_eq!(listed(&agent, &at), Err(Reason::AccessDenied), "{round}");
        fs::remove_file(folder.join("home.db")).unwrap();
        assert_eq!(listed(&agent, &at), Ok(BTreeSet::new()));
        fs::create_dir(folder.join("keys")).unwrap();
        assert_eq!(listed(&agent, &at), Ok(BTreeSet::from([String::from("keys")])));
        fs::write(folder.join("keys/issuer.key"), KEY_FILE_BEGINS).unwrap();
        assert_eq!(listed(&agent, &at), Err(Reason::AccessDenied), "{round}");
        assert_eq!(listed(&agent, &format!("{at}/keys")), Err(Reason::AccessDenied));
        fs::remove_file(folder.join("keys/issuer.key")).unwrap();
        assert_eq!(listed(&agent, &format!("{at}/keys")), Ok(BTreeSet::new()));
    }
    // A real one.
    make_home(&world.base.join("proj/later0/home"));
    assert_eq!(listed(&agent, "proj/later0/home"), Err(Reason::AccessDenied));
    // The root itself, which was opened all the time.
    make_home(&world.base.join("new"));
    for name in ["home.db", "keys", "trust.cbor"] {
        fs::rename(world.base.join("new").join(name), world.base.join("proj").join(name)).unwrap();
    }
    assert_eq!(read(&agent, "proj/src/a.txt"), Err(Reason::AccessDenied));
    // And the base, in which all roots lie.
    fs::create_dir(world.base.join("plain")).unwrap();
    let agent = world.seat("plain");
    assert_eq!(listed(&agent, "plain"), Ok(BTreeSet::new()));
    fs::rename(world.base.join("proj/home.db"), world.base.join("home.db")).unwrap();
    assert_eq!(listed(&agent, "plain"), Err(Reason::AccessDenied));
}

/// Keys that lie by themselves, and a home whose log lies elsewhere, are marked by the keys.
#[test]
fn keys_below_a_granted_root_are_not_opened() {
    let world = world();
    let signing = world.base.join("proj/signing");
    FileKeys::create(&signing, &Seal::Open, &SystemEntropy).unwrap();
    let elsewhere = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    elsewhere.create(world.base.join("proj/mem")).unwrap().close().unwrap();
    let agent = world.seat("proj");
    let before = tree(&world.base.join("proj"));
    for path in ["proj/mem/trust.cbor", "proj/mem/none", "proj/mem/keys/issuer.key"] {
        denied(&agent, path);
    }
    for folder in ["proj/mem", "proj/mem/keys", "proj/mem/files"] {
        assert_eq!(listed(&agent, folder), Err(Reason::AccessDenied), "{folder}");
    }
    // A key is one wherever it lies: what is beside it is not.
    for role in Role::IN_USE {
        let path = format!("proj/signing/{}.key", role.name());
        assert_eq!(read(&agent, &path), Err(Reason::AccessDenied));
        assert_eq!(write(&agent, &path, &"x".repeat(100)), Some(Reason::AccessDenied));
        // One that waits to take its place, and one that is being written.
        for (suffix, bytes) in [("next", &KEY_FILE_BEGINS[..]), ("part", b""), ("part", b"\xa5")] {
            let other = format!("{path}.{suffix}");
            fs::write(world.base.join(&other), bytes).unwrap();
            assert_eq!(read(&agent, &other), Err(Reason::AccessDenied));
            assert_eq!(write(&agent, &other, "x"), Some(Reason::AccessDenied));
            fs::remove_file(world.base.join(&other)).unwrap();
        }
        // Where names are told apart by letters alone, this is the same file.
        let other = format!("proj/signing/{}.Key", role.name().to_uppercase());
        fs::write(world.base.join(&other), KEY_FILE_BEGINS).unwrap();
        assert_eq!(read(&agent, &other), Err(Reason::AccessDenied));
        assert_eq!(write(&agent, &other, "x"), Some(Reason::AccessDenied));
        fs::remove_file(world.base.join(&other)).unwrap();
    }
    assert!(tree(&world.base.join("proj")) == before, "something was changed");
    assert_eq!(write(&agent, "proj/signing/README", "x"), None);
    // One under a name of its owner's choice; of such a name an empty file says nothing.
    let second = world.base.join("proj/second.key");
    fs::write(&second, KEY_FILE_BEGINS).unwrap();
    assert_eq!(read(&agent, "proj/second.key"), Err(Reason::AccessDenied));
    assert_eq!(write(&agent, "proj/second.key", "x"), Some(Reason::AccessDenied));
    fs::write(&second, "").unwrap();
    assert_eq!(read(&agent, "proj/second.key"), Ok(String::new()));
    // One key is enough to mark the home that they belong to.
    for role in Role::IN_USE.iter().filter(|role| **role != Role::Revoker) {
        fs::remove_file(world.base.join(format!("proj/mem/keys/{}.key", role.name()))).unwrap();
    }
    assert_eq!(listed(&agent, "proj/mem"), Err(Reason::AccessDenied));
    // The home that uses them is opened with them, and gives them to nobody.
    let keys =
        FileKeys::create(&world.base.join("proj/signing2"), &Seal::Open, &SystemEntropy).unwrap();
    let options = Options::new().signer(keys).durability(Durability::Memory);
    let options = options.store(MemoryStore::new()).base(&world.base).shared_base();
    let second = options.create(world.home.with_file_name("second")).unwrap();
    let grant = Grant::to("a").tools(TOOLS).read("proj/signing2");
    assert!(matches!(second.issue(grant), Err(Error::BaseContainsHome(_))));
    let grant = Grant::to("a").tools(TOOLS).scope("path", scope("proj"));
    let agent = second.session("a", second.issue(grant).unwrap()).unwrap();
    assert_eq!(read(&agent, "proj/signing2/policy.key"), Err(Reason::AccessDenied));
}

/// What is seen when a token is issued is said then.
#[test]
fn a_home_is_no_root_when_it_is_granted() {
    let world = world();
    make_home(&world.base.join("proj/inner"));
    FileKeys::create(&world.base.join("signing"), &Seal::Open, &SystemEntropy).unwrap();
    for path in ["other", "other/files", "proj/inner", "proj/inner/keys", "signing"] {
        let grants = [
            Grant::to("a").tools(TOOLS).read(path),
            Grant::to("a").tools(TOOLS).scope("path", {
                let mut names = path.split('/');
                let root = Root::named(names.next().unwrap()).unwrap();
                let path = RootedPath::new(root, names).unwrap();
                Scope::Paths(Paths::new([Rule { path, rights: Rights::READ }]).unwrap())
            }),
        ];
        let [by_path, by_scope] = grants.map(|grant| world.rt.issue(grant));
        assert!(matches!(by_path, Err(Error::BaseContainsHome(_))), "{path}: {by_path:?}");
        assert!(by_scope.is_ok(), "{path}: it is refused when it is opened");
    }
    assert!(world.rt.issue(Grant::to("a").tools(TOOLS).read("proj").read("new")).is_ok());
}

/// A project may have a folder `keys`, and files that are called as a role's key.
#[test]
fn a_folder_called_keys_is_no_home() {
    let world = world();
    let keys = world.base.join("proj/web/keys");
    fs::create_dir_all(&keys).unwrap();
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n";
    for name in ["server.key", "issuer.key", "recovery.key", "trust.cbor"] {
        fs::write(keys.join(name), pem).unwrap();
    }
    fs::write(keys.join("client.key"), [7; 32]).unwrap();
    fs::create_dir(world.base.join("proj/web/operator.key")).unwrap();
    let agent = world.seat("proj");
    assert_eq!(read(&agent, "proj/web/keys/issuer.key"), Ok(pem.into()));
    assert_eq!(listed(&agent, "proj/web/keys").unwrap().len(), 5);
    assert_eq!(listed(&agent, "proj/web").unwrap().len(), 2);
    assert_eq!(write(&agent, "proj/web/keys/new.key", "0123456789"), None);
    assert_eq!(write(&agent, "proj/web/keys/issuer.key", pem), None);
    assert_eq!(read(&agent, "proj/web/keys/client.key").map(|text| text.len()), Ok(32));
    assert_eq!(write(&agent, "proj/web/operator.key/a.txt", "x"), None);
    assert!(world.rt.issue(Grant::to("a").tools(TOOLS).read("proj/web/keys")).is_ok());
}

/// An agent can't make what marks a home, and so lock others out of a root.
#[test]
fn no_agent_makes_a_home() {
    let world = world();
    let agent = world.seat("proj");
    let before = tree(&world.base.join("proj"));
    for path in [
        "proj/home.db",
        "proj/HOME.db",
        "proj/home.db/x",
        "proj/src/home.db/x/y",
        "proj/keys/operator.key",
        "proj/operator.key",
    ] {
        assert_eq!(write(&agent, path, ""), Some(Reason::AccessDenied));
    }
    assert_eq!(tree(&world.base.join("proj")), before);
    assert_eq!(read(&agent, "proj/src/a.txt"), Ok(String::from("code")));
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("roots::");
}

/// What lies in the folder of the agents' files, by name.
fn places(home: &Path) -> Vec<OsString> {
    let listed = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let files = home.join("files");
    let mut all = [listed(&files), listed(&files.join("agents"))].concat();
    all.sort();
    all
}

/// A token that the kernel has not taken gives nobody a folder: signed by a stranger, for another
/// home, or in the place of one that was revoked.
#[test]
fn token_that_kernel_refuses_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let rt = Runtime::create(&here).unwrap();
    let other = Runtime::create(&there).unwrap();
    let ended = rt.issue(Grant::to("a").tools(["fs.read"])).unwrap();
    rt.revoke(ended).unwrap();
    let before = places(&here);
    let grant =
        (0..20).fold(Grant::to("a").tools(["fs.read"]), |grant, n| grant.read(&format!("r{n}")));
    let foreign = other.issue(grant.clone()).unwrap();
    let foreign = other.look(|kernel| kernel.token(&foreign).unwrap().body.clone()).unwrap();
    let key = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let issuer = PublicKey::new(key.verifying_key().to_bytes()).unwrap();
    let elsewhere = TokenBody { issuer, ..foreign.clone() };
    let here_now = (rt.id(), Some(rt.durable().unwrap()));
    let own = TokenBody { audience: here_now.0, head: here_now.1, ..elsewhere.clone() };
    for (body, reason) in [
        (foreign, Reason::BadSignature),
        (elsewhere, Reason::WrongAudience),
        (own, Reason::WrongIssuer),
    ] {
        let bytes = body.to_bytes();
        let signature = ed25519_dalek::Signer::sign(&key, &preimage(TOKEN_CONTEXT, &bytes));
        let wire = Token::wire(&bytes, &Signature::from_bytes(signature.to_bytes()));
        assert_eq!(refused(rt.register(&wire)), reason);
    }
    assert_eq!(refused(rt.issue(grant.clone().renews(ended))), Reason::Revoked);
    assert_eq!(places(&here), before);
    // The same grant, once the kernel has taken it.
    rt.issue(grant).unwrap();
    let made: BTreeSet<OsString> = places(&here).into_iter().collect();
    assert!((0..20).all(|n| made.contains(&OsString::from(format!("r{n}")))), "{made:?}");
}

fn refused(said: Result<TokenId, Error>) -> Reason {
    match said {
        Err(Error::Refused(why)) => why.reason(),
        other => panic!("{other:?}"),
    }
}
