//! A place in which all programs are found and a repository is plain, and what is said there.

use syscap_commands::{Mark, Place, Repository, Said, analyse, programs};

pub(crate) fn place() -> Place {
    let mut place = Place::at("/p").unwrap();
    place.home = Some("/users/me".to_owned());
    place.search = vec!["/usr/bin".to_owned()];
    for name in programs() {
        place.found.insert(name.to_owned(), format!("/usr/bin/{name}"));
    }
    place.writable = ["/p".to_owned()].into();
    place.repository = Repository::Plain("/p".to_owned());
    place
}

pub(crate) fn said(text: &str) -> Said {
    analyse(text, &place())
}

pub(crate) fn has(text: &str, mark: Mark) -> bool {
    said(text).marks.contains(&mark)
}
