//! Ban expressions: tests on a request or an object, all of which must hold.
//!
//! Compat: fields are recognised by their beginning, so `req.urls` means `req.url`; any header name
//! is accepted; a missing header equals no text, and neither `~` nor `!~` holds for it. Error texts
//! are the stock ones. Durations are shown in the largest unit that divides them. An object's age,
//! remaining life and last use are taken as of the time of the ban, since a ban applies to the
//! state at that time. Source: interoperability notes §9.12, and the stock program's replies.

use super::pattern::{Form, Key, necessary_beginning};
use message::Message;
use pcre2::bytes::{Regex, RegexBuilder};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use store::Object;

/// The value that a test examines.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Subject {
    RequestUrl,
    RequestHeader(Box<str>),
    ObjectHeader(Box<str>),
    ObjectStatus,
    ObjectAge,
    ObjectTtl,
    ObjectGrace,
    ObjectKeep,
    ObjectLastHit,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Operator {
    Equal,
    Differs,
    Matches,
    MatchesNot,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

#[derive(Clone, Debug)]
enum Argument {
    Text(Box<str>),
    /// A regular expression whose form is known.
    Form(Box<Form>),
    Expression(Box<Regex>),
    Seconds(f64),
}

#[derive(Clone, Debug)]
struct Test {
    subject: Subject,
    operator: Operator,
    argument: Argument,
}

/// A checked ban expression.
#[derive(Clone, Debug)]
pub struct BanSpecification {
    tests: Box<[Test]>,
    /// The expression as it was written, in the form of the journal: field, operator, argument,
    /// `&&`, … Empty in the list.
    words: Box<[u8]>,
    /// The expression as it is shown.
    text: Box<str>,
}

impl Argument {
    /// The identity of an argument: a text, the bits of a number, or a form.
    fn identity(&self) -> (&str, u64, Option<&Form>) {
        match self {
            Argument::Text(text) => (text, 0, None),
            Argument::Form(form) => ("", 0, Some(form)),
            Argument::Expression(expression) => (expression.as_str(), 0, None),
            // Adding 0 turns both zeros into one number.
            Argument::Seconds(seconds) => ("", (seconds + 0.0).to_bits(), None),
        }
    }
}

impl PartialEq for Test {
    fn eq(&self, other: &Test) -> bool {
        (&self.subject, self.operator, self.argument.identity())
            == (&other.subject, other.operator, other.argument.identity())
    }
}

impl Eq for Test {}

impl Hash for Test {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.subject, self.operator, self.argument.identity()).hash(state);
    }
}

/// Two expressions are equal if they have the same meaning in the same order: `obj.grace > 60s` and
/// `obj.grace > 1m`.
impl PartialEq for BanSpecification {
    fn eq(&self, other: &BanSpecification) -> bool {
        #[cfg(test)]
        super::indexed_list::steps::count();
        self.tests == other.tests
    }
}

impl Eq for BanSpecification {}

impl Hash for BanSpecification {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tests.hash(state);
    }
}

/// The subjects, each with the beginning of its name.
fn subject(field: &str) -> Option<Subject> {
    if let Some(name) = field.strip_prefix("req.http.") {
        return Some(Subject::RequestHeader(name.into()));
    }
    if let Some(name) = field.strip_prefix("obj.http.") {
        return Some(Subject::ObjectHeader(name.into()));
    }
    let plain = [
        ("req.url", Subject::RequestUrl),
        ("obj.status", Subject::ObjectStatus),
        ("obj.age", Subject::ObjectAge),
        ("obj.ttl", Subject::ObjectTtl),
        ("obj.grace", Subject::ObjectGrace),
        ("obj.keep", Subject::ObjectKeep),
        ("obj.last_hit", Subject::ObjectLastHit),
    ];
    plain.into_iter().find(|(name, _)| field == *name).map(|(_, subject)| subject)
}

impl Subject {
    pub(crate) fn is_of_request(&self) -> bool {
        matches!(self, Subject::RequestUrl | Subject::RequestHeader(_))
    }

