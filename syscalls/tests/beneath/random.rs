//! Random trees full of links and random calls: the outside is never read or changed.

use std::{fs, os::unix::fs::symlink, time::Duration};

use proptest::{collection::vec, prelude::*, sample::select};
use syscap_format::Label;
use syscap_syscalls::beneath::{
    Append, Behind, Existing, FolderMode, FsError, Location, Parents, Removal, Rename, Write,
};

use crate::beneath::support::{
    CANARY, Links, SIZE_MAX, World, fresh_temp, locate, names, replacing, snapshot, turn,
};

/// Names in the tree; `secret` and `folder` are what the outside is made of.
const NAMES: [&str; 5] = ["a", "b", "c", "secret", "folder"];

#[derive(Clone, Debug)]
enum Node {
    File,
    Folder,
    Link(String),
    /// A link to an absolute place, outside or inside.
    Absolute(&'static str),
    HardLink,
    Gone,
}

#[derive(Clone, Debug)]
enum Step {
    /// The owner of the machine changes the tree.
    Plant(String, Node),
    Read(String, Links),
    List(String, Links),
    Write(String, Links, Existing, Parents),
    Folders(String),
    /// What an edit does: it is read, and replaced if it is still what was read.
    Edit(String, Links),
    Look(String, Links),
    Remove(String, Removal),
    Rename([String; 2], Existing, Parents),
    Append(String),
    /// What a program is given, and what is marked when it has ended.
    Survey(String),
}

fn path() -> impl Strategy<Value = String> {
    vec(select(&NAMES[..]), 1..4).prop_map(|names| names.join("/"))
}

fn target() -> impl Strategy<Value = String> {
    let part = select(&["a", "b", "c", "..", "..", ".", "", "../outside", "secret", "folder"][..]);
    // An empty first part would make it absolute.
    vec(part, 1..5).prop_map(|parts| parts.join("/").trim_start_matches('/').to_owned())
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        2 => Just(Node::File),
        3 => Just(Node::Folder),
        5 => target().prop_map(Node::Link),
        1 => select(&["outside", "outside/folder", "inside"][..]).prop_map(Node::Absolute),
        1 => Just(Node::HardLink),
        1 => Just(Node::Gone),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let links = || select(&[Links::Refuse, Links::FollowWithin, Links::FollowWithin][..]);
    let existing = select(&[Existing::Replace, Existing::Refuse][..]);
    let parents = select(&[Parents::Require, Parents::Create(FolderMode::Shared)][..]);
    let (other, parents_too) = (existing.clone(), parents.clone());
    let removal = select(&[Removal::File, Removal::EmptyFolder][..]);
    prop_oneof![
        2 => (path(), node()).prop_map(|(path, node)| Step::Plant(path, node)),
        3 => (path(), links()).prop_map(|(path, links)| Step::Read(path, links)),
        1 => (path(), links()).prop_map(|(path, links)| Step::List(path, links)),
        3 => (path(), links(), existing, parents).prop_map(|(p, l, e, m)| Step::Write(p, l, e, m)),
        1 => path().prop_map(Step::Folders),
        2 => (path(), links()).prop_map(|(path, links)| Step::Edit(path, links)),
        2 => (path(), links()).prop_map(|(path, links)| Step::Look(path, links)),
        2 => (path(), removal).prop_map(|(path, what)| Step::Remove(path, what)),
        3 => ([path(), path()], other, parents_too).prop_map(|(p, e, m)| Step::Rename(p, e, m)),
        1 => path().prop_map(Step::Append),
        1 => path().prop_map(Step::Survey),
    ]
}

/// Puts a node in the tree; only where real folders lead, as the outside must stay as it is.
fn plant(world: &World, path: &str, node: &Node) {
    let full = world.inside(path);
    let mut parent = world.inside("");
    for name in path.split('/').take(path.split('/').count() - 1) {
        parent.push(name);
        if fs::symlink_metadata(&parent).is_err() {
            fs::create_dir(&parent).unwrap();
        }
        if !fs::symlink_metadata(&parent).unwrap().is_dir() {
            return;
        }
    }
    match fs::symlink_metadata(&full) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(&full).unwrap(),
        Ok(_) => fs::remove_file(&full).unwrap(),
        Err(_) => {}
    }
    match node {
        Node::File => fs::write(&full, b"inside").unwrap(),
        Node::Folder => fs::create_dir(&full).unwrap(),
        // An empty target can't be made.
        Node::Link(target) if target.is_empty() => {}
        Node::Link(target) => symlink(target, &full).unwrap(),
        Node::Absolute(target) => symlink(world.root().join(target), &full).unwrap(),
        Node::HardLink => fs::hard_link(world.outside("secret"), &full).unwrap(),
        Node::Gone => {}
    }
}

