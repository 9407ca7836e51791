//! The RPM packages: their content, what rpmlint says, and their life in a copy of this system (an
//! overlay with namespaces of its own), where rpm runs their scripts.

use super::{command_of, examples, text_of};
use crate::daemon::{copal, needs};
use crate::layers::root as source;
use nix::unistd::geteuid;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

const OLD: &str = "9.1";
const NEW: &str = "9.2";

/// Both packages in two versions, built once.
static PACKAGES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for version in [OLD, NEW] {
        text_of(
            Command::new(source().join("packaging/build-rpm"))
                .arg("--binary")
                .arg(copal())
                .args(["--compression", "none", "--version", version, "--out"])
                .arg(folder.path()),
        );
    }
    folder
});

fn file(package: &str, version: &str) -> PathBuf {
    let start = format!("{package}-{version}-1.");
    let mut entries = std::fs::read_dir(PACKAGES.path()).unwrap().flatten().map(|entry| entry.path());
    entries.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&start)).expect("a package")
}

fn query(package: &str, format: &str) -> String {
    text_of(Command::new("rpm").args(["--query", "--package", "--queryformat", format]).arg(file(package, OLD)))
}

#[test]
fn rpm_packages_have_their_files_with_modes_and_marks() {
    let (Some(_), Some(_)) = (needs("rpmbuild"), needs("rpm")) else { return };
    let format = "[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES} %{FILEFLAGS:fflags}\n]";
    let copal = query("copal", format);
    for line in [
        "-rwxr-xr-x root/root /usr/bin/copal ",
        "-rwxr-xr-x root/root /usr/bin/copal-reload ",
        "-rw-r--r-- root/root /etc/copal/default.vcl cn",
        "-rw------- root/root /etc/copal/secret cng",
        "-rw-r--r-- root/root /etc/sysconfig/copal cn",
        "-rw-r--r-- root/root /etc/logrotate.d/copal cn",
        "-rw-r--r-- root/root /usr/lib/systemd/system/copal.service ",
        "-rw-r--r-- root/root /usr/share/man/man1/copal.1.gz d",
        "drwxr-xr-x root/root /var/lib/copal ",
    ] {
        // The mark of manual pages depends on the settings of rpm.
        let is_there = copal.lines().any(|found| found == line || found == line.trim_end_matches('d'));
        assert!(is_there, "{line} in {copal}");
    }
    assert!(!copal.contains("varnishd") && !copal.contains("/etc/varnish"), "beside varnish");
    let instead = query("copal-varnish", "[%{FILENAMES} -> %{FILELINKTOS}\n]");
    for line in ["/usr/sbin/varnishd -> ../bin/copal", "/usr/sbin/varnishreload -> ../bin/copal-reload"] {
        assert!(instead.lines().any(|found| found == line), "{line} in {instead}");
    }
    for program in surface::program::PROGRAMS.iter().filter_map(|program| program.stock) {
        assert!(instead.lines().any(|line| line.starts_with(&format!("/usr/share/man/man1/{program}.1.gz -> "))));
        assert!(instead.contains(&format!("/{program} -> ")), "{program}");
    }
    assert_eq!(query("copal-varnish", "[%{CONFLICTNAME} ]"), "varnish ");
    assert!(query("copal-varnish", "[%{PROVIDENAME} ]").contains("varnish "));
    assert!(query("copal-varnish", "[%{REQUIRENAME} %{REQUIREVERSION}\n]").lines().any(|line| line == "copal 9.1"));
    // Each script is sound.
    for package in ["copal", "copal-varnish"] {
        for script in ["PREIN", "POSTIN", "PREUN", "POSTUN", "POSTTRANS"] {
            let text = query(package, &format!("%{{{script}}}"));
            assert!(text.len() > 20, "{package}: {script}: {text}");
            text_of(Command::new("sh").args(["-n", "-c", &text]));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let unpack = format!(
        "cd {} && for file in {} {}; do rpm2cpio $file | cpio -id --quiet './usr/lib/*'; done",
        folder.path().display(),
        file("copal", OLD).display(),
        file("copal-varnish", OLD).display()
    );
    let Some(_) = needs("cpio") else { return };
    text_of(Command::new("sh").args(["-c", &unpack]));
    let unit = |name: &str| std::fs::read_to_string(folder.path().join("usr/lib/systemd/system").join(name)).unwrap();
    assert_eq!(command_of(&unit("varnish.service")), examples::RPM_UNIT);
    assert!(unit("varnish.service").contains("\nExecReload=/usr/sbin/varnishreload\n"));
    assert!(unit("copal.service").contains("\nEnvironmentFile=/etc/sysconfig/copal\n"));
}

#[test]
fn rpmlint_finds_nothing() {
    let (Some(_), Some(rpmlint)) = (needs("rpmbuild"), needs("rpmlint")) else { return };
    let output = Command::new(rpmlint)
        .arg("--config")
        .arg(source().join("packaging/rpm/rpmlint.toml"))
        .args(["copal", "copal-varnish"].map(|package| file(package, OLD)))
        .arg(source().join("packaging/rpm/copal.spec"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" 0 errors, 0 warnings"), "{text}");
}

/// The life of the packages, in the root `$R`. Each step ends the script if it fails.
const LIFE: &str = r#"
set -eu
mount -t tmpfs none "$SCRATCH"
mkdir "$SCRATCH/upper" "$SCRATCH/work" "$SCRATCH/root"
mount -t overlay none -o "lowerdir=/,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" "$SCRATCH/root"
R=$SCRATCH/root
mount -t proc proc "$R/proc" && mount --bind /dev "$R/dev" && mount -t tmpfs none "$R/run"
ip link set lo up
echo ready
# A system without either.
rm -rf "$R"/usr/sbin/varnish* "$R"/usr/bin/varnish* "$R/etc/varnish" "$R/var/lib/varnish" "$R/var/log/varnish" \
    "$R/etc/logrotate.d/varnish" "$R/etc/copal" "$R/var/lib/copal"
for user in copal copal-log; do chroot "$R" userdel $user 2>/dev/null || true; done
mkdir -p "$R/packages" "$R/rpmdb"
cp "$PACKAGES"/*.rpm "$R/packages"
cat >"$R/varnish.spec" <<'END'
Name: varnish
Version: 7.7.0
Release: 1
Summary: Stock
License: BSD
BuildArch: noarch
%description
Stock.
%install
mkdir -p %{buildroot}/etc/varnish %{buildroot}/usr/sbin
echo stock >%{buildroot}/etc/varnish/default.vcl
echo stock >%{buildroot}/usr/sbin/varnishd
%files
%config(noreplace) /etc/varnish/default.vcl
/usr/sbin/varnishd
END
rpmbuild -bb --quiet --define "_topdir $R/build" --define "_rpmdir $R/packages" --define "_rpmfilename %%{name}.rpm" \
    "$R/varnish.spec"
# Without a database of this system's packages, no dependency is known.
rpm() { chroot "$R" rpm --dbpath /rpmdb "$@" 2>&1; }
rpm --initdb
rpm -i --nodeps /packages/varnish.rpm
VCL='vcl 4.1; backend default none; sub vcl_recv { return (synth(200, "Here")); }'
echo "$VCL" >"$R/etc/varnish/default.vcl"

echo "step: next to Varnish"
rpm -i --nodeps /packages/copal-9.1-1.*.rpm
[ "$(stat -c %a:%s "$R/etc/copal/secret")" = 600:64 ]
chroot "$R" getent passwd copal copal-log
! rpm -i --nodeps /packages/copal-varnish-9.1-1.noarch.rpm

echo "step: instead of it"
rpm -e varnish
rpm -i --nodeps /packages/copal-varnish-9.1-1.noarch.rpm
[ "$(cat "$R/etc/varnish/default.vcl")" = "$VCL" ]
[ "$(stat -c %a:%U "$R/var/log/varnish")" = 750:varnishlog ] || [ "$(stat -c %a "$R/var/log/varnish")" = 750 ]
grep -q varnishncsa "$R/etc/logrotate.d/varnish"

echo "step: both serve"
echo "$VCL" >"$R/etc/copal/default.vcl"
cp "$R/etc/copal/secret" "$SCRATCH/secret"
. "$R/etc/sysconfig/copal"
chroot "$R" copal daemon -F -n /var/lib/copal/server -S /etc/copal/secret -j unix,user=copal,workuser=copal $COPAL_OPTS &
chroot "$R" /usr/sbin/varnishd -F -a :6081 -f /etc/varnish/default.vcl -s malloc,64m &
running() { chroot "$R" copal adm -t 300 -n "/var/lib/$1" status 2>/dev/null | grep -q running; }
answers() { exec 3<>"/dev/tcp/127.0.0.1/$1" && printf 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&3 && head -n 1 <&3 | grep -q Here; }
for server in copal/server varnish/varnishd; do
    for turn in {1..3000}; do if running $server; then break; else sleep 0.1; fi; done
done
answers 6080 && answers 6081
managers() { for server in copal/server varnish/varnishd; do chroot "$R" copal adm -n /var/lib/$server pid | sed -n 's/^Master: *//p'; done; }
before=$(managers)

echo "step: upgrade"
said=$(rpm -U --nodeps /packages/copal-9.2-1.*.rpm /packages/copal-varnish-9.2-1.noarch.rpm)
echo "$said"
[[ $said != *"stays as it is"* ]]
answers 6080 && answers 6081
after=$(managers)
for manager in $before; do [[ " "$after" " != *" $manager "* ]]; done
[ "$(cat "$R/etc/copal/default.vcl")" = "$VCL" ] && [ ! -e "$R/etc/copal/default.vcl.rpmnew" ]
cmp "$R/etc/copal/secret" "$SCRATCH/secret"

echo "step: removal"
rpm -e copal-varnish copal
[ ! -e "$R/usr/bin/copal" ] && [ ! -e "$R/usr/sbin/varnishd" ] && [ ! -e "$R/usr/lib/systemd/system/varnish.service" ]
[ "$(cat "$R/etc/copal/default.vcl.rpmsave")" = "$VCL" ] && [ "$(cat "$R/etc/varnish/default.vcl")" = "$VCL" ]
rpm -i --nodeps /packages/varnish.rpm
[ "$(cat "$R/etc/varnish/default.vcl")" = "$VCL" ] && [ -e "$R/etc/varnish/default.vcl.rpmnew" ]
echo "end of a life"
kill $after
"#;

#[test]
fn an_rpm_lives_from_its_installation_to_its_removal() {
    let (Some(_), Some(_), Some(_)) = (needs("rpmbuild"), needs("unshare"), needs("ip")) else { return };
    if !geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", LIFE])
        .env("SCRATCH", scratch.path())
        .env("PACKAGES", PACKAGES.path())
        .output()
        .unwrap();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !text.contains("ready") {
        println!("skipped: no namespaces here: {said}");
        return;
    }
    assert!(text.contains("end of a life"), "{text}{said}");
}
