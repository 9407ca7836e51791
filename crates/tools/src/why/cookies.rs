//! Names of cookies, and lines of VCL that remove trackers from a request. Values are never shown.
//!
//! Only cookies on the list of `surface::tracker` are removed: a session is not on it.

use surface::tracker::{self, Tracker};
use surface::vcl::Generation;

/// Longest list of names in one line of VCL, in bytes.
const LIST_BYTES_MAX: usize = 39;

/// Names of the cookies in a list of records, in the form of reasons; those beyond the limit are
/// `...`.
pub(super) fn names<'a>(details: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    details.flat_map(|detail| detail.split("; ")).filter(|name| !name.is_empty()).collect()
}

/// Those of the cookies that are not known as trackers.
pub(super) fn others<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().filter(|name| tracker::known(name).is_none()).copied().collect()
}

/// Products whose cookies are among these names.
pub(super) fn products(names: &[&str]) -> Vec<&'static str> {
    let mut products: Vec<&str> = known(names).map(|(tracker, _)| tracker.product).collect();
    products.sort_unstable();
    products.dedup();
    products
}

fn known(names: &[&str]) -> impl Iterator<Item = (&'static Tracker, &'static str)> {
    names.iter().filter_map(|name| tracker::known(name))
}

/// Lines that remove the trackers among these cookies, as a `vcl_recv` of their own; `None` if
/// there are none.
pub(super) fn snippet(names: &[&str], generation: Generation) -> Option<String> {
    let mut patterns: Vec<String> = known(names).map(|(_, name)| pattern(name)).collect();
    patterns.sort();
    patterns.dedup();
    if patterns.is_empty() {
        return None;
    }
    let mut lists: Vec<String> = Vec::new();
    for pattern in patterns {
        match lists.last_mut() {
            Some(list) if list.len() + pattern.len() < LIST_BYTES_MAX => list.extend(["|", &pattern]),
            _ => lists.push(pattern),
        }
    }
    let unset = if matches!(generation, Generation::V1 | Generation::V20) { "remove" } else { "unset" };
    let mut lines = vec!["sub vcl_recv {".to_owned(), "    if (req.http.Cookie) {".to_owned()];
    for list in lists {
        lines.push("        set req.http.Cookie = regsuball(req.http.Cookie,".to_owned());
        lines.push(format!("            \"(^|; *)({list})=[^;]*\", \"\");"));
    }
    lines.extend([
        "        set req.http.Cookie = regsub(req.http.Cookie, \"^; *\", \"\");".to_owned(),
        "        if (req.http.Cookie ~ \"^ *$\") {".to_owned(),
        format!("            {unset} req.http.Cookie;"),
        "        }".to_owned(),
        "    }".to_owned(),
        "}".to_owned(),
    ]);
    Some(lines.join("\n"))
}

/// An entry on the list as a regular expression.
fn pattern(name: &str) -> String {
    name.replace('.', "[.]").replace('*', "[^=;]*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::tracker::TRACKERS;
    use vcl::{CompileOptions, SourceText};

    #[test]
    fn lines_compile_in_every_dialect_and_fit_the_page() {
        let names: Vec<&str> = TRACKERS.iter().flat_map(|tracker| tracker.names.iter().copied()).collect();
        for generation in Generation::ALL {
            let lines = snippet(&names, *generation).unwrap();
            assert!(lines.lines().all(|line| line.len() + 6 <= super::super::page::COLUMNS), "{lines}");
            let head = if *generation == Generation::V4 { "vcl 4.1;\n" } else { "" };
            let text = format!("{head}backend default {{ .host = \"127.0.0.1\"; }}\n{lines}\n");
            let options = CompileOptions { generation: Some(*generation), ..CompileOptions::default() };
            let compiled = vcl::compile(&SourceText { name: "snippet", text: text.as_bytes() }, &options);
            if let Err(error) = compiled {
                panic!("{}: {error}\n{text}", generation.name());
            }
        }
    }

    #[test]
    fn lines_strip_trackers_and_keep_sessions() {
        let names = ["_ga", "_ga_AB1", "PHPSESSID", "_pk_id.1.2", "wordpress_logged_in_1"];
        let lines = snippet(&names, Generation::V4).unwrap();
        assert!(!lines.contains("PHP") && !lines.contains("wordpress"), "{lines}");
        assert_eq!(others(&names), ["PHPSESSID", "wordpress_logged_in_1"]);
        assert_eq!(products(&names), ["Google Analytics", "Matomo"]);
        let expressions = lines.lines().filter_map(|line| Some(line.trim().strip_prefix('"')?.split_once('"')?.0));
        let mut text = "x_ga=1; _ga=2; _ga_AB1=3;_pk_id.1.2=4; PHPSESSID=5; _gallery=6".to_owned();
        for expression in expressions {
            let strip = pcre2::bytes::Regex::new(expression).unwrap();
            while let Some(found) = strip.find(text.as_bytes()).unwrap() {
                text.replace_range(found.start()..found.end(), "");
            }
        }
        assert_eq!(text, "x_ga=1; PHPSESSID=5; _gallery=6");
    }

    #[test]
    fn without_trackers_there_is_nothing_to_strip() {
        assert_eq!(snippet(&["...", "PHPSESSID", "quo\"te", "\u{fc}"], Generation::V4), None);
        assert_eq!(snippet(&[], Generation::V4), None);
        assert_eq!(names(["a; b", "c"].into_iter()), ["a", "b", "c"]);
    }
}
