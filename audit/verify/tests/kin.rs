//! Tokens that were derived from others or take the place of others: all of the chain counts.

use kernel_support::driver::kin;

#[test]
fn sound_log_of_a_chain_is_found_sound() {
    for kin in kin::all() {
        assert_eq!(kin.log.faults(), [], "{}", kin.name);
    }
}
