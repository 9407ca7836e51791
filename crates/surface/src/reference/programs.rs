//! Pages of the programs: one page of all for readers, and a manual page for each.

use super::document::{Document, capital};
use crate::program::{Called, PROGRAMS, Program, parts};

/// All programs on one page.
pub(super) fn page() -> Document {
    let mut page = Document::new("Programs", "commands of copal and their options");
    page.say(
        "copal PART runs a part. A link to the program with the name of a stock program is that part. copal help PART prints what is said here.",
    );
    for program in PROGRAMS {
        page.section(&format!("copal {}", program.part));
        say(program, &mut page);
    }
    page
}

/// The manual pages, section 1, with their names: Copal's own, and the stock program's.
pub(super) fn manuals() -> Vec<(Vec<String>, Document)> {
    let mut manuals = vec![(vec!["copal".to_owned()], overview())];
    for program in parts() {
        let name = format!("copal-{}", program.part);
        let mut page = Document::new(&name, program.line);
        page.section("Synopsis");
        page.item(&program.synopsis(Called::Copal), "", "");
        if program.stock.is_some() {
            page.item(&format!("{} ...", program.name(Called::Stock)), "", "");
        }
        page.section("Description");
        say(program, &mut page);
        for command in commands(program) {
            page.section(&format!("copal {}", command.part));
            page.say(&format!("{}.", capital(command.line)));
            say(command, &mut page);
        }
        page.section("See also");
        page.say(SEE_ALSO);
        manuals.push(([name].into_iter().chain(program.stock.map(str::to_owned)).collect(), page));
    }
    manuals
}

const SEE_ALSO: &str = "copal(1), copal-parameters(7), copal-counters(7), copal-log-tags(7), copal-vcl(7), copal-vmods(7), copal-lint(7), copal-cli(7), and the documents in \
                        /usr/share/doc/copal.";

fn overview() -> Document {
    let mut page = Document::new("copal", "HTTP accelerator, a drop-in for Varnish");
    page.section("Synopsis");
    page.item("copal <part> [arguments]", "", "");
    page.section("Description");
    page.say(
        "Copal runs in front of a web server, stores its responses and answers from memory. It is one program: the first argument says which \
         part of it is wanted, or the name by which it is called, if that is the name in parentheses.",
    );
    page.section("Parts");
    for program in parts() {
        page.item(
            program.part,
            program.stock.unwrap_or(""),
            &format!("{}. See copal-{}(1).", capital(program.line), program.part),
        );
    }
    page.section("Options");
    page.item("help <part>", "", "The options of a part, as <part> --help prints them.");
    page.item("-h, --help", "", "The list of the parts.");
    page.item("-V, --version", "", "The version.");
    page.section("Files");
    page.item("/etc/copal/default.vcl", "", "VCL of the service.");
    page.item("/etc/default/copal", "", "The options of the service.");
    page.item("/var/lib/varnish", "", "Work directories of running servers.");
    page.section("See also");
    page.say(SEE_ALSO);
    page
}

/// Commands of a program, if it has any.
fn commands(program: &'static Program) -> impl Iterator<Item = &'static &'static Program> {
    PROGRAMS.iter().filter(|command| command.part.split_once(' ').is_some_and(|(part, _)| part == program.part))
}

fn say(program: &Program, page: &mut Document) {
    page.say(program.about);
    if program.about.is_empty() {
        page.say(&format!("{}.", capital(program.line)));
    }
    for group in program.groups {
        page.part(group.title);
        for row in group.options {
            let argument = if row.argument.is_empty() { String::new() } else { format!(" {}", row.argument) };
            page.item(&format!("{}{argument}", row.flags()), "", row.text);
        }
    }
    if !program.rest.is_empty() && program.groups.is_empty() {
        page.say(program.rest);
    }
    if !program.notes.is_empty() {
        page.part("Notes");
        page.say(program.notes);
    }
}
