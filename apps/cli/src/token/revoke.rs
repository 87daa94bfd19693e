//! `syscap revoke`: ends tokens, for ever.

use std::path::PathBuf;

use clap::Args;
use syscap::format::{
    control::{Revocation, Revoked, Role},
    id::{TextHash, TokenId},
    sign::PublicKey,
};

use crate::{
    exit::{Ended, Exit},
    output::{Object, Out},
    parse, runtime, signing,
};

/// What to end.
#[derive(Args, Debug)]
#[command(
    override_usage = "syscap revoke <HOME> <ID [--children]|--epoch N|--key HEX> [--because TEXT]",
    after_long_help = "\
What is revoked is refused, on the record; what runs already goes on, and its result is marked. It
can't be undone. An epoch ends all that was issued so far: say one more than the last time. A key
ends all that it has issued or holds, and nothing is issued by it or to it any more; where it is the
home's issuer, give that another key first (`syscap keys rotate`)."
)]
pub(crate) struct Revoke {
    /// The home.
    home: PathBuf,
    #[command(flatten)]
    what: What,
    /// End what was derived from the token so far, and not the token.
    #[arg(long, conflicts_with_all = ["epoch", "key"])]
    children: bool,
    /// Why: kept beside the log, which has a commitment to it.
    #[arg(long, value_name = "TEXT", value_parser = parse::why)]
    because: Option<String>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct What {
    /// A token, and all that was derived from it.
    #[arg(value_parser = parse::token)]
    id: Option<TokenId>,
    /// Every token that was issued in an epoch before this one, and what was derived from them.
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,
    /// Every token that this key has issued or holds, and what was derived from them.
    #[arg(long, value_name = "HEX", value_parser = parse::key)]
    key: Option<PublicKey>,
}

impl Revoke {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let (json, revocation) = match self.what {
            What { id: Some(id), .. } => {
                let json = Object::new().shown("token_id", id);
                let plain = (self.children, &self.because) == (false, &None);
                let revocation =
                    if self.children { Revocation::children(id) } else { Revocation::subtree(id) };
                // It reaches a holder of any version, and a full one.
                (json, if plain { Err(id) } else { Ok(revocation) })
            }
            What { epoch: Some(least), .. } => {
                (Object::new().uint("epoch", least), Ok(Revocation::epoch(least)))
            }
            What { key: Some(key), .. } => {
                (Object::new().shown("key", key), Ok(Revocation::key(key)))
            }
            // The command line is read so that there is one.
            What { .. } => return Ok(Exit::Done),
        };
        let seq = match revocation {
            Err(id) => runtime::operate(&self.home, |operator| operator.revoke(id))?,
            Ok(revocation) => {
                let body = |why: Option<TextHash>| Revocation { cause: why, ..revocation.clone() };
                let why = self.because.as_deref();
                signing::because(&self.home, Role::Revoker, body, why)?
            }
        };
        let json = json.uint("record", seq.get());
        out.both(&format!("revoked by record {seq}"), json)?;
        Ok(Exit::Done)
    }
}

/// What a revocation ended, in few words.
pub(crate) fn said(revocation: &Revocation) -> String {
    let short = |hash: String| hash.get(..12).map_or_else(String::new, |head| format!("{head}.."));
    match revocation.revoked() {
        Some(Revoked::Subtree(token)) => format!("token {}", short(token.to_string())),
        Some(Revoked::Children(token)) => format!("below token {}", short(token.to_string())),
        Some(Revoked::Epoch(least)) => format!("epochs below {least}"),
        Some(Revoked::Key(key)) => format!("key {}", short(key.to_string())),
        None => String::new(),
    }
}
