//! What a refusal advises about a scope.

use syscap_format::*;

fn rule(root: Root, below: &[&str], rights: Rights) -> Rule {
    Rule { path: RootedPath::new(root, below).unwrap(), rights }
}

/// Of paths those with the rights that are needed, workspaces first, and what is taken out.
#[test]
fn paths_advise_where_the_rights_are() {
    let own = || Root::Workspace(AgentId::new("a").unwrap());
    let shared = || Root::named("shared").unwrap();
    let both = Rights::READ.union(Rights::WRITE);
    let scope = Scope::paths([
        rule(shared(), &["notes"], both),
        rule(shared(), &["public"], Rights::READ),
        rule(own(), &[], both),
        rule(own(), &["old"], Rights::READ),
    ])
    .unwrap();
    let asked = |needs| Resource::Path { path: RootedPath::new(shared(), ["x"]).unwrap(), needs };
    let allowed = "below workspace or below shared/notes, not below workspace/old";
    assert_eq!(scope.advice(&asked(Rights::WRITE)), allowed);
    assert_eq!(scope.advice(&asked(Rights::FOLLOW)), "nothing");
    assert_eq!(scope.advice(&asked(Rights::NONE)), "nothing");
}

/// The nearest stands first; a resource of another type gets nothing.
#[test]
fn lists_and_ranges_advise() {
    let hosts = Scope::hosts(["*.example.org", "docs.example.com"]).unwrap();
    let host = Resource::Host(Host::new("example.com").unwrap());
    assert_eq!(hosts.advice(&host), "one of: docs.example.com, *.example.org");
    let names = Scope::names(["rent", "water"]).unwrap();
    let name = Resource::Name(Name::new("waters").unwrap());
    assert_eq!(names.advice(&name), "one of: water, rent");
    assert_eq!(names.advice(&host), "nothing");
    let ports = [PortRange::new(443, 443).unwrap(), PortRange::new(8_000, 8_080).unwrap()];
    let ports = Scope::ports(ports).unwrap();
    assert_eq!(ports.advice(&Resource::Port(80)), "one of: 8000-8080, 443");
    assert_eq!(Scope::ints(1, 9).unwrap().advice(&Resource::Int(10)), "from 1 to 9");
    assert_eq!(Scope::ints(5, 5).unwrap().advice(&Resource::Int(10)), "one of: 5");
    let block = Cidr::new("10.0.0.0".parse().unwrap(), 8).unwrap();
    let scope = Scope::cidrs([block]).unwrap();
    let address = Resource::Addr("192.0.2.1".parse().unwrap());
    assert_eq!(scope.advice(&address), "an address of 10.0.0.0/8");
}
