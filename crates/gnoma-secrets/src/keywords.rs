//! Finds many words, in any letter case, and long runs of token characters in one pass.
//!
//! For each word three bytes are picked that, with their neighbours, are rare in ordinary text. The pass
//! looks each group of three bytes up in a table that says which bytes may stand around it, and
//! compares words only where they do. Over a thousand words cost hardly more than one; an automaton over
//! as many would be larger than the caches, and slow to build.

use std::ops::Range;

/// Shorter runs of token characters are not told.
pub(crate) const MIN_RUN_BYTES: usize = 20;
/// Shorter words cannot be looked for.
pub(crate) const MIN_WORD_BYTES: usize = 3;
/// Longer words cannot be looked for.
const MAX_WORD_BYTES: usize = 255;

/// Bits of a class of bytes.
const CLASS_BITS: usize = 5;
/// Number of groups of three classes.
const GROUPS: usize = 1 << (3 * CLASS_BITS);

/// Letters by how often text uses them, seldom ones last.
const LETTERS_BY_USE: &[u8; 26] = b"etraionslcdpumfhgbyvwxkjqz";

/// Bit of token characters in [`CLASSES`].
const TOKEN: u8 = 0x80;

/// The class of each byte (letters of either case, digits, three signs, other signs, the rest), and
/// whether it may be part of a token.
static CLASSES: [u8; 256] = class_table();

const fn class_table() -> [u8; 256] {
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
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'~' | b'.') {
            classes[byte as usize] |= TOKEN;
        }
        byte += 1;
    }
    classes
}

/// A word to look for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyword<'w> {
    /// The word, in any letter case.
    pub(crate) word: &'w str,
    /// The value that is reported when the word is found; below 2¹⁶.
    pub(crate) value: usize,
    /// The offset of the group of letters that is rarest in text together with its neighbours.
    pub(crate) rarest: usize,
}

impl<'w> Keyword<'w> {
    /// None if the word is shorter than [`MIN_WORD_BYTES`] or longer than 255 bytes.
    pub(crate) fn new(word: &'w str, value: usize) -> Option<Self> {
        let rarest = rarest_group(word.as_bytes()).filter(|_| word.len() <= MAX_WORD_BYTES)?;
        Some(Self { word, value, rarest })
    }

    /// The group by which it is found. A list in this order is put into a set faster.
    pub(crate) fn group(&self) -> usize {
        let letters = self.word.as_bytes().iter().skip(self.rarest).take(MIN_WORD_BYTES);
        letters.fold(0, |group, &byte| group << CLASS_BITS | byte_class(byte))
    }
}

/// A set of words.
#[derive(Clone, Debug)]
pub(crate) struct Keywords {
    /// For each group of three classes, the classes that may follow, as bits.
    after: Box<[u32; GROUPS]>,
    /// For each group of three classes, the classes that may stand before, as bits.
    before: Box<[u32; GROUPS]>,
    /// For each group, where its words begin; one more for the end.
    starts: Vec<u16>,
    /// All words, by group.
    words: Vec<KeywordHit>,
    /// The letters of the words.
    letters: Vec<u8>,
}

/// A word, and how far behind its start the group ends that gives it away.
#[derive(Clone, Copy, Debug)]
struct KeywordHit {
    value: u16,
    group: u16,
    /// The letters of the group, in lower case: digits and signs of one class are many.
    rarest: [u8; MIN_WORD_BYTES],
    group_end: u8,
    length: u8,
    letters: u32,
}

