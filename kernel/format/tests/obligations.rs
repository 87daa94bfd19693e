//! Obligations and keys of the state: their forms.

use syscap_format::{
    ConstraintId, Dimension, FactKey, Namespace, Obligation, ObligationKind, Source,
};

/// Whatever the order, the same comes of it; of two caps or cuts the smaller counts.
#[test]
fn obligations_are_united_in_any_order() {
    let cut = |dimension, max| Obligation::budget_cut(dimension, max).unwrap();
    let all = vec![
        Obligation::notify("b"),
        Obligation::result_cap(9),
        cut(Dimension::EgressBytes, 5),
        Obligation::notify("a"),
        Obligation::result_cap(4),
        Obligation::read_only(),
        cut(Dimension::EgressBytes, 3),
        cut(Dimension::DiskFiles, 7),
        Obligation::notify("a"),
        Obligation::read_only(),
    ];
    let wanted = [
        Obligation::result_cap(4),
        Obligation::read_only(),
        cut(Dimension::DiskFiles, 7),
        cut(Dimension::EgressBytes, 3),
        Obligation::notify("a"),
        Obligation::notify("b"),
    ];
    let mut turned = all;
    for _ in 0..turned.len() {
        turned.rotate_left(1);
        assert_eq!(Obligation::unite(turned.clone()), wanted);
        let backwards = turned.iter().rev().cloned().collect();
        assert_eq!(Obligation::unite(backwards), wanted);
    }
}

#[test]
fn only_what_is_metered_can_be_cut() {
    for dimension in Dimension::ALL {
        let cut = Obligation::budget_cut(dimension, 1);
        assert_eq!(cut.is_some(), dimension.is_metered(), "{dimension:?}");
    }
    let taken: Vec<_> = ObligationKind::ALL.iter().filter(|kind| kind.takes_away()).collect();
    let wanted = [ObligationKind::ResultCap, ObligationKind::ReadOnly, ObligationKind::BudgetCut];
    assert_eq!(taken, wanted.iter().collect::<Vec<_>>());
}

#[test]
fn keys_have_a_namespace_and_a_name() {
    for good in ["goal.a", "fact.source_ref", "policy.x-1", "constraint.0"] {
        assert_eq!(FactKey::new(good).unwrap().as_str(), good);
    }
    let long = |bytes| format!("goal.{}", "a".repeat(bytes));
    assert!(FactKey::new(&long(64)).is_some() && FactKey::new(&long(65)).is_none());
    for bad in ["", "goal", "goal.", ".a", "goal.A", "goal.a.b", "other.a", "Goal.a", "goal.\u{e9}"]
    {
        assert!(FactKey::new(bad).is_none(), "{bad}");
    }
    let id = |bytes: usize| ConstraintId::new(&"a".repeat(bytes));
    assert!(id(1).is_some() && id(160).is_some() && id(161).is_none() && id(0).is_none());
    assert!(ConstraintId::new("a b").is_none() && ConstraintId::new("A-1/b_c.d").is_some());
}

#[test]
fn policy_facts_are_written_by_policies_only() {
    for writer in Source::ALL {
        let may = |space: Namespace| space.is_written_by(*writer);
        assert!(!may(Namespace::Policy) && !may(Namespace::Constraint), "{writer}");
        let agents = matches!(writer, Source::Agent | Source::User);
        let tools = matches!(writer, Source::Tool | Source::Encoder);
        assert_eq!((may(Namespace::Goal), may(Namespace::Fact)), (agents, tools), "{writer}");
    }
}
