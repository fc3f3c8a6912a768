//! Spans and the context that links them, as W3C Trace Context writes it.

use std::{borrow::Cow, fmt};

/// Identifies a trace; not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Identifies a span within its trace; not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Makes an id of random bits.
    #[must_use]
    pub fn from_random(high: u64, low: u64) -> Self {
        let bits = (u128::from(high) << 64) | u128::from(low.max(1));
        Self(bits.to_be_bytes())
    }
}

impl SpanId {
    /// Makes an id of random bits.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        Self(bits.max(1).to_be_bytes())
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// A span that others can be below, also in other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The id of the trace that the span belongs to.
    pub trace: TraceId,
    /// The id of the span.
    pub span: SpanId,
    /// `true` if the trace is recorded.
    pub is_sampled: bool,
}

impl SpanContext {
    /// Reads the header `traceparent` of W3C Trace Context, such as
    /// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        /// Bytes of a header of version 0; later versions may add parts behind a `-`.
        const VERSION_0_BYTES: usize = 55;
        let text = text.trim();
        let (known, rest) = text.split_at_checked(VERSION_0_BYTES)?;
        let mut parts = known.split('-');
        let version: [u8; 1] = parse_hex(parts.next()?)?;
        let (trace, span) = (parse_hex(parts.next()?)?, parse_hex(parts.next()?)?);
        let flags: [u8; 1] = parse_hex(parts.next()?)?;
        let has_valid_end = match version {
            [0] => rest.is_empty(),
            [0xFF] => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        if parts.next().is_some() || !has_valid_end || trace == [0; 16] || span == [0; 8] {
            return None;
        }
        let is_sampled = flags.iter().any(|flags| flags & 1 == 1);
        Some(Self { trace: TraceId(trace), span: SpanId(span), is_sampled })
    }
}

/// Writes the header `traceparent`.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Reads exactly `N` bytes of lower-case hexadecimal digits.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A value of text.
    Text(String),
    /// A signed whole number.
    Int(i64),
    /// A number in floating point.
    Number(f64),
    /// A value that is true or false.
    Bool(bool),
    /// A list of texts.
    Texts(Vec<String>),
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A name and its value.
pub type Attribute = (Cow<'static, str>, AttributeValue);

/// Returns the value of an attribute.
#[must_use]
pub fn find_attribute<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a AttributeValue> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The role of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within the process.
    Internal,
    /// A call of something outside.
    Client,
}

/// An event that happened at one time within a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// The name of the event.
    pub name: &'static str,
    /// The time of the event, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Facts about the event.
    pub attributes: Vec<Attribute>,
}

/// A finished piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The id of the trace that the span belongs to.
    pub trace: TraceId,
    /// The id of the span itself.
    pub id: SpanId,
    /// The span that it is a part of.
    pub parent: Option<SpanId>,
    /// The name of the span; few different ones.
    pub name: String,
    /// The role of the span.
    pub kind: SpanKind,
    /// The time at which the work began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The time at which the work ended, in nanoseconds since 1970; not before it began.
    pub end_ns: u64,
    /// Facts about it, each name once.
    pub attributes: Vec<Attribute>,
    /// The events that happened within the span.
    pub events: Vec<SpanEvent>,
    /// The error, in few words; `None` if nothing went wrong.
    pub error: Option<String>,
}

impl Span {
    /// Estimates the memory that the span takes, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let events = self
            .events
            .iter()
            .map(|event| size_of::<SpanEvent>() + attributes_size(&event.attributes));
        size_of::<Self>()
            + self.name.len()
            + self.error.as_ref().map_or(0, String::len)
            + attributes_size(&self.attributes)
            + events.sum::<usize>()
    }
}

fn attributes_size(attributes: &[Attribute]) -> usize {
    let of_value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => text.len(),
        AttributeValue::Texts(texts) => {
            texts.iter().map(|text| text.len() + size_of::<String>()).sum()
        }
        AttributeValue::Int(_) | AttributeValue::Number(_) | AttributeValue::Bool(_) => 0,
    };
    attributes.iter().map(|(_, value)| size_of::<Attribute>() + of_value(value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_headers_are_read_as_w3c_writes_them() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = SpanContext::parse(header).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), header);
        let unsampled = SpanContext::parse(&header.replace("-01", "-00")).unwrap();
        assert!(!unsampled.is_sampled);
        let later = format!("cc{}-more", &header[2..]);
        assert_eq!(SpanContext::parse(&later).unwrap().trace, context.trace);
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-zz",
            "é0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(SpanContext::parse(wrong), None, "{wrong}");
        }
    }
}
