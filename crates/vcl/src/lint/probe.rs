//! Probes that are stricter than intended (C7).

use super::finding::Found;
use super::view::View;
use crate::tree::{At, Declaration, Field, FieldValue};
use surface::lint::Rule;

pub(super) fn look(view: &View<'_>, found: &mut Found<'_>) {
    for declaration in view.declarations {
        match declaration {
            Declaration::Probe(probe) => fields(view, &probe.fields, found),
            Declaration::Backend(backend) => {
                for field in backend.fields.iter().flatten() {
                    if let FieldValue::Fields(inner) = &field.value {
                        fields(view, inner, found);
                    }
                }
            }
            _ => {}
        }
    }
}

fn fields(view: &View<'_>, fields: &[Field], found: &mut Found<'_>) {
    let integer = |name: &str| {
        let (at, token) = value(view, fields, name)?;
        Some((at, view.shown(token).parse::<u32>().ok()?))
    };
    if let (Some((_, window)), Some((at, threshold))) = (integer("window"), integer("threshold"))
        && window == threshold
        && window > 1
    {
        let message = format!("One lost answer of {window} makes the backend sick");
        found.add(Rule::ProbeImpatient, at, at, message);
    }
    let seconds = |name: &str| {
        let (at, token) = value(view, fields, name)?;
        Some((at, view.seconds(token)?))
    };
    if let (Some((at, timeout)), Some((_, interval))) = (seconds("timeout"), seconds("interval"))
        && timeout > interval
    {
        let message = "The timeout of the probe is longer than its interval";
        found.add(Rule::ProbeImpatient, at, at, message);
    }
}

/// The name of a field and the first token of its value.
fn value(view: &View<'_>, fields: &[Field], name: &str) -> Option<(At, At)> {
    let field = fields.iter().find(|field| view.word(field.name) == name)?;
    match field.value {
        FieldValue::Tokens(first, _) => Some((field.name, first)),
        FieldValue::Fields(_) => None,
    }
}
