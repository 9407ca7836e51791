//! The messages for wrong command lines, compared with those of Varnish 7.1.1.

use super::*;

fn run(line: &[&str]) -> Result<Parsed, ArgumentError> {
    let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
    parse(Called::Stock, &arguments)
}

fn complete(line: &[&str]) -> Arguments {
    match run(line) {
        Ok(Parsed::Run(arguments)) => *arguments,
        other => panic!("{line:?}: {other:?}"),
    }
}

/// One line after `Error: `, then the hint.
#[track_caller]
fn refuses(line: &[&str], expected: &str) {
    let shown = run(line).unwrap_err().shown(Called::Stock);
    assert_eq!(shown, format!(" {expected}\n(-? gives usage)"), "{line:?}");
}

/// A block after `Error:`.
#[track_caller]
fn refuses_part(line: &[&str], expected: &str) {
    assert_eq!(run(line).unwrap_err(), ArgumentError::of_part(expected), "{line:?}");
}

#[test]
fn conflicts_are_named() {
    refuses(&["-d", "-b", "none", "-F"], "Only one of -d or -F can be specified");
    refuses(&["-C"], "-C needs either -b <backend> or -f <vcl_file>");
    refuses(&["-C", "-d", "-b", "none"], "-d makes no sense with -C");
    refuses(&["-F", "-C", "-b", "none"], "-F makes no sense with -C");
    refuses(&["-b", "none", "-f", "x"], "Only one of -b or -f can be specified");
    refuses(&[], "Neither -b nor -f given. (use -f '' to override)");
    refuses(&["-a", ":0", "-F"], "Neither -b nor -f given. (use -f '' to override)");
    refuses(&["foo"], "Too many arguments (foo...)");
    refuses(&["-b", "none", "foo", "bar"], "Too many arguments (foo...)");
    refuses(&["-d", "-V"], "-V must be the first argument");
    refuses(&["-V", "x"], "Too many arguments for -V");
    refuses(&["-x", "foo"], "Invalid -x argument");
    refuses(&["-d", "-x", "optstring"], "-x must be the first argument");
    refuses(&["-x", "builtin", "foo"], "Too many arguments for -x");
    refuses(&["-Z"], "invalid option -- 'Z'");
    refuses(&["-x"], "option requires an argument -- 'x'");
    refuses(&["-u", "x"], "invalid option -- 'u'\n\t-u is of Varnish 1 to 4.0; -j unix,user=USER");
}

#[test]
fn wrong_values_are_named() {
    refuses(&["-d", "-a", "x=127.0.0.1:0,FOO"], "Unknown protocol 'FOO'");
    refuses(
        &["-d", "-a", "127.0.0.1:1", "-a", "127.0.0.1:1"],
        "-a arguments 127.0.0.1:1 and 127.0.0.1:1 have same address",
    );
    refuses(&["-d", "-s", "foo"], "Unknown storage method \"foo\"");
    refuses(&["-d", "-s", "maloc,1m"], "Unknown storage method \"maloc\"; did you mean malloc?");
    refuses(&["-d", "-p", "foo"], "\t-p lacks '='");
    refuses(&["-d", "-S", "/nonexistent"], "Cannot open -S file (/nonexistent): No such file or directory");
    refuses(
        &["-d", "-T", "foo:bar"],
        "Could not resolve -T argument to address\n\tServname not supported for ai_socktype",
    );
    refuses(&["-d", "-I", "/nonexistent"], "\tCan't open /nonexistent: No such file or directory");
    refuses(&["-d", "-I", "/dev/null", "-I", "/dev/null"], "\tOnly one -I allowed");
    refuses(&["-F", "-f", "/nonexistent"], "Cannot read -f file '/nonexistent' (No such file or directory)");
    refuses(&["-d", "-W", "foo"], "Unknown waiter method \"foo\"");
    refuses(&["-d", "-h", ""], "-h argument is empty");
    refuses(&["-d", "-j", ""], "-j argument is empty");
    refuses(&["-d", "-T", ""], "Could not resolve -T argument to address\n\tName or service not known");
    refuses(&["-d", "-S", "/"], "Cannot open -S file (/): Is a directory");
    refuses(&["-d", "-h", "foo"], "Unknown hash method \"foo\"");
    refuses(&["-d", "-h", "critbit,1"], "Hash method \"critbit\" takes no arguments");
    refuses(&["-d", "-j", "foo"], "Unknown jail method \"foo\"");
}

