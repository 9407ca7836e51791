//! CLI commands: one row each.
