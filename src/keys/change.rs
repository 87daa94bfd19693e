//! Changes of a role's keys, as an operator or the recovery key signs them.

use syscap_format::{KeyChange, Possession, PublicKey, RoleSet};

/// The same keys and one more, which proves that somebody holds it. `None` where the role has it
/// already, or can't have more.
#[must_use]
pub fn adding(set: &RoleSet, new: Possession) -> Option<KeyChange> {
    if set.holds(&new.key) {
        return None;
    }
    let keys: Vec<PublicKey> = set.keys().chain([new.key]).collect();
    changed(set, &keys, Some(new))
}

/// The same keys without one. `None` where the role does not have it, or would have fewer than
/// must sign.
#[must_use]
pub fn removing(set: &RoleSet, gone: &PublicKey) -> Option<KeyChange> {
    if !set.holds(gone) {
        return None;
    }
    let keys: Vec<PublicKey> = set.keys().filter(|key| key != gone).collect();
    changed(set, &keys, None)
}

/// One new key in the place of those that are named; the others stay. `None` where the role does
/// not have them, or has the new one already.
#[must_use]
pub fn replacing(set: &RoleSet, gone: &[PublicKey], new: Possession) -> Option<KeyChange> {
    if set.holds(&new.key) || !gone.iter().all(|key| set.holds(key)) {
        return None;
    }
    let stay = set.keys().filter(|key| !gone.contains(key));
    let keys: Vec<PublicKey> = stay.chain([new.key]).collect();
    changed(set, &keys, Some(new))
}

/// One new key in the place of all, which alone signs from here on. `None` where the role has it
/// already.
#[must_use]
pub fn alone(set: &RoleSet, new: Possession) -> Option<KeyChange> {
    let before = RoleSet { threshold: 1, ..set.clone() };
    if set.holds(&new.key) { None } else { changed(&before, &[new.key], Some(new)) }
}

fn changed(before: &RoleSet, keys: &[PublicKey], new: Option<Possession>) -> Option<KeyChange> {
    let mut set = RoleSet::any_of(before.role, keys.iter().copied());
    set.threshold = before.threshold;
    let proofs = new.into_iter().collect();
    set.is_sound().then_some(KeyChange { set, proofs, cut_off: None })
}
