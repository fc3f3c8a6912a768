//! Reads an entry that damage has made unreadable. If the format of entries leaves only one possibility for a wrong
//! byte, that is used; a letter of a text that nothing determines becomes `�`. Numbers are never made up. Pure.

use std::{collections::BTreeSet, sync::Arc};

use gnoma_core::{Content, Message, Role, Text, Thinking, ToolCall, store::Record};

/// The character that replaces a lost letter.
const LOST: char = char::REPLACEMENT_CHARACTER;

/// The characters that the form of an entry is written with, and the letters and digits that its names have.
const LETTERS: &str = "\"{}[]:,\\-_0123456789abcdefghijklmnopqrstuvwxyz";

/// Characters before the place where reading ends in which the wrong one is searched for first.
const NEAR: usize = 64;

/// Texts that are longer are no names: their inner letters are not looked at where they are far away.
const LONGEST_NAME: usize = 24;

/// Bytes that are read in trying, where all that can be recovered is worth it.
pub(crate) const MAX_BYTES_TRIED: usize = 64 << 20;

/// Letters in a row that are marked where nobody can say which of them is wrong.
const MAX_MARKED: usize = 4;

/// Bytes of an unreadable message that are shown.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// The entry as it was, or with `�` for a letter or two that nobody knows. At most `max_bytes` are read in
/// trying; of a long entry that is enough for the places near the damage alone.
pub(crate) fn repair_entry(body: &str, max_bytes: usize) -> Option<Record> {
    let end = end_of_sense(body)?;
    let mut left = max_bytes;
    for places in suspect_places(body, end) {
        let mut found: BTreeSet<usize> = BTreeSet::new();
        let mut only = Vec::new();
        for at in places {
            for letter in LETTERS.chars().chain([LOST]) {
                left = left.checked_sub(body.len())?;
                if let Some(record) = read_with(body, &[at], letter) {
                    found.insert(at);
                    only.push(record);
                }
            }
        }
        match (found.len(), only.len()) {
            (0, _) => {}
            (1, 1) => return only.pop(),
            _ => return read_with_marks(body, found),
        }
    }
    None
}

/// The entry with a mark at the places; else also between them, and before them, where one may be escaped
/// by another.
fn read_with_marks(body: &str, found: BTreeSet<usize>) -> Option<Record> {
    let (first, last) = (*found.first()?, *found.last()?);
    let before = body.floor_char_boundary(first.saturating_sub(1));
    let from = |from: usize| {
        let all = (from..=last).filter(|at| body.is_char_boundary(*at));
        all.take(MAX_MARKED + 1).collect::<Vec<_>>()
    };
    let wider = [from(first), from(before)].into_iter().filter(|all| all.len() <= MAX_MARKED);
    std::iter::once(Vec::from_iter(found))
        .chain(wider)
        .find_map(|places| read_with(body, &places, LOST))
}

/// Returns the replacement for an unreadable message: a text that says so and shows what is left.
pub(crate) fn in_words(body: &str) -> Option<Record> {
    let end = body.floor_char_boundary(MAX_SHOWN_BYTES);
    let text = format!("[damaged message; what is left of it: {}]", body.get(..end)?);
    let is_answer = body.contains("\"role\":\"assistant\"");
    let message = match Message::assistant(vec![Content::from_text(text.clone())], None, None) {
        Ok(message) if is_answer => message,
        Ok(_) | Err(_) => Message::user_text(text),
    };
    Some(Record::Message(Arc::new(message)))
}

/// The entry with a letter in the place of others; `None` unless it is then just as one is written.
fn read_with(body: &str, places: &[usize], letter: char) -> Option<Record> {
    let mut text = String::with_capacity(body.len() + letter.len_utf8());
    let mut from = 0;
    for at in places {
        let old = body.get(*at..)?.chars().next()?;
        text.push_str(body.get(from..*at)?);
        text.push(letter);
        from = at + old.len_utf8();
    }
    text.push_str(body.get(from..)?);
    let record = Record::from_json(&text).ok()?;
    let is_as_written = serde_json::to_string(&record).is_ok_and(|written| written == text);
    match record {
        _ if !is_as_written => None,
        Record::Message(message) if letter == LOST => strip_signatures(&message),
        record => Some(record),
    }
}

/// The message without what its provider signed: a signature holds for the words as they were.
fn strip_signatures(message: &Message) -> Option<Record> {
    let content = message.content().iter().filter_map(|part| match part.clone() {
        Content::Text(Text { text, .. }) | Content::Thinking(Thinking { text, .. })
            if text.is_empty() =>
        {
            None
        }
        Content::Text(text) => Some(Content::Text(Text { signature: None, ..text })),
        Content::Thinking(thinking) => {
            Some(Content::Thinking(Thinking { signature: None, item: None, ..thinking }))
        }
        Content::ToolCall(call) => Some(Content::ToolCall(ToolCall { signature: None, ..call })),
        Content::RedactedThinking(_) => None,
        part @ (Content::Image(_) | Content::ToolResult(_)) => Some(part),
    });
    let rebuilt = match message.role() {
        Role::Assistant => {
            Message::assistant(content.collect(), message.origin().cloned(), message.stop_reason())
                .ok()?
        }
        Role::User | Role::Tool => message.clone(),
    };
    Some(Record::Message(Arc::new(rebuilt)))
}

