//! The choice: shares, stickiness, hostile properties; and the keys of the groups.

use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn canary(stick: Stick, share: u32, secret: u64) -> Arc<Canary> {
    let salts = Some([[1; 32], [2; 32]]);
    Arc::new(Canary { share, stick, secret: [secret, 7], salts, counts: Default::default() })
}

fn request(fields: &[(&str, &str)]) -> Message {
    let mut request = Message::new();
    fields.iter().for_each(|(name, value)| request.append(name.as_bytes(), value.as_bytes()));
    request
}

const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[test]
fn groups_have_their_share_and_a_client_stays_in_its_own() {
    let canary = canary(Stick::Cookie("sid".into()), 500, 3);
    let mut sizes = [0; 3];
    for number in 0..20_000 {
        let mine = request(&[("Cookie", &format!("a=1; sid=u{number}; b=2"))]);
        let group = canary.group(&mine, SOMEWHERE);
        sizes[group.map_or(2, |group| group as usize)] += 1;
        let later = request(&[("Cookie", &format!("new=9;sid = u{number}"))]);
        assert_eq!(canary.group(&later, IpAddr::V6(Ipv6Addr::LOCALHOST)), group);
    }
    // Five standard deviations.
    assert!(sizes[..2].iter().all(|size| (846..=1154).contains(size)), "{sizes:?}");
}

#[test]
fn under_a_twentieth_of_a_tenth_of_clients_is_chosen_by_two_canaries_in_a_row() {
    // Each canary has a secret of its own: the same clients are not always those on trial.
    let (first, second) = (canary(Stick::Ip, 500, 1), canary(Stick::Ip, 500, 2));
    let clients = (0..20_000_u32).map(|number| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)));
    let nothing = Message::new();
    let is_in = |canary: &Canary, client: IpAddr| canary.group(&nothing, client) == Some(Group::Canary);
    let both = clients.filter(|client| is_in(&first, *client) && is_in(&second, *client)).count();
    assert!(both < 100, "{both} of 20,000 clients");
}

#[test]
fn a_request_without_the_property_is_in_no_group() {
    let by_cookie = canary(Stick::Cookie("sid".into()), 5000, 1);
    for value in ["", "other=1", "sid", "sid=", "sid2=1", "xsid=1", ";;;=;", "SID=1"] {
        assert_eq!(by_cookie.group(&request(&[("Cookie", value)]), SOMEWHERE), None, "{value}");
    }
    let by_header = canary(Stick::Header("X-User".into()), 5000, 1);
    assert_eq!(by_header.group(&request(&[]), SOMEWHERE), None);
    assert_eq!(by_header.group(&request(&[("X-User", "")]), SOMEWHERE), None);
    assert!(by_header.group(&request(&[("x-user", "1")]), SOMEWHERE).is_some());
}

#[test]
fn hostile_properties_are_only_hashed_and_the_first_cookie_counts() {
    let canary = canary(Stick::Cookie("sid".into()), 5000, 1);
    let huge = "x".repeat(60_000);
    let group = canary.group(&request(&[("Cookie", &format!("sid={huge}"))]), SOMEWHERE);
    assert!(group.is_some());
    let many = "sid=first; ".to_owned() + &"sid=other; ".repeat(5_000);
    let first = canary.group(&request(&[("Cookie", "sid=first")]), SOMEWHERE);
    assert_eq!(canary.group(&request(&[("Cookie", &many)]), SOMEWHERE), first);
    // Fields that HTTP/2 has split.
    assert_eq!(canary.group(&request(&[("Cookie", "a=1"), ("Cookie", "sid=first")]), SOMEWHERE), first);
    let bytes = canary.group(&request(&[("Cookie", "sid=\u{1}\u{7f}\u{fffd}")]), SOMEWHERE);
    assert!(bytes.is_some());
}

#[test]
fn addresses_of_one_client_are_one_property() {
    assert_eq!(network("2001:db8::1:2".parse().unwrap()), network("2001:db8::ffff:1".parse().unwrap()));
    assert_ne!(network("2001:db8:0:1::1".parse().unwrap()), network("2001:db8::1".parse().unwrap()));
    assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), network("192.0.2.1".parse().unwrap()));
}

#[test]
fn each_group_has_keys_of_its_own_that_lead_back_to_the_plain_one() {
    let canary = canary(Stick::Ip, 500, 1);
    let plain = [9; 32];
    let [own, of_canary, of_control] = canary.keys(&plain);
    assert_eq!(own, Some(plain));
    assert!(of_canary != own && of_control != own && of_canary != of_control);
    let member = Member { canary: Arc::clone(&canary), group: Group::Control };
    assert_eq!(Some(member.key(plain)), of_control);
    assert_eq!(member.key(member.key(plain)), plain);
}

#[test]
fn requests_are_counted_by_what_became_of_them() {
    let canary = canary(Stick::Ip, 500, 1);
    let member = Member { canary: Arc::clone(&canary), group: Group::Canary };
    let ended = |status, handling, reason| Finished { status, handling, reason, nanoseconds: 1_000_000 };
    member.count(ended(200, Handling::Hit, None));
    member.count(ended(200, Handling::Miss, Some(Reason::MissAbsent)));
    member.count(ended(503, Handling::Error, Some(Reason::ConnectRefused)));
    member.count(ended(200, Handling::HitStale, Some(Reason::StaleOnError)));
    member.count(ended(503, Handling::Error, Some(Reason::VclFailed)));
    let [counts, other] = &canary.counts;
    let of = |counter: &AtomicU64| counter.load(Relaxed);
    assert_eq!((of(&counts.requests), of(&counts.errors), of(&counts.failures)), (5, 2, 2));
    assert_eq!((of(&counts.lookups), of(&counts.hits), of(&other.requests)), (3, 2, 0));
    assert_eq!(counts.durations.iter().map(of).sum::<u64>(), 5);
}
