//! The process that listens on a port, for a message.
//!
//! Source: proc(5), `/proc/net/tcp` and `/proc/PID/fd`. Only root sees the sockets of other users'
//! processes.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Number of processes that are looked at.
const PROCESSES_MAX: usize = 20_000;
/// `TCP_LISTEN`, as the tables show it.
const LISTENING: &str = "0A";
/// State of an unconnected UDP socket.
const UNCONNECTED: &str = "07";

/// Name and number of the process whose socket occupies an address; `None` if it cannot be
/// determined.
pub fn of(address: SocketAddr) -> Option<String> {
    let tables = [("tcp", LISTENING), ("tcp6", LISTENING), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)];
    let inodes: Vec<String> = tables
        .into_iter()
        .filter_map(|(table, state)| Some((fs::read_to_string(format!("/proc/net/{table}")).ok()?, state)))
        .flat_map(|(text, state)| inodes(&text, state, address))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = numbers.take(PROCESSES_MAX).filter(|number| has_socket(*number, &links)).min()?;
    let name = fs::read_to_string(format!("/proc/{found}/comm")).unwrap_or_default();
    Some(format!("{}, process {found}", name.trim_end()))
}

fn has_socket(process: u32, links: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets.any(|target| links.iter().any(|link| target.as_os_str() == link.as_str()))
}

/// The inodes of sockets in a table that occupy the address.
fn inodes(table: &str, state: &str, address: SocketAddr) -> Vec<String> {
    let rows = table.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let clash = |row: &Vec<&str>| {
        let local = row.get(1).and_then(|text| local_address(text));
        row.get(3) == Some(&state) && local.is_some_and(|local| clashes(local, address))
    };
    rows.filter(clash).filter_map(|row| Some((*row.get(9)?).to_owned())).collect()
}

/// True if both addresses cannot be bound at a time.
fn clashes(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (is_any || one.ip().to_canonical() == other.ip().to_canonical())
}

/// Parses `0100007F:1F90`: words of 32 bits in the byte order of the machine, and the port.
fn local_address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Vec<[u8; 4]> = host
        .as_bytes()
        .chunks(8)
        .map(|word| Some(u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?.to_ne_bytes()))
        .collect::<Option<_>>()?;
    let ip: IpAddr = match words[..] {
        [word] => Ipv4Addr::from(word).into(),
        [..] if words.len() == 4 => Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn process_that_occupies_an_address_is_named() {
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        let expected = Some(format!("{}, process {}", name.trim_end(), std::process::id()));
        for host in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert_eq!(of(SocketAddr::from(([127, 0, 0, 1], port))), expected, "{host}");
            assert_eq!(of(SocketAddr::from(([0, 0, 0, 0], port))), expected, "{host}");
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(of(socket.local_addr().unwrap()), expected);
    }

    #[test]
    fn malformed_table_names_nothing() {
        let address = "127.0.0.1:80".parse().unwrap();
        for row in
            ["", "0: x 00000000:0000 0A", "0: 0100007F:0050", "0: 0100007:0050 0:0 0A 0 0 0 0 0 7", "0: :0050 0:0 0A"]
        {
            assert_eq!(inodes(&format!("head\n{row}\n"), LISTENING, address), Vec::<String>::new(), "{row}");
        }
        #[cfg(target_endian = "little")]
        assert_eq!(inodes("head\n0: 0100007F:0050 0:0 0A 0 0 0 0 0 7\n", LISTENING, address), ["7"]);
    }
}
