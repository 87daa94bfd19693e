//! `calendar.find`: what is in a range, what recurs, and what hostile files can't do.

use host_support::records;
mod hostile;
mod oracle;
mod scope;
mod series;
mod split;
mod world;
