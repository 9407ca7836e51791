//! The Helm chart, and the scripts of the container image that it uses: with a read-only root, any
//! user and no capabilities, and with a VCL that is replaced while the server runs.

use super::root::{Root, Service};
use super::text_of;
use crate::daemon::{Origin, Process, copal, eventually, needs, ok};
use crate::layers::root as source;
use nix::unistd::geteuid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn chart() -> PathBuf {
    source().join("packaging/helm/copal")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(chart().join(file)).unwrap()
}

/// All templates, one after the other.
fn templates() -> String {
    let entries = std::fs::read_dir(chart().join("templates")).unwrap().flatten();
    entries.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect()
}

#[test]
fn chart_has_the_version_of_the_program() {
    let text = read("Chart.yaml");
    let version = env!("CARGO_PKG_VERSION");
    for line in [format!("version: {version}"), format!("appVersion: \"{version}\"")] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn values_of_the_chart_are_used_and_in_its_schema() {
    let values = read("values.yaml");
    let given: BTreeSet<&str> = values
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split(':').next())
        .collect();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let in_schema: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    // Those of Helm itself and of its usual names need no line in the values.
    let of_helm = BTreeSet::from(["global", "nameOverride", "fullnameOverride"]);
    assert_eq!(in_schema.difference(&of_helm).copied().collect::<BTreeSet<_>>(), given);
    let templates = templates();
    for name in given {
        assert!(templates.contains(&format!(".Values.{name}")), "{name} has no effect");
    }
}

#[test]
fn helm_accepts_the_chart_and_kubeconform_its_output() {
    let Some(helm) = needs("helm") else { return };
    text_of(Command::new(&helm).args(["lint", "--strict"]).arg(chart()));
    for settings in [
        "replicaCount=1",
        "backend=web:80,serviceMonitor.enabled=true,includes.a\\.vcl=text,podSecurityContext=null,podDisruptionBudget=null",
        "reload.enabled=false,args={-s,malloc\\,1g},service.type=LoadBalancer,nodeSelector.a=b,volumes[0].name=c",
    ] {
        let rendered = Command::new(&helm)
            .args(["template", "test", "--kube-version", "1.31.0", "--set", settings])
            .arg(chart())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&rendered.stdout).into_owned();
        assert!(rendered.status.success(), "{settings}: {}", String::from_utf8_lossy(&rendered.stderr));
        let containers = text.matches("imagePullPolicy:").count();
        for right in ["allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true", "drop: [ALL]"] {
            assert_eq!(text.matches(right).count(), containers, "{settings}: {right}");
        }
        assert!(text.contains("terminationGracePeriodSeconds: 40") && text.contains("drain_timeout=25"), "{settings}");
        // A folder of schemas, since kubeconform would fetch them otherwise.
        let schemas = std::env::var("COPAL_KUBERNETES_SCHEMAS").ok();
        let (Some(kubeconform), Some(schemas)) = (needs("kubeconform"), schemas) else { continue };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        text_of(
            Command::new(kubeconform)
                .args(["-strict", "-skip", "ServiceMonitor,PodDisruptionBudget", "-schema-location"])
                .arg(format!("{schemas}/{{{{.ResourceKind}}}}.json"))
                .arg(file.path()),
        );
    }
    let wrong = Command::new(&helm)
        .args(["template", "test", "--kube-version", "1.31.0", "--set", "service.prot=80"])
        .arg(chart())
        .output()
        .unwrap();
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("prot"), "a misspelt value");
}

