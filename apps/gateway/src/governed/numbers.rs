//! Integers that a reader of JSON turns into other numbers without a word.

/// How many integers of a JSON text are outside [-2^63, 2^64-1], or `-0`: who reads them makes
/// floats of them. A literal with a point or an exponent is a float as it stands.
pub(crate) fn inexact(text: &[u8]) -> usize {
    count(text, is_inexact)
}

/// True if an integer of a JSON text would be read as another number. One beyond the range that is
/// a float all the same, as JavaScript writes large ones, would not.
pub(crate) fn changes(text: &[u8]) -> bool {
    let changes = |literal: &[u8]| {
        let float = str::from_utf8(literal).ok().and_then(|literal| literal.parse::<f64>().ok());
        is_inexact(literal) && float.is_none_or(|float| float.to_string().as_bytes() != literal)
    };
    count(text, changes) > 0
}

fn count(text: &[u8], is: impl Fn(&[u8]) -> bool) -> usize {
    let (mut count, mut rest) = (0_usize, text.iter().copied().enumerate().peekable());
    while let Some((start, byte)) = rest.next() {
        match byte {
            b'"' => {
                while let Some((_, byte)) = rest.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(rest.next()),
                        _ => {}
                    }
                }
            }
            b'-' | b'0'..=b'9' => {
                let mut end = start.saturating_add(1);
                let in_number =
                    |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                while let Some((place, _)) = rest.next_if(|(_, byte)| in_number(*byte)) {
                    end = place.saturating_add(1);
                }
                let literal = text.get(start..end).unwrap_or_default();
                count = count.saturating_add(usize::from(is(literal)));
            }
            _ => {}
        }
    }
    count
}

fn is_inexact(literal: &[u8]) -> bool {
    let Ok(literal) = str::from_utf8(literal) else { return false };
    if literal.contains(['.', 'e', 'E']) {
        return false;
    }
    literal == "-0" || (literal.parse::<u64>().is_err() && literal.parse::<i64>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_the_range_are_counted() {
        for (text, count) in [
            ("[0, 1, -1, 18446744073709551615, -9223372036854775808]", 0),
            ("[18446744073709551616, -9223372036854775809, -0]", 3),
            ("[-0.0, 1e30, 99999999999999999999.0, 1E400]", 0),
            ("{\"99999999999999999999\": \"\\\"99999999999999999999\"}", 0),
            ("{\"a\\\\\": 99999999999999999999}", 1),
            ("99999999999999999999", 1),
            ("", 0),
        ] {
            assert_eq!(inexact(text.as_bytes()), count, "{text}");
        }
    }

    #[test]
    fn rounded_number_is_detected() {
        for (text, changed) in [
            ("[1, 18446744073709551615, 1e30, -0.0]", false),
            ("[18446744073709552000, 100000000000000000000, -0, -9223372036854776000]", false),
            ("18446744073709551616", true),
            ("[0, {\"a\": -99999999999999999999}]", true),
            ("\"18446744073709551616\"", false),
        ] {
            assert_eq!(changes(text.as_bytes()), changed, "{text}");
        }
    }
}
