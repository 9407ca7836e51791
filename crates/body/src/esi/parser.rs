//! The parser of pages: a stream of bytes in; marks, notes and addresses of fragments out.
//!
//! ```text
//! Start ─▶ FirstCharacter ─▶ Opaque                    no ESI: the rest is sent unchanged
//!               │
//!               ▼        <other                <!-- or CDATA
//!   ┌───────▶ Text ◀──────────── OtherTag ·  Until its end
//!   │           │ <
//!   │           ▼   <esi: or </esi:
//!   │       Opening ──────────────▶ Element ─▶ InTag ◀──▶ AttributeName · AttributeDelimiter ·
//!   │                                  │         │ >        AttributeValue
//!   └─────────────────────────────── BadTag ◀────┴──▶ action of the element, then Text
//! ```
//!
//! ESI markup is marked as left out, and so is the content of `<esi:remove>`. If a significant word
//! is cut by the end of a piece, its first bytes (at most [`CARRY_BYTES_MAX`]) wait for the next
//! piece, so that the output does not depend on the pieces. Compat: Varnish 7.1.1 given the whole
//! page at once, with its peculiarities: an ESI comment or a CDATA section ends at the first end
//! mark whose first bytes are not part of another beginning of one (`--->` does not end it), a
//! wrong tag leaves its attributes to the next one, the name of an element ends where the known
//! word does. `crates/body/tests/esi_pages.rs` has the results of the stock daemon. Next file:
//! `runs.rs`.

use super::address::{self, NoAddress};
use super::note::NoteLevel::{Error, Remark, Warning};
use super::runs::{Mark, Runs};
use super::syntax::{self, Attribute, Element, Found, Opening};
use surface::limits::{ESI_INCLUDES_MAX, ESI_SRC_BYTES_MAX};

/// Longest incomplete word that waits for the next piece, in bytes.
const CARRY_BYTES_MAX: usize = 9;
/// Number of bytes of a piece that are examined together with the bytes that waited for it.
const BRIDGE_BYTES: usize = 16;

/// Permitted deviations for a page; bits of the parameter `feature`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leniency {
    /// `esi_disable_xml_check`: parse pages that don't begin with `<`.
    pub any_page: bool,
    /// `esi_ignore_other_elements`: look for ESI within other tags.
    pub within_tags: bool,
    /// `esi_remove_bom`: leave out a byte order mark.
    pub byte_order_mark: bool,
    /// `esi_ignore_https`: include fragments at `https://` as if they were at `http://`.
    pub https: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Start,
    FirstCharacter,
    Opaque,
    Text,
    Opening,
    OtherTag,
    Until { end: &'static [u8; 3], at: usize },
    Element,
    InTag,
    BadTag,
    AttributeName,
    SkippedName,
    AttributeDelimiter,
    AttributeValue { delimiter: u8 },
}

/// The tag being read. Compat: all fields except the element survive the tag, if it ends badly.
#[derive(Debug, Default)]
struct Tag {
    is_end: bool,
    element: Option<Element>,
    /// There was a `/` before the end.
    is_empty: bool,
    /// White space was read, so an attribute may begin.
    may_have_attribute: bool,
    /// The attribute being read, unless its value is not needed.
    attribute: Option<Attribute>,
    value: Vec<u8>,
    src: Option<Vec<u8>>,
    continues: bool,
}

/// The state of parsing one page.
#[derive(Debug)]
pub(crate) struct Parser {
    leniency: Leniency,
    /// The target of the request for the page.
    page: Vec<u8>,
    state: State,
    /// A byte order mark begins the page.
    has_mark: bool,
    tag: Tag,
    is_removing: bool,
    /// Within `<!--esi`: number of bytes of its end mark that have been read.
    comment_end_at: Option<usize>,
    includes: usize,
    carry: Vec<u8>,
}

/// Result of parsing some bytes.
enum Advance {
    /// It took this many, and continues.
    Took(usize),
    /// It needs more bytes.
    Waits,
}

use Advance::{Took, Waits};

