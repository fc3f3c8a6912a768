//! Joins UTF-8 characters and surrogate pairs that a server cuts in two.
//!
//! Servers cut a model's words at any token, and a token may be half a character: one half of a UTF-16 pair
//! as a JSON escape, or some bytes of UTF-8. The other half comes with the next piece of the same block.
//! A Rust text can hold neither, so [`mark_fragments`] puts a mark in place of each, and
//! [`CharacterJoiner`] makes characters of the marks once the pieces stand behind each other. A fragment
//! that stays alone becomes one replacement character.

use std::{borrow::Cow, char, collections::BTreeMap};

use gnoma_core::{StreamEvent, json::replace_lone_surrogates, stream::Slot};

use crate::dialect::Events;

/// Stands before half of a UTF-16 pair. Not a character that anybody may exchange.
const UNIT_MARK: char = '\u{FDD0}';
/// Stands before a byte that is no UTF-8.
const BYTE_MARK: char = '\u{FDD1}';
/// The first of the characters for private use that follow a mark; values are counted from here.
const BASE: u32 = 0xE000;
const FIRST_SURROGATE: u16 = 0xD800;
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// A piece of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fragment {
    /// Half of a UTF-16 pair.
    Unit(u16),
    /// A byte of UTF-8, or of a UTF-16 half that was written in its manner.
    Byte(u8),
}

/// Returns `record` as text, with a mark for each fragment of a character; says whether there is one.
pub(crate) fn mark_fragments(record: &[u8]) -> (Cow<'_, str>, bool) {
    let text = std::str::from_utf8(record)
        .map_or_else(|_| Cow::Owned(with_marked_bytes(record)), Cow::Borrowed);
    let is_plain = matches!(text, Cow::Borrowed(_)) && memchr::memchr(b'\\', record).is_none();
    if is_plain {
        return (text, false);
    }
    let marked = replace_lone_surrogates(text, |unit| {
        encode_fragment(UNIT_MARK, u32::from(unit - FIRST_SURROGATE)).into()
    });
    let has_marks = matches!(marked, Cow::Owned(_));
    (marked, has_marks)
}

fn with_marked_bytes(record: &[u8]) -> String {
    let mut text = String::with_capacity(record.len());
    for chunk in record.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&encode_fragment(BYTE_MARK, u32::from(*byte)));
        }
    }
    text
}

fn encode_fragment(mark: char, value: u32) -> String {
    [mark, char::from_u32(BASE + value).unwrap_or(REPLACEMENT)].iter().collect()
}

/// Returns `text` with one replacement character for each fragment in it that has no other half there.
pub(crate) fn replace_fragments(text: &str) -> String {
    let mut joined = JoinedText::default();
    joined.push(text);
    joined.into_text()
}

/// Returns the bytes that `text` has once its fragments are joined.
pub(crate) fn joined_bytes(text: &str) -> usize {
    if !text.contains([UNIT_MARK, BYTE_MARK]) {
        return text.len();
    }
    measure_letters(text).map(|(_, bytes)| bytes).sum()
}

/// Returns what follows the first `bytes` of `text`, counted as [`joined_bytes`] does; nothing where that
/// is within a character.
pub(crate) fn skip_joined(text: &str, bytes: usize) -> &str {
    if !text.contains([UNIT_MARK, BYTE_MARK]) {
        return text.get(bytes..).unwrap_or_default();
    }
    let mut left = bytes;
    for (at, width) in measure_letters(text) {
        if left == 0 {
            return text.get(at..).unwrap_or_default();
        }
        let Some(less) = left.checked_sub(width) else { return "" };
        left = less;
    }
    ""
}

/// The places of the letters and fragments of `text`, and the bytes that each is once it is joined.
fn measure_letters(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (at, letter) = letters.next()?;
        let found = letters.peek().and_then(|(_, value)| parse_fragment(letter, *value));
        let width = match found {
            // Two halves make a character of four bytes.
            Some(Fragment::Unit(_)) => 2,
            Some(Fragment::Byte(_)) => 1,
            None => letter.len_utf8(),
        };
        if found.is_some() {
            letters.next();
        }
        Some((at, width))
    })
}

