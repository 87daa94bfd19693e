//! What a script would do, where the token holds it to that.
//!
//! The confinement holds whatever runs; this is what a policy can ask about, and which programs a
//! script may begin. It reads as [`syscap_commands`] does, whose word is no boundary.

use std::collections::BTreeSet;

use syscap_commands::{Mark, Place, analyse, programs};
use syscap_format::{
    reason::{Reason, Refused},
    scope::{Name, Resource},
};
use syscap_kernel::tool::{Demand, Request};

use super::{DOES_DIMENSION, PROGRAM_DIMENSION};

/// A folder by which a script is read: where it is on the machine makes no difference to it.
const FOLDER: &str = "/workspace";
/// Most programs that a script may begin.
const PROGRAMS_MAX: usize = 256;

/// What a script demands; nothing where the grant does not say what scripts may do.
pub(super) fn demands(request: &Request<'_>, script: &str) -> Result<Vec<Demand>, Refused> {
    if request.grant.scope(DOES_DIMENSION).is_none() {
        return Ok(Vec::new());
    }
    let mut marks = BTreeSet::from([Mark::Unknown]);
    let mut begun = BTreeSet::new();
    if let Some(place) = place() {
        let said = analyse(script, &place);
        marks = said.marks;
        // Which hosts there are the confinement decides, by no name.
        marks.extend((!said.hosts.is_empty()).then_some(Mark::Network));
        begun = said.programs;
    }
    if begun.len() > PROGRAMS_MAX {
        return Err(Refused::new(Reason::BadArgument).field("script").allowed("fewer programs"));
    }
    let programs = begun.iter().map(|program| (PROGRAM_DIMENSION, program.as_ref(), "does_run"));
    let marks = marks.iter().map(|mark| (DOES_DIMENSION, mark.name(), mark.argument()));
    let named = programs.chain(marks).map(|(dimension, name, argument): (_, &str, _)| {
        let bad = || Refused::new(Reason::BadArgument).field("script").got(name);
        let resource = Resource::Name(Name::new(name).map_err(|_| bad())?);
        Ok(Demand { dimension, resource, argument })
    });
    named.collect()
}

/// Programs are the system's, which nobody in the confinement can write. Of the repository nothing
/// is known.
fn place() -> Option<Place> {
    let mut place = Place::at(FOLDER)?;
    place.search = vec!["/usr/bin".to_owned()];
    place.found =
        programs().into_iter().map(|name| (name.to_owned(), format!("/usr/bin/{name}"))).collect();
    place.writable = BTreeSet::from([FOLDER.to_owned()]);
    Some(place)
}
