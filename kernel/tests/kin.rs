//! Tokens that were derived from others or take the place of others: all of the chain counts.

use kernel_support::driver::kin;

#[test]
fn all_of_a_chain_counts() {
    for kin in kin::all() {
        assert_eq!(kin.answers, kin.expected, "{}", kin.name);
    }
}
