//! `docs/spec.md` says what the code does: its tables, numbers and examples are held against it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use ed25519_dalek::{Signer as _, SigningKey};
use syscap::{
    Grant, Options,
    audit::verify::{Trust, Verdict as Verified},
    kernel::{
        budget::{Budget, Dimension},
        cbor::{Canonical, Decoder, Encoder, Item, MapBuilder, Profile},
        control::{
            CONTROL_CONTEXT, ConfigChange, Control, ControlBody, Freeze, FreezeChange,
            FreezeTarget, KeyChange, PolicyChange, Resolution, Revocation, Role, Roles,
            ToolsChange,
        },
        envelope::{Status, ToolResult, TxOutcome},
        field::{FieldSpec, List},
        hash::{Domain, args_hash, call_hash, leaf, result_hash, sent_hash},
        id::{AgentId, HomeId, IdempotencyKey, ObjectId, Salt, SnapshotId, TokenId, ToolId},
        kernel::{Event, Kernel, NewHome, Parts, Ticket},
        limits,
        manifest::{EffectClass, Enforcement, Extra, Manifest, Param, ParamType, Presence},
        object::ObjectKind,
        policy::{Decision, EngineIdentity, PolicyObject, Verdict},
        provenance::{Provenance, Source},
        reason::{ErrorKind, Reason, Refused},
        record::{
            COMMON_FIELDS, CallFields, Durability, Ended, Genesis, HomeLimits, Kind, Record,
            Recovered, RefusalKind, RunMode, RunPhase, SessionPhase,
        },
        registry::{Registry, ToolEntry, ToolsObject},
        scope::{
            Cidrs, Host, HostPattern, Hosts, Name, Names, Paths, Ports, Rights, Root, RootName,
            RootedPath, Rule, Scope, ScopeType,
        },
        sign::{PublicKey, Signature, preimage},
        snapshot::Snapshot,
        time::{Reading, UnixMillis},
        token::{Grant as Scopes, Grants, TOKEN_CONTEXT, Token, TokenBody, TokenFlags},
    },
    policy::WithinToken,
};

// The document.

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn spec() -> String {
    fs::read_to_string(root().join("docs/spec.md")).unwrap()
}

/// A table and the heading that it stands under.
struct Table {
    heading: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn tables() -> Vec<Table> {
    let (mut tables, mut heading, mut fenced, mut open) =
        (Vec::<Table>::new(), String::new(), false, false);
    for line in spec().lines() {
        fenced ^= line.starts_with("```");
        let is_row = !fenced && line.starts_with('|');
        if !fenced && line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
        if is_row {
            let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
            let cells = inner.expect(line).split('|').map(|cell| cell.trim().to_owned());
            let cells: Vec<String> = cells.collect();
            if !open {
                tables.push(Table { heading: heading.clone(), head: cells, rows: Vec::new() });
            } else if !cells.iter().all(|cell| cell == "---") {
                let table = tables.last_mut().unwrap();
                assert_eq!(cells.len(), table.head.len(), "{line}");
                table.rows.push(cells);
            }
        }
        open = is_row;
    }
    tables
}

/// The one table with this head.
fn table(head: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Table> =
        tables().into_iter().filter(|table| table.head.join(" | ") == head).collect();
    assert_eq!(found.len(), 1, "tables with the head {head}");
    found.remove(0).rows
}

/// What stands between backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Joins all but the last column, which is prose that must be there.
fn facts(rows: &[Vec<String>]) -> Vec<String> {
    let fact = |row: &Vec<String>| {
        let (meaning, facts) = row.split_last().unwrap();
        assert!(!meaning.is_empty(), "{row:?}");
        facts.join(" | ")
    };
    rows.iter().map(fact).collect()
}

/// The bytes of a dump: what stands before semicolons in the block of that name.
fn dump(name: &str) -> Vec<u8> {
    let spec = spec();
    let block = spec.split(&format!("```hex {name}\n")).nth(1).expect(name);
    let block = block.split("```").next().unwrap();
    let digits: String = block.lines().map(|line| line.split(';').next().unwrap()).collect();
    let digits: Vec<char> = digits.chars().filter(|char| *char != ' ').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// The sources, for what a `FieldSpec` does not say: null and lists; and for names of constants.

fn sources() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("kernel/src"), &mut found);
    found
}

