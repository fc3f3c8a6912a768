//! Interprets a collector's response: accepted, to be retried, or rejected.

use std::time::Duration;

use serde_json::Value as Json;

use crate::options::Format;

/// Longest wait that a collector can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Characters of a collector's message that are shown.
const MAX_MESSAGE_CHARS: usize = 200;

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CollectorAnswer {
    /// The collector took the request except for so many items; the reason may be empty.
    Accepted { rejected: u64, why: String },
    /// The collector took nothing; the same request may be sent again, after this wait if one is given.
    Later(String, Option<Duration>),
    /// There was no answer; the same request may be sent again.
    Missing(String),
    /// The request has too many bytes.
    TooLarge,
    /// The collector took nothing and never will.
    Refused(String),
}

impl CollectorAnswer {
    /// Reads an answer by its status, its headers `retry-after` and `content-type`, and its body.
    pub(crate) fn from_response(
        status: u16,
        (retry_after, content_type): (Option<&str>, Option<&str>),
        format: Format,
        body: &[u8],
    ) -> Self {
        match status {
            200..=299 => match read_message(format, body) {
                Some((rejected, why)) => Self::Accepted { rejected, why: one_line(&why) },
                None => {
                    let kind = content_type.and_then(|kind| kind.split(';').next());
                    let kind = one_line(kind.unwrap_or("an unknown kind of content"));
                    Self::Refused(format!("it answers with {kind}, as no collector does"))
                }
            },
            // https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes
            429 | 502 | 503 | 504 => {
                let wait = retry_after.and_then(|text| text.trim().parse().ok());
                let wait = wait.map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
                Self::Later(format!("it answers with status {status}"), wait)
            }
            413 => Self::TooLarge,
            300..=399 => Self::Refused(format!("it redirects (status {status})")),
            _ => Self::Refused(format!("it refuses the data (status {status})")),
        }
    }
}

/// A collector's words, as a part of a sentence: without line breaks and controls, and short.
fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().take(MAX_MESSAGE_CHARS).map(plain).collect();
    text.trim().to_owned()
}

/// Reads how many items were rejected, and why; `None` if the body is no message of a collector. Some answer with JSON to
/// a request of either format, and an empty body is an empty message.
fn read_message(format: Format, body: &[u8]) -> Option<(u64, String)> {
    if body.is_empty() {
        return Some((0, String::new()));
    }
    if let Ok(body) = gnoma_core::json::from_bytes::<Json>(body) {
        return Some(read_json(&body));
    }
    match format {
        Format::Json => None,
        Format::Protobuf => {
            // ExportTraceServiceResponse.partial_success = 1, with rejected_spans = 1 and error_message = 2; those of
            // metrics and logs have the same numbers.
            let (why, rejected) = read_part(find_part(body)?)?;
            Some((rejected, String::from_utf8_lossy(why).into_owned()))
        }
    }
}

fn read_json(body: &Json) -> (u64, String) {
    let Some(part) = body.get("partialSuccess") else { return (0, String::new()) };
    // A 64-bit number is a text in JSON, which not every collector knows.
    let number =
        |value: &Json| value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    let rejected = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];
    let rejected = rejected.iter().find_map(|name| part.get(name)).and_then(number);
    let why = part.get("errorMessage").and_then(Json::as_str).unwrap_or_default();
    (rejected.unwrap_or(0), why.to_owned())
}

/// Returns the bytes of the field 1, which is a message and may be missing; `None` if the bytes are no message.
fn find_part(body: &[u8]) -> Option<&[u8]> {
    let (mut found, mut rest) = (&[][..], body);
    while !rest.is_empty() {
        let (number, field, behind) = next_field(rest)?;
        if let (1, ProtoField::Bytes(bytes)) = (number, field) {
            found = bytes;
        }
        rest = behind;
    }
    Some(found)
}

