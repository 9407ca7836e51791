//! Resolution of names to addresses, for backends that are resolved while they are in use.
//!
//! The system resolver is called on a thread of its own (hosts file, nsswitch, search domains, as
//! operators expect); it gives no times to live. DNS is queried through hickory-resolver, with the
//! servers of resolv.conf and the hosts file; both are read again for every lookup so that changes
//! take effect. *Limit:* [`DYNAMIC_LOOKUPS_MAX`] lookups at once, including threads still blocked
//! in abandoned lookups.

use backend::dns_names::resolve::{Answer, Missing, Resolve, ResolveError, Resolving, Source, Target};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;
use surface::limits::DYNAMIC_LOOKUPS_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Time limit for the answer of one server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of attempts per server.
const SERVER_ATTEMPTS: usize = 2;
/// Time limit of a lookup with all servers together.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Error numbers of getaddrinfo by their texts: the standard library only gives the text.
const SYSTEM_ERRORS: [(&str, i32); 5] = [
    ("Name or service not known", libc::EAI_NONAME),
    ("Temporary failure in name resolution", libc::EAI_AGAIN),
    ("Non-recoverable failure in name resolution", libc::EAI_FAIL),
    ("No address associated with hostname", libc::EAI_NODATA),
    ("Servname not supported for ai_socktype", libc::EAI_SERVICE),
];

/// Looks up names for the event loop that created it.
pub struct Resolver {
    turns: Arc<Semaphore>,
    /// Servers to query; `None` = those of resolv.conf.
    servers: Option<ResolverConfig>,
}

impl Default for Resolver {
    fn default() -> Self {
        Resolver { turns: Arc::new(Semaphore::new(DYNAMIC_LOOKUPS_MAX)), servers: None }
    }
}

/// One of our own errors, with an error number of getaddrinfo.
fn failure(code: i32, text: &str) -> ResolveError {
    ResolveError { code, text: text.to_owned() }
}

fn system_failure(error: &io::Error) -> ResolveError {
    let text = error.to_string();
    let known = SYSTEM_ERRORS.iter().find(|(known, _)| text.contains(known));
    match known {
        Some((text, code)) => failure(*code, text),
        None => failure(libc::EAI_SYSTEM, &text),
    }
}

fn dns_failure(error: &NetError) -> ResolveError {
    let code = match error {
        error if error.is_nx_domain() => libc::EAI_NONAME,
        error if error.is_no_records_found() => libc::EAI_NODATA,
        NetError::Timeout => libc::EAI_AGAIN,
        _ => libc::EAI_FAIL,
    };
    failure(code, &error.to_string())
}

/// A port given as digits or as the name of a service. Reads the services file.
fn port_number(port: &str) -> Result<u16, ResolveError> {
    let number = port.parse().ok().or_else(|| vmods::service_port(port));
    number.ok_or_else(|| failure(libc::EAI_SERVICE, "Servname not supported for ai_socktype"))
}

/// Queries the system. Blocks.
fn ask_system(host: &str, port: &str) -> Result<Answer<SocketAddr>, ResolveError> {
    let port = port_number(port)?;
    let found = (host, port).to_socket_addrs().map_err(|error| system_failure(&error))?;
    Ok(Answer { list: found.collect(), ttl: None, missing: None })
}

/// The shortest time to live of an answer, in seconds.
fn ttl_of(lookup: &Lookup) -> Option<f64> {
    lookup.answers().iter().map(|record| record.ttl).min().map(f64::from)
}

impl Resolver {
    async fn turn(&self) -> Result<OwnedSemaphorePermit, ResolveError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        turn.map_err(|_| failure(libc::EAI_AGAIN, "No more lookups"))
    }

    fn dns(&self) -> Result<TokioResolver, ResolveError> {
        let unusable = |error: &NetError| failure(libc::EAI_SYSTEM, &error.to_string());
        let mut builder = match &self.servers {
            Some(servers) => TokioResolver::builder_with_config(servers.clone(), TokioRuntimeProvider::default()),
            None => TokioResolver::builder_tokio().map_err(|error| unusable(&error))?,
        };
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Always;
        options.timeout = options.timeout.min(SERVER_TIMEOUT);
        options.attempts = options.attempts.min(SERVER_ATTEMPTS);
        // A repeated query is meant to detect changes.
        options.cache_size = 0;
        builder.build().map_err(|error| unusable(&error))
    }

    async fn ask_dns(&self, host: &str, port: &str) -> Result<Answer<SocketAddr>, ResolveError> {
        let port = port_number(port)?;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Answer { list: vec![SocketAddr::new(address, port)], ttl: None, missing: None });
        }
        let resolver = self.dns()?;
        let found = resolver.lookup_ip(host).await.map_err(|error| dns_failure(&error))?;
        let list: Vec<_> = found.iter().map(|address| SocketAddr::new(address, port)).collect();
        let mut answer = Answer { list, ttl: ttl_of(found.as_lookup()), missing: None };
        for is_v6 in [false, true] {
            if !answer.list.iter().any(|address| address.is_ipv6() == is_v6) {
                ask_for_half(&resolver, found.query().name(), is_v6, port, &mut answer).await;
            }
        }
        Ok(answer)
    }

    async fn ask_services(&self, service: &str) -> Result<Answer<Target>, ResolveError> {
        let found = self.dns()?.srv_lookup(service).await.map_err(|error| dns_failure(&error))?;
        let targets = found.answers().iter().filter_map(|record| match &record.data {
            RData::SRV(target) => Some(Target {
                priority: target.priority,
                weight: target.weight,
                port: target.port,
                host: target.target.to_ascii().trim_end_matches('.').to_owned(),
            }),
            _ => None,
        });
        // A target that is only the root means that the service does not exist (RFC 2782).
        let list = targets.filter(|target| !target.host.is_empty()).collect();
        Ok(Answer { list, ttl: ttl_of(&found), missing: None })
    }
}

