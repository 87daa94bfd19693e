//! Following links to where a path really leads.

use std::{collections::VecDeque, ffi::CString, os::fd::OwnedFd};

use rustix::{fs::readlinkat, io::Errno};

use super::{base::Base, error::FsError, gate::Kind, location::Location, walk::Named};

/// How many links one path may take: as many as the operating system follows, so that whatever
/// another program can open by a path can be found by it.
const LINKS_MAX: u32 = 40;
/// How many names one path may take, those of its links included. One target can have two thousand,
/// and each is walked to from the base.
const NAMES_MAX: u32 = 1_024;

impl Base {
    /// Resolves a path: each link on the way is replaced by its target, so that the answer has
    /// none. Absolute links are refused even if they point into the base.
    ///
    /// Only what `may_follow` says yes to is looked at, and so only links there are read. A part
    /// that is forbidden, missing, no folder or closed is taken as written, and so is the rest
    /// behind it: the answer does not tell these cases apart.
    ///
    /// The answer may be stale when it is used: check it against the scope, then open it. The
    /// openers refuse a link that was put there since.
    ///
    /// # Errors
    /// [`FsError::Escapes`], [`FsError::Link`] for more than 40 links or 1024 names,
    /// [`FsError::BadName`] and [`FsError::NameTooLong`] of what a link leads to.
    pub fn resolve(
        &self,
        written: &Location,
        may_follow: &dyn Fn(&Location) -> bool,
    ) -> Result<Location, FsError> {
        // Nearly always there is no link: then one walk says so.
        if may_follow(written)
            && let Some((_, _, named)) = self.look_at(&self.lies(written))
            && matches!(named.node.kind(self.device()), Kind::File | Kind::Directory)
        {
            return Ok(written.clone());
        }
        let mut at = Location::default();
        let mut rest: VecDeque<String> = written.names().map(str::to_owned).collect();
        let (mut links, mut names) = (0, 0);
        while let Some(name) = rest.pop_front() {
            names += 1;
            if names > NAMES_MAX {
                return Err(FsError::Link);
            }
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    at.pop()?;
                    continue;
                }
                name => at.push(name)?,
            }
            if may_follow(&at)
                && let Some(target) = self.target(&self.lies(&at))
            {
                links += 1;
                if links > LINKS_MAX {
                    return Err(FsError::Link);
                }
                at.pop()?;
                for name in target?.rsplit('/') {
                    rest.push_front(name.to_owned());
                }
            }
        }
        Ok(at)
    }

    /// The entry there, with its folder and name, without a link on the way; nothing if that is
    /// unknown.
    fn look_at<'a>(&self, at: &'a Location) -> Option<(OwnedFd, &'a str, Named)> {
        let (parent, name) = at.split().ok()?;
        let dir = self.name_directory(parent).ok()?;
        let named = self.name(&dir, name.as_bytes()).ok()?;
        Some((dir, name, named))
    }

    /// The target of the link there, if it is one.
    fn target(&self, at: &Location) -> Option<Result<String, FsError>> {
        let (dir, name, named) = self.look_at(at)?;
        if named.node.kind(self.device()) != Kind::Link {
            return None;
        }
        let target = match &named.held {
            // By the handle, so it is the target of the link that was looked at.
            Some(link) => readlinkat(link, "", Vec::new()),
            // What is none any more is taken as written.
            None => match readlinkat(&dir, name, Vec::new()) {
                Err(Errno::INVAL | Errno::NOENT) => return None,
                target => target,
            },
        };
        Some(target.map_err(FsError::from).and_then(relative))
    }
}

fn relative(target: CString) -> Result<String, FsError> {
    let target = target.into_string().map_err(|_| FsError::BadName)?;
    if target.starts_with('/') { Err(FsError::Escapes) } else { Ok(target) }
}
