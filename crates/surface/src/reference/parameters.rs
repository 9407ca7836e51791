//! The page of the run-time parameters.

use super::document::Document;
use crate::eviction;
use crate::parameter::{
    BUILD_OPTIONS, BitRow, COMPILER_BITS, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, FLAGS, HTTP_POLICIES,
    LEAK_GUARDS, NAME_SOURCES, PARAMETERS, PLACEMENTS, ParameterKind, ParameterRow, WHEN_LOST,
};

pub(super) fn page() -> Document {
    let mut page = Document::new("Parameters", "run-time parameters of the server");
    page.say(
        "copal adm param.set NAME VALUE changes a parameter of a running server, -p NAME=VALUE sets it at the start, param.show NAME explains \
         it with its value. The defaults are those of varnishd; copal daemon has http_policy rfc, eviction_policy s3fifo and feature +http2.",
    );
    page.section("Parameters");
    for row in PARAMETERS {
        page.item(row.name, &nature(row), &text(row));
    }
    let sets = [
        ("debug", DEBUG_BITS),
        ("feature", FEATURE_BITS),
        ("experimental", EXPERIMENTAL_BITS),
        ("vcc_feature", COMPILER_BITS),
    ];
    for (name, bits) in sets {
        page.section(&format!("Bits of {name}"));
        page.say(&format!("param.set {name} +BIT sets one, -BIT clears it, none clears all."));
        for bit in bits {
            page.item(bit.name, "", &bit_text(bit));
        }
    }
    page
}

/// Default, unit and bounds.
fn nature(row: &ParameterRow) -> String {
    let unit =
        if row.unit.is_empty() || row.kind == ParameterKind::Bool { String::new() } else { format!(" {}", row.unit) };
    let default = if row.default.is_empty() { "\"\"" } else { row.default };
    let mut parts = vec![format!("default {default}{unit}")];
    parts.extend(row.min.map(|min| format!("at least {min}")));
    parts.extend(row.max.map(|max| format!("at most {max}")));
    parts.extend(words(row.kind));
    parts.join(", ")
}

/// The values of a parameter that is one of a few words.
fn words(kind: ParameterKind) -> Option<String> {
    match kind {
        ParameterKind::Policy => Some(HTTP_POLICIES.join(" or ")),
        ParameterKind::EvictionPolicy => {
            Some(eviction::POLICIES.iter().map(|row| row.name).collect::<Vec<_>>().join(" or "))
        }
        ParameterKind::NameSource => Some(NAME_SOURCES.join(" or ")),
        ParameterKind::Placement => Some(PLACEMENTS.join(" or ")),
        ParameterKind::LeakGuard => Some(LEAK_GUARDS.join(" or ")),
        ParameterKind::WhenLost => Some(WHEN_LOST.join(" or ")),
        ParameterKind::Bool => Some("on or off".to_owned()),
        _ => None,
    }
}

fn text(row: &ParameterRow) -> String {
    let mut text = row.text.to_owned();
    for (flag, _, sentence) in FLAGS {
        if row.flags & flag & !BUILD_OPTIONS != 0 {
            text.push(' ');
            text.push_str(sentence);
        }
    }
    text
}

fn bit_text(bit: &BitRow) -> String {
    let idle = if bit.is_accepted_only { " (no effect)" } else { "" };
    format!("{}{idle}.", bit.text)
}
