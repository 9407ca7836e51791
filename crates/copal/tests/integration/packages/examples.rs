//! The settings that distributions ship for varnishd start Copal as they are.
//!
//! They name ports and files of the system. So each runs in namespaces of its own: a network with
//! nothing but loopback, and `/etc/varnish`, `/var/lib/varnish` and `/run` of its own.

use crate::daemon::{copal, needs};
use nix::unistd::{User, geteuid};
use std::process::Command;

/// `ExecStart=` of Debian's varnish.service.
pub(super) const DEBIAN_UNIT: &str = "/usr/sbin/varnishd -j unix,user=vcache -F -a :6081 -T localhost:6082 -f /etc/varnish/default.vcl \
                                      -S /etc/varnish/secret -s malloc,256m";
/// The same of Debian 13.
pub(super) const DEBIAN_13_UNIT: &str = "/usr/sbin/varnishd -F -a :6081 -T localhost:6082 -f /etc/varnish/default.vcl \
                                         -S /etc/varnish/secret -p feature=+http2 -s malloc,256m";
/// The same of Varnish's own packages for RPM, with `-F` for Copal's kind of unit.
pub(super) const RPM_UNIT: &str = "/usr/sbin/varnishd -F -a :6081 -a localhost:8443,PROXY -p feature=+http2 \
                                   -f /etc/varnish/default.vcl -s malloc,256m";
/// `ExecStart=` of Debian's varnishncsa.service.
pub(super) const DEBIAN_NCSA_UNIT: &str =
    "/usr/bin/varnishncsa -a -w /var/log/varnish/varnishncsa.log -D -P /run/varnishncsa/varnishncsa.pid";
/// Content of Debian's `/etc/default/varnish`, and the command line of its init script.
const DEBIAN_DEFAULT: &str = r#"
NFILES=131072
MEMLOCK=82000
DAEMON_OPTS="-a :6081 \
             -T localhost:6082 \
             -f /etc/varnish/default.vcl \
             -S /etc/varnish/secret \
             -s malloc,256m"
"#;
const DEBIAN_INIT: &str = "varnishd -P /run/varnishd.pid $DAEMON_OPTS";
/// Content of `varnish.params`, and the line of the unit that reads it.
const VARNISH_PARAMS: &str = r#"
RELOAD_VCL=1
VARNISH_VCL_CONF=/etc/varnish/default.vcl
VARNISH_LISTEN_PORT=6081
VARNISH_ADMIN_LISTEN_ADDRESS=127.0.0.1
VARNISH_ADMIN_LISTEN_PORT=6082
VARNISH_SECRET_FILE=/etc/varnish/secret
VARNISH_STORAGE="malloc,256M"
VARNISH_USER=varnish
VARNISH_GROUP=varnish
DAEMON_OPTS="-p thread_pool_min=5 -p thread_pool_max=500 -p thread_pool_timeout=300"
"#;
const PARAMS_UNIT: &str = "varnishd -P /var/run/varnish.pid -f $VARNISH_VCL_CONF -a ${VARNISH_LISTEN_ADDRESS}:${VARNISH_LISTEN_PORT} \
                           -T ${VARNISH_ADMIN_LISTEN_ADDRESS}:${VARNISH_ADMIN_LISTEN_PORT} -S $VARNISH_SECRET_FILE -s $VARNISH_STORAGE \
                           $DAEMON_OPTS";

/// Starts a server with these settings and this line, and requests its state and a page. The origin
/// is the server itself, whose VCL answers.
fn starts(settings: &str, line: &str) {
    let (Some(_), Some(_)) = (needs("unshare"), needs("ip")) else { return };
    // Without -T, the tools find the port of the CLI in the work directory.
    let has_port = [settings, line].iter().any(|text| text.contains("-T "));
    let cli = if has_port { "-T localhost:6082 -S /etc/varnish/secret" } else { "" };
    let script = format!(
        r#"
set -e
mount -t tmpfs none /etc/varnish 2>/dev/null || {{ mount -t tmpfs none /srv && mkdir /srv/upper /srv/work && mount -t overlay none -o lowerdir=/etc,upperdir=/srv/upper,workdir=/srv/work /etc && mkdir -p /etc/varnish; }}
mount -t tmpfs none /run && mount -t tmpfs none /var/lib
mkdir -p /var/lib/varnish && chmod 755 /run /var/lib
ip link set lo up
echo 0123456789abcdef >/etc/varnish/secret
printf '%s\n' 'vcl 4.1; backend default none; sub vcl_recv {{ return (synth(200, "Here")); }}' >/etc/varnish/default.vcl
mkdir /run/bin && ln -s "$COPAL" /run/bin/varnishd && ln -s "$COPAL" /run/bin/varnishadm
PATH=/run/bin:$PATH
{settings}
{line} &
server=$!
end() {{ varnishadm pid | sed -n 's/^Master: *//p' | xargs -r kill; wait; }}
trap end EXIT
for turn in {{1..3000}}; do
    state=$(varnishadm -t 300 {cli} status) || true
    [[ $state == *running* ]] && break
    sleep 0.1
done
echo "$state"
exec 3<>/dev/tcp/127.0.0.1/6081
printf 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&3
head -n 1 <&3
"#
    );
    let mut command = Command::new("unshare");
    if !geteuid().is_root() {
        // Without other users there is no jail; everything else is as for root.
        command.args(["--map-current-user", "--keep-caps"]);
    }
    let output = command
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", &script])
        .env("COPAL", copal())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("mount: ") {
        println!("skipped: no namespaces here: {said}");
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running") && text.contains("HTTP/1.1 200 Here"), "{line}: {text}{said}");
}

#[test]
fn debians_defaults_start_as_they_are() {
    starts(DEBIAN_DEFAULT, DEBIAN_INIT);
}

#[test]
fn varnish_params_start_as_they_are() {
    starts(VARNISH_PARAMS, PARAMS_UNIT);
}

#[test]
fn the_line_of_debians_unit_starts_as_it_is() {
    if !geteuid().is_root() || User::from_name("vcache").unwrap().is_none() {
        println!("skipped: needs root, and the user vcache");
        return;
    }
    starts("", DEBIAN_UNIT.trim_start_matches("/usr/sbin/"));
}

#[test]
fn the_lines_of_later_units_start_as_they_are() {
    for line in [DEBIAN_13_UNIT, RPM_UNIT] {
        starts("", line.trim_start_matches("/usr/sbin/"));
    }
}

#[test]
fn examples_of_debian_files_match_debian() {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let unit = text("/usr/share/doc/varnish/copyright").and(text("/lib/systemd/system/varnish.service"));
    let (Some(unit), Some(defaults)) = (unit, text("/etc/default/varnish")) else {
        println!("skipped: needs Debian's varnish");
        return;
    };
    let words = |text: &str| text.replace('\\', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&unit).contains(DEBIAN_UNIT), "{unit}");
    let set = defaults.split("## Alternative 3").next().unwrap();
    assert!(words(set).contains(&words(DEBIAN_DEFAULT.split("MEMLOCK=82000").nth(1).unwrap())), "{set}");
}
