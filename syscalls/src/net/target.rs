//! From the text of a URL to what is connected to, once.
//!
//! The parser is that of the WHATWG's URL standard, which forgives much: it drops tabs, takes a
//! backslash for a slash, reads `0x7f.1` as an address and `https:evil.example` as a host or a
//! path, by what stands before it. Ambiguous text is refused before; the rest has one reading, and
//! the parsed value alone is used from then on.

use std::net::IpAddr;

use syscap_format::{Host, Resource, Root, RootedPath};
use url::{Host as Parsed, Url};

use super::names::URL_ROOT;

/// Longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 8 << 10;
/// How often a path is decoded when it is looked through for `..`: a server and what stands before
/// it may each decode once.
const DECODED_MAX: u32 = 3;

/// Why a text is no URL that is gone to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum UrlFault {
    /// It has more than [`URL_BYTES_MAX`].
    #[error("is too long")]
    TooLong,
    /// A control character, white space, a backslash, or in an authority anything but ASCII.
    #[error("holds a character that must be percent-encoded, or written as an A-label")]
    Character,
    /// It does not begin with `http://` or `https://` and a host, or, where that is asked for, is
    /// no path.
    #[error("is not of the form https://host/path, or a path where a base is set")]
    Form,
    /// A user or a password stands before the host.
    #[error("names a user")]
    UserInfo,
    /// The host is no name of DNS and no address in its usual form.
    #[error("names no host")]
    Host,
    /// The port is none, or 0, or written in another way.
    #[error("names no port")]
    Port,
    /// The path leads above its base, or could when it is decoded again.
    #[error("leads above its base")]
    Climbs,
    /// It leads to another origin than its base.
    #[error("leads to another server than its base")]
    OtherOrigin,
}

/// The host or address of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A name, to be resolved once.
    Name(Host),
    /// An address.
    Address(IpAddr),
}

/// A URL of http or https, of one reading: no user, no fragment, a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    url: Url,
    place: Place,
    port: u16,
}

impl Target {
    /// Reads an absolute URL.
    pub fn absolute(text: &str) -> Result<Self, UrlFault> {
        check_characters(text)?;
        let (scheme, rest) = text.split_once("://").ok_or(UrlFault::Form)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(UrlFault::Form);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or_default();
        if authority.is_empty() {
            return Err(UrlFault::Form);
        }
        if authority.contains('@') {
            return Err(UrlFault::UserInfo);
        }
        if !authority.is_ascii() || authority.contains('%') {
            return Err(UrlFault::Character);
        }
        let (host, port) = split_port(authority)?;
        let mut url = Url::parse(text).map_err(|_| UrlFault::Host)?;
        let place = place_of(&url, host)?;
        let port = match port {
            Some(port) => port,
            None => url.port_or_known_default().ok_or(UrlFault::Port)?,
        };
        if Some(port) != url.port_or_known_default() {
            return Err(UrlFault::Port);
        }
        url.set_fragment(None);
        if let Place::Name(name) = &place {
            // The dot of the root goes.
            url.set_host(Some(name.as_str())).map_err(|_| UrlFault::Host)?;
        }
        let is_plain = url.username().is_empty() && url.password().is_none();
        if !is_plain || climbs(url.path()) {
            return Err(if is_plain { UrlFault::Climbs } else { UrlFault::UserInfo });
        }
        Ok(Self { url, place, port })
    }

    /// Reads a path below this URL, which ends with its last slash. A path that begins with a slash
    /// is taken from the server's root, as the standard has it, and must lie below this URL all the
    /// same.
    pub fn below(&self, path: &str) -> Result<Self, UrlFault> {
        check_characters(path)?;
        let first = path.split(['/', '?', '#']).next().unwrap_or_default();
        // `//host`, and what is a scheme to some and a name to others.
        if path.starts_with("//") || first.contains(':') {
            return Err(UrlFault::Form);
        }
        if path.split(['?', '#']).next().is_some_and(climbs) {
            return Err(UrlFault::Climbs);
        }
        let mut url = self.url.join(path).map_err(|_| UrlFault::Form)?;
        url.set_fragment(None);
        let found = Self::absolute(url.as_str())?;
        if found.origin() != self.origin() {
            return Err(UrlFault::OtherOrigin);
        }
        if self.holds(&found) { Ok(found) } else { Err(UrlFault::Climbs) }
    }

