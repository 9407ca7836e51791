//! Parsing and printing of parameter values.
