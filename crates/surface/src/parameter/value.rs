//! Parser and printer of parameter values, and the bounds between parameters.
//!
//! Setting is all or nothing: a refused value changes nothing. Messages are those of Varnish 7.1,
//! which scripts and tests compare. Compat: where Varnish silently takes one value for another, the
//! value is refused here (`1h` and `1e3` as one second), or has its literal meaning (more than 32
//! bits, which wrap around in Varnish).

use super::{
    BitRow, COMPILER_BITS, DEBUG_BITS, EXPERIMENTAL_BITS, FEATURE_BITS, HTTP_POLICIES, LEAK_GUARDS, NAME_SOURCES,
    PARAMETERS, PLACEMENTS, ParameterKind, ParameterRow, Parameters, ValueMut, ValueRef, WHEN_LOST, compiler,
    default_log_mask,
};
use crate::encoding::Encodings;
use crate::eviction::POLICIES;
use crate::nearest::nearest;
use crate::quantity::seconds_in;
use crate::tag::{TAGS, TagRow};

/// The largest whole number; shown as `unlimited`, and may be written so.
pub const UNLIMITED: u64 = u32::MAX as u64;

/// The present bound of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The value, in the parameter's unit.
    pub value: f64,
    /// The value as shown.
    pub text: String,
    /// Its origin, when another parameter sets it.
    pub reason: Option<&'static str>,
}

/// Reason why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No parameter of this name.
    Unknown(String),
    /// The parameter has no meaning on this platform.
    Unavailable(String),
    /// The value is not valid for this parameter.
    Invalid {
        /// The parameter.
        name: String,
        /// The value as given.
        value: String,
        /// Error text, ending with a newline if one is shown.
        reason: String,
    },
}

impl SetError {
    /// The name, if it is the name that is wrong.
    #[must_use]
    pub fn unknown_name(&self) -> Option<&str> {
        match self {
            SetError::Unknown(name) => Some(name),
            SetError::Unavailable(_) | SetError::Invalid { .. } => None,
        }
    }

    /// The status of the CLI reply.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            SetError::Unknown(_) | SetError::Invalid { .. } => 106,
            SetError::Unavailable(_) => 300,
        }
    }

    /// The text of the CLI reply.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            SetError::Unknown(name) => format!("Unknown parameter \"{name}\"."),
            SetError::Unavailable(name) => format!("parameter \"{name}\" is not available on this platform."),
            SetError::Invalid { name, value, reason } => {
                format!("{reason}\n(attempting to set param '{name}' to '{value}')")
            }
        }
    }
}

/// The parameter that was probably meant by an unknown name.
#[must_use]
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, PARAMETERS.iter().map(|row| row.name))
}

/// The row of a parameter, by its name or an old name.
#[must_use]
pub fn row(name: &str) -> Option<&'static ParameterRow> {
    let name = alias(name).unwrap_or(name);
    PARAMETERS.iter().find(|row| row.name == name)
}

/// The parameter that an old name refers to.
#[must_use]
pub fn alias(name: &str) -> Option<&'static str> {
    (name == "deprecated_dummy").then_some("debug")
}

/// True if the parameter has a meaning on this platform.
#[must_use]
pub fn is_available(row: &ParameterRow) -> bool {
    row.name != "accept_filter"
}

/// Sets a parameter from text. `storages` are the permitted values of a storage parameter; the word
/// for the default value selects that of `defaults`, which depend on the name under which the
/// daemon was started.
///
/// # Errors
/// See [`SetError`]; `parameters` is then unchanged.
pub fn set(
    parameters: &mut Parameters,
    defaults: &Parameters,
    name: &str,
    value: &str,
    storages: &[String],
) -> Result<(), SetError> {
    let Some(row) = row(name) else {
        return Err(SetError::Unknown(name.to_owned()));
    };
    if !is_available(row) {
        return Err(SetError::Unavailable(name.to_owned()));
    }
    parse(parameters, defaults, row, value, storages).map_err(|reason| SetError::Invalid {
        name: name.to_owned(),
        value: value.to_owned(),
        reason,
    })?;
    align_compiler_bits(parameters, row);
    Ok(())
}

