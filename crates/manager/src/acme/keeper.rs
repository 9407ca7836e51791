//! Keeper of the certificates: one task of the manager that obtains missing certificates and renews
//! all of them.
//!
//! ```text
//!   read the folder ─▶ is one due? ─▶ take the lock ─▶ read again ─▶ order ─▶ store and install
//!          ▲               │ no           │ held by another server     └ failure ─▶ pause
//!          └───────────────┴──────────────┴─────────────────────────────────────────┘
//! ```
//!
//! The folder is polled for changes by other servers: a certificate that one of them obtained is
//! installed here, and challenges of their orders are answered here too. Files are read and written
//! off the manager's loop.

use super::conversation::{self, OrderRequest, Partner, Said};
use super::failure::Failure;
use super::folder::{Answer, Damage, Folder, Stamp, Stored};
use super::plan::{self, Failed, Kind, Record};
use super::table::Acme;
use crate::arguments::acme::Way;
use crate::clock::now;
use crate::report::Level;
use crate::state::Manager;
use crate::tls::apply;
use crate::tls::registry::{Certificate, Origin};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use semantics::date::rfc3339;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tls::certificate::{LoadedCertificate, Pem};
use tls::table::HttpChallenge;
use tokio::sync::mpsc;
use tokio::task::{spawn_blocking, spawn_local};

/// Interval between polls of the folder.
const LOOK: Duration = Duration::from_secs(2);
/// Time after which other servers have loaded the answers to a challenge.
const SEEN: Duration = Duration::from_secs(3);
/// The pause after a fault of our own.
const AFTER_FAULT: Duration = Duration::from_secs(60);
/// Interval between reads of the record that other servers may have changed, in polls.
const LOOKS_PER_RECORD: u32 = 15;
/// Shortest and longest interval between requests for renewal advice, in seconds.
const ADVICE_SECONDS: (f64, f64) = (3600.0, 86_400.0);

/// Loads the folder's certificates before the first worker starts.
///
/// # Errors
/// The folder cannot be used.
pub async fn begin(manager: &Rc<Manager>) -> Result<(), String> {
    let Some(acme) = &manager.acme else { return Ok(()) };
    acme.folder.prepare().map_err(|error| format!("The folder for -o acme cannot be used: {error}"))?;
    // Leftovers of an interrupted order.
    let _ = in_folder(acme, |folder| if folder.lock()?.is_some() { folder.set_answers(&[]) } else { Ok(()) }).await;
    look(manager, acme, true).await;
    for item in acme.items.borrow().iter().filter(|item| item.held.is_none()) {
        let (names, authority) = (item.names(), acme.authority());
        let text =
            format!("ACME: there is no certificate for {names} yet; until {authority} has issued it, handshakes fail");
        manager.say(Level::Warning, text);
    }
    spawn_local(supervise(manager.clone()));
    Ok(())
}

/// Runs the keeper, and restarts it after a panic: certificates must not expire because of a bug
/// here.
async fn supervise(manager: Rc<Manager>) {
    while spawn_local(keep(manager.clone())).await.is_err() {
        manager.say(Level::Error, "ACME: the keeper of certificates panicked; it goes on in a minute");
        tokio::time::sleep(AFTER_FAULT).await;
    }
}

async fn keep(manager: Rc<Manager>) {
    let Some(acme) = &manager.acme else { return };
    // A fault may have ended an order.
    acme.items.borrow_mut().iter_mut().for_each(|item| item.is_ordering = false);
    let mut answered = Vec::new();
    for looks in 0_u32.. {
        if looks > 0 {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = acme.wake.notified() => {}
            }
        }
        if manager.ending.get() {
            return;
        }
        look(&manager, acme, looks.is_multiple_of(LOOKS_PER_RECORD)).await;
        answer_for_others(&manager, acme, &mut answered).await;
        // Challenges are answered by the worker.
        if manager.running_worker().is_none() {
            continue;
        }
        ask_advice(&manager, acme);
        let due = acme.items.borrow().iter().position(|item| item.due_at() <= now());
        if let Some(index) = due {
            attempt(&manager, acme, index).await;
            // The answers have been removed.
            answered.clear();
        }
    }
}

