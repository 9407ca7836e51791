//! The Debian packages, made from the program under test: their content, and their whole life in a
//! root of their own, where dpkg runs the maintainer scripts without root (`DPKG_ROOT`): installed,
//! started as the unit does, upgraded under load, removed, purged.
//!
//! The RPM packages are in `packages/rpm.rs`, the Helm chart is in `packages/chart.rs`.
//!
//! The examples of distributions (`packages/examples.rs`) start in namespaces of their own, on the
//! ports that they name.

mod chart;
mod examples;
mod root;
mod rpm;

use crate::daemon::{Origin, eventually, needs, ok};
use crate::layers::root as source;
use root::{Root, Service};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Both packages in two versions, built once.
struct Packages {
    folder: tempfile::TempDir,
}

const OLD: &str = "9.1";
const NEW: &str = "9.2";

static PACKAGES: LazyLock<Packages> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for version in [OLD, NEW] {
        let built = Command::new(source().join("packaging/build-deb"))
            .arg("--binary")
            .arg(crate::daemon::copal())
            .args(["--system", "debian12", "--compression", "none", "--version", version, "--out"])
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    Packages { folder }
});

impl Packages {
    fn file(&self, package: &str, version: &str) -> PathBuf {
        let start = format!("{package}_{version}_");
        let mut entries = std::fs::read_dir(self.folder.path()).unwrap().flatten().map(|entry| entry.path());
        entries.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&start)).expect("a package")
    }

    fn field(&self, package: &str, field: &str) -> String {
        text_of(Command::new("dpkg-deb").arg("--field").arg(self.file(package, OLD)).arg(field)).trim().to_owned()
    }

    /// Permissions, owner and path of everything in a package; of links their target too.
    fn content(&self, package: &str) -> Vec<String> {
        let listing = text_of(Command::new("dpkg-deb").arg("--contents").arg(self.file(package, OLD)));
        let shown = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {} {}", words[0], words[1], words[5..].join(" "))
        };
        listing.lines().map(shown).collect()
    }
}

/// Output of a command, which has to succeed.
fn text_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_packages_have_what_a_package_needs() {
    let Some(_) = needs("dpkg-deb") else { return };
    let copal = PACKAGES.content("copal");
    for file in [
        "-rwxr-xr-x root/root ./usr/bin/copal",
        "-rwxr-xr-x root/root ./usr/bin/copal-reload",
        "-rw-r--r-- root/root ./etc/copal/default.vcl",
        "-rw-r--r-- root/root ./etc/default/copal",
        "-rw-r--r-- root/root ./lib/systemd/system/copal.service",
        "-rw-r--r-- root/root ./lib/systemd/system/copal-ncsa.service",
        "-rw-r--r-- root/root ./etc/logrotate.d/copal",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/copal",
        "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_copal",
        "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/copal.fish",
        "-rw-r--r-- root/root ./usr/share/man/man1/copal.1.gz",
        "-rw-r--r-- root/root ./usr/share/man/man7/copal-vcl.7.gz",
        "-rw-r--r-- root/root ./usr/share/man/man8/copal-reload.8.gz",
        "-rw-r--r-- root/root ./usr/share/doc/copal/copyright",
        "-rw-r--r-- root/root ./usr/share/doc/copal/changelog.gz",
        "-rw-r--r-- root/root ./usr/share/doc/copal/docs/operate/troubleshoot.md",
    ] {
        assert!(copal.iter().any(|line| line == file), "{file} in {copal:#?}");
    }
    assert!(copal.iter().all(|line| !line.contains("varnishd") && !line.contains("/etc/varnish")), "beside varnish");
    let instead = PACKAGES.content("copal-varnish");
    let stock = surface::program::PROGRAMS.iter().filter_map(|program| program.stock);
    for name in stock.clone() {
        let link = if name == "varnishd" {
            "./usr/sbin/varnishd -> ../bin/copal".to_owned()
        } else {
            format!("./usr/bin/{name} -> copal")
        };
        assert!(instead.iter().any(|line| line.ends_with(&link)), "{link}");
        let manual = format!("./usr/share/man/man1/{name}.1.gz -> copal-");
        assert!(instead.iter().any(|line| line.contains(&manual)), "{manual}");
    }
    assert_eq!(stock.count(), 8);
    // Every link leads to a file of one of the packages.
    let files: BTreeSet<&str> = copal.iter().chain(&instead).filter_map(|line| line.split(' ').nth(2)).collect();
    for line in instead.iter().filter(|line| line.starts_with('l')) {
        let (link, target) = line.split(' ').nth(2).zip(line.split(" -> ").nth(1)).unwrap();
        let mut path = Path::new(link).parent().unwrap().to_owned();
        for part in Path::new(target).components() {
            match part {
                std::path::Component::ParentDir => _ = path.pop(),
                other => path.push(other),
            }
        }
        assert!(files.contains(path.to_str().unwrap()), "{line}");
    }
    for (field, value) in [("Conflicts", "varnish"), ("Replaces", "varnish"), ("Provides", "varnish (= 7.1.1)")] {
        assert_eq!(PACKAGES.field("copal-varnish", field), value);
    }
    assert_eq!(PACKAGES.field("copal-varnish", "Depends"), format!("copal (= {OLD}), adduser"));
    assert_eq!(PACKAGES.field("copal", "Conflicts"), "");
    assert!(PACKAGES.field("copal", "Depends").starts_with("libc6 (>= 2."));
}

