//! Kubernetes `Secret` objects: every value of `data` is one, whatever its key is called.
//!
//! `stringData` holds plain text under names that say what it is; those are found by their names.

use std::ops::Range;

use memchr::memmem;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::end_at,
};

pub(super) const SECRET_DATA: SecretContext = SecretContext {
    id: "kubernetes-secret",
    keywords: &["kind: secret", "\"kind\": \"secret\"", "\"kind\":\"secret\""],
    find: secret_data,
};

/// The greatest distance from `kind` at which the data of an object is looked for, in bytes.
const MAX_OBJECT_BYTES: usize = 16 << 10;
/// Values of one object that are looked at.
const MAX_VALUES: usize = 256;
/// Shortest value: base64 of four characters.
const MIN_VALUE_BYTES: usize = 8;
/// The beginnings of the base64 of `-----BEGIN CERTIFICATE` and `-----BEGIN PUBLIC`.
const PUBLIC_STARTS: &[&[u8]] = &[b"LS0tLS1CRUdJTiBDRV", b"LS0tLS1CRUdJTiBQVU"];

fn secret_data(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let is_whole_word = text.get(hit.end).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    if !is_whole_word {
        return;
    }
    let object = object_around(text, &hit);
    let Some(body) = text.get(object.clone()) else { return };
    for key in memmem::find_iter(body, b"data") {
        let is_key = key
            .checked_sub(1)
            .and_then(|before| body.get(before))
            .is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let after = end_at(body, key + 4, 4, |byte| byte != b'"' && byte != b' ');
        if is_key && body.get(after) == Some(&b':') {
            find_values(body, after + 1, &mut |span| {
                found(object.start + span.start..object.start + span.end);
            });
        }
    }
}

/// The YAML document around `hit` up to its neighbours of the same kind, or as much of other text as an object may take.
fn object_around(text: &[u8], hit: &Range<usize>) -> Range<usize> {
    let low = hit.start.saturating_sub(MAX_OBJECT_BYTES);
    let high = text.len().min(hit.end + MAX_OBJECT_BYTES);
    let before = text.get(low..hit.start).unwrap_or_default();
    let after = text.get(hit.end..high).unwrap_or_default();
    let kind = text.get(hit.clone()).unwrap_or_default();
    // Its neighbour first: what is left to search is short where there are many.
    let low = memmem::rfind(before, kind).map_or(low, |at| low + at);
    let high = memmem::find(after, kind).map_or(high, |at| hit.end + at);
    let before = text.get(low..hit.start).unwrap_or_default();
    let after = text.get(hit.end..high).unwrap_or_default();
    let start = memmem::rfind(before, b"\n---").map_or(low, |at| low + at);
    let end = memmem::find(after, b"\n---").map_or(high, |at| hit.end + at);
    start..end
}

/// `key: value` pairs from `from` on, as long as the values are base64.
fn find_values(body: &[u8], from: usize, found: SpanSink) {
    let mut at = from;
    for _ in 0..MAX_VALUES {
        let Some(value) = next_value(body, at) else { return };
        let bytes = body.get(value.clone()).unwrap_or_default();
        let is_public = PUBLIC_STARTS.iter().any(|start| bytes.starts_with(start));
        if bytes.len() >= MIN_VALUE_BYTES && !is_public {
            found(value.clone());
        }
        at = value.end;
    }
}

/// The next value after a key, if nothing else comes first.
fn next_value(body: &[u8], from: usize) -> Option<Range<usize>> {
    let is_sign = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'{' | b',');
    let key = end_at(body, from, 256, |byte| !is_sign(byte));
    let key_end =
        end_at(body, key, 256, |byte| !byte.is_ascii_alphanumeric() && !b"-_.".contains(&byte));
    let colon = end_at(body, key_end, 2, |byte| byte != b'"');
    if key_end == key || body.get(colon) != Some(&b':') {
        return None;
    }
    let start = end_at(body, colon + 1, 8, |byte| byte != b' ' && byte != b'"' && byte != b'\'');
    let end = end_at(body, start, MAX_OBJECT_BYTES, |byte| {
        !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'/' | b'=')
    });
    let is_closed =
        body.get(end).is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\''));
    (end > start && is_closed).then_some(start..end)
}
