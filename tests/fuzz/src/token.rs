//! Tokens: as a wire, and as bodies that are signed here, so that what is behind the signature is
//! reached: a parent's body and one that is derived from it, each with its length before it.

use ed25519_dalek::Signer as _;
use syscap::format::{
    Grants, Item, Profile, PublicKey, Reason, Refused, Resource, Role, Scope, Signature,
    TOKEN_CONTEXT, Token, TokenBody, attenuates, preimage,
};

use kernel_support::history::Bytes;

use super::sim;

pub fn token(data: &[u8]) {
    if let Some(token) = taken(Token::read(data)) {
        let body = token.body().to_bytes();
        assert_eq!(token.id(), TokenBody::id_of(&body));
    }
    let mut input = Bytes(data);
    let Some(parent) = signed(input.part()) else { return };
    laws(&parent, &parent);
    let Some(child) = signed(input.part()) else { return };
    laws(&child, &parent);
    // Whatever else stands in it, it names its parent.
    let mut body = child.body().clone();
    body.parent = Some(parent.id());
    body.depth = parent.body().depth.saturating_add(1);
    (body.audience, body.head) = (parent.body().audience, None);
    if let Some(child) = signed(&body.to_bytes()) {
        laws(&child, &parent);
    }
}

/// The key that has signed every body.
pub fn issuer() -> PublicKey {
    PublicKey::new(sim::key(Role::Issuer).verifying_key().to_bytes()).unwrap()
}

/// A body's wire, with a signature that verifies.
pub fn wire(body: &[u8]) -> Vec<u8> {
    let signature = sim::key(Role::Issuer).sign(&preimage(TOKEN_CONTEXT, body)).to_bytes();
    Token::wire(body, &Signature::from_bytes(signature))
}

fn signed(body: &[u8]) -> Option<Token> {
    // What is refused before its signature needs none.
    Item::check(body, Profile::CONTROL).ok()?;
    let token = taken(Token::read(&wire(body)))?;
    assert_eq!(token.body().to_bytes(), body);
    assert_eq!(token.id(), TokenBody::id_of(body));
    Some(token)
}

fn taken(read: Result<Token, Refused>) -> Option<Token> {
    use Reason::{BadSignature, BadToken, LifeTooLong, TooLarge, UnknownAuthority};
    match read {
        Ok(token) => Some(token),
        Err(refused) => {
            let reasons = [BadSignature, BadToken, LifeTooLong, TooLarge, UnknownAuthority];
            assert!(reasons.contains(&refused.reason()), "{refused:?}");
            None
        }
    }
}

/// A derived token permits nothing that its parent doesn't.
fn laws(child: &Token, parent: &Token) {
    let (c, p) = (child.body(), parent.body());
    assert!(c.grants.leq(&c.grants) && c.budget.leq(&c.budget));
    let within = c.grants.leq(&p.grants);
    for (tool, grant) in c.grants.iter() {
        let wider = p.grants.get(tool);
        assert!(wider.is_some() || !within);
        for (dimension, scope) in grant.iter() {
            assert!(scope.leq(scope));
            assert_eq!(scope.meet(scope).as_ref(), Some(scope));
            for resource in samples(scope) {
                assert!(scope.permits(&resource), "{scope:?} permits what it names: {resource:?}");
                let permitted = wider.is_some_and(|wider| wider.permits(dimension, &resource));
                assert!(permitted || !within, "{resource:?} was added in {dimension}");
                drop(scope.advice(&resource));
            }
        }
    }
    let met = meets(&c.grants, &p.grants);
    assert!(met.leq(&c.grants) && met.leq(&p.grants));
    match attenuates(child.body(), parent.id(), parent.body()) {
        Ok(()) => {
            assert!(within && c.budget.leq(&p.budget) && c.flags.has(p.flags));
            assert!(c.expires <= p.expires && c.not_before >= p.not_before);
            assert_eq!((c.parent, Some(c.issuer)), (Some(parent.id()), p.holder));
        }
        Err(refused) => assert!(Reason::from_code(refused.reason().code()).is_some()),
    }
}

fn meets(child: &Grants, parent: &Grants) -> Grants {
    child.iter().fold(Grants::new(), |all, (tool, grant)| match parent.get(tool) {
        Some(other) => all.with(tool.clone(), grant.meet(other)),
        None => all,
    })
}

/// Resources that a scope names, its bounds among them.
fn samples(scope: &Scope) -> Vec<Resource> {
    match scope {
        Scope::Names(names) => names.as_slice().iter().cloned().map(Resource::Name).collect(),
        Scope::Ints(ints) => vec![Resource::Int(ints.least()), Resource::Int(ints.greatest())],
        Scope::Paths(paths) => paths
            .rules()
            .iter()
            .filter(|rule| rule.rights.bits() != 0)
            .map(|rule| Resource::Path { path: rule.path.clone(), needs: rule.rights })
            .collect(),
        Scope::Hosts(_) => Vec::new(),
        Scope::Ports(ports) => {
            let ranges = ports.ranges().iter();
            ranges.flat_map(|range| [range.first(), range.last()]).map(Resource::Port).collect()
        }
        Scope::Cidrs(cidrs) => {
            cidrs.blocks().iter().map(|block| Resource::Addr(block.addr())).collect()
        }
    }
}
