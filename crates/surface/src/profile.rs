//! Applications for which `copal init` writes a VCL with its test cases.
//!
//! The files are in `crates/tools/profiles`, one folder for each row.

/// One application.
#[derive(Debug)]
pub struct ProfileRow {
    /// The word on the command line, and the name of its folder.
    pub name: &'static str,
    /// One line about it.
    pub line: &'static str,
    /// The path that the probe in its VCL asks for.
    pub probe: &'static str,
}

const fn row(name: &'static str, line: &'static str, probe: &'static str) -> ProfileRow {
    ProfileRow { name, line, probe }
}

/// Every application, in the order of the help.
pub static PROFILES: [ProfileRow; 9] = [
    row("wordpress", "WordPress, with purges by its cache plug-ins", "/wp-includes/images/blank.gif"),
    row("woocommerce", "WordPress with the shop WooCommerce", "/wp-includes/images/blank.gif"),
    row("drupal", "Drupal, with purges by tag", "/core/misc/favicon.ico"),
    row("magento", "Magento 2, with ESI and purges by tag", "/health_check.php"),
    row("joomla", "Joomla, with its plug-in for page caching", "/media/system/images/arrow.png"),
    row("mediawiki", "MediaWiki, with purges by URL", "/resources/assets/poweredby_mediawiki_88x31.png"),
    row("discourse", "Discourse: its files, not its pages", "/srv/status"),
    row("static", "a site of files, with purges after deployments", "/"),
    row("registry", "a registry of packages or images that everyone may read", "/"),
];

/// Row of an application.
#[must_use]
pub fn profile(name: &str) -> Option<&'static ProfileRow> {
    PROFILES.iter().find(|row| row.name == name)
}
