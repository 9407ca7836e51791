//! Small programs made from any bytes: each byte is a choice, and once they run out every choice is
//! the simplest.
//!
//! A program is a tree of its own, not the compiler's: it is written out as VCL for the compiler,
//! and walked by `naive.rs`.

use std::fmt::Write;

/// Subroutines besides vcl_recv; each calls only later ones.
const SUBS_MAX: usize = 4;
/// Deepest nesting of blocks and of expressions.
const DEPTH_MAX: u32 = 4;
/// Most statements in a program.
const STATEMENTS_MAX: usize = 80;

/// Text.
#[derive(Debug)]
pub(super) enum Text {
    Literal(&'static str),
    Header(usize),
    /// The first part is text, the others are anything that can be shown as text.
    Join(Box<Text>, Vec<Shown>),
    Upper(Box<Text>),
    Lower(Box<Text>),
    /// Replaces all matches or the first one; pattern and replacement have no special characters.
    Substitute(bool, Box<Text>, &'static str, &'static str),
}

/// A part of a join.
#[derive(Debug)]
pub(super) enum Shown {
    Text(Text),
    Integer(Integer),
    Real(Real),
    Duration(Duration),
    Truth(Truth),
}

#[derive(Debug)]
pub(super) enum Integer {
    Literal(u32),
    Negative(Box<Integer>),
    Operation(char, Box<Integer>, Box<Integer>),
}

#[derive(Debug)]
pub(super) enum Real {
    /// Thousandths.
    Literal(u32),
    Operation(char, Box<Real>, Box<Real>),
    /// The right operand is a whole number, which reads as a REAL there.
    Scaled(char, Box<Real>, u32),
}

#[derive(Debug)]
pub(super) enum Duration {
    /// A number and its unit.
    Literal(u32, &'static str),
    Operation(char, Box<Duration>, Box<Duration>),
    Scaled(char, Box<Duration>, u32),
    /// req.ttl
    Variable,
}

#[derive(Debug)]
pub(super) enum Truth {
    Literal(bool),
    Set(Text),
    NotZero(Integer),
    Not(Box<Truth>),
    And(Box<Truth>, Box<Truth>),
    Or(Box<Truth>, Box<Truth>),
    Texts(&'static str, Text, Text),
    Integers(&'static str, Integer, Integer),
    Reals(&'static str, Real, Real),
    Durations(&'static str, Duration, Duration),
    /// `~` or `!~` with an optional anchor, letters, and an optional anchor at the end.
    Match(bool, Text, bool, &'static str, bool),
}

#[derive(Debug)]
pub(super) enum Statement {
    SetHeader(usize, Text),
    AppendHeader(usize, Text),
    UnsetHeader(usize),
    /// `=`, `+=` or `-=`
    SetTtl(&'static str, Duration),
    Ban(Text),
    If(Vec<(Truth, Vec<Statement>)>, Vec<Statement>),
    Block(Vec<Statement>),
    Call(usize),
    /// `return (action);`
    Return(&'static str),
    /// `return;`
    Leave,
}

/// vcl_recv, and the subroutines it calls.
#[derive(Debug)]
pub(super) struct RandomProgram {
    pub(super) subs: Vec<Vec<Statement>>,
}

pub(super) const HEADERS: &[&str] = &["a", "b", "c"];
const LITERALS: &[&str] = &["", "a", "ab", "banana", "Quiet", "0", "x y"];
const PATTERNS: &[&str] = &["a", "an", "b", "q", "Qu", "zz"];
const REPLACEMENTS: &[&str] = &["", "o", "aa"];
const UNITS: &[&str] = &["s", "ms", "m", "h"];
const COMPARISONS: &[&str] = &["==", "!=", "<", ">", "<=", ">="];

/// The remaining choices.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
    statements: usize,
}

impl Choices<'_> {
    /// A choice among `count` ways; the first when no bytes are left.
    fn one_of(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    fn word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.one_of(words.len())]
    }

    fn text(&mut self, depth: u32) -> Text {
        match self.one_of(if depth >= DEPTH_MAX { 2 } else { 7 }) {
            0 => Text::Literal(self.word(LITERALS)),
            1 | 2 => Text::Header(self.one_of(HEADERS.len())),
            3 => {
                let first = Box::new(self.text(depth + 1));
                let count = 1 + self.one_of(3);
                Text::Join(first, (0..count).map(|_| self.shown(depth + 1)).collect())
            }
            4 => Text::Upper(Box::new(self.text(depth + 1))),
            5 => Text::Lower(Box::new(self.text(depth + 1))),
            _ => {
                let all = self.one_of(2) == 0;
                let subject = Box::new(self.text(depth + 1));
                Text::Substitute(all, subject, self.word(PATTERNS), self.word(REPLACEMENTS))
            }
        }
    }

    fn shown(&mut self, depth: u32) -> Shown {
        match self.one_of(5) {
            0 => Shown::Text(self.text(depth)),
            1 => Shown::Integer(self.integer(depth)),
            2 => Shown::Real(self.real(depth)),
            3 => Shown::Duration(self.duration(depth)),
            _ => Shown::Truth(self.truth(depth)),
        }
    }

    fn integer(&mut self, depth: u32) -> Integer {
        match self.one_of(if depth >= DEPTH_MAX { 1 } else { 4 }) {
            0 => Integer::Literal(self.one_of(256) as u32 * 5),
            1 => Integer::Negative(Box::new(self.integer(depth + 1))),
            _ => {
                let sign = ['+', '-', '*', '/', '%'][self.one_of(5)];
                Integer::Operation(sign, Box::new(self.integer(depth + 1)), Box::new(self.integer(depth + 1)))
            }
        }
    }

    fn real(&mut self, depth: u32) -> Real {
        match self.one_of(if depth >= DEPTH_MAX { 1 } else { 3 }) {
            0 => Real::Literal(self.one_of(256) as u32 * 125),
            1 => {
                let sign = ['+', '-', '*', '/'][self.one_of(4)];
                Real::Operation(sign, Box::new(self.real(depth + 1)), Box::new(self.real(depth + 1)))
            }
            _ => {
                let sign = ['*', '/', '+', '-'][self.one_of(4)];
                Real::Scaled(sign, Box::new(self.real(depth + 1)), self.one_of(256) as u32)
            }
        }
    }

    fn duration(&mut self, depth: u32) -> Duration {
        match self.one_of(if depth >= DEPTH_MAX { 2 } else { 4 }) {
            0 => Duration::Literal(self.one_of(256) as u32, self.word(UNITS)),
            1 => Duration::Variable,
            2 => {
                let sign = ['+', '-'][self.one_of(2)];
                Duration::Operation(sign, Box::new(self.duration(depth + 1)), Box::new(self.duration(depth + 1)))
            }
            _ => {
                let sign = ['*', '/'][self.one_of(2)];
                Duration::Scaled(sign, Box::new(self.duration(depth + 1)), self.one_of(256) as u32)
            }
        }
    }

    fn truth(&mut self, depth: u32) -> Truth {
        match self.one_of(if depth >= DEPTH_MAX { 2 } else { 11 }) {
            0 => Truth::Literal(self.one_of(2) == 0),
            1 => Truth::Set(Text::Header(self.one_of(HEADERS.len()))),
            2 => Truth::Set(self.text(depth + 1)),
            3 => Truth::NotZero(self.integer(depth + 1)),
            4 => Truth::Not(Box::new(self.truth(depth + 1))),
            5 => Truth::And(Box::new(self.truth(depth + 1)), Box::new(self.truth(depth + 1))),
            6 => Truth::Or(Box::new(self.truth(depth + 1)), Box::new(self.truth(depth + 1))),
            7 => Truth::Texts(self.word(COMPARISONS), self.text(depth + 1), self.text(depth + 1)),
            8 => Truth::Integers(self.word(COMPARISONS), self.integer(depth + 1), self.integer(depth + 1)),
            9 if self.one_of(2) == 0 => {
                Truth::Reals(self.word(COMPARISONS), self.real(depth + 1), self.real(depth + 1))
            }
            9 => Truth::Durations(self.word(COMPARISONS), self.duration(depth + 1), self.duration(depth + 1)),
            _ => {
                let (matches, text) = (self.one_of(2) == 0, self.text(depth + 1));
                Truth::Match(matches, text, self.one_of(2) == 0, self.word(PATTERNS), self.one_of(2) == 0)
            }
        }
    }

    fn statements(&mut self, sub: usize, subs: usize, depth: u32) -> Vec<Statement> {
        let count = 1 + self.one_of(4);
        (0..count).map_while(|_| self.statement(sub, subs, depth)).collect()
    }

    fn statement(&mut self, sub: usize, subs: usize, depth: u32) -> Option<Statement> {
        self.statements += 1;
        if self.statements > STATEMENTS_MAX {
            return None;
        }
        let header = self.one_of(HEADERS.len());
        Some(match self.one_of(12) {
            0..=2 => Statement::SetHeader(header, self.text(0)),
            3 => Statement::AppendHeader(header, self.text(0)),
            4 => Statement::UnsetHeader(header),
            5 => Statement::SetTtl(["=", "+=", "-="][self.one_of(3)], self.duration(0)),
            6 => Statement::Ban(self.text(0)),
            7 | 8 if depth < DEPTH_MAX => {
                let branches = 1 + self.one_of(3);
                let branches = (0..branches)
                    .map(|_| {
                        let condition = self.truth(0);
                        (condition, self.statements(sub, subs, depth + 1))
                    })
                    .collect();
                let otherwise = if self.one_of(2) == 0 { self.statements(sub, subs, depth + 1) } else { Vec::new() };
                Statement::If(branches, otherwise)
            }
            9 if depth < DEPTH_MAX => Statement::Block(self.statements(sub, subs, depth + 1)),
            10 if sub + 1 < subs => Statement::Call(sub + 1 + self.one_of(subs - sub - 1)),
            11 if self.one_of(3) == 0 => Statement::Return(["hash", "pass", "purge", "pipe"][self.one_of(4)]),
            11 if sub > 0 => Statement::Leave,
            _ => Statement::SetHeader(header, self.text(1)),
        })
    }
}

/// Makes a program from bytes.
pub(super) fn program(bytes: &[u8]) -> RandomProgram {
    let mut choices = Choices { bytes: bytes.iter(), statements: 0 };
    let count = 1 + choices.one_of(SUBS_MAX + 1);
    RandomProgram { subs: (0..count).map(|sub| choices.statements(sub, count, 0)).collect() }
}

impl RandomProgram {
    /// The program as VCL.
    pub(super) fn vcl(&self) -> String {
        let mut out = String::from("vcl 4.1;\nbackend default none;\n");
        for (index, statements) in self.subs.iter().enumerate() {
            let name = if index == 0 { "vcl_recv".to_owned() } else { format!("s{index}") };
            let _ = writeln!(out, "sub {name} {{");
            statements.iter().for_each(|statement| statement.write(&mut out));
            if index == 0 {
                out.push_str("return (synth(200));\n");
            }
            out.push_str("}\n");
        }
        out
    }
}

impl Statement {
    fn write(&self, out: &mut String) {
        let block = |out: &mut String, statements: &[Statement]| {
            out.push_str("{\n");
            statements.iter().for_each(|statement| statement.write(out));
            out.push('}');
        };
        let _ = match self {
            Statement::SetHeader(header, text) => writeln!(out, "set req.http.{} = {};", HEADERS[*header], text.vcl()),
            Statement::AppendHeader(header, text) => {
                writeln!(out, "set req.http.{} += {};", HEADERS[*header], text.vcl())
            }
            Statement::UnsetHeader(header) => writeln!(out, "unset req.http.{};", HEADERS[*header]),
            Statement::SetTtl(operator, duration) => writeln!(out, "set req.ttl {operator} {};", duration.vcl()),
            Statement::Ban(text) => writeln!(out, "ban({});", text.vcl()),
            Statement::If(branches, otherwise) => {
                for (index, (condition, statements)) in branches.iter().enumerate() {
                    let _ = write!(out, "{} ({}) ", if index == 0 { "if" } else { " elseif" }, condition.vcl());
                    block(out, statements);
                }
                if !otherwise.is_empty() {
                    out.push_str(" else ");
                    block(out, otherwise);
                }
                writeln!(out)
            }
            Statement::Block(statements) => {
                block(out, statements);
                writeln!(out)
            }
            Statement::Call(sub) => writeln!(out, "call s{sub};"),
            Statement::Return(action) => writeln!(out, "return ({action});"),
            Statement::Leave => writeln!(out, "return;"),
        };
    }
}

impl Text {
    fn vcl(&self) -> String {
        match self {
            Text::Literal(text) => format!("\"{text}\""),
            Text::Header(header) => format!("req.http.{}", HEADERS[*header]),
            Text::Join(first, rest) => {
                let rest: String = rest.iter().map(|shown| format!(" + {}", shown.vcl())).collect();
                format!("({}{rest})", first.vcl())
            }
            Text::Upper(text) => format!("{}.upper()", text.vcl()),
            Text::Lower(text) => format!("{}.lower()", text.vcl()),
            Text::Substitute(all, text, pattern, replacement) => {
                let name = if *all { "regsuball" } else { "regsub" };
                format!("{name}({}, \"{pattern}\", \"{replacement}\")", text.vcl())
            }
        }
    }
}

impl Shown {
    fn vcl(&self) -> String {
        match self {
            Shown::Text(text) => text.vcl(),
            Shown::Integer(integer) => format!("({})", integer.vcl()),
            Shown::Real(real) => format!("({})", real.vcl()),
            Shown::Duration(duration) => format!("({})", duration.vcl()),
            // A value that can be tested is a BOOL only where one is needed.
            Shown::Truth(truth) => format!("(true && ({}))", truth.vcl()),
        }
    }
}

impl Integer {
    fn vcl(&self) -> String {
        match self {
            Integer::Literal(number) => number.to_string(),
            // A minus sign is not allowed everywhere.
            Integer::Negative(inner) => format!("(0 - {})", inner.vcl()),
            Integer::Operation(sign, left, right) => format!("({} {sign} {})", left.vcl(), right.vcl()),
        }
    }
}

impl Real {
    fn vcl(&self) -> String {
        match self {
            Real::Literal(thousandths) => format!("{}.{:03}", thousandths / 1000, thousandths % 1000),
            Real::Operation(sign, left, right) => format!("({} {sign} {})", left.vcl(), right.vcl()),
            Real::Scaled(sign, left, right) => format!("({} {sign} {right})", left.vcl()),
        }
    }
}

impl Duration {
    fn vcl(&self) -> String {
        match self {
            Duration::Literal(number, unit) => format!("{number}{unit}"),
            Duration::Operation(sign, left, right) => format!("({} {sign} {})", left.vcl(), right.vcl()),
            Duration::Scaled(sign, left, right) => format!("({} {sign} {right})", left.vcl()),
            Duration::Variable => "req.ttl".to_owned(),
        }
    }
}

impl Truth {
    fn vcl(&self) -> String {
        match self {
            Truth::Literal(truth) => truth.to_string(),
            Truth::Set(text) => text.vcl(),
            Truth::NotZero(integer) => integer.vcl(),
            Truth::Not(inner) => format!("!({})", inner.vcl()),
            Truth::And(left, right) => format!("({}) && ({})", left.vcl(), right.vcl()),
            Truth::Or(left, right) => format!("({}) || ({})", left.vcl(), right.vcl()),
            Truth::Texts(operator, left, right) => format!("{} {operator} {}", left.vcl(), right.vcl()),
            Truth::Integers(operator, left, right) => format!("{} {operator} {}", left.vcl(), right.vcl()),
            Truth::Reals(operator, left, right) => format!("{} {operator} {}", left.vcl(), right.vcl()),
            Truth::Durations(operator, left, right) => format!("{} {operator} {}", left.vcl(), right.vcl()),
            Truth::Match(matches, text, start, pattern, end) => format!(
                "{} {} \"{}{pattern}{}\"",
                text.vcl(),
                if *matches { "~" } else { "!~" },
                if *start { "^" } else { "" },
                if *end { "$" } else { "" }
            ),
        }
    }
}
