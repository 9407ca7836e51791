//! The caches in front of a site, and files that its servers may read.

use crate::bench::running::Running;
use crate::bench::start::launch;
use crate::place::free_port;
use crate::servers::{Kind, Setting};
use std::path::Path;

/// The caches in front of a server; they store its pages for an hour, whatever lifetime it
/// declares.
pub(super) fn launch_caches(folder: &Path, origin: u16, core: usize) -> Result<Vec<Running>, String> {
    let vcl = Some("sub vcl_backend_response { set beresp.ttl = 1h; }\n".to_owned());
    let mut running = Vec::new();
    for kind in [Kind::Copal, Kind::Varnish] {
        if kind.program().is_some() {
            let (port, setting) = (free_port()?, Setting { vcl: vcl.clone(), ..Setting::default() });
            let server = launch(kind, port, origin, folder, &setting, &core.to_string())?;
            running.push(Running::clear(kind.name(), vec![server], port));
        }
    }
    Ok(running)
}

/// Makes it readable for servers that run as another user.
pub(super) fn set_readable(path: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).map_err(|error| format!("{}: {error}", path.display()))
}
