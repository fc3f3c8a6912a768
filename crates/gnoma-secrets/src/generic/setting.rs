//! Passwords without quotes in lines of settings: `password=X`, `DB_PASSWORD: X`, `<password>X</password>`.
//!
//! Elsewhere a bare value ends at a sign, because code goes on there. A setting goes on to the blank, and people
//! and generators put every sign there is into passwords.

use std::ops::Range;

use super::cursor::{Cursor, is_blank, is_name_byte, scan_back};
use super::place::{Operator, has_own_rule};

/// Longest password that is looked at.
const MAX_VALUE_BYTES: usize = 128;
/// Longest part of a line before the name.
const MAX_PREFIX_BYTES: usize = 160;
/// Blanks around the operator.
const MAX_BLANKS: usize = 16;
/// Shortest value that its characters alone give away.
const MIN_MIXED_BYTES: usize = 8;
/// Shortest value that needs no other judgement.
const MIN_STRONG_BYTES: usize = 10;
/// Words before a name in a line that sets it.
const SETTERS: [&[u8]; 8] =
    [b"export", b"set", b"setx", b"env", b"arg", b"declare", b"environment=", b"-x"];

/// The whole value that stands behind the name of a password, and what binds it; `None` where the line is code or
/// where the value ends as other bare values do.
pub(super) fn setting_value(text: &[u8], name: &Range<usize>) -> Option<(Range<usize>, Operator)> {
    let mut cursor = Cursor::new(text, name.end);
    if cursor.peek() == Some(b'>') {
        return element_value(text, name).map(|value| (value, Operator::Assign));
    }
    cursor.skip_while(MAX_BLANKS, is_blank);
    let operator = match (cursor.peek()?, cursor.peek_at(1)?) {
        (b'=', next) if next != b'=' && next != b'>' => Operator::Assign,
        (b':', b' ' | b'\t') => Operator::Colon,
        _ => return None,
    };
    cursor.at += 1;
    cursor.skip_while(MAX_BLANKS, is_blank);
    let start = cursor.at;
    let length = cursor.skip_while(MAX_VALUE_BYTES, |byte| byte.is_ascii_graphic());
    if length == MAX_VALUE_BYTES || !ends_setting(&cursor) {
        return None;
    }
    let whole = cursor.slice(&(start..cursor.at));
    let end = start + before_next_pair(whole);
    let value = text.get(start..end)?;
    let is_one = !is_code(value) && begins_setting(text, name) && is_mixed(value);
    is_one.then_some((start..end, operator))
}

/// Finds the password in an element: `<password>X</password>`, `<ns:dbPassword>X</ns:dbPassword>`.
fn element_value(text: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    let start = name.end + 1;
    let tag =
        scan_back(text, name.start, MAX_BLANKS, |byte| is_name_byte(byte) || b":.".contains(&byte));
    let mut cursor = Cursor::new(text, start);
    cursor.skip_while(MAX_VALUE_BYTES, |byte| byte.is_ascii_graphic() && byte != b'<');
    let value = text.get(start..cursor.at)?;
    let is_one = tag.checked_sub(1).and_then(|at| text.get(at)) == Some(&b'<')
        && cursor.rest().starts_with(b"</")
        && !is_code(value)
        && is_mixed(value);
    is_one.then_some(start..cursor.at)
}

/// True if a line ends here, or continues with a comment.
fn ends_setting(cursor: &Cursor) -> bool {
    let mut ahead = *cursor;
    let blanks = ahead.skip_while(MAX_BLANKS, is_blank);
    match ahead.peek() {
        None | Some(b'\n' | b'\r') => true,
        Some(b'#') => blanks > 0,
        Some(_) => false,
    }
}

/// Returns the length of the value: `password=X&user=Y`, `pwd=X;Encrypt=true`, `password=X,host=Y` continue with a
/// next pair.
fn before_next_pair(value: &[u8]) -> usize {
    let begins_pair = |at: &usize| {
        let is_sign = matches!(value.get(*at), Some(b'&' | b';' | b','));
        let rest = value.get(at + 1..).unwrap_or_default();
        let name = rest.iter().take_while(|byte| is_name_byte(**byte) || **byte == b'.').count();
        let is_name = name >= 2 && rest.first().is_some_and(u8::is_ascii_alphabetic);
        is_sign && is_name && rest.get(name) == Some(&b'=')
    };
    let end = (0..value.len()).find(begins_pair).unwrap_or(value.len());
    let body = value.get(..end).unwrap_or_default();
    end - usize::from(matches!(body.last(), Some(b',' | b';')))
}

