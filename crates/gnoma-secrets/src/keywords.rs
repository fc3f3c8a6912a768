//! Finds many words in one pass, in any letter case.
//!
//! For each word three bytes are picked that, with their neighbours, are rare in ordinary text. The pass
//! looks each group of three bytes up in a table that says which bytes may stand around it, and
//! compares words only where they do. Over a thousand words cost hardly more than one; an automaton over
//! as many would be larger than the caches, and slow to build.

use std::ops::Range;

/// Shorter words cannot be looked for.
pub(crate) const MIN_WORD_BYTES: usize = 3;

/// Bits of a class of bytes.
const CLASS_BITS: usize = 5;
/// Number of groups of three classes.
const GROUPS: usize = 1 << (3 * CLASS_BITS);

/// Letters by how often text uses them, seldom ones last.
const LETTERS_BY_USE: &[u8; 26] = b"etraionslcdpumfhgbyvwxkjqz";

/// The class of each byte: letters of either case, digits, three signs, other signs, the rest.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' => byte - b'a' + 1,
            b'A'..=b'Z' => byte - b'A' + 1,
            b'0'..=b'9' => 27,
            b'_' => 28,
            b'-' => 29,
            b'.' | b':' | b'/' => 30,
            b' '..=b'~' => 31,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

/// A set of words.
#[derive(Clone, Debug)]
pub(crate) struct Keywords {
    /// For each group of three classes, the classes that may follow, as bits.
    after: Box<[u32; GROUPS]>,
    /// The same for the classes that may stand before.
    before: Box<[u32; GROUPS]>,
    /// For each group, where its words begin; one more for the end.
    starts: Vec<u16>,
    /// All words, by group.
    words: Vec<Word>,
    /// The letters of the words.
    letters: Vec<u8>,
}

/// A word, and how far behind its start the group ends that gives it away.
#[derive(Clone, Copy, Debug)]
struct Word {
    index: u16,
    group: u16,
    group_end: u8,
    letters: u32,
    length: u8,
}

impl Keywords {
    /// Takes the words. Those shorter than [`MIN_WORD_BYTES`] or longer than 255 bytes are never found.
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut set = Self {
            after: Box::new([0; GROUPS]),
            before: Box::new([0; GROUPS]),
            starts: Vec::with_capacity(GROUPS + 1),
            words: Vec::new(),
            letters: Vec::new(),
        };
        for (index, word) in words.into_iter().enumerate() {
            set.add(index, &word.to_ascii_lowercase());
        }
        set.words.sort_by_key(|word| (word.group, word.index));
        let mut at = 0;
        for group in 0..=GROUPS {
            let own = set.words.iter().skip(at).take_while(|word| usize::from(word.group) < group);
            at += own.count();
            set.starts.push(u16::try_from(at).unwrap_or(u16::MAX));
        }
        set
    }

    fn add(&mut self, index: usize, word: &str) -> Option<()> {
        let word = word.as_bytes();
        let start = rarest_group(word)?;
        let end = start + MIN_WORD_BYTES;
        let classes = word.get(start..end)?.iter().map(|&byte| class(byte));
        let group = classes.fold(0, |group, class| group << CLASS_BITS | class);
        let bits = |byte: Option<&u8>| byte.map_or(u32::MAX, |&byte| 1 << class(byte));
        *self.after.get_mut(group)? |= bits(word.get(end));
        *self.before.get_mut(group)? |= bits(byte_before(word, start));
        self.words.push(Word {
            index: u16::try_from(index).ok()?,
            group: u16::try_from(group).ok()?,
            group_end: u8::try_from(end).ok()?,
            letters: u32::try_from(self.letters.len()).ok()?,
            length: u8::try_from(word.len()).ok()?,
        });
        self.letters.extend_from_slice(word);
        Some(())
    }

    /// Calls `found` with the index and the place of each word in `text`, also overlapping.
    pub(crate) fn each(&self, text: &[u8], found: &mut dyn FnMut(usize, Range<usize>)) {
        // Classes of the bytes before: apart, so that one byte need not wait for the one before.
        let (mut first, mut second, mut third) = (0, 0, 0);
        for (at, &byte) in text.iter().enumerate() {
            let next = class(byte);
            let group = group_of(first, second, third);
            if self.after[group] >> next & 1 != 0 && self.may_follow(text, at, group) {
                self.compare(text, at, group, found);
            }
            (first, second, third) = (second, third, next);
        }
        // A word at the very end has nothing behind it.
        self.compare(text, text.len(), group_of(first, second, third), found);
    }

    /// Whether the group that ends at `end` may stand behind the byte before it.
    fn may_follow(&self, text: &[u8], end: usize, group: usize) -> bool {
        let start = end.saturating_sub(MIN_WORD_BYTES);
        byte_before(text, start).is_none_or(|&byte| self.before[group] >> class(byte) & 1 != 0)
    }

    /// Compares the words of the group that ends at `end`. Apart, so that the loop stays small.
    #[cold]
    #[inline(never)]
    fn compare(
        &self,
        text: &[u8],
        end: usize,
        group: usize,
        found: &mut dyn FnMut(usize, Range<usize>),
    ) {
        let (Some(&from), Some(&to)) = (self.starts.get(group), self.starts.get(group + 1)) else {
            return;
        };
        for word in self.words.get(usize::from(from)..usize::from(to)).unwrap_or_default() {
            let Some(start) = end.checked_sub(usize::from(word.group_end)) else { continue };
            let place = start..start + usize::from(word.length);
            let letters = word.letters as usize..word.letters as usize + usize::from(word.length);
            let letters = self.letters.get(letters).unwrap_or_default();
            if text.get(place.clone()).is_some_and(|text| text.eq_ignore_ascii_case(letters)) {
                found(usize::from(word.index), place);
            }
        }
    }
}

