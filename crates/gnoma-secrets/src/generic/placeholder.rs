//! Values that stand for a secret without being one: `<your-token>`, `changeme`, `${TOKEN}`, `xxxx`.

use crate::parts::Parts;

/// Longer values are not examined for filler characters.
const MAX_EXAMINED_BYTES: usize = 512;

/// Whole values, in lower case, that people write where a secret belongs.
const STAND_INS: [&str; 44] = [
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "replaceme",
    "replace_me",
    "replace-me",
    "placeholder",
    "example",
    "dummy",
    "redacted",
    "removed",
    "hidden",
    "masked",
    "none",
    "null",
    "nil",
    "undefined",
    "false",
    "true",
    "default",
    "empty",
    "string",
    "required",
    "optional",
    "todo",
    "fixme",
    "unset",
    "not-set",
    "notset",
    "your-password",
    "yourpassword",
    "mypassword",
    "my-password",
    "my_password",
    "my-secret",
    "test",
];

/// Parts that only a stand-in holds.
static PARTS: Parts<29> = Parts::new([
    b"_removed",
    b"example",
    b"placeholder",
    b"your_",
    b"your-",
    b"yourtoken",
    b"yourkey",
    b"your ",
    b"changeme",
    b"change_me",
    b"change-me",
    b"replace_me",
    b"replace-me",
    b"replace_with",
    b"replace-with",
    b"redacted",
    b"_here",
    b"-here",
    b"<your",
    b"xxxx",
    b"....",
    b"****",
    b"dummy",
    b"not-a-real",
    b"notareal",
    b"insert_",
    b"insert-",
    b"${",
    b"{{",
]);

/// Values of examples in standards, which manuals and libraries repeat: RFC 5849, 6455, 6749, 6750 and 7617, `OpenID`.
const PUBLISHED: [&[u8]; 20] = [
    b"mF_9.B5f-4.1JqM",
    b"SlAV32hkKG",
    b"8xLOxBtZp8",
    b"2YotnFZFEjr1zCsicMWpAA",
    b"tGzv3JOkF0XG5Qx2TlKWIA",
    b"7Fjfp0ZBr1KtDRbnfVdmIw",
    b"gX1fBat3bV",
    b"SplxlOBeZQQYbYS6WxSbIA",
    b"czZCaGRSa3F0MzpnWDFmQmF0M2JW",
    b"h480djs93hd8",
    b"0685bd9184jfhq22",
    b"ad180jjd733klru7",
    b"9djdj82h48djs9d2",
    b"kkk9d7dh3k39sjv7",
    b"dpf43f3p2l4k3l03",
    b"nnch734d00sl2jdk",
    b"kd94hf93k423kf44",
    b"pfkkdhi9sl3r4s00",
    b"QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    b"dGhlIHNhbXBsZSBub25jZQ==",
];

/// The beginnings of keys that pages show to everybody.
const PUBLIC: [&[u8]; 12] = [
    b"sha256//",
    b"sha256-",
    b"pk.eyJ",
    b"pk_live_",
    b"pk_test_",
    b"cs_live_",
    b"cs_test_",
    b"sb_publishable_",
    b"phc_",
    b"age1",
    b"npub1",
    b"$ANSIBLE_VAULT",
];

/// True if `value` is made for everybody to read, unless its name says `secret` or `password`.
pub(crate) fn is_public(value: &[u8], rule: &str) -> bool {
    !matches!(rule, "secret" | "password") && PUBLIC.iter().any(|start| value.starts_with(start))
}

/// True if `value` only stands for a secret: a template, a reference to one, filler, or a well-known example.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let value = value.get(..MAX_EXAMINED_BYTES).unwrap_or(value);
    let value = value.trim_ascii();
    value.is_empty()
        || PUBLISHED.contains(&value)
        || is_stand_in(value)
        || is_reference(value)
        || is_filler(value)
        || PARTS.stand_in(value)
}

fn is_stand_in(value: &[u8]) -> bool {
    STAND_INS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(value))
}

/// `$NAME`, `%NAME%`, `<name>`, `[name]`, `{name}`, `op://vault/item`, `ENC[...]`.
fn is_reference(value: &[u8]) -> bool {
    let (Some(first), Some(last)) = (value.first(), value.last()) else { return true };
    let is_name = |name: &[u8]| {
        name.iter().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b' ' | b':' | b'|')
        })
    };
    let inner = value.get(1..value.len() - 1).unwrap_or_default();
    let variable = value.get(1..).unwrap_or_default();
    let is_variable = |name: &[u8]| {
        name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    match (first, last) {
        (b'<', b'>')
        | (b'{', b'}')
        | (b'[', b']')
        | (b'(', b')')
        | (b'%', b'%')
        | (b'#', b'#')
        | (b'@', b'@')
        | (b'_', b'_') => is_name(inner),
        (b'$', _) if is_variable(variable) => true,
        (b'$', _) => variable.starts_with(b"("),
        _ => [
            &b"op://"[..],
            b"vault:",
            b"ENC[",
            b"env:",
            b"file:",
            b"!vault",
            b"arn:",
            b"ref+",
            b"projects/",
        ]
        .iter()
        .any(|start| value.starts_with(start)),
    }
}

/// One character repeated, `abcabcabc`, or a run up the alphabet or the digits.
fn is_filler(value: &[u8]) -> bool {
    const MAX_PERIOD: usize = 4;
    let repeats = |period: usize| {
        value.len() >= 2 * period
            && value.iter().zip(value.iter().skip(period)).all(|(a, b)| a == b)
    };
    let period_limit = MAX_PERIOD.min(value.len() / 3);
    (1..=period_limit).any(repeats) || is_mostly_ascending(value) || is_count_in_hex(value)
}

/// `000102030405…`, `00112233…`: bytes that go up by the same step, as in test vectors.
fn is_count_in_hex(value: &[u8]) -> bool {
    const MIN_PAIRS: usize = 8;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u32>> = value.chunks(2).map(pair).collect();
    let Some(bytes) = bytes.filter(|bytes| bytes.len() >= MIN_PAIRS) else { return false };
    let mut steps = bytes.iter().zip(bytes.iter().skip(1)).map(|(one, two)| two.wrapping_sub(*one));
    let first = steps.next();
    steps.all(|step| Some(step) == first)
}

/// `abcdefgh`, `123456789`, `0123456789abcdef`: at least five of six steps go up by one.
fn is_mostly_ascending(value: &[u8]) -> bool {
    let steps = value.len().saturating_sub(1);
    let ascending = value.iter().zip(value.iter().skip(1)).filter(|(a, b)| {
        a.wrapping_add(1) == **b
            || (**a == b'9' && matches!(b, b'0' | b'a' | b'A'))
            || (matches!(a, b'z' | b'Z') && matches!(b, b'0' | b'1' | b'A' | b'a'))
    });
    steps >= 5 && ascending.count() * 6 >= steps * 5
}
