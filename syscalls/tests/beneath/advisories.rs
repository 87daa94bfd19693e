//! Advisories of others, as far as they can apply here; each test is named after one.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use syscap_syscalls::beneath::{
    Charge, Existing, FsError, Kind, Location, Parents, Refused, SCAN_MAX,
};

use crate::beneath::support::{CANARY, Links, World, mount, open, snapshot, with_mounts};

/// Go's `os.Root` passed `symlink/` to `openat` with `O_NOFOLLOW`, which follows it.
#[test]
fn cve_2026_39822_trailing_slash_on_a_final_symlink() {
    let world = World::new();
    symlink("../outside/folder", world.inside("way")).unwrap();
    symlink("../outside/folder/", world.inside("way_slash")).unwrap();
    for path in ["way/", "way/.", "way_slash/"] {
        world.assert_refused(path, Links::Refuse, FsError::BadName);
        world.assert_refused(path, Links::FollowWithin, FsError::BadName);
    }
    for path in ["way", "way_slash", "way/secret", "way_slash/secret"] {
        world.assert_refused(path, Links::Refuse, FsError::Link);
        world.assert_refused(path, Links::FollowWithin, FsError::Escapes);
    }
}

/// Go's `Root.Chmod` raced: `fchmodat` follows links whatever it is told. Permissions are set
/// here by handle alone, on our own file, so a link put in place during the write is not hit.
#[test]
fn cve_2026_32282_permissions_follow_no_link() {
    let world = World::new();
    fs::write(world.inside("f"), b"old").unwrap();
    fs::set_permissions(world.inside("f"), fs::Permissions::from_mode(0o777)).unwrap();
    let outside = world.outside("secret");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o600)).unwrap();
    let before = snapshot(&world.outside(""));
    let at = Location::new(&["f"]).unwrap();
    let done = world.write_at(&at, b"new", Existing::Replace, Parents::Require, &mut |charge| {
        if matches!(charge, Charge::Bytes(_)) {
            fs::remove_file(world.inside("f")).unwrap();
            symlink(&outside, world.inside("f")).unwrap();
        }
        Ok(())
    });
    assert!(done.is_ok());
    assert_eq!(snapshot(&world.outside("")), before, "neither its mode nor its content");
    let meta = fs::symlink_metadata(world.inside("f")).unwrap();
    assert!(meta.is_file(), "the link itself was replaced");
    assert_eq!(meta.permissions().mode() & 0o777, 0o777);
}

/// wasmtime: a file was truncated by its opening, before the right to write was looked at.
#[test]
fn ghsa_2r75_cxrj_cmph_no_truncation_before_a_denial() {
    let world = World::new();
    fs::write(world.inside("f"), b"kept").unwrap();
    fs::write(world.inside("g"), b"kept").unwrap();
    fs::hard_link(world.inside("g"), world.inside("g2")).unwrap();
    fs::hard_link(world.outside("secret"), world.inside("out")).unwrap();
    let before = snapshot(world.root());
    let at = Location::new(&["f"]).unwrap();
    let mut no = |_: Charge| Err(Refused);
    let refused = world.write_at(&at, b"new", Existing::Replace, Parents::Require, &mut no);
    assert_eq!(refused.unwrap_err().error, FsError::Refused);
    let exists =
        world.write("f", b"new", Existing::Refuse, Parents::Require, Links::Refuse).unwrap_err();
    assert_eq!(exists.error, FsError::Exists);
    for path in ["g", "g2", "out"] {
        assert_eq!(world.put(path, b"").unwrap_err().error, FsError::ManyLinks);
    }
    assert_eq!(world.base.open_file(&at, 3).map(drop), Err(FsError::TooLarge));
    assert_eq!(snapshot(world.root()), before);
}

