//! Two boards of commands, through the kernel and the preset `coder`: the everyday steps that are
//! refused, and the harmful ones that are let through.

#[path = "../src/hook/finding.rs"]
mod finding;

use std::collections::{BTreeMap, BTreeSet};

use syscap::{
    Runtime,
    format::{
        cbor::{Canonical, Encoder, MapBuilder, Profile},
        manifest::{EffectClass, Extra, Manifest, Param, ParamType},
        record::Durability,
        scope::{Rights, Root, RootedPath, Rule, Scope},
        token,
    },
    host::{Begun, DOES_DIMENSION, MACHINE_ROOT, Reported, ToolUse},
    policy::{Policy, Preset},
    prelude::*,
};
use syscap_commands::{Mark, Place, Repository, analyse, programs};

const TOOL: &str = "claude_code.bash";

struct Board {
    _folder: tempfile::TempDir,
    runtime: Runtime,
    token: TokenId,
    manifest: Manifest,
}

fn manifest() -> Manifest {
    let mut manifest = Manifest::new(ToolId::new(TOOL).unwrap(), EffectClass::ExternalWrite)
        .param(Param::required("command", ParamType::Code, ""))
        .param(Param::optional("place", ParamType::Map, ""));
    manifest.extra = Extra::Taken;
    manifest
}

/// All that `syscap hook --setup` grants, with `/project` as the root.
fn grant() -> token::Grant {
    let root = RootedPath::new(Root::named(MACHINE_ROOT).unwrap(), ["project"]).unwrap();
    let rule = Rule { path: root, rights: Rights::READ.union(Rights::WRITE) };
    token::Grant::new()
        .with("path", Scope::paths([rule]).unwrap())
        .with("program", Scope::names(programs()).unwrap())
        .with(DOES_DIMENSION, Scope::names(Mark::ALL.map(Mark::name)).unwrap())
}

/// Whether git finds a plain repository.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Git {
    Plain,
    Unknown,
}

fn list(text: &str) -> Canonical {
    let mut list = Encoder::new();
    list.array(1);
    list.text(text);
    Canonical::check(list.into_bytes(), Profile::DATA).unwrap()
}

/// What the hook sends of a command.
fn place(command: &str, git: Git) -> Canonical {
    let (folder, search) = ("/project".to_owned(), "/usr/bin".to_owned());
    let mut place = Place::at(&folder).unwrap();
    place.home = Some("/users/me".to_owned());
    let file = |name: &str| format!("{search}/{name}");
    place.found = programs().into_iter().map(|name| (name.to_owned(), file(name))).collect();
    if git == Git::Plain {
        place.repository = Repository::Plain(folder.clone());
    }
    (place.search, place.writable) = (vec![search.clone()], BTreeSet::from([folder.clone()]));
    let found = place.found.iter().fold(MapBuilder::new(), |map, (k, v)| map.text(k, v)).finish();
    let finding = finding::finding(&analyse(command, &place)).to_data().unwrap();
    let map = MapBuilder::new().text("folder", &folder).item("found", found.item());
    let map = map.item("search", list(&search).item()).item("own", list(&folder).item());
    map.item("finding", finding.item()).finish()
}

/// The same with another entry in the place of one.
fn with(place: &Canonical, key: &str, value: Option<&Canonical>) -> Canonical {
    let others = place.item().entries().filter(|(name, _)| *name != key);
    let map = others.fold(MapBuilder::new(), |map, (key, value)| map.item(key, value));
    value.iter().fold(map, |map, value| map.item(key, value.item())).finish()
}

impl Board {
    fn new(policy: Policy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().durability(Durability::Process).policy(policy);
        let runtime = options.create(folder.path().join("home")).unwrap();
        let used = Self::used("ls", 0, None);
        let first = runtime.issue(Grant::to("a").tools(["echo"])).unwrap();
        // Seen first: then it can be granted.
        drop(runtime.begin_use(first, &used, &manifest()).unwrap());
        let budget = Budget::working_day().with(Dimension::Concurrent, 10_000);
        let tool = ToolId::new(TOOL).unwrap();
        let grant = Grant::to("a").tool_with(tool, grant()).budget(budget);
        let token = runtime.issue(grant).unwrap();
        Self { _folder: folder, runtime, token, manifest: manifest() }
    }

    fn used(command: &str, n: usize, place: Option<Canonical>) -> ToolUse {
        ToolUse {
            agent: AgentId::new("a").unwrap(),
            conversation: "c".to_owned(),
            id: Some(format!("u{n}")),
            tool: ToolId::new(TOOL).unwrap(),
            args: args! { "command": command }.finish(),
            place,
        }
    }

    /// Why a command is not let through; `None` where it is.
    fn refused(&self, command: &str, n: usize, place: Option<Canonical>) -> Option<Reason> {
        let used = Self::used(command, n, place);
        match self.runtime.begin_use(self.token, &used, &self.manifest).unwrap() {
            Begun::Out(_) => {
                let done = Reported::Result(Canonical::text("done"));
                self.runtime.settle_use(self.token, &used, &done).unwrap();
                None
            }
            Begun::Answered(answer) => Some(answer.reason().unwrap()),
        }
    }

    fn run(&self, board: &str) -> BTreeMap<Option<Reason>, Vec<String>> {
        let mut said: BTreeMap<Option<Reason>, Vec<String>> = BTreeMap::new();
        let lines = board.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for (n, line) in lines.enumerate() {
            let line = line.replace("\\u200b", "\u{200b}").replace("\\u202e", "\u{202e}");
            // As it is written in a shell: a new line, but not in the format of `printf`.
            let text = if line.starts_with("printf") { line } else { line.replace("\\n", "\n") };
            let refused = self.refused(&text, n, Some(place(&text, Git::Plain)));
            said.entry(refused).or_default().push(text);
        }
        said
    }
}

