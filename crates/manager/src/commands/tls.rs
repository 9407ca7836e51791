//! `tls.cert.*`: `load` and `discard` stage changes, `commit` activates them, `rollback` drops
//! them.

use super::Call;
use crate::arguments;
use crate::arguments::tls_file::protocols;
use crate::report::Level;
use crate::tls::apply;
use crate::tls::files::PemFiles;
use crate::tls::open::{duplicate_text, notes, say_dates};
use crate::tls::registry::{Certificate, GLOBAL};
use crate::tls::reload;
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use std::path::Path;
use tls::cipher_list;

/// The options of `tls.cert.load`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Load {
    id: Option<String>,
    file: String,
    frontend: Option<String>,
    key: Option<String>,
    is_default: bool,
    /// A handshake option was given, which only frontends decide.
    has_handshake_options: bool,
}

impl Load {
    fn parse(words: &[String]) -> Result<Load, String> {
        let (mut load, mut plain) = (Load::default(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("Option {word} needs a value"));
            match word.as_str() {
                "-f" => load.frontend = Some(value()?).filter(|name| name != GLOBAL),
                "-k" => load.key = Some(value()?),
                "-p" => {
                    let list = value()?;
                    protocols(list.split([' ', ',', ':']).filter(|word| !word.is_empty()))?;
                    load.has_handshake_options = true;
                }
                "-c" => {
                    cipher_list::tls12(&value()?).ok_or("Invalid cipher list")?;
                    load.has_handshake_options = true;
                }
                "-s" => {
                    cipher_list::tls13(&value()?).ok_or("Invalid ciphersuites")?;
                    load.has_handshake_options = true;
                }
                "-o" => load.has_handshake_options = true,
                "-d" => load.is_default = true,
                _ if word.starts_with('-') => return Err(format!("Unknown option {word}")),
                _ => plain.push(word.clone()),
            }
        }
        match <[String; 2]>::try_from(plain) {
            Ok([id, file]) => (load.id, load.file) = (Some(id), file),
            Err(plain) if plain.len() == 1 => load.file.clone_from(&plain[0]),
            Err(_) => return Err("One file is needed, perhaps after an id".to_owned()),
        }
        if let Some(id) = &load.id
            && (id.is_empty() || !id.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.:".contains(letter)))
        {
            return Err(format!("\"{id}\" is no id: letters, digits and _ - . : make one"));
        }
        Ok(load)
    }

    fn files(&self) -> PemFiles {
        let absolute = |path: &String| arguments::absolute(Path::new(path));
        PemFiles { certificate: absolute(&self.file), key: self.key.as_ref().map(absolute), ocsp: None }
    }
}

/// The command after `tls.cert.`.
#[derive(Clone, Copy)]
pub(super) enum TlsCommand {
    Commit,
    Discard,
    List,
    Load,
    Reload,
    Rollback,
}

impl Call<'_> {
    /// `tls.cert.*`.
    pub(super) async fn tls(self, command: TlsCommand) -> Response {
        if !self.manager.tls.borrow().is_configured() {
            return Response::new(status::CANNOT, "TLS has not been configured");
        }
        let result = match command {
            TlsCommand::Load => self.certificate_load().await,
            TlsCommand::Discard => {
                let id = self.arguments[0].clone();
                apply::stage(self.manager, |registry| registry.stage_discard(&id)).await.map(|()| String::new())
            }
            TlsCommand::Commit => {
                apply::change(self.manager, |registry| registry.commit()).await.map(|()| String::new())
            }
            TlsCommand::Rollback => {
                let rolled_back = apply::stage(self.manager, |registry| {
                    registry.rollback();
                    Ok(())
                });
                rolled_back.await.map(|()| String::new())
            }
            TlsCommand::Reload => reload::reload(self.manager).await.map(|_| String::new()),
            TlsCommand::List => return self.certificate_list(),
        };
        match result {
            Ok(text) => Response::ok(text),
            Err(text) => Response::new(status::CANNOT, text),
        }
    }

    async fn certificate_load(&self) -> Result<String, String> {
        let load = Load::parse(self.arguments)?;
        let (files, manager) = (load.files(), self.manager);
        let read = files.read()?;
        notes(&files, &read).into_iter().for_each(|note| manager.say(Level::Warning, note));
        let refuses_duplicates = manager.parameters.borrow().tls_err_dup_servername;
        let staged = apply::stage(manager, |registry| {
            let id = load.id.unwrap_or_else(|| registry.next_id());
            let certificate =
                Certificate { is_default: load.is_default, ..Certificate::from_files(id, load.frontend, files, read) };
            if refuses_duplicates && let Some((name, other)) = registry.duplicate(&certificate) {
                return Err(duplicate_text(&certificate, &name, &other));
            }
            registry.stage_load(certificate.clone())?;
            Ok(certificate)
        });
        say_dates(&staged.await?, &manager.reporter);
        Ok(match load.has_handshake_options {
            true => "Note: protocols and suites are settled by the frontend: those of a certificate are checked and not used.\n"
                .to_owned(),
            false => String::new(),
        })
    }

    fn certificate_list(self) -> Response {
        let only_staged = match self.arguments {
            [] => false,
            [flag] if flag == "-s" => true,
            _ => return Response::new(status::PARAMETER, format!("Unknown option {}", self.arguments[0])),
        };
        let registry = self.manager.tls.borrow();
        let active = registry.active().iter().map(|certificate| {
            (certificate, if registry.is_discarded(&certificate.id) { "discard" } else { "active" })
        });
        let staged = registry.staged_loads().map(|certificate| (certificate, "staged"));
        let rows = active.chain(staged).filter(|(_, state)| !only_staged || *state != "active");
        if self.json {
            let mut reply = self.json_reply(2);
            rows.for_each(|(certificate, state)| reply.push("\n  ", &json(certificate, state)));
            return Response::ok(reply.finish());
        }
        let lines = rows.map(|(certificate, state)| {
            let frontend = certificate.frontend.as_deref().unwrap_or(GLOBAL);
            format!("{frontend}\t{}\t{state}\t{}\n", certificate.id, subject(certificate))
        });
        Response::ok(lines.collect::<String>())
    }
}

/// The subject, or the first name where there is none.
fn subject(certificate: &Certificate) -> &str {
    let facts = &certificate.loaded.facts;
    match facts.subject.as_str() {
        "" => facts.names.first().map_or("", String::as_str),
        subject => subject,
    }
}

fn json(certificate: &Certificate, state: &str) -> String {
    let facts = &certificate.loaded.facts;
    let names: Vec<String> = facts.names.iter().map(|name| string(name)).collect();
    format!(
        "{{\n    \"frontend\": {},\n    \"id\": {},\n    \"state\": {},\n    \"subject\": {},\n    \"issuer\": {},\n    \
         \"serial\": {},\n    \"names\": [{}],\n    \"key\": {},\n    \"not_before\": {},\n    \"not_after\": {},\n    \
         \"default\": {},\n    \"ocsp\": {}\n  }}",
        string(certificate.frontend.as_deref().unwrap_or(GLOBAL)),
        string(&certificate.id),
        string(state),
        string(&facts.subject),
        string(&facts.issuer),
        string(&facts.serial),
        names.join(", "),
        string(&facts.key_kind),
        facts.not_before,
        facts.not_after,
        certificate.is_default,
        certificate.ocsp.is_some(),
    )
}
