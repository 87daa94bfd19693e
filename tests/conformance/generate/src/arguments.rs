//! Vectors of `calls.md`, Arguments: what takes the place of references, and what a manifest takes.

use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::tools::Look;
use kernel_support::sim::{Ending, Policed, Shared, Sim};
use serde_json::json;
use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, Canonical, EffectClass, Extra, Form, Grants, HomeLimits, Item, Manifest, Param,
    ParamType, REFERENCES_MAX, Reason, Refused, Seq, ToolGrant, ToolId, TxOutcome, json,
};
use syscap_kernel::{Demands, Parts, Ran, ReadPermit, ReadPlan, ReadTool, Registry, Request};
use syscap_policy::WithinToken;

use crate::case::{Cases, Of, hex};

/// A tool that gives back its arguments.
struct Echo(Manifest);

impl ReadTool for Echo {
    type Plan = EchoPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, request: &Request<'_>) -> Result<EchoPlan, Refused> {
        Ok(EchoPlan(Demands::default(), request.args.into()))
    }
}

struct EchoPlan(Demands, Canonical);

impl ReadPlan for EchoPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.ok(self.1, TxOutcome::NoOp)
    }
}

fn echo() -> Manifest {
    let mut echo = Manifest::new(ToolId::new("echo").expect("a name"), EffectClass::Read);
    echo.hold = Amounts::ZERO;
    echo
}

/// JSON as data: what looks like an escape is none.
fn data(text: &str) -> Canonical {
    json::to_data(text.as_bytes()).expect(text)
}

/// The envelope of a call, in CBOR.
fn envelope(tool: &str, args: Item<'_>) -> Vec<u8> {
    let tool = Canonical::text(tool);
    Canonical::map(vec![("args", args), ("tool_id", tool.item())]).into_bytes()
}

/// A session in which a call was answered with a result, and the result's position.
struct Session {
    sim: Sim,
    session: Seq,
    record: Seq,
}

/// Results of `look` are `{"saw": ..}`.
fn session(manifest: &Manifest, saw: &Canonical) -> Session {
    let world = Shared::default();
    let mut registry = Registry::new();
    registry.add_read(Look::new()).expect("a tool");
    registry.add_read(Echo(manifest.clone())).expect("a tool");
    let parts = Parts { engine: Box::new(WithinToken), registry };
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::of(store, HomeLimits::default(), Policed::ByToken, (world, parts));
    let mut body = sim.token_body("a0", budget(9, 9), 1_000_000);
    let tool = |name| ToolId::new(name).expect("a name");
    body.grants =
        Grants::new().with(tool("look"), ToolGrant::new()).with(tool("echo"), ToolGrant::new());
    let ticket = sim.ticket();
    sim.event(syscap_kernel::Event::Issue(ticket, Sim::wire(&body), None));
    let session = sim.seat(syscap_format::TokenBody::id_of(&body.to_bytes()));
    let literal = Canonical::map(vec![("$lit", saw.item())]);
    let args = Canonical::map(vec![("at", literal.item())]);
    sim.submit(session, envelope("look", args.item()), Form::Cbor);
    sim.end_job(0, Ending::Runs);
    let record = sim.kernel.head().seq;
    sim.commit();
    Session { sim, session, record }
}

/// The arguments that the tool gets.
fn resolved(of: &mut Session, args: &Canonical) -> Result<Canonical, Reason> {
    let sim = &mut of.sim;
    let ticket = sim.submit(of.session, envelope("echo", args.item()), Form::Cbor);
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    let reply = sim.reply_to(ticket).expect("an answer");
    reply.reason().map_or_else(|| Ok(reply.delivered().item().into()), Err)
}

