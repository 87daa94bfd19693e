//! A scripted model: what a language model can do with a refusal, as far as rules can say it. It
//! sees the call that it sent and the error object, and nothing else.

use serde_json::{Map, Number, Value, json};

use super::{
    change::{Change, change, integer, integers, is_of, shortened},
    text::{base64, nearest, read},
};

/// Fields of the envelope; other keys beside them are an argument's that was misplaced.
const FIELDS: [&str; 9] = [
    "v",
    "tool_id",
    "args",
    "agent_id",
    "capability_token_id",
    "state_snapshot_id",
    "policy_hash",
    "provenance",
    "idempotency_key",
];

/// What a refusal says.
struct Told<'a> {
    reason: &'a str,
    field: &'a str,
    got: &'a str,
    allowed: &'a str,
}

/// The call as it is to be sent again; `None` where the model gives up. A call that was no JSON
/// stands as its text.
pub(crate) fn repair(call: &Value, error: &Value) -> Option<Value> {
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    // `wait`, `ask` and `never` are not for the model to act on.
    if word("retry") != "fix" {
        return None;
    }
    let told = Told {
        reason: word("reason"),
        field: word("field"),
        got: word("got"),
        allowed: word("allowed"),
    };
    // Text that was not read is written anew, once and properly.
    let mut call = match call {
        Value::String(text) => return read(text),
        call => call.clone(),
    };
    let fixed = match told.reason {
        "malformed" | "bad_reference" => escapes(&mut call, &told),
        "duplicate_key" => Some(()),
        "number_range" => numbers(&mut call),
        "too_large" => shorten(&mut call, &told),
        "too_deep" => flatten(&mut call, &told),
        "unknown_reference" => reference(&mut call, &told),
        "result_too_large" => ask_for_less(&mut call, &told),
        "missing_field" => missing_field(&mut call, &told),
        "unknown_argument" => unknown_arguments(&mut call, &told),
        "missing_argument" => missing_arguments(&mut call, &told),
        "exists" => another_name(&mut call, &told),
        "not_a_folder" => parent(&mut call, &told),
        _ if FIELDS.contains(&told.field) || matches!(told.field, "envelope" | "proof") => {
            return field(call, &told);
        }
        _ => argument(&mut call, &told),
    };
    fixed.map(|()| call)
}

// Envelopes.

/// A field of the envelope: named anew from a list, left out, or set to the one right value.
fn field(mut call: Value, told: &Told<'_>) -> Option<Value> {
    if told.field == "envelope" {
        // One call in a list, or in a wrapper of the protocol's, is still one call.
        return match call {
            Value::Array(calls) if calls.len() == 1 => calls.into_iter().next(),
            _ => None,
        };
    }
    let map = call.as_object_mut()?;
    let old = map.get(told.field).cloned().unwrap_or(Value::Null);
    if told.reason == "key_reused" {
        // Other arguments are another call, and it has a key of its own.
        let key = format!("{}.2", old.as_str()?);
        map.insert(told.field.to_owned(), Value::from(key));
    } else if told.field == "tool_id" {
        let names: Vec<&str> = told.allowed.split(" and ").next()?.split(", ").collect();
        let got = if told.got.is_empty() { old.as_str()? } else { told.got };
        map.insert(told.field.to_owned(), Value::from(nearest(got, &names)?));
    } else if told.allowed.ends_with("left out") {
        map.remove(told.field);
    } else if told.field == "args" {
        let Change::To(args) = change("args", &old, told.got, told.allowed)? else { return None };
        map.insert(told.field.to_owned(), args);
    } else if !told.allowed.is_empty() {
        let value = told.allowed.parse::<u64>().map_or(Value::from(told.allowed), Value::from);
        map.insert(told.field.to_owned(), value);
    } else {
        return None;
    }
    Some(call)
}

