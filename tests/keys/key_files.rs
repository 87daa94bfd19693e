//! Key files: what they hold, who can read them, and what is refused of strange ones.

use std::{fs, os::unix::fs::PermissionsExt as _};

use syscap::format::{Canonical, Item, MapBuilder, Role, recovery_hash};
use syscap::keys::{KeyFile, KeyFileError, KeyUse, Passphrase, Seal};
use syscap::syscalls::beneath::KEY_FILE_BEGINS;
use syscap::{Error, FileKeys, Options, Signer as _, SignerError, SystemEntropy};

use crate::keys::world::{World, passphrase, seal};

const OPERATOR: KeyUse = KeyUse::Role(Role::Operator);

fn sealed() -> KeyFile {
    KeyFile::generate(OPERATOR, &seal(), &SystemEntropy).unwrap().0
}

/// The file's map with an entry changed.
fn with(file: &KeyFile, key: &str, value: Item<'_>) -> Vec<u8> {
    let bytes = file.to_bytes();
    let map = Canonical::check(bytes.to_vec(), syscap::format::Profile::DATA).unwrap();
    let of = |map: MapBuilder, (name, item): (&str, Item<'_>)| match name == key {
        true => map.item(name, value),
        false => map.item(name, item),
    };
    map.item().entries().fold(MapBuilder::new(), of).finish().into_bytes()
}

/// The file's map with an entry of its seal changed.
fn with_seal(file: &KeyFile, key: &str, value: Item<'_>) -> Vec<u8> {
    let bytes = file.to_bytes();
    let map = Canonical::check(bytes.to_vec(), syscap::format::Profile::DATA).unwrap();
    let of = |map: MapBuilder, (name, item): (&str, Item<'_>)| match name == key {
        true => map.item(name, value),
        false => map.item(name, item),
    };
    let changed = map.item().get("sealed").unwrap().entries().fold(MapBuilder::new(), of).finish();
    with(file, "sealed", changed.item())
}

fn uint(value: u64) -> Canonical {
    MapBuilder::new().uint("n", value).finish().item().get("n").map(Canonical::from).unwrap()
}

fn bytes(value: &[u8]) -> Canonical {
    MapBuilder::new().bytes("b", value).finish().item().get("b").map(Canonical::from).unwrap()
}

/// A key is read back from its file; its public key needs no passphrase, and its secret does.
#[test]
fn a_key_file_reads_back() {
    for (seal, is_sealed) in [(Seal::Open, false), (seal(), true)] {
        for key_use in Role::IN_USE.map(KeyUse::Role).into_iter().chain([KeyUse::Recovery]) {
            let (file, key) = KeyFile::generate(key_use, &seal, &SystemEntropy).unwrap();
            let read = KeyFile::from_bytes(&file.to_bytes()).unwrap();
            assert_eq!(read.key_use(), key_use);
            assert_eq!(read.public_key(), key.public_key());
            assert_eq!(read.is_sealed(), is_sealed);
            assert_eq!(*read.to_bytes(), *file.to_bytes(), "nothing is written otherwise");
            match is_sealed {
                true => assert_eq!(read.open().unwrap_err(), SignerError::Sealed(key_use)),
                false => assert!(read.open().is_ok()),
            }
        }
    }
    let file = sealed();
    let secret = file.unseal(&passphrase()).unwrap();
    assert_eq!(secret.public_key(), file.public_key());
    let wrong = Passphrase::new(b"Secret".to_vec()).unwrap();
    assert_eq!(file.unseal(&wrong).unwrap_err(), SignerError::Passphrase(OPERATOR));
}

/// The same seed under the same passphrase never looks the same, and its bytes are not in it.
#[test]
fn a_seal_hides_the_seed() {
    let (open, _) = KeyFile::generate(OPERATOR, &Seal::Open, &SystemEntropy).unwrap();
    let map = open.to_bytes();
    let map = Canonical::check(map.to_vec(), syscap::format::Profile::DATA).unwrap();
    let seed = map.item().get("seed").and_then(Item::as_byte_string).unwrap().to_vec();
    struct Fixed(Vec<u8>);
    impl syscap::kernel::Entropy for Fixed {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), syscap::kernel::NoEntropy> {
            match buffer.len() == self.0.len() {
                true => buffer.copy_from_slice(&self.0),
                false => SystemEntropy.fill(buffer)?,
            }
            Ok(())
        }
    }
    let fixed = Fixed(seed.clone());
    let [one, other] = [(); 2].map(|()| KeyFile::generate(OPERATOR, &seal(), &fixed).unwrap().0);
    assert_eq!(one.public_key(), open.public_key());
    assert_ne!(*one.to_bytes(), *other.to_bytes());
    for file in [one, other] {
        assert!(file.to_bytes().windows(8).all(|window| !seed.windows(8).any(|s| s == window)));
    }
}

