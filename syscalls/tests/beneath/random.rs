//! Random trees full of links and random calls: the outside is never read or changed.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use syscap_syscalls::beneath::{Existing, FolderMode, Parents};

use crate::support::{CANARY, Links, World, snapshot};

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
    prop_oneof![
        2 => (path(), node()).prop_map(|(path, node)| Step::Plant(path, node)),
        3 => (path(), links()).prop_map(|(path, links)| Step::Read(path, links)),
        1 => (path(), links()).prop_map(|(path, links)| Step::List(path, links)),
        3 => (path(), links(), existing, parents).prop_map(|(p, l, e, m)| Step::Write(p, l, e, m)),
        1 => path().prop_map(Step::Folders),
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
        Step::Folders(path) => {
            let at = crate::support::locate(
                &*world.base,
                &crate::support::names(path),
                Links::FollowWithin,
            );
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
