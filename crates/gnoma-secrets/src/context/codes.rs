//! Codes by which an account is opened without its password: recovery and backup codes, keys for authenticators.
//!
//! They look like anything: digits, words in groups. What gives them away is the name before them, and that they
//! stand there alone or as a list of equals.

use std::ops::Range;

use super::secret_context::{SecretContext, SpanSink};

pub(super) const RECOVERY_CODES: SecretContext = SecretContext {
    id: "recovery-code",
    keywords: &[
        "recovery code",
        "recovery_code",
        "recovery-code",
        "recoverycode",
        "recovery key",
        "backup code",
        "backup_code",
        "backup-code",
        "backupcode",
        "scratch code",
        "setup key",
        "wiederherstellungscode",
        "wiederherstellungsschlüssel",
        "code de secours",
        "codes de secours",
        "code de récupération",
        "codes de récupération",
        "código de recuperación",
        "códigos de recuperación",
        "códigos de respaldo",
        "codici di backup",
        "codice di recupero",
    ],
    find: find_codes,
};

/// Words between the name and the first code.
const MAX_LEAD_BYTES: usize = 64;
/// Codes of one list, and the longest code.
const MAX_CODES: usize = 40;
const MAX_CODE_BYTES: usize = 72;
/// Signs of a code without hyphens and blanks: fewest, and fewest in a list of three.
const MIN_SIGNS: usize = 8;
const MIN_LISTED_SIGNS: usize = 6;
/// A list of so many equals needs no other sign that they are codes.
const LIST: usize = 3;
/// Letters of a group between blanks.
const SPACED_GROUP: usize = 4;

fn find_codes(text: &[u8], hit: Range<usize>, found: SpanSink) {
    // `Use backup code 27231591`: nothing binds it.
    if text.get(hit.end) == Some(&b' ')
        && let Some(code) = code_at(text, hit.end + 1)
    {
        let of = text.get(code.clone()).unwrap_or_default();
        if stands_alone(of) && !is_commit(of) || is_number(of) {
            return found(code);
        }
    }
    let Some((mut at, by_line)) = list_start(text, hit.end) else { return };
    let mut all: Vec<Range<usize>> = Vec::new();
    while all.len() < MAX_CODES {
        at = after_separators(text, at);
        let Some(code) = code_at(text, at) else { break };
        at = code.end;
        all.push(code);
    }
    let of = |code: &Range<usize>| text.get(code.clone()).unwrap_or_default();
    let least = if all.iter().all(|code| is_number(of(code))) { LIST - 1 } else { LIST };
    let is_list = all.len() >= least
        && all.iter().all(|code| code.len() == all.first().map_or(0, Range::len))
        && all.iter().filter(|code| has_digit(of(code))).count() * 2 > all.len()
        && all.iter().all(|code| {
            count_alphanumerics(of(code)) >= MIN_LISTED_SIGNS && !is_whole_commit(of(code))
        });
    // The next line may be about anything: a log has a commit there, and words about it.
    let may_be_alone = |code: &Range<usize>| match by_line {
        true => ends_line(text, code.end) && !is_commit(of(code)),
        false => !is_whole_commit(of(code)),
    };
    all.iter()
        .filter(|code| is_list || stands_alone(of(code)) && may_be_alone(code))
        .for_each(|code| found(code.clone()));
}

/// True if the rest of the line has no letters or digits.
fn ends_line(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    !line.iter().any(u8::is_ascii_alphanumeric)
}

