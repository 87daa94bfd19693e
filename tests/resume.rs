//! The first seed's `resume.json`: what its sections grant, and what of it is written back.
//!
//! A test for each of its lines on tools and permissions: `docs/resume.md`, `docs/seeds.md`.

mod hostile;
mod written;

use std::fs;

use syscap::format::{
    AgentId, CreditChange, Durability, EffectClass, Manifest, Name, Resource, Rights, Root,
    RootedPath, Scope,
};
use syscap::prelude::*;
use syscap::resume::{Compiled, Resume, ResumeError};
use syscap::view::Whose;

/// The example of the seed, to the letter.
const EXAMPLE: &str = r#"{
  "permissions": {
    "tools": ["file_read", "file_write", "file_list"],
    "file_access": {
      "allow_read": ["shared", "agents/researcher/workspace"],
      "allow_write": ["agents/researcher/workspace"]
    }
  }
}
"#;

/// What the seed calls tools, and which of them there are at least.
const SEEDS_NAMES: [(&str, &str); 6] = [
    ("file_read", "fs.read"),
    ("file_write", "fs.write"),
    ("file_list", "fs.list"),
    ("shell", "shell"),
    ("memory_read", "memory.read"),
    ("memory_write", "memory.write"),
];

struct World {
    dir: tempfile::TempDir,
    rt: Runtime,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    World { dir, rt }
}

