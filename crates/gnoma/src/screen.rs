//! What may be written to a terminal.
//!
//! Models, servers and projects choose much of what is shown. Their text must not move the cursor,
//! retitle the window, or make a line read differently from what it says.

use std::borrow::Cow;

/// Whether a character only shows itself: no control character but line breaks and tabs, and none
/// of those that reverse the direction of what follows.
pub(crate) fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{061C}'
        | '\u{200E}'
        | '\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}' => false,
        _ => !c.is_control(),
    }
}

/// `text` with a mark in place of every character that does more than show itself.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mark = |c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER };
    Cow::Owned(text.chars().map(mark).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_more_than_show_itself_is_marked() {
        assert_eq!(clean("a\tb\nç日🎉"), "a\tb\nç日🎉");
        assert_eq!(clean("\x1b[2Kx\r\u{9b}y\u{7f}"), "\u{FFFD}[2Kx\u{FFFD}\u{FFFD}y\u{FFFD}");
        assert_eq!(clean("ls # \u{202E}fr- mr\u{2069}"), "ls # \u{FFFD}fr- mr\u{FFFD}");
    }
}
