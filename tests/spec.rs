//! `docs/spec` says what the code does: its tables, numbers and examples are held against it.

mod document;
mod examples;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syscap::format::field::{FieldSpec, Shape as _};
use syscap::format::{
    AccountImage, AgentId, AgentImage, AggregatePhase, Algorithm, ApprovalAnswer, ApprovalBody,
    ApprovalChannel, ArgumentLabel, ArgumentResource, ArgumentSource, AskImage, COMMON_FIELDS,
    CONTROL_CONTEXT, CallFields, CancelBody, Cidrs, Confidentiality, ConfigChange, ConstraintId,
    Control, ControlBody, CreditChange, Decision, Dimension, Domain, Durability, EffectClass,
    Enforcement, EngineIdentity, Extra, FactImage, FactKey, Freeze, FreezeBecause, FreezeChange,
    FreezeTarget, HomeLimits, Host, HostPattern, Hosts, IN_FLIGHT_MAX, IdempotencyKey, Integrity,
    KeyChange, KeyImage, KeyStanding, KeysChangedImage, LateReport, Manifest, Name, Names,
    Namespace, Notify, ObjectKind, Obligation, ObligationKind, OpenImage, Opening,
    POSSESSION_CONTEXT, Param, ParamType, Paths, PolicyBecause, PolicyChange, PolicyObject, Ports,
    Possession, Precondition, PreconditionKind, Presence, PreviousRun, Profile, Proof, Provenance,
    PruneBody, REFUSALS_IN_A_ROW_MAX, RateImage, Reason, RecordKind, Recovered, RedactBody,
    RefusalKind, ReleasedImage, Resolution, Revocation, RevocationList, RevokeTarget, Role,
    RoleKey, RoleSet, RootName, RootedPath, RowImage, RunMode, RunningImage, SKEW_MS_MAX,
    ScopeType, SessionImage, SessionPhase, SetImage, Shadow, Signed, SignerImage, Snapshot, Source,
    StateImage, Status, TOKEN_CONTEXT, TOKEN_LIFE_MS_MAX, TermsImage, TokenBody, TokenImage,
    ToolEntry, ToolId, ToolsChange, ToolsObject, Trust, TxOutcome, UnreportedImage, Verdict,
};
use syscap::verify::Soundness as Verified;

use document::{bits, code, declared, facts, root, spec, table, tables, types};

// Shapes.

fn shapes() -> Vec<(&'static str, Vec<FieldSpec>)> {
    macro_rules! shapes {
        ($($name:ident)*) => { vec![$((stringify!($name), <$name>::fields()),)*] };
    }
    shapes! {
        CallFields HomeLimits Control Signed KeyChange RoleSet RoleKey Possession Revocation Freeze
        FreezeBecause PolicyChange PolicyBecause ToolsChange ConfigChange Resolution ApprovalBody CancelBody RedactBody
        PruneBody Provenance Decision Obligation Shadow ArgumentLabel Precondition EngineIdentity
        PolicyObject Manifest ArgumentResource Param ToolEntry ToolsObject Snapshot TokenBody Trust
        StateImage SignerImage TokenImage SessionImage RowImage ReleasedImage AgentImage FactImage
        OpenImage RunningImage KeyImage KeysChangedImage AskImage TermsImage SetImage RateImage
        CreditChange AccountImage RevocationList Notify Opening Proof LateReport UnreportedImage
    }
}

/// The struct of a kind's own part.
fn body_of(kind: RecordKind) -> String {
    match kind {
        RecordKind::Session => "SessionChange".to_owned(),
        RecordKind::State => "StateChange".to_owned(),
        RecordKind::Key
        | RecordKind::Revoke
        | RecordKind::Freeze
        | RecordKind::Policy
        | RecordKind::Tools
        | RecordKind::Config
        | RecordKind::Credit
        | RecordKind::Redact
        | RecordKind::Approval => "SignedEvent".to_owned(),
        _ => format!("{kind:?}"),
    }
}

