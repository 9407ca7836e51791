//! From the main text to one row of tokens: versions checked, `include` replaced by what it names.
//!
//! Includes are followed with a list, not by recursion; a file cannot include itself, and the number of files and bytes is
//! bounded.

use crate::diagnostic::{Diagnostics, at, between, hint};
use crate::lex::{LexError, lex};
use crate::source::{Kind, Sign, Sources, Token};
use crate::{CompileOptions, SourceText};
use std::path::{Path, PathBuf};
use surface::limits::{VCL_SOURCE_BYTES_MAX, VCL_SOURCES_MAX};

/// The tokens of a compilation.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) sources: Sources,
    /// The user's tokens and [`Kind::End`], then those of the built-in VCL and [`Kind::End`].
    pub(crate) tokens: Vec<Token>,
    /// Where the built-in VCL begins.
    pub(crate) builtin: u32,
    /// Language version of the main text: 40 or 41.
    pub(crate) syntax: u8,
}

/// Reads everything. `None` when there is no point in going on.
pub(crate) fn load(
    main: &SourceText<'_>,
    builtin: &SourceText<'_>,
    options: &CompileOptions<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Loaded> {
    let mut loader = Loader {
        sources: Sources::default(),
        tokens: Vec::new(),
        frames: Vec::new(),
        options,
        diagnostics,
        total_bytes: main.text.len(),
        syntax: 0,
    };
    if main.text.len() > VCL_SOURCE_BYTES_MAX {
        let text = format!("The VCL is larger than {VCL_SOURCE_BYTES_MAX} bytes.\n");
        loader.diagnostics.error(0, text);
        return None;
    }
    let source = loader.sources.add(main.name.to_owned(), main.text.to_vec(), None);
    let frame = loader.frame(source);
    loader.main_version(&frame)?;
    loader.frames.push(frame);
    loader.splice();
    loader.end(source);

    let syntax = loader.syntax;
    let start = loader.tokens.len() as u32;
    let source = loader.sources.add(builtin.name.to_owned(), builtin.text.to_vec(), None);
    let frame = loader.frame(source);
    loader.tokens.extend_from_slice(&frame.tokens);
    loader.end(source);
    Some(Loaded { sources: loader.sources, tokens: loader.tokens, builtin: start, syntax })
}

struct Loader<'a> {
    sources: Sources,
    tokens: Vec<Token>,
    frames: Vec<Frame>,
    options: &'a CompileOptions<'a>,
    diagnostics: &'a mut Diagnostics,
    total_bytes: usize,
    syntax: u8,
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
        for LexError { text, token, also, hint: help } in errors {
            let mut message = format!("{text}\n{}", at(&self.sources, token));
            if let Some(also) = also {
                message.push('\n');
                message.push_str(&at(&self.sources, also));
            }
            if let Some(help) = help {
                message.push_str(&hint(help));
            }
            self.diagnostics.error(0, message);
        }
        Frame { tokens, next: 0 }
    }

    /// The mark that closes a row of tokens; it stands where the source ends.
    fn end(&mut self, source: u32) {
        let text = &self.sources.files[source as usize].text;
        let end = text.trim_ascii_end().len() as u32;
        self.tokens.push(Token { kind: Kind::End, source, start: end, end });
    }

    fn error(&mut self, text: String) {
        self.diagnostics.error(self.tokens.len() as u64, text);
    }

    /// `vcl 4.1;` at the start of the main text.
    fn main_version(&mut self, frame: &Frame) -> Option<()> {
        let first = frame.tokens.first().copied();
        if first.is_none_or(|token| self.sources.bytes(token) != b"vcl") {
            let place = first.map_or(String::new(), |token| at(&self.sources, token));
            let hint = hint(if self.looks_old(frame) {
                "this looks like VCL of Varnish 3 or older, which has to be rewritten for VCL 4"
            } else {
                "the first line of a VCL says which version of the language it is written in"
            });
            self.error(format!("VCL version declaration missing\nAdd\n\tvcl 4.1;\nas the first line.\n{place}{hint}"));
            return None;
        }
        let version = self.version(&frame.tokens)?;
        self.syntax = version;
        if version < self.options.syntax_min {
            let (last, least) = (frame.tokens[1], self.options.syntax_min);
            let place = between(&self.sources, frame.tokens[0], last);
            let hint = hint("a listener on a Unix socket needs 4.1");
            self.error(format!("VCL version {}.{} not supported.\n{place}{hint}", version / 10, version % 10));
            let _ = least;
            return None;
        }
        Some(())
    }

    /// Words that VCL 4 does not have.
    fn looks_old(&self, frame: &Frame) -> bool {
        const OLD: &[&[u8]] = &[b"vcl_fetch", b"vcl_error", b"director", b"remove", b"error", b"purge_url"];
        frame
            .tokens
            .iter()
            .take(10_000)
            .any(|&token| token.kind == Kind::Word && OLD.contains(&self.sources.bytes(token)))
    }

    /// The number in `vcl 4.1;`, as 41.
    fn version(&mut self, tokens: &[Token]) -> Option<u8> {
        let keyword = *tokens.first()?;
        let Some(&number) = tokens.get(1) else {
            let place = at(&self.sources, keyword);
            self.error(format!("Expected 'vcl N.N;' found no semi-colon\n{place}"));
            return None;
        };
        let (major, minor) = match (number.kind, self.sources.bytes(number)) {
            (Kind::Real, &[major, b'.', minor]) => (major - b'0', minor - b'0'),
            _ => {
                let place = at(&self.sources, number);
                let hint = hint("a version is a digit, a dot and a digit: vcl 4.1;");
                self.error(format!("Don't play silly buggers with VCL version numbers\n{place}{hint}"));
                return None;
            }
        };
        let version = major * 10 + minor;
        if version != 40 && version != 41 {
            let place = between(&self.sources, keyword, number);
            let hint = hint("versions 4.0 and 4.1 are");
            self.error(format!("VCL version {major}.{minor} not supported.\n{place}{hint}"));
            return None;
        }
        if tokens.get(2).is_none_or(|token| !token.is(Sign::Semicolon)) {
            let place = between(&self.sources, keyword, number);
            self.error(format!("Expected 'vcl N.N;' found no semi-colon\n{place}"));
            return None;
        }
        Some(version)
    }

    /// Moves tokens from the innermost file to the row, opening files as they are named.
    fn splice(&mut self) {
        while let Some(mut frame) = self.frames.pop() {
            let mut opened = None;
            while let Some(&token) = frame.tokens.get(frame.next) {
                if self.is_include(token) {
                    let (len, files) = self.include(&frame.tokens[frame.next..]);
                    frame.next += len;
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

    /// `include` is a word of its own wherever it stands, except as the name of a header: `req.http.include`.
    fn is_include(&self, token: Token) -> bool {
        token.kind == Kind::Word
            && self.sources.bytes(token) == b"include"
            && self.tokens.last().is_none_or(|before| !before.is(Sign::Dot))
    }

    /// Reads `include [+glob] "path";`: how many tokens that is, and the files it opens.
    fn include(&mut self, tokens: &[Token]) -> (usize, Vec<Frame>) {
        let mut at_token = 1;
        let mut glob = false;
        if tokens.get(1).is_some_and(|token| token.is(Sign::Plus)) {
            match tokens.get(2) {
                Some(&flag) if self.sources.bytes(flag) == b"glob" => glob = true,
                flag => {
                    let place = at(&self.sources, *flag.unwrap_or(&tokens[1]));
                    let hint = hint("the one flag is +glob");
                    self.error(format!("Unknown include flag:\n{place}{hint}"));
                }
            }
            at_token = 3;
        }
        let path_token = match tokens.get(at_token) {
            Some(&token) if token.kind == Kind::Text => token,
            other => {
                let place = at(&self.sources, *other.unwrap_or(&tokens[0]));
                self.error(format!("include not followed by string constant.\n{place}"));
                return (at_token.min(tokens.len()), Vec::new());
            }
        };
        let mut len = at_token + 1;
        match tokens.get(len) {
            Some(token) if token.is(Sign::Semicolon) => len += 1,
            _ => {
                let place = at(&self.sources, path_token);
                self.error(format!("include <string> not followed by semicolon.\n{place}"));
                return (len, Vec::new());
            }
        }
        let files = if glob { self.open_matching(path_token) } else { self.open_named(path_token) };
        (len, files)
    }

    fn open_matching(&mut self, path_token: Token) -> Vec<Frame> {
        let written = String::from_utf8_lossy(self.sources.content(path_token)).into_owned();
        let Some(paths) = self.candidates(&written, path_token) else { return Vec::new() };
        for path in paths {
            let found = self.options.files.glob(&path.to_string_lossy()).unwrap_or_default();
            if !found.is_empty() {
                return found.into_iter().filter_map(|file| self.open(&file, path_token).ok().flatten()).collect();
            }
        }
        let place = at(&self.sources, path_token);
        self.error(format!("glob pattern matched no files.\n{place}"));
        Vec::new()
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
        let place = at(&self.sources, path_token);
        let help = if written.starts_with('/') || written.starts_with("./") {
            String::new()
        } else {
            let path: Vec<String> = self.options.vcl_path.iter().map(|path| path.display().to_string()).collect();
            hint(&format!("looked for in the parameter vcl_path: {}", path.join(":")))
        };
        self.error(format!("Cannot read file '{}' ({failure})\n{place}{help}", shown.display()));
        Vec::new()
    }

    /// Where a written path may lead.
    fn candidates(&mut self, written: &str, path_token: Token) -> Option<Vec<PathBuf>> {
        if !self.options.unsafe_path && written.contains('/') {
            let place = at(&self.sources, path_token);
            let hint = hint("the parameter vcc_unsafe_path is off: only names without a slash, found in vcl_path");
            self.error(format!("VCL filename '{written}' is unsafe.\n{place}{hint}"));
            return None;
        }
        if let Some(rest) = written.strip_prefix("./") {
            let including = self.sources.file(path_token).name.clone();
            let Some(directory) = Path::new(&including).parent().filter(|_| including.starts_with('/')) else {
                let place = at(&self.sources, path_token);
                self.error(format!("include path {written} needs absolute filename of including file.\n{place}"));
                return None;
            };
            return Some(vec![directory.join(rest)]);
        }
        if written.starts_with('/') {
            return Some(vec![PathBuf::from(written)]);
        }
        Some(self.options.vcl_path.iter().map(|directory| directory.join(written)).collect())
    }

    /// Opens one file. An error in its text is reported; `Err` when it cannot be read.
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
            let places: Vec<String> = chain.iter().map(|&token| at(&self.sources, token)).collect();
            self.error(format!("Recursive use of file \"{name}\"\n\n{}", places.join("\n")));
            return Ok(None);
        }
        let text = self.options.files.read(path).map_err(|error| crate::outside::error_text(&error))?;
        self.total_bytes = self.total_bytes.saturating_add(text.len());
        if self.total_bytes > VCL_SOURCE_BYTES_MAX || self.sources.files.len() >= VCL_SOURCES_MAX {
            let place = at(&self.sources, path_token);
            self.error(format!(
                "Too much is included (at most {VCL_SOURCES_MAX} files and {VCL_SOURCE_BYTES_MAX} bytes).\n{place}"
            ));
            self.frames.clear();
            return Ok(None);
        }
        let source = self.sources.add(name, text, Some(path_token));
        let frame = self.frame(source);
        if let [keyword, number, ..] = frame.tokens[..]
            && self.sources.bytes(keyword) == b"vcl"
            && let Some(version) = self.version(&frame.tokens)
            && version > self.syntax
        {
            let last = frame.tokens.get(2).copied().unwrap_or(number);
            let place = between(&self.sources, keyword, last);
            let top = self.syntax;
            self.error(format!(
                "VCL version {}.{} higher than the top level version {}.{}\n{place}",
                version / 10,
                version % 10,
                top / 10,
                top % 10
            ));
        }
        Ok(Some(frame))
    }
}
