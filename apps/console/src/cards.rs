//! Cards: what a page was shown, and may wish to have signed.
//!
//! A wish names a card and nothing else, so a script in the page can have nothing signed but what was
//! shown. The shown bytes stay here, and the act is of them or of nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::Wanted;
use crate::pages::PageId;

/// Most cards at a time; the oldest goes.
const CARDS_MAX: usize = 64;
/// How long one can be used.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a person needs for one at the least: a second, and one more for each 4 KiB.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(10);
const LOOK_BYTES: usize = 4 << 10;

/// A call or a tool, as it was shown.
struct Card {
    page: PageId,
    what: Wanted,
    shown: String,
    made: Instant,
}

/// Why a card can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCard {
    /// There is none of that name for that page: it was used, is over, or is another page's.
    Unknown,
    /// Nobody can have read it yet.
    Early,
}

/// The cards that were given out.
#[derive(Default)]
pub(crate) struct Cards(BTreeMap<String, Card>);

impl Cards {
    /// Gives one out under that name, which is random.
    pub(crate) fn give(&mut self, name: &str, page: PageId, what: Wanted, shown: String) {
        self.0.retain(|_, card| {
            card.made.elapsed() < LIFE && (card.page, &card.what) != (page, &what)
        });
        if self.0.len() >= CARDS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, card)| card.made);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.0.remove(&name);
            }
        }
        self.0.insert(name.to_owned(), Card { page, what, shown, made: Instant::now() });
    }

    /// Uses one up: what it is of, and what was shown of that.
    pub(crate) fn take(&mut self, name: &str, page: PageId) -> Result<(Wanted, String), NoCard> {
        let card = self.0.get(name).filter(|card| card.page == page && card.made.elapsed() < LIFE);
        let card = card.ok_or(NoCard::Unknown)?;
        if card.made.elapsed() < look(card.shown.len()) {
            return Err(NoCard::Early);
        }
        let card = self.0.remove(name).ok_or(NoCard::Unknown)?;
        Ok((card.what, card.shown))
    }
}

/// How long a person needs at the least for so many bytes.
fn look(bytes: usize) -> Duration {
    let more = u32::try_from(bytes.div_euclid(LOOK_BYTES)).unwrap_or(u32::MAX);
    LOOK.saturating_mul(more.saturating_add(1)).min(LOOK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Pages;

    fn pages() -> [PageId; 2] {
        let mut pages = Pages::new(Duration::from_secs(60));
        ["one", "two"].map(|token| {
            pages.expect("code");
            assert!(pages.enter("code", token));
            pages.known(token).unwrap()
        })
    }

    #[test]
    fn card_is_used_once_by_its_page_after_it_can_have_been_read() {
        let ([mine, theirs], mut cards) = (pages(), Cards::default());
        cards.give("c", mine, Wanted::Approval(7), "shown".to_owned());
        assert_eq!(cards.take("c", mine), Err(NoCard::Early));
        assert_eq!(cards.take("c", theirs), Err(NoCard::Unknown));
        assert_eq!(cards.take("d", mine), Err(NoCard::Unknown));
        std::thread::sleep(LOOK);
        assert_eq!(cards.take("c", mine), Ok((Wanted::Approval(7), "shown".to_owned())));
        assert_eq!(cards.take("c", mine), Err(NoCard::Unknown));
    }

    #[test]
    fn long_card_takes_longer_and_the_newest_of_a_call_counts() {
        assert_eq!(look(0), LOOK);
        assert_eq!(look(LOOK_BYTES * 2), LOOK * 3);
        assert_eq!(look(usize::MAX), LOOK_MAX);
        let ([mine, _], mut cards) = (pages(), Cards::default());
        cards.give("old", mine, Wanted::Approval(7), String::new());
        cards.give("new", mine, Wanted::Approval(7), String::new());
        assert_eq!(cards.take("old", mine), Err(NoCard::Unknown));
        for n in 0..100 {
            cards.give(&n.to_string(), mine, Wanted::Approval(n + 100), String::new());
        }
        assert_eq!(cards.0.len(), CARDS_MAX);
    }
}