    /// True if the meaning depends on the time of the ban.
    fn is_of_its_time(&self) -> bool {
        matches!(self, Subject::ObjectAge | Subject::ObjectTtl | Subject::ObjectLastHit)
    }

    fn is_duration(&self) -> bool {
        matches!(
            self,
            Subject::ObjectAge
                | Subject::ObjectTtl
                | Subject::ObjectGrace
                | Subject::ObjectKeep
                | Subject::ObjectLastHit
        )
    }
}

const TEXT_OPERATORS: &[(&str, Operator)] =
    &[("==", Operator::Equal), ("!=", Operator::Differs), ("~", Operator::Matches), ("!~", Operator::MatchesNot)];

const DURATION_OPERATORS: &[(&str, Operator)] = &[
    ("==", Operator::Equal),
    ("!=", Operator::Differs),
    (">", Operator::Greater),
    (">=", Operator::GreaterEqual),
    ("<", Operator::Less),
    ("<=", Operator::LessEqual),
];

fn operator(word: &str, allowed: &[(&str, Operator)]) -> Result<Operator, String> {
    if let Some((_, operator)) = allowed.iter().find(|(name, _)| *name == word) {
        return Ok(*operator);
    }
    let names: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
    let (last, first) = names.split_last().unwrap_or((&"", &[]));
    Err(format!("expected conditional ({} or {last}) got \"{word}\"", first.join(", ")))
}

