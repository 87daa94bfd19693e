//! One value, changed into what `allowed` says of it. Nothing here knows any case: each rule is
//! for one form in which a refusal says what would do.

use serde_json::{Map, Number, Value, json};

use super::text::{base64, nearest};

/// What becomes of a value.
pub(crate) enum Change {
    To(Value),
    /// It is left out.
    Out,
}

/// The value as `allowed` wants it; `None` where that can't be told.
pub(crate) fn change(name: &str, value: &Value, got: &str, allowed: &str) -> Option<Change> {
    // "X or Y": the first that can be met is enough. Paths choose among all their roots.
    if !allowed.contains("below ") && allowed.contains(" or ") {
        let mut ways = allowed.split(" or ");
        return ways.find_map(|way| change(name, value, got, way.trim_matches(['(', ')'])));
    }
    // "X; Y": all must be met, one after the other.
    if allowed.contains("; ") {
        let mut value = value.clone();
        for part in allowed.split("; ") {
            match change(name, &value, got, part.trim_matches(['(', ')']))? {
                Change::To(next) => value = next,
                Change::Out => return Some(Change::Out),
            }
        }
        return Some(Change::To(value));
    }
    // "field: X" is about a field of a map.
    if let (Some((field, part)), Value::Object(map)) = (allowed.split_once(": "), value)
        && field != "one of"
        && field != "not one of"
    {
        let field = field.rsplit('.').next().unwrap_or(field);
        let inner = map.get(field).cloned().unwrap_or(Value::Null);
        let mut map = map.clone();
        match change(field, &inner, got, part)? {
            Change::To(next) => drop(map.insert(field.to_owned(), next)),
            Change::Out => drop(map.remove(field)),
        }
        return Some(Change::To(Value::Object(map)));
    }
    if allowed == "left out" {
        return Some(Change::Out);
    }
    // A list is right where each of its elements is.
    if let Value::Array(all) = value
        && !allowed.starts_with("list")
        && !typed(allowed)
    {
        let each = all.iter().map(|one| change(name, one, got, allowed));
        let kept: Option<Vec<Change>> = each.collect();
        let kept = kept?.into_iter().filter_map(|one| match one {
            Change::To(value) => Some(value),
            Change::Out => None,
        });
        return Some(Change::To(Value::Array(kept.collect())));
    }
    let changed = if typed(allowed) {
        retype(name, value, got, allowed)
    } else {
        said(value, allowed).or_else(|| path(value, allowed))
    };
    changed.map(Change::To)
}

/// Whether it begins with the name of a type.
fn typed(allowed: &str) -> bool {
    let allowed = allowed.trim_start_matches("of type ");
    let types = ["text", "integer", "boolean", "bytes", "list", "map", "path", "number", "any"];
    types.contains(&allowed.split(' ').next().unwrap_or_default())
}

/// A value of a type, within its bounds: `text of 1 to 4096 bytes`, `integer from 1 to 9`.
fn retype(name: &str, value: &Value, got: &str, allowed: &str) -> Option<Value> {
    let allowed = allowed.trim_start_matches("of type ");
    let (kind, bounds) = allowed.split_once(' ').unwrap_or((allowed, ""));
    // A result that is referred to as a whole: the part of it that is of the argument's name,
    // or of the type's.
    if let Some(reference) = value.get("$ref") {
        let keys: Vec<&str> = got.strip_prefix("map of ")?.split(", ").collect();
        let key = keys.iter().find(|key| **key == name).or(keys.iter().find(|key| **key == kind));
        let key = key.copied().or_else(|| nearest(name, &keys))?;
        let mut reference = reference.clone();
        reference.get_mut("path")?.as_array_mut()?.push(Value::from(key));
        return Some(json!({ "$ref": reference }));
    }
    let value = converted(value, kind)?;
    Some(bounded(value, bounds))
}

fn converted(value: &Value, kind: &str) -> Option<Value> {
    Some(match (kind, value) {
        // What is not there is made up as plainly as can be.
        ("text", Value::Null) => json!(""),
        ("path", Value::Null) => json!("."),
        ("integer" | "number", Value::Null) => json!(0),
        ("boolean", Value::Null) => json!(false),
        ("list", Value::Null) => json!([]),
        ("map" | "any", Value::Null) => json!({}),
        // The folder itself.
        ("path", Value::String(text)) if text.is_empty() => json!("."),
        ("text" | "path", Value::String(_)) => value.clone(),
        ("text" | "path", Value::Array(all)) => {
            let texts: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
            texts.map_or_else(|| value.to_string().into(), |all| all.join(", ").into())
        }
        ("text" | "path", other) => other.to_string().into(),
        ("integer", Value::Bool(set)) => json!(i64::from(*set)),
        ("integer", Value::String(text)) => whole(text.trim().parse().ok().or(digits(text))?),
        ("integer", Value::Number(n)) if n.is_f64() => whole(n.as_f64()?.trunc()),
        ("number", Value::String(text)) => json!(digits(text)?),
        ("boolean", Value::String(text)) => {
            let text = text.to_lowercase();
            json!(matches!(text.as_str(), "true" | "yes" | "on" | "1"))
        }
        ("boolean", Value::Number(n)) => json!(n.as_f64() != Some(0.0)),
        ("bytes", Value::String(text)) => json!({ "$bytes": base64(text.as_bytes()) }),
        ("list", Value::String(text)) => match serde_json::from_str(text) {
            Ok(list @ Value::Array(_)) => list,
            _ => text.split(',').map(str::trim).collect(),
        },
        ("list", Value::Array(_)) => value.clone(),
        ("list", other) => json!([other]),
        ("map", Value::String(text)) => serde_json::from_str(text).ok()?,
        ("map", Value::Array(pairs)) => {
            let entry = |pair: &Value| {
                let [key, value] = pair.as_array()?.as_slice() else { return None };
                Some((key.as_str()?.to_owned(), value.clone()))
            };
            Value::Object(pairs.iter().map(entry).collect::<Option<Map<_, _>>>()?)
        }
        _ => value.clone(),
    })
}

