//! The page of the log: its tags, and the reasons that `copal why` reports.

use super::document::Document;
use crate::reason::REASONS;
use crate::tag::TAGS;

pub(super) fn page() -> Document {
    let mut page = Document::new("Log tags", "records of the shared-memory log");
    page.say(
        "copal log prints records with a tag and a payload; -i and -x choose by tag, -q by what they contain. A tag that is masked by default is \
         written only after param.set vsl_mask +TAG.",
    );
    page.section("Tags");
    for row in &TAGS {
        let mut nature = format!("number {}", row.tag as u8);
        if row.masked_by_default {
            nature.push_str(", masked by default");
        }
        if row.binary {
            nature.push_str(", binary");
        }
        page.item(row.name, &nature, row.payload);
    }
    page.section("Reasons");
    page.say(
        "Why a request was a miss, a pass or an error is a Witness record that begins with the word why; copal why reads it. These are its words.",
    );
    for row in REASONS {
        page.item(row.word, "", row.sentence);
    }
    page
}
