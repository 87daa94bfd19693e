//! URLs of the web platform's tests and of attackers: what is read is what the standard reads, and
//! leads where it says.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use syscap_syscalls::net::address::special;
use syscap_syscalls::net::target::{Place, Target};

/// Where the sources of a crate that is built with lie.
fn sources_of(name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &platform]);
    let output = cargo.arg("--manifest-path").arg(manifest).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = all["packages"].as_array().unwrap();
    let found = packages.iter().find(|package| package["name"] == name).unwrap();
    Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().to_path_buf()
}

fn shown(place: &Place) -> String {
    match place {
        Place::Name(name) => name.as_str().to_owned(),
        Place::Address(IpAddr::V4(address)) => address.to_string(),
        Place::Address(IpAddr::V6(address)) => format!("[{address}]"),
    }
}

/// `urltestdata.json` of the web platform's tests, as the crate `url` ships it.
#[test]
fn urls_read_as_the_web_platform_tests_say() {
    let path = sources_of("url").join("tests/urltestdata.json");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: the sources of url have no tests/urltestdata.json");
        return;
    };
    let cases: Value = serde_json::from_str(&text).unwrap();
    let (mut read, mut refused) = (0, 0);
    for case in cases.as_array().unwrap().iter().filter(|case| case.is_object()) {
        let input = case["input"].as_str().unwrap();
        let base = case["base"].as_str().and_then(|base| Target::absolute(base).ok());
        let found = Target::absolute(input);
        if let Ok(target) = &found {
            read += 1;
            assert_ne!(case["failure"], true, "{input:?} is no URL");
            let host = case["hostname"].as_str().unwrap();
            let host = host.strip_suffix('.').unwrap_or(host);
            assert_eq!(shown(target.place()), host, "{input:?}");
            let port = case["port"].as_str().unwrap();
            let usual = if target.is_secure() { 443 } else { 80 };
            assert_eq!(target.port(), port.parse().unwrap_or(usual), "{input:?}");
            assert!(case["username"] == "" && case["password"] == "", "{input:?}");
        } else {
            refused += 1;
        }
        // Against a base it stays there, whatever it is.
        if let Some(base) = base
            && let Ok(below) = base.below(input)
        {
            assert_eq!(below.origin(), base.origin(), "{input:?}");
            assert_ne!(case["failure"], true, "{input:?} is no URL");
            let host = case["hostname"].as_str().unwrap();
            assert_eq!(shown(below.place()), host, "{input:?}");
        }
    }
    println!("{read} read, {refused} refused");
    assert!(read >= 40 && refused >= 500, "{read} read, {refused} refused");
}

/// Attackers' URLs: none leads to an inner network unseen.
#[test]
fn no_url_of_the_corpus_leads_inside_unseen() {
    let named = std::env::var_os("SYSCAP_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let path = named.unwrap_or(beside).join("ssrf/patt_urls.txt");
    let Ok(text) = fs::read_to_string(path) else {
        println!("skipped: no SYSCAP_DATA");
        return;
    };
    let mut lines = 0;
    for line in text.lines() {
        lines += 1;
        let Ok(target) = Target::absolute(line) else { continue };
        if let Place::Address(address) = target.place() {
            assert!(special(*address).is_some(), "{line} leads to {address}");
        }
    }
    assert!(lines > 20, "{lines}");
}

/// Names of other scripts stand as A-labels or not at all: of `IdnaTestV2.txt` no source that is
/// not ASCII is read, and what is read is DNS's.
#[test]
fn only_names_of_dns_are_hosts() {
    let path = sources_of("idna").join("tests/IdnaTestV2.txt");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: the sources of idna have no tests/IdnaTestV2.txt");
        return;
    };
    let mut lines = 0;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let source = line.split(';').next().unwrap().trim();
        lines += 1;
        let Ok(target) = Target::absolute(&format!("https://{source}/")) else { continue };
        assert!(source.is_ascii(), "{source}");
        let host = shown(target.place());
        assert!(source.to_ascii_lowercase().starts_with(&host), "{source} is {host}");
    }
    assert!(lines > 5_000, "{lines}");
}
