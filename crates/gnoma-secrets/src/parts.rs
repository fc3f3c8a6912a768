//! A few words, looked for inside of short values, in any letter case.
//!
//! For long texts and many words there is `keywords`, whose tables cost more to build.

/// Words, told apart by their first byte.
pub(crate) struct Parts<const N: usize> {
    words: [&'static [u8]; N],
    /// For each byte, which words it begins in either letter case, as bits.
    begins: [u32; 256],
}

impl<const N: usize> Parts<N> {
    /// At most 32 words, in lower case and not empty.
    pub(crate) const fn new(words: [&'static [u8]; N]) -> Self {
        assert!(N <= 32);
        let mut begins = [0; 256];
        let mut at = 0;
        while at < N {
            let first = words[at][0];
            begins[first as usize] |= 1 << at;
            if first.is_ascii_lowercase() {
                begins[first.to_ascii_uppercase() as usize] |= 1 << at;
            }
            at += 1;
        }
        Self { words, begins }
    }

    /// True if one of the words occurs in `value`.
    pub(crate) fn stand_in(&self, value: &[u8]) -> bool {
        value.iter().enumerate().any(|(at, byte)| {
            let begun = self.begins[usize::from(*byte)];
            begun != 0 && self.begins_with_any(begun, value.get(at..).unwrap_or_default())
        })
    }

    /// True if `text` begins with one of the words that the bits select.
    fn begins_with_any(&self, mut begun: u32, text: &[u8]) -> bool {
        while begun != 0 {
            let word = self.words.get(begun.trailing_zeros() as usize).copied().unwrap_or_default();
            if text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)) {
                return true;
            }
            begun &= begun - 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_parts_match_anywhere_in_any_case() {
        static WORDS: Parts<3> = Parts::new([b"key", b"_x", b"kept"]);
        for value in ["key", "aKEYb", "a_X", "kkKept", "k_x"] {
            assert!(WORDS.stand_in(value.as_bytes()), "{value}");
        }
        for value in ["", "ke", "kep", "_", "x_", "k-e-y"] {
            assert!(!WORDS.stand_in(value.as_bytes()), "{value}");
        }
    }
}
