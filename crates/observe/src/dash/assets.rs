//! The files of the page, compressed once. Their address has a hash of all of them, so that
//! browsers may keep them for ever; the page itself is asked for again each time.

use crate::connection::compress;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;

/// A file of the page.
pub(super) struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub text: String,
    /// The same with gzip.
    pub gzip: Vec<u8>,
    pub etag: String,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, type and content.
const FILES: &[(&str, &str, &str)] = &[
    ("index.html", "text/html; charset=utf-8", include_str!("../../assets/index.html")),
    ("app.css", "text/css; charset=utf-8", include_str!("../../assets/app.css")),
    ("app.js", SCRIPT, include_str!("../../assets/app.js")),
    ("api.js", SCRIPT, include_str!("../../assets/api.js")),
    ("dom.js", SCRIPT, include_str!("../../assets/dom.js")),
    ("chart.js", SCRIPT, include_str!("../../assets/chart.js")),
    ("panels.js", SCRIPT, include_str!("../../assets/panels.js")),
    ("operate.js", SCRIPT, include_str!("../../assets/operate.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
];

/// The file with this name.
pub(super) fn asset(name: &str) -> Option<&'static Asset> {
    all().iter().find(|asset| asset.name == name)
}

fn all() -> &'static [Asset] {
    static ASSETS: OnceLock<Vec<Asset>> = OnceLock::new();
    ASSETS.get_or_init(|| {
        let made = FILES.iter().map(|(name, content_type, text)| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            Asset {
                name,
                content_type,
                text: (*text).to_owned(),
                gzip: compress(text.as_bytes()).unwrap_or_default(),
                etag: format!("\"{:016x}\"", hasher.finish()),
            }
        });
        made.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_stays_within_its_budget_and_asks_nobody_else() {
        let (raw, gzip) = all().iter().fold((0, 0), |sum, asset| (sum.0 + asset.text.len(), sum.1 + asset.gzip.len()));
        assert!(raw <= 250 << 10 && gzip <= 60 << 10, "{raw} bytes, {gzip} with gzip");
        assert!(all().len() <= 12);
        for asset in all() {
            // The namespace of SVG is a name, not an address.
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            for forbidden in [
                "http://",
                "https://",
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "document.write",
                " style=\"",
                " onclick=",
            ] {
                assert!(!text.contains(forbidden), "{}: {forbidden}", asset.name);
            }
            assert!(!asset.gzip.is_empty());
        }
    }
}
