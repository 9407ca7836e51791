//! The plan of a page: the bytes of the stored body that are sent, those that are left out, and the
//! positions of fragments.
//!
//! ```text
//! plan         version (1 byte)  flags (1 byte: 1 = the body is gzip)  instruction*
//! verbatim     1  bytes                                in a plain body
//!              1  bytes  plain_bytes  crc32 (4 bytes)  in a gzipped one
//! skip         2  bytes
//! include      3  length  target             flags of the kind byte: 4 = onerror="continue",
//!                                            8 = a host precedes the target (length, bytes)
//! ```
//! Numbers are in groups of seven bits, the lowest first, and 128 is set in all groups but the
//! last.
//!
//! *Invariants:* the bytes of the instructions add up to the length of the body; neither verbatim
//! pieces nor skips are empty; no two verbatim pieces, and no two skips, follow one another
//! directly. A plan is stored with an object that may be older than this program: data that
//! violates any of this is not a plan.

use surface::limits::{ESI_INCLUDES_MAX, ESI_PLAN_BYTES_MAX, ESI_SRC_BYTES_MAX};

const VERSION: u8 = 1;
const GZIPPED: u8 = 1;
const VERBATIM: u8 = 1;
const SKIP: u8 = 2;
const INCLUDE: u8 = 3;
const CONTINUES: u8 = 4;
const HAS_HOST: u8 = 8;

/// Longest address of a fragment, in bytes: its base and its own text.
const ADDRESS_BYTES_MAX: usize = 2 * ESI_SRC_BYTES_MAX;

/// The next action while sending a stored page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction<'a> {
    /// Send the next bytes of the stored body.
    Verbatim {
        /// Number of bytes, at least one.
        bytes: u64,
        /// The checksum of the decompressed bytes; 0 in a plain body.
        crc32: u32,
        /// Number of bytes decompressed; the same number in a plain body.
        plain_bytes: u64,
    },
    /// Leave out the next bytes of the stored body.
    Skip {
        /// Number of bytes, at least one.
        bytes: u64,
    },
    /// Send a fragment.
    Include {
        /// The host to request it from, instead of the page's; it may be empty.
        host: Option<&'a [u8]>,
        /// The target of the request, as written in the page (not validated), or relative to the
        /// page's.
        target: &'a [u8],
        /// `onerror="continue"`: the page continues if the fragment fails.
        continues: bool,
    },
}

/// A validated plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan<'a> {
    is_gzipped: bool,
    body_bytes: u64,
    instructions: &'a [u8],
}

impl<'a> Plan<'a> {
    /// Reads a plan, and checks all of it. `None` if it is damaged, longer than
    /// [`ESI_PLAN_BYTES_MAX`], or of another version.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Plan<'a>> {
        let [VERSION, flags @ (0 | GZIPPED), instructions @ ..] = bytes else { return None };
        if bytes.len() > ESI_PLAN_BYTES_MAX {
            return None;
        }
        let mut plan = Plan { is_gzipped: *flags == GZIPPED, body_bytes: 0, instructions };
        let mut reader = plan.instructions();
        let (mut includes, mut last) = (0, None);
        while !reader.rest.is_empty() {
            let instruction = reader.read()?;
            let (kind, bytes) = match instruction {
                Instruction::Verbatim { bytes, .. } => (VERBATIM, bytes),
                Instruction::Skip { bytes } => (SKIP, bytes),
                Instruction::Include { .. } => (INCLUDE, 0),
            };
            includes += usize::from(kind == INCLUDE);
            if includes > ESI_INCLUDES_MAX || (kind != INCLUDE && (bytes == 0 || last == Some(kind))) {
                return None;
            }
            last = Some(kind);
            plan.body_bytes = plan.body_bytes.checked_add(bytes)?;
        }
        Some(plan)
    }

    /// True if the stored body is gzip: the client then gets one gzip stream made of the verbatim
    /// pieces and the fragments.
    #[must_use]
    pub fn is_gzipped(&self) -> bool {
        self.is_gzipped
    }

    /// Length of the stored body that the plan belongs to.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The instructions in their order.
    #[must_use]
    pub fn instructions(&self) -> Instructions<'a> {
        Instructions { is_gzipped: self.is_gzipped, rest: self.instructions }
    }
}

