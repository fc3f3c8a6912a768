//! Classifies pasted text: words to insert, a large paste shown as a chip, or the path of an image that was dropped on
//! the terminal. It looks at the text alone; whether a file exists is for others to say.

use std::path::PathBuf;

use super::chips::Chips;

/// Longer texts become chips.
const MAX_INLINE_BYTES: usize = 1_000;
/// Texts with more line breaks become chips.
const MAX_INLINE_BREAKS: usize = 4;
/// A longer text is no path.
const MAX_PATH_BYTES: usize = 4_096;
/// Ends of names that images have which models can read.
const IMAGE_ENDS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The result of a paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasteOutcome {
    /// The paste is in the text.
    Inserted,
    /// A chip represents it in the text.
    Chip,
    /// The paste is in the text and looks like the path of an image. With
    /// [`attach_instead`](super::Composer::attach_instead) and `text`, the image can replace it.
    Path {
        /// The path; it may begin with `~/`.
        path: PathBuf,
        /// The words that stand in the text.
        text: String,
    },
    /// There are so many chips that this one was not taken; nothing changed.
    Full,
}

/// Reports whether a text is better shown as a chip.
pub(super) fn is_chip(text: &str) -> bool {
    text.len() > MAX_INLINE_BYTES
        || text.matches('\n').count() > MAX_INLINE_BREAKS
        || text.chars().any(Chips::is_reserved)
}

/// The text as it is kept: line breaks are `\n`, sequences for terminals are gone. Other control
/// characters stay and are shown as pictures.
pub(super) fn normalize_paste(text: String) -> String {
    let has_breaks = text.contains('\r');
    if !has_breaks && !text.contains('\u{1b}') && !text.contains('\u{9b}') {
        return text;
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(next) = rest.find(['\r', '\u{1b}', '\u{9b}']) {
        let (before, from) = rest.split_at(next);
        kept.push_str(before);
        rest = match from.strip_prefix('\r') {
            Some(behind) => {
                kept.push('\n');
                behind.strip_prefix('\n').unwrap_or(behind)
            }
            None => behind_sequence(from),
        };
    }
    kept.push_str(rest);
    kept
}

/// Returns the text after the sequence for terminals that it begins with. A sequence that does not end costs its
/// introducer only, so that no text is lost to it.
fn behind_sequence(text: &str) -> &str {
    if let Some(parameters) = text.strip_prefix("\u{1b}[").or(text.strip_prefix('\u{9b}')) {
        return behind_parameters(parameters);
    }
    let Some(kind) = text.strip_prefix('\u{1b}') else { return text };
    let behind = kind.get(1..).unwrap_or_default();
    match kind.chars().next() {
        Some(']' | 'P' | 'X' | '^' | '_') => behind_string(behind),
        Some(' '..='/') => kind.trim_start_matches(is_intermediate).get(1..).unwrap_or(behind),
        Some('0'..='~') => behind,
        _ => kind,
    }
}

/// Behind the parameters and the last byte of a control sequence.
fn behind_parameters(text: &str) -> &str {
    let end = text.trim_start_matches(|c| matches!(c, ' '..='?'));
    match end.chars().next() {
        Some('@'..='~') => end.get(1..).unwrap_or_default(),
        _ => text,
    }
}

fn is_intermediate(c: char) -> bool {
    matches!(c, ' '..='/')
}

/// Behind a string for the terminal, which ends with BEL or ST before the line does.
fn behind_string(text: &str) -> &str {
    let end = text.find(['\u{7}', '\u{1b}', '\n']).unwrap_or(text.len());
    let rest = text.get(end..).unwrap_or_default();
    rest.strip_prefix('\u{7}').or(rest.strip_prefix("\u{1b}\\")).unwrap_or(text)
}

/// The path of an image, when the text is nothing else. Terminals drop paths quoted, escaped or as
/// addresses of files; a name without a folder is taken for a word.
pub(super) fn image_path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    if text.len() > MAX_PATH_BYTES || text.contains('\n') {
        return None;
    }
    let path = unquote_path(text)?;
    let is_drive = path.get(1..3).is_some_and(|rest| rest == ":\\" || rest == ":/");
    if !(path.starts_with('/') || path.starts_with("~/") || is_drive) {
        return None;
    }
    let (_, end) = path.rsplit_once('.')?;
    let is_image = IMAGE_ENDS.iter().any(|known| end.eq_ignore_ascii_case(known));
    is_image.then(|| PathBuf::from(path))
}

fn unquote_path(text: &str) -> Option<String> {
    if let Some(address) = text.strip_prefix("file://") {
        return percent_decoded(address.get(address.find('/')?..)?);
    }
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return (!inner.contains(quote)).then(|| inner.to_owned());
        }
    }
    let is_drive = text.get(1..3) == Some(":\\");
    if is_drive {
        return Some(text.to_owned());
    }
    unescape_path(text)
}

/// A path as shells write it; `None` when there is a bare space, which makes it more than a path.
fn unescape_path(text: &str) -> Option<String> {
    let mut path = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.push(chars.next()?),
            c if c.is_whitespace() => return None,
            c => path.push(c),
        }
    }
    Some(path)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind.get(2..)?;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paste_drops_escape_sequences_and_normalizes_line_breaks() {
        for (pasted, kept) in [
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("a\u{9b}1;2Hb", "ab"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://h\u{1b}\\link", "xlink"),
            ("\u{1b}]0;never ends\nsecond", "0;never ends\nsecond"),
            ("cut \u{1b}[", "cut "),
            ("\u{1b}é\u{1b}", "é"),
            ("one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
            ("bell \u{7} tab \t", "bell \u{7} tab \t"),
            ("\u{1b}(B\u{1b}7ok", "ok"),
        ] {
            assert_eq!(normalize_paste(pasted.to_owned()), kept);
        }
    }

    #[test]
    fn dropped_image_paths_are_recognised() {
        for (text, path) in [
            ("/home/me/a.png", "/home/me/a.png"),
            ("'/home/me/a b.PNG' ", "/home/me/a b.PNG"),
            ("\"/tmp/x.jpeg\"\n", "/tmp/x.jpeg"),
            ("file:///tmp/a%20b%C3%A9.webp", "/tmp/a bé.webp"),
            ("file://host/tmp/a.gif", "/tmp/a.gif"),
            ("/tmp/a\\ b\\(1\\).jpg", "/tmp/a b(1).jpg"),
            ("~/a.png", "~/a.png"),
            (r"C:\pictures\a.png", r"C:\pictures\a.png"),
        ] {
            assert_eq!(image_path(text), Some(PathBuf::from(path)), "{text}");
        }
        for text in [
            "a.png",
            "see /tmp/a.png",
            "/tmp/a.txt",
            "/a.png\n/b.png",
            "file:///a%zz.png",
            "",
            "/tmp/a.png\\",
        ] {
            assert_eq!(image_path(text), None, "{text}");
        }
    }
}
