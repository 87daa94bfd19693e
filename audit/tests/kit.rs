//! The store kit: our stores pass it, and a store with a fault is caught by the rule that it
//! breaks.

mod broken;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use broken::{Fault, Places};
use kernel_support::fault::{FaultPoint, FaultStore};
use syscap_audit::kit::{Found, Kit, KitError, Rule, prove};
use syscap_audit::sqlite::{BALLAST_FILE, Settings};
use syscap_audit::{MemoryStore, SqliteStore};
use syscap_format::Durability;
use syscap_kernel::StoreError;

/// Stores in memory by their places.
#[derive(Default)]
struct Shelf(RefCell<HashMap<PathBuf, MemoryStore>>);

impl Shelf {
    fn create(&self, place: &Path) -> Result<MemoryStore, StoreError> {
        if self.0.borrow().contains_key(place) {
            return Err(StoreError::Exists);
        }
        self.0.borrow_mut().insert(place.to_path_buf(), MemoryStore::new());
        self.open(place)
    }

    fn open(&self, place: &Path) -> Result<MemoryStore, StoreError> {
        self.0.borrow().get(place).ok_or(StoreError::Missing)?.open()
    }
}

#[test]
fn the_store_in_memory_keeps_every_rule() {
    let shelf = Shelf::default();
    Kit::new(|place| shelf.create(place), |place| shelf.open(place))
        .failing(|place, number| {
            let point = match number {
                1 => FaultPoint::Before(1),
                2 => FaultPoint::After(1),
                _ => FaultPoint::Nowhere,
            };
            Ok(FaultStore::new(shelf.open(place)?, point))
        })
        .check()
        .unwrap();
}

#[test]
fn the_database_keeps_every_rule() {
    Kit::new(
        |place| SqliteStore::create(place, Durability::Full),
        |place| SqliteStore::open(place, Durability::Full),
    )
    .failing(|place, pages| {
        // No ballast, and no room for it: the disk is full after so many pages.
        fs::remove_file(place.join(BALLAST_FILE)).unwrap();
        let settings = Settings::new(Durability::Full).room_bytes_min(1 << 60);
        SqliteStore::open_with(place, &settings.pages_max(u32::try_from(pages).unwrap()))
    })
    .killed_in("kit::the_database_keeps_every_rule")
    .check()
    .unwrap();
}

fn check(fault: Fault) -> Result<(), KitError> {
    let places = Places::new(fault);
    Kit::new(|place| places.create(place), |place| places.open(place))
        .failing(|place, number| places.failing(place, number))
        .check()
}

/// Each fault, by the rule that it breaks.
const FAULTS: &[(Rule, &[Fault])] = &[
    (Rule::Empty, &[Fault::HasAnyObject, Fault::BeginsWithARecord]),
    (Rule::Follow, &[Fault::RefusesTheFirst, Fault::RefusesTheSecond]),
    (
        Rule::Order,
        &[Fault::Swaps, Fault::SkipsOne, Fault::ChangesAByte, Fault::BeginsAtTheBeginning],
    ),
    (Rule::Enough, &[Fault::ReadsOn]),
    (Rule::Objects, &[Fault::LosesObjects, Fault::CutsObjects, Fault::RefusesAnObjectAgain]),
    (
        Rule::Vault,
        &[
            Fault::LosesLargeRows,
            Fault::LosesSmallRows,
            Fault::RefusesLargeRows,
            Fault::GivesTheRowBefore,
            Fault::TellsAnotherLength,
            Fault::ReadsNothingBeside,
        ],
    ),
    (Rule::Erased, &[Fault::KeepsErasedRows, Fault::ErasesTheRowAfter, Fault::RefusesWhatIsGone]),
    (
        Rule::Reopen,
        &[
            Fault::ForgetsTheLastRecord,
            Fault::ForgetsObjects,
            Fault::ForgetsRows,
            Fault::ForgetsTheHead,
        ],
    ),
    (Rule::Long, &[Fault::CutsLongRecords]),
    (Rule::Many, &[Fault::ReadsFourThousand, Fault::RefusesLargeBatches]),
    (Rule::Idle, &[Fault::ClearsTheVaultWhenIdle, Fault::FailsWhenIdle]),
    (Rule::Place, &[Fault::OpensWhatIsMissing, Fault::MakesAnew, Fault::SaysDamagedForMissing]),
    (Rule::Exclusive, &[Fault::Shares, Fault::GivesTheLockToWhoTries, Fault::MakesAnewWhatIsOpen]),
    (
        Rule::HeadSeq,
        &[
            Fault::TakesAnyHead,
            Fault::TakesAnyHeadOnAnEmptyLog,
            Fault::TakesAGenesisAgain,
            Fault::SaysDamagedForHeadMoved,
        ],
    ),
    (Rule::HeadLeaf, &[Fault::TakesAnyLeaf]),
    (
        Rule::Refused,
        &[
            Fault::KeepsRowsOfWhatItRefuses,
            Fault::KeepsObjectsOfWhatItRefuses,
            Fault::KeepsRecordsOfWhatItRefuses,
        ],
    ),
    (Rule::Poisoned, &[Fault::HealsByItself, Fault::HealsAtTheSecondTry, Fault::SaysIoForPoisoned]),
    (
        Rule::Whole,
        &[
            Fault::Tears,
            Fault::LosesRowsOfATornBatch,
            Fault::IsStuckAfterAnError,
            Fault::GoesOnAfterAnError,
        ],
    ),
];

#[test]
fn every_rule_is_seen_to_be_broken() {
    let mut broken = BTreeSet::new();
    for (rule, faults) in FAULTS {
        for fault in *faults {
            let error = check(*fault).expect_err("a fault");
            assert_eq!(error.rule, *rule, "{fault:?}: {error}");
            assert!(!matches!(error.found, Found::Script | Found::Host(_)), "{fault:?}: {error}");
        }
        broken.insert(rule.name());
    }
    assert_eq!(check(Fault::None), Ok(()));
    // The last one needs a process that dies: see the tests of the store in a file.
    let all: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(all.difference(&broken).collect::<Vec<_>>(), [&Rule::Durable.name()]);
}

/// A hook that does nothing proves nothing.
#[test]
fn idle_fault_hook_fails_the_kit() {
    let shelf = Shelf::default();
    let kit = Kit::new(|place| shelf.create(place), |place| shelf.open(place));
    let idle = kit.failing(|place, _| shelf.open(place)).check();
    assert_eq!(idle, Err(KitError { rule: Rule::Whole, found: Found::NoFault }));
    let kit = Kit::new(|place| shelf.create(place), |place| shelf.open(place));
    let idle = kit.killed_in("no_test_of_this_name").check();
    assert_eq!(idle, Err(KitError { rule: Rule::Durable, found: Found::Ended }));
    assert_eq!(prove(|place| shelf.create(place), |place| shelf.open(place)), Ok(()));
}

/// What could not be made is said, and nothing is left behind.
#[test]
fn the_kit_cleans_up() {
    let dir = tempfile::tempdir().unwrap();
    let open = |place: &Path| SqliteStore::open(place, Durability::Process);
    let create = |place: &Path| SqliteStore::create(place, Durability::Process);
    Kit::new(create, open).within(dir.path()).check().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let none = Kit::new(create, open).within(&dir.path().join("none")).check().unwrap_err();
    assert_eq!(none.found, Found::Host(std::io::ErrorKind::NotFound));
}
