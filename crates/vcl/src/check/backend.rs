//! Backends and probes.

use super::address::{is_address, listed, split, without_port};
use super::backend_care::{CARE_FIELDS, CareFields};
use super::backend_tls::{TLS_FIELDS, TlsFields};
use super::{Checked, Checker, Meaning, Reported, nearest};
use crate::diagnostic::Draft;
use crate::files::{FileKind, error_text};
use crate::source::{Kind, Sign};
use crate::tree::{At, Backend, Field, FieldValue, Probe};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use surface::diagnostic::Code;
use surface::quantity::seconds_in;
use vcl_run::program::{BackendDefinition, Endpoint, FollowedName, ProbeDefinition, ViaDefinition};

const BACKEND_FIELDS: &[&str] = &[
    "host",
    "port",
    "path",
    "host_header",
    "connect_timeout",
    "first_byte_timeout",
    "between_bytes_timeout",
    "probe",
    "max_connections",
    "wait_limit",
    "wait_timeout",
    "proxy_header",
    "preamble",
    "via",
    "authority",
];
/// The fields allowed in the list of a dns director.
const COMMON_FIELDS: &[&str] =
    &["port", "host_header", "connect_timeout", "first_byte_timeout", "between_bytes_timeout", "max_connections"];
const PROBE_FIELDS: &[&str] =
    &["url", "request", "expected_response", "timeout", "interval", "initial", "window", "threshold", "expect_close"];

/// The port of a backend with `.ssl` and without `.port`.
const HTTPS_PORT: &str = "443";

/// Most past results that a probe can consider.
const PROBE_WINDOW_MAX: u32 = 64;

/// Reads the tokens of one value, which must end with a semicolon.
pub(super) struct Value {
    next: At,
    end: At,
}

impl Value {
    /// The next token.
    pub(super) fn place(&self) -> At {
        self.next
    }
}

/// An address or a number, with the place where it was set.
type Placed<T> = Option<(T, At)>;

#[derive(Default)]
struct BackendFields {
    host: Placed<String>,
    port: Placed<String>,
    path: Placed<PathBuf>,
    /// The name of the attribute that set the address.
    address: Option<At>,
    host_header: Option<String>,
    connect_timeout: Option<f64>,
    first_byte_timeout: Option<f64>,
    between_bytes_timeout: Option<f64>,
    max_connections: u32,
    wait_limit: Option<u32>,
    wait_timeout: Option<f64>,
    proxy_header: u8,
    preamble: Vec<u8>,
    probe: Option<u32>,
    via: Placed<u32>,
    authority: Placed<String>,
    tls: TlsFields,
    care: CareFields,
}

