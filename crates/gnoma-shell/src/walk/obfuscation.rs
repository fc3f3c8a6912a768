//! Ways of writing that hide what is done from the person who reads it.

use std::net::IpAddr;

use crate::syntax::{Word, WordPartKind};

/// This many blanks in a row push what follows out of sight.
const MANY_BLANKS: usize = 40;
/// Services behind whose short addresses anything may stand.
const SHORTENERS: [&str; 22] = [
    "bit.ly",
    "tinyurl.com",
    "t.co",
    "goo.gl",
    "is.gd",
    "v.gd",
    "ow.ly",
    "buff.ly",
    "rebrand.ly",
    "cutt.ly",
    "shorturl.at",
    "tiny.cc",
    "rb.gy",
    "t.ly",
    "git.io",
    "bl.ink",
    "s.id",
    "qr.ae",
    "adf.ly",
    "soo.gd",
    "clck.ru",
    "lnkd.in",
];

/// Oddities of a whole text.
pub(super) fn in_text(text: &str) -> Vec<String> {
    let mut oddities = Vec::new();
    let blanks =
        text.split(|c: char| !matches!(c, ' ' | '\t')).map(str::len).max().unwrap_or_default();
    let trailing = text.len() - text.trim_end_matches([' ', '\t']).len();
    if blanks >= MANY_BLANKS && trailing < blanks {
        oddities.push(format!("{blanks} blanks in a row hide the rest"));
    }
    if let Some(found) = text.chars().find(|c| is_invisible(*c)) {
        oddities.push(format!("invisible character {}", found.escape_unicode()));
    }
    oddities
}

/// Characters that take no room or change the order of others; those that join emoji and letters too,
/// for in a command they only hide.
fn is_invisible(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A program name with letters that look like others.
pub(super) fn in_program_name(name: &str) -> Option<String> {
    let letter = name.chars().find(|c| !c.is_ascii() && c.is_alphanumeric())?;
    Some(format!("`{letter}` in program name `{name}` is not an ASCII letter"))
}

/// A program or option that is written in pieces, or with escapes it does not need.
pub(super) fn in_word(word: &Word, written: &str, is_program: bool) -> Option<String> {
    let text = word.constant_text()?;
    if !is_program && !text.starts_with('-') {
        return None;
    }
    let pieces = word.parts.len() > 1;
    let needless = word.parts.iter().enumerate().any(|(at, part)| match &part.kind {
        WordPartKind::SingleQuoted(text) => {
            pieces && text.is_empty() || is_program && pieces && at > 0
        }
        WordPartKind::DoubleQuoted(parts) => {
            pieces && parts.is_empty() || is_program && pieces && at > 0
        }
        WordPartKind::AnsiQuoted(Some(text)) => !text.chars().any(char::is_control),
        _ => false,
    });
    let escaped = is_program
        && written.char_indices().any(|(at, c)| {
            let next = written.get(at + 1..).and_then(|rest| rest.chars().next());
            at > 0 && c == '\\' && next.is_some_and(|next| next.is_ascii_alphanumeric())
        });
    let plain_escape = escaped && !written.contains(['\'', '"']);
    (needless || plain_escape)
        .then(|| format!("`{text}` is written as `{written}`, which hides it"))
}

/// The host of an address, when it looks like one.
pub(super) fn parse_host(address: &str) -> Option<String> {
    let host = host_with_user(address).rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => host.split(':').next()?,
    };
    // `..` and `.` are folders.
    let plausible = host.contains(char::is_alphanumeric)
        && (host.contains(['.', ':']) || host == "localhost" || address.contains("://"));
    plausible.then(|| host.to_owned())
}

fn host_with_user(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Returns the oddities of an address that is downloaded from or sent to.
pub(super) fn in_address(address: &str) -> Vec<String> {
    let mut oddities = Vec::new();
    let authority = host_with_user(address);
    if address.contains("://") && authority.contains('@') {
        oddities.push(format!("`{authority}` has a user before the host, which hides the host"));
    }
    let Some(host) = parse_host(address) else { return oddities };
    let lower = host.to_lowercase();
    let literal = host.parse::<IpAddr>().ok();
    if literal.is_some_and(|ip| !ip.is_loopback()) || is_number_like(&lower) {
        oddities.push(format!("`{host}` is an IP address instead of a name"));
    }
    if lower.split('.').any(|label| label.starts_with("xn--")) || !host.is_ascii() {
        oddities.push(format!("`{host}` has letters that may look like others"));
    }
    if !address.is_ascii() && host.is_ascii() {
        oddities.push("the address has letters that may look like others".to_owned());
    }
    if host.contains(['\\', '%']) {
        oddities.push(format!("`{host}` is written so that programs read different hosts in it"));
    }
    if SHORTENERS.contains(&lower.trim_end_matches('.')) {
        oddities.push(format!("`{host}` hides the address that it leads to"));
    }
    oddities
}

/// `0x7f000001`, `2130706433`: addresses in disguise.
fn is_number_like(host: &str) -> bool {
    host.starts_with("0x") || (host.len() > 3 && host.bytes().all(|byte| byte.is_ascii_digit()))
}