fn whole(n: f64) -> Value {
    Number::from_i128(clamped(n)).map_or(Value::Null, Value::Number)
}

#[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "it saturates")]
fn clamped(n: f64) -> i128 {
    (n as i128).clamp(i128::from(i64::MIN), i128::from(u64::MAX))
}

/// The first number that stands in a text.
fn digits(text: &str) -> Option<f64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let end = text[start..].find(|c: char| !c.is_ascii_digit() && c != '.');
    text[start..].get(..end.unwrap_or(text.len() - start))?.parse().ok()
}

/// Whether a value is of a type as it stands.
pub(crate) fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "text" | "path" => value.is_string(),
        "integer" => integer(value).is_some(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "list" => value.is_array(),
        "map" => value.is_object(),
        _ => false,
    }
}

/// A value that is an integer.
pub(crate) fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or(value.as_u64().map(i128::from))
}

/// The integers that stand in a text.
pub(crate) fn integers(text: &str) -> Vec<i128> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Within `1 to 9`, `at least 1`, `at most 9`: of integers the value, of others the length.
fn bounded(value: Value, bounds: &str) -> Value {
    let (min, max) = match integers(bounds)[..] {
        [min, max] => (Some(min), Some(max)),
        [n] if bounds.contains("least") => (Some(n), None),
        [n] => (None, Some(n)),
        _ => return value,
    };
    let length = |n: Option<i128>| n.and_then(|n| usize::try_from(n).ok());
    match value {
        Value::Number(n) => {
            let n = n.as_i128().unwrap_or_default();
            let n = n.max(min.unwrap_or(i128::MIN)).min(max.unwrap_or(i128::MAX));
            Number::from_i128(n).map_or(Value::Null, Value::Number)
        }
        Value::String(text) => {
            let mut text = shortened(&text, length(max).unwrap_or(usize::MAX)).to_owned();
            while text.len() < length(min).unwrap_or(0) {
                text.push('-');
            }
            Value::String(text)
        }
        Value::Array(mut all) => {
            all.truncate(length(max).unwrap_or(usize::MAX));
            let filler = all.last().cloned().unwrap_or(json!("-"));
            while all.len() < length(min).unwrap_or(0) {
                all.push(filler.clone());
            }
            Value::Array(all)
        }
        other => other,
    }
}

