//! What each character that does more than show itself is, as data.
//!
//! A character that is not in [`TABLE`] shows itself and always stays. The verdict on one that is
//! in it depends on its neighbours and is given in [`super::walk`].
//!
//! Sources: Unicode 16 (Default_Ignorable_Code_Point, Noncharacter_Code_Point, chapters 23 on
//! special areas and the chapters of the scripts named), ECMA-48 for C0 and C1.

use super::flag::FlagKind;

/// The way in which a character of the table is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A character that no text needs: it always goes.
    Never,
    /// A carriage return stays as part of a line break, of which some programs write two.
    CarriageReturn,
    /// The mark with which DOS ended texts: stays at the end of a line.
    EndMark,
    /// Opens a terminal sequence.
    Escape,
    /// A mark at the very start of a text; nothing anywhere else.
    ByteOrderMark,
    /// Stays right beside a character of this range.
    Beside(u32, u32),
    /// Stays between combining marks.
    GraphemeJoiner,
    /// Marks a direction without opening a span: stays on lines that have right-to-left letters.
    BidiMark,
    /// Opens a span of a direction.
    BidiOpen,
    /// Closes a span, or overrides the direction of letters: never kept alone.
    BidiStray,
    /// Stands for a missing part of an old Korean syllable.
    HangulFiller,
    /// Chooses a form of a Mongolian letter.
    MongolianSelector,
    /// Stands between two letters of a Mongolian word.
    MongolianSeparator,
    /// Marks where a long word may be broken.
    SoftHyphen,
    /// Chooses a form of the character before (VS1 to VS16).
    Selector,
    /// Chooses a form of the ideograph before (VS17 to VS256).
    IdeographSelector,
    /// A space of a printed width: stays unless it glues a command together.
    PrintedSpace,
    /// A permission to break the line, for scripts without spaces.
    BreakHint,
    /// Keeps letters of a joining script apart.
    NonJoiner,
    /// Joins emoji, or letters of a joining script.
    Joiner,
    /// Forbids breaking the line.
    WordJoiner,
    /// An operator of mathematics that is read but not seen.
    InvisibleOperator,
    /// A Braille pattern without dots.
    BrailleBlank,
    /// A letter of a flag's region.
    Tag,
    /// Private use in the basic plane: icon fonts.
    Icon,
    /// Private use in planes 15 and 16.
    Private,
}

/// A range of characters, how it is judged, and what it is to a person.
pub(super) struct CharRange {
    first: u32,
    last: u32,
    pub class: Class,
    pub kind: FlagKind,
    /// Names the characters in messages; a plural.
    pub what: &'static str,
}

const fn char_range(
    first: u32,
    last: u32,
    class: Class,
    kind: FlagKind,
    what: &'static str,
) -> CharRange {
    CharRange { first, last, class, kind, what }
}

const CONTROLS: &str = "control characters";
const ESCAPES: &str = "terminal control sequences";
const BLANKS: &str = "blank letters";
const UNASSIGNED: &str = "invisible characters without a meaning";
const NONCHARACTERS: &str = "code points that are not characters";
const MARKS: &str = "direction marks";
const SPANS: &str = "direction controls";
const SPACES: &str = "unusual spaces inside a command";
const SELECTORS: &str = "variation selectors";
const FORMATS: &str = "invisible format controls";
const SEPARATORS: &str = "line separators";
const PRIVATE: &str = "private-use characters";

