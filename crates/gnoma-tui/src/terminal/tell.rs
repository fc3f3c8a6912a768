//! Terminal features besides text: clipboard (OSC 52), notifications and title. Pure: bytes come out.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Longer texts are not offered: terminals drop or cut them.
pub const MAX_COPIED_BYTES: usize = 74_994;
/// Longer titles and notifications are cut.
const MAX_SHORT_CHARS: usize = 200;

/// The way in which a terminal can call for attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notifier {
    /// By its bell, which all have.
    #[default]
    Bell,
    /// A notification as iTerm2 has made it usual.
    Osc9,
    /// A notification as rxvt has made it usual.
    Osc777,
}

impl Notifier {
    /// By `TERM_PROGRAM` and `TERM`. Inside a multiplexer only the bell gets through.
    #[must_use]
    pub fn for_terminal(term_program: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        match term_program.unwrap_or_default() {
            "iTerm.app" | "WezTerm" | "ghostty" => Self::Osc9,
            "" if term.starts_with("xterm-kitty") || term.starts_with("xterm-ghostty") => {
                Self::Osc9
            }
            "" if term.starts_with("foot") || term.starts_with("rxvt") => Self::Osc777,
            _ => Self::Bell,
        }
    }

    /// Calls for attention with a short text.
    #[must_use]
    pub fn notify(self, text: &str) -> Vec<u8> {
        let text = sanitize_line(text);
        match self {
            Self::Bell => vec![0x07],
            Self::Osc9 => format!("\x1b]9;{text}\x1b\\").into_bytes(),
            Self::Osc777 => {
                format!("\x1b]777;notify;gnoma;{}\x1b\\", text.replace(';', ",")).into_bytes()
            }
        }
    }
}

/// Puts a text into the clipboard (OSC 52); `None` when it is too long for that.
#[must_use]
pub fn copy_sequence(text: &str) -> Option<Vec<u8>> {
    (text.len() <= MAX_COPIED_BYTES)
        .then(|| format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text)).into_bytes())
}

/// Gives the window a title.
#[must_use]
pub fn title_sequence(text: &str) -> Vec<u8> {
    format!("\x1b]2;{}\x1b\\", sanitize_line(text)).into_bytes()
}

/// One line without anything that could end the sequence early.
fn sanitize_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHORT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_and_notification_text_cannot_end_its_escape_sequence() {
        assert_eq!(title_sequence("a\u{1b}\\b\u{7}"), b"\x1b]2;a \\b \x1b\\");
        assert_eq!(Notifier::Osc777.notify("x;y"), b"\x1b]777;notify;gnoma;x,y\x1b\\");
        assert_eq!(copy_sequence("hi").unwrap(), b"\x1b]52;c;aGk=\x1b\\");
        assert_eq!(copy_sequence(&"x".repeat(MAX_COPIED_BYTES + 1)), None);
    }

    #[test]
    fn notifier_is_selected_by_the_terminal() {
        assert_eq!(Notifier::for_terminal(Some("iTerm.app"), None), Notifier::Osc9);
        assert_eq!(Notifier::for_terminal(None, Some("foot")), Notifier::Osc777);
        assert_eq!(Notifier::for_terminal(Some("tmux"), Some("xterm-kitty")), Notifier::Bell);
    }
}
