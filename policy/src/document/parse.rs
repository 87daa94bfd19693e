//! Reads a document whole, or says what is wrong with it.

use core::cell::Cell;

use alloc::{boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};

use syscap_format::json::{self, JsonFault};
use syscap_format::{
    Canonical, ConstraintId, DecodeFault, Item, ItemKind, Profile, ToolId, Verdict,
};

use syscap_kernel::Level;

use super::attribute::Type;
use super::condition::{Ask, Condition, Constant};
use super::constraint::{Constraint, Document, Effect, OnFail, Subject};
use super::error::{LoadError, LoadFault};
use super::params::{Params, RESERVED};
use super::place::{Node, Place, find_foreign};
use super::when::Reader;
use super::{constant, obligations, write};
use crate::limits::{
    CONSTRAINTS_MAX, DOCUMENT_BYTES_MAX, EXAMPLES_MAX, OBLIGATIONS_ALL_MAX, REASON_BYTES_MAX,
    TEXT_BYTES_MAX,
};

/// A document, and what stands in it beside what it says.
pub(crate) struct Parsed<'a> {
    pub(crate) document: Document,
    /// Its canonical bytes: what is hashed. They parse to this very document.
    pub(crate) bytes: Box<[u8]>,
    /// The examples that must hold of it.
    pub(crate) examples: Vec<Example<'a>>,
    /// Every tool that it names.
    pub(crate) tools: BTreeSet<ToolId>,
    /// The approvers of calls that need that level.
    pub(crate) elevated: Option<Level>,
    /// By which means others may approve.
    pub(crate) client: Option<Level>,
    /// How many tests were left open.
    opened: usize,
}

/// The expected outcome of one scenario.
pub(crate) struct Example<'a> {
    /// The constraint's id.
    pub(crate) id: ConstraintId,
    /// The scenario.
    pub(crate) given: Item<'a>,
    pub(crate) holds: Option<bool>,
    pub(crate) verdict: Option<Verdict>,
    /// Places of the constraint and of the example in it, as written.
    written: (usize, usize),
}

impl Example<'_> {
    /// The example is at fault: `key` says by what.
    pub(crate) fn error(&self, fault: LoadFault, below: &str, key: &str) -> LoadError {
        let (constraint, example) = self.written;
        let place = format!("constraints[{constraint}].examples[{example}]{below}");
        LoadError::new(fault, key, place)
    }
}

/// Reads JSON text as canonical bytes, which are yet to be read as a document.
pub(crate) fn text(text: &[u8]) -> Result<Canonical, LoadError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Place::TOP.error(LoadFault::TooLarge, &format!("{} bytes", text.len())));
    }
    json::to_cbor(text).map_err(|error| {
        let fault = match error.fault {
            JsonFault::DuplicateKey => LoadFault::DuplicateKey,
            JsonFault::Depth => LoadFault::TooDeep,
            JsonFault::FloatRange => LoadFault::Float,
            other => LoadFault::Json(other),
        };
        LoadError::new(fault, &key_at(text, error.at), format!("byte {}", error.at))
    })
}

/// The key that begins at a byte of the text, where one does.
fn key_at(text: &[u8], at: usize) -> String {
    let mut rest = text.get(at..).unwrap_or_default().split(|byte| *byte == b'"');
    match (rest.next(), rest.next()) {
        (Some([]), Some(key)) => String::from_utf8_lossy(key).into_owned(),
        _ => String::new(),
    }
}

