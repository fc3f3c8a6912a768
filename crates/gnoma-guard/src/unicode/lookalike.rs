//! Homoglyphs: words with look-alike letters of other scripts.
//!
//! Three sorts: letters of two scripts in one word that could be read as one; words of another
//! script that could be Latin, on lines that have nothing else of that script; characters that
//! become ASCII when normalised, or look like ASCII punctuation, beside ASCII. Nothing is ever
//! changed, and everyday characters of typography and of East Asian text are not reported.

use super::{
    flag::{FlagKind, Flags},
    scripts::is_east_asian,
};

const MIXED: &str = "words that mix scripts that look alike";
const FOREIGN: &str = "words of another script that look Latin";
const ALIKE: &str = "characters that look like ASCII or become it";

/// Letters a word needs at least to be taken for a Latin one as a whole.
const MIN_FOREIGN_WORD: usize = 3;
/// Latin letters a word needs beside a Greek one: with fewer it is a quantity or a unit.
const MIN_LATIN_BESIDE_GREEK: usize = 2;

/// Scripts whose letters are mistaken for Latin ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterScript {
    Cyrillic,
    Greek,
    Armenian,
    /// Cherokee, Coptic, Lisu: most letters are like Latin ones, so only a mixture deceives.
    Rare,
}

/// The script of a letter, and whether it looks like a Latin letter.
fn foreign_script(c: char) -> Option<(LetterScript, bool)> {
    const CYRILLIC: &str = "аеорсухіјѕһԁԛԝӏѵѡкАВЕКМНОРСТУХІЈЅӀԚԜԌҮүҺԍ";
    const GREEK: &str = "αονρικυχηγωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧͿ";
    const ARMENIAN: &str = "օոսհցզյաՕՍՏԼՈ";
    match c {
        '\u{400}'..='\u{481}' | '\u{48A}'..='\u{52F}' | '\u{1C80}'..='\u{1C8A}' => {
            Some((LetterScript::Cyrillic, CYRILLIC.contains(c)))
        }
        '\u{370}'..='\u{373}' | '\u{376}'..='\u{37D}' | '\u{37F}'..='\u{3FF}' => {
            Some((LetterScript::Greek, GREEK.contains(c)))
        }
        '\u{531}'..='\u{556}' | '\u{561}'..='\u{587}' => {
            Some((LetterScript::Armenian, ARMENIAN.contains(c)))
        }
        '\u{13A0}'..='\u{13F5}' | '\u{2C80}'..='\u{2CE3}' | '\u{A4D0}'..='\u{A4F7}' => {
            Some((LetterScript::Rare, true))
        }
        _ => None,
    }
}

/// Latin letters that Cyrillic has too.
fn looks_cyrillic(letter: u8) -> bool {
    b"aceopxyABCEHKMOPTX".contains(&letter)
}

/// The surroundings in which a character that looks like ASCII is worth reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlagContext {
    Anywhere,
    /// Beside an ASCII letter or digit.
    ByWord,
    /// Beside any visible ASCII character.
    ByAscii,
    /// In a row, or beside an ASCII letter or digit: styled alphabets.
    InRows,
    /// Full-width forms: beside ASCII, or on lines without East Asian text.
    Wide,
    /// Full-width punctuation that East Asian text puts beside ASCII every day.
    WidePunctuation,
}

