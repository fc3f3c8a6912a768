//! Facts about scripts and emoji that decide where an invisible character belongs.
//!
//! Ranges are those of blocks, not of single letters: what matters is whether a joiner is in text that has joins,
//! not whether the word is spelled correctly. Source: Unicode 16.

/// The way in which letters of a script use joiners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinerUse {
    /// Letters take the form that their neighbours ask for: Arabic and the like.
    Cursive,
    /// A virama joins consonants; a vowel sign always joins.
    Virama,
    /// As [`Virama`](Self::Virama), and a non-joiner may part a vowel sign from its consonant.
    LooseVowels,
}

const JOINING: &[(u32, u32, JoinerUse)] = &[
    (0x0591, 0x05C7, JoinerUse::Cursive), // points of Hebrew
    (0x0610, 0x061A, JoinerUse::Cursive), // Arabic
    (0x0620, 0x065F, JoinerUse::Cursive),
    (0x066E, 0x06EF, JoinerUse::Cursive),
    (0x06FA, 0x074F, JoinerUse::Cursive), // and Syriac
    (0x0750, 0x077F, JoinerUse::Cursive),
    (0x07CA, 0x07F5, JoinerUse::Cursive), // N'Ko
    (0x0840, 0x085B, JoinerUse::Cursive), // Mandaic
    (0x0860, 0x08FF, JoinerUse::Cursive),
    (0x0900, 0x097F, JoinerUse::Virama),      // Devanagari
    (0x0980, 0x09FF, JoinerUse::LooseVowels), // Bengali
    (0x0A00, 0x0A7F, JoinerUse::Virama),      // Gurmukhi
    (0x0A80, 0x0AFF, JoinerUse::Virama),      // Gujarati
    (0x0B00, 0x0B7F, JoinerUse::LooseVowels), // Odia
    (0x0B80, 0x0BFF, JoinerUse::Virama),      // Tamil
    (0x0C00, 0x0C7F, JoinerUse::Virama),      // Telugu
    (0x0C80, 0x0CFF, JoinerUse::Virama),      // Kannada
    (0x0D00, 0x0D7F, JoinerUse::LooseVowels), // Malayalam
    (0x0D80, 0x0DFF, JoinerUse::Virama),      // Sinhala
    (0x0F00, 0x0FFF, JoinerUse::Virama),      // Tibetan
    (0x1000, 0x109F, JoinerUse::LooseVowels), // Myanmar
    (0x1700, 0x177F, JoinerUse::Virama),      // Philippines
    (0x1780, 0x17D3, JoinerUse::LooseVowels), // Khmer
    (0x1807, 0x1807, JoinerUse::Cursive),     // Mongolian
    (0x1820, 0x18AA, JoinerUse::Cursive),
    (0x1900, 0x194F, JoinerUse::Virama),  // Limbu
    (0x1A00, 0x1AAF, JoinerUse::Virama),  // Buginese, Tai Tham
    (0x1B00, 0x1C4F, JoinerUse::Virama),  // Balinese, Sundanese, Batak, Lepcha
    (0x1CD0, 0x1CFF, JoinerUse::Virama),  // Vedic
    (0xA800, 0xA82F, JoinerUse::Virama),  // Syloti Nagri
    (0xA840, 0xA871, JoinerUse::Cursive), // Phags-pa
    (0xA880, 0xA8FF, JoinerUse::Virama),  // Saurashtra, Devanagari
    (0xA930, 0xA95F, JoinerUse::Virama),  // Rejang
    (0xA980, 0xAADF, JoinerUse::Virama),  // Javanese, Myanmar, Cham, Tai Viet
    (0xAAE0, 0xAAFF, JoinerUse::Virama),  // Meetei Mayek
    (0xABC0, 0xABFF, JoinerUse::Virama),
    (0xFB50, 0xFDCF, JoinerUse::Cursive), // forms of Arabic
    (0xFDF0, 0xFDFF, JoinerUse::Cursive),
    (0xFE70, 0xFEFC, JoinerUse::Cursive),
    (0x10A00, 0x10A5F, JoinerUse::Virama),  // Kharoshthi
    (0x10AC0, 0x10AE6, JoinerUse::Cursive), // Manichaean
    (0x10B80, 0x10B91, JoinerUse::Cursive), // Psalter Pahlavi
    (0x10D00, 0x10D27, JoinerUse::Cursive), // Rohingya
    (0x10EC0, 0x10EFF, JoinerUse::Cursive), // Arabic
    (0x10F30, 0x10F54, JoinerUse::Cursive), // Sogdian
    (0x10F70, 0x10F85, JoinerUse::Cursive), // Uyghur
    (0x10FB0, 0x10FCB, JoinerUse::Cursive), // Chorasmian
    (0x11000, 0x11DFF, JoinerUse::Virama),  // Brahmi and its family
    (0x1E900, 0x1E94B, JoinerUse::Cursive), // Adlam
];