fn name(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn read(text: &str) -> Resume {
    Resume::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

impl World {
    fn tools(&self) -> Vec<Manifest> {
        self.rt.manifests(Whose::All).unwrap()
    }

    fn compiled(&self, text: &str) -> Compiled {
        read(text).compile(&name("researcher"), &self.tools(), &[]).unwrap()
    }

    fn session(&self, text: &str) -> Session {
        let token = self.rt.issue(self.compiled(text).grant).unwrap();
        self.rt.session("researcher", token).unwrap()
    }

    /// A file below the base, as somebody else would put it there.
    fn put(&self, path: &str) {
        let path = self.dir.path().join("home/files").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "as it was").unwrap();
    }
}

fn reads(session: &Session, path: &str) -> Option<Reason> {
    session.call("fs.read", args! { "path": path }).unwrap().reason()
}

fn writes(session: &Session, path: &str) -> Option<Reason> {
    session.call("fs.write", args! { "path": path, "text": "new" }).unwrap().reason()
}

fn rights(compiled: &Compiled, tool: &str, root: Root, below: &[&str]) -> Rights {
    let grant = compiled.grants.get(&ToolId::new(tool).unwrap()).unwrap();
    let path = RootedPath::new(root, below).unwrap();
    match grant.scope("path") {
        Some(Scope::Paths(paths)) => paths.rights(&path),
        _ => Rights::NONE,
    }
}

fn own() -> Root {
    Root::Workspace(name("researcher"))
}

/// "Filesystem operations", "Shell execution", "Memory operations".
#[test]
fn the_seeds_names_are_tools_here() {
    let world = world();
    let names: Vec<String> = SEEDS_NAMES.iter().map(|(seed, _)| format!("{seed:?}")).collect();
    let text = format!(r#"{{"permissions": {{"tools": [{}]}}}}"#, names.join(","));
    let compiled = world.compiled(&text);
    let tools: Vec<&str> = compiled.tools.iter().map(ToolId::as_str).collect();
    assert_eq!(tools, SEEDS_NAMES.map(|(_, own)| own));
    assert_eq!(compiled.unknown, [""; 0]);
    // And they are called by them.
    let session = world.session(&text);
    let wrote = session.call("memory_write", args! { "key": "k", "value": "kept" }).unwrap();
    assert_eq!(wrote.reason(), None);
    let wrote = session.call("file_write", args! { "path": "a.txt", "text": "a" }).unwrap();
    assert_eq!(wrote.reason(), None);
    assert_eq!(session.call("file_read", args! { "path": "a.txt" }).unwrap().text().unwrap(), "a");
}

/// "Agents can only call tools listed", "Allowlists only: No implicit access".
#[test]
fn a_tool_that_is_not_listed_is_not_run() {
    let world = world();
    let session = world.session(r#"{"permissions": {"tools": ["file_read"]}}"#);
    assert_eq!(writes(&session, "a.txt"), Some(Reason::NotGranted));
    let workspace = world.dir.path().join("home/files/agents/researcher/workspace");
    assert_eq!(fs::read_dir(workspace).unwrap().count(), 0);
    let session = world.session(r#"{"permissions": {"tools": []}}"#);
    let refused = session.call("echo", args! { "value": 1 }).unwrap();
    assert_eq!(refused.reason(), Some(Reason::NotGranted));
}

/// "Unknown tool names result in a safe error recorded in the tool results".
#[test]
fn an_unknown_tool_is_an_error_on_record() {
    let world = world();
    let text = r#"{"permissions": {"tools": ["fly", "file_read", "File_Read", "\u202e"]}}"#;
    let compiled = world.compiled(text);
    assert_eq!(compiled.unknown, ["fly", "File_Read", "\u{202e}"]);
    assert_eq!(compiled.tools, [ToolId::new("fs.read").unwrap()]);
    let session = world.session(text);
    let refused = session.call("fly", args! {}).unwrap();
    assert_eq!((refused.status(), refused.reason()), (Status::Error, Some(Reason::UnknownTool)));
    let tally = Options::new().inspect(world.dir.path().join("home")).unwrap();
    assert!(tally.kernel().head().seq >= refused.receipt().outcome_seq);
}

/// "`allow_read` and `allow_write` path prefixes", each a right of its own.
#[test]
fn lists_of_paths_are_rights() {
    let world = world();
    let compiled = world.compiled(EXAMPLE);
    let (read, both) = (Rights::READ, Rights::READ.union(Rights::WRITE));
    let shared = || Root::named("shared").unwrap();
    assert_eq!(rights(&compiled, "fs.write", shared(), &["a"]), read);
    assert_eq!(rights(&compiled, "fs.write", own(), &["a"]), both);
    // What changes nothing needs no right to.
    assert_eq!(rights(&compiled, "fs.read", own(), &["a"]), read);
    let session = world.session(EXAMPLE);
    world.put("shared/a.txt");
    world.put("shared2/a.txt");
    world.put("agents/other/workspace/a.txt");
    assert_eq!(writes(&session, "own.txt"), None);
    assert_eq!(reads(&session, "own.txt"), None);
    assert_eq!(reads(&session, "shared/a.txt"), None);
    assert_eq!(writes(&session, "shared/a.txt"), Some(Reason::OutOfScope));
    assert_eq!(reads(&session, "../../../shared2/a.txt"), Some(Reason::OutOfScope));
    assert_eq!(reads(&session, "../../other/workspace/a.txt"), Some(Reason::OutOfScope));
    assert_eq!(reads(&session, "/etc/passwd"), Some(Reason::BadPath));
    let path = world.dir.path().join("home/files/shared/a.txt");
    assert_eq!(fs::read_to_string(path).unwrap(), "as it was");
}

/// What may be written below what may be read can still be read there.
#[test]
fn rights_add_up() {
    let world = world();
    let compiled = world.compiled(
        r#"{"permissions": {"tools": ["file_write"], "file_access":
            {"allow_read": ["shared/", "drop"], "allow_write": ["shared/out", "drop/in"]}}}"#,
    );
    let (read, both) = (Rights::READ, Rights::READ.union(Rights::WRITE));
    let at = |root: &str, below: &[&str]| {
        rights(&compiled, "fs.write", Root::named(root).unwrap(), below)
    };
    assert_eq!([at("shared", &["a"]), at("shared", &["out", "a"])], [read, both]);
    assert_eq!([at("drop", &["inn"]), at("drop", &["in"])], [read, both]);
    assert_eq!(rights(&compiled, "fs.write", own(), &[]), Rights::NONE);
    // A list that is not there gives nothing, and no list is every path.
    let text = |files: &str| {
        format!(r#"{{"permissions": {{"tools": ["file_write"], "file_access": {files}}}}}"#)
    };
    let nothing = world.compiled(&text("{}"));
    assert_eq!(rights(&nothing, "fs.write", own(), &[]), Rights::NONE);
    assert_eq!(nothing.lacking.len(), 1);
    let session = world.session(&text(r#"{"allow_write": ["agents/researcher/workspace"]}"#));
    assert_eq!(writes(&session, "a.txt"), None);
    let session = world.session(&text("{}"));
    assert_eq!(writes(&session, "a.txt"), Some(Reason::OutOfScope));
}

/// Another agent's workspace is granted by its folder, and reached by no other name.
#[test]
fn another_agents_workspace_can_be_granted() {
    let world = world();
    let session = world.session(
        r#"{"permissions": {"tools": ["file_read", "file_write"], "file_access":
            {"allow_read": ["agents/team+a/workspace/out"], "allow_write": []}}}"#,
    );
    world.put("agents/team+a/workspace/out/a.txt");
    world.put("agents/team+a/workspace/b.txt");
    assert_eq!(reads(&session, "../../team+a/workspace/out/a.txt"), None);
    assert_eq!(reads(&session, "../../team+a/workspace/b.txt"), Some(Reason::OutOfScope));
    let refused = writes(&session, "../../team+a/workspace/out/a.txt");
    assert_eq!(refused, Some(Reason::OutOfScope));
}

/// "if `file_access` is missing": workspace and `shared`, to read and to write.
#[test]
fn without_file_access_there_are_defaults() {
    let world = world();
    let text = r#"{"permissions": {"tools": ["file_read", "file_write"]}}"#;
    let session = world.session(text);
    for path in ["a.txt", "shared/b.txt"] {
        assert_eq!(writes(&session, path), None, "{path}");
        assert_eq!(reads(&session, path), None, "{path}");
    }
    world.put("other/a.txt");
    assert_eq!(reads(&session, "../../../other/a.txt"), Some(Reason::OutOfScope));
}

/// "`shell` (scoped to the agent workspace)".
#[test]
fn programs_get_the_own_workspace_alone() {
    let world = world();
    let text = r#"{"permissions": {"tools": ["shell", "file_read"], "file_access":
        {"allow_read": ["shared", "workspace"], "allow_write": ["workspace/out", "shared"]}}}"#;
    let compiled = world.compiled(text);
    let (read, both) = (Rights::READ, Rights::READ.union(Rights::WRITE));
    assert_eq!(rights(&compiled, "shell", Root::named("shared").unwrap(), &[]), Rights::NONE);
    assert_eq!(rights(&compiled, "shell", own(), &["a"]), read);
    assert_eq!(rights(&compiled, "shell", own(), &["out"]), both);
    assert_eq!(rights(&compiled, "fs.read", Root::named("shared").unwrap(), &[]), read);
    // No resume names programs: without one nothing is started.
    let shell = ToolId::new("shell").unwrap();
    assert_eq!(compiled.lacking, [(shell.clone(), "program".to_owned())]);
    let more = [("program".to_owned(), Scope::names(["true"]).unwrap())];
    let compiled = read_and(text, &world, &more);
    assert_eq!(compiled.lacking, []);
    let grant = compiled.grants.get(&shell).unwrap();
    assert!(grant.permits("program", &Resource::Name(Name::new("true").unwrap())));
}

fn read_and(text: &str, world: &World, more: &[(String, Scope)]) -> Compiled {
    read(text).compile(&name("researcher"), &world.tools(), more).unwrap()
}

/// "If `permissions.send_outboxes` is present": those it names; else nobody.
#[test]
fn only_listed_outboxes_are_sent_to() {
    let sender = Manifest::new(ToolId::new("post.send").unwrap(), EffectClass::LocalWrite);
    let tools =
        [sender.clone().needs("outbox"), sender.alias(ToolId::new("send_message").unwrap())];
    let to = |tools: &[Manifest], boxes: &str, agent: &str| {
        let text = format!(r#"{{"permissions": {{"tools": ["post.send"]{boxes}}}}}"#);
        let compiled = read(&text).compile(&name("a"), tools, &[]).unwrap();
        let resource = Resource::Name(Name::new(agent).unwrap());
        compiled.grants.get(&tools[0].tool).unwrap().permits("outbox", &resource)
    };
    for tool in &tools {
        let tools = std::slice::from_ref(tool);
        assert!(to(tools, r#", "send_outboxes": ["b", "team/c"]"#, "team/c"));
        for boxes in [r#", "send_outboxes": ["b", "team/c"]"#, r#", "send_outboxes": []"#, ""] {
            for agent in ["team", "team/c/d", "B", "*", "c"] {
                assert!(!to(tools, boxes, agent), "{boxes} {agent}");
            }
        }
    }
    for boxes in [r#"["*"]"#, r#"["B"]"#, r#"[""]"#, r#"["../b"]"#] {
        let text = format!(r#"{{"permissions": {{"tools": [], "send_outboxes": {boxes}}}}}"#);
        let refused = Resume::read(text.as_bytes()).unwrap_err();
        assert!(matches!(refused, ResumeError::Agent { .. }), "{refused}");
    }
}

/// "Even permitted tool calls only run when the agent has credits remaining".
#[test]
fn an_agent_without_credits_does_nothing() {
    let world = world();
    let session = world.session(EXAMPLE);
    assert_eq!(writes(&session, "a.txt"), None);
    let agent = name("researcher");
    world.rt.control(&CreditChange { agent: agent.clone(), added: 0 }).unwrap();
    assert_eq!(writes(&session, "b.txt"), Some(Reason::Exhausted));
    world.rt.control(&CreditChange { agent, added: 5 }).unwrap();
    assert_eq!(writes(&session, "b.txt"), None);
}

/// "If a resume is missing required sections": each of them, and those that are not.
#[test]
fn required_section_has_no_default() {
    let world = world();
    let compile = |text: &str| {
        let resume = read(text);
        let agent = resume.agent()?.clone();
        resume.compile(&agent, &world.tools(), &[])
    };
    for (text, missing) in [
        (r"{}", "name"),
        (r#"{"permissions": {"tools": []}}"#, "name"),
        (r#"{"name": "a"}"#, "permissions"),
        (r#"{"name": "a", "permissions": {}}"#, "permissions.tools"),
        (r#"{"name": "a", "permissions": {"file_access": {}}}"#, "permissions.tools"),
    ] {
        match compile(text) {
            Err(ResumeError::Missing { section }) => assert_eq!(section, missing, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let compiled = compile(r#"{"name": "a", "permissions": {"tools": ["echo"]}}"#).unwrap();
    assert_eq!(compiled.tools.len(), 1);
    // It is one agent's, and nobody else's.
    let resume = read(r#"{"name": "a", "permissions": {"tools": []}}"#);
    let refused = resume.compile(&name("b"), &world.tools(), &[]).unwrap_err();
    assert!(matches!(refused, ResumeError::Name { .. }), "{refused}");
}
