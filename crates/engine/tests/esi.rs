//! Pages with ESI: the assembled response, the fetches of fragments, and their contents.

mod bounds;
mod gzip;
mod pages;
mod parallel;
mod private;
mod site;
mod strangers;
mod survival;