/// Reads the folder, and installs certificates that were not there before.
async fn look(manager: &Rc<Manager>, acme: &Acme, with_records: bool) {
    let count = acme.items.borrow().len();
    for index in 0..count {
        look_at(manager, acme, index, with_records).await;
    }
}

async fn look_at(manager: &Rc<Manager>, acme: &Acme, index: usize, with_record: bool) {
    let (name, known) = {
        let items = acme.items.borrow();
        let item = &items[index];
        let known = item.held.as_ref().filter(|held| held.is_served || !with_record);
        (item.name().to_owned(), known.map_or(Stamp::default(), |held| held.stamp))
    };
    let found = in_folder(acme, move |folder| {
        let is_new = folder.stamp(&name) != known;
        let certificate = if is_new { folder.certificate(&name) } else { Ok(None) };
        let record = if is_new || with_record { folder.record(&name).map(Some) } else { Ok(None) };
        Ok((certificate, record))
    });
    let Ok((certificate, record)) = found.await else { return };
    if let Some(record) = undamaged(manager, record).flatten() {
        let item = &mut acme.items.borrow_mut()[index];
        // An unsaved failure counts anyway: a full disk must not make us order without pause.
        if !item.is_unsaved {
            item.record = record;
        }
    }
    if let Some(stored) = undamaged(manager, certificate).flatten() {
        take_over(manager, acme, index, stored).await;
    }
}

fn undamaged<T>(manager: &Manager, found: Result<T, Damage>) -> Option<T> {
    found.map_err(|Damage(text)| manager.say(Level::Error, format!("ACME: {text}"))).ok()
}

/// Installs a certificate, and serves it.
async fn take_over(manager: &Rc<Manager>, acme: &Acme, index: usize, stored: Stored) {
    let Stored { stamp, loaded } = stored;
    let facts = loaded.facts.clone();
    let (names, listeners) = {
        let mut items = acme.items.borrow_mut();
        let item = &mut items[index];
        let der = loaded.chain.first().cloned().unwrap_or_default();
        item.hold(stamp, facts.clone(), der, rand::random());
        (item.wanted.names.clone(), item.wanted.listeners.clone())
    };
    let until = rfc3339(facts.not_after as f64);
    if let Some(missing) = names.iter().find(|name| !facts.names.contains(name)) {
        manager.say(
            Level::Warning,
            format!("ACME: the certificate for {} is not for {missing}: a new one is due", names[0]),
        );
    }
    if facts.not_after as f64 <= now() {
        manager.say(
            Level::Warning,
            format!("ACME: the certificate for {} expired at {until}: a new one is due", names[0]),
        );
    }
    let installed = apply::change(manager, |registry| {
        for (number, listener) in listeners.iter().enumerate() {
            let id = if number == 0 { format!("acme:{}", names[0]) } else { format!("acme:{}@{listener}", names[0]) };
            let frontend = Some(listener.clone());
            let loaded = loaded.clone();
            registry.put(Certificate { id, frontend, loaded, ocsp: None, origin: Origin::Acme, is_default: false })?;
        }
        Ok(())
    });
    match installed.await {
        Ok(()) => {
            if let Some(held) = &mut acme.items.borrow_mut()[index].held {
                held.is_served = true;
            }
            let (names, serial) = (names.join("+"), &facts.serial);
            manager.say(
                Level::Info,
                format!("ACME: serving the certificate for {names}, serial {serial}, valid until {until}"),
            );
        }
        Err(text) => {
            manager.say(Level::Error, format!("ACME: the certificate for {} cannot be served: {text}", names[0]))
        }
    }
}

/// Serves the answers in the folder if they changed: another server is ordering.
async fn answer_for_others(manager: &Rc<Manager>, acme: &Acme, answered: &mut Vec<Answer>) {
    let Ok(answers) = in_folder(acme, |folder| Ok(folder.answers())).await else { return };
    if answers != *answered && set_answers(manager, &answers).await.is_ok() {
        *answered = answers;
    }
}

