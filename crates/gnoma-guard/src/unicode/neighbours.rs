//! Characters that show nothing themselves: whether their neighbours give fillers, selectors and joiners a meaning.

use unicode_normalization::char::is_combining_mark;

use super::scripts::{self, JoinerUse};

/// Highest ideographic selector that stays: registered sequences use the first few dozen, while
/// hidden bytes that are letters need those from U+E0130 on.
const LAST_IDEOGRAPH_SELECTOR: char = '\u{E011F}';

/// Reports whether a filler of a Korean syllable has the part of a syllable beside it that it completes.
pub(super) fn fills_syllable(filler: char, before: Option<char>, next: Option<char>) -> bool {
    let is_leading = |c| matches!(c, '\u{1100}'..='\u{115E}' | '\u{A960}'..='\u{A97C}');
    let is_vowel = |c| matches!(c, '\u{1161}'..='\u{11A7}' | '\u{D7B0}'..='\u{D7C6}');
    if filler == '\u{115F}' { next.is_some_and(is_vowel) } else { before.is_some_and(is_leading) }
}

/// Reports whether a variation selector chooses a form that `base` has.
pub(super) fn selects_form(selector: char, base: char, next: Option<char>) -> bool {
    match selector {
        '\u{FE0E}' | '\u{FE0F}' => {
            let is_keycap = matches!(base, '0'..='9' | '#' | '*') && next == Some('\u{20E3}');
            is_keycap || scripts::is_pictograph(base)
        }
        '\u{FE00}'..='\u{FE0D}' => scripts::has_standard_forms(base),
        _ => selector <= LAST_IDEOGRAPH_SELECTOR && scripts::is_ideograph(base),
    }
}

/// Reports whether a non-joiner parts letters that would join.
pub(super) fn separates_letters(before: Option<char>, next: Option<char>) -> bool {
    let Some((before, (joins, script))) =
        before.and_then(|c| Some((c, scripts::joining_script(c)?)))
    else {
        return false;
    };
    let same_script = |c| scripts::joining_script(c).is_some_and(|(_, other)| other == script);
    match joins {
        JoinerUse::Cursive => true,
        JoinerUse::LooseVowels => scripts::is_virama(before) || next.is_some_and(same_script),
        JoinerUse::Virama => {
            scripts::is_virama(before)
                || next.is_some_and(|c| same_script(c) && !is_combining_mark(c))
        }
    }
}

/// Reports whether a joiner joins letters, or shows the joined form of one.
pub(super) fn joins_letters(before: Option<char>, next: Option<char>) -> bool {
    let is_cursive =
        |c| scripts::joining_script(c).is_some_and(|(joins, _)| joins == JoinerUse::Cursive);
    let script = |c: Option<char>| Some(scripts::joining_script(c?)?.1);
    before.is_some_and(|c| is_cursive(c) || scripts::is_virama(c))
        || next.is_some_and(is_cursive)
        || script(before).is_some_and(|before| script(next) == Some(before))
}
