//! Where words, lines and the text begin and end. Chips are words of their own.

use unicode_segmentation::UnicodeSegmentation;

use super::{
    buffer::{Buffer, BufferPosition},
    chips::Chips,
};

/// The class of the characters that make up a word, to find where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Space,
    Word,
    Sign,
    Chip,
}

fn grapheme_class(grapheme: &str) -> Class {
    match grapheme.chars().next() {
        None => Class::Space,
        Some(c) if c.is_whitespace() => Class::Space,
        Some(c) if c.is_alphanumeric() || c == '_' => Class::Word,
        Some(c) if Chips::is_reserved(c) => Class::Chip,
        Some(_) => Class::Sign,
    }
}

fn is_word(class: Class) -> bool {
    matches!(class, Class::Word | Class::Chip)
}

/// The start of the word before a place: what readline's Alt+B finds.
pub(super) fn word_left(buffer: &Buffer, from: BufferPosition) -> BufferPosition {
    let at = skip_left(buffer, from, |class| !is_word(class), true);
    match buffer.grapheme_before(at).map(grapheme_class) {
        Some(Class::Chip) => buffer.step_left(at).unwrap_or(at),
        _ => skip_left(buffer, at, |class| class == Class::Word, false),
    }
}

/// The end of the word after a place: what readline's Alt+F finds.
pub(super) fn word_right(buffer: &Buffer, from: BufferPosition) -> BufferPosition {
    let at = skip_right(buffer, from, |class| !is_word(class), true);
    match buffer.grapheme_after(at).map(grapheme_class) {
        Some(Class::Chip) => buffer.step_right(at).unwrap_or(at),
        _ => skip_right(buffer, at, |class| class == Class::Word, false),
    }
}

/// The start of what precedes a place up to a space: what readline's Ctrl+W deletes.
pub(super) fn space_left(buffer: &Buffer, from: BufferPosition) -> BufferPosition {
    let at = skip_left(buffer, from, |class| class == Class::Space, true);
    skip_left(buffer, at, |class| class != Class::Space, false)
}

/// The start of the next word as vim has it: signs are words too.
pub(super) fn next_start(buffer: &Buffer, from: BufferPosition) -> BufferPosition {
    let here = buffer.grapheme_after(from).map_or(Class::Space, grapheme_class);
    let at = match here {
        Class::Space => from,
        Class::Chip => buffer.step_right(from).unwrap_or(from),
        Class::Word | Class::Sign => skip_right(buffer, from, |class| class == here, false),
    };
    skip_right(buffer, at, |class| class == Class::Space, true)
}

/// The start of the word before a place as vim has it.
pub(super) fn start_before(buffer: &Buffer, from: BufferPosition) -> BufferPosition {
    let at = skip_left(buffer, from, |class| class == Class::Space, true);
    match buffer.grapheme_before(at).map(grapheme_class) {
        None => at,
        Some(Class::Chip) => buffer.step_left(at).unwrap_or(at),
        Some(here) => skip_left(buffer, at, |class| class == here, false),
    }
}

/// Behind the last character of the word that the next place is in, as vim has it.
pub(super) fn end_after(buffer: &Buffer, from: BufferPosition) -> BufferPosition {
    let next = buffer.step_right(from).unwrap_or(from);
    let at = skip_right(buffer, next, |class| class == Class::Space, true);
    match buffer.grapheme_after(at).map(grapheme_class) {
        None => at,
        Some(Class::Chip) => buffer.step_right(at).unwrap_or(at),
        Some(here) => skip_right(buffer, at, |class| class == here, false),
    }
}

/// The first place of the line that is not behind spaces.
pub(super) fn text_of_line(buffer: &Buffer, line: usize) -> BufferPosition {
    let text = buffer.line(line);
    BufferPosition { line, byte: text.len() - text.trim_start().len() }
}

fn skip_left(
    buffer: &Buffer,
    mut at: BufferPosition,
    skips: impl Fn(Class) -> bool,
    lines: bool,
) -> BufferPosition {
    loop {
        let before = buffer.line(at.line).get(..at.byte).unwrap_or_default();
        for grapheme in before.graphemes(true).rev() {
            if !skips(grapheme_class(grapheme)) {
                return at;
            }
            at.byte -= grapheme.len();
        }
        match buffer.step_left(at) {
            Some(end_of_line) if lines => at = end_of_line,
            _ => return at,
        }
    }
}

fn skip_right(
    buffer: &Buffer,
    mut at: BufferPosition,
    skips: impl Fn(Class) -> bool,
    lines: bool,
) -> BufferPosition {
    loop {
        let behind = buffer.line(at.line).get(at.byte..).unwrap_or_default();
        for grapheme in behind.graphemes(true) {
            if !skips(grapheme_class(grapheme)) {
                return at;
            }
            at.byte += grapheme.len();
        }
        match buffer.step_right(at) {
            Some(next_line) if lines => at = next_line,
            _ => return at,
        }
    }
}