/// Characters that look like ASCII or become it under NFKC, in order.
const ALIKES: &[(u32, u32, FlagContext)] = &[
    (0x017F, 0x017F, FlagContext::ByWord),   // long s
    (0x01C0, 0x01C3, FlagContext::ByWord),   // clicks: | and !
    (0x02D0, 0x02D0, FlagContext::ByWord),   // triangular colon
    (0x037E, 0x037E, FlagContext::ByAscii),  // Greek question mark: ;
    (0x0589, 0x0589, FlagContext::ByWord),   // Armenian full stop: :
    (0x1400, 0x1400, FlagContext::ByWord),   // Canadian hyphen: =
    (0x1D00, 0x1D6A, FlagContext::InRows),   // small capitals, raised letters
    (0x1FEF, 0x1FEF, FlagContext::ByAscii),  // Greek varia: `
    (0x201A, 0x201A, FlagContext::ByWord),   // low quote: ,
    (0x2024, 0x2025, FlagContext::ByAscii),  // dot leaders
    (0x2044, 0x2044, FlagContext::ByWord),   // fraction slash
    (0x2100, 0x2101, FlagContext::Anywhere), // a/c and a/s
    (0x2105, 0x2106, FlagContext::Anywhere), // c/o and c/u
    (0x210A, 0x2115, FlagContext::ByWord),   // letterlike symbols
    (0x2119, 0x211D, FlagContext::ByWord),
    (0x2121, 0x2121, FlagContext::Anywhere), // TEL
    (0x2124, 0x2124, FlagContext::ByWord),
    (0x2128, 0x2128, FlagContext::ByWord),
    (0x212A, 0x212A, FlagContext::Anywhere), // Kelvin
    (0x212C, 0x2139, FlagContext::ByWord),
    (0x213B, 0x213B, FlagContext::Anywhere), // FAX
    (0x2145, 0x2149, FlagContext::ByWord),
    (0x2160, 0x217F, FlagContext::ByWord), // Roman numerals
    (0x2215, 0x2216, FlagContext::ByWord), // division slash, set minus
    (0x2223, 0x2223, FlagContext::ByWord), // divides
    (0x2236, 0x2236, FlagContext::ByWord), // ratio
    (0x2488, 0x249B, FlagContext::ByWord), // numbers with a full stop
    (0x249C, 0x24E9, FlagContext::InRows), // letters in brackets and circles
    (0x29F5, 0x29F9, FlagContext::ByWord), // solidus signs
    (0x3002, 0x3002, FlagContext::WidePunctuation),
    (0xA789, 0xA78A, FlagContext::ByWord), // modifier colon, equals
    (0xFB00, 0xFB06, FlagContext::ByWord), // ligatures
    (0xFE50, 0xFE6B, FlagContext::ByAscii), // small forms
    (0xFF01, 0xFF01, FlagContext::WidePunctuation),
    (0xFF02, 0xFF04, FlagContext::Wide),
    (0xFF05, 0xFF05, FlagContext::WidePunctuation),
    (0xFF06, 0xFF07, FlagContext::Wide),
    (0xFF08, 0xFF09, FlagContext::WidePunctuation),
    (0xFF0A, 0xFF0A, FlagContext::Wide),
    (0xFF0B, 0xFF0D, FlagContext::WidePunctuation),
    (0xFF0E, 0xFF0E, FlagContext::Wide),
    (0xFF0F, 0xFF0F, FlagContext::WidePunctuation),
    (0xFF10, 0xFF19, FlagContext::Wide),
    (0xFF1A, 0xFF1B, FlagContext::WidePunctuation),
    (0xFF1C, 0xFF1E, FlagContext::Wide),
    (0xFF1F, 0xFF1F, FlagContext::WidePunctuation),
    (0xFF20, 0xFF5D, FlagContext::Wide),
    (0xFF5E, 0xFF5E, FlagContext::WidePunctuation),
    (0xFF61, 0xFF61, FlagContext::WidePunctuation),
    (0x1D400, 0x1D6A3, FlagContext::InRows), // mathematical alphabets
    (0x1D7CE, 0x1D7FF, FlagContext::InRows),
    (0x1F110, 0x1F12B, FlagContext::InRows), // letters in brackets and squares
    (0x1F130, 0x1F149, FlagContext::InRows),
];

fn lookalike_context(c: char) -> Option<FlagContext> {
    let code = u32::from(c);
    let after = ALIKES.partition_point(|(first, ..)| *first <= code);
    let (_, last, place) = ALIKES.get(after.checked_sub(1)?)?;
    (code <= *last).then_some(*place)
}

/// A word as far as it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct MixedWord {
    at: usize,
    latin: usize,
    latin_like_cyrillic: usize,
    foreign: usize,
    foreign_alike: usize,
    script: Option<LetterScript>,
}

/// Watches the text that stays, character by character.
#[derive(Clone, Debug, Default)]
pub(super) struct WordWatch {
    word: MixedWord,
    /// A character whose right neighbour decides.
    waiting: Option<(usize, FlagContext)>,
    /// The line has a word that can only be of another script.
    line_is_foreign: bool,
    line_is_east_asian: bool,
    /// First words of the line to report unless it turns out to be of another script.
    looks_latin: Option<usize>,
    /// First full-width form to report unless the line turns out to be East Asian.
    wide: Option<usize>,
}

impl WordWatch {
    /// Takes in ASCII text that only shows itself.
    pub(super) fn see_ascii(&mut self, text: &str, at: usize, flags: &mut Flags) {
        let bytes = text.as_bytes();
        if let Some(first) = text.chars().next() {
            self.resolve_waiting(first, flags);
        }
        let head = bytes.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        if self.word_is_open() || head == bytes.len() {
            self.see_latin(bytes.get(..head).unwrap_or_default(), at);
        }
        if head == bytes.len() {
            return;
        }
        self.end_word(flags);
        if self.watches_line() && bytes.contains(&b'\n') {
            self.end_line(flags);
        }
        let tail = bytes.iter().rev().take_while(|b| b.is_ascii_alphabetic()).count();
        let start = bytes.len() - tail;
        self.see_latin(bytes.get(start..).unwrap_or_default(), at + start);
    }

    fn see_latin(&mut self, letters: &[u8], at: usize) {
        if letters.is_empty() {
            return;
        }
        self.begin_word(at);
        self.word.latin += letters.len();
        self.word.latin_like_cyrillic += letters.iter().filter(|b| looks_cyrillic(**b)).count();
    }

