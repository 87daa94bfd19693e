//! Whom another program's tool sends something to.

use syscap_format::{Name, Reason, Refused, Resource, ToolGrant};
use syscap_kernel::Demand;

use super::{RECIPIENT_DIMENSION, RECIPIENT_HOST_DIMENSION, address::Address};

/// Characters that separate names, wrap them or hide, for some program: one text is one recipient.
const APART: &[char] = &[',', ';', '<', '>', '"', '(', ')', '\\', '@'];

/// The resource of one recipient: a mail address in its one plain form, by itself or by its host;
/// or a name as it is, of a channel or a user.
pub(crate) fn recipient(
    grant: &ToolGrant,
    argument: &'static str,
    text: &str,
) -> Result<Demand, Refused> {
    if let Some(address) = Address::parse(text) {
        return demand(grant, argument, &address);
    }
    let form = "one address such as ann@example.com, or one name";
    let bad = || Refused::new(Reason::BadArgument).field(argument).got(text).allowed(form);
    // A name of a user may begin with it.
    let rest = text.strip_prefix('@').unwrap_or(text);
    if rest.contains(|c: char| c.is_whitespace() || c.is_control() || APART.contains(&c)) {
        return Err(bad());
    }
    let resource = Resource::Name(Name::new(text).map_err(|_| bad())?);
    Ok(Demand { dimension: RECIPIENT_DIMENSION, resource, argument })
}

/// By its address where the token names that, else by its host.
pub(super) fn demand(
    grant: &ToolGrant,
    argument: &'static str,
    address: &Address,
) -> Result<Demand, Refused> {
    let name = Name::new(address.as_str());
    let name = name.map_err(|_| {
        let bad = Refused::new(Reason::BadArgument).field(argument).got(address.as_str());
        bad.allowed("a shorter address")
    })?;
    let exact = Resource::Name(name);
    let by_name = grant.scope(RECIPIENT_DIMENSION);
    let by_host = grant.scope(RECIPIENT_HOST_DIMENSION);
    if by_host.is_none() || by_name.is_some_and(|scope| scope.permits(&exact)) {
        return Ok(Demand { dimension: RECIPIENT_DIMENSION, resource: exact, argument });
    }
    let resource = Resource::Host(address.host().clone());
    Ok(Demand { dimension: RECIPIENT_HOST_DIMENSION, resource, argument })
}