impl<'a> Parsed<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, LoadError> {
        Self::read_as(bytes, None)
    }

    /// The document with each test that a parameter decides left open, where there is one: such a
    /// test is held against nothing, so that it may go either way.
    pub(crate) fn opened(bytes: &'a [u8]) -> Option<Document> {
        let parsed = Self::read_as(bytes, Some(Cell::new(0))).ok()?;
        (parsed.opened > 0).then_some(parsed.document)
    }

    fn read_as(bytes: &'a [u8], open: Option<Cell<usize>>) -> Result<Self, LoadError> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(Place::TOP.error(LoadFault::TooLarge, &format!("{} bytes", bytes.len())));
        }
        let item = checked(bytes)?;
        let top = Node { item, place: Place::TOP };
        let [version, constraints, params] = top.keys(["v", "constraints", "params"])?;
        check_version(&top.below("v", top.need("v", version)?))?;
        let constraints = top.below("constraints", top.need("constraints", constraints)?);
        let mut written = match params {
            Some(params) => Params::read(&Node { item: params, place: top.place.key("params") })?,
            None => Params::default(),
        };
        written.open = open;
        let mut found = Found::default();
        let items = constraints.list(CONSTRAINTS_MAX, LoadFault::TooManyConstraints)?;
        for (n, item) in items.into_iter().enumerate() {
            found.constraint(&constraints.at(n, item), n, &written)?;
        }
        if let Some(item) = params {
            written.all_used(&Node { item, place: top.place.key("params") })?;
        }
        found.tools.extend(written.tools());
        found.finish(&constraints, &written, params)
    }
}

fn checked(bytes: &[u8]) -> Result<Item<'_>, LoadError> {
    Item::check(bytes, Profile::CONTROL).map_err(|error| {
        // The whole can still be read as data: then the place can be named.
        if matches!(error.fault, DecodeFault::Float | DecodeFault::Depth)
            && let Ok(item) = Item::check(bytes, Profile::DATA)
        {
            let node = Node { item, place: Place::TOP };
            if let Some(error) = find_foreign(node, Profile::CONTROL.depth_max()) {
                return error;
            }
        }
        let fault = match error.fault {
            DecodeFault::DuplicateKey => LoadFault::DuplicateKey,
            DecodeFault::Depth => LoadFault::TooDeep,
            DecodeFault::Float => LoadFault::Float,
            other => LoadFault::Cbor(other),
        };
        LoadError::new(fault, "", format!("byte {}", error.at))
    })
}

fn check_version(node: &Node<'_, '_>) -> Result<(), LoadError> {
    match node.uint()? {
        1 => Ok(()),
        other => {
            let error = node.error(LoadFault::Version, &format!("{other}"));
            Err(error.suggest(Some(String::from("1"))))
        }
    }
}

/// One constraint with what it came from.
struct Read {
    constraint: Constraint,
    canonical: Canonical,
    written: usize,
}

/// The parts read so far.
#[derive(Default)]
struct Found<'a> {
    all: Vec<Read>,
    examples: Vec<Example<'a>>,
    tools: BTreeSet<ToolId>,
    obligations: BTreeSet<(u64, Option<Box<str>>)>,
}

impl<'a> Found<'a> {
    fn constraint(
        &mut self,
        node: &Node<'a, '_>,
        written: usize,
        params: &Params<'_>,
    ) -> Result<(), LoadError> {
        let [version, id, effect, subject, when, on_fail, reason, asked, examples] =
            node.keys([
                "v",
                "id",
                "effect",
                "subject",
                "when",
                "on_fail",
                "reason",
                "obligations",
                "examples",
            ])?;
        if let Some(version) = version {
            check_version(&node.below("v", version))?;
        }
        let id = read_id(&node.below("id", node.need("id", id)?))?;
        let effect = read_effect(&node.below("effect", node.need("effect", effect)?))?;
        let subject_item = node.need("subject", subject)?;
        let subject = read_subject(&node.below("subject", subject_item))?;
        let when_item = node.need("when", when)?;
        let when = Reader::new(params).condition(&node.below("when", when_item))?;
        let on_fail_node = node.below("on_fail", node.need("on_fail", on_fail)?);
        let on_fail = read_on_fail(&on_fail_node, effect)?;
        let reason = read_reason(&node.below("reason", node.need("reason", reason)?))?;
        let asked = match asked {
            Some(item) => {
                let place = node.below("obligations", item);
                let united = obligations::read(&place, effect, on_fail)?;
                self.count(&place, &united)?;
                united
            }
            None => Vec::new(),
        };
        if on_fail == OnFail::Degrade && !asked.iter().any(|asked| asked.kind.takes_away()) {
            return Err(on_fail_node.error(LoadFault::DegradeWithoutObligation, "degrade"));
        }
        if let Some(item) = examples {
            self.examples(&node.below("examples", item), &id, written)?;
        }
        if let Subject::Tool(tool) = &subject {
            self.tools.insert(tool.clone());
        }
        tools_of(&when, &mut self.tools);
        let constraint =
            Constraint { id, effect, subject, when, on_fail, reason, obligations: asked };
        let canonical = write::constraint(&constraint, subject_item, when_item, examples);
        self.all.push(Read { constraint, canonical, written });
        Ok(())
    }

