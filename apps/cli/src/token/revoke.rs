//! `syscap revoke`: ends tokens, for ever.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{
    ControlBody as _, PublicKey, Revocation, RevocationList, Revoked, Role, Seq, TextHash, TokenId,
    UnixMillis,
};

use super::TokenName;
use super::hit::{self, Hit, Named};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out};
use crate::{parse, runtime, signing};

/// The tokens to end.
#[derive(Args, Debug)]
#[command(
    override_usage = "syscap revoke <HOME> <ID [--children]|--epoch N|--key HEX|--list FILE> \
                      [--because TEXT]",
    after_long_help = "\
What is revoked is refused, on the record; what runs already goes on, and its result is marked. It
can't be undone. An epoch ends all that was issued so far: say one more than the last time. A key
ends all that it has issued or holds, and nothing is issued by it or to it any more; where it is the
home's issuer, give that another key first (`syscap keys rotate`). A list is a file of token ids,
one a line, also of tokens that are not registered here and then never are; it may be empty, and
says that until now nothing else has ended: tokens issued with --fresh-within need to hear that.
How many tokens of this home it hit is said, with all that was derived from them, and how many of
these had not expired; tokens that had been revoked before count once more."
)]
pub(crate) struct Revoke {
    /// The home.
    home: PathBuf,
    #[command(flatten)]
    what: What,
    /// End what was derived from the token so far, and not the token.
    #[arg(long, conflicts_with_all = ["epoch", "key", "list"])]
    children: bool,
    /// Why: kept beside the log, which has a commitment to it.
    #[arg(long, value_name = "TEXT", value_parser = parse::why)]
    because: Option<String>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct What {
    /// A token, and all that was derived from it.
    #[arg(value_parser = TokenName::parse)]
    id: Option<TokenName>,
    /// Every token that was issued in an epoch before this one, and what was derived from them.
    #[arg(long, value_name = "N")]
    epoch: Option<u64>,
    /// Every token that this key has issued or holds, and what was derived from them.
    #[arg(long, value_name = "HEX", value_parser = parse::key)]
    key: Option<PublicKey>,
    /// The tokens of a file, and that until now these are all: `-` for standard input.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

impl Revoke {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let (json, revocation) = match self.what {
            What { id: Some(name), .. } => {
                let id = name.of(&self.home)?;
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
            What { list: Some(file), .. } => {
                let list = listed(&self.home, &file)?;
                let json = Object::new().uint("version", list.version);
                let why = self.because.as_deref();
                let body = |why| RevocationList { cause: why, ..list.clone() };
                let seq = signing::because(&self.home, Role::Revoker, body, why)?;
                return told(json, seq, hit::count(&self.home, &Named::List(&list)), out);
            }
            // The command line is read so that there is one.
            What { .. } => return Ok(Exit::Done),
        };
        let (seq, revocation) = match revocation {
            Err(id) => {
                let seq = runtime::operate(&self.home, |operator| operator.revoke(id))?;
                (seq, Revocation::subtree(id))
            }
            Ok(revocation) => {
                let body = |why: Option<TextHash>| Revocation { cause: why, ..revocation.clone() };
                let why = self.because.as_deref();
                (signing::because(&self.home, Role::Revoker, body, why)?, revocation)
            }
        };
        told(json, seq, hit::count(&self.home, &Named::One(&revocation)), out)
    }
}

fn told(json: Object, seq: Seq, hit: Option<Hit>, out: &mut Out) -> Ended {
    let json = json.uint("record", seq.get());
    let (text, json) = match hit {
        None => (String::new(), json.json("tokens", "null").json("unexpired", "null")),
        Some(Hit { tokens, unexpired }) => {
            let counted = match tokens {
                1 => "1 token".to_owned(),
                n => format!("{n} tokens"),
            };
            (
                format!(": {counted}, {unexpired} not expired"),
                json.uint("tokens", tokens).uint("unexpired", unexpired),
            )
        }
    };
    out.both(&format!("revoked by record {seq}{text}"), json)?;
    Ok(Exit::Done)
}

/// The list that a file makes: newer than the home's last one.
fn listed(home: &Path, file: &Path) -> Result<RevocationList, Failure> {
    let text = read(file).map_err(|source| Failure::File { path: file.to_path_buf(), source })?;
    let words = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let ids = words.filter(|word| !word.is_empty()).map(|word| {
        let advice = "is no token's id: one a line, 64 hexadecimal digits".to_owned();
        TokenId::from_hex(word).ok_or(Failure::Usage { what: word.to_owned(), advice })
    });
    let tokens: BTreeSet<TokenId> = ids.collect::<Result<_, _>>()?;
    let log = runtime::look(home)?;
    let last = log.kernel().list();
    let version = last.map_or(0, |last| last.version).saturating_add(1);
    let as_of = super::now(last.map_or(UnixMillis::new(0), |last| last.as_of));
    let tokens = tokens.into_iter().collect();
    let list = RevocationList { version, as_of, tokens, cause: None };
    if list.is_sound(last.map_or(0, |last| last.tokens.len())) {
        return Ok(list);
    }
    let advice = "names more than 1,024 tokens, or more of no token here than are kept: 65,536";
    Err(Failure::Usage { what: file.display().to_string(), advice: advice.to_owned() })
}

/// A file of ids, or what comes on standard input: so much of it that one which is longer than a
/// list may be is seen to be.
fn read(file: &Path) -> io::Result<String> {
    const BYTES_MAX: u64 = 1 << 20;
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        io::stdin().lock().take(BYTES_MAX).read_to_string(&mut text)?
    } else {
        File::open(file)?.take(BYTES_MAX).read_to_string(&mut text)?
    };
    match u64::try_from(read) {
        Ok(read) if read < BYTES_MAX => Ok(text),
        _ => Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than a list may be")),
    }
}

/// A revocation's target, in few words.
pub(crate) fn said(body: &[u8]) -> String {
    let short = |hash: String| hash.get(..12).map_or_else(String::new, |head| format!("{head}.."));
    if let Ok(list) = RevocationList::from_bytes(body) {
        return format!("list {} of {} tokens", list.version, list.tokens.len());
    }
    match Revocation::from_bytes(body).ok().and_then(|revocation| revocation.revoked()) {
        Some(Revoked::Subtree(token)) => format!("token {}", short(token.to_string())),
        Some(Revoked::Children(token)) => format!("below token {}", short(token.to_string())),
        Some(Revoked::Epoch(least)) => format!("epochs below {least}"),
        Some(Revoked::Key(key)) => format!("key {}", short(key.to_string())),
        None => String::new(),
    }
}
