//! Comma-separated header values: members, and directives with a value.

/// The members of a list, without surrounding blanks; empty members are left out, quoted commas do not separate.
pub fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let mut quoted = false;
            let mut escaped = false;
            let end = rest
                .iter()
                .position(|&byte| {
                    if escaped {
                        escaped = false;
                        return false;
                    }
                    match byte {
                        b'\\' if quoted => escaped = true,
                        b'"' => quoted = !quoted,
                        b',' if !quoted => return true,
                        _ => {}
                    }
                    false
                })
                .unwrap_or(rest.len());
            let member = rest[..end].trim_ascii();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    })
}
