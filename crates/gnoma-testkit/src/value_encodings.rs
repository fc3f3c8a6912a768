//! What tools make of a value: as many writings of it as anybody could think of.
//!
//! For tests that a known secret is found in all of them.

use std::fmt::Write as _;

use base64::prelude::*;

fn join_bytes(value: &str, separator: &str, write: impl Fn(u8) -> String) -> String {
    value.bytes().map(write).collect::<Vec<_>>().join(separator)
}

fn fold_lines(value: &str, width: usize) -> Vec<String> {
    value.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// As `od` and `xxd` write: an address, the digits of so many bytes, and perhaps the text.
fn hex_dump(value: &str, before: usize, write: impl Fn(&[u8]) -> String, has_text: bool) -> String {
    let whole = format!("{}{value}\n", "x".repeat(before));
    let mut dump = String::new();
    for (number, line) in whole.as_bytes().chunks(16).enumerate() {
        let text =
            if has_text { String::from_utf8_lossy(line).replace('\n', ".") } else { String::new() };
        let _written = writeln!(dump, "{:08x}: {}  {text}", number * 16, write(line));
    }
    dump
}

fn hex_pairs(line: &[u8]) -> String {
    line.chunks(2)
        .map(|two| two.iter().map(|b| format!("{b:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

fn little_words(line: &[u8]) -> String {
    line.chunks(2)
        .map(|two| two.iter().rev().map(|b| format!("{b:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// From its end to its beginning.
#[must_use]
pub fn reverse_text(value: &str) -> String {
    value.chars().rev().collect()
}

fn encode_rot13(value: &str) -> String {
    let turn = |c: char, a: u8| char::from(a + (c as u8 - a + 13) % 26);
    let map = |c: char| match c {
        'a'..='z' => turn(c, b'a'),
        'A'..='Z' => turn(c, b'A'),
        other => other,
    };
    value.chars().map(map).collect()
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE32_HEX: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";

fn encode_base32(value: &str, alphabet: &[u8; 32]) -> String {
    let bits: String = value.bytes().map(|b| format!("{b:08b}")).collect();
    let digit = |five: &[u8]| {
        let number = five.iter().fold(0, |number, bit| number << 1 | usize::from(bit - b'0'));
        char::from(alphabet[number << (5 - five.len())])
    };
    bits.as_bytes().chunks(5).map(digit).collect()
}

const Z85: &str =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const RFC1924: &str =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

fn ascii85_alphabet() -> &'static str {
    "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu"
}

fn encode_base85(value: &str, alphabet: &str) -> String {
    let digits: Vec<char> = alphabet.chars().collect();
    let mut written = String::new();
    for group in value.as_bytes().chunks(4) {
        let mut four = [0; 4];
        four[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes(four) as usize;
        let all = (0..5).rev().map(|place| digits[number / 85_usize.pow(place) % 85]);
        written.extend(all.take(group.len() + 1));
    }
    written
}

/// As `uuencode` writes it, without its first and last lines.
fn uuencode_text(value: &str) -> String {
    let digit = |number: u8| if number == 0 { '`' } else { char::from(b' ' + number) };
    let mut written = String::new();
    for line in value.as_bytes().chunks(45) {
        written.push(digit(line.len() as u8));
        for group in line.chunks(3) {
            let mut three = [0; 3];
            three[..group.len()].copy_from_slice(group);
            let [a, b, c] = three;
            let numbers = [a >> 2, (a << 4 | b >> 4) & 63, (b << 2 | c >> 6) & 63, c & 63];
            written.extend(numbers.map(digit));
        }
        written.push('\n');
    }
    written
}

/// The value in letters that are drawn another way, and compared with another file.
fn styled_variants(value: &str) -> Vec<(String, String)> {
    let moved = |large: u32, small: u32, digit: u32| -> String {
        let to = |c: char| match c {
            'A'..='Z' => char::from_u32(large + u32::from(c) - u32::from('A')),
            'a'..='z' => char::from_u32(small + u32::from(c) - u32::from('a')),
            '0'..='9' => char::from_u32(digit + u32::from(c) - u32::from('0')),
            other => Some(other),
        };
        value.chars().map(|c| to(c).unwrap_or(c)).collect()
    };
    let circled = moved(0x24b6, 0x24d0, 0x245f).replace('\u{245f}', "\u{24ea}");
    let bold = moved(0x1_d400, 0x1_d41a, 0x1_d7ce);
    let spaced: Vec<String> = bold.chars().map(String::from).collect();
    let compared = |both: bool| {
        let line = |(at, byte): (usize, u8)| {
            let text = if both { format!(" {:<4}", char::from(byte)) } else { String::new() };
            let other = if both { "   0 ^@" } else { "   0" };
            format!("{:3} {byte:3o}{text}{other}\n", at + 1)
        };
        value.bytes().enumerate().map(line).collect::<String>()
    };
    let turned =
        value.bytes().enumerate().map(|(at, byte)| format!("{:3}   0 {byte:3o}\n", at + 1));
    vec![
        ("full width".into(), moved(0xff21, 0xff41, 0xff10)),
        ("in circles".into(), circled),
        ("bold".into(), bold),
        ("bold, separated".into(), spaced.join(" ")),
        ("bold, one to a line".into(), spaced.join("\n")),
        ("without serifs".into(), moved(0x1_d5a0, 0x1_d5ba, 0x1_d7e2)),
        ("cmp -l, first".into(), compared(false)),
        ("cmp -l, second".into(), turned.collect()),
        ("cmp -lb, cat -v".into(), compared(true)),
    ]
}

/// The value as many tools write it, by the name of the way.
#[must_use]
pub fn encoded_variants(value: &str) -> Vec<(String, String)> {
    [
        byte_variants(value),
        chained_variants(value),
        styled_variants(value),
        base85_variants(value),
        folded_variants(value),
        base64_variants(value),
        dump_variants(value),
    ]
    .concat()
}

fn hex_digits(text: &str) -> String {
    join_bytes(text, "", |b| format!("{b:02x}"))
}

/// The value with each of its bytes written another way, in order or reversed.
fn byte_variants(value: &str) -> Vec<(String, String)> {
    vec![
        ("itself".into(), value.into()),
        ("in other case".into(), value.to_uppercase()),
        ("rev".into(), reverse_text(value)),
        ("sed 's/./& /g'".into(), join_bytes(value, " ", |b| char::from(b).to_string())),
        ("separated".into(), join_bytes(value, "-", |b| char::from(b).to_string())),
        ("grep -o .".into(), join_bytes(value, "\n", |b| char::from(b).to_string())),
        ("grep -no .".into(), join_bytes(value, "\n", |b| format!("1:{}", char::from(b)))),
        ("a JSON list".into(), join_bytes(value, ", ", |b| format!("\"{}\"", char::from(b)))),
        ("xxd -p".into(), hex_digits(value)),
        ("upper hex".into(), hex_digits(value).to_uppercase()),
        ("hex with colons".into(), join_bytes(value, ":", |b| format!("{b:02x}"))),
        ("xxd -p | rev".into(), reverse_text(&hex_digits(value))),
        ("rev | xxd -p".into(), hex_digits(&reverse_text(value))),
        ("xxd -i".into(), join_bytes(value, ", ", |b| format!("0x{b:02x}"))),
        ("\\x".into(), join_bytes(value, "", |b| format!("\\x{b:02x}"))),
        ("\\u".into(), join_bytes(value, "", |b| format!("\\u{b:04x}"))),
        ("\\u{}".into(), join_bytes(value, "", |b| format!("\\u{{{b:x}}}"))),
        ("%u".into(), join_bytes(value, "", |b| format!("%u{b:04x}"))),
        ("chr()".into(), join_bytes(value, " + ", |b| format!("chr({b})"))),
        ("UTF-32, xxd -p".into(), join_bytes(value, "", |b| format!("{b:08x}"))),
        ("struck twice".into(), join_bytes(value, "", |b| char::from(b).to_string().repeat(2))),
        ("octal escapes".into(), join_bytes(value, "", |b| format!("\\{b:03o}"))),
        ("od -An -to1".into(), join_bytes(value, " ", |b| format!("{b:03o}"))),
        ("od -An -tu1".into(), join_bytes(value, " ", |b| format!("{b:3}"))),
        ("a list of numbers".into(), join_bytes(value, ",", |b| b.to_string())),
        ("percent".into(), join_bytes(value, "", |b| format!("%{b:02X}"))),
        ("entities".into(), join_bytes(value, "", |b| format!("&#{b};"))),
        ("hex entities".into(), join_bytes(value, "", |b| format!("&#x{b:x};"))),
        ("quoted-printable".into(), join_bytes(value, "", |b| format!("={b:02X}"))),
        ("hexdump -e %03u".into(), join_bytes(value, " ", |b| format!("{b:03}"))),
        ("printf %03d".into(), join_bytes(value, "", |b| format!("{b:03}"))),
        ("od -An -tu1 | rev".into(), reverse_text(&join_bytes(value, " ", |b| format!("{b:3}")))),
        ("basenc --base2msbf".into(), join_bytes(value, "", |b| format!("{b:08b}"))),
        (
            "basenc --base2lsbf".into(),
            join_bytes(value, "", |b| format!("{:08b}", b.reverse_bits())),
        ),
    ]
}

/// The value in the encodings of base 32 and 64 and in UTF-16, and one encoding within another.
fn chained_variants(value: &str) -> Vec<(String, String)> {
    let base64 = |text: &str| BASE64_STANDARD.encode(text);
    vec![
        ("base64 | rot13".into(), encode_rot13(&base64(value))),
        ("base32".into(), encode_base32(value, BASE32)),
        ("base32 | rev".into(), reverse_text(&encode_base32(value, BASE32))),
        ("basenc --base32hex".into(), encode_base32(value, BASE32_HEX)),
        ("base64 | base32".into(), encode_base32(&base64(value), BASE32)),
        ("UTF-16, xxd -p".into(), join_bytes(value, "", |b| format!("{b:02x}00"))),
        ("rot13".into(), encode_rot13(value)),
        ("base64 | rev".into(), reverse_text(&base64(value))),
        ("rev | base64".into(), base64(&reverse_text(value))),
        ("base64 | base64".into(), base64(&base64(value))),
        ("xxd -p | base64".into(), base64(&hex_digits(value))),
        (
            "UTF-16, base64".into(),
            base64(&value.chars().flat_map(|c| [c, '\0']).collect::<String>()),
        ),
    ]
}

/// The value behind other bytes, as `uuencode` and the encodings of base 85 write it.
fn base85_variants(value: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for before in 0..4 {
        let whole = format!("{}{value} and more", "x".repeat(before));
        all.push((format!("uuencode at {before}"), uuencode_text(&whole)));
        for (name, alphabet) in [("Ascii85", ascii85_alphabet()), ("Z85", Z85), ("base85", RFC1924)]
        {
            all.push((format!("{name} at {before}"), encode_base85(&whole, alphabet)));
        }
    }
    all
}

/// The value in short lines, as they are and with what tools put before lines.
fn folded_variants(value: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for width in [1, 2, 3, 4, 7, 10, 16] {
        let lines = fold_lines(value, width);
        all.push((format!("fold -w {width}"), lines.join("\n")));
        let numbered = lines.iter().enumerate().map(|(at, line)| format!("{:6}\t{line}", at + 1));
        all.push((format!("fold -w {width} | cat -n"), numbered.collect::<Vec<_>>().join("\n")));
        let blamed = lines.iter().enumerate().map(|(at, line)| {
            format!("^4d2f1a0 (Some Body 2024-05-0{} 10:00:00 +0200 {at}) {line}", at % 9 + 1)
        });
        all.push((format!("fold -w {width}, git blame"), blamed.collect::<Vec<_>>().join("\n")));
        let marked: Vec<_> = lines.iter().map(|line| format!("+{line}")).collect();
        all.push((format!("fold -w {width}, git diff"), marked.join("\n")));
    }
    all
}

/// The value between other bytes in base 64.
fn base64_variants(value: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for before in 0..3 {
        let encoded = BASE64_STANDARD.encode(format!("{}{value} and more", "x".repeat(before)));
        all.push((format!("base64 at {before}"), encoded.clone()));
        all.push((
            format!("base64 at {before}, for URLs"),
            encoded.replace('+', "-").replace('/', "_"),
        ));
        let marked: Vec<_> =
            fold_lines(&encoded, 20).iter().map(|line| format!("+{line}")).collect();
        all.push((format!("base64 at {before}, wrapped, in a diff"), marked.join("\n")));
    }
    all
}

/// The value behind other bytes, as tools dump it.
fn dump_variants(value: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for before in 0..16 {
        all.push((format!("xxd at {before}"), hex_dump(value, before, hex_pairs, true)));
        all.push((format!("od -x at {before}"), hex_dump(value, before, little_words, false)));
        let words = |line: &[u8], bytes: usize, write: fn(u64) -> String| {
            let word = |part: &[u8]| part.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b));
            line.chunks(bytes).map(|part| format!(" {}", write(word(part)))).collect::<String>()
        };
        for bytes in [2, 4, 8] {
            let decimal =
                hex_dump(value, before, |line| words(line, bytes, |w| w.to_string()), false);
            all.push((format!("od -td{bytes} at {before}"), decimal));
        }
        let padded = hex_dump(value, before, |line| words(line, 2, |w| format!("{w:05}")), false);
        all.push((format!("hexdump -d at {before}"), padded));
        let wide = hex_dump(value, before, |line| words(line, 8, |w| format!("{w:016x}")), false);
        all.push((format!("od -tx8 at {before}"), wide));
        let letters = |line: &[u8]| {
            line.iter()
                .map(|b| format!("   {}", char::from(*b).to_string().replace('\n', "\\n")))
                .collect::<String>()
        };
        all.push((format!("od -c at {before}"), hex_dump(value, before, letters, false)));
    }
    all
}

/// The longest part of the value that can be read from what is left, in characters.
#[must_use]
pub fn longest_readable_part(value: &str, rest: &str) -> usize {
    let letters = |text: &str| {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    let (value, rest) = (letters(value), letters(rest));
    let mut lengths = (1..=value.len()).rev();
    let stands = |length: &usize| {
        (0..=value.len() - length).any(|at| rest.contains(&value[at..at + length]))
    };
    lengths.find(stands).unwrap_or(0)
}
