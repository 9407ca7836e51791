//! HPACK against another implementation: the client of the library `h2` sends random fields, which
//! the machine decodes, and receives them again, as the machine has encoded them.

use bytes::Bytes;
use field_coding::FieldList;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http2::{Machine, MachineSettings, ResetLimits, Resets};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const SETTINGS: MachineSettings = MachineSettings {
    streams_max: 100,
    frame_bytes_max: 16384,
    table_bytes: 4096,
    stream_window: 65_535,
    connection_window: 65_535,
    growth_step: 0,
    credit_bytes: 1,
    block_bytes_max: 1 << 20,
    list_bytes_max: 1 << 20,
    announces_list_limit: true,
    offers_connect: false,
    is_lenient: false,
};

/// Answers each request with its own fields.
async fn echo(mut stream: DuplexStream, settings: MachineSettings) {
    let resets = Rc::new(Resets::new(ResetLimits { rapid: 1.0, limit: 0, period: 1.0 }));
    let mut machine = Machine::new(settings, resets, Rc::default());
    let mut bytes = [0; 1000];
    loop {
        let output = machine.output().to_vec();
        stream.write_all(&output).await.unwrap();
        machine.sent(output.len());
        let Ok(count @ 1..) = stream.read(&mut bytes).await else { return };
        machine.receive(&bytes[..count], Duration::ZERO, None);
        while let Some(request) = machine.take_request() {
            let mut fields = FieldList::new();
            request.head.fields().for_each(|(name, value)| fields.push(name, value));
            machine.send_head(request.stream, 200, &fields, true).unwrap();
            machine.forget(request.stream, Duration::ZERO);
        }
        assert_eq!(machine.verdict(), None);
    }
}

/// Fields of which some recur, with the library's marks for those that must not be indexed.
fn random_fields(random: &mut StdRng) -> HeaderMap {
    const NAMES: [&str; 12] = [
        "accept",
        "age",
        "cache-control",
        "content-type",
        "cookie",
        "etag",
        "set-cookie",
        "user-agent",
        "x-a",
        "x-b",
        "x-long-name-of-a-field-that-is-in-no-table",
        "~",
    ];
    let mut fields = HeaderMap::new();
    for _ in 0..random.random_range(0..12) {
        let length = match random.random_range(0..20) {
            0 => random.random_range(0..6000),
            1..5 => random.random_range(0..300),
            _ => random.random_range(0..4),
        };
        let letters = if random.random_bool(0.3) { 0x20..=0xff } else { b'a'..=b'c' };
        let value: Vec<u8> =
            (0..length).map(|_| random.random_range(letters.clone())).filter(|byte| *byte != 0x7f).collect();
        let value = value.trim_ascii();
        let mut value = HeaderValue::from_bytes(value).unwrap();
        value.set_sensitive(random.random_bool(0.2));
        fields.append(HeaderName::from_static(NAMES[random.random_range(0..NAMES.len())]), value);
    }
    fields
}

async fn converse(seed: u64, table_bytes: u32) {
    let mut random = StdRng::seed_from_u64(seed);
    let (near, far) = tokio::io::duplex(1 << 16);
    let serving = tokio::task::spawn_local(echo(far, MachineSettings { table_bytes, ..SETTINGS }));
    let mut builder = h2::client::Builder::new();
    builder.header_table_size(random.random_range(0..10_000)).max_header_list_size(1 << 20);
    let (mut sender, connection) = builder.handshake::<_, Bytes>(near).await.unwrap();
    tokio::task::spawn_local(async move { _ = connection.await });
    for number in 0..300 {
        let fields = random_fields(&mut random);
        let mut request = Request::get("http://a.example/").body(()).unwrap();
        *request.headers_mut() = fields.clone();
        sender = sender.ready().await.unwrap();
        let (response, _) = sender.send_request(request, true).unwrap();
        let received = response.await.unwrap().into_parts().0.headers;
        assert_eq!(received, fields, "request {number} of seed {seed}");
    }
    drop(sender);
    serving.abort();
}

#[test]
fn fields_are_the_same_after_the_librarys_encoder_and_decoder() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        for seed in 0..20 {
            converse(seed, [4096, 0, 100, 1000, 65_536][seed as usize % 5]).await;
        }
    });
}