/// Requests renewal advice from the authority, if that is due.
fn ask_advice(manager: &Rc<Manager>, acme: &Acme) {
    let (now, count) = (now(), acme.items.borrow().len());
    for index in 0..count {
        let asked = {
            let mut items = acme.items.borrow_mut();
            let item = &mut items[index];
            match &item.held {
                Some(held) if item.advice_at <= now && !item.is_ordering => {
                    let der = held.der.clone();
                    item.advice_at = now + ADVICE_SECONDS.1;
                    Some((der, held.stamp))
                }
                _ => None,
            }
        };
        if let Some((der, stamp)) = asked {
            spawn_local(take_advice(manager.clone(), index, der, stamp));
            // The others are handled in the next rounds.
            return;
        }
    }
}

async fn take_advice(manager: Rc<Manager>, index: usize, der: Vec<u8>, stamp: Stamp) {
    let Some(acme) = &manager.acme else { return };
    let Ok(Some(account)) = in_folder(acme, |folder| Ok(folder.account().ok().flatten())).await else { return };
    let advice = conversation::window(partner(&manager, acme, Some(account)), der).await;
    let mut items = acme.items.borrow_mut();
    let item = &mut items[index];
    let (name, now) = (item.name().to_owned(), now());
    match advice {
        Ok(Some((window, again))) => {
            item.advice_at = now + again.as_secs_f64().clamp(ADVICE_SECONDS.0, ADVICE_SECONDS.1);
            if let Some(held) = item.held.as_mut().filter(|held| held.stamp == stamp) {
                let (from, until) = (held.facts.not_before as f64, held.facts.not_after as f64);
                held.renew_at = plan::advised(from, until, window, rand::random());
                let at = rfc3339(held.renew_at);
                let authority = acme.authority();
                manager.say(Level::Debug, format!("ACME: {authority} has the certificate for {name} renewed at {at}"));
            }
        }
        Ok(None) => {}
        Err(Failure { text, .. }) => {
            item.advice_at = now + ADVICE_SECONDS.0;
            manager.say(Level::Debug, format!("ACME: no advice when to renew the certificate for {name}: {text}"));
        }
    }
}

/// Orders a certificate if it is still due and no other server is ordering it.
async fn attempt(manager: &Rc<Manager>, acme: &Acme, index: usize) {
    // Removing the folder is how an operator starts afresh.
    let lock = in_folder(acme, |folder| folder.prepare().map_err(io::Error::other).and_then(|()| folder.lock()));
    let lock = match lock.await {
        Ok(Some(lock)) => lock,
        // Another server is ordering; its result will be found in the folder.
        Ok(None) => return,
        Err(error) => return failed(manager, acme, index, Way::Http, &ours(&error)).await,
    };
    look_at(manager, acme, index, true).await;
    if acme.items.borrow()[index].due_at() > now() {
        return;
    }
    // A certificate that could not be stored is not ordered.
    if let Err(error) = save_record(acme, index).await {
        return failed(manager, acme, index, Way::Http, &ours(&error)).await;
    }
    let order_request = {
        let mut items = acme.items.borrow_mut();
        let item = &mut items[index];
        item.is_asked = false;
        item.is_ordering = true;
        let way = item.record.way(&acme.ways).unwrap_or(Way::Http);
        OrderRequest {
            names: item.wanted.names.clone(),
            way,
            replaces: item.held.as_ref().map(|held| held.der.clone()),
        }
    };
    let (names, authority, way) = (order_request.names.join("+"), acme.authority(), order_request.way);
    manager.say(Level::Info, format!("ACME: ordering a certificate for {names} from {authority} by {}", way.name()));
    let result = converse(manager, acme, order_request).await;
    if let Err(text) = withdraw(manager, acme).await {
        manager.say(Level::Warning, format!("ACME: challenges could not be removed: {text}"));
    }
    let result = match result {
        Ok(pem) => keep_issued(acme, index, way, pem).await,
        Err(failure) => Err(failure),
    };
    match result {
        Ok(stored) => take_over(manager, acme, index, stored).await,
        Err(failure) => failed(manager, acme, index, way, &failure).await,
    }
    // Only now: the result is shown once it would also survive a kill.
    acme.items.borrow_mut()[index].is_ordering = false;
    drop(lock);
}

