//! Tool manifests: what a tool is called, takes, needs and may cost.

use alloc::{boxed::Box, vec::Vec};

use crate::budget::{Amounts, Dimension};
use crate::cbor::{Canonical, DecodeError, Profile};
use crate::field::{code, decode, encode, shape};
use crate::hash::{definition_hash, object_id};
use crate::id::{DefinitionHash, ObjectId, ToolId};
use crate::label::Label;
use crate::limits::{PARAMS_MAX, RESULT_BYTES_MAX};
use crate::obligation::ObligationKind;
use crate::scope::{ScopeDimension, ScopeType};

code! {
    /// The effect class of a tool: its effect on the world.
    pub enum EffectClass {
        /// No effect: the result depends on its arguments only, or on the clock.
        Pure = 1 "pure",
        /// Reads local state.
        Read = 2 "read",
        /// Changes local state.
        LocalWrite = 3 "local_write",
        /// Reads from elsewhere: asking discloses.
        ExternalRead = 4 "external_read",
        /// Changes state elsewhere.
        ExternalWrite = 5 "external_write",
        /// Can't be undone.
        Irreversible = 6 "irreversible",
    }
}

impl EffectClass {
    /// True if a call of this class changes nothing.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Pure | Self::Read)
    }
}

code! {
    /// How a run kept to its scope.
    pub enum Enforcement {
        /// There was nothing to enforce: no resource was touched.
        None = 0 "none",
        /// `openat2` beneath a directory handle: the operating system resolved the path.
        Openat2 = 1 "openat2",
        /// Resolved beneath a directory handle by a library, step by step.
        CapStd = 2 "cap_std",
        /// The opened name was compared in its canonical form.
        Canonical = 3 "canonical",
        /// Names were compared; nothing else stands in the way.
        Lexical = 4 "lexical",
        /// It ran where the operating system lets it reach and see nothing else.
        Sandboxed = 5 "sandboxed",
        /// All that it sent and received passed through the kernel.
        Proxied = 6 "proxied",
        /// Another process that offers the tool, or the host's own code, ran it.
        Delegated = 7 "delegated",
        /// It was run before the kernel heard of it, or out of its reach: somebody's word.
        Hearsay = 8 "hearsay",
        /// Files, sockets and system calls were withheld from it, but it saw other processes.
        Confined = 9 "confined",
    }
}

code! {
    /// Decides if an argument must be given.
    pub enum Presence {
        /// It must.
        Required = 1 "required",
        /// It may be left out or be null. Null counts as left out, unless the whole definition that
        /// the manifest keeps permits it.
        Optional = 2 "optional",
    }
}

code! {
    /// The type of an argument.
    pub enum ParamType {
        /// Anything.
        Any = 0 "any",
        /// Text.
        Text = 1 "text",
        /// An integer.
        Int = 2 "integer",
        /// `false` or `true`.
        Bool = 3 "boolean",
        /// A byte string.
        Bytes = 4 "bytes",
        /// A list.
        List = 5 "list",
        /// A map.
        Map = 6 "map",
        /// A path below a granted root.
        Path = 7 "path",
        /// A number, with or without a fraction.
        Number = 8 "number",
        /// Text that is run: a script, a command line, a statement. The resources that the call
        /// names do not bound its effect.
        Code = 9 "code",
        /// A list of texts: a program and what it is given. Bounded no more than [`Self::Code`].
        Argv = 10 "argv",
    }
}

code! {
    /// Decides if a tool takes arguments that it doesn't declare.
    pub enum Extra {
        /// It refuses them: a smuggled `bcc` is no forward compatibility.
        Refused = 0 "refused",
        /// It takes them.
        Taken = 1 "taken",
    }
}

shape! {
    /// One argument of a tool.
    #[must_use]
    pub struct Param {
        /// Its name.
        1 => pub name: Box<str>,
        /// Its type.
        2 => pub kind: ParamType,
        /// Decides if it must be given.
        3 => pub presence: Presence,
        /// The value that stands where none is given.
        4 => pub default: Option<Canonical>,
        /// Smallest integer, or length of text, bytes or list in bytes or items.
        5 => pub min: Option<u64>,
        /// Largest integer, or length of text, bytes or list in bytes or items.
        6 => pub max: Option<u64>,
        /// Its description, for a model.
        7 => pub description: Box<str>,
    }
}

shape! {
    /// An argument whose values name resources: each must be permitted by the token's scope in the
    /// dimension.
    pub struct ArgumentResource {
        /// The argument: one value, or a list of values.
        1 => pub argument: Box<str>,
        /// The dimension.
        2 => pub dimension: Box<str>,
        /// The type of the resources, which are no paths.
        3 => pub kind: ScopeType,
    }
}