/// Joins the fragments of characters over the pieces of an answer's blocks.
#[derive(Debug, Default)]
pub(crate) struct CharacterJoiner {
    /// The fragments at the end of a block so far, and how more of that block is told of.
    open: BTreeMap<Slot, OpenEnd>,
}

#[derive(Debug)]
struct OpenEnd {
    kind: DeltaKind,
    fragments: Vec<Fragment>,
}

#[derive(Clone, Copy, Debug)]
enum DeltaKind {
    Text,
    Thinking,
    Arguments,
}

impl DeltaKind {
    fn delta_event(self, slot: Slot, text: String) -> StreamEvent {
        match self {
            Self::Text => StreamEvent::TextDelta { slot, text },
            Self::Thinking => StreamEvent::ThinkingDelta { slot, text },
            Self::Arguments => StreamEvent::ToolCallDelta { slot, fragment: text },
        }
    }
}

impl CharacterJoiner {
    /// Reports whether a fragment waits for its other half.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Replaces the marks in the new events of a decoder.
    pub(crate) fn filter_events(&mut self, events: &mut Events) {
        for event in std::mem::take(events) {
            self.filter_event(event, events);
        }
    }

    /// The answer is over: what still waits stays alone.
    pub(crate) fn flush_fragments(&mut self, out: &mut Events) {
        for (slot, end) in std::mem::take(&mut self.open) {
            out.push_back(end.into_event(slot));
        }
    }

    fn filter_event(&mut self, event: StreamEvent, out: &mut Events) {
        match event {
            StreamEvent::TextDelta { slot, text } => {
                self.join_delta(DeltaKind::Text, slot, &text, out);
            }
            StreamEvent::ThinkingDelta { slot, text } => {
                self.join_delta(DeltaKind::Thinking, slot, &text, out);
            }
            StreamEvent::ToolCallDelta { slot, fragment } => {
                self.join_delta(DeltaKind::Arguments, slot, &fragment, out);
            }
            StreamEvent::ToolCallStart { slot, id, name } => {
                let (id, name) = (replace_fragments(&id), replace_fragments(&name));
                out.push_back(StreamEvent::ToolCallStart { slot, id, name });
            }
            StreamEvent::ToolCallDone { slot } => {
                if let Some(end) = self.open.remove(&slot) {
                    out.push_back(end.into_event(slot));
                }
                out.push_back(event);
            }
            StreamEvent::Stop(_) => {
                self.flush_fragments(out);
                out.push_back(event);
            }
            StreamEvent::RateLimits { .. }
            | StreamEvent::Adapted { .. }
            | StreamEvent::UnknownStop { .. }
            | StreamEvent::Started { .. }
            | StreamEvent::Signature { .. }
            | StreamEvent::Item { .. }
            | StreamEvent::Redacted { .. }
            | StreamEvent::Usage(_) => out.push_back(event),
        }
    }

    fn join_delta(&mut self, kind: DeltaKind, slot: Slot, text: &str, out: &mut Events) {
        let fragments = self.open.remove(&slot).map(|end| end.fragments).unwrap_or_default();
        let mut joined = JoinedText { text: String::new(), fragments };
        joined.push(text);
        let (text, fragments) = joined.split_open_end();
        if !fragments.is_empty() {
            self.open.insert(slot, OpenEnd { kind, fragments });
        }
        out.push_back(kind.delta_event(slot, text));
    }
}

impl OpenEnd {
    fn into_event(self, slot: Slot) -> StreamEvent {
        let joined = JoinedText { text: String::new(), fragments: self.fragments };
        self.kind.delta_event(slot, joined.into_text())
    }
}

/// A text that is put together, and the fragments at its end.
#[derive(Debug, Default)]
struct JoinedText {
    text: String,
    fragments: Vec<Fragment>,
}

impl JoinedText {
    fn push(&mut self, marked: &str) {
        let mut letters = marked.chars().peekable();
        while let Some(letter) = letters.next() {
            let fragment = letters.peek().and_then(|value| parse_fragment(letter, *value));
            if let Some(fragment) = fragment {
                letters.next();
                self.fragments.push(fragment);
            } else {
                self.flush_fragments();
                self.text.push(letter);
            }
        }
    }

    fn into_text(mut self) -> String {
        self.flush_fragments();
        self.text
    }