/// Runs the order's messages: stores accounts and certificates, serves answers.
async fn converse(manager: &Rc<Manager>, acme: &Acme, order_request: OrderRequest) -> Result<String, Failure> {
    let account = in_folder(acme, |folder| Ok(folder.account())).await.map_err(|error| ours(&error))?;
    let account = undamaged(manager, account).flatten();
    let had_account = account.is_some();
    let (says, mut said) = mpsc::unbounded_channel();
    let order = conversation::order(partner(manager, acme, account), order_request, says);
    tokio::pin!(order);
    let result = loop {
        tokio::select! {
            biased;
            Some(said) = said.recv() => hear(manager, acme, said).await,
            result = &mut order => break result,
        }
    };
    while let Ok(said) = said.try_recv() {
        hear(manager, acme, said).await;
    }
    let is_unknown = had_account && result.as_ref().is_err_and(|failure| failure.kind == Kind::AccountUnknown);
    if is_unknown && let Ok(Damage(text)) = in_folder(acme, |folder| Ok(folder.set_account_aside())).await {
        manager.say(Level::Warning, format!("ACME: {text}"));
    }
    result
}

async fn hear(manager: &Rc<Manager>, acme: &Acme, said: Said) {
    match said {
        Said::Account(text) => {
            let saved = in_folder(acme, move |folder| folder.save_account(&text)).await;
            match saved {
                Ok(()) => manager.say(Level::Info, format!("ACME: there is an account at {} now", acme.authority())),
                Err(error) => {
                    manager.say(Level::Error, format!("ACME: the account cannot be saved: {}", text_of(&error)))
                }
            }
        }
        Said::Answers(answers, placed) => match place(manager, acme, answers).await {
            // The receiver may have been dropped.
            Ok(()) => _ = placed.send(()),
            Err(text) => manager.say(Level::Error, format!("ACME: challenges cannot be answered: {text}")),
        },
    }
}

/// Makes the challenges answered, here and by other servers.
async fn place(manager: &Rc<Manager>, acme: &Acme, answers: Vec<Answer>) -> Result<(), String> {
    let copy = answers.clone();
    in_folder(acme, move |folder| folder.set_answers(&copy)).await.map_err(|error| text_of(&error))?;
    set_answers(manager, &answers).await?;
    tokio::time::sleep(SEEN).await;
    Ok(())
}

async fn withdraw(manager: &Rc<Manager>, acme: &Acme) -> Result<(), String> {
    in_folder(acme, |folder| folder.set_answers(&[])).await.map_err(|error| text_of(&error))?;
    set_answers(manager, &[]).await
}

/// Sends the answers to the worker.
async fn set_answers(manager: &Rc<Manager>, answers: &[Answer]) -> Result<(), String> {
    let of = |way: Way| answers.iter().filter(move |answer| answer.way == way);
    let http = of(Way::Http)
        .map(|answer| HttpChallenge { token: answer.token.clone(), answer: answer.authorization.clone() })
        .collect();
    let alpn = of(Way::TlsAlpn).map(challenge_certificate).collect::<Result<Vec<_>, String>>()?;
    apply::change(manager, |registry| {
        registry.set_http_challenges(http);
        registry.set_alpn_challenges(alpn);
        Ok(())
    })
    .await
}