/// True if it can be the number of a commit, whole or cut: small hexadecimal digits.
fn is_commit(code: &[u8]) -> bool {
    const MIN_CUT_DIGITS: usize = 7;
    code.len() >= MIN_CUT_DIGITS
        && code.iter().any(u8::is_ascii_alphabetic)
        && code.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

/// True if it has the length of a whole commit number or hash.
fn is_whole_commit(code: &[u8]) -> bool {
    is_commit(code) && matches!(code.len(), 32 | 40 | 64)
}

/// Behind the sign or word that binds the codes: `: `, `= [`, ` is `, the end of the line, of which the last binds
/// least.
fn list_start(text: &[u8], from: usize) -> Option<(usize, bool)> {
    let rest = text.get(from..).unwrap_or_default();
    let lead = rest.get(..rest.len().min(MAX_LEAD_BYTES)).unwrap_or_default();
    let ends = |at: usize| lead.get(at + 1).is_none_or(u8::is_ascii_whitespace);
    let is_sign = |(at, byte): (usize, &u8)| match byte {
        b':' | b'=' | b'\n' | b'|' => Some((at, true)),
        // A sentence is over; a name such as `example.com` is not.
        b'.' if ends(at) => Some((at, false)),
        _ => None,
    };
    let sign = lead.iter().enumerate().find_map(is_sign);
    let word = [&b" is "[..], b" are ", b" ist ", b" est ", b" es ", b" lautet ", b" lauten "];
    let word =
        word.iter().filter_map(|word| memchr::memmem::find(lead, word).map(|at| at + word.len()));
    let sign = sign.filter(|&(_, binds)| binds).map(|(at, _)| at + 1);
    let at = word.chain(sign).min()?;
    Some((from + at, lead.get(at - 1) == Some(&b'\n')))
}

/// Blanks, quotes, brackets, commas and bullets between codes.
fn after_separators(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let is_between = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'[' | b'(' | b'*' | b'-' | b'|')
    };
    let mut at =
        from + rest.iter().take(MAX_CODE_BYTES).take_while(|byte| is_between(byte)).count();
    // `1. code`, `10) code`
    let rest = text.get(at..).unwrap_or_default();
    let digits = rest.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    let is_number = (1..=2).contains(&digits)
        && matches!(rest.get(digits), Some(b'.' | b')'))
        && matches!(rest.get(digits + 1), Some(b' '));
    if is_number {
        at += digits + 2;
    }
    at
}

/// The code that begins there, with all of its groups.
fn code_at(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let rest = rest.get(..rest.len().min(MAX_CODE_BYTES + 1))?;
    let group = |from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()
    };
    let mut end = group(0);
    if end == 0 {
        return None;
    }
    if rest.get(end) == Some(&b'-') {
        while rest.get(end) == Some(&b'-') && group(end + 1) > end + 1 {
            end = group(end + 1);
        }
    } else if end == SPACED_GROUP {
        while rest.get(end) == Some(&b' ') && group(end + 1) == end + 1 + SPACED_GROUP {
            end += 1 + SPACED_GROUP;
        }
    }
    (end <= MAX_CODE_BYTES).then_some(at..at + end)
}

/// True if a code needs no others beside it to count: groups of one size with a digit, or letters and digits mixed.
fn stands_alone(code: &[u8]) -> bool {
    let mut groups = code.split(|byte| matches!(byte, b'-' | b' '));
    let size = groups.next().map_or(0, <[u8]>::len);
    let (mut more, mut is_even) = (0, true);
    for group in groups {
        more += 1;
        is_even &= group.len() == size;
    }
    let has_letter = code.iter().any(u8::is_ascii_alphabetic);
    let is_shouted = has_letter && !code.iter().any(u8::is_ascii_lowercase);
    let is_grouped = more > 0 && is_even && size >= 3;
    let is_mixed = more == 0 && has_letter;
    count_alphanumerics(code) >= MIN_SIGNS
        && !is_two_cased(code)
        // The number of an error.
        && !code.starts_with(b"0x")
        && (is_grouped && (has_digit(code) || is_shouted && more > 2)
            || is_mixed && count_digits(code) >= 2)
}

/// Digits alone, as many as codes have.
fn is_number(code: &[u8]) -> bool {
    (MIN_SIGNS..=MIN_SIGNS + 2).contains(&code.len()) && code.iter().all(u8::is_ascii_digit)
}

fn is_two_cased(code: &[u8]) -> bool {
    code.iter().any(u8::is_ascii_lowercase) && code.iter().any(u8::is_ascii_uppercase)
}

fn count_alphanumerics(code: &[u8]) -> usize {
    code.iter().filter(|byte| byte.is_ascii_alphanumeric()).count()
}

fn count_digits(code: &[u8]) -> usize {
    code.iter().filter(|byte| byte.is_ascii_digit()).count()
}

fn has_digit(code: &[u8]) -> bool {
    count_digits(code) > 0
}