/// Names declared by a macro, each with the lines of its body.
fn declared(start: &str, keyword: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for source in sources() {
        for part in source.split(&format!("\n{start} {{\n")).skip(1) {
            let mut lines = part.lines().skip_while(|line| !line.trim().starts_with(keyword));
            let Some(head) = lines.next() else { continue };
            let name = head.trim().trim_start_matches(keyword).trim().trim_end_matches(" {");
            let body = lines.take_while(|line| *line != "    }").map(str::to_owned);
            found.insert(name.to_owned(), body.collect());
        }
    }
    found
}

/// The types of a shape's own fields, by key.
fn types(lines: &[String]) -> BTreeMap<u64, String> {
    let field = |line: &String| {
        let (key, rest) = line.trim().split_once(" => pub ")?;
        let (_, of) = rest.trim_end_matches(',').split_once(": ")?;
        Some((key.parse().unwrap(), of.to_owned()))
    };
    lines.iter().filter_map(field).collect()
}

/// Constants `pub const NAME: Self = Self(1);` of a set of bits: single bits only.
fn bits(set: &str) -> Vec<String> {
    let sources = sources();
    let head = format!("\nimpl {set} {{\n");
    let body = sources.iter().find_map(|source| source.split(&head).nth(1)).expect(set);
    let constant = |line: &str| {
        let (name, value) = line.trim().strip_prefix("pub const ")?.split_once(": Self = Self(")?;
        let value: u64 = value.trim_end_matches(");").parse().ok()?;
        value.is_power_of_two().then(|| format!("`{set}` | {value} | `{name}`"))
    };
    body.lines().take_while(|line| *line != "}").filter_map(constant).collect()
}

// Shapes.

fn shapes() -> Vec<(&'static str, Vec<FieldSpec>)> {
    macro_rules! shapes {
        ($($name:ident)*) => { vec![$((stringify!($name), <$name>::fields()),)*] };
    }
    shapes! {
        CallFields HomeLimits Control KeyChange Revocation Freeze PolicyChange ToolsChange
        ConfigChange Resolution Provenance Decision EngineIdentity PolicyObject Manifest Param
        ToolEntry ToolsObject Snapshot TokenBody
    }
}

/// The struct of a kind's own part.
fn body_of(kind: Kind) -> String {
    match kind {
        Kind::Session => "SessionChange".to_owned(),
        Kind::Key | Kind::Revoke | Kind::Freeze | Kind::Policy | Kind::Tools | Kind::Config => {
            "SignedEvent".to_owned()
        }
        _ => format!("{kind:?}"),
    }
}

/// The rows that the document must have for a shape.
fn wanted(fields: &[FieldSpec], types: &BTreeMap<u64, String>) -> Vec<String> {
    let row = |field: &FieldSpec| {
        let FieldSpec { key, name, shape } = field;
        let form = match types.get(key).map_or("", String::as_str) {
            of if of.starts_with("Option<") => format!("`{shape}` or null"),
            of if of.starts_with("List<") => format!("list of `{shape}`"),
            _ => format!("`{shape}`"),
        };
        format!("{key} | `{name}` | {form}")
    };
    fields.iter().map(row).collect()
}

/// Tables of shapes by each name in their headings.
fn shape_tables() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for table in tables() {
        if table.head.join(" | ") != "Key | Name | Type | Meaning" {
            continue;
        }
        let names = code(&table.heading).into_iter().map(str::to_owned);
        let mut names: Vec<String> = names.collect();
        if names.is_empty() {
            names.push(table.heading.clone());
        }
        for name in names {
            let twice = found.insert(name, facts(&table.rows));
            assert_eq!(twice, None, "{}", table.heading);
        }
    }
    found
}