/// Reads a file, and replaces it as long as it is what was read.
fn edit(world: &World, path: &str, links: Links) -> Result<(), TestCaseError> {
    let at = locate(&*world.base, &names(path), links);
    let file = at.and_then(|at| Ok((world.base.open_file(&at, SIZE_MAX)?, at)));
    if let Ok((file, at)) = file {
        let expected = Some(file.digest().unwrap());
        let temp = fresh_temp();
        let made_from = Some(&file);
        let job = Write { expected, made_from, ..replacing(b"written", &temp) };
        let turn = turn(&*world.base, &at);
        prop_assert!(turn.and_then(|turn| world.base.write(turn, &job, &mut |_| Ok(()))).is_ok());
    }
    Ok(())
}

fn call(world: &World, step: &Step) -> Result<(), TestCaseError> {
    match step {
        Step::Plant(path, node) => plant(world, path, node),
        Step::Read(path, links) => {
            if let Ok(bytes) = world.read(path, *links) {
                prop_assert!(bytes == b"inside" || bytes == b"written", "{:?}", bytes);
                prop_assert_ne!(bytes, CANARY);
            }
        }
        Step::List(path, links) => {
            // Only the outside holds this name.
            if let Ok(names) = world.list(path, *links) {
                prop_assert!(!names.contains(&b"outside-marker".to_vec()));
            }
        }
        Step::Write(path, links, existing, parents) => {
            let done = world.write(path, b"written", *existing, *parents, *links);
            if done.is_ok() {
                prop_assert_eq!(world.read(path, *links).unwrap(), b"written");
            }
        }
        Step::Edit(path, links) => edit(world, path, *links)?,
        Step::Look(path, links) => {
            let at = locate(&*world.base, &names(path), *links);
            // What is outside is longer than anything inside.
            if let Ok(seen) = at.and_then(|at| world.base.metadata(&at)) {
                prop_assert!(seen.size_bytes <= 16, "{:?}", seen);
            }
        }
        Step::Remove(path, what) => {
            let at = Location::new(&names(path)).unwrap();
            let turn = turn(&*world.base, &at);
            if turn.is_ok_and(|turn| world.base.remove(turn, *what, None).is_ok()) {
                prop_assert_eq!(world.base.metadata(&at), Err(FsError::NotFound));
            }
        }
        Step::Rename([from, to], existing, parents) => {
            let [from, to] = [from, to].map(|path| Location::new(&names(path)).unwrap());
            let job = Rename { existing: *existing, expected: [None, None] };
            let turns = world.base.turns(&from, &to, *parents, Duration::ZERO, &mut |_| Ok(()));
            if turns.is_ok_and(|turns| world.base.rename(turns, &job).is_ok()) {
                let read = world.base.open_file(&to, SIZE_MAX).unwrap().read(0, 1 << 10).unwrap();
                prop_assert!(read.bytes != CANARY);
            }
        }
        Step::Append(path) => {
            let at = Location::new(&names(path)).unwrap();
            let job =
                Append { from_bytes: 0, content: b"written", behind: Behind::Torn(64, |_| true) };
            let add = |turn| world.base.append(&turn, &job, &mut |_| Ok(()));
            if turn(&*world.base, &at).is_ok_and(|turn| add(turn).is_ok()) {
                prop_assert_eq!(world.read(path, Links::Refuse).unwrap(), b"written");
            }
        }
        Step::Survey(path) => {
            let at = Location::new(&names(path)).unwrap();
            if let Ok((_, survey)) = world.base.survey(&at) {
                prop_assert!(world.base.mark(&at, &survey, Label::PUBLIC).is_ok());
            }
        }
        Step::Folders(path) => {
            let at = locate(&*world.base, &names(path), Links::FollowWithin);
            if let Ok(at) = at
                && world.base.make_folders(&at, FolderMode::Shared).is_ok()
            {
                prop_assert!(world.base.list(&at, 10).is_ok());
            }
        }
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_call_reads_or_changes_the_outside(
        tree in vec((path(), node()), 0..15),
        steps in vec(step(), 1..25),
    ) {
        let world = World::fast();
        fs::write(world.outside("outside-marker"), CANARY).unwrap();
        fs::write(world.outside("folder/outside-marker"), CANARY).unwrap();
        for (path, node) in &tree {
            plant(&world, path, node);
        }
        let before = snapshot(&world.outside(""));
        for step in &steps {
            call(&world, step)?;
        }
        prop_assert_eq!(snapshot(&world.outside("")), before);
    }
}
