//! Syntax of the old dialects only: bare actions, `error`, bans in other words, directors as
//! blocks.

use super::{Broken, Parsed, Parser};
use crate::diagnostic::Draft;
use crate::dialect::{DirectorPolicy, StatementWord};
use crate::source::{Kind, Sign};
use crate::tree::{
    AclEntry, At, Block, Director, DirectorList, DirectorMember, Expression, ExpressionKind, Field, FieldValue,
    ReturnAction, Statement,
};
use surface::diagnostic::Code;

impl Parser<'_> {
    /// A statement whose first word belongs to an old dialect; that word has been consumed.
    pub(super) fn legacy_statement(&mut self, keyword: At, word: StatementWord) -> Parsed<Statement> {
        let statement = match word {
            StatementWord::Action => bare_action(keyword),
            StatementWord::Restart if self.peek_word() == Some("rollback") => {
                let rollback = self.advance();
                let statements = vec![Statement::Rollback { keyword: rollback }, bare_action(keyword)];
                Statement::Block(Block { open: keyword, statements })
            }
            StatementWord::Restart => bare_action(keyword),
            StatementWord::MustReturn => {
                let word = self.sources.text(self.token_at(keyword)).to_owned();
                self.next = keyword;
                let text = format!("Please change \"{word}\" to \"return({word})\".");
                let token = self.peek();
                let draft = Draft::new(Code::BareAction).text(format!("{text}\n")).at(token);
                let broken = self.error(keyword, draft.suggest(token, token, format!("return ({word})")));
                self.advance();
                return Err(broken);
            }
            StatementWord::Error => self.error_statement(keyword)?,
            StatementWord::SyntheticText => Statement::Synthetic { keyword, value: self.expression()? },
            StatementWord::Purge => Statement::Purge { keyword },
            StatementWord::PurgeBan | StatementWord::BanUrl | StatementWord::PurgeHash => {
                return Ok(Statement::OldBan { keyword, value: self.in_parentheses()? });
            }
            StatementWord::Esi => Statement::Esi { keyword },
            StatementWord::Rollback => Statement::Rollback { keyword },
            StatementWord::Log => Statement::Log { keyword, value: self.expression()? },
            StatementWord::Panic => Statement::Panic { keyword, value: self.expression()? },
            _ => return Err(Broken),
        };
        self.end_statement();
        Ok(statement)
    }

    /// The rest of `error`: a status, a reason, both or neither.
    fn error_statement(&mut self, keyword: At) -> Parsed<Statement> {
        let (mut status, mut reason) = (None, None);
        if self.is_next(Sign::ParenOpen) {
            self.advance();
            status = Some(self.expression()?);
            if !self.unexpected && self.accept(Sign::Comma) {
                reason = Some(self.expression()?);
            }
            if !self.unexpected {
                self.expect(Sign::ParenClose, "')'")?;
            }
        } else if !self.is_next(Sign::Semicolon) && self.peek().kind != Kind::Text {
            status = Some(self.status()?);
        }
        if reason.is_none() && !self.unexpected && !self.is_next(Sign::Semicolon) {
            reason = Some(self.expression()?);
        }
        Ok(Statement::Error { keyword, status, reason })
    }

    /// A status: a number may be followed by the reason, but not by a unit.
    fn status(&mut self) -> Parsed<Expression> {
        if self.peek().kind == Kind::Integer {
            let first = self.advance();
            return Ok(Expression { first, last: first, kind: ExpressionKind::Number(None) });
        }
        self.primary()
    }

    /// True if the next operand can only be text after other text: a string, a variable, a
    /// function.
    pub(super) fn begins_text(&self) -> bool {
        let after = self.token_at(self.next + 1);
        match self.peek().kind {
            Kind::Text => true,
            // A single word begins the next statement, after a missing semicolon.
            Kind::Word => after.is(Sign::Dot) || after.is(Sign::ParenOpen) || self.peek_word() == Some("now"),
            _ => false,
        }
    }

    /// `set backend.host = "…";`
    pub(super) fn set_field(&mut self) -> Parsed<Field> {
        self.advance();
        if self.peek_word() != Some("backend") || !self.token_at(self.next + 1).is(Sign::Dot) {
            return Err(self.expected_with("'backend'", Some("an attribute is set so: set backend.host = \"...\";")));
        }
        self.next += 2;
        self.field_after_dot()
    }

    /// `director name policy { … }`
    pub(super) fn director(&mut self) -> Parsed<Director> {
        let keyword = self.advance();
        let name = self.name()?;
        let mut director =
            Director { keyword, name, policy: self.next, fields: Vec::new(), list: None, members: Vec::new() };
        match self.director_body(&mut director) {
            Ok(()) => Ok(director),
            Err(broken) => {
                self.damage(name);
                Err(broken)
            }
        }
    }

    fn director_body(&mut self, director: &mut Director) -> Parsed<()> {
        let policy = self.expect_word()?;
        let policy = self.sources.text(self.token_at(policy));
        let known = self.dialect.directors.iter().find(|(word, _)| *word == policy);
        self.expect(Sign::BraceOpen, "'{'")?;
        let Some(&(_, policy)) = known else {
            // The content is unknown; the checker refuses the director because of its policy.
            return self.skip_block();
        };
        while !self.accept(Sign::BraceClose) {
            if self.accept(Sign::Dot) {
                if policy == DirectorPolicy::Dns && self.peek_word() == Some("list") {
                    let list = self.deeper(Self::director_list)?;
                    if director.list.is_some() {
                        let text = "Field 'list' redefined at:\n";
                        let draft = Draft::new(Code::FieldRepeated).text(text).at(self.token_at(list.name));
                        self.error(list.name, draft);
                    }
                    director.list = Some(list);
                    continue;
                }
                let field = self.field_after_dot()?;
                director.fields.push(field);
                continue;
            }
            if !self.is_next(Sign::BraceOpen) {
                let help = "the members stand in braces: { .backend = name; }";
                return Err(self.expected_with("'{'", Some(help)));
            }
            let open = self.next;
            let fields = self.deeper(Self::fields)?;
            director.members.push(DirectorMember { open, fields });
        }
        Ok(())
    }

    /// `list = { .port = "80"; "192.0.2.0"/24; }`
    fn director_list(&mut self) -> Parsed<DirectorList> {
        let name = self.advance();
        self.expect(Sign::Assign, "'='")?;
        self.expect(Sign::BraceOpen, "'{'")?;
        let mut list = DirectorList { name, fields: Vec::new(), entries: Vec::new() };
        while !self.accept(Sign::BraceClose) {
            if self.accept(Sign::Dot) {
                let field = self.field_after_dot()?;
                list.fields.push(field);
                continue;
            }
            if self.peek().kind != Kind::Text {
                return Err(self.expected_with("CSTR", Some("networks are written so: \"192.0.2.0\"/24;")));
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
            self.expect(Sign::Semicolon, "';'")?;
            list.entries.push(AclEntry { negated: false, optional: false, host, mask });
        }
        self.accept(Sign::Semicolon);
        Ok(list)
    }

    /// Continues after the `}` that ends the current block.
    fn skip_block(&mut self) -> Parsed<()> {
        let mut open = 1usize;
        while open > 0 {
            match self.peek().kind {
                Kind::End => return Err(self.expected("'}'")),
                Kind::Sign(Sign::BraceOpen) => open += 1,
                Kind::Sign(Sign::BraceClose) => open -= 1,
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }

    /// `name = value;`, of an attribute.
    pub(super) fn field_after_dot(&mut self) -> Parsed<Field> {
        let name = self.expect_word()?;
        self.expect(Sign::Assign, "'='")?;
        if self.is_next(Sign::BraceOpen) {
            let inner = self.deeper(Self::fields)?;
            // A semicolon may follow the braces.
            self.accept(Sign::Semicolon);
            return Ok(Field { name, value: FieldValue::Fields(inner) });
        }
        let first = self.next;
        while !matches!(self.peek().kind, Kind::End | Kind::Sign(Sign::Semicolon | Sign::BraceOpen | Sign::BraceClose))
        {
            self.advance();
        }
        // The checker determines the type of the value, and the need for a semicolon.
        let field = Field { name, value: FieldValue::Tokens(first, self.next) };
        self.accept(Sign::Semicolon);
        Ok(field)
    }
}

/// `pass;`, which means the same as `return (pass);`.
fn bare_action(keyword: At) -> Statement {
    let action = ReturnAction { name: keyword, arguments: None, next: keyword + 1 };
    Statement::Return { keyword, action: Some(action) }
}
