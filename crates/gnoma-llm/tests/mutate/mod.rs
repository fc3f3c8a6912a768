//! Bodies of answers, damaged as servers and networks damage them.
//!
//! A body is cut into its records: events of a stream, or lines of JSON. What is done to it leaves its content
//! whole, so the answer must be the same.

use serde_json::Value;

/// The places of words in a record, on all wires.
const WORDS: [&str; 8] = [
    "/choices/0/delta/content",
    "/choices/0/delta/reasoning_content",
    "/choices/0/delta/tool_calls/0/function/arguments",
    "/delta/text",
    "/delta/thinking",
    "/delta/partial_json",
    "/candidates/0/content/parts/0/text",
    "/message/content",
];
/// A record of the Responses API has its words here, if it is one of these.
const DELTA: &str = "/delta";
const DELTAS: [&str; 2] = ["response.output_text.delta", "response.function_call_arguments.delta"];

/// Places that say why an answer ends.
const REASONS: [&str; 4] = [
    "/choices/0/finish_reason",
    "/delta/stop_reason",
    "/candidates/0/finishReason",
    "/done_reason",
];

/// What is put into words to have a character that can be cut in two.
const LETTER: &str = "😀";

/// The body of an answer in records.
pub(crate) struct Body {
    records: Vec<String>,
    /// What ends each record.
    end: &'static str,
}

impl Body {
    /// The records of `body`; `None` if it is one JSON value, or no text.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        let end = ["\r\n\r\n", "\n\n", "\n"].into_iter().find(|end| text.contains(end))?;
        if text.starts_with('[') || (text.starts_with('{') && end != "\n") {
            return None;
        }
        let records: Vec<_> = text.split_terminator(end).map(str::to_owned).collect();
        (records.len() > 1).then_some(Self { records, end })
    }

    fn joined<'r>(&self, records: impl IntoIterator<Item = &'r str>) -> String {
        records.into_iter().flat_map(|record| [record, self.end]).collect()
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.records.iter().map(String::as_str)
    }

    /// The last record that says why the answer ends.
    pub(crate) fn reason_at(&self) -> Option<usize> {
        self.records.iter().rposition(|record| {
            let Some((_, value)) = value_of(record) else { return false };
            let reason = REASONS.iter().find_map(|place| value.pointer(place)?.as_str());
            let is_known = reason.is_some_and(|reason| !matches!(reason, "error" | "RECITATION"));
            is_known && value.get("error").is_none()
        })
    }

    /// Everything up to the reason why the answer ends, with that record, and its length in bytes.
    pub(crate) fn up_to_reason(&self) -> Option<String> {
        let at = self.reason_at()?;
        Some(self.joined(self.all().take(at + 1)))
    }

    /// The records from the reason on, twice.
    pub(crate) fn with_doubled_end(&self) -> Option<String> {
        let at = self.reason_at()?;
        Some(self.joined(self.all().chain(self.all().skip(at + 1))))
    }

    /// With half a record behind the reason.
    pub(crate) fn with_junk_at_end(&self) -> Option<String> {
        let junk = if self.end == "\n" { "{\"cut\":" } else { "data: {\"cut\":" };
        Some(format!("{}{junk}{}", self.up_to_reason()?, self.end))
    }

    /// With a letter in the middle of each record's words; it is whole, and cut in two over two records.
    pub(crate) fn with_split_letters(&self) -> Option<(String, String)> {
        let (mut whole, mut split) = (Vec::new(), Vec::new());
        for record in &self.records {
            match cut_in_letter(record) {
                Some([full, first, second]) => {
                    whole.push(full);
                    split.extend([first, second]);
                }
                None => {
                    whole.push(record.clone());
                    split.push(record.clone());
                }
            }
        }
        let texts = |records: &[String]| self.joined(records.iter().map(String::as_str));
        (split.len() > whole.len()).then(|| (texts(&whole), texts(&split)))
    }

    /// With an empty stand-in before the first arguments of each call that is streamed.
    pub(crate) fn with_stand_ins(&self) -> Option<String> {
        let mut out = Vec::new();
        let mut has_begun = false;
        let mut found = false;
        for record in &self.records {
            let place = arguments_place(record);
            if let Some((prefix, value, place)) = place
                && !std::mem::replace(&mut has_begun, true)
            {
                found = true;
                out.push(with_words(prefix, &value, place, "{}"));
                // The first record names the call; the next one must not begin it again.
                let mut next = value.clone();
                for name in ["id", "name"] {
                    let call = next.pointer_mut("/choices/0/delta/tool_calls/0");
                    if let Some(Value::Object(call)) = call {
                        call.shift_remove(name);
                        if let Some(Value::Object(function)) = call.get_mut("function") {
                            function.shift_remove(name);
                        }
                    }
                }
                out.push(format!("{prefix}{next}"));
                continue;
            }
            out.push(record.clone());
        }
        found.then(|| self.joined(out.iter().map(String::as_str)))
    }
}

