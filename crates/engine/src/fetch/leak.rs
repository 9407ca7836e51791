//! Leak guard (parameter `leak_guard`): finds responses of one client that VCL has stored for all.
//!
//! Two findings. *Marked*: the request had Cookie or Authorization, the origin sent Set-Cookie,
//! `private` or `no-store`, and the response is stored anyway. Set-Cookie that VCL removed from a
//! response with `public` or `s-maxage` is none. *Differs*: under one key, other
//! credentials got another body within seconds (`leak_guard.rs`). Credentials are those that the
//! origin received: a cookie that VCL removed before cannot have an effect. Those that Vary names
//! are part of the key. Under `refuse` the response is not stored: the index gets a hit-for-miss
//! marker; while bodies are compared, only the client that ordered the fetch gets the response.
//! *Non-goal:* keys that VCL makes of a cookie by itself look like any other; `Vary: Cookie` does
//! not. Next file: `cacheability.rs`.

use super::evidence::{Evidence, Watched};
use super::{Fetch, FetchMode};
use crate::leak_guard::{After, Before};
use crate::world::Decision;
use message::Message;
use semantics::rfc::{PrivateMark, Refusal};
use semantics::vary::{self, depends_on};
use store::ObjectFlags;
use surface::counter::Main;
use surface::limits::LEAK_GUARD_REFUSAL_SECONDS;
use surface::parameter::LeakGuard;
use surface::reason::Reason;

/// Header fields with credentials; the number distinguishes their values.
const CREDENTIALS: [(u8, &str); 2] = [(0, "Cookie"), (1, "Authorization")];

impl Fetch {
    fn leak_guard(&self) -> LeakGuard {
        if self.task.order.mode == FetchMode::Pass && !self.task.life.answers_get {
            return LeakGuard::Off;
        }
        self.task.order.parameters.leak_guard(self.follows_rfc())
    }

    /// Collects the facts of which VCL may leave no trace.
    pub(super) fn collect_evidence(&mut self) {
        self.task.attempt.watched = None;
        if self.leak_guard() == LeakGuard::Off {
            return;
        }
        let (bereq, beresp) = (&self.task.bereq, &self.task.attempt.beresp);
        let [has_cookie, has_authorization] = CREDENTIALS.map(|(_, name)| has_value(bereq, name));
        let mark = if has_cookie || has_authorization {
            let targets = if self.follows_rfc() { &*self.task.order.parameters.cache_control_targets } else { "" };
            PrivateMark::of(beresp, targets)
        } else {
            None
        };
        self.task.attempt.evidence = Evidence { mark, has_cookie, has_authorization, changed_by: None };
    }

    /// Judges a response that VCL has accepted, before it is stored.
    pub(super) fn guard_against_leaks(&mut self) {
        let guard = self.leak_guard();
        let is_shared = !self.task.is_uncacheable()
            && self.task.life.busy.is_some()
            && self.task.attempt.verdict.lives_at(self.now());
        if guard == LeakGuard::Off || !is_shared {
            return;
        }
        let Evidence { mark, has_cookie, has_authorization, .. } = self.task.attempt.evidence;
        let beresp = &self.task.attempt.beresp;
        let counts =
            [has_cookie && !depends_on(beresp, "Cookie"), has_authorization && !depends_on(beresp, "Authorization")];
        // Without its cookie, such a response is for all.
        let is_mended = mark == Some(PrivateMark::SetCookieOnly) && !beresp.has("Set-Cookie");
        match mark.filter(|_| counts.contains(&true) && !is_mended) {
            Some(_) => self.found_marked(guard),
            None => self.watch(counts, guard),
        }
    }

    fn found_marked(&mut self, guard: LeakGuard) {
        self.context.count(Main::LeaksFound);
        if guard == LeakGuard::Refuse {
            self.refuse_leak(Refusal::Marked);
        } else {
            let details = self.leak_details();
            self.why(Reason::LeakMarked, &details);
        }
    }

    /// Details of a marked response: the place, and the mark.
    pub(super) fn leak_details(&self) -> String {
        let mark = self.task.attempt.evidence.mark.map_or("", PrivateMark::word);
        format!("{}marks={mark}", self.place_of_change())
    }

