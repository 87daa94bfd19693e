//! Answers that are signed on another machine, and brought back as a file.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use syscap::Beside;
use syscap::approvals::{CarriedAnswer, CarriedAsk, Unsound};
use syscap::format::{
    ApprovalAnswer, ApprovalBody, Canonical, Control, ControlBody as _, Head, HomeId, Item, Leaf,
    PublicKey, RecordKind, Role, Salt, Seq, TEXT_BYTES_MAX, VaultText, json,
};
use syscap::keys::{KeyFile, KeyUse};

use super::shown::{recorded, text};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out, array, hex};
use crate::signing::salted;
use crate::{keys, parse, runtime};

/// The type of a file that carries a waiting call.
const ASK: &str = "syscap/ask/v1";
/// The type of a file that carries an answer.
const ANSWER: &str = "syscap/answer/v1";
/// Longest file, in bytes: arguments of a megabyte in hexadecimal digits, and what goes with them.
const FILE_BYTES_MAX: usize = 4 << 20;

/// Sign a carried call.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("answer").required(true).args(["approve", "deny"]))]
pub(crate) struct Sign {
    /// The file that `approvals export` wrote.
    file: PathBuf,
    /// The file of the key that signs: one of the approvers'.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The home that it must be for, as `syscap top` names it: `home_id`, with `--once --json`.
    #[arg(long, value_name = "HEX", value_parser = parse::home)]
    home_id: Option<HomeId>,
    /// Let it run, once.
    #[arg(long)]
    approve: bool,
    /// Refuse it.
    #[arg(long)]
    deny: bool,
    /// Why: on record as a commitment, the text in the vault. For a denial the agent is told the
    /// reason.
    #[arg(long, value_name = "TEXT", value_parser = parse::why)]
    because: Option<String>,
}

/// Bring a signed answer.
#[derive(Args, Debug)]
pub(crate) struct Bring {
    /// The home.
    home: PathBuf,
    /// The file that `approvals sign` wrote.
    file: PathBuf,
}

/// `approvals export`.
pub(super) fn export(home: &Path, ask: u64, out: &mut Out) -> Ended {
    let carried = runtime::look(home)?.carry(Seq::new(ask))?;
    let none = || Failure::Usage {
        what: format!("{ask}"),
        advice: "no call waits under that record that can be shown: see `syscap approvals list`"
            .to_owned(),
    };
    out.line(&written(&carried.ok_or_else(none)?))?;
    Ok(Exit::Done)
}

impl Sign {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let Self { file, key, home_id, deny, because, .. } = self;
        let carried = read(&file, ASK, asked)?;
        let unsound = |why: Unsound| match why {
            Unsound::Signer(why) => syscap::Error::Signer(why).into(),
            why => bad(&file, &why.to_string()),
        };
        if home_id.is_some_and(|home| home != carried.home) {
            return Err(bad(&file, &format!("is of another home: {}", carried.home)));
        }
        let checked = carried.check().map_err(unsound)?;
        // What is signed is what is shown; standard output is the file's.
        let mut aside = Out::aside();
        aside.line(&format!("home       {}", carried.home))?;
        text(&mut aside, checked.call())?;
        aside.flush()?;
        let key = KeyFile::read_as(&key, KeyUse::Role(Role::Approver))?;
        let why = because.as_deref().map(salted::<ApprovalBody>).transpose()?;
        let answer = if deny { ApprovalAnswer::Deny } else { ApprovalAnswer::Once };
        // Whether it may be signed at all is known before a person is asked for a passphrase.
        checked.may_sign(&key.public_key()).map_err(unsound)?;
        let secret = keys::unsealed(&key)?;
        let sign = |message: &[u8]| Ok(secret.sign(message));
        let answer = checked.sign(answer, why, &secret.public_key(), sign).map_err(unsound)?;
        out.line(&answered(&answer))?;
        Ok(Exit::Done)
    }
}

impl Bring {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let Self { home, file } = self;
        let CarriedAnswer { home: of, ask, control, why } = read(&file, ANSWER, answer)?;
        if runtime::look(&home)?.kernel().home() != of {
            return Err(bad(&file, "is of another home"));
        }
        let body = ApprovalBody::from_bytes(&control.body);
        let body = body.map_err(|_| bad(&file, "has no answer in it"))?;
        let beside = why.map_or(Beside::Nothing, Beside::Why);
        let seq = runtime::with(&home, |access| {
            Ok(access.submit_with(RecordKind::Approval, control, &beside)?)
        })?;
        recorded(out, ask, body.answer, seq)
    }
}

