//! Standard reason phrases.

pub use surface::status::phrase;