impl Checker<'_> {
    pub(super) fn backend(&mut self, tree: &Backend) -> Checked<()> {
        let index = self.backends.len() as u32;
        let name = self.declare(tree.name, Meaning::Backend(index), "Backend", "backend")?;
        let mut definition = BackendDefinition::new(name.clone(), Endpoint::None);
        if let Some(fields) = &tree.fields {
            let context = Draft::new(Code::Expected).text("\nIn backend specification starting at:\n");
            self.call_context.push(context.at(self.token(tree.keyword)));
            // An invalid backend is reported and stays without an address.
            if let Ok(full) = self.backend_fields(tree, fields, name.clone()) {
                definition = full;
            }
            self.call_context.pop();
        }
        self.backends.push(definition);
        let first = self.default_backend.is_none() && self.default_director.is_none();
        if first || name == "default" {
            self.default_backend = Some(index);
            self.default_director = None;
        }
        Ok(())
    }

    pub(super) fn backend_fields(
        &mut self,
        tree: &Backend,
        fields: &[Field],
        name: String,
    ) -> Checked<BackendDefinition> {
        let of_today: &[&[&'static str]] = if self.loaded.syntax >= 40 { &[CARE_FIELDS, TLS_FIELDS] } else { &[] };
        self.no_duplicates(
            fields,
            &[BACKEND_FIELDS, &of_today.concat()].concat(),
            self.dialect.ignored_backend_fields,
        )?;
        let mut set = BackendFields::default();
        for field in fields {
            self.backend_field(field, &mut set)?;
        }
        let probe = set.probe.or(self.default_probe);
        let is_tls = set.tls.is_on();
        let mut follows = None;
        let (endpoint, host, port) = if let Some((path, place)) = set.path.take() {
            if is_tls.is_some() {
                return Err(self.error_at(Code::FieldValue, "Cannot set both .ssl and .path.", place));
            }
            (Endpoint::Unix(path), String::new(), String::new())
        } else if let Some((host, place)) = &set.host {
            let set_port = set.port.as_ref().map(|(port, _)| port.as_str());
            let default = if is_tls.is_some() { HTTPS_PORT } else { "" };
            let endpoint = self.endpoint(host, *place, set_port, default)?;
            follows = self.followed_name(host, set_port.is_some(), &endpoint);
            (endpoint, host.clone(), set_port.unwrap_or(default).to_owned())
        } else {
            return Err(self.error_at(Code::BackendAddressMissing, "Expected .host or .path.", tree.name.first));
        };
        let tls = {
            let written = set.host_header.as_deref().unwrap_or_default();
            self.tls_definition(&mut set.tls, &host, written)?
        };
        let host_header = set.host_header.take().unwrap_or_else(|| match endpoint {
            Endpoint::Unix(_) | Endpoint::None => "0.0.0.0".to_owned(),
            Endpoint::Ip { .. } => host.clone(),
        });
        let via = self.via(&mut set, &endpoint, &host_header)?;
        let breaker = self.breaker_definition(&set.care)?;
        Ok(BackendDefinition {
            name,
            endpoint,
            host,
            port,
            host_header,
            connect_timeout: set.connect_timeout,
            first_byte_timeout: set.first_byte_timeout,
            between_bytes_timeout: set.between_bytes_timeout,
            max_connections: set.max_connections,
            wait_limit: set.wait_limit,
            wait_timeout: set.wait_timeout,
            last_byte_timeout: set.care.last_byte_timeout,
            idle_timeout: set.care.idle_timeout,
            breaker,
            slow_start: set.care.slow_start,
            retry_budget: set.care.retry_budget,
            // Behind a proxy, the proxy resolves the name.
            follows: follows.filter(|_| via.is_none()),
            via,
            proxy_header: set.proxy_header,
            preamble: set.preamble,
            probe,
            tls,
            http2: set.tls.http2,
        })
    }

    /// The common settings of backends in a dns director's list.
    pub(super) fn common_fields(&mut self, fields: &[Field]) -> Checked<BackendDefinition> {
        self.no_duplicates(fields, COMMON_FIELDS, self.dialect.ignored_backend_fields)?;
        let mut set = BackendFields::default();
        for field in fields {
            self.backend_field(field, &mut set)?;
        }
        let port = match &set.port {
            Some((port, place)) => {
                if let Err(reason) = self.port(port) {
                    return Err(self.error_at(Code::BackendUnresolved, &reason, *place));
                }
                port.clone()
            }
            None => String::new(),
        };
        Ok(BackendDefinition {
            port,
            host_header: set.host_header.unwrap_or_default(),
            connect_timeout: set.connect_timeout,
            first_byte_timeout: set.first_byte_timeout,
            between_bytes_timeout: set.between_bytes_timeout,
            max_connections: set.max_connections,
            ..BackendDefinition::new("", Endpoint::None)
        })
    }

    fn no_duplicates(&mut self, fields: &[Field], known: &[&'static str], ignored: &[&'static str]) -> Checked<()> {
        for (index, field) in fields.iter().enumerate() {
            let name = self.text(field.name);
            if !known.contains(&name) && !ignored.contains(&name) {
                let token = self.token(field.name);
                let draft = self.draft_at(Code::UnknownField, &format!("Unknown field: '{name}' at"), field.name);
                let draft = draft.hint(format!("the fields are .{}", known.join(", .")));
                let near = nearest(name, known.iter().copied());
                let hint = near.map(|near| format!("did you mean .{near}?"));
                return Err(self.error(field.name, draft.nearest(token, token, near).maybe_hint(hint)));
            }
            if let Some(before) = fields[..index.min(32)].iter().find(|before| self.text(before.name) == name) {
                let text = format!("Field '{name}' redefined at:");
                let draft = self.draft_at(Code::FieldRepeated, &text, field.name);
                let draft = draft.text("\n\nFirst defined at:\n").at(self.token(before.name));
                return Err(self.error(field.name, draft));
            }
        }
        Ok(())
    }

    fn backend_field(&mut self, field: &Field, set: &mut BackendFields) -> Checked<()> {
        match self.text(field.name) {
            "host" => {
                self.one_address(field.name, set)?;
                set.host = Some(self.string_field(field)?);
            }
            "path" => {
                self.one_address(field.name, set)?;
                let (path, place) = self.string_field(field)?;
                self.unix_path(&path, place)?;
                set.path = Some((PathBuf::from(path), place));
            }
            "port" => set.port = Some(self.string_field(field)?),
            "host_header" => set.host_header = Some(self.string_field(field)?.0),
            "connect_timeout" => set.connect_timeout = Some(self.duration_field(field)?),
            "first_byte_timeout" => set.first_byte_timeout = Some(self.duration_field(field)?),
            "between_bytes_timeout" => set.between_bytes_timeout = Some(self.duration_field(field)?),
            "max_connections" => set.max_connections = self.integer_field(field)?.0,
            "wait_limit" => set.wait_limit = Some(self.integer_field(field)?.0),
            "wait_timeout" => set.wait_timeout = Some(self.duration_field(field)?),
            "via" => set.via = Some(self.via_field(field)?),
            "authority" => set.authority = Some(self.string_field(field)?),
            "proxy_header" => {
                let (version, place) = self.integer_field(field)?;
                if version != 1 && version != 2 {
                    return Err(self.error_at(Code::FieldValue, ".proxy_header must be 1 or 2", place));
                }
                set.proxy_header = version as u8;
            }
            "preamble" => {
                let mut value = self.field_value(field)?;
                let place = self.take_kind(&mut value, Kind::Blob, "CBLOB")?;
                self.finish(&value)?;
                set.preamble = decode_blob(self.loaded.sources.bytes(self.token(place)));
            }
            "probe" => set.probe = Some(self.probe_field(field)?),
            name if CARE_FIELDS.contains(&name) => self.care_field(field, &mut set.care)?,
            name if TLS_FIELDS.contains(&name) => self.tls_field(field, &mut set.tls)?,
            name if self.dialect.ignored_backend_fields.contains(&name) => {
                self.without_effect(&format!("'.{name}'"), field.name, field.name);
            }
            _ => return Err(Reported),
        }
        Ok(())
    }

    fn one_address(&mut self, name: At, set: &mut BackendFields) -> Checked<()> {
        if let Some(before) = set.address.replace(name) {
            let draft = self.draft_at(Code::FieldRepeated, "Address redefinition at:", name);
            return Err(self.error(name, draft.text("\nPrevious definition:\n").at(self.token(before))));
        }
        Ok(())
    }

    /// `.via`: a backend declared earlier, and its place.
    fn via_field(&mut self, field: &Field) -> Checked<(u32, At)> {
        let mut value = self.field_value(field)?;
        let place = self.take_kind(&mut value, Kind::Word, "backend name")?;
        self.finish(&value)?;
        let name = self.text(place);
        match self.use_symbol_of(name, &["backend"]) {
            Some(Meaning::Backend(index)) if self.backends.get(index as usize).is_some() => Ok((index, place)),
            // The backend's own name is already known.
            Some(Meaning::Backend(_)) => {
                Err(self.error_at(Code::FieldValue, "A backend cannot be its own .via backend.", place))
            }
            Some(_) => Err(self.wrong_type(name, place, place, "backend")),
            None if self.is_damaged(name) => Err(Reported),
            None => Err(self.not_found(
                name,
                place,
                place,
                Some("the backend of .via is declared before the one that uses it"),
            )),
        }
    }

    /// Evaluates `.via` and `.authority`. Settings that the backend lacks are taken from the proxy.
    fn via(
        &mut self,
        set: &mut BackendFields,
        endpoint: &Endpoint,
        host_header: &str,
    ) -> Checked<Option<ViaDefinition>> {
        let authority = match &set.authority {
            Some((written, place)) => {
                if is_address(written) {
                    let text = ".authority cannot be an IP address.";
                    return Err(self.error_at(Code::FieldValue, text, *place));
                }
                without_port(written).to_owned()
            }
            None if is_address(host_header) => String::new(),
            None => without_port(host_header).to_owned(),
        };
        let Some((index, place)) = set.via else { return Ok(None) };
        let proxy = &self.backends[index as usize];
        let (name, reached, is_secure) = (proxy.name.clone(), proxy.endpoint.clone(), proxy.tls.is_some());
        set.connect_timeout = set.connect_timeout.or(proxy.connect_timeout);
        set.first_byte_timeout = set.first_byte_timeout.or(proxy.first_byte_timeout);
        set.between_bytes_timeout = set.between_bytes_timeout.or(proxy.between_bytes_timeout);
        if proxy.via.is_some() {
            return Err(self.error_at(Code::FieldValue, "Cannot stack .via backends.", place));
        }
        if !matches!(endpoint, Endpoint::Ip { .. }) {
            return Err(self.error_at(Code::FieldValue, "Cannot set both .via and .path.", place));
        }
        if is_secure {
            return Err(self.error_at(Code::FieldValue, "The backend of .via cannot have .ssl itself.", place));
        }
        if reached == Endpoint::None {
            return Err(self.error_at(Code::FieldValue, "The backend of .via has no address.", place));
        }
        Ok(Some(ViaDefinition { name, endpoint: reached, authority }))
    }

    fn unix_path(&mut self, path: &str, place: At) -> Checked<()> {
        if self.loaded.syntax < 41 {
            let text = format!("Unix socket backends only supported in VCL4.1 and higher.\n{} at ", self.shown(place));
            return Err(self.error(place, Draft::new(Code::UnixPath).text(text).at(self.token(place))));
        }
        // An abstract socket is not in a directory.
        if path.len() > 1 && path.starts_with('@') {
            return Ok(());
        }
        if !path.starts_with('/') {
            return Err(self.error_at(Code::UnixPath, "Backend path: Must be an absolute path:", place));
        }
        match self.options.files.kind(Path::new(path)) {
            Ok(FileKind::Socket) => Ok(()),
            Ok(FileKind::Other) => Err(self.error_at(Code::UnixPath, "Backend path: Not a socket:", place)),
            Err(error) => {
                let text = format!("Backend path: Cannot stat: {}", error_text(&error));
                let draft = self.draft_at(Code::UnixPath, &text, place);
                self.warning(place, draft);
                Ok(())
            }
        }
    }

    /// Resolves `.host` and `.port` to at most one address of each family.
    fn endpoint(&mut self, host: &str, place: At, port: Option<&str>, default_port: &str) -> Checked<Endpoint> {
        let resolved = match port {
            Some(port) => {
                let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
                self.port(port).and_then(|port| Ok((self.addresses_or_any(bare)?, port)))
            }
            None => self.addresses_and_port(host, default_port),
        };
        let (addresses, port) = match resolved {
            Ok(resolved) => resolved,
            Err(reason) => {
                let text = format!(
                    "Backend host '\"{host}\"' could not be resolved to an IP address:\n\t{reason}\n(Sorry if that error message is gibberish.)"
                );
                return Err(self.error_at(Code::BackendUnresolved, &text, place));
            }
        };
        let mut v4: Vec<IpAddr> = Vec::new();
        let mut v6: Vec<IpAddr> = Vec::new();
        for address in addresses {
            let family = if address.is_ipv4() { &mut v4 } else { &mut v6 };
            if !family.contains(&address) {
                family.push(address);
            }
        }
        let is_one_enough = self.dialect.defaults.first_address || self.follows_names();
        if (v4.len() > 1 || v6.len() > 1) && !is_one_enough {
            let all = listed(v4.iter().chain(&v6), port);
            let text = format!(
                "Backend host \"{host}\": resolves to too many addresses.\nOnly one IPv4 and one IPv6 are allowed.\n{all}"
            );
            return Err(self.error_at(Code::BackendManyAddresses, &text, place));
        }
        let first = |found: Vec<IpAddr>| found.first().map(|&address| SocketAddr::new(address, port));
        Ok(Endpoint::Ip { v4: first(v4), v6: first(v6) })
    }

    fn follows_names(&self) -> bool {
        self.options.follows_names && self.loaded.syntax >= 40
    }

    /// Name to look up periodically, if that is enabled and `.host` is a name.
    fn followed_name(&self, host: &str, has_port: bool, endpoint: &Endpoint) -> Option<FollowedName> {
        let Endpoint::Ip { v4, v6 } = endpoint else { return None };
        let port = v4.or(*v6)?.port();
        let name = if has_port { host } else { split(host).ok()?.host };
        let is_name = !matches!(name, "" | "*") && !is_address(name);
        (self.follows_names() && is_name).then(|| FollowedName { host: name.to_owned(), port })
    }

    fn probe_field(&mut self, field: &Field) -> Checked<u32> {
        let FieldValue::Tokens(first, _) = field.value else {
            let FieldValue::Fields(fields) = &field.value else { return Err(Reported) };
            return self.probe_fields(fields, String::new());
        };
        let mut value = self.field_value(field)?;
        if self.token(first).kind != Kind::Word {
            let text = format!("Expected '{{' or name of probe, got {} at", self.shown(first));
            return Err(self.error_at(Code::Expected, &text, first));
        }
        value.next += 1;
        let name = self.text(first);
        if name == "default" {
            return match self.default_probe {
                Some(probe) => {
                    self.finish(&value)?;
                    Ok(probe)
                }
                None => {
                    let text = format!("No default probe defined\n{} at", self.shown(value.next));
                    let draft = self.draft_at(Code::ProbeMissing, &text, value.next);
                    Err(self.error(value.next, draft.hint("declare probe default before the backends that use it")))
                }
            };
        }
        match self.use_symbol_of(name, &["probe"]) {
            Some(Meaning::Probe(probe)) => {
                self.finish(&value)?;
                Ok(probe)
            }
            Some(_) => Err(self.wrong_type(name, first, first, "probe")),
            None if self.is_damaged(name) => Err(Reported),
            None => {
                let probes = self.symbols.values().filter(|symbol| matches!(symbol.meaning, Meaning::Probe(_)));
                let known: Vec<String> = probes.map(|symbol| symbol.name.clone()).collect();
                let near = nearest(name, known.iter().map(String::as_str));
                let help = near.is_none().then_some("a probe is declared before the backends that use it");
                Err(self.unknown_symbol(name, first, first, help, near))
            }
        }
    }

    pub(super) fn probe(&mut self, tree: &Probe) -> Checked<()> {
        let text = self.name_text(tree.name);
        let is_default = text == "default";
        // Its index is known before its fields are read: no inline probe can come in between.
        let index = self.probes.len() as u32;
        if is_default {
            self.symbols.remove("probe default");
        }
        let name = self.declare(tree.name, Meaning::Probe(index), "Probe", "backend probe")?;
        match self.probe_fields(&tree.fields, name.clone()) {
            Ok(index) => {
                if is_default {
                    self.default_probe = Some(index);
                    if let Some(symbol) = self.symbols.get_mut("probe default") {
                        symbol.used = true;
                    }
                }
                Ok(())
            }
            Err(Reported) => {
                self.damaged.insert(name.to_ascii_lowercase());
                self.symbols.remove(name.to_ascii_lowercase().as_str());
                Err(Reported)
            }
        }
    }

    fn probe_fields(&mut self, fields: &[Field], name: String) -> Checked<u32> {
        self.no_duplicates(fields, PROBE_FIELDS, &[])?;
        let mut probe = ProbeDefinition {
            name,
            url: String::new(),
            request: String::new(),
            expected_response: 200,
            timeout: 2.0,
            interval: 5.0,
            initial: 0,
            window: 0,
            threshold: 0,
            expect_close: true,
        };
        let mut what: Option<At> = None;
        let (mut window, mut threshold, mut initial): (Placed<u32>, Placed<u32>, Option<u32>) = (None, None, None);
        for field in fields {
            let field_name = self.text(field.name);
            if matches!(field_name, "url" | "request")
                && let Some(before) = what.replace(field.name)
            {
                let draft = self.draft_at(Code::FieldRepeated, "Probe request redefinition at:", field.name);
                let draft = draft.text("\nPrevious definition:\n").at(self.token(before));
                return Err(self.error(field.name, draft));
            }
            match field_name {
                "url" => probe.url = self.string_field(field)?.0,
                "request" => probe.request = self.request_field(field)?,
                "expected_response" => {
                    let (status, place) = self.integer_field(field)?;
                    if !(100..=999).contains(&status) {
                        let text = "Must specify .expected_response with exactly three digits (100 <= x <= 999)";
                        return Err(self.error_at(Code::FieldValue, text, place));
                    }
                    probe.expected_response = status as u16;
                }
                "timeout" => probe.timeout = self.duration_field(field)?,
                "interval" => probe.interval = self.duration_field(field)?,
                "initial" => initial = Some(self.integer_field(field)?.0),
                "window" => window = Some(self.integer_field(field)?),
                "threshold" => threshold = Some(self.integer_field(field)?),
                "expect_close" => probe.expect_close = self.bool_field(field)?,
                _ => return Err(Reported),
            }
        }
        if probe.url.is_empty() && probe.request.is_empty() {
            probe.url = "/".to_owned();
        }
        (probe.window, probe.threshold) = self.window(window, threshold)?;
        let pretended = probe.threshold.saturating_sub(u32::from(!self.dialect.defaults.probes_begin_good));
        probe.initial = initial.unwrap_or(pretended).min(probe.threshold);
        self.probes.push(probe);
        Ok(self.probes.len() as u32 - 1)
    }

    /// `.window` and `.threshold`, in that order.
    fn window(&mut self, window: Placed<u32>, threshold: Placed<u32>) -> Checked<(u32, u32)> {
        let (window, threshold) = match (window, threshold) {
            (None, None) => return Ok((8, 3)),
            (Some((_, place)), None) => {
                return Err(self.error_at(Code::ProbeWindow, "Must specify .threshold with .window", place));
            }
            (None, Some((threshold, place))) => {
                ((threshold.saturating_add(1).min(PROBE_WINDOW_MAX), place), (threshold, place))
            }
            (Some(window), Some(threshold)) => (window, threshold),
        };
        if threshold.0 > window.0 && threshold.1 != window.1 {
            let text = "Threshold can not be greater than window.";
            let draft = self.draft_at(Code::ProbeWindow, text, threshold.1);
            return Err(self.error(threshold.1, draft.text("\n").at(self.token(window.1))));
        }
        if window.0 > PROBE_WINDOW_MAX {
            return Err(self.error_at(Code::ProbeWindow, "Window must be 64 or less.", window.1));
        }
        if threshold.0 > PROBE_WINDOW_MAX {
            return Err(self.error_at(Code::ProbeWindow, "Threshold must be 64 or less.", threshold.1));
        }
        Ok((window.0, threshold.0))
    }

    pub(super) fn field_value(&mut self, field: &Field) -> Checked<Value> {
        match field.value {
            FieldValue::Tokens(next, end) => Ok(Value { next, end }),
            // Only .probe expects a brace; all others report it as unexpected.
            FieldValue::Fields(_) => Ok(Value { next: field.name + 2, end: field.name + 2 }),
        }
    }

    pub(super) fn take_kind(&mut self, value: &mut Value, kind: Kind, shown: &str) -> Checked<At> {
        if value.next < value.end && self.token(value.next).kind == kind {
            value.next += 1;
            return Ok(value.next - 1);
        }
        let is_bare = value.next < value.end && matches!(self.token(value.next).kind, Kind::Integer | Kind::Word);
        let help = (kind == Kind::Text && is_bare).then(|| format!("in quotes: \"{}\"", self.text(value.next)));
        Err(self.expected_with(shown, value.next, help.as_deref()))
    }

    pub(super) fn finish(&mut self, value: &Value) -> Checked<()> {
        if value.next == value.end && self.token(value.end).is(Sign::Semicolon) {
            return Ok(());
        }
        Err(self.expected("';'", value.next))
    }

    pub(super) fn string_field(&mut self, field: &Field) -> Checked<(String, At)> {
        let mut value = self.field_value(field)?;
        let place = self.take_kind(&mut value, Kind::Text, "CSTR")?;
        self.finish(&value)?;
        Ok((self.string(place), place))
    }

    pub(super) fn string(&self, place: At) -> String {
        String::from_utf8_lossy(self.loaded.sources.content(self.token(place))).into_owned()
    }

    /// Consecutive strings, each a line of the request.
    fn request_field(&mut self, field: &Field) -> Checked<String> {
        let mut value = self.field_value(field)?;
        let first = self.take_kind(&mut value, Kind::Text, "CSTR")?;
        let mut request = self.string(first) + "\r\n";
        while value.next < value.end {
            let line = self.take_kind(&mut value, Kind::Text, "CSTR")?;
            request += &self.string(line);
            request += "\r\n";
        }
        self.finish(&value)?;
        request += "\r\n";
        Ok(request)
    }

    /// The number, and the token after it.
    pub(super) fn integer_field(&mut self, field: &Field) -> Checked<(u32, At)> {
        let mut value = self.field_value(field)?;
        let place = self.take_kind(&mut value, Kind::Integer, "CNUM")?;
        self.finish(&value)?;
        Ok((self.text(place).parse().unwrap_or(u32::MAX), place))
    }

    fn bool_field(&mut self, field: &Field) -> Checked<bool> {
        let mut value = self.field_value(field)?;
        let place = value.next;
        let is_true = match self.text(place) {
            "true" => true,
            "false" => false,
            _ => return Err(self.expected("true or false", place)),
        };
        value.next += 1;
        self.finish(&value)?;
        Ok(is_true)
    }

    pub(super) fn duration_field(&mut self, field: &Field) -> Checked<f64> {
        let mut value = self.field_value(field)?;
        if value.next >= value.end || !matches!(self.token(value.next).kind, Kind::Integer | Kind::Real) {
            return Err(self.expected("CNUM", value.next));
        }
        let number = value.next;
        value.next += 1;
        let unit = value.next;
        if unit >= value.end && self.dialect.forms.bare_seconds {
            self.finish(&value)?;
            return Ok(self.text(number).parse().unwrap_or(0.0));
        }
        if unit >= value.end || self.token(unit).kind != Kind::Word {
            let text = format!("Expected ID got {}\nat", self.shown(unit));
            let draft = self.draft_at(Code::UnknownUnit, &text, unit);
            return Err(self.error(unit, draft.hint("a duration has a unit: ms, s, m, h, d, w or y")));
        }
        value.next += 1;
        let seconds = self.seconds(number, unit)?;
        self.finish(&value)?;
        Ok(seconds)
    }

    /// A number with a unit of time.
    pub(super) fn seconds(&mut self, number: At, unit: At) -> Checked<f64> {
        let amount: f64 = self.text(number).parse().unwrap_or(0.0);
        let name = self.text(unit);
        let Some(factor) = seconds_in(name) else {
            let text = format!(
                "Unknown duration unit '{name}'\nLegal duration units are 'ms', 's', 'm', 'h', 'd', 'w' and 'y'"
            );
            return Err(self.error_at(Code::UnknownUnit, &text, unit));
        };
        Ok(amount * factor)
    }
}

/// Decodes `:base64:`; the lexer has checked it.
pub(super) fn decode_blob(token: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = token.iter().copied().filter(|byte| *byte != b':').collect();
    STANDARD.decode(digits).unwrap_or_default()
}
