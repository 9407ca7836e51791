/// A compiled VCL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Language version: 40 or 41.
    pub syntax: u8,
    /// Sources, the main one first, the built-in VCL last.
    pub sources: Vec<Source>,
    /// Backends in order of definition.
    pub backends: Vec<BackendDefinition>,
    /// Index of the default backend.
    pub default_backend: Option<u32>,
    /// Probes, named and inline.
    pub probes: Vec<ProbeDefinition>,
    /// ACLs.
    pub acls: Vec<AclDefinition>,
    /// Objects of vcl_init.
    pub instances: Vec<InstanceDefinition>,
    /// Labels named in `return(vcl(label))`, by index of the action's argument.
    pub labels: Vec<String>,
    /// Names of VMODs imported.
    pub vmods: Vec<String>,
}
