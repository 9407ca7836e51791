//! What a hit costs, counted in instructions: not a test of behaviour, and ignored unless asked for.
//!
//! ```text
//! cargo test --release -p engine --no-run
//! HITS=20000 valgrind --tool=callgrind target/release/deps/engine-… --ignored --exact hit_cost::hits_in_memory
//! ```
//!
//! Two runs with different `HITS` differ by the cost of the hits alone.

use crate::support::{World, always};
use std::rc::Rc;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;

/// What load generators send.
const REQUEST: &[u8] = b"GET /b1 HTTP/1.1\r\nHost: 127.0.0.1:6081\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) load/1.0\r\n\
    Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\r\n";

#[test]
#[ignore = "a measurement, to be run under callgrind"]
fn hits_in_memory() {
    let hits: u64 = std::env::var("HITS").ok().and_then(|hits| hits.parse().ok()).unwrap_or(1000);
    // Time runs, as in production: a paused clock is a lock and a test of its own with each reading.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::new(Parameters::default()));
        world.load("boot", "");
        let body: &'static str = String::from_utf8(vec![b'x'; 1024]).unwrap().leak();
        world.origin(always("Cache-Control: max-age=3600\r\nContent-Type: text/plain\r\n", body));
        let (mut near, far) = tokio::io::duplex(64 << 10);
        tokio::task::spawn_local(engine::transport::serve(
            Rc::clone(&world.context),
            far,
            world.peer(),
            Vec::new(),
            engine::transport::Speaks::Either,
        ));
        let mut room = vec![0; 64 << 10];
        for _ in 0..=hits {
            near.write_all(REQUEST).await.unwrap();
            let mut got = 0;
            while !room[..got].ends_with(b"xxxxxxxx") {
                got += near.read(&mut room[got..]).await.unwrap();
            }
        }
        assert_eq!(world.count(Main::CacheHit), hits);
    });
}
