//! One fetch for many requests.

use super::*;
use cache::Waiter;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn wait(bench: &Bench, number: u32) -> Waiter {
    match bench.look(number) {
        Lookup::Wait(waiter) => waiter,
        other => panic!("{number}: {other:?}"),
    }
}

fn is_woken(waiter: &Waiter) -> bool {
    pin!(waiter.wait()).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

#[test]
fn requests_wait_for_the_one_fetch_and_are_woken_in_a_growing_rush() {
    let mut bench = Bench::new();
    let busy = bench.miss(1);
    assert!(!busy.has_waiters());
    let mut waiters: Vec<Waiter> = (0..10).map(|_| wait(&bench, 1)).collect();
    assert!(busy.has_waiters() && !waiters.iter().any(is_woken));
    let object = bench.make(1, &fresh(10.0));
    busy.publish(&object);
    let woken = |waiters: &[Waiter]| waiters.iter().filter(|waiter| is_woken(waiter)).count();
    assert_eq!(woken(&waiters), 3, "rush_exponent");
    bench.hit(1);
    waiters.remove(0);
    assert_eq!(woken(&waiters), 2 + 3);
    waiters.drain(..2);
    assert_eq!(woken(&waiters), 7);
    drop(waiters);
    assert_eq!((bench.total(Main::BusySleep), bench.total(Main::BusyWakeup)), (10, 10));
    assert_eq!((bench.total(Main::NObjecthead), bench.total(Main::NObjectcore)), (1, 1));
}

#[test]
fn a_failed_fetch_lets_one_of_the_waiting_fetch_and_the_rest_wait_on() {
    let bench = Bench::new();
    let busy = bench.miss(1);
    let waiters: Vec<Waiter> = (0..9).map(|_| wait(&bench, 1)).collect();
    drop(busy);
    let woken: Vec<_> = waiters.iter().filter(|waiter| is_woken(waiter)).collect();
    assert_eq!(woken.len(), 3);
    let _second = bench.miss(1);
    let again: Vec<Waiter> = woken.iter().map(|_| wait(&bench, 1)).skip(1).collect();
    let mut others: Vec<Waiter> = waiters;
    others.drain(..3);
    assert!(!others.iter().chain(&again).any(is_woken), "waking more would be in vain");
}

#[test]
fn cancelled_waiter_stops_no_other() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.rush_exponent = 2);
    let busy = bench.miss(1);
    let mut waiters: Vec<Waiter> = (0..6).map(|_| wait(&bench, 1)).collect();
    // Cancelled while parked: not counted as woken.
    drop(waiters.remove(0));
    let object = bench.make(1, &fresh(10.0));
    busy.publish(&object);
    // Cancelled after being woken, without a lookup: the wake is passed on.
    drop(waiters.remove(0));
    drop(waiters.remove(0));
    assert!(waiters.iter().all(is_woken));
    drop(waiters);
    let busy = bench.ask(&key(2), &request("/", &[]), |_| {});
    let waiter = wait(&bench, 2);
    drop(waiter);
    drop(busy);
    assert_eq!(bench.total(Main::NObjecthead), 1, "nothing is left behind");
}

#[test]
fn a_waiter_in_another_thread_is_woken() {
    let mut bench = Bench::new();
    let busy = bench.miss(1);
    let waiter = wait(&bench, 1);
    let thread = std::thread::spawn(move || block_on(waiter.wait()));
    let object = bench.make(1, &fresh(10.0));
    busy.publish(&object);
    thread.join().unwrap();
}

#[test]
fn requests_that_ignore_busy_or_another_variant_do_not_wait() {
    let mut bench = Bench::new();
    bench.put(1, &Made { vary: vary("Foo", "a"), ..fresh(10.0) });
    let ask = |bench: &Bench, value: &str, ignore_busy| {
        bench.ask(&key(1), &request("/", &[("Foo", value)]), |lookup_request| lookup_request.ignore_busy = ignore_busy)
    };
    // The stored variant shows which headers the next one will vary on.
    let Lookup::Miss { busy: b, .. } = ask(&bench, "b", false) else { panic!("nobody fetches b") };
    let Lookup::Miss { busy: c, .. } = ask(&bench, "c", false) else { panic!("c need not wait for b") };
    assert!(matches!(ask(&bench, "b", false), Lookup::Wait(_)));
    assert!(matches!(ask(&bench, "b", true), Lookup::Miss { .. }));
    c.set_vary(&vary("Foo", "d"));
    assert!(matches!(ask(&bench, "d", false), Lookup::Wait(_)));
    drop((b, c));
    assert_eq!(bench.total(Main::NObjectcore), 1);
}

#[test]
fn in_many_threads_there_is_one_fetch_at_a_time_and_every_request_is_served() {
    let (bench, fetches) = (Bench::new(), std::sync::atomic::AtomicUsize::new(0));
    let (cache, under_way) = (&bench.cache, std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (fetches, under_way) = (&fetches, &under_way);
            scope.spawn(move || {
                let own = Bench { cache: cache.clone(), xid: thread * 1000, ..Bench::with(cache.clone()) };
                block_on(async {
                    for round in 0..200u32 {
                        let number = round % 20;
                        let mut waiter: Option<Waiter> = None;
                        loop {
                            match own.look(number) {
                                Lookup::Hit(_) => break,
                                Lookup::Wait(next) => {
                                    drop(waiter.replace(next));
                                    if let Some(waiter) = &waiter {
                                        waiter.wait().await;
                                    }
                                }
                                Lookup::Miss { busy, .. } => {
                                    use std::sync::atomic::Ordering::SeqCst;
                                    assert!(under_way.fetch_add(1, SeqCst) < 4);
                                    fetches.fetch_add(1, SeqCst);
                                    // Every third fetch fails.
                                    if !fetches.load(SeqCst).is_multiple_of(3) {
                                        let attributes = ObjectAttributes {
                                            key: key(number),
                                            origin: own.now,
                                            ttl: 1e6,
                                            ..ObjectAttributes::default()
                                        };
                                        let object = cache.store().create(&attributes, &head(&[])).unwrap();
                                        object.finish();
                                        busy.publish(&object);
                                    }
                                    under_way.fetch_sub(1, SeqCst);
                                }
                                other => panic!("{other:?}"),
                            }
                        }
                    }
                });
            });
        }
    });
    assert_eq!(bench.total(Main::NObject), 20, "one object a key: nobody fetched beside another");
    assert_eq!(bench.total(Main::NObjecthead), 20);
    assert_eq!(bench.total(Main::NObjectcore), 20);
}
