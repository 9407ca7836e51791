//! VMOD signatures: one row a function, from which the type checker and the reference page come.
//!
//! `vmods` implements the rows; a function's number is its index in [`FUNCTIONS`]. Next file: `cli.rs`.

use crate::vcl::Type;

/// One argument of a VMOD function.
#[derive(Debug)]
pub struct ArgumentRow {
    /// Name for `name = value`; empty for positional only.
    pub name: &'static str,
    /// Type. STRANDS takes any number of strings joined by `+`.
    pub kind: Type,
    /// Default, as VCL text; `None` when there is none.
    pub default: Option<&'static str>,
    /// The argument may be left out without a default; it then arrives as absent.
    pub optional: bool,
    /// The words of an ENUM.
    pub values: &'static [&'static str],
}

/// One VMOD function, method or constructor.
#[derive(Debug)]
pub struct FunctionRow {
    /// VMOD, e.g. `std`.
    pub vmod: &'static str,
    /// Class, e.g. `round_robin`; empty for a plain function.
    pub class: &'static str,
    /// Name; empty for the constructor of the class.
    pub name: &'static str,
    /// Result type.
    pub returns: Type,
    /// Arguments in order.
    pub arguments: &'static [ArgumentRow],
    /// Methods in which it may be called (`crate::vcl::at`).
    pub at: u16,
    /// One line of explanation.
    pub text: &'static str,
}

/// One VMOD.
#[derive(Debug)]
pub struct VmodRow {
    /// Name, as imported.
    pub name: &'static str,
    /// One line of explanation.
    pub text: &'static str,
    /// Classes whose objects are directors.
    pub directors: &'static [&'static str],
}

/// Every VMOD.
pub static VMODS: &[VmodRow] = &[];

/// Every function.
pub static FUNCTIONS: &[FunctionRow] = &[];
