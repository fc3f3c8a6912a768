//! The ways in which tools write a value: as it is, backwards, in base64, in the digits of a dump.
//!
//! Each form is given by its letters and digits alone, in lower case, as [`super::letters`] reduces
//! texts. Escapes, percent signs and entities are not here: texts are searched without them, too.

use zeroize::Zeroizing;

use super::letters;

/// Longer values are looked for in the common forms only.
const MAX_RARE_BYTES: usize = 256;
/// Digits of a word for each of its bytes, at most.
const MAX_DIGITS_OF_BYTE: usize = 3;
/// Bits of a byte.
const BYTE_BITS: usize = 8;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE32_HEX: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
const UUENCODE: [u8; 64] = {
    let mut digits = run_from(b' ');
    digits[0] = b'`';
    digits
};
const ASCII85: [u8; 85] = run_from(b'!');
const Z85: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const RFC1924: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
const HEX: &[u8; 16] = b"0123456789abcdef";
const BINARY: &[u8; 2] = b"01";

/// Digits that follow each other in ASCII.
const fn run_from<const COUNT: usize>(first: u8) -> [u8; COUNT] {
    let mut digits = [first; COUNT];
    let mut at = 1;
    while at < COUNT {
        digits[at] = digits[at - 1] + 1;
        at += 1;
    }
    digits
}

/// The way in which a form was derived from its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormScript {
    /// The letters of the value in their order.
    Plain,
    /// The letters of the value, backwards or each replaced by another.
    Letters,
    /// Digits that stand for the bytes of the value, in their order.
    Digits,
    /// Digits that stand for the bytes of the value, from its end.
    DigitsBackwards,
}

/// Calls `take` with each form of a value.
pub(super) fn for_each_form(value: &[u8], take: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>)) {
    let mut give = |script, written: Zeroizing<Vec<u8>>| {
        let mut form = Zeroizing::new(Vec::with_capacity(written.len()));
        letters::push_letters(&written, &mut form);
        take(script, form);
    };
    let backwards = reverse_bytes(value);
    give(FormScript::Plain, Zeroizing::new(value.to_vec()));
    give(FormScript::Letters, backwards.clone());
    in_base64(value, FormScript::Digits, &mut give);
    give(FormScript::Digits, pack_digits(value, 0, HEX));
    if value.len() <= MAX_RARE_BYTES {
        give_rare_forms(value, &backwards, &mut give);
    }
}

/// Gives the forms that only few tools write.
fn give_rare_forms(
    value: &[u8],
    backwards: &[u8],
    give: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>),
) {
    give(FormScript::Letters, map_bytes(value, rot13));
    give(FormScript::Letters, map_bytes(value, rot47));
    let digits = FormScript::Digits;
    in_reverse(value, backwards, give);
    for start in 0..5 {
        let encoded = pack_digits(value, start, BASE32);
        give(FormScript::DigitsBackwards, reverse_bytes(&encoded));
        give(digits, encoded);
        give(digits, pack_digits(value, start, BASE32_HEX));
    }
    // Encoded twice, where the first is no text that is looked into.
    in_base64(value, digits, &mut |_, form| {
        give(digits, map_bytes(&form, rot13));
        for start in 0..5 {
            give(digits, pack_digits(&form, start, BASE32));
        }
    });
    in_wide_letters_and_bits(value, give);
    give(digits, each_byte(value, &mut |byte| format!("{byte:03o}")));
    give(digits, each_byte(value, &mut |byte| format!("{byte:o}")));
    for start in 0..3 {
        give(digits, pack_digits(value, start, &UUENCODE));
    }
    for alphabet in [&ASCII85, Z85, RFC1924] {
        for start in 0..4 {
            give(digits, in_base85(value, start, alphabet));
        }
    }
    let decimal = each_byte(value, &mut |byte| byte.to_string());
    give(FormScript::DigitsBackwards, reverse_bytes(&decimal));
    give(digits, decimal);
    give(digits, each_byte(value, &mut |byte| format!("{byte:03}")));
    give(digits, each_byte(value, &mut |byte| format!("0x{byte:02x}")));
    in_code(value, give);
    in_dump_words(value, give);
}