#[test]
fn every_shape_stands_there_key_by_key() {
    let (mut written, declared) = (shape_tables(), declared("shape!", "pub struct"));
    let mut checked = BTreeSet::new();
    let common = written.remove("Common keys").expect("common keys");
    assert_eq!(common, wanted(&COMMON_FIELDS, &BTreeMap::new()));
    let call = types(&declared["CallFields"]);
    for (name, fields) in shapes() {
        let types = types(&declared[name]);
        let heading = if name == "CallFields" { "Call fields" } else { name };
        let rows = written.remove(heading).unwrap_or_else(|| panic!("no table of {name}"));
        assert_eq!(rows, wanted(&fields, &types), "{name}");
        checked.insert(name.to_owned());
    }
    let group: Vec<u64> = CallFields::fields().iter().map(|field| field.key).collect();
    let group = format!("{} to {} |  | `CallFields`", group[0], group[group.len() - 1]);
    for kind in Kind::ALL {
        let Some(fields) = kind.fields() else { continue };
        let name = body_of(*kind);
        let (mut types, mut rows) = (types(&declared[&name]), Vec::new());
        for row in written.remove(kind.name()).unwrap_or_else(|| panic!("no table of {kind}")) {
            if row == group {
                types.extend(call.clone());
                rows.extend(wanted(&CallFields::fields(), &call));
            } else {
                rows.push(row);
            }
        }
        assert_eq!(rows, wanted(&fields, &types), "{kind}");
        checked.insert(name);
    }
    assert_eq!(written.keys().collect::<Vec<_>>(), Vec::<&String>::new(), "tables of no shape");
    assert_eq!(checked, declared.into_keys().collect(), "every shape of the kernel");
}

#[test]
fn every_kind_is_written_or_reserved() {
    let wanted = Kind::ALL.iter().map(|kind| {
        let written = if kind.fields().is_some() { "yes" } else { "reserved" };
        format!("{} | `{}` | {written}", kind.code(), kind.name())
    });
    let rows = facts(&table("Number | Kind | Written | Meaning"));
    assert_eq!(rows, wanted.collect::<Vec<_>>());
    assert_eq!(rows.len(), 28);
    // What replay does with each.
    let fold = table("Kind | What changes | What a verifier also checks");
    let wanted: Vec<String> = Kind::ALL
        .iter()
        .filter(|kind| kind.fields().is_some())
        .map(|kind| format!("`{}`", kind.name()))
        .collect();
    let (mut folded, mut wanted) =
        (fold.iter().map(|row| row[0].clone()).collect::<Vec<_>>(), wanted);
    folded.sort();
    wanted.sort();
    assert_eq!(folded, wanted);
}

// Codes, bits, numbers.

#[test]
fn every_code_has_its_number_and_name() {
    let mut wanted: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    macro_rules! codes {
        ($($name:ident)*) => {$(
            wanted.insert(stringify!($name), $name::ALL.iter().map(|code| {
                format!("`{}` | {} | `{}`", stringify!($name), code.code(), code.name())
            }).collect());
        )*};
    }
    codes! {
        Role Durability Ended SessionPhase FreezeTarget FreezeChange EffectClass Enforcement
        Presence ParamType Extra Source Verdict RunMode Status TxOutcome RefusalKind RunPhase
        Recovered ObjectKind
    }
    let mut written: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let rows = facts(&table("Code | Number | Name | Meaning"));
    for row in &rows {
        written.entry(code(row)[0]).or_default().push(row.clone());
    }
    assert_eq!(written, wanted);
    let declared = declared("code!", "pub enum").into_keys().filter(|name| name != "Kind");
    let names: Vec<String> = wanted.into_keys().map(str::to_owned).collect();
    assert_eq!(declared.collect::<Vec<_>>(), names, "every code of the kernel");
    let objects: Vec<String> =
        ObjectKind::ALL.iter().map(|kind| format!("{} | `{kind}`", kind.code())).collect();
    let rows = table("Number | Kind | Bytes | Name");
    let rows: Vec<String> = rows.iter().map(|row| row[..2].join(" | ")).collect();
    assert_eq!(rows, objects);
}

#[test]
fn every_bit_has_its_name() {
    let rows = facts(&table("Set | Bit | Name | Meaning"));
    let sets = ["ClockFlags", "TokenFlags", "Filled", "OutcomeFlags", "Rights"];
    assert_eq!(rows, sets.into_iter().flat_map(bits).collect::<Vec<_>>());
}

#[test]
fn reasons_have_their_numbers() {
    let wanted = Reason::ALL.iter().map(|reason| {
        format!("{} | `{}` | {}", reason.code(), reason.name(), reason.retry().name())
    });
    let rows = table("Code | Reason | Retry");
    let rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
    assert_eq!(rows, wanted.collect::<Vec<_>>());
}

