//! The printed report: harmless for any content of the files, and with the same items for people
//! and for programs.

use crate::{Installation, SMALL_VCL};

#[test]
fn nothing_that_files_contain_reaches_a_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";
    let installation = Installation::new(&[
        (
            "/etc/systemd/system/varnish.service",
            &format!(
                "[Service]\nUser={evil}\nExecReload=/bin/{evil}\nEnvironment=X={evil}\n\
                 ExecStart=/usr/sbin/varnishd -F -i {evil} -p {evil}=1 -f /x{evil} -Z{evil} ${{X}}\n"
            ),
        ),
        ("/etc/systemd/system/varnishncsa.service", &format!("[Service]\nExecStart=/bin/varnishncsa -{evil}\n")),
        ("/etc/hitch/hitch.conf", &format!("frontend = \"*:443\"\n{evil} = {evil}\n")),
        ("/params", &format!("default_ttl {evil}\n{evil} 1\n")),
        ("/x.vcl", &format!("vcl 4.1;\nbackend default none;\nsub vcl_recv {{ set req.{evil} = 1; }}\n")),
    ]);
    let all = [
        "--unit",
        "varnish.service",
        "--ncsa",
        "varnishncsa.service",
        "--hitch",
        "/etc/hitch/hitch.conf",
        "--params",
        "/params",
        "--vcl",
        "/x.vcl",
    ];
    for form in [&[][..], &["--json"]] {
        let (status, output, error) = installation.preflight(&[&all, form].concat());
        assert_eq!(status, 2, "{error}");
        let commands = |letter: char| letter != '\n' && surface::legible::is_commanding(letter);
        assert!(!output.contains(commands), "{form:?}: {output:?}");
        assert!(output.contains("owned"), "what it is, is shown");
    }
    let (status, _, error) = installation.preflight(&["--unit", &format!("{evil}.service")]);
    assert!(status == 3 && !error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn people_see_what_blocks_first_and_may_leave_out_what_works() {
    let installation = Installation::new(&[
        ("/etc/default/varnish", "DAEMON_OPTS=\"-u x -f /x.vcl -h critbit -s malloc,1m\"\n"),
        ("/x.vcl", SMALL_VCL),
    ]);
    let (status, output, _) = installation.preflight(&[]);
    assert_eq!(status, 2);
    assert_eq!(
        output,
        "read: /etc/default/varnish, /x.vcl\n\
         \nblocks:\n\
         \x20 /etc/default/varnish:1: -u x: invalid option, it is of Varnish 1 to 4.0\n\
         \x20     -> -j unix,user=USER\n\
         \nchanges:\n\
         \x20 /etc/default/varnish:1: -h critbit: accepted, and without effect: there is one index, and it needs no choice\n\
         \x20     -> it may stay; it may go\n\
         \nworks as it is:\n\
         \x20 /etc/default/varnish:1: -f /x.vcl\n\
         \x20 /etc/default/varnish:1: -s malloc,1m\n\
         \x20 /x.vcl: VCL 4.1\n\
         \nto start, without what blocks:\n\
         \x20 varnishd -f /x.vcl -h critbit -s malloc,1m\n\
         \n1 block, 1 change, 3 work as they are\n"
    );
    let (_, output, _) = installation.preflight(&["--problems"]);
    assert!(!output.contains("works as it is") && output.contains("blocks:"), "{output}");
}

#[test]
fn a_file_that_is_too_large_or_no_file_is_not_read() {
    let installation = Installation::new(&[("/etc/systemd/system/varnish.service", "[Service]\n")]);
    installation.write("/large", &vec![b'x'; (surface::limits::PREFLIGHT_FILE_BYTES_MAX + 1) as usize]);
    let (status, _, error) = installation.preflight(&["--environment", "/large"]);
    assert!(status == 3 && error.contains("too large"), "{error}");
    let (status, _, error) = installation.preflight(&["--environment", "/etc"]);
    assert!(status == 3 && error.contains("not a regular file"), "{error}");
}
