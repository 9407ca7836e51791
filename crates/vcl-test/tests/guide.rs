//! The example of `docs/guide/change-vcl-safely.md`, as printed: it passes, and the faults that the
//! page plants are found.

use std::ffi::OsString;
use std::path::Path;
use surface::program::Called;
use tools::Streams;

/// The first block of a language on the page.
fn block(language: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/change-vcl-safely.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rest = page.split_once(&format!("```{language}\n")).unwrap().1.to_owned();
    rest.split_once("```").unwrap().0.to_owned()
}

fn run(command: fn(&[OsString], &mut Streams) -> i32, args: &[OsString]) -> (i32, String) {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        input: &mut std::io::empty(),
        output: &mut output,
        error: &mut error,
        program: false,
        called: Called::Copal,
    };
    let status = command(args, &mut streams);
    (status, String::from_utf8([output, error].concat()).unwrap())
}

fn test(folder: &Path, vcl: &str) -> (i32, String) {
    std::fs::write(folder.join("shop.vcl"), vcl).unwrap();
    std::fs::write(folder.join("shop.toml"), block("toml")).unwrap();
    run(vcl_test::test_to, &[folder.join("shop.vcl").into(), folder.join("shop.toml").into()])
}

fn lint(folder: &Path, vcl: &str) -> (i32, String) {
    std::fs::write(folder.join("shop.vcl"), vcl).unwrap();
    run(tools::vcl_to, &["lint".into(), "--deny".into(), "note".into(), folder.join("shop.vcl").into()])
}

#[test]
fn example_passes_as_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (status, output) = test(folder.path(), &block("vcl"));
    assert_eq!(status, 0, "{output}");
    assert!(output.contains("4 cases, 0 failed"), "{output}");
    assert_eq!(lint(folder.path(), &block("vcl")).0, 0);
}

#[test]
fn planted_faults_are_found_with_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let vcl = block("vcl");
    let without_cart = vcl.replace("    if (req.url ~ \"^/cart\") {\n        return (pass);\n    }\n", "");
    assert_ne!(vcl, without_cart);
    let (status, output) = test(folder.path(), &without_cart);
    assert_eq!(status, 1);
    assert!(output.contains("shop.toml:11: cart is never stored\n     request 1: GET /cart\n"), "{output}");
    assert!(output.contains("  handling: expected pass, got miss\n"), "{output}");
    let end = vcl.trim_end().strip_suffix('}').unwrap();
    let (status, output) = lint(folder.path(), &format!("{end}    return (deliver);\n}}\n"));
    assert_eq!(status, 1);
    assert!(output.contains("error[S1]: A response with Set-Cookie is stored here, cookie included"), "{output}");
    assert!(output.contains("shop.vcl:20:5"), "{output}");
}