/// Starts the image's script as Kubernetes would, as the user and group in `$USER_AND_GROUP`.
const CONFINED: &str = r#"
set -eu
mount -t tmpfs none /var/lib && mkdir -m 0775 /var/lib/copal
mount -t tmpfs none /mnt && cp "$COPAL" /mnt/copal && cp "$SCRIPTS/copal-container" "$SCRIPTS/container.vcl" /mnt
mount -o remount,bind,ro /mnt && mount -o remount,bind,ro /
ip link set lo up
echo ready
export PATH=/mnt:$PATH COPAL_BACKEND=127.0.0.1:1
as() { setpriv --reuid "${USER_AND_GROUP%:*}" --regid "${USER_AND_GROUP#*:}" --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"; }
! as touch /file 2>&1
as sh /mnt/copal-container -a :6080 -f /mnt/container.vcl --log-format json -o metrics=:9131 &
for turn in {1..3000}; do
    if as copal adm -t 300 -n /var/lib/copal/server status 2>/dev/null | grep running; then break; else sleep 0.1; fi
done
exec 3<>/dev/tcp/127.0.0.1/6080 && printf 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&3 && head -n 1 <&3
exec 4<>/dev/tcp/127.0.0.1/9131 && printf 'GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&4 && head -n 1 <&4
as copal stop -n /var/lib/copal/server
wait
echo stopped
"#;

#[test]
fn container_needs_no_rights_and_no_user_of_its_own() {
    let (Some(_), Some(_), Some(_)) = (needs("unshare"), needs("setpriv"), needs("ip")) else { return };
    if !geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    // A user that does not exist, in the group of the folder; and root without capabilities.
    for user in ["54321:0", "0:0"] {
        let output = Command::new("unshare")
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", CONFINED])
            .env("COPAL", copal())
            .env("SCRIPTS", source().join("packaging"))
            .env("USER_AND_GROUP", user)
            .output()
            .unwrap();
        let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !text.contains("ready") {
            println!("skipped: no namespaces here: {said}");
            return;
        }
        // The origin refuses; the worker answers.
        for line in ["HTTP/1.1 503", "HTTP/1.1 200", "Read-only file system", "stopped"] {
            assert!(text.contains(line), "{user}: {line} in {text}{said}");
        }
    }
}

#[test]
fn changed_vcl_is_loaded_into_the_running_server() {
    let root = Root::new();
    let origin = Origin::start(|_| ok("", "served"));
    let vcl = |word: &str| {
        format!(
            "vcl 4.1; include \"{}\"; backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} \
             sub vcl_deliver {{ set resp.http.x-vcl = \"{word}\"; }}",
            root.path("etc/copal/more.vcl"),
            origin.port
        )
    };
    root.write("var/lib/copal/empty", "");
    root.write("etc/copal/more.vcl", "sub vcl_deliver { set resp.http.x-more = \"one\"; }");
    root.write("etc/copal/default.vcl", &vcl("first"));
    let line = ["daemon", "-F", "-a", ":6080", "-n", "/var/lib/copal/server", "-f", "/etc/copal/default.vcl"];
    let service = Service::of(&root, &copal(), &line.map(str::to_owned));
    eventually("the server answers", || (service.get("/").header("x-vcl") == Some("first")).then_some(()));

    // The script finds copal-reload in the image's PATH.
    let folder = source().join("packaging");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let log = std::fs::File::create(root.path("var/follow.txt")).unwrap();
    let _follower = Process(
        Command::new(folder.join("copal-follow"))
            .args(["-i", "1", "-n", &root.path("var/lib/copal/server")])
            .args([root.path("etc/copal/default.vcl"), root.path("etc/copal/more.vcl")])
            .env("PATH", path)
            .env("COPAL", copal())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let said = || std::fs::read_to_string(root.path("var/follow.txt")).unwrap();
    eventually("it follows", || said().contains("follows ").then_some(()));
    let changed = |name: &str, text: &str, (header, value): (&str, &str)| {
        root.write(name, text);
        eventually("the change is loaded", || (service.get("/").header(header) == Some(value)).then_some(()));
    };
    changed("etc/copal/default.vcl", &vcl("second"), ("x-vcl", "second"));
    changed("etc/copal/more.vcl", "sub vcl_deliver { set resp.http.x-more = \"two\"; }", ("x-more", "two"));
    // A mistake changes nothing, and the follower goes on.
    root.write("etc/copal/default.vcl", "vcl 4.1; nonsense");
    eventually("the mistake is reported", || said().contains("the VCL stays as it was").then_some(()));
    assert_eq!(service.get("/").header("x-vcl"), Some("second"));
    changed("etc/copal/default.vcl", &vcl("third"), ("x-vcl", "third"));
}
