//! Words as bytes, for a pipe between processes that trust each other. Each word has its length before
//! it, so that none, whatever it holds, can be taken for two; all together have theirs, so that nobody
//! takes a part for the whole.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

/// Bytes that tell a length.
pub(crate) const LENGTH_BYTES: usize = 4;
/// Most bytes after the first length.
const MAX_BYTES: usize = 1 << 20;

/// The words with everything a reader needs. `None` when they are too long.
pub(crate) fn pack_words<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; LENGTH_BYTES];
    for word in words {
        let word = word.as_ref().as_bytes();
        bytes.extend(u32::try_from(word.len()).ok()?.to_le_bytes());
        bytes.extend(word);
    }
    let length = bytes.len() - LENGTH_BYTES;
    let stated = u32::try_from(length).ok().filter(|_| length <= MAX_BYTES)?;
    bytes.get_mut(..LENGTH_BYTES)?.copy_from_slice(&stated.to_le_bytes());
    Some(bytes)
}

/// Returns the number of bytes that follow the first length; `None` if those would be too many.
pub(crate) fn decode_length(stated: [u8; LENGTH_BYTES]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(stated)).ok().filter(|length| *length <= MAX_BYTES)
}

/// The words in what follows the first length. `None` when they do not fill it.
pub(crate) fn unpack_words(mut bytes: &[u8]) -> Option<Vec<OsString>> {
    let mut words = Vec::new();
    while !bytes.is_empty() {
        let (stated, rest) = bytes.split_first_chunk()?;
        let (word, rest) = rest.split_at_checked(decode_length(*stated)?)?;
        words.push(OsString::from_vec(word.to_vec()));
        bytes = rest;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn packed_words_round_trip(words in vec(vec(any::<u8>(), 0..9), 0..9)) {
            let words: Vec<_> = words.into_iter().map(OsString::from_vec).collect();
            let bytes = pack_words(&words).unwrap();
            let (stated, rest) = bytes.split_first_chunk().unwrap();
            prop_assert_eq!(decode_length(*stated), Some(rest.len()));
            prop_assert_eq!(unpack_words(rest), Some(words));
        }

        #[test]
        fn unpack_words_accepts_only_canonical_bytes(bytes in vec(any::<u8>(), 0..40)) {
            if let Some(words) = unpack_words(&bytes) {
                prop_assert_eq!(pack_words(&words).unwrap().split_off(LENGTH_BYTES), bytes);
            }
        }
    }

    #[test]
    fn packed_words_above_the_byte_limit_are_rejected() {
        assert_eq!(pack_words(["x".repeat(MAX_BYTES)]), None);
        assert_eq!(decode_length([0xFF; LENGTH_BYTES]), None);
    }
}