/// Base64 and hexadecimal digits with `rev` after the encoder, or before it.
fn in_reverse(
    value: &[u8],
    backwards: &[u8],
    give: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>),
) {
    in_base64(value, FormScript::Digits, &mut |_, form| {
        give(FormScript::DigitsBackwards, reverse_bytes(&form));
    });
    give(FormScript::DigitsBackwards, reverse_bytes(&pack_digits(value, 0, HEX)));
    in_base64(backwards, FormScript::DigitsBackwards, give);
    give(FormScript::DigitsBackwards, pack_digits(backwards, 0, HEX));
}

/// UTF-16, and binary digits in both orders of the bits.
fn in_wide_letters_and_bits(value: &[u8], give: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>)) {
    let digits = FormScript::Digits;
    let wide: Zeroizing<Vec<u8>> = Zeroizing::new(value.iter().flat_map(|&b| [b, 0]).collect());
    in_base64(&wide, digits, give);
    give(digits, pack_digits(&wide, 0, HEX));
    give(digits, pack_digits(value, 0, BINARY));
    let mirrored: Zeroizing<Vec<u8>> =
        Zeroizing::new(value.iter().map(|byte| byte.reverse_bits()).collect());
    give(digits, pack_digits(&mirrored, 0, BINARY));
}

/// Escapes and calls of languages that are not decoded, UTF-32, what a printer strikes twice, and the
/// alphabet backwards.
fn in_code(value: &[u8], give: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>)) {
    let digits = FormScript::Digits;
    give(digits, each_byte(value, &mut |byte| format!("u{byte:x}")));
    give(digits, each_byte(value, &mut |byte| format!("u{byte:04x}")));
    give(digits, each_byte(value, &mut |byte| format!("chr{byte}")));
    give(digits, each_byte(value, &mut |byte| format!("{byte:08x}")));
    let twice = each_byte(value, &mut |byte| char::from(byte).to_string().repeat(2));
    give(FormScript::Letters, twice);
    give(FormScript::Letters, map_bytes(value, atbash));
}

/// The words of `od` and `hexdump`, in the byte order of nearly every machine. What is written with a sign
/// looks the same, since letters have none.
fn in_dump_words(value: &[u8], give: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>)) {
    let digits = FormScript::Digits;
    for start in 0..2 {
        let mut two = |write: fn(u16) -> String| {
            give(digits, write_words::<2>(value, start, |word| write(u16::from_le_bytes(word))));
        };
        two(|word| format!("{word:04x}"));
        two(|word| format!("{word:06o}"));
        two(|word| word.to_string());
        two(|word| format!("{word:05}"));
    }
    for start in 0..4 {
        let mut four = |write: fn(u32) -> String| {
            give(digits, write_words::<4>(value, start, |word| write(u32::from_le_bytes(word))));
        };
        four(|word| format!("{word:08x}"));
        four(|word| format!("{word:011o}"));
        four(|word| word.to_string());
        four(|word| format!("{word:010}"));
    }
    for start in 0..8 {
        let mut eight = |write: fn(u64) -> String| {
            give(digits, write_words::<8>(value, start, |word| write(u64::from_le_bytes(word))));
        };
        eight(|word| format!("{word:016x}"));
        eight(|word| format!("{word:022o}"));
        eight(|word| word.to_string());
    }
}

/// Base64 at each of the places a value can begin at in what was encoded.
fn in_base64(
    value: &[u8],
    script: FormScript,
    give: &mut dyn FnMut(FormScript, Zeroizing<Vec<u8>>),
) {
    for start in 0..3 {
        give(script, pack_digits(value, start, BASE64));
    }
}

/// The digits that say bits of `value` alone, where `start` other bytes stand before it.
fn pack_digits(value: &[u8], start: usize, alphabet: &[u8]) -> Zeroizing<Vec<u8>> {
    let bits = alphabet.len().ilog2() as usize;
    let mut written = Zeroizing::new(Vec::with_capacity(value.len() * BYTE_BITS / bits + 1));
    // Of the first digit that holds a bit of the value, those before it are not known.
    let first = (start * BYTE_BITS).next_multiple_of(bits) - start * BYTE_BITS;
    let mut at = first;
    while at + bits <= value.len() * BYTE_BITS {
        let digit = (at..at + bits).fold(0, |digit, bit| {
            let byte = value.get(bit / BYTE_BITS).copied().unwrap_or_default();
            digit << 1 | usize::from(byte >> (BYTE_BITS - 1 - bit % BYTE_BITS) & 1)
        });
        written.push(alphabet.get(digit).copied().unwrap_or_default());
        at += bits;
    }
    written
}

