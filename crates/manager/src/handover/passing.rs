//! Bytes and descriptors over a stream socket: one parcel, sent and received whole.
//!
//! ```text
//! parcel   mark (8) | length of the bytes (4) | number of descriptors (4) | bytes
//!          | one byte for each group of descriptors
//! ```
//! The kernel passes at most 253 descriptors with a message, so they travel in groups. This file
//! does not interpret them. Received lengths are bounded before memory is allocated for them, and
//! an incomplete parcel is an error. Source: unix(7), SCM_RIGHTS.

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use surface::limits::{HANDOVER_BYTES_MAX, HANDOVER_DESCRIPTORS_MAX};

/// First bytes of a parcel.
const MARK: &[u8; 8] = b"CopalHo1";
/// Descriptors in one message.
const GROUP: usize = 64;

/// Sends a parcel.
///
/// # Errors
/// `InvalidInput` for more than may be received; else the error of the system.
pub fn send(mut stream: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
    if bytes.len() > HANDOVER_BYTES_MAX || descriptors.len() > HANDOVER_DESCRIPTORS_MAX {
        let text = format!("{} bytes with {} descriptors are too much to hand over", bytes.len(), descriptors.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    stream.write_all(MARK)?;
    stream.write_all(&(bytes.len() as u32).to_le_bytes())?;
    stream.write_all(&(descriptors.len() as u32).to_le_bytes())?;
    stream.write_all(bytes)?;
    let all: Vec<BorrowedFd> = descriptors.iter().map(AsFd::as_fd).collect();
    all.chunks(GROUP).try_for_each(|group| send_group(stream, b"+", group))
}

/// Sends one message with up to a group of descriptors.
///
/// # Errors
/// Errors of the system.
pub fn send_group(socket: impl AsFd, bytes: &[u8], group: &[BorrowedFd]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(GROUP))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(group)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives a parcel.
///
/// # Errors
/// `InvalidData` for bytes that are not a parcel, or a larger one than allowed; else the error of
/// the system.
pub fn receive(mut stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    if &head[..8] != MARK {
        return Err(invalid("what came is no handover".to_owned()));
    }
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
    let (length, count) = (word(8), word(12));
    if length > HANDOVER_BYTES_MAX || count > HANDOVER_DESCRIPTORS_MAX {
        return Err(invalid(format!("a handover of {length} bytes with {count} descriptors")));
    }
    let mut bytes = Vec::new();
    // Memory is allocated for the received bytes, not for the announced length.
    Read::take(&mut stream, length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = Vec::new();
    while descriptors.len() < count {
        let wanted = GROUP.min(count - descriptors.len());
        let group = receive_group(stream)?;
        if group.len() != wanted {
            return Err(invalid(format!("{} descriptors came instead of {wanted}", group.len())));
        }
        descriptors.extend(group);
    }
    Ok((bytes, descriptors))
}

fn receive_group(stream: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(GROUP))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            result => break result?,
        }
    };
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut found = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            found.extend(descriptors);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    fn null() -> OwnedFd {
        File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn a_parcel_arrives_whole_with_its_descriptors_in_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<File> =
            (0..150).map(|number| File::create(folder.path().join(number.to_string())).unwrap()).collect();
        let numbers: Vec<u64> = files.iter().map(|file| file.metadata().unwrap().ino()).collect();
        let descriptors: Vec<OwnedFd> = files.into_iter().map(OwnedFd::from).collect();
        let text = vec![b'x'; 3 << 20];
        let sent = text.clone();
        let sender = std::thread::spawn(move || send(&ours, &sent, &descriptors));
        let (bytes, received) = receive(&theirs).unwrap();
        sender.join().unwrap().unwrap();
        assert!(bytes == text);
        let arrived: Vec<u64> =
            received.iter().map(|one| File::from(one.try_clone().unwrap()).metadata().unwrap().ino()).collect();
        assert_eq!(arrived, numbers);
        for one in &received {
            let flags = nix::fcntl::fcntl(one, nix::fcntl::FcntlArg::F_GETFD).unwrap();
            assert_eq!(flags & nix::libc::FD_CLOEXEC, nix::libc::FD_CLOEXEC, "{}", one.as_raw_fd());
        }
    }

    #[test]
    fn invalid_parcels_are_refused_before_allocation() {
        let refused = |bytes: &[u8], group: usize| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (&ours).write_all(bytes).unwrap();
            if group > 0 {
                let descriptors: Vec<OwnedFd> = (0..group).map(|_| null()).collect();
                let all: Vec<BorrowedFd> = descriptors.iter().map(AsFd::as_fd).collect();
                send_group(&ours, b"+", &all).unwrap();
            }
            drop(ours);
            receive(&theirs).unwrap_err()
        };
        let head = |length: u32, count: u32| [MARK.as_slice(), &length.to_le_bytes(), &count.to_le_bytes()].concat();
        assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n", 0).to_string(), "what came is no handover");
        assert_eq!(refused(&head(u32::MAX, 1), 0).kind(), io::ErrorKind::InvalidData);
        assert_eq!(refused(&head(0, u32::MAX), 0).kind(), io::ErrorKind::InvalidData);
        assert_eq!(refused(&head(4, 0)[..10], 0).kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(refused(&[&head(4, 0)[..], b"abc"].concat(), 0).kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(refused(&head(0, 3), 0).kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(refused(&head(0, 3), 2).to_string(), "2 descriptors came instead of 3");
    }
}
