//! Selection of requests by the user: a number, or an address in any of its printed forms.

use super::account::Account;

/// The selected requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Xid(u64),
    Url(Address),
}

/// An address; `*` matches anything.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Host in lower case, without the default port of its scheme.
    host: Option<String>,
    /// Path including its query.
    path: String,
    method: Option<String>,
}

impl Wanted {
    /// A number, `/path`, `host/path`, `host:port`, or a URL; optionally preceded by a method, as
    /// in printed requests.
    pub(super) fn parse(words: &[String]) -> Result<Wanted, String> {
        let (method, word) = match words {
            [] => return Ok(Wanted::All),
            [word] => (None, word),
            [method, word] if method.bytes().all(|byte| byte.is_ascii_uppercase()) => (Some(method.clone()), word),
            [_, extra, ..] => return Err(format!("one URL or XID at a time, not '{extra}' too")),
        };
        if let (None, Ok(number)) = (&method, word.parse()) {
            return Ok(Wanted::Xid(number));
        }
        let word = word.split('#').next().unwrap_or_default();
        let (scheme, rest) = word.split_once("://").map_or(("", word), |(scheme, rest)| (scheme, rest));
        let has_host = !scheme.is_empty() || !rest.starts_with(['/', '*', '?']);
        let (host, path) = match rest.find(['/', '?']) {
            _ if !has_host => (None, rest),
            Some(at) => (Some(&rest[..at]), &rest[at..]),
            None => (Some(rest), ""),
        };
        let host = host.map(|host| plain_host(host, scheme));
        let path = if path.starts_with(['/', '*']) { path.to_owned() } else { format!("/{path}") };
        Ok(Wanted::Url(Address { host, path, method }))
    }

    /// True if the user selected this request.
    pub(super) fn is(&self, account: &Account) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Xid(number) => account.xids().any(|xid| xid == *number),
            Wanted::Url(address) => address.is_path(account) && address.is_host(account),
        }
    }

    /// True if this may be the request if the user gave the server's address rather than its name:
    /// `copal demo` and the daemon print their listening addresses, and a client may send another
    /// host.
    pub(super) fn is_by_address(&self, account: &Account) -> bool {
        match self {
            Wanted::Url(address) => address.names_a_socket() && address.is_path(account),
            Wanted::All | Wanted::Xid(_) => false,
        }
    }
}

impl Address {
    fn is_path(&self, account: &Account) -> bool {
        self.method.as_ref().is_none_or(|method| *method == account.method)
            && (matches(&self.path, &account.url) || matches(&self.path, &account.received_url))
    }

    fn is_host(&self, account: &Account) -> bool {
        let Some(wanted) = &self.host else { return true };
        [&account.host, &account.received_host].iter().any(|host| matches(wanted, &plain_host(host, "http")))
    }

    /// True if the host is a network address, or this machine.
    fn names_a_socket(&self) -> bool {
        let Some(host) = &self.host else { return false };
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => name,
            None => host.split(':').next().unwrap_or_default(),
        };
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
    }
}

/// A host without irrelevant differences: case, user, the default port of the scheme.
fn plain_host(host: &str, scheme: &str) -> String {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let implied = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    host.strip_suffix(implied).map_or(host.clone(), str::to_owned)
}

/// True if a text matches a pattern in which only `*` is special and matches anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(words: &[&str]) -> Wanted {
        Wanted::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn is(words: &[&str], host: &str, url: &str) -> bool {
        let account = Account {
            method: "GET".to_owned(),
            host: host.to_owned(),
            received_host: host.to_owned(),
            url: url.to_owned(),
            received_url: url.to_owned(),
            ..Account::default()
        };
        wanted(words).is(&account)
    }

    #[test]
    fn addresses_are_taken_as_they_are_printed() {
        assert_eq!(wanted(&[]), Wanted::All);
        assert_eq!(wanted(&["32770"]), Wanted::Xid(32770));
        for word in [
            "/a/b?c[]=1",
            "www.example.com/a/b?c[]=1",
            "http://www.example.com/a/b?c[]=1",
            "http://user@WWW.example.com:80/a/b?c[]=1#part",
            "https://www.example.com:443/a/b?c[]=1",
            "*b?c*",
            "*.example.com/a/*",
            "http://*/a*",
        ] {
            let (host, star) = ("www.example.com", word.starts_with("*."));
            assert!(star || is(&[word], host, "/a/b?c[]=1"), "{word}");
            assert!(!is(&[word], host, "/other"), "{word}");
        }
        assert!(is(&["GET", "www.example.com/x"], "www.example.com", "/x"));
        assert!(!is(&["POST", "www.example.com/x"], "www.example.com", "/x"));
        assert!(is(&["http://127.0.0.1:6081/x"], "127.0.0.1:6081", "/x"));
        assert!(is(&["127.0.0.1:6081"], "127.0.0.1:6081", "/"));
        assert!(is(&["http://[::1]:6081/x?y"], "[::1]:6081", "/x?y"));
        assert!(is(&["http://example.com"], "Example.com", "/"));
        assert!(is(&["http://example.com?x"], "Example.com", "/?x"));
        assert!(!is(&["http://example.com/x"], "other.example", "/x"));
        assert!(Wanted::parse(&["/a".to_owned(), "/b".to_owned()]).is_err());
    }

    #[test]
    fn server_may_be_named_by_where_it_listens() {
        let account = Account { host: "example.com".to_owned(), url: "/x".to_owned(), ..Account::default() };
        for word in ["http://127.0.0.1:6081/x", "[::1]:6081/x", "localhost:6081/x"] {
            assert!(wanted(&[word]).is_by_address(&account) && !wanted(&[word]).is(&account), "{word}");
        }
        assert!(!wanted(&["http://127.0.0.1:6081/y"]).is_by_address(&account));
        assert!(!wanted(&["http://other.example/x"]).is_by_address(&account));
    }

    #[test]
    fn star_stands_for_anything_and_nothing_else_does() {
        for (pattern, text) in [("*", ""), ("/a*", "/a"), ("/*/c", "/a/b/c"), ("*a*a", "aa"), ("/?[]", "/?[]")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("/a", "/ab"), ("*a*a", "a"), ("/?", "/x"), ("a*b*", "ac"), ("", "x")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
