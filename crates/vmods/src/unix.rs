//! unix: user and group of the peer of a Unix-domain socket.
//!
//! The system provides their numbers when the connection is accepted, so background fetches have
//! them too. Names are looked up in the system's tables, which may use the network: the task waits
//! for that, but the event loop does not.

use crate::call::{Call, done};
use crate::context::{Finish, VmodContext};
use nix::unistd::{Gid, Group, Uid, User};
use surface::tag::Tag;
use surface::vmod::functions::unix::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::value::{Scratch, Text, Value};

/// Calls a function of the VMOD.
pub(crate) fn dispatch(function: Function, call: Call<'_>) -> Result<Called, Failure> {
    let Call { context, .. } = call;
    match function {
        Function::UnixUser => name(context, Whose::User),
        Function::UnixGroup => name(context, Whose::Group),
        Function::UnixUid => number(context, Whose::User),
        Function::UnixGid => number(context, Whose::Group),
    }
}

/// User or group.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// The user.
    User,
    /// The group.
    Group,
}

/// The number; if it is not known, logs the reason and returns `None`.
fn known(context: &mut dyn VmodContext, whose: Whose) -> Result<Option<u32>, Failure> {
    let Some(connection) = context.connection() else {
        return Err(Failure("vmod unix failure: may not be called in vcl_init or vcl_fini".to_owned()));
    };
    let (is_unix, credentials) = (connection.is_unix, connection.credentials);
    let why = match credentials {
        _ if !is_unix => "not listening on a Unix domain socket",
        Some((user, group)) => {
            return Ok(Some(match whose {
                Whose::User => user,
                Whose::Group => group,
            }));
        }
        None => "could not read peer credentials",
    };
    context.log(Tag::VCLError, format!("vmod unix error: {why}").as_bytes());
    Ok(None)
}

/// `unix.uid()`, `unix.gid()`
pub(crate) fn number(context: &mut dyn VmodContext, whose: Whose) -> Result<Called, Failure> {
    let number = known(context, whose)?;
    done(Value::Int(number.map_or(-1, i64::from)))
}

fn look_up(whose: Whose, number: u32) -> Result<Option<String>, String> {
    match whose {
        Whose::User => User::from_uid(Uid::from_raw(number)).map(|user| user.map(|user| user.name)),
        Whose::Group => Group::from_gid(Gid::from_raw(number)).map(|group| group.map(|group| group.name)),
    }
    .map_err(|error| error.desc().to_owned())
}

/// `unix.user()`, `unix.group()`
pub(crate) fn name(context: &mut dyn VmodContext, whose: Whose) -> Result<Called, Failure> {
    let Some(number) = known(context, whose)? else { return done(Value::Text(Text::UNSET)) };
    let lookup = context.shared().lookups.run(move || look_up(whose, number));
    context.wait(Box::pin(async move {
        let found = lookup.await.unwrap_or_else(|refusal| Err(refusal.text().to_owned()));
        let finish: Finish = Box::new(move |context, scratch| Ok(shown(context, scratch, found)));
        finish
    }));
    Ok(Called::Wait)
}

fn shown(context: &mut dyn VmodContext, scratch: &mut Scratch, found: Result<Option<String>, String>) -> Value {
    match found {
        Ok(Some(name)) => return Value::Text(scratch.put(name.as_bytes())),
        // The number has no name.
        Ok(None) => context.log(Tag::VCLError, b"vmod unix error: could not read peer credentials: no such name"),
        Err(why) => {
            let text = format!("vmod unix error: could not read peer credentials: {why}");
            context.log(Tag::VCLError, text.as_bytes());
        }
    }
    Value::Text(Text::UNSET)
}
