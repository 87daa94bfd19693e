//! Scopes, read from the texts that a person writes: one text a value.

use alloc::vec::Vec;
use core::{net::IpAddr, str::FromStr};

use super::{Cidr, PortRange, Scope, ScopeType};

impl Scope {
    /// Reads the scope of a type from texts: names and host patterns as they are, ports as `443` or
    /// `8000-8080`, blocks as `10.0.0.0/8` or one address, integers as `1..1000`. It permits what
    /// any of the texts permits. `None` where a text is of another form, where there is none, where
    /// there are more than the type takes, and for paths.
    pub fn read(kind: ScopeType, values: &[&str]) -> Option<Self> {
        let scope = match kind {
            ScopeType::Names => Scope::names(values),
            ScopeType::Hosts => Scope::hosts(values),
            ScopeType::Ports => Scope::ports(each(values, ports)?),
            ScopeType::Cidrs => Scope::cidrs(each(values, block)?),
            ScopeType::Ints => return ints(values),
            // A path comes with rights, so no text says all of it.
            ScopeType::Paths => return None,
        };
        scope.ok()
    }
}

fn each<T>(values: &[&str], read: fn(&str) -> Option<T>) -> Option<Vec<T>> {
    values.iter().map(|text| read(text)).collect()
}

/// `9`, or `1..1000` for all integers between the two, both included.
fn ints(values: &[&str]) -> Option<Scope> {
    let [text] = values else { return None };
    let (least, greatest) = text.split_once("..").unwrap_or((text, text));
    let int = |text: &str| i128::from_str(text).ok().filter(|_| !text.starts_with('+'));
    Scope::ints(int(least)?, int(greatest)?).ok()
}

/// `443`, or `8000-8080`.
fn ports(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    PortRange::new(digits(first)?, digits(last)?).ok()
}

/// `10.0.0.0/8`, or one address.
fn block(text: &str) -> Option<Cidr> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (IpAddr::from_str(address).ok()?, digits(prefix)?),
        None => {
            let address = IpAddr::from_str(text).ok()?;
            (address, if address.is_ipv4() { 32 } else { 128 })
        }
    };
    Cidr::new(address, prefix).ok()
}

/// Digits only: no sign, no spaces.
fn digits<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
