//! The turn to change what stands under a name.

use std::{os::fd::OwnedFd, time::Duration};

use super::base::Base;
use super::error::FsError;
use super::gate::{Ident, Node};
use super::homes::{is_key, is_mark};
use super::location::Location;
use super::write::{Charge, Effect, Parents, Refused, State, WriteFailure};
use crate::turns::Taken;

/// A name, as two who change it see it: the folder itself, and the name in it.
pub(super) type Name = (Ident, Box<str>);

/// The turn to change what stands under one name: nobody else who goes by the same [`Base`] has it
/// until this is dropped, or used up by the change. A caller that changes a file by its earlier
/// content takes it before it reads.
///
/// The folder is held open: what is changed is the name in it, wherever it is moved to. Other
/// programs know nothing of turns.
#[derive(Debug)]
pub struct Turn {
    pub(super) at: Location,
    pub(super) dir: OwnedFd,
    pub(super) name: Box<str>,
    folders: u32,
    taken: Taken<Name>,
}

impl Turn {
    /// How many folders were made for it.
    pub const fn folders(&self) -> u32 {
        self.folders
    }

    /// How far a change is that has this turn.
    pub(super) fn state(&self) -> State {
        let effect = if self.folders == 0 { Effect::NotDone } else { Effect::Partly };
        State { effect, folders: self.folders }
    }

    /// Lets the next one have the name. It returns the folder.
    pub(super) fn over(self) -> OwnedFd {
        drop(self.taken);
        self.dir
    }
}

/// A folder that a turn is of, before it is taken.
struct Place {
    at: Location,
    dir: OwnedFd,
    name: Name,
    state: State,
}

impl Base {
    /// Waits for the turn to change what stands at a place, whose folders are made where they are
    /// missing and `parents` says so; `meter` is asked before each. None are made for a `content`
    /// that may not lie there.
    ///
    /// # Errors
    /// [`WriteFailure`]: [`FsError::Busy`] where others had it for all of `wait`; any of a walk.
    pub fn turn(
        &self,
        at: &Location,
        parents: Parents,
        content: &[u8],
        wait: Duration,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Turn, WriteFailure> {
        let made = |name: &str| match parents {
            Parents::Create(_) if is_key(name, content) => Err(FsError::Home),
            Parents::Create(_) | Parents::Require => Ok(()),
        };
        let place = self.place(at, parents, &made, meter)?;
        let taken = self.turns.take(std::slice::from_ref(&place.name), wait);
        match taken.and_then(|mut taken| taken.pop()) {
            Some(taken) => self.begin_turn(place, taken),
            None => Err(place.state.failed(FsError::Busy)),
        }
    }

    /// The turns for two names, both at once: where a file is, whose folder is there, and where it
    /// goes to.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn turns(
        &self,
        from: &Location,
        to: &Location,
        parents: Parents,
        wait: Duration,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<[Turn; 2], WriteFailure> {
        let from = self.place(from, Parents::Require, &|_| Ok(()), meter)?;
        // Where there is nothing to move, or it may not be moved, no folders are made for it.
        let may_move =
            |new_name: &str| self.expect_moved(&from.dir, &from.name.1, new_name).map(drop);
        let to = self.place(to, parents, &may_move, meter)?;
        let taken = self.turns.take(&[from.name.clone(), to.name.clone()], wait);
        match taken.and_then(|taken| <[Taken<Name>; 2]>::try_from(taken).ok()) {
            Some([one, other]) => Ok([self.begin_turn(from, one)?, self.begin_turn(to, other)?]),
            None => Err(to.state.failed(FsError::Busy)),
        }
    }

    /// A turn that has come. The folder may have become a home while others had it.
    fn begin_turn(&self, place: Place, taken: Taken<Name>) -> Result<Turn, WriteFailure> {
        let Place { at, dir, name: (_, name), state } = place;
        self.expect_no_home(&dir).map_err(|error| state.failed(error))?;
        Ok(Turn { at, dir, name, folders: state.folders, taken })
    }

    fn place(
        &self,
        at: &Location,
        parents: Parents,
        may: &dyn Fn(&str) -> Result<(), FsError>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<Place, WriteFailure> {
        let mut state = State { effect: Effect::NotDone, folders: 0 };
        let mut found = || {
            let (parent, name) = at.split()?;
            if is_mark(name) {
                return Err(FsError::Home);
            }
            may(name)?;
            let dir = self.open_parent(parent, parents, meter, &mut state)?;
            let ident = Node::of(&dir)?.ident;
            Ok((dir, (ident, Box::from(name))))
        };
        match found() {
            Ok((dir, name)) => Ok(Place { at: at.clone(), dir, name, state }),
            Err(error) => Err(state.failed(error)),
        }
    }
}
