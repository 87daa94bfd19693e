//! Whom another program's tool sends something to.

use syscap_format::{Name, Reason, Refused, Resource, ToolGrant};
use syscap_kernel::Demand;

use super::{RECIPIENT_DIMENSION, address::Address, draft::demand};

/// What separates names, wraps them or hides, to some program: one text is one recipient.
const APART: &[char] = &[',', ';', '<', '>', '"', '(', ')', '\\', '@'];

/// What a token must permit for one recipient: an address of mail in its one plain form, by itself
/// or by its host; or a name as it is, of a channel or a user.
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
