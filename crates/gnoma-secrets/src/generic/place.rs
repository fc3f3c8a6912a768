//! Reads what follows a name: the operator and the literal bound to it, in whatever language or format.
//!
//! Not a parser: it knows what programs, configuration, markup, tables and prose have in common. Whether the
//! literal is a secret is not decided here.

use std::ops::Range;

use super::cursor::{Cursor, is_blank, is_quote};

/// Alignment between name, operator and value.
const MAX_BLANKS: usize = 48;
/// Brackets and quotes that close a name.
const MAX_CLOSERS: usize = 6;
/// Longer literals are texts or data.
const MAX_VALUE_BYTES: usize = 512;
/// Shorter ones are not worth hiding and cannot be told from words.
pub(super) const MIN_VALUE_BYTES: usize = 5;
/// A type between name and value: `password: Option<&str> = ...`.
const MAX_TYPE_BYTES: usize = 32;
/// Calls around a literal: `Secret::new(String::from("..."))`.
const MAX_WRAPPERS: usize = 3;
const MAX_WRAPPER_BYTES: usize = 40;

/// A name with a literal bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedValue {
    /// The name; empty where none was recognised.
    pub(crate) name: Range<usize>,
    /// The literal without quotes.
    pub(crate) value: Range<usize>,
    pub(crate) operator: Operator,
    /// The quote around the value.
    pub(crate) quote: Option<u8>,
    /// Position among the arguments of a call.
    pub(crate) argument: usize,
    /// The whole value of a password in a line of settings.
    pub(crate) is_setting: bool,
    /// Found by its form, not by a key word.
    pub(crate) by_form: bool,
    /// The rule to report.
    pub(crate) rule: &'static str,
}

/// The sign or text that binds a value to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `=`, `:=`, `?=`, `||=`
    Assign,
    /// A colon after the name: `:`.
    Colon,
    /// An arrow after the name: `=>`, `->`.
    Arrow,
    /// A comparison with the value: `==`, `!=`, `===`.
    Compare,
    /// `,` after a quoted name
    Comma,
    /// A call with the value as an argument: `name("value")`.
    Call,
    /// An element with the value as its content: `<name>value`.
    Element,
    /// `is`, `was`, ` - `, `|`
    Prose,
    /// blanks alone, before a quote
    Blank,
    /// No recognised operator before the value.
    None,
}

/// The binding that starts where a name ends.
pub(super) struct Binding {
    pub(super) operator: Operator,
    pub(super) value: Range<usize>,
    pub(super) quote: Option<u8>,
    /// One past the closing quote.
    pub(super) end: usize,
}

/// Reads operator and value from `at`, the end of a name.
pub(super) fn bound_after(text: &[u8], at: usize) -> Option<Binding> {
    let mut cursor = Cursor::new(text, at);
    let closed = close_name(&mut cursor);
    let operator = read_operator(&mut cursor, closed)?;
    cursor.skip_while(MAX_BLANKS, is_blank);
    let is_wrapped = unwrap_calls(&mut cursor);
    let (value, quote, end) = read_value(&mut cursor, operator)?;
    if quote.is_none() && is_wrapped {
        return None;
    }
    Some(Binding { operator, value, quote, end })
}

/// The next argument of a call whose previous one ended at `at`.
pub(super) fn next_argument(text: &[u8], at: usize) -> Option<Binding> {
    let mut cursor = Cursor::new(text, at);
    cursor.skip_while(MAX_BLANKS, is_blank);
    if !cursor.skip_prefix(b",") {
        return None;
    }
    cursor.skip_while(MAX_BLANKS, is_blank);
    unwrap_calls(&mut cursor);
    let (value, quote, end) = read_value(&mut cursor, Operator::Call)?;
    quote?;
    Some(Binding { operator: Operator::Call, value, quote, end })
}

/// Steps over what ends a name: `"`, `\"`, `']`, `**`, `()`, `?`; true if a quote was among it.
fn close_name(cursor: &mut Cursor) -> bool {
    let mut quoted = false;
    for _ in 0..MAX_CLOSERS {
        match cursor.peek() {
            Some(byte) if is_quote(byte) => quoted = true,
            Some(b'\\' | b']' | b')' | b'*' | b'?') => {}
            Some(b'(') if cursor.peek_at(1) == Some(b')') => {}
            _ => break,
        }
        cursor.at += 1;
    }
    quoted
}