#[test]
fn dimensions_and_scope_types_have_their_numbers() {
    let counted = |dimension: Dimension| match dimension {
        _ if dimension.is_metered() => "metered",
        _ if dimension.is_measured() => "measured",
        _ => "by the kernel",
    };
    let wanted = Dimension::ALL.into_iter().enumerate().map(|(number, dimension)| {
        format!("{number} | `{}` | {}", dimension.name(), counted(dimension))
    });
    let rows = facts(&table("Number | Dimension | Counted | Meaning"));
    assert_eq!(rows, wanted.collect::<Vec<_>>());
    let head = "Type | Name | Value | Order, limit | Normal form | `a` is at most `b` if";
    let rows: Vec<String> = table(head).iter().map(|row| row[..2].join(" | ")).collect();
    let wanted = ScopeType::ALL.into_iter().map(|scope| {
        let name = format!("{scope:?}").to_lowercase();
        format!("{} | {name}", scope.code())
    });
    assert_eq!(rows, wanted.collect::<Vec<_>>());
}

#[test]
fn roles_sign_what_the_document_says() {
    let wanted = Kind::ALL.iter().filter_map(|kind| {
        let (role, body) = (Role::of(*kind)?, control_body(*kind));
        Some(format!("`{kind}` | {role} | `{body}`"))
    });
    let rows = table("Kind | Role | Body");
    let rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
    assert_eq!(rows, wanted.collect::<Vec<_>>());
    let contexts = table("What | Context | Then");
    for (row, context) in contexts.iter().zip([TOKEN_CONTEXT, CONTROL_CONTEXT]) {
        let context = core::str::from_utf8(context).unwrap().replace('\0', "\\0");
        assert_eq!(row[1], format!("`{context}`"));
    }
}

fn control_body(kind: Kind) -> &'static str {
    macro_rules! bodies {
        ($($name:ident)*) => { [$((<$name as ControlBody>::KIND, stringify!($name)),)*] };
    }
    let bodies = bodies! {
        KeyChange Revocation Freeze PolicyChange ToolsChange ConfigChange Resolution
    };
    bodies.iter().find(|(of, _)| *of == kind).expect("a body").1
}

#[test]
fn every_key_of_a_token_has_a_rule_of_derivation() {
    let rows = table("Key | Rule");
    let mut keys: Vec<&str> = rows.iter().flat_map(|row| code(&row[0])).collect();
    let fields = TokenBody::fields();
    let mut wanted: Vec<&str> = fields.iter().map(|field| field.name).collect();
    keys.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(keys, wanted);
}

#[test]
fn domains_and_profiles_stand_there() {
    let rows = table("Domain | Context string | What is hashed");
    let written: Vec<&str> = rows.iter().map(|row| code(&row[1])[0]).collect();
    let wanted: Vec<&str> = Domain::ALL.iter().map(|domain| domain.context()).collect();
    assert_eq!(written, wanted);
    let name = |domain: &Domain| {
        let rows = rows.iter().find(|row| code(&row[1])[0] == domain.context()).unwrap();
        code(&rows[0])[0].to_owned()
    };
    for (domain, wanted) in [
        (Domain::TOKEN_ID, "TOKEN_ID"),
        (Domain::OBJECT_ID, "OBJECT_ID"),
        (Domain::POLICY, "POLICY"),
        (Domain::TOOLS, "TOOLS"),
        (Domain::SNAPSHOT, "SNAPSHOT"),
        (Domain::ARGUMENTS, "ARGUMENTS"),
        (Domain::ENVELOPE, "ENVELOPE"),
        (Domain::RESULT, "RESULT"),
        (Domain::SENT, "SENT"),
        (Domain::CALL_DIGEST, "CALL_DIGEST"),
        (Domain::REFUSALS, "REFUSALS"),
    ] {
        assert_eq!(name(&domain), wanted);
    }
    let rows = table("Profile | Depth | Floats | Used for");
    let depths = [("`CONTROL`", Profile::CONTROL), ("`DATA`", Profile::DATA)];
    for (row, (name, profile)) in rows.iter().zip(depths) {
        assert_eq!((&*row[0], &row[1]), (name, &profile.depth_max().to_string()));
    }
}

macro_rules! named {
    ($($(($of:ident))? $name:ident)*) => {
        [$((
            concat!($(stringify!($of), "::",)? stringify!($name)).to_owned(),
            named!(@value $(($of))? $name),
        ),)*]
    };
    (@value ($of:ident) $name:ident) => { u64::try_from($of::$name).unwrap() };
    (@value $name:ident) => { u64::try_from(limits::$name).unwrap() };
}

