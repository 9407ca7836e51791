//! Stored heads are read back, in both forms, and damage is detected.

use super::*;

fn sample() -> Message {
    let mut message = Message::new();
    message.set_protocol(b"HTTP/1.1");
    message.set_status(200);
    message.set_reason(b"OK");
    message.append(b"Content-Type", b"text/plain");
    message.append(b"Date", b"Sun, 06 Nov 1994 08:49:37 GMT");
    message.append(b"Expires", b"0");
    message.append(b"last-modified", b"Sun, 06 Nov 1994 08:49:37 UTC");
    message.append(b"X-Own", b"Sun, 06 Nov 1994 08:49:37 GMT");
    message.append(b"Set-Cookie", b"a=1");
    message.append(b"set-cookie", &[b'b'; 200]);
    message.append(b"SET-cookie", &[b'c'; 70_000]);
    message.append(&[b'n'; 300], b"");
    message.append(b"ETag", b"  \"x\" ");
    message.append_raw(b"x-RAW:1", 5, 6);
    message.append_raw(b"Via:\t 1", 3, 6);
    message
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// The form of release 0.1.
fn plain(message: &Message) -> Vec<u8> {
    let mut out = message.status.to_le_bytes().to_vec();
    out.extend_from_slice(&(message.fields.len() as u16).to_le_bytes());
    for part in [message.protocol(), message.reason()] {
        out.extend_from_slice(&(part.len() as u16).to_le_bytes());
        out.extend_from_slice(part);
    }
    for header in message.headers() {
        out.extend_from_slice(&(header.line.len() as u32).to_le_bytes());
        out.extend_from_slice(&(header.name_len as u16).to_le_bytes());
        out.extend_from_slice(&(header.value_start as u16).to_le_bytes());
        out.extend_from_slice(header.line);
    }
    out
}

fn same(one: &Message, other: &Message) {
    assert_eq!((one.status(), one.protocol(), one.reason()), (other.status(), other.protocol(), other.reason()));
    assert_eq!(one.headers().collect::<Vec<_>>(), other.headers().collect::<Vec<_>>());
    for (one, other) in one.fields.iter().zip(&other.fields) {
        assert_eq!((one.bit, one.name_len, one.value_start), (other.bit, other.name_len, other.value_start));
    }
}

#[test]
fn stored_messages_round_trip_in_both_encodings() {
    let message = sample();
    for bytes in [encoded(&message), plain(&message)] {
        let mut back = Message::new();
        back.append(b"Old", b"line");
        back.decode(&bytes).unwrap();
        same(&back, &message);
        assert!(back.has("CONTENT-TYPE") && back.get("x-raw") == Some(b"1") && !back.has("Old"));
        let listed: Vec<_> = stored_headers(&bytes).map(|header| (header.name(), header.value())).collect();
        let expected: Vec<_> = message.headers().map(|header| (header.name(), Cow::Borrowed(header.value()))).collect();
        assert_eq!(listed, expected);
        assert_eq!(stored_headers(&bytes).filter(|header| header.is("SET-COOKIE")).count(), 3);
    }
}

#[test]
fn only_the_dates_that_are_stored_as_numbers_have_no_text() {
    let bytes = encoded(&sample());
    let without: Vec<_> = stored_headers(&bytes).filter(|header| header.text().is_none()).collect();
    assert_eq!(without.iter().map(StoredHeader::name).collect::<Vec<_>>(), [b"Date"]);
    assert_eq!(*without[0].value(), *b"Sun, 06 Nov 1994 08:49:37 GMT");
}

#[test]
fn first_lines_come_back_whatever_they_are() {
    for (protocol, status, reason) in [
        ("HTTP/1.1", 200, "OK"),
        ("HTTP/1.1", 404, "Not Found"),
        ("HTTP/1.0", 200, "OK"),
        ("", 0, ""),
        ("HTTP/1.1", 4095, "OK"),
        ("HTTP/1.1", 4096, "OK"),
        ("HTTP/2.0", 65_535, "Fine"),
    ] {
        let mut message = Message::new();
        message.set_protocol(protocol.as_bytes());
        message.set_status(status);
        message.set_reason(reason.as_bytes());
        message.append(b"Age", b"1");
        let bytes = encoded(&message);
        let mut back = Message::new();
        back.decode(&bytes).unwrap();
        same(&back, &message);
        assert_eq!(stored_headers(&bytes).count(), 1);
    }
}

#[test]
fn a_usual_head_is_a_fifth_as_long_as_it_is_sent() {
    let mut message = Message::new();
    message.set_protocol(b"HTTP/1.1");
    message.set_status(200);
    message.set_reason(b"OK");
    message.append(b"Content-Length", b"100");
    message.append(b"Content-Type", b"text/html; charset=utf-8");
    message.append(b"Cache-Control", b"max-age=3600");
    message.append(b"Date", b"Sun, 06 Nov 1994 08:49:37 GMT");
    message.append(b"ETag", b"\"5f3a-64\"");
    let sent = 19 + message.headers().map(|header| header.line().len() + 2).sum::<usize>();
    assert_eq!((sent, encoded(&message).len()), (163, 30));
    assert_eq!(plain(&message).len(), 192);
}

#[test]
fn damage_is_noticed() {
    let mut message = sample();
    message.retain(|header| header.line().len() < 300);
    for bytes in [encoded(&message), plain(&message)] {
        let mut back = Message::new();
        for cut in 0..bytes.len() {
            assert!(back.decode(&bytes[..cut]).is_none(), "cut at {cut}");
            assert!(stored_headers(&bytes[..cut]).count() <= message.header_count());
            assert_eq!(stored_notes(&bytes[..cut]).count(), 0);
        }
    }
    for bad in [
        &[0xc8, 0xb0, 1, 255, 0][..],
        &[0xc8, 0xb0, 1, 2, 252],
        &[0xc8, 0xb0, 1, 1, 3, 2, 0, 2, 0, b'a', b':', b'b'],
        &[0xc8, 0xb0, 255, 255, 255, 255, 255],
    ] {
        assert!(Message::new().decode(bad).is_none(), "{bad:?}");
    }
}

#[test]
fn notes_are_behind_a_head_and_no_part_of_the_message() {
    let mut message = sample();
    message.retain(|header| header.line().len() < 300);
    for head in [encoded(&message), plain(&message)] {
        let (mut bytes, head_bytes) = (head.clone(), head.len());
        assert_eq!(stored_notes(&bytes).count(), 0);
        encode_note(&mut bytes, &[7; 16]);
        encode_note(&mut bytes, &[8; 16]);
        let notes: Vec<_> = stored_notes(&bytes).collect();
        assert_eq!(notes, [&bytes[head_bytes..head_bytes + 17], &bytes[head_bytes + 17..]]);
        let mut back = Message::new();
        back.decode(&bytes).unwrap();
        same(&back, &message);
        assert_eq!(stored_headers(&bytes).count(), message.header_count());
        for cut in head_bytes + 1..head_bytes + 17 {
            assert!(back.decode(&bytes[..cut]).is_none(), "cut at {cut}");
            assert_eq!(stored_notes(&bytes[..cut]).count(), 0);
        }
        bytes[head_bytes] = b'x';
        assert!(back.decode(&bytes).is_none(), "a note has its mark");
    }
}
