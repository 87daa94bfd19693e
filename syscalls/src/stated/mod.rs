//! An operator's statements about a tool that another process runs: its class, and the resources
//! that its arguments name.
//!
//! It stands in the settings of the tool's manifest, which an operator's key signs; of what a
//! server says nothing ever comes here. The rest of the manifest is made of it: the class, the
//! arguments' types, the dimensions that a token must have scopes in. The earlier value stands
//! beside it, so that each statement can be taken back.

mod argument;
mod named;
mod path;
mod read;
mod unlimited;

use std::collections::BTreeMap;

use syscap_format::{
    DefinitionHash, EffectClass, Extra, ItemKind, Manifest, PARAMS_MAX, Param, ParamType, Refused,
};
use syscap_kernel::{Demand, DistinctDemands, Request};

use self::{argument::TypedParam, read::Kept};
pub use self::{
    argument::{ArgumentKind, Declared},
    named::NamedResources,
    path::{Folder, PathRoot, ROOTS_MAX},
    unlimited::Unlimited,
};

/// Why something can't be stated of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatedError {
    /// It takes no such argument.
    #[error("it takes no argument {name}; it takes: {takes}")]
    NoArgument {
        /// The given name.
        name: String,
        /// The existing names.
        takes: String,
    },
    /// The argument has another type than what was declared has.
    #[error("{name} is {is}: a {kind} is text, or a list of texts")]
    Type {
        /// The argument.
        name: String,
        /// Its type.
        is: ParamType,
        /// The declared kind.
        kind: ArgumentKind,
    },
    /// There are as many arguments as a tool can have.
    #[error("a tool has {PARAMS_MAX} arguments at most")]
    TooMany,
    /// The settings of a manifest have another form.
    #[error("the settings on record are of no form that is known here")]
    Form,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The stated class.
    pub class: Option<EffectClass>,
    /// The arguments that name something, by their names.
    pub arguments: BTreeMap<Box<str>, Declared>,
}

impl Stated {
    /// The statements in a manifest on record: none, if that is no tool of another process.
    ///
    /// # Errors
    /// [`StatedError::Form`].
    pub fn of(manifest: &Manifest) -> Result<Self, StatedError> {
        Ok(Kept::of(manifest)?.stated())
    }

    /// The manifest with this in the place of all that was stated before. Its own definition, or
    /// what it was before anything was stated, is what the tool is known by from then on.
    pub fn on(&self, manifest: &Manifest) -> Result<Manifest, StatedError> {
        let mut manifest = without(manifest)?;
        let own = DefinitionHash::from_bytes(*manifest.id().as_bytes());
        manifest.definition = Some(manifest.definition.unwrap_or(own));
        let mut kept = Kept::default();
        if let Some(class) = self.class {
            kept.class = Some((class, manifest.effect));
            manifest.effect = class;
        }
        for (name, declared) in &self.arguments {
            let was = typed(&mut manifest, name, declared)?;
            kept.arguments.insert(name.clone(), (declared.clone(), was));
        }
        let mut needs: Vec<Box<str>> = manifest.dimensions;
        let stated = self.arguments.values().filter_map(|declared| declared.kind.dimension());
        needs.extend(stated.map(Box::from));
        needs.sort_unstable();
        needs.dedup();
        manifest.dimensions = needs;
        manifest.settings = kept.to_canonical();
        Ok(manifest)
    }

    /// True if nothing is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.class.is_none() && self.arguments.is_empty()
    }

    /// The dimensions of the arguments that a call leaves out: it touches nothing by them.
    pub fn untouched(&self, request: &Request<'_>) -> Vec<&'static str> {
        let names_nothing = |name: &str| match request.args.get(name) {
            None => true,
            Some(item) => item.is_null() || (item.kind() == ItemKind::Array && item.count() == 0),
        };
        let left_out = self.arguments.iter().filter(|(name, _)| names_nothing(name));
        left_out.filter_map(|(_, declared)| declared.kind.dimension()).collect()
    }

    /// The demands of a call, by the names in its arguments.
    ///
    /// # Errors
    /// An argument that is not of what was declared, by [`Refused`].
    pub fn demands(
        &self,
        request: &Request<'_>,
        class: EffectClass,
    ) -> Result<Vec<Demand>, Refused> {
        let mut demands = DistinctDemands::default();
        for (name, declared) in &self.arguments {
            let given = request.args.get(name).filter(|item| !item.is_null());
            if let Some(given) = given {
                declared.demand(name, given, request, class, &mut demands)?;
            }
        }
        Ok(demands.into_vec())
    }
}

/// The offer with the statements about the tool on record. If the definition is another,
/// declarations of arguments are kept as far as the tool still takes them, and a class only if it
/// is the stricter one: a statement about one definition makes no other one harmless.
pub fn carried(offered: Manifest, on_record: &Manifest) -> Manifest {
    let Ok(mut stated) = Stated::of(on_record) else { return offered };
    if stated.is_empty() {
        return offered;
    }
    let own = || DefinitionHash::from_bytes(*offered.id().as_bytes());
    let same = on_record.definition == Some(offered.definition.unwrap_or_else(own));
    if !same {
        stated.class = stated.class.filter(|class| class.code() > offered.effect.code());
    }
    stated.arguments.retain(|name, declared| {
        let alone = BTreeMap::from([(name.clone(), declared.clone())]);
        Stated { class: None, arguments: alone }.on(&offered).is_ok()
    });
    stated.on(&offered).unwrap_or(offered)
}

/// The manifest as it was before anything was stated; as it is, where what is stated can't be read.
pub fn plain(manifest: &Manifest) -> Manifest {
    without(manifest).unwrap_or_else(|_| manifest.clone())
}

fn without(manifest: &Manifest) -> Result<Manifest, StatedError> {
    let kept = Kept::of(manifest)?;
    let mut plain = manifest.clone();
    if let Some((_, was)) = kept.class {
        plain.effect = was;
    }
    for (name, (_, was)) in &kept.arguments {
        match was {
            Some(kind) => {
                let param = plain.params.iter_mut().find(|param| param.name == *name);
                param.into_iter().for_each(|param| param.kind = *kind);
            }
            None => plain.params.retain(|param| param.name != *name),
        }
    }
    if manifest.settings.is_some() {
        // Those that the tool's own arguments name were there before.
        let own =
            |dimension: &str| manifest.argument_resources().any(|own| *own.dimension == *dimension);
        plain.dimensions.retain(|dimension| own(dimension));
    }
    plain.settings = None;
    Ok(plain)
}

/// Gives an argument the type of what it names; the one that it had, `None` where the tool only
/// took others besides.
fn typed(
    manifest: &mut Manifest,
    name: &str,
    declared: &Declared,
) -> Result<Option<ParamType>, StatedError> {
    let extra = manifest.extra;
    let count = manifest.params.len();
    let takes = || {
        let names: Vec<&str> = manifest.params.iter().map(|param| &*param.name).collect();
        names.join(", ")
    };
    let no = StatedError::NoArgument { name: name.to_owned(), takes: takes() };
    match manifest.params.iter_mut().find(|param| *param.name == *name) {
        Some(param) => {
            let was = param.kind;
            let fits = TypedParam(was).of(&declared.kind);
            let (name, kind) = (name.to_owned(), declared.kind.clone());
            param.kind = fits.ok_or(StatedError::Type { name, is: was, kind })?;
            Ok(Some(was))
        }
        None if extra == Extra::Refused => Err(no),
        None if count >= PARAMS_MAX => Err(StatedError::TooMany),
        None => {
            manifest.params.push(Param::optional(name, ParamType::Any, ""));
            Ok(None)
        }
    }
}
