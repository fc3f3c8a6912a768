//! Text of a record for search, and its preview in lists.

use gnoma_core::{Content, Message, ResultPart, Role, store::Record};
use rusqlite::{Row, types::ValueRef};

/// Most bytes of one block that can be searched for; the rest of a long output is rarely words.
const BLOCK_WORDS_BYTES: usize = 16 * 1024;

/// Most bytes of one entry that can be searched for.
const ENTRY_WORDS_BYTES: usize = 64 * 1024;

/// Longest title made from a message.
const TITLE_CHARS: usize = 80;

/// Largest count and largest sum of counts: far beyond what is real, and so far below what a number
/// of the database holds that adding never overflows. SQLite would continue with a fraction.
pub(crate) const MAX_COUNT: i64 = 1 << 44;

/// Counts as the database keeps them; the impossible is cut off.
pub(crate) fn clamp_count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(MAX_COUNT).min(MAX_COUNT)
}

/// A count as a database gives it back, whatever a file says it is.
pub(crate) fn read_count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(value) => u64::try_from(value.min(MAX_COUNT)).unwrap_or(0),
        // Sums of older versions could overflow.
        ValueRef::Real(value) if value > 0.0 => clamp_count(u64::MAX).unsigned_abs(),
        ValueRef::Real(_) | ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => 0,
    })
}

/// Sizes as the database keeps them.
pub(crate) fn clamp_size(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns the words of `record` that can be searched for.
pub(crate) fn searchable_text(record: &Record) -> Option<String> {
    let mut words = String::new();
    match record {
        Record::Message(message) => message.content().iter().for_each(|block| match block {
            Content::Text(text) => append_words(&mut words, &text.text),
            Content::Thinking(thinking) => append_words(&mut words, &thinking.text),
            Content::ToolCall(call) => {
                append_words(&mut words, &call.name);
                append_words(&mut words, call.arguments.get());
            }
            Content::ToolResult(result) => result.parts.iter().for_each(|part| match part {
                ResultPart::Text { text } => append_words(&mut words, text),
                ResultPart::Image(_) => {}
            }),
            Content::Image(_) | Content::RedactedThinking(_) => {}
        }),
        Record::Summary { text, .. } | Record::Title { text } => append_words(&mut words, text),
        Record::Routed { .. }
        | Record::Asked { .. }
        | Record::Judged { .. }
        // The message that follows has the same words.
        | Record::ToolEnded(_)
        | Record::Used(_)
        | Record::Paid { .. }
        | Record::Checked { .. }
        | Record::Checkpoint { .. }
        | Record::Interrupted { .. }
        | Record::Rewound { .. }
        | Record::Tombstone { .. } => {}
    }
    (!words.is_empty()).then_some(words)
}

fn append_words(words: &mut String, more: &str) {
    let room = ENTRY_WORDS_BYTES.saturating_sub(words.len()).min(BLOCK_WORDS_BYTES);
    words.push_str(text_prefix(more, room));
    words.push('\n');
}

/// The longest beginning of `text` of at most `bytes` bytes.
pub(crate) fn text_prefix(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// The session's title: the first line of the first message.
pub(crate) fn title_of(message: &Message) -> Option<String> {
    if message.role() != Role::User {
        return None;
    }
    let text = message.text_content();
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(one_line(line, TITLE_CHARS))
}

/// `text` on one line: controls become spaces, spaces are joined, and it is cut at `chars`.
pub(crate) fn one_line(text: &str, chars: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if length >= chars {
            line.push('…');
            return line;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        for c in word.chars() {
            if length >= chars {
                line.push('…');
                return line;
            }
            line.push(c);
            length += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_text_is_truncated_to_its_width_with_an_ellipsis() {
        // The space between two words is what fills the line.
        assert_eq!(one_line("abc def", 3), "abc…");
        assert_eq!(one_line("abc def", 4), "abc …");
        assert_eq!(one_line("abc\n\n def", 7), "abc def");
    }
}