impl Keywords {
    /// Builds the set from the words.
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = Keyword<'w>>) -> Self {
        let mut set = Self {
            after: Box::new([0; GROUPS]),
            before: Box::new([0; GROUPS]),
            starts: vec![0; GROUPS + 1],
            words: Vec::new(),
            letters: Vec::new(),
        };
        for word in words {
            set.add(word);
        }
        set.words.sort_by_key(|word| word.group);
        for word in &set.words {
            if let Some(count) = set.starts.get_mut(usize::from(word.group) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut set.starts {
            sum += *start;
            *start = sum;
        }
        set
    }

    fn add(&mut self, keyword: Keyword) -> Option<()> {
        let word = keyword.word.as_bytes();
        let group = keyword.group();
        let end = keyword.rarest + MIN_WORD_BYTES;
        let bits = |byte: Option<&u8>| byte.map_or(u32::MAX, |&byte| 1 << byte_class(byte));
        *self.after.get_mut(group)? |= bits(word.get(end));
        *self.before.get_mut(group)? |= bits(byte_before(word, keyword.rarest));
        self.words.push(KeywordHit {
            value: u16::try_from(keyword.value).ok()?,
            group: u16::try_from(group).ok()?,
            rarest: letters_before(word, end)?,
            group_end: u8::try_from(end).ok()?,
            letters: u32::try_from(self.letters.len()).ok()?,
            length: u8::try_from(word.len()).ok()?,
        });
        self.letters.extend_from_slice(word);
        Some(())
    }

    /// Calls `found` with the value and the place of each word in `text`, also overlapping, and adds to
    /// `runs` where runs of [`MIN_RUN_BYTES`] token characters or more begin.
    pub(crate) fn for_each_hit(
        &self,
        text: &[u8],
        runs: &mut Vec<usize>,
        found: &mut dyn FnMut(usize, Range<usize>),
    ) {
        // The classes of the last bytes; what is shifted out is gone.
        let mut classes = 0_u32;
        let mut run = 0;
        for (at, &byte) in text.iter().enumerate() {
            let known = CLASSES[usize::from(byte)];
            let group = classes as usize % GROUPS;
            classes = classes << CLASS_BITS | u32::from(known & !TOKEN);
            if self.after[group] >> (known & !TOKEN) & 1 != 0 && self.may_follow(text, at, group) {
                self.compare_group(text, at, group, found);
            }
            run = (run + 1) * usize::from(known >> 7);
            if run == MIN_RUN_BYTES {
                runs.push(at + 1 - MIN_RUN_BYTES);
            }
        }
        // A word at the very end has nothing behind it.
        self.compare_group(text, text.len(), classes as usize % GROUPS, found);
    }

    /// True if the group that ends at `end` may stand behind the byte before it.
    fn may_follow(&self, text: &[u8], end: usize, group: usize) -> bool {
        let start = end.saturating_sub(MIN_WORD_BYTES);
        byte_before(text, start).is_none_or(|&byte| self.before[group] >> byte_class(byte) & 1 != 0)
    }

    /// Compares the words of the group that ends at `end`. Apart, so that the loop stays small.
    #[cold]
    #[inline(never)]
    fn compare_group(
        &self,
        text: &[u8],
        end: usize,
        group: usize,
        found: &mut dyn FnMut(usize, Range<usize>),
    ) {
        let (Some(&from), Some(&to)) = (self.starts.get(group), self.starts.get(group + 1)) else {
            return;
        };
        let Some(rarest) = letters_before(text, end) else { return };
        for word in self.words.get(usize::from(from)..usize::from(to)).unwrap_or_default() {
            if word.rarest != rarest {
                continue;
            }
            let Some(start) = end.checked_sub(usize::from(word.group_end)) else { continue };
            let place = start..start + usize::from(word.length);
            let letters = word.letters as usize..word.letters as usize + usize::from(word.length);
            let letters = self.letters.get(letters).unwrap_or_default();
            if text.get(place.clone()).is_some_and(|text| text.eq_ignore_ascii_case(letters)) {
                found(usize::from(word.value), place);
            }
        }
    }
}

/// The letters of the group that ends at `end`, in lower case.
fn letters_before(text: &[u8], end: usize) -> Option<[u8; MIN_WORD_BYTES]> {
    let letters = text.get(..end)?.last_chunk::<MIN_WORD_BYTES>()?;
    Some(letters.map(|letter| letter.to_ascii_lowercase()))
}

fn byte_before(text: &[u8], at: usize) -> Option<&u8> {
    at.checked_sub(1).and_then(|before| text.get(before))
}

fn byte_class(byte: u8) -> usize {
    usize::from(CLASSES[usize::from(byte)] & !TOKEN)
}

/// Returns the end of the run of token characters that holds `start`.
pub(crate) fn run_end(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let is_token = |byte: &&u8| CLASSES[usize::from(**byte)] & TOKEN != 0;
    start + rest.iter().take_while(is_token).count()
}

/// Returns the offset of the word's group of letters that is rarest in text together with its neighbours.
fn rarest_group(word: &[u8]) -> Option<usize> {
    let last = word.len().checked_sub(MIN_WORD_BYTES)?;
    (0..=last).max_by_key(|&start| {
        let around = start.saturating_sub(1)..word.len().min(start + MIN_WORD_BYTES + 1);
        word.get(around).unwrap_or_default().iter().map(|&byte| byte_rarity(byte)).sum::<usize>()
    })
}

/// The higher, the seldomer the byte is in text.
fn byte_rarity(byte: u8) -> usize {
    match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => {
            10 + LETTERS_BY_USE.iter().position(|&known| known == letter).unwrap_or(0)
        }
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
        let keywords = words.iter().enumerate();
        Keywords::new(keywords.filter_map(|(index, word)| Keyword::new(word, index))).for_each_hit(
            text,
            &mut Vec::new(),
            &mut |index, place| all.push((index, place.start)),
        );
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn keyword_search_finds_all_words_in_any_case_and_position(
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

    proptest! {
        #[test]
        fn keyword_search_reports_each_long_run_once(text in "([a-z/.~+_-]{0,30}[ =:\"])*[A-Z0-9]{0,25}") {
            let mut runs = Vec::new();
            Keywords::new([]).for_each_hit(text.as_bytes(), &mut runs, &mut |_, _| ());
            let mut expected = Vec::new();
            let mut at = 0;
            for part in text.split([' ', '=', ':', '"']) {
                if part.len() >= MIN_RUN_BYTES {
                    expected.push(at);
                    prop_assert_eq!(run_end(text.as_bytes(), at), at + part.len());
                }
                at += part.len() + 1;
            }
            prop_assert_eq!(runs, expected);
        }
    }

    #[test]
    fn keyword_search_ignores_words_that_are_too_short() {
        assert_eq!(found(&["ab".to_owned(), String::new(), "abc".to_owned()], b"xabc"), [(2, 1)]);
    }
}
