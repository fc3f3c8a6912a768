//! Walks a text once and decides for each stretch whether it stays.
//!
//! The decisions obey laws, so that cleaning twice equals cleaning once and a stream may be cut anywhere: a
//! decision looks back only at what stayed, looks ahead only a limited distance, and a character that needs a
//! neighbour stays only if that neighbour always stays.

use std::ops::RangeInclusive;

use unicode_normalization::char::is_combining_mark;

use super::{
    bidi::{self, LineRemainder},
    flag::{Flag, FlagKind, Flags},
    hyphen::BreakWatch,
    lookalike::WordWatch,
    neighbours::{fills_syllable, joins_letters, selects_form, separates_letters},
    retained_controls::RetainedControls,
    scripts,
    table::{self, CharRange, Class},
    terminal::{self, Sequence, TextColours},
    unassigned::is_unassigned,
};

/// Private-use characters of planes 15 and 16 in a row that are icons, not a hidden text.
const MAX_PRIVATE_RUN: usize = 4;
/// Braille blanks in a row that one pattern behind them justifies.
const MAX_BLANK_RUN: usize = 256;
/// The regions whose flags are written with tags: England, Scotland, Wales.
const TAG_FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];
/// Length of each of them: six characters of four bytes.
const TAG_FLAG_BYTES: usize = 24;
const BLACK_FLAG: char = '\u{1F3F4}';
const BRAILLE_BLANK: char = '\u{2800}';

/// Reports whether a character of the range is before a place, or a plain one after it.
fn is_beside(range: RangeInclusive<u32>, before: Option<char>, next: Option<char>) -> bool {
    let inside = |c: char| range.contains(&u32::from(c));
    before.is_some_and(inside) || next.is_some_and(|next| inside(next) && table::is_plain(next))
}

/// Reports whether a Mongolian variation selector has a letter to select the form of.
fn selects_mongolian(before: Option<char>, next: Option<char>) -> bool {
    // Also behind what joins or parts letters, where another letter follows.
    let is_between = matches!(before, Some('\u{200D}' | '\u{180E}' | '\u{202F}'));
    before.is_some_and(is_mongolian) || (is_between && next.is_some_and(is_mongolian))
}

/// Reports whether a Mongolian vowel separator stands between letters.
fn separates_mongolian(before: Option<char>, next: Option<char>) -> bool {
    // Behind a selector, too: that stays behind a letter only.
    before.is_some_and(|c| is_mongolian(c) || is_mongolian_selector(c))
        && next.is_some_and(is_mongolian)
}

fn shows_ascii(c: char) -> bool {
    matches!(c, ' '..='~' | '\n' | '\t')
}

/// Returns how many bytes at the start are ASCII that only shows itself.
pub(super) fn plain_ascii(bytes: &[u8]) -> usize {
    const CHUNK: usize = 64;
    let is_special = |b: u8| !shows_ascii(char::from(b));
    // Without an early exit inside a chunk, so that it compiles to wide instructions.
    let dirty = |chunk: &[u8]| chunk.iter().fold(false, |dirty, b| dirty | is_special(*b));
    let clean_chunks = bytes.chunks_exact(CHUNK).take_while(|chunk| !dirty(chunk)).count();
    let start = clean_chunks * CHUNK;
    let tail = bytes.get(start..).unwrap_or_default();
    start + tail.iter().position(|b| is_special(*b)).unwrap_or(tail.len())
}

/// A stretch at the start of what was not walked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkStep {
    pub bytes: usize,
    pub stays: bool,
}

/// The facts that the walk remembers of the text behind it.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    keep: RetainedControls,
    /// The number of bytes walked so far.
    at: usize,
    /// The last character that stayed.
    before: Option<char>,
    /// The last character at all was a variation selector.
    after_selector: bool,
    /// True if what stayed last is a picture that can be joined to another.
    in_emoji: bool,
    private_run: usize,
    /// The line had a byte order mark.
    line_has_mark: bool,
    /// The line has letters written from right to left.
    line_turns: bool,
    /// No letters written from right to left stand between here and this offset.
    calm_until: usize,
    /// The end of the stretch whose direction controls are judged, and whether they stay.
    span: (usize, bool),
    pen: TextColours,
    words: WordWatch,
    breaks: BreakWatch,
    flags: Flags,
}

impl Walk {
    pub(super) fn new(keep: RetainedControls) -> Self {
        Self {
            keep,
            at: 0,
            before: None,
            after_selector: false,
            in_emoji: false,
            private_run: 0,
            line_has_mark: false,
            line_turns: false,
            calm_until: 0,
            span: (0, false),
            pen: TextColours::default(),
            words: WordWatch::default(),
            breaks: BreakWatch::default(),
            flags: Flags::default(),
        }
    }

