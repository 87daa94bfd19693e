//! The pages that may ask, and the code that lets one in.

use std::time::{Duration, Instant};

use blake3::Hash;

/// Letters of a code: 40 bits.
pub(crate) const CODE_LETTERS: usize = 8;
/// How long a code may be typed.
const CODE_TIME: Duration = Duration::from_secs(60);
/// How often a code may be wrong before the person has to draw another.
const TRIES_MAX: u32 = 5;
/// Most pages at a time; the one that was idle longest ends.
const PAGES_MAX: usize = 8;
/// How long a page lasts, whatever it asks.
const LIFE: Duration = Duration::from_secs(8 * 60 * 60);
/// Most requests of a page in a minute: a busy home is looked at anew twice a second, by three of them.
const REQUESTS_MAX: u32 = 1_200;
/// Most acts of all pages in a minute, and in an hour: those that give something.
const ACTS_MINUTE_MAX: usize = 10;
const ACTS_HOUR_MAX: usize = 100;

/// A page, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageId(u64);

/// Who may ask.
pub(crate) struct Pages {
    idle: Duration,
    /// The code that is expected, hashed.
    code: Option<(Hash, Instant)>,
    /// How many wrong codes there may still be.
    tries: u32,
    pages: Vec<Page>,
    last: u64,
    /// When acts were wished for, the newest last.
    acts: Vec<Instant>,
}

struct Page {
    id: PageId,
    /// Its token, hashed.
    token: Hash,
    since: Instant,
    used: Instant,
    /// Its requests in the minute that began then.
    requests: (Instant, u32),
}

/// Why a page may not ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It has no token, or one that is over.
    Unknown,
    /// It asks too often.
    Busy,
}

impl Pages {
    pub(crate) const fn new(idle: Duration) -> Self {
        Self { idle, code: None, tries: 0, pages: Vec::new(), last: 0, acts: Vec::new() }
    }

    /// Expects a code from now on, once.
    pub(crate) fn expect(&mut self, code: &str) {
        self.code = Some((blake3::hash(code.as_bytes()), Instant::now()));
        self.tries = TRIES_MAX;
    }

    /// True if that is the code; then it is used up.
    fn takes(&mut self, code: &str) -> bool {
        let Some((expected, drawn)) = self.code else { return false };
        if self.tries == 0 || drawn.elapsed() > CODE_TIME {
            self.code = None;
            return false;
        }
        // The comparison of hashes takes no longer for one that is nearly right.
        let right = expected == blake3::hash(code.as_bytes());
        self.tries = self.tries.saturating_sub(1);
        if right || self.tries == 0 {
            self.code = None;
        }
        right
    }

    /// Lets a page in that has typed the code; its token is that.
    pub(crate) fn enter(&mut self, code: &str, token: &str) -> bool {
        if !self.takes(code) {
            return false;
        }
        self.tidy();
        if self.pages.len() >= PAGES_MAX {
            let oldest = self.pages.iter().enumerate().min_by_key(|(_, page)| page.used);
            if let Some(at) = oldest.map(|(at, _)| at) {
                self.pages.remove(at);
            }
        }
        self.last = self.last.saturating_add(1);
        let now = Instant::now();
        let (id, token) = (PageId(self.last), blake3::hash(token.as_bytes()));
        self.pages.push(Page { id, token, since: now, used: now, requests: (now, 0) });
        true
    }

    /// The page with that token.
    pub(crate) fn known(&mut self, token: &str) -> Result<PageId, Stranger> {
        self.tidy();
        let token = blake3::hash(token.as_bytes());
        let page = self.pages.iter_mut().find(|page| page.token == token);
        let page = page.ok_or(Stranger::Unknown)?;
        let (began, count) = &mut page.requests;
        if began.elapsed() > Duration::from_secs(60) {
            (*began, *count) = (Instant::now(), 0);
        }
        *count = count.saturating_add(1);
        if *count > REQUESTS_MAX {
            return Err(Stranger::Busy);
        }
        page.used = Instant::now();
        Ok(page.id)
    }

    /// True if it has not ended.
    pub(crate) fn lasts(&mut self, id: PageId) -> bool {
        self.tidy();
        self.pages.iter().any(|page| page.id == id)
    }

    /// Counts an act that gives something; false where there were too many.
    pub(crate) fn may_act(&mut self) -> bool {
        self.acts.retain(|at| at.elapsed() < Duration::from_secs(60 * 60));
        let minute = self.acts.iter().filter(|at| at.elapsed() < Duration::from_secs(60));
        let may = minute.count() < ACTS_MINUTE_MAX && self.acts.len() < ACTS_HOUR_MAX;
        if may {
            self.acts.push(Instant::now());
        }
        may
    }

    /// Ends a page.
    pub(crate) fn end(&mut self, id: PageId) {
        self.pages.retain(|page| page.id != id);
    }

    pub(crate) fn end_all(&mut self) {
        (self.code, self.tries) = (None, 0);
        self.pages.clear();
    }

    fn tidy(&mut self) {
        let idle = self.idle;
        self.pages.retain(|page| page.used.elapsed() < idle && page.since.elapsed() < LIFE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_lets_one_page_in_once_and_five_wrong_ones_end_it() {
        let mut pages = Pages::new(Duration::from_secs(60));
        assert!(!pages.enter("", "t"), "no code was drawn");
        pages.expect("abcdefgh");
        assert!(pages.enter("abcdefgh", "t1"));
        assert!(!pages.enter("abcdefgh", "t2"));
        assert!(pages.known("t1").is_ok());
        assert_eq!(pages.known("t2"), Err(Stranger::Unknown));
        pages.expect("abcdefgh");
        for wrong in ["a", "b", "c", "d", "e"] {
            assert!(!pages.enter(wrong, "t3"));
        }
        assert!(!pages.enter("abcdefgh", "t3"), "five tries in all");
        pages.end_all();
        assert_eq!(pages.known("t1"), Err(Stranger::Unknown));
    }

    #[test]
    fn idle_page_ends_and_the_ninth_page_ends_the_idlest() {
        let mut pages = Pages::new(Duration::ZERO);
        pages.expect("code");
        assert!(pages.enter("code", "t"));
        assert_eq!(pages.known("t"), Err(Stranger::Unknown));
        let mut pages = Pages::new(Duration::from_secs(60));
        for n in 0..9 {
            pages.expect("code");
            assert!(pages.enter("code", &n.to_string()));
        }
        assert_eq!(pages.known("0"), Err(Stranger::Unknown));
        assert!((1..9).all(|n| pages.known(&n.to_string()).is_ok()));
    }

    #[test]
    fn acts_and_requests_are_bounded() {
        let mut pages = Pages::new(Duration::from_secs(60));
        assert_eq!((0..20).filter(|_| pages.may_act()).count(), ACTS_MINUTE_MAX);
        pages.expect("code");
        pages.enter("code", "t");
        let asked = (0..1_300).filter(|_| pages.known("t").is_ok()).count();
        assert_eq!(asked, 1_200);
        assert_eq!(pages.known("t"), Err(Stranger::Busy));
    }
}
