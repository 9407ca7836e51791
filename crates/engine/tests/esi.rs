//! Pages with ESI: what a client gets of a page and its fragments, how those are fetched, and what they hold.

mod bounds;
mod gzip;
mod pages;
mod parallel;
mod private;
mod site;
mod strangers;
mod survival;
