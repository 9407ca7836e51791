//! Arguments of functions: positional, named, or left to their defaults.

use super::expression::Typed;
use super::{Checked, Checker, Reported, nearest};
use crate::diagnostic::Draft;
use crate::tree::{Argument, Arguments, At, Expression, ExpressionKind, Segment};
use surface::diagnostic::Code;
use surface::vcl::Type;
use surface::vmod::{ArgumentRow, FUNCTIONS};
use vcl_run::program::Op;

impl Checker<'_> {
    /// `Expected X got Y` within a call.
    pub(super) fn expected_in_call(&mut self, what: &str, index: At, first: At, last: At) -> Reported {
        self.call_context.push(self.while_compiling("", first, last));
        let reported = self.expected(what, index);
        self.call_context.pop();
        reported
    }

    /// Emits a VMOD call, which leaves its result.
    pub(super) fn vmod_call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        first: At,
        arguments: &Arguments,
    ) -> Checked<()> {
        let row = &FUNCTIONS[function as usize];
        let given = match self.match_arguments(row.arguments, first, arguments) {
            Ok(given) => given,
            Err(reported) => {
                // Compat: Varnish reads arguments one by one, and reports the first that is wrong.
                let unnamed = arguments.items.iter().take_while(|argument| argument.name.is_none());
                for (parameter, argument) in row.arguments.iter().zip(unnamed) {
                    self.given_argument(parameter, first, argument)?;
                }
                return Err(reported);
            }
        };
        for (parameter, argument) in row.arguments.iter().zip(&given) {
            match argument {
                Some(argument) => self.given_argument(parameter, first, argument)?,
                None => self.default_argument(parameter),
            }
        }
        self.emitter.op(Op::CallVmod { function, instance, arguments: row.arguments.len() as u16 });
        Ok(())
    }

    fn given_argument(&mut self, parameter: &ArgumentRow, first: At, argument: &Argument) -> Checked<()> {
        let name = if parameter.name.is_empty() { "(unnamed argument)" } else { parameter.name };
        let wanted = format!("\nExpected argument: {} {name}\n", parameter.kind.name());
        self.call_context.push(self.while_compiling(&wanted, first, argument.value.last));
        let result = self.argument(parameter, &argument.value);
        self.call_context.pop();
        result
    }

    /// Assigns each argument to its parameter.
    fn match_arguments<'t>(
        &mut self,
        parameters: &'static [ArgumentRow],
        first: At,
        arguments: &'t Arguments,
    ) -> Checked<Vec<Option<&'t Argument>>> {
        let mut given: Vec<Option<&Argument>> = vec![None; parameters.len()];
        let mut named = false;
        for (index, argument) in arguments.items.iter().enumerate() {
            let place = argument.name.unwrap_or(argument.value.first);
            let slot = match argument.name {
                Some(token) => {
                    named = true;
                    let name = self.text(token);
                    let Some(slot) = parameters.iter().position(|parameter| parameter.name == name) else {
                        let names: Vec<&str> =
                            parameters.iter().map(|parameter| parameter.name).filter(|name| !name.is_empty()).collect();
                        let help = if names.is_empty() {
                            "the arguments have no names".to_owned()
                        } else {
                            format!("the arguments are {}", names.join(", "))
                        };
                        let text = format!("Unknown argument '{name}'");
                        let draft = self.draft_at(Code::ArgumentUnknown, &text, token).hint(help);
                        let near = nearest(name, names.iter().copied());
                        let draft = draft.nearest(self.token(token), self.token(token), near);
                        return Err(self.call_error(draft, token, first));
                    };
                    slot
                }
                None if named || index >= parameters.len() => {
                    return Err(self.expected_in_call("')'", place, first, place - 1));
                }
                None => index,
            };
            if given[slot].replace(argument).is_some() {
                let text = format!("Argument '{}' already used", parameters[slot].name);
                let draft = self.draft_at(Code::ArgumentRepeated, &text, place);
                return Err(self.call_error(draft, place, first));
            }
        }
        for (index, (parameter, argument)) in parameters.iter().zip(&given).enumerate() {
            let broken = |argument: &Argument| matches!(argument.value.kind, ExpressionKind::Unexpected);
            if argument.is_none()
                && parameter.default.is_none()
                && !parameter.optional
                && !arguments.items.iter().any(broken)
            {
                let text = if parameter.name.is_empty() {
                    format!("Argument {} missing", index + 1)
                } else {
                    format!("Argument '{}' missing", parameter.name)
                };
                let draft = self.draft_at(Code::ArgumentMissing, &text, arguments.close);
                let draft = draft.hint(format!("the arguments are ({})", signature(parameters)));
                return Err(self.call_error(draft, arguments.close, first));
            }
        }
        Ok(given)
    }

    fn call_error(&mut self, draft: Draft, place: At, first: At) -> Reported {
        let draft = draft.append(self.while_compiling("", first, place.saturating_sub(1).max(first)));
        self.error(place, draft)
    }

    /// The ending of a message about an argument.
    fn while_compiling(&self, wanted: &str, first: At, last: At) -> Draft {
        let text = format!("{wanted}\nWhile compiling function call:\n\n");
        Draft::new(Code::Expected).text(text).between(self.token(first), self.token(last))
    }

    fn argument(&mut self, parameter: &ArgumentRow, value: &Expression) -> Checked<()> {
        if parameter.kind != Type::Enum {
            return self.value(value, parameter.kind);
        }
        let word = match &value.kind {
            ExpressionKind::Path(path) if path.segments.len() == 1 => self.text(path.first()),
            ExpressionKind::Unexpected => {
                self.lowered(value, Type::Enum)?;
                return Err(Reported);
            }
            _ => return Err(self.expected("ID", value.first)),
        };
        if !parameter.values.contains(&word) {
            let near = nearest(word, parameter.values.iter().copied());
            let text = format!("Wrong enum value.  Expected one of:\n\t{}", parameter.values.join("\n\t"));
            let draft = self.draft_at(Code::EnumValue, &text, value.first);
            let draft = draft.nearest(self.token(value.first), self.token(value.first), near);
            return Err(self.error(value.first, draft));
        }
        self.emitter.text(word.as_bytes());
        Ok(())
    }

    /// The default of a parameter; the table has it as a VCL literal.
    fn default_argument(&mut self, parameter: &ArgumentRow) {
        let Some(text) = parameter.default else {
            self.emitter.op(Op::Absent);
            return;
        };
        let op = match parameter.kind {
            Type::Bool => Op::Bool(matches!(text, "true" | "1")),
            Type::Int => Op::Int(text.parse().unwrap_or(0)),
            Type::Real => Op::Real(text.parse().unwrap_or(0.0)),
            Type::Duration => Op::Duration(default_seconds(text)),
            Type::Bytes => {
                Op::Bytes(text.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap_or(0))
            }
            Type::String | Type::Strands | Type::Enum => {
                let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
                return self.emitter.text(bare.as_bytes());
            }
            _ => Op::Absent,
        };
        self.emitter.op(op);
    }

    /// `regsub(text, pattern, replacement)`
    pub(super) fn regsub(&mut self, segment: &Segment, all: bool, first: At, _last: At) -> Checked<Typed> {
        let Some(arguments) = &segment.arguments else {
            return Err(self.expected_in_call("'('", segment.name + 1, first, segment.name));
        };
        let [subject, pattern, replacement] = arguments.items.as_slice() else {
            if let Some(fourth) = arguments.items.get(3) {
                return Err(self.expected_in_call("')'", fourth.value.first - 1, first, fourth.value.first - 1));
            }
            for (item, wanted) in arguments.items.iter().zip([Type::String, Type::Regex, Type::String]) {
                self.value(&item.value, wanted)?;
            }
            return Err(self.expected_in_call("','", arguments.close, first, arguments.close));
        };
        self.call_context.push(self.while_compiling("", first, arguments.close));
        let result = self.regsub_arguments(&subject.value, &pattern.value, &replacement.value);
        self.call_context.pop();
        let regex = result?;
        self.emitter.op(if all { Op::SubstituteAll(regex) } else { Op::Substitute(regex) });
        Ok(Typed::Plain(Type::String))
    }

    fn regsub_arguments(
        &mut self,
        subject: &Expression,
        pattern: &Expression,
        replacement: &Expression,
    ) -> Checked<u32> {
        self.value(subject, Type::String)?;
        let Some(text) = self.constant_text(pattern) else {
            self.value(pattern, Type::Regex)?;
            let text = "Only a written pattern can be used here";
            return Err(self.error_between(Code::PatternNotConstant, text, pattern.first, pattern.last));
        };
        let regex = self.regex(&text, pattern)?;
        match self.constant_text(replacement).filter(|_| self.dialect.forms.dollar_groups) {
            Some(text) => self.emitter.text(&groups_of_dollars(&text)),
            None => self.value(replacement, Type::String)?,
        }
        Ok(regex)
    }
}