    /// Decodes the fragments at the end as they are, because nothing more can join them.
    fn flush_fragments(&mut self) {
        let (text, rest) = decode_fragments(&std::mem::take(&mut self.fragments));
        self.text.push_str(&text);
        if !rest.is_empty() {
            self.text.push(REPLACEMENT);
        }
    }

    /// The text, and the fragments that the next piece may complete.
    fn split_open_end(mut self) -> (String, Vec<Fragment>) {
        let (text, rest) = decode_fragments(&self.fragments);
        self.text.push_str(&text);
        (self.text, rest)
    }
}

fn parse_fragment(mark: char, value: char) -> Option<Fragment> {
    let value = u32::from(value).checked_sub(BASE)?;
    match mark {
        UNIT_MARK => {
            let unit = u16::try_from(value).ok().filter(|unit| *unit < 0x800)?;
            Some(Fragment::Unit(FIRST_SURROGATE + unit))
        }
        BYTE_MARK => u8::try_from(value).ok().map(Fragment::Byte),
        _ => None,
    }
}

/// The characters that `fragments` make, and the last fragments, where more of them may make another.
fn decode_fragments(fragments: &[Fragment]) -> (String, Vec<Fragment>) {
    let mut text = String::new();
    let mut rest = fragments;
    while let Some((unit, after)) = split_unit(rest) {
        let is_high = matches!(unit, Ok(0xD800..=0xDBFF));
        let next = split_unit(after);
        let pair = match (unit, next) {
            (Ok(high), Some((Ok(low), _))) => {
                char::decode_utf16([high, low]).next().and_then(Result::ok).filter(|_| is_high)
            }
            _ => None,
        };
        if is_high && next.is_none() {
            break;
        }
        text.push(pair.or(unit.err()).unwrap_or(REPLACEMENT));
        rest = next.filter(|_| pair.is_some()).map_or(after, |(_, after)| after);
    }
    (text, rest.to_vec())
}

/// A half of a UTF-16 pair, or a whole character.
type Unit = Result<u16, char>;

/// The first half or character, and the fragments behind it; `None` where more fragments may belong to it.
fn split_unit(fragments: &[Fragment]) -> Option<(Unit, &[Fragment])> {
    if let Fragment::Unit(unit) = fragments.first()? {
        return Some((Ok(*unit), fragments.get(1..).unwrap_or_default()));
    }
    let bytes: Vec<u8> = fragments.iter().map_while(Fragment::as_byte).collect();
    let is_last = bytes.len() == fragments.len();
    let (unit, length) = match first_of(&bytes) {
        Some(first) => first,
        None if is_last => return None,
        None => (Err(REPLACEMENT), bytes.len()),
    };
    Some((unit, fragments.get(length..).unwrap_or_default()))
}

impl Fragment {
    /// The byte, if it is one.
    fn as_byte(&self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(*byte),
            Self::Unit(_) => None,
        }
    }
}

