//! VCL that the option `-b` is short for.

/// Name of the text in places and listings.
pub const BACKEND_OPTION_NAME: &str = "<-b argument>";

/// The declaration of the backend `default` that an argument of `-b` is short for, without a
/// version line. The argument is `none`, an address with or without a port, or the path of a
/// socket. A mistake in it is one of the VCL.
#[must_use]
pub fn backend_option(argument: &str) -> String {
    let quoted = |text: &str| text.replace(['"', '\n'], "");
    let argument = argument.trim();
    if argument.eq_ignore_ascii_case("none") {
        return "backend default none;\n".to_owned();
    }
    if argument.starts_with('/') {
        return format!("backend default {{\n    .path = \"{}\";\n}}\n", quoted(argument));
    }
    let (host, port) = split(argument);
    let port = port.map(|port| format!("    .port = \"{}\";\n", quoted(port))).unwrap_or_default();
    format!("backend default {{\n    .host = \"{}\";\n{port}}}\n", quoted(host))
}

/// Splits an address in two. A bare IPv6 address has no port.
fn split(text: &str) -> (&str, Option<&str>) {
    let (host, port) = if let Some((host, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        (host, rest.trim_start_matches([':', ' ']))
    } else if let Some((host, port)) = text.split_once(' ') {
        (host, port.trim())
    } else if text.matches(':').count() > 1 {
        (text, "")
    } else {
        text.split_once(':').unwrap_or((text, ""))
    };
    (host, (!port.is_empty()).then_some(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_is_short_for_one_backend() {
        for (argument, fields) in [
            ("127.0.0.1:8080", &[".host = \"127.0.0.1\"", ".port = \"8080\""][..]),
            ("127.0.0.1 8080", &[".host = \"127.0.0.1\"", ".port = \"8080\""]),
            ("localhost", &[".host = \"localhost\""]),
            ("[::1]:80", &[".host = \"::1\"", ".port = \"80\""]),
            ("::1", &[".host = \"::1\""]),
            ("/run/app.sock", &[".path = \"/run/app.sock\""]),
            ("a\"b", &[".host = \"ab\""]),
        ] {
            let expected: String = fields.iter().map(|field| format!("    {field};\n")).collect();
            assert_eq!(backend_option(argument), format!("backend default {{\n{expected}}}\n"), "{argument}");
        }
        assert_eq!(backend_option("NONE"), "backend default none;\n");
    }
}
