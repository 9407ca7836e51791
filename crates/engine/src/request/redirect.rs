//! `-a …,redirect=https`: a request in clear is redirected to https, before VCL runs.
//!
//! Comes from: Accept, after the challenges of certificate authorities. Continues with: Transmit;
//! Finish after a bare 400; Receive if the request arrived over TLS at a trusted front. The target
//! is the client's own host, and only a plain name or address: a value that a browser could read as
//! another host gets 400. Source: RFC 9110 §15.4.

use super::{Run, Step};
use crate::forwarded::Scheme;
use crate::logged::{self, REQ, RESP};
use message::Message;
use std::net::Ipv6Addr;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

/// The port that a https URI need not name.
const DEFAULT_PORT: u16 = 443;

impl Run<'_> {
    /// Prepares the redirect; `None` if the request is to be served.
    #[cold]
    pub(super) async fn redirect(&mut self, port: u16) -> Option<Step> {
        let request = &mut *self.request;
        let is_served = self.session.forwarding.scheme_of(&request.task.request) == Scheme::Https;
        if is_served || request.task.life.inclusion.is_some() {
            return None;
        }
        request.log.record(Tag::ReqStart, self.session.start_record());
        logged::log_request(&mut request.log, REQ, &request.task.request);
        let Some(location) = location(&request.task.request, port) else {
            request.log.record(Tag::BogoHeader, b"No host to redirect to");
            self.why(Reason::BadRequest, b"");
            self.context.count(Main::ClientReq400);
            self.close(CloseReason::RxBad);
            self.send_bare(400).await;
            return Some(Step::Finish);
        };
        self.context.count(Main::SSynth);
        self.why(Reason::RedirectedToHttps, b"");
        self.answer_with(&location);
        self.drain_body().await;
        self.timestamp("Process");
        Some(Step::Transmit)
    }

    /// 301 for methods that a client repeats as they are; 308 keeps every other one, with its body.
    fn answer_with(&mut self, location: &[u8]) {
        let now = self.context.clock.now();
        let request = &mut *self.request;
        let (task, log) = (&mut request.task, &mut request.log);
        task.forget_lookup();
        task.forget_response();
        task.answer.is_synthetic = true;
        task.life.responded_at = now;
        let status = if matches!(task.request.method(), b"GET" | b"HEAD") { 301 } else { 308 };
        let phrase = semantics::reason::phrase(status).as_bytes();
        logged::set_status_line(log, RESP, &mut task.response, b"HTTP/1.1", status, phrase);
        let mut date = [0; 29];
        semantics::date::format(now, &mut date);
        logged::append(log, RESP, &mut task.response, "Date", &[&date]);
        logged::append(log, RESP, &mut task.response, "Location", &[location]);
        logged::append(log, RESP, &mut task.response, "Content-Length", &[b"0"]);
        task.synthetic.clear();
    }
}

/// The same URI with the scheme https; `None` if the request does not name one.
fn location(request: &Message, port: u16) -> Option<Vec<u8>> {
    let mut hosts = request.get_all("Host");
    let host = host_of(hosts.next()?)?;
    if hosts.next().is_some() {
        return None;
    }
    let target = match request.target() {
        b"*" => b"/",
        target => target.split(|&byte| byte == b'#').next().filter(|target| target.first() == Some(&b'/'))?,
    };
    let port = if port == DEFAULT_PORT { String::new() } else { format!(":{port}") };
    Some([b"https://", host, port.as_bytes(), target].concat())
}

/// The host without its port, if it is a plain name, an IPv4 address, or an IPv6 address in
/// brackets.
fn host_of(value: &[u8]) -> Option<&[u8]> {
    let end = match value {
        [b'[', ..] => value.iter().position(|&byte| byte == b']')? + 1,
        _ => value.iter().position(|&byte| byte == b':').unwrap_or(value.len()),
    };
    let (host, port) = value.split_at(end);
    let is_host = match host {
        [b'[', address @ .., b']'] => std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
        name => name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte)),
    };
    let is_port = port.is_empty() || port[0] == b':' && port[1..].iter().all(u8::is_ascii_digit);
    (is_host && is_port && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(host: &str, target: &str, port: u16) -> Option<String> {
        let mut request = Message::new();
        request.set_target(target.as_bytes());
        request.append(b"Host", host.as_bytes());
        location(&request, port).map(|location| String::from_utf8(location).unwrap())
    }

    #[test]
    fn the_location_is_the_same_uri_by_https() {
        for (host, target, port, expected) in [
            ("example.com", "/a?b=c", 443, "https://example.com/a?b=c"),
            ("Example.com:80", "/", 443, "https://Example.com/"),
            ("example.com:8080", "/", 8443, "https://example.com:8443/"),
            ("[::1]:80", "/x", 443, "https://[::1]/x"),
            ("192.0.2.1", "//evil.example/x", 443, "https://192.0.2.1//evil.example/x"),
            ("example.com", "*", 443, "https://example.com/"),
            ("example.com", "/x#y", 443, "https://example.com/x"),
        ] {
            assert_eq!(located(host, target, port).as_deref(), Some(expected));
        }
    }

    #[test]
    fn whatever_could_be_read_as_another_host_is_not_redirected_to() {
        for host in [
            "",
            ":80",
            "evil.example/",
            "user@evil.example",
            "a\\evil.example",
            "a%2eexample",
            "a?b",
            "a#b",
            "a b",
            "a:80:80",
            "[::1",
            "[::1]x",
            "[evil]",
            "[]",
            "a:x",
            "\u{e9}.example",
            "a,b",
        ] {
            assert!(located(host, "/", 443).is_none(), "{host}");
        }
        for target in ["", "evil.example", "@evil.example", ".evil.example/", "ftp://evil.example/"] {
            assert_eq!(located("example.com", target, 443), None, "{target}");
        }
        assert_eq!(location(&Message::new(), 443), None);
    }
}
