//! Loader of the main text into a single row of tokens: checks versions, and replaces `include`
//! with the files it names.
//!
//! Includes are followed with a list, not by recursion; a file cannot include itself, and the
//! number of files and bytes is limited.

use crate::diagnostic::{Diagnostics, Draft};
use crate::dialect::{Dialect, Usage, detect};
use crate::lex::{LexError, lex};
use crate::source::{Kind, Sign, Sources, Token};
use crate::version;
use crate::{CompileOptions, SourceText};
use std::path::{Path, PathBuf};
use surface::diagnostic::Code;
use surface::limits::{VCL_SOURCE_BYTES_MAX, VCL_SOURCES_MAX, VCL_TOKENS_MAX};
use surface::vcl::Generation;

/// The tokens of a compilation.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) sources: Sources,
    /// The user's tokens and [`Kind::End`], then those of the built-in VCL and another
    /// [`Kind::End`].
    pub(crate) tokens: Vec<Token>,
    /// Index where the built-in VCL begins.
    pub(crate) builtin: u32,
    /// Language version of the main text: 40 or 41, or that of an old dialect.
    pub(crate) syntax: u8,
    /// The dialect in which it is written.
    pub(crate) dialect: &'static Dialect,
    /// The text has no version and was read as 4.1, but nothing in it excludes an old dialect.
    pub(crate) may_be_old: bool,
}

/// Reads everything. `None` if there is no point in continuing. A text without a version belongs to
/// the generation `assumed`, or else to the one that its words indicate.
pub(crate) fn load(
    main: &SourceText<'_>,
    options: &CompileOptions<'_>,
    assumed: Option<Generation>,
    diagnostics: &mut Diagnostics,
) -> Option<Loaded> {
    let mut loader = Loader {
        sources: Sources::default(),
        tokens: Vec::new(),
        frames: Vec::new(),
        options,
        assumed,
        diagnostics,
        total_bytes: main.text.len(),
        total_tokens: 0,
        is_full: false,
        syntax: 0,
        is_cut: false,
        may_be_old: false,
    };
    if main.text.len() > VCL_SOURCE_BYTES_MAX {
        let text = format!("The VCL is larger than {VCL_SOURCE_BYTES_MAX} bytes.\n");
        loader.error(Draft::new(Code::SourceTooLarge).text(text));
        return None;
    }
    let source = loader.sources.add(main.name.to_owned(), main.text.to_vec(), None);
    let frame = loader.frame(source);
    loader.total_tokens = frame.tokens.len();
    let first = frame.tokens.first().copied();
    let has_version = first.is_some_and(|token| loader.sources.bytes(token) == b"vcl");
    let mut dialect = Dialect::of(Generation::V4);
    let may_lack_version = loader.may_be_old(&frame) || loader.may_be_current(first);
    if has_version || !may_lack_version {
        loader.main_version(&frame.tokens)?;
    }
    loader.frames.push(frame);
    loader.splice();
    if loader.is_cut {
        return None;
    }
    if !has_version && loader.tokens.first().is_some_and(|&token| loader.sources.bytes(token) == b"vcl") {
        // The version is in a file that the text includes first.
        let tokens = loader.tokens.clone();
        loader.main_version(&tokens)?;
    } else if !has_version {
        dialect = loader.dialect_without_version(first)?;
    }
    loader.add_default_backend();
    loader.end(source);

    let syntax = loader.syntax;
    let start = loader.tokens.len() as u32;
    let follows_rfc = options.follows_rfc && syntax >= 40;
    let (name, builtin) =
        if follows_rfc { (crate::BUILTIN_RFC_NAME, crate::BUILTIN_RFC) } else { ("<builtin>", dialect.builtin) };
    let source = loader.sources.add(name.to_owned(), builtin.as_bytes().to_vec(), None);
    let frame = loader.frame(source);
    loader.tokens.extend_from_slice(&frame.tokens);
    loader.end(source);
    if dialect.forms.percent_escapes {
        loader.decode_strings();
    }
    Some(Loaded {
        sources: loader.sources,
        tokens: loader.tokens,
        builtin: start,
        syntax,
        dialect,
        may_be_old: loader.may_be_old,
    })
}

