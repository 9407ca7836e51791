//! The certificates of the command line: [`open`].

use crate::arguments::Arguments;
use crate::arguments::tls_file::{PemArgument, TlsFile};
use crate::clock::now;
use crate::report::{Level, Reporter};
use crate::tls::expiry::{self, Urgency};
use crate::tls::files::{FromFiles, PemFiles, read_authorities};
use crate::tls::registry::{Authorities, Certificate, Frontend, Registry, Settings};
use crate::tls::self_signed;
use tls::table::{ClientVerification, FrontendRow};

/// Reads every certificate that `-A` names, and reports oddities. A wrong date never prevents a
/// start: a server that is down is worse than a browser's warning.
///
/// # Errors
/// The message for the operator.
pub fn open(arguments: &Arguments, reporter: &Reporter) -> Result<Registry, String> {
    let nothing = TlsFile::default();
    let file = arguments.tls_file.as_ref().unwrap_or(&nothing);
    file.notes.iter().for_each(|note| reporter.say(Level::Info, note));
    let mut registry = frontends(arguments)?;
    let refuses_duplicates = arguments.parameters.tls_err_dup_servername;
    let of_frontends = file
        .frontends
        .iter()
        .flat_map(|found| found.certificates.iter().map(|pem| (Some(found.listener.name.clone()), pem)));
    let made = self_signed::make(arguments)?.map(|files| PemArgument { name: None, files, is_default: false });
    let of_trials = made.iter().flat_map(|pem| {
        let listeners = arguments.listeners.iter().filter(|listener| listener.self_signed);
        listeners.map(move |listener| (Some(listener.name.clone()), pem))
    });
    if let Some(pem) = &made {
        let shown = pem.files.certificate.display();
        let text = format!("a self-signed certificate is used, for a trial: no client trusts it without {shown}");
        reporter.say(Level::Warning, &text);
    }
    let certificates = file.certificates.iter().map(|pem| (None, pem));
    let all: Vec<(Option<String>, &PemArgument)> = certificates.chain(of_frontends).chain(of_trials).collect();
    // Named certificates first, so that no generated id collides with a name.
    let names: Vec<&String> = all.iter().filter_map(|(_, pem)| pem.name.as_ref()).collect();
    if let Some(name) = names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name)) {
        return Err(format!("there are two certificates \"{name}\""));
    }
    for (frontend, pem) in all {
        let id = match &pem.name {
            Some(name) => name.clone(),
            None => std::iter::repeat_with(|| registry.next_id()).find(|id| !names.contains(&id)).unwrap_or_default(),
        };
        let read = pem.files.read()?;
        notes(&pem.files, &read).iter().for_each(|note| reporter.say(Level::Warning, note));
        let certificate = Certificate {
            is_default: pem.is_default,
            ..Certificate::from_files(id, frontend, pem.files.clone(), read)
        };
        if refuses_duplicates && let Some((name, other)) = registry.duplicate(&certificate) {
            return Err(duplicate_text(&certificate, &name, &other));
        }
        say_dates(&certificate, reporter);
        registry.put(certificate)?;
    }
    let table = registry.table();
    tls::server::build(&table)?;
    let is_ordered =
        |name: &str| arguments.listeners.iter().any(|listener| listener.name == name && !listener.acme.is_empty());
    let is_bare = |row: &&FrontendRow| row.certificates.is_empty() && !is_ordered(&row.listener);
    for row in table.frontends.iter().filter(is_bare) {
        let text = format!(
            "listener {} speaks TLS and has no certificate: handshakes fail until tls.cert.load and tls.cert.commit",
            row.listener
        );
        reporter.say(Level::Warning, &text);
    }
    Ok(registry)
}

/// The listeners with TLS, and their settings; they have no certificate yet.
///
/// # Errors
/// The message for the operator.
pub fn frontends(arguments: &Arguments) -> Result<Registry, String> {
    let mut frontends = Vec::new();
    for listener in arguments.listeners.iter().filter(|listener| listener.tls) {
        let mut of_file = arguments.tls_file.iter().flat_map(|file| &file.frontends);
        let in_file = of_file.find(|frontend| frontend.listener.name == listener.name);
        let mut frontend = Frontend {
            name: listener.name.clone(),
            settings: in_file.map_or_else(Settings::default, |found| found.settings.clone()),
            matches_global: in_file.is_some_and(|found| found.matches_global),
            http3: listener.http3,
            authorities: in_file.and_then(|found| found.authorities.clone()),
        };
        if let Some(authorities) = &frontend.authorities {
            frontend.settings.client = verification(authorities)?;
        }
        frontends.push(frontend);
    }
    Ok(Registry::new(frontends))
}

/// A frontend's client verification, read from its file.
///
/// # Errors
/// The message for the operator.
pub fn verification(authorities: &Authorities) -> Result<ClientVerification, String> {
    Ok(ClientVerification { demand: authorities.demand, authorities: read_authorities(&authorities.file)? })
}

/// Notes about files that are used although they have a fault.
#[must_use]
pub fn notes(files: &PemFiles, read: &FromFiles) -> Vec<String> {
    let key = files.key_path().display();
    let open = || format!("everybody on this machine can read the private key in {key}: give the file mode 600");
    let staple = |fault| format!("{} is not stapled: {fault}", files.ocsp_path().display());
    read.is_key_open.then(open).into_iter().chain(read.ocsp_fault.map(staple)).collect()
}

/// Message for a name that is refused because another certificate has it.
#[must_use]
pub fn duplicate_text(certificate: &Certificate, name: &str, other: &str) -> String {
    format!(
        "{}: there is a certificate for {name} already, {other} (parameter tls_err_dup_servername)",
        certificate.described()
    )
}

/// Reports wrong dates of a certificate.
pub fn say_dates(certificate: &Certificate, reporter: &Reporter) {
    if let Some((urgency, text)) = expiry::complaint(certificate, now() as i64) {
        let level = if urgency == Urgency::Now { Level::Error } else { Level::Warning };
        reporter.say(level, &text);
    }
}