const UNITS: &[(&str, f64)] =
    &[("y", 31_536_000.0), ("w", 604_800.0), ("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3)];

/// Largest number of digits in a number.
const DIGITS_MAX: usize = 15;

/// Reads `-n.nn` and a unit.
fn duration(word: &str) -> Option<f64> {
    let unit_at = word.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = word.split_at(unit_at);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (sign, digits) = number.strip_prefix('-').map_or((1.0, number), |digits| (-1.0, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let count = whole.len() + fraction.len();
    if !is_number(whole) || !is_number(fraction) || count == 0 || count > DIGITS_MAX {
        return None;
    }
    let parsed: f64 = format!("0{whole}.{fraction}0").parse().ok()?;
    Some(sign * parsed * scale)
}

/// Shows a duration, to the millisecond, in the largest unit that divides it; above one second, a
/// duration that is not a whole number of seconds is shown in seconds.
fn show_duration(seconds: f64) -> String {
    let milliseconds = (seconds * 1e3 + 1e-6 * seconds.signum()).trunc();
    let whole = milliseconds / 1e3;
    if whole.fract() != 0.0 {
        return if whole.abs() < 1.0 { format!("{milliseconds:.0}ms") } else { format!("{whole:.3}s") };
    }
    for (name, scale) in UNITS.iter().filter(|(name, _)| *name != "ms") {
        if whole != 0.0 && whole % scale == 0.0 {
            return format!("{:.0}{name}", whole / scale);
        }
    }
    "0s".to_owned()
}

fn expression(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new().jit_if_available(true).build(pattern).map_err(|error| {
        let shown = error.to_string();
        // `PCRE2: error compiling pattern at offset N: text`
        let text = shown.split_once("at offset").and_then(|(_, rest)| rest.split_once(": ")).map(|(_, text)| text);
        format!("Regex compile error: {}", text.unwrap_or(&shown))
    })
}

impl Test {
    fn parse(field: &str, condition: &str, argument: &str) -> Result<Test, String> {
        if matches!(field, "req.http." | "obj.http.") {
            return Err(format!("Missing header name: \"{field}\""));
        }
        let subject = subject(field).ok_or_else(|| format!("Unknown or unsupported field \"{field}\""))?;
        let allowed = if subject.is_duration() { DURATION_OPERATORS } else { TEXT_OPERATORS };
        let operator = operator(condition, allowed)?;
        let argument = match operator {
            _ if subject.is_duration() => Argument::Seconds(
                duration(argument)
                    .ok_or_else(|| format!("expected duration <n.nn>[ms|s|m|h|d|w|y] got \"{argument}\""))?,
            ),
            Operator::Matches | Operator::MatchesNot => match Form::of(argument) {
                Some(form) => Argument::Form(Box::new(form)),
                None => Argument::Expression(Box::new(expression(argument)?)),
            },
            _ => Argument::Text(argument.into()),
        };
        Ok(Test { subject, operator, argument })
    }

    fn holds(&self, object: &ObjectView<'_>, time: f64, request: Option<&Message>) -> bool {
        match &self.subject {
            Subject::RequestUrl => request.is_some_and(|request| self.holds_text(Some(request.target()))),
            Subject::RequestHeader(name) => request.is_some_and(|request| self.holds_text(request.get(name))),
            Subject::ObjectHeader(name) => self.holds_text(object.header(name).as_deref()),
            Subject::ObjectStatus => self.holds_text(Some(object.status().to_string().as_bytes())),
            Subject::ObjectAge => self.holds_seconds(time - object.object.origin()),
            Subject::ObjectTtl => self.holds_seconds(object.object.origin() + object.object.ttl() - time),
            Subject::ObjectGrace => self.holds_seconds(object.object.grace()),
            Subject::ObjectKeep => self.holds_seconds(object.object.keep()),
            Subject::ObjectLastHit => self.holds_seconds(time - object.used_at),
        }
    }

    fn holds_text(&self, value: Option<&[u8]>) -> bool {
        let is_positive = match &self.argument {
            Argument::Text(text) => value == Some(text.as_bytes()),
            Argument::Form(form) => value.is_some_and(|value| form.matches(value)),
            // An expression that exceeds its limits matches nothing.
            Argument::Expression(regex) => value.is_some_and(|value| regex.is_match(value).unwrap_or(false)),
            Argument::Seconds(_) => false,
        };
        match self.operator {
            Operator::Equal | Operator::Matches => is_positive,
            Operator::Differs => !is_positive,
            Operator::MatchesNot => value.is_some() && !is_positive,
            Operator::Greater | Operator::GreaterEqual | Operator::Less | Operator::LessEqual => false,
        }
    }

    fn holds_seconds(&self, value: f64) -> bool {
        let Argument::Seconds(seconds) = self.argument else { return false };
        // Lifetimes are stored with 24 significant bits: values that agree in those are equal.
        let is_equal = (value - seconds).abs() <= seconds.abs() * 1e-6;
        match self.operator {
            Operator::Equal => is_equal,
            Operator::Differs => !is_equal,
            Operator::Greater => value > seconds,
            Operator::GreaterEqual => value > seconds || is_equal,
            Operator::Less => value < seconds,
            Operator::LessEqual => value < seconds || is_equal,
            Operator::Matches | Operator::MatchesNot => false,
        }
    }
}

/// The condition by which a ban can be found.
pub(crate) struct IndexCondition<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) key: Key,
    pub(crate) texts: SmallVec<[Cow<'a, [u8]>; 1]>,
}

impl Test {
    fn index_condition(&self) -> Option<IndexCondition<'_>> {
        let (key, texts) = match (&self.argument, self.operator) {
            (Argument::Text(text), Operator::Equal) => {
                (Key::Whole, SmallVec::from_iter([Cow::Borrowed(text.as_bytes())]))
            }
            (Argument::Form(form), Operator::Matches) => {
                let (key, texts) = form.keys();
                (key, texts.into_iter().map(Cow::Borrowed).collect())
            }
            (Argument::Expression(regex), Operator::Matches) => {
                let beginning = necessary_beginning(regex.as_str())?;
                (Key::Beginning, SmallVec::from_iter([Cow::Owned(beginning.into_vec())]))
            }
            _ => return None,
        };
        Some(IndexCondition { subject: &self.subject, key, texts })
    }
}

impl BanSpecification {
    /// Parses the words of a CLI command: `req.url ~ foo && obj.status == 200`.
    ///
    /// # Errors
    /// The text that the CLI shows.
    pub fn parse(words: &[&str]) -> Result<BanSpecification, String> {
        if words.len() % 4 != 3 {
            return Err("Wrong number of arguments".to_owned());
        }
        for joint in words.iter().skip(3).step_by(4) {
            if *joint != "&&" {
                return Err(format!("Found \"{joint}\" expected &&"));
            }
        }
        let mut tests = Vec::with_capacity(words.len() / 4 + 1);
        for part in words.chunks(4) {
            if let [field, condition, argument, ..] = part {
                tests.push(Test::parse(field, condition, argument)?);
            }
        }
        Ok(BanSpecification::new(tests, words))
    }

    /// Parses a single string, as given to VCL's `ban()`: words separated by blanks, no quoting.
    ///
    /// # Errors
    /// The text that `std.ban_error` shows.
    pub fn parse_text(text: &str) -> Result<BanSpecification, String> {
        let (mut words, mut tests) = (Vec::new(), Vec::new());
        let mut rest = text.split_ascii_whitespace();
        loop {
            let field = rest.next().ok_or("No ban conditions found.")?;
            let condition = rest.next().ok_or("Expected comparison operator.")?;
            let argument = rest.next().ok_or("Expected second operand.")?;
            tests.push(Test::parse(field, condition, argument)?);
            words.extend([field, condition, argument]);
            match rest.next() {
                None => return Ok(BanSpecification::new(tests, &words)),
                Some("&&") => words.push("&&"),
                Some(other) => return Err(format!("Expected && between conditions, found \"{other}\"")),
            }
        }
    }

    fn new(tests: Vec<Test>, words: &[&str]) -> BanSpecification {
        let mut shown = Vec::with_capacity(words.len());
        for (part, test) in words.chunks(4).zip(&tests) {
            shown.extend(part.iter().map(|word| (*word).to_owned()));
            if let (Argument::Seconds(seconds), Some(argument)) =
                (&test.argument, shown.iter_mut().rev().nth(part.len() - 3))
            {
                *argument = show_duration(*seconds);
            }
        }
        let mut entry = Vec::new();
        for word in words {
            entry.extend_from_slice(&(word.len() as u32).to_le_bytes());
            entry.extend_from_slice(word.as_bytes());
        }
        BanSpecification { tests: tests.into(), words: entry.into(), text: shown.join(" ").into() }
    }

    /// Frees the data that only the journal needs.
    pub(crate) fn forget_words(&mut self) {
        self.words = Box::default();
    }

    /// A ban that hits nothing: every list begins with it.
    pub(crate) fn nothing() -> BanSpecification {
        BanSpecification { tests: Box::default(), words: Box::default(), text: Box::default() }
    }

    /// A ban on every object: it replaces a damaged entry of the journal.
    pub(crate) fn everything() -> BanSpecification {
        let test = Test {
            subject: Subject::ObjectStatus,
            operator: Operator::Differs,
            argument: Argument::Text(Box::default()),
        };
        BanSpecification::new(vec![test], &["obj.status", "!=", ""])
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.tests.is_empty()
    }

    /// The journal entry for this ban, added at `time`, in seconds since 1970.
    #[must_use]
    pub fn to_journal(&self, time: f64) -> Vec<u8> {
        [&time.to_le_bytes()[..], &self.words].concat()
    }

    /// Reads a journal entry: the time at which the ban was added, and its expression. An
    /// unreadable entry bans everything older than itself: better an empty cache than a wrong one.
    #[must_use]
    pub fn from_journal(entry: &[u8]) -> (f64, BanSpecification) {
        let Some((time, mut rest)) = entry.split_first_chunk() else { return (0.0, BanSpecification::everything()) };
        let time = f64::from_le_bytes(*time);
        let mut words = Vec::new();
        while let Some((len, tail)) = rest.split_first_chunk() {
            let word = tail.split_at_checked(u32::from_le_bytes(*len) as usize);
            let Some((Ok(word), tail)) = word.map(|(word, tail)| (std::str::from_utf8(word), tail)) else {
                return (time, BanSpecification::everything());
            };
            words.push(word);
            rest = tail;
        }
        if words.is_empty() {
            return (time, BanSpecification::nothing());
        }
        (time, BanSpecification::parse(&words).unwrap_or_else(|_| BanSpecification::everything()))
    }

    /// The expression as `ban.list` shows it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if it tests the request: then only lookups can apply it.
    #[must_use]
    pub fn has_request_tests(&self) -> bool {
        self.tests.iter().any(|test| test.subject.is_of_request())
    }

    /// True if it tests the object.
    #[must_use]
    pub fn has_object_tests(&self) -> bool {
        self.tests.iter().any(|test| !test.subject.is_of_request())
    }

    /// True if an equal newer ban makes an older one redundant: not if its meaning depends on the
    /// time.
    pub(crate) fn can_be_repeated(&self) -> bool {
        !self.is_nothing() && !self.tests.iter().any(|test| test.subject.is_of_its_time())
    }

    /// The clues by which each test could be found in an index: its number, field and keys. Every
    /// object or request that the test holds for has one of the keys.
    pub(crate) fn clues(&self) -> impl Iterator<Item = (u16, IndexCondition<'_>)> {
        (0..=u16::MAX).zip(&self.tests).filter_map(|(number, test)| Some((number, test.index_condition()?)))
    }

    /// The clue with that number.
    pub(crate) fn index_condition(&self, number: u16) -> Option<IndexCondition<'_>> {
        self.tests.get(usize::from(number))?.index_condition()
    }

    /// True if all tests hold; counts the tests made. `time` is that of the ban. Without a request,
    /// tests on the request fail.
    pub(crate) fn hits(
        &self,
        object: &ObjectView<'_>,
        time: f64,
        request: Option<&Message>,
        tests_made: &mut u64,
    ) -> bool {
        !self.tests.is_empty()
            && self.tests.iter().all(|test| {
                *tests_made += 1;
                test.holds(object, time, request)
            })
    }
}

/// An object as bans see it. Headers are read in the arena; the status is decoded at most once.
pub(crate) struct ObjectView<'a> {
    object: &'a Object,
    /// Time of its last delivery, or of its storing if it was never delivered; seconds since 1970.
    used_at: f64,
    status: OnceCell<u16>,
}

