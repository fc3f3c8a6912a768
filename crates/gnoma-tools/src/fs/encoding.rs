//! Text encodings: the byte order mark (BOM), UTF-16 and line endings that a model does not see.
//!
//! A text is decoded before it is shown or edited and encoded before it is written, so that what was hidden is kept.
//! Only what can be encoded again to the same bytes is decoded; anything else stays bytes.

use std::{
    borrow::Cow,
    char::DecodeUtf16Error,
    time::{Duration, Instant},
};

use gnoma_core::diff::{DiffOp, diff_sequences};

use super::{shared::BYTE_ORDER_MARK, text::line_of};

/// After this long the comparison of lines is made coarse.
const PATIENCE: Duration = Duration::from_millis(200);

/// The characters of Windows-1252 from 0x80 on; the five that it does not define are control characters.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The encoding of a text as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, or something near it.
    Utf8,
    /// UTF-16 with a byte order mark; whether the low byte comes first.
    Utf16 { is_little: bool },
    /// One byte for each character, as Windows and Latin-1 have it.
    Windows1252,
}

/// The encoding of a text, whether a byte order mark stands before it, and whether its lines end in an old way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextForm {
    pub(super) encoding: Encoding,
    pub(super) has_mark: bool,
    /// Every line ends with a lone `\r`, as on old Macs and in some exported tables; it is decoded to `\n`.
    pub(super) has_cr_ends: bool,
}

/// A character that the encoding of a file does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnencodableCharacter {
    pub(super) character: char,
    pub(super) line: usize,
}

impl TextForm {
    /// The form of `content`, and its text: UTF-8 without a byte order mark, or bytes that nothing is known of.
    pub(super) fn decode(content: &[u8]) -> (Self, Cow<'_, [u8]>) {
        let (form, text) = Self::decode_characters(content);
        let has_cr_ends = text.contains(&b'\r') && !text.contains(&b'\n');
        if !has_cr_ends {
            return (form, text);
        }
        (Self { has_cr_ends, ..form }, Cow::Owned(replace_byte(text.into_owned(), b'\r', b'\n')))
    }

    fn decode_characters(content: &[u8]) -> (Self, Cow<'_, [u8]>) {
        let form = |encoding, has_mark| Self { encoding, has_mark, has_cr_ends: false };
        if let Some(text) = content.strip_prefix(BYTE_ORDER_MARK) {
            return (form(Encoding::Utf8, true), Cow::Borrowed(text));
        }
        for (mark, is_little) in [(b"\xff\xfe", true), (b"\xfe\xff", false)] {
            if let Some(text) =
                content.strip_prefix(mark).and_then(|rest| decode_utf16(rest, is_little))
            {
                let encoding = Encoding::Utf16 { is_little };
                return (form(encoding, true), Cow::Owned(text.into_bytes()));
            }
        }
        if is_single_byte(content) {
            let text: String = content.iter().map(|byte| decode_byte(*byte)).collect();
            return (form(Encoding::Windows1252, false), Cow::Owned(text.into_bytes()));
        }
        (form(Encoding::Utf8, false), Cow::Borrowed(content))
    }

    /// The bytes of `text` in this form.
    pub(super) fn encode(self, text: Vec<u8>) -> Result<Vec<u8>, UnencodableCharacter> {
        let text = if self.has_cr_ends { with_cr_ends(&text) } else { text };
        match self.encoding {
            Encoding::Utf8 if self.has_mark => Ok([BYTE_ORDER_MARK, &text].concat()),
            Encoding::Utf8 => Ok(text),
            Encoding::Utf16 { is_little } => {
                let text = String::from_utf8_lossy(&text);
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                let bytes =
                    |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
                Ok(units.flat_map(bytes).collect())
            }
            Encoding::Windows1252 => {
                let chars = String::from_utf8_lossy(&text);
                let byte = |(at, character): (usize, char)| {
                    let line = || line_of(chars.as_bytes(), at);
                    encode_char(character)
                        .ok_or_else(|| UnencodableCharacter { character, line: line() })
                };
                chars.char_indices().map(byte).collect()
            }
        }
    }

    /// Reports whether the encoding is an assumption: bytes of Shift_JIS, GBK or another code page are letters of
    /// Windows-1252 as well.
    pub(super) fn is_assumed(self) -> bool {
        self.encoding == Encoding::Windows1252
    }

    /// The encoding where it is not UTF-8, for sentences.
    pub(super) fn encoding_name(self) -> Option<&'static str> {
        match self.encoding {
            Encoding::Utf8 => None,
            Encoding::Utf16 { .. } => Some("UTF-16"),
            Encoding::Windows1252 => Some("Windows-1252"),
        }
    }
}

