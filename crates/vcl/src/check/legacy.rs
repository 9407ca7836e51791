//! The semantics of the old dialects.
//!
//! The user's subroutines are lowered once for each method that reaches them, because words mean
//! different things in different methods: `return (pass)` is a different action in `vcl_recv` than
//! in `vcl_pass`; `obj` is the response of the backend in `vcl_fetch` of 2.0, the page in
//! `vcl_error`, and the object that was found in `vcl_hit`. Next files: `legacy/variable.rs`,
//! `legacy/statement.rs`, `legacy/director.rs`.

mod director;
mod statement;
mod variable;

pub(super) use director::Declared;

use super::{Checker, Sub};
use crate::tree::At;
use surface::diagnostic::Code;
use surface::vcl::{Action, HttpObject, Method, Var};
use vcl_run::program::Op;

impl Checker<'_> {
    /// The method for which the current subroutine is lowered; `None` in subroutines of VCL 4 and
    /// in those that nothing calls.
    pub(super) fn method_here(&self) -> Option<Method> {
        let sub = &self.subs[self.current];
        sub.method.or(sub.under)
    }

    /// The subroutine to call for a user's subroutine: itself in VCL 4, otherwise its version for
    /// the current method.
    pub(super) fn callee_here(&mut self, sub: u32) -> u32 {
        let (Some(_), Some(method)) = (self.dialect.language, self.method_here()) else { return sub };
        if let Some(&known) = self.pieces_under.get(&(sub, method)) {
            return known;
        }
        let base = &self.subs[sub as usize];
        let piece =
            Sub { under: Some(method), pieces: base.pieces.clone(), ..self.new_sub(base.name.clone(), base.defined) };
        self.subs.push(piece);
        let index = self.subs.len() as u32 - 1;
        self.pieces_under.insert((sub, method), index);
        index
    }

    /// Emits the whole of a method that the dialect does not have.
    pub(super) fn missing_method(&mut self, method: Method) {
        match method {
            Method::Purge => {
                self.emitter.op(Op::Int(200));
                self.emitter.text(b"Purged");
                self.emitter.op(Op::ReturnStatus { action: Action::Synth, reason: true });
            }
            Method::BackendFetch => self.emitter.op(Op::Return(Action::Fetch)),
            Method::BackendRefresh => self.emitter.op(Op::Return(Action::Merge)),
            Method::Synth => self.error_page(),
            Method::Init | Method::Fini => self.emitter.op(Op::Return(Action::Ok)),
            _ => self.emitter.op(Op::Return(Action::Deliver)),
        }
    }

    /// Emits the error page that 1.1 made without calling any VCL.
    fn error_page(&mut self) {
        self.emitter.text(b"text/html; charset=utf-8");
        let header = self.emitter.header("Content-Type");
        self.emitter.op(Op::WriteHeader(HttpObject::Resp, header));
        let parts: [&[u8]; 4] = [
            b"<!DOCTYPE html>\n<html>\n  <head>\n    <title>",
            b"</title>\n  </head>\n  <body>\n    <h1>Error ",
            b"</h1>\n    <p>",
            b"</p>\n    <h3>Guru Meditation:</h3>\n    <p>XID: ",
        ];
        let values: [&[Var]; 4] = [
            &[Var::RespStatus, Var::RespReason],
            &[Var::RespStatus, Var::RespReason],
            &[Var::RespReason],
            &[Var::ReqXid],
        ];
        let mut joined = 0;
        for (text, vars) in parts.into_iter().zip(values) {
            self.emitter.text(text);
            joined += 1;
            for (index, &var) in vars.iter().enumerate() {
                if index > 0 {
                    self.emitter.text(b" ");
                    joined += 1;
                }
                self.emitter.op(Op::Read(var));
                if matches!(var, Var::RespStatus | Var::ReqXid) {
                    self.emitter.op(Op::ToText);
                }
                joined += 1;
            }
        }
        self.emitter.text(b"</p>\n  </body>\n</html>\n");
        self.emitter.op(Op::Join(joined + 1));
        self.emitter.synthetic();
        self.emitter.op(Op::Return(Action::Deliver));
    }

    /// Calls a function of a VMOD whose arguments are on the stack. The VMOD does not have to be
    /// imported.
    pub(super) fn native(
        &mut self,
        vmod: &'static str,
        class: &'static str,
        name: &'static str,
        instance: Option<u32>,
    ) {
        let Some(&function) = self.functions.get(&(vmod, class, name)) else { return };
        let arguments = surface::vmod::FUNCTIONS[function as usize].arguments.len() as u16;
        self.emitter.op(Op::CallVmod { function, instance, arguments });
        if !self.vmods.iter().any(|known| known == vmod) {
            self.vmods.push(vmod.to_owned());
        }
    }

    /// Warns that a construct is accepted without effect.
    pub(super) fn without_effect(&mut self, what: &str, first: At, last: At) {
        let draft = self.draft_between(Code::WithoutEffect, &format!("{what} has no effect here."), first, last);
        self.warning(first, draft);
    }
}