#[test]
fn limits_have_their_values() {
    let known: BTreeMap<String, u64> = named! {
        ENVELOPE_BYTES_MAX RECORD_BYTES_MAX OBJECT_BYTES_MAX TOKEN_BYTES_MAX RESULT_BYTES_MAX
        TOKEN_LIFE_MS_MAX TOKEN_DEPTH_MAX GRANTS_MAX DIMENSIONS_MAX PROVENANCE_INPUTS_MAX
        TRACE_BYTES_MAX REFERENCES_MAX RELEASED_MAX IN_FLIGHT_MAX SESSIONS_MAX
        REFUSALS_IN_A_ROW_MAX AGGREGATE_FIRST AGGREGATE_MAX AGGREGATE_MS_MAX SKEW_MS_MAX
        DETAIL_BYTES_MAX PARAMS_MAX MATCHES_MAX
        (AgentId) BYTES_MAX (ToolId) BYTES_MAX (IdempotencyKey) BYTES_MAX (Names) COUNT_MAX
        (Name) BYTES_MAX (Paths) RULES_MAX (RootName) BYTES_MAX (RootedPath) COMPONENT_BYTES_MAX
        (RootedPath) COMPONENTS_MAX (Hosts) PATTERNS_MAX (Host) BYTES_MAX (Host) LABEL_BYTES_MAX
        (HostPattern) SUFFIX_BYTES_MAX (Ports) RANGES_MAX (Cidrs) BLOCKS_MAX
    }
    .into();
    // `NAME` = value, wherever it stands.
    let spec = spec().replace('\n', " ");
    let mut written = BTreeSet::new();
    for (before, after) in spec.match_indices("` = ").map(|(at, _)| spec.split_at(at)) {
        let name = before.rsplit('`').next().unwrap();
        let digits = after["` = ".len()..].split(|c: char| !c.is_ascii_digit()).next().unwrap();
        assert_eq!(known.get(name), digits.parse().ok().as_ref(), "{name}");
        written.insert(name.to_owned());
    }
    assert_eq!(written, known.into_keys().collect(), "every limit stands there");
    let source = fs::read_to_string(root().join("kernel/src/limits.rs")).unwrap();
    for line in source.lines().filter_map(|line| line.strip_prefix("pub const ")) {
        let (name, _) = line.split_once(':').unwrap();
        assert!(written.contains(name), "{name}");
    }
    assert_eq!(HomeLimits::default().skew_ms_max, limits::SKEW_MS_MAX);
    assert_eq!(HomeLimits::default().in_flight_max, limits::IN_FLIGHT_MAX.try_into().unwrap());
    assert!(spec.contains(&format!("more than {} ms", limits::TOKEN_LIFE_MS_MAX)), "the gap");
    assert!(spec.contains(&format!("up to {} in a row", limits::REFUSALS_IN_A_ROW_MAX)));
    let verdicts =
        [Verified::Sound, Verified::Tampered, Verified::Incomplete, Verified::NotAnchored];
    let codes: Vec<String> =
        table("Exit code | Verdict").iter().map(|row| row[0].clone()).collect();
    assert_eq!(codes, verdicts.map(|verdict| verdict.exit_code().to_string()));
}

// The examples.

fn key(role: Role) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(role.code()).unwrap(); 32])
}

fn public(role: Role) -> PublicKey {
    PublicKey::new(key(role).verifying_key().to_bytes()).unwrap()
}

fn signed(role: Role, context: &[u8], message: &[u8]) -> Signature {
    Signature::from_bytes(key(role).sign(&preimage(context, message)).to_bytes())
}

const TIME: u64 = 1_800_000_000_000;

fn reading(ms: u64) -> Reading {
    Reading { wall: UnixMillis::new(TIME + ms), boottime_ms: ms }
}

