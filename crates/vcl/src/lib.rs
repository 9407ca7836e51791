//! vcl