/// Arguments that refer to earlier results, by what `saw` was, with `RECORD` for its position.
const REFERENCES: &[(Of, &str, &str, Option<Reason>)] = {
    use Reason::{BadReference, UnknownReference};
    const PART: Of = Of("SYSCAP-CALL-081", "another part, or none, takes the reference's place");
    const LITERAL: Of = Of("SYSCAP-CALL-082", "what was quoted is read");
    const INSIDE: Of = Of("SYSCAP-CALL-083", "a result is read as a reference");
    const FORM: Of = Of("SYSCAP-CALL-067", "a reference of another form is taken");
    const NOWHERE: Of = Of("SYSCAP-CALL-084", "a path that leads nowhere gives something");
    const SAW: &str = r#"{"a": [1, {"b": "x"}], "": 2}"#;
    &[
        (PART, SAW, r#"{"in": {"$ref": {"record": RECORD, "path": []}}}"#, None),
        (PART, SAW, r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", "a", 1, "b"]}}}"#, None),
        (PART, SAW, r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", ""]}}}"#, None),
        (PART, SAW, r#"{"in": [0, {"$ref": {"record": RECORD, "path": ["saw", "a", 0]}}]}"#, None),
        (PART, SAW, r#"{"in": {"x": {"$ref": {"record": RECORD, "path": ["saw"]}}}}"#, None),
        (LITERAL, "1", r#"{"in": {"$lit": 7}}"#, None),
        (LITERAL, "1", r#"{"in": {"$lit": {"$lit": 7}}}"#, None),
        (LITERAL, "1", r#"{"in": {"$lit": {"$ref": 7}}}"#, None),
        (LITERAL, "1", r#"{"in": {"$lit": {"$ref": {"record": RECORD, "path": []}}}}"#, None),
        (LITERAL, "1", r#"{"in": {"$lit": 7, "b": 8}}"#, None),
        (LITERAL, "1", r#"{"in": {"$ref": 7, "b": 8}}"#, None),
        (
            INSIDE,
            r#"{"$lit": 7}"#,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw"]}}}"#,
            None,
        ),
        (
            INSIDE,
            r#"{"$ref": {"record": 1, "path": []}}"#,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw"]}}}"#,
            None,
        ),
        (FORM, "1", r#"{"in": {"$ref": 7}}"#, Some(BadReference)),
        (FORM, "1", r#"{"in": {"$ref": {"record": RECORD}}}"#, Some(BadReference)),
        (FORM, "1", r#"{"in": {"$ref": {"path": []}}}"#, Some(BadReference)),
        (
            FORM,
            "1",
            r#"{"in": {"$ref": {"record": RECORD, "path": [], "x": 1}}}"#,
            Some(BadReference),
        ),
        (FORM, "1", r#"{"in": {"$ref": {"record": -1, "path": []}}}"#, Some(BadReference)),
        (FORM, "1", r#"{"in": {"$ref": {"record": RECORD, "path": {}}}}"#, Some(BadReference)),
        (
            FORM,
            "1",
            r#"{"in": [{"$ref": {"record": 1, "path": []}}, {"$ref": 7}]}"#,
            Some(BadReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["seen"]}}}"#,
            Some(UnknownReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", "a", 2]}}}"#,
            Some(UnknownReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", "a", "0"]}}}"#,
            Some(UnknownReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", 0]}}}"#,
            Some(UnknownReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", "a", -1]}}}"#,
            Some(UnknownReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": ["saw", "a", 0, 0]}}}"#,
            Some(UnknownReference),
        ),
        (
            NOWHERE,
            SAW,
            r#"{"in": {"$ref": {"record": RECORD, "path": [null]}}}"#,
            Some(UnknownReference),
        ),
    ]
};

/// A tool's parameters, its treatment of other arguments, its foreign schema, the arguments, and
/// the first fault.
type Taken = (Of, Vec<Param>, Extra, Option<&'static str>, &'static str, Option<Reason>);

fn taken() -> Vec<Taken> {
    use ParamType::{Any, Argv, Bool, Bytes, Code, Int, List, Map, Number, Path, Text};
    use Reason::{BadArgument, MissingArgument, UnknownArgument};
    const UNKNOWN: Of = Of("SYSCAP-CALL-039", "an argument that no tool declares reaches it");
    const TYPE: Of = Of("SYSCAP-CALL-070", "an argument of another type or size reaches a tool");
    const MISSING: Of = Of("SYSCAP-CALL-071", "a tool runs without an argument that it needs");
    const DEFAULT: Of = Of("SYSCAP-CALL-086", "a default is not what a policy decides on");
    const DROPPED: Of = Of("SYSCAP-CALL-087", "a null is decided on as if it were a value");
    const KEPT: Of = Of("SYSCAP-CALL-088", "a null that means something is lost");
    let (required, optional) = (Param::required, Param::optional);
    let (refused, taken) = (Extra::Refused, Extra::Taken);
    let mut all: Vec<Taken> = vec![
        (UNKNOWN, vec![], refused, None, r#"{"a": 1}"#, Some(UnknownArgument)),
        (UNKNOWN, vec![], taken, None, r#"{"a": 1}"#, None),
        (
            UNKNOWN,
            vec![optional("a", Int, "")],
            refused,
            None,
            r#"{"A": 1}"#,
            Some(UnknownArgument),
        ),
        (
            UNKNOWN,
            vec![optional("bb", Int, "")],
            refused,
            None,
            r#"{"bb": "x", "a": 1}"#,
            Some(UnknownArgument),
        ),
        (
            TYPE,
            vec![optional("a", Int, "")],
            refused,
            None,
            r#"{"bb": 1, "a": "x"}"#,
            Some(BadArgument),
        ),
        (MISSING, vec![required("a", Int, "")], refused, None, "{}", Some(MissingArgument)),
        (MISSING, vec![required("a", Int, "")], refused, None, r#"{"a": null}"#, Some(BadArgument)),
        (MISSING, vec![required("a", Int, "")], refused, None, r#"{"a": 0}"#, None),
        (
            MISSING,
            vec![required("b", Int, ""), required("a", Int, "")],
            refused,
            None,
            "{}",
            Some(MissingArgument),
        ),
        (DEFAULT, vec![optional("a", Int, "").or(data("7"))], refused, None, "{}", None),
        (DEFAULT, vec![optional("a", Int, "").or(data("7"))], refused, None, r#"{"a": 8}"#, None),
        (
            DEFAULT,
            vec![optional("a", Int, "").or(data("7"))],
            refused,
            None,
            r#"{"a": null}"#,
            None,
        ),
        (
            DEFAULT,
            vec![optional("bb", Int, "").or(data("7")), optional("a", Int, "").or(data("6"))],
            taken,
            None,
            r#"{"ccc": 1}"#,
            None,
        ),
        (DROPPED, vec![optional("a", Int, "")], refused, None, r#"{"a": null}"#, None),
        (DROPPED, vec![optional("a", Any, "")], refused, None, r#"{"a": null}"#, None),
        (DROPPED, vec![required("a", Any, "")], refused, None, r#"{"a": null}"#, None),
    ];
    let values = [
        "1",
        "-1",
        "1.5",
        r#""x""#,
        r#"{"$bytes": "eA=="}"#,
        "true",
        "[]",
        r#"["x"]"#,
        "[1]",
        "{}",
    ];
    let kinds = [Any, Text, Path, Code, Int, Bool, Bytes, List, Argv, Map, Number];
    for kind in kinds {
        for value in values {
            let fits = match kind {
                Any => true,
                Text | Path | Code => value == r#""x""#,
                Int => ["1", "-1"].contains(&value),
                Bool => value == "true",
                Bytes => value.contains("$bytes"),
                List => value.starts_with('['),
                Argv => ["[]", r#"["x"]"#].contains(&value),
                Map => value == "{}",
                Number => ["1", "-1", "1.5"].contains(&value),
            };
            let text: &'static str = format!(r#"{{"a": {value}}}"#).leak();
            let fault = (!fits).then_some(BadArgument);
            all.push((TYPE, vec![required("a", kind, "")], refused, None, text, fault));
        }
    }
    let sizes = [
        (Int, ["1", "4", "2", "3"]),
        (Text, [r#""é12""#, r#""é""#, r#""é1""#, r#""123""#]),
        (List, ["[1]", "[1, 1, 1, 1]", "[1, 1]", "[1, 1, 1]"]),
        (Map, ["{}", r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#, r#"{"a": 1, "b": 1, "c": 1}"#]),
    ];
    for (kind, values) in sizes {
        for value in values {
            let size = match kind {
                Int => value.parse::<usize>().expect("an integer"),
                Text => value.len() - 2,
                List => value.matches('1').count(),
                _ => value.matches(':').count(),
            };
            let text: &'static str = format!(r#"{{"a": {value}}}"#).leak();
            let fault = (!(2..=3).contains(&size)).then_some(BadArgument);
            let param = required("a", kind, "").within(2, 3);
            all.push((TYPE, vec![param], refused, None, text, fault));
        }
    }
    let nulls: [(&str, bool); 18] = [
        ("true", true),
        ("false", false),
        ("{}", true),
        (r#"{"type": "null"}"#, true),
        (r#"{"type": "string"}"#, false),
        (r#"{"type": ["string", "null"]}"#, true),
        (r#"{"type": ["string"]}"#, false),
        (r#"{"type": "string", "nullable": true}"#, true),
        (r#"{"type": "string", "nullable": false}"#, false),
        (r#"{"enum": [1, null]}"#, true),
        (r#"{"enum": [1]}"#, false),
        (r#"{"const": null}"#, true),
        (r#"{"const": 1}"#, false),
        (r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#, true),
        (r#"{"oneOf": [{"type": "string"}, {"enum": [1]}]}"#, false),
        (r#"{"allOf": [{"type": "null"}, {"type": "string"}]}"#, false),
        (r#"{"allOf": [{"type": "null"}, true]}"#, true),
        (r#"{"type": "null", "enum": ["x"]}"#, false),
    ];
    for (schema, kept) in nulls {
        let of = if kept { KEPT } else { DROPPED };
        let param = optional("a", Text, "");
        all.push((of, vec![param], refused, Some(schema), r#"{"a": null}"#, None));
    }
    all
}

fn manifest(params: &[Param], extra: Extra, schema: Option<&str>) -> Manifest {
    let mut manifest = params.iter().cloned().fold(echo(), Manifest::param);
    manifest.extra = extra;
    match schema {
        Some(schema) => {
            let definition = format!(
                r#"{{"name": "echo", "inputSchema": {{"properties": {{"a": {schema}}}}}}}"#
            );
            manifest.defined_as(&data(&definition))
        }
        None => manifest,
    }
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    let mut add = |of: Of,
                   manifest: &Manifest,
                   saw: &Canonical,
                   text: &str,
                   args: &dyn Fn(Seq) -> Canonical,
                   fault: Option<Reason>| {
        let mut session = session(manifest, saw);
        let record = session.record;
        let args = args(record);
        let found = resolved(&mut session, &args);
        assert_eq!(found.as_ref().err().copied(), fault, "{text}");
        let result = Canonical::map(vec![("saw", saw.item())]);
        let mut given = json!({
            "kind": "resolve",
            "manifest": hex(&manifest.to_bytes()),
            "record": record.get(),
            "released": hex(result.as_bytes()),
            "args": hex(args.as_bytes()),
        });
        match &found {
            Ok(resolved) => given["resolved"] = json!(hex(resolved.as_bytes())),
            Err(reason) => given["reason"] = json!(reason.name()),
        }
        cases.add(of, found.is_ok(), text, given);
    };
    let any = manifest(&[Param::optional("in", ParamType::Any, "")], Extra::Refused, None);
    for &(of, saw, text, fault) in REFERENCES {
        let args = |record: Seq| data(&text.replace("RECORD", &record.get().to_string()));
        add(of, &any, &data(saw), text, &args, fault);
    }
    let many = |count: usize| {
        let one = r#"{"$ref": {"record": RECORD, "path": ["saw"]}}"#;
        format!(r#"{{"in": [{}]}}"#, vec![one; count].join(", "))
    };
    let most = REFERENCES_MAX;
    let form = Of("SYSCAP-CALL-067", "references without a bound");
    for (count, fault) in [(most, None), (most + 1, Some(Reason::BadReference))] {
        let args = |record: Seq| data(&many(count).replace("RECORD", &record.get().to_string()));
        add(form, &any, &data("1"), &format!("{count} references"), &args, fault);
    }
    let size = Of("SYSCAP-CALL-085", "a result makes arguments that nobody may send");
    let deep = data(&format!("{}7{}", "[".repeat(55), "]".repeat(55)));
    for (around, fault) in [(8, None), (9, Some(Reason::TooDeep))] {
        let part = r#"{"$ref": {"record": RECORD, "path": ["saw"]}}"#;
        let text = format!(r#"{{"in": {}{part}{}}}"#, "[".repeat(around), "]".repeat(around));
        let args = |record: Seq| data(&text.replace("RECORD", &record.get().to_string()));
        add(size, &any, &deep, &format!("55 levels in {around}"), &args, fault);
    }
    let long = Canonical::text(&"x".repeat(1 << 16));
    let args =
        |record: Seq| data(&many(REFERENCES_MAX).replace("RECORD", &record.get().to_string()));
    add(size, &any, &long, "16 parts of 65,541 bytes", &args, Some(Reason::TooLarge));
    for (of, params, extra, schema, text, fault) in taken() {
        let manifest = manifest(&params, extra, schema);
        let comment = match schema {
            Some(schema) => format!("{text} of {schema}"),
            None => text.to_owned(),
        };
        let args = |_| json::to_cbor(text.as_bytes()).expect(text);
        add(of, &manifest, &data("1"), &comment, &args, fault);
    }
    cases
}
