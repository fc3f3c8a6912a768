//! The key that a sequence means.

use crate::keymap::{Code, Key};

/// No key is held with another one.
pub(super) const NO_MODIFIERS: u32 = 0;
// Keys that are held, as bits of a number that terminals send plus one.
const SHIFT: u32 = 1;
const ALT: u32 = 2;
const CONTROL: u32 = 4;
const SUPER: u32 = 8;
const META: u32 = 32;

fn with_modifiers(code: Code, modifiers: u32) -> Key {
    let is_held = |bits| modifiers & bits != 0;
    let (control, alt) = (is_held(CONTROL), is_held(ALT | META));
    Key { code, control, alt, shift: is_held(SHIFT), super_key: is_held(SUPER) }.to_normal_form()
}

/// A byte below the printable ones, and DEL.
pub(super) fn by_control(byte: u8) -> Option<Key> {
    Some(match byte {
        b'\r' => Key::plain(Code::Enter),
        b'\t' => Key::plain(Code::Tab),
        0x7f => Key::plain(Code::Backspace),
        0x1b => Key::plain(Code::Escape),
        0 => Key::with_control(' '),
        1..=0x1a => Key::with_control(char::from(byte | 0x60)),
        0x1c..=0x1f => Key::with_control(char::from(byte | 0x40)),
        _ => return None,
    })
}

/// The letter at the end of `ESC O` and of `ESC [ … `.
pub(super) fn by_letter(letter: u8, modifiers: u32) -> Option<Key> {
    let code = match letter {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'F' => Code::End,
        b'H' => Code::Home,
        b'M' => Code::Enter,
        b'P'..=b'S' => Code::Function(letter - b'P' + 1),
        b'Z' => return Some(with_modifiers(Code::Tab, modifiers | SHIFT)),
        _ => return None,
    };
    Some(with_modifiers(code, modifiers))
}

/// The letter after `ESC [ [`.
pub(super) fn by_console(letter: u8) -> Option<Key> {
    let number = letter.checked_sub(b'A').filter(|number| *number < 5)?;
    Some(Key::plain(Code::Function(number + 1)))
}

/// `ESC [ parameters last`.
pub(super) fn by_sequence(parameters: &str, last: u8) -> Option<Key> {
    let modifiers = parse_parameter(parameters, 1, 0).unwrap_or(1).saturating_sub(1);
    // Letting go of a key is the third kind of event.
    if parse_parameter(parameters, 1, 1) == Some(3) {
        return None;
    }
    match last {
        b'u' => by_code(shortcut_code(parameters, modifiers)?, modifiers),
        b'~' => match parse_parameter(parameters, 0, 0)? {
            27 => by_code(parse_parameter(parameters, 2, 0)?, modifiers),
            place => by_place(place).map(|code| with_modifiers(code, modifiers)),
        },
        // Mouse reports, which are never asked for, end with it too.
        b'M' => None,
        letter => by_letter(letter, modifiers),
    }
}

/// The number of a key's character. With Control or Alt it is the Latin one on the same key, so that
/// shortcuts work on every keyboard.
fn shortcut_code(parameters: &str, modifiers: u32) -> Option<u32> {
    let typed = parse_parameter(parameters, 0, 0)?;
    let is_shortcut = modifiers & (CONTROL | ALT) != 0;
    let latin = parse_parameter(parameters, 0, 2).filter(|_| is_shortcut && typed > 0x7f);
    Some(latin.unwrap_or(typed))
}

/// Number `part` of parameter `place`; parameters are parted by `;`, their parts by `:`.
fn parse_parameter(parameters: &str, place: usize, part: usize) -> Option<u32> {
    parameters.split(';').nth(place)?.split(':').nth(part)?.parse().ok()
}

/// Returns the key for a number before `~`.
fn by_place(place: u32) -> Option<Code> {
    Some(match place {
        1 | 7 => Code::Home,
        2 => Code::Insert,
        3 => Code::Delete,
        4 | 8 => Code::End,
        5 => Code::PageUp,
        6 => Code::PageDown,
        11..=15 => Code::function_key(place - 10)?,
        17..=21 => Code::function_key(place - 11)?,
        23 | 24 => Code::function_key(place - 12)?,
        _ => return None,
    })
}

/// A character's number, or one of those that the kitty protocol gives to keys without a character.
fn by_code(code: u32, modifiers: u32) -> Option<Key> {
    let code = match code {
        9 => Code::Tab,
        13 | 57_414 => Code::Enter,
        27 => Code::Escape,
        127 => Code::Backspace,
        57_376..=57_398 => Code::function_key(code - 57_376 + 13)?,
        57_399..=57_408 => Code::Char(char::from_digit(code - 57_399, 10)?),
        57_409 => Code::Char('.'),
        57_410 => Code::Char('/'),
        57_411 => Code::Char('*'),
        57_412 => Code::Char('-'),
        57_413 => Code::Char('+'),
        57_415 => Code::Char('='),
        57_416 => Code::Char(','),
        57_417 => Code::Left,
        57_418 => Code::Right,
        57_419 => Code::Up,
        57_420 => Code::Down,
        57_421 => Code::PageUp,
        57_422 => Code::PageDown,
        57_423 => Code::Home,
        57_424 => Code::End,
        57_425 => Code::Insert,
        57_426 => Code::Delete,
        57_344..=63_743 => return None,
        _ => Code::Char(char::from_u32(code).filter(|c| !c.is_control())?),
    };
    Some(with_modifiers(code, modifiers))
}
