//! Secrets: named, kept by the host outside log and policy, and sent only to where they belong.

use zeroize::Zeroizing;

use syscap_format::RootedPath;

use super::target::{Place, Target};

/// Shortest value, and fewest letters and digits in it: what is shorter can't be told from other
/// text where it comes back.
pub const SECRET_BYTES_MIN: usize = 8;
/// Longest value, in bytes.
pub const SECRET_BYTES_MAX: usize = 4 << 10;
/// The bytes that a secret adds to a request, at most: in a query each byte may take three.
pub(super) const SECRET_HOLD_BYTES: u64 = 13 << 10;
/// Longest name, in bytes.
pub const SECRET_NAME_BYTES_MAX: usize = 64;

/// A server: scheme, host and port; and perhaps a path, for what lies at it and below. It stands as
/// `https://api.example.com:8443`, or `https://api.example.com/v2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    text: String,
    is_secure: bool,
    place: Place,
    port: u16,
    /// Nothing for all of the server.
    path: Option<RootedPath>,
}

impl Origin {
    /// Reads one: a URL without a query, and of a path that has one reading.
    pub fn parse(text: &str) -> Option<Self> {
        let target = Target::absolute(text).ok()?;
        let (is_secure, place, port) = target.origin();
        let path = target.path()?;
        let text = target.as_str().trim_end_matches('/').to_owned();
        let path = Some(path).filter(|path| !path.below().is_empty());
        let is_bare = !text.contains('?');
        is_bare.then(|| Self { text, is_secure, place: place.clone(), port, path })
    }

    /// In the one way that it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if it is the URL's origin, and the URL lies at its path or below. A path that servers
    /// may read in more than one way lies at none.
    #[must_use]
    pub fn is_of(&self, target: &Target) -> bool {
        let lies = |path: &RootedPath| target.path().is_some_and(|found| found.is_within(path));
        target.origin() == (self.is_secure, &self.place, self.port)
            && self.path.as_ref().is_none_or(lies)
    }
}

/// A secret's value, and the servers that may have it.
pub struct Secret {
    value: Zeroizing<String>,
    origins: Vec<Origin>,
}

impl Secret {
    /// One of that value. It must be visible ASCII: then a header and a query can carry it.
    pub fn new(value: Zeroizing<String>, origins: Vec<Origin>) -> Option<Self> {
        let plain = value.bytes().filter(u8::is_ascii_alphanumeric).count();
        let is_fine = plain >= SECRET_BYTES_MIN
            && value.len() <= SECRET_BYTES_MAX
            && value.bytes().all(|byte| byte.is_ascii_graphic())
            && !origins.is_empty();
        is_fine.then_some(Self { value, origins })
    }

    /// The value, for a server that may have it.
    pub fn value_for(&self, target: &Target) -> Option<&str> {
        self.origins.iter().any(|origin| origin.is_of(target)).then_some(&self.value)
    }

    /// The servers.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Why a secret can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// There is none of that name.
    #[error("no such secret is set")]
    NotFound,
    /// It is there, and can't be read.
    #[error("the secret can't be read")]
    Unreadable,
}

/// A store of secrets. It is asked while a call runs, after the kernel let it.
pub trait Secrets: Send + Sync + 'static {
    /// Finds a secret by its name.
    fn find(&self, name: &str) -> Result<Secret, SecretError>;
}

/// There are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn find(&self, _: &str) -> Result<Secret, SecretError> {
        Err(SecretError::NotFound)
    }
}

/// True if it is a secret's name: `[a-z0-9._-]`, no dot or hyphen first.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let is_of = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=SECRET_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| is_of(byte) || b"._-".contains(&byte))
        && name.bytes().next().is_some_and(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_own_servers() {
        let origin = Origin::parse("https://API.example.com").unwrap();
        assert_eq!(origin.as_str(), "https://api.example.com");
        for (url, is_of) in [
            ("https://api.example.com/a?b", true),
            ("https://api.example.com:443/", true),
            ("https://api.example.com:8443/", false),
            ("http://api.example.com/", false),
            ("http://api.example.com:443/", false),
            ("https://api.example.com.evil.test/", false),
            ("https://x.api.example.com/", false),
        ] {
            assert_eq!(origin.is_of(&Target::absolute(url).unwrap()), is_of, "{url}");
        }
        for text in
            ["", "api.example.com", "https://a.test/x?y", "https://a.test?x", "ftp://a.test"]
        {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
        let below = Origin::parse("https://api.example.com/v2/").unwrap();
        assert_eq!(below.as_str(), "https://api.example.com/v2");
        for (path, is_of) in [
            ("v2", true),
            ("v2/", true),
            ("v2/a%20b?q", true),
            ("/v2//a", true),
            ("v%32/a", true),
            ("v21/a", false),
            ("", false),
            ("admin", false),
            ("V2/a", false),
            // What servers may read in another way.
            ("v2/%2e%2e%2fadmin", false),
            ("v2/a%2fb", false),
            ("v2/a;b", false),
            ("v2/%2541", false),
        ] {
            let target = Target::absolute(&format!("https://api.example.com/{path}"));
            assert_eq!(target.is_ok_and(|target| below.is_of(&target)), is_of, "{path}");
        }
        let made = |value: &str| {
            Secret::new(Zeroizing::new(value.to_owned()), vec![origin.clone()]).is_some()
        };
        assert!(made("abcdefgh") && !made("abc") && !made("--------a") && !made("abcdefgh\n"));
        let none = Secret::new(Zeroizing::new("abcdefgh".to_owned()), Vec::new());
        assert!(none.is_none());
    }

    #[test]
    fn names_are_plain() {
        assert!(is_secret_name("github.token-1"));
        for name in ["", ".a", "-a", "A", "a/b", "a b", "..", &"a".repeat(65)] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