/// The joining script a character belongs to: how it joins, and a number that names it.
pub(super) fn joining_script(c: char) -> Option<(JoinerUse, usize)> {
    let code = u32::from(c);
    let row = JOINING.partition_point(|(first, ..)| *first <= code).checked_sub(1)?;
    let (_, last, joins) = JOINING.get(row)?;
    (code <= *last).then_some((*joins, row))
}

/// Signs that take a consonant's vowel away, so that it can join the next.
pub(super) fn is_virama(c: char) -> bool {
    const VIRAMAS: &[u32] = &[
        0x094D, 0x09CD, 0x0A4D, 0x0ACD, 0x0B4D, 0x0BCD, 0x0C4D, 0x0CCD, 0x0D3B, 0x0D3C, 0x0D4D,
        0x0DCA, 0x0F84, 0x1039, 0x103A, 0x1714, 0x1734, 0x17D2, 0x1A60, 0x1B44, 0x1BAA, 0xA806,
        0xA8C4, 0xA953, 0xA9C0, 0xABED, 0x10A3F, 0x11046, 0x110B9, 0x11133, 0x111C0, 0x1134D,
        0x11442, 0x114C2, 0x115BF, 0x1163F,
    ];
    VIRAMAS.binary_search(&u32::from(c)).is_ok()
}

fn lies_in(c: char, ranges: &[(u32, u32)]) -> bool {
    let code = u32::from(c);
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after.checked_sub(1).and_then(|row| ranges.get(row)).is_some_and(|(_, last)| code <= *last)
}

/// Letters that are written from right to left.
pub(super) fn is_right_to_left(c: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x05BE, 0x05BE),
        (0x05D0, 0x05F4),
        (0x0608, 0x060B),
        (0x060D, 0x060D),
        (0x061B, 0x061B),
        (0x061D, 0x064A),
        (0x066D, 0x066F),
        (0x0671, 0x06D5),
        (0x06E5, 0x06E6),
        (0x06EE, 0x06EF),
        (0x06FA, 0x0858),
        (0x0860, 0x088F),
        (0x08A0, 0x08C9),
        (0xFB1D, 0xFDCF),
        (0xFDF0, 0xFDFC),
        (0xFE70, 0xFEFC),
        (0x10800, 0x10FFF),
        (0x1E800, 0x1EFFF),
    ];
    !matches!(c, '\0'..='\u{58F}' | '\u{900}'..='\u{FB00}') && lies_in(c, RANGES)
}

/// Scripts that are written without spaces between words, where a line may break at a hint.
pub(super) fn breaks_at_hints(c: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x0E01, 0x0FFF), // Thai, Lao, Tibetan
        (0x1000, 0x109F), // Myanmar
        (0x1780, 0x17FF), // Khmer
        (0x1950, 0x19FF), // Tai Le, New Tai Lue, Khmer
        (0x1A20, 0x1AAF), // Tai Tham
        (0x1B00, 0x1B7F), // Balinese
        (0x2E80, 0xA4CF), // Chinese, Japanese, Yi
        (0xA980, 0xAADF), // Javanese, Myanmar, Cham, Tai Viet
        (0xF900, 0xFAFF),
        (0xFF01, 0xFF9F),
        (0x11700, 0x1174F), // Ahom
        (0x1B000, 0x1B2FF),
        (0x20000, 0x3FFFD),
    ];
    lies_in(c, RANGES)
}

/// Chinese, Japanese and Korean letters, syllables and punctuation of the full width.
pub(super) fn is_east_asian(c: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x1100, 0x11FF),
        (0x2E80, 0x2FDF),
        (0x3001, 0xA4CF),
        (0xAC00, 0xD7FB),
        (0xF900, 0xFAFF),
        (0x20000, 0x3FFFD),
    ];
    c >= '\u{1100}' && lies_in(c, RANGES)
}

/// Characters that ideographic variation sequences are registered for.
pub(super) fn is_ideograph(c: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x3005, 0x3007),
        (0x3400, 0x4DBF),
        (0x4E00, 0x9FFF),
        (0xF900, 0xFAFF),
        (0x20000, 0x3FFFD),
    ];
    lies_in(c, RANGES)
}

