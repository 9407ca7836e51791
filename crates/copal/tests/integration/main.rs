//! Everything that is tested with the program as a whole: its layers, its documents, real processes, real origins, and the
//! stock Varnish programs.

#![forbid(unsafe_code)]

mod architecture;
mod daemon;
mod layers;
mod origins;
mod processes;
mod stock_tools;
