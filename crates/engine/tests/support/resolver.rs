//! Names that are looked up in a table, in the background, as the worker does for a VCL.

use super::World;
use backend::dns_names::resolve::{Answer, Resolve, ResolveError, Resolving, Source, Target};
use backend::dns_names::run::Surroundings;
use engine::clock::Clock;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Answers from a table, after a second.
#[derive(Default)]
pub struct Table {
    pub addresses: RefCell<HashMap<String, Vec<&'static str>>>,
    /// Number of lookups.
    pub asked: Cell<usize>,
}

fn unknown<T>() -> Result<Answer<T>, ResolveError> {
    Err(ResolveError { code: -2, text: "Name or service not known".to_owned() })
}

impl Table {
    /// Sets the addresses of a name.
    pub fn set(&self, host: &str, addresses: &[&'static str]) {
        self.addresses.borrow_mut().insert(host.to_owned(), addresses.to_vec());
    }
}

impl Resolve for Table {
    fn addresses<'a>(&'a self, _source: Source, host: &'a str, port: &'a str) -> Resolving<'a, SocketAddr> {
        Box::pin(async move {
            self.asked.set(self.asked.get() + 1);
            sleep(Duration::from_secs(1)).await;
            let Some(addresses) = self.addresses.borrow().get(host).cloned() else { return unknown() };
            let port = if port == "http" { 80 } else { port.parse().unwrap() };
            let list = addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), port)).collect();
            Ok(Answer { list, ttl: None, missing: None })
        })
    }

    fn targets<'a>(&'a self, _service: &'a str) -> Resolving<'a, Target> {
        Box::pin(async move { unknown() })
    }
}

struct Around(Clock);

impl Surroundings for Around {
    fn now(&self) -> f64 {
        self.0.now()
    }

    fn prefers_v6(&self) -> bool {
        false
    }

    fn found(&self) -> Rc<backend::Findings> {
        Rc::default()
    }

    fn appeared(&self, _backend: &Arc<backend::Backend>) {}

    fn vanished(&self, _backend: &Arc<backend::Backend>) {}
}

/// Looks up the names of the active VCL.
pub fn look_up(world: &World) -> Rc<Table> {
    let table = Rc::new(Table::default());
    let active = world.engine.vcl.load().active.clone().unwrap();
    tokio::task::spawn_local(backend::dns_names::run::run(
        Arc::clone(active.directors.dns_names()),
        Rc::clone(&table) as Rc<dyn Resolve>,
        Rc::clone(&world.context.dial),
        Rc::new(Around(world.context.clock.clone())),
        world.engine.ring.clone(),
    ));
    table
}