fn read_operator(cursor: &mut Cursor, quoted: bool) -> Option<Operator> {
    if let Some(found) = value_attribute(cursor) {
        return Some(found);
    }
    if matches!(cursor.peek(), Some(b'>')) {
        cursor.at += 1;
        return Some(Operator::Element);
    }
    let blanks = cursor.skip_while(MAX_BLANKS, is_blank);
    let operator = match (cursor.peek()?, cursor.peek_at(1), cursor.peek_at(2)) {
        (b':', Some(b':'), Some(b'=')) | (b'|', Some(b'|'), Some(b'=')) => {
            consume_operator(cursor, 3, Operator::Assign)
        }
        (b'=' | b'!', Some(b'='), Some(b'=')) => consume_operator(cursor, 3, Operator::Compare),
        (b'=' | b'!', Some(b'='), _) => consume_operator(cursor, 2, Operator::Compare),
        (b'=' | b'-', Some(b'>'), _) => consume_operator(cursor, 2, Operator::Arrow),
        (b':' | b'?' | b'+', Some(b'='), _) => consume_operator(cursor, 2, Operator::Assign),
        (b':', Some(b':'), _) => return None,
        (b'=', ..) => consume_operator(cursor, 1, Operator::Assign),
        (b':', ..) => {
            cursor.at += 1;
            skip_type(cursor);
            Operator::Colon
        }
        (b',', ..) if quoted => consume_operator(cursor, 1, Operator::Comma),
        (b'(', ..) if blanks <= 1 => consume_operator(cursor, 1, Operator::Call),
        (b'{', ..) => consume_operator(cursor, 1, Operator::Arrow),
        (b'-' | b'|', Some(b' '), _) if blanks > 0 => consume_operator(cursor, 1, Operator::Prose),
        (byte, ..) if is_quote(byte) && blanks > 0 => Operator::Blank,
        _ if blanks > 0 => return read_word_operator(cursor),
        _ => return None,
    };
    Some(operator)
}

fn consume_operator(cursor: &mut Cursor, bytes: usize, operator: Operator) -> Operator {
    cursor.at += bytes;
    operator
}

/// `is`, `was` and the like; or a type between name and `=`, as in `password string = "..."`.
fn read_word_operator(cursor: &mut Cursor) -> Option<Operator> {
    const VERBS: [&[u8]; 7] = [b"is", b"was", b"are", b"to", b"as", b"by", b"equals"];
    for verb in VERBS {
        if cursor.take_word(verb) {
            if cursor.peek() == Some(b':') {
                cursor.at += 1;
            }
            return Some(Operator::Prose);
        }
    }
    if cursor.peek() == Some(b'=') || skip_type(cursor) {
        return Some(Operator::Assign);
    }
    None
}

/// Steps over `TYPE =` and says so, else stays.
fn skip_type(cursor: &mut Cursor) -> bool {
    let mut ahead = *cursor;
    ahead.skip_while(MAX_BLANKS, is_blank);
    let type_bytes = ahead.skip_while(MAX_TYPE_BYTES, |byte| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'&' | b'<' | b'>' | b'[' | b']' | b'?' | b'.' | b'_' | b'*' | b'|' | b'\'' | b' '
            )
    });
    let assigns = ahead.peek() == Some(b'=') && ahead.peek_at(1) != Some(b'=');
    // Without a blank before it, `=` may be the padding of a value.
    let stands_free = ahead.at.checked_sub(1).is_some_and(|at| cursor.byte_at(at) == Some(b' '));
    let is_typed = type_bytes > 0 && assigns && stands_free;
    if is_typed {
        cursor.at = ahead.at + 1;
    }
    is_typed
}

/// `name="password" value="..."`, `name: PASSWORD` and in the next line `value: ...`,
/// `variable "password" { default = "..." }`, `password. Default: ...`.
fn value_attribute(cursor: &mut Cursor) -> Option<Operator> {
    let mut ahead = *cursor;
    let gap = ahead.skip_while(MAX_BLANKS, |byte| {
        matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b'{' | b'.' | b';' | b'(')
    });
    if gap == 0 {
        return None;
    }
    ahead.skip_while(2, is_quote);
    if !(ahead.take_word(b"value") || ahead.take_word(b"default")) {
        return None;
    }
    ahead.skip_while(2, is_quote);
    ahead.skip_while(MAX_BLANKS, is_blank);
    if !(ahead.skip_prefix(b"=") || ahead.skip_prefix(b":")) {
        return None;
    }
    *cursor = ahead;
    Some(Operator::Colon)
}

/// Steps into `[]byte(`, `Some(`, `String::from(`, `[`, `{` where a quote follows, and over `b`, `r#`, `@`;
/// says whether there was a call.
fn unwrap_calls(cursor: &mut Cursor) -> bool {
    let mut is_wrapped = false;
    for _ in 0..MAX_WRAPPERS {
        let mut ahead = *cursor;
        ahead.skip_while(MAX_WRAPPER_BYTES, |byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'.' | b':' | b'[' | b']' | b'@' | b'#' | b'$')
        });
        if is_quote(ahead.peek().unwrap_or_default()) {
            if ahead.at - cursor.at <= 2 {
                cursor.at = ahead.at;
            }
            break;
        }
        if !matches!(ahead.peek(), Some(b'(' | b'{')) {
            break;
        }
        ahead.at += 1;
        ahead.skip_while(MAX_BLANKS, is_blank);
        *cursor = ahead;
        is_wrapped = true;
    }
    is_wrapped
}