#[test]
fn wrong_parameters_are_named() {
    let tail = |name: &str, value: &str| format!("\n(attempting to set param '{name}' to '{value}')");
    refuses_part(&["-d", "-p", "foo=1"], "Unknown parameter \"foo\".");
    refuses_part(&["-d", "-t", "x"], &format!("Invalid number (x)\n{}", tail("default_ttl", "x")));
    refuses_part(&["-d", "-l", "1"], &format!("Must be at least 1M\n{}", tail("vsl_space", "1")));
    refuses_part(&["-d", "-r", "foo"], "Unknown parameter foo");
    refuses_part(&["-d", "-r", "default_ttl", "-p", "default_ttl=3"], "parameter \"default_ttl\" is protected.");
    refuses_part(&["-d", "-r", "default_ttl", "-t", "3"], "parameter \"default_ttl\" is protected.");
    let arguments = complete(&["-d", "-p", "default_ttl=3", "-r", "default_ttl"]);
    assert_eq!(arguments.parameters.default_ttl, 3.0);
    assert!(arguments.protected.contains("default_ttl"));
}

#[test]
fn options_cluster_and_the_last_setting_wins() {
    let arguments =
        complete(&["-Fa", "127.0.0.1:0", "-bnone", "-t5", "-p", "default_ttl=7", "-l2m", "-r", "max_vcl,debug"]);
    assert_eq!(arguments.mode, Mode::Foreground);
    assert_eq!(arguments.parameters.default_ttl, 7.0);
    assert_eq!(arguments.parameters.vsl_space, 2 << 20);
    assert_eq!(arguments.protected.iter().map(String::as_str).collect::<Vec<_>>(), ["debug", "max_vcl"]);
}

#[test]
fn a_plain_command_line_gets_the_defaults() {
    let arguments = complete(&["-b", "127.0.0.1:8080", "-j", "none"]);
    assert_eq!(arguments.mode, Mode::Background);
    assert_eq!(arguments.work_directory, Path::new("/var/lib/varnish/varnishd"));
    assert!(arguments.listeners.is_empty(), "the default depends on what systemd passes");
    assert_eq!(arguments.cli_listeners[0].text, "localhost:0");
    assert_eq!(arguments.secret, SecretArgument::Generated);
    assert_eq!(arguments.jail, Jail::None { asked: true });
    let vcl = &arguments.vcls[0];
    assert_eq!((vcl.name.as_str(), vcl.source_name.as_str()), ("boot", "<-b argument>"));
    let text = String::from_utf8(vcl.text.clone()).unwrap();
    assert_eq!(text, "vcl 4.1;\nbackend default {\n    .host = \"127.0.0.1\";\n    .port = \"8080\";\n}\n");
}

#[test]
fn names_and_addresses_of_the_management_are_taken() {
    let arguments = complete(&["-d", "-n", "x", "-T", "none", "-M", "127.0.0.1 1234", "-S", "none", "-i", "me"]);
    assert_eq!(arguments.work_directory, Path::new("/var/lib/varnish/x"));
    assert!(arguments.cli_listeners.is_empty());
    assert_eq!(arguments.cli_masters[0].addresses, ["127.0.0.1:1234".parse().unwrap()]);
    assert_eq!(arguments.secret, SecretArgument::None);
    assert_eq!(arguments.identity.as_deref(), Some("me"));
    assert!(complete(&["-f", "", "-n", "/abs"]).vcls.is_empty());
}

#[test]
fn the_usage_text_has_the_letters_that_are_parsed() {
    let Ok(Parsed::Print { text: parsed, .. }) = run(&["--optstring"]) else { panic!("no letters") };
    let letters = |text: &str| {
        let letters: Vec<char> = text.trim().chars().collect();
        let takes = |index: usize| letters.get(index + 1) == Some(&':');
        let found = letters.iter().enumerate().filter(|(_, letter)| **letter != ':');
        found.map(|(index, letter)| (*letter, takes(index))).collect::<BTreeSet<_>>()
    };
    assert_eq!(letters(&surface::program::program("daemon").optstring()), letters(&parsed));
}