impl Parser {
    pub(crate) fn new(leniency: Leniency, page: &[u8]) -> Parser {
        Parser {
            leniency,
            page: page.to_vec(),
            state: State::Start,
            has_mark: false,
            tag: Tag::default(),
            is_removing: false,
            comment_end_at: None,
            includes: 0,
            carry: Vec::new(),
        }
    }

    /// The memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.page.capacity() + self.tag.value.capacity() + self.tag.src.as_ref().map_or(0, Vec::capacity)
    }

    /// Parses the next bytes of the page. Returns the number taken: at least one, and fewer than
    /// all if they cause much work.
    pub(crate) fn parse(&mut self, bytes: &[u8], runs: &mut Runs) -> usize {
        let mut taken = 0;
        if !self.carry.is_empty() {
            taken = bytes.len().min(BRIDGE_BYTES);
            let mut bridge = std::mem::take(&mut self.carry);
            let waited = bridge.len();
            bridge.extend_from_slice(&bytes[..taken]);
            let done = self.advance(&bridge, runs, false);
            if taken < BRIDGE_BYTES || done < waited {
                self.carry = bridge.split_off(done);
                return taken;
            }
            taken = done - waited;
        }
        let done = taken + self.advance(&bytes[taken..], runs, true);
        if bytes.len() - done <= CARRY_BYTES_MAX && !runs.is_busy() {
            self.carry.extend_from_slice(&bytes[done..]);
            return bytes.len();
        }
        done
    }

    /// The page has ended.
    pub(crate) fn finish(&mut self, runs: &mut Runs) {
        let is_cut = match self.state {
            State::Start | State::FirstCharacter | State::Opaque | State::Text => false,
            State::Opening
            | State::OtherTag
            | State::Until { .. }
            | State::Element
            | State::InTag
            | State::BadTag
            | State::AttributeName
            | State::SkippedName
            | State::AttributeDelimiter
            | State::AttributeValue { .. } => true,
        };
        if self.state == State::Opening && !self.is_removing {
            runs.split(Mark::Verbatim);
        }
        if is_cut {
            runs.note(Error, "VEP ended inside a tag");
        }
        let rest = std::mem::take(&mut self.carry);
        if !rest.is_empty() {
            let mark = if self.is_in_esi_tag() { Mark::Skip } else { self.of_text() };
            runs.mark(mark, &rest);
        }
    }

    fn is_in_esi_tag(&self) -> bool {
        match self.state {
            State::Element
            | State::InTag
            | State::BadTag
            | State::AttributeName
            | State::SkippedName
            | State::AttributeDelimiter
            | State::AttributeValue { .. } => true,
            State::Start
            | State::FirstCharacter
            | State::Opaque
            | State::Text
            | State::Opening
            | State::OtherTag
            | State::Until { .. } => false,
        }
    }

    /// The mark of text that is not ESI.
    fn of_text(&self) -> Mark {
        if self.is_removing { Mark::Skip } else { Mark::Verbatim }
    }

    /// Continues until it needs more bytes, or, if it may pause, until enough work was done.
    /// Returns the number of bytes taken.
    fn advance(&mut self, bytes: &[u8], runs: &mut Runs, may_pause: bool) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.step(&bytes[taken..], runs) {
                Took(count) => taken += count,
                Waits => break,
            }
            if may_pause && taken > 0 && runs.is_busy() {
                break;
            }
        }
        taken
    }

    /// One step through the diagram above; there is at least one byte.
    fn step(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        match self.state {
            State::Start => self.start(bytes, runs),
            State::FirstCharacter => self.first_character(bytes, runs),
            State::Opaque => {
                runs.mark(Mark::Verbatim, bytes);
                Took(bytes.len())
            }
            State::Text => self.text(bytes, runs),
            State::Opening => self.opening(bytes, runs),
            State::OtherTag => self.other_tag(bytes, runs),
            State::Until { end, at } => self.until(bytes, end, at, runs),
            State::Element => self.element(bytes, runs),
            State::InTag => self.in_tag(bytes, runs),
            State::BadTag => self.bad_tag(bytes, runs),
            State::AttributeName => self.attribute_name(bytes, runs),
            State::SkippedName => self.skipped_name(bytes, runs),
            State::AttributeDelimiter => self.attribute_delimiter(bytes, runs),
            State::AttributeValue { delimiter } => self.attribute_value(bytes, delimiter, runs),
        }
    }

    fn start(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        match syntax::find(syntax::BYTE_ORDER_MARKS, bytes) {
            Found::Open => return Waits,
            Found::Word((), length) if self.leniency.byte_order_mark => {
                runs.mark(Mark::Skip, &bytes[..length]);
                return Took(length);
            }
            found => self.has_mark = found != Found::None,
        }
        self.state = if self.leniency.any_page { State::Text } else { State::FirstCharacter };
        Took(0)
    }

    /// Compat: a page whose first character is not one of XML is left unchanged.
    fn first_character(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let white = bytes.iter().take_while(|byte| syntax::is_white(**byte)).count();
        runs.mark(Mark::Verbatim, &bytes[..white]);
        match bytes.get(white) {
            None => {}
            Some(b'<') => self.state = State::Opening,
            Some(_) => {
                runs.note(
                    Remark,
                    if self.has_mark || bytes[white] == 0xeb {
                        "No ESI processing, first char not '<' but BOM. (See feature esi_remove_bom)"
                    } else {
                        "No ESI processing, first char not '<'. (See feature esi_disable_xml_check)"
                    },
                );
                self.state = State::Opaque;
            }
        }
        Took(white)
    }

    fn text(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        self.tag.is_empty = false;
        self.tag.element = None;
        let Some(at) = self.comment_end_at else {
            let count = memchr::memchr(b'<', bytes);
            runs.mark(self.of_text(), &bytes[..count.unwrap_or(bytes.len())]);
            self.begin_opening(count.is_some());
            return Took(count.unwrap_or(bytes.len()));
        };
        if at > 0 {
            return self.comment_end(bytes, at, runs);
        }
        let count = memchr::memchr2(b'<', b'-', bytes).unwrap_or(bytes.len());
        runs.mark(self.of_text(), &bytes[..count]);
        match bytes.get(count) {
            None => Took(count),
            Some(b'<') => {
                self.begin_opening(true);
                Took(count)
            }
            // The bytes taken so far count even if the rest waits.
            Some(_) if count > 0 => Took(count),
            Some(_) => self.comment_end(bytes, 0, runs),
        }
    }

    fn begin_opening(&mut self, begins: bool) {
        if begins {
            self.state = State::Opening;
        }
    }

    /// Within `<!--esi`, where its end may continue. Compat: a byte that does not fit is skipped
    /// without further examination, and a tag may come between the bytes of the end.
    fn comment_end(&mut self, bytes: &[u8], at: usize, runs: &mut Runs) -> Advance {
        let wanted = &syntax::COMMENT_END[at..];
        let fits = bytes.iter().zip(wanted).take_while(|(byte, wanted)| byte == wanted).count();
        if fits == wanted.len() {
            self.comment_end_at = None;
            runs.found();
            if at == 0 && !self.is_removing {
                runs.split(Mark::Skip);
            }
            runs.mark(Mark::Skip, &bytes[..fits]);
            return Took(fits);
        }
        let Some(next) = bytes.get(fits) else { return Waits };
        let is_tag = *next == b'<';
        let taken = if is_tag { fits } else { fits + 1 };
        runs.mark(self.of_text(), &bytes[..taken]);
        self.comment_end_at = Some(if is_tag { at + fits } else { 0 });
        self.begin_opening(is_tag);
        Took(taken)
    }

    /// At a `<`.
    fn opening(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let (opening, taken) = match syntax::find(syntax::OPENINGS, &bytes[1..]) {
            Found::Open => return Waits,
            Found::None => {
                runs.mark(self.of_text(), &bytes[..1]);
                self.state = State::OtherTag;
                return Took(1);
            }
            Found::Word(opening, length) => (opening, length + 1),
        };
        let is_esi = matches!(opening, Opening::EsiComment | Opening::EsiTag | Opening::EsiEndTag);
        if is_esi && bytes.len() == taken {
            // Compat: a tag cut off here is not ESI.
            return Waits;
        }
        if is_esi && runs.is_nearly_full() {
            runs.note(Error, "ESI 1.0 Too much of it: the rest of the page is not processed");
            return self.give_up();
        }
        if is_esi && !self.is_removing {
            runs.split(Mark::Skip);
        }
        let word = &bytes[..taken];
        match opening {
            Opening::EsiComment => {
                if self.is_removing {
                    runs.note(Error, "ESI 1.0 Nested <!--esi element in <esi:remove>");
                }
                runs.mark(Mark::Skip, word);
                self.comment_end_at = Some(0);
                self.state = State::Text;
            }
            Opening::EmptyComment => {
                runs.mark(self.of_text(), word);
                self.state = State::Text;
            }
            Opening::Comment => {
                runs.mark(self.of_text(), word);
                self.comment_end_at = None;
                self.state = State::Until { end: syntax::COMMENT_END, at: 0 };
            }
            Opening::Cdata => {
                runs.mark(self.of_text(), word);
                self.state = State::Until { end: syntax::CDATA_END, at: 0 };
            }
            Opening::EsiTag | Opening::EsiEndTag => {
                runs.found();
                runs.mark(Mark::Skip, word);
                self.tag.is_end = opening == Opening::EsiEndTag;
                self.state = State::Element;
            }
        }
        Took(taken)
    }

    /// Leaves the rest of the page unchanged.
    fn give_up(&mut self) -> Advance {
        self.state = State::Opaque;
        self.is_removing = false;
        Took(0)
    }

    /// Within a tag that is not ESI.
    fn other_tag(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let end = if self.leniency.within_tags { Some(0) } else { memchr::memchr(b'>', bytes) };
        let taken = end.map_or(bytes.len(), |end| end + 1);
        runs.mark(self.of_text(), &bytes[..taken]);
        if end.is_some() {
            self.state = State::Text;
        }
        Took(taken)
    }

    /// Within a comment or a CDATA section.
    fn until(&mut self, bytes: &[u8], end: &'static [u8; 3], mut at: usize, runs: &mut Runs) -> Advance {
        let mut taken = 0;
        while taken < bytes.len() && at < end.len() {
            if at == 0 {
                taken += memchr::memchr(end[0], &bytes[taken..]).unwrap_or(bytes.len() - taken);
            }
            if taken < bytes.len() {
                at = if bytes[taken] == end[at] { at + 1 } else { 0 };
                taken += 1;
            }
        }
        runs.mark(self.of_text(), &bytes[..taken]);
        self.state = if at == end.len() { State::Text } else { State::Until { end, at } };
        Took(taken)
    }

    /// At the name of an element of ESI.
    fn element(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let (element, taken) = match syntax::find(syntax::ELEMENTS, bytes) {
            Found::Open => return Waits,
            Found::None => {
                runs.note(Error, "ESI 1.0 <esi:bogus> element");
                self.state = State::BadTag;
                return Took(0);
            }
            // Compat: an element cut off here is reported once.
            Found::Word(_, length) if bytes.len() == length => return Waits,
            Found::Word(element, length) => (element, length),
        };
        runs.mark(Mark::Skip, &bytes[..taken]);
        let (nested, end) = match element {
            Element::Remove => (None, None),
            Element::Include => (
                Some("ESI 1.0 <esi:include> element nested in <esi:remove>"),
                Some("ESI 1.0 </esi:include> illegal end-tag"),
            ),
            Element::Comment => (
                Some("ESI 1.0 <esi:comment> element nested in <esi:remove>"),
                Some("ESI 1.0 </esi:comment> illegal end-tag"),
            ),
        };
        let wrong = nested.filter(|_| self.is_removing).or(end.filter(|_| self.tag.is_end));
        self.state = if wrong.is_some() { State::BadTag } else { State::InTag };
        if let Some(text) = wrong {
            runs.note(Error, text);
        }
        self.tag.element = Some(element);
        Took(taken)
    }

    fn in_tag(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let byte = bytes[0];
        match byte {
            b'>' => {
                runs.mark(Mark::Skip, &bytes[..1]);
                self.state = State::Text;
                self.end_of_tag(runs);
            }
            _ if self.tag.is_empty => return self.bad(runs, "XML 1.0 '>' does not follow '/' in tag"),
            b'/' => {
                (self.tag.is_empty, self.tag.may_have_attribute) = (true, false);
                runs.mark(Mark::Skip, &bytes[..1]);
            }
            _ if syntax::is_white(byte) => {
                self.tag.may_have_attribute = true;
                runs.mark(Mark::Skip, &bytes[..1]);
            }
            _ if self.tag.may_have_attribute && syntax::starts_name(byte) => {
                let is_read = self.tag.element == Some(Element::Include);
                self.state = if is_read { State::AttributeName } else { State::SkippedName };
                return Took(0);
            }
            _ => return self.bad(runs, "XML 1.0 Illegal attribute start char"),
        }
        Took(1)
    }

    /// The tag is wrong: the rest of it is skipped.
    fn bad(&mut self, runs: &mut Runs, text: &'static str) -> Advance {
        runs.note(Error, text);
        self.state = State::BadTag;
        self.tag.value.clear();
        Took(0)
    }

    fn bad_tag(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let end = memchr::memchr(b'>', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        runs.mark(Mark::Skip, &bytes[..taken]);
        if end.is_some() {
            self.state = State::Text;
        }
        Took(taken)
    }

    /// At the first character of an attribute's name, in `<esi:include>`.
    fn attribute_name(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        match syntax::find(syntax::ATTRIBUTES, bytes) {
            Found::Open => Waits,
            Found::None => {
                self.state = State::SkippedName;
                Took(0)
            }
            Found::Word(attribute, length) => {
                runs.mark(Mark::Skip, &bytes[..length]);
                self.tag.attribute = Some(attribute);
                self.state = State::AttributeDelimiter;
                Took(length)
            }
        }
    }

    /// In the name of an attribute that is not needed.
    fn skipped_name(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        self.tag.attribute = None;
        let name = bytes.iter().take_while(|byte| syntax::continues_name(**byte)).count();
        runs.mark(Mark::Skip, &bytes[..name]);
        match bytes.get(name) {
            None => {}
            Some(b'=') => {
                runs.mark(Mark::Skip, b"=");
                self.state = State::AttributeDelimiter;
                return Took(name + 1);
            }
            Some(byte) if matches!(byte, b'>' | b'/') || syntax::is_blank(*byte) => self.state = State::InTag,
            Some(_) => _ = self.bad(runs, "XML 1.0 Illegal attr char"),
        }
        Took(name)
    }

    fn attribute_delimiter(&mut self, bytes: &[u8], runs: &mut Runs) -> Advance {
        let byte = bytes[0];
        self.tag.value.clear();
        if syntax::is_blank(byte) {
            return self.bad(runs, "XML 1.0 Illegal attribute delimiter");
        }
        let is_quoted = matches!(byte, b'"' | b'\'');
        self.state = State::AttributeValue { delimiter: if is_quoted { byte } else { b' ' } };
        if is_quoted {
            runs.mark(Mark::Skip, &bytes[..1]);
        }
        Took(usize::from(is_quoted))
    }

    fn attribute_value(&mut self, bytes: &[u8], delimiter: u8, runs: &mut Runs) -> Advance {
        let is_end = |byte: &u8| *byte == b'>' || *byte == delimiter || (delimiter == b' ' && syntax::is_blank(*byte));
        let count = bytes.iter().position(is_end);
        let value = &bytes[..count.unwrap_or(bytes.len())];
        if self.tag.attribute.is_some() {
            let room = (ESI_SRC_BYTES_MAX + 1).saturating_sub(self.tag.value.len());
            self.tag.value.extend_from_slice(&value[..value.len().min(room)]);
        }
        runs.mark(Mark::Skip, value);
        let Some(count) = count else { return Took(value.len()) };
        if bytes[count] == b'>' {
            _ = self.bad(runs, "XML 1.0 Missing end attribute delimiter");
            return Took(count);
        }
        runs.mark(Mark::Skip, &bytes[count..=count]);
        self.state = State::InTag;
        self.end_of_attribute(runs);
        Took(count + 1)
    }

    /// The value of an attribute is complete.
    fn end_of_attribute(&mut self, runs: &mut Runs) {
        let value = std::mem::take(&mut self.tag.value);
        match self.tag.attribute.take() {
            None => {}
            Some(Attribute::OnError) => self.tag.continues = syntax::before_nul(&value) == b"continue",
            Some(Attribute::Src) => {
                let wrong = if self.tag.src.take().is_some() {
                    "ESI 1.0 <esi:include> has multiple src= attributes"
                } else if syntax::before_nul(&value).iter().any(|byte| syntax::is_white(*byte)) {
                    "ESI 1.0 <esi:include> has whitespace in src= attribute"
                } else if syntax::before_nul(&value).iter().any(u8::is_ascii_control) {
                    CONTROL
                } else if value.len() > ESI_SRC_BYTES_MAX {
                    TOO_LONG
                } else {
                    self.tag.src = Some(value);
                    return;
                };
                _ = self.bad(runs, wrong);
            }
        }
    }

    /// Executes the element.
    fn end_of_tag(&mut self, runs: &mut Runs) {
        match self.tag.element {
            Some(Element::Include) => self.include(runs),
            Some(Element::Remove) => self.remove(runs),
            Some(Element::Comment) if self.tag.is_empty => {}
            Some(Element::Comment) => runs.note(Error, "ESI 1.0 <esi:comment> needs final '/'"),
            None => {}
        }
    }

    fn remove(&mut self, runs: &mut Runs) {
        if self.tag.is_empty {
            runs.note(Error, "ESI 1.0 <esi:remove/> not legal");
        } else if self.is_removing && !self.tag.is_end {
            runs.note(Error, "ESI 1.0 <esi:remove> already open");
        } else if !self.is_removing && self.tag.is_end {
            runs.note(Error, "ESI 1.0 <esi:remove> not open");
        } else {
            self.is_removing = !self.tag.is_end;
        }
    }

    fn include(&mut self, runs: &mut Runs) {
        if !self.tag.is_empty {
            runs.note(Warning, "ESI 1.0 <esi:include> lacks final '/'");
        }
        let Some(src) = self.tag.src.take() else {
            runs.note(Error, "ESI 1.0 <esi:include> lacks src attr");
            return;
        };
        let treated = "ESI 1.0 <esi:include> https:// treated as http://";
        let address = match address::resolve(&src, &self.page, self.leniency.https) {
            Ok(address) => address,
            Err(NoAddress::Https) => return runs.note(Warning, "ESI 1.0 <esi:include> with https:// ignored"),
            Err(NoAddress::TooLong) => return runs.note(Error, TOO_LONG),
            Err(NoAddress::Invalid { was_https }) => {
                if was_https {
                    runs.note(Warning, treated);
                }
                return runs.note(Error, "ESI 1.0 <esi:include> invalid src= URL");
            }
        };
        if address.was_https {
            runs.note(Warning, treated);
        }
        if self.includes == ESI_INCLUDES_MAX || !runs.has_room(&address) {
            runs.note(Error, "ESI 1.0 Too many <esi:include>: the rest of the page is not processed");
            _ = self.give_up();
            return;
        }
        self.includes += 1;
        runs.include(&address, std::mem::take(&mut self.tag.continues));
    }
}

/// Not in Varnish, which writes such characters into the request and its Host, where no client
/// could have sent them.
const CONTROL: &str = "ESI 1.0 <esi:include> has control character in src= attribute";
/// Not in Varnish, which has no limit.
const TOO_LONG: &str = "ESI 1.0 <esi:include> has too long src= attribute";
