//! `syscap token show`.

use std::path::PathBuf;

use clap::Args;
use syscap::format::{Dimension, Encoder, Paths, Rights, Scope, TokenFlags, UnixMillis};
use syscap::view::TokenDetail;

use super::{TokenName, now};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array, hex, quote};
use crate::runtime;

/// Which token.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The token.
    #[arg(value_parser = TokenName::parse)]
    id: TokenName,
}

impl Show {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let digits = self.id.digits().to_owned();
        let found = match runtime::asked(&self.home, move |access| access.tokens(&digits)) {
            Some(found) if !found.is_empty() => found,
            // A very old one the server does not look for.
            _ => {
                let log = runtime::look(&self.home)?;
                log.tokens_named(self.id.digits(), now(log.kernel().now()))
            }
        };
        let token = self.id.only(found, |token| token.info.id, &self.home)?;
        match out.form() {
            Form::Text => text(out, &token)?,
            Form::Json => out.line(&json(&token))?,
        }
        Ok(Exit::Done)
    }
}

fn text(out: &mut Out, token: &TokenDetail) -> Result<(), Failure> {
    let TokenDetail { info, body, .. } = token;
    let none = || "none".to_owned();
    let chain = body.parent.map_or_else(none, |parent| parent.to_string());
    let renews = body.renews.map_or_else(none, |renewed| renewed.to_string());
    let holder = body.holder.map_or_else(none, |key| hex(key.as_bytes()));
    let policy = body.policy.map_or_else(|| "any".to_owned(), |policy| policy.to_string());
    for (name, value) in [
        ("token", info.id.to_string()),
        ("standing", info.standing.name().to_owned()),
        ("agent", body.agent.to_string()),
        ("valid", format!("{} to {}", body.not_before, body.expires)),
        ("issued", format!("by record {}, with key {}", info.issued, hex(body.issuer.as_bytes()))),
        ("audience", body.audience.to_string()),
        ("holder", holder),
        ("parent", format!("{chain} (depth {} of {})", body.depth, body.depth_max)),
        ("renews", renews),
        ("renew by", token.renew_by.map_or_else(none, |by| by.to_string())),
        ("list", token.fresh_until.map_or_else(none, list)),
        ("epoch", body.epoch.to_string()),
        ("policy", policy),
        ("flags", flags(body.flags).join(", ")),
        ("nonce", hex(&body.nonce)),
        ("ext", syscap::format::json::from_data(body.ext.item())),
    ] {
        out.line(format!("{name:<9} {value}").trim_end())?;
    }
    for (tool, grant) in body.grants.iter() {
        out.line(&format!("grant     {tool}"))?;
        for (dimension, scope) in grant.iter() {
            out.line(&format!("          {dimension}: {scope}"))?;
        }
    }
    out.line(&format!(
        "{:<18} {:>14} {:>14} {:>14} {:>14}",
        "budget", "limit", "used", "held", "left"
    ))?;
    for dimension in Dimension::ALL {
        out.line(&format!(
            "  {:<16} {:>14} {:>14} {:>14} {:>14}",
            dimension.name(),
            body.budget.amounts().get(dimension),
            info.used.get(dimension),
            info.held.get(dimension),
            info.left.get(dimension)
        ))?;
    }
    Ok(())
}

/// Until when the home's list of revocations is new enough.
fn list(until: UnixMillis) -> String {
    match until.get() {
        0 => "needs one (`syscap revoke HOME --list FILE`)".to_owned(),
        _ => format!("new enough until {until}"),
    }
}

pub(crate) fn json(token: &TokenDetail) -> String {
    let TokenDetail { info, body, .. } = token;
    let optional = |o: Object, key: &str, value: Option<String>| match value {
        Some(value) => o.text(key, &value),
        None => o.json(key, "null"),
    };
    let object = Object::new()
        .shown("token_id", info.id)
        .text("standing", info.standing.name())
        .flag("revoked", info.revoked)
        .flag("expired", token.at >= body.expires)
        .shown("agent", &body.agent)
        .uint("version", body.version)
        .uint("issued_by_record", info.issued.get())
        .text("issuer", &hex(body.issuer.as_bytes()))
        .shown("audience", body.audience)
        .text("nonce", &hex(&body.nonce))
        .uint("not_before_ms", body.not_before.get())
        .shown("not_before", body.not_before)
        .uint("expires_ms", body.expires.get())
        .shown("expires", body.expires)
        .uint("epoch", body.epoch)
        .uint("depth", body.depth)
        .uint("depth_max", body.depth_max)
        .json("flags", &array(flags(body.flags).iter().map(|flag| quote(flag))))
        .json("ext", &syscap::format::json::from_data(body.ext.item()));
    let object = optional(object, "holder", body.holder.map(|key| hex(key.as_bytes())));
    let object = optional(object, "parent", body.parent.map(|parent| parent.to_string()));
    let object = optional(object, "renew_by", token.renew_by.map(|by| by.to_string()));
    let object = optional(object, "fresh_until", token.fresh_until.map(|until| until.to_string()));
    let object = optional(object, "renews", body.renews.map(|renewed| renewed.to_string()));
    let object = optional(object, "policy", body.policy.map(|policy| policy.to_string()));
    let mut grants = Object::new();
    for (tool, grant) in body.grants.iter() {
        let scopes = grant.iter().fold(Object::new(), |o, (name, s)| o.json(name, &scope(s)));
        grants = grants.json(tool.as_str(), &scopes.finish());
    }
    let mut budget = Object::new();
    for dimension in Dimension::ALL {
        let row = Object::new()
            .uint("limit", body.budget.amounts().get(dimension))
            .uint("used", info.used.get(dimension))
            .uint("held", info.held.get(dimension))
            .uint("left", info.left.get(dimension));
        budget = budget.json(dimension.name(), &row.finish());
    }
    object.json("grants", &grants.finish()).json("budget", &budget.finish()).finish()
}

/// A scope as text, and paths rule by rule; of the others, what stands in the token.
fn scope(scope: &Scope) -> String {
    let object = Object::new().shown("text", scope);
    match scope {
        Scope::Paths(paths) => object.json("paths", &rules(paths)),
        scope => {
            let mut encoder = Encoder::new();
            scope.encode(&mut encoder);
            object.text("cbor", &hex(&encoder.into_bytes()))
        }
    }
    .finish()
}

fn rules(paths: &Paths) -> String {
    array(paths.rules().iter().map(|rule| {
        let object = Object::new().text("root", rule.path.root().name());
        let object = match rule.path.root().owner() {
            Some(owner) => object.shown("owner", owner),
            None => object.json("owner", "null"),
        };
        let rights = [(Rights::READ, "read"), (Rights::WRITE, "write"), (Rights::FOLLOW, "follow")]
            .into_iter()
            .filter(|(right, _)| right.leq(rule.rights))
            .map(|(_, name)| quote(name));
        object.text("below", rule.path.below()).json("rights", &array(rights)).finish()
    }))
}

fn flags(flags: TokenFlags) -> Vec<&'static str> {
    [(TokenFlags::READ_ONLY, "read_only"), (TokenFlags::TERMINAL, "terminal")]
        .into_iter()
        .filter_map(|(flag, name)| flags.has(flag).then_some(name))
        .collect()
}
