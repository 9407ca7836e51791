//! The tree: the structure of the text, before names and types are resolved.
//!
//! Every node has its tokens by index, so that messages can point at them. Chains (sums,
//! alternatives, members) are lists, not nested pairs: so the depth of the tree is the depth of
//! brackets in the text, which is bounded.

/// Index of a token.
pub(crate) type At = u32;

/// A declaration at the top level.
#[derive(Debug)]
pub(crate) enum Declaration {
    /// `vcl 4.1;`, by its first token.
    Version(At),
    Import(Import),
    Acl(Acl),
    Backend(Backend),
    Director(Director),
    Probe(Probe),
    Sub(Sub),
}

/// `import name [as alias] [from "path"];`
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) keyword: At,
    pub(crate) name: At,
    /// First and last token of the alias.
    pub(crate) alias: Option<Name>,
    pub(crate) path: Option<At>,
    pub(crate) end: At,
}

/// A declared name: words separated by dots (only a single word is valid, but this gives better
/// messages).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) first: At,
    pub(crate) last: At,
}

/// `acl name [flags] { … }`
#[derive(Debug)]
pub(crate) struct Acl {
    pub(crate) name: Name,
    /// Sign and word of each flag.
    pub(crate) flags: Vec<(At, At)>,
    pub(crate) entries: Vec<AclEntry>,
}

/// One line of an ACL.
#[derive(Debug)]
pub(crate) struct AclEntry {
    pub(crate) negated: bool,
    /// True if in parentheses: ignored if the name has no address.
    pub(crate) optional: bool,
    pub(crate) host: At,
    pub(crate) mask: Option<(At, At)>,
}

/// `backend name { … }` or `backend name none;`
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) keyword: At,
    pub(crate) name: Name,
    /// `None`: `none`.
    pub(crate) fields: Option<Vec<Field>>,
}

/// `director name policy { … }`, of the old dialects.
#[derive(Debug)]
pub(crate) struct Director {
    pub(crate) keyword: At,
    pub(crate) name: Name,
    /// The word for the director's policy.
    pub(crate) policy: At,
    /// Settings for all members: `.retries = 5;`
    pub(crate) fields: Vec<Field>,
    /// `.list` of a dns director.
    pub(crate) list: Option<DirectorList>,
    pub(crate) members: Vec<DirectorMember>,
}

/// `.list = { .port = "80"; "192.0.2.0"/24; }`
#[derive(Debug)]
pub(crate) struct DirectorList {
    /// The word `list`.
    pub(crate) name: At,
    /// Common settings of the backends.
    pub(crate) fields: Vec<Field>,
    pub(crate) entries: Vec<AclEntry>,
}

/// `{ .backend = name; .weight = 1; }`
#[derive(Debug)]
pub(crate) struct DirectorMember {
    pub(crate) open: At,
    pub(crate) fields: Vec<Field>,
}

/// `probe name { … }`
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) name: Name,
    pub(crate) fields: Vec<Field>,
}

/// `.name = value;`
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: At,
    pub(crate) value: FieldValue,
}

/// The value of an attribute.
#[derive(Debug)]
pub(crate) enum FieldValue {
    /// The first token, and the one after the last (a `;` if all is well).
    Tokens(At, At),
    /// `{ … }`
    Fields(Vec<Field>),
}

/// `sub name { … }`
#[derive(Debug)]
pub(crate) struct Sub {
    pub(crate) name: Name,
    pub(crate) body: Block,
}

/// `{ … }`
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) open: At,
    pub(crate) statements: Vec<Statement>,
}