    /// Holds the obligations of all constraints against what one decision may hold: two of one
    /// kind and name unite to one.
    fn count(
        &mut self,
        node: &Node<'_, '_>,
        united: &[syscap_format::Obligation],
    ) -> Result<(), LoadError> {
        for asked in united {
            self.obligations.insert((asked.kind.code(), asked.name.clone()));
        }
        if self.obligations.len() > OBLIGATIONS_ALL_MAX {
            let count = format!("{}", self.obligations.len());
            return Err(node.error(LoadFault::TooManyObligations, &count));
        }
        Ok(())
    }

    fn examples(
        &mut self,
        node: &Node<'a, '_>,
        id: &ConstraintId,
        written: usize,
    ) -> Result<(), LoadError> {
        let items = node.list(EXAMPLES_MAX, LoadFault::TooManyExamples)?;
        for (n, item) in items.into_iter().enumerate() {
            let example = node.at(n, item);
            let [given, holds, verdict] = example.keys(["given", "holds", "verdict"])?;
            let given = example.need("given", given)?;
            let holds = holds.map(|item| example.below("holds", item).boolean()).transpose()?;
            let verdict =
                verdict.map(|item| read_verdict(&example.below("verdict", item))).transpose()?;
            if holds.is_none() && verdict.is_none() {
                return Err(example.error(LoadFault::EmptyExample, ""));
            }
            let written = (written, n);
            self.examples.push(Example { id: id.clone(), given, holds, verdict, written });
        }
        Ok(())
    }

    fn finish(
        mut self,
        node: &Node<'_, '_>,
        params: &Params<'_>,
        written: Option<Item<'_>>,
    ) -> Result<Parsed<'a>, LoadError> {
        self.all.sort_by(|a, b| a.constraint.id.cmp(&b.constraint.id));
        for (first, second) in self.all.iter().zip(self.all.iter().skip(1)) {
            if first.constraint.id == second.constraint.id {
                let place = node.place.index(first.written.max(second.written));
                let error =
                    place.key("id").error(LoadFault::DuplicateId, first.constraint.id.as_str());
                return Err(error);
            }
        }
        contradiction(node, &self.all)?;
        let bytes = write::document(self.all.iter().map(|read| &read.canonical), written);
        let mut constraints: Vec<Constraint> =
            self.all.into_iter().map(|read| read.constraint).collect();
        constraints.extend(params.constraints());
        if constraints.len() > CONSTRAINTS_MAX {
            let count = format!("{}", constraints.len());
            return Err(node.error(LoadFault::TooManyConstraints, &count));
        }
        constraints.sort_by(|a, b| a.id.cmp(&b.id));
        let bytes = bytes.into_bytes().into_boxed_slice();
        let document = Document { constraints, risk: params.risk.clone() };
        let (elevated, client) = (params.elevated.clone(), params.client.clone());
        let opened = params.open.as_ref().map_or(0, Cell::get);
        let (examples, tools) = (self.examples, self.tools);
        Ok(Parsed { document, bytes, examples, tools, elevated, client, opened })
    }
}

