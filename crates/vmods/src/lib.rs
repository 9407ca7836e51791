//! vmods
