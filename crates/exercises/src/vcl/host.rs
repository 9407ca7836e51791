//! The host of random programs: three headers, one variable, and a list of the program's actions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use surface::tag::Tag;
use surface::vcl::{HttpObject, Var};
use vcl_run::host::{Called, Failure, Host};
use vcl_run::link::LinkedProgram;
use vcl_run::value::{DirectorId, Scratch, Text, Value};

pub(super) struct ListingHost<'p> {
    program: &'p LinkedProgram,
    headers: BTreeMap<String, Vec<u8>>,
    ttl: f64,
    is_traced: bool,
    pub(super) done: Vec<String>,
}

impl<'p> ListingHost<'p> {
    pub(super) fn new(program: &'p LinkedProgram, is_traced: bool) -> ListingHost<'p> {
        ListingHost { program, headers: BTreeMap::new(), ttl: 0.0, is_traced, done: Vec::new() }
    }
}

fn none() -> Failure {
    Failure("random programs do not do this".into())
}

impl Host for ListingHost<'_> {
    fn program(&self) -> &LinkedProgram {
        self.program
    }

    fn now(&self) -> f64 {
        0.0
    }

    fn is_traced(&self) -> bool {
        self.is_traced
    }

    fn read(&mut self, var: Var, _scratch: &mut Scratch) -> Result<Value, Failure> {
        if var == Var::ReqTtl { Ok(Value::Duration(self.ttl)) } else { Err(none()) }
    }

    fn write(&mut self, var: Var, value: Value, _append: bool, _scratch: &mut Scratch) -> Result<(), Failure> {
        let (Var::ReqTtl, Value::Duration(seconds)) = (var, value) else { return Err(none()) };
        self.ttl = seconds;
        self.done.push(format!("ttl {seconds:?}"));
        Ok(())
    }

    fn unset(&mut self, _var: Var) -> Result<(), Failure> {
        Err(none())
    }

    fn header(&mut self, _http: HttpObject, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(Vec::as_slice)
    }

    fn set_header(&mut self, _http: HttpObject, name: &str, value: Text, scratch: &Scratch) -> Result<(), Failure> {
        let value = scratch.get(value).to_vec();
        self.done.push(format!("{name}: {}", String::from_utf8_lossy(&value)));
        self.headers.insert(name.to_owned(), value);
        Ok(())
    }

    fn unset_header(&mut self, _http: HttpObject, name: &str) {
        self.headers.remove(name);
        self.done.push(format!("unset {name}"));
    }

    fn storage_property(&mut self, _storage: Option<u32>, _var: Var) -> Value {
        Value::Bytes(0)
    }

    fn storage_name(&self, _storage: Option<u32>) -> &str {
        ""
    }

    fn director_name(&self, _director: DirectorId) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn hash_data(&mut self, _piece: Option<&[u8]>) {}

    fn synthetic(&mut self, _body: &[u8]) {}

    fn ban(&mut self, expression: &[u8]) -> Result<(), String> {
        self.done.push(format!("ban {}", String::from_utf8_lossy(expression)));
        Ok(())
    }

    fn log(&mut self, tag: Tag, payload: &[u8]) {
        let text = String::from_utf8_lossy(payload);
        match tag {
            Tag::VCLReturn => self.done.push(format!("return {text}")),
            Tag::VCLError => self.done.push(format!("error {text}")),
            _ => {}
        }
    }

    fn call(
        &mut self,
        _function: u32,
        _instance: Option<u32>,
        _arguments: &[Value],
        _scratch: &mut Scratch,
    ) -> Result<Called, Failure> {
        Err(none())
    }

    fn resume(&mut self, _scratch: &mut Scratch) -> Result<Value, Failure> {
        Err(none())
    }
}