    /// Judges the start of `rest`, which follows what was walked; `end` when nothing follows it.
    /// `None` when `rest` is empty, or too short to judge.
    pub(super) fn step(&mut self, rest: &str, end: bool) -> Option<WalkStep> {
        let c = rest.chars().next()?;
        let step = if shows_ascii(c) {
            let bytes = plain_ascii(rest.as_bytes());
            self.keep_ascii(rest.get(..bytes)?);
            WalkStep { bytes, stays: true }
        } else {
            match table::look_up(c) {
                None if scripts::is_pictograph(c) => self.judge_picture(c, rest, end)?,
                None => {
                    if is_unassigned(c) {
                        let what = "code points without a meaning";
                        self.flags.add_flag(FlagKind::Invalid, what, self.at, false);
                    }
                    self.keep_char(c);
                    WalkStep { bytes: c.len_utf8(), stays: true }
                }
                Some(entry) => self.judge_char(c, entry, rest, end)?,
            }
        };
        self.at += step.bytes;
        Some(step)
    }

    /// Everything found, once the text has ended.
    pub(super) fn finish(mut self) -> Vec<Flag> {
        self.words.end_line(&mut self.flags);
        self.flags.into_vec()
    }

    fn keep_ascii(&mut self, text: &str) {
        self.words.see_ascii(text, self.at, &mut self.flags);
        self.breaks.see_ascii(text);
        if (self.line_turns || self.line_has_mark) && text.contains('\n') {
            self.line_turns = false;
            self.line_has_mark = false;
        }
        self.before = text.chars().next_back();
        self.after_selector = false;
        self.in_emoji = false;
        self.private_run = 0;
    }

    fn keep_char(&mut self, c: char) {
        self.words.observe_char(c, self.before, self.at, &mut self.flags);
        self.breaks.observe_char(c);
        self.in_emoji = scripts::is_pictograph(c)
            || (self.in_emoji && (scripts::changes_pictograph(c) || is_selector(c)));
        self.line_turns |= scripts::is_right_to_left(c);
        self.before = Some(c);
        self.after_selector = is_selector(c);
        self.private_run = 0;
    }

    fn judge_char(
        &mut self,
        c: char,
        entry: &CharRange,
        rest: &str,
        end: bool,
    ) -> Option<WalkStep> {
        if entry.class == Class::Escape {
            return self.judge_sequence(entry, rest, end);
        }
        let behind = rest.get(c.len_utf8()..)?;
        if behind.is_empty() && !end {
            return None;
        }
        let (stays, bytes) = if entry.class == Class::Tag {
            let stays = self.before == Some(BLACK_FLAG) && continues_flag(rest, end)?;
            (stays, if stays { TAG_FLAG_BYTES } else { c.len_utf8() })
        } else {
            // A letter that is struck again is bold on paper, and one letter.
            let again =
                behind.chars().next().filter(|next| c == '\u{8}' && self.before == Some(*next));
            let bytes = c.len_utf8() + again.map_or(0, char::len_utf8);
            (self.char_stays(c, entry.class, behind, end)?, bytes)
        };
        if !stays {
            if entry.class != Class::ByteOrderMark || !self.begins_a_file() {
                self.flags.add_flag(entry.kind, entry.what, self.at, true);
            }
            self.after_selector = is_selector(c);
            return Some(WalkStep { bytes, stays });
        }
        match entry.class {
            Class::CarriageReturn | Class::EndMark | Class::PrintedSpace => {}
            Class::Icon | Class::Private => {
                self.flags.add_flag(FlagKind::Private, entry.what, self.at, false);
            }
            _ => self.flags.add_flag(FlagKind::Belonging, entry.what, self.at, false),
        }
        let private_run = self.private_run + 1;
        self.keep_char(c);
        if entry.class == Class::Private {
            self.private_run = private_run;
        }
        Some(WalkStep { bytes, stays })
    }

