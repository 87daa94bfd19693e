//! Following links to where a path really leads.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::readlinkat;

use super::base::Base;
use super::error::FsError;
use super::gate::{Kind, NAMED, Node, walk};
use super::location::{Links, Location};

/// How many links one path may take. The kernel allows 40; each is a step an auditor must take.
const LINKS_MAX: u32 = 8;

impl Base {
    /// Where these names lead.
    ///
    /// With [`Links::Refuse`] the names are checked and the file system is not asked: the
    /// openers refuse links themselves. With [`Links::FollowWithin`] each link is replaced by
    /// its target, so the answer holds no link. Absolute links are refused even if they point
    /// into the base. If something on the way is missing, the rest is taken as written, so that
    /// it can be created.
    ///
    /// The answer may be stale when it is used: check it against the scope, then open it. The
    /// openers refuse a link that was put there since.
    ///
    /// # Errors
    /// [`FsError::BadName`], [`FsError::NameTooLong`]; when following also
    /// [`FsError::Escapes`], [`FsError::Link`] for more than 8 links, or any of a walk.
    pub fn locate<S: AsRef<str>>(&self, names: &[S], links: Links) -> Result<Location, FsError> {
        let written = Location::new(names)?;
        match links {
            Links::Refuse => Ok(written),
            Links::FollowWithin => Path::new(self, &written).follow(),
        }
    }
}

/// A path that is being followed.
struct Path<'a> {
    base: &'a Base,
    /// Where we are; holds no link.
    at: Location,
    /// Handles of the directories of `at`, in order.
    dirs: Vec<OwnedFd>,
    /// What is still to be walked: names, and of a link's target also `.`, `..` and nothing.
    rest: VecDeque<String>,
    links: u32,
}

impl<'a> Path<'a> {
    fn new(base: &'a Base, written: &Location) -> Self {
        let at = Location::default();
        let rest = written.names().map(str::to_owned).collect();
        Self { base, at, dirs: Vec::new(), rest, links: 0 }
    }

    fn follow(mut self) -> Result<Location, FsError> {
        while let Some(name) = self.rest.pop_front() {
            match name.as_str() {
                "" | "." => {}
                ".." => {
                    self.at.pop()?;
                    self.dirs.pop();
                }
                name => self.enter(name)?,
            }
        }
        Ok(self.at)
    }

    /// Goes down one name, or replaces it by the target of the link it is.
    fn enter(&mut self, name: &str) -> Result<(), FsError> {
        let named = match self.dirs.last() {
            Some(dir) => walk(dir, name.as_bytes(), NAMED),
            None => walk(self.base.handle(), name.as_bytes(), NAMED),
        };
        let fd = match named {
            Err(FsError::NotFound) => return self.take_rest(name),
            named => named?,
        };
        let node = Node::of(&fd)?;
        if node.kind(self.base.device()) == Kind::Link {
            return self.turn(&fd);
        }
        node.expect_device(self.base.device())?;
        self.at.push(name)?;
        if node.is_directory() {
            self.dirs.push(fd);
        } else if !self.rest.is_empty() {
            // `file/`, `file/.` and `file/..` too.
            return Err(FsError::NotDirectory);
        }
        Ok(())
    }

    /// The target of the link comes before the rest.
    fn turn(&mut self, link: &OwnedFd) -> Result<(), FsError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(FsError::Link);
        }
        // By the handle, so it is the target of the link that was looked at.
        let target = readlinkat(link, "", Vec::new())?;
        let target = target.into_string().map_err(|_| FsError::BadName)?;
        if target.starts_with('/') {
            return Err(FsError::Escapes);
        }
        for name in target.rsplit('/') {
            self.rest.push_front(name.to_owned());
        }
        Ok(())
    }

    /// `name` doesn't exist: what follows can only be names below it.
    fn take_rest(&mut self, name: &str) -> Result<(), FsError> {
        self.at.push(name)?;
        while let Some(name) = self.rest.pop_front() {
            if matches!(name.as_str(), "" | "." | "..") {
                return Err(FsError::NotFound);
            }
            self.at.push(&name)?;
        }
        Ok(())
    }
}