/// The rows that the document must have for a shape.
fn wanted(fields: &[FieldSpec], types: &BTreeMap<u64, String>) -> Vec<String> {
    let row = |field: &FieldSpec| {
        let FieldSpec { key, name, shape, maybe } = field;
        let of = types.get(key).map_or("", String::as_str);
        let list = if of.starts_with("Vec<") && of != "Vec<u8>" { "list of " } else { "" };
        let form = match of.starts_with("Option<") {
            _ if *maybe => format!("{list}`{shape}`, or absent"),
            true => format!("`{shape}` or null"),
            false => format!("{list}`{shape}`"),
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
    for kind in RecordKind::ALL {
        let (fields, name) = (kind.fields(), body_of(*kind));
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
    let wanted = RecordKind::ALL.iter().map(|kind| {
        let written = if kind.is_reserved() { "reserved" } else { "yes" };
        let (code, name, version) = (kind.code(), kind.name(), kind.version());
        format!("SYSCAP-REC-{} | {code} | `{name}` | {version} | {written}", 100 + code)
    });
    let rows = facts(&table("Requirement | Number | Kind | Version | Written | Meaning"));
    assert_eq!(rows, wanted.collect::<Vec<_>>());
    assert_eq!(rows.len(), 29);
    // What replay does with each.
    let spec = spec();
    for kind in RecordKind::ALL.iter().filter(|kind| !kind.is_reserved()) {
        assert!(spec.contains(&format!("\n### `{kind}`\n")), "no steps of {kind}");
    }
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
        Role Algorithm Durability PreviousRun SessionPhase RevokeTarget FreezeTarget FreezeChange
        EffectClass Integrity Confidentiality Enforcement Presence ParamType Extra Source Namespace
        ObligationKind Verdict RunMode ArgumentSource PreconditionKind Status TxOutcome RefusalKind
        AggregatePhase Recovered ApprovalChannel ApprovalAnswer KeyStanding ObjectKind ScopeType
    }
    let mut written: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let rows = facts(&table("Code | Number | Name | Meaning"));
    for row in &rows {
        written.entry(code(row)[0]).or_default().push(row.clone());
    }
    assert_eq!(written, wanted);
    let declared = declared("code!", "pub enum").into_keys().filter(|name| name != "RecordKind");
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
    let rows = table("Type | Name | Value");
    let rows: Vec<String> = rows.iter().map(|row| row[..2].join(" | ")).collect();
    let wanted = ScopeType::ALL.iter().map(|scope| {
        let name = format!("{scope:?}").to_lowercase();
        format!("{} | {name}", scope.code())
    });
    assert_eq!(rows, wanted.collect::<Vec<_>>());
}

#[test]
fn roles_sign_what_the_document_says() {
    let wanted = RecordKind::ALL.iter().filter_map(|kind| {
        let (role, body) = (Role::of(*kind)?, control_body(*kind));
        Some(format!("`{kind}` | {role} | `{body}`"))
    });
    let rows = table("Kind | Role | Body");
    let rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
    assert_eq!(rows, wanted.collect::<Vec<_>>());
    let contexts = table("What | Context | Then");
    let wanted =
        [TOKEN_CONTEXT, CONTROL_CONTEXT, POSSESSION_CONTEXT, Opening::CONTEXT, Proof::CONTEXT];
    assert_eq!(contexts.len(), wanted.len());
    for (row, context) in contexts.iter().zip(wanted) {
        let context = core::str::from_utf8(context).unwrap().replace('\0', "\\0");
        assert_eq!(row[1], format!("`{context}`"));
    }
}

fn control_body(kind: RecordKind) -> &'static str {
    macro_rules! bodies {
        ($($name:ident)*) => { [$((<$name as ControlBody>::KIND, stringify!($name)),)*] };
    }
    let bodies = bodies! {
        KeyChange Revocation Freeze PolicyChange ToolsChange ConfigChange ApprovalBody CancelBody
        Resolution RedactBody PruneBody CreditChange
    };
    bodies.iter().find(|(of, _)| *of == kind).expect("a body").1
}

#[test]
fn every_key_of_a_token_has_a_rule_of_derivation() {
    let spec = spec();
    let section = spec.split("\n### Derivation\n").nth(1).unwrap().split("\n### ").next().unwrap();
    for field in TokenBody::fields() {
        assert!(code(section).contains(&field.name), "{}", field.name);
    }
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
        (Domain::FACT, "FACT"),
        (Domain::MATCHES, "MATCHES"),
        (Domain::DEFINITION, "DEFINITION"),
        (Domain::RECOVERY, "RECOVERY"),
        (Domain::TEXT, "TEXT"),
        (Domain::STATE, "STATE"),
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
    (@value $name:ident) => { u64::try_from(syscap::format::$name).unwrap() };
}

#[test]
fn limits_have_their_values() {
    let mut known: BTreeMap<String, u64> = named! {
        ENVELOPE_BYTES_MAX RECORD_BYTES_MAX OBJECT_BYTES_MAX TOKEN_BYTES_MAX RESULT_BYTES_MAX
        TOKEN_LIFE_MS_MAX TOKEN_DEPTH_MAX GRANTS_MAX DIMENSIONS_MAX PROVENANCE_INPUTS_MAX
        TRACE_BYTES_MAX REFERENCES_MAX LOOKUPS_MAX RELEASED_MAX IN_FLIGHT_MAX SESSIONS_MAX
        REFUSALS_IN_A_ROW_MAX AGGREGATE_FIRST AGGREGATE_MAX AGGREGATE_MS_MAX SKEW_MS_MAX
        DETAIL_BYTES_MAX PARAMS_MAX MATCHES_MAX OBLIGATIONS_MAX OBLIGATION_NAME_BYTES_MAX
        FACTS_MAX CHANGES_MAX FACT_BYTES_MAX ANCESTORS_MAX ROLE_KEYS_MAX RECENT_HEADS_MAX
        DEMANDS_MAX TEXT_BYTES_MAX ASK_LIFE_MS SET_USES_MAX SET_LIFE_MS SETS_MAX CONTROL_BODY_BYTES_MAX
        (AgentId) BYTES_MAX (ToolId) BYTES_MAX (IdempotencyKey) BYTES_MAX
        (ConstraintId) BYTES_MAX (FactKey) NAME_BYTES_MAX (Names) COUNT_MAX
        (Name) BYTES_MAX (Paths) RULES_MAX (RootName) BYTES_MAX (RootedPath) COMPONENT_BYTES_MAX
        (RootedPath) COMPONENTS_MAX (Hosts) PATTERNS_MAX (Host) BYTES_MAX (Host) LABEL_BYTES_MAX
        (HostPattern) SUFFIX_BYTES_MAX (Ports) RANGES_MAX (Cidrs) BLOCKS_MAX
    }
    .into();
    // The only limit of the engine's that a decision of a document in force depends on.
    let list = u64::try_from(syscap::policy::limits::LIST_MAX).unwrap();
    known.insert("LIST_MAX".to_owned(), list);
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
    let source = fs::read_to_string(root().join("kernel/format/src/limits.rs")).unwrap();
    for line in source.lines().filter_map(|line| line.strip_prefix("pub const ")) {
        let (name, _) = line.split_once(':').unwrap();
        assert!(written.contains(name), "{name}");
    }
    // These say which documents are read, and what advice tells: no verdict is another by them.
    let of_documents = [
        "DOCUMENT_BYTES_MAX",
        "TEXT_BYTES_MAX",
        "CONSTRAINTS_MAX",
        "NODES_MAX",
        "CONSTANTS_MAX",
        "CONSTANTS_ALL_MAX",
        "ADVISED_MAX",
        "EXAMPLES_WORK_MAX",
        "TEXT_CONSTANT_BYTES_MAX",
        "REASON_BYTES_MAX",
        "EXAMPLES_MAX",
        "OBLIGATIONS_MAX",
        "OBLIGATIONS_ALL_MAX",
        "PARAMS_MAX",
        "PARAM_NAME_BYTES_MAX",
        "FIELDS_MAX",
        "TOPIC_BYTES_MAX",
        "RISK_MAX",
    ];
    let source = fs::read_to_string(root().join("policy/src/limits.rs")).unwrap();
    for line in source.lines().filter_map(|line| line.strip_prefix("pub const ")) {
        let (name, _) = line.split_once(':').unwrap();
        assert!(written.contains(name) || of_documents.contains(&name), "{name}");
    }
    assert_eq!(HomeLimits::default().skew_ms_max, SKEW_MS_MAX);
    assert_eq!(HomeLimits::default().in_flight_max, u64::try_from(IN_FLIGHT_MAX).unwrap());
    assert_eq!(HomeLimits::default().key_life_ms, TOKEN_LIFE_MS_MAX);
    assert!(spec.contains(&format!("more than {} ms", TOKEN_LIFE_MS_MAX)), "the gap");
    assert!(spec.contains(&format!("up to {} in a row", REFUSALS_IN_A_ROW_MAX)));
    let verdicts = [
        Verified::Sound,
        Verified::Tampered,
        Verified::Incomplete,
        Verified::NotAnchored,
        Verified::Newer,
    ];
    let codes: Vec<String> =
        table("Exit code | Verdict").iter().map(|row| row[0].clone()).collect();
    assert_eq!(codes, verdicts.map(|verdict| verdict.exit_code().to_string()));
}

/// Every fault of the verifier but the one that no export has: a store's head elsewhere.
#[test]
fn every_fault_has_a_requirement() {
    let source = fs::read_to_string(root().join("audit/verify/src/report.rs")).unwrap();
    let faults = source.split("pub enum Fault {").nth(1).unwrap().split("\n}\n").next().unwrap();
    let faults = faults.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','));
    let faults = faults.filter(|name| *name != "HeadMoved");
    let rows = table("Requirement | Fault | A verifier MUST find it where");
    let written: Vec<&str> = rows.iter().flat_map(|row| code(&row[1])).collect();
    assert_eq!(written, faults.collect::<Vec<_>>());
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