fn replace_byte(mut text: Vec<u8>, from: u8, to: u8) -> Vec<u8> {
    for byte in text.iter_mut().filter(|byte| **byte == from) {
        *byte = to;
    }
    text
}

/// `text` with a lone `\r` at the end of each line.
fn with_cr_ends(text: &[u8]) -> Vec<u8> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
    lines.join(&b'\r')
}

fn decode_utf16(bytes: &[u8], is_little: bool) -> Option<String> {
    let text = utf16_chars(bytes, is_little).collect::<Result<String, _>>().ok()?;
    (bytes.len().is_multiple_of(2) && !text.contains('\0')).then_some(text)
}

/// UTF-16 behind its byte order mark as text, with `U+FFFD` for what is no character.
pub(super) fn decode_utf16_lossy(bytes: &[u8], is_little: bool) -> String {
    let chars = utf16_chars(bytes, is_little);
    chars.map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn utf16_chars(
    bytes: &[u8],
    is_little: bool,
) -> impl Iterator<Item = Result<char, DecodeUtf16Error>> {
    let unit = move |pair: &[u8]| {
        let pair = <[u8; 2]>::try_from(pair).unwrap_or_default();
        if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
    };
    char::decode_utf16(bytes.chunks_exact(2).map(unit))
}

/// Reports whether `content` is text with one byte for each character: it is not UTF-8, and nothing in it beyond
/// ASCII is.
fn is_single_byte(content: &[u8]) -> bool {
    if content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff") {
        return false;
    }
    let mut is_utf8 = true;
    for chunk in content.utf8_chunks() {
        if !chunk.valid().is_ascii() {
            return false;
        }
        is_utf8 &= chunk.invalid().is_empty();
    }
    let is_text =
        |byte: &u8| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x1b');
    !is_utf8 && content.iter().all(is_text)
}

fn decode_byte(byte: u8) -> char {
    let special = usize::from(byte).checked_sub(0x80).and_then(|at| WINDOWS_1252.get(at));
    special.copied().unwrap_or_else(|| char::from(byte))
}

fn encode_char(character: char) -> Option<u8> {
    if let Some(at) = WINDOWS_1252.iter().position(|special| *special == character) {
        return u8::try_from(at + 0x80).ok();
    }
    u8::try_from(u32::from(character)).ok().filter(|byte| !(0x80..0xa0).contains(byte))
}

/// Lists the features of a text that a model does not see and that are therefore kept, for `kept: …`.
pub(super) fn describe_hidden(form: TextForm, text: &[u8]) -> Vec<&'static str> {
    let mark = form.has_mark.then_some("byte order mark");
    let is_marked_anyway = matches!(form.encoding, Encoding::Utf16 { .. });
    let ends = match LineEnds::from_text(text) {
        LineEnds::Windows => Some("CRLF line ends"),
        LineEnds::Mixed => Some("mixed line ends"),
        LineEnds::Unix | LineEnds::None if form.has_cr_ends => Some("CR line ends"),
        LineEnds::Unix | LineEnds::None => None,
    };
    [form.encoding_name(), mark.filter(|_| !is_marked_anyway), ends].into_iter().flatten().collect()
}

/// The line ends of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnds {
    /// The text has no line ends.
    None,
    /// Every line ends with `\n`.
    Unix,
    /// Every line ends with `\r\n`.
    Windows,
    /// The text has both kinds of line ends.
    Mixed,
}

impl LineEnds {
    fn from_text(text: &[u8]) -> Self {
        let all = memchr::memchr_iter(b'\n', text).count();
        let windows = memchr::memmem::find_iter(text, b"\r\n").count();
        match (all, windows) {
            (0, _) => Self::None,
            (_, 0) => Self::Unix,
            _ if all == windows => Self::Windows,
            _ => Self::Mixed,
        }
    }
}

/// A whole text that replaces another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) text: Vec<u8>,
    /// The last line end was added or left out.
    pub(super) final_end: Option<&'static str>,
}

