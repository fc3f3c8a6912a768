//! Truncates texts so that a secret in them stays recognisable.
//!
//! What looks for secrets knows them by their whole: of a token that was cut in two both parts pass.
//! Whatever is cut before it was looked through is therefore cut between words.

/// A longer word is cut like anything else. Tokens that are longer say what they are where they begin.
const MAX_WORD_BYTES: usize = 512;

/// The longest beginning of `text` of at most `most` bytes that ends between two words.
#[must_use]
pub fn word_prefix(text: &str, most: usize) -> &str {
    let (kept, rest) = text.split_at(text.floor_char_boundary(most));
    if rest.starts_with(is_word_char) { before_last_word(kept) } else { kept }
}

/// The longest end of `text` of at most `most` bytes that begins between two words.
#[must_use]
pub fn word_suffix(text: &str, most: usize) -> &str {
    let (before, kept) = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(most)));
    if before.ends_with(is_word_char) { skip_partial_word(kept) } else { kept }
}

/// `text`, which was cut at its end, without the word that it ends in.
#[must_use]
pub fn before_last_word(text: &str) -> &str {
    let word =
        text.bytes().rev().take(MAX_WORD_BYTES).take_while(|byte| is_word_char((*byte).into()));
    text.get(..text.len() - cut_word_length(word)).unwrap_or(text)
}

/// `text`, which was cut at its beginning, without the word that it begins with.
#[must_use]
pub fn skip_partial_word(text: &str) -> &str {
    let word = text.bytes().take(MAX_WORD_BYTES).take_while(|byte| is_word_char((*byte).into()));
    text.get(cut_word_length(word)..).unwrap_or(text)
}

fn cut_word_length(word: impl Iterator<Item = u8>) -> usize {
    let length = word.count();
    if length == MAX_WORD_BYTES { 0 } else { length }
}

/// Like [`word_prefix`], for at most `most` characters.
#[must_use]
pub fn head_chars(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => word_prefix(text, end),
        None => text,
    }
}

/// True if a character can be part of a token, such as a word, a key or a path.
fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '-' | '+' | '/' | '=' | '.' | '~' | ':' | '@' | '%' | '{' | '}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_truncation_cuts_at_word_boundaries() {
        let text = "curl -H token=abc-123 \u{e9}nd";
        assert_eq!(word_prefix(text, 12), "curl -H ");
        assert_eq!(word_prefix(text, 21), "curl -H token=abc-123");
        assert_eq!(word_prefix(text, 23), "curl -H token=abc-123 ");
        assert_eq!(word_prefix(text, 100), text);
        assert_eq!(word_suffix(text, 8), " \u{e9}nd");
        assert_eq!(word_suffix(text, 100), text);
        assert_eq!(head_chars(text, 10), "curl -H ");
        // What is no token is cut where it is asked for.
        assert_eq!(word_prefix(&"x".repeat(9000), 5000).len(), 5000);
        assert_eq!(word_suffix(&"x".repeat(9000), 5000).len(), 5000);
    }

    proptest! {
        #[test]
        fn truncated_text_is_a_prefix_or_suffix_of_whole_words(text in "[ab \u{e9}=]{0,40}", most in 0_usize..50) {
            let (first, last) = (word_prefix(&text, most), word_suffix(&text, most));
            prop_assert!(first.len() <= most && text.starts_with(first));
            prop_assert!(last.len() <= most && text.ends_with(last));
            let words = |text: &str| text.split(|c| !is_word_char(c)).filter(|w| !w.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            prop_assert!(words(&text).starts_with(&words(first)));
            prop_assert!(words(&text).ends_with(&words(last)));
        }
    }
}