/// Queries once more for the family that an answer lacks: the library reports a half that failed as
/// empty. The query uses the name that was found, so that names of search domains do not mix.
async fn ask_for_half(resolver: &TokioResolver, name: &Name, is_v6: bool, port: u16, answer: &mut Answer<SocketAddr>) {
    let family = if is_v6 { RecordType::AAAA } else { RecordType::A };
    let asked = tokio::time::timeout(SERVER_TIMEOUT, resolver.lookup(name.clone(), family));
    match asked.await.unwrap_or(Err(NetError::Timeout)) {
        Ok(found) => {
            let address = |data: &RData| data.ip_addr().map(|address| SocketAddr::new(address, port));
            answer.list.extend(found.answers().iter().filter_map(|record| address(&record.data)));
        }
        Err(error) if error.is_nx_domain() || error.is_no_records_found() => {}
        Err(error) => answer.missing = Some(Missing { is_v6, error: dns_failure(&error) }),
    }
}

/// Runs the work in a thread of its own. Not in one of tokio's, which panics if the system refuses
/// threads: the task that follows a name would end, and its backend would never get an address
/// again.
async fn in_a_thread<T: Send + 'static>(thread: Builder, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    thread.spawn(move || _ = tell.send(work()))?;
    told.await.map_err(io::Error::other)
}

fn no_thread(error: &io::Error) -> ResolveError {
    failure(libc::EAI_SYSTEM, &format!("No thread for a lookup: {error}"))
}

/// Limits the time of a lookup.
async fn within<T>(lookup: impl Future<Output = Result<Answer<T>, ResolveError>>) -> Result<Answer<T>, ResolveError> {
    match tokio::time::timeout(LOOKUP_TIMEOUT, lookup).await {
        Ok(answer) => answer,
        Err(_) => Err(failure(libc::EAI_AGAIN, "Timeout")),
    }
}

