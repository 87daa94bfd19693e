//! Which mount a folder lies on: `/proc/self/mountinfo` read, and file systems told apart.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One mount, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    pub(super) kind: String,
    pub(super) source: String,
    options: String,
}

/// The suitability of a file system for a database with a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// On this machine, and there after a reboot; or nothing that is known.
    Local,
    /// Another machine has it, and others reach it.
    Network,
    /// The host of this machine has it, and its programs reach it.
    Host,
    /// A drive of Windows, under WSL.
    Windows,
    /// A program here answers for it.
    Program,
    /// A layer over others: of a container it ends with that.
    Layer,
    /// Memory.
    Memory,
}

impl Mount {
    /// A file system of which only the kind is known.
    pub(super) fn of_kind(point: &Path, kind: &str) -> Self {
        let point = point.to_path_buf();
        Self { point, kind: kind.to_owned(), source: String::new(), options: String::new() }
    }

    pub(super) fn storage(&self) -> Storage {
        let is_windows = self.options.split([',', ';']).any(|option| option == "aname=drvfs")
            || self.source == "drvfs"
            || matches!(self.source.as_bytes(), [_, b':', b'\\', ..] | [_, b':']);
        match &*self.kind {
            "drvfs" => Storage::Windows,
            "9p" | "virtiofs" if is_windows => Storage::Windows,
            "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "smb2" | "afs" | "ceph" | "lustre"
            | "beegfs" | "gpfs" | "gfs2" | "ocfs2" | "ncpfs" | "coda" | "orangefs" | "pvfs2"
            | "fuse.sshfs" | "fuse.glusterfs" | "fuse.ceph-fuse" | "fuse.cephfs" | "fuse.s3fs"
            | "fuse.rclone" | "fuse.gcsfuse" | "fuse.davfs2" | "fuse.curlftpfs"
            | "fuse.juicefs" | "fuse.blobfuse2" | "fuse.mount-s3" | "fuse.seaweedfs" => {
                Storage::Network
            }
            "9p" | "virtiofs" | "vboxsf" | "prl_fs" | "fakeowner" | "osxfs" | "grpcfuse"
            | "fuse.osxfs" | "fuse.grpcfuse" | "fuse.vmhgfs-fuse" | "vmhgfs" => Storage::Host,
            "fuse.fuse-overlayfs" | "overlay" | "aufs" => Storage::Layer,
            "tmpfs" | "ramfs" | "rootfs" => Storage::Memory,
            // The kernel's own kinds on top of a disk.
            "fuseblk" => Storage::Local,
            kind if kind == "fuse" || kind.starts_with("fuse.") => Storage::Program,
            _ => Storage::Local,
        }
    }
}