#[test]
fn every_shell_script_and_completion_is_sound() {
    let packaging = source().join("packaging");
    let mut scripts = ["build-deb", "build-rpm", "stage", "copal-reload", "copal-container", "copal-follow"]
        .map(|name| packaging.join(name))
        .to_vec();
    for entry in std::fs::read_dir(packaging.join("debian")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| ["postinst", "prerm", "postrm"].contains(&end.to_str().unwrap()))
        {
            scripts.push(entry.path());
        }
    }
    assert_eq!(scripts.len(), 12);
    for script in scripts {
        text_of(Command::new("sh").arg("-n").arg(script));
    }
    for (shell, file) in [("bash", "copal.bash"), ("zsh", "_copal"), ("fish", "copal.fish")] {
        let Some(shell) = needs(shell) else { continue };
        text_of(Command::new(shell).arg("-n").arg(packaging.join("completions").join(file)));
    }
}

#[test]
fn bash_completes_parts_options_and_values() {
    let Some(bash) = needs("bash") else { return };
    let file = source().join("packaging/completions/copal.bash");
    for (line, wanted) in [
        ("copal w", "why"),
        ("copal why --fo", "--follow"),
        ("copal vcl mi", "migrate"),
        ("copal vcl check --dia", "--dialect"),
        ("copal daemon --log-format j", "json"),
        ("varnishlog -g sess", "session"),
        ("varnishadm vcl.lo", "vcl.load"),
        ("/usr/sbin/varnishd -p default_gr", "default_grace="),
        ("varnishncsa -i", ""),
    ] {
        let words = line.split(' ').count();
        let script = format!(
            "source {}; COMP_WORDS=({line}); COMP_CWORD={}; _copal 2>/dev/null; echo \"${{COMPREPLY[*]}}\"",
            file.display(),
            words - 1
        );
        assert_eq!(text_of(Command::new(&bash).args(["-c", &script])).trim(), wanted, "{line}");
    }
}

#[test]
fn lintian_finds_nothing_that_would_keep_the_packages_out() {
    let (Some(_), Some(lintian)) = (needs("dpkg-deb"), needs("lintian")) else { return };
    // The address of the maintainers is made up, and packages for a test are not compressed.
    let known = "bogus-mail-host,bogus-mail-host-in-debian-changelog,uses-no-compression-for-control-tarball,\
                 uses-no-compression-for-data-tarball";
    let output = Command::new(lintian)
        .args(["--allow-root", "--suppress-tags", known])
        .args(["copal", "copal-varnish"].map(|package| PACKAGES.file(package, OLD)))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().all(|line| !line.starts_with("E: ")), "{text}");
}