    /// True if another URL is of the same server, and its path below this one's last slash.
    #[must_use]
    pub fn holds(&self, other: &Self) -> bool {
        let base = self.url.path();
        let folder = base.get(..=base.rfind('/').unwrap_or(0)).unwrap_or("/");
        other.origin() == self.origin() && other.url.path().starts_with(folder)
    }

    /// Reads where a server says to look instead. It is decided anew, like any other.
    pub fn redirected(&self, location: &str) -> Result<Self, UrlFault> {
        check_characters(location)?;
        let url = self.url.join(location).map_err(|_| UrlFault::Form)?;
        Self::absolute(url.as_str())
    }

    /// The same with more names and values in its query, behind those that it has.
    pub fn with_query<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut changed = self.clone();
        let mut pairs = pairs.into_iter().peekable();
        if pairs.peek().is_some() {
            changed.url.query_pairs_mut().extend_pairs(pairs);
        }
        changed
    }

    /// True if its query has that name.
    #[must_use]
    pub fn queries(&self, name: &str) -> bool {
        self.url.query_pairs().any(|(known, _)| known == name)
    }

    /// The same as a folder: what is below it begins with all of its path.
    pub fn folder(&self) -> Self {
        let mut changed = self.clone();
        if !changed.url.path().ends_with('/') {
            let path = format!("{}/", changed.url.path());
            changed.url.set_path(&path);
        }
        changed.url.set_query(None);
        changed
    }

    /// The URL, written in the one way that it is used.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The path as it is sent, read once: decoded, by its components; empty ones count as nothing,
    /// and so do query and fragment. `None` where servers may read it in more than one way: a
    /// component holds a slash, a backslash, a semicolon, a control character, what is no UTF-8 or
    /// what could be decoded once more; or it is longer than a path of a policy.
    pub fn path(&self) -> Option<RootedPath> {
        let written = self.url.path().split('/').filter(|part| !part.is_empty());
        let components: Option<Vec<String>> = written.map(component).collect();
        RootedPath::new(Root::named(URL_ROOT).ok()?, components?).ok()
    }

    /// True if it uses https.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host or address of the connection.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The port, also where it is the usual one.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The resources that a token must permit: the host or the address, and the port.
    pub fn resources(&self) -> [Resource; 2] {
        let place = match &self.place {
            Place::Name(name) => Resource::Host(name.clone()),
            Place::Address(address) => Resource::Addr(*address),
        };
        [place, Resource::Port(self.port)]
    }

    /// The identity of a server: secrets go to no other.
    pub fn origin(&self) -> (bool, &Place, u16) {
        (self.is_secure(), &self.place, self.port)
    }
}

/// A component of a path, where it can be read in one way only.
fn component(written: &str) -> Option<String> {
    let decoded = String::from_utf8(decode(written.as_bytes())).ok()?;
    let is_odd = |c: char| c.is_control() || matches!(c, '/' | '\\' | ';');
    let again = decode(decoded.as_bytes()) != decoded.as_bytes();
    (!again && !decoded.contains(is_odd)).then_some(decoded)
}

fn check_characters(text: &str) -> Result<(), UrlFault> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlFault::TooLong);
    }
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    if text.contains(is_bad) { Err(UrlFault::Character) } else { Ok(()) }
}

/// The host and the port of an authority, each as it is written.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), UrlFault> {
    let behind = authority.rfind(']').map_or(0, |end| end.saturating_add(1));
    let rest = authority.get(behind..).unwrap_or_default();
    let Some((before, port)) = rest.split_once(':') else { return Ok((authority, None)) };
    let number: u16 = port.parse().map_err(|_| UrlFault::Port)?;
    // No sign, no zeros before it, not nothing.
    if number == 0 || number.to_string() != port {
        return Err(UrlFault::Port);
    }
    let end = behind.saturating_add(before.len());
    Ok((authority.get(..end).unwrap_or_default(), Some(number)))
}

/// The parsed place, if it is the written one.
fn place_of(url: &Url, written: &str) -> Result<Place, UrlFault> {
    match url.host() {
        Some(Parsed::Domain(parsed)) => {
            let name = parsed.strip_suffix('.').unwrap_or(parsed);
            let plain = written.strip_suffix('.').unwrap_or(written);
            if !plain.eq_ignore_ascii_case(name) {
                return Err(UrlFault::Host);
            }
            Host::new(name).map(Place::Name).map_err(|_| UrlFault::Host)
        }
        // The forms of the C library are read as addresses by some, and as names by others.
        Some(Parsed::Ipv4(address)) if address.to_string() == written => {
            Ok(Place::Address(address.into()))
        }
        Some(Parsed::Ipv6(address)) => {
            let inner = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            match inner.map(str::parse::<std::net::Ipv6Addr>) {
                Some(Ok(read)) if address == read => Ok(Place::Address(address.into())),
                _ => Err(UrlFault::Host),
            }
        }
        Some(Parsed::Ipv4(_)) | None => Err(UrlFault::Host),
    }
}

