//! The report on an option agrees with the daemon's own parser.

use crate::{run, said};
use manager::arguments;
use std::ffi::OsString;
use surface::option::letter::{FORMER_LETTERS, LETTERS, STORAGE_KINDS};
use surface::parameter::{PARAMETERS, former::FORMER, value};
use surface::program::Called;

/// Command lines: every letter with valid and invalid values, of Varnish 7.1 and of older ones.
fn lines() -> Vec<Vec<String>> {
    let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let none = ["-F", "-b", "none"];
    let mut lines: Vec<Vec<String>> = [
        &["-F", "-b", "none"][..],
        &["-d"],
        &["-C", "-b", "none"],
        &["-F"],
        &["-F", "-b", "none", "-f", ""],
        &["-V"],
        &["-V", "x"],
        &["-x", "builtin"],
        &["-x", "nothing"],
        &["-?"],
        &["--help"],
        &["--nonsense"],
        &["--memory", "2G", "-F", "-f", ""],
        &["--memory", "lots", "-F", "-f", ""],
        &["--log-format"],
        &["-F", "-f", "", "word"],
        &["-F", "-f", "", "--", "-F"],
        &["-Ff", ""],
        &["-F", "-f", "", "-p", "vsl_reclen=20k", "-p", "vsl_buffer=64k"],
        &["-F", "-f", "", "-p", "vsl_buffer=64k", "-p", "vsl_reclen=20k"],
        &["-F", "-f", "", "-r", "default_ttl", "-p", "default_ttl=1"],
        &["-F", "-f", "", "-a", "127.0.0.1:1", "-a", "127.0.0.1:1"],
        &["-F", "-f", "", "-s", "one=malloc,1m", "-s", "one=malloc,1m"],
    ]
    .iter()
    .map(|words| of(words))
    .collect();
    let values: &[(char, &[&str])] = &[
        ('a', &[":0", "127.0.0.1:80,PROXY", "/run/x.sock,mode=0666", "127.0.0.1:80,SPDY", ""]),
        ('A', &["/no/such/file"]),
        ('b', &["127.0.0.1:80", ""]),
        ('f', &["", "/no/such/file"]),
        ('h', &["critbit", "classic,16383", "simple_list", "critbit,1", "nothing"]),
        ('i', &["name"]),
        ('I', &["/dev/null", "/no/such/file"]),
        ('j', &["none", "none,x", "solaris", "unix,user=no_such_user_here"]),
        ('l', &["80m", "80m,1m", "1,1,1", "x"]),
        ('M', &["127.0.0.1:6082", "127.0.0.1"]),
        ('n', &["/tmp/x", "name"]),
        ('o', &["nothing=1"]),
        ('P', &["/tmp/x.pid"]),
        ('p', &["default_ttl=60", "default_ttl=x", "default_ttl", "nothing=1", "feature=+http2", "feature=+nothing"]),
        ('r', &["default_ttl,default_grace", "nothing"]),
        ('S', &["none", "/no/such/file"]),
        ('s', &["malloc", "malloc,1g", "main=malloc,50%", "malloc,1,2", "nothing"]),
        ('T', &["none", "127.0.0.1:0", ""]),
        ('t', &["120", "x"]),
        ('W', &["epoll", "kqueue"]),
    ];
    for (letter, values) in values {
        for value in *values {
            let before = if *letter == 'f' { &none[..1] } else { &none[..] };
            lines.push([of(before), of(&[&format!("-{letter}"), value])].concat());
        }
    }
    for row in LETTERS.iter().filter(|row| !row.value.is_empty()) {
        assert!(values.iter().any(|(letter, _)| *letter == row.letter) || row.letter == 'x', "-{}", row.letter);
        lines.push(vec![format!("-{}", row.letter)]);
    }
    for row in FORMER_LETTERS {
        let value = if row.value.is_empty() { vec![] } else { vec!["1,2,3".to_owned()] };
        lines.push([of(&none), vec![format!("-{}", row.letter)], value].concat());
    }
    for row in STORAGE_KINDS {
        lines.push([of(&none), of(&["-s", &format!("{},/x,1m", row.name)])].concat());
        lines.push([of(&none), of(&["-s", row.name])].concat());
    }
    let defaults = manager::default_parameters(Called::Stock);
    for row in PARAMETERS {
        lines.push([of(&none), of(&["-p", &format!("{}={}", row.name, value::format(&defaults, row))])].concat());
    }
    for row in FORMER {
        lines.push([of(&none), of(&["-p", &format!("{}=1", row.name)])].concat());
    }
    lines
}

#[test]
fn preflight_verdict_on_a_line_matches_the_daemon() {
    let is_root = nix::unistd::geteuid().is_root();
    let (mut refused, mut accepted) = (0, 0);
    for line in lines() {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let daemon = arguments::parse(Called::Stock, &words);
        let separator = [OsString::from("--json"), OsString::from("--")];
        let (status, output, error) = run(separator.into_iter().chain(words).collect());
        let document: serde_json::Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{line:?}: {error}"));
        let blocks = said(&document, "blocks");
        let needs_root = line.iter().any(|word| word.starts_with("unix"));
        if !is_root && needs_root {
            continue;
        }
        assert_eq!(status == 2, daemon.is_err(), "{line:?}: {daemon:?}\n{document:#}");
        assert_eq!(status == 2, !blocks.is_empty(), "{line:?}");
        match daemon {
            Ok(_) => accepted += 1,
            Err(error) => {
                refused += 1;
                // The first words of the daemon's message are those of ours, except for messages
                // about combinations of options.
                let message = error.text.trim().lines().next().unwrap_or_default();
                let message = if message.starts_with("Too many") { "Too many arguments" } else { message };
                assert!(
                    blocks.iter().any(|text| text.contains(message) || text.contains("invalid option")),
                    "{line:?}: {message} in {blocks:?}"
                );
            }
        }
    }
    assert!(refused > 80 && accepted > 150, "{refused} {accepted}");
}

#[test]
fn removed_options_name_their_replacement() {
    let blocks = |words: &[&str]| {
        let line: Vec<OsString> =
            ["--json", "--", "-F", "-b", "none"].iter().chain(words).map(OsString::from).collect();
        said(&serde_json::from_str(&run(line).1).unwrap(), "blocks")
    };
    assert_eq!(
        blocks(&["-u", "varnish", "-g", "varnish", "-w", "1,1000,120"]),
        [
            "command line -u varnish: invalid option, it is of Varnish 1 to 4.0 -> -j unix,user=USER",
            "command line -g varnish: invalid option, it is of Varnish 1 to 4.0 -> leave it out: with -j unix,user=USER the group is that user's",
            "command line -w 1,1000,120: invalid option, it is of Varnish 1 to 3 -> leave it out: Copal has one event loop per \
             core instead of thread pools",
        ]
    );
    let persistent = blocks(&["-s", "persistent,/var/lib/varnish/x.bin,1G"]);
    assert!(persistent[0].contains("-> -s malloc,SIZE: it outlives its worker"), "{persistent:?}");
    let log = blocks(&["-l", "80m,1m"]);
    assert!(log[0].contains("-> one size, of the log"), "{log:?}");
}
