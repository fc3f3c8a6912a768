//! A place in numbers: what is known of name, operator, value and line, for `model` to weigh.
//!
//! Every feature is a plain fact about form. None holds a value or a part of one, so that nothing can be
//! learnt by heart.

use super::cursor::{is_name_byte, scan_back};
use super::names::NameWords;
use super::place::{NamedValue, Operator};
use crate::language::LanguageMeasure;
use crate::parts::Parts;

/// The part of a line that is looked at on each side of a place.
const MAX_LINE_BYTES: usize = 160;
/// The part of a value whose characters are counted.
const MAX_COUNTED_BYTES: usize = 128;

/// Words about secrets in a value: it is likely a name.
static SECRET_WORDS: Parts<9> =
    Parts::new([b"pass", b"pwd", b"secret", b"token", b"key", b"auth", b"cred", b"login", b"user"]);
/// Words of values made up for tests.
static TEST_WORDS: Parts<12> = Parts::new([
    b"test", b"fake", b"mock", b"sample", b"foo", b"bar", b"abc", b"123", b"invalid", b"wrong",
    b"my", b"some",
]);

macro_rules! features {
    ($($name:ident),* $(,)?) => {
        /// Index of each number in a description.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Feature { $($name),* }

        /// The names of all features, in order.
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

features! {
    // The name.
    Password, Secret, Token, Key, Auth, Minor, Raises, Lowers, EndsSecret, EndsLowering, Words,
    NameBytes, NameIsUpper, NameHasDigits, NameQuoted, NameAfterDot, NameFirstOnLine, NameAfterBlank, BeforeRaises,
    // The operator.
    Assign, Colon, Arrow, Call, Element, Prose, Blank, Unbound, Argument, ByForm, Tight,
    // The value.
    Quoted, SingleQuoted, Bytes, LowerShare, UpperShare, DigitShare, SignShare, Spaces,
    DistinctShare, Entropy, KindChanges, BytesPerToken, BitsPerLetter, BitsPerByte, Bits, LongestPiece,
    FamiliarShare, PairBits,
    IsHex, IsIdentifier, IsBase64, HashBytes, StartsWithSign, EndsWithSign, HasSlash, HasDot, HasColon,
    HasBrackets, HasAt, HasDollar, HasUnderscore, HasDash, DigitsAtEnd, SecretWord, TestWord, LongestRepeat, Hump,
    // The surroundings.
    EndsLine, AfterComma, AfterSemicolon, Comment,
    LineBytes, IndentBytes, LineForeign,
    NameRepeats,
}

/// Numbers for one place.
pub(crate) type Description = [f32; NAMES.len()];

/// Describes `place` in `text`; `reading` is that of its value.
pub(crate) fn extract_features(
    text: &[u8],
    place: &NamedValue,
    reading: &LanguageMeasure,
) -> Description {
    let mut writer = FeatureWriter { numbers: [0.0; NAMES.len()] };
    let value = text.get(place.value.clone()).unwrap_or_default();
    let name = text.get(place.name.clone()).unwrap_or_default();
    describe_name(&mut writer, text, place, name);
    describe_binding(&mut writer, text, place);
    describe_characters(&mut writer, value);
    describe_language(&mut writer, reading);
    describe_shape(&mut writer, value);
    describe_line(&mut writer, text, place);
    writer.numbers
}

struct FeatureWriter {
    numbers: Description,
}

impl FeatureWriter {
    fn set(&mut self, feature: Feature, number: f32) {
        if let Some(slot) = self.numbers.get_mut(feature as usize) {
            *slot = number;
        }
    }

    fn set_flag(&mut self, feature: Feature, is_so: bool) {
        self.set(feature, f32::from(u8::from(is_so)));
    }

    fn set_count(&mut self, feature: Feature, count: usize) {
        self.set(feature, count as f32);
    }
}

fn describe_name(writer: &mut FeatureWriter, text: &[u8], place: &NamedValue, name: &[u8]) {
    let words = NameWords::read(name);
    writer.set_flag(Feature::Password, words.password);
    writer.set_flag(Feature::Secret, words.secret);
    writer.set_flag(Feature::Token, words.token);
    writer.set_flag(Feature::Key, words.key);
    writer.set_flag(Feature::Auth, words.auth);
    writer.set_flag(Feature::Minor, words.minor);
    writer.set_count(Feature::Raises, words.raises);
    writer.set_count(Feature::Lowers, words.lowers);
    writer.set_flag(Feature::EndsSecret, words.ends_secret);
    writer.set_flag(Feature::EndsLowering, words.ends_lowering);
    writer.set_count(Feature::Words, words.words);
    writer.set_count(Feature::NameBytes, name.len());
    writer.set_flag(
        Feature::NameIsUpper,
        !name.is_empty() && !name.iter().any(u8::is_ascii_lowercase),
    );
    writer.set_flag(Feature::NameHasDigits, name.iter().any(u8::is_ascii_digit));
    let start = place.name.start;
    let before = start.checked_sub(1).and_then(|at| text.get(at)).copied();
    writer.set_flag(Feature::NameQuoted, matches!(before, Some(b'"' | b'\'' | b'`')));
    writer.set_flag(Feature::NameAfterDot, matches!(before, Some(b'.' | b'>' | b'@')));
    writer.set_flag(Feature::NameFirstOnLine, matches!(before, None | Some(b'\n')));
    writer.set_flag(Feature::NameAfterBlank, matches!(before, Some(b' ' | b'\t')));
    let word_end = scan_back(text, start, 1, |byte| matches!(byte, b' ' | b'.'));
    let word_start = scan_back(text, word_end, 24, is_name_byte);
    let word = NameWords::read(text.get(word_start..word_end).unwrap_or_default());
    writer.set_flag(Feature::BeforeRaises, word.raises > 0 || word.rule().is_some());
}

fn describe_binding(writer: &mut FeatureWriter, text: &[u8], place: &NamedValue) {
    let feature = match place.operator {
        Operator::Assign => Some(Feature::Assign),
        Operator::Colon => Some(Feature::Colon),
        Operator::Arrow => Some(Feature::Arrow),
        Operator::Call => Some(Feature::Call),
        Operator::Element => Some(Feature::Element),
        Operator::Prose => Some(Feature::Prose),
        Operator::Blank => Some(Feature::Blank),
        Operator::None => Some(Feature::Unbound),
        Operator::Compare | Operator::Comma => None,
    };
    if let Some(feature) = feature {
        writer.set_flag(feature, true);
    }
    writer.set_count(Feature::Argument, place.argument);
    writer.set_flag(Feature::ByForm, place.by_form);
    let between = text.get(place.name.end..place.value.start).unwrap_or_default();
    writer.set_flag(Feature::Tight, !between.iter().any(|byte| *byte == b' ' || *byte == b'\t'));
    writer.set_flag(Feature::Quoted, place.quote.is_some());
    writer.set_flag(Feature::SingleQuoted, place.quote == Some(b'\''));
}

/// The kind of a character, for counting and for changes of kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Lower,
    Upper,
    Digit,
    Sign,
    Blank,
    Foreign,
}

fn char_class(byte: u8) -> CharClass {
    match byte {
        b'a'..=b'z' => CharClass::Lower,
        b'A'..=b'Z' => CharClass::Upper,
        b'0'..=b'9' => CharClass::Digit,
        0x80.. => CharClass::Foreign,
        b' ' | b'\t' => CharClass::Blank,
        _ => CharClass::Sign,
    }
}

fn describe_characters(writer: &mut FeatureWriter, value: &[u8]) {
    let counted = value.get(..MAX_COUNTED_BYTES).unwrap_or(value);
    let mut kinds = [0_usize; 6];
    let mut bytes = [0_u8; 256];
    let (mut changes, mut repeat, mut longest_repeat) = (0, 0, 0);
    let mut previous = None;
    for &byte in counted {
        if let Some(count) = kinds.get_mut(char_class(byte) as usize) {
            *count += 1;
        }
        if let Some(count) = bytes.get_mut(usize::from(byte)) {
            *count = count.saturating_add(1);
        }
        changes +=
            usize::from(previous.is_some_and(|previous| char_class(previous) != char_class(byte)));
        repeat = if previous == Some(byte) { repeat + 1 } else { 1 };
        longest_repeat = longest_repeat.max(repeat);
        previous = Some(byte);
    }
    let total = counted.len().max(1) as f32;
    let share =
        |kind: CharClass| kinds.get(kind as usize).copied().unwrap_or_default() as f32 / total;
    writer.set_count(Feature::Bytes, value.len());
    writer.set(Feature::LowerShare, share(CharClass::Lower));
    writer.set(Feature::UpperShare, share(CharClass::Upper));
    writer.set(Feature::DigitShare, share(CharClass::Digit));
    writer.set(Feature::SignShare, share(CharClass::Sign));
    writer.set_count(
        Feature::Spaces,
        kinds.get(CharClass::Blank as usize).copied().unwrap_or_default(),
    );
    let (distinct, entropy) = byte_diversity(&bytes, total);
    writer.set(Feature::DistinctShare, distinct as f32 / total);
    writer.set(Feature::Entropy, entropy);
    writer.set(Feature::KindChanges, changes as f32 / total);
    writer.set_count(Feature::LongestRepeat, longest_repeat);
}

/// Returns the number of distinct bytes, and their Shannon entropy in bits a byte.
fn byte_diversity(counts: &[u8; 256], total: f32) -> (usize, f32) {
    let (mut distinct, mut entropy) = (0, 0.0);
    for count in counts.iter().filter(|count| **count > 0) {
        let share = f32::from(*count) / total;
        distinct += 1;
        entropy -= share * share.log2();
    }
    (distinct, entropy)
}

fn describe_language(writer: &mut FeatureWriter, reading: &LanguageMeasure) {
    writer.set(Feature::BytesPerToken, reading.bytes_per_token());
    writer.set(Feature::BitsPerLetter, reading.bits_per_letter());
    writer.set(Feature::BitsPerByte, reading.bits_per_byte());
    writer.set(Feature::Bits, reading.bits);
    writer.set(Feature::PairBits, reading.bits_per_pair());
    writer.set_count(Feature::LongestPiece, reading.longest_piece);
    writer.set(
        Feature::FamiliarShare,
        reading.familiar_letters as f32 / reading.letters.max(1) as f32,
    );
}

fn describe_shape(writer: &mut FeatureWriter, value: &[u8]) {
    let holds = |wanted: &[u8]| value.iter().any(|byte| wanted.contains(byte));
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let first = value.first().copied().unwrap_or_default();
    let last = value.last().copied().unwrap_or_default();
    writer.set_flag(Feature::IsHex, is_hex);
    writer.set_flag(
        Feature::IsIdentifier,
        !first.is_ascii_digit()
            && value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'),
    );
    writer.set_flag(Feature::IsBase64, is_base64(value));
    writer.set_flag(
        Feature::HashBytes,
        is_hex && matches!(value.len(), 32 | 40 | 48 | 56 | 64 | 96 | 128),
    );
    writer.set_flag(Feature::StartsWithSign, first.is_ascii_punctuation());
    writer.set_flag(Feature::EndsWithSign, last.is_ascii_punctuation());
    writer.set_flag(Feature::HasSlash, holds(b"/"));
    writer.set_flag(Feature::HasDot, holds(b"."));
    writer.set_flag(Feature::HasColon, holds(b":"));
    writer.set_flag(Feature::HasBrackets, holds(b"()[]{}<>"));
    writer.set_flag(Feature::HasAt, holds(b"@"));
    writer.set_flag(Feature::HasDollar, holds(b"$"));
    writer.set_flag(Feature::HasUnderscore, holds(b"_"));
    writer.set_flag(Feature::HasDash, holds(b"-"));
    writer.set_count(
        Feature::DigitsAtEnd,
        value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count(),
    );
    let begins = value.get(..MAX_COUNTED_BYTES).unwrap_or(value);
    writer.set_flag(Feature::SecretWord, SECRET_WORDS.stand_in(begins));
    writer.set_flag(Feature::TestWord, TEST_WORDS.stand_in(begins));
    let hump = value
        .iter()
        .zip(value.iter().skip(1))
        .filter(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    writer.set_count(Feature::Hump, hump.count());
}

fn is_base64(value: &[u8]) -> bool {
    let padding = value.iter().rev().take_while(|byte| **byte == b'=').count();
    let body = value.len() - padding;
    let is_letter =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    value.len() >= 12
        && padding <= 2
        && (padding > 0 || value.len().is_multiple_of(4))
        && value.iter().take(body).all(is_letter)
}

fn find_ignoring_case(value: &[u8], wanted: &[u8]) -> bool {
    let value = value.get(..MAX_COUNTED_BYTES).unwrap_or(value);
    !wanted.is_empty()
        && value.windows(wanted.len()).any(|window| window.eq_ignore_ascii_case(wanted))
}

fn describe_line(writer: &mut FeatureWriter, text: &[u8], place: &NamedValue) {
    let is_line = |byte: u8| byte != b'\n';
    let start = scan_back(text, place.name.start, MAX_LINE_BYTES, is_line);
    let after = text.get(place.value.end..).unwrap_or_default();
    let after_bytes = after.iter().take(MAX_LINE_BYTES).take_while(|byte| is_line(**byte)).count();
    let before = text.get(start..place.name.start).unwrap_or_default();
    let after = after.get(..after_bytes).unwrap_or_default();
    describe_what_follows(writer, after, place);
    let indent = before.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let words = before.get(indent..).unwrap_or_default();
    let comment = [&b"#"[..], b"//", b"*", b"--", b";", b"<!--", b"%", b"\""]
        .iter()
        .any(|sign| words.starts_with(sign));
    writer.set_flag(Feature::Comment, comment);
    writer.set_count(Feature::LineBytes, place.value.end + after_bytes - start);
    writer.set_count(Feature::IndentBytes, indent);
    writer.set_flag(Feature::LineForeign, before.iter().chain(after).any(|byte| !byte.is_ascii()));
    let name = text.get(place.name.clone()).unwrap_or_default();
    writer.set_flag(
        Feature::NameRepeats,
        name.len() >= 3 && (find_ignoring_case(before, name) || find_ignoring_case(after, name)),
    );
}

fn describe_what_follows(writer: &mut FeatureWriter, after: &[u8], place: &NamedValue) {
    let closed = usize::from(place.quote.is_some());
    let rest = after.get(closed..).unwrap_or_default();
    let following = rest.first().copied().unwrap_or(b'\n');
    writer.set_flag(Feature::EndsLine, rest.iter().all(u8::is_ascii_whitespace));
    writer.set_flag(Feature::AfterComma, following == b',');
    writer.set_flag(Feature::AfterSemicolon, following == b';');
}
