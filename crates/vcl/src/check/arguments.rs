//! Arguments of functions: given by place or by name, or left to their defaults.

use super::expression::Typed;
use super::{Checked, Checker, Reported, nearest};
use crate::diagnostic::hint;
use crate::tree::{Argument, Arguments, At, Expression, ExpressionKind, Segment};
use surface::vcl::Type;
use surface::vmod::{ArgumentRow, FUNCTIONS};
use vcl_run::program::Op;

impl Checker<'_> {
    /// `Expected X got Y` within a call.
    pub(super) fn expected_in_call(&mut self, what: &str, index: At, first: At, last: At) -> Reported {
        self.call_context.push(format!("\nWhile compiling function call:\n\n{}", self.between(first, last)));
        let reported = self.expected(what, index);
        self.call_context.pop();
        reported
    }

    /// Leaves the result of a VMOD call.
    pub(super) fn vmod_call(
        &mut self,
        function: u32,
        instance: Option<u32>,
        first: At,
        arguments: &Arguments,
    ) -> Checked<()> {
        let row = &FUNCTIONS[function as usize];
        let given = self.match_arguments(row.arguments, first, arguments)?;
        for (parameter, argument) in row.arguments.iter().zip(&given) {
            match argument {
                Some(argument) => {
                    let name = if parameter.name.is_empty() { "(unnamed argument)" } else { parameter.name };
                    let context = format!(
                        "\nExpected argument: {} {name}\n\nWhile compiling function call:\n\n{}",
                        parameter.kind.name(),
                        self.between(first, argument.value.last)
                    );
                    self.call_context.push(context);
                    let result = self.argument(parameter, &argument.value);
                    self.call_context.pop();
                    result?;
                }
                None => self.default_argument(parameter),
            }
        }
        self.emitter.op(Op::CallVmod { function, instance, arguments: row.arguments.len() as u16 });
        Ok(())
    }

    /// Which argument goes to which parameter.
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
                        let help = match (nearest(name, names.iter().copied()), names.is_empty()) {
                            (Some(near), _) => hint(&format!("did you mean {near}?")),
                            (None, false) => hint(&format!("the arguments are {}", names.join(", "))),
                            (None, true) => hint("the arguments have no names"),
                        };
                        return Err(self.call_error(&format!("Unknown argument '{name}'"), &help, token, first));
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
                return Err(self.call_error(&text, "", place, first));
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
                let help = hint(&format!("the arguments are ({})", signature(parameters)));
                return Err(self.call_error(&text, &help, arguments.close, first));
            }
        }
        Ok(given)
    }

    fn call_error(&mut self, text: &str, help: &str, place: At, first: At) -> Reported {
        let text = format!(
            "{text}\n{}{help}\nWhile compiling function call:\n\n{}",
            self.at(place),
            self.between(first, place.saturating_sub(1).max(first))
        );
        self.error(place, text)
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
            let help = nearest(word, parameter.values.iter().copied())
                .map_or(String::new(), |near| hint(&format!("did you mean {near}?")));
            let text = format!(
                "Wrong enum value.  Expected one of:\n\t{}\n{}{help}",
                parameter.values.join("\n\t"),
                self.at(value.first)
            );
            return Err(self.error(value.first, text));
        }
        self.emitter.text(word.as_bytes());
        Ok(())
    }

    /// The default of a parameter, which the table gives as a VCL literal.
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
        let context = format!("\nWhile compiling function call:\n\n{}", self.between(first, arguments.close));
        self.call_context.push(context);
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
            return Err(self.error_between("Only a written pattern can be used here", pattern.first, pattern.last));
        };
        let regex = self.regex(&text, pattern)?;
        self.value(replacement, Type::String)?;
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

/// The parameters of a function, for people.
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
