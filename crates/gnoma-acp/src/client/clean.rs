//! Removes terminal escape sequences and hidden characters from an agent's text.

/// The text without control characters, but for line ends and tabs, and without invisible characters that
/// turn or hide what is read.
#[must_use]
pub fn clean_text(text: &str) -> String {
    let is_shown = |letter: &char| match letter {
        '\n' | '\t' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => false,
        letter => !letter.is_control(),
    };
    text.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::clean_text;

    #[test]
    fn control_and_bidi_characters_are_removed() {
        assert_eq!(clean_text("a\x1b[2Jb\r\nc\td\u{202e}e\u{9b}f"), "a[2Jb\nc\tdef");
    }
}