fn coder(change: impl Fn(String) -> String) -> Policy {
    Policy::from_json(change(Preset::Coder.document().to_owned()).as_bytes()).unwrap()
}

fn bounded() -> Policy {
    let list = format!("\"project_code\": [\"{TOOL}\"]");
    coder(|text| text.replace("\"project_code\": []", &list))
}

fn counts(said: &BTreeMap<Option<Reason>, Vec<String>>) -> BTreeMap<&'static str, usize> {
    said.iter().map(|(why, all)| (why.map_or("runs", Reason::name), all.len())).collect()
}

const BENIGN: &str = include_str!("boards/benign.txt");
const HARMFUL: &str = include_str!("boards/harmful.txt");

#[test]
fn of_everyday_steps_few_are_refused() {
    let said = Board::new(coder(|text| text)).run(BENIGN);
    println!("{said:#?}");
    assert_eq!(counts(&said), BTreeMap::from([("asked", 56), ("out_of_scope", 1), ("runs", 92)]));
    let said = Board::new(bounded()).run(BENIGN);
    println!("{said:#?}");
    assert_eq!(counts(&said), BTreeMap::from([("asked", 26), ("out_of_scope", 1), ("runs", 122)]));
}

#[test]
fn of_harmful_steps_none_runs() {
    let said = Board::new(coder(|text| text)).run(HARMFUL);
    println!("{said:#?}");
    let all: usize = said.values().map(Vec::len).sum();
    assert_eq!(said.get(&None), None);
    let expected = [("asked", 132), ("constraint", 38), ("out_of_scope", 83)];
    assert_eq!((all, counts(&said)), (253, BTreeMap::from(expected)));
    let said = Board::new(Policy::preset(Preset::Standard).unwrap()).run(HARMFUL);
    assert_eq!(said.get(&None), None);
    // The project's code can do anything: who lets it run has a boundary around it.
    let said = Board::new(bounded()).run(HARMFUL);
    let run = said.get(&None).unwrap();
    assert_eq!(run, &["source ./x", ". ./x", "make -C ../other"]);
}

/// Without a finding, or in a repository that nobody looked at.
#[test]
fn what_is_not_told_of_a_place_is_unknown() {
    let board = Board::new(coder(|text| text));
    let refused = |command: &str, n, place| board.refused(command, n, place);
    assert_eq!(refused("ls", 1, None), Some(Reason::Asked));
    assert_eq!(refused("ls", 2, Some(place("ls", Git::Plain))), None);
    assert_eq!(refused("git status", 3, Some(place("git status", Git::Plain))), None);
    let unseen = place("git status", Git::Unknown);
    assert_eq!(refused("git status", 4, Some(unseen)), Some(Reason::Asked));
    let nowhere = MapBuilder::new().text("folder", "project").finish();
    assert_eq!(refused("ls", 5, Some(nowhere)), Some(Reason::Asked));
}

/// What the server needs of a finding it has, or the command is unknown.
#[test]
fn odd_finding_is_unknown() {
    let board = Board::new(bounded());
    let ls = place("ls", Git::Plain);
    let odd = Canonical::text("odd");
    for (n, key) in ["finding", "found", "search"].into_iter().enumerate() {
        for (m, value) in [None, Some(&odd)].into_iter().enumerate() {
            let odd = with(&ls, key, value);
            assert_eq!(board.refused("ls", n * 2 + m, Some(odd)), Some(Reason::Asked), "{key}");
        }
    }
    let run = place("./run.sh", Git::Plain);
    assert_eq!(board.refused("./run.sh", 10, Some(run.clone())), None);
    for (n, own) in [None, Some(list("/project/../other")), Some(list("/other"))].iter().enumerate()
    {
        let odd = with(&run, "own", own.as_ref());
        assert_eq!(board.refused("./run.sh", 11 + n, Some(odd)), Some(Reason::Asked));
    }
}

/// An agent that may write the folder of a program decides what the program is.
#[test]
fn program_that_the_token_lets_be_written_is_unknown() {
    let board = Board::new(coder(|text| text));
    let ls = place("ls", Git::Plain);
    let file = MapBuilder::new().text("ls", "/project/bin/ls").finish();
    assert_eq!(board.refused("ls", 1, Some(with(&ls, "found", Some(&file)))), Some(Reason::Asked));
    let search = list("/project/bin");
    let own = with(&ls, "search", Some(&search));
    assert_eq!(board.refused("ls", 2, Some(own)), Some(Reason::Asked));
    assert_eq!(board.refused("ls", 3, Some(ls)), None);
}

/// A finding comes with a use, from the hook; a call that brings one runs nothing.
#[test]
fn finding_that_an_agent_sends_is_refused() {
    let board = Board::new(bounded());
    let session = board.runtime.session("a", board.token).unwrap();
    let place = place("ls", Git::Plain);
    let map = MapBuilder::new().text("command", "rm -r /").item("place", place.item());
    let args = map.finish();
    let call = MapBuilder::new().text("tool_id", TOOL).item("args", args.item()).finish();
    let sent = session.send_cbor(call.as_bytes()).unwrap();
    assert!(sent.reason().is_some());
    // Nor is one taken among the arguments of a use.
    let used = ToolUse { args, ..Board::used("rm -r /", 1, None) };
    let begun = board.runtime.begin_use(board.token, &used, &board.manifest);
    assert!(matches!(begun, Err(Error::Refused(why)) if why.reason() == Reason::BadArgument));
}
