//! basicauth: passwords of HTTP basic authentication, from files of `htpasswd`. Source: RFC 7617.
//!
//! Compat: `match()` of vmod-basicauth. Kinds of hashes: bcrypt, SHA-crypt, MD5 of Apache (apr1)
//! and of crypt, and {SHA}. Plain text and DES crypt are refused, with a remark in the log.
//!
//! A hash is slow on purpose, and a client chooses how many passwords it sends. So they are
//! verified off the event loops, few at once, with a bound for each client, and a verified password
//! is remembered under a keyed hash. *Invariant:* what is remembered is bound to the hash in the
//! file: a changed line counts at once. Reading order: `basicauth/hash` → `basicauth/file` →
//! `basicauth/checks`.

mod checks;
mod credentials;
mod file;
mod hash;

pub(crate) use checks::Checks;
pub(crate) use file::Passwords;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::{Finish, VmodContext};
use crate::remarks::log_remarks;
use crate::watched::Content;
use credentials::Credentials;
use std::net::IpAddr;
use std::sync::Arc;
use surface::tag::Tag;
use surface::vmod::functions::basicauth::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::BasicauthMatch => matches(context, arguments, scratch),
    }
}

/// `basicauth.match()`: false without a file, without credentials, and if too many passwords wait
/// to be verified.
fn matches(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Result<Called, Failure> {
    let (path, header) = (scratch.get(arguments.text(0)).to_vec(), scratch.get(arguments.text(1)));
    let Some(credentials) = Credentials::parse(header) else { return done(Value::Bool(false)) };
    let (files, checks) = (Arc::clone(&context.shared().passwords), Arc::clone(&context.shared().password_checks));
    let now = context.now();
    if !context.can_wait() {
        let content = files.check(&path, now);
        let is_match = content.is_ok_and(|passwords| checks.verify(&passwords, &credentials));
        log_remarks(context, "basicauth", &path, files.take_remarks(&path));
        return done(Value::Bool(is_match));
    }
    let fresh = files.claim(&path, now);
    if let Some(content) = &fresh
        && let Some(known) = known(&checks, content, &credentials)
    {
        return done(Value::Bool(known));
    }
    let reads = Arc::clone(&context.shared().file_reads);
    let client = context.connection().map(|connection| connection.client.ip());
    context.wait(Box::pin(async move {
        let content = match fresh {
            Some(content) => content,
            None => files.check_later(&reads, path.clone(), now).await,
        };
        let found = decide(&checks, content, credentials, client).await;
        let finish: Finish = Box::new(move |context, _| {
            log_remarks(context, "basicauth", &path, files.take_remarks(&path));
            if let Err(why) = &found {
                context.log(Tag::VCLError, format!("basicauth: {why}").as_bytes());
            }
            Ok(Value::Bool(found.unwrap_or(false)))
        });
        finish
    }));
    Ok(Called::Wait)
}

/// The result, if it needs no slow hash.
fn known(checks: &Checks, content: &Content<Passwords>, credentials: &Credentials) -> Option<bool> {
    let Ok(passwords) = content else { return Some(false) };
    let hash = passwords.hash(&credentials.user);
    match hash {
        Some(hash) if hash.is_slow() => checks.is_known(hash, credentials).then_some(true),
        Some(hash) => Some(hash.is_of(&credentials.password)),
        None => passwords.slowest().is_none().then_some(false),
    }
}

async fn decide(
    checks: &Arc<Checks>,
    content: Content<Passwords>,
    credentials: Credentials,
    client: Option<IpAddr>,
) -> Result<bool, &'static str> {
    if let Some(known) = known(checks, &content, &credentials) {
        return Ok(known);
    }
    let Ok(passwords) = content else { return Ok(false) };
    checks.verify_later(passwords, credentials, client).await
}