/// Gives `vcc_feature` and the parameters of its bits the same values, after `changed` was set.
fn align_compiler_bits(parameters: &mut Parameters, changed: &ParameterRow) {
    if changed.kind == ParameterKind::CompilerBits {
        let has = |bit: u64| parameters.vcc_feature & bit != 0;
        let bits = [compiler::ERR_UNREF, compiler::ALLOW_INLINE_C, compiler::UNSAFE_PATH].map(has);
        [parameters.vcc_err_unref, parameters.vcc_allow_inline_c, parameters.vcc_unsafe_path] = bits;
    }
    let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    parameters.vcc_feature = bit(parameters.vcc_err_unref, compiler::ERR_UNREF)
        | bit(parameters.vcc_allow_inline_c, compiler::ALLOW_INLINE_C)
        | bit(parameters.vcc_unsafe_path, compiler::UNSAFE_PATH);
}

/// Gives a parameter its default value, one of `defaults`.
///
/// # Errors
/// When there is no such parameter, or when another one currently forbids its default.
pub fn reset(parameters: &mut Parameters, defaults: &Parameters, name: &str) -> Result<(), SetError> {
    let Some(row) = row(name) else {
        return Err(SetError::Unknown(name.to_owned()));
    };
    if !is_available(row) {
        return Err(SetError::Unavailable(name.to_owned()));
    }
    let mut candidate = parameters.clone();
    copy_value(defaults, &mut candidate, row.name);
    if let Some(ValueRef::Number(number)) = candidate.value(row.name) {
        check_number(&candidate, row, *number).map_err(|reason| SetError::Invalid {
            name: name.to_owned(),
            value: format(defaults, row),
            reason,
        })?;
    }
    align_compiler_bits(&mut candidate, row);
    *parameters = candidate;
    Ok(())
}

/// True if the parameter has its default value, that of `defaults`.
#[must_use]
pub fn is_default(parameters: &Parameters, defaults: &Parameters, row: &ParameterRow) -> bool {
    format(parameters, row) == format(defaults, row)
}

