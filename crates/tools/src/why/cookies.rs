//! Names of cookies, and lines of VCL that remove them from a request. Values are not our business.

use surface::vcl::Generation;

/// Names of the cookies in a list of records, in the form of reasons; those beyond the limit are `...`.
pub(super) fn names<'a>(details: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    details.flat_map(|detail| detail.split("; ")).filter(|name| !name.is_empty()).collect()
}

/// Lines for `vcl_recv` that remove the cookies with these names; `None` when VCL could name none of them.
pub(super) fn snippet(names: &[&str], generation: Generation) -> Option<String> {
    let is_old = generation != Generation::V4;
    let mut patterns: Vec<String> = names.iter().filter_map(|name| pattern(name, is_old)).collect();
    patterns.sort();
    patterns.dedup();
    if patterns.is_empty() {
        return None;
    }
    let list = patterns.join("|");
    let unset = if matches!(generation, Generation::V1 | Generation::V20) { "remove" } else { "unset" };
    let lines = [
        "sub vcl_recv {".to_owned(),
        "    # Leave out of the list what your pages need: sessions, baskets, settings.".to_owned(),
        "    if (req.http.Cookie) {".to_owned(),
        format!("        set req.http.Cookie = regsuball(req.http.Cookie, \"(^|; *)({list})=[^;]*\", \"\");"),
        "        set req.http.Cookie = regsub(req.http.Cookie, \"^; *\", \"\");".to_owned(),
        "        if (req.http.Cookie ~ \"^ *$\") {".to_owned(),
        format!("            {unset} req.http.Cookie;"),
        "        }".to_owned(),
        "    }".to_owned(),
        "}".to_owned(),
    ];
    Some(lines.join("\n"))
}

/// A name as a regular expression in a VCL string. The old dialects interpret `%` in strings.
fn pattern(name: &str, is_old: bool) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b';' | b'=' | b',');
    if name == "..." || !name.bytes().all(is_plain) {
        return None;
    }
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '%' if is_old => text.push('.'),
            '-' | '_' | '%' | '~' | '!' | '#' | '&' | '\'' | '`' | ':' | '@' | '<' | '>' => text.push(letter),
            letter if letter.is_ascii_alphanumeric() => text.push(letter),
            // These are special inside brackets, too.
            '^' | '\\' | '[' | ']' => text.push('.'),
            letter => text.extend(['[', letter, ']']),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcl::{CompileOptions, SourceText};

    #[test]
    fn lines_compile_in_every_dialect() {
        let names = ["_ga", "a.b", "x+y*z?", "p%20q", "br[a]{c}(e)|$^\\", "..."];
        for generation in Generation::ALL {
            let lines = snippet(&names, *generation).unwrap();
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
    fn lines_strip_the_cookies_they_name_and_no_others() {
        let lines = snippet(&["_ga", "a.b"], Generation::V4).unwrap();
        let strip = pcre2::bytes::Regex::new("(^|; *)(_ga|a[.]b)=[^;]*").unwrap();
        assert!(lines.contains("\"(^|; *)(_ga|a[.]b)=[^;]*\""), "{lines}");
        let mut text = "x_ga=1; _ga=2; aXb=3;a.b=4; keep=5".to_owned();
        while let Some(found) = strip.find(text.as_bytes()).unwrap() {
            text.replace_range(found.start()..found.end(), "");
        }
        assert_eq!(text, "x_ga=1; aXb=3; keep=5");
    }

    #[test]
    fn what_vcl_cannot_name_is_left_out() {
        assert_eq!(snippet(&["...", "sp ace", "quo\"te", "\u{fc}"], Generation::V4), None);
        assert_eq!(snippet(&[], Generation::V4), None);
        assert_eq!(names(["a; b", "c"].into_iter()), ["a", "b", "c"]);
    }
}
