//! Letters and digits that are drawn another way: wide, bold, in circles.
//!
//! A text with enough of them is read once more as the plain letters that they stand for. Source of the ranges:
//! the Unicode Character Database, compatibility decompositions.

use memchr::memchr3;

use crate::decode::View;

/// The fewest drawn letters that can hide a secret.
const MIN_DRAWN: usize = 8;
/// First bytes of all characters below, in UTF-8.
const LEADS: [u8; 3] = [0xe2, 0xef, 0xf0];

/// Runs of such characters with the plain one that the first stands for.
const RUNS: [(char, char, u8); 26] = [
    ('\u{ff01}', '\u{ff5e}', b'!'),
    // In circles, brackets and squares.
    ('\u{2460}', '\u{2468}', b'1'),
    ('\u{2474}', '\u{247c}', b'1'),
    ('\u{249c}', '\u{24b5}', b'a'),
    ('\u{24b6}', '\u{24cf}', b'A'),
    ('\u{24d0}', '\u{24e9}', b'a'),
    ('\u{24ea}', '\u{24ea}', b'0'),
    ('\u{24f5}', '\u{24fd}', b'1'),
    ('\u{24ff}', '\u{24ff}', b'0'),
    ('\u{2776}', '\u{277e}', b'1'),
    ('\u{2780}', '\u{2788}', b'1'),
    ('\u{278a}', '\u{2792}', b'1'),
    ('\u{1f110}', '\u{1f129}', b'A'),
    ('\u{1f130}', '\u{1f149}', b'A'),
    ('\u{1f150}', '\u{1f169}', b'A'),
    ('\u{1f170}', '\u{1f189}', b'A'),
    ('\u{1f1e6}', '\u{1f1ff}', b'A'),
    // Above and below the line.
    ('\u{2070}', '\u{2070}', b'0'),
    ('\u{2074}', '\u{2079}', b'4'),
    ('\u{2080}', '\u{2089}', b'0'),
    // Digits of mathematics: bold, with double strokes, without serifs, of one width.
    ('\u{1d7ce}', '\u{1d7d7}', b'0'),
    ('\u{1d7d8}', '\u{1d7e1}', b'0'),
    ('\u{1d7e2}', '\u{1d7eb}', b'0'),
    ('\u{1d7ec}', '\u{1d7f5}', b'0'),
    ('\u{1d7f6}', '\u{1d7ff}', b'0'),
    // Digits of computers before Unicode.
    ('\u{1fbf0}', '\u{1fbf9}', b'0'),
];

/// Letters of mathematics: alphabet after alphabet, large letters first.
const MATHEMATICS: (u32, u32) = (0x1_d400, 0x1_d6a3);
const LETTERS: u32 = 26;

/// Letters of mathematics that had a place before.
const EARLIER: [(char, u8); 24] = [
    ('\u{2102}', b'C'),
    ('\u{210a}', b'g'),
    ('\u{210b}', b'H'),
    ('\u{210c}', b'H'),
    ('\u{210d}', b'H'),
    ('\u{210e}', b'h'),
    ('\u{2110}', b'I'),
    ('\u{2111}', b'I'),
    ('\u{2112}', b'L'),
    ('\u{2115}', b'N'),
    ('\u{2119}', b'P'),
    ('\u{211a}', b'Q'),
    ('\u{211b}', b'R'),
    ('\u{211c}', b'R'),
    ('\u{211d}', b'R'),
    ('\u{2124}', b'Z'),
    ('\u{2128}', b'Z'),
    ('\u{212c}', b'B'),
    ('\u{212d}', b'C'),
    ('\u{212f}', b'e'),
    ('\u{2130}', b'E'),
    ('\u{2131}', b'F'),
    ('\u{2133}', b'M'),
    ('\u{2134}', b'o'),
];

/// The text with plain letters in their place; `None` where there are too few to hide anything.
pub(super) fn decode_styled(text: &[u8]) -> Option<View> {
    let [one, two, three] = LEADS;
    memchr3(one, two, three, text)?;
    let (mut view, mut at, mut count) = (View::default(), 0, 0);
    for chunk in text.utf8_chunks() {
        let (mut same, start) = (at, at);
        for (offset, letter) in chunk.valid().char_indices() {
            let Some(meant) = plain_letter(letter) else { continue };
            let place = start + offset;
            view.push_literal(text.get(same..place).unwrap_or_default(), same);
            same = place + letter.len_utf8();
            view.push(&[meant], place..same);
            count += 1;
        }
        at = start + chunk.valid().len() + chunk.invalid().len();
        view.push_literal(text.get(same..at).unwrap_or_default(), same);
    }
    (count >= MIN_DRAWN).then_some(view)
}

fn plain_letter(letter: char) -> Option<u8> {
    let number = u32::from(letter);
    if number < 0x2070 {
        return None;
    }
    let (first, last) = MATHEMATICS;
    if (first..=last).contains(&number) {
        let (case, place) = ((number - first) / LETTERS % 2, (number - first) % LETTERS);
        let start = if case == 0 { b'A' } else { b'a' };
        return u8::try_from(place).ok().map(|place| start + place);
    }
    let run = RUNS.iter().find(|(first, last, _)| (*first..=*last).contains(&letter));
    let in_run = run.and_then(|(first, _, start)| {
        u8::try_from(number - u32::from(*first)).ok().map(|place| start + place)
    });
    in_run.or_else(|| EARLIER.iter().find(|(known, _)| *known == letter).map(|(_, plain)| *plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styled_unicode_letters_map_to_plain_letters() {
        for (drawn, expected) in [
            ("ｇｈｐ＿Ａ１", "ghp_A1"),
            ("ⓖⓗⓟⒶ①⓪", "ghpA10"),
            ("𝐠𝐡𝐩𝐀𝟏", "ghpA1"),
            ("𝓰𝕙𝔭𝖠𝟷", "ghpA1"),
            ("ℎℝ⁴₂", "hR42"),
            ("🄰🅐🅰", "AAA"),
            ("é—“", "é—“"),
        ] {
            let found: String =
                drawn.chars().map(|c| plain_letter(c).map_or(c, char::from)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn decoding_styled_letters_preserves_surrounding_bytes() {
        let text =
            b"a \xff\xef\xbd\x87\xef\xbd\x88\xef\xbd\x90\xef\xbd\x87\xef\xbd\x88\xef\xbd\x90\
            \xef\xbd\x87\xef\xbd\x88 b";
        let view = decode_styled(text).unwrap();
        assert_eq!(view.text(), b"a \xffghpghpgh b");
        assert_eq!(view.origin(3..5), 3..9);
        assert_eq!(view.origin(12..13), 28..29);
        assert!(decode_styled("“words” — and so on".as_bytes()).is_none());
    }
}
