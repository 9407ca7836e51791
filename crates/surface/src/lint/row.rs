//! The form of a row of the table of rules.

/// A rule. Source: [`super::RULES`], in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Rule {
    SetCookieStored,
    CredentialsNotJudged,
    PrivateStored,
    ForwardedForTrusted,
    PurgeOpen,
    BanInjection,
    ErrorsStored,
    VaryTooWide,
    BanNotByLurker,
    TtlZeroCacheable,
    QueryNoise,
    RegexCost,
    PassForCookie,
    NotNormalised,
    NeverReached,
    Overwritten,
    GroupMissing,
    Unused,
    HeaderTypo,
    ChangedTooLate,
    ProbeImpatient,
    SubRepeated,
    KeyIncomplete,
    StatusImpossible,
    AclContained,
    AllowUnused,
}

/// Level of a finding, the least severe first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// It could be faster or clearer.
    Note,
    /// It probably does something other than intended.
    Warning,
    /// One client can get another's response, or anyone can change the cache.
    Error,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 3] = [Level::Note, Level::Warning, Level::Error];

    /// The word in messages and in the value of `--deny`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }

    /// The level with this name; `warn` is also accepted.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name || *level == Level::Warning && name == "warn")
    }
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleRow {
    /// The rule.
    pub rule: Rule,
    /// Identifier: `S1`.
    pub id: &'static str,
    /// Level of its findings.
    pub level: Level,
    /// Title in a few words.
    pub title: &'static str,
    /// The consequence, and the conditions of a finding.
    pub why: &'static str,
    /// The correction, as messages show it.
    pub hint: &'static str,
    /// A VCL with exactly this finding.
    pub bad: &'static str,
    /// The corrected VCL, without a finding.
    pub good: &'static str,
}
