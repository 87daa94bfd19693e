//! What the fuzz targets reach of what is private.

pub use crate::attach::fuzz::frame;
