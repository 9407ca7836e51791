//! The ring as a reader finds it: records, wraps, batches, many writers.

use super::*;

fn ring() -> LogRing {
    LogRing::in_memory(1 << 20)
}

/// Runs `test` with an empty ring of each layout.
fn each_layout(bytes: usize, test: impl Fn(LogRing)) {
    for layout in Layout::ALL {
        test(LogRing::in_memory_as(bytes, layout));
    }
}

fn lines(ring: &LogRing) -> Vec<String> {
    ring.records()
        .iter()
        .map(|record| {
            format!("{} {} {}", record.id.vxid(), record.tag.name(), String::from_utf8_lossy(&record.payload))
        })
        .collect()
}

#[test]
fn direct_records_are_read_back_in_order() {
    let ring = ring();
    ring.write(Tag::CLI, LogId::NONE, b"Rd ping");
    ring.write_fmt(Tag::SessOpen, LogId::client(1000), format_args!("{} {}", "127.0.0.1", 4711));
    assert_eq!(lines(&ring), ["0 CLI Rd ping", "1000 SessOpen 127.0.0.1 4711"]);
    assert_eq!(ring.records()[1].id.0, 1000 | 1 << 62);
    assert_eq!(ring.totals().shm_records, 2);
    assert_eq!(ring.totals().shm_writes, 2);
}

#[test]
fn nothing_of_a_transaction_is_seen_before_its_flush_and_all_of_it_after() {
    each_layout(1 << 20, |ring| {
        let mut buffer = LogBuffer::new(&ring);
        buffer.start(LogId::backend(7), 1000.0);
        buffer.record(Tag::Begin, b"bereq 6 fetch");
        buffer.timestamp("Start", 1000.0);
        buffer.timestamp("Fetch", 1000.25);
        buffer.timestamp("Beresp", 1001.0);
        buffer.record_parts(Tag::BereqHeader, &[b"Host", b": ", b"a"]);
        buffer.record_fmt(Tag::Length, format_args!("{}", 12));
        buffer.record_fmt(Tag::BereqURL, format_args!("{}{}", "/long/", "path"));
        assert_eq!(lines(&ring), [""; 0]);
        buffer.end();
        assert_eq!(
            lines(&ring),
            [
                "7 Begin bereq 6 fetch",
                "7 Timestamp Start: 1000.000000 0.000000 0.000000",
                "7 Timestamp Fetch: 1000.250000 0.250000 0.250000",
                "7 Timestamp Beresp: 1001.000000 1.000000 0.750000",
                "7 BereqHeader Host: a",
                "7 Length 12",
                "7 BereqURL /long/path",
                "7 End ",
            ]
        );
        let totals = ring.totals();
        assert_eq!((totals.shm_records, totals.shm_writes), (8, 1));
        let text: usize = lines(&ring).iter().map(String::len).sum();
        assert!(totals.shm_bytes as usize > text && totals.shm_bytes as usize <= text + 8 * 24, "{totals:?}");
    });
}

#[test]
fn masked_tags_are_dropped_until_the_mask_changes() {
    each_layout(1 << 20, |ring| {
        let mut buffer = LogBuffer::new(&ring);
        let mut configuration = LogConfiguration::default();
        for _ in 0..2 {
            ring.write(Tag::Debug, LogId::NONE, b"x");
            buffer.record(Tag::VdpAcct, b"y");
            buffer.record_fmt(Tag::VCLTrace, format_args!("{}", 1));
            configuration.mask = [0; 32];
            buffer.flush();
            if ring.records().is_empty() {
                ring.configure(&configuration);
            }
        }
        assert_eq!(lines(&ring), ["0 Debug x", "0 VdpAcct y", "0 VCL_trace 1"]);
        assert!(!ring.is_masked(Tag::Debug));
    });
}

