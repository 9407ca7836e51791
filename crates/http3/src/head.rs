//! Heads of requests and responses, and trailers, to and from blocks of fields.
//!
//! [`request`] checks the rules that cannot be expressed in the types of the `http` crate: each
//! pseudo header occurs once, before all others, and is one of a request, and a request of http or
//! https names a host. Semantic checks follow elsewhere. Source: RFC 9114 §4.2, §4.3.

use crate::code::Code;
use crate::qpack::{self, Encoder};
use field_coding::list::{is_name, is_value};
use field_coding::{FIELD_EXTRA_BYTES, FieldList, Undecodable};
use http::header::{COOKIE, HOST};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

/// Fault of a block that is not a valid head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadFault {
    /// The connection must end.
    Broken(Code),
    /// The request is malformed: its stream ends with H3_MESSAGE_ERROR.
    Malformed,
    /// The fields are larger than the limit.
    TooLong,
}

/// The pseudo headers of a request.
#[derive(Default)]
struct Pseudo {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: Option<PathAndQuery>,
}

/// Sums the decoded fields, and stops at the limits.
struct Fields<T> {
    taken: T,
    left_bytes: usize,
    left_fields: usize,
    fault: Option<HeadFault>,
}

impl<T: Default> Fields<T> {
    fn new(bytes_max: usize, fields_max: usize) -> Fields<T> {
        Fields { taken: T::default(), left_bytes: bytes_max, left_fields: fields_max, fault: None }
    }

    /// Counts a field and passes it to `take`, which returns `None` if it is invalid. Returns true
    /// to continue.
    fn see(&mut self, name: &[u8], value: &[u8], take: impl FnOnce(&mut T) -> Option<()>) -> bool {
        let bytes = name.len() + value.len() + FIELD_EXTRA_BYTES;
        // A cookie may be split into several fields, which count as one. Source: RFC 9114 §4.2.1.
        let fields = usize::from(name != COOKIE.as_str().as_bytes() && name.first() != Some(&b':'));
        let left = (self.left_bytes.checked_sub(bytes), self.left_fields.checked_sub(fields));
        self.fault = match left {
            (Some(left_bytes), Some(left_fields)) => {
                (self.left_bytes, self.left_fields) = (left_bytes, left_fields);
                take(&mut self.taken).is_none().then_some(HeadFault::Malformed)
            }
            _ => Some(HeadFault::TooLong),
        };
        self.fault.is_none()
    }

    fn finish(self, decoded: Result<bool, Undecodable>) -> Result<T, HeadFault> {
        match (decoded, self.fault) {
            (Err(Undecodable), _) => Err(HeadFault::Broken(Code::DecompressionFailed)),
            (Ok(_), Some(fault)) => Err(fault),
            (Ok(_), None) => Ok(self.taken),
        }
    }
}

/// The head of a request. The size of its fields, as RFC 9114 §4.2.2 counts it, and their number,
/// besides pseudo headers and cookies, are limited.
///
/// # Errors
/// See [`HeadFault`].
pub fn request(block: &[u8], bytes_max: usize, fields_max: usize) -> Result<Parts, HeadFault> {
    let mut fields = Fields::<HeaderMap>::new(bytes_max, fields_max);
    let mut pseudo = Pseudo::default();
    let mut is_after = false;
    let decoded = qpack::decode(block, |name, value| {
        fields.see(name, value, |headers| {
            if name.first() == Some(&b':') {
                return if is_after { None } else { pseudo.take(name, value) };
            }
            is_after = true;
            append(headers, name, value)
        })
    });
    let headers = fields.finish(decoded)?;
    let has_host = pseudo.authority.is_some() || headers.get(HOST).is_some_and(|host| !host.is_empty());
    let wants_host = pseudo.scheme.as_ref().is_some_and(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    if wants_host && !has_host {
        return Err(HeadFault::Malformed);
    }
    let (method, uri) = pseudo.target().ok_or(HeadFault::Malformed)?;
    let mut parts = Request::new(()).into_parts().0;
    (parts.method, parts.uri, parts.headers, parts.version) = (method, uri, headers, Version::HTTP_3);
    Ok(parts)
}

/// Trailers, with the limits of a head.
///
/// # Errors
/// See [`HeadFault`].
pub fn trailers(block: &[u8], bytes_max: usize, fields_max: usize) -> Result<FieldList, HeadFault> {
    let mut fields = Fields::<FieldList>::new(bytes_max, fields_max);
    let decoded = qpack::decode(block, |name, value| {
        fields.see(name, value, |list| (is_name(name) && is_value(value)).then(|| list.push(name, value)))
    });
    fields.finish(decoded)
}

/// Names are lower-case tokens, so none begins with a colon; values have no control characters.
fn append(headers: &mut HeaderMap, name: &[u8], value: &[u8]) -> Option<()> {
    let name = HeaderName::from_lowercase(name).ok()?;
    headers.try_append(name, HeaderValue::from_bytes(value).ok()?).ok().map(drop)
}

impl Pseudo {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        fn once<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
            if place.is_some() {
                return None;
            }
            *place = Some(value?);
            Some(())
        }
        match name {
            b":method" => once(&mut self.method, Method::from_bytes(value).ok()),
            b":scheme" => once(&mut self.scheme, Scheme::try_from(value).ok().filter(|_| !value.is_empty())),
            b":authority" => once(&mut self.authority, Authority::try_from(value).ok()),
            // A fragment would silently be cut off.
            b":path" if value.contains(&b'#') => None,
            b":path" => once(&mut self.path, PathAndQuery::try_from(value).ok().filter(|_| !value.is_empty())),
            _ => None,
        }
    }

    /// Checks that the pseudo headers are those that the method needs.
    fn target(self) -> Option<(Method, Uri)> {
        let method = self.method?;
        if method == Method::CONNECT {
            let is_plain = self.scheme.is_none() && self.path.is_none();
            return Some((method, Uri::from(self.authority.filter(|_| is_plain)?)));
        }
        let (scheme, path) = (self.scheme?, self.path?);
        let Some(authority) = self.authority else { return Some((method, Uri::from(path))) };
        let mut parts = http::uri::Parts::default();
        (parts.scheme, parts.authority, parts.path_and_query) = (Some(scheme), Some(authority), Some(path));
        Some((method, Uri::from_parts(parts).ok()?))
    }
}

