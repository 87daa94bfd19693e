//! The demands of a script, if the token limits scripts.
//!
//! The confinement holds whatever runs. No script is read here: what it does is unknown, which a
//! token must grant and a policy judges.

use syscap_format::{Name, Reason, Refused, Resource};
use syscap_kernel::{Demand, Request};

use super::DOES_DIMENSION;
use crate::marks::Mark;

/// The demand of a script; none if the grant does not limit scripts.
pub(super) fn demands(request: &Request<'_>) -> Result<Option<Demand>, Refused> {
    if request.grant.scope(DOES_DIMENSION).is_none() {
        return Ok(None);
    }
    let bad = |_| Refused::new(Reason::BadArgument).field("script");
    let unknown = Name::new(Mark::Unknown.name()).map_err(bad)?;
    let (resource, argument) = (Resource::Name(unknown), Mark::Unknown.argument());
    Ok(Some(Demand { dimension: DOES_DIMENSION, resource, argument }))
}
