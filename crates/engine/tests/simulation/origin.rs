//! The origin: answers with delays, and sometimes with faults.

use super::Stage;
use super::resource::{Resource, Sharing};
use crate::support::{ORIGIN, OriginRequest, OriginStream};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longest time for which the built-in VCL marks a 500 as not shared.
const ERROR_REMEMBERED_MILLIS: u64 = 200_000;

/// Faults of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    None,
    /// Closes without a byte.
    Silence,
    /// Never sends anything, and stays open.
    StallBeforeHead,
    /// Sends garbage.
    Garbage,
    /// Closes inside the head.
    HalfHead,
    /// Closes inside the body.
    ShortBody,
    /// Stops inside the body, and stays open.
    StallInBody,
    /// Answers 500.
    Error,
    /// Sends more than announced.
    Excess,
    /// Closes after a good response, without having announced it.
    Leave,
}

impl Trouble {
    fn random(resource: &Resource, rng: &mut SmallRng) -> Trouble {
        if !rng.random_ratio(resource.trouble, 100) {
            return Trouble::None;
        }
        match rng.random_range(0..9) {
            0 => Trouble::Silence,
            1 => Trouble::StallBeforeHead,
            2 => Trouble::Garbage,
            3 => Trouble::HalfHead,
            4 => Trouble::ShortBody,
            5 => Trouble::StallInBody,
            6 => Trouble::Error,
            7 => Trouble::Excess,
            _ => Trouble::Leave,
        }
    }
}

/// Starts serving connections to the origin.
pub fn start(stage: &Rc<Stage>, seed: u64) {
    let weak = Rc::downgrade(stage);
    let seeds = Rc::new(RefCell::new(SmallRng::seed_from_u64(seed)));
    stage.world.origin_at(ORIGIN, move |stream| {
        let stage = weak.upgrade();
        let rng = SmallRng::seed_from_u64(seeds.borrow_mut().random());
        async move {
            if let Some(stage) = stage {
                serve(&stage, stream, rng).await;
            }
        }
    });
}

async fn serve(stage: &Stage, mut stream: OriginStream, mut rng: SmallRng) {
    while let Some(request) = OriginRequest::read(&mut stream).await {
        let Some(resource) = stage.resources.iter().find(|resource| resource.url == request.target()) else { return };
        let number = stage.book.begin(&resource.url, stage.now());
        let stays = respond(stage, resource, &request, &mut stream, &mut rng).await;
        stage.book.end(number, stage.now());
        if !stays {
            return;
        }
    }
}

/// Answers one request; returns false when the connection is over.
async fn respond(
    stage: &Stage,
    resource: &Resource,
    request: &OriginRequest,
    stream: &mut OriginStream,
    rng: &mut SmallRng,
) -> bool {
    let trouble = Trouble::random(resource, rng);
    let variant = match resource.sharing {
        Sharing::Variants => request.header("x-variant").unwrap_or("none").to_owned(),
        _ => "any".to_owned(),
    };
    let key = format!("{} {variant}", resource.url);
    let is_post = request.line().starts_with("POST ");
    let key = if is_post { format!("{key} posted") } else { key };
    if is_post && request.body != super::client::posted(request.header("x-client").unwrap_or(""), request.body.len()) {
        stage.book.fault(format!("at {}: a request body is not what {key} was sent", stage.now()));
    }
    // A response that was too large for a small storage is fetched in parallel for a while.
    let may_be_too_large = (resource.is_chunked || resource.url.contains("zip"))
        && stage.world.engine.cache.stores().iter().any(|store| store.limit_bytes() < 1 << 20);
    // A slice may be of an earlier head, which was purged while it is being read.
    let is_slice = request.header("if-range").is_some();
    let key = if is_slice { format!("{key} slice") } else { key };
    let is_exclusive = !is_slice
        && !is_post
        && !resource.is_private()
        && !may_be_too_large
        && !stage.book.is_unshared(&resource.url, stage.now());
    let count = stage.book.enter(&key);
    if is_exclusive && count > 1 {
        stage.book.fault(format!("at {}: a second fetch for {key} while the first has no head yet", stage.now()));
    }
    if trouble == Trouble::Error {
        stage.book.unshare(&resource.url, stage.now() + ERROR_REMEMBERED_MILLIS);
    }
    let head = prepare_head(stage, resource, request, &variant, trouble, stream, rng).await;
    let Some((head, body)) = head else {
        stage.book.leave(&key);
        return false;
    };
    let sent = stream.write_all(&head).await.is_ok();
    stage.book.leave(&key);
    sent && send_body(stage, resource, body.as_deref(), trouble, stream, rng).await
}