#[test]
fn an_overlong_payload_is_cut_to_vsl_reclen_with_its_nul() {
    each_layout(1 << 20, |ring| {
        ring.configure(&LogConfiguration { reclen_bytes: 20, mask: [0; 32], ..LogConfiguration::default() });
        let mut buffer = LogBuffer::new(&ring);
        let long = [b'x'; 50];
        ring.write(Tag::Error, LogId::NONE, &long);
        ring.write(Tag::H2RxHdr, LogId::NONE, &long);
        buffer.record(Tag::Error, &long);
        buffer.record(Tag::H2RxHdr, &long);
        buffer.record_parts(Tag::Error, &[&long[..15], &long[..15], b"z"]);
        buffer.record_fmt(Tag::Error, format_args!("{}{}", "x".repeat(15), "x".repeat(15)));
        buffer.record_fmt(Tag::H2RxHdr, format_args!("{}{}", "x".repeat(15), "x".repeat(15)));
        buffer.flush();
        let lengths: Vec<_> = ring.records().iter().map(|record| record.payload.len()).collect();
        assert_eq!(lengths, [19, 20, 19, 20, 19, 19, 20]);
        assert!(ring.records().iter().all(|record| record.payload.iter().all(|byte| *byte == b'x')));
    });
}

#[test]
fn numbers_are_written_with_blanks_between_them_and_cut_like_texts() {
    each_layout(1 << 20, |ring| {
        let mut buffer = LogBuffer::new(&ring);
        buffer.start(LogId::client(1), 0.0);
        buffer.record_numbers(Tag::ReqAcct, [0, 10, 123, u64::MAX]);
        buffer.record_numbers(Tag::Length, [7]);
        ring.configure(&LogConfiguration { reclen_bytes: 6, ..LogConfiguration::default() });
        buffer.record_numbers(Tag::ReqAcct, [12, 345, 6]);
        buffer.end();
        assert_eq!(
            lines(&ring),
            ["1 ReqAcct 0 10 123 18446744073709551615", "1 Length 7", "1 ReqAcct 12 34", "1 End "]
        );
    });
}

#[test]
fn words_are_records_in_any_position() {
    each_layout(1 << 20, |ring| {
        ring.configure(&LogConfiguration { buffer_bytes: 100, ..LogConfiguration::default() });
        let mut buffer = LogBuffer::new(&ring);
        buffer.start(LogId::client(1), 0.0);
        let texts = ["", "h", "HIT", "RECV", "BACKEND_RESPONSE", "nineteen characters"];
        for text in texts {
            buffer.record_word(Tag::VCLCall, &Word::new(text.as_bytes()));
            buffer.record_word(Tag::Hash, &Word::new(b"masked"));
            buffer.record(Tag::VCLReturn, text.as_bytes());
        }
        buffer.flush();
        ring.configure(&LogConfiguration { reclen_bytes: 6, ..LogConfiguration::default() });
        buffer.record_word(Tag::VCLCall, &Word::new(b"DELIVER"));
        ring.configure(&LogConfiguration { sync: true, ..LogConfiguration::default() });
        buffer.record_word(Tag::VCLCall, &Word::new(b"HASH"));
        let mut expected: Vec<_> =
            texts.iter().flat_map(|text| [format!("1 VCL_call {text}"), format!("1 VCL_return {text}")]).collect();
        expected.extend(["1 VCL_call DELIV".to_owned(), "1 VCL_call HASH".to_owned()]);
        assert_eq!(lines(&ring), expected);
    });
}

