//! Tests: the files in the repository match the tables, and no word that a user can name is
//! missing.

use super::completions::{Value, value};
use super::{files, pages};
use crate::counter::SectionRow;
use crate::program::PROGRAMS;
use crate::{cli, counter, metric, parameter, reason, tag, vcl};
use std::path::Path;

fn text_of(end: &str) -> String {
    files().into_iter().find(|file| file.path.ends_with(end)).unwrap_or_else(|| panic!("{end}")).text
}

#[test]
fn the_files_are_what_the_tables_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = files();
    let mut stale = Vec::new();
    for file in &files {
        let path = root.join(&file.path);
        if std::env::var_os("REFERENCE_UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &file.text).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != file.text {
            stale.push(file.path.clone());
        }
    }
    // Pages of the reference that other tests verify, or that are written by hand.
    let others = ["docs/reference/json.md", "docs/reference/request-smuggling.md"];
    // Files that no table generates any more must be removed by hand.
    for folder in ["docs/reference", "packaging/man", "packaging/completions"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap().flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if !files.iter().any(|file| file.path == path) && !others.contains(&path.as_str()) {
                stale.push(path);
            }
        }
    }
    assert!(stale.is_empty(), "stale, run REFERENCE_UPDATE=1 cargo test -p surface: {stale:?}");
}

/// The description of a word explains it in words, not by its name alone, nor by the section of an
/// RFC that a reader may not have.
#[test]
fn descriptions_stand_alone() {
    let variables = vcl::VARIABLES.iter().map(|row| (row.name, row.text));
    let tags = crate::tag::TAGS.iter().map(|row| (row.name, row.payload));
    for (name, text) in variables.chain(tags) {
        assert!(text.contains(' '), "{name}: {text}");
        assert!(!text.contains("see 2") && !text.contains("see note"), "{name}: {text}");
    }
}

#[test]
fn every_row_has_a_line_on_its_page() {
    let has = |page: &str, names: &mut dyn Iterator<Item = &str>| {
        let (text, mut count) = (text_of(page), 0);
        for name in names {
            assert!(text.lines().any(|line| line.starts_with(&format!("- `{name}`"))), "{page}: {name}");
            count += 1;
        }
        assert!(count > 0);
    };
    has("/parameters.md", &mut parameter::PARAMETERS.iter().map(|row| row.name));
    has("/parameters.md", &mut parameter::FEATURE_BITS.iter().map(|row| row.name));
    has("/metrics.md", &mut metric::METRICS.iter().map(|row| row.name));
    has("/log-tags.md", &mut tag::TAGS.iter().map(|row| row.name));
    has("/log-tags.md", &mut reason::REASONS.iter().map(|row| row.word));
    has("/vcl-variables.md", &mut vcl::VARIABLES.iter().map(|row| row.name));
    has("/vcl-variables.md", &mut vcl::METHODS.iter().map(|row| row.name));
    has("/cli.md", &mut cli::COMMANDS.iter().map(|row| row.syntax));
    let sections: [&SectionRow; 14] = [
        &counter::MAIN,
        &counter::MGT,
        &counter::MEMPOOL,
        &counter::SMA,
        &counter::SMF,
        &counter::SMU,
        &counter::VBE,
        &counter::XKEY,
        &counter::DEBUG_VMOD,
        &counter::LCK,
        &reason::WHY,
        &counter::VCL,
        &counter::CERT,
        &counter::LOAD,
    ];
    for section in sections {
        has("/counters.md", &mut section.counters.iter().map(|row| row.name));
    }
}

#[test]
fn every_option_is_in_the_manual_and_in_the_completions() {
    let (bash, zsh, fish) = (text_of(".bash"), text_of("/_copal"), text_of(".fish"));
    for program in PROGRAMS {
        let part = program.part.split(' ').next().unwrap();
        let manual = text_of(&format!("/copal-{part}.1"));
        let of_bash = bash.lines().find(|line| line.trim_start().starts_with(&format!("'{}') echo '", program.part)));
        let of_bash: Vec<&str> = of_bash.unwrap().split(['\'', ' ']).collect();
        let function = format!("\n_copal_{}() {{", program.part.replace(' ', "_"));
        let of_zsh = zsh.split(&function).nth(1).and_then(|rest| rest.split("\n}\n").next()).unwrap();
        let head = format!("\n# copal {}\n", program.part);
        let of_fish = fish.split(&head).nth(1).and_then(|rest| rest.split("\n# ").next()).unwrap();
        for row in program.options() {
            let flags = row.flags().replace('-', "\\-");
            assert!(manual.contains(&format!(".TP\n\\fB{flags}")), "{}: {flags}", program.part);
            if row.is_letter {
                assert!(of_bash.contains(&format!("-{}", row.letter).as_str()), "{} -{}", program.part, row.letter);
                assert!(of_zsh.contains(&format!("-{}[", row.letter)), "{} -{}", program.part, row.letter);
                let quoted = if row.letter.is_alphanumeric() { "" } else { "'" };
                assert!(of_fish.contains(&format!(" -s {quoted}{}{quoted}", row.letter)), "{}", program.part);
            }
            if let Some(word) = row.word {
                assert!(of_bash.contains(&format!("--{word}").as_str()), "{} --{word}", program.part);
                assert!(of_zsh.contains(&format!("--{word}[")), "{} --{word}", program.part);
                assert!(of_fish.contains(&format!(" -l {word} ")), "{} --{word}", program.part);
            }
        }
    }
}

#[test]
fn the_form_of_a_value_says_what_completes_it() {
    let words = |words: &[&str]| Value::Words(words.iter().map(|word| (*word).to_owned()).collect());
    assert_eq!(value("<request|vxid>"), words(&["request", "vxid"]));
    assert_eq!(value("auto|<size>"), words(&["auto"]));
    assert_eq!(
        value("acme_challenge=auto|http-01|tls-alpn-01"),
        words(&["acme_challenge=auto", "acme_challenge=http-01", "acme_challenge=tls-alpn-01"])
    );
    assert_eq!((value("<filename>"), value("<file>|none")), (Value::File, Value::File));
    assert_eq!((value("<dir>"), value("<num>"), value("")), (Value::Directory, Value::Free, Value::Free));
    assert!(matches!(value("<parameter>=<value>"), Value::Words(words) if words.contains(&"default_ttl=".to_owned())));
    assert!(matches!(value("<taglist>"), Value::Words(words) if words.contains(&"ReqURL".to_owned())));
}

#[test]
fn no_page_of_the_manual_has_the_name_of_another() {
    let mut names: Vec<String> = files().into_iter().map(|file| file.path).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), pages().len()), (count, 7));
}
