//! Declarations: import, acl, backend, probe, sub.

use super::{Broken, Parsed, Parser};
use crate::diagnostic::Draft;
use crate::source::{Kind, Sign};
use crate::tree::{Acl, AclEntry, Backend, Declaration, Field, Import, Probe, Sub};
use crate::version;
use surface::diagnostic::Code;

impl Parser<'_> {
    pub(super) fn declarations(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        while self.peek().kind != Kind::End {
            let start = self.next;
            match self.declaration() {
                Ok(declaration) => declarations.push(declaration),
                Err(Broken) => self.recover_declaration(start),
            }
            self.unexpected = false;
        }
        declarations
    }

    fn declaration(&mut self) -> Parsed<Declaration> {
        let word = self.peek_word();
        match word.filter(|word| self.dialect.declarations.contains(word)) {
            Some("vcl") => {
                let keyword = self.advance();
                let (first, number) = (self.token_at(keyword), self.peek());
                let end = (number.kind != Kind::End).then(|| self.token_at(keyword + 2));
                if let Err(draft) = version::read(self.sources, first, number, end) {
                    return Err(self.error(keyword, draft));
                }
                self.advance();
                self.semicolon()?;
                Ok(Declaration::Version(keyword))
            }
            Some("import") => self.import().map(Declaration::Import),
            Some("acl") => self.acl().map(Declaration::Acl),
            Some("backend") => self.backend().map(Declaration::Backend),
            Some("probe") => self.probe().map(Declaration::Probe),
            Some("sub") => self.sub().map(Declaration::Sub),
            Some("director") => self.director().map(Declaration::Director),
            _ => {
                let found = self.sources.shown(self.peek());
                let mut words = String::new();
                for (index, word) in self.dialect.declarations.iter().enumerate() {
                    words += match self.dialect.declarations.len() - index {
                        1 if index > 0 => " or ",
                        _ if index > 0 => ", ",
                        _ => "",
                    };
                    words += &format!("'{word}'");
                }
                let text = format!("Expected one of\n\t{words}\nFound: {found} at");
                let help = word.and_then(|word| {
                    let moved = self.dialect.moved.iter().find(|(known, _)| *known == word);
                    moved.map(|&(_, instead)| instead).or_else(|| {
                        self.dialect
                            .statements
                            .iter()
                            .any(|(known, _)| *known == word)
                            .then_some("statements stand in a sub")
                    })
                });
                if word.is_some() && self.token_at(self.next + 1).kind == Kind::Word {
                    let name = self.sources.text(self.token_at(self.next + 1)).to_owned();
                    self.damaged.insert(name);
                }
                let help = help.or(self.is_next(Sign::BraceClose).then_some("there is one } too many"));
                Err(self.error_here(Code::ExpectedDeclaration, &text, help))
            }
        }
    }

    /// Continues at the next word that begins a declaration outside braces.
    fn recover_declaration(&mut self, start: u32) {
        if self.next == start {
            self.advance();
        }
        // Braces opened since the declaration began are still open.
        let mut open = 0usize;
        for index in start..self.next {
            match self.token_at(index).kind {
                Kind::Sign(Sign::BraceOpen) => open += 1,
                Kind::Sign(Sign::BraceClose) => open = open.saturating_sub(1),
                _ => {}
            }
        }
        loop {
            match self.peek().kind {
                Kind::End => return,
                Kind::Sign(Sign::BraceOpen) => open += 1,
                Kind::Sign(Sign::BraceClose) => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        self.advance();
                        return;
                    }
                }
                Kind::Word if open == 0 => {
                    if matches!(self.peek_word(), Some("acl" | "sub" | "backend" | "probe" | "import" | "director")) {
                        return;
                    }
                }
                _ => {}
            }
            self.advance();
        }
    }

    fn import(&mut self) -> Parsed<Import> {
        let keyword = self.advance();
        let name = self.expect_word()?;
        let mut alias = None;
        let mut path = None;
        if self.peek_word() == Some("as") {
            self.advance();
            alias = Some(self.name()?);
        }
        if self.peek_word() == Some("from") {
            self.advance();
            if self.peek().kind != Kind::Text {
                return Err(self.expected("CSTR"));
            }
            path = Some(self.advance());
        } else if !self.is_next(Sign::Semicolon) {
            return Err(self.error_here(Code::Expected, "Expected 'from path ...'", Some("or a ; after the name")));
        }
        let end = self.semicolon()?;
        Ok(Import { keyword, name, alias, path, end })
    }

    fn acl(&mut self) -> Parsed<Acl> {
        self.advance();
        let name = self.name()?;
        let mut flags = Vec::new();
        while self.is_next(Sign::Plus) || self.is_next(Sign::Minus) {
            let sign = self.next;
            // No space is allowed between the sign of a flag and its word.
            let (sign_token, word) = (self.peek(), self.token_at(sign + 1));
            if word.kind != Kind::Word || word.start != sign_token.end || word.source != sign_token.source {
                self.damage(name);
                return Err(self.error_here(
                    Code::AclFlag,
                    "Expected a flag at:",
                    Some("the flags are log, table and pedantic, with + or - before them"),
                ));
            }
            self.advance();
            flags.push((sign, self.advance()));
        }
        let mut entries = Vec::new();
        if let Err(broken) = self.acl_entries(&mut entries) {
            self.damage(name);
            return Err(broken);
        }
        Ok(Acl { name, flags, entries })
    }

    fn acl_entries(&mut self, entries: &mut Vec<AclEntry>) -> Parsed<()> {
        self.expect(Sign::BraceOpen, "'{'")?;
        while !self.accept(Sign::BraceClose) {
            let mut negated = self.accept(Sign::Not);
            let optional = self.accept(Sign::ParenOpen);
            if optional && !negated {
                negated = self.accept(Sign::Not);
            }
            if self.peek().kind != Kind::Text {
                return Err(self.expected_with("CSTR", Some("an entry is a quoted address or name: \"192.0.2.0\"/24;")));
            }
            let host = self.advance();
            let mut mask = None;
            if self.is_next(Sign::Slash) {
                let slash = self.advance();
                if self.peek().kind != Kind::Integer {
                    return Err(self.expected("CNUM"));
                }
                mask = Some((slash, self.advance()));
            }
            if optional {
                self.expect(Sign::ParenClose, "')'")?;
            }
            self.expect(Sign::Semicolon, "';'")?;
            entries.push(AclEntry { negated, optional, host, mask });
        }
        Ok(())
    }

    fn backend(&mut self) -> Parsed<Backend> {
        let keyword = self.advance();
        let name = self.name()?;
        if matches!(self.peek_word(), Some("none" | "None")) {
            self.advance();
            if let Err(broken) = self.semicolon() {
                self.damage(name);
                return Err(broken);
            }
            return Ok(Backend { keyword, name, fields: None });
        }
        match self.fields() {
            Ok(fields) => Ok(Backend { keyword, name, fields: Some(fields) }),
            Err(broken) => {
                self.damage(name);
                Err(broken)
            }
        }
    }

    fn probe(&mut self) -> Parsed<Probe> {
        self.advance();
        let name = self.name()?;
        match self.fields() {
            Ok(fields) => Ok(Probe { name, fields }),
            Err(broken) => {
                self.damage(name);
                Err(broken)
            }
        }
    }

    pub(super) fn damage(&mut self, name: crate::tree::Name) {
        let text = self.name_text(name);
        self.damaged.insert(text);
    }

    /// `{ .name = value; … }`
    pub(super) fn fields(&mut self) -> Parsed<Vec<Field>> {
        self.expect(Sign::BraceOpen, "'{'")?;
        let mut fields = Vec::new();
        while !self.accept(Sign::BraceClose) {
            if self.dialect.forms.set_backend && self.peek_word() == Some("set") {
                fields.push(self.set_field()?);
                continue;
            }
            if self.peek_word() == Some("set") {
                let text =
                    "NB: Backend Syntax has changed:\nRemove \"set\" and \"backend\" in front of backend fields.";
                let draft = Draft::new(Code::OldBackendField).text(format!("{text}\n'set' at ")).at(self.peek());
                self.error(self.next, draft.hint(".host = \"...\"; without set and backend"));
                return Err(Broken);
            }
            if !self.is_next(Sign::Dot) {
                let help = (self.peek().kind == Kind::Word).then_some("attributes begin with a dot: .name = value;");
                return Err(self.expected_with("'.'", help));
            }
            self.advance();
            fields.push(self.field_after_dot()?);
        }
        Ok(fields)
    }

    fn sub(&mut self) -> Parsed<Sub> {
        self.advance();
        let name = self.name()?;
        let body = self.block();
        self.unclosed = false;
        match body {
            Ok(body) => Ok(Sub { name, body }),
            Err(broken) => {
                self.damage(name);
                Err(broken)
            }
        }
    }
}
