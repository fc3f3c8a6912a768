//! Private key blocks in any wrapping: lines, one line, escaped, indented, quoted line by line,
//! numbered, in a diff, cut off.
//!
//! The whole block is one finding, with its frame. Certificates and public keys are passed.

use std::ops::Range;

use memchr::memmem;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::end_at,
};

pub(super) const PRIVATE_KEY: SecretContext =
    SecretContext { id: "private-key", keywords: &["---begin ", "--- begin "], find: private_key };

/// The end of a block whose beginning was cut off.
pub(super) const PRIVATE_KEY_END: SecretContext =
    SecretContext { id: "private-key", keywords: &["---end ", "--- end "], find: private_key_end };

/// The body of a block whose frame was cut off, by how keys begin: RSA's own format and PKCS #8, both of
/// which say that they are private in their first bytes, and OpenSSH's. What is cut out of the middle
/// looks like the middle of a certificate.
pub(super) const PRIVATE_KEY_BODY: SecretContext = SecretContext {
    id: "private-key",
    keywords: &[
        "ibaakcaqea",
        "ibaakcagea",
        "ibadanbgkqhkig9w0baqefaasc",
        "b3blbnnzac1rzxktdjeaaaaa",
    ],
    find: private_key_body,
};

/// The keywords of a body in the letter case that counts, with the number of bytes before each.
const BODY_STARTS: [(&[u8], usize); 4] = [
    (b"IBAAKCAQEA", LENGTH_FIELD_BYTES),
    (b"IBAAKCAgEA", LENGTH_FIELD_BYTES),
    (b"IBADANBgkqhkiG9w0BAQEFAASC", LENGTH_FIELD_BYTES),
    (b"b3BlbnNzaC1rZXktdjEAAAAA", 0),
];
/// `MII` and the length of the key, before its version.
const LENGTH_FIELD_BYTES: usize = 6;
/// A body without its frame has a line at least this long; manuals show shorter beginnings.
const MIN_BARE_RUN_BYTES: usize = 60;

/// Longest line that opens a block, after `BEGIN`.
const MAX_LABEL_BYTES: usize = 64;
/// The length of the longest block, in bytes.
const MAX_BLOCK_BYTES: usize = 64 << 10;
/// A body holds a run of base64 of at least this length; the frame alone is no secret.
const MIN_RUN_BYTES: usize = 16;
/// The number of bytes that one line may hold in addition to base64: indentation, quotes, a line number, a comment
/// sign.
const MAX_NOISE_BYTES: usize = 24;

fn private_key(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let label_end = end_at(text, hit.end, MAX_LABEL_BYTES, |byte| byte == b'-' || byte == b'\n');
    let label = text.get(hit.end..label_end).unwrap_or_default();
    if memmem::find(label, b"PRIVATE KEY").is_none() {
        return;
    }
    let start = start_of_dashes(text, hit.start);
    let body = end_at(text, label_end, MAX_LABEL_BYTES, |byte| byte != b'-');
    let (inner, end) = end_of_block(text, body);
    if longest_run(text.get(body..inner).unwrap_or_default()) >= MIN_RUN_BYTES {
        found(start..end);
    }
}

fn private_key_end(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let label_end = end_at(text, hit.end, MAX_LABEL_BYTES, |byte| byte == b'-' || byte == b'\n');
    let label = text.get(hit.end..label_end).unwrap_or_default();
    if memmem::find(label, b"PRIVATE KEY").is_none() {
        return;
    }
    let close = start_of_dashes(text, hit.start);
    let start = body_before(text, close);
    let whole = text.get(start..close).unwrap_or_default();
    if memmem::find(whole, b"-BEGIN ").is_some() {
        // Its beginning is there and calls for the block as a whole.
        return;
    }
    if longest_run(whole) >= MIN_RUN_BYTES {
        found(start..end_at(text, label_end, MAX_LABEL_BYTES, |byte| byte != b'-'));
    }
}

fn private_key_body(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let word = text.get(hit.clone()).unwrap_or_default();
    let known = BODY_STARTS.iter().find(|(start, _)| *start == word);
    let Some(start) = known.and_then(|(_, before)| hit.start.checked_sub(*before)) else { return };
    if start < hit.start && !text.get(start..).is_some_and(|body| body.starts_with(b"MII")) {
        return;
    }
    let frame = text.get(start.saturating_sub(MAX_LABEL_BYTES)..start).unwrap_or_default();
    if memmem::find(frame, b"-BEGIN ").is_some() {
        // Its frame calls for the block as a whole.
        return;
    }
    let end = cut_off(text, start);
    if longest_run(text.get(start..end).unwrap_or_default()) >= MIN_BARE_RUN_BYTES {
        found(start..end);
    }
}

