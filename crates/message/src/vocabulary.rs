//! Vocabulary of stored heads: frequent names and values, each stored as one byte.
//!
//! *Invariant:* the places in both lists are stored in arenas and in files. Nothing is moved or
//! removed; additions are appended (test `the_vocabulary_never_changes`).

use crate::name_bit_number;

/// Room for a name and the separator before its value: copied whole, since a copy of fixed length
/// needs no call.
pub(crate) const LINE_BYTES: usize = 40;

/// A name in the form of a line's beginning.
pub(crate) struct Opening {
    /// The name, `: `, zeros.
    pub(crate) text: [u8; LINE_BYTES],
    pub(crate) name_len: u8,
    /// The number of its [`crate::name_bit`].
    pub(crate) bit: u8,
}

impl Opening {
    const EMPTY: Opening = Opening { text: [0; LINE_BYTES], name_len: 0, bit: 0 };

    const fn of(name: &str, is_lower: bool) -> Opening {
        let name = name.as_bytes();
        let mut text = [0; LINE_BYTES];
        let mut at = 0;
        while at < name.len() {
            text[at] = if is_lower { name[at].to_ascii_lowercase() } else { name[at] };
            at += 1;
        }
        text[at] = b':';
        text[at + 1] = b' ';
        Opening { text, name_len: name.len() as u8, bit: name_bit_number(name) }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.text[..usize::from(self.name_len)]
    }
}

/// Names in their usual case.
const NAMES: [&str; 88] = [
    "Accept-Ranges",
    "Access-Control-Allow-Credentials",
    "Access-Control-Allow-Headers",
    "Access-Control-Allow-Methods",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Access-Control-Max-Age",
    "Age",
    "Allow",
    "Alt-Svc",
    "Cache-Control",
    "Cache-Groups",
    "Cache-Status",
    "Cache-Tag",
    "CDN-Cache-Control",
    "Connection",
    "Content-Digest",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Range",
    "Content-Security-Policy",
    "Content-Type",
    "Cross-Origin-Embedder-Policy",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Date",
    "ETag",
    "Expect-CT",
    "Expires",
    "Feature-Policy",
    "Keep-Alive",
    "Last-Modified",
    "Link",
    "Location",
    "NEL",
    "Origin-Agent-Cluster",
    "P3P",
    "Permissions-Policy",
    "Pragma",
    "Priority",
    "Proxy-Authenticate",
    "Public-Key-Pins",
    "Referrer-Policy",
    "Refresh",
    "Report-To",
    "Reporting-Endpoints",
    "Repr-Digest",
    "Retry-After",
    "Server",
    "Server-Timing",
    "Set-Cookie",
    "SourceMap",
    "Strict-Transport-Security",
    "Surrogate-Control",
    "Surrogate-Key",
    "Timing-Allow-Origin",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Vary",
    "Via",
    "WWW-Authenticate",
    "Warning",
    "X-AspNet-Version",
    "X-AspNetMvc-Version",
    "X-Cache",
    "X-Cache-Tags",
    "X-Cacheable",
    "X-Content-Type-Options",
    "X-DNS-Prefetch-Control",
    "X-Download-Options",
    "X-Drupal-Cache",
    "X-Frame-Options",
    "X-Generator",
    "X-Pad",
    "X-Permitted-Cross-Domain-Policies",
    "X-Pingback",
    "X-Powered-By",
    "X-Request-ID",
    "X-Robots-Tag",
    "X-Runtime",
    "X-UA-Compatible",
    "X-Url",
    "X-XSS-Protection",
    "xkey",
];

/// Number of names.
const NAME_COUNT: usize = NAMES.len();

/// Each name in its usual case, and then in lower case, as HTTP/2 and many programs write it.
pub(crate) static OPENINGS: [Opening; NAME_COUNT * 2] = {
    let mut all = [Opening::EMPTY; NAME_COUNT * 2];
    let mut at = 0;
    while at < NAME_COUNT * 2 {
        all[at] = Opening::of(NAMES[at / 2], at % 2 == 1);
        at += 1;
    }
    all
};

/// Room for a value, which is copied whole, too.
pub(crate) const VALUE_BYTES: usize = 48;

/// A value.
pub(crate) struct KnownValue {
    /// The value, zeros.
    pub(crate) text: [u8; VALUE_BYTES],
    pub(crate) len: u8,
}

impl KnownValue {
    const EMPTY: KnownValue = KnownValue { text: [0; VALUE_BYTES], len: 0 };

    pub(crate) fn value(&self) -> &[u8] {
        &self.text[..usize::from(self.len)]
    }
}

/// [`VALUE_TEXTS`] in their fixed rooms.
pub(crate) static VALUES: [KnownValue; VALUE_TEXTS.len()] = {
    let mut all = [KnownValue::EMPTY; VALUE_TEXTS.len()];
    let mut place = 0;
    while place < VALUE_TEXTS.len() {
        let (text, mut at) = (VALUE_TEXTS[place], 0);
        while at < text.len() {
            all[place].text[at] = text[at];
            at += 1;
        }
        all[place].len = text.len() as u8;
        place += 1;
    }
    all
};

