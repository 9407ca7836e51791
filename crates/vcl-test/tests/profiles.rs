//! The files that `copal init` writes: the compiler and the linter find nothing, and their cases
//! pass under both policies; without what protects visitors they fail.

use std::ffi::OsString;
use std::path::Path;
use surface::profile::PROFILES;
use surface::program::Called;
use tools::Streams;

fn run(command: fn(&[OsString], &mut Streams) -> i32, args: &[&str]) -> (i32, String) {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        input: &mut std::io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: Called::Copal,
    };
    let status = command(&args, &mut streams);
    (status, String::from_utf8([output, error].concat()).unwrap())
}

/// Writes the files of an application; returns their paths.
fn written(name: &str, folder: &Path) -> [String; 2] {
    let folder = folder.join(name);
    let (status, output) = run(tools::init_to, &[name, "-b", "192.0.2.80:8080", folder.to_str().unwrap()]);
    assert_eq!(status, 0, "{output}");
    ["default.vcl", "tests.toml"].map(|file| folder.join(file).to_str().unwrap().to_owned())
}

#[test]
fn every_application_passes_its_cases_and_the_linter_under_both_policies() {
    let folder = tempfile::tempdir().unwrap();
    for row in &PROFILES {
        let [vcl, tests] = written(row.name, folder.path());
        let (status, output) = run(tools::vcl_to, &["check", &vcl]);
        assert!(status == 0 && output.ends_with(": ok\n"), "{output}");
        for policy in ["http_policy=rfc", "http_policy=varnish"] {
            let (status, output) = run(tools::vcl_to, &["lint", "-p", policy, "--deny", "note", &vcl]);
            assert_eq!(status, 0, "{} {policy}: {output}", row.name);
            let (status, output) = run(vcl_test::test_to, &["-p", policy, &vcl, &tests]);
            assert_eq!(status, 0, "{} {policy}: {output}", row.name);
        }
    }
}

#[test]
fn cases_fail_without_what_protects_visitors() {
    let folder = tempfile::tempdir().unwrap();
    for (name, protection, without, case) in [
        ("wordpress", "wordpress_(logged_in|sec)_|", "", "editor sees WordPress itself"),
        ("wordpress", "client.ip !~ purgers", "client.ip ~ purgers", "nobody else purges"),
        (
            "woocommerce",
            "woocommerce_items_in_cart|woocommerce_cart_hash|",
            "",
            "visitor with a cart sees it on every page",
        ),
        ("drupal", "S?SESS[0-9a-zA-Z]+|", "", "member sees Drupal itself"),
        ("magento", "hash_data(req.http.X-Context);", "", "each group of customers has its pages"),
        ("joomla", "joomla_user_state=logged_in|", "", "member sees Joomla itself"),
        ("mediawiki", "[sS]ession|Token|UserID", "nothing", "user sees MediaWiki itself"),
        ("discourse", "    return (pass);\n}\n", "}\n", "page of a guest is left to Discourse"),
        ("registry", " || req.http.Authorization", "", "credentials are not shared"),
    ] {
        let [vcl, tests] = written(name, folder.path());
        let text = std::fs::read_to_string(&vcl).unwrap();
        assert!(text.contains(protection), "{name}: {protection}");
        std::fs::write(&vcl, text.replace(protection, without)).unwrap();
        let (status, output) = run(vcl_test::test_to, &[&vcl, &tests]);
        let failed = |line: &str| line.starts_with("FAIL") && line.ends_with(&format!(": {case}"));
        assert!(status == 1 && output.lines().any(failed), "{name}: {output}");
        std::fs::remove_dir_all(folder.path().join(name)).unwrap();
    }
}