/// Appends the block of a response's head. The status has three digits, names are in lower case.
pub fn write_response(status: u16, fields: &FieldList, into: &mut Vec<u8>) {
    let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
    let mut encoder = Encoder::begin(into);
    encoder.field(b":status", &digits);
    fields.iter().for_each(|(name, value)| encoder.field(name, value));
}

/// Appends the block of trailers.
pub fn write_trailers(trailers: &FieldList, into: &mut Vec<u8>) {
    let mut encoder = Encoder::begin(into);
    trailers.iter().for_each(|(name, value)| encoder.field(name, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/b?c")];

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        let mut encoder = Encoder::begin(&mut block);
        fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes()));
        block
    }

    fn read(fields: &[(&str, &str)]) -> Result<Parts, HeadFault> {
        request(&block(fields), 10_000, 10)
    }

    #[test]
    fn request_has_its_parts() {
        let parts = read(&[&GET[..], &[("cookie", "a=1"), ("cookie", "b=2"), ("x-a", " b ")]].concat()).unwrap();
        assert_eq!((parts.method, parts.version), (Method::GET, Version::HTTP_3));
        assert_eq!(parts.uri, "https://a.example/b?c");
        assert_eq!(parts.headers.get_all("cookie").iter().count(), 2);
    }

    #[test]
    fn request_with_a_host_only_has_no_authority() {
        let parts = read(&[GET[0], GET[1], GET[3], ("host", "b.example")]).unwrap();
        assert_eq!((parts.uri.authority(), parts.uri.path()), (None, "/b"));
    }

    #[test]
    fn malformed_heads_are_refused() {
        let and = |more: &[(&'static str, &'static str)]| [&GET[..], more].concat();
        for fields in [
            and(&[(":path", "/c")]),
            and(&[(":method", "GET")]),
            and(&[(":status", "200")]),
            and(&[(":protocol", "websocket")]),
            and(&[(":other", "1")]),
            and(&[("X-Upper", "1")]),
            and(&[("", "1")]),
            and(&[("a b", "1")]),
            and(&[("a", "1\r\nb: 2")]),
            and(&[("a", "1\0")]),
            vec![("a", "1"), GET[0], GET[1], GET[2], GET[3]],
            vec![GET[0], GET[1], GET[2]],
            vec![GET[0], GET[2], GET[3]],
            vec![GET[1], GET[2], GET[3]],
            vec![GET[0], GET[1], GET[3]],
            vec![GET[0], GET[1], GET[3], ("host", "")],
            vec![GET[0], (":scheme", ""), GET[2], GET[3]],
            vec![GET[0], GET[1], GET[2], (":path", "")],
            vec![GET[0], GET[1], GET[2], (":path", "/a#b")],
            vec![GET[0], GET[1], (":authority", ""), GET[3]],
            vec![GET[0], GET[1], (":authority", "a b"), GET[3]],
            vec![(":method", "G T"), GET[1], GET[2], GET[3]],
            vec![(":method", "CONNECT"), GET[1], GET[2], GET[3]],
            vec![],
        ] {
            assert_eq!(read(&fields).map(drop), Err(HeadFault::Malformed), "{fields:?}");
        }
    }

    #[test]
    fn trailers_have_no_pseudo_headers() {
        assert_eq!(trailers(&block(&[("x-sum", "1")]), 100, 10).unwrap().len(), 1);
        assert_eq!(trailers(&block(&[(":status", "200")]), 100, 10), Err(HeadFault::Malformed));
    }

    #[test]
    fn decoded_size_counts_against_the_limit() {
        // The longest of the static table, one byte each.
        let mut bomb = block(&GET);
        bomb.extend(std::iter::repeat_n([0xff, 0x16], 200).flatten());
        assert!(bomb.len() < 500);
        assert_eq!(request(&bomb, 10_000, 1000).map(drop), Err(HeadFault::TooLong));
        assert_eq!(request(&[0, 0, 0x80], 100, 10).map(drop), Err(HeadFault::Broken(Code::DecompressionFailed)));
    }

    #[test]
    fn fields_are_decoded_up_to_their_number_and_crumbs_of_a_cookie_are_one() {
        let with = |name, count| read(&[&GET[..], &vec![(name, "1"); count]].concat()).map(drop);
        assert_eq!((with("age", 10), with("age", 11)), (Ok(()), Err(HeadFault::TooLong)));
        assert_eq!(with("cookie", 100), Ok(()));
        assert_eq!(trailers(&block(&[("a", "1"); 11]), 10_000, 10), Err(HeadFault::TooLong));
    }

    #[test]
    fn response_is_written_as_it_is() {
        let mut list = FieldList::new();
        list.push(b"set-cookie", b"a=1");
        list.push(b"set-cookie", b"b=2");
        let mut block = Vec::new();
        write_response(200, &list, &mut block);
        let mut fields = Vec::new();
        qpack::decode(&block, |name, value| {
            fields.push([name, b"=", value].concat());
            true
        })
        .unwrap();
        assert_eq!(fields, [&b":status=200"[..], b"set-cookie=a=1", b"set-cookie=b=2"]);
    }
}