/// Nothing that was cut, lengthened or written by something newer is taken for a key.
#[test]
fn files_that_are_no_key_files_are_refused() {
    for file in [sealed(), KeyFile::generate(OPERATOR, &Seal::Open, &SystemEntropy).unwrap().0] {
        let whole = file.to_bytes();
        for length in 0..whole.len() {
            assert!(KeyFile::from_bytes(&whole[..length]).is_err(), "{length}");
        }
        let more = [&whole[..], &[0]].concat();
        assert_eq!(KeyFile::from_bytes(&more).unwrap_err(), KeyFileError::Form);
        let newer = with(&file, "version", uint(2).item());
        assert_eq!(KeyFile::from_bytes(&newer).unwrap_err(), KeyFileError::Unknown);
        let text = Canonical::text("ed448");
        let other = with(&file, "algorithm", text.item());
        assert_eq!(KeyFile::from_bytes(&other).unwrap_err(), KeyFileError::Unknown);
        let nobody = with(&file, "use", Canonical::text("publisher").item());
        assert_eq!(KeyFile::from_bytes(&nobody).unwrap_err(), KeyFileError::Form);
        let weak = with(&file, "public", bytes(&[0; 32]).item());
        assert_eq!(KeyFile::from_bytes(&weak).unwrap_err(), KeyFileError::Public);
    }
}

/// A file that would take all memory, or all day, is refused before it takes any.
#[test]
fn a_file_that_asks_for_too_much_is_refused() {
    let file = sealed();
    for (key, value) in [("kib", 1 << 30), ("kib", (256 << 10) + 1), ("passes", 17), ("lanes", 17)]
    {
        let greedy = with_seal(&file, key, uint(value).item());
        assert_eq!(KeyFile::from_bytes(&greedy).unwrap_err(), KeyFileError::Costly, "{key}");
    }
    for (key, value) in [("kib", 0), ("passes", 0), ("lanes", 0), ("kib", 1 << 40), ("kib", 31)] {
        let senseless = with_seal(&file, key, uint(value).item());
        assert_eq!(KeyFile::from_bytes(&senseless).unwrap_err(), KeyFileError::Form, "{key}");
    }
}

/// What a seal is bound to can't be exchanged: not the role, not the public key, nothing of itself.
#[test]
fn sealed_key_is_bound_to_its_file() {
    let (file, other) = (sealed(), sealed());
    let wrong = |bytes: Vec<u8>| {
        let read = KeyFile::from_bytes(&bytes).unwrap();
        read.unseal(&passphrase()).unwrap_err()
    };
    let role = with(&file, "use", Canonical::text("approver").item());
    assert_eq!(wrong(role), SignerError::Passphrase(KeyUse::Role(Role::Approver)));
    let public = with(&file, "public", bytes(other.public_key().as_bytes()).item());
    assert_eq!(wrong(public), SignerError::Passphrase(OPERATOR));
    for (key, length) in [("salt", 16), ("nonce", 24), ("box", 48)] {
        let changed = with_seal(&file, key, bytes(&vec![7; length]).item());
        assert_eq!(wrong(changed), SignerError::Passphrase(OPERATOR), "{key}");
    }
    let open = KeyFile::generate(OPERATOR, &Seal::Open, &SystemEntropy).unwrap().0;
    let swapped = with(&open, "public", bytes(other.public_key().as_bytes()).item());
    assert_eq!(KeyFile::from_bytes(&swapped).unwrap_err(), KeyFileError::Public);
}