#[test]
fn timestamps_parse_alike_in_any_position_and_setting() {
    for (reclen_bytes, sync, buffer_bytes) in
        [(255, false, 16 << 10), (255, false, 400), (100, false, 16 << 10), (255, true, 16 << 10)]
    {
        for layout in Layout::ALL {
            let ring = LogRing::in_memory_as(1 << 20, layout);
            ring.configure(&LogConfiguration { reclen_bytes, sync, buffer_bytes, ..LogConfiguration::default() });
            let mut buffer = LogBuffer::new(&ring);
            let (start, mut expected, mut before) = (1_700_000_000.5, Vec::new(), 1_700_000_000.5);
            buffer.start(LogId::client(1), start);
            for (number, later) in [0.0, 0.000_123, 0.000_123, 9.75, 12.5, 3_600.000_001].into_iter().enumerate() {
                let (now, label) = (start + later, &"a label that is longer than most"[..number * 6]);
                buffer.timestamp(label, now);
                buffer.record_numbers(Tag::ReqAcct, [number as u64, 99, 1000, 12_345, u64::MAX, 0]);
                expected.push(format!("1 Timestamp {label}: {now:.6} {:.6} {:.6}", now - start, now - before));
                expected.push(format!("1 ReqAcct {number} 99 1000 12345 18446744073709551615 0"));
                before = now;
            }
            buffer.end();
            expected.push("1 End ".to_owned());
            assert_eq!(lines(&ring), expected, "{reclen_bytes} {sync} {buffer_bytes} {layout:?}");
        }
    }
}

#[test]
fn an_announcement_precedes_its_transaction_in_one_reservation() {
    each_layout(1 << 20, |ring| {
        let mut buffer = LogBuffer::new(&ring);
        buffer.start(LogId::client(2), 0.0);
        buffer.announce(Tag::Link, LogId::client(1), b"req 2 rxreq");
        buffer.record(Tag::Begin, b"req 1 rxreq");
        assert_eq!(lines(&ring), [""; 0]);
        buffer.end();
        assert_eq!(lines(&ring), ["1 Link req 2 rxreq", "2 Begin req 1 rxreq", "2 End "]);
        let totals = ring.totals();
        assert_eq!((totals.shm_records, totals.shm_writes), (3, 1));
        // While the transaction waits, readers see that it exists.
        buffer.start(LogId::client(3), 0.0);
        buffer.announce(Tag::Link, LogId::client(1), b"req 3 rxreq");
        buffer.record(Tag::Begin, b"req 1 rxreq");
        buffer.show();
        assert_eq!(lines(&ring)[3..], ["1 Link req 3 rxreq"]);
        buffer.end();
        assert_eq!(lines(&ring)[4..], ["3 Begin req 1 rxreq", "3 End "]);
        // It never gets lost, and its content never changes.
        buffer.announce(Tag::Link, LogId::client(1), b"req 4 rxreq");
        drop(buffer);
        let mut buffer = LogBuffer::new(&ring);
        buffer.announce(Tag::Link, LogId::client(1), b"one that is much longer than any room that a buffer has for it");
        assert_eq!(
            lines(&ring)[6..],
            ["1 Link req 4 rxreq", "1 Link one that is much longer than any room that a buffer has for it"]
        );
        ring.configure(&LogConfiguration { reclen_bytes: 5, ..LogConfiguration::default() });
        buffer.announce(Tag::Link, LogId::client(1), b"req 5 rxreq");
        assert_eq!(lines(&ring)[8..], ["1 Link req "]);
    });
}

#[test]
fn a_full_buffer_is_flushed_and_counted_and_nothing_is_lost() {
    each_layout(1 << 20, |ring| {
        ring.configure(&LogConfiguration { buffer_bytes: 400, reclen_bytes: 300, ..LogConfiguration::default() });
        let mut buffer = LogBuffer::new(&ring);
        buffer.start(LogId::client(3), 0.0);
        for number in 0..100 {
            buffer.record_fmt(Tag::VCLLog, format_args!("key: {number}"));
            buffer.record(Tag::ReqHeader, &[b'h'; 57][..number % 57]);
        }
        buffer.end();
        let records = ring.records();
        assert_eq!(records.len(), 201);
        for number in 0..100 {
            assert_eq!(records[2 * number].payload, format!("key: {number}").into_bytes());
            assert_eq!(records[2 * number + 1].payload.len(), number % 57);
        }
        assert!(ring.totals().shm_flushes > 10);
    });
}

