//! A process whose files may not grow (`RLIMIT_FSIZE`), as the disk of one that is full.

use std::path::Path;
use std::process::Command;

use syscap_audit::SqliteStore;
use syscap_format::Durability;
use syscap_kernel::{Room, Store};

const HOME: &str = "SYSCAP_TEST_LIMITED_HOME";
const ROOM: &str = "SYSCAP_TEST_LIMITED_ROOM";

/// Not a test: the process with the limit. It opens a store, and has the room that is named.
#[test]
fn child() {
    let (Some(home), Ok(room)) = (std::env::var_os(HOME), std::env::var(ROOM)) else { return };
    let mut store = SqliteStore::open(Path::new(&home), Durability::Full).unwrap();
    assert_eq!(format!("{:?}", store.room().unwrap()), room);
}

#[test]
fn within_a_small_limit_calls_are_taken_until_it_is_near() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::create(folder.path(), Durability::Full).unwrap());
    let has = |blocks: &str, room: Room| {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh");
        child.args(["-c", &script]).arg(std::env::current_exe().unwrap());
        child.args(["--exact", "limited::child"]).env(HOME, folder.path());
        child.env(ROOM, format!("{room:?}"));
        child.output().unwrap().status.success()
    };
    // 4 MiB, of which 1 MiB is kept; a quarter of 1 MiB would not do.
    assert!(has("8192", Room::Enough));
    assert!(has("2048", Room::Reserve));
    assert!(has("unlimited", Room::Enough));
}