impl ArgumentResource {
    /// True if a value of that type can name resources of this one.
    #[must_use]
    pub const fn fits(&self, param: ParamType) -> bool {
        match self.kind {
            ScopeType::Names | ScopeType::Hosts | ScopeType::Cidrs => !matches!(
                param,
                ParamType::Int
                    | ParamType::Bool
                    | ParamType::Bytes
                    | ParamType::Map
                    | ParamType::Number
            ),
            ScopeType::Ints | ScopeType::Ports => {
                matches!(param, ParamType::Int | ParamType::List | ParamType::Any)
            }
            ScopeType::Paths => false,
        }
    }
}

shape! {
    /// A tool's manifest: the kernel's knowledge of it. Its id is the hash of its canonical bytes.
    #[must_use]
    pub struct Manifest {
        /// Version of this form.
        1 => pub version: u64,
        /// The tool.
        2 => pub tool: ToolId,
        /// Other names for it.
        3 => pub aliases: Vec<ToolId>,
        /// A short name, for people.
        4 => pub title: Box<str>,
        /// The tool's description, for a model.
        5 => pub description: Box<str>,
        /// The effect class.
        6 => pub effect: EffectClass,
        /// Its arguments.
        7 => pub params: Vec<Param>,
        /// Decides if undeclared arguments are taken.
        8 => pub extra: Extra,
        /// The amounts that every call reserves before its plan adds to them.
        9 => pub hold: Amounts,
        /// Largest result, in bytes.
        10 => pub result_bytes_max: u64,
        /// Longest run in milliseconds before the host gives it up; null where it can't block.
        11 => pub wall_ms_max: Option<u64>,
        /// The scopes that it needs, by dimension.
        12 => pub dimensions: Vec<Box<str>>,
        /// The obligations that a run of it can keep to, beside those that the kernel sees to.
        13 => pub honours: Vec<ObligationKind>,
        /// The foreign definition that it was made from: a change of that is a change of the
        /// tool. Null where the tool is the host's own.
        14 => pub definition: Option<DefinitionHash>,
        /// The label of its results and errors.
        15 => pub label: Label,
        maybe {
            /// The tool a call of which takes back what a call of this one did. For people and
            /// agents to know: nobody calls it for them.
            16 => pub compensated_by: ToolId,
            /// An operator's settings: a map in the form of its family. It is part of the tool, and
            /// no tool of that id is the same with other settings.
            17 => pub settings: Canonical,
            /// The arguments that name resources, where the tool's own definition says so.
            18 => pub resources: Vec<ArgumentResource>,
            /// The whole foreign definition in canonical form: `definition` is its hash. It is
            /// what an operator compares another one with.
            19 => pub definition_bytes: Vec<u8>,
        }
    }
}

impl Manifest {
    /// A tool of that effect without arguments, taking a result of up to 1 MiB, setting aside
    /// one second of processor and ten of wall time a call.
    pub fn new(tool: ToolId, effect: EffectClass) -> Self {
        Self {
            version: 1,
            title: Box::from(tool.as_str()),
            tool,
            aliases: Vec::new(),
            description: Box::from(""),
            effect,
            params: Vec::new(),
            extra: Extra::Refused,
            hold: Amounts::ZERO
                .with(Dimension::CpuUs, 1_000_000)
                .with(Dimension::WallUs, 10_000_000),
            result_bytes_max: 1 << 20,
            wall_ms_max: None,
            dimensions: Vec::new(),
            honours: Vec::new(),
            definition: None,
            label: Label::PUBLIC,
            compensated_by: None,
            settings: None,
            resources: None,
            definition_bytes: None,
        }
    }

    /// Sets title and description.
    pub fn described(mut self, title: &str, description: &str) -> Self {
        self.title = Box::from(title);
        self.description = Box::from(description);
        self
    }

    /// Adds another name.
    pub fn alias(mut self, alias: ToolId) -> Self {
        self.aliases.push(alias);
        self
    }

    /// Adds an argument.
    pub fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// Adds a dimension in which the tool needs a scope.
    pub fn needs(mut self, dimension: &str) -> Self {
        self.dimensions.push(Box::from(dimension));
        self
    }

    /// Says that the values of an argument name resources of that type in a dimension, in which the
    /// tool needs a scope.
    pub fn resource(mut self, argument: &str, dimension: &str, kind: ScopeType) -> Self {
        if !self.dimensions.iter().any(|known| **known == *dimension) {
            self = self.needs(dimension);
        }
        let (argument, dimension) = (Box::from(argument), Box::from(dimension));
        let resource = ArgumentResource { argument, dimension, kind };
        self.resources.get_or_insert_default().push(resource);
        self
    }