/// A field that stands under another name, as other protocols call it; else what is plain.
fn missing_field(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let map = call.as_object_mut()?;
    let stray: Vec<String> =
        map.keys().filter(|k| !FIELDS.contains(&k.as_str())).cloned().collect();
    if told.field == "args" {
        let found = stray.iter().find(|key| map[*key].is_object());
        let args = match found {
            Some(key) => map.remove(key)?,
            // All that stands beside the fields are arguments that were not put into `args`.
            None => {
                let taken = stray.iter().filter_map(|key| Some((key.clone(), map.remove(key)?)));
                Value::Object(taken.collect::<Map<_, _>>())
            }
        };
        map.insert("args".to_owned(), args);
        return Some(());
    }
    let names: Vec<&str> = told.allowed.split(", ").collect();
    let named = |key: &&String| map[*key].as_str().is_some_and(|n| nearest(n, &names).is_some());
    let tool = match stray.iter().find(named) {
        Some(key) => {
            let text = map.remove(key)?;
            nearest(text.as_str()?, &names)?.to_owned()
        }
        // Where there is one tool only, it is meant.
        None if names.len() == 1 => names[0].to_owned(),
        None => return None,
    };
    // The arguments are often misnamed as well: seen at once, they need no second refusal.
    if !map.contains_key("args")
        && let Some(key) = stray.iter().find(|key| map.get(*key).is_some_and(Value::is_object))
    {
        let args = map.remove(key)?;
        map.insert("args".to_owned(), args);
    }
    map.insert("tool_id".to_owned(), Value::from(tool));
    Some(())
}

/// Numbers outside what can be written.
fn numbers(value: &mut Value) -> Option<()> {
    each(value, &mut |value| {
        let Some(n) = value.as_f64().filter(|_| value.is_f64()) else { return };
        if n == 0.0 {
            *value = json!(0);
        } else if n >= 18_446_744_073_709_551_615.0 {
            *value = json!(u64::MAX);
        } else if n < -9_223_372_036_854_775_808.0 {
            *value = json!(i64::MIN);
        }
    });
    Some(())
}

fn each(value: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    act(value);
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| each(one, act)),
        Value::Object(map) => map.values_mut().for_each(|one| each(one, act)),
        _ => {}
    }
}

/// The longest text loses what is too much.
fn shorten(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let (got, max) = (*integers(told.got).first()?, *integers(told.allowed).first()?);
    let mut longest = 0;
    each(call, &mut |value| longest = longest.max(value.as_str().map_or(0, str::len)));
    let over = usize::try_from(got.checked_sub(max)?).ok()?.checked_add(64)?;
    let keep = longest.checked_sub(over)?;
    each(call, &mut |value| {
        if let Some(text) = value.as_str().filter(|text| text.len() == longest) {
            *value = Value::from(shortened(text, keep));
        }
    });
    Some(())
}

/// What lies too deep is written as text.
fn flatten(call: &mut Value, told: &Told<'_>) -> Option<()> {
    fn cut(value: &mut Value, left: usize) {
        if left == 0 && (value.is_array() || value.is_object()) {
            *value = Value::from(value.to_string());
        }
        match value {
            Value::Array(all) => all.iter_mut().for_each(|one| cut(one, left - 1)),
            Value::Object(map) => map.values_mut().for_each(|one| cut(one, left - 1)),
            _ => {}
        }
    }
    cut(call, usize::try_from(*integers(told.allowed).first()?).ok()?);
    Some(())
}

// References and other escapes.

/// `$ref` and `$bytes` brought into their forms.
fn escapes(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let before = call.clone();
    each(call, &mut |value| {
        let Some(map) = value.as_object().filter(|map| map.len() == 1) else { return };
        if let Some(inner) = map.get("$ref") {
            *value = json!({ "$ref": reformed(inner) });
        } else if let Some(Value::String(text)) = map.get("$bytes") {
            // Base64 of another alphabet or without its padding, else plain text.
            let text = text.replace('-', "+").replace('_', "/");
            let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
            let digits = text.trim_end_matches('=');
            let padded = format!("{digits}{}", &"==="[..(4 - digits.len() % 4) % 4]);
            let is_base64 = digits.chars().all(is_digit) && digits.len() % 4 != 1;
            let fine = if is_base64 { padded } else { base64(text.as_bytes()) };
            *value = json!({ "$bytes": fine });
        }
    });
    (*call != before || told.reason == "malformed").then_some(())
}