/// Values that are equal in many heads.
const VALUE_TEXTS: [&[u8]; 81] = [
    b"0",
    b"1",
    b"*",
    b"-1",
    b"DENY",
    b"SAMEORIGIN",
    b"nosniff",
    b"noopen",
    b"1; mode=block",
    b"bytes",
    b"br",
    b"gzip",
    b"zstd",
    b"deflate",
    b"identity",
    b"chunked",
    b"close",
    b"keep-alive",
    b"en",
    b"true",
    b"on",
    b"off",
    b"none",
    b"Accept",
    b"Accept-Encoding",
    b"Accept-Encoding, Origin",
    b"Accept-Encoding,User-Agent",
    b"Accept-Language",
    b"Origin",
    b"Origin, Accept-Encoding",
    b"Cookie",
    b"User-Agent",
    b"accept-encoding",
    b"cross-origin",
    b"same-origin",
    b"same-site",
    b"no-referrer",
    b"no-referrer-when-downgrade",
    b"origin-when-cross-origin",
    b"strict-origin-when-cross-origin",
    b"no-cache",
    b"no-store",
    b"private",
    b"public",
    b"immutable",
    b"must-revalidate",
    b"max-age=0",
    b"max-age=60",
    b"max-age=300",
    b"max-age=600",
    b"max-age=3600",
    b"max-age=86400",
    b"max-age=604800",
    b"max-age=2592000",
    b"max-age=31536000",
    b"max-age=31536000; includeSubDomains",
    b"max-age=31536000; includeSubDomains; preload",
    b"public, max-age=0",
    b"public, max-age=300",
    b"public, max-age=3600",
    b"public, max-age=86400",
    b"public, max-age=604800",
    b"public, max-age=2592000",
    b"public, max-age=31536000",
    b"public, max-age=31536000, immutable",
    b"public, max-age=0, must-revalidate",
    b"text/css",
    b"text/css; charset=utf-8",
    b"text/html",
    b"text/html; charset=UTF-8",
    b"text/html; charset=utf-8",
    b"text/javascript",
    b"text/plain",
    b"text/plain; charset=utf-8",
    b"application/javascript",
    b"application/json",
    b"application/json; charset=utf-8",
    b"font/woff2",
    b"image/jpeg",
    b"image/png",
    b"image/webp",
];

/// Buckets of a list whose texts have their lengths in this field.
macro_rules! buckets {
    ($list:ident, $len:ident) => {{
        let mut buckets = Buckets([0; Buckets::COUNT]);
        let mut place = 0;
        while place < $list.len() {
            buckets.file(place, &$list[place].text, $list[place].$len as usize);
            place += 1;
        }
        buckets
    }};
}

/// Start of the search for a text of a list: an index plus one in each bucket, or 0; a full bucket
/// overflows into the next. A search reads one bucket for most texts, where a walk through the list
/// would read all of it.
struct Buckets([u8; Buckets::COUNT]);

impl Buckets {
    const COUNT: usize = 512;

    const fn first(text: &[u8], len: usize) -> usize {
        if len == 0 {
            return 0;
        }
        let (first, middle, last) = (text[0] as usize, text[len / 2] as usize, text[len - 1] as usize);
        (len * 31 + first * 7 + middle * 13 + last * 3) % Buckets::COUNT
    }

    /// Adds the text in the first bytes of `room`. Of equal texts the first one is found.
    const fn file(&mut self, place: usize, room: &[u8], len: usize) {
        let mut at = Buckets::first(room, len);
        while self.0[at] != 0 {
            at = (at + 1) % Buckets::COUNT;
        }
        self.0[at] = place as u8 + 1;
    }

    fn find(&self, text: &[u8], is_at: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = Buckets::first(text, text.len());
        loop {
            let place = usize::from(self.0[at]).checked_sub(1)?;
            if is_at(place) {
                return Some(place);
            }
            at = (at + 1) % Buckets::COUNT;
        }
    }
}

static NAME_BUCKETS: Buckets = buckets!(OPENINGS, name_len);
static VALUE_BUCKETS: Buckets = buckets!(VALUES, len);

// An index and one more fit into a byte, and there is an empty bucket at which a search ends.
const _: () = assert!(NAME_COUNT * 2 < 255 && VALUE_TEXTS.len() < 255 && Buckets::COUNT > 255);

/// Index of a name that is written in exactly these bytes.
pub(crate) fn place_of_name(name: &[u8]) -> Option<usize> {
    NAME_BUCKETS.find(name, |place| OPENINGS[place].name() == name)
}

/// Index of a value.
pub(crate) fn place_of_value(value: &[u8]) -> Option<usize> {
    VALUE_BUCKETS.find(value, |place| VALUES[place].value() == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_value_has_one_place() {
        for (place, opening) in OPENINGS.iter().enumerate() {
            // A name that is usually in lower case has two entries, of which the first is found.
            assert_eq!(OPENINGS[place_of_name(opening.name()).unwrap()].name(), opening.name(), "{place}");
            assert_eq!(opening.text[opening.name().len()..][..2], *b": ");
        }
        for (place, known) in VALUES.iter().enumerate() {
            assert_eq!((known.value(), place_of_value(known.value())), (VALUE_TEXTS[place], Some(place)));
        }
        assert_eq!(place_of_name(b"content-type"), Some(place_of_name(b"Content-Type").unwrap() + 1));
        assert_eq!((place_of_name(b"content-Type"), place_of_value(b"text/HTML")), (None, None));
        assert_eq!((place_of_name(b""), place_of_value(b""), place_of_name(&[b'x'; 300])), (None, None, None));
    }

    #[test]
    fn the_vocabulary_never_changes() {
        let sum = |texts: &mut dyn Iterator<Item = &[u8]>| {
            texts.fold(0xcbf2_9ce4_8422_2325u64, |hash, text| {
                let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
                step(text.iter().fold(hash, step), &0)
            })
        };
        let names = sum(&mut NAMES.iter().map(|name| name.as_bytes()));
        let values = sum(&mut VALUE_TEXTS.iter().copied());
        // With other numbers, arenas and files of earlier builds are misread. See
        // `docs/internals/store.md`, "Stored heads".
        assert_eq!((names, values), (4_071_633_011_448_285_941, 2_079_645_553_351_555_979));
    }
}
