//! Tests of the program as a whole: its layers, its documents, real processes, real origins, and
//! the stock Varnish programs.

#![forbid(unsafe_code)]

mod access_logs;
mod acme;
mod administration;
mod architecture;
mod command_clients;
mod confinement;
mod counters;
mod cut_bodies;
mod daemon;
mod dashboard;
mod dependencies;
mod early_answers;
mod early_data;
mod encodings;
mod eviction;
mod file_attacks;
mod file_delivery;
mod file_layers;
mod file_storage;
mod first_hour;
mod front_door;
mod http2_abuse;
mod http3;
mod invariants;
mod kept_by_systemd;
mod kills;
mod large_bodies;
mod layers;
mod load;
mod log_followers;
mod memory;
mod metrics;
mod origin_tls;
mod origins;
mod packages;
mod parameters;
mod processes;
mod prose;
mod same_records;
mod screens;
mod scripts;
mod shortage;
mod starts;
mod stock_tools;
mod surroundings;
mod third_parties;
mod tiers;
mod tls_certificates;
mod traces;
mod upgrades;
mod vcls;
mod waiting;
mod why;
