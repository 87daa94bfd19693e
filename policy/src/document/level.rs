//! `params.elevated`: who may approve what needs somebody of that level, and how; and
//! `params.client_means`: whether an agent's own client may ask its user.

use alloc::{format, vec::Vec};

use syscap_format::{ApprovalChannel, PublicKey, ROLE_KEYS_MAX, field::count};
use syscap_kernel::Level;

use super::error::{LoadError, LoadFault};
use super::place::Node;

/// Means of which a person is known to have used them: a client's window is none of them.
const MEANS: [ApprovalChannel; 4] = [
    ApprovalChannel::Terminal,
    ApprovalChannel::Command,
    ApprovalChannel::File,
    ApprovalChannel::Signer,
];

/// The channels that a client's own window may be: `params.client_means`.
const CLIENTS: [ApprovalChannel; 2] = [ApprovalChannel::Elicitation, ApprovalChannel::ClientPrompt];

/// Reads `client_means`: the means that count then, in the order of their numbers.
pub(super) fn by_client(node: &Node<'_, '_>) -> Result<Level, LoadError> {
    let mut means = means_of(node, &CLIENTS)?;
    means.extend(MEANS);
    means.sort_by_key(|one| one.code());
    means.dedup();
    Ok(Level { keys: Vec::new(), approvals: 0, means })
}

/// Reads `{keys, approvals?, means?}`.
pub(super) fn read(node: &Node<'_, '_>) -> Result<Level, LoadError> {
    let [keys, approvals, means] = node.keys(["keys", "approvals", "means"])?;
    let place = node.below("keys", node.need("keys", keys)?);
    let mut keys: Vec<PublicKey> = Vec::new();
    for (n, item) in place.list(ROLE_KEYS_MAX, LoadFault::Level)?.into_iter().enumerate() {
        let element = place.at(n, item);
        let text = element.text()?;
        match key(text).filter(|key| !keys.contains(key)) {
            Some(key) => keys.push(key),
            None => return Err(element.error(LoadFault::LevelKey, text)),
        }
    }
    if keys.is_empty() {
        return Err(place.error(LoadFault::Level, ""));
    }
    let approvals = match approvals {
        None => 1,
        Some(item) => {
            let place = node.below("approvals", item);
            match place.uint()? {
                0 => return Err(place.error(LoadFault::Level, "0")),
                // More than there are keys could never be met.
                many if many > count(keys.len()) => {
                    return Err(place.error(LoadFault::Level, &format!("{many}")));
                }
                many => many,
            }
        }
    };
    let means = match means {
        None => Vec::from(MEANS),
        Some(item) => means_of(&node.below("means", item), &MEANS)?,
    };
    Ok(Level { keys, approvals, means })
}

fn means_of(
    place: &Node<'_, '_>,
    known: &[ApprovalChannel],
) -> Result<Vec<ApprovalChannel>, LoadError> {
    let items = place.list(known.len(), LoadFault::Level)?;
    let each = items.into_iter().enumerate().map(|(n, item)| {
        let element = place.at(n, item);
        let text = element.text()?;
        let names: Vec<&str> = known.iter().map(|means| means.name()).collect();
        let found = known.iter().find(|means| means.name() == text).copied();
        found.ok_or_else(|| element.not_one_of(LoadFault::Level, text, &names))
    });
    let means: Vec<ApprovalChannel> = each.collect::<Result<_, LoadError>>()?;
    if means.is_empty() {
        return Err(place.error(LoadFault::Level, ""));
    }
    Ok(means)
}

/// A key as `syscap keys list` shows it.
fn key(text: &str) -> Option<PublicKey> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().try_fold(0, |sum: u8, digit| {
            let value = match digit {
                b'0'..=b'9' => digit.checked_sub(b'0')?,
                b'a'..=b'f' => digit.checked_sub(b'a')?.checked_add(10)?,
                _ => return None,
            };
            sum.checked_mul(16)?.checked_add(value)
        })?;
    }
    PublicKey::new(bytes).ok()
}
