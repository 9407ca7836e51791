//! The page of the counters.

use super::document::Document;
use crate::counter::{
    CERT, CounterFormat, CounterKind, CounterLevel, CounterRow, DEBUG_VMOD, LCK, LOAD, LockClass, MAIN, MEMPOOL, MGT,
    SMA, SMF, SMU, SectionRow, VBE, VCL, XKEY,
};
use crate::reason::WHY;

/// Every section, with the names of its counters.
pub(super) const SECTIONS: [(&SectionRow, &str); 14] = [
    (&MAIN, "MAIN."),
    (&MGT, "MGT."),
    (&SMA, "SMA.<storage>."),
    (&SMF, "SMF.<storage>."),
    (&SMU, "SMU.<storage>."),
    (&VBE, "VBE.<vcl>.<backend>."),
    (&XKEY, "XKEY."),
    (&DEBUG_VMOD, "DEBUG."),
    (&LCK, "LCK.<class>."),
    (&WHY, "WHY."),
    (&VCL, "VCL.<vcl>."),
    (&CERT, "CERT.<certificate>."),
    (&LOAD, "LOAD."),
    (&MEMPOOL, "MEMPOOL.<pool>."),
];

pub(super) fn page() -> Document {
    let mut page = Document::new("Counters", "counters of the server, as copal stat shows them");
    page.say(
        "Counters only grow until the process that counts begins anew; gauges go up and down; a bitmap is 64 flags, the newest in bit 0. \
         copal stat shows the level info, with its key v also diag and debug; -1, -j and -x print all.",
    );
    for (section, prefix) in SECTIONS {
        page.section(&format!("{prefix}*"));
        page.say(&format!("{}.", section.oneliner.trim_end_matches('.')));
        if section.name == LCK.name {
            let classes: Vec<&str> = LockClass::ALL.iter().map(|class| class.word()).collect();
            page.say(&format!("The classes are {}.", classes.join(", ")));
        }
        for row in section.counters {
            page.item(row.name, &nature(row), &format!("{}.", row.oneliner.trim_end_matches('.')));
        }
    }
    page
}

fn nature(row: &CounterRow) -> String {
    let kind = match row.kind {
        CounterKind::Counter => "counter",
        CounterKind::Gauge => "gauge",
        CounterKind::Bitmap => "bitmap",
    };
    let level = match row.level {
        CounterLevel::Info => "info",
        CounterLevel::Diag => "diag",
        CounterLevel::Debug => "debug",
    };
    let unit = match row.format {
        CounterFormat::Integer | CounterFormat::Bitmap => "",
        CounterFormat::Bytes => ", bytes",
        CounterFormat::Duration => ", seconds",
    };
    format!("{kind}, {level}{unit}")
}