#[test]
fn syncvsl_shows_every_record_at_once() {
    each_layout(1 << 20, |ring| {
        ring.configure(&LogConfiguration { sync: true, ..LogConfiguration::default() });
        let mut buffer = LogBuffer::new(&ring);
        buffer.record(Tag::Begin, b"sess 0 HTTP/1");
        assert_eq!(ring.records().len(), 1);
        buffer.record_fmt(Tag::Error, format_args!("{}", 1));
        assert_eq!(ring.records().len(), 2);
    });
}

#[test]
fn a_wrapped_ring_keeps_the_newest_records_in_order() {
    for layout in Layout::ALL {
        let ring = LogRing::in_memory_as(RING_BYTES_MIN, layout);
        let mut buffer = LogBuffer::new(&ring);
        for round in 0..2000u64 {
            if round % 3 == 0 {
                ring.write_fmt(Tag::VCLLog, LogId::client(round), format_args!("{round}"));
            } else {
                buffer.start(LogId::client(round), 0.0);
                buffer.record_fmt(Tag::VCLLog, format_args!("{}{}", round, &"          "[..round as usize % 10]));
                buffer.flush();
            }
            let seen: Vec<u64> = ring.records().iter().map(|record| record.id.vxid()).collect();
            assert_eq!(seen.last(), Some(&round));
            assert!(seen.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{seen:?}");
            assert!(round < 200 || seen.len() > 60, "only {} of round {round}", seen.len());
        }
        assert!(ring.totals().shm_cycles > 10);
    }
}

#[test]
fn several_threads_lose_and_mix_nothing() {
    let ring = LogRing::in_memory(8 << 20);
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let ring = ring.clone();
            std::thread::spawn(move || {
                let mut buffer = LogBuffer::new(&ring);
                for number in 0..500u64 {
                    buffer.start(LogId::client(thread * 1000 + number), 0.0);
                    for part in 0..8 {
                        buffer.record_fmt(Tag::VCLLog, format_args!("{thread}/{number}/{part}"));
                    }
                    buffer.flush();
                    ring.write(Tag::SessClose, LogId::client(thread * 1000 + number), b"REM_CLOSE");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let records = ring.records();
    assert_eq!(records.len(), 4 * 500 * 9);
    for chunk in records.chunk_by(|first, second| first.id == second.id && second.tag == Tag::VCLLog) {
        if chunk[0].tag == Tag::VCLLog {
            let id = chunk[0].id.vxid();
            let expected: Vec<_> =
                (0..8).map(|part| format!("{}/{}/{part}", id / 1000, id % 1000).into_bytes()).collect();
            assert_eq!(chunk.iter().map(|record| record.payload.clone()).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_transaction_dropped_half_way_is_still_logged() {
    each_layout(1 << 20, |ring| {
        let mut buffer = LogBuffer::new(&ring);
        buffer.record(Tag::Error, b"panic");
        drop(buffer);
        assert_eq!(lines(&ring), ["0 Error panic"]);
    });
}

#[test]
fn layout_of_7_3_has_wide_numbers_and_no_record_of_a_tag_that_is_gone() {
    let wide = (1 << 51) - 1;
    each_layout(1 << 16, |ring| {
        let mut buffer = LogBuffer::new(&ring);
        buffer.start(LogId::backend(wide), 0.0);
        buffer.record(Tag::BackendStart, b"192.0.2.1 80");
        buffer.record(Tag::Witness, b"a");
        buffer.announce(Tag::Link, LogId::client(wide), b"bereq 1 fetch");
        buffer.end();
        let (seen, start) = match ring.layout() {
            Layout::V71 => (wide & 0x3FFF_FFFF, Some(Tag::BackendStart)),
            Layout::V73 => (wide, None),
        };
        let tags: Vec<Tag> = ring.records().iter().map(|record| record.tag).collect();
        let expected: Vec<Tag> = [Tag::Link].into_iter().chain(start).chain([Tag::Witness, Tag::End]).collect();
        assert_eq!(tags, expected);
        assert!(ring.records().iter().all(|record| record.id.vxid() == seen));
        assert!(ring.records()[0].id.is_client() && ring.records()[1].id.is_backend());
    });
}
