//! The tools of syscap, one family a module.
//!
//! * [`fs`]: `fs.read`, `fs.list`, `fs.write`, on handles opened beneath one base directory.
//! * [`builtin`]: `echo`, `current_time`.
//! * [`beneath`]: the file access that [`fs`] rests on.

pub mod beneath;
pub mod builtin;
pub mod fs;