    /// `at=… in=… `: the place where VCL changed a marking header, else where it set the ttl.
    fn place_of_change(&self) -> String {
        let attempt = &self.task.attempt;
        let noted = attempt.evidence.changed_by.as_ref().or(attempt.verdict.ttl_by[0].as_ref());
        let program = &self.task.order.vcl.program;
        noted.map_or(String::new(), |noted| format!("{} ", Decision::noted(noted, program)))
    }

    fn refuse_leak(&mut self, refusal: Refusal) {
        self.context.count(Main::LeaksRefused);
        let verdict = &mut self.task.attempt.verdict;
        verdict.refusal = Some(refusal);
        verdict.is_vouched_for = false;
    }

    /// Has the body compared if the request had credentials, or if others under this key had some.
    /// `counts`: Cookie and Authorization are credentials here.
    fn watch(&mut self, counts: [bool; 2], guard: LeakGuard) {
        let leaks = &self.context.engine.leaks;
        let now = self.now();
        let is_whole = self.task.attempt.slice.is_none() && self.task.attempt.part.stored().is_none();
        if !is_whole || (counts == [false; 2] && leaks.is_quiet(now)) {
            return;
        }
        let (bereq, beresp) = (&self.task.bereq, &self.task.attempt.beresp);
        let Ok(variant) = vary::encode(beresp, bereq, self.task.order.gzip_support) else { return };
        let key = leaks.key(&self.task.order.digest, &variant.unwrap_or_default());
        let kinds = CREDENTIALS.iter().zip(counts).filter(|(_, counts)| *counts);
        let values = kinds.flat_map(|((kind, name), _)| bereq.get_all(name).map(|value| (*kind, value)));
        let credentials = leaks.credentials(values);
        let before = leaks.before(key, credentials, now);
        match before {
            Before::Refused if guard == LeakGuard::Refuse => return self.refuse_leak(Refusal::Differs),
            Before::Nothing if credentials == 0 => return,
            Before::Refused | Before::Nothing | Before::Others => {}
        }
        let is_held = before == Before::Others && guard == LeakGuard::Refuse;
        self.task.attempt.watched = Some(Box::new(Watched { key, credentials, body: leaks.body(), is_held }));
    }

    /// Compares the body, of which everything has been received, and takes it back if it must not
    /// be shared. Must be called before the object is complete: then it cannot return after a
    /// crash.
    pub(super) fn compare_body(&mut self) {
        let Some(watched) = self.task.attempt.watched.take().filter(|_| self.task.attempt.kept.is_stored) else {
            return;
        };
        let refuses = self.leak_guard() == LeakGuard::Refuse;
        let Watched { key, credentials, body, is_held } = *watched;
        let after = self.context.engine.leaks.after(key, credentials, body.finish(), self.now(), refuses);
        match after {
            After::Differs if refuses => {
                self.context.count(Main::LeaksFound);
                self.context.count(Main::LeaksRefused);
                self.take_back();
            }
            After::Differs => {
                self.context.count(Main::LeaksFound);
                let details = self.place_of_change();
                self.why(Reason::LeakDiffers, details.trim_end());
            }
            After::NotCompared => self.context.count(Main::LeakKeysDropped),
            After::Same => {}
        }
        if is_held && after != After::Differs {
            self.publish_held();
        }
    }

    /// Adds an object to the index that only its own client has got so far.
    fn publish_held(&mut self) {
        if let (Some(busy), Some(object)) = (&self.task.life.busy, &self.task.attempt.kept.object) {
            busy.publish(object);
        }
    }

    /// Removes an object from the index, or keeps it out; a marker takes its place.
    fn take_back(&mut self) {
        self.why(Reason::NotStoredDiffers, "");
        self.task.attempt.kept.is_stored = false;
        let Some(object) = self.task.attempt.kept.object.clone() else { return };
        self.context.engine.cache.remove(&object);
        let mut attributes = self.attributes(ObjectFlags::HIT_FOR_MISS, object.vary().to_vec());
        attributes.origin = self.now();
        (attributes.ttl, attributes.grace, attributes.keep) = (LEAK_GUARD_REFUSAL_SECONDS, 0.0, 0.0);
        if let Some(marker) = self.make_marker(attributes)
            && let Some(busy) = self.task.life.busy.take()
        {
            self.task.attempt.kept.is_marked = true;
            busy.publish(&marker);
        }
    }
}

fn has_value(request: &Message, name: &str) -> bool {
    request.get_all(name).any(|value| !value.trim_ascii().is_empty())
}