    /// Reports whether a character of the table stays where it is; `None` when too little follows to tell.
    fn char_stays(&mut self, c: char, class: Class, behind: &str, end: bool) -> Option<bool> {
        let before = self.before;
        let next = behind.chars().next();
        Some(match class {
            Class::Never | Class::Escape | Class::Tag => false,
            Class::CarriageReturn if behind == "\r" && !end => return None,
            Class::CarriageReturn => behind.starts_with('\n') || behind.starts_with("\r\n"),
            Class::EndMark => {
                self.keep == RetainedControls::Text && next.is_none_or(|next| next == '\n')
            }
            Class::ByteOrderMark => self.at == 0,
            Class::Icon => true,
            Class::Private => self.private_run < MAX_PRIVATE_RUN,
            Class::Beside(first, last) => is_beside(first..=last, before, next),
            Class::GraphemeJoiner => next.is_some_and(shows_as_mark),
            Class::BidiMark => self.bidi_mark_stays(c, behind, end)?,
            Class::BidiOpen => self.span_stays(c, behind, end)?,
            Class::BidiStray => self.at < self.span.0 && self.span.1,
            Class::HangulFiller => fills_syllable(c, before, next),
            Class::MongolianSelector => selects_mongolian(before, next),
            Class::MongolianSeparator => separates_mongolian(before, next),
            Class::SoftHyphen => self.breaks.may_break(before, behind, end)?,
            Class::Selector | Class::IdeographSelector => {
                !self.after_selector
                    && !next.is_some_and(is_selector)
                    && before.is_some_and(|base| selects_form(c, base, next))
            }
            Class::PrintedSpace => {
                !before.is_some_and(is_ascii_letter) || !looks_like_blank(behind, end)?
            }
            Class::BreakHint => {
                shows_itself(behind, end)?
                    && (before.is_some_and(scripts::breaks_at_hints)
                        || next.is_some_and(scripts::breaks_at_hints))
            }
            Class::NonJoiner => shows_itself(behind, end)? && separates_letters(before, next),
            Class::Joiner => self.joiner_stays(behind, end)?,
            Class::WordJoiner => self.word_joiner_stays(behind, end)?,
            Class::InvisibleOperator => self.operator_stays(behind, end)?,
            Class::BrailleBlank => before.is_some_and(is_braille) || meets_braille(behind, end)?,
        })
    }

    /// Reports whether a byte order mark stands where a file begins that is shown in a text: at the start of a
    /// line, or behind what listings and differences put before it. A mark there deceives no reader, but one in a
    /// line is enough.
    fn begins_a_file(&mut self) -> bool {
        let is_first = !std::mem::replace(&mut self.line_has_mark, true);
        let before = matches!(
            self.before,
            None | Some('\n' | '\t' | ' ' | '+' | '-' | ':' | '|' | '<' | '>')
        );
        is_first && before
    }

    fn bidi_mark_stays(&mut self, c: char, behind: &str, end: bool) -> Option<bool> {
        Some(
            !self.before.is_some_and(is_mark)
                && (self.line_turns || self.line_will_turn(self.at + c.len_utf8(), behind, end)?),
        )
    }

    fn joiner_stays(&self, behind: &str, end: bool) -> Option<bool> {
        let (before, next) = (self.before, behind.chars().next());
        let joins_pictures = self.in_emoji && next.is_some_and(scripts::is_pictograph);
        Some(
            (joins_pictures && starts_with_plain(behind, end)?)
                || (shows_itself(behind, end)? && joins_letters(before, next)),
        )
    }

    fn word_joiner_stays(&self, behind: &str, end: bool) -> Option<bool> {
        let beside = [self.before, behind.chars().next()];
        let is_foreign = |beside: &Option<char>| beside.is_some_and(|c| !c.is_ascii());
        Some(beside.iter().all(is_foreign) && starts_with_plain(behind, end)?)
    }

    fn operator_stays(&self, behind: &str, end: bool) -> Option<bool> {
        let beside = [self.before, behind.chars().next()];
        Some(
            beside.iter().any(|beside| beside.is_some_and(is_mathematical))
                && self.before.is_some_and(table::is_plain)
                && starts_with_plain(behind, end)?,
        )
    }

    /// A picture that selectors or tags are hung on which make no emoji goes with them.
    fn judge_picture(&mut self, c: char, rest: &str, end: bool) -> Option<WalkStep> {
        let bytes = c.len_utf8();
        let carries = carries_text(c, rest.get(bytes..)?, end)?;
        if carries {
            self.flags.add_flag(
                FlagKind::Variation,
                "pictures that carry hidden text",
                self.at,
                true,
            );
        } else {
            self.keep_char(c);
        }
        Some(WalkStep { bytes, stays: !carries })
    }

    fn span_stays(&mut self, c: char, behind: &str, end: bool) -> Option<bool> {
        if self.at >= self.span.0 {
            let verdict = bidi::judge_span(c, behind, self.line_turns, end)?;
            self.span = (self.at + verdict.bytes, verdict.stays);
        }
        Some(self.span.1)
    }

    /// Reports whether letters written from right to left stand soon behind; `at` is where `behind` starts.
    fn line_will_turn(&mut self, at: usize, behind: &str, end: bool) -> Option<bool> {
        let known = self.calm_until.saturating_sub(at);
        match bidi::scan_ahead(behind, known, end)? {
            LineRemainder::Turns => Some(true),
            LineRemainder::Calm { bytes } => {
                self.calm_until = at + bytes;
                Some(false)
            }
        }
    }

