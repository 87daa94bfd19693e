//! The keys in a home: whether they are those on record, and what they are protected by.

use std::path::PathBuf;

use syscap::Home;
use syscap::format::{Role, recovery_hash};
use syscap::kernel::Kernel;
use syscap::keys::{KeyFile, KeyUse, Rotation};

use super::findings::{Findings, Level};
use crate::{exit::Failure, keys::list::here};

/// Every file that may hold a key.
pub(super) fn files(home: &Home) -> Vec<PathBuf> {
    let own = Role::IN_USE.map(|role| KeyUse::Role(role).path(&home.keys()));
    let next = own.clone().map(|path| path.with_extension("key.next"));
    let mut all = Vec::from([KeyUse::Recovery.path(&home.keys())]);
    all.extend(own.into_iter().chain(next));
    all
}

/// True if a person must unseal a role's key before it signs.
pub(super) fn is_sealed(home: &Home, role: Role) -> bool {
    here(home, KeyUse::Role(role)).is_ok_and(|file| file.is_some_and(|file| file.is_sealed()))
}

pub(super) fn look(
    findings: &mut Findings<'_>,
    home: &Home,
    kernel: &Kernel,
) -> Result<(), Failure> {
    if home.keys().exists() {
        let mut open = Vec::new();
        for role in Role::IN_USE {
            role_of(findings, home, kernel, role, &mut open)?;
        }
        let text = "in the home: that protects what is not sealed against nobody who owns the \
                    folder";
        findings.note("keys", text)?;
        seals(home, findings, &open)?;
    } else {
        findings.note("keys", "not in the home; this command can't see where they lie")?;
    }
    recovery(findings, home, kernel)
}

fn role_of(
    findings: &mut Findings<'_>,
    home: &Home,
    kernel: &Kernel,
    role: Role,
    open: &mut Vec<KeyUse>,
) -> Result<(), Failure> {
    let on_record = |file: &KeyFile| kernel.roles().holds(role, &file.public_key());
    match Rotation::left(&home.keys(), role) {
        Ok(None) => {}
        Ok(Some(_)) => {
            let text = format!(
                "a rotation of the {role} key broke off; `syscap keys rotate HOME --role {role}` \
                 goes on with it"
            );
            findings.note("keys", &text)?;
        }
        Err(error) => findings.bad("keys", &error.to_string())?,
    }
    match here(home, KeyUse::Role(role)) {
        Ok(Some(file)) => {
            if KeyUse::SEALED.contains(&file.key_use()) && !file.is_sealed() {
                open.push(file.key_use());
            }
            let next = Rotation::left(&home.keys(), role).ok().flatten();
            if !on_record(&file) && !next.as_ref().is_some_and(on_record) {
                let text = format!("{role} key is not one on record: it signs nothing");
                findings.bad("keys", &text)?;
            }
            Ok(())
        }
        Ok(None) => findings.note("keys", &format!("{role}: there is no key for this role here")),
        Err(error) => findings.bad("keys", &error.to_string()),
    }
}

fn seals(home: &Home, findings: &mut Findings<'_>, open: &[KeyUse]) -> Result<(), Failure> {
    let secrets = match home.keys().join("secrets.key").exists() {
        true => "; the key of secrets never is, since tools need it at each call",
        false => "",
    };
    if open.is_empty() {
        let text = "policy, approver and operator: whoever changes anything is asked";
        return findings.fine("sealed", &format!("{text}{secrets}"));
    }
    let names: Vec<&str> = open.iter().map(|key_use| key_use.name()).collect();
    let text = format!(
        "not sealed (empty passphrase): {}: every program of this user can sign with them; \
         `syscap keys rotate HOME --role ROLE` at a terminal seals one{secrets}",
        names.join(", ")
    );
    findings.note("sealed", &text)
}

fn recovery(findings: &mut Findings<'_>, home: &Home, kernel: &Kernel) -> Result<(), Failure> {
    let Some(hash) = kernel.recovery() else {
        let text = "no recovery key on record: who steals the operator's key has the home for good";
        return findings.note("recovery", text);
    };
    match here(home, KeyUse::Recovery) {
        Ok(None) => findings.fine("recovery", "on record, and its key is not in the home"),
        Ok(Some(file)) => {
            let ours = recovery_hash(&file.public_key()) == hash;
            let seal = if file.is_sealed() { "" } else { ", not sealed" };
            let (level, text) = match ours {
                true => (Level::Note, format!("its key lies in the home{seal}: move it elsewhere")),
                false => (Level::Bad, "the key in the home is not the one on record".to_owned()),
            };
            findings.add(level, "recovery", &text)
        }
        Err(error) => findings.bad("recovery", &error.to_string()),
    }
}
