//! Finds pieces of many forms at once.
//!
//! Of each form every group of eight letters is kept by its hash. In a text only each third group is
//! looked up, so that ten letters in a row are found wherever they stand. From such a place the piece
//! is followed in both directions, also over what was put between its parts: the addresses of a dump,
//! the numbers of lines.
//!
//! The forms are secrets themselves and are wiped; growing copies them by hand for that reason.

use std::ops::Range;

use memchr::memmem;
use zeroize::Zeroizing;

use super::forms::FormScript;

/// Letters of a group.
const GROUP: usize = 8;
/// Of so many groups of a text one is looked up.
const STRIDE: usize = 3;
/// So many letters in a row are always found.
pub(super) const SURE_LETTERS: usize = GROUP + STRIDE - 1;
/// Forms in which one group is looked for: values that repeat themselves must not cost more.
const MAX_SAME_GROUP: usize = 16;
/// Letters that may stand between two parts of a piece.
const MAX_GAP_LETTERS: usize = 96;
/// Letters by which the next part of a piece is known.
const JOINT_LETTERS: usize = 4;
/// Parts that one piece is followed over.
const MAX_PARTS: usize = 256;
/// The least number of slots.
const MIN_SLOTS: usize = 1 << 12;

/// The origin of a form in the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormEntry {
    /// The range of its letters in the store.
    start: usize,
    end: usize,
    /// The number of the value.
    pub(super) value: usize,
    pub(super) script: FormScript,
}

/// The forms of all values.
#[derive(Default)]
pub(super) struct FormIndex {
    /// The letters of all forms, one after another.
    store: Zeroizing<Vec<u8>>,
    /// For each letter of the store, where the same slot's next group begins; 0 for none.
    next: Vec<u32>,
    /// For each slot, where its latest group begins, counted from 1.
    heads: Vec<u32>,
    /// One bit for each of many more slots: most texts hold nothing and need no more than this.
    filter: Vec<u64>,
    forms: Vec<FormEntry>,
}

/// A part of a form that stands in a text.
pub(super) struct FormPiece {
    pub(super) form: FormEntry,
    /// The range in the letters of the text, with all that stands between the parts of the piece.
    pub(super) place: Range<usize>,
    /// The range of the form's letters that are covered, from the first to the last.
    pub(super) covered: Range<usize>,
    /// The number of the form's letters that the text has there.
    pub(super) count: usize,
}

impl FormIndex {
    /// Letters of all forms.
    pub(super) fn len(&self) -> usize {
        self.store.len()
    }

    /// Adds a form of the value with this number.
    pub(super) fn add_form(&mut self, value: usize, script: FormScript, letters: &[u8]) {
        if letters.len() < GROUP {
            return;
        }
        let start = self.store.len();
        self.reserve(letters.len());
        self.store.extend_from_slice(letters);
        self.next.resize(self.store.len(), 0);
        self.forms.push(FormEntry { start, end: self.store.len(), value, script });
        if self.heads.len() < 2 * self.store.len() {
            self.rebuild();
        } else {
            self.link_groups(start..self.store.len());
        }
    }

    fn reserve(&mut self, more: usize) {
        if self.store.capacity() - self.store.len() < more {
            let mut larger = Vec::with_capacity(2 * (self.store.len() + more));
            larger.extend_from_slice(&self.store);
            self.store = Zeroizing::new(larger);
        }
    }

    fn rebuild(&mut self) {
        let slots = (4 * self.store.len()).next_power_of_two().max(MIN_SLOTS);
        self.heads = vec![0; slots];
        self.filter = vec![0; slots * FILTER_BITS / 64];
        self.next.fill(0);
        for form in 0..self.forms.len() {
            if let Some(form) = self.forms.get(form) {
                self.link_groups(form.start..form.end);
            }
        }
    }

    /// Enters the groups of the form that stands there, each once: a form that repeats itself would
    /// be followed from each of its places else.
    fn link_groups(&mut self, range: Range<usize>) {
        for at in range.start..=range.end.saturating_sub(GROUP) {
            let Some(group) = group_at(&self.store, at) else { return };
            let (slot, bit) = self.slot_and_bit(group);
            if self.stands_in(group, slot, range.start) {
                continue;
            }
            let Ok(link) = u32::try_from(at + 1) else { return };
            if let (Some(head), Some(next), Some(word)) =
                (self.heads.get_mut(slot), self.next.get_mut(at), self.filter.get_mut(bit / 64))
            {
                *next = std::mem::replace(head, link);
                *word |= 1 << (bit % 64);
            }
        }
    }

    /// True if a group that begins at `from` or later was entered.
    fn stands_in(&self, group: u64, slot: usize, from: usize) -> bool {
        let mut link = self.heads.get(slot).copied().unwrap_or_default();
        for _ in 0..MAX_SAME_GROUP {
            let Some(at) = (link as usize).checked_sub(1).filter(|at| *at >= from) else { break };
            if group_at(&self.store, at) == Some(group) {
                return true;
            }
            link = self.next.get(at).copied().unwrap_or_default();
        }
        false
    }

    /// The slot of a group, and its bit in the filter.
    fn slot_and_bit(&self, group: u64) -> (usize, usize) {
        let hash = group.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = self.heads.len().max(2).trailing_zeros();
        let bit = (hash >> (64 - bits - FILTER_BITS.trailing_zeros())) as usize;
        (bit / FILTER_BITS, bit)
    }

