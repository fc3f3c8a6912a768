//! Names of files as people see them: on one line, each letter visible.

use std::{fmt::Write as _, os::unix::ffi::OsStrExt as _, path::Path};

/// A path in which a line break, an escape or another letter that a screen would not show is written like `\n` or
/// `\u{1b}`, a byte that is no text like `\xff`, and a backslash twice: no two paths look the same.
#[must_use]
pub fn escape_path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' || is_unseen(letter) {
                shown.extend(letter.escape_default());
            } else {
                shown.push(letter);
            }
        }
        for byte in chunk.invalid() {
            let _infallible = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Whether a screen shows nothing for a letter, or something else than a letter.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || (letter.is_whitespace() && letter != ' ')
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    use super::*;

    #[test]
    fn what_a_screen_would_not_show_of_a_name_is_escaped() {
        for (name, shown) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("größe 日本.txt".as_bytes(), "größe 日本.txt"),
            (b"a\nb", "a\\nb"),
            (b"a\\nb", "a\\\\nb"),
            (b"a\x1b[2Kb\r", "a\\u{1b}[2Kb\\r"),
            ("a\u{202e}txt.sh\u{2028}".as_bytes(), "a\\u{202e}txt.sh\\u{2028}"),
            (b"a\xffb", "a\\xffb"),
        ] {
            assert_eq!(escape_path(Path::new(OsStr::from_bytes(name))), shown);
        }
    }
}
