//! Bans.

/// A checked ban expression.
#[derive(Clone, Debug)]
pub struct BanSpecification(());

impl BanSpecification {
    /// From the words of a CLI command: `req.url ~ foo && obj.status == 200`.
    ///
    /// # Errors
    /// The text that the CLI shows.
    pub fn parse(_words: &[&str]) -> Result<BanSpecification, String> {
        todo!()
    }

    /// From one string, as VCL's `ban()` has it.
    ///
    /// # Errors
    /// The text that `std.ban_error` shows.
    pub fn parse_text(_text: &str) -> Result<BanSpecification, String> {
        todo!()
    }
}