fn reformed(inner: &Value) -> Value {
    let number = |value: &Value| match value {
        Value::String(text) => integers(text).first().and_then(|n| u64::try_from(*n).ok()),
        value => value.as_u64(),
    };
    let steps = |value: &Value| match value {
        Value::Array(steps) => Value::Array(steps.clone()),
        Value::String(path) => path
            .split(['.', '/'])
            .filter(|step| !step.is_empty() && *step != "$")
            .map(|step| step.parse::<u64>().map_or(Value::from(step), Value::from))
            .collect(),
        Value::Number(n) => json!([n]),
        _ => json!([]),
    };
    match inner {
        Value::Object(map) => {
            let record = map.get("record").or(map.values().find(|v| number(v).is_some()));
            let path = map.get("path").map_or(json!([]), steps);
            json!({ "record": record.and_then(number), "path": path })
        }
        other => json!({ "record": number(other), "path": [] }),
    }
}

/// Another record or step in the references that are at fault.
fn reference(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let list = told.allowed.split_once("one of: ").map(|(_, list)| list.split(" and ").next());
    let names: Vec<&str> =
        list.flatten().map(|list| list.split(", ").collect()).unwrap_or_default();
    let number = told.got.parse::<u64>().ok();
    let is_step = |step: &Value| step == told.got || number.is_some() && step.as_u64() == number;
    let mut fixed = None;
    each(call, &mut |value| {
        let Some(reference) = value.get_mut("$ref") else { return };
        if told.field == "$ref.record" {
            let is_it = is_step(&reference["record"]);
            // The nearest stands first.
            if let (true, Some(n)) = (is_it, names.first().and_then(|n| n.parse::<u64>().ok())) {
                reference["record"] = json!(n);
                fixed = Some(());
            }
            return;
        }
        let Some(steps) = reference["path"].as_array_mut() else { return };
        let Some(at) = steps.iter().position(is_step) else { return };
        if told.allowed.ends_with("ends before it") {
            steps.truncate(at);
        } else if let Some(max) = told.allowed.strip_prefix("less than ") {
            let Some(last) = max.parse::<u64>().ok().and_then(|n| n.checked_sub(1)) else { return };
            steps[at] = json!(last);
        } else if let Some(name) = nearest(told.got, &names).or(names.first().copied()) {
            steps[at] = json!(name);
        } else {
            return;
        }
        fixed = Some(());
    });
    fixed
}

/// Less of everything that is counted, in proportion.
fn ask_for_less(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let (got, max) = (*integers(told.got).first()?, *integers(told.allowed).first()?);
    let mut fixed = None;
    each(call.get_mut("args")?, &mut |value| {
        // Nine tenths: what stands around the counted things is not counted.
        if let Some(n) = integer(value).filter(|n| *n > 1)
            && let Some(less) = n.checked_mul(max).and_then(|n| n.checked_mul(9))
            && let Some(less) = Number::from_i128((less / (got * 10).max(1)).max(1))
        {
            *value = Value::Number(less);
            fixed = Some(());
        }
    });
    fixed
}

// Arguments.

/// An argument, or a field within it, changed to what is allowed.
fn argument(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let args = call.get_mut("args")?.as_object_mut()?;
    if let Some(names) = told.allowed.strip_prefix("exactly one of ") {
        return exactly_one(args, names);
    }
    let (holder, name) = holder(args, told.field)?;
    let old = holder.get(name).cloned().unwrap_or(Value::Null);
    let changed = change(name, &old, told.got, told.allowed);
    match changed {
        Some(Change::To(new)) if new != old => drop(holder.insert(name.to_owned(), new)),
        Some(Change::Out) => drop(holder.remove(name)?),
        // Nothing that can be read from what is said: without the argument there is no fault in
        // it. But a path, a host or a number is what the call is about.
        _ if told.reason == "constraint" => drop(holder.remove(name)?),
        _ => return None,
    }
    Some(())
}