/// True if a line sets the name: only a section, a word that sets, or words of a log stand before it.
fn begins_setting(text: &[u8], name: &Range<usize>) -> bool {
    let start = scan_back(text, name.start, MAX_PREFIX_BYTES, |byte| byte != b'\n');
    let before = text.get(start..name.start).unwrap_or_default();
    let before = before.trim_ascii_start();
    let section = before.iter().rev().take_while(|byte| !is_blank(**byte)).count();
    let (words, section) = before.split_at(before.len() - section);
    let is_path =
        |byte: &u8| is_name_byte(*byte) || matches!(byte, b'.' | b'/' | b':' | b'-' | b',');
    let is_section = section.iter().all(is_path)
        || SETTERS.iter().any(|setter| section.eq_ignore_ascii_case(setter));
    let is_word = |byte: &u8| !b"(){}[]<>\"'`=;&|$\\?#%*".contains(byte);
    is_section && words.iter().all(is_word)
}

/// True if the characters alone show that it is a password: all four kinds, and between them a sign that joins no
/// words and no names.
pub(super) fn is_strong(value: &[u8]) -> bool {
    let count = |kind: fn(&u8) -> bool| value.iter().filter(|byte| kind(byte)).count();
    let outer = |byte: &&u8| byte.is_ascii_punctuation();
    let start = value.iter().take_while(outer).count();
    let end = value.len() - value.iter().rev().take_while(outer).count();
    let joins_nothing = |byte: &u8| byte.is_ascii_punctuation() && !b"._-:/".contains(byte);
    value.len() >= MIN_STRONG_BYTES
        && value.get(start..end).is_some_and(|inner| inner.iter().any(joins_nothing))
        && count(u8::is_ascii_lowercase) > 0
        && count(u8::is_ascii_uppercase) > 0
        && count(u8::is_ascii_digit) > 0
}

/// Calls, indexes, templates, references and patterns.
fn is_code(value: &[u8]) -> bool {
    let openings: [&[u8]; 10] =
        [b"$(", b"${", b"$[", b"{{", b"<%", b"\"", b"'", b"`", b"@Microsoft", b"ENC["];
    let parts: [&[u8]; 7] = [b"()", b"[]", b"[^", b"(?", b"\\", b"''", b"\"\""];
    let joints: [&[u8]; 5] = [b"&&", b"||", b"->", b"::", b"=>"];
    let holds = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let is_name =
        |at: Option<usize>| at.and_then(|at| value.get(at)).is_some_and(|&byte| is_name_byte(byte));
    let joins = |joint: &[u8]| {
        memchr::memmem::find_iter(value, joint)
            .any(|at| is_name(at.checked_sub(1)) && is_name(Some(at + joint.len())))
    };
    openings.iter().any(|opening| value.starts_with(opening))
        || parts.iter().any(|part| holds(part))
        || joints.iter().any(|joint| joins(joint))
        || is_call(value)
        || has_own_rule(value)
}

/// `name(...)`, `name.name[...]`, `name<...>`, `(...)`, `{...}`: brackets that belong together, behind words or nothing.
fn is_call(value: &[u8]) -> bool {
    let is_path = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':');
    // The default of a type: `str=Field(…)`.
    let name = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_default = name > 0 && value.get(name) == Some(&b'=');
    let value = if is_default { value.get(name + 1..).unwrap_or_default() } else { value };
    let opening = value.iter().take_while(|byte| is_path(byte)).count();
    let closing: &[u8] = match value.get(opening) {
        Some(b'(') => b")",
        Some(b'[') => b"]",
        Some(b'{') => b"}",
        Some(b'<') => b">",
        _ => return false,
    };
    let inside = value.get(opening + 1..).unwrap_or_default();
    let is_argument =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:,'\"$-*=/(<>[]{}+&;|!?@%".contains(byte);
    memchr::memmem::rfind(inside, closing)
        .and_then(|end| inside.get(..end))
        .is_some_and(|inside| inside.iter().all(is_argument))
}

/// Letters and digits as people and generators mix them, with a sign: not a word, a number, a path or a date.
fn is_mixed(value: &[u8]) -> bool {
    let count = |kind: fn(&u8) -> bool| value.iter().filter(|byte| kind(byte)).count();
    let (lower, upper) = (count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let (digits, signs) = (count(u8::is_ascii_digit), count(u8::is_ascii_punctuation));
    let kinds = [lower, upper, digits, signs].iter().filter(|count| **count > 0).count();
    let is_path_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@:".contains(byte);
    let is_path = (value.starts_with(b"/") && value.iter().all(is_path_byte))
        || memchr::memmem::find(value, b"://").is_some();
    value.len() >= MIN_MIXED_BYTES && lower + upper >= 2 && signs > 0 && kinds >= 3 && !is_path
}