/// The beginning of a text, of whole characters.
pub(crate) fn shortened(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// What a refusal says in words: bounds, alternatives, beginnings, ends, hosts.
fn said(value: &Value, allowed: &str) -> Option<Value> {
    if let Some((_, list)) = allowed.split_once("one of: ") {
        return (!allowed.starts_with("not")).then(|| one_of(value, list));
    }
    let number = || integers(allowed).first().copied();
    let bound = |n: i128, low: bool| {
        let old = integer(value).or(clamped_of(value)).unwrap_or(n);
        Some(Value::from(Number::from_i128(if low { old.max(n) } else { old.min(n) })?))
    };
    let says = |phrase: &str| allowed.contains(phrase);
    if says("from ") && says(" to ") && integers(allowed).len() == 2 {
        return Some(bounded(converted(value, "integer")?, allowed));
    }
    if says("at most ") && !says("bytes") && !says("names") {
        return bound(number()?, false);
    }
    if says("less than ") {
        return bound(number()? - 1, false);
    }
    if says("at least ") {
        return bound(number()?, true);
    }
    if says("more than ") {
        return bound(number()? + 1, true);
    }
    let text = value.as_str().unwrap_or_default();
    if let Some((_, quoted)) = allowed.split_once("begins with ") {
        let start: String = serde_json::from_str(quoted).ok()?;
        return Some(Value::from(format!("{start}{text}")));
    }
    if let Some((_, quoted)) = allowed.split_once("ends with ") {
        return Some(ending(text, &serde_json::from_str::<String>(quoted).ok()?));
    }
    if let Some((_, host)) = allowed.split_once("a host of ") {
        return Some(hosted(text, host));
    }
    if let Some((_, blocks)) = allowed.split_once("an address of ") {
        let first = blocks.split([',', ' ', '/']).next()?;
        return Some(hosted(text, first));
    }
    // The word itself: a boolean, a number.
    match allowed {
        "true" | "false" => Some(json!(allowed == "true")),
        "present" => Some(json!("-")),
        _ => None,
    }
}

fn clamped_of(value: &Value) -> Option<i128> {
    value.as_f64().or_else(|| digits(value.as_str()?)).map(clamped)
}

/// One of a list: the most alike, else the first. A host in a URL is changed within it.
fn one_of(value: &Value, list: &str) -> Value {
    let list = list.split(" and ").next().unwrap_or(list);
    let names: Vec<&str> = list.split(", ").collect();
    let first = names.first().copied().unwrap_or_default();
    if let Some(n) = integer(value) {
        // `443`, `8000-8080`: the nearest end.
        let ends = names.iter().flat_map(|name| name.splitn(2, '-'));
        let ends = ends.filter_map(|end| end.parse::<i128>().ok());
        let near = ends.min_by_key(|end| (end - n).abs());
        return near.and_then(Number::from_i128).map_or(Value::from(first), Value::Number);
    }
    let text = value.as_str().unwrap_or_default();
    if text.contains("://") {
        return hosted(text, first);
    }
    let name = nearest(text, &names).unwrap_or(first);
    match name {
        "true" => json!(true),
        "false" => json!(false),
        name if value.is_null() && name.parse::<i64>().is_ok() => json!(name.parse::<i64>().ok()),
        name if name.starts_with("*.") => hosted(text, name),
        name => Value::from(name),
    }
}

/// An end in the place of the old one: a mail address keeps who it is for, a file its stem.
fn ending(text: &str, end: &str) -> Value {
    let stem = match end.chars().next() {
        Some('@') => text.split('@').next(),
        Some('.') => text.rsplit_once('.').map(|(stem, _)| stem),
        _ => None,
    };
    Value::from(format!("{}{end}", stem.unwrap_or(text)))
}

/// Another host, within a URL or alone; `*.example.com` is any below.
fn hosted(text: &str, host: &str) -> Value {
    let host = match host.strip_prefix("*.") {
        Some(domain) => format!("www.{domain}"),
        None => host.to_owned(),
    };
    let Some((scheme, rest)) = text.split_once("://") else { return Value::from(host) };
    let end = rest.find(['/', '?', '#', ':']).unwrap_or(rest.len());
    Value::from(format!("{scheme}://{host}{}", &rest[end..]))
}

/// A path in its form and below a root that is allowed, keeping its last name, and more where it
/// stands below the root by its own words.
pub(crate) fn path(value: &Value, allowed: &str) -> Option<Value> {
    let text = value.as_str()?;
    if let Some(max) = allowed.strip_prefix("names of at most ") {
        let max = usize::try_from(*integers(max).first()?).ok()?;
        let names = text.split('/').map(|name| shortened(name, max));
        return Some(Value::from(names.collect::<Vec<_>>().join("/")));
    }
    let slashed = text.replace('\\', "/").replace('\0', "");
    let names: Vec<&str> = slashed.split('/').filter(|n| !matches!(*n, "" | ".")).collect();
    if let Some(max) = allowed.strip_prefix("at most ").and_then(|a| a.strip_suffix(" names")) {
        let max: usize = max.parse().ok()?;
        let from = names.len().saturating_sub(max);
        return Some(Value::from(names[from..].join("/")));
    }
    let roots: Vec<&str> = allowed.split(", not below ").next()?.split("below ").skip(1).collect();
    let clean = |root: &str| {
        let root = root.trim_end_matches(" or ").split([',', ';', ' ']).next().unwrap_or("");
        root.trim_end_matches('.').to_owned()
    };
    let roots: Vec<String> = roots.into_iter().map(clean).filter(|r| !r.is_empty()).collect();
    let last = names.iter().rev().find(|name| **name != "..").copied().unwrap_or("file");
    // A plain path with the wrong slashes is only rewritten.
    let plain = !slashed.starts_with('/') && !names.contains(&"..") && !text.contains(':');
    if plain && (slashed != text || text.ends_with('/')) && !slashed.starts_with('~') {
        return Some(Value::from(names.join("/")));
    }
    // `/srv/me/workspace/notes/a.txt` says what it stands below.
    let joined = names.join("/");
    let inside = roots.iter().find_map(|root| {
        let at = format!("/{joined}").find(&format!("/{root}/"))?;
        joined.get(at..).filter(|path| !path.contains("..") && *path != text)
    });
    if let Some(inside) = inside {
        return Some(Value::from(inside));
    }
    let first = names.iter().find(|name| **name != "..").copied().unwrap_or_default();
    let alike = |root: &&String| root.split('/').next() == Some(first);
    let root = roots.iter().find(alike).or(roots.first())?;
    let is_file = root.rsplit('/').next() == Some(last);
    Some(Value::from(if is_file { root.clone() } else { format!("{root}/{last}") }))
}
