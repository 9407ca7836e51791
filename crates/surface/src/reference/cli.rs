//! The page of the management CLI.

use super::document::Document;
use crate::cli::{BAN_FIELDS, COMMANDS, Executor};

pub(super) fn page() -> Document {
    let mut page = Document::new("CLI", "commands of the management CLI");
    page.say(
        "copal adm COMMAND sends one command, copal adm without one opens a session. A reply is a status (200: done) and a text. With -j, where \
         it is allowed, the text is JSON. Commands of the worker are unknown while there is none (status, start).",
    );
    for (title, hidden) in [("Commands", false), ("For tests and emergencies", true)] {
        page.section(title);
        for row in COMMANDS.iter().filter(|row| row.hidden == hidden) {
            let process = match row.executor {
                Executor::Manager(_) => "manager",
                Executor::Worker(_) => "worker",
            };
            page.item(row.syntax, process, row.help);
        }
    }
    page.section("Fields of ban");
    page.say(
        "A condition is a field, an operator (==, !=, ~, !~, and for durations and numbers <, <=, >, >=) and a value.",
    );
    for field in BAN_FIELDS {
        let text = if field.ends_with('.') { "Followed by the name of a header." } else { "" };
        page.item(field, "", text);
    }
    page
}
