//! The page of VCL: subroutines, actions, statements and variables.

use super::document::Document;
use crate::vcl::explanation::KEYWORDS;
use crate::vcl::{Action, METHODS, VARIABLES, VariableRow, at};

pub(super) fn page() -> Document {
    let mut page = Document::new("VCL", "subroutines, actions, statements and variables of VCL 4");
    page.say(
        "copal vcl explain WORD says this and more about one word, also about those of VCL before 4.0. The functions of the VMODs are on \
         a page of their own.",
    );
    page.section("Subroutines");
    for row in METHODS {
        let actions: Vec<&str> = row.actions.iter().map(|action| action.name()).collect();
        page.item(row.name, &format!("returns {}", actions.join(", ")), row.method.text());
    }
    page.section("Actions");
    for action in Action::ALL {
        page.item(action.name(), "", action.text());
    }
    page.section("Statements and declarations");
    for row in KEYWORDS {
        page.item(row.form, "", row.text);
    }
    page.section("Variables");
    page.say(
        "client means the subroutines from vcl_recv to vcl_synth, backend those whose name begins with vcl_backend.",
    );
    for row in VARIABLES {
        page.item(row.name, &nature(row), row.text);
    }
    page
}

fn nature(row: &VariableRow) -> String {
    let mut text = row.kind.name().to_owned();
    for (what, methods) in [("read", row.read), ("set", row.write), ("unset", row.unset)] {
        if methods != 0 {
            text.push_str(&format!("; {what} in {}", places(methods)));
        }
    }
    match (row.syntax_min, row.syntax_max) {
        (min, _) if min > 40 => text.push_str("; since VCL 4.1"),
        (_, max) if max < 41 => text.push_str("; VCL 4.0 only"),
        _ => {}
    }
    text
}

/// Names of methods, with words for those of a side.
fn places(methods: u16) -> String {
    let mut rest = methods;
    let mut names = Vec::new();
    for (word, side) in [("all", at::ALL), ("client", at::CLIENT), ("backend", at::BACKEND)] {
        if rest & side == side {
            names.push(word);
            rest &= !side;
        }
    }
    names.extend(METHODS.iter().filter(|row| rest & row.bit != 0).map(|row| row.name));
    names.join(", ")
}
