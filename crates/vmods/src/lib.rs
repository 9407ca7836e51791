//! The VMODs: what `import` offers to VCL, one file each.
//!
//! [`call`] is the only entry point: the evaluator's host passes the function's number (a row of `surface::vmod`), the object
//! and the arguments. [`context::VmodContext`] is what a VMOD can access of the running task; [`Instances`] holds the objects
//! made in vcl_init, shared by all event loops; [`TaskState`] is the state of one task.
//!
//! *Invariants:* every row of the table has an arm in [`call`], and there is no catch-all arm. The compiler checks arguments;
//! a value of the wrong type reads as unset or zero and does not panic.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod accept;
mod alphabet;
mod arguments;
mod blob;
mod bodyaccess;
pub mod context;
mod cookie;
mod debug;
mod digest;
mod directors;
mod dynamic;
mod h2;
mod header;
mod instances;
mod lookups;
pub mod number;
mod proxy;
mod purge;
mod querystring;
mod re;
mod saintmode;
mod shared;
mod standard;
mod strings;
mod task;
mod tcp;
mod tls;
mod unix;
mod uuid;
mod var;
mod vsthrottle;
mod vtc;
mod xkey;

pub use context::{ClientConnection, Finish, Pending, PurgeKind, Transaction, VmodContext};
pub use debug::life::DebugLife;
pub use instances::Instances;
pub use shared::SharedState;
pub use standard::address::service_port;
pub use task::TaskState;
pub use tcp::{NoSockets, SocketOptions, TcpInfo};

use alphabet::Alphabet;
use arguments::Arguments;
use backend::DirectorKind;
use proxy_protocol::element;
use semantics::date::DateForms;
use surface::parameter::Parameters;
use surface::vcl::{Method, Type};
use surface::vmod::Function;
use vcl_run::host::{Called, Failure};
use vcl_run::link::LinkedProgram;
use vcl_run::value::{Scratch, Value};

/// Calls a VMOD function, method or constructor. `function` is an index into `surface::vmod::FUNCTIONS`, `instance` one
/// into `Program::instances`. STRANDS arrive joined; an argument that was left out is [`Value::Absent`].
///
/// # Errors
/// The VMOD fails the task; the text is for a `VCL_Error` record.
pub fn call(
    function: u32,
    instance: Option<u32>,
    context: &mut dyn VmodContext,
    arguments: &[Value],
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    let Some(name) = Function::from_number(function) else {
        return Err(Failure(format!("There is no VMOD function {function}")));
    };
    let called = dispatch(name, instance, context, Arguments::new(arguments), scratch)?;
    if name.row().returns == Type::Instance {
        context.instances().note_made(instance);
    }
    Ok(called)
}

/// What VMODs do before a VCL is loaded: debug can refuse to be loaded.
///
/// # Errors
/// The reason why the VCL can't be loaded.
pub fn before(program: &LinkedProgram, method: Method, parameters: &Parameters) -> Result<(), Failure> {
    let wants_debug = program.program().vmods.iter().any(|vmod| vmod == "debug");
    if wants_debug && method == Method::Init { debug::before_load(parameters) } else { Ok(()) }
}

/// Returns a value without waiting.
fn done(value: Value) -> Result<Called, Failure> {
    Ok(Called::Value(value))
}