/// A home that is made, opened and closed.
fn log() -> (HomeId, Vec<Vec<u8>>) {
    let roles = Role::ALL.iter().map(|role| public(*role)).collect::<Vec<_>>();
    let new = NewHome {
        entropy: [0xe1; 32],
        origin: Box::from("syscap"),
        limits: HomeLimits::default(),
        durability: Durability::Full,
        roles: Roles::new(roles.try_into().unwrap()),
    };
    let parts = Parts { engine: Box::new(WithinToken), registry: Registry::new() };
    let mut kernel = Kernel::create(new, parts, reading(0)).unwrap();
    let boot = Event::Boot {
        ticket: Ticket(1),
        id: [0xb0; 16],
        software: Box::from("syscap 0.1.0"),
        durability: Durability::Full,
    };
    kernel.handle(boot, reading(1));
    kernel.handle(Event::Shutdown(Ticket(2)), reading(2));
    let batch = kernel.take_batch().unwrap();
    (kernel.home(), batch.links().iter().map(|link| link.bytes.clone()).collect())
}

/// A token for the example's home.
fn token(home: HomeId) -> Vec<u8> {
    let agent = AgentId::new("team/reader").unwrap();
    let path = RootedPath::new(Root::Workspace(agent.clone()), [""; 0]).unwrap();
    let scope = Scope::paths([Rule { path, rights: Rights::READ }]).unwrap();
    let tool = ToolId::new("fs.read").unwrap();
    let body = TokenBody {
        version: 1,
        nonce: [0xa0; 16],
        issuer: public(Role::Issuer),
        holder: None,
        agent,
        parent: None,
        depth: 0,
        depth_max: 0,
        not_before: UnixMillis::new(TIME),
        expires: UnixMillis::new(TIME + 3_600_000),
        epoch: 0,
        grants: Grants::new().with(tool, Scopes::new().with("path", scope)),
        budget: Budget::none()
            .with(Dimension::Calls, 100)
            .with(Dimension::CpuUs, 1_000_000)
            .with(Dimension::WallUs, 10_000_000)
            .with(Dimension::Concurrent, 1),
        caveats: List(Vec::new()),
        policy: None,
        flags: TokenFlags::READ_ONLY,
        ext: MapBuilder::new().finish(),
        audience: home,
    }
    .to_bytes();
    Token::wire(&body, &signed(Role::Issuer, TOKEN_CONTEXT, &body))
}

#[test]
fn the_example_is_what_the_code_makes() {
    let (home, records) = log();
    for (name, record) in ["genesis", "boot", "shutdown"].into_iter().zip(&records) {
        assert_eq!(hex(&dump(name)), hex(record), "{name}");
        assert_eq!(Record::decode(record).unwrap().body.kind().name(), name);
    }
    let spec = spec();
    let last = leaf(&records[2]);
    assert!(spec.contains(&format!("Home id, leaf of record 0: `{home}`\n")));
    assert!(spec.contains(&format!("Head: position 2, leaf `{last}`\n")));
    let wire = token(home);
    assert_eq!(hex(&dump("token")), hex(&wire));
    assert!(spec.contains(&format!("Token id: `{}`\n", Token::read(&wire).unwrap().id())));
    assert!(spec.contains("byte string of 207 bytes"));
}

/// Each line of a dump that is not a string's content begins at an item, so that no comment
/// slips to another one.
#[test]
fn dumps_are_cut_between_items() {
    for name in ["genesis", "boot", "shutdown", "token"] {
        let bytes = dump(name);
        Item::check(&bytes, Profile::CONTROL).unwrap();
        let mut places = BTreeSet::new();
        heads(&bytes, 0, &mut places);
        if name == "token" {
            let mut decoder = Decoder::new(&bytes, Profile::CONTROL);
            decoder.array().unwrap();
            decoder.uint().unwrap();
            decoder.uint().unwrap();
            let body = decoder.bytes().unwrap();
            heads(body, decoder.position() - body.len(), &mut places);
        }
        let spec = spec();
        let block = spec.split(&format!("```hex {name}\n")).nth(1).unwrap();
        let mut at = 0;
        for line in block.split("```").next().unwrap().lines() {
            let commented = line.contains(';');
            assert!(places.contains(&at) || !commented, "{name}: {line}");
            let digits = line.split(';').next().unwrap().replace(' ', "");
            at += digits.len() / 2;
        }
    }
}

/// Where heads stand.
fn heads(bytes: &[u8], offset: usize, places: &mut BTreeSet<usize>) {
    let mut at = 0;
    while at < bytes.len() {
        places.insert(offset + at);
        let (major, info) = (bytes[at] >> 5, bytes[at] & 31);
        let width = if info < 24 { 0 } else { 1 << (info - 24) };
        let argument = &bytes[at + 1..=at + width];
        let value = argument.iter().fold(0, |value, byte| (value << 8) | usize::from(*byte));
        let value = if width == 0 { usize::from(info) } else { value };
        at += 1 + width + if matches!(major, 2 | 3) { value } else { 0 };
    }
}