    /// The arguments that name resources by the tool's own definition.
    pub fn argument_resources(&self) -> impl Iterator<Item = &ArgumentResource> {
        self.resources.iter().flatten()
    }

    /// True if each of the [argument resources](Self::argument_resources) is an argument that the
    /// tool takes, of a fitting type, in a dimension that the tool declares and of the type that
    /// the [table](ScopeDimension) gives it.
    #[must_use]
    pub fn has_sound_resources(&self) -> bool {
        self.argument_resources().all(|resource| {
            let known = ScopeDimension::named(&resource.dimension).map(|known| known.kind);
            let param = self.params.iter().find(|param| param.name == resource.argument);
            param.is_some_and(|param| resource.fits(param.kind))
                && known.is_none_or(|kind| kind == resource.kind)
                && self.dimensions.contains(&resource.dimension)
        }) && self
            .resources
            .as_ref()
            .is_none_or(|resources| (1..=PARAMS_MAX).contains(&resources.len()))
    }

    /// True if a call of the tool may compare a resource in that dimension.
    #[must_use]
    pub fn declares(&self, dimension: &str) -> bool {
        ScopeDimension::is_declared(dimension, &self.tool, &self.dimensions)
    }

    /// The type of the resources that a call compares in a dimension, as far as it is known: a
    /// tool may declare a dimension of its own without one.
    pub fn scope_type(&self, dimension: &str) -> Option<ScopeType> {
        let mut own = self.argument_resources().filter(|own| *own.dimension == *dimension);
        let known = || ScopeDimension::named(dimension).map(|known| known.kind);
        own.next().map(|own| own.kind).or_else(known)
    }

    /// Adds an obligation that a run of the tool can keep to.
    pub fn honours(mut self, kind: ObligationKind) -> Self {
        self.honours.push(kind);
        self
    }

    /// Says which foreign definition it was made from.
    pub fn defined_by(mut self, definition: DefinitionHash) -> Self {
        self.definition = Some(definition);
        self
    }

    /// Keeps the whole foreign definition that it was made from, and its hash.
    pub fn defined_as(mut self, definition: &Canonical) -> Self {
        self.definition = Some(definition_hash(definition.item()));
        self.definition_bytes = Some(definition.as_bytes().to_vec());
        self
    }

    /// The whole foreign definition. `None` where it is not kept, or is not what `definition` is
    /// the hash of.
    pub fn whole_definition(&self) -> Option<Canonical> {
        let bytes = self.definition_bytes.clone()?;
        let whole = Canonical::check(bytes, Profile::DATA).ok()?;
        (self.definition == Some(definition_hash(whole.item()))).then_some(whole)
    }

    /// Sets what its results and errors carry.
    pub fn labelled(mut self, label: Label) -> Self {
        self.label = label;
        self
    }

    /// Says which tool takes back what this one did.
    pub fn compensated_by(mut self, tool: ToolId) -> Self {
        self.compensated_by = Some(tool);
        self
    }

    /// Says what an operator has set it to.
    pub fn set_to(mut self, settings: Canonical) -> Self {
        self.settings = Some(settings);
        self
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }

    /// True if a call contains code to be run: by a shell, an interpreter, a database.
    #[must_use]
    pub fn runs_code(&self) -> bool {
        self.params.iter().any(|param| matches!(param.kind, ParamType::Code | ParamType::Argv))
    }

    /// The id.
    pub fn id(&self) -> ObjectId {
        object_id(&self.to_bytes())
    }

    /// The amounts that a call reserves whose plan needs so much.
    pub fn hold_for(&self, needed: &Amounts) -> Amounts {
        let hold = self.hold.plus(needed);
        hold.with(Dimension::Calls, 1).with(Dimension::Concurrent, 1)
    }

    /// The largest result that the kernel takes from it, in bytes.
    pub fn result_limit(&self) -> usize {
        usize::try_from(self.result_bytes_max).unwrap_or(usize::MAX).min(RESULT_BYTES_MAX)
    }
}

impl Param {
    /// A required argument without bounds.
    pub fn required(name: &str, kind: ParamType, description: &str) -> Self {
        Self {
            name: Box::from(name),
            kind,
            presence: Presence::Required,
            default: None,
            min: None,
            max: None,
            description: Box::from(description),
        }
    }

    /// An argument that may be left out.
    pub fn optional(name: &str, kind: ParamType, description: &str) -> Self {
        Self { presence: Presence::Optional, ..Self::required(name, kind, description) }
    }

    /// The value where none is given.
    pub fn or(mut self, default: Canonical) -> Self {
        self.default = Some(default);
        self
    }

    /// Bounds: of an integer, or of a length.
    pub fn within(mut self, min: u64, max: u64) -> Self {
        self.min = Some(min);
        self.max = Some(max);
        self
    }
}
