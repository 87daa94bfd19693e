//! `syscap token tree`.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use syscap::format::{Dimension, TokenId, UnixMillis};
use syscap::kernel::TokenView;
use syscap::view::TokenStanding;

use super::{TokenName, now};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out, array, quote};
use crate::runtime;

/// Which tokens.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    /// The home.
    home: PathBuf,
    /// Only this token, and what was derived from it.
    #[arg(value_parser = TokenName::parse)]
    id: Option<TokenName>,
}

/// Tokens by what they were derived from, in the order of their registration.
type Derived<'a> = BTreeMap<Option<TokenId>, Vec<TokenView<'a>>>;

impl Tree {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let home = runtime::look(&self.home)?;
        let kernel = home.kernel();
        let now = now(kernel.now());
        let mut derived = Derived::new();
        for token in kernel.tokens() {
            derived.entry(token.body.parent).or_default().push(token);
        }
        // A token is shown before those below it; there may be as many as a home has.
        let mut next: Vec<TokenView<'_>> = match TokenName::of_any(self.id.as_ref(), &self.home)? {
            Some(id) => {
                vec![kernel.token(&id).ok_or_else(|| Failure::unknown(id, &self.home))?]
            }
            None => derived.remove(&None).unwrap_or_default(),
        };
        next.reverse();
        let top = next.last().map_or(0, |token| token.body.depth);
        while let Some(token) = next.pop() {
            show(out, &token, top, now)?;
            next.extend(derived.remove(&Some(token.id)).into_iter().flatten().rev());
        }
        Ok(Exit::Done)
    }
}

fn show(out: &mut Out, token: &TokenView<'_>, top: u64, now: UnixMillis) -> Result<(), Failure> {
    let body = token.body;
    let standing = TokenStanding::of(token, now);
    let tools: Vec<&str> = body.grants.iter().map(|(tool, _)| tool.as_str()).collect();
    let (used, limit) =
        (token.used.get(Dimension::Calls), body.budget.amounts().get(Dimension::Calls));
    let indent = usize::try_from(body.depth.saturating_sub(top)).unwrap_or(0);
    let text = format!(
        "{:indent$}{}  {}  {}  calls {used} of {limit}  {}",
        "",
        token.id,
        body.agent,
        standing.name(),
        tools.join(","),
        indent = indent.saturating_mul(2),
    );
    let object = Object::new().shown("token_id", token.id);
    let object = match body.parent {
        Some(parent) => object.shown("parent", parent),
        None => object.json("parent", "null"),
    };
    let json = object
        .uint("depth", body.depth)
        .uint("depth_max", body.depth_max)
        .shown("agent", &body.agent)
        .text("standing", standing.name())
        .json("tools", &array(tools.iter().map(|tool| quote(tool))))
        .amounts("used", &token.used)
        .amounts("left", &token.left);
    out.both(&text, json)
}