/// An allow that is always taken back says nothing: one of the two is a mistake.
fn contradiction(node: &Node<'_, '_>, all: &[Read]) -> Result<(), LoadError> {
    let key = |read: &&Read| {
        let Constraint { effect, .. } = read.constraint;
        (effect == Effect::Allow, read.written)
    };
    let mut order: Vec<&Read> = all
        .iter()
        .filter(|read| {
            read.constraint.effect == Effect::Allow || read.constraint.on_fail == OnFail::Block
        })
        .collect();
    order.sort_by(|a, b| {
        let (x, y) = (&a.constraint, &b.constraint);
        (&x.subject, &x.when).cmp(&(&y.subject, &y.when)).then_with(|| key(a).cmp(&key(b)))
    });
    for (deny, allow) in order.iter().zip(order.iter().skip(1)) {
        let (x, y) = (&deny.constraint, &allow.constraint);
        if x.effect != y.effect && x.subject == y.subject && x.when == y.when {
            let error = node.place.index(allow.written);
            let error = error.error(LoadFault::Contradiction, y.id.as_str());
            return Err(error.suggest(Some(format!("take out this or {}", x.id))));
        }
    }
    Ok(())
}

fn read_id(node: &Node<'_, '_>) -> Result<ConstraintId, LoadError> {
    let text = node.text()?;
    let id = ConstraintId::new(text).ok_or_else(|| node.error(LoadFault::BadId, text))?;
    if text.starts_with(RESERVED) { Err(node.error(LoadFault::ReservedId, text)) } else { Ok(id) }
}

fn read_effect(node: &Node<'_, '_>) -> Result<Effect, LoadError> {
    let text = node.text()?;
    let found = Effect::ALL.into_iter().find(|effect| effect.name() == text);
    found.ok_or_else(|| {
        node.not_one_of(LoadFault::UnknownEffect, text, &Effect::ALL.map(Effect::name))
    })
}

fn read_on_fail(node: &Node<'_, '_>, effect: Effect) -> Result<OnFail, LoadError> {
    let text = node.text()?;
    let found = OnFail::ALL.into_iter().find(|on_fail| on_fail.name() == text);
    let found = found.ok_or_else(|| {
        node.not_one_of(LoadFault::UnknownOnFail, text, &OnFail::ALL.map(OnFail::name))
    })?;
    if effect == Effect::Allow && found == OnFail::Degrade {
        let error = node.error(LoadFault::DegradeOnAllow, text);
        return Err(error.suggest(Some(String::from("block, ask, defer"))));
    }
    Ok(found)
}

fn read_reason(node: &Node<'_, '_>) -> Result<Box<str>, LoadError> {
    let text = node.text()?;
    let fits = text.len() <= REASON_BYTES_MAX;
    if fits { Ok(Box::from(text)) } else { Err(node.error(LoadFault::ReasonTooLong, text)) }
}

fn read_verdict(node: &Node<'_, '_>) -> Result<Verdict, LoadError> {
    let text = node.text()?;
    let found = Verdict::ALL.iter().copied().find(|verdict| verdict.name() == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
        node.not_one_of(LoadFault::UnknownVerdict, text, &names)
    })
}

fn read_subject(node: &Node<'_, '_>) -> Result<Subject, LoadError> {
    if node.item.is_null() {
        return Ok(Subject::All);
    }
    if node.item.kind() != ItemKind::Map {
        return Err(node.error(LoadFault::Subject, &json::from_item(node.item)));
    }
    match node.keys(["tool_id", "capability"])? {
        [Some(tool), None] => {
            let tool = node.below("tool_id", tool);
            constant::tool(&tool, tool.text()?).map(Subject::Tool)
        }
        [None, Some(class)] => {
            let class = node.below("capability", class);
            constant::class(&class, class.text()?).map(Subject::Capability)
        }
        _ => Err(node.error(LoadFault::Subject, &json::from_item(node.item))),
    }
}

/// Adds the tools that a condition compares with.
fn tools_of(condition: &Condition, tools: &mut BTreeSet<ToolId>) {
    let test = match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            return parts.iter().for_each(|part| tools_of(part, tools));
        }
        Condition::Not(part) => return tools_of(part, tools),
        Condition::Test(test) if test.attribute.kind() == Type::Tool => test,
        Condition::Test(_) => return,
    };
    let constants = match &test.ask {
        Ask::Eq(constant) => core::slice::from_ref(constant),
        Ask::In(constants) => constants,
        _ => return,
    };
    for constant in constants {
        if let Constant::Text(text) = constant {
            tools.extend(ToolId::new(text));
        }
    }
}