#[test]
fn information_is_printed() {
    let text = |line: &[&str]| match run(line) {
        Ok(Parsed::Print { text, status }) => (text, status),
        other => panic!("{line:?}: {other:?}"),
    };
    assert_eq!(text(&["-?"]).1, 2);
    assert_eq!(text(&["--optstring"]), text(&["-x", "optstring"]));
    let text = |line: &[&str]| text(line).0;
    assert!(text(&["-V"]).starts_with("varnishd (varnish-7.1.1 revision "));
    assert_eq!(text(&["-x", "optstring"]), format!("{}\n", letter::optstring()));
    assert!(text(&["-x", "parameter"]).contains("default_ttl"));
    assert!(text(&["-x", "cli"]).contains("vcl.load <configname>"));
    assert!(text(&["-x", "vsl"]).contains("ReqURL"));
    assert!(text(&["-?"]).contains("-W <epoll|poll>"));
}

#[test]
fn the_name_under_which_it_was_started_decides_the_policy() {
    let policy = |called: Called, more: &[&str]| {
        let line: Vec<OsString> = ["-b", "none", "-j", "none"].iter().chain(more).map(OsString::from).collect();
        match parse(called, &line) {
            Ok(Parsed::Run(arguments)) => Ok(arguments.parameters.http_policy),
            Ok(Parsed::Print { .. }) => panic!("it runs"),
            Err(error) => Err(error.text),
        }
    };
    assert_eq!(policy(Called::Stock, &[]), Ok("varnish".to_owned()));
    assert_eq!(policy(Called::Copal, &[]), Ok("rfc".to_owned()));
    assert_eq!(policy(Called::Copal, &["-p", "http_policy=varnish"]), Ok("varnish".to_owned()));
    let error = policy(Called::Copal, &["-p", "http_policy=varnish3"]).unwrap_err();
    assert!(error.contains("use one of: varnish, rfc"), "{error}");
    let feature = |called: Called| match parse(
        called,
        &["-b", "none", "-p", "feature=none", "-p", "feature=default"].map(Into::into),
    ) {
        Ok(Parsed::Run(arguments)) => arguments.parameters.feature,
        _ => panic!("it runs"),
    };
    assert_eq!(feature(Called::Stock), surface::parameter::Parameters::default().feature);
    assert_eq!(feature(Called::Copal), feature(Called::Stock) | surface::parameter::feature::HTTP2);
    let builtin = |called: Called| dump::dump(called, "builtin").unwrap();
    assert_eq!((builtin(Called::Stock).as_str(), builtin(Called::Copal).as_str()), (vcl::BUILTIN, vcl::BUILTIN_RFC));
    let parameters = dump::dump(Called::Copal, "parameter").unwrap();
    assert!(parameters.contains("http_policy\n\t* Default: rfc\n"));
    assert!(parameters.contains("eviction_policy\n\t* Default: s3fifo\n"));
    assert!(dump::dump(Called::Stock, "parameter").unwrap().contains("eviction_policy\n\t* Default: lru\n"));
    assert!(parameters.contains("feature\n\t* Default: +http2,+validate_headers\n"));
}

fn run_as_copal(line: &[&str]) -> Result<Box<Arguments>, String> {
    let arguments: Vec<OsString> = ["-j", "none"].iter().chain(line).map(OsString::from).collect();
    match parse(Called::Copal, &arguments) {
        Ok(Parsed::Run(arguments)) => Ok(arguments),
        Ok(Parsed::Print { text, .. }) => panic!("{text}"),
        Err(error) => Err(error.shown(Called::Copal)),
    }
}

#[test]
fn backend_option_is_the_backend_of_a_file_without_one_under_copal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("site.vcl").display().to_string();
    std::fs::write(&file, "sub vcl_recv { }").unwrap();
    let arguments = run_as_copal(&["-b", "127.0.0.1:8080", "-f", &file]).unwrap();
    assert_eq!(arguments.default_backend, Some(vcl::backend_option("127.0.0.1:8080")));
    assert_eq!(arguments.vcls.iter().map(|vcl| vcl.source_name.as_str()).collect::<Vec<_>>(), [&file]);
    let alone = run_as_copal(&["-b", "127.0.0.1:8080"]).unwrap();
    assert_eq!(alone.default_backend, None, "the VCL of -b has it");
    let successor = ["-b", "127.0.0.1:8080", "-f", "/gone", "-j", "none"].map(OsString::from);
    match parse_as_successor(Called::Copal, &successor) {
        Ok(Parsed::Run(successor)) => assert_eq!(successor.default_backend, arguments.default_backend),
        other => panic!("{other:?}"),
    }
}