/// `new` in place of `old`, both as texts, with what of `old` a model cannot see: bytes that are not UTF-8 in lines that
/// are as before, line ends, and whether there is one at the end.
///
/// # Errors
/// The line of `new` that has `U+FFFD` for bytes of `old` that would be lost.
pub(super) fn replace_text(old: &[u8], new: &str) -> Result<Replacement, usize> {
    let is_bytes = std::str::from_utf8(old).is_err();
    let ends = LineEnds::from_text(old);
    let names_ends = new.contains("\r\n");
    let mut text = match ends {
        _ if is_bytes => line_by_line(old, new)?,
        LineEnds::Mixed if !names_ends => line_by_line(old, new)?,
        LineEnds::Windows if !names_ends => new.replace('\n', "\r\n").into_bytes(),
        _ => new.as_bytes().to_vec(),
    };
    let final_end = match (old.ends_with(b"\n"), text.ends_with(b"\n")) {
        _ if old.is_empty() || text.is_empty() => None,
        (true, false) => {
            let windows = text.contains(&b'\n') && LineEnds::from_text(&text) == LineEnds::Windows;
            let windows = windows || ends == LineEnds::Windows;
            text.extend_from_slice(if windows { b"\r\n" } else { b"\n" });
            Some("line end at the end")
        }
        (false, true) => {
            text.pop();
            if text.ends_with(b"\r") {
                text.pop();
            }
            Some("no line end at the end")
        }
        (true, true) | (false, false) => None,
    };
    Ok(Replacement { text, final_end })
}

/// The lines of `new`; those that are in `old` with the bytes and the line end that they have there, the others with
/// the line end of the line before.
fn line_by_line(old: &[u8], new: &str) -> Result<Vec<u8>, usize> {
    let there: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let decoded: Vec<Cow<'_, str>> =
        there.iter().map(|line| String::from_utf8_lossy(line_body(line))).collect();
    let decoded: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let bodies: Vec<&str> = lines.iter().map(|line| line_text(line)).collect();
    let first_end = there.first().map_or(&b"\n"[..], |line| line_end(line));
    let mut text = Vec::with_capacity(new.len());
    let mut end = if first_end.is_empty() { b"\n" } else { first_end };
    for op in diff_sequences(&decoded, &bodies, Instant::now().checked_add(PATIENCE)) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                let pairs = there.iter().skip(old_index).zip(lines.iter().skip(new_index));
                for (line, new) in pairs.take(len) {
                    end = if line.ends_with(b"\n") { line_end(line) } else { end };
                    text.extend_from_slice(line_body(line));
                    text.extend_from_slice(if new.ends_with('\n') { end } else { b"" });
                }
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. }
            | DiffOp::Replace { new_index, new_len, .. } => {
                for at in new_index..new_index + new_len {
                    let (line, body) =
                        (lines.get(at).copied().unwrap_or_default(), bodies.get(at).copied());
                    let body = body.unwrap_or_default();
                    if body.contains(char::REPLACEMENT_CHARACTER) && !decoded_has(old) {
                        return Err(at + 1);
                    }
                    text.extend_from_slice(body.as_bytes());
                    text.extend_from_slice(if line.ends_with('\n') { end } else { b"" });
                }
            }
        }
    }
    Ok(text)
}

/// Reports whether a `U+FFFD` in `text` is its own character, which then stands for nothing else.
fn decoded_has(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok()
}

fn line_body(line: &[u8]) -> &[u8] {
    line.get(..line.len() - line_end(line).len()).unwrap_or(line)
}

fn line_text(line: &str) -> &str {
    line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')).unwrap_or(line)
}