/// The value as `param.show` prints it.
#[must_use]
pub fn format(parameters: &Parameters, row: &ParameterRow) -> String {
    match (row.kind, parameters.value(row.name)) {
        (ParameterKind::Seconds, Some(ValueRef::Float(seconds))) => format!("{seconds:.3}"),
        (_, Some(ValueRef::Float(number))) => {
            format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        (_, Some(ValueRef::Bool(on))) => if *on { "on" } else { "off" }.to_owned(),
        (ParameterKind::Bytes, Some(ValueRef::Number(bytes))) => format_bytes(*bytes),
        (ParameterKind::DebugBits, Some(ValueRef::Number(bits))) => format_bits(*bits, DEBUG_BITS),
        (ParameterKind::FeatureBits, Some(ValueRef::Number(bits))) => format_bits(*bits, FEATURE_BITS),
        (ParameterKind::ExperimentalBits, Some(ValueRef::Number(bits))) => format_bits(*bits, EXPERIMENTAL_BITS),
        (ParameterKind::CompilerBits, Some(ValueRef::Number(bits))) => format_bits(*bits, COMPILER_BITS),
        (ParameterKind::Encodings, Some(ValueRef::Number(value))) => Encodings::of_parameter(*value).join(" "),
        (_, Some(ValueRef::Number(number))) if *number >= UNLIMITED => "unlimited".to_owned(),
        (_, Some(ValueRef::Number(number))) => number.to_string(),
        (_, Some(ValueRef::Mask(mask))) => format_mask(mask),
        (_, Some(ValueRef::Text(text))) => text.clone(),
        (_, None) => String::new(),
    }
}

/// The smallest value that the parameter may currently have.
#[must_use]
pub fn minimum(parameters: &Parameters, row: &ParameterRow) -> Option<Bound> {
    match row.name {
        "thread_pool_max" => Some(Bound::of_other(parameters.thread_pool_min, Some("thread_pool_min"))),
        "vsl_buffer" => Some(Bound::of_other(parameters.vsl_reclen.saturating_add(LOG_RECORD_HEAD_BYTES), None)),
        _ => row.min.and_then(|text| Bound::fixed(row.kind, text)),
    }
}

/// The largest value that the parameter may currently have.
#[must_use]
pub fn maximum(parameters: &Parameters, row: &ParameterRow) -> Option<Bound> {
    match row.name {
        "thread_pool_min" => Some(Bound::of_other(parameters.thread_pool_max, Some("thread_pool_max"))),
        "thread_pool_reserve" => {
            let most = parameters.thread_pool_min.saturating_mul(95) / 100;
            Some(Bound::of_other(most, Some("95% of thread_pool_min")))
        }
        "vsl_reclen" => Some(Bound::of_other(parameters.vsl_buffer.saturating_sub(LOG_RECORD_HEAD_BYTES), None)),
        _ => row.max.and_then(|text| Bound::fixed(row.kind, text)),
    }
}

/// Size of a log record in a transaction's buffer, without its payload.
const LOG_RECORD_HEAD_BYTES: u64 = 12;

impl Bound {
    fn of_other(value: u64, reason: Option<&'static str>) -> Bound {
        Bound { value: value as f64, text: value.to_string(), reason }
    }

    fn fixed(kind: ParameterKind, text: &str) -> Option<Bound> {
        let value = match kind {
            ParameterKind::Bytes => parse_bytes(text).ok()? as f64,
            _ => text.parse().ok()?,
        };
        Some(Bound { value, text: text.to_owned(), reason: None })
    }

    fn named(&self) -> String {
        match self.reason {
            Some(reason) => format!("{} ({reason})", self.text),
            None => self.text.clone(),
        }
    }
}

fn copy_value(from: &Parameters, to: &mut Parameters, name: &str) {
    match (from.value(name), to.value_mut(name)) {
        (Some(ValueRef::Float(from)), Some(ValueMut::Float(to))) => *to = *from,
        (Some(ValueRef::Bool(from)), Some(ValueMut::Bool(to))) => *to = *from,
        (Some(ValueRef::Number(from)), Some(ValueMut::Number(to))) => *to = *from,
        (Some(ValueRef::Mask(from)), Some(ValueMut::Mask(to))) => *to = *from,
        (Some(ValueRef::Text(from)), Some(ValueMut::Text(to))) => to.clone_from(from),
        _ => {}
    }
}

fn parse(
    parameters: &mut Parameters,
    defaults: &Parameters,
    row: &ParameterRow,
    text: &str,
    storages: &[String],
) -> Result<(), String> {
    let number = match row.kind {
        ParameterKind::Seconds | ParameterKind::Double => {
            let value = match (row.kind, unit_of_time(text)) {
                (ParameterKind::Seconds, Some((number, unit))) => parse_float(number)? * unit,
                _ => parse_float(text)?,
            };
            check_float(parameters, row, value)?;
            if let Some(ValueMut::Float(field)) = parameters.value_mut(row.name) {
                *field = value;
            }
            return Ok(());
        }
        ParameterKind::Bool => {
            let value = parse_bool(text)?;
            if let Some(ValueMut::Bool(field)) = parameters.value_mut(row.name) {
                *field = value;
            }
            return Ok(());
        }
        ParameterKind::Pool | ParameterKind::Text => {
            let text = if row.kind == ParameterKind::Pool { &parse_pool(text)? } else { text };
            if row.name == "h2_rxbuf_storage" && !storages.iter().any(|storage| storage == text) {
                return Err(format!("unknown storage backend '{text}'"));
            }
            if let Some(ValueMut::Text(field)) = parameters.value_mut(row.name) {
                text.clone_into(field);
            }
            return Ok(());
        }
        ParameterKind::Addresses => {
            let refused = |member| format!("'{member}' is neither an address nor a network\n");
            crate::front::check(text).map_err(refused)?;
            if let Some(ValueMut::Text(field)) = parameters.value_mut(row.name) {
                text.clone_into(field);
            }
            return Ok(());
        }
        ParameterKind::Policy
        | ParameterKind::EvictionPolicy
        | ParameterKind::NameSource
        | ParameterKind::Placement
        | ParameterKind::LeakGuard
        | ParameterKind::WhenLost => {
            let evictions = POLICIES.map(|row| row.name);
            let words = match row.kind {
                ParameterKind::Policy => HTTP_POLICIES,
                ParameterKind::NameSource => NAME_SOURCES,
                ParameterKind::Placement => PLACEMENTS,
                ParameterKind::LeakGuard => LEAK_GUARDS,
                ParameterKind::WhenLost => WHEN_LOST,
                _ => &evictions,
            };
            if !words.contains(&text) {
                return Err(format!("use one of: {}\n", words.join(", ")));
            }
            if let Some(ValueMut::Text(field)) = parameters.value_mut(row.name) {
                text.clone_into(field);
            }
            return Ok(());
        }
        ParameterKind::LogMask => {
            let value = parse_mask(parameters.vsl_mask, text)?;
            parameters.vsl_mask = value;
            return Ok(());
        }
        ParameterKind::DebugBits => parse_bits(parameters.debug, text, DEBUG_BITS, "debug", None)?,
        ParameterKind::FeatureBits => {
            parse_bits(parameters.feature, text, FEATURE_BITS, "feature", Some(defaults.feature))?
        }
        ParameterKind::CompilerBits => {
            parse_bits(parameters.vcc_feature, text, COMPILER_BITS, "vcc_feature", Some(defaults.vcc_feature))?
        }
        ParameterKind::ExperimentalBits => {
            parse_bits(parameters.experimental, text, EXPERIMENTAL_BITS, "experimental", None)?
        }
        ParameterKind::Encodings => Encodings::parse(text)?.parameter(),
        ParameterKind::Unsigned => {
            let value = parse_unsigned(text, row.max.is_some())?;
            check_number(parameters, row, value)?;
            value
        }
        ParameterKind::Bytes => {
            let value = parse_bytes(text).map_err(|reason| {
                format!("Could not convert to bytes.\n{reason}\n  Try something like '80k' or '120M'\n")
            })?;
            check_number(parameters, row, value)?;
            value
        }
    };
    if let Some(ValueMut::Number(field)) = parameters.value_mut(row.name) {
        *field = number;
    }
    Ok(())
}

fn check_float(parameters: &Parameters, row: &ParameterRow, value: f64) -> Result<(), String> {
    if let Some(bound) = minimum(parameters, row).filter(|bound| value < bound.value) {
        return Err(format!("Must be greater or equal to {}\n", bound.named()));
    }
    if let Some(bound) = maximum(parameters, row).filter(|bound| value > bound.value) {
        return Err(format!("Must be less than or equal to {}\n", bound.named()));
    }
    Ok(())
}

fn check_number(parameters: &Parameters, row: &ParameterRow, value: u64) -> Result<(), String> {
    if let Some(bound) = minimum(parameters, row).filter(|bound| (value as f64) < bound.value) {
        return Err(format!("Must be at least {}\n", bound.named()));
    }
    if let Some(bound) = maximum(parameters, row).filter(|bound| value as f64 > bound.value) {
        // Varnish ends this line twice for sizes.
        let end = if row.kind == ParameterKind::Bytes { "\n" } else { "" };
        return Err(format!("Must be no more than {}\n{end}", bound.named()));
    }
    Ok(())
}

/// The digits before and after the point of a number, and the rest.
fn decimal(text: &str) -> (&str, Option<&str>, &str) {
    let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    match rest.strip_prefix('.') {
        Some(rest) => {
            let (fraction, rest) = rest.split_at(digits(rest));
            (whole, Some(fraction), rest)
        }
        None => (whole, None, rest),
    }
}

/// The thousandths given by the digits after a point; smaller fractions are dropped.
fn thousandths(digits: &str) -> u64 {
    let digits = digits.bytes().chain(std::iter::repeat(b'0'));
    digits.take(3).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

/// Most digits before the point of a number of seconds, and of a size with a fraction.
const WHOLE_DIGITS_MAX: usize = 12;
/// Most digits of a size without a fraction.
const SIZE_DIGITS_MAX: usize = 15;

/// Spellings of the unit of seconds. Varnish ignores any text after the number, and so silently
/// reads other units as seconds.
const SECONDS: [&str; 5] = ["s", "sec", "secs", "second", "seconds"];

/// The number and the seconds in its unit, if a text ends with a unit of VCL.
fn unit_of_time(text: &str) -> Option<(&str, f64)> {
    let text = text.trim();
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    Some((number, seconds_in(&text[number.len()..])?))
}

/// A number to three decimals, optionally with the unit of seconds.
fn parse_float(text: &str) -> Result<f64, String> {
    let error = || format!("Invalid number ({text})\n");
    let number = text.trim_start();
    let (sign, number) = number.strip_prefix('-').map_or((1.0, number), |number| (-1.0, number));
    let (whole, fraction, rest) = decimal(number);
    let fraction = fraction.unwrap_or_default();
    let unit = rest.trim();
    if whole.len() + fraction.len() == 0 {
        return Err(error());
    }
    if !unit.is_empty() && !SECONDS.contains(&unit) {
        let is_word = unit.bytes().all(|byte| byte.is_ascii_alphabetic());
        return Err(if is_word {
            format!("Invalid number ({text}): known units are ms, s, m, h, d, w and y\n")
        } else {
            error()
        });
    }
    if whole.len() > WHOLE_DIGITS_MAX {
        return Err(format!("Too many digits ({text})\n"));
    }
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| error())? };
    Ok(sign * (seconds as f64 + thousandths(fraction) as f64 / 1e3))
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" | "enable" => Ok(true),
        "off" | "no" | "false" | "disable" => Ok(false),
        _ => Err("use \"on\" or \"off\"\n".to_owned()),
    }
}