    /// Takes in a character beyond ASCII, or a form feed.
    pub(super) fn observe_char(
        &mut self,
        c: char,
        before: Option<char>,
        at: usize,
        flags: &mut Flags,
    ) {
        self.resolve_waiting(c, flags);
        if matches!(c, '\u{3041}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
        {
            // Most letters of East Asia are neither like Latin ones nor marks.
            self.line_is_east_asian = true;
            return self.end_word(flags);
        }
        self.line_is_east_asian |= is_east_asian(c);
        if let Some((script, looks_latin)) = foreign_script(c) {
            self.begin_word(at);
            self.word.foreign += 1;
            self.word.foreign_alike += usize::from(looks_latin);
            self.word.script = Some(script);
        } else if is_latin(c) {
            self.begin_word(at);
            self.word.latin += 1;
        } else if !unicode_normalization::char::is_combining_mark(c) {
            self.end_word(flags);
        }
        if let Some(place) = lookalike_context(c) {
            self.see_alike(place, before, at, flags);
        }
    }

    fn see_alike(
        &mut self,
        place: FlagContext,
        before: Option<char>,
        at: usize,
        flags: &mut Flags,
    ) {
        let continues_row = before.and_then(lookalike_context) == Some(FlagContext::InRows);
        let is_found = match place {
            FlagContext::Anywhere => true,
            FlagContext::ByWord => before.is_some_and(|c| c.is_ascii_alphanumeric()),
            FlagContext::InRows => {
                continues_row || before.is_some_and(|c| c.is_ascii_alphanumeric())
            }
            FlagContext::ByAscii => before.is_some_and(|c| c.is_ascii_graphic()),
            FlagContext::Wide => {
                self.wide = self.wide.or(Some(at));
                before.is_some_and(|c| c.is_ascii_graphic())
            }
            FlagContext::WidePunctuation => {
                if before.is_some_and(|c| c.is_ascii_graphic()) {
                    self.wide = self.wide.or(Some(at));
                }
                false
            }
        };
        if is_found {
            flags.add_flag(FlagKind::LookAlike, ALIKE, at, false);
        } else {
            self.waiting = Some((at, place));
        }
    }

    /// Lets the right neighbour of the waiting character decide.
    fn resolve_waiting(&mut self, next: char, flags: &mut Flags) {
        let Some((at, place)) = self.waiting.take() else { return };
        let is_found = match place {
            FlagContext::ByWord | FlagContext::InRows => next.is_ascii_alphanumeric(),
            FlagContext::ByAscii | FlagContext::Wide => next.is_ascii_graphic(),
            FlagContext::WidePunctuation => {
                if next.is_ascii_graphic() {
                    self.wide = self.wide.or(Some(at));
                }
                false
            }
            FlagContext::Anywhere => false,
        };
        if is_found {
            flags.add_flag(FlagKind::LookAlike, ALIKE, at, false);
        }
    }

    fn word_is_open(&self) -> bool {
        self.word.latin + self.word.foreign > 0
    }

    fn begin_word(&mut self, at: usize) {
        if !self.word_is_open() {
            self.word.at = at;
        }
    }

    fn end_word(&mut self, flags: &mut Flags) {
        if !self.word_is_open() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let Some(script) = word.script else { return };
        let could_be_latin = word.foreign_alike == word.foreign;
        if word.latin > 0 {
            let could_be_cyrillic = script == LetterScript::Cyrillic
                && word.foreign > 1
                && word.latin_like_cyrillic == word.latin;
            let is_unit = script == LetterScript::Greek && word.latin < MIN_LATIN_BESIDE_GREEK;
            if could_be_cyrillic || (could_be_latin && !is_unit) {
                flags.add_flag(FlagKind::MixedScript, MIXED, word.at, false);
            }
        }
        if !could_be_latin || (script == LetterScript::Rare && word.latin == 0) {
            self.line_is_foreign = true;
        } else if word.latin == 0 && word.foreign >= MIN_FOREIGN_WORD {
            self.looks_latin = self.looks_latin.or(Some(word.at));
        }
    }

    fn watches_line(&self) -> bool {
        self.line_is_foreign
            || self.line_is_east_asian
            || self.looks_latin.is_some()
            || self.wide.is_some()
    }

    /// Reports what the whole line was needed to judge.
    pub(super) fn end_line(&mut self, flags: &mut Flags) {
        self.end_word(flags);
        if let Some(at) = self.looks_latin.filter(|_| !self.line_is_foreign) {
            flags.add_flag(FlagKind::MixedScript, FOREIGN, at, false);
        }
        if let Some(at) = self.wide.filter(|_| !self.line_is_east_asian) {
            flags.add_flag(FlagKind::LookAlike, ALIKE, at, false);
        }
        *self = Self::default();
    }
}

/// Latin letters beyond ASCII, which word and script do not tell apart from those in it.
fn is_latin(c: char) -> bool {
    matches!(c, '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}') && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalike_character_ranges_are_sorted() {
        assert!(ALIKES.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