/// A statement.
#[derive(Debug)]
pub(crate) enum Statement {
    Set {
        target: Path,
        operator: At,
        value: Expression,
    },
    /// `unset variable;` or `remove variable;`
    Unset {
        target: Path,
    },
    Call {
        callee: Expression,
    },
    /// `return (action);`, or `action;` in the old dialects: then the keyword is the action's name.
    Return {
        keyword: At,
        action: Option<ReturnAction>,
    },
    If {
        branches: Vec<(Expression, Block)>,
        otherwise: Option<Block>,
    },
    New {
        keyword: At,
        name: Name,
        class: Path,
    },
    Ban {
        value: Expression,
    },
    HashData {
        keyword: At,
        value: Expression,
    },
    Synthetic {
        keyword: At,
        value: Expression,
    },
    /// `error [status] [reason];`
    Error {
        keyword: At,
        status: Option<Expression>,
        reason: Option<Expression>,
    },
    /// `purge;`
    Purge {
        keyword: At,
    },
    /// `purge("…");`, `ban_url("…");` and their like.
    OldBan {
        keyword: At,
        value: Expression,
    },
    /// `esi;`
    Esi {
        keyword: At,
    },
    /// `rollback;`, or that of `restart rollback;`.
    Rollback {
        keyword: At,
    },
    /// `log "text" …;`
    Log {
        keyword: At,
        value: Expression,
    },
    /// `panic "text" …;`
    Panic {
        keyword: At,
        value: Expression,
    },
    Block(Block),
    /// A call of a VMOD as a statement; the token after it, and true if that is the `;`.
    Use {
        path: Path,
        next: At,
        ended: bool,
    },
}

impl Statement {
    /// The first token.
    pub(crate) fn first(&self) -> At {
        match self {
            Statement::Set { target, .. } | Statement::Unset { target } => target.first() - 1,
            Statement::Call { callee } => callee.first - 1,
            Statement::Return { keyword, .. }
            | Statement::New { keyword, .. }
            | Statement::HashData { keyword, .. }
            | Statement::Synthetic { keyword, .. }
            | Statement::Error { keyword, .. }
            | Statement::Purge { keyword }
            | Statement::OldBan { keyword, .. }
            | Statement::Esi { keyword }
            | Statement::Rollback { keyword }
            | Statement::Log { keyword, .. }
            | Statement::Panic { keyword, .. } => *keyword,
            Statement::If { branches, .. } => branches.first().map_or(0, |(condition, _)| condition.first - 2),
            Statement::Ban { value } => value.first - 2,
            Statement::Block(block) => block.open,
            Statement::Use { path, .. } => path.first(),
        }
    }
}

/// `(action(arguments))`
#[derive(Debug)]
pub(crate) struct ReturnAction {
    pub(crate) name: At,
    pub(crate) arguments: Option<Arguments>,
    /// The token after the action.
    pub(crate) next: At,
}

/// Words separated by dots, some of them with arguments: a variable, a header, a function, a method
/// of an object.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) segments: Vec<Segment>,
}

impl Path {
    pub(crate) fn first(&self) -> At {
        self.segments.first().map_or(0, |segment| segment.name)
    }

    pub(crate) fn last(&self) -> At {
        self.segments.last().map_or(0, Segment::last)
    }
}

/// One word of a path.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: At,
    pub(crate) arguments: Option<Arguments>,
}

impl Segment {
    pub(crate) fn last(&self) -> At {
        self.arguments.as_ref().map_or(self.name, |arguments| arguments.close)
    }
}

/// `(a, name = b)`
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) open: At,
    pub(crate) items: Vec<Argument>,
    /// The `)`.
    pub(crate) close: At,
}

/// One argument.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: Option<At>,
    pub(crate) value: Expression,
}

/// An expression with its first and last token.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) first: At,
    pub(crate) last: At,
    pub(crate) kind: ExpressionKind,
}

/// Kind of an expression.
#[derive(Debug)]
pub(crate) enum ExpressionKind {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Not(Box<Expression>),
    Compare(Box<(Expression, Expression)>, At),
    /// The first operand, and the others, each with the operator before it.
    Sum(Box<Expression>, Vec<(At, Expression)>),
    Product(Box<Expression>, Vec<(At, Expression)>),
    /// Consecutive strings, in the old dialects.
    Juxtaposed(Vec<Expression>),
    Negate(Box<Expression>),
    /// A string.
    Text,
    /// A number, and its unit.
    Number(Option<At>),
    Blob,
    Path(Path),
    /// An expression followed by properties or methods.
    Member(Box<Expression>, Vec<Segment>),
    /// `( … )`
    Group(Box<Expression>),
    /// A token that begins no expression.
    Unexpected,
    /// A missing operand; the error has been reported.
    Broken,
}