#[test]
fn vectors_are_what_the_code_makes() {
    let (home, _) = log();
    let (salt, tool) = (Salt::from_bytes([0x11; 32]), ToolId::new("echo").unwrap());
    let manifest = ObjectId::from_bytes([0x22; 32]);
    let args = MapBuilder::new().text("text", "hi").finish();
    let envelope = MapBuilder::new().text("tool_id", "echo").item("args", args.item()).finish();
    let mut refusals = Encoder::new();
    for (time, reason) in [(TIME, Reason::OutOfScope), (TIME + 1, Reason::OverBudget)] {
        refusals.array(2);
        refusals.uint(time);
        refusals.uint(reason.code());
    }
    let policy = PolicyObject::of(&WithinToken);
    let tools = ToolsObject { tools: List(Vec::new()) };
    let snapshot = Snapshot::genesis(AgentId::new("team/reader").unwrap());
    let revocation = Revocation { token: Token::read(&token(home)).unwrap().id() }.to_bytes();
    let revoker = public(Role::Revoker);
    let message = Control::message(&home, &revoker, 1, Kind::Revoke, &revocation);
    let signature = signed(Role::Revoker, CONTROL_CONTEXT, &message);
    let control = Control { key: revoker, counter: 1, body: revocation.clone(), signature };
    assert_eq!(control.verify(&home, Kind::Revoke), Ok(()));
    let shown = |bytes: &[u8]| format!("h'{}'", hex(bytes));
    let wanted = [
        (String::new(), args_hash(&salt, &tool, &manifest, args.item()).to_string()),
        (String::new(), sent_hash(&salt, &tool, args.item()).to_string()),
        (shown(envelope.as_bytes()), call_hash(&salt, envelope.as_bytes()).to_string()),
        (String::new(), result_hash(&salt, Status::Ok.code(), args.item()).to_string()),
        (String::new(), hex(&Domain::REFUSALS.hash(&[&refusals.into_bytes()]))),
        (shown(&policy.to_bytes()), policy.hash().to_string()),
        (shown(&tools.to_bytes()), tools.hash().to_string()),
        (shown(&snapshot.to_bytes()), snapshot.id().to_string()),
        (shown(&revocation), hex(&message)),
        (String::new(), hex(signature.as_bytes())),
    ];
    let rows = table("What | Of | Value");
    assert_eq!(rows.len(), wanted.len());
    for (row, (of, value)) in rows.iter().zip(wanted) {
        assert!(row[1].contains(&of), "{}: {of}", row[0]);
        assert_eq!(row[2], format!("`{value}`"), "{}", row[0]);
    }
    assert!(spec().contains(&shown(args.as_bytes())));
}

#[test]
fn the_trust_file_has_its_form() {
    let (home, records) = log();
    let syscap::kernel::record::Body::Genesis(genesis) = Record::decode(&records[0]).unwrap().body
    else {
        panic!("no genesis");
    };
    let Genesis { roles, .. } = *genesis;
    let mut wanted = Encoder::new();
    wanted.map(3);
    wanted.uint(1);
    wanted.uint(1);
    wanted.uint(2);
    wanted.bytes(home.as_bytes());
    wanted.uint(3);
    wanted.array(5);
    Role::ALL.iter().for_each(|role| wanted.bytes(public(*role).as_bytes()));
    assert_eq!(Trust { home, roles }.to_bytes(), wanted.into_bytes());
    let text = "{1: version, which is 1; 2: the home's id, bstr of 32; 3: [issuer, policy, \
                revoker, approver, operator], each bstr of 32 key}";
    assert!(spec().replace('\n', " ").contains(text));
}

/// The keys in the first column of a table.
fn keys(head: &str, heading: &str) -> BTreeSet<String> {
    let found = tables()
        .into_iter()
        .find(|table| table.heading.starts_with(heading) && table.head.join(" | ") == head);
    let rows = found.expect(heading).rows;
    rows.iter().flat_map(|row| code(&row[0])).map(str::to_owned).collect()
}

fn entries(item: Item<'_>) -> BTreeSet<String> {
    item.entries().map(|(key, _)| key.to_owned()).collect()
}

