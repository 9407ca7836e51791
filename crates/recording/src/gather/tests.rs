//! Exchanges from a log.

use super::*;

const LOG: &str = "\
2 Begin req 1 rxreq
2 Timestamp Start: 1000.5 0.0 0.0
2 VCL_use boot
2 ReqStart 192.0.2.1 44006 a0
2 ReqMethod GET
2 ReqURL /a?b=1
2 ReqProtocol HTTP/1.1
2 ReqHeader Host: a.example
2 ReqHeader X-Forwarded-For: 1.2.3.4
2 ReqHeader Cookie: a=b
2 ReqUnset X-Forwarded-For: 1.2.3.4
2 ReqHeader X-Forwarded-For: 1.2.3.4, 192.0.2.1
2 ReqHeader X-Forwarded-Proto: http
2 VCL_call RECV
2 ReqURL /a
2 ReqUnset Cookie: a=b
2 VCL_return restart
2 Link req 4 restart
2 End 
3 Begin bereq 4 fetch
3 Timestamp Start: 1000.6 0.0 0.0
3 BereqMethod GET
3 BereqURL /a
3 BereqHeader Host: a.example
3 BereqHeader Via: x
3 VCL_call BACKEND_FETCH
3 BereqUnset Via: x
3 BackendOpen 27 web 127.0.0.1 80 127.0.0.1 1 connect
3 BerespProtocol HTTP/1.1
3 BerespStatus 200
3 BerespReason OK
3 BerespHeader Cache-Control: max-age=60
3 TTL RFC 60 10 5 1 1 1 0 60 cacheable
3 VCL_call BACKEND_RESPONSE
3 BerespHeader X: y
3 TTL VCL 120 10 5 1 cacheable
3 Witness why stored seconds=120.000
3 BereqAcct 256 0 256 139 18 157
3 End 
4 Begin req 2 restart
4 VCL_use boot
4 VCL_call RECV
4 VCL_call HASH
4 Hash /a
4 Witness why miss-absent gone=never seconds=3.0
4 VCL_call MISS
4 Link bereq 3 fetch
4 RespProtocol HTTP/1.1
4 RespStatus 200
4 RespReason OK
4 RespHeader X: y
4 RespHeader Z: 1
4 VCL_call DELIVER
4 RespUnset Z: 1
4 ReqAcct 133 5 138 314 18 332
4 End ";

fn read(log: &str) -> Option<Exchange> {
    let line = |line: &'static str| {
        let mut words = line.splitn(3, ' ');
        let (vxid, tag) = (words.next().unwrap().parse().unwrap(), words.next().unwrap());
        Line { vxid, tag: Tag::from_name(tag).unwrap(), text: words.next().unwrap_or_default().as_bytes() }
    };
    gather(&log.to_owned().leak().lines().map(line).collect::<Vec<_>>(), 40)
}

#[test]
fn exchange_has_what_was_received_sent_and_decided() {
    let exchange = read(LOG).unwrap();
    let field = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(exchange.start, 1000.5);
    assert_eq!(exchange.request.line, [b"GET".to_vec(), b"/a?b=1".to_vec(), b"HTTP/1.1".to_vec()]);
    let received = [field("Host", "a.example"), field("Cookie", "a=b"), field("X-Forwarded-For", "1.2.3.4")];
    assert_eq!(exchange.request.fields, received);
    assert_eq!(exchange.lookup, Some((b"a.example".to_vec(), b"/a".to_vec())));
    assert_eq!((exchange.restarts, exchange.body_bytes, exchange.response_bytes), (1, 5, 18));
    assert_eq!((exchange.handling.as_str(), exchange.status(), exchange.is_cut), ("miss", 200, false));
    assert_eq!(exchange.response.as_ref().unwrap().fields, [field("X", "y")]);
    let [fetch] = &exchange.fetches[..] else { panic!("one fetch") };
    assert_eq!(fetch.request.fields, [field("Host", "a.example")]);
    assert_eq!(fetch.response.as_ref().unwrap().fields, [field("Cache-Control", "max-age=60")]);
    assert_eq!((fetch.stored, fetch.lifetime), (Some(true), Some([120.0, 10.0, 5.0])));
    assert_eq!((fetch.backend.as_str(), fetch.body_bytes, fetch.failure.as_str()), ("web", 18, ""));
    assert!(exchange.key.is_some());
}

#[test]
fn response_that_copal_made_for_a_failed_fetch_is_not_the_origins() {
    let failed = LOG.replace("3 BerespProtocol", "3 FetchError connection refused\n3 BerespProtocol");
    let exchange = read(&failed).unwrap();
    assert_eq!(
        (exchange.fetches[0].response.as_ref(), exchange.fetches[0].failure.as_str()),
        (None, "connection refused")
    );
}

#[test]
fn revalidation_keeps_the_response_of_the_origin() {
    let log = LOG.replace("3 BerespStatus 200", "3 BerespStatus 304").replace(
        "3 TTL RFC",
        "3 BerespProtocol HTTP/1.1\n3 BerespStatus 200\n3 BerespReason OK\n3 BerespHeader Stored: 1\n3 TTL RFC",
    );
    let response = read(&log).unwrap().fetches[0].response.clone().unwrap();
    assert_eq!((response.status(), response.fields.len()), (304, 1));
}

#[test]
fn cut_and_incomplete_records_are_marked_and_others_are_no_exchange() {
    let long = LOG.replace("Cookie: a=b", "Cookie: a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    assert!(read(&long).unwrap().is_cut);
    assert!(read(&LOG.replace("2 VCL_call RECV\n", "")).unwrap().is_cut);
    assert!(read("1 Begin sess 0 HTTP/1\n1 End ").is_none());
    assert!(read("").is_none());
}