/// The response head, once it is time, and the body of those that have one; `None` if there is to
/// be no response.
async fn prepare_head(
    stage: &Stage,
    resource: &Resource,
    request: &OriginRequest,
    variant: &str,
    trouble: Trouble,
    stream: &mut OriginStream,
    rng: &mut SmallRng,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    if resource.pause_max > 0 {
        pause(stage, stream, rng.random_range(0..resource.pause_max)).await?;
    }
    match trouble {
        Trouble::Silence => return None,
        Trouble::StallBeforeHead => {
            pause(stage, stream, 3_600_000).await?;
            return None;
        }
        Trouble::Garbage => {
            let _ = stream.write_all(b"\x16\x03\x01 this is not HTTP\r\n\r\n").await;
            return None;
        }
        Trouble::HalfHead => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Half: ").await;
            return None;
        }
        Trouble::Error => {
            return Some((b"HTTP/1.1 500 Trouble\r\nContent-Length: 0\r\n\r\n".to_vec(), None));
        }
        Trouble::None | Trouble::ShortBody | Trouble::StallInBody | Trouble::Excess | Trouble::Leave => {}
    }
    let version = resource.version.get();
    let client = if resource.is_private() { request.header("x-client").unwrap_or("nobody") } else { "any" };
    let etag = resource.etag(version, variant);
    let born = stage.now();
    let common = format!(
        "X-Url: {}\r\nX-Version: {version}\r\nX-Variant: {variant}\r\nX-Owner: {client}\r\nX-Born: {born}\r\nX-Keep: {}s\r\n{}{}",
        resource.url,
        resource.keep,
        match resource.sharing {
            Sharing::All => String::new(),
            Sharing::Variants => "Vary: X-Variant\r\n".to_owned(),
            Sharing::Cookie => format!("Set-Cookie: owner={client}\r\n"),
            Sharing::Private => "Cache-Control: private\r\n".to_owned(),
            Sharing::Pass => "X-Pass: yes\r\n".to_owned(),
        },
        format_args!("Cache-Control: max-age={}, stale-while-revalidate={}\r\n", resource.ttl, resource.grace),
    );
    if resource.has_etag && request.header("if-none-match") == Some(etag.as_str()) {
        return Some((format!("HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n{common}\r\n").into_bytes(), None));
    }
    let mut body = resource.body(version, variant, client);
    if let Some((first, last)) = slice(stage, resource, request, &etag, body.len()) {
        let fields = format!("Content-Range: bytes {first}-{last}/{}\r\nETag: {etag}\r\n", body.len());
        body = body[first..=last].to_vec();
        let length = framing(resource, body.len());
        return Some((format!("HTTP/1.1 206 Part\r\n{common}{fields}{length}\r\n").into_bytes(), Some(body)));
    }
    let length = framing(resource, body.len());
    let etag = if resource.has_etag { format!("ETag: {etag}\r\n") } else { String::new() };
    Some((format!("HTTP/1.1 200 OK\r\n{common}{etag}{length}\r\n").into_bytes(), Some(body)))
}

fn framing(resource: &Resource, body_bytes: usize) -> String {
    if resource.is_chunked {
        "Transfer-Encoding: chunked\r\n".to_owned()
    } else {
        format!("Content-Length: {body_bytes}\r\n")
    }
}

/// The first and last byte of the requested slice; `None` where the whole is sent.
fn slice(
    stage: &Stage,
    resource: &Resource,
    request: &OriginRequest,
    etag: &str,
    body_bytes: usize,
) -> Option<(usize, usize)> {
    let is_willing = stage.has_slices && resource.has_etag && !resource.is_private();
    let (first, last) = request.header("range").filter(|_| is_willing)?.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let holds = request.header("if-range").is_none_or(|tag| tag == etag);
    (holds && first < body_bytes).then(|| (first, last.min(body_bytes - 1)))
}

async fn send_body(
    stage: &Stage,
    resource: &Resource,
    body: Option<&[u8]>,
    trouble: Trouble,
    stream: &mut OriginStream,
    rng: &mut SmallRng,
) -> bool {
    let Some(body) = body else { return true };
    let end = match trouble {
        Trouble::ShortBody | Trouble::StallInBody => body.len() / 2,
        _ => body.len(),
    };
    let mut rest = &body[..end];
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rng.random_range(1..=rest.len().min(30_000)));
        rest = later;
        let sent = if resource.is_chunked {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            stream.write_all(&chunk).await
        } else {
            stream.write_all(piece).await
        };
        if sent.is_err() {
            return false;
        }
        // After the last piece the engine may use the connection for its next request.
        if !rest.is_empty()
            && resource.pause_max > 0
            && pause(stage, stream, rng.random_range(0..resource.pause_max)).await.is_none()
        {
            return false;
        }
    }
    match trouble {
        Trouble::ShortBody if !body.is_empty() => return false,
        Trouble::StallInBody if !body.is_empty() => {
            pause(stage, stream, 3_600_000).await;
            return false;
        }
        _ => {}
    }
    if resource.is_chunked && stream.write_all(b"0\r\n\r\n").await.is_err() {
        return false;
    }
    if trouble == Trouble::Excess {
        let _ = stream.write_all(b"and then some").await;
    }
    trouble != Trouble::Leave
}

/// Waits; returns `None` if the engine closes the connection during that.
async fn pause(stage: &Stage, stream: &mut OriginStream, millis: u64) -> Option<()> {
    let mut byte = [0];
    tokio::select! {
        biased;
        read = stream.read(&mut byte) => {
            // The engine sends nothing before it has the whole response.
            if matches!(read, Ok(1..)) {
                stage.book.fault(format!("at {}: the engine spoke out of turn", stage.now()));
            }
            None
        }
        () = tokio::time::sleep(Duration::from_millis(millis)) => Some(()),
    }
}