fn bad(file: &Path, advice: &str) -> Failure {
    Failure::Usage { what: file.display().to_string(), advice: advice.to_owned() }
}

/// Reads a file of that form.
fn read<T>(path: &Path, form: &str, of: fn(Item<'_>) -> Option<T>) -> Result<T, Failure> {
    let file = File::open(path).map_err(Failure::file(path))?;
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(Failure::file(path))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(bad(path, "is longer than such a file is"));
    }
    let none = || bad(path, &format!("is no file of the form {form}"));
    let value: Canonical = json::to_data(&bytes).map_err(|_| none())?;
    let value = value.item();
    let named = value.get("form").and_then(Item::as_text) == Some(form);
    named.then(|| of(value)).flatten().ok_or_else(none)
}

fn written(carried: &CarriedAsk) -> String {
    let CarriedAsk { home, ask, head, record, salt, arguments, texts, keys } = carried;
    let key = |(key, counter): &(PublicKey, u64)| {
        Object::new().shown("key", key).uint("counter", *counter).finish()
    };
    let end = Object::new().uint("seq", head.seq.get()).shown("leaf", head.leaf);
    Object::new()
        .text("form", ASK)
        .shown("home", home)
        .uint("ask", ask.get())
        .json("head", &end.finish())
        .text("record", &hex(record))
        .text("salt", &hex(salt.as_bytes()))
        .text("arguments", &hex(arguments))
        .json("texts", &array(texts.iter().map(salted_text)))
        .json("keys", &array(keys.iter().map(key)))
        .finish()
}

fn salted_text(text: &VaultText) -> String {
    let object = Object::new().uint("field", text.field).text("salt", &hex(text.salt.as_bytes()));
    object.text("text", &text.text).finish()
}

fn answered(answer: &CarriedAnswer) -> String {
    let CarriedAnswer { home, ask, control, why } = answer;
    let object = Object::new().text("form", ANSWER).shown("home", home).uint("ask", ask.get());
    let object = object.text("control", &hex(&control.to_bytes()));
    object.json("why", &why.as_ref().map_or_else(|| "null".to_owned(), salted_text)).finish()
}

fn asked(value: Item<'_>) -> Option<CarriedAsk> {
    let head = value.get("head")?;
    let key = |item: Item<'_>| {
        Some((parse::key(item.get("key")?.as_text()?).ok()?, item.get("counter")?.as_uint()?))
    };
    Some(CarriedAsk {
        home: HomeId::from_hex(value.get("home")?.as_text()?)?,
        ask: Seq::new(value.get("ask")?.as_uint()?),
        head: Head {
            seq: Seq::new(head.get("seq")?.as_uint()?),
            leaf: Leaf::from_hex(head.get("leaf")?.as_text()?)?,
        },
        record: bytes(value.get("record")?)?,
        salt: salt(value.get("salt")?)?,
        arguments: bytes(value.get("arguments")?)?,
        texts: value.get("texts")?.elements().map(read_text).collect::<Option<_>>()?,
        keys: value.get("keys")?.elements().map(key).collect::<Option<_>>()?,
    })
}

fn answer(value: Item<'_>) -> Option<CarriedAnswer> {
    let why = value.get("why")?;
    Some(CarriedAnswer {
        home: HomeId::from_hex(value.get("home")?.as_text()?)?,
        ask: Seq::new(value.get("ask")?.as_uint()?),
        control: Control::from_bytes(&bytes(value.get("control")?)?).ok()?,
        why: if why.is_null() { None } else { Some(read_text(why)?) },
    })
}

fn read_text(item: Item<'_>) -> Option<VaultText> {
    let text = item.get("text")?.as_text()?;
    let short = text.len() <= TEXT_BYTES_MAX;
    let (field, salt) = (item.get("field")?.as_uint()?, salt(item.get("salt")?)?);
    short.then(|| VaultText { salt, field, text: Box::from(text) })
}

fn salt(item: Item<'_>) -> Option<Salt> {
    Some(Salt::from_bytes(bytes(item)?.try_into().ok()?))
}

fn bytes(item: Item<'_>) -> Option<Vec<u8>> {
    parse::hex(item.as_text()?)
}
