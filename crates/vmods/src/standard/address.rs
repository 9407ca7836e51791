//! std: addresses. `std.ip()` reads an address with an optional port. Names are looked up by the
//! system's resolver, which may take long: the task waits for it within the limits of `lookups.rs`,
//! and the event loop does not.

use crate::arguments::Arguments;
use crate::context::{Finish, VmodContext};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use surface::tag::Tag;
use tokio::task::spawn_blocking;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

type Address = (IpAddr, u16);

const DEFAULT_PORT: &str = "80";
const SERVICES_FILE: &str = "/etc/services";

/// `std.ip()`
pub(crate) fn ip(
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &Scratch,
) -> Result<Called, Failure> {
    let fallback = arguments.value(1);
    let text = arguments.text(0);
    let Ok(text) = std::str::from_utf8(scratch.get(text)) else { return settle(None, fallback).map(Called::Value) };
    let port = arguments.text(3);
    let default_port = if port.is_set() { std::str::from_utf8(scratch.get(port)).unwrap_or("") } else { DEFAULT_PORT };
    let Some((host, port)) = split(text, default_port) else { return settle(None, fallback).map(Called::Value) };
    let numeric = parse_host(host).zip(parse_port(port));
    if numeric.is_some() || !arguments.bool(2) || host.is_empty() || host.starts_with('/') {
        return settle(numeric, fallback).map(Called::Value);
    }
    let (host, port) = (host.to_owned(), port.to_owned());
    if !context.can_wait() {
        return settle(resolve(&host, &port), fallback).map(Called::Value);
    }
    if let Some(address) = parse_host(&host) {
        // Only the services file is read, which never takes long.
        context.wait(Box::pin(async move {
            let port = spawn_blocking(move || service_port(&port)).await.ok().flatten();
            let finish: Finish = Box::new(move |_, _| settle(port.map(|port| (address, port)), fallback));
            finish
        }));
        return Ok(Called::Wait);
    }
    let lookup = context.shared().lookups.run(move || resolve(&host, &port));
    context.wait(Box::pin(async move {
        let found = lookup.await;
        let finish: Finish = Box::new(move |context, _| {
            if let Err(refusal) = found {
                context.log(Tag::VCLError, format!("std.ip: {}", refusal.text()).as_bytes());
            }
            settle(found.ok().flatten(), fallback)
        });
        finish
    }));
    Ok(Called::Wait)
}

fn settle(found: Option<Address>, fallback: Value) -> Result<Value, Failure> {
    match found {
        Some(address) => Ok(Value::Ip(Some(address))),
        None if fallback != Value::Absent => Ok(fallback),
        None => Err(Failure("std.ip: conversion failed".to_owned())),
    }
}

/// Resolves a name to its first address, and a port by the services file. Blocking.
fn resolve(host: &str, port: &str) -> Option<Address> {
    let port = parse_port(port).or_else(|| service_port(port))?;
    if let Some(address) = parse_host(host) {
        return Some((address, port));
    }
    let address = (host, port).to_socket_addrs().ok()?.next()?;
    Some((address.ip(), address.port()))
}

/// The port of a service according to the services file, which is read each time.
#[must_use]
pub fn service_port(name: &str) -> Option<u16> {
    let services = std::fs::read_to_string(SERVICES_FILE).unwrap_or_default();
    let listed = services.lines().find_map(|line| {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let (first, port) = (words.next()?, words.next()?);
        let port = port.strip_suffix("/tcp")?.parse().ok()?;
        (first == name || words.any(|alias| alias == name)).then_some(port)
    });
    listed.or(match name {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    })
}

/// Splits `host`, `host:port`, `host port`, `[host]:port` and `[host] port`. An IPv6 address
/// without brackets has no port.
fn split<'a>(text: &'a str, default_port: &'a str) -> Option<(&'a str, &'a str)> {
    if let Some(inner) = text.strip_prefix('[') {
        let (host, rest) = inner.split_once(']')?;
        return match rest.as_bytes() {
            [] => Some((host, default_port)),
            [b':' | b' ', ..] => Some((host, rest[1..].trim_start_matches(' '))),
            _ => None,
        };
    }
    if let Some((host, rest)) = text.split_once(' ') {
        let rest = rest.trim_start_matches(' ');
        return Some((host, if rest.is_empty() { default_port } else { rest }));
    }
    match (text.find(':'), text.rfind(':')) {
        (Some(first), Some(last)) if first == last => Some((&text[..first], &text[first + 1..])),
        _ => Some((text, default_port)),
    }
}

/// A port in digits, modulo 65536; no digits mean 0.
fn parse_port(text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(0);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok().map(|port| port as u16))?
}

/// A numeric address: IPv6 (a zone is dropped, an IPv4-mapped one becomes IPv4), or IPv4 in one to
/// four parts, each decimal, octal or hexadecimal.
fn parse_host(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address: Ipv6Addr = text.split('%').next()?.parse().ok()?;
        return Some(address.to_canonical());
    }
    let parts: Vec<&str> = text.split('.').collect();
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 {
        return None;
    }
    let mut value: u32 = 0;
    for (place, part) in leading.iter().enumerate() {
        value |= u32::from(u8::try_from(parse_part(part)?).ok()?) << (24 - 8 * place);
    }
    let last = parse_part(last)?;
    let room_bits = 32 - 8 * leading.len() as u32;
    if u64::from(last) >= 1 << room_bits {
        return None;
    }
    Some(IpAddr::V4(Ipv4Addr::from(value | last)))
}

fn parse_part(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (lower.as_str(), 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Option<String> {
        let (host, port) = split(text, DEFAULT_PORT)?;
        let (address, port) = parse_host(host).zip(parse_port(port))?;
        Some(format!("{address} {port}"))
    }

    #[test]
    fn addresses_and_ports_are_read_as_varnish_reads_them() {
        for (text, expected) in [
            ("1.2.3.4", "1.2.3.4 80"),
            ("1.2.3.4:8080", "1.2.3.4 8080"),
            ("1.2.3.4 8080", "1.2.3.4 8080"),
            ("1.2.3.4  80", "1.2.3.4 80"),
            ("1.2.3.4 ", "1.2.3.4 80"),
            ("1.2.3.4:", "1.2.3.4 0"),
            ("1.2.3.4:99999", "1.2.3.4 34463"),
            ("[1.2.3.4]:81", "1.2.3.4 81"),
            ("[::1]:99", "::1 99"),
            ("[::1] 80", "::1 80"),
            ("::1", "::1 80"),
            ("::1 81", "::1 81"),
            ("fe80::1%eth0", "fe80::1 80"),
            ("::ffff:1.2.3.4", "1.2.3.4 80"),
            ("1.2.3", "1.2.0.3 80"),
            ("1", "0.0.0.1 80"),
            ("0x7f000001", "127.0.0.1 80"),
            ("01.2.3.4", "1.2.3.4 80"),
        ] {
            assert_eq!(numeric(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "x",
            "localhost",
            "1.2.3.4:http",
            " 1.2.3.4",
            "1.2.3.4 :80",
            "1.2.3.4:-1",
            "[::1",
            "[::1]x80",
            "1.2.3.4:80:90",
            "256.1.1.1",
            "1.2.3.4.5",
            "1.2.3.",
            "0x100000000",
            "+1.2.3.4",
        ] {
            assert_eq!(numeric(text), None, "{text}");
        }
    }
}