/// Parses a decimal number, `0x…` or `0…`. A number above the largest becomes the largest, as does
/// -1. Another negative number is too large if there is a bound, and invalid if there is none.
fn parse_unsigned(text: &str, is_bounded: bool) -> Result<u64, String> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(UNLIMITED);
    }
    let error = || format!("Not a number ({text})\n");
    let number = text.trim_start();
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(hexadecimal) => (hexadecimal, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&lower[..], 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(error());
    }
    let value = u64::from_str_radix(digits, radix).unwrap_or(u64::MAX).min(UNLIMITED);
    match (negative && value > 0, is_bounded) {
        (false, _) => Ok(value),
        (true, true) => Ok(UNLIMITED),
        (true, false) if value == 1 => Ok(UNLIMITED),
        (true, false) => Err(error()),
    }
}

/// Parses a size: a number, an optional fraction of up to three digits, and a unit letter. Public
/// for `-s` and `-l`.
///
/// # Errors
/// The error text in Varnish's words, without a newline.
pub fn parse_bytes(text: &str) -> Result<u64, &'static str> {
    const NUMBER: &str = "Invalid number";
    const DIGITS: &str = "Too many digits";
    let (whole, fraction, unit) = decimal(text.trim());
    if whole.is_empty() || fraction.is_some_and(str::is_empty) {
        return Err(NUMBER);
    }
    let whole_digits_max = if fraction.is_some() { WHOLE_DIGITS_MAX } else { SIZE_DIGITS_MAX };
    let fraction = fraction.unwrap_or_default();
    if whole.len() > whole_digits_max || fraction.len() > 3 {
        return Err(DIGITS);
    }
    let unit = unit.trim_start().to_ascii_lowercase();
    let shift = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return Err("Unknown BYTES unit of measurement ([KMGTP][B])"),
    };
    let thousandths = u128::from(thousandths(fraction));
    if shift == 0 && thousandths > 0 {
        return Err("Fractional BYTES not allowed");
    }
    let whole: u128 = whole.parse().map_err(|_| NUMBER)?;
    u64::try_from(((whole * 1000 + thousandths) << shift) / 1000).map_err(|_| NUMBER)
}