#[test]
fn backend_that_is_a_bare_number_is_refused_under_copal() {
    let refused = run_as_copal(&["-b", "8080"]).unwrap_err();
    assert!(refused.contains("-b 8080 has no host: a port of this machine is -b 127.0.0.1:8080"), "{refused}");
    assert!(run(&["-b", "8080"]).is_ok(), "as Varnish");
}

#[test]
fn backend_may_be_a_url_without_a_path_under_copal() {
    for text in ["http://127.0.0.1:8080", "HTTP://127.0.0.1:8080/"] {
        let arguments = run_as_copal(&["-b", text]).unwrap();
        assert_eq!(arguments.backend.as_deref(), Some("127.0.0.1:8080"), "{text}");
    }
    for (text, said) in [
        ("http://127.0.0.1:8080/blog", "-b takes the address of the origin"),
        ("http://", "-b takes the address of the origin"),
        ("https://example.com/", ".host = \"example.com\"; .port = \"443\"; .ssl = 1;"),
    ] {
        let refused = run_as_copal(&["-b", text]).unwrap_err();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn relative_file_is_found_in_vcl_path_and_then_in_the_current_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for directory in ["first", "here"] {
        std::fs::create_dir(path(directory)).unwrap();
    }
    std::fs::write(path("here/site.vcl"), "here").unwrap();
    let vcl_path = format!("/nonexistent:{}", path("first").display());
    let find = |name: &str| find_vcl(Path::new(name), &vcl_path, Some(&path("here")));
    let shown = |name: &str| path(name).display().to_string();
    assert_eq!(find("site.vcl").unwrap(), (shown("here/site.vcl"), b"here".to_vec()));
    std::fs::write(path("first/site.vcl"), "first").unwrap();
    assert_eq!(find("site.vcl").unwrap(), (shown("first/site.vcl"), b"first".to_vec()));
    assert_eq!(find("other.vcl").unwrap_err().kind(), io::ErrorKind::NotFound);
    let here = std::env::current_dir().unwrap();
    let expected = format!(
        " Cannot read -f file 'no-such.vcl' (No such file or directory)\n\tlooked in /nonexistent, {} and the current directory {}",
        path("first").display(),
        here.display()
    );
    let setting = format!("vcl_path={vcl_path}");
    assert_eq!(run_as_copal(&["-f", "no-such.vcl", "-p", &setting]).unwrap_err(), expected);
}

#[test]
fn refused_change_of_user_names_the_jail_and_j_none() {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("site.vcl");
    std::fs::write(&file, "vcl 4.1; backend default none;").unwrap();
    let name = file.to_str().unwrap();
    let shown = std::thread::scope(|scope| {
        // Capabilities are those of a thread: the other tests keep theirs.
        let bare = scope.spawn(|| {
            let none = CapabilitySet::empty();
            let sets = capabilities(None).unwrap();
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, ..sets }).unwrap();
            let refused = run(&["-F", "-j", "unix", "-f", name]).unwrap_err().shown(Called::Stock);
            (refused, run(&["-F", "-j", "none", "-f", name]).is_ok(), complete(&["-F", "-f", name]).jail)
        });
        bare.join().unwrap()
    });
    let cause = format!(" Cannot read -f file '{name}' (Operation not permitted)\n\tthe jail may not become user ");
    assert!(shown.0.starts_with(&cause) && shown.0.contains("-j none"), "{}", shown.0);
    assert!(shown.1);
    // Without -j there is no jail that cannot be had.
    assert_eq!(shown.2, Jail::None { asked: false });
    assert!(jail::remark(&shown.2).unwrap().contains("CAP_SETUID"));
    assert_eq!(jail::remark(&Jail::None { asked: true }), None);
}