/// Returns the place where reading ends.
fn end_of_sense(body: &str) -> Option<usize> {
    let error = Record::from_json(body).err()?;
    // Entries are written on one line.
    (error.line() <= 1).then(|| error.column().min(body.len()))
}

/// Returns the places where the wrong letter may stand: near the place where reading ends, then wherever names and
/// signs stand before it.
fn suspect_places(body: &str, end: usize) -> [Vec<usize>; 2] {
    let first = body.floor_char_boundary(end.saturating_sub(NEAR));
    let last = body.ceil_char_boundary(end + 1);
    let near = (first..last).filter(|at| body.is_char_boundary(*at) && *at < body.len());
    let mut far = Vec::new();
    let (mut text, mut is_text, mut is_escaped) = (Vec::new(), false, false);
    for (at, letter) in body.char_indices().take_while(|(at, _)| *at < first) {
        match letter {
            '"' if !is_escaped => {
                if text.len() <= LONGEST_NAME {
                    far.append(&mut text);
                }
                text.clear();
                is_text = !is_text;
                far.push(at);
            }
            _ if is_text => text.push(at),
            _ => far.push(at),
        }
        is_escaped = is_text && letter == '\\' && !is_escaped;
    }
    far.reverse();
    [near.collect(), far]
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolResult, Usage};

    use super::*;

    fn written(record: &Record) -> String {
        serde_json::to_string(record).unwrap()
    }

    fn result() -> Record {
        let call = ToolCall::new(CallId::new("c1"), "bash", RawJson::empty_object());
        let results = vec![ToolResult::from_text(&call, "one \"two\"\nthree ".repeat(3), false)];
        Record::Message(Arc::new(Message::results(results).unwrap()))
    }

    /// Every letter of an entry is made wrong; how many entries are as they were, have a mark, and are
    /// not read.
    fn tally(record: &Record, wrong: char) -> [usize; 3] {
        let body = written(record);
        let mut counts = [0; 3];
        for (at, old) in body.char_indices().filter(|(_, old)| *old != wrong) {
            let harmed = format!("{}{wrong}{}", &body[..at], &body[at + old.len_utf8()..]);
            if serde_json::from_str::<Record>(&harmed).is_ok() {
                continue;
            }
            match repair_entry(&harmed, MAX_BYTES_TRIED) {
                Some(found) if found == *record => counts[0] += 1,
                Some(found) => {
                    assert!(written(&found).contains(LOST), "{harmed} is {found:?}");
                    counts[1] += 1;
                }
                None => counts[2] += 1,
            }
        }
        counts
    }

    #[test]
    fn corrupt_byte_in_json_syntax_is_repaired_and_in_text_marked() {
        for wrong in ['z', '"', '\u{1}', '\\', '{'] {
            let [same, marked, lost] = tally(&result(), wrong);
            assert!(lost <= 3 && same > 30, "{wrong:?}: {same} {marked} {lost}");
        }
    }

    #[test]
    fn json_repair_drops_the_signature_of_damaged_thinking() {
        let thinking =
            Thinking { text: "first this".into(), signature: Some("abc".into()), item: None };
        let content = vec![Content::Thinking(thinking), Content::from_text("done")];
        let message = Message::assistant(content, None, None).unwrap();
        let body = written(&Record::Message(Arc::new(message))).replace("first", "fir\u{1}t");
        let Some(Record::Message(found)) = repair_entry(&body, MAX_BYTES_TRIED) else { panic!() };
        let Some(Content::Thinking(thinking)) = found.content().first() else { panic!() };
        assert_eq!((thinking.text.as_str(), &thinking.signature), ("fir\u{fffd}t this", &None));
    }

    #[test]
    fn json_repair_never_guesses_a_number() {
        let used = Record::Used(Usage { input: 12, ..Usage::default() });
        let mend = |body: String| super::repair_entry(&body, MAX_BYTES_TRIED);
        assert!(mend(written(&used).replace("12", "1z")).is_none());
        assert_eq!(mend(written(&used).replace("used", "us\u{fffd}d")), Some(used));
    }

    #[test]
    fn unrepairable_message_is_shown_as_text() {
        let body = written(&result()).replace("parts", "\u{1}arXs");
        assert!(repair_entry(&body, MAX_BYTES_TRIED).is_none());
        let Some(Record::Message(message)) = in_words(&body) else { panic!("no message") };
        assert!(message.text_content().contains("three"), "{message:?}");
    }
}