/// What stands before the JSON of a record, and the JSON.
fn value_of(record: &str) -> Option<(&str, Value)> {
    let at = record.find('{')?;
    let (prefix, json) = record.split_at(at);
    Some((prefix, serde_json::from_str(json.trim_end()).ok()?))
}

fn words_place(value: &Value) -> Option<&'static str> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    if DELTAS.contains(&kind) {
        return Some(DELTA);
    }
    let has_words = |place: &&&str| {
        value.pointer(place).and_then(Value::as_str).is_some_and(|words| !words.is_empty())
    };
    let mut found = WORDS.iter().filter(has_words);
    found.next().copied().filter(|_| found.next().is_none())
}

fn arguments_place(record: &str) -> Option<(&str, Value, &'static str)> {
    let (prefix, value) = value_of(record)?;
    let place = words_place(&value)?;
    // Of several calls in one record, the others would come twice.
    if value.pointer("/choices/0/delta/tool_calls/1").is_some() {
        return None;
    }
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_arguments = place.ends_with("arguments")
        || place.ends_with("partial_json")
        || (place == DELTA && kind.contains("arguments"));
    is_arguments.then_some((prefix, value, place))
}

fn with_words(prefix: &str, value: &Value, place: &str, words: &str) -> String {
    let mut value = value.clone();
    if let Some(old) = value.pointer_mut(place) {
        *old = Value::String(words.to_owned());
    }
    format!("{prefix}{value}")
}

/// The record with the letter, and two records with a half each.
fn cut_in_letter(record: &str) -> Option<[String; 3]> {
    let (prefix, value) = value_of(record)?;
    let parts = value.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    let is_plain = REASONS.iter().all(|place| value.pointer(place).is_none_or(Value::is_null))
        && parts.is_none_or(|parts| parts.len() == 1 && parts[0].get("thoughtSignature").is_none())
        && value.pointer("/choices/0/delta/tool_calls/0/id").is_none_or(Value::is_null)
        && value.get("done") != Some(&Value::Bool(true));
    let place = words_place(&value).filter(|_| is_plain)?;
    let words = value.pointer(place)?.as_str()?;
    let middle = words.char_indices().nth(words.chars().count() / 2)?.0;
    let (left, right) = words.split_at(middle);
    // A backslash before the letter would make it an escape within arguments.
    if left.ends_with('\\') {
        return None;
    }
    // A mark that stands for a half until the record is text: JSON escapes cannot be put into a `Value`.
    let half = |words: &str, escape: &str| {
        with_words(prefix, &value, place, words).replace("<<half>>", escape)
    };
    Some([
        with_words(prefix, &value, place, &format!("{left}{LETTER}{right}")),
        half(&format!("{left}<<half>>"), "\\ud83d"),
        half(&format!("<<half>>{right}"), "\\ude00"),
    ])
}
