//! Clients in memory.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A client's end of a connection.
pub struct Client {
    stream: DuplexStream,
}

/// A response as a client received it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Everything before the empty line.
    pub head: String,
    /// The body, unchunked.
    pub body: Vec<u8>,
    /// True if the body ended as the head had announced.
    pub is_whole: bool,
    /// The interim responses before it, where the transport keeps them apart.
    pub interim: Vec<String>,
    /// The trailers, where the transport keeps them apart: `name: value`, a line each.
    pub trailers: String,
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.head, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The value of a header in a head; `name` is in lower case.
pub fn find_header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.to_ascii_lowercase() == name).then(|| value.trim())
    })
}

/// Reads a chunked body to its end; `None` if it ends early.
pub async fn read_chunked(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    read_chunks(stream, &mut body).await.then_some(body)
}

async fn read_chunks(stream: &mut (impl AsyncRead + Unpin), body: &mut Vec<u8>) -> bool {
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            match stream.read_u8().await {
                Ok(byte) => line.push(byte),
                Err(_) => return false,
            }
        }
        let Ok(length) = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16) else { return false };
        let mut chunk = vec![0; length + 2];
        if stream.read_exact(&mut chunk).await.is_err() {
            return false;
        }
        if length == 0 {
            return true;
        }
        body.extend_from_slice(&chunk[..length]);
    }
}

impl Client {
    pub(super) fn new(stream: DuplexStream) -> Client {
        Client { stream }
    }

    /// Sends raw bytes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        match self.stream.write_all(bytes.as_ref()).await {
            // The engine has just closed, for lack of requests: the response will be an empty one.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
    }

    /// Sends a `GET` with a Host header and `headers` (each with its line end), and reads the
    /// response.
    pub async fn get(&mut self, target: &str, headers: &str) -> Response {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n{headers}\r\n")).await;
        self.response().await
    }

    /// Reads a response to anything but HEAD.
    pub async fn response(&mut self) -> Response {
        self.read_response(false).await
    }

    /// Reads a response to HEAD.
    pub async fn response_to_head(&mut self) -> Response {
        self.read_response(true).await
    }

    /// Sends a request with its body while reading the response; the engine need not read all of
    /// the body.
    pub async fn post(&mut self, head: String, body: Vec<u8>) -> Response {
        let (mut reader, mut writer) = tokio::io::split(&mut self.stream);
        let send = async {
            let _ = writer.write_all(head.as_bytes()).await;
            let _ = writer.write_all(&body).await;
        };
        tokio::join!(send, read_response(&mut reader, false)).1
    }

    async fn read_response(&mut self, to_head: bool) -> Response {
        read_response(&mut self.stream, to_head).await
    }

    /// Reads everything until the engine closes.
    pub async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// Reads up to the first occurrence of this text.
    pub async fn read_until(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(text.as_bytes()) {
            match self.stream.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Reads the next `count` bytes.
    pub async fn receive(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads the rest of a response body of that length after `read` bytes; returns true if all of
    /// it arrives.
    pub async fn rest_of_length(&mut self, read: usize, body_bytes: usize) -> bool {
        let mut rest = Vec::new();
        let mut limited = (&mut self.stream).take((body_bytes - read) as u64);
        limited.read_to_end(&mut rest).await.is_ok() && rest.len() == body_bytes - read
    }

    /// Ends the sending direction; responses can still be read.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}

async fn read_response(stream: &mut (impl AsyncRead + Unpin), to_head: bool) -> Response {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => {
                return Response { head: String::from_utf8_lossy(&head).into_owned(), ..Response::default() };
            }
        }
    }
    let mut response = Response { head: String::from_utf8(head).unwrap(), is_whole: true, ..Response::default() };
    let status = response.status();
    if to_head || status < 200 || status == 204 || status == 304 {
        return response;
    }
    if let Some(length) = response.header("content-length") {
        let length: usize = length.parse().unwrap();
        let mut limited = (&mut *stream).take(length as u64);
        let _ = limited.read_to_end(&mut response.body).await;
        response.is_whole = response.body.len() == length;
    } else if response.header("transfer-encoding").is_some() {
        response.is_whole = read_chunks(stream, &mut response.body).await;
    } else if !response.head.contains("\r\n\r\n") || response.header("connection") == Some("close") {
        let _ = stream.read_to_end(&mut response.body).await;
    }
    response
}
