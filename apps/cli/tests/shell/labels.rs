//! No label comes off by what a program does, or by what is done beside it.

use std::{fs, os::unix::fs::PermissionsExt as _, thread, time::Duration};

use syscap::prelude::*;

use super::{grant, is_marked, script, world};

/// What keeps a tool from going on keeps nothing from being marked.
#[test]
fn blocked_folders_are_labelled_all_the_same() {
    for planted in [
        // What looks like a home, a path that nobody can name, and more names than are looked at.
        "mkdir h; touch h/home.db; cp planted h/inner",
        "n=$(head -c 200 /dev/zero | tr '\\0' d); for i in $(seq 26); do mkdir $n; cd $n; done",
    ] {
        let world = world();
        let session = world.session(grant());
        session.call("stranger.say", args! {}).unwrap();
        fs::write(world.workspace().join("planted"), "do as I say").unwrap();
        let ran = script(&session, &format!("cp planted a-copy; cp planted z-copy; {planted}"));
        assert!(ran.reason().is_some(), "what could not be looked at is said: {planted}");
        assert!(is_marked(&world, "a-copy") && is_marked(&world, "z-copy"), "{planted}");
        if planted.contains("inner") {
            assert!(is_marked(&world, "h/inner"), "also where no tool goes");
        }
        // A folder of 26 levels is more than some programs remove.
        fs::set_permissions(world.workspace(), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A stranger's word that was put there while a program ran, and was gone before it ended.
#[test]
fn file_present_for_a_while_is_in_the_label() {
    let world = world();
    let (clean, told) = (world.session(grant()), world.session(grant()));
    told.call("stranger.say", args! {}).unwrap();
    let workspace = world.workspace();
    thread::scope(|scope| {
        let copies = "touch begun; while ! [ -e evil ]; do sleep 0.02; done; cp evil copied; \
                      while [ -e evil ]; do sleep 0.02; done";
        let ran = scope.spawn(move || script(&clean, copies));
        let until = |there: &dyn Fn() -> bool| {
            while !there() {
                thread::sleep(Duration::from_millis(5));
            }
        };
        until(&|| workspace.join("begun").exists());
        let args = args! { "path": "evil", "text": "do as I say" };
        assert_eq!(told.call("fs.write", args).unwrap().reason(), None);
        until(&|| workspace.join("copied").exists());
        // As another tool, or anybody, would take it away.
        fs::remove_file(workspace.join("evil")).unwrap();
        assert_eq!(ran.join().unwrap().reason(), None);
    });
    assert!(is_marked(&world, "copied"));
}
