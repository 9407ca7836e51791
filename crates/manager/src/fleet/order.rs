//! Invalidations of a fleet as orders for the worker: checked, and translated.

use control::fleet::FleetOrder;
use fleet::Invalidation;
use surface::limits::{FLEET_MESSAGE_BYTES_MAX, FLEET_TAGS_MAX};

/// The order for the worker.
///
/// # Errors
/// The reason why it cannot be carried out: then everything is removed instead.
pub fn of(invalidation: &Invalidation) -> Result<FleetOrder, String> {
    match invalidation {
        // A ban cannot make objects stale: removing them is the stronger order.
        Invalidation::Url { url, is_soft: _ } => {
            let (host, path) = split(url)?;
            Ok(FleetOrder::BanWords(words(host, "==", path.to_owned())))
        }
        Invalidation::Prefix { prefix, is_soft: _ } => {
            let (host, path) = split(prefix)?;
            Ok(FleetOrder::BanWords(words(host, "~", format!("^{}", quoted(path)))))
        }
        Invalidation::Key { digest, is_soft } => Ok(FleetOrder::Key { digest: *digest, is_soft: *is_soft }),
        Invalidation::Tags { tags, is_soft } => {
            check_tags(tags)?;
            Ok(FleetOrder::Tags { tags: tags.clone(), is_soft: *is_soft })
        }
        Invalidation::Ban { expression } if expression.len() > FLEET_MESSAGE_BYTES_MAX => {
            Err("the expression is too long".to_owned())
        }
        Invalidation::Ban { expression } => Ok(FleetOrder::Ban(expression.clone())),
        Invalidation::Everything => Ok(FleetOrder::Everything),
        Invalidation::Leave | Invalidation::Forget { .. } => Ok(FleetOrder::Nothing),
    }
}

fn check_tags(tags: &[String]) -> Result<(), String> {
    let is_tag = |tag: &String| !tag.is_empty() && !tag.contains([' ', '\t', ',', '\n', '\r', '\0']);
    match tags.len() {
        0 => Err("there is no tag".to_owned()),
        1..=FLEET_TAGS_MAX if tags.iter().all(is_tag) => Ok(()),
        1..=FLEET_TAGS_MAX => Err("a tag is empty, or has a blank or a comma in it".to_owned()),
        count => Err(format!("{count} tags are too many, {FLEET_TAGS_MAX} are allowed")),
    }
}

/// Splits a URL into host, if there is one, and path with query.
fn split(url: &str) -> Result<(Option<&str>, &str), String> {
    if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) || url.len() > FLEET_MESSAGE_BYTES_MAX / 4 {
        return Err("a URL has no blanks, and is not that long".to_owned());
    }
    if url.starts_with('/') {
        return Ok((None, url));
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    match !host.is_empty() && host.bytes().all(is_host) {
        true => Ok((Some(host), path)),
        false => Err(format!("'{}' is neither /PATH nor HOST/PATH", surface::legible::line(url.as_bytes()))),
    }
}

/// The words of a ban expression. A host without a port means any port, and its case does not
/// matter.
fn words(host: Option<&str>, operator: &str, path: String) -> Vec<String> {
    let mut words = vec!["req.url".to_owned(), operator.to_owned(), path];
    if let Some(host) = host {
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port = if has_port { "" } else { "(:[0-9]*)?" };
        let pattern = format!("(?i)^{}{port}$", quoted(host));
        words.extend(["&&", "req.http.host", "~"].map(str::to_owned));
        words.push(pattern);
    }
    words
}

/// A pattern that matches the text itself.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() && !letter.is_ascii_alphanumeric() && !"/-_=%&,:;@!~'".contains(letter) {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban(invalidation: &Invalidation) -> String {
        match of(invalidation) {
            Ok(FleetOrder::BanWords(words)) => words.join(" "),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn urls_become_bans_on_the_request() {
        let url = |url: &str| ban(&Invalidation::Url { url: url.to_owned(), is_soft: false });
        assert_eq!(url("/a?b=c"), "req.url == /a?b=c");
        assert_eq!(url("https://Shop.example/a"), "req.url == /a && req.http.host ~ (?i)^Shop\\.example(:[0-9]*)?$");
        assert_eq!(url("a.example:81"), "req.url == / && req.http.host ~ (?i)^a\\.example:81$");
        let prefix = |prefix: &str| ban(&Invalidation::Prefix { prefix: prefix.to_owned(), is_soft: true });
        assert_eq!(prefix("/a.b+(c)"), "req.url ~ ^/a\\.b\\+\\(c\\)");
        for wrong in ["", "http://", "a b", "/a b", "/a\nb", "user@host/x", "*"] {
            assert!(of(&Invalidation::Url { url: wrong.to_owned(), is_soft: false }).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn tags_are_bounded_words() {
        let tags = |tags: &[&str]| {
            of(&Invalidation::Tags { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), is_soft: true })
        };
        assert!(tags(&["a", "b"]).is_ok());
        for wrong in [&[][..], &[""], &["a b"], &["a,b"], &["a\n"], &["x"; FLEET_TAGS_MAX + 1]] {
            assert!(tags(wrong).is_err(), "{wrong:?}");
        }
        assert!(of(&Invalidation::Ban { expression: "x".repeat(FLEET_MESSAGE_BYTES_MAX + 1) }).is_err());
    }
}