/// A size in the largest unit that shows it exactly (quarters of a unit are shown as a fraction).
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    if bytes & 0xff != 0 || bytes == 0 {
        return format!("{bytes}b");
    }
    let mut value = bytes;
    for unit in ["k", "M", "G", "T", "P", "E"] {
        if value & 0x300 != 0 {
            return format!("{:.2}{unit}", value as f64 / 1024.0);
        }
        value >>= 10;
        if value & 0xff != 0 {
            return format!("{value}{unit}");
        }
    }
    format!("{bytes}b")
}

/// Three numbers; anything after them is dropped, as in Varnish.
fn parse_pool(text: &str) -> Result<String, String> {
    let words = list_words(text)?;
    let [min, max, age, ..] = words[..] else {
        return Err("Three fields required: min_pool, max_pool and max_age\n".to_owned());
    };
    let number = |field: &str| parse_unsigned(field, false);
    let (min, max) = (number(min)?, number(max)?);
    let age = parse_float(age)?;
    if age < 0.0 {
        return Err("Must be greater or equal to 0\n".to_owned());
    }
    if age > 1e6 {
        return Err("Must be less than or equal to 1000000\n".to_owned());
    }
    if min > max {
        return Err("min_pool cannot be larger than max_pool\n".to_owned());
    }
    Ok(format!("{min},{max},{age}"))
}