fn dispatch(
    name: Function,
    instance: Option<u32>,
    context: &mut dyn VmodContext,
    arguments: Arguments<'_>,
    scratch: &mut Scratch,
) -> Result<Called, Failure> {
    match name {
        Function::StdRandom => done(standard::random(context, arguments)),
        Function::StdRound => done(Value::Real(arguments.real(0).round())),
        Function::StdCollect => standard::text::collect(context, arguments, scratch),
        Function::StdQuerysort => standard::text::querysort(arguments, scratch),
        Function::StdToupper => done(standard::text::map(arguments, scratch, u8::to_ascii_uppercase)),
        Function::StdTolower => done(standard::text::map(arguments, scratch, u8::to_ascii_lowercase)),
        Function::StdStrstr => done(standard::text::strstr(arguments, scratch)),
        Function::StdFnmatch => standard::text::fnmatch(arguments, scratch),
        Function::StdFileread => standard::file::read(context, arguments, scratch, standard::file::Kind::Text),
        Function::StdBlobread => standard::file::read(context, arguments, scratch, standard::file::Kind::Blob),
        Function::StdFileExists => standard::file::exists(context, arguments, scratch),
        Function::StdHealthy => standard::healthy(context, arguments),
        Function::StdPort => done(standard::port(arguments)),
        Function::StdDuration => standard::convert::duration(arguments, scratch),
        Function::StdBytes => standard::convert::bytes(arguments, scratch),
        Function::StdInteger => standard::convert::integer(arguments, scratch),
        Function::StdIp => standard::address::ip(context, arguments, scratch),
        Function::StdReal => standard::convert::real(arguments, scratch),
        Function::StdTime => {
            let dates = DateForms::of_features(context.parameters().feature);
            standard::convert::time(dates, arguments, scratch)
        }
        Function::StdStrftime => done(standard::strftime::strftime(arguments, scratch)),
        Function::StdLog => done(standard::control::log(context, arguments, scratch)),
        Function::StdSyslog => done(standard::control::syslog(arguments, scratch)),
        Function::StdTimestamp => done(standard::control::timestamp(context, arguments, scratch)),
        Function::StdNow => done(Value::Time(context.clock())),
        Function::StdTimedCall => standard::control::timed_call(arguments),
        Function::StdSyntax => done(standard::control::syntax(context, arguments)),
        Function::StdGetenv => done(standard::control::getenv(arguments, scratch)),
        Function::StdCacheReqBody => standard::control::cache_req_body(context, arguments),
        Function::StdLate100Continue => standard::control::late_100_continue(context, arguments),
        Function::StdSetIpTos => standard::control::set_ip_tos(context, arguments),
        Function::StdRollback => standard::control::rollback(context, arguments),
        Function::StdBan => done(standard::control::ban(context, arguments, scratch)),
        Function::StdBanError => done(standard::control::ban_error(context, scratch)),
        Function::StdReal2integer => done(standard::convert::real2integer(arguments)),
        Function::StdReal2time => done(standard::convert::real2time(arguments)),
        Function::StdTime2integer => done(standard::convert::time2integer(arguments)),
        Function::StdTime2real => done(standard::convert::time2real(arguments)),

        Function::RoundRobin => directors::create(context, instance, directors::round_robin()),
        Function::Fallback => directors::create(context, instance, directors::fallback(arguments)),
        Function::Random => {
            let kind = directors::random(context, instance);
            directors::create(context, instance, kind)
        }
        Function::Hash => {
            let kind = directors::hash(context, instance);
            directors::create(context, instance, kind)
        }
        Function::RoundRobinAddBackend | Function::FallbackAddBackend => {
            directors::add(context, instance, arguments, 1.0)
        }
        Function::RandomAddBackend | Function::HashAddBackend => {
            let weight = arguments.real(1);
            directors::add(context, instance, arguments, weight)
        }
        Function::RoundRobinRemoveBackend
        | Function::FallbackRemoveBackend
        | Function::RandomRemoveBackend
        | Function::HashRemoveBackend => directors::remove(context, instance, arguments),
        Function::RoundRobinBackend | Function::FallbackBackend | Function::RandomBackend => {
            done(directors::backend(context, instance))
        }
        Function::LeastConn => directors::create(context, instance, directors::least_connections()),
        Function::LeastConnAddBackend => {
            let weight = arguments.real(1);
            directors::add(context, instance, arguments, weight)
        }
        Function::LeastConnRemoveBackend => directors::remove(context, instance, arguments),
        Function::LeastConnBackend => done(directors::backend(context, instance)),
        Function::HashBackend => done(directors::hash_backend(context, instance, arguments, scratch)),
        Function::Shard => directors::shard::create(context, instance),
        Function::ShardSetWarmup => directors::shard::set_warmup(context, instance, arguments),
        Function::ShardSetRampup => directors::shard::set_rampup(context, instance, arguments),
        Function::ShardAssociate => directors::shard::associate(context, instance, arguments, scratch),
        Function::ShardAddBackend => directors::shard::add_backend(context, instance, arguments, scratch),
        Function::ShardRemoveBackend => directors::shard::remove_backend(context, instance, arguments, scratch),
        Function::ShardClear => directors::shard::clear(context, instance),
        Function::ShardReconfigure => directors::shard::reconfigure(context, instance, arguments),
        Function::ShardKey => done(directors::shard::key(arguments, scratch)),
        Function::ShardBackend => directors::shard::backend(context, instance, arguments, scratch),
        Function::ShardDebug => directors::shard::debug(context, instance, arguments),
        Function::ShardParam => directors::shard_param::create(context, instance),
        Function::ShardParamClear => directors::shard_param::clear(context, instance),
        Function::ShardParamSet => directors::shard_param::set(context, instance, arguments, scratch),
        Function::ShardParamGetBy
        | Function::ShardParamGetKey
        | Function::ShardParamGetAlt
        | Function::ShardParamGetWarmup
        | Function::ShardParamGetRampup
        | Function::ShardParamGetHealthy => directors::shard_param::get(context, instance, name, scratch),
        Function::ShardParamUse => done(directors::shard_param::use_blob(instance, scratch)),
        Function::DirectorsLookup => directors::lookup(context, arguments, scratch),

        Function::PurgeHard => purge::hard(context),
        Function::PurgeSoft => purge::soft(context, arguments),

        Function::BlobDecode => blob::decode(arguments, scratch),
        Function::BlobEncode => blob::encode(arguments, scratch),
        Function::BlobTranscode => blob::transcode(arguments, scratch),
        Function::BlobSame => done(blob::same(arguments)),
        Function::BlobEqual => done(blob::equal(arguments, scratch)),
        Function::BlobLength => done(blob::length(arguments)),
        Function::BlobSub => blob::sub(arguments),
        Function::Blob => blob::create(context, instance, arguments, scratch),
        Function::BlobGet => done(blob::get(context, instance, scratch)),
        Function::BlobEncodeObject => blob::encode_object(context, instance, arguments, scratch),

        Function::CookieClean => done(cookie::clean(context)),
        Function::CookieDelete => done(cookie::delete(context, arguments, scratch)),
        Function::CookieFilter => cookie::filter(context, arguments, scratch, false),
        Function::CookieFilterRe => cookie::filter_re(context, arguments, false),
        Function::CookieKeep => cookie::filter(context, arguments, scratch, true),
        Function::CookieKeepRe => cookie::filter_re(context, arguments, true),
        Function::CookieFormatDate | Function::CookieFormatRfc1123 => done(cookie::format_date(arguments, scratch)),
        Function::CookieGet => done(cookie::get(context, arguments, scratch)),
        Function::CookieGetRe => cookie::get_re(context, arguments, scratch),
        Function::CookieGetString => done(cookie::get_string(context, scratch)),
        Function::CookieIsset => done(cookie::isset(context, arguments, scratch)),
        Function::CookieParse => cookie::parse(context, arguments, scratch),
        Function::CookieSet => cookie::set(context, arguments, scratch),

        Function::DebugAuthor => done(debug::author(arguments, scratch)),
        Function::DebugTestPrivCall
        | Function::DebugTestPrivVcl
        | Function::DebugTestPrivTaskGet
        | Function::DebugObjEnum
        | Function::DebugObjObj
        | Function::DebugObjTestPrivCall
        | Function::DebugObjTestPrivVcl => done(Value::Void),
        Function::DebugTestPrivTask => done(debug::task_text(context, arguments, scratch)),
        Function::DebugTestPrivTop => done(debug::first_text(context, arguments, scratch, debug::Place::Top)),
        Function::DebugPrivTaskWithOption => done(debug::first_text(context, arguments, scratch, debug::Place::Option)),
        Function::DebugObj => done(debug::object::create(context, instance, arguments, scratch)),
        Function::DebugObjString => done(debug::object::string(context, instance, scratch)),
        Function::DebugObjNumber => done(debug::object::number(context, instance, scratch)),
        Function::DebugObjFoo | Function::DebugObjBar => done(Value::Text(scratch.put(b"BOO"))),
        Function::DebugObjDate => done(Value::Time(21.4)),
        Function::DebugObjTestPrivTask => {
            done(debug::object::kept(context, instance, arguments, scratch, debug::Place::Task))
        }
        Function::DebugObjTestPrivTop => {
            done(debug::object::kept(context, instance, arguments, scratch, debug::Place::Top))
        }
        Function::DebugObjOpt => done(debug::object::create_optional(context, instance, arguments, scratch)),
        Function::DebugObjOptMethOpt => debug::object::optional(context, instance, arguments, scratch),
        Function::DebugRot52 => debug::rot52(context, arguments),
        Function::DebugArgtest => done(debug::argtest(arguments, scratch)),
        Function::DebugVreLimit => {
            let limit = context.parameters().pcre2_match_limit;
            done(Value::Int(i64::try_from(limit).unwrap_or(i64::MAX)))
        }
        Function::DebugVscNew => done(debug::counter::create(context)),
        Function::DebugVscCount => debug::counter::count(context, arguments),
        Function::DebugVscDestroy => done(debug::counter::destroy(context)),
        Function::DebugVclDiscardDelay => debug::life::discard_delay(context, arguments.real(0)),
        Function::DebugVclPreventCold => done(debug::life::prevent_cold(context, true)),
        Function::DebugVclAllowCold => done(debug::life::prevent_cold(context, false)),
        Function::DebugFailTaskFini => done(debug::fail_at_end(context, true)),
        Function::DebugOkTaskFini => done(debug::fail_at_end(context, false)),
        Function::DebugFail | Function::DebugFail2 => Err(Failure("Forced failure".to_owned())),
        Function::DebugDyn => debug::dynamic::create(context, instance, arguments, scratch),
        Function::DebugDynUds => debug::dynamic::create_unix(context, instance, arguments, scratch),
        Function::DebugDynRefresh => debug::dynamic::replace(context, instance, arguments, scratch),
        Function::DebugDynUdsRefresh => debug::dynamic::replace_unix(context, instance, arguments, scratch),
        Function::DebugDynBackend | Function::DebugDynUdsBackend => done(debug::dynamic::backend(context, instance)),
        Function::DebugNullAcl => done(Value::Acl(None)),
        Function::DebugAcl | Function::DebugJustReturnRegex => done(arguments.value(0)),
        Function::DebugMatchAcl => debug::acl::matches(context, arguments),
        Function::DebugSweepAcl => debug::acl::sweep(context, arguments, scratch),
        Function::DebugTimeAcl => debug::acl::time(context, arguments),
        Function::DebugAclobj | Function::DebugCaller => done(debug::object::keep(context, instance, arguments)),
        Function::DebugAclobjGet | Function::DebugCallerXsub => done(debug::object::held(context, instance)),
        Function::DebugTestProbe => debug::test_probe(arguments),
        Function::DebugConcat => done(debug::object::keep_text(context, instance, arguments, scratch)),
        Function::DebugConcatGet => done(debug::object::string(context, instance, scratch)),
        Function::DebugConcatenate | Function::DebugCollect => done(debug::joined(arguments)),
        Function::DebugSethdr => debug::set_header(context, arguments, scratch),
        Function::DebugReturnStrands => done(debug::return_strands(context, arguments, scratch)),
        Function::DebugStk => done(Value::Bytes(0)),
        Function::DebugSndbuf => debug::send_buffer(context, arguments),
        Function::DebugStoreIp => done(debug::store_ip(context, arguments)),
        Function::DebugGetIp => done(Value::Ip(context.task().kept().debug.address)),
        Function::DebugDirector => directors::create(context, instance, DirectorKind::Failing),
        Function::DebugDirectorFail => done(directors::backend(context, instance)),
        Function::DebugClientIp => done(debug::client(context, scratch, |client| client.ip().to_string())),
        Function::DebugClientPort => done(debug::client(context, scratch, |client| client.port().to_string())),
        Function::DebugReQuote => done(debug::quote(arguments, scratch)),
        Function::DebugValidhdr => done(debug::valid_header(arguments, scratch)),
        Function::DebugCheckCall => debug::sub(arguments.value(0)).map(Called::Check),
        Function::DebugCall => debug::sub(arguments.value(0)).map(Called::Sub),
        Function::DebugCallerCall => debug::sub(debug::object::held(context, instance)).map(Called::Sub),

        Function::H2Is => done(Value::Bool(context.http2_resets().is_some())),
        Function::H2RapidReset => done(h2::rapid_reset(context, arguments)),
        Function::H2RapidResetPeriod => done(h2::period(context, arguments)),
        Function::H2RapidResetLimit => done(h2::limit(context, arguments)),
        Function::H2RapidResetBudget => done(h2::budget(context)),
        Function::ProxyAlpn => done(proxy::text(context, scratch, element::ALPN)),
        Function::ProxyAuthority => done(proxy::text(context, scratch, element::AUTHORITY)),
        Function::ProxyIsSsl => done(proxy::flag(context, element::OVER_TLS)),
        Function::ProxyClientHasCertSess => done(proxy::flag(context, element::CERTIFICATE_IN_SESSION)),
        Function::ProxyClientHasCertConn => done(proxy::flag(context, element::CERTIFICATE_ON_CONNECTION)),
        Function::ProxySslVerifyResult => done(proxy::verify_result(context)),
        Function::ProxySslVersion => done(proxy::text(context, scratch, element::TLS_VERSION)),
        Function::ProxyClientCertCn => done(proxy::text(context, scratch, element::COMMON_NAME)),
        Function::ProxySslCipher => done(proxy::text(context, scratch, element::CIPHER)),
        Function::ProxyCertSign => done(proxy::text(context, scratch, element::SIGNATURE_ALGORITHM)),
        Function::ProxyCertKey => done(proxy::text(context, scratch, element::KEY_ALGORITHM)),

        Function::TlsIsTls => done(tls::is_tls(context)),
        Function::TlsVersion => done(tls::text(context, scratch, |facts| Some(facts.version))),
        Function::TlsCipher => done(tls::text(context, scratch, |facts| Some(facts.cipher))),
        Function::TlsAuthority => done(tls::text(context, scratch, |facts| facts.server_name.as_deref())),
        Function::TlsAlpn => done(tls::text(context, scratch, |facts| facts.alpn.as_deref())),
        Function::TlsCertSign => done(tls::text(context, scratch, |facts| facts.certificate_signature.as_deref())),
        Function::TlsCertKey => done(tls::text(context, scratch, |facts| facts.certificate_key.as_deref())),
        Function::TlsJa3 => done(tls::text(context, scratch, |facts| facts.ja3.as_deref())),
        Function::TlsIsResumed => done(tls::is_resumed(context)),
        Function::TlsIsEarly => done(tls::is_early(context)),
        Function::TlsClientCertSubject => done(tls::of_certificate(context, scratch, |one| &one.subject)),
        Function::TlsClientCertIssuer => done(tls::of_certificate(context, scratch, |one| &one.issuer)),
        Function::TlsClientCertSerial => done(tls::of_certificate(context, scratch, |one| &one.serial)),
        Function::TlsClientCertFingerprint => done(tls::of_certificate(context, scratch, |one| &one.fingerprint)),

        Function::UnixUser => unix::name(context, unix::Whose::User),
        Function::UnixGroup => unix::name(context, unix::Whose::Group),
        Function::UnixUid => unix::number(context, unix::Whose::User),
        Function::UnixGid => unix::number(context, unix::Whose::Group),

        Function::VtcBarrierSync => vtc::barrier_sync(context, arguments, scratch),
        Function::VtcNoBackend => done(Value::Backend(None)),
        Function::VtcNoStevedore => done(Value::Stevedore(None)),
        Function::VtcNoIp => done(Value::Ip(None)),
        Function::VtcPanic => vtc::panic(arguments, scratch),
        Function::VtcSleep => vtc::sleep(context, arguments),
        Function::VtcTypesize => done(vtc::typesize(arguments, scratch)),
        Function::VtcWorkspaceAlloc => vtc::workspace::alloc(context, arguments, scratch),
        Function::VtcWorkspaceReserve => vtc::workspace::reserve(context, arguments, scratch),
        Function::VtcWorkspaceFree => done(vtc::workspace::free(context, scratch)),
        Function::VtcWorkspaceSnapshot => done(vtc::workspace::snapshot(context)),
        Function::VtcWorkspaceReset => done(vtc::workspace::reset(context, scratch)),
        Function::VtcWorkspaceOverflowed => done(vtc::workspace::overflowed(context, arguments, scratch)),
        Function::VtcWorkspaceOverflow => done(vtc::workspace::overflow(context, arguments, scratch)),
        Function::VtcWorkspaceDump => vtc::workspace::dump(arguments, scratch),
        Function::VtcVsl => vtc::replay::vsl(context, arguments, scratch),
        Function::VtcVslReplay => vtc::replay::replay(context, arguments, scratch),
        Function::VtcProxyHeader => vtc::proxy_header(arguments, scratch),

        Function::AcceptRule => done(accept::create(context, instance, arguments, scratch)),
        Function::AcceptRuleAdd => accept::add(context, instance, arguments, scratch),
        Function::AcceptRuleRemove => done(accept::remove(context, instance, arguments, scratch)),
        Function::AcceptRuleFilter => done(accept::filter(context, instance, arguments, scratch)),

        Function::HeaderAppend => header::append(context, arguments, scratch),
        Function::HeaderCopy => header::copy(context, arguments, scratch),
        Function::HeaderGet => header::get(context, arguments, scratch),
        Function::HeaderRemove => header::remove(context, arguments, scratch),
        Function::HeaderRegsub => header::regsub(context, arguments, scratch),
        Function::HeaderDyn => header::dynamic(arguments, scratch),

        Function::StrCount => done(strings::count(arguments)),
        Function::StrStartswith => done(strings::compare(arguments, scratch, <[u8]>::starts_with)),
        Function::StrEndswith => done(strings::compare(arguments, scratch, <[u8]>::ends_with)),
        Function::StrContains => done(strings::compare(arguments, scratch, strings::contains)),
        Function::StrTake => done(strings::take(arguments, scratch)),
        Function::StrReverse => done(strings::reverse(arguments, scratch)),
        Function::StrSplit => done(strings::split(arguments, scratch)),
        Function::StrTokenIntersect => strings::token_intersect(arguments, scratch),

        Function::VarSet
        | Function::VarSetString
        | Function::VarSetInt
        | Function::VarSetReal
        | Function::VarSetDuration
        | Function::VarSetIp
        | Function::VarSetBackend => var::set(context, arguments, scratch),
        Function::VarGet
        | Function::VarGetString
        | Function::VarGetInt
        | Function::VarGetReal
        | Function::VarGetDuration
        | Function::VarGetIp
        | Function::VarGetBackend => done(var::get(name, context, arguments, scratch)),
        Function::VarClear => done(var::clear(context)),
        Function::VarGlobalSet => var::global_set(context, arguments, scratch),
        Function::VarGlobalGet => done(var::global_get(context, arguments, scratch)),

        Function::ThrottleIsDenied => done(vsthrottle::is_denied(context, arguments, scratch)),
        Function::ThrottleReturnToken => done(vsthrottle::return_token(context, arguments, scratch)),
        Function::ThrottleRemaining => done(vsthrottle::remaining(context, arguments, scratch)),
        Function::ThrottleBlocked => done(vsthrottle::blocked(context, arguments, scratch)),
        Function::ThrottleRemoveBucket => done(vsthrottle::remove_bucket(context, arguments, scratch)),

        Function::BodyaccessRematchReqBody => done(bodyaccess::matches(context, arguments)),
        Function::BodyaccessHashReqBody => done(bodyaccess::hash(context)),
        Function::BodyaccessLenReqBody => done(bodyaccess::length(context)),
        Function::BodyaccessLogReqBody => done(bodyaccess::log(context, arguments, scratch)),

        Function::Saintmode => saintmode::create(context, instance, arguments),
        Function::SaintmodeBackend => done(directors::backend(context, instance)),
        Function::SaintmodeBlacklist => done(saintmode::list(context, arguments, "blacklist")),
        Function::SaintmodeDenylist => done(saintmode::list(context, arguments, "denylist")),
        Function::SaintmodeBlacklistCount | Function::SaintmodeDenylistCount => {
            done(saintmode::count(context, instance))
        }
        Function::SaintmodeIsHealthy => done(saintmode::is_healthy(context, instance)),
        Function::SaintmodeStatus => done(saintmode::status(context, scratch)),

        Function::DynamicDirector => dynamic::create(context, instance, arguments, scratch),
        Function::DynamicDirectorBackend => dynamic::backend(context, instance, arguments, scratch),
        Function::DynamicDirectorService => dynamic::service(context, instance, arguments, scratch),
        Function::DynamicDirectorDebug => done(dynamic::debug(context, instance, arguments)),
        Function::DynamicResolver => dynamic::resolver::create(context, instance, arguments),
        Function::DynamicResolverUse => done(dynamic::resolver::use_blob(instance, scratch)),
        Function::DynamicResolverResolutionType
        | Function::DynamicResolverClearNamespaces
        | Function::DynamicResolverAddNamespace
        | Function::DynamicResolverSetNamespaces
        | Function::DynamicResolverClearTransports
        | Function::DynamicResolverAddTransport
        | Function::DynamicResolverSetTransports
        | Function::DynamicResolverIdleTimeout
        | Function::DynamicResolverOutstanding
        | Function::DynamicResolverTimeout
        | Function::DynamicResolverFollowRedirects => {
            dynamic::resolver::set(name, context, instance, arguments, scratch)
        }

        Function::TcpCongestionAlgorithm => done(tcp::congestion_algorithm(context, arguments, scratch)),
        Function::TcpDumpInfo => done(tcp::dump_info(context)),
        Function::TcpGetEstimatedRtt => done(tcp::estimated_rtt(context)),
        Function::TcpSetSocketPace => done(tcp::set_socket_pace(context, arguments)),

        Function::XkeyPurge => xkey::purge(context, arguments, scratch),
        Function::XkeySoftpurge => xkey::soft_purge(context, arguments, scratch),

        Function::DigestHashSha1
        | Function::DigestHashSha224
        | Function::DigestHashSha256
        | Function::DigestHashSha384
        | Function::DigestHashSha512
        | Function::DigestHashGost
        | Function::DigestHashMd2
        | Function::DigestHashMd4
        | Function::DigestHashMd5
        | Function::DigestHashCrc32
        | Function::DigestHashCrc32b
        | Function::DigestHashAdler32
        | Function::DigestHashHaval128
        | Function::DigestHashHaval160
        | Function::DigestHashHaval192
        | Function::DigestHashHaval224
        | Function::DigestHashHaval256
        | Function::DigestHashRipemd128
        | Function::DigestHashRipemd160
        | Function::DigestHashRipemd256
        | Function::DigestHashRipemd320
        | Function::DigestHashSnefru128
        | Function::DigestHashSnefru256
        | Function::DigestHashTiger
        | Function::DigestHashTiger128
        | Function::DigestHashTiger160
        | Function::DigestHashWhirlpool => done(digest::hash(name, arguments, scratch)),
        Function::DigestHmacSha256 | Function::DigestHmacSha1 | Function::DigestHmacMd5 => {
            done(digest::keyed(name, arguments, scratch))
        }
        Function::DigestBase64 => digest::encode(Alphabet::Standard, arguments, scratch),
        Function::DigestBase64Hex => digest::encode_hexadecimal(Alphabet::Standard, arguments, scratch),
        Function::DigestBase64Decode => digest::decode(Alphabet::Standard, context, arguments, scratch),
        Function::DigestBase64url => digest::encode(Alphabet::Url, arguments, scratch),
        Function::DigestBase64urlHex => digest::encode_hexadecimal(Alphabet::Url, arguments, scratch),
        Function::DigestBase64urlDecode => digest::decode(Alphabet::Url, context, arguments, scratch),
        Function::DigestBase64urlNopad => digest::encode(Alphabet::UrlBare, arguments, scratch),
        Function::DigestBase64urlNopadHex => digest::encode_hexadecimal(Alphabet::UrlBare, arguments, scratch),
        Function::DigestBase64urlNopadDecode => digest::decode(Alphabet::UrlBare, context, arguments, scratch),
        Function::DigestVersion => done(digest::version(scratch)),

        Function::QuerystringClean => querystring::clean(context, arguments, scratch),
        Function::QuerystringSort => querystring::sort(context, arguments, scratch),
        Function::QuerystringRemove => querystring::remove(context, arguments, scratch),
        Function::QuerystringFilter => done(querystring::create(context, instance, arguments, scratch)),
        Function::QuerystringAddString | Function::QuerystringAddGlob | Function::QuerystringAddRegex => {
            querystring::add(name, context, instance, arguments, scratch)
        }
        Function::QuerystringApply => querystring::apply(context, instance, arguments, scratch),
        Function::QuerystringExtract => querystring::extract(context, instance, arguments, scratch),
        Function::QuerystringFiltersep => done(querystring::separator(scratch)),
        Function::QuerystringFilterNames
        | Function::QuerystringFilterExcept
        | Function::QuerystringRegfilter
        | Function::QuerystringRegfilterExcept
        | Function::QuerystringGlobfilter
        | Function::QuerystringGlobfilterExcept => querystring::filter_by(name, context, arguments, scratch),

        Function::ReRegex => done(re::create(context, instance, arguments, scratch)),
        Function::ReFailed => done(re::failed(context, instance)),
        Function::ReError => done(re::error(context, instance, scratch)),
        Function::ReMatch => re::matches(context, instance, arguments, scratch),
        Function::ReMatchDyn => re::matches_dynamic(context, instance, arguments, scratch),
        Function::ReBackref => done(re::backref(context, instance, arguments, scratch)),
        Function::ReNamedref => done(re::namedref(context, instance, arguments, scratch)),
        Function::ReFunctionMatchDyn => re::matches_dynamic(context, None, arguments, scratch),
        Function::ReFunctionBackref => done(re::backref(context, None, arguments, scratch)),
        Function::ReFunctionNamedref => done(re::namedref(context, None, arguments, scratch)),
        Function::ReVersion => done(re::version(scratch)),

        Function::Uuid | Function::UuidV1 => done(uuid::by_time(context, scratch)),
        Function::UuidV3 => uuid::by_name(3, context, arguments, scratch),
        Function::UuidV4 => done(uuid::by_chance(scratch)),
        Function::UuidV5 => uuid::by_name(5, context, arguments, scratch),
    }
}

#[cfg(test)]
mod tests;