/// The digits of all groups of four bytes that lie in `value`, where `start` other bytes stand before it.
fn in_base85(value: &[u8], start: usize, alphabet: &[u8; 85]) -> Zeroizing<Vec<u8>> {
    const BASE: u32 = 85;
    const DIGITS: u32 = 5;
    let first = start.next_multiple_of(4) - start;
    let mut written = Zeroizing::new(Vec::with_capacity(value.len() * 5 / 4));
    for group in value.get(first..).unwrap_or_default().as_chunks::<4>().0 {
        let number = u32::from_be_bytes(*group);
        for place in (0..DIGITS).rev() {
            let digit = number / BASE.pow(place) % BASE;
            written.push(alphabet.get(digit as usize).copied().unwrap_or_default());
        }
    }
    written
}

fn reverse_bytes(value: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(value.iter().rev().copied().collect())
}

fn map_bytes(value: &[u8], map: fn(u8) -> u8) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(value.iter().map(|byte| map(*byte)).collect())
}

fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => b'a' + (byte - b'a' + 13) % 26,
        b'A'..=b'Z' => b'A' + (byte - b'A' + 13) % 26,
        other => other,
    }
}

fn rot47(byte: u8) -> u8 {
    match byte {
        b'!'..=b'~' => b'!' + (byte - b'!' + 47) % 94,
        other => other,
    }
}

fn atbash(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => b'z' - (byte - b'a'),
        b'A'..=b'Z' => b'Z' - (byte - b'A'),
        other => other,
    }
}

fn each_byte(value: &[u8], write: &mut dyn FnMut(u8) -> String) -> Zeroizing<Vec<u8>> {
    // No more than eight digits each, so that nothing is left behind in memory that is given back.
    let mut written = Zeroizing::new(Vec::with_capacity(value.len() * 8));
    for &byte in value {
        written.extend_from_slice(write(byte).as_bytes());
    }
    written
}

fn write_words<const BYTES: usize>(
    value: &[u8],
    start: usize,
    write: impl Fn([u8; BYTES]) -> String,
) -> Zeroizing<Vec<u8>> {
    let mut written = Zeroizing::new(Vec::with_capacity(value.len() * MAX_DIGITS_OF_BYTE));
    for word in value.get(start..).unwrap_or_default().chunks_exact(BYTES) {
        written.extend(
            word.first_chunk::<BYTES>().map(|word| write(*word)).unwrap_or_default().bytes(),
        );
    }
    written
}

#[cfg(test)]
mod tests {
    use base64::prelude::*;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn base64_form_of_a_secret_is_found_at_any_offset_in_encoded_text(
            before in prop::collection::vec(any::<u8>(), 0..9),
            value in prop::collection::vec(any::<u8>(), 8..40),
            after in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let whole = BASE64_STANDARD.encode([before.clone(), value.clone(), after].concat());
            let form = pack_digits(&value, before.len() % 3, BASE64);
            let form = std::str::from_utf8(&form).unwrap();
            prop_assert!(whole.contains(form), "{form} in {whole}");
            prop_assert!(form.len() * 6 >= value.len() * 8 - 14);
        }
    }

    #[test]
    fn hex_dump_words_use_little_endian_byte_order() {
        let word = |word| format!("{:04x}", u16::from_le_bytes(word));
        assert_eq!(
            **write_words::<2>(b"ghp_", 0, word),
            *b"6867".iter().chain(b"5f70").copied().collect::<Vec<_>>()
        );
        assert_eq!(**pack_digits(b"ghp", 0, HEX), *b"676870");
    }

    #[test]
    fn base85_and_uuencode_forms_match_their_reference_tools() {
        // By Python: a85encode, b85encode; by ZeroMQ's specification 32.
        assert_eq!(**in_base85(b"Man sure", 0, &ASCII85), *b"9jqo^F*2M7");
        assert_eq!(**in_base85(b"Man sure", 0, RFC1924), *b"O<`^zb9HiM");
        let hello = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        assert_eq!(**in_base85(&hello, 0, Z85), *b"HelloWorld");
        assert_eq!(**in_base85(&[&[0; 3], &hello[..]].concat(), 1, Z85), *b"HelloWorld");
        assert_eq!(**pack_digits(b"Cat", 0, &UUENCODE), *b"0V%T");
    }
}
