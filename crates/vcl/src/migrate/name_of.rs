//! The kind of declaration that a name refers to.

/// The kind of declaration that a name belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum NameOf {
    Acl,
    /// A backend or director.
    Backend,
    Probe,
}

impl NameOf {
    /// Suffix for a name that another declaration has.
    pub(super) fn word(self) -> &'static str {
        match self {
            NameOf::Acl => "acl",
            NameOf::Backend => "backend",
            NameOf::Probe => "probe",
        }
    }
}
