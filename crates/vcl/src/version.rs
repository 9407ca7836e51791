//! `vcl 4.1;`: the statement that declares the language version of a text, in any position.

use crate::diagnostic::Draft;
use crate::source::{Kind, Sign, Sources, Token};
use surface::diagnostic::Code;

/// Reads the version, as 41 for 4.1. `number` and `end` are the tokens after the keyword.
///
/// # Errors
/// The message about an invalid statement.
pub(crate) fn read(sources: &Sources, keyword: Token, number: Token, end: Option<Token>) -> Result<u8, Draft> {
    let (major, minor) = match (number.kind, sources.bytes(number)) {
        (Kind::Real, &[major, b'.', minor]) => (major - b'0', minor - b'0'),
        _ => {
            let mut draft = Draft::new(Code::VersionMalformed);
            if number.kind != Kind::Real {
                let found = sources.shown(number);
                draft = draft.text(format!("Expected FNUM got {found}\nat\n")).at(number).text("\n");
            }
            let draft = draft.text("Don't play silly buggers with VCL version numbers\n").at(number);
            return Err(draft.hint("a version is a digit, a dot and a digit: vcl 4.1;"));
        }
    };
    let version = major * 10 + minor;
    if version != 40 && version != 41 {
        let text = format!("VCL version {major}.{minor} not supported.\n");
        let draft = Draft::new(Code::VersionUnsupported).text(text).between(keyword, number);
        return Err(draft.hint("versions 4.0 and 4.1 are"));
    }
    if end.is_none_or(|token| !token.is(Sign::Semicolon)) {
        let draft = Draft::new(Code::VersionUnfinished).text("Expected 'vcl N.N;' found no semi-colon\n");
        return Err(draft.between(keyword, number));
    }
    Ok(version)
}
