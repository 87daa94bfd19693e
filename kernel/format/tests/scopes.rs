//! The laws of scopes, checked over universes small enough to be listed.

use std::{collections::BTreeMap, net::IpAddr, sync::LazyLock};

use proptest::{collection::vec, prelude::*, sample::select};
use syscap_format::{
    AgentId, Cidr, DecodeFault, Decoder, Encoder, Host, Ints, Name, Names, Paths, PortRange,
    Profile, Resource, Rights, Root, RootName, RootedPath, Rule, Scope, ScopeError, ScopeType,
};

/// What a scope is made of, with a second, naive account of what it means.
#[derive(Clone, Debug)]
enum Raw {
    Names(Vec<&'static str>),
    Ints(i128, i128),
    Paths(BTreeMap<(usize, Vec<&'static str>), u8>),
    Hosts(Vec<String>),
    Ports(Vec<(u16, u16)>),
    Cidrs(Vec<(&'static str, u8)>),
}

impl Raw {
    fn scope(&self) -> Result<Scope, ScopeError> {
        match self {
            Self::Names(names) => Scope::names(names),
            Self::Ints(least, greatest) => Scope::ints(*least, *greatest),
            Self::Paths(rules) => Scope::paths(
                rules.iter().map(|((root, below), bits)| rule(root_of(*root), below, *bits)),
            ),
            Self::Hosts(patterns) => Scope::hosts(patterns),
            Self::Ports(ranges) => {
                Scope::ports(ranges.iter().map(|(a, b)| PortRange::new(*a, *b).unwrap()))
            }
            Self::Cidrs(blocks) => Scope::cidrs(blocks.iter().map(|(a, n)| cidr(a, *n))),
        }
    }

    fn allows(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (Self::Names(names), Resource::Name(name)) => names.contains(&name.as_str()),
            (Self::Ints(least, greatest), Resource::Int(value)) => {
                (least..=greatest).contains(&value)
            }
            (Self::Paths(rules), Resource::Path { path, needs }) => {
                let found: Vec<&str> = path.components().collect();
                let holds = |root: usize, below: &[&str]| {
                    root_of(root) == *path.root() && found.starts_with(below)
                };
                let matching = rules.iter().filter(|((root, below), _)| holds(*root, below));
                let longest = matching.max_by_key(|((_, below), _)| below.len());
                let bits = longest.map_or(0, |(_, bits)| *bits);
                needs.bits() != 0 && needs.bits() & !bits == 0
            }
            (Self::Paths(rules), Resource::Tree { path, needs }) => {
                let found: Vec<&str> = path.components().collect();
                let is_below = |root: usize, below: &[&str]| {
                    root_of(root) == *path.root() && below.starts_with(&found)
                };
                let all = rules.iter().filter(|((root, below), _)| is_below(*root, below));
                let here = Resource::Path { path: path.clone(), needs: *needs };
                self.allows(&here) && all.into_iter().all(|(_, bits)| needs.bits() & !bits == 0)
            }
            (Self::Hosts(patterns), Resource::Host(host)) => {
                patterns.iter().any(|pattern| match pattern.strip_prefix('*') {
                    Some(end) => host.as_str().ends_with(end),
                    None => host.as_str() == pattern,
                })
            }
            (Self::Ports(ranges), Resource::Port(port)) => {
                ranges.iter().any(|(first, last)| (first..=last).contains(&port))
            }
            (Self::Cidrs(blocks), Resource::Addr(addr)) => {
                let found = bits_of(addr.to_canonical());
                blocks.iter().any(|(start, prefix)| {
                    let start = bits_of(start.parse().unwrap());
                    start.len() == found.len()
                        && start[..usize::from(*prefix)] == found[..usize::from(*prefix)]
                })
            }
            _ => false,
        }
    }
}

fn bits_of(addr: IpAddr) -> String {
    match addr {
        IpAddr::V4(addr) => format!("{:032b}", addr.to_bits()),
        IpAddr::V6(addr) => format!("{:0128b}", addr.to_bits()),
    }
}

fn agent(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

fn root_of(n: usize) -> Root {
    match n {
        0 => Root::named("shared").unwrap(),
        1 => Root::Workspace(agent("team")),
        _ => Root::Workspace(agent("team/a")),
    }
}

fn path(root: Root, below: &[&str]) -> RootedPath {
    RootedPath::new(root, below).unwrap()
}

fn rule(root: Root, below: &[&str], bits: u8) -> Rule {
    Rule { path: path(root, below), rights: Rights::from_bits(bits).unwrap() }
}

fn cidr(addr: &str, prefix: u8) -> Cidr {
    Cidr::new(addr.parse().unwrap(), prefix).unwrap()
}

fn host(text: &str) -> Resource {
    Resource::Host(Host::new(text).unwrap())
}

fn tree(root: Root, below: &[&str], bits: u8) -> Resource {
    Resource::Tree { path: path(root, below), needs: Rights::from_bits(bits).unwrap() }
}

fn access(root: Root, below: &[&str], bits: u8) -> Resource {
    Resource::Path { path: path(root, below), needs: Rights::from_bits(bits).unwrap() }
}

/// Every list of up to `max` of `words`.
fn lists(words: &[&'static str], max: usize) -> Vec<Vec<&'static str>> {
    let mut all = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..max {
        let longer = |list: &Vec<&'static str>| {
            let list = list.clone();
            words.iter().map(move |word| [list.clone(), vec![*word]].concat())
        };
        longest = longest.iter().flat_map(longer).collect();
        all.extend(longest.iter().cloned());
    }
    all
}

/// Of all that the generators can tell apart at least one; `zz` is a name that no rule has.
static UNIVERSE: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for name in ["a", "ab", "b", "B", "\u{e9}", "zz"] {
        all.push(Resource::Name(Name::new(name).unwrap()));
    }
    let (min, max) = (Ints::MIN, Ints::MAX);
    for value in [min - 1, min, min + 1, max - 1, max, max + 1].into_iter().chain(-4..=4) {
        all.push(Resource::Int(value));
    }
    for below in lists(&["a", "ab", "zz"], 3) {
        for root in 0..3 {
            all.extend([0, 1, 2, 4, 7].map(|bits| access(root_of(root), &below, bits)));
            all.extend([0, 1, 7].map(|bits| tree(root_of(root), &below, bits)));
        }
    }
    for labels in lists(&["a", "ab", "b", "zz"], 4).into_iter().skip(1) {
        all.push(host(&labels.join(".")));
    }
    all.extend((0..=9).chain([100, 65533, 65534, 65535]).map(Resource::Port));
    let v4 = (0..=17).map(|n| format!("10.0.0.{n}"));
    let v6 = ["::fffa:0:1", "::fffc:0:1", "::fffd:0:1", "::fffe:0:1", "::1:0:0:1", "2001:db8::1"];
    let mapped = ["::ffff:10.0.0.1", "::ffff:11.0.0.1", "11.0.0.1"];
    for addr in v4.chain(v6.into_iter().chain(mapped).map(String::from)) {
        all.push(Resource::Addr(addr.parse().unwrap()));
    }
    all
});

fn raw(of: ScopeType) -> BoxedStrategy<Raw> {
    match of {
        ScopeType::Names => {
            vec(select(vec!["a", "ab", "b", "B", "\u{e9}"]), 0..5).prop_map(Raw::Names).boxed()
        }
        ScopeType::Ints => {
            let bound = select(vec![Ints::MIN, Ints::MIN + 1, -2, -1, 0, 1, 2, Ints::MAX]);
            (bound.clone(), bound).prop_map(|(a, b)| Raw::Ints(a.min(b), a.max(b))).boxed()
        }
        ScopeType::Paths => {
            let below = select(lists(&["a", "ab"], 2));
            let rule = ((0..3_usize, below), select(vec![0, 1, 3, 4, 7, 7]));
            vec(rule, 0..7).prop_map(|rules| Raw::Paths(rules.into_iter().collect())).boxed()
        }
        ScopeType::Hosts => {
            let labels = select(lists(&["a", "ab", "b"], 3)[1..].to_vec());
            let pattern = (select(vec!["", "*."]), labels)
                .prop_map(|(wild, labels)| format!("{wild}{}", labels.join(".")));
            vec(pattern, 0..8).prop_map(Raw::Hosts).boxed()
        }
        ScopeType::Ports => {
            let bound = || select(vec![1_u16, 2, 3, 4, 5, 6, 7, 8, 65534, 65535]);
            let range = (bound(), bound()).prop_map(|(a, b)| (a.min(b), a.max(b)));
            vec(range, 0..5).prop_map(Raw::Ports).boxed()
        }
        ScopeType::Cidrs => {
            let blocks = |list: &'static str| {
                let block = |text: &'static str| text.split_once('/').unwrap();
                let all = list.split_whitespace().map(block);
                select(all.map(|(addr, n)| (addr, n.parse().unwrap())).collect::<Vec<_>>())
            };
            let small = blocks(
                "10.0.0.0/28 10.0.0.0/29 10.0.0.8/29 10.0.0.0/30 10.0.0.4/30 10.0.0.0/31 \
                 10.0.0.2/31 10.0.0.4/31 10.0.0.6/31 10.0.0.0/32 10.0.0.1/32 10.0.0.2/32 \
                 10.0.0.3/32 0.0.0.0/0",
            );
            let around_mapped = blocks(
                "::fffe:0:0/95 ::fffe:0:0/96 ::fffc:0:0/95 ::fffc:0:0/94 ::fffc:0:0/96 \
                 ::fffd:0:0/96 ::fff8:0:0/93 ::/0",
            );
            vec(prop_oneof![2 => small, 1 => around_mapped], 0..7).prop_map(Raw::Cidrs).boxed()
        }
    }
}

/// Three scopes, mostly of one type, and often one below another: random ones seldom are.
fn triple() -> impl Strategy<Value = [Scope; 3]> {
    let scope = |of| raw(of).prop_filter_map("permits nothing", |raw| raw.scope().ok());
    let one = select(ScopeType::ALL.to_vec());
    let types = (one.clone(), one.clone(), one, 0..10)
        .prop_map(|(a, b, c, mixed)| if mixed == 0 { [a, b, c] } else { [a; 3] });
    let scopes = types.prop_flat_map(move |types| types.map(scope));
    (scopes, 0..3).prop_map(|([a, b, c], shape)| match (shape, a.meet(&b)) {
        (1, Some(met)) => [a, met, c],
        (2, Some(met)) => [met, a, c],
        _ => [a, b, c],
    })
}

fn bytes_of(scope: &Scope) -> Vec<u8> {
    let mut encoder = Encoder::new();
    scope.encode(&mut encoder);
    encoder.into_bytes()
}

fn decoded(bytes: &[u8]) -> Result<Scope, DecodeFault> {
    let mut decoder = Decoder::new(bytes, Profile::CONTROL);
    let scope = Scope::decode(&mut decoder).map_err(|error| error.fault)?;
    decoder.finish().map_err(|error| error.fault)?;
    Ok(scope)
}

fn meet(a: Option<&Scope>, b: Option<&Scope>) -> Option<Scope> {
    a?.meet(b?)
}

/// All that is permitted, as positions in the universe.
fn permitted(scope: &Scope) -> Vec<usize> {
    (0..UNIVERSE.len()).filter(|n| scope.permits(&UNIVERSE[*n])).collect()
}

/// Cases are cheap here; failures are printed, not written to files.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn normal_form_keeps_the_meaning(
        raw in select(ScopeType::ALL.to_vec()).prop_flat_map(raw)
    ) {
        let scope = raw.scope();
        for resource in UNIVERSE.iter() {
            let found = scope.as_ref().is_ok_and(|scope| scope.permits(resource));
            prop_assert_eq!(found, raw.allows(resource), "{}", resource);
        }
        if UNIVERSE.iter().all(|resource| !raw.allows(resource)) {
            prop_assert_eq!(scope, Err(ScopeError::Empty));
        }
    }

    /// Sound and complete: the universes tell apart whatever the generators make.
    #[test]
    fn leq_is_containment([a, b, _] in triple()) {
        let (of_a, of_b) = (permitted(&a), permitted(&b));
        prop_assert_eq!(a.leq(&b), of_a.iter().all(|n| of_b.contains(n)));
        prop_assert_eq!(of_a == of_b, bytes_of(&a) == bytes_of(&b));
        for n in of_a {
            prop_assert_eq!(UNIVERSE[n].scope_type(), a.scope_type());
        }
    }

    #[test]
    fn meet_is_intersection([a, b, _] in triple()) {
        let met = a.meet(&b);
        for r in UNIVERSE.iter() {
            let found = met.as_ref().is_some_and(|met| met.permits(r));
            prop_assert_eq!(found, a.permits(r) && b.permits(r), "{}", r);
        }
    }

    #[test]
    fn meet_is_a_greatest_lower_bound([a, b, c] in triple()) {
        let (ab, bc) = (a.meet(&b), b.meet(&c));
        prop_assert_eq!(a.meet(&a), Some(a.clone()));
        prop_assert_eq!(&ab, &b.meet(&a));
        prop_assert_eq!(meet(ab.as_ref(), Some(&c)), meet(Some(&a), bc.as_ref()));
        prop_assert!(ab.as_ref().is_none_or(|ab| ab.leq(&a) && ab.leq(&b)));
        prop_assert_eq!(a.leq(&b), ab.as_ref() == Some(&a));
        if c.leq(&a) && c.leq(&b) {
            prop_assert!(ab.is_some_and(|ab| c.leq(&ab)));
        }
    }

    #[test]
    fn leq_is_a_partial_order([a, b, c] in triple()) {
        prop_assert!(a.leq(&a));
        prop_assert_eq!(a.leq(&b) && b.leq(&a), bytes_of(&a) == bytes_of(&b));
        prop_assert!(!(a.leq(&b) && b.leq(&c)) || a.leq(&c));
        if let Some(ab) = a.meet(&b) && let Some(abc) = ab.meet(&c) {
            prop_assert!(abc.leq(&ab) && ab.leq(&a) && abc.leq(&a));
        }
    }

    #[test]
    fn the_wire_has_one_form([a, ..] in triple(), at in any::<prop::sample::Index>(), to: u8) {
        let bytes = bytes_of(&a);
        prop_assert_eq!(decoded(&bytes), Ok(a));
        for n in 0..bytes.len() {
            prop_assert!(decoded(&bytes[..n]).is_err());
        }
        let mut changed = bytes;
        *at.get_mut(&mut changed) = to;
        if let Ok(other) = decoded(&changed) {
            prop_assert_eq!(bytes_of(&other), changed);
        }
    }
}

#[test]
fn scopes_are_shown_as_a_person_reads_them() {
    let both = Scope::paths([rule(root_of(0), &[], 1), rule(root_of(1), &["b"], 3)]).unwrap();
    assert_eq!(both.to_string(), "shared (read), workspace/b (read, write)");
    let (one, range) = (PortRange::new(443, 443).unwrap(), PortRange::new(8000, 8080).unwrap());
    assert_eq!(Scope::ports([one, range]).unwrap().to_string(), "443, 8000-8080");
    assert_eq!(Scope::ints(-1, 7).unwrap().to_string(), "-1 to 7");
    assert_eq!(Scope::cidrs([cidr("2001:db8::", 32)]).unwrap().to_string(), "2001:db8::/32");
}

/// What can't be decoded can't be made, and the fault says why.
#[test]
fn faults_of_forms_are_named() {
    assert_eq!(Host::new("a..b"), Err(ScopeError::Host));
    assert_eq!(RootName::new("agents"), Err(ScopeError::Root));
    assert_eq!(Name::new(""), Err(ScopeError::NameLength));
    assert_eq!(PortRange::new(0, 1), Err(ScopeError::PortRange));
    let block = |addr: &str, prefix| Cidr::new(addr.parse().unwrap(), prefix);
    assert_eq!(block("10.0.0.0", 33), Err(ScopeError::PrefixLength));
    assert_eq!(block("10.0.0.1", 31), Err(ScopeError::HostBits));
    assert_eq!(block("::ffff:10.0.0.0", 104), Err(ScopeError::Mapped));
    assert_eq!(Scope::ints(Ints::MIN - 1, 0), Err(ScopeError::IntRange));
    assert_eq!(Scope::ints(1, 0), Err(ScopeError::Empty));
    let both = [rule(root_of(1), &["a"], 1), rule(root_of(1), &["a"], 3)];
    assert_eq!(Paths::new(both), Err(ScopeError::Conflict));
    let names = (0..=Names::COUNT_MAX).map(|n| Name::new(&n.to_string()).unwrap());
    assert_eq!(Names::new(names), Err(ScopeError::TooMany));
}

#[test]
fn messages_are_short_and_escaped() {
    let shown = access(root_of(1), &["notes", "a.txt"], 1);
    assert_eq!(shown.to_string(), "read workspace/notes/a.txt");
    assert_eq!(format!("{shown:#}"), "read workspace/notes/a.txt of team");
    let odd = access(root_of(0), &["it's\n\u{202e}\u{200b}\u{1b}[0m\u{e9}"], 3);
    let text = r"read, write shared/it's\n\u{202e}\u{200b}\u{1b}[0m".to_owned() + "\u{e9}";
    assert_eq!(odd.to_string(), text);
    assert_eq!(Resource::Port(22).to_string(), "port 22");

    let long = access(root_of(0), &["x".repeat(255).as_str(); 64], 1).to_string();
    assert_eq!(long, format!("read shared/{}...", "x".repeat(120)));
    let many = Scope::names((0..1024).map(|n| format!("{n:04}{}", "\n".repeat(252)))).unwrap();
    assert!(many.to_string().len() < 6000 && many.to_string().ends_with("... and 1008 more"));
}