/// Returns the reason of a partial success, and how many items were rejected.
fn read_part(part: &[u8]) -> Option<(&[u8], u64)> {
    let (mut why, mut rejected, mut rest) = (&[][..], 0, part);
    while !rest.is_empty() {
        let (number, field, behind) = next_field(rest)?;
        match (number, field) {
            (1, ProtoField::Number(count)) => rejected = count,
            (2, ProtoField::Bytes(bytes)) => why = bytes,
            _ => (),
        }
        rest = behind;
    }
    Some((why, rejected))
}

enum ProtoField<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// Reads one field; `None` if the bytes are not one.
fn next_field(bytes: &[u8]) -> Option<(u64, ProtoField<'_>, &[u8])> {
    let (tag, rest) = read_varint(bytes)?;
    let (field, rest) = match tag & 7 {
        0 => {
            let (number, rest) = read_varint(rest)?;
            (ProtoField::Number(number), rest)
        }
        1 => (ProtoField::Other, rest.get(8..)?),
        2 => {
            let (length, rest) = read_varint(rest)?;
            let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (ProtoField::Bytes(bytes), rest)
        }
        5 => (ProtoField::Other, rest.get(4..)?),
        _ => return None,
    };
    Some((tag >> 3, field, rest))
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    /// A number of 64 bits takes at most ten bytes of seven bits each.
    const MAX_VARINT_BYTES: usize = 10;
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().take(MAX_VARINT_BYTES).enumerate() {
        let shift = u32::try_from(7 * at).ok()?;
        number |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &[u8]) -> CollectorAnswer {
        CollectorAnswer::from_response(status, (None, None), Format::Protobuf, body)
    }

    #[test]
    fn http_status_decides_whether_an_otlp_export_is_retried() {
        assert_eq!(read(200, b""), CollectorAnswer::Accepted { rejected: 0, why: String::new() });
        for status in [429, 502, 503, 504] {
            assert!(matches!(read(status, b""), CollectorAnswer::Later(_, None)), "{status}");
        }
        assert_eq!(read(413, b""), CollectorAnswer::TooLarge);
        for status in [301, 400, 401, 404, 500, 501] {
            assert!(matches!(read(status, b""), CollectorAnswer::Refused(_)), "{status}");
        }
        let waits = |text| {
            let headers = (Some(text), None);
            match CollectorAnswer::from_response(429, headers, Format::Json, b"") {
                CollectorAnswer::Later(_, wait) => wait,
                _ => None,
            }
        };
        assert_eq!(waits("7"), Some(Duration::from_secs(7)));
        assert_eq!(waits("999999999"), Some(MAX_RETRY_AFTER));
        assert_eq!(waits("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }

    #[test]
    fn otlp_partial_success_is_parsed_from_json_and_protobuf() {
        let expected = CollectorAnswer::Accepted { rejected: 3, why: "too old".to_owned() };
        let body = [0x0A, 11, 0x08, 3, 0x12, 7, b't', b'o', b'o', b'\n', b'o', b'l', b'd'];
        assert_eq!(read(200, &body), expected);
        let json = br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#;
        for format in [Format::Json, Format::Protobuf] {
            let answer = CollectorAnswer::from_response(200, (None, None), format, json);
            assert_eq!(answer, expected);
        }
    }

    #[test]
    fn non_otlp_response_body_is_reported_as_not_a_collector() {
        let bodies: [&[u8]; 6] =
            [b"<html>", &[0x0A], &[0x0A, 0xFF], &[0xFF; 40], &[0x0A, 1, 0x08], &[7]];
        let headers = (None, Some("text/html; charset=utf-8"));
        let why = "it answers with text/html, as no collector does".to_owned();
        for body in bodies {
            for format in [Format::Json, Format::Protobuf] {
                let answer = CollectorAnswer::from_response(200, headers, format, body);
                assert_eq!(answer, CollectorAnswer::Refused(why.clone()), "{body:?}");
            }
        }
        let accepted = CollectorAnswer::Accepted { rejected: 0, why: String::new() };
        for body in [&b"{}"[..], b"", &[0x0A, 0], &[0x12, 1, b'x']] {
            assert_eq!(read(200, body), accepted, "{body:?}");
        }
    }
}