fn line_end(line: &[u8]) -> &[u8] {
    if line.ends_with(b"\r\n") {
        b"\r\n"
    } else if line.ends_with(b"\n") {
        b"\n"
    } else {
        b""
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bom_utf16_and_windows_1252_files_round_trip_as_text() {
        let utf16 = |bytes: &[u8]| bytes.to_vec();
        for (content, text, name) in [
            (b"\xef\xbb\xbfhi\n".to_vec(), "hi\n", None),
            (utf16(b"\xff\xfeh\0\xe9\0\n\0"), "hé\n", Some("UTF-16")),
            (utf16(b"\xfe\xff\0h\0\xe9\0\n"), "hé\n", Some("UTF-16")),
            (b"caf\xe9 \x80\x93\n".to_vec(), "café €“\n", Some("Windows-1252")),
        ] {
            let (form, decoded) = TextForm::decode(&content);
            assert_eq!(std::str::from_utf8(&decoded).unwrap(), text);
            assert_eq!(form.encoding_name(), name);
            assert_eq!(form.encode(decoded.into_owned()).unwrap(), content);
        }
    }

    #[test]
    fn cr_only_line_endings_are_decoded_and_restored() {
        for (content, text) in [
            (&b"one\rtwo\rthree\r"[..], "one\ntwo\nthree\n"),
            (b"a,b\rc,d", "a,b\nc,d"),
            (b"\xef\xbb\xbfa\r\rb\r", "a\n\nb\n"),
            (b"caf\xe9\rx\r", "caf\u{e9}\nx\n"),
            (b"\xff\xfea\0\r\0b\0", "a\nb"),
            (b"a\rb\n", "a\rb\n"),
            (b"a\r\nb\r\n", "a\r\nb\r\n"),
        ] {
            let (form, decoded) = TextForm::decode(content);
            assert_eq!(std::str::from_utf8(&decoded).unwrap(), text);
            assert_eq!(form.encode(decoded.to_vec()).unwrap(), content);
        }
        let (form, text) = TextForm::decode(b"one\rtwo\r");
        assert_eq!(describe_hidden(form, &text), ["CR line ends"]);
        assert_eq!(form.encode("one\r\n2\nthree\n".into()).unwrap(), b"one\r2\rthree\r");
    }

    #[test]
    fn content_that_would_not_round_trip_is_not_decoded() {
        for content in [
            &b"caf\xe9 and caf\xc3\xa9"[..],
            b"\xff\xfeh",
            b"\xff\xfe\x00\xd8h\0",
            b"\x01\xe9",
            b"\xff\xfe\0\0",
        ] {
            let (form, text) = TextForm::decode(content);
            assert_eq!(form.encoding, Encoding::Utf8, "{content:?}");
            assert_eq!(text.as_ref(), content);
        }
    }

    #[test]
    fn unencodable_character_error_names_character_and_line() {
        let (form, _) = TextForm::decode(b"caf\xe9\n");
        let error = form.encode("a\nb→\n".into()).unwrap_err();
        assert_eq!(error, UnencodableCharacter { character: '→', line: 2 });
    }

    fn replaced(old: &[u8], new: &str) -> Vec<u8> {
        replace_text(old, new).unwrap().text
    }

    #[test]
    fn crlf_and_mixed_line_endings_are_preserved_when_text_is_replaced() {
        for (old, new, text) in [
            (&b"a\r\nb\r\n"[..], "a\nc\nd\n", &b"a\r\nc\r\nd\r\n"[..]),
            (b"a\r\nb\nc\r\nd\n", "a\nb\nx\nc\ny\nd\n", b"a\r\nb\nx\nc\r\ny\r\nd\n"),
            (b"a\r\nb\r\n", "a\r\nb\nc\n", b"a\r\nb\nc\n"),
            (b"a\nb\n", "a\r\nb\r\n", b"a\r\nb\r\n"),
            (b"a\nb", "a\nc\n", b"a\nc"),
            (b"a\r\nb", "a\nc\n", b"a\r\nc"),
            (b"a\nb\n", "a\nc", b"a\nc\n"),
            (b"a\r\n", "b", b"b\r\n"),
            (b"", "a\n", b"a\n"),
            (b"a\n", "", b""),
        ] {
            assert_eq!(replaced(old, new), text, "{old:?} {new:?}");
        }
        assert_eq!(replace_text(b"a", "b\n").unwrap().final_end, Some("no line end at the end"));
    }

    #[test]
    fn invalid_utf8_bytes_survive_in_unchanged_lines() {
        let old = b"caf\xc3\xa9\nbad \xe9 byte\nend\n";
        assert_eq!(
            replaced(old, "café\nbad \u{fffd} byte\nnew\n"),
            b"caf\xc3\xa9\nbad \xe9 byte\nnew\n"
        );
        assert_eq!(replaced(old, "café\ngone\nend\n"), b"caf\xc3\xa9\ngone\nend\n");
        assert_eq!(replace_text(old, "café\nbad \u{fffd} bytes\nend\n"), Err(2));
    }

    proptest! {
        /// Whatever is decoded is encoded to the same bytes, and replacing a text by what was shown changes nothing.
        #[test]
        fn decoded_text_always_encodes_to_the_same_bytes(
            pieces in prop::collection::vec(prop_oneof![
                Just(&b"a"[..]), Just(&b"\n"[..]), Just(&b"\r\n"[..]), Just(&b"\xe9"[..]), Just("é".as_bytes()),
                Just(&b"\x80"[..]), Just(&b"b c"[..]),
            ], 0..12),
            mark in 0..4_usize,
            has_cr_ends in proptest::bool::ANY,
        ) {
            let marks = [&b""[..], b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
            let mut lines = pieces.concat();
            if has_cr_ends {
                lines.retain(|byte| *byte != b'\r');
                lines = replace_byte(lines, b'\n', b'\r');
            }
            let content = [marks[mark], &lines].concat();
            let (form, text) = TextForm::decode(&content);
            prop_assert_eq!(&form.encode(text.to_vec()).unwrap(), &content);
            let shown = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            if let Ok(replacement) = replace_text(&text, &shown) {
                prop_assert_eq!(replacement.text, text.into_owned());
            }
        }
    }
}
