//! The start line of a request or response.

use super::error::HeadError;
use crate::target::{MalformedTarget, split_absolute_form};
use crate::token::{is_control, is_token};
use memchr::memchr;
use message::Message;

/// Cuts off and returns the next word, up to a space. The spaces after it are dropped.
fn word<'a>(line: &mut &'a [u8]) -> Result<&'a [u8], HeadError> {
    let end = memchr(b' ', line).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    if word.is_empty() || word.iter().fold(false, |found, &byte| found | is_control(byte) | (byte == b'\t')) {
        return Err(HeadError::StartLine);
    }
    *line = &rest[rest.iter().take_while(|&&byte| byte == b' ').count()..];
    Ok(word)
}

/// `method target protocol`, separated by one or more spaces. Source: RFC 9112 §3, RFC 9110 §9.1;
/// Compat: several spaces are accepted, a space after the protocol is not.
pub(super) fn request_line(line: &[u8], message: &mut Message) -> Result<(), HeadError> {
    let mut rest = line;
    let method = word(&mut rest)?;
    if !is_method(method) {
        return Err(HeadError::StartLine);
    }
    let target_at = line.len() - rest.len();
    let target = word(&mut rest)?;
    split_absolute_form(method, target).map_err(|MalformedTarget| HeadError::StartLine)?;
    let has_version = rest.len() == 8 && rest[..7].eq_ignore_ascii_case(b"HTTP/1.") && matches!(rest[7], b'0' | b'1');
    if !has_version {
        return Err(HeadError::Version);
    }
    // The line begins the head.
    message.set_request_line(0..method.len(), target_at..target_at + target.len(), line.len() - 8..line.len());
    Ok(())
}

/// True if this is a token. Compat: a leading colon is accepted (r03830); it cannot be mistaken for
/// a header line, since the name would be missing.
fn is_method(method: &[u8]) -> bool {
    let token = method.strip_prefix(b":").unwrap_or(method);
    !token.is_empty() && token.iter().all(|&byte| is_token(byte))
}

/// `protocol status reason`. Source: RFC 9112 §4.
pub(super) fn status_line(mut line: &[u8], message: &mut Message) -> Result<(), HeadError> {
    let protocol = word(&mut line)?;
    match protocol {
        [name @ .., major, b'.', minor]
            if name.eq_ignore_ascii_case(b"HTTP/") && major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            let is_known = *major == b'1' && *minor <= b'1';
            message.set_protocol(if is_known { protocol } else { b"HTTP/1.1" });
        }
        _ => return Err(HeadError::Version),
    }
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = *word(&mut line)? else {
        return Err(HeadError::Status);
    };
    let status = u16::from(hundreds - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
    if line.iter().any(|&byte| is_control(byte)) {
        return Err(HeadError::StartLine);
    }
    message.set_status(status);
    message.set_reason(if line.is_empty() { surface::status::phrase(status).as_bytes() } else { line });
    Ok(())
}
