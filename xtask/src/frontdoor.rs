//! `cargo xtask frontdoor`: memory of connections over TLS, HTTP/2 and HTTP/3, compared with peers.
//! Their CPU cost is measured in `bench`, whose rows `tls-…`, `h2…` and `h3` use the same servers.
//! Next files: `frontdoor/servers.rs`, `frontdoor/memory.rs`.

mod memory;
pub mod servers;

use crate::place;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    if !arguments.iter().any(|argument| argument == "--as-built") {
        place::build()?;
    }
    let folder = place::folder()?;
    let certificates = servers::Certificates::make(folder.path())?;
    let peers = servers::installed_peers(crate::task::option(arguments, "--only"));
    println!("{}", memory::measure(folder.path(), &certificates, &peers)?);
    Ok(())
}