/// The mounts of a process, in the order in which they were made. Lines of another form are left
/// out.
pub(super) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/root rw,errors=continue`: proc(5).
fn line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = PathBuf::from(OsString::from_vec(unescaped(fields.nth(4)?)));
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let mut text = || Some(String::from_utf8_lossy(&unescaped(behind.next()?)).into_owned());
    let (kind, source) = (text()?, text()?);
    Some(Mount { point, kind, source, options: text().unwrap_or_default() })
}

/// Space, tab, line feed and backslash stand as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let octal = behind.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            None => plain.push(*first),
        }
    }
    plain
}

/// The mount that a path lies on, which has neither links nor `..`: of those that it is below, the
/// deepest; of two at one place the later, which hides the other.
pub(super) fn of<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// The kind of a file system by what `statfs` calls it (linux/magic.h), of those that matter here:
/// for where `/proc` can't be read.
pub(super) const fn kind_of(magic: u64) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "nfs",
        0x517b => "smbfs",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb2",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        0x00c3_6400 => "ceph",
        0x5346_414f => "afs",
        0x794c_7630 => "overlay",
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        0x786f_4256 => "vboxsf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines in the form that proc(5) gives, of systems that can't be had here: a network's file
    /// systems, WSL 1 and 2, virtual machines, containers.
    const OTHERS: &str = r"23 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
28 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
52 28 0:46 / /home rw,relatime shared:29 - nfs4 10.0.0.1:/export/home rw,vers=4.2,rsize=1048576,hard,proto=tcp,addr=10.0.0.1
53 28 0:47 /a /mnt/old rw,relatime - nfs filer:/vol/a rw,vers=3,nolock,local_lock=all
54 28 0:48 / /mnt/my\040share rw,relatime - cifs //srv/share rw,vers=3.1.1,cache=strict
55 28 0:49 / /mnt/ssh rw,nosuid,nodev,relatime - fuse.sshfs ada@host:/ rw,user_id=1000,group_id=1000
79 28 0:50 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs;path=C:\134;uid=1000;gid=1000;symlinkroot=/mnt/,cache=5,access=client,msize=65536,trans=fd,rfd=8,wfd=8
80 28 0:51 / /mnt/d rw,noatime - 9p drvfs rw,dirsync,mmap,access=client,trans=virtio
81 28 0:52 / /mnt/e rw,noatime - drvfs E: rw,case=off
82 28 0:53 / /cells rw,relatime - virtiofs host0 rw
83 28 0:54 / /lima rw,relatime - 9p mount0 rw,sync,access=client,msize=131072,trans=virtio
84 28 0:55 / /desktop rw,relatime - fakeowner /run/host_mark/Users rw,fakeowner
85 28 0:56 / /shared rw,relatime - vboxsf shared rw,iocharset=utf8
86 28 0:57 / /mine rw,relatime - fuse.mine mine rw,user_id=0
87 28 8:3 / /usb rw,relatime - fuseblk /dev/sdb1 rw,user_id=0
90 28 0:60 / /run rw,nosuid,nodev - tmpfs tmpfs rw,size=3285524k,mode=755
91 28 0:61 / /layer rw,relatime - overlay overlay rw,lowerdir=/var/lib/l:/var/lib/m,upperdir=/var/lib/u,workdir=/var/lib/w
92 28 0:62 / /home/deep rw - ext4 /dev/sdc1 rw
93 28 0:63 / /run rw - ext4 /dev/sdd1 rw
short line
";

    fn storage(path: &str) -> (String, Storage) {
        let mounts = parse(OTHERS.as_bytes());
        let mount = of(&mounts, Path::new(path)).unwrap();
        (mount.kind.clone(), mount.storage())
    }

    #[test]
    fn every_kind_of_storage_is_told_apart() {
        for (path, kind, is) in [
            ("/srv/home", "ext4", Storage::Local),
            ("/home/ada/agents", "nfs4", Storage::Network),
            ("/mnt/old", "nfs", Storage::Network),
            ("/mnt/my share/x", "cifs", Storage::Network),
            ("/mnt/ssh/x", "fuse.sshfs", Storage::Network),
            ("/mnt/c/Users/ada", "9p", Storage::Windows),
            ("/mnt/d/x", "9p", Storage::Windows),
            ("/mnt/e/x", "drvfs", Storage::Windows),
            ("/cells/x", "virtiofs", Storage::Host),
            ("/lima/x", "9p", Storage::Host),
            ("/desktop/x", "fakeowner", Storage::Host),
            ("/shared/x", "vboxsf", Storage::Host),
            ("/mine/x", "fuse.mine", Storage::Program),
            ("/usb/x", "fuseblk", Storage::Local),
            ("/layer/x", "overlay", Storage::Layer),
            // A disk below a network's; a name that only begins so is on the root's.
            ("/home/deep/x", "ext4", Storage::Local),
            ("/homely", "ext4", Storage::Local),
            // What was mounted later hides what was there.
            ("/run/x", "ext4", Storage::Local),
        ] {
            assert_eq!(storage(path), (kind.to_owned(), is), "{path}");
        }
    }

    #[test]
    fn lines_are_read_as_they_stand() {
        let mounts = parse(OTHERS.as_bytes());
        assert_eq!(mounts.len(), OTHERS.lines().count() - 1);
        let share = mounts.iter().find(|mount| mount.kind == "cifs").unwrap();
        let (point, source) = (Path::new("/mnt/my share"), "//srv/share");
        assert_eq!((&*share.point, &*share.source), (point, source));
        assert_eq!(unescaped(br"a\134b\0x\"), br"a\b\0x\");
        for broken in ["", "1 2 3 4", "1 2 3:4 / /a rw", "1 2 3:4 / /a rw - ext4"] {
            assert_eq!(parse(broken.as_bytes()), [], "{broken}");
        }
    }

    /// The numbers of statfs, from linux/magic.h, for systems without a readable mountinfo.
    #[test]
    fn magic_numbers_name_kinds() {
        let is = |magic| kind_of(magic).map(|kind| Mount::of_kind(Path::new("/"), kind).storage());
        assert_eq!(is(0x6969), Some(Storage::Network));
        assert_eq!(is(0x0102_1997), Some(Storage::Host));
        assert_eq!(is(0x794c_7630), Some(Storage::Layer));
        assert_eq!(is(0x0102_1994), Some(Storage::Memory));
        assert_eq!(is(0xef53), None);
    }
}
