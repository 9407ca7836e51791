//! A hierarchical timer wheel over the slots of a shard: the expiry time of each object.
//!
//! Six levels of 64 lists; an entry is in the level of the highest digit (base 64) in which its
//! tick differs from the present one, and moves down as its time approaches. Adding and removing
//! cost a few stores; the lists run through the slots themselves, at eight bytes an object. The
//! wheel handles only numbers: the caller provides the links.

use std::ops::IndexMut;

const LEVELS: usize = 6;
const DIGIT_BITS: u32 = 6;
const LISTS: usize = 1 << DIGIT_BITS;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// In `previous`: the slot is the first of the list whose number is in the low bits.
const FIRST_OF: u32 = 1 << 31;

/// The links that each slot provides for the wheel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Links {
    pub(crate) next: u32,
    pub(crate) previous: u32,
}

impl Links {
    /// In no list.
    pub(crate) const OUT: Links = Links { next: NONE, previous: NONE };
}

/// The heads of the lists. The caller chooses the unit of a tick.
pub(crate) struct Wheel {
    elapsed: u32,
    occupied: [u64; LEVELS],
    heads: [[u32; LISTS]; LEVELS],
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel { elapsed: 0, occupied: [0; LEVELS], heads: [[NONE; LISTS]; LEVELS] }
    }

    fn place(&self, due: u32) -> (usize, usize) {
        let differing = (self.elapsed ^ due) | (LISTS as u32 - 1);
        let level = ((31 - differing.leading_zeros()) / DIGIT_BITS) as usize;
        (level, (due >> (level as u32 * DIGIT_BITS)) as usize % LISTS)
    }

    /// Adds a slot that is in no list. A slot that is already due expires with the next tick.
    pub(crate) fn add(&mut self, links: &mut impl IndexMut<u32, Output = Links>, slot: u32, due: u32) {
        let due = due.max(self.elapsed.saturating_add(1));
        let (level, list) = self.place(due);
        let next = self.heads[level][list];
        links[slot] = Links { next, previous: FIRST_OF | (level * LISTS + list) as u32 };
        if next != NONE {
            links[next].previous = slot;
        }
        self.heads[level][list] = slot;
        self.occupied[level] |= 1 << list;
    }

    /// Takes a slot out of its list; does nothing when it is in none.
    pub(crate) fn remove(&mut self, links: &mut impl IndexMut<u32, Output = Links>, slot: u32) {
        let Links { next, previous } = std::mem::replace(&mut links[slot], Links::OUT);
        if previous == NONE {
            return;
        }
        if next != NONE {
            links[next].previous = previous;
        }
        if previous & FIRST_OF == 0 {
            links[previous].next = next;
            return;
        }
        let (level, list) = ((previous & !FIRST_OF) as usize / LISTS, previous as usize % LISTS);
        self.heads[level][list] = next;
        if next == NONE {
            self.occupied[level] &= !(1 << list);
        }
    }

    /// The next tick at which something is due or must move down: never later than the first due
    /// one.
    pub(crate) fn next_tick(&self) -> Option<u32> {
        self.next_list().map(|(_, _, tick)| tick)
    }

    fn next_list(&self) -> Option<(usize, usize, u32)> {
        (0..LEVELS).find(|level| self.occupied[*level] != 0).and_then(|level| {
            let shift = level as u32 * DIGIT_BITS;
            let digit = (self.elapsed >> shift) as usize % LISTS;
            // In its own level the digit of an entry is above the present one, since all higher
            // digits are the same.
            let above = self.occupied[level] & (u64::MAX << digit);
            let list = if above == 0 { self.occupied[level] } else { above }.trailing_zeros() as usize;
            let low_bits = u32::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
            let tick = (self.elapsed & low_bits) | u32::try_from((list as u64) << shift).ok()?;
            Some((level, list, tick))
        })
    }

    /// Moves time to `now` and takes out the slots that are due, calling `expired` for each;
    /// `due_of` returns the time at which a slot is due, for those that come down a level.
    pub(crate) fn advance<L: IndexMut<u32, Output = Links>>(
        &mut self,
        links: &mut L,
        now: u32,
        mut due_of: impl FnMut(&L, u32) -> u32,
        mut expired: impl FnMut(u32),
    ) {
        while let Some((level, list, tick)) = self.next_list() {
            if tick > now {
                break;
            }
            self.elapsed = self.elapsed.max(tick);
            let mut slot = std::mem::replace(&mut self.heads[level][list], NONE);
            self.occupied[level] &= !(1 << list);
            while slot != NONE {
                let next = std::mem::replace(&mut links[slot], Links::OUT).next;
                let due = due_of(links, slot);
                if due <= self.elapsed {
                    expired(slot);
                } else {
                    self.add(links, slot, due);
                }
                slot = next;
            }
        }
        self.elapsed = self.elapsed.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};
    use std::collections::BTreeMap;

    struct Table(Vec<Links>);

    impl std::ops::Index<u32> for Table {
        type Output = Links;
        fn index(&self, slot: u32) -> &Links {
            &self.0[slot as usize]
        }
    }

    impl IndexMut<u32> for Table {
        fn index_mut(&mut self, slot: u32) -> &mut Links {
            &mut self.0[slot as usize]
        }
    }

    #[test]
    fn every_entry_comes_out_exactly_when_it_is_due_however_time_jumps() {
        for seed in 0..6 {
            let mut random = SmallRng::seed_from_u64(seed);
            let (mut wheel, mut links) = (Wheel::new(), Table(vec![Links::OUT; 500]));
            let mut dues: BTreeMap<u32, u32> = BTreeMap::new();
            let mut now: u32 = if seed % 2 == 0 { 0 } else { u32::MAX - 100_000_000 };
            wheel.advance(&mut links, now, |_, _| 0, |_| panic!("nothing was added"));
            for _ in 0..5000 {
                let slot = random.random_range(0..500);
                if dues.remove(&slot).is_some() {
                    wheel.remove(&mut links, slot);
                } else {
                    let reach = 1u32 << random.random_range(0..27);
                    let due = now.saturating_add(random.random_range(0..=reach));
                    wheel.add(&mut links, slot, due);
                    dues.insert(slot, due.max(now.saturating_add(1)));
                }
                if random.random_bool(0.2) {
                    let jump = 1u32 << random.random_range(0..22);
                    let first = dues.values().min().copied();
                    assert!(wheel.next_tick().is_none() == dues.is_empty());
                    assert!(wheel.next_tick() <= first || first.is_none(), "{:?} {first:?}", wheel.next_tick());
                    now = now.saturating_add(random.random_range(0..jump));
                    let mut came = Vec::new();
                    let known = dues.clone();
                    wheel.advance(&mut links, now, |_, slot| known[&slot], |slot| came.push(slot));
                    let mut expect: Vec<u32> =
                        dues.iter().filter(|entry| *entry.1 <= now).map(|entry| *entry.0).collect();
                    came.sort_unstable();
                    expect.sort_unstable();
                    assert_eq!(came, expect);
                    dues.retain(|_, due| *due > now);
                }
            }
        }
    }
}
