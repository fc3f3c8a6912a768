//! The key that a sequence means.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A byte below the printable ones, and DEL.
pub(super) fn by_control(byte: u8) -> Option<KeyEvent> {
    let (code, modifiers) = match byte {
        b'\r' => (KeyCode::Enter, KeyModifiers::NONE),
        b'\t' => (KeyCode::Tab, KeyModifiers::NONE),
        0x7f => (KeyCode::Backspace, KeyModifiers::NONE),
        0x1b => (KeyCode::Esc, KeyModifiers::NONE),
        0 => (KeyCode::Char(' '), KeyModifiers::CONTROL),
        1..=0x1a => (KeyCode::Char(char::from(byte | 0x60)), KeyModifiers::CONTROL),
        0x1c..=0x1f => (KeyCode::Char(char::from(byte | 0x40)), KeyModifiers::CONTROL),
        _ => return None,
    };
    Some(KeyEvent::new(code, modifiers))
}

/// The letter at the end of `ESC O` and of `ESC [ … `.
pub(super) fn by_letter(letter: u8, modifiers: KeyModifiers) -> Option<KeyEvent> {
    let code = match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        b'Z' => return Some(KeyEvent::new(KeyCode::BackTab, modifiers | KeyModifiers::SHIFT)),
        _ => return None,
    };
    Some(KeyEvent::new(code, modifiers))
}

/// The letter after `ESC [ [`.
pub(super) fn by_console(letter: u8) -> Option<KeyEvent> {
    let number = letter.checked_sub(b'A').filter(|number| *number < 5)?;
    Some(KeyEvent::new(KeyCode::F(number + 1), KeyModifiers::NONE))
}

/// `ESC [ parameters last`.
pub(super) fn by_sequence(parameters: &str, last: u8) -> Option<KeyEvent> {
    let modifiers = held(number(parameters, 1, 0).unwrap_or(1));
    // Letting go of a key is the third kind of event.
    if number(parameters, 1, 1) == Some(3) {
        return None;
    }
    match last {
        b'u' => by_code(shortcut(parameters, modifiers)?, modifiers),
        b'~' => match number(parameters, 0, 0)? {
            27 => by_code(number(parameters, 2, 0)?, modifiers),
            place => by_place(place).map(|code| KeyEvent::new(code, modifiers)),
        },
        // Mouse reports, which are never asked for, end with it too.
        b'M' => None,
        letter => by_letter(letter, modifiers),
    }
}

/// The number of a key's character. With Control or Alt it is the Latin one on the same key, so that
/// shortcuts work on every keyboard.
fn shortcut(parameters: &str, modifiers: KeyModifiers) -> Option<u32> {
    let typed = number(parameters, 0, 0)?;
    let is_shortcut = modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let latin = number(parameters, 0, 2).filter(|_| is_shortcut && typed > 0x7f);
    Some(latin.unwrap_or(typed))
}

/// Number `part` of parameter `place`; parameters are parted by `;`, their parts by `:`.
fn number(parameters: &str, place: usize, part: usize) -> Option<u32> {
    parameters.split(';').nth(place)?.split(':').nth(part)?.parse().ok()
}

/// The keys that are held: one more than a sum of bits.
fn held(number: u32) -> KeyModifiers {
    const BITS: [(u32, KeyModifiers); 6] = [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ];
    let bits = number.saturating_sub(1);
    BITS.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, held)| held).collect()
}

/// Numbers before `~`.
fn by_place(place: u32) -> Option<KeyCode> {
    Some(match place {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => function(place - 10)?,
        17..=21 => function(place - 11)?,
        23 | 24 => function(place - 12)?,
        _ => return None,
    })
}

fn function(number: u32) -> Option<KeyCode> {
    u8::try_from(number).ok().map(KeyCode::F)
}

/// A character's number, or one of those that the kitty protocol gives to keys without a character.
fn by_code(code: u32, modifiers: KeyModifiers) -> Option<KeyEvent> {
    let code = match code {
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 | 57_414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        57_376..=57_398 => function(code - 57_376 + 13)?,
        57_399..=57_408 => KeyCode::Char(char::from_digit(code - 57_399, 10)?),
        57_409 => KeyCode::Char('.'),
        57_410 => KeyCode::Char('/'),
        57_411 => KeyCode::Char('*'),
        57_412 => KeyCode::Char('-'),
        57_413 => KeyCode::Char('+'),
        57_415 => KeyCode::Char('='),
        57_416 => KeyCode::Char(','),
        57_417 => KeyCode::Left,
        57_418 => KeyCode::Right,
        57_419 => KeyCode::Up,
        57_420 => KeyCode::Down,
        57_421 => KeyCode::PageUp,
        57_422 => KeyCode::PageDown,
        57_423 => KeyCode::Home,
        57_424 => KeyCode::End,
        57_425 => KeyCode::Insert,
        57_426 => KeyCode::Delete,
        57_344..=63_743 => return None,
        _ => KeyCode::Char(char::from_u32(code).filter(|c| !c.is_control())?),
    };
    Some(KeyEvent::new(code, modifiers))
}
