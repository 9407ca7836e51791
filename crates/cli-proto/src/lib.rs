//! cli-proto