    /// Calls `found` with each piece in the letters of a text; what it says is whether that is one
    /// to report, behind which the search goes on.
    pub(super) fn for_each_piece(&self, letters: &[u8], found: &mut dyn FnMut(&FormPiece) -> bool) {
        if self.heads.is_empty() {
            return;
        }
        let mut at = 0;
        while let Some(group) = group_at(letters, at) {
            let (slot, bit) = self.slot_and_bit(group);
            let word = self.filter.get(bit / 64).copied().unwrap_or_default();
            at = if word >> (bit % 64) & 1 == 0 {
                at + STRIDE
            } else {
                self.follow_chain(letters, at, slot, found).max(at + STRIDE)
            };
        }
    }

    /// Looks at the forms in which a group of the text stands; returns where to go on.
    #[cold]
    fn follow_chain(
        &self,
        letters: &[u8],
        at: usize,
        slot: usize,
        found: &mut dyn FnMut(&FormPiece) -> bool,
    ) -> usize {
        let mut go_on = at;
        let mut link = self.heads.get(slot).copied().unwrap_or_default();
        for _ in 0..MAX_SAME_GROUP {
            let Some(stored) = (link as usize).checked_sub(1) else { break };
            link = self.next.get(stored).copied().unwrap_or_default();
            if group_at(&self.store, stored) != group_at(letters, at) {
                continue;
            }
            let form = self.forms.partition_point(|form| form.start <= stored).checked_sub(1);
            let Some(form) = form.and_then(|form| self.forms.get(form)) else { continue };
            let piece = self.longest_piece(form, letters, at, stored - form.start);
            if found(&piece) {
                return piece.place.end;
            }
            go_on = go_on.max(piece.place.end.saturating_sub(GROUP));
        }
        go_on
    }

    /// The longest piece of the form around a group that stands in both.
    fn longest_piece(
        &self,
        form: &FormEntry,
        letters: &[u8],
        at: usize,
        inside: usize,
    ) -> FormPiece {
        let whole = self.store.get(form.start..form.end).unwrap_or_default();
        let mut piece = FormPiece {
            form: *form,
            place: at..at + GROUP,
            covered: inside..inside + GROUP,
            count: GROUP,
        };
        for _ in 0..MAX_PARTS {
            let run = common_prefix_length(letters, whole, piece.place.end, piece.covered.end);
            piece.place.end += run;
            piece.covered.end += run;
            piece.count += run;
            let Some(gap) = gap_after(letters, whole, &piece) else { break };
            piece.place.end += gap;
        }
        for _ in 0..MAX_PARTS {
            let run = same_before(letters, whole, piece.place.start, piece.covered.start);
            piece.place.start -= run;
            piece.covered.start -= run;
            piece.count += run;
            let Some(gap) = gap_before(letters, whole, &piece) else { break };
            piece.place.start -= gap;
        }
        piece
    }

    /// The letters of a form.
    pub(super) fn letters(&self, form: &FormEntry) -> &[u8] {
        self.store.get(form.start..form.end).unwrap_or_default()
    }
}

/// Bits of the filter for each slot.
const FILTER_BITS: usize = 8;

fn group_at(letters: &[u8], at: usize) -> Option<u64> {
    letters.get(at..).and_then(|rest| rest.first_chunk()).map(|group| u64::from_le_bytes(*group))
}

fn common_prefix_length(text: &[u8], form: &[u8], text_at: usize, form_at: usize) -> usize {
    let pairs = text.get(text_at..).unwrap_or_default().iter();
    let form = form.get(form_at..).unwrap_or_default();
    pairs.zip(form).take_while(|(one, two)| one == two).count()
}

fn same_before(text: &[u8], form: &[u8], text_at: usize, form_at: usize) -> usize {
    let pairs = text.get(..text_at).unwrap_or_default().iter().rev();
    let form = form.get(..form_at).unwrap_or_default().iter().rev();
    pairs.zip(form).take_while(|(one, two)| one == two).count()
}

/// Returns the distance from the end of a piece to its next part.
fn gap_after(text: &[u8], form: &[u8], piece: &FormPiece) -> Option<usize> {
    let rest = form.get(piece.covered.end..).filter(|rest| !rest.is_empty())?;
    let joint = rest.get(..JOINT_LETTERS).unwrap_or(rest);
    let end = text.len().min(piece.place.end + joint_reach(joint));
    memmem::find(text.get(piece.place.end..end)?, joint)
}

/// Returns the distance from the start of a piece to the part before it.
fn gap_before(text: &[u8], form: &[u8], piece: &FormPiece) -> Option<usize> {
    let rest = form.get(..piece.covered.start).filter(|rest| !rest.is_empty())?;
    let joint = rest.get(rest.len().saturating_sub(JOINT_LETTERS)..).unwrap_or(rest);
    let start = piece.place.start.saturating_sub(joint_reach(joint));
    let before = text.get(start..piece.place.start)?;
    memmem::rfind(before, joint).map(|at| before.len() - at - joint.len())
}

/// A joint of few letters stands anywhere: it is looked for nearby only.
fn joint_reach(joint: &[u8]) -> usize {
    MAX_GAP_LETTERS * joint.len().pow(2) / JOINT_LETTERS.pow(2)
}
