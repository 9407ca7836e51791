//! Arbitrary bytes as a file of cases for `copal vcl test`.

/// Reads `bytes` as a file of cases, if they are UTF-8.
///
/// # Panics
/// When a file is refused without a message that begins with its name.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = vcl_test::check_cases("fuzz.toml", text) {
        assert!(error.starts_with("fuzz.toml:") && error.len() > 12, "{error}");
    }
}