/// Words of a list separated by blanks, or by a comma among blanks; a quoted word may contain
/// either.
fn list_words(text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(|| "Cannot parse: Missing '\"'\n".to_owned())?,
            None => rest.split_at(rest.find([',', ' ', '\t', '\n', '\r']).unwrap_or(rest.len())),
        };
        words.push(word);
        rest = behind.trim_start();
        if let Some(behind) = rest.strip_prefix(',') {
            rest = behind.trim_start();
            if rest.is_empty() {
                words.push("");
            }
        }
    }
    Ok(words)
}

/// The sign and the name of a list word.
fn signed(word: &str) -> Result<(bool, &str), String> {
    match word.as_bytes().first() {
        Some(b'+') => Ok((true, &word[1..])),
        Some(b'-') => Ok((false, &word[1..])),
        _ => Err(format!("Missing '+' or '-' ({word})\n")),
    }
}

fn parse_bits(mut bits: u64, text: &str, names: &[BitRow], what: &str, default: Option<u64>) -> Result<u64, String> {
    if let ("default", Some(default)) = (text, default) {
        return Ok(default);
    }
    for word in list_words(text)? {
        if let Some(whole) = ["none", "all"].iter().position(|whole| *whole == word) {
            bits = all_bits(names) * whole as u64;
            continue;
        }
        let (on, name) = signed(word)?;
        let Some(bit) = names.iter().position(|known| known.name.eq_ignore_ascii_case(name)) else {
            return Err(format!("Unknown {what} bit ({word})\n"));
        };
        if on {
            bits |= 1 << bit;
        } else {
            bits &= !(1 << bit);
        }
    }
    Ok(bits)
}

/// Every bit of the set.
fn all_bits(names: &[BitRow]) -> u64 {
    (0..names.len()).fold(0, |bits, bit| bits | 1 << bit)
}

fn format_bits(bits: u64, names: &[BitRow]) -> String {
    if names.len() > 1 && bits == all_bits(names) {
        return "all".to_owned();
    }
    let set: Vec<String> = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits & (1 << bit) != 0)
        .map(|(_, row)| format!("+{}", row.name))
        .collect();
    if set.is_empty() { "none".to_owned() } else { set.join(",") }
}

fn parse_mask(mut mask: [u8; 32], text: &str) -> Result<[u8; 32], String> {
    if text == "default" {
        return Ok(default_log_mask());
    }
    for word in list_words(text)? {
        if matches!(word, "all" | "none") {
            TAGS.iter().for_each(|row| show(&mut mask, row, word == "all"));
            continue;
        }
        let (shown, name) = signed(word)?;
        let Some(row) = TAGS.iter().find(|row| row.name.eq_ignore_ascii_case(name)) else {
            return Err(format!("Unknown VSL tag ({word})\n"));
        };
        show(&mut mask, row, shown);
    }
    Ok(mask)
}

fn show(mask: &mut [u8; 32], row: &TagRow, is_shown: bool) {
    let number = row.tag as usize;
    let bit = 0x80 >> (number & 7);
    if is_shown {
        mask[number >> 3] &= !bit;
    } else {
        mask[number >> 3] |= bit;
    }
}

fn format_mask(mask: &[u8; 32]) -> String {
    let mut masked: Vec<(usize, &str)> = TAGS
        .iter()
        .map(|row| (row.tag as usize, row.name))
        .filter(|(number, _)| mask[number >> 3] & (0x80 >> (number & 7)) != 0)
        .collect();
    masked.sort_unstable();
    if masked.is_empty() {
        return "(all enabled)".to_owned();
    }
    if masked.len() == TAGS.len() {
        return "none".to_owned();
    }
    let names: Vec<String> = masked.iter().map(|(_, name)| format!("-{name}")).collect();
    names.join(",")
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
