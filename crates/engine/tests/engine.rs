//! The engine's behaviour, told as stories of clients and origins in memory under a virtual clock.

mod support;

mod bodies;
mod bounds;
mod caching;
mod codings;
mod collections;
mod compatibility;
mod delivery;
mod dns_names;
mod esi;
mod fetches;
mod hit_cost;
mod in_tree_vmods;
mod later_words;
mod legacy;
mod lines;
mod migrations;
mod overflow;
mod partial;
mod reasons;
mod requests;
mod rfc_reuse;
mod rfc_storing;
mod saints;
mod sessions;
mod simulation;
mod storages;
mod streams;
mod tags;
mod vcls;
