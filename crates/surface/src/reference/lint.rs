//! The page of the linter's rules, with their examples.

use super::document::Document;
use crate::lint::RULES;

pub(super) fn page() -> Document {
    let mut page = Document::new("Lint rules", "rules of copal vcl lint");
    page.say(
        "copal vcl lint reports these faults of a VCL that compiles. S are leaks and outages, P performance, C correctness, A the suppressions \
         themselves. A finding is an error, a warning or a note; --deny sets the lowest level that makes the exit status 1.",
    );
    page.say(
        "A comment '# copal: allow(S1) reason' suppresses the findings of a rule in its line, or in the next line with code if it is alone in \
         its line. Several rules are separated by commas. The reason is required.",
    );
    for row in RULES {
        page.section(&format!("{}: {}", row.id, row.title));
        page.say(&format!("Level: {}. {}", row.level.name(), row.why));
        page.say("Found:");
        page.code(row.bad);
        page.say("Instead:");
        page.code(row.good);
    }
    page
}