/// Advice for an old text.
const MIGRATE: &str = "copal vcl migrate writes the same in VCL 4.1";

/// Words with which a text without a version may begin.
const BEGINNINGS: &[&[u8]] = &[b"acl", b"backend", b"director", b"import", b"include", b"probe", b"sub"];
/// The version of a text that needs none.
const VERSION_ASSUMED: u8 = 41;
/// Number of tokens in `vcl 4.1;`.
const VERSION_TOKENS: usize = 3;

struct Loader<'a> {
    sources: Sources,
    tokens: Vec<Token>,
    frames: Vec<Frame>,
    options: &'a CompileOptions<'a>,
    assumed: Option<Generation>,
    diagnostics: &'a mut Diagnostics,
    total_bytes: usize,
    total_tokens: usize,
    /// More was included than is allowed; this has been reported.
    is_full: bool,
    syntax: u8,
    /// A token begins but never ends: the text after it cannot be checked.
    is_cut: bool,
    may_be_old: bool,
}

/// A file being read.
struct Frame {
    tokens: Vec<Token>,
    next: usize,
}

impl Loader<'_> {
    fn frame(&mut self, source: u32) -> Frame {
        let mut errors = Vec::new();
        let tokens = lex(&self.sources, source, &mut errors);
        for LexError { code, text, token, also, hint } in errors {
            self.is_cut |=
                matches!(code, Code::UnterminatedLongString | Code::UnterminatedComment | Code::UnterminatedInlineC);
            let mut draft = Draft::new(code).text(format!("{text}\n")).at(token).maybe_hint(hint);
            if let Some(also) = also {
                draft = draft.text("\n").at(also);
            }
            self.diagnostics.error(&self.sources, 0, draft);
        }
        Frame { tokens, next: 0 }
    }

    /// Adds the token that ends a row, positioned at the end of the source.
    fn end(&mut self, source: u32) {
        let text = &self.sources.files[source as usize].text;
        let end = text.trim_ascii_end().len() as u32;
        self.tokens.push(Token { kind: Kind::End, source, start: end, end });
    }

    fn error(&mut self, draft: Draft) {
        self.diagnostics.error(&self.sources, self.tokens.len() as u64, draft);
    }

    fn error_at(&mut self, code: Code, text: &str, token: Token) {
        self.error(Draft::new(code).text(format!("{text}\n")).at(token));
    }

    /// `vcl 4.1;` at the start of the main text.
    fn main_version(&mut self, tokens: &[Token]) -> Option<()> {
        let first = tokens.first().copied();
        if first.is_none() && self.diagnostics.has_errors() {
            return None;
        }
        if first.is_none_or(|token| self.sources.bytes(token) != b"vcl") {
            self.version_missing(first);
            return None;
        }
        let version = self.version(tokens)?;
        self.syntax = version;
        if let Some(generation) = self.options.generation.filter(|generation| generation.is_legacy()) {
            let text = format!("The VCL says that it is not written in the dialect {}.\n", generation.name());
            self.error(Draft::new(Code::DialectOther).text(text).between(tokens[0], tokens[1]));
            return None;
        }
        if version < self.options.syntax_min {
            let text = format!("VCL version {}.{} not supported.\n", version / 10, version % 10);
            let draft = Draft::new(Code::VersionUnsupported).text(text).between(tokens[0], tokens[1]);
            self.error(draft.hint("a listener on a Unix socket needs 4.1"));
            return None;
        }
        Some(())
    }

    fn version_missing(&mut self, first: Option<Token>) {
        let mut draft = Draft::new(Code::VersionMissing)
            .hint("the first line of a VCL says which version of the language it is written in")
            .text("VCL version declaration missing\nUpdate your VCL to Version 4 syntax, and add\n\tvcl 4.1;\non the first line of the VCL files.\n");
        if let Some(token) = first {
            draft = draft.at(token);
        }
        self.error(draft);
    }

    /// True if a text without a version may be VCL 4.1: it is empty, or begins like one.
    fn may_be_current(&self, first: Option<Token>) -> bool {
        let begins = first.is_none_or(|token| BEGINNINGS.contains(&self.sources.bytes(token)));
        self.options.version_optional && self.options.generation.is_none_or(|wanted| !wanted.is_legacy()) && begins
    }

    /// True if a text without a version may be in an old dialect: it begins like one.
    fn may_be_old(&self, frame: &Frame) -> bool {
        let begins = frame.tokens.first().is_some_and(|&token| BEGINNINGS.contains(&self.sources.bytes(token)));
        match self.options.generation {
            Some(generation) => generation.is_legacy(),
            None => begins,
        }
    }

    /// Determines the dialect of a text without a version.
    fn dialect_without_version(&mut self, first: Option<Token>) -> Option<&'static Dialect> {
        if !self.options.version_optional || self.assumed.is_some() {
            return self.old_dialect(first);
        }
        match self.options.generation {
            Some(generation) if generation.is_legacy() => return self.old_dialect(first),
            Some(_) => {}
            None => {
                let detected = detect(&self.sources, &self.tokens);
                if detected.as_ref().is_some_and(|detected| detected.evidence.is_some()) {
                    return self.old_dialect(first);
                }
                self.may_be_old = detected.is_some();
            }
        }
        self.syntax = VERSION_ASSUMED;
        Some(Dialect::of(Generation::V4))
    }

    /// Puts the backend of the command line in front of a text without one.
    fn add_default_backend(&mut self) {
        let Some(text) = self.options.default_backend else { return };
        if let Some(own) = self.backend_declaration() {
            let text = "-b names the backend of a VCL that defines none, and this one defines its own.\n";
            self.error(Draft::new(Code::Redefined).text(text).at(own).hint("leave out -b, or the backends of the VCL"));
            return;
        }
        let source = self.sources.add(crate::BACKEND_OPTION_NAME.to_owned(), text.as_bytes().to_vec(), None);
        let frame = self.frame(source);
        // Behind `vcl 4.1;`, and before anything that names the backend.
        let has_version = self.tokens.first().is_some_and(|&token| self.sources.bytes(token) == b"vcl");
        let at = if has_version { VERSION_TOKENS.min(self.tokens.len()) } else { 0 };
        self.tokens.splice(at..at, frame.tokens);
    }

    /// The first word of the first declaration of a backend or director.
    fn backend_declaration(&self) -> Option<Token> {
        let mut depth = 0usize;
        let mut is_start = true;
        for &token in &self.tokens {
            if depth == 0 && is_start && matches!(self.sources.bytes(token), b"backend" | b"director") {
                return Some(token);
            }
            match token.kind {
                Kind::Sign(Sign::BraceOpen) => depth += 1,
                Kind::Sign(Sign::BraceClose) => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_start = token.is(Sign::BraceClose) || token.is(Sign::Semicolon);
        }
        None
    }

    /// Determines the old dialect of a text without a version.
    fn old_dialect(&mut self, first: Option<Token>) -> Option<&'static Dialect> {
        if let Some(generation) = self.options.generation {
            self.syntax = generation.legacy_syntax()?;
            return Some(Dialect::of(generation));
        }
        if let Some(generation) = self.assumed {
            self.syntax = generation.legacy_syntax()?;
            let name = generation.name();
            let text = format!(
                "No VCL version declaration: read as the VCL of Varnish {name}, the newest before 4.0 that takes all of it\n"
            );
            let mut draft = Draft::new(Code::DialectAssumed).text(text);
            if let Some(token) = first {
                draft = draft.at(token);
            }
            self.diagnostics.warning(&self.sources, 0, draft.hint(MIGRATE));
            return Some(Dialect::of(generation));
        }
        let Some(detected) = detect(&self.sources, &self.tokens) else {
            self.version_missing(first);
            return None;
        };
        self.syntax = detected.generation.legacy_syntax()?;
        let name = detected.generation.name();
        let mut text = format!("No VCL version declaration: read as the VCL of Varnish {name}, ");
        let mut draft = Draft::new(Code::DialectAssumed);
        match detected.evidence {
            Some(evidence) => {
                let (first, last) = (evidence.first, evidence.last);
                let whole = Token { end: last.end.max(first.end), ..first };
                text += if evidence.is_proof { "because of " } else { "the last before 4.0 to know " };
                text += &self.used(whole, evidence.usage);
                text.push('\n');
                draft = draft.text(text).between(first, last);
            }
            None => {
                text += "as nothing in it is of one version alone\n";
                draft = draft.text(text);
                if let Some(token) = first {
                    draft = draft.at(token);
                }
            }
        }
        self.diagnostics.warning(&self.sources, 0, draft.hint(MIGRATE));
        Some(Dialect::of(detected.generation))
    }

    /// A word and its use, for the message "4.0 does not know …".
    fn used(&self, word: Token, usage: Usage) -> String {
        let shown = self.sources.shown(word);
        match usage {
            Usage::Name => shown.to_string(),
            Usage::Statement => format!("{shown} as a statement"),
            Usage::Policy => format!("{shown} as the policy of a director"),
            Usage::In(method) => format!("{shown} in {}", self.sources.text(method)),
            Usage::Joined => format!("strings joined without a sign, as {shown} here"),
        }
    }

    /// Decodes `%41` in single-line strings.
    fn decode_strings(&mut self) {
        for index in 0..self.tokens.len() {
            let token = self.tokens[index];
            if token.kind != Kind::Text || self.sources.bytes(token).first() != Some(&b'"') {
                continue;
            }
            let content = self.sources.content(token);
            if !content.contains(&b'%') {
                continue;
            }
            match unescaped(content) {
                Ok(decoded) => self.sources.set_content(token, decoded),
                Err((offset, text)) => {
                    let start = token.start + 1 + offset as u32;
                    let wrong = Token { start, end: (start + 3).min(token.end), ..token };
                    let draft = Draft::new(Code::PercentEscape).text(format!("{text}\n")).at(wrong);
                    let draft = draft.hint("in these dialects %25 stands for a percent sign");
                    self.diagnostics.error(&self.sources, index as u64, draft);
                }
            }
        }
    }

    /// The version of the main text, or of a file that it includes first and that has one.
    fn top_version(&mut self, included: u8) -> u8 {
        if self.syntax == 0 && self.tokens.is_empty() {
            self.syntax = included;
        }
        self.syntax
    }

    /// The version statement at the start of the main text, as 41 for 4.1.
    fn version(&mut self, tokens: &[Token]) -> Option<u8> {
        let keyword = *tokens.first()?;
        let Some(&number) = tokens.get(1) else {
            self.error_at(Code::VersionUnfinished, "Expected 'vcl N.N;' found no semi-colon", keyword);
            return None;
        };
        version::read(&self.sources, keyword, number, tokens.get(2).copied()).map_err(|draft| self.error(draft)).ok()
    }

    /// Moves tokens from the innermost file to the row, and opens files as they are named.
    fn splice(&mut self) {
        while let Some(mut frame) = self.frames.pop().filter(|_| !self.is_full) {
            let mut opened = None;
            while let Some(&token) = frame.tokens.get(frame.next) {
                if self.is_include(token) {
                    let (len, files) = self.include(&frame.tokens[frame.next..]);
                    frame.next += len;
                    if self.is_full {
                        break;
                    }
                    if !files.is_empty() {
                        opened = Some(files);
                        break;
                    }
                } else {
                    self.tokens.push(token);
                    frame.next += 1;
                }
            }
            if let Some(files) = opened {
                self.frames.push(frame);
                self.frames.extend(files.into_iter().rev());
            }
        }
    }

    /// True for the keyword `include`; it is one everywhere except in the name of a header:
    /// `req.http.include`.
    fn is_include(&self, token: Token) -> bool {
        token.kind == Kind::Word
            && self.sources.bytes(token) == b"include"
            && self.tokens.last().is_none_or(|before| !before.is(Sign::Dot))
    }

    /// Reads `include [+glob] "path";`: returns the number of its tokens, and the files it opens.
    fn include(&mut self, tokens: &[Token]) -> (usize, Vec<Frame>) {
        let mut at_token = 1;
        let mut glob = false;
        if tokens.get(1).is_some_and(|token| token.is(Sign::Plus)) {
            match tokens.get(2) {
                Some(&flag) if self.sources.bytes(flag) == b"glob" => glob = true,
                flag => {
                    let token = *flag.unwrap_or(&tokens[1]);
                    let draft = Draft::new(Code::IncludeMalformed).text("Unknown include flag:\n").at(token);
                    self.error(draft.hint("the one flag is +glob"));
                    return (self.statement_length(tokens), Vec::new());
                }
            }
            at_token = 3;
        }
        let path_token = match tokens.get(at_token) {
            Some(&token) if token.kind == Kind::Text => token,
            other => {
                let token = *other.unwrap_or(&tokens[0]);
                self.error_at(Code::IncludeMalformed, "include not followed by string constant.", token);
                return (self.statement_length(tokens), Vec::new());
            }
        };
        let mut len = at_token + 1;
        match tokens.get(len) {
            Some(token) if token.is(Sign::Semicolon) => len += 1,
            _ => {
                self.error_at(Code::IncludeMalformed, "include <string> not followed by semicolon.", path_token);
                return (len, Vec::new());
            }
        }
        let files = if glob { self.open_matching(path_token) } else { self.open_named(path_token) };
        (len, files)
    }

    /// Number of tokens of a broken `include`: up to its semicolon, if that is on the same line.
    fn statement_length(&self, tokens: &[Token]) -> usize {
        let Some(first) = tokens.first() else { return 0 };
        let line = self.sources.place(*first).0;
        let rest = tokens.iter().take(8).take_while(|token| self.sources.place(**token).0 == line);
        let end = rest.clone().position(|token| token.is(Sign::Semicolon)).map_or_else(|| rest.count(), |at| at + 1);
        end.max(1)
    }

    fn open_matching(&mut self, path_token: Token) -> Vec<Frame> {
        let written = String::from_utf8_lossy(self.sources.content(path_token)).into_owned();
        let Some(paths) = self.candidates(&written, path_token) else { return Vec::new() };
        let mut failure = None;
        for path in paths {
            match self.options.files.glob(&path.to_string_lossy()) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => return self.open_all(&found, path_token),
                Err(error) => failure = Some(crate::files::error_text(&error)),
            }
        }
        let draft = Draft::new(Code::IncludeUnreadable).text("glob pattern matched no files.\n").at(path_token);
        self.error(draft.maybe_hint(failure));
        Vec::new()
    }

    /// Opens the files that match a pattern. Compat: an unreadable file is an error; it is not
    /// skipped.
    fn open_all(&mut self, paths: &[PathBuf], path_token: Token) -> Vec<Frame> {
        let mut opened = Vec::new();
        for path in paths {
            match self.open(path, path_token) {
                Ok(frame) => opened.extend(frame),
                Err(failure) => {
                    let text = format!("Cannot read file '{}' ({failure})", path.display());
                    self.error_at(Code::IncludeUnreadable, &text, path_token);
                }
            }
            if self.is_full {
                return Vec::new();
            }
        }
        opened
    }

    fn open_named(&mut self, path_token: Token) -> Vec<Frame> {
        let written = String::from_utf8_lossy(self.sources.content(path_token)).into_owned();
        let Some(paths) = self.candidates(&written, path_token) else { return Vec::new() };
        let mut failure = String::from("No such file or directory");
        let mut shown = PathBuf::from(&written);
        let single = paths.len() == 1;
        for path in paths {
            match self.open(&path, path_token) {
                Ok(frame) => return frame.into_iter().collect(),
                Err(text) => failure = text,
            }
            if single {
                shown = path;
            }
        }
        let text = format!("Cannot read file '{}' ({failure})\n", shown.display());
        let mut draft = Draft::new(Code::IncludeUnreadable).text(text).at(path_token);
        if !written.starts_with('/') && !written.starts_with("./") {
            let path: Vec<String> = self.options.vcl_path.iter().map(|path| path.display().to_string()).collect();
            draft = draft.hint(format!("looked for in the parameter vcl_path: {}", path.join(":")));
        }
        self.error(draft);
        Vec::new()
    }

    /// Candidate paths for a written path.
    fn candidates(&mut self, written: &str, path_token: Token) -> Option<Vec<PathBuf>> {
        if !self.options.unsafe_path && written.contains('/') {
            let draft =
                Draft::new(Code::IncludeUnsafe).text(format!("VCL filename '{written}' is unsafe.\n")).at(path_token);
            let hint = "the parameter vcc_unsafe_path is off: only names without a slash, found in vcl_path";
            self.error(draft.hint(hint));
            return None;
        }
        if let Some(rest) = written.strip_prefix("./") {
            let including = self.sources.file(path_token).name.clone();
            let Some(directory) = Path::new(&including).parent().filter(|_| including.starts_with('/')) else {
                let text = format!("include path {written} needs absolute filename of including file.");
                self.error_at(Code::IncludeRelative, &text, path_token);
                return None;
            };
            return Some(vec![directory.join(rest)]);
        }
        if written.starts_with('/') {
            return Some(vec![PathBuf::from(written)]);
        }
        Some(self.options.vcl_path.iter().map(|directory| directory.join(written)).collect())
    }

    /// Opens one file. An error in its text is reported; `Err` means that it cannot be read.
    fn open(&mut self, path: &Path, path_token: Token) -> Result<Option<Frame>, String> {
        let name = path.display().to_string();
        let mut chain = vec![path_token];
        let mut recursive = false;
        let mut above = Some(path_token);
        while let Some(token) = above {
            let file = self.sources.file(token);
            recursive |= file.name == name;
            above = file.included_by;
            chain.extend(above);
        }
        if recursive {
            let draft = Draft::new(Code::IncludeRecursive).text(format!("Recursive use of file \"{name}\"\n\n"));
            let chain = chain.iter().enumerate();
            let draft = chain.fold(draft, |draft, (index, &token)| {
                let draft = if index > 0 { draft.text("\n") } else { draft };
                draft.at(token)
            });
            self.error(draft);
            return Ok(None);
        }
        let text = self.options.files.read(path).map_err(|error| crate::files::error_text(&error))?;
        self.total_bytes = self.total_bytes.saturating_add(text.len());
        if self.total_bytes > VCL_SOURCE_BYTES_MAX || self.sources.files.len() >= VCL_SOURCES_MAX {
            let text =
                format!("Too much is included (at most {VCL_SOURCES_MAX} files and {VCL_SOURCE_BYTES_MAX} bytes).");
            self.error_at(Code::SourceTooLarge, &text, path_token);
            self.is_full = true;
            return Ok(None);
        }
        let source = self.sources.add(name, text, Some(path_token));
        let frame = self.frame(source);
        self.total_tokens = self.total_tokens.saturating_add(frame.tokens.len());
        if self.total_tokens > VCL_TOKENS_MAX {
            let text = format!("Too much is included (at most {VCL_TOKENS_MAX} words and signs).");
            self.error_at(Code::SourceTooLarge, &text, path_token);
            self.is_full = true;
            return Ok(None);
        }
        if let [keyword, number, ..] = frame.tokens[..]
            && self.sources.bytes(keyword) == b"vcl"
            // Errors in the statement are reported by the parser, which sees all of them.
            && let Ok(version) = version::read(&self.sources, keyword, number, frame.tokens.get(2).copied())
            && version > self.top_version(version)
        {
            let last = frame.tokens.get(2).copied().unwrap_or(number);
            let top = self.syntax;
            let text = format!(
                "VCL version {}.{} higher than the top level version {}.{}\n",
                version / 10,
                version % 10,
                top / 10,
                top % 10
            );
            self.error(Draft::new(Code::VersionHigher).text(text).between(keyword, last));
        }
        Ok(Some(frame))
    }
}

/// A string with its `%xx` decoded; or the position of an invalid escape and the error.
fn unescaped(content: &[u8]) -> Result<Vec<u8>, (usize, &'static str)> {
    let mut out = Vec::with_capacity(content.len());
    let mut next = 0;
    while let Some(&byte) = content.get(next) {
        if byte != b'%' {
            out.push(byte);
            next += 1;
            continue;
        }
        let Some(digits) = content.get(next + 1..next + 3) else {
            return Err((next, "Incomplete %xx escape"));
        };
        let digits =
            std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(value) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return Err((next, "Invalid hex char in %xx escape"));
        };
        if !value.is_ascii_graphic() {
            return Err((next, "Control character in %xx escape"));
        }
        out.push(value);
        next += 3;
    }
    Ok(out)
}
