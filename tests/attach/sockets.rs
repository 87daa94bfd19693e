//! The socket: its mode, its users, its place.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use syscap::{Runtime, prelude::*};

use crate::attach::world::{caller, echo, home};

const HOME: &str = "SYSCAP_ATTACH_SOCKET_HOME";
const STRANGER: &str = "SYSCAP_ATTACH_STRANGER";
/// A user that owns nothing here.
const NOBODY: u32 = 65_534;

/// Not a test: holds a home under the umask that it was started with.
#[test]
fn child_holder() {
    let Ok(home) = std::env::var(HOME) else { return };
    let holder = Runtime::open(home).unwrap();
    assert!(holder.is_holder());
    println!("ready");
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
    holder.close().unwrap();
}

#[test]
fn the_socket_is_its_owners_whatever_the_umask() {
    for umask in ["000", "022", "077", "777"] {
        let (_dir, home) = home();
        let mut child = Command::new("sh")
            .args([
                "-c",
                "umask \"$1\"; exec \"$0\" --exact attach::sockets::child_holder --nocapture",
            ])
            .arg(std::env::current_exe().unwrap())
            .arg(umask)
            .env(HOME, &home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = lines.by_ref().map_while(Result::ok);
        assert!(said.any(|line| line.ends_with("ready")), "{umask}");
        let found = fs::symlink_metadata(home.join("socket")).unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.mode() & 0o7777, 0o600, "umask {umask}");
        assert_eq!(found.uid(), fs::metadata(&home).unwrap().uid());
        assert!(!Runtime::connect(&home).unwrap().is_holder());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(!home.join("socket").exists());
    }
}

/// Not a test: another user, who tries to get in.
#[test]
fn child_stranger() {
    let Ok(socket) = std::env::var(STRANGER) else { return };
    let Ok(mut stream) = UnixStream::connect(socket) else { return println!("kept out") };
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may be closed before it has said anything.
    drop(stream.write_all(b"\0\0\0\x01\xa0"));
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).is_ok();
    println!("got in, and {} bytes, closed: {read}", answer.len());
}

fn stranger(folder: &Path, socket: &Path) -> String {
    // The test's own binary may lie where the stranger can't go.
    let program = folder.join("stranger");
    if !program.exists() {
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = Command::new(program)
        .args(["--exact", "attach::sockets::child_stranger", "--nocapture"])
        .env(STRANGER, socket)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn another_user_gets_no_answer() {
    let (dir, home) = home();
    if fs::metadata(&home).unwrap().uid() != 0 {
        println!("skipped: only root can become another user");
        return;
    }
    let holder = Runtime::open(&home).unwrap();
    let socket = home.join("socket");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    // The mode alone keeps it out.
    let said = stranger(dir.path(), &socket);
    assert!(said.contains("kept out"), "{said}");
    assert_eq!(holder.view().unwrap().counts.foreign, 0);
    // And where somebody has changed the mode, the peer's user does.
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    for turned_away in 1..=3 {
        let said = stranger(dir.path(), &socket);
        assert!(said.contains("got in, and 0 bytes"), "{said}");
        let counts = holder.view().unwrap().counts;
        assert_eq!((counts.foreign, counts.connections), (turned_away, 0));
    }
    assert!(!Runtime::connect(&home).unwrap().is_holder());
    assert_eq!(holder.view().unwrap().counts.connections, 1);
}

#[test]
fn a_socket_that_a_holder_left_is_no_hindrance() {
    let (_dir, home) = home();
    drop(UnixListener::bind(home.join("socket")).unwrap());
    assert!(Runtime::connect(&home).is_err());
    let holder = Runtime::open(&home).unwrap();
    assert!(holder.is_holder());
    let attached = Runtime::connect(&home).unwrap();
    assert_eq!(echo(&caller(&attached, &["echo"])).unwrap().reason(), None);
    holder.close().unwrap();
    assert!(!home.join("socket").exists());
}

/// Only a socket is ever removed.
#[test]
fn plain_file_in_place_of_the_socket_stays() {
    let (_dir, home) = home();
    fs::write(home.join("socket"), "mine").unwrap();
    // It is there, and nobody listens at it.
    assert!(matches!(Runtime::open(&home), Err(Error::File { .. })));
    assert_eq!(fs::read(home.join("socket")).unwrap(), b"mine");
    // The home is free again: a command needs no socket.
    fs::remove_file(home.join("socket")).unwrap();
    let command = Runtime::command(&home).unwrap();
    assert!(command.is_holder());
    assert!(!home.join("socket").exists());
}

#[test]
fn a_home_may_have_a_long_path() {
    let (dir, home) = home();
    let deep = dir.path().join("a-folder-with-a-long-name".repeat(5)).join("b".repeat(90));
    fs::create_dir_all(&deep).unwrap();
    let long = deep.join("home");
    fs::rename(home, &long).unwrap();
    assert!(long.as_os_str().len() > 200);
    let holder = Runtime::open(&long).unwrap();
    let attached = Runtime::connect(&long).unwrap();
    assert!(holder.is_holder() && !attached.is_holder());
    assert_eq!(echo(&caller(&attached, &["echo"])).unwrap().reason(), None);
    assert!(long.join("socket").exists());
    drop(attached);
    holder.close().unwrap();
    assert!(!long.join("socket").exists());
}