type Value = (Range<usize>, Option<u8>, usize);

fn read_value(cursor: &mut Cursor, operator: Operator) -> Option<Value> {
    let (body, quote, end) = match opening_quote(cursor) {
        Some(quote) => quoted_literal(cursor, quote)?,
        None => bare_literal(cursor, operator)?,
    };
    let value = strip_scheme(cursor, body);
    (value.len() >= MIN_VALUE_BYTES && is_literal(cursor, &value, quote))
        .then_some((value, quote, end))
}

/// True if the bytes can be a secret at all: no call or index, no sentence or foreign text, no public key or
/// password hash, no key block or web token, which have rules of their own.
fn is_literal(cursor: &Cursor, value: &Range<usize>, quote: Option<u8>) -> bool {
    let bytes = cursor.slice(value);
    let is_foreign =
        !bytes.is_ascii() && (bytes.contains(&b' ') || !bytes.iter().any(u8::is_ascii_digit));
    let is_sentence =
        bytes.contains(&b' ') && matches!(bytes.last(), Some(b'?' | b'!' | b'.' | b':'));
    let is_expression =
        quote.is_none() && bytes.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{'));
    !(is_foreign || is_sentence || is_expression || has_own_rule(bytes))
}

/// True if the bytes are a public key, a password hash, a key block or a web token.
pub(super) fn has_own_rule(bytes: &[u8]) -> bool {
    let openings = [&b"eyJ"[..], b"-----BEGIN", b"ssh-", b"ecdsa-sha2-"];
    openings.iter().any(|opening| bytes.starts_with(opening)) || is_password_hash(bytes)
}

/// `$2b$12$...`, `$argon2id$...`: made to be kept where others may read it.
fn is_password_hash(value: &[u8]) -> bool {
    const MIN_HASH_BYTES: usize = 34;
    let Some((b'$', scheme)) = value.split_first() else { return false };
    let name =
        scheme.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    value.len() >= MIN_HASH_BYTES && (1..=16).contains(&name) && scheme.get(name) == Some(&b'$')
}

/// An opening quote with its backslashes, or of three.
#[derive(Clone, Copy)]
struct Quote {
    byte: u8,
    escapes: usize,
}

fn opening_quote(cursor: &mut Cursor) -> Option<Quote> {
    let mut ahead = *cursor;
    let escapes = ahead.skip_while(4, |byte| byte == b'\\');
    let byte = ahead.peek().filter(|byte| is_quote(*byte))?;
    ahead.at += 1;
    if escapes == 0 && ahead.peek() == Some(byte) && ahead.peek_at(1) == Some(byte) {
        ahead.at += 2;
    }
    cursor.at = ahead.at;
    Some(Quote { byte, escapes })
}

/// The literal up to the quote that closes it, on the same line.
fn quoted_literal(cursor: &mut Cursor, quote: Quote) -> Option<Value> {
    let start = cursor.at;
    let mut escapes = 0;
    for (offset, &byte) in cursor.rest().iter().take(MAX_VALUE_BYTES).enumerate() {
        match byte {
            b'\n' => return None,
            b'\\' => {
                escapes += 1;
                continue;
            }
            _ if byte == quote.byte && escapes <= quote.escapes => {
                return Some((
                    start..start + offset - escapes,
                    Some(quote.byte),
                    start + offset + 1,
                ));
            }
            _ => escapes = 0,
        }
    }
    None
}

/// A literal without quotes.
fn bare_literal(cursor: &mut Cursor, operator: Operator) -> Option<Value> {
    if matches!(operator, Operator::Blank | Operator::Call | Operator::Comma) {
        return None;
    }
    let start = cursor.at;
    let ends: fn(u8) -> bool = match operator {
        Operator::Element => |byte| matches!(byte, b'<' | b'\n' | b'\r' | b'"'),
        _ => |byte| {
            byte <= b' '
                || matches!(
                    byte,
                    b',' | b';'
                        | b'"'
                        | b'\''
                        | b'`'
                        | b'<'
                        | b'>'
                        | b')'
                        | b']'
                        | b'}'
                        | b'|'
                        | b'&'
                        | b'\\'
                )
        },
    };
    let length = cursor.skip_while(MAX_VALUE_BYTES, |byte| !ends(byte));
    // `user:<password>@host` is no element.
    let is_closed = operator != Operator::Element || cursor.peek() == Some(b'<');
    (length < MAX_VALUE_BYTES && is_closed).then_some((start..cursor.at, None, cursor.at))
}

/// `Basic abc` and `Bearer abc` are about `abc`.
fn strip_scheme(cursor: &Cursor, value: Range<usize>) -> Range<usize> {
    let mut inner = *cursor;
    inner.at = value.start;
    for scheme in [&b"Basic "[..], b"Bearer ", b"Token ", b"basic ", b"bearer ", b"token "] {
        if inner.skip_prefix(scheme) && inner.at < value.end {
            return inner.at..value.end;
        }
    }
    value
}