#[test]
fn units_match_the_documents() {
    let unit = |name: &str| std::fs::read_to_string(source().join("packaging/systemd").join(name)).unwrap();
    for name in ["copal.service", "copal-ncsa.service", "varnish.service", "varnishncsa.service"] {
        let Some(analyze) = needs("systemd-analyze") else { break };
        let output = Command::new(analyze)
            .args(["verify", "--man=no"])
            .arg(source().join("packaging/systemd").join(name))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // The programs are not installed here, and machines that run tests have units of their own
        // that are wrong.
        let wrong: Vec<&str> =
            said.lines().filter(|line| line.contains(name) && !line.contains("not executable")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
    for name in ["copal.service", "varnish.service"] {
        let text = unit(name);
        for line in
            ["Type=notify", "NotifyAccess=main", "KillMode=mixed", "FileDescriptorStoreMax=16", "OOMPolicy=continue"]
        {
            assert!(text.lines().any(|found| found == line), "{name}: {line}");
        }
    }
    // A drop-in for Debian's unit applies to the same line here.
    assert_eq!(command_of(&unit("varnish.service")), examples::DEBIAN_UNIT);
    assert_eq!(command_of(&unit("varnishncsa.service")), examples::DEBIAN_NCSA_UNIT);
}

/// `ExecStart=` of a unit, in one line.
fn command_of(unit: &str) -> String {
    let text = unit.replace("\\\n", " ");
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=").map(str::to_owned)).unwrap();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_package_lives_from_its_installation_to_its_purge() {
    let (Some(_), Some(_)) = (needs("dpkg-deb"), needs("dpkg")) else { return };
    let origin = Origin::start(|_| ok("Cache-Control: max-age=600\r\n", "served"));
    let root = Root::new();
    root.install(&[PACKAGES.file("copal", OLD), PACKAGES.file("copal-varnish", OLD)]);
    for secret in ["etc/copal/secret", "etc/varnish/secret"] {
        assert_eq!((root.mode(secret), root.read(secret).len()), (0o600, 64), "{secret}");
    }
    assert_eq!(root.mode("var/log/varnish"), 0o750);
    assert!(root.has("var/lib/copal"), "where no systemd makes it, the server would not start");
    let secret = root.read("etc/copal/secret");
    assert_eq!(root.read("etc/varnish/default.vcl"), root.read("etc/copal/default.vcl"));

    // The operator's own VCL, served by the line of the unit.
    let vcl = |word: &str| {
        format!(
            "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} sub vcl_deliver {{ set resp.http.x-vcl = \"{word}\"; }}",
            origin.port
        )
    };
    root.write("etc/copal/default.vcl", &vcl("first"));
    let service = Service::start(&root);
    assert!(!service.get("/").is_hit());
    assert!(service.get("/").is_hit());

    // A second version is installed while clients connect, each request on a connection of its own.
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let before = service.manager();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    let answer = service.get("/");
                    assert!(answer.status == 200 && answer.is_hit(), "{}", answer.head);
                    answered.fetch_add(1, SeqCst);
                }
            });
        }
        eventually("clients are served", || (answered.load(SeqCst) > 20).then_some(()));
        let said = root.install(&[PACKAGES.file("copal", NEW), PACKAGES.file("copal-varnish", NEW)]);
        assert!(!said.contains("stays as it is"), "{said}");
        let reached = answered.load(SeqCst);
        eventually("clients are served", || (answered.load(SeqCst) > reached + 20).then_some(()));
        over.store(true, SeqCst);
    });
    assert_ne!(service.manager(), before, "the new program serves");
    assert_eq!(origin.count(), 1, "nothing was fetched again");
    assert_eq!(root.read("etc/copal/secret"), secret);
    assert_eq!(root.read("etc/copal/default.vcl"), vcl("first"));

    // A reload uses the present file; one that does not compile changes nothing.
    root.write("etc/copal/default.vcl", &vcl("second"));
    for _ in 0..3 {
        let (done, said) = service.reload(&["-m", "1"]);
        assert!(done && said.contains("default.vcl"), "{said}");
    }
    assert_eq!(service.get("/").header("x-vcl"), Some("second"));
    let (_, list) = service.adm(&["vcl.list"]);
    eventually("what reloads left behind is discarded", || {
        let (_, list) = service.adm(&["vcl.list"]);
        (list.matches("reload_").count() == 2).then_some(())
    });
    root.write("etc/copal/default.vcl", "vcl 4.1; nonsense");
    let (done, said) = service.reload(&[]);
    assert!(!done && said.contains("nonsense") && said.contains("the VCL stays as it was"), "{said}");
    assert_eq!(service.get("/").header("x-vcl"), Some("second"), "{list}");
    // The options of later versions of varnishreload.
    root.write("etc/copal/default.vcl", &vcl("second"));
    let (done, said) = service.reload(&["-p", "site", "-t", "300", "-m", "1"]);
    assert!(done && said.starts_with("site_"), "{said}");
    let (done, said) = service.reload(&["-p", "x y"]);
    assert!(!done && said.contains("not the start of a name"), "{said}");
    // A label is pointed at the new VCL.
    root.write("etc/copal/default.vcl", &vcl("third"));
    let (_, list) = service.adm(&["vcl.list"]);
    let active = list.lines().find(|line| line.starts_with("active")).unwrap().split_whitespace().nth(4).unwrap();
    assert!(service.adm(&["vcl.label", "site", active]).0 && service.adm(&["vcl.use", "site"]).0);
    let (done, said) = service.reload(&[]);
    assert!(done && said.contains("site points at it"), "{said}");
    assert_eq!(service.get("/").header("x-vcl"), Some("third"));
    drop(service);

    root.dpkg(&["--remove", "copal-varnish", "copal"]);
    assert!(
        !root.has("usr/bin/copal") && !root.has("usr/sbin/varnishd") && !root.has("lib/systemd/system/varnish.service")
    );
    assert!(root.has("etc/copal/default.vcl") && root.has("etc/copal/secret") && root.has("etc/varnish/secret"));
    root.dpkg(&["--purge", "copal-varnish", "copal"]);
    assert_eq!((root.left_over(), root.has("var/log/varnish")), (Vec::<String>::new(), false));
}