/// Every character that is judged, in order.
static TABLE: &[CharRange] = &[
    // C0. Line feed and tab show themselves; a form feed separates sections of source files.
    char_range(0x00, 0x08, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x0B, 0x0B, Class::Never, FlagKind::Control, CONTROLS),
    char_range(
        0x0D,
        0x0D,
        Class::CarriageReturn,
        FlagKind::Control,
        "carriage returns inside a line",
    ),
    char_range(0x0E, 0x19, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x1A, 0x1A, Class::EndMark, FlagKind::Control, CONTROLS),
    char_range(0x1B, 0x1B, Class::Escape, FlagKind::Terminal, ESCAPES),
    char_range(0x1C, 0x1F, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x7F, 0x7F, Class::Never, FlagKind::Control, CONTROLS),
    // C1: the eight-bit forms of DCS, SOS, CSI, OSC, PM and APC open sequences as escape does.
    char_range(0x80, 0x8F, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x90, 0x90, Class::Escape, FlagKind::Terminal, ESCAPES),
    char_range(0x91, 0x97, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x98, 0x98, Class::Escape, FlagKind::Terminal, ESCAPES),
    char_range(0x99, 0x9A, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x9B, 0x9B, Class::Escape, FlagKind::Terminal, ESCAPES),
    char_range(0x9C, 0x9C, Class::Never, FlagKind::Control, CONTROLS),
    char_range(0x9D, 0x9F, Class::Escape, FlagKind::Terminal, ESCAPES),
    // Shown only where a line happens to break.
    char_range(0xAD, 0xAD, Class::SoftHyphen, FlagKind::ZeroWidth, "soft hyphens"),
    char_range(0x34F, 0x34F, Class::GraphemeJoiner, FlagKind::ZeroWidth, "grapheme joiners"),
    char_range(0x61C, 0x61C, Class::BidiMark, FlagKind::Bidi, MARKS),
    char_range(0x115F, 0x1160, Class::HangulFiller, FlagKind::Blank, BLANKS),
    // The Ogham space is a line in Ogham fonts and nothing elsewhere.
    char_range(0x1680, 0x1680, Class::Beside(0x1680, 0x169C), FlagKind::Blank, SPACES),
    // Inherent vowels of Khmer: never written, kept beside Khmer for old texts.
    char_range(0x17B4, 0x17B5, Class::Beside(0x1780, 0x17D3), FlagKind::Blank, BLANKS),
    char_range(0x180B, 0x180D, Class::MongolianSelector, FlagKind::Variation, SELECTORS),
    char_range(0x180E, 0x180E, Class::MongolianSeparator, FlagKind::Blank, "Mongolian separators"),
    char_range(0x180F, 0x180F, Class::MongolianSelector, FlagKind::Variation, SELECTORS),
    char_range(0x2000, 0x200A, Class::PrintedSpace, FlagKind::Blank, SPACES),
    char_range(0x200B, 0x200B, Class::BreakHint, FlagKind::ZeroWidth, "zero-width spaces"),
    char_range(0x200C, 0x200C, Class::NonJoiner, FlagKind::ZeroWidth, "zero-width non-joiners"),
    char_range(0x200D, 0x200D, Class::Joiner, FlagKind::ZeroWidth, "zero-width joiners"),
    char_range(0x200E, 0x200F, Class::BidiMark, FlagKind::Bidi, MARKS),
    char_range(0x2028, 0x2029, Class::Never, FlagKind::Control, SEPARATORS),
    char_range(0x202A, 0x202B, Class::BidiOpen, FlagKind::Bidi, SPANS),
    char_range(0x202C, 0x202E, Class::BidiStray, FlagKind::Bidi, SPANS),
    char_range(0x205F, 0x205F, Class::PrintedSpace, FlagKind::Blank, SPACES),
    char_range(0x2060, 0x2060, Class::WordJoiner, FlagKind::ZeroWidth, "word joiners"),
    char_range(
        0x2061,
        0x2064,
        Class::InvisibleOperator,
        FlagKind::ZeroWidth,
        "invisible operators",
    ),
    char_range(0x2065, 0x2065, Class::Never, FlagKind::ZeroWidth, UNASSIGNED),
    char_range(0x2066, 0x2068, Class::BidiOpen, FlagKind::Bidi, SPANS),
    char_range(0x2069, 0x2069, Class::BidiStray, FlagKind::Bidi, SPANS),
    // Deprecated since Unicode 3.0.
    char_range(0x206A, 0x206F, Class::Never, FlagKind::ZeroWidth, FORMATS),
    char_range(0x2800, 0x2800, Class::BrailleBlank, FlagKind::Blank, "Braille blanks"),
    char_range(0x3164, 0x3164, Class::Never, FlagKind::Blank, BLANKS),
    char_range(0xE000, 0xF8FF, Class::Icon, FlagKind::Private, PRIVATE),
    char_range(0xFDD0, 0xFDEF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
    char_range(0xFE00, 0xFE0F, Class::Selector, FlagKind::Variation, SELECTORS),
    char_range(
        0xFEFF,
        0xFEFF,
        Class::ByteOrderMark,
        FlagKind::ZeroWidth,
        "byte order marks inside text",
    ),
    char_range(0xFFA0, 0xFFA0, Class::Never, FlagKind::Blank, BLANKS),
    char_range(0xFFF0, 0xFFF8, Class::Never, FlagKind::ZeroWidth, UNASSIGNED),
    // Annotations carry a second text that is not shown in the line.
    char_range(0xFFF9, 0xFFFB, Class::Never, FlagKind::ZeroWidth, "annotation controls"),
    char_range(0xFFFC, 0xFFFC, Class::Never, FlagKind::Blank, "marks of missing objects"),
    char_range(0xFFFE, 0xFFFF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
    // Egyptian quadrats, Khitan clusters, Duployan overlaps and musical beams have controls too.
    char_range(0x13430, 0x1345F, Class::Beside(0x13000, 0x143FA), FlagKind::ZeroWidth, FORMATS),
    char_range(0x16FE4, 0x16FE4, Class::Beside(0x18B00, 0x18CFF), FlagKind::Blank, BLANKS),
    char_range(0x1BCA0, 0x1BCA3, Class::Beside(0x1BC00, 0x1BC9F), FlagKind::ZeroWidth, FORMATS),
    char_range(0x1D159, 0x1D159, Class::Beside(0x1D100, 0x1D1EA), FlagKind::Blank, BLANKS),
    char_range(0x1D173, 0x1D17A, Class::Beside(0x1D100, 0x1D1EA), FlagKind::ZeroWidth, FORMATS),
    char_range(0x1FFFE, 0x1FFFF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
    char_range(0x2FFFE, 0x2FFFF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
    char_range(0x3FFFE, 0x3FFFF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
    // Planes 4 to 13 are empty.
    char_range(0x40000, 0xDFFFF, Class::Never, FlagKind::Invalid, UNASSIGNED),
    char_range(0xE0000, 0xE001F, Class::Never, FlagKind::Tag, "tag characters"),
    char_range(0xE0020, 0xE007F, Class::Tag, FlagKind::Tag, "tag characters"),
    char_range(0xE0080, 0xE00FF, Class::Never, FlagKind::ZeroWidth, UNASSIGNED),
    char_range(0xE0100, 0xE01EF, Class::IdeographSelector, FlagKind::Variation, SELECTORS),
    char_range(0xE01F0, 0xEFFFF, Class::Never, FlagKind::ZeroWidth, UNASSIGNED),
    char_range(0xF0000, 0xFFFFD, Class::Private, FlagKind::Private, PRIVATE),
    char_range(0xFFFFE, 0xFFFFF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
    char_range(0x10_0000, 0x10_FFFD, Class::Private, FlagKind::Private, PRIVATE),
    char_range(0x10_FFFE, 0x10_FFFF, Class::Never, FlagKind::Invalid, NONCHARACTERS),
];

/// The ranges in which letters of most scripts are that have no entry, to spare the search.
const PLAIN: [(u32, u32); 3] = [(0x370, 0x61B), (0x3165, 0xDFFF), (0x20, 0x7E)];

/// The entry of a character; `None` when it only shows itself.
pub(super) fn look_up(c: char) -> Option<&'static CharRange> {
    let code = u32::from(c);
    if PLAIN.iter().any(|(first, last)| (*first..=*last).contains(&code)) {
        return None;
    }
    let after = TABLE.partition_point(|entry| entry.first <= code);
    let entry = TABLE.get(after.checked_sub(1)?)?;
    (code <= entry.last).then_some(entry)
}

/// Reports whether a character only shows itself.
pub(super) fn is_plain(c: char) -> bool {
    look_up(c).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order_and_do_not_overlap() {
        assert!(TABLE.iter().all(|entry| entry.first <= entry.last));
        assert!(TABLE.windows(2).all(|pair| pair[0].last < pair[1].first));
        for (first, last) in PLAIN {
            assert!(TABLE.iter().all(|entry| entry.last < first || entry.first > last));
        }
    }
}