/// The certificate that answers a challenge in a handshake. Source: RFC 8737 §3.
fn challenge_certificate(answer: &Answer) -> Result<LoadedCertificate, String> {
    let text = |error: rcgen::Error| error.to_string();
    let key = KeyPair::generate().map_err(text)?;
    let mut parameters = CertificateParams::new(vec![answer.name.clone()]).map_err(text)?;
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(&answer.digest)];
    let certificate = parameters.self_signed(&key).map_err(text)?;
    let pem = format!("{}{}", certificate.pem(), key.serialize_pem());
    Pem::read(pem.as_bytes(), None).map_err(|error| error.to_string())
}

/// Checks the issued certificate, and stores it.
async fn keep_issued(acme: &Acme, index: usize, way: Way, pem: String) -> Result<Stored, Failure> {
    let loaded = Pem::read(pem.as_bytes(), None)
        .map_err(|error| Failure::new(Kind::Refused, &format!("what was issued is of no use: {error}")))?;
    let (name, record) = {
        let items = acme.items.borrow();
        let item = &items[index];
        if let Some(missing) = item.wanted.names.iter().find(|name| !loaded.facts.names.contains(name)) {
            return Err(Failure::new(Kind::Refused, &format!("what was issued is not for {missing}")));
        }
        if loaded.facts.not_after as f64 <= now() {
            return Err(Failure::new(Kind::Refused, "what was issued has expired: is the clock right?"));
        }
        (item.name().to_owned(), Record::succeeded(way))
    };
    let saved = record.clone();
    let stamp = in_folder(acme, move |folder| {
        folder.save_certificate(&name, pem.as_bytes())?;
        folder.save_record(&name, &saved)?;
        Ok(folder.stamp(&name))
    });
    let stamp = stamp.await.map_err(|error| ours(&error))?;
    acme.items.borrow_mut()[index].record = record;
    Ok(Stored { stamp, loaded })
}

/// Records a failure, and logs it once.
async fn failed(manager: &Rc<Manager>, acme: &Acme, index: usize, way: Way, failure: &Failure) {
    let (names, next_try, level) = {
        let mut items = acme.items.borrow_mut();
        let item = &mut items[index];
        item.is_asked = false;
        let retry_after_seconds = failure.retry_after.map(|wait| wait.as_secs_f64());
        let failed = Failed { kind: failure.kind, text: &failure.text, way, retry_after_seconds };
        item.record.fail(now(), &failed, &acme.ways, rand::random());
        let level = if item.held.is_some() { Level::Warning } else { Level::Error };
        (item.names(), item.record.next_try, level)
    };
    let (authority, next, text) = (acme.authority(), rfc3339(next_try), &failure.text);
    manager.say(level, format!("ACME: no certificate for {names} from {authority}: {text}; next try at {next}"));
    if let Err(error) = save_record(acme, index).await {
        manager.say(Level::Error, format!("ACME: what happened cannot be saved: {}", text_of(&error)));
    }
}

/// Saves the record of orders for a certificate, and notes whether that succeeded.
async fn save_record(acme: &Acme, index: usize) -> io::Result<()> {
    let (name, record) = {
        let items = acme.items.borrow();
        (items[index].name().to_owned(), items[index].record.clone())
    };
    let saved = in_folder(acme, move |folder| folder.save_record(&name, &record)).await;
    acme.items.borrow_mut()[index].is_unsaved = saved.is_err();
    saved
}

fn partner(manager: &Manager, acme: &Acme, account: Option<serde_json::Value>) -> Partner {
    Partner {
        directory: acme.argument.directory.clone(),
        authorities: acme.argument.authorities.clone(),
        contact: acme.argument.contact.clone(),
        account,
        reader: manager.arguments.jail.reader().cloned(),
    }
}

/// Runs file operations off the loop.
async fn in_folder<T: Send + 'static>(
    acme: &Acme,
    work: impl FnOnce(&Folder) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let folder = acme.folder.clone();
    spawn_blocking(move || work(&folder)).await.unwrap_or_else(|_| Err(io::Error::other("the work was cut short")))
}

fn text_of(error: &io::Error) -> String {
    crate::arguments::reason(error)
}

fn ours(error: &io::Error) -> Failure {
    Failure::new(Kind::Ours, &text_of(error))
}
