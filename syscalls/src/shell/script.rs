//! What a script would do, where the token says what scripts may do.
//!
//! The confinement holds whatever runs. No script is read here: what it does is unknown, which a
//! token must grant and a policy judges.

use syscap_format::{Name, Reason, Refused, Resource};
use syscap_kernel::{Demand, Request};

use super::DOES_DIMENSION;
use crate::marks::Mark;

/// What a script demands: nothing where the grant does not say what scripts may do.
pub(super) fn demands(request: &Request<'_>) -> Result<Option<Demand>, Refused> {
    if request.grant.scope(DOES_DIMENSION).is_none() {
        return Ok(None);
    }
    let bad = |_| Refused::new(Reason::BadArgument).field("script");
    let unknown = Name::new(Mark::Unknown.name()).map_err(bad)?;
    let (resource, argument) = (Resource::Name(unknown), Mark::Unknown.argument());
    Ok(Some(Demand { dimension: DOES_DIMENSION, resource, argument }))
}
