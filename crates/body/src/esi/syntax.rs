//! The words and characters that the parser of pages recognises. They are compared as bytes, never
//! as characters.

/// Result of searching a table of words at the next bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found<T> {
    /// It begins with one of the words; this many bytes belong to it.
    Word(T, usize),
    /// It begins with none of them.
    None,
    /// More bytes are needed to decide.
    Open,
}

/// The first word that `bytes` begin with. A word that another one begins with comes after it.
pub(crate) fn find<T: Copy>(words: &[(&[u8], T)], bytes: &[u8]) -> Found<T> {
    for (word, meaning) in words {
        if bytes.starts_with(word) {
            return Found::Word(*meaning, word.len());
        }
        if word.starts_with(bytes) {
            return Found::Open;
        }
    }
    Found::None
}

/// The significant continuations of `<`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    EsiComment,
    EmptyComment,
    Comment,
    EsiEndTag,
    EsiTag,
    Cdata,
}

pub(crate) const OPENINGS: &[(&[u8], Opening)] = &[
    (b"!--esi", Opening::EsiComment),
    (b"!---->", Opening::EmptyComment),
    (b"!--", Opening::Comment),
    (b"/esi:", Opening::EsiEndTag),
    (b"esi:", Opening::EsiTag),
    (b"![CDATA[", Opening::Cdata),
];

/// The known elements. Compat: the rest of a longer name is treated as the inside of the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    Include,
    Remove,
    Comment,
}

pub(crate) const ELEMENTS: &[(&[u8], Element)] =
    &[(b"include", Element::Include), (b"remove", Element::Remove), (b"comment", Element::Comment)];

/// The attributes of `<esi:include>` that are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attribute {
    Src,
    OnError,
}

pub(crate) const ATTRIBUTES: &[(&[u8], Attribute)] = &[(b"src=", Attribute::Src), (b"onerror=", Attribute::OnError)];

pub(crate) const COMMENT_END: &[u8; 3] = b"-->";
pub(crate) const CDATA_END: &[u8; 3] = b"]]>";

/// The byte order mark of UTF-8, and the bytes that Varnish 7.1 takes for it.
pub(crate) const BYTE_ORDER_MARKS: &[(&[u8], ())] = &[(b"\xef\xbb\xbf", ()), (b"\xeb\xbb\xbf", ())];

/// White space with line ends.
pub(crate) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// White space within a line.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// True if the name of an attribute may begin with it. Compat: Latin-1, as in Varnish 7.1.
pub(crate) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b':' | b'_' | 0xc0..=0xd6 | 0xd8..=0xf6 | 0xf8..=0xff)
}

/// True if the name of an attribute may continue with it.
pub(crate) fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | 0xb7)
}

/// The bytes before the first NUL. Compat: Varnish 7.1 treats an attribute as a C string.
pub(crate) fn before_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

const ENTITIES: &[(&[u8], u8)] =
    &[(b"&apos;", b'\''), (b"&quot;", b'"'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&')];

/// Appends a text with the entities of XML decoded.
pub(crate) fn push_decoded(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(first) = text.first() {
        let (byte, length) = match find(ENTITIES, text) {
            Found::Word(byte, length) if *first == b'&' => (byte, length),
            _ => (*first, 1),
        };
        out.push(byte);
        text = &text[length..];
    }
}
