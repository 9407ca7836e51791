//! A name that changes, is unanswered and returns; with a resolver made from a list of answers, in
//! paused time.

use super::*;
use crate::dns_names::resolve::{Answer, Missing, Resolving, Target};
use crate::memory::definition;
use shm::log::LogConfiguration;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};
use vcl_run::program::BackendDefinition;

/// Gives prepared answers, the last one for ever, and records the times of the queries.
struct Answers {
    list: RefCell<VecDeque<Result<Answer<SocketAddr>, ResolveError>>>,
    asked: RefCell<Vec<(Source, String, u64)>>,
    began: Instant,
}

impl Answers {
    fn next(&self) -> Option<Result<Answer<SocketAddr>, ResolveError>> {
        let mut list = self.list.borrow_mut();
        let next = list.pop_front()?;
        if list.is_empty() {
            list.push_back(next.clone());
        }
        Some(next)
    }
}

impl Resolve for Answers {
    fn addresses<'a>(&'a self, source: Source, host: &'a str, port: &'a str) -> Resolving<'a, SocketAddr> {
        Box::pin(async move {
            self.asked.borrow_mut().push((source, format!("{host}:{port}"), self.began.elapsed().as_secs()));
            match self.next() {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn targets<'a>(&'a self, _service: &'a str) -> Resolving<'a, Target> {
        Box::pin(async { Err(ResolveError { code: -2, text: "none".to_owned() }) })
    }
}

fn at(addresses: &[&str], ttl: Option<f64>) -> Result<Answer<SocketAddr>, ResolveError> {
    Ok(Answer { list: addresses.iter().map(|text| text.parse().unwrap()).collect(), ttl, missing: None })
}

fn failed() -> Result<Answer<SocketAddr>, ResolveError> {
    Err(ResolveError { code: -3, text: "Temporary failure in name resolution".to_owned() })
}

/// Follows a name with these answers under that parameter, and runs the test.
fn follow<F: Future<Output = ()>>(
    answers: impl IntoIterator<Item = Result<Answer<SocketAddr>, ResolveError>>,
    by: &'static str,
    story: impl FnOnce(Arc<Backend>, Rc<Answers>, LogRing) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let follows = Some(FollowedName { host: "origin.example".to_owned(), port: 8080 });
        let backend = Backend::new("boot", BackendDefinition { follows, ..definition("b") }, None, 0.0);
        let answers = Rc::new(Answers {
            list: RefCell::new(answers.into_iter().collect()),
            asked: RefCell::default(),
            began: Instant::now(),
        });
        let ring = LogRing::in_memory(1 << 20);
        ring.configure(&LogConfiguration::from(&Parameters::default()));
        let settings =
            move || FollowSettings::of(&Parameters { backend_follow_dns: by.to_owned(), ..Parameters::default() });
        let resolver = Rc::clone(&answers) as Rc<dyn Resolve>;
        let task = tokio::task::spawn_local(follow_name(Arc::clone(&backend), resolver, settings, ring.clone()));
        story(backend, answers, ring).await;
        task.abort();
    });
}

fn shown(backend: &Backend) -> Vec<String> {
    backend.addresses().iter().map(ToString::to_string).collect()
}

#[test]
fn a_backend_is_at_all_addresses_of_its_name_and_moves_with_it() {
    let answers =
        [at(&["192.0.2.2:8080", "[2001:db8::1]:8080", "192.0.2.1:8080"], None), at(&["192.0.2.3:8080"], None)];
    follow(answers, "system", async |backend, answers, ring| {
        assert_eq!(shown(&backend), ["192.0.2.1:80"], "what was found when the VCL was compiled");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(shown(&backend), ["192.0.2.1:8080", "192.0.2.2:8080", "[2001:db8::1]:8080"]);
        sleep(Duration::from_secs(30)).await;
        assert_eq!(shown(&backend), ["192.0.2.3:8080"]);
        let asked = (Source::System, "origin.example:8080".to_owned());
        assert_eq!(*answers.asked.borrow(), [(asked.0, asked.1.clone(), 0), (asked.0, asked.1, 30)]);
        let log: Vec<_> =
            ring.records().iter().map(|record| String::from_utf8_lossy(&record.payload).into_owned()).collect();
        assert!(log.contains(&"backend boot.b: origin.example is now at 192.0.2.3:8080".to_owned()), "{log:?}");
    });
}

#[test]
fn answers_count_for_as_long_as_they_say_within_bounds() {
    let answers =
        [at(&["192.0.2.1:80"], Some(7.0)), at(&["192.0.2.1:80"], Some(0.0)), at(&["192.0.2.1:80"], Some(1e9))];
    follow(answers, "dns", async |_, answers, _| {
        sleep(Duration::from_secs(3700)).await;
        let when: Vec<_> = answers.asked.borrow().iter().map(|(source, _, when)| (*source, *when)).collect();
        assert_eq!(when, [(Source::Dns, 0), (Source::Dns, 7), (Source::Dns, 8), (Source::Dns, 3608)]);
    });
}

#[test]
fn last_good_addresses_stay_while_lookups_fail_or_time_out() {
    let answers = [at(&["192.0.2.7:80"], None), failed(), at(&[], None)];
    follow(answers, "system", async |backend, answers, ring| {
        sleep(Duration::from_secs(100)).await;
        assert_eq!(shown(&backend), ["192.0.2.7:80"]);
        assert_eq!(answers.asked.borrow().len(), 4);
        let log: Vec<_> =
            ring.records().iter().map(|record| String::from_utf8_lossy(&record.payload).into_owned()).collect();
        let kept = "getaddrinfo -3 (Temporary failure in name resolution), its addresses stay as they were";
        assert!(log.iter().any(|line| line.ends_with(kept)), "{log:?}");
    });
    follow([], "system", async |backend, answers, _| {
        sleep(Duration::from_secs(65)).await;
        assert_eq!(shown(&backend), ["192.0.2.1:80"]);
        assert_eq!(answers.asked.borrow().len(), 2, "given up after half a minute, tried again half a minute later");
    });
}

#[test]
fn addresses_of_a_family_that_nothing_was_said_about_stay_and_are_asked_for_again_soon() {
    let half = |is_v6| {
        let error = ResolveError { code: -4, text: "SERVFAIL".to_owned() };
        let answer = at(&["192.0.2.2:80"], Some(3600.0)).unwrap();
        Ok(Answer { missing: Some(Missing { is_v6, error }), ..answer })
    };
    let all = ["192.0.2.1:80", "[2001:db8::1]:80"];
    follow([at(&all, Some(10.0)), half(true), at(&all[..1], None)], "dns", async |backend, answers, ring| {
        sleep(Duration::from_secs(11)).await;
        assert_eq!(shown(&backend), ["192.0.2.2:80", "[2001:db8::1]:80"]);
        let log: Vec<_> =
            ring.records().iter().map(|record| String::from_utf8_lossy(&record.payload).into_owned()).collect();
        let kept = "dns -4 (SERVFAIL), its addresses of one family stay as they were";
        assert!(log.iter().any(|line| line.ends_with(kept)), "{log:?}");
        sleep(Duration::from_secs(30)).await;
        assert_eq!((shown(&backend), answers.asked.borrow().len()), (vec![all[0].to_owned()], 3), "there are none");
    });
    follow([at(&all[..1], Some(10.0)), half(true)], "dns", async |_, answers, _| {
        sleep(Duration::from_secs(100)).await;
        assert_eq!(answers.asked.borrow().len(), 2, "nothing is missed");
    });
}
