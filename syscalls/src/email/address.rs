//! Addresses, in one plain form.

use syscap_format::Host;

/// Longest address, in bytes: RFC 5321, 4.5.3.1.3, without the angle brackets.
pub const ADDRESS_BYTES_MAX: usize = 254;
/// Longest part before the `@`.
const LOCAL_BYTES_MAX: usize = 64;
/// The characters of an atom that are neither letters nor digits: RFC 5322, 3.2.3, without those
/// that older programs read as routes (`!`, `%`), and those that shells and headers read (`` ` ``,
/// `|`, `$`, `?`, `=`, `&`, `*`, `^`, `{`, `}`, `/`, `#`, `~`, `'`).
const OTHERS: &[u8] = b"+-_";

/// An address: a dot-atom of ASCII, and a host of two labels or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    text: String,
    host: Host,
}

impl Address {
    /// Reads one. No name, comment, group, quotation or address of numbers; of the host large
    /// letters become small ones, the rest stays as it is.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (local, host) = text.split_once('@')?;
        let is_atom = |atom: &str| {
            !atom.is_empty()
                && atom.bytes().all(|b| b.is_ascii_alphanumeric() || OTHERS.contains(&b))
        };
        let host = host.to_ascii_lowercase();
        let is_fine = text.len() <= ADDRESS_BYTES_MAX
            && local.len() <= LOCAL_BYTES_MAX
            && local.split('.').all(is_atom)
            && host.contains('.');
        let host = Host::new(&host).ok().filter(|_| is_fine)?;
        Some(Self { text: format!("{local}@{host}"), host })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) const fn host(&self) -> &Host {
        &self.host
    }

    /// True if nearly every mail server takes the other for the same mailbox.
    #[cfg(feature = "mail")]
    pub(super) fn is_same_mailbox(&self, other: &Self) -> bool {
        self.text.eq_ignore_ascii_case(&other.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_plain_form() {
        for (text, plain) in [
            ("ann@example.com", "ann@example.com"),
            ("Ann.B+list@EXAMPLE.com", "Ann.B+list@example.com"),
            ("a@xn--bcher-kva.example", "a@xn--bcher-kva.example"),
        ] {
            assert_eq!(Address::parse(text).unwrap().as_str(), plain, "{text}");
        }
    }

    /// Each of them has been read in two ways, or carried something else along.
    #[test]
    fn ambiguous_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(65));
        let longer = format!("a@{}example.com", "a.".repeat(130));
        for text in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@localhost",
            "ann@example..com",
            "ann@.example.com",
            "ann@example.com.",
            "ann@-example.com",
            ".ann@example.com",
            "ann.@example.com",
            "a..b@example.com",
            "ann@example.com@evil.test",
            "ann@evil.test,bob@example.com",
            "ann@example.com, bob@evil.test",
            "ann@example.com;bob@evil.test",
            "Ann <ann@example.com>",
            "<ann@example.com>",
            "ann@example.com>",
            "\"ann@evil.test \"@example.com",
            "\"ann\"@example.com",
            "ann(comment)@example.com",
            "ann@(comment)example.com",
            "friends:ann@example.com;",
            "ann@[127.0.0.1]",
            "ann@127.0.0.1",
            "ann@example.com\r\nBcc: bob@evil.test",
            "ann@example.com\nBcc: bob@evil.test",
            "ann@example.com\0",
            " ann@example.com",
            "ann @example.com",
            "ann@ex ample.com",
            "ann\t@example.com",
            "bob%evil.test@example.com",
            "evil.test!bob@example.com",
            "@evil.test:ann@example.com",
            "=?utf-8?q?ann?=@example.com",
            "\u{430}nn@example.com",
            "ann@ex\u{430}mple.com",
            "ann@example\u{3002}com",
            "ann\u{ff20}example.com",
            "ann@example.com\u{202e}",
            "ann\\@evil.test@example.com",
            &long,
            &longer,
        ] {
            assert_eq!(Address::parse(text), None, "{text:?}");
        }
    }
}