/// Characters with standardised forms that VS1 to VS14 choose.
pub(super) fn has_standard_forms(c: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x1000, 0x1080),   // dotted letters of Myanmar
        (0x2018, 0x201D),   // quotation marks
        (0x2205, 0x22FF),   // operators
        (0x2A00, 0x2AFF),   // operators
        (0x3001, 0x3002),   // punctuation
        (0x3400, 0x4DBF),   // compatibility ideographs
        (0x4E00, 0x9FFF),   // compatibility ideographs
        (0xA856, 0xA868),   // Phags-pa
        (0xAA60, 0xAA7A),   // Myanmar
        (0xFF01, 0xFF1F),   // punctuation
        (0x10AC5, 0x10AE1), // Manichaean
        (0x13000, 0x143FA), // rotated hieroglyphs
        (0x1D49C, 0x1D4CF), // script capitals
        (0x20000, 0x3FFFD), // compatibility ideographs
    ];
    const SCRIPT_CAPITALS: [char; 9] = ['ℬ', 'ℰ', 'ℱ', 'ℋ', 'ℐ', 'ℒ', 'ℳ', 'ℛ', 'ℯ'];
    lies_in(c, RANGES) || SCRIPT_CAPITALS.contains(&c)
}

/// Characters that can be shown as a picture: Extended_Pictographic, with room for new ones.
const PICTOGRAPHS: &[(u32, u32)] = &[
    (0xA9, 0xA9),
    (0xAE, 0xAE),
    (0x203C, 0x203C),
    (0x2049, 0x2049),
    (0x2122, 0x2122),
    (0x2139, 0x2139),
    (0x2194, 0x2199),
    (0x21A9, 0x21AA),
    (0x231A, 0x231B),
    (0x2328, 0x2328),
    (0x2388, 0x2388),
    (0x23CF, 0x23CF),
    (0x23E9, 0x23F3),
    (0x23F8, 0x23FA),
    (0x24C2, 0x24C2),
    (0x25AA, 0x25AB),
    (0x25B6, 0x25B6),
    (0x25C0, 0x25C0),
    (0x25FB, 0x25FE),
    (0x2600, 0x2605),
    (0x2607, 0x2612),
    (0x2614, 0x2685),
    (0x2690, 0x2705),
    (0x2708, 0x2712),
    (0x2714, 0x2714),
    (0x2716, 0x2716),
    (0x271D, 0x271D),
    (0x2721, 0x2721),
    (0x2728, 0x2728),
    (0x2733, 0x2734),
    (0x2744, 0x2744),
    (0x2747, 0x2747),
    (0x274C, 0x274C),
    (0x274E, 0x274E),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2763, 0x2767),
    (0x2795, 0x2797),
    (0x27A1, 0x27A1),
    (0x27B0, 0x27B0),
    (0x27BF, 0x27BF),
    (0x2934, 0x2935),
    (0x2B05, 0x2B07),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50),
    (0x2B55, 0x2B55),
    (0x3030, 0x3030),
    (0x303D, 0x303D),
    (0x3297, 0x3297),
    (0x3299, 0x3299),
    (0x1F000, 0x1F0FF),
    (0x1F10D, 0x1F10F),
    (0x1F12F, 0x1F12F),
    (0x1F16C, 0x1F171),
    (0x1F17E, 0x1F17F),
    (0x1F18E, 0x1F18E),
    (0x1F191, 0x1F19A),
    (0x1F1AD, 0x1F1E5),
    (0x1F201, 0x1F20F),
    (0x1F21A, 0x1F21A),
    (0x1F22F, 0x1F22F),
    (0x1F232, 0x1F23A),
    (0x1F23C, 0x1F23F),
    (0x1F249, 0x1F3FA),
    (0x1F400, 0x1F53D),
    (0x1F546, 0x1F64F),
    (0x1F680, 0x1F6FF),
    (0x1F774, 0x1F77F),
    (0x1F7D5, 0x1F7FF),
    (0x1F80C, 0x1F80F),
    (0x1F848, 0x1F84F),
    (0x1F85A, 0x1F85F),
    (0x1F888, 0x1F88F),
    (0x1F8AE, 0x1F8FF),
    (0x1F90C, 0x1F93A),
    (0x1F93C, 0x1F945),
    (0x1F947, 0x1FAFF),
    (0x1FC00, 0x1FFFD),
];

/// Reports whether a character can be shown as a picture.
pub(super) fn is_pictograph(c: char) -> bool {
    // Letters are asked about far more often than pictures.
    !matches!(c, '\u{AF}'..='\u{2000}' | '\u{3400}'..='\u{FFFF}') && lies_in(c, PICTOGRAPHS)
}

/// The skin tones, and the enclosing keycap: they change the picture before them.
pub(super) fn changes_pictograph(c: char) -> bool {
    matches!(c, '\u{1F3FB}'..='\u{1F3FF}' | '\u{20E3}')
}