/// The map that has the last part of a dotted name, and that part.
fn holder<'a, 'n>(
    args: &'a mut Map<String, Value>,
    field: &'n str,
) -> Option<(&'a mut Map<String, Value>, &'n str)> {
    match field.split_once('.') {
        Some((first, rest)) if !args.contains_key(field) => {
            let inner = args.entry(first).or_insert_with(|| json!({}));
            holder(inner.as_object_mut()?, rest)
        }
        _ => Some((args, field)),
    }
}

/// The first of some arguments that is there stays alone; where there is none, it is empty.
fn exactly_one(args: &mut Map<String, Value>, names: &str) -> Option<()> {
    let names: Vec<&str> = names.split(" and ").collect();
    let given: Vec<&str> = names.iter().copied().filter(|name| args.contains_key(*name)).collect();
    match given[..] {
        [] => drop(args.insert((*names.first()?).to_owned(), json!(""))),
        [_, ref rest @ ..] => rest.iter().for_each(|name| drop(args.remove(*name))),
    }
    Some(())
}

/// A declared argument: `name: type` where it is required, `name?: type` where it is not.
fn declared(allowed: &str) -> Vec<(&str, bool, &str)> {
    let entries = allowed.split(", ").filter_map(|entry| entry.split_once(": "));
    let each = entries.map(|(name, kind)| match name.strip_suffix('?') {
        Some(name) => (name, false, kind),
        None => (name, true, kind),
    });
    each.collect()
}

/// Names that the tool doesn't have: misspelt, called otherwise, or nothing to it.
fn unknown_arguments(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let args = call.get_mut("args")?.as_object_mut()?;
    let declared = declared(told.allowed);
    for unknown in told.got.split(", ") {
        let value = args.remove(unknown)?;
        let free: Vec<&(&str, bool, &str)> =
            declared.iter().filter(|(name, ..)| !args.contains_key(*name)).collect();
        let names: Vec<&str> = free.iter().map(|(name, ..)| *name).collect();
        // What is required and lacks was meant, where one thing is; else the most alike.
        let lacks: Vec<&str> =
            free.iter().filter(|(_, required, _)| *required).map(|(name, ..)| *name).collect();
        // Else the only one that takes such a value.
        let mut takers = free.iter().filter(|(_, _, kind)| is_of(&value, kind));
        let only = takers.next().filter(|_| takers.next().is_none()).map(|(name, ..)| *name);
        let meant = match (nearest(unknown, &names), &lacks[..]) {
            (Some(name), _) => Some(name),
            (None, [one]) => Some(*one),
            (None, _) => only,
        };
        if let Some(name) = meant {
            args.insert(name.to_owned(), value);
        }
    }
    Some(())
}

/// What lacks: put beside `args` instead of into it, else as plain as its type lets it be.
fn missing_arguments(call: &mut Value, told: &Told<'_>) -> Option<()> {
    for (name, _, kind) in declared(told.allowed) {
        let map = call.as_object_mut()?;
        let beside = if FIELDS.contains(&name) { None } else { map.remove(name) };
        let value = match beside {
            Some(value) => value,
            None => match change(name, &Value::Null, "nothing", kind)? {
                Change::To(value) => value,
                Change::Out => return None,
            },
        };
        map.get_mut("args")?.as_object_mut()?.insert(name.to_owned(), value);
    }
    Some(())
}

/// `a.txt` becomes `a-2.txt`.
fn another_name(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let old = call.get_mut("args")?.get_mut(told.field)?;
    let text = old.as_str()?;
    let dot = text.rfind('.').filter(|dot| text.rfind('/').is_none_or(|slash| slash < *dot));
    let (stem, end) = text.split_at(dot.unwrap_or(text.len()));
    *old = Value::from(format!("{stem}-2{end}"));
    Some(())
}

/// The folder in which a file lies.
fn parent(call: &mut Value, told: &Told<'_>) -> Option<()> {
    let old = call.get_mut("args")?.get_mut(told.field)?;
    let text = old.as_str()?.trim_end_matches('/');
    *old = Value::from(text.rsplit_once('/').map_or(".", |(folder, _)| folder));
    Some(())
}