fn group_of(first: usize, second: usize, third: usize) -> usize {
    (first << (2 * CLASS_BITS) | second << CLASS_BITS | third) % GROUPS
}

fn byte_before(text: &[u8], at: usize) -> Option<&u8> {
    at.checked_sub(1).and_then(|before| text.get(before))
}

fn class(byte: u8) -> usize {
    usize::from(CLASSES[usize::from(byte)])
}

/// Where the group of the word begins that is rarest in text together with its neighbours.
fn rarest_group(word: &[u8]) -> Option<usize> {
    let last = word.len().checked_sub(MIN_WORD_BYTES)?;
    (0..=last).max_by_key(|&start| {
        let around = start.saturating_sub(1)..word.len().min(start + MIN_WORD_BYTES + 1);
        word.get(around).unwrap_or_default().iter().map(|&byte| rarity(byte)).sum::<usize>()
    })
}

/// The higher, the seldomer the byte is in text.
fn rarity(byte: u8) -> usize {
    match byte {
        b'a'..=b'z' => 10 + LETTERS_BY_USE.iter().position(|&letter| letter == byte).unwrap_or(0),
        b'0'..=b'9' => 30,
        b'_' => 26,
        b'-' => 32,
        b'.' | b':' | b'/' => 12,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(words: &[String], text: &[u8]) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        Keywords::new(words.iter().map(String::as_str))
            .each(text, &mut |index, place| all.push((index, place.start)));
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn all_words_are_found_wherever_they_stand(
            words in prop::collection::vec("[ab_1-]{3,6}|[a-d]{3}", 0..20),
            text in "[abcdABCD_1 -]{0,80}",
        ) {
            let text = text.as_bytes();
            let mut expected = Vec::new();
            for (index, word) in words.iter().enumerate() {
                for start in 0..text.len() {
                    let here = text.get(start..start + word.len());
                    if here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes())) {
                        expected.push((index, start));
                    }
                }
            }
            prop_assert_eq!(found(&words, text), expected);
        }
    }

    #[test]
    fn words_that_are_too_short_are_left_out() {
        assert_eq!(found(&["ab".to_owned(), String::new(), "abc".to_owned()], b"xabc"), [(2, 1)]);
    }
}