#[test]
fn results_have_the_keys_that_stand_there() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Process);
    let runtime = options.create(folder.path().join("home")).unwrap();
    let token = runtime.issue(Grant::to("reader").tools(["echo"])).unwrap();
    let session = runtime.session("reader", token).unwrap();
    let call = |envelope: &str| session.send_json(envelope.as_bytes()).unwrap();
    let (good, bad) = (
        call(r#"{"tool_id": "echo", "args": {"text": "hi"}}"#),
        call(r#"{"tool_id": "echo", "args": {"text": "hi", "bcc": 1}}"#),
    );
    let whole = |result: &ToolResult| -> Canonical { result.to_canonical() };
    assert_eq!((good.status(), bad.status()), (Status::Ok, Status::Error));
    let mut both = entries(whole(&good).item());
    both.extend(entries(whole(&bad).item()));
    assert_eq!(keys("Key | Form", "6.2"), both);
    let good = whole(&good);
    let receipt = good.item().get("receipt").unwrap();
    assert_eq!(keys("Key of the receipt | Form", "6.2"), entries(receipt));
    runtime.close().unwrap();
    let refused = Refused::new(Reason::Denied).field("a").got("b").allowed("c");
    let object = refused.error_object(ErrorKind::Refused);
    let text = "`{kind, code, reason, retry, hint}`, and `field`, `got`, `allowed`";
    assert!(spec().contains(text));
    let wanted: BTreeSet<String> = text
        .split(|c: char| !c.is_ascii_lowercase())
        .filter(|word| !matches!(*word, "" | "and"))
        .map(str::to_owned)
        .collect();
    assert_eq!(entries(object.item()), wanted);
}

/// An envelope with all fields passes; one without a filled-in field passes; one without
/// another is refused for it.
#[test]
fn envelopes_are_completed_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Process);
    let runtime = options.create(folder.path().join("home")).unwrap();
    let token: TokenId = runtime.issue(Grant::to("reader").tools(["echo"])).unwrap();
    let session = runtime.session("reader", token).unwrap();
    let agent = AgentId::new("reader").unwrap();
    let snapshot: SnapshotId = Snapshot::genesis(agent).id();
    let policy = runtime.look(|kernel| kernel.policy_hash().unwrap());
    let args = MapBuilder::new().text("text", "hi").finish();
    let source = MapBuilder::new().text("source", Source::User.name()).finish();
    let value = |map: MapBuilder, key: &str| match key {
        "v" => map.uint(key, 1),
        "tool_id" => map.text(key, "echo"),
        "args" => map.item(key, args.item()),
        "agent_id" => map.text(key, "reader"),
        "capability_token_id" => map.bytes(key, token.as_bytes()),
        "state_snapshot_id" => map.text(key, &snapshot.to_string()),
        "policy_hash" => map.bytes(key, policy.as_bytes()),
        "provenance" => map.item(key, source.item()),
        "idempotency_key" => map,
        _ => panic!("what is {key}?"),
    };
    let rows = table("Key | Form | Where absent");
    let named: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row[2] != "must be absent" && row[0] != "any other")
        .map(|row| (code(&row[0])[0], row[2].split(':').next().unwrap()))
        .collect();
    for absent in named.iter().map(|(key, _)| *key).chain(["none"]) {
        let present = named.iter().filter(|(key, _)| *key != absent);
        let envelope = present.fold(MapBuilder::new(), |map, (key, _)| value(map, key));
        let result = session.send_cbor(envelope.finish().as_bytes()).unwrap();
        let refused = named.contains(&(absent, "refused"));
        assert_eq!(result.reason(), refused.then_some(Reason::MissingField), "{absent}");
    }
    let proof = value(value(MapBuilder::new(), "tool_id"), "args").uint("proof", 1).finish();
    let result = session.send_cbor(proof.as_bytes()).unwrap();
    assert_eq!(result.reason(), Some(Reason::BadProof));
    runtime.close().unwrap();
}

#[test]
fn prose_is_plain() {
    let mut fenced = false;
    for line in spec().lines() {
        fenced ^= line.starts_with("```");
        assert!(line.is_ascii(), "{line}");
        assert!(line.len() <= 100 || line.starts_with('|'), "{line}");
        assert!(!line.ends_with(' '), "{line}");
    }
    assert!(!fenced);
}