/// Returns the first unit of `bytes` and its length: a character, or half of a UTF-16 pair written as three bytes.
/// `None` if more bytes may follow.
fn first_of(bytes: &[u8]) -> Option<(Unit, usize)> {
    match bytes {
        [0xED] | [0xED, 0xA0..=0xBF] => return None,
        [0xED, high @ 0xA0..=0xBF, low @ 0x80..=0xBF, ..] => {
            let unit = 0xD000 | (u16::from(high & 0x3F) << 6) | u16::from(low & 0x3F);
            return Some((Ok(unit), 3));
        }
        _ => (),
    }
    let chunk = bytes.utf8_chunks().next()?;
    if let Some(letter) = chunk.valid().chars().next() {
        return Some((Err(letter), letter.len_utf8()));
    }
    let is_begun = chunk.invalid().len() == bytes.len()
        && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    (!is_begun).then_some((Err(REPLACEMENT), chunk.invalid().len().max(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text of a block whose pieces come in these JSON strings.
    fn joined(pieces: &[&[u8]]) -> String {
        let mut joiner = CharacterJoiner::default();
        let mut out = Events::new();
        for piece in pieces {
            let json = [b"\"", *piece, b"\""].concat();
            let text = serde_json::from_str(&mark_fragments(&json).0).unwrap();
            let mut events = Events::from([StreamEvent::TextDelta { slot: 0, text }]);
            joiner.filter_events(&mut events);
            out.extend(events);
        }
        joiner.flush_fragments(&mut out);
        let text = |event: &StreamEvent| match event {
            StreamEvent::TextDelta { text, .. } => text.clone(),
            other => panic!("not a text: {other:?}"),
        };
        out.iter().map(text).collect()
    }

    #[test]
    fn halves_of_a_surrogate_pair_are_joined_over_pieces() {
        for (pieces, text) in [
            (&[&br"ok \ud83d"[..], br"\ude00 end"][..], "ok 😀 end"),
            (&[br"\ud83d", br"\ude00"], "😀"),
            (&[br"a\uD83D", b"", br"\uDE00"], "a😀"),
            (&[br"\ud83d\ude00\ud83e", br"\udd80"], "😀🦀"),
            (&["\u{e9}\\ud83d".as_bytes(), br"\ude00"], "é😀"),
        ] {
            assert_eq!(joined(pieces), text);
        }
    }

    #[test]
    fn lone_surrogate_or_invalid_utf8_becomes_a_replacement_character() {
        for (pieces, text) in [
            (&[&br"a\ud83d"[..]][..], "a\u{fffd}"),
            (&[br"a\ud83d", b"b"], "a\u{fffd}b"),
            (&[br"\ude00b"], "\u{fffd}b"),
            (&[br"\ud83e\ud83e\udd80"], "\u{fffd}🦀"),
            (&[br"\\ud83e"], "\\ud83e"),
            (&[b"a\xf0\x9f"], "a\u{fffd}"),
            (&[b"gr\xFC\xDFe"], "gr\u{fffd}\u{fffd}e"),
            (&[b"\xed\xa0\xbd", b"x"], "\u{fffd}x"),
        ] {
            assert_eq!(joined(pieces), text);
        }
    }

    #[test]
    fn utf8_bytes_split_across_chunks_are_joined() {
        for (pieces, text) in [
            (&[&b"a\xf0\x9f"[..], b"\x98\x80b"][..], "a😀b"),
            (&[b"\xf0", b"\x9f", b"\x98", b"\x80"], "😀"),
            (&[b"gr\xc3", b"\xbc\xc3\x9fe"], "grüße"),
            (&[b"\xed\xa0\xbd\xed\xb8\x80"], "😀"),
            (&[b"\xed\xa0\xbd", b"\xed\xb8\x80"], "😀"),
            (&[b"\xed\xa0", b"\xbd\xed\xb8\x80"], "😀"),
        ] {
            assert_eq!(joined(pieces), text);
        }
    }

    #[test]
    fn split_character_fragments_count_as_joined_bytes() {
        let high = encode_fragment(UNIT_MARK, 0x3D);
        assert_eq!(joined_bytes(&format!("a{high}")), 3);
        assert_eq!(skip_joined("a😀b", joined_bytes(&format!("a{high}")) + 2), "b");
        assert_eq!(skip_joined(&format!("a{high}b"), 3), "b");
        assert_eq!(skip_joined("abc", 4), "");
    }

    proptest! {
        /// Wherever the UTF-16 escapes of a text are cut, the text is the same.
        #[test]
        fn unicode_escapes_decode_the_same_for_any_chunking(text in "[a😀é🦀]{0,8}", cut in 0_usize..20) {
            let escapes: Vec<String> =
                text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let (left, right) = escapes.split_at(cut.min(escapes.len()));
            prop_assert_eq!(joined(&[left.concat().as_bytes(), right.concat().as_bytes()]), text);
        }

        /// Wherever the bytes of a text are cut, the text is the same.
        #[test]
        fn utf8_text_decodes_the_same_for_any_chunking(text in "[a😀é🦀ß]{0,8}", cut in 0_usize..32) {
            let (left, right) = text.as_bytes().split_at(cut.min(text.len()));
            prop_assert_eq!(joined(&[left, right]), text.clone());
        }

        /// No mark is left, whatever comes.
        #[test]
        fn internal_fragment_marks_never_appear_in_the_text(pieces in prop::collection::vec("([a\u{e9}]|\\\\u[dD][89abcdef]0[0-9]){0,12}", 0..4)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
            let text = joined(&pieces);
            prop_assert!(!text.contains([UNIT_MARK, BYTE_MARK]), "{text:?}");
        }
    }
}