/// True if a path goes up, as it stands or once it is decoded.
fn climbs(path: &str) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..=DECODED_MAX {
        let mut parts = bytes.split(|byte| matches!(byte, b'/' | b'\\' | b';'));
        if parts.any(|part| part == b".." || part == b".") || bytes.contains(&0) {
            return true;
        }
        let decoded = decode(&bytes);
        if decoded == bytes {
            return false;
        }
        bytes = decoded;
    }
    false
}

/// Decodes `%XX` once.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let hex = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if let (b'%', [high, low, behind @ ..]) = (first, more)
            && let (Some(high), Some(low)) = (hex(high), hex(low))
        {
            decoded.push(high << 4 | low);
            rest = behind;
        } else {
            decoded.push(*first);
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use UrlFault::{Character, Climbs, Form, Host as NoHost, Port, TooLong, UserInfo};

    fn read(text: &str) -> Result<String, UrlFault> {
        Target::absolute(text).map(|target| target.as_str().to_owned())
    }

    #[test]
    fn unambiguous_url_is_read() {
        for (text, url) in [
            ("https://example.com", "https://example.com/"),
            ("HTTPS://EXAMPLE.com:443/a?b#c", "https://example.com/a?b"),
            ("http://example.com:8080/", "http://example.com:8080/"),
            ("https://example.com./x", "https://example.com/x"),
            ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
            ("https://example.com/a/../b/./c", "https://example.com/b/c"),
            ("https://example.com/\u{e9}?q=\u{e9}", "https://example.com/%C3%A9?q=%C3%A9"),
            ("https://example.com/group%2Fproject", "https://example.com/group%2Fproject"),
            ("https://example.com/a?u=http://x@y", "https://example.com/a?u=http://x@y"),
            ("https://8.8.8.8/", "https://8.8.8.8/"),
            ("https://[2001:4860:4860::8888]:8443/", "https://[2001:4860:4860::8888]:8443/"),
            ("https://[0:0:0:0:0:0:0:1]/", "https://[::1]/"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(url), "{text}");
        }
        let target = Target::absolute("http://example.com").unwrap();
        assert_eq!((target.port(), target.is_secure()), (80, false));
        let target = Target::absolute("https://[::1]:1/").unwrap();
        assert_eq!(target.place(), &Place::Address("::1".parse().unwrap()));
    }

    /// The forms of which two parsers make two things, and those that lead elsewhere than they seem.
    #[test]
    fn ambiguous_url_is_refused() {
        let long = format!("https://example.com/{}", "x".repeat(URL_BYTES_MAX));
        let label = format!("https://{}.example/", "x".repeat(64));
        for (text, fault) in [
            ("", Form),
            ("example.com", Form),
            ("/a", Form),
            ("//example.com/", Form),
            ("https:example.com", Form),
            ("https:/example.com", Form),
            ("https:///example.com", Form),
            ("https:\\\\example.com", Character),
            ("https://\\example.com", Character),
            ("ftp://example.com/", Form),
            ("file:///etc/passwd", Form),
            ("gopher://127.0.0.1:6379/_x", Form),
            ("javascript:alert(1)//://x", Form),
            ("data:text/html,x", Form),
            ("https://user@example.com/", UserInfo),
            ("https://user:pw@example.com/", UserInfo),
            ("https://example.com@evil.test/", UserInfo),
            ("https://a@b@evil.test/", UserInfo),
            ("https://1.1.1.1 &@2.2.2.2# @3.3.3.3/", Character),
            ("https://127.1.1.1:80\\@127.2.2.2:80/", Character),
            ("https://127.1.1.1:80:\\@@127.2.2.2:80/", Character),
            ("https://exam\tple.com/", Character),
            ("https://exam\nple.com/", Character),
            (" https://example.com/", Character),
            ("https://example.com/\r\nX: y", Character),
            ("https://example.com/\0", Character),
            ("https://ex%61mple.com/", Character),
            ("https://example.com%2f@evil.test/", UserInfo),
            ("https://example.com%00.evil.test/", Character),
            ("https://\u{430}llowed.test/", Character),
            ("https://\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}/", Character),
            ("https://169\u{3002}254\u{3002}169\u{3002}254/", Character),
            ("https://exa\u{ad}mple.com/", Character),
            ("https://127.1/", NoHost),
            ("https://0/", NoHost),
            ("https://0177.0.0.1/", NoHost),
            ("https://0x7f000001/", NoHost),
            ("https://2130706433/", NoHost),
            ("https://127.0.0.1./", NoHost),
            ("https://256.256.256.256/", NoHost),
            ("https://1.2.3.4.5/", NoHost),
            ("https://[fe80::1%25eth0]/", Character),
            ("https://[::1", Port),
            ("https://[::ffff:1.2.3]/", NoHost),
            ("https://a..b/", NoHost),
            ("https://.a/", NoHost),
            ("https://a_b.example/", NoHost),
            ("https://-a.example/", NoHost),
            ("https://xn--a/", NoHost),
            (&label, NoHost),
            ("https://example.com:/", Port),
            ("https://example.com:0/", Port),
            ("https://example.com:00443/", Port),
            ("https://example.com:65536/", Port),
            ("https://example.com:+443/", Port),
            ("https://example.com:80:80/", Port),
            ("https://example.com/..%2f..%2fx", Climbs),
            ("https://example.com/%252e%252e%252fx", Climbs),
            ("https://example.com/a%5c..%5cb", Climbs),
            ("https://example.com/a/..;/b", Climbs),
            ("https://example.com/a%00b", Climbs),
            (&long, TooLong),
        ] {
            assert_eq!(read(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn a_path_stays_below_its_base() {
        let base = Target::absolute("https://api.example.com/v1/").unwrap();
        let below = |path: &str| base.below(path).map(|found| found.as_str().to_owned());
        for (path, url) in [
            ("", "https://api.example.com/v1/"),
            ("users", "https://api.example.com/v1/users"),
            ("users?q=a:b", "https://api.example.com/v1/users?q=a:b"),
            ("?q", "https://api.example.com/v1/?q"),
            ("/v1/users#x", "https://api.example.com/v1/users"),
            ("a/b%2Fc", "https://api.example.com/v1/a/b%2Fc"),
        ] {
            assert_eq!(below(path).as_deref(), Ok(url), "{path}");
        }
        for (path, fault) in [
            ("//evil.test/x", Form),
            ("\\\\evil.test\\x", Character),
            ("/\\evil.test", Character),
            ("https:evil.test", Form),
            ("https://evil.test/", Form),
            ("javascript:x", Form),
            ("a:b", Form),
            ("/users", Climbs),
            ("/v1", Climbs),
            ("/v1x/a", Climbs),
            ("../admin", Climbs),
            ("a/../../admin", Climbs),
            ("a/../b", Climbs),
            ("%2e%2e/admin", Climbs),
            ("..%2fadmin", Climbs),
            ("%252e%252e/admin", Climbs),
            ("a\tb", Character),
        ] {
            assert_eq!(below(path), Err(fault), "{path}");
        }
        let file = Target::absolute("https://api.example.com/v1").unwrap();
        assert_eq!(file.below("x").unwrap().as_str(), "https://api.example.com/x");
    }

    /// A redirect's target is read as strictly as an agent's URL.
    #[test]
    fn a_redirect_is_read_anew() {
        let from = Target::absolute("https://example.com/a/b?c").unwrap();
        let led = |to: &str| from.redirected(to).map(|found| found.as_str().to_owned());
        assert_eq!(led("x").as_deref(), Ok("https://example.com/a/x"));
        assert_eq!(led("/x").as_deref(), Ok("https://example.com/x"));
        assert_eq!(led("//other.test/x").as_deref(), Ok("https://other.test/x"));
        assert_eq!(led("http://example.com/").as_deref(), Ok("http://example.com/"));
        // An address in another form is an address once it is parsed: it is decided as that.
        assert_eq!(led("https://2130706433/x").as_deref(), Ok("https://127.0.0.1/x"));
        assert_eq!(led("https://ex\u{ad}ample.com/").as_deref(), Ok("https://example.com/"));
        for (to, fault) in [
            ("file:///etc/passwd", Form),
            ("gopher://127.0.0.1/", Form),
            ("https://u:p@example.com/", UserInfo),
            ("\\\\evil.test", Character),
            ("https://example.com:0/", Port),
        ] {
            assert_eq!(led(to), Err(fault), "{to}");
        }
    }
}