#[test]
fn units_that_went_with_varnish_are_there_again() {
    let (Some(_), Some(_)) = (needs("dpkg-deb"), needs("dpkg")) else { return };
    let root = Root::new();
    root.dpkg(&["--unpack", &PACKAGES.file("copal-varnish", OLD).display().to_string()]);
    // The order of dpkg without apt: unpack the new package, remove the conflicting one, configure.
    for unit in ["varnish.service", "varnishncsa.service"] {
        std::fs::remove_file(root.path(&format!("lib/systemd/system/{unit}"))).unwrap();
    }
    root.install(&[PACKAGES.file("copal", OLD)]);
    root.dpkg(&["--configure", "copal-varnish"]);
    for unit in ["varnish.service", "varnishncsa.service"] {
        let expected = std::fs::read_to_string(source().join("packaging/systemd").join(unit)).unwrap();
        assert_eq!(root.read(&format!("usr/lib/systemd/system/{unit}")), expected);
    }
}

#[test]
fn a_purge_leaves_alone_what_was_there_before() {
    let (Some(_), Some(_)) = (needs("dpkg-deb"), needs("dpkg")) else { return };
    let root = Root::new();
    root.write("etc/varnish/default.vcl", "theirs");
    root.write("etc/varnish/secret", "theirs");
    root.write("etc/logrotate.d/varnish", "theirs");
    root.write("var/log/varnish/varnishncsa.log", "theirs");
    root.install(&[PACKAGES.file("copal", OLD), PACKAGES.file("copal-varnish", OLD)]);
    // logrotate fails if two files name one log, and Debian's stays behind when varnish is removed.
    let rotations = std::fs::read_dir(root.path("etc/logrotate.d")).unwrap().flatten();
    let rotations: BTreeSet<_> = rotations.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(rotations.iter().map(String::as_str).collect::<Vec<_>>(), ["copal", "varnish"]);
    assert!(!root.read("etc/logrotate.d/copal").contains("/var/log/varnish"));
    root.dpkg(&["--purge", "copal-varnish", "copal"]);
    let before =
        ["etc/logrotate.d/varnish", "etc/varnish/default.vcl", "etc/varnish/secret", "var/log/varnish/varnishncsa.log"];
    assert_eq!(root.left_over(), before);
    assert_eq!(root.read("etc/varnish/default.vcl"), "theirs");
}

#[test]
fn created_paths_in_use_by_varnish_survive_the_purge() {
    let (Some(_), Some(_)) = (needs("dpkg-deb"), needs("dpkg")) else { return };
    let root = Root::new();
    root.install(&[PACKAGES.file("copal", OLD), PACKAGES.file("copal-varnish", OLD)]);
    root.dpkg(&["--remove", "copal-varnish"]);
    // Debian's varnish is installed, and writes its log.
    root.write("usr/sbin/varnishd", "#!/bin/sh\n");
    std::fs::set_permissions(root.path("usr/sbin/varnishd"), std::fs::Permissions::from_mode(0o755)).unwrap();
    root.write("var/log/varnish/varnishncsa.log", "theirs");
    root.dpkg(&["--purge", "copal-varnish", "copal"]);
    let theirs = [
        "etc/logrotate.d/varnish",
        "etc/varnish/default.vcl",
        "etc/varnish/secret",
        "usr/sbin/varnishd",
        "var/log/varnish/varnishncsa.log",
    ];
    assert_eq!(root.left_over(), theirs);
}

