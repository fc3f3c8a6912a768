//! Pastes from terminals that do not mark them: several lines that arrive at once. A person does not press Enter and
//! go on typing between two reads, so an Enter before more text is the end of a line and not of a message.

use super::decode::TerminalInput;
use crate::keymap::{Code, Key};

/// Begin a command, which scripts send together with what follows it.
const COMMAND_SIGNS: [char; 2] = ['/', '!'];

/// Replaces the keys of one read by a paste, if they are lines of text. An Enter at their end stays a key, which sends.
pub(super) fn join_lines(heard: &mut Vec<TerminalInput>) {
    let ends_with_enter = heard.last().is_some_and(|last| typed_char(last) == Some('\n'));
    let body = heard.len() - usize::from(ends_with_enter);
    let text: Option<String> = heard.iter().take(body).map(typed_char).collect();
    let Some(text) = text.filter(|text| is_lines(text)) else { return };
    let enter = heard.pop().filter(|_| ends_with_enter);
    heard.clear();
    heard.push(TerminalInput::Paste(text.replace("\n\u{2028}", "\n").replace('\u{2028}', "\n")));
    heard.extend(enter);
}

/// Reports whether a text has a line that ends before more text, and is no command.
fn is_lines(text: &str) -> bool {
    let Some((first, rest)) = text.split_once('\n') else { return false };
    let mut letters = first.chars();
    let letter = letters.next();
    // A letter or digit alone is an answer to a question.
    let is_answer = letters.next().is_none() && letter.is_none_or(char::is_alphanumeric);
    !is_answer && !first.starts_with(COMMAND_SIGNS) && rest.chars().any(|c| !c.is_whitespace())
}

/// The character that a key types; a line feed, which some terminals send behind Enter, as a line separator.
fn typed_char(heard: &TerminalInput) -> Option<char> {
    let TerminalInput::Key(key) = heard else { return None };
    let named = [
        (Key::with_control('j'), '\u{2028}'),
        (Key::plain(Code::Enter), '\n'),
        (Key::plain(Code::Tab), '\t'),
    ];
    let named = named.into_iter().find(|(known, _)| known == key).map(|(_, typed)| typed);
    named.or_else(|| key.typed_char())
}

#[cfg(test)]
mod tests {
    use super::{super::decode::Decoder, *};

    fn heard(bytes: &str) -> Vec<TerminalInput> {
        let mut heard = Vec::new();
        Decoder::default().feed(bytes.as_bytes(), &mut heard);
        join_lines(&mut heard);
        heard
    }

    #[test]
    fn paste_without_bracketed_paste_is_one_message() {
        let enter = TerminalInput::Key(Key::plain(Code::Enter));
        let paste = |text: &str| TerminalInput::Paste(text.to_owned());
        assert_eq!(heard("one\rtwo\rthree"), [paste("one\ntwo\nthree")]);
        assert_eq!(heard("one\r\r\ttwo\r"), [paste("one\n\n\ttwo"), enter.clone()]);
        assert_eq!(heard("one\r\ntwo\r"), [paste("one\ntwo"), enter]);
    }

    #[test]
    fn typed_keys_and_scripted_commands_are_not_taken_for_a_paste() {
        for bytes in [
            "hello\r",
            "h",
            "\r",
            "y\rgo on",
            "/model\rsmall\r",
            "!ls\rnext\r",
            "one\r\x1b[A",
            "a\r\r\r",
        ] {
            let heard = heard(bytes);
            assert!(
                heard.iter().all(|heard| matches!(heard, TerminalInput::Key(_))),
                "{bytes:?}: {heard:?}"
            );
        }
    }
}
