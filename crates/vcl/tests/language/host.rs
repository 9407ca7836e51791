//! A host for test programs: stores headers and variables, and records all calls. The tests inside
//! the crate (`src/tests/programs.rs`) also use this file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use surface::tag::Tag;
use surface::vcl::{HttpObject, LEGACY_VARIABLES, Type, VARIABLES, Var};
use surface::vmod::FUNCTIONS;
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::value::{DirectorId, Scratch, Text, Value};

/// Stores headers and variables, and records everything else.
pub struct RecordingHost<'p> {
    program: &'p LinkedProgram,
    pub headers: BTreeMap<(String, String), Vec<u8>>,
    pub texts: BTreeMap<String, Vec<u8>>,
    pub values: BTreeMap<String, Value>,
    pub done: Vec<String>,
    /// The next VMOD call waits, and then returns this.
    pub wait_for: Option<Value>,
    pub is_traced: bool,
    /// Number of reads of a header or a variable.
    pub asked: usize,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl<'p> RecordingHost<'p> {
    /// A host for one run, with a request for `/url` of `192.0.2.77`.
    pub fn new(program: &'p LinkedProgram) -> RecordingHost<'p> {
        let mut host = RecordingHost {
            program,
            headers: BTreeMap::new(),
            texts: BTreeMap::new(),
            values: BTreeMap::new(),
            done: Vec::new(),
            wait_for: None,
            is_traced: true,
            asked: 0,
        };
        host.texts.insert("ReqUrl".into(), b"/url".to_vec());
        host.texts.insert("ReqMethod".into(), b"GET".to_vec());
        host.values.insert("ClientIp".into(), Value::Ip(Some(("192.0.2.77".parse().unwrap(), 1234))));
        host.headers.insert(("Req".into(), "host".into()), b"example.com".to_vec());
        host
    }

    fn shown(&self, value: Value, scratch: &Scratch) -> String {
        match value {
            Value::Text(handle) if !handle.is_set() => "unset".into(),
            Value::Text(handle) => format!("{:?}", text(scratch.get(handle))),
            Value::Blob(handle) => format!("blob {:?}", text(scratch.get(handle))),
            Value::Header(http, name) => format!("{http:?} {}", self.program.header_name(name)),
            Value::Backend(director) => format!("backend {:?}", director.map(|director| director.0)),
            other => format!("{other:?}"),
        }
    }
}

impl Host for RecordingHost<'_> {
    fn program(&self) -> &LinkedProgram {
        self.program
    }

    fn now(&self) -> f64 {
        784_111_777.0
    }

    fn is_traced(&self) -> bool {
        self.is_traced
    }

    fn is_usual(&self) -> bool {
        let header = |name: &str| self.headers.get(&("Req".to_owned(), name.to_owned()));
        self.texts.get("ReqMethod").is_some_and(|method| method == b"GET")
            && header("host").is_some_and(|host| !host.iter().any(u8::is_ascii_uppercase))
            && header("authorization").or(header("cookie")).is_none()
    }

    fn read(&mut self, var: Var, scratch: &mut Scratch) -> Result<Value, Failure> {
        self.asked += 1;
        let name = format!("{var:?}");
        if let Some(bytes) = self.texts.get(&name) {
            return Ok(Value::Text(scratch.put(bytes)));
        }
        if let Some(&value) = self.values.get(&name) {
            return Ok(value);
        }
        let old = LEGACY_VARIABLES.iter().find(|(old, _)| *old == var).map(|&(_, kind)| kind);
        let kind = old.or(VARIABLES.iter().find(|row| row.var == var).map(|row| row.kind)).unwrap();
        Ok(match kind {
            Type::Bool => Value::Bool(false),
            Type::Int => Value::Int(0),
            Type::Duration => Value::Duration(0.0),
            Type::Time => Value::Time(0.0),
            Type::Ip => Value::Ip(None),
            Type::Backend => Value::Backend(None),
            Type::Blob => Value::Blob(Text::EMPTY),
            Type::Stevedore => Value::Stevedore(None),
            _ => Value::Text(Text::UNSET),
        })
    }

    fn write(&mut self, var: Var, value: Value, append: bool, scratch: &mut Scratch) -> Result<(), Failure> {
        let name = format!("{var:?}");
        if var == Var::ReqUrl && matches!(value, Value::Text(text) if text.is_empty()) {
            return Err(Failure("Setting req.url to empty string".into()));
        }
        self.done.push(format!("{name} {} {}", if append { "+=" } else { "=" }, self.shown(value, scratch)));
        match value {
            Value::Text(handle) => {
                self.texts.insert(name, scratch.get(handle).to_vec());
            }
            other => {
                self.values.insert(name, other);
            }
        }
        Ok(())
    }

    fn unset(&mut self, var: Var) -> Result<(), Failure> {
        self.done.push(format!("unset {var:?}"));
        Ok(())
    }

    fn header(&mut self, http: HttpObject, name: &str) -> Option<&[u8]> {
        self.asked += 1;
        self.headers.get(&(format!("{http:?}"), name.to_ascii_lowercase())).map(Vec::as_slice)
    }

    fn set_header(&mut self, http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure> {
        let bytes = scratch.get(value).to_vec();
        self.done.push(format!("{http:?} {name}: {}", text(&bytes)));
        self.headers.insert((format!("{http:?}"), name.to_ascii_lowercase()), bytes);
        Ok(())
    }

    fn unset_header(&mut self, http: HttpObject, name: &str) {
        self.done.push(format!("unset {http:?} {name}"));
        self.headers.remove(&(format!("{http:?}"), name.to_ascii_lowercase()));
    }

    fn storage_property(&mut self, storage: Option<u32>, var: Var) -> Value {
        match var {
            Var::StorageHappy => Value::Bool(true),
            _ => Value::Bytes(1024 * (i64::from(storage.unwrap_or(9)) + 1)),
        }
    }

    fn storage_name(&self, storage: Option<u32>) -> &str {
        if storage == Some(0) { "s0" } else { "Transient" }
    }

    fn director_name(&self, director: DirectorId) -> Cow<'_, str> {
        let backend = self.program.program().backends.get(director.0 as usize);
        Cow::Borrowed(backend.map_or("director", |backend| backend.name.as_str()))
    }

    fn resolve_director(&mut self, _director: DirectorId) -> Option<DirectorId> {
        Some(DirectorId(0))
    }

    fn hash_data(&mut self, piece: Option<&[u8]>) {
        self.done
            .push(format!("hash {}", piece.map_or_else(|| "unset".to_owned(), |piece| format!("\"{}\"", text(piece)))));
    }

    fn hash_end(&mut self) {
        self.done.push("hash end".to_owned());
    }

    fn synthetic(&mut self, body: &[u8]) {
        self.done.push(format!("synthetic true {}", text(body)));
    }

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        self.done.push(format!("ban {}", text(expression)));
        Ok(())
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        self.done.push(format!("{} {}", tag.name(), text(payload)));
    }

    fn call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        arguments: &[Value],
        scratch: &mut Scratch,
    ) -> Result<Called, Failure> {
        let row = &FUNCTIONS[function as usize];
        let shown: Vec<String> = arguments.iter().map(|&value| self.shown(value, scratch)).collect();
        let instance = instance
            .map_or(String::new(), |instance| format!("{}.", self.program.program().instances[instance as usize].name));
        self.done.push(format!("call {instance}{}.{}{}({})", row.vmod, row.class, row.name, shown.join(", ")));
        if self.wait_for.is_some() {
            return Ok(Called::Wait);
        }
        Ok(Called::Value(match row.returns {
            Type::Void => Value::Void,
            Type::Bool => Value::Bool(true),
            Type::Int => Value::Int(7),
            Type::Real => Value::Real(0.5),
            Type::Duration => Value::Duration(3.0),
            Type::Backend => Value::Backend(Some(DirectorId(0))),
            Type::Ip => {
                arguments.iter().copied().find(|value| matches!(value, Value::Ip(_))).unwrap_or(Value::Ip(None))
            }
            _ => Value::Text(scratch.put(b"called")),
        }))
    }

    fn resume(&mut self, _scratch: &mut Scratch) -> Result<Value, Failure> {
        self.done.push("resume".into());
        self.wait_for.take().ok_or_else(|| Failure("nothing to wait for".into()))
    }
}