#[test]
fn invalid_package_arguments_are_refused() {
    let build = |arguments: &[&str]| {
        let output = Command::new(source().join("packaging/build-deb")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let program = crate::daemon::copal().display().to_string();
    assert_eq!(build(&[]).0, Some(2));
    assert_eq!(build(&["--binary"]).0, Some(2));
    assert_eq!(build(&["--binary", "/nonexistent"]), (Some(1), "build-deb: /nonexistent is not a program\n".into()));
    let (status, said) = build(&["--binary", &program, "--version", "new"]);
    assert_eq!((status, said.as_str()), (Some(1), "build-deb: 'new' is not a version\n"));
    let (status, said) = build(&["--binary", &program, "--version", "1", "--system", "plan9"]);
    assert_eq!((status, said.lines().next().unwrap().contains("debian12, debian13")), (Some(1), true), "{said}");
    assert_eq!(build(&["--binary", &program, "--colour", "red"]).0, Some(2));
}

#[test]
fn each_system_gets_the_command_line_and_the_version_of_its_own_varnish() {
    let Some(_) = needs("dpkg-deb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    // A small program instead of the large one.
    let Some(program) = needs("true") else { return };
    let program = program.display().to_string();
    for (system, version, line, units) in [
        ("ubuntu22.04", "6.6.1", examples::DEBIAN_UNIT, "lib/systemd/system"),
        ("ubuntu24.04", "7.1.1", examples::DEBIAN_UNIT, "lib/systemd/system"),
        ("debian13", "7.7.0", examples::DEBIAN_13_UNIT, "usr/lib/systemd/system"),
    ] {
        let common = ["--version", "1", "--compression", "none", "--out", &out];
        text_of(
            Command::new(source().join("packaging/build-deb"))
                .args(["--binary", &program, "--system", system])
                .args(common),
        );
        let mut files = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
        let package = files.find(|path| path.display().to_string().contains("copal-varnish_1_")).unwrap();
        let provides = text_of(Command::new("dpkg-deb").arg("--field").arg(&package).arg("Provides"));
        assert_eq!(provides.trim(), format!("varnish (= {version})"), "{system}");
        let root = folder.path().join(system);
        text_of(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root));
        let unit = std::fs::read_to_string(root.join(units).join("varnish.service")).unwrap();
        assert_eq!(command_of(&unit), line, "{system}");
    }
}

#[test]
fn the_container_recipe_names_what_is_there_and_starts_what_works() {
    let recipe = std::fs::read_to_string(source().join("packaging/Containerfile")).unwrap();
    for line in recipe.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from")) {
        let file = line.split(' ').nth(1).unwrap();
        assert!(source().join(file).exists(), "{line}");
    }
    assert!(recipe.lines().any(|line| line == "USER 6080"));
    let words = |key: &str| -> Vec<String> {
        let line = recipe.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        serde_json::from_str(line.trim()).unwrap()
    };
    assert_eq!(words("ENTRYPOINT"), ["copal-container"]);
    // As in the container image, except for its folders and its port. The origin is in the
    // environment.
    let root = Root::new();
    let origin = Origin::start(|_| ok("", "served"));
    root.write("etc/copal/default.vcl", &std::fs::read_to_string(source().join("packaging/container.vcl")).unwrap());
    root.write("var/lib/copal/empty", "");
    let folder = crate::daemon::copal().parent().unwrap().display().to_string();
    let script = source().join("packaging/copal-container").display().to_string();
    let environment = format!("PATH={folder}:$PATH COPAL_BACKEND=127.0.0.1:{}", origin.port);
    root.write("start", &format!("#!/bin/sh\n{environment} exec sh {script} \"$@\"\n"));
    std::fs::set_permissions(root.path("start"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = [["-n", "/var/lib/copal/server"].map(str::to_owned).to_vec(), words("CMD")].concat();
    let service = Service::of(&root, Path::new(&root.path("start")), &line);
    assert_eq!(service.get("/").text(), "served");
    let check = recipe.split("HEALTHCHECK").nth(1).unwrap().split("CMD copal adm ").nth(1).unwrap();
    let check = check.lines().next().unwrap().trim_end_matches(" || exit 1").replace("/var/", &root.path("var/"));
    let healthy = || Command::new(crate::daemon::copal()).arg("adm").args(check.split(' ')).output().unwrap();
    assert!(healthy().status.success());
    assert!(service.adm(&["stop"]).0);
    assert!(!healthy().status.success(), "a server without a worker is not healthy");
}