/// The instructions of a plan, one after the other.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    is_gzipped: bool,
    rest: &'a [u8],
}

impl<'a> Instructions<'a> {
    /// Continues where another walk through the same plan had `left_bytes` left. `plan` is one that
    /// [`Plan::decode`] has accepted.
    #[must_use]
    pub fn resumed(plan: &'a [u8], left_bytes: usize) -> Instructions<'a> {
        let rest = &plan[plan.len().saturating_sub(left_bytes)..];
        Instructions { is_gzipped: plan.get(1) == Some(&GZIPPED), rest }
    }

    /// Number of bytes of the plan that are left.
    #[must_use]
    pub fn left_bytes(&self) -> usize {
        self.rest.len()
    }

    fn read(&mut self) -> Option<Instruction<'a>> {
        let kind = self.take(1)?[0];
        let (continues, has_host) = (kind & CONTINUES != 0, kind & HAS_HOST != 0);
        match kind {
            VERBATIM if self.is_gzipped => {
                let (bytes, plain_bytes) = (self.number()?, self.number()?);
                let crc32 = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
                Some(Instruction::Verbatim { bytes, crc32, plain_bytes })
            }
            VERBATIM => {
                let bytes = self.number()?;
                Some(Instruction::Verbatim { bytes, crc32: 0, plain_bytes: bytes })
            }
            SKIP => Some(Instruction::Skip { bytes: self.number()? }),
            _ if kind & !(CONTINUES | HAS_HOST) == INCLUDE => {
                let host = if has_host { Some(self.text()?) } else { None };
                Some(Instruction::Include { host, target: self.text()?, continues })
            }
            _ => None,
        }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok().filter(|length| *length <= ADDRESS_BYTES_MAX)?;
        self.take(length)
    }

    /// A number in its shortest form: the encoding of a plan is unique.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Instruction<'a>;

    fn next(&mut self) -> Option<Instruction<'a>> {
        if self.rest.is_empty() { None } else { self.read() }
    }
}

/// Writes a plan.
#[derive(Clone, Debug)]
pub struct PlanWriter {
    bytes: Vec<u8>,
    is_gzipped: bool,
}

impl PlanWriter {
    /// A plan without instructions.
    #[must_use]
    pub fn new(is_gzipped: bool) -> PlanWriter {
        PlanWriter { bytes: vec![VERSION, if is_gzipped { GZIPPED } else { 0 }], is_gzipped }
    }

    /// Length of the plan so far, in bytes.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory in use, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds an instruction. In a plain body `crc32` and `plain_bytes` of verbatim pieces are left
    /// out.
    pub fn push(&mut self, instruction: Instruction<'_>) {
        match instruction {
            Instruction::Verbatim { bytes, crc32, plain_bytes } => {
                self.bytes.push(VERBATIM);
                self.number(bytes);
                if self.is_gzipped {
                    self.number(plain_bytes);
                    self.bytes.extend_from_slice(&crc32.to_le_bytes());
                }
            }
            Instruction::Skip { bytes } => {
                self.bytes.push(SKIP);
                self.number(bytes);
            }
            Instruction::Include { host, target, continues } => {
                let continues = if continues { CONTINUES } else { 0 };
                self.bytes.push(INCLUDE | continues | host.map_or(0, |_| HAS_HOST));
                for text in host.iter().chain([&target]) {
                    self.number(text.len() as u64);
                    self.bytes.extend_from_slice(text);
                }
            }
        }
    }

    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// The encoded plan.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
