//! The head of a message, parsed as far as possible.

/// A head: the three words of its first line, and the other lines unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// A request's method, a response's protocol.
    pub first: Option<Vec<u8>>,
    /// A request's URL, a response's status.
    pub second: Option<Vec<u8>>,
    /// A request's protocol, a response's reason.
    pub third: Option<Vec<u8>>,
    /// The lines after the first.
    pub lines: Vec<Vec<u8>>,
}

impl Head {
    /// Splits a head, whatever it contains.
    pub fn cut(bytes: &[u8]) -> Head {
        let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut head = Head::default();
        // Leading blank lines are ignored.
        let Some(first) = lines.by_ref().find(|line| !line.iter().all(|byte| is_blank(*byte) || *byte == b'\r')) else {
            return head;
        };
        let first = &first[first.iter().take_while(|byte| is_blank(**byte)).count()..];
        let (word, rest) = split_word(first);
        head.first = Some(word.to_vec());
        if let Some(rest) = rest {
            let (word, rest) = split_word(skip_blanks(rest));
            head.second = Some(word.to_vec());
            head.third = rest.map(|rest| skip_blanks(rest).to_vec());
        }
        head.lines = lines.take_while(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
        head
    }

    /// The value of the first header with this name, ignoring case.
    pub fn header(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.values(name).next().map(<[u8]>::to_vec)
    }

    /// Number of headers with this name.
    pub fn count(&self, name: &[u8]) -> usize {
        self.values(name).count()
    }

    fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.lines.iter().filter_map(move |line| {
            let value = line.get(name.len()..)?.strip_prefix(b":")?;
            line[..name.len()].eq_ignore_ascii_case(name).then(|| skip_blanks(value))
        })
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| is_blank(**byte)).count()..]
}

/// The bytes before the first blank, and those after it; `None` if there is no blank.
fn split_word(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    match bytes.iter().position(|byte| is_blank(*byte) || *byte == b'\r') {
        Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
        None => (bytes, None),
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    fn words(text: &str) -> [Option<String>; 3] {
        let head = Head::cut(text.as_bytes());
        [head.first, head.second, head.third].map(|word| word.map(|word| String::from_utf8(word).unwrap()))
    }

    #[test]
    fn the_first_line_has_up_to_three_words() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(words("HTTP/1.1 200 All is  well\r\n\r\n"), [some("HTTP/1.1"), some("200"), some("All is  well")]);
        assert_eq!(words("HTTP/1.1 200 \r\n\r\n"), [some("HTTP/1.1"), some("200"), some("")]);
        assert_eq!(words("HTTP/1.1 200\r\n\r\n"), [some("HTTP/1.1"), some("200"), None]);
        assert_eq!(words("\r\nGET  /  HTTP/1.0\n\n"), [some("GET"), some("/"), some("HTTP/1.0")]);
        assert_eq!(words("GET"), [some("GET"), None, None]);
        assert_eq!(words(""), [None, None, None]);
    }

    #[test]
    fn headers_are_found_in_any_case_of_letters() {
        let head = Head::cut(b"GET / HTTP/1.1\r\nA:  one \r\na: two\nAb: x\r\nbroken line\r\n\r\n");
        assert_eq!(head.header(b"A"), Some(b"one ".to_vec()));
        assert_eq!((head.count(b"a"), head.count(b"broken line"), head.header(b"c")), (2, 0, None));
        assert_eq!(head.lines.len(), 4);
    }
}