/// A file of one role in the place of another's is refused, whatever it is called.
#[test]
fn a_role_takes_no_other_roles_file() {
    let world = World::new();
    fs::copy(world.path(Role::Issuer), world.path(Role::Operator)).unwrap();
    let signs_nothing = || {
        let keys = FileKeys::open(&world.keys()).unwrap();
        assert_eq!(keys.public_key(Role::Operator), Err(SignerError::BadKey));
        assert_eq!(keys.sign(Role::Operator, b"x"), Err(SignerError::BadKey));
        assert!(keys.sign(Role::Issuer, b"x").is_ok());
    };
    signs_nothing();
    // Too long, and a seed alone.
    let operator = world.path(Role::Operator);
    for bytes in [&[0; 5_000][..], &[7; 32]] {
        fs::write(&operator, bytes).unwrap();
        signs_nothing();
        assert!(matches!(KeyFile::read(&operator), Err(Error::KeyFile { .. })));
    }
    // The home's other keys work.
    let rt = world.open();
    let token = crate::keys::world::token(&rt);
    rt.revoke(token).unwrap();
    assert!(matches!(rt.forget(&[]), Err(Error::Signer(SignerError::BadKey))));
    rt.close().unwrap();
}

/// Keys are their owner's only, also the recovery key; what may be sealed is, and nothing else.
#[test]
fn files_are_their_owners_only() {
    for (options, is_sealed) in [(Options::new(), false), (Options::new().seal(seal()), true)] {
        let world = World::with(options);
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&world.keys()) & 0o777, 0o700);
        let uses = Role::IN_USE.map(KeyUse::Role).into_iter().chain([KeyUse::Recovery]);
        for key_use in uses {
            let path = key_use.path(&world.keys());
            assert_eq!(mode(&path) & 0o777, 0o600, "{key_use}");
            // File tools know it by that.
            assert!(fs::read(&path).unwrap().starts_with(&KEY_FILE_BEGINS), "{key_use}");
            let file = KeyFile::read(&path).unwrap();
            let sealed = is_sealed && KeyUse::SEALED.contains(&key_use);
            assert_eq!(file.is_sealed(), sealed, "{key_use}");
        }
        assert_eq!(fs::read_dir(world.keys()).unwrap().count(), 6);
    }
}

/// A home is made with a recovery key, with one that lies elsewhere, or with none.
#[test]
fn the_recovery_key_is_on_record() {
    let here = World::new();
    let path = KeyUse::Recovery.path(&here.keys());
    let file = KeyFile::read(&path).unwrap();
    assert_eq!(here.log().kernel().recovery(), Some(recovery_hash(&file.public_key())));
    let elsewhere = World::with(Options::new().recovery(file.public_key()));
    assert_eq!(elsewhere.log().kernel().recovery(), Some(recovery_hash(&file.public_key())));
    assert!(!KeyUse::Recovery.path(&elsewhere.keys()).exists());
    let none = World::with(Options::new().no_recovery());
    assert_eq!(none.log().kernel().recovery(), None);
    assert!(!KeyUse::Recovery.path(&none.keys()).exists());
}

/// A stop waits for no other role's file: one that can't be read leaves its own role without a key.
#[test]
fn unreadable_key_ends_no_emergency_stop() {
    let world = World::new();
    for role in [Role::Issuer, Role::Policy, Role::Approver, Role::Operator] {
        let kept = fs::read(world.path(role)).unwrap();
        let rt = world.open();
        let token = crate::keys::world::token(&rt);
        rt.close().unwrap();
        // Root reads whatever its mode is, and no folder.
        fs::remove_file(world.path(role)).unwrap();
        fs::create_dir(world.path(role)).unwrap();
        let rt = world.open();
        rt.revoke(token).unwrap();
        let refused = match role {
            Role::Issuer => rt.issue(syscap::Grant::to("a").tools(["echo"])).err(),
            Role::Operator => rt.forget(&[]).err(),
            _ => None,
        };
        let unreadable = SignerError::Unreadable(role);
        let is = |error: &Error| matches!(error, Error::Signer(why) if *why == unreadable);
        assert!(refused.as_ref().is_none_or(is), "{refused:?}");
        rt.close().unwrap();
        fs::remove_dir(world.path(role)).unwrap();
        fs::write(world.path(role), kept).unwrap();
    }
}
