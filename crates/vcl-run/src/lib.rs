//! vcl-run