impl<'a> ObjectView<'a> {
    pub(crate) fn new(object: &'a Object, now: f64, idle_seconds: f64) -> ObjectView<'a> {
        ObjectView { object, used_at: now - idle_seconds, status: OnceCell::new() }
    }

    /// The first header of that name.
    fn header(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        message::stored_headers(self.object.head()).find(|header| header.is(name)).map(|header| header.value())
    }

    fn status(&self) -> u16 {
        *self.status.get_or_init(|| {
            let mut message = Message::new();
            message.decode(self.object.head()).map_or(0, |()| message.status())
        })
    }

    /// Calls `see` with the value that a test of `subject` examines, if it is a text and present.
    pub(crate) fn show(&self, subject: &Subject, request: Option<&Message>, see: impl FnOnce(&[u8])) {
        let value = match subject {
            Subject::RequestUrl => request.map(|request| Cow::Borrowed(request.target())),
            Subject::RequestHeader(name) => request.and_then(|request| request.get(name)).map(Cow::Borrowed),
            Subject::ObjectHeader(name) => self.header(name),
            Subject::ObjectStatus => Some(Cow::Owned(self.status().to_string().into_bytes())),
            _ => None,
        };
        if let Some(value) = value {
            see(&value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<String, String> {
        let words: Vec<&str> = text.split(' ').collect();
        BanSpecification::parse(&words).map(|ban| ban.text().to_owned())
    }

    #[test]
    fn cli_ban_errors_have_the_stock_wording() {
        let cases = [
            ("req.url ~ (", "Regex compile error: missing closing parenthesis"),
            ("req.url == a & req.url == b", "Found \"&\" expected &&"),
            ("req.url == a &&", "Wrong number of arguments"),
            ("req.url == a && req.url ==", "Wrong number of arguments"),
            ("req.url > a", "expected conditional (==, !=, ~ or !~) got \">\""),
            ("obj.age ~ a", "expected conditional (==, !=, >, >=, < or <=) got \"~\""),
            ("obj.age > a", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \"a\""),
            ("obj.age > 1", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \"1\""),
            ("obj.age > 1x", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \"1x\""),
            ("obj.age > 1e3s", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \"1e3s\""),
            ("obj.ttl > .s", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \".s\""),
            ("obj.ttl > 12345678901234567s", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \"12345678901234567s\""),
            ("obj.status > 1", "expected conditional (==, !=, ~ or !~) got \">\""),
            ("REQ.URL ~ a", "Unknown or unsupported field \"REQ.URL\""),
            ("obj.http ~ a", "Unknown or unsupported field \"obj.http\""),
            ("req.urlx ~ a", "Unknown or unsupported field \"req.urlx\""),
            ("obj.ages < 1d", "Unknown or unsupported field \"obj.ages\""),
            ("obj.statusx ~ a", "Unknown or unsupported field \"obj.statusx\""),
            ("req.http. ~ 1", "Missing header name: \"req.http.\""),
        ];
        for (text, error) in cases {
            assert_eq!(words(text), Err(error.to_owned()), "{text}");
        }
        for text in ["req.http.a:b ~ 1", "obj.http.a ~ "] {
            assert_eq!(words(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn vcl_ban_errors_have_the_stock_wording() {
        let cases = [
            ("", "No ban conditions found."),
            ("req.url", "Expected comparison operator."),
            ("req.url ~", "Expected second operand."),
            ("req.url ~ a &&", "No ban conditions found."),
            ("req.url ~ a && &&", "Expected comparison operator."),
            ("&& req.url ~ b", "Unknown or unsupported field \"&&\""),
            ("req.url ~ a req", "Expected && between conditions, found \"req\""),
            ("req.url ~ \"a b\"", "Expected && between conditions, found \"b\"\""),
            ("foo ~ \"a b\" && req.url == /", "Unknown or unsupported field \"foo\""),
            ("req.url ~ a\\ b", "Regex compile error: \\ at end of pattern"),
        ];
        for (text, error) in cases {
            assert_eq!(BanSpecification::parse_text(text).map(|ban| ban.text), Err(error.to_owned()), "{text}");
        }
        let ban = BanSpecification::parse_text(" req.url  ~ &&\t&& obj.age > 60s ").unwrap();
        assert_eq!(ban.text(), "req.url ~ && && obj.age > 1m");
        assert!(ban.has_request_tests() && ban.has_object_tests());
    }

    #[test]
    fn durations_are_shown_in_the_largest_unit_that_divides_them() {
        let cases = [
            ("90m", "90m"),
            ("365d", "1y"),
            ("7d", "1w"),
            ("1.5s", "1.500s"),
            ("0.5ms", "0s"),
            ("120s", "2m"),
            ("0s", "0s"),
            ("1.23456h", "4444.416s"),
            ("86401s", "86401s"),
            ("99.9s", "99.900s"),
            ("-60s", "-1m"),
            (".5s", "500ms"),
            ("5.s", "5s"),
            ("1ms", "1ms"),
            ("1.7ms", "1ms"),
            ("999ms", "999ms"),
            ("1500ms", "1.500s"),
            ("0.29s", "290ms"),
            ("60000ms", "1m"),
            ("0.25h", "15m"),
            ("-10ms", "-10ms"),
            ("1.1s", "1.100s"),
        ];
        for (written, shown) in cases {
            assert_eq!(words(&format!("obj.ttl > {written}")), Ok(format!("obj.ttl > {shown}")), "{written}");
        }
    }
}
