//! A grant on the wire: what was said of it, in words, so that the holder makes the token's body.

use std::time::Duration;

use syscap_format::{
    cbor::{Canonical, Decoder, Item, Kind, MapBuilder, Profile},
    id::ToolId,
    limits::TOKEN_LIFE_MS_MAX,
    scope::{Rights, Scope},
    token::{self, TokenFlags},
};

use super::wire::{Broken, Fields, amounts, read_amounts, texts, written};
use crate::grant::Grant;

/// Most tools, paths and scopes that a grant may name: more than a token can hold, so that it
/// is the kernel that says so.
const NAMED_MAX: usize = 4_096;

pub(super) fn encode(grant: &Grant) -> Canonical {
    let paths = written(|encoder| {
        encoder.array(grant.paths.len());
        for (path, rights) in &grant.paths {
            encoder.array(2);
            encoder.text(path);
            encoder.uint(u64::from(rights.bits()));
        }
    });
    let scopes = written(|encoder| {
        encoder.array(grant.scopes.len());
        for (dimension, scope) in &grant.scopes {
            encoder.array(2);
            encoder.text(dimension);
            scope.encode(encoder);
        }
    });
    let apart = written(|encoder| {
        encoder.array(grant.apart.len());
        for (tool, grant) in &grant.apart {
            encoder.array(2);
            encoder.text(tool.as_str());
            encoder.array(grant.iter().count());
            for (dimension, scope) in grant.iter() {
                encoder.array(2);
                encoder.text(dimension);
                scope.encode(encoder);
            }
        }
    });
    MapBuilder::new()
        .text("agent", &grant.agent)
        .item("tools", texts(grant.tools.iter().map(String::as_str)).item())
        .item("paths", paths.item())
        .item("scopes", scopes.item())
        .item("apart", apart.item())
        .item("budget", amounts(grant.budget.amounts()).item())
        .uint("life_ms", grant.life_ms())
        .uint("flags", grant.flags.bits())
        .finish()
}

pub(super) fn decode(item: Item<'_>) -> Result<Grant, Broken> {
    let mut fields = Fields::of(item)?;
    let mut grant = Grant::to(fields.text("agent")?);
    let text = |item: Item<'_>| item.as_text().map(str::to_owned).ok_or(Broken::Form);
    grant.tools = fields.list("tools", NAMED_MAX, text)?;
    grant.paths = fields.list("paths", NAMED_MAX, |item| {
        let (path, rights) = pair(item)?;
        let bits = rights.as_uint().and_then(|bits| u8::try_from(bits).ok());
        Ok((text(path)?, bits.and_then(Rights::from_bits).ok_or(Broken::Form)?))
    })?;
    grant.scopes = fields.list("scopes", NAMED_MAX, |item| {
        let (dimension, scope) = pair(item)?;
        Ok((text(dimension)?, read_scope(scope)?))
    })?;
    grant.apart = fields.list("apart", NAMED_MAX, |item| {
        let (tool, scopes) = pair(item)?;
        if scopes.kind() != Kind::Array || scopes.count() > NAMED_MAX {
            return Err(Broken::Form);
        }
        let mut apart = token::Grant::new();
        for item in scopes.elements() {
            let (dimension, scope) = pair(item)?;
            apart = apart.with(&text(dimension)?, read_scope(scope)?);
        }
        Ok((tool.as_text().and_then(ToolId::new).ok_or(Broken::Form)?, apart))
    })?;
    for (dimension, amount) in read_amounts(fields.take("budget")?)?.iter() {
        grant.budget = grant.budget.with(dimension, amount);
    }
    grant.life = Duration::from_millis(fields.uint("life_ms")?);
    if grant.life > Duration::from_millis(TOKEN_LIFE_MS_MAX) {
        return Err(Broken::Form);
    }
    grant.flags = read_flags(fields.uint("flags")?)?;
    fields.end()?;
    Ok(grant)
}

fn pair(item: Item<'_>) -> Result<(Item<'_>, Item<'_>), Broken> {
    let mut parts = item.elements();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(first), Some(second), None) => Ok((first, second)),
        _ => Err(Broken::Form),
    }
}

fn read_scope(item: Item<'_>) -> Result<Scope, Broken> {
    let mut decoder = Decoder::new(item.as_bytes(), Profile::CONTROL);
    let scope = Scope::decode(&mut decoder).map_err(|_| Broken::Form)?;
    decoder.finish().map_err(|_| Broken::Form)?;
    Ok(scope)
}

/// The flags that these bits are; a bit that is not known takes away more than can be said here.
fn read_flags(bits: u64) -> Result<TokenFlags, Broken> {
    let known = [TokenFlags::READ_ONLY, TokenFlags::TERMINAL];
    let set = known.into_iter().filter(|flag| bits & flag.bits() != 0);
    let flags = set.fold(TokenFlags::default(), TokenFlags::and);
    if flags.bits() == bits { Ok(flags) } else { Err(Broken::Form) }
}

#[cfg(test)]
mod tests {
    use syscap_format::budget::{Budget, Dimension};

    use super::*;

    fn grant() -> Grant {
        Grant::to("team/a")
            .tools(["fs.read", "web.get"])
            .workspace()
            .read("shared/docs")
            .scope("host", Scope::hosts(["example.com", "*.example.org"]).unwrap())
            .scope("size", Scope::ints(-1, 7).unwrap())
            .tool_with(
                ToolId::new("db.get").unwrap(),
                token::Grant::new().with("table", Scope::names(["a", "b"]).unwrap()),
            )
            .budget(Budget::standard().with(Dimension::Calls, 7))
            .expires_in(Duration::from_secs(90))
            .read_only()
    }

    #[test]
    fn a_grant_comes_back_as_it_went() {
        let there = encode(&grant());
        let back = decode(there.item()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{:?}", grant()));
        assert_eq!(encode(&back), there);
    }

    /// Every entry is needed, none besides is taken, and each must be of its type.
    #[test]
    fn a_grant_of_another_form_is_refused() {
        let there = encode(&grant());
        let without = |left_out: &str| {
            let entries = there.item().entries().filter(|(key, _)| *key != left_out);
            entries.fold(MapBuilder::new(), |map, (key, item)| map.item(key, item))
        };
        for (key, _) in there.item().entries() {
            assert!(decode(without(key).finish().item()).is_err(), "without {key}");
            let other = without(key).boolean(key, true).finish();
            assert!(decode(other.item()).is_err(), "another {key}");
        }
        assert!(decode(without("").uint("more", 1).finish().item()).is_err());
        for flags in [4, 7, u64::MAX] {
            assert!(decode(without("").uint("flags", flags).finish().item()).is_err());
        }
    }
}