/// A default such as `-1s` or `0`.
fn default_seconds(text: &str) -> f64 {
    let end = text.rfind(|letter: char| letter.is_ascii_digit()).map_or(0, |at| at + 1);
    let amount: f64 = text[..end].parse().unwrap_or(0.0);
    amount
        * match &text[end..] {
            "ms" => 1e-3,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => 1.0,
        }
}

/// The replacements of VCL 1: `$1` becomes `\1`, and `&`, the whole match, `\0`.
fn groups_of_dollars(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (index, &byte) in text.iter().enumerate() {
        match byte {
            b'&' => out.extend_from_slice(b"\\0"),
            b'$' if text.get(index + 1).is_some_and(u8::is_ascii_digit) => out.push(b'\\'),
            _ => out.push(byte),
        }
    }
    out
}

/// The parameters of a function in readable form.
fn signature(parameters: &[ArgumentRow]) -> String {
    let shown = |parameter: &ArgumentRow| {
        let mut text = parameter.kind.name().to_owned();
        if !parameter.name.is_empty() {
            text += " ";
            text += parameter.name;
        }
        if let Some(default) = parameter.default {
            text += "=";
            text += default;
        }
        if parameter.optional { format!("[{text}]") } else { text }
    };
    parameters.iter().map(shown).collect::<Vec<_>>().join(", ")
}