/// Returns the start of the lines that look like the body of a key and end at `close`.
fn body_before(text: &[u8], close: usize) -> usize {
    let line_start = |end: usize| {
        let before = text.get(..end).unwrap_or_default();
        memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)
    };
    let limit = close.saturating_sub(MAX_BLOCK_BYTES);
    let mut start = line_start(close);
    while start > limit {
        let before = line_start(start - 1);
        let line = text.get(before..start - 1).unwrap_or_default();
        if !matches!(last_of_body(line), Some(1..)) {
            break;
        }
        start = before;
    }
    start
}

fn start_of_dashes(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    at - before.iter().rev().take_while(|&&byte| byte == b'-').count()
}

/// Returns the end of the body and the end of the block: at its last line, or at the point where the key was cut
/// off.
fn end_of_block(text: &[u8], body: usize) -> (usize, usize) {
    let cut = cut_off(text, body);
    let reach = text.len().min(cut + MAX_NOISE_BYTES + MAX_LABEL_BYTES);
    let rest = text.get(body..reach).unwrap_or_default();
    let Some(close) = memmem::find(rest, b"-END ").or_else(|| memmem::find(rest, b"- END ")) else {
        return (cut, cut);
    };
    let label_end =
        end_at(text, body + close + 2, MAX_LABEL_BYTES, |byte| byte == b'-' || byte == b'\n');
    let end = end_at(text, label_end, MAX_LABEL_BYTES, |byte| byte != b'-');
    (body + close, end)
}

/// Returns the offset at which the text stops looking like the body of a key.
fn cut_off(text: &[u8], body: usize) -> usize {
    let limit = text.len().min(body + MAX_BLOCK_BYTES);
    let rest = text.get(body..limit).unwrap_or_default();
    let limit = memmem::find(rest, b"-BEGIN ").map_or(limit, |next| body + next);
    let mut end = body;
    let mut at = body;
    while at < limit {
        let line_end = end_at(text, at, limit - at, |byte| byte == b'\n');
        let line = text.get(at..line_end).unwrap_or_default();
        match last_of_body(line) {
            Some(0) => {}
            Some(length) => end = at + length,
            None => break,
        }
        at = line_end + 1;
    }
    end
}

/// Length of the part of a line that belongs to a key: `None` if the line is something else.
fn last_of_body(line: &[u8]) -> Option<usize> {
    let blank = (0..line.len())
        .all(|at| is_escape(line, at) || line.get(at).is_some_and(|&byte| is_noise(byte)));
    if blank || is_key_header(line) {
        return Some(if blank { 0 } else { line.len() });
    }
    let mut last = 0;
    let mut noise = 0;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        if is_base64(byte) && !is_escape(line, at) {
            let run = line.get(at..)?.iter().take_while(|&&byte| is_base64(byte)).count();
            // A short run is a line number or the end of the body; a word of prose is neither.
            at += run;
            last = at;
            noise = 0;
            continue;
        }
        noise += 1;
        let belongs = is_noise(byte) || is_escape(line, at);
        if !belongs || noise > MAX_NOISE_BYTES {
            break;
        }
        at += 1;
    }
    let is_long = longest_run(line.get(..last)?) >= MIN_RUN_BYTES;
    let is_tail =
        last > 0 && last + MAX_NOISE_BYTES >= line.len() && !line.get(..last)?.contains(&b' ');
    (is_long || is_tail).then_some(last)
}

/// `Proc-Type: 4,ENCRYPTED` and the like.
fn is_key_header(line: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Subject:"];
    NAMES.iter().any(|name| memmem::find(line, name).is_some())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_noise(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'"' | b'\''
                | b'`'
                | b'\\'
                | b','
                | b';'
                | b'+'
                | b'>'
                | b'|'
                | b'#'
                | b'*'
                | b'.'
                | b'-'
                | b':'
                | b'('
                | b')'
                | b'/'
        )
        // The arrow and the bar after a line's number, in UTF-8.
        || matches!(byte, 0xE2 | 0x86 | 0x92 | 0x94 | 0x82)
}

/// The letter of `\n`, `\r`, `\t`.
fn is_escape(line: &[u8], at: usize) -> bool {
    matches!(line.get(at), Some(b'n' | b'r' | b't'))
        && at.checked_sub(1).and_then(|before| line.get(before)) == Some(&b'\\')
}

fn longest_run(text: &[u8]) -> usize {
    text.split(|&byte| !is_base64(byte)).map(<[u8]>::len).max().unwrap_or(0)
}
