//! What a plan would touch, each thing once. All that follows costs as much as this list is long:
//! texts, the policy's tests, approvals.

use alloc::{collections::BTreeSet, vec::Vec};

use crate::tool::Demand;
use syscap_format::{DEMANDS_MAX, Reason, Refused, Resource};

/// Up to so many are compared one by one: most calls have one.
const FEW: usize = 8;

/// Demands, each once, in the order in which they came first; at most one more than
/// [`DEMANDS_MAX`]. A tool that reads a long list collects by it, and stops once
/// [it is over](Self::is_over): the kernel then refuses the call.
#[derive(Clone, Debug, Default)]
pub struct DistinctDemands {
    list: Vec<Demand>,
    /// The same, where they are more than a few.
    seen: BTreeSet<Demand>,
    /// Trees that came again.
    again: BTreeSet<Demand>,
}

impl DistinctDemands {
    /// Adds a demand, unless it is there or the list is over.
    pub fn push(&mut self, demand: Demand) {
        if self.is_over() {
            return;
        }
        let is_new = match self.list.len() {
            ..FEW => !self.list.contains(&demand),
            _ => {
                if self.seen.is_empty() {
                    self.seen.extend(self.list.iter().cloned());
                }
                self.seen.insert(demand.clone())
            }
        };
        // A tree beside another is unknown to a policy, also beside itself: so it stands there twice.
        let is_tree = || matches!(demand.resource, Resource::Tree { .. });
        if is_new || (is_tree() && self.again.insert(demand.clone())) {
            self.list.push(demand);
        }
    }

    /// Adds demands, until the list is over.
    pub fn extend(&mut self, demands: impl IntoIterator<Item = Demand>) {
        for demand in demands {
            if self.is_over() {
                return;
            }
            self.push(demand);
        }
    }

    /// True if there are more than a call may have: no further one is looked at.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.list.len() > DEMANDS_MAX
    }

    /// The demands.
    #[must_use]
    pub fn into_vec(self) -> Vec<Demand> {
        self.list
    }
}

/// The demands of a plan as all that follows sees them.
///
/// # Errors
/// [`Reason::TooLarge`] where there are more than [`DEMANDS_MAX`].
pub(crate) fn distinct(demands: &[Demand]) -> Result<Vec<Demand>, Refused> {
    let mut distinct = DistinctDemands::default();
    distinct.list.reserve_exact(demands.len().min(DEMANDS_MAX));
    distinct.extend(demands.iter().cloned());
    match distinct.is_over() {
        false => Ok(distinct.into_vec()),
        true => {
            let refused = Refused::new(Reason::TooLarge).field("resources");
            Err(refused.allowed(&format_args!("{DEMANDS_MAX}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscap_format::{Name, Rights, Root, RootedPath};

    fn name(n: usize, argument: &'static str) -> Demand {
        let resource = Resource::Name(Name::new(&alloc::format!("n{n}")).unwrap());
        Demand { dimension: "team", resource, argument }
    }

    #[test]
    fn equal_demands_count_once_and_one_more_than_1024_is_refused() {
        for count in [1, FEW - 1, FEW, FEW + 1, DEMANDS_MAX] {
            let all = || (0..count).map(|n| name(n, "a"));
            let twice: Vec<Demand> = all().chain(all()).collect();
            assert_eq!(distinct(&twice), Ok(all().collect()));
        }
        let same: Vec<Demand> = alloc::vec![name(0, "a"); 100_000];
        assert_eq!(distinct(&same), Ok(alloc::vec![name(0, "a")]));
        let over: Vec<Demand> = (0..=DEMANDS_MAX).map(|n| name(n, "a")).collect();
        let refused = distinct(&over).unwrap_err();
        assert_eq!(refused, Refused::new(Reason::TooLarge).field("resources").allowed("1024"));
        // Another argument that names the same is another demand.
        assert_eq!(distinct(&[name(0, "a"), name(0, "b")]).unwrap().len(), 2);
    }

    #[test]
    fn tree_that_comes_again_stands_there_twice() {
        let path = RootedPath::new(Root::named("shared").unwrap(), ["a"]).unwrap();
        let resource = Resource::Tree { path, needs: Rights::READ };
        let tree = Demand { dimension: "path", resource, argument: "a" };
        let many: Vec<Demand> = (0..FEW).map(|n| name(n, "b")).collect();
        for before in [&[][..], &many] {
            let all = [before, &alloc::vec![tree.clone(); 5]].concat();
            assert_eq!(distinct(&all).unwrap().len(), before.len() + 2);
        }
    }
}
