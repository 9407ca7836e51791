//! vsthrottle: token buckets, one for each combination of key, limit, period and block.
//!
//! A bucket holds up to `limit` tokens and gains that many per period. Each call of `is_denied`
//! takes one token; if there is none, the call is denied, and so are all calls for `block` seconds.
//! Buckets belong to the process: all VCLs and event loops share them. They are spread over
//! [`SHARDS`] tables by the SHA-256 of their identity; each table has its own lock. A bucket that
//! was unused for its period is as good as new, and a sweep drops it; a full table drops the least
//! recently used ones. Compat: as varnish-modules 0.20 for Varnish 7.1, plus `remove_bucket` of
//! later versions; unlike there, reading the remaining tokens does not add any. Next file:
//! `vsthrottle/buckets.rs`.

mod buckets;

pub(crate) use buckets::Buckets;

use crate::arguments::Arguments;
use crate::call::{Call, done};
use crate::context::VmodContext;
use buckets::{Bucket, Rate, SHARDS};
use sha2::{Digest, Sha256};
use surface::limits::THROTTLE_BUCKETS_MAX;
use surface::tag::Tag;
use surface::vmod::functions::vsthrottle::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, arguments, scratch, .. } = call;
    match function {
        Function::ThrottleIsDenied => done(is_denied(context, arguments, scratch)),
        Function::ThrottleReturnToken => done(return_token(context, arguments, scratch)),
        Function::ThrottleRemaining => done(remaining(context, arguments, scratch)),
        Function::ThrottleBlocked => done(blocked(context, arguments, scratch)),
        Function::ThrottleRemoveBucket => done(remove_bucket(context, arguments, scratch)),
    }
}

/// The bucket of a call; `None` without a key.
fn rate_of(arguments: Arguments<'_>, scratch: &Scratch) -> Option<Rate> {
    let key = arguments.text(0);
    let (limit, period, block) = (arguments.int(1), arguments.real(2), arguments.real(3));
    let mut hash = Sha256::new();
    hash.update(scratch.get(key));
    hash.update(limit.to_le_bytes());
    hash.update(period.to_le_bytes());
    hash.update(block.to_le_bytes());
    key.is_set().then(|| Rate { identity: hash.finalize().into(), limit, period, block })
}

/// Calls `then` with the bucket.
fn with_bucket<T>(context: &mut dyn VmodContext, rate: &Rate, then: impl FnOnce(&mut Bucket, f64) -> T) -> T {
    let now = context.now();
    let mut shard = context.shared().buckets.shard(&rate.identity).lock();
    let (bucket, dropped) = shard.bucket(rate, now, THROTTLE_BUCKETS_MAX / SHARDS);
    let result = then(bucket, now);
    drop(shard);
    if dropped {
        let text =
            format!("vsthrottle: there are {THROTTLE_BUCKETS_MAX} buckets; those unused for longest were dropped");
        context.log(Tag::VCLError, text.as_bytes());
    }
    result
}

/// `vsthrottle.is_denied()`: true without a key.
pub(crate) fn is_denied(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let Some(rate) = rate_of(arguments, scratch) else { return Value::Bool(true) };
    Value::Bool(with_bucket(context, &rate, |bucket, now| bucket.is_denied(rate.block, now)))
}

/// `vsthrottle.return_token()`
pub(crate) fn return_token(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    if let Some(rate) = rate_of(arguments, scratch) {
        with_bucket(context, &rate, |bucket, _| bucket.tokens = bucket.tokens.saturating_add(1));
    }
    Value::Void
}

/// `vsthrottle.remaining()`: −1 without a key.
pub(crate) fn remaining(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let Some(rate) = rate_of(arguments, scratch) else { return Value::Int(-1) };
    Value::Int(with_bucket(context, &rate, |bucket, now| bucket.tokens_at(now)))
}

/// `vsthrottle.blocked()`: −1 s without a key.
pub(crate) fn blocked(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    let Some(rate) = rate_of(arguments, scratch) else { return Value::Duration(-1.0) };
    Value::Duration(with_bucket(context, &rate, |bucket, now| (bucket.blocked_until - now).max(0.0)))
}

/// `vsthrottle.remove_bucket()`
pub(crate) fn remove_bucket(context: &mut dyn VmodContext, arguments: Arguments<'_>, scratch: &Scratch) -> Value {
    if let Some(rate) = rate_of(arguments, scratch) {
        context.shared().buckets.shard(&rate.identity).lock().remove(&rate.identity);
    }
    Value::Void
}
