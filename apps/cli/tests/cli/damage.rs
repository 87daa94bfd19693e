//! Homes that somebody changed, or that can't be opened.

use std::fs;

use rusqlite::Connection;

use crate::cli::support::{ECHO, TestHome, run};

fn database(home: &TestHome) -> Connection {
    Connection::open(home.beside("home/home.db")).unwrap()
}

/// Changes one record, its triggers dropped and made again.
pub(crate) fn change_record(home: &TestHome, sql: &str) {
    let database = database(home);
    let name = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'";
    let mut triggers = database.prepare(name).unwrap();
    let triggers: Vec<(String, String)> =
        triggers.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().flatten().collect();
    for (name, _) in &triggers {
        database.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    database.execute_batch(sql).unwrap();
    for (_, trigger) in &triggers {
        database.execute_batch(trigger).unwrap();
    }
}

/// Every command that needs the home says that it can't be opened, in one line.
fn expect_closed(home: &TestHome) {
    let (path, id) = (home.path(), "0".repeat(64));
    run(["token", "issue", &path, "--agent", "a", "--tool", "echo"]).failed(4);
    run(["token", "list", &path]).failed(4);
    run(["token", "revoke", &path, &id]).failed(4);
    home.call_run("a", &id, ECHO.as_bytes()).failed(4);
}

#[test]
fn a_changed_record_is_found() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, ECHO.as_bytes());
    // The last byte of the record: a budget's, a flag's or a signature's.
    let sql = "UPDATE records SET body = CAST(substr(body, 1, length(body) - 1) || x'01' \
               AS BLOB) WHERE seq = ";
    change_record(&home, &format!("{sql}6"));
    assert_eq!(home.verify(), 10);
    assert_eq!(run(["doctor", &home.path()]).code, 1);
    expect_closed(&home);
    // What can still be read is shown.
    let shown = run(["log", "show", &home.path(), "--json"]);
    assert!(shown.json().len() > 6);
}

#[test]
fn a_record_that_is_gone_is_found() {
    let home = TestHome::new();
    change_record(&home, "DELETE FROM records WHERE seq = 2");
    assert_eq!(home.verify(), 10);
    expect_closed(&home);
}

#[test]
fn a_record_that_is_none_is_shown_as_such() {
    let home = TestHome::new();
    change_record(&home, "UPDATE records SET body = x'ff' WHERE seq = 3");
    let shown = run(["log", "show", &home.path(), "--json"]);
    assert_eq!(shown.code, 1);
    assert_eq!(shown.json().len(), 5);
    assert!(shown.json()[3]["unreadable"].is_string());
    assert_eq!(home.verify(), 10);
}

/// Without its triggers the database is no longer what it must be.
#[test]
fn a_missing_trigger_is_found() {
    let home = TestHome::new();
    database(&home).execute_batch("DROP TRIGGER records_update").unwrap();
    assert_eq!(home.verify(), 10);
    expect_closed(&home);
}

#[test]
fn garbage_is_no_home() {
    let home = TestHome::new();
    for file in ["home.db-wal", "home.db-shm"] {
        drop(fs::remove_file(home.beside("home").join(file)));
    }
    let path = home.beside("home/home.db");
    let sound = fs::read(&path).unwrap();
    for garbage in [&b"garbage"[..], &[0; 8_192], b""] {
        fs::write(&path, garbage).unwrap();
        expect_closed(&home);
        run(["verify", &home.path()]).failed(4);
        run(["log", "show", &home.path()]).failed(4);
        assert_eq!(run(["doctor", &home.path()]).code, 1);
    }
    // The header is sound, the rest is not.
    let mut torn = sound.clone();
    torn[4_096..].fill(0x5a);
    fs::write(&path, torn).unwrap();
    expect_closed(&home);
    assert_eq!(home.verify(), 10);
    fs::write(&path, sound).unwrap();
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_newer_home_is_left_alone() {
    let home = TestHome::new();
    database(&home).pragma_update(None, "user_version", 3).unwrap();
    expect_closed(&home);
    run(["verify", &home.path()]).failed(4);
    run(["log", "show", &home.path()]).failed(4);
    run(["init", &home.path()]).failed(4);
    database(&home).pragma_update(None, "user_version", 2).unwrap();
    assert_eq!(home.verify(), 0);
}

#[test]
fn keys_that_are_gone_sign_nothing() {
    let home = TestHome::new();
    let id = home.worker("a");
    fs::remove_dir_all(home.beside("home/keys")).unwrap();
    run(["token", "issue", &home.path(), "--agent", "a", "--tool", "echo"]).failed(1);
    run(["token", "revoke", &home.path(), &id]).failed(1);
    assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_base_that_is_gone_closes_the_home() {
    let home = TestHome::new();
    fs::rename(home.beside("home/files"), home.beside("elsewhere")).unwrap();
    expect_closed(&home);
    assert_eq!(home.verify(), 0);
    // Nor is one that contains the home taken.
    let around = home.folder.path().to_str().unwrap();
    fs::write(home.beside("home/base"), around).unwrap();
    expect_closed(&home);
    fs::write(home.beside("home/base"), home.text_beside("elsewhere")).unwrap();
    home.worker("a");
}