/// wasmtime: a hard link or rename from a read-only root into a writable one made it writable.
/// No link or rename between two names of the caller's exists here, and a link made by others
/// opens neither name.
#[test]
fn ghsa_4ch3_9j33_3pmj_hard_link_across_rights() {
    let world = World::new();
    fs::create_dir(world.inside("shared")).unwrap();
    fs::create_dir(world.inside("mine")).unwrap();
    fs::write(world.inside("shared/f"), b"read-only").unwrap();
    fs::hard_link(world.inside("shared/f"), world.inside("mine/f")).unwrap();
    let before = snapshot(world.root());
    assert_eq!(world.put("mine/f", b"changed").unwrap_err().error, FsError::ManyLinks);
    assert_eq!(world.read("mine/f", Links::Refuse), Err(FsError::ManyLinks));
    assert_eq!(snapshot(world.root()), before);
    // A link put in place at the last moment: its name is replaced, its content is not.
    fs::remove_file(world.inside("mine/f")).unwrap();
    let at = Location::new(&["mine", "f"]).unwrap();
    let done = world.write_at(&at, b"mine", Existing::Replace, Parents::Require, &mut |charge| {
        if matches!(charge, Charge::Bytes(_)) {
            fs::hard_link(world.inside("shared/f"), world.inside("mine/f")).unwrap();
        }
        Ok(())
    });
    assert!(done.is_ok());
    assert_eq!(fs::read(world.inside("shared/f")).unwrap(), b"read-only");
    assert_eq!(fs::read(world.inside("mine/f")).unwrap(), b"mine");
}

/// Deno: stat, readdir and readlink passed a guard that reads did not. A listing here says no
/// more of an entry than a read would open, and a directory's listing passes the read's walk.
#[test]
fn ghsa_m87g_7g5m_wpx4_metadata_passes_the_gate_of_reads() {
    let world = World::new();
    fs::hard_link(world.outside("secret"), world.inside("hard")).unwrap();
    symlink("../outside/secret", world.inside("soft")).unwrap();
    symlink("/proc/self/environ", world.inside("environ")).unwrap();
    symlink("/proc/self", world.inside("proc")).unwrap();
    for entry in world.base.list(&Location::default(), SCAN_MAX).unwrap().entries {
        assert!(matches!(entry.kind, Kind::Link | Kind::Other));
        assert_eq!(entry.size_bytes, 0);
    }
    for links in [Links::Refuse, Links::FollowWithin] {
        let error = if links == Links::Refuse { FsError::Link } else { FsError::Escapes };
        for path in ["proc", "proc/environ", "environ", "soft"] {
            world.assert_refused(path, links, error);
        }
    }
}

/// The same with /proc mounted inside, and with /proc's own magic links when the operator makes
/// it the base.
#[test]
fn ghsa_m87g_7g5m_wpx4_proc_and_its_magic_links() {
    with_mounts("beneath::advisories::ghsa_m87g_7g5m_wpx4_proc_and_its_magic_links", || {
        let world = World::new();
        fs::create_dir(world.inside("proc")).unwrap();
        mount(&["--bind", "/proc"], &world.inside("proc"));
        for path in ["proc", "proc/self", "proc/self/environ", "proc/1/root/etc/passwd"] {
            for links in [Links::Refuse, Links::FollowWithin] {
                assert_eq!(world.read(path, links), Err(FsError::OtherDevice));
                assert_eq!(world.list(path, links), Err(FsError::OtherDevice));
            }
        }
        let entry = world.base.list(&Location::default(), 1).unwrap().entries.remove(0);
        assert_eq!((entry.kind, entry.size_bytes), (Kind::Other, 0));
        let secret = fs::File::open(world.outside("secret")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&secret).to_string();
        let proc = open(Path::new("/proc")).unwrap();
        let pid = std::process::id().to_string();
        let root = [pid.as_str(), "root"];
        let own = [pid.as_str(), "fd", number.as_str()];
        for path in [&root[..], &own[..]] {
            let at = Location::new(path).unwrap();
            assert_eq!(proc.open_file(&at, 100).map(drop), Err(FsError::Link));
            assert_eq!(
                crate::beneath::support::locate(&*proc, path, Links::FollowWithin),
                Err(FsError::Escapes)
            );
        }
        assert_eq!(fs::read(world.outside("secret")).unwrap(), CANARY);
    });
}

/// cap-std: Windows' device names with superscript digits. On Linux such names are files like
/// any other, and this layer is for Linux alone.
#[test]
fn cve_2024_51756_device_names_are_plain_names_here() {
    let world = World::new();
    for name in ["COM\u{b9}", "LPT\u{b2}", "CON", "NUL", "aux.txt"] {
        world.put(name, name.as_bytes()).unwrap();
        assert_eq!(world.read(name, Links::Refuse).unwrap(), name.as_bytes());
    }
}
