//! Every preset loads, passes its own table, and is what `Preset` says it is.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use syscap_analysis::table::{self, Table};
use syscap_policy::{Policy, Preset};

#[test]
fn every_preset_loads_and_has_a_name_of_its_own() {
    for preset in Preset::ALL {
        let policy = Policy::preset(preset).unwrap_or_else(|error| panic!("{preset}: {error}"));
        assert_eq!(Preset::from_name(preset.name()), Some(preset));
        assert_eq!(Policy::from_json(policy.to_json().as_bytes()).unwrap().hash(), policy.hash());
    }
}

/// Each preset's own table passes, decides every constraint and sees every test both ways, and
/// notices every small change that changes anything.
#[test]
fn every_preset_passes_its_table_and_the_table_would_notice_a_change() {
    for preset in Preset::ALL {
        let policy = Policy::preset(preset).unwrap();
        let table = Table::from_json(preset.table().as_bytes()).unwrap();
        let report = table::run(policy.written(), &table);
        assert!(report.failures.is_empty(), "{preset}: {report}");
        let (tests, seen) = report.tests();
        assert_eq!(tests, seen, "{preset}: {report}");
        assert!(report.mutation.killed > 0 && report.mutation.survivors.is_empty(), "{report}");
    }
}
