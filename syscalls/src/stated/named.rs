//! The resources that a call's arguments name, by the tool's own manifest.

use std::net::IpAddr;

use syscap_format::{
    ArgumentResource, Host, Item, ItemKind, Manifest, Name, Reason, Refused, Resource, ScopeType,
};
use syscap_kernel::{Demand, DistinctDemands};

use super::argument::kept;

/// The resources that a call's arguments name, and the dimensions in which they name none.
#[derive(Clone, Debug, Default)]
pub struct NamedResources {
    /// The resources.
    pub resources: Vec<Demand>,
    /// The declared dimensions of arguments that were left out.
    pub untouched: Vec<&'static str>,
}

impl NamedResources {
    /// The resources that a call's arguments name by [`Manifest::resources`].
    ///
    /// # Errors
    /// [`Reason::BadArgument`], where a value is no resource of the type.
    pub fn of(manifest: &Manifest, args: Item<'_>) -> Result<Self, Refused> {
        let (mut resources, mut untouched) = (DistinctDemands::default(), Vec::new());
        for declared in manifest.argument_resources() {
            let dimension = kept(&declared.dimension);
            let given = args.get(&declared.argument).filter(|item| !item.is_null());
            let argument = kept(&declared.argument);
            let mut name = |value: Item<'_>| -> Result<bool, Refused> {
                let resource = resource(declared, value).ok_or_else(|| bad(declared))?;
                resources.push(Demand { dimension, resource, argument });
                Ok(!resources.is_over())
            };
            match given {
                Some(list) if list.kind() == ItemKind::Array && list.count() > 0 => {
                    for value in list.elements() {
                        if !name(value)? {
                            break;
                        }
                    }
                }
                Some(one) if one.kind() != ItemKind::Array => drop(name(one)?),
                _ => untouched.push(dimension),
            }
        }
        Ok(Self { resources: resources.into_vec(), untouched })
    }
}

fn bad(declared: &ArgumentResource) -> Refused {
    let form = match declared.kind {
        ScopeType::Names => "a text of 1 to 256 bytes, or a list of them",
        ScopeType::Ints => "an integer, or a list of them",
        ScopeType::Hosts => "the name of a host, or a list of them",
        ScopeType::Ports => "a port, or a list of them",
        ScopeType::Cidrs => "an IP address, or a list of them",
        ScopeType::Paths => "nothing",
    };
    Refused::new(Reason::BadArgument).field(&declared.argument).allowed(form)
}

fn resource(declared: &ArgumentResource, value: Item<'_>) -> Option<Resource> {
    match declared.kind {
        ScopeType::Names => Name::new(value.as_text()?).ok().map(Resource::Name),
        ScopeType::Hosts => Host::new(value.as_text()?).ok().map(Resource::Host),
        ScopeType::Cidrs => value.as_text()?.parse::<IpAddr>().ok().map(Resource::Addr),
        ScopeType::Ints => value.as_int().map(Resource::Int),
        ScopeType::Ports => u16::try_from(value.as_uint()?).ok().map(Resource::Port),
        ScopeType::Paths => None,
    }
}