impl Resolve for Resolver {
    fn addresses<'a>(&'a self, source: Source, host: &'a str, port: &'a str) -> Resolving<'a, SocketAddr> {
        Box::pin(async move {
            let turn = self.turn().await?;
            match source {
                Source::Dns => within(self.ask_dns(host, port)).await,
                Source::System => {
                    let (host, port) = (host.to_owned(), port.to_owned());
                    let asked = in_a_thread(Builder::new().name("lookup".to_owned()), move || {
                        // The thread stays busy until the system answers, even if the lookup was
                        // abandoned.
                        let _turn = turn;
                        ask_system(&host, &port)
                    });
                    within(async { asked.await.unwrap_or_else(|error| Err(no_thread(&error))) }).await
                }
            }
        })
    }

    fn targets<'a>(&'a self, service: &'a str) -> Resolving<'a, Target> {
        Box::pin(async move {
            let _turn = self.turn().await?;
            within(self.ask_services(service)).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
    use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
    use hickory_resolver::proto::rr::rdata::{A, SRV};
    use hickory_resolver::proto::rr::{Name, Record, RecordType};
    use tokio::net::UdpSocket;

    #[tokio::test]
    async fn a_thread_that_cannot_be_made_is_a_failure_and_no_panic() {
        assert_eq!(in_a_thread(Builder::new(), || 7).await.unwrap(), 7);
        // More than there are addresses for.
        let error = in_a_thread(Builder::new().stack_size(1 << 60), || 7).await.unwrap_err();
        assert!(no_thread(&error).text.starts_with("No thread for a lookup: "), "{error}");
        let panicked = in_a_thread(Builder::new(), || -> u8 { panic!("meant to") }).await;
        assert!(panicked.is_err());
    }

    /// A DNS server with `www.test.`, whose address changes with every query, and one service.
    async fn serve(socket: UdpSocket) {
        let mut bytes = [0; 1500];
        let mut questions = 0;
        while let Ok((len, from)) = socket.recv_from(&mut bytes).await {
            let question = Message::from_vec(&bytes[..len]).unwrap();
            let query = question.queries[0].clone();
            let mut answer = Message::new(question.metadata.id, MessageType::Response, question.metadata.op_code);
            answer.add_query(query.clone());
            let name = query.name().to_ascii();
            match (name.as_str(), query.query_type()) {
                ("www.test.", RecordType::A) => {
                    questions += 1;
                    let address = RData::A(A::new(192, 0, 2, questions));
                    answer.add_answer(Record::from_rdata(query.name().clone(), 7, address));
                }
                ("_web._tcp.test.", RecordType::SRV) => {
                    for (priority, host) in [(20, "b.test."), (10, "a.test.")] {
                        let target = SRV::new(priority, 5, 8080, Name::from_ascii(host).unwrap());
                        answer.add_answer(Record::from_rdata(query.name().clone(), 9, RData::SRV(target)));
                    }
                }
                ("half.test.", RecordType::AAAA) => answer.metadata.response_code = ResponseCode::ServFail,
                ("half.test.", _) => {
                    let address = RData::A(A::new(192, 0, 2, 99));
                    answer.add_answer(Record::from_rdata(query.name().clone(), 3600, address));
                }
                ("www.test.", _) => {}
                _ => answer.metadata.response_code = ResponseCode::NXDomain,
            }
            socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
        }
    }

    fn asking(port: u16) -> Resolver {
        let mut connection = ConnectionConfig::udp();
        connection.port = port;
        let mut server = NameServerConfig::udp([127, 0, 0, 1].into());
        server.connections = vec![connection];
        Resolver { servers: Some(ResolverConfig::from_parts(None, Vec::new(), vec![server])), ..Resolver::default() }
    }

    #[tokio::test]
    async fn dns_answers_contain_addresses_targets_and_ttls() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let resolver = asking(socket.local_addr().unwrap().port());
        tokio::spawn(serve(socket));
        for number in 1..3u8 {
            let answer = resolver.addresses(Source::Dns, "www.test.", "http").await.unwrap();
            assert_eq!(answer.list, [SocketAddr::from(([192, 0, 2, number], 80))], "asked anew every time");
            assert_eq!((answer.ttl, answer.missing), (Some(7.0), None), "there are none of IPv6");
        }
        let answer = resolver.addresses(Source::Dns, "half.test.", "80").await.unwrap();
        assert_eq!(answer.list, [SocketAddr::from(([192, 0, 2, 99], 80))]);
        assert!(answer.missing.is_some_and(|missing| missing.is_v6), "a failure is no answer");
        let answer = resolver.targets("_web._tcp.test.").await.unwrap();
        assert_eq!(answer.ttl, Some(9.0));
        let hosts: Vec<(u16, u16, &str)> =
            answer.list.iter().map(|target| (target.priority, target.port, target.host.as_str())).collect();
        assert_eq!(hosts, [(20, 8080, "b.test"), (10, 8080, "a.test")]);
        let failure = resolver.addresses(Source::Dns, "nowhere.test.", "80").await.unwrap_err();
        assert_eq!(failure.code, libc::EAI_NONAME);
        let failure = resolver.targets("_none._tcp.test.").await.unwrap_err();
        assert_eq!(failure.code, libc::EAI_NONAME);
    }

    #[tokio::test]
    async fn numeric_addresses_need_no_lookup_and_an_invalid_port_is_an_error() {
        let resolver = asking(1);
        for (source, host) in [(Source::Dns, "192.0.2.1"), (Source::Dns, "2001:db8::1"), (Source::System, "127.0.0.1")]
        {
            let answer = resolver.addresses(source, host, "8080").await.unwrap();
            assert_eq!(answer.list, [SocketAddr::new(host.parse().unwrap(), 8080)]);
        }
        for source in [Source::Dns, Source::System] {
            let failure = resolver.addresses(source, "192.0.2.1", "no such service").await.unwrap_err();
            assert_eq!(failure.code, libc::EAI_SERVICE);
        }
    }

    #[tokio::test]
    async fn the_hosts_file_counts_for_both_sources() {
        let resolver = asking(1);
        for source in [Source::Dns, Source::System] {
            let answer = resolver.addresses(source, "localhost", "80").await.unwrap();
            assert!(answer.list.iter().all(|address| address.ip().is_loopback()), "{answer:?}");
            assert!(!answer.list.is_empty());
        }
    }
}
