//! The demo's web server: a small blog with the usual delays.
//!
//! A page takes about 200 ms and eight can be made at once; images are quick. Every page sets a
//! visitor cookie, `/account` responds with the name in the `login` cookie, `/desk` is a page with
//! such a name in its corner, `/flaky` fails one time in four. A client that can assemble pages
//! (`Surrogate-Capability`) gets the desk without the corner, which is `/corner` then. It counts
//! its requests.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Time to make a page.
const PAGE_TIME: Duration = Duration::from_millis(200);
/// Time to make an image.
const IMAGE_TIME: Duration = Duration::from_millis(5);
/// Time to make the corner of a page.
const CORNER_TIME: Duration = Duration::from_millis(20);
/// Pages made at once.
const PAGES_AT_ONCE: usize = 8;
/// Posts of the blog.
pub const POSTS: u64 = 40;
/// Images of the blog.
pub const IMAGES: u64 = 20;
/// Longest request head, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// The running blog.
pub struct Origin {
    /// Its listening address.
    pub address: SocketAddr,
    /// Requests it has answered.
    pub requests: Arc<AtomicU64>,
}

/// Starts the blog on a thread of its own, on a port chosen by the system.
///
/// # Errors
/// No port is available.
pub fn start() -> io::Result<Origin> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let requests = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&requests);
    std::thread::Builder::new().name("blog".into()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let workers = Rc::new(Semaphore::new(PAGES_AT_ONCE));
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                tokio::task::spawn_local(serve(stream, Rc::clone(&workers), Arc::clone(&counted)));
            }
        });
    })?;
    Ok(Origin { address, requests })
}

async fn serve(mut stream: TcpStream, workers: Rc<Semaphore>, requests: Arc<AtomicU64>) {
    let _ = stream.set_nodelay(true);
    let mut received = Vec::new();
    loop {
        let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
            if received.len() > HEAD_BYTES_MAX || !matches!(stream.read_buf(&mut received).await, Ok(n) if n > 0) {
                return;
            }
            continue;
        };
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        received.drain(..end + 4);
        let number = requests.fetch_add(1, Ordering::Relaxed);
        let answer = answer(&head, number, &workers).await;
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

async fn answer(head: &str, number: u64, workers: &Semaphore) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/");
    let is_head = head.starts_with("HEAD ");
    if let Some(image) = path.strip_prefix("/image/") {
        tokio::time::sleep(IMAGE_TIME).await;
        let picture = vec![image.len() as u8; 20_000];
        return response("200 OK", "image/png", "Cache-Control: max-age=3600\r\n", &picture, is_head);
    }
    if path == "/corner" {
        tokio::time::sleep(CORNER_TIME).await;
        let headers =
            if login(head).is_some() { "Cache-Control: private\r\n" } else { "Cache-Control: max-age=60\r\n" };
        return response("200 OK", "text/html", headers, corner(head).as_bytes(), is_head);
    }
    let _turn = workers.acquire().await;
    tokio::time::sleep(PAGE_TIME).await;
    let visitor = format!("Cache-Control: max-age=60\r\nSet-Cookie: visitor={number}; Path=/\r\n");
    match path {
        "/" => {
            let list: String = (1..=POSTS).map(|n| format!("<li><a href=\"/post/{n}\">Post {n}</a></li>")).collect();
            page("A small blog", &format!("<ul>{list}</ul>"), &visitor, is_head)
        }
        "/desk" if value_of(head, "surrogate-capability").is_some_and(|value| value.contains("ESI/1.0")) => {
            let headers = "Cache-Control: max-age=60\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
            page("Your desk", &desk("<esi:include src=\"/corner\"/>"), headers, is_head)
        }
        "/desk" => page("Your desk", &desk(&corner(head)), "Cache-Control: private\r\n", is_head),
        "/account" => match login(head) {
            Some(name) => page(&format!("Hello {name}"), "Your drafts.", "Cache-Control: private\r\n", is_head),
            None => page("Log in first", "", "Cache-Control: private\r\n", is_head),
        },
        "/flaky" if number.is_multiple_of(4) => {
            response("500 Internal Server Error", "text/plain", "", b"the database went away\n", is_head)
        }
        "/flaky" => page("It worked", "This time.", &visitor, is_head),
        _ => match path.strip_prefix("/post/") {
            Some(post) => page(&format!("Post {post}"), &"<p>Once upon a time…</p>".repeat(200), &visitor, is_head),
            None => response("404 Not Found", "text/plain", "", b"no such page\n", is_head),
        },
    }
}

/// A page of which only the corner differs.
fn desk(corner: &str) -> String {
    format!("<div>{corner}</div>{}", "<p>What everybody should read today…</p>".repeat(100))
}

/// The corner of the desk.
fn corner(head: &str) -> String {
    match login(head) {
        Some(name) => format!("<b>Hello {name}</b>"),
        None => "<a href=\"/login\">Log in</a>".to_owned(),
    }
}

/// The value of a header; `name` is in lower case.
fn value_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|line| line.1)
}

/// The name in the `login` cookie.
fn login(head: &str) -> Option<&str> {
    let cookies = value_of(head, "cookie")?;
    cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix("login="))
}

fn page(title: &str, body: &str, headers: &str, is_head: bool) -> Vec<u8> {
    let html =
        format!("<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>\n");
    response("200 OK", "text/html; charset=utf-8", headers, html.as_bytes(), is_head)
}

fn response(status: &str, kind: &str, headers: &str, body: &[u8], is_head: bool) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}Content-Length: {}\r\n\r\n", body.len())
            .into_bytes();
    if !is_head {
        bytes.extend_from_slice(body);
    }
    bytes
}
