//! Constants that values are compared with.

use alloc::{vec, vec::Vec};

use syscap_policy::{Ask, Constant};

pub(super) fn integer_constants(ask: &Ask) -> Vec<i128> {
    let of = |constant: &Constant| match constant {
        Constant::Int(value) => Some(*value),
        _ => None,
    };
    match ask {
        Ask::Lt(bound) | Ask::Le(bound) | Ask::Gt(bound) | Ask::Ge(bound) => vec![*bound],
        Ask::Eq(constant) => of(constant).into_iter().collect(),
        Ask::In(constants) => constants.iter().filter_map(of).collect(),
        _ => Vec::new(),
    }
}

/// Text constants that a value may equal.
pub(super) fn text_constants<'a>(asks: &[&'a Ask]) -> Vec<&'a str> {
    let of = |constant: &'a Constant| match constant {
        Constant::Text(text) => Some(&**text),
        _ => None,
    };
    let mut found = Vec::new();
    for ask in asks {
        match ask {
            Ask::Eq(constant) => found.extend(of(constant)),
            Ask::In(constants) => found.extend(constants.iter().filter_map(of)),
            _ => {}
        }
    }
    found
}