    fn judge_sequence(&mut self, entry: &CharRange, rest: &str, end: bool) -> Option<WalkStep> {
        self.after_selector = false;
        match terminal::read_sequence(rest, end) {
            Sequence::Unfinished => None,
            Sequence::Other { bytes } => {
                self.flags.add_flag(entry.kind, entry.what, self.at, true);
                Some(WalkStep { bytes, stays: false })
            }
            Sequence::Attributes { bytes, parameters } => {
                let pen = self.pen.with_attributes(rest.get(parameters..bytes - 1)?);
                if pen.hides_text() {
                    self.flags.add_flag(
                        FlagKind::HiddenColour,
                        "colours that hide text",
                        self.at,
                        true,
                    );
                    return Some(WalkStep { bytes, stays: false });
                }
                self.pen = pen;
                let stays = self.keep == RetainedControls::Colour && rest.starts_with('\u{1B}');
                self.flags.add_flag(FlagKind::Colour, "colours", self.at, !stays);
                Some(WalkStep { bytes, stays })
            }
        }
    }
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0020}'..='\u{E007F}')
}

/// Reports whether `rest` starts with the tags of a flag; `None` when it may yet.
fn continues_flag(rest: &str, end: bool) -> Option<bool> {
    if TAG_FLAGS.iter().any(|flag| rest.starts_with(flag)) {
        return Some(true);
    }
    let may_become_one = !end && TAG_FLAGS.iter().any(|flag| flag.starts_with(rest));
    (!may_become_one).then_some(false)
}

/// Reports whether the selectors or tags behind a picture make no emoji, but can spell something.
fn carries_text(picture: char, behind: &str, end: bool) -> Option<bool> {
    let mut following = behind.chars();
    match following.next() {
        None => end.then_some(false),
        Some(next) if is_selector(next) => match following.next() {
            None => end.then_some(false),
            Some(second) => Some(is_selector(second)),
        },
        Some(next) if is_tag(next) => Some(picture != BLACK_FLAG || !continues_flag(behind, end)?),
        Some(_) => Some(false),
    }
}

/// Reports whether `text` starts with a character that always stays.
fn starts_with_plain(text: &str, end: bool) -> Option<bool> {
    let Some(c) = text.chars().next() else { return Some(false) };
    if scripts::is_pictograph(c) {
        return carries_text(c, text.get(c.len_utf8()..)?, end).map(|carries| !carries);
    }
    Some(table::is_plain(c))
}

/// Reports whether a character is a mark on the one before, and always stays.
fn shows_as_mark(c: char) -> bool {
    is_combining_mark(c) && table::is_plain(c)
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{61C}')
}

fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1807}' | '\u{180A}' | '\u{1810}'..='\u{1819}' | '\u{1820}'..='\u{18AA}')
}

fn is_mongolian_selector(c: char) -> bool {
    matches!(c, '\u{180B}'..='\u{180D}' | '\u{180F}')
}

fn is_braille(c: char) -> bool {
    matches!(c, '\u{2800}'..='\u{28FF}')
}

fn is_ascii_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}

fn is_mathematical(c: char) -> bool {
    matches!(c, '\u{2200}'..='\u{22FF}' | '\u{1D400}'..='\u{1D7FF}')
}

/// Reports whether what follows an invisible character shows itself, or ends the line or text.
fn shows_itself(behind: &str, end: bool) -> Option<bool> {
    match behind {
        "\r" if !end => None,
        _ if behind.starts_with("\r\n") => Some(true),
        _ => Some(behind.is_empty() || starts_with_plain(behind, end)?),
    }
}

/// Reports whether a printed space after a Latin letter looks like the space of a command and is none: before a
/// word, an option, a path or a variable; or has nothing behind it to be apart from.
fn looks_like_blank(behind: &str, end: bool) -> Option<bool> {
    let mut chars = behind.chars();
    let Some(next) = chars.next() else { return Some(true) };
    match (next, chars.next()) {
        ('\n', _) => Some(true),
        ('-' | '/' | '~' | '$' | '.', None) => end.then_some(false),
        ('-' | '/' | '~' | '$' | '.', Some(c)) if c.is_ascii_graphic() => Some(true),
        ('-' | '/' | '~' | '$' | '.', Some(_)) => {
            Some(!starts_with_plain(behind.get(next.len_utf8()..)?, end)?)
        }
        _ => Some(is_ascii_letter(next) || !starts_with_plain(behind, end)?),
    }
}

/// Reports whether a run of Braille blanks leads to a Braille pattern.
fn meets_braille(behind: &str, end: bool) -> Option<bool> {
    for (count, c) in behind.chars().enumerate() {
        if c != BRAILLE_BLANK || count == MAX_BLANK_RUN {
            return Some(c != BRAILLE_BLANK && is_braille(c));
        }
    }
    end.then_some(false)
}
