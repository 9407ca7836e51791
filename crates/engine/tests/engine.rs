//! The engine's behaviour, told as stories of clients and origins in memory under a virtual clock.

mod support;

mod delivery;
mod fetches;
mod hit_cost;
mod requests;
mod sessions;
mod simulation;
mod vcls;
