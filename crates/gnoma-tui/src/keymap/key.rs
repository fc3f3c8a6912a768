//! One stroke on the keyboard, the same for every way in which terminals report it, and its name in settings
//! (`ctrl+r`, `shift+enter`, `alt+left`, `f1`). What a key does is not known here.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The highest function key that is known.
const MAX_FUNCTION: u8 = 24;

/// A key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// A key that types something; upper case when Shift makes it so.
    Char(char),
    /// Enter, of the keypad too.
    Enter,
    /// Tab.
    Tab,
    /// The key that deletes to the left.
    Backspace,
    /// The key that deletes to the right.
    Delete,
    /// Insert.
    Insert,
    /// Escape.
    Escape,
    /// The arrow to the left.
    Left,
    /// The arrow to the right.
    Right,
    /// The arrow that points up.
    Up,
    /// The arrow that points down.
    Down,
    /// Home.
    Home,
    /// End.
    End,
    /// The Page Up key.
    PageUp,
    /// The Page Down key.
    PageDown,
    /// A function key, from F1 to F24.
    Function(u8),
}

impl Code {
    /// The function key of this number; `None` beyond F24.
    #[must_use]
    pub fn function_key(number: u32) -> Option<Self> {
        u8::try_from(number).ok().filter(|key| (1..=MAX_FUNCTION).contains(key)).map(Self::Function)
    }
}

/// The keys that have names, with the name that is printed first.
const NAMES: [(&str, Code); 21] = [
    ("enter", Code::Enter),
    ("return", Code::Enter),
    ("tab", Code::Tab),
    ("backspace", Code::Backspace),
    ("delete", Code::Delete),
    ("del", Code::Delete),
    ("insert", Code::Insert),
    ("esc", Code::Escape),
    ("escape", Code::Escape),
    ("left", Code::Left),
    ("right", Code::Right),
    ("up", Code::Up),
    ("down", Code::Down),
    ("home", Code::Home),
    ("end", Code::End),
    ("pageup", Code::PageUp),
    ("pgup", Code::PageUp),
    ("pagedown", Code::PageDown),
    ("pgdn", Code::PageDown),
    ("space", Code::Char(' ')),
    ("plus", Code::Char('+')),
];

/// A key with its modifiers, always in normal form: a letter typed with Shift alone is the upper-case letter
/// without `shift`; a letter typed with Control, Alt or Super is lower case, with Shift beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The key without its modifiers.
    pub code: Code,
    /// `true` if Control is held.
    pub control: bool,
    /// With Alt (Option, Meta), or Escape was sent first.
    pub alt: bool,
    /// With Shift, unless the letter already shows it.
    pub shift: bool,
    /// With Super (Command, Windows).
    pub super_key: bool,
}

/// The reason why a text is not the name of a key.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// There is nothing in it.
    #[error("the name of a key is missing")]
    Empty,
    /// The part before a `+` is not a modifier.
    #[error("`{0}` is not a modifier key; use ctrl, alt, shift or super")]
    Modifier(String),
    /// The last part is not a key.
    #[error(
        "`{0}` is not a key; allowed are single characters, f1 to f24, enter, tab, esc, space, plus, backspace, \
         delete, insert, left, right, up, down, home, end, pageup and pagedown"
    )]
    Code(String),
}

gnoma_core::debug_as_display!(KeyError);

impl Key {
    /// Returns the key alone, without modifiers.
    #[must_use]
    pub fn plain(code: Code) -> Self {
        Self { code, control: false, alt: false, shift: false, super_key: false }.to_normal_form()
    }

    /// A character's key with Control.
    #[must_use]
    pub fn with_control(c: char) -> Self {
        Self { control: true, ..Self::plain(Code::Char(c)) }.to_normal_form()
    }

    /// The character that it types; `None` when it is not a key for text.
    #[must_use]
    pub fn typed_char(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.control && !self.alt && !self.super_key => Some(c),
            _ => None,
        }
    }

    /// The normal form of a key whose fields were set one by one.
    #[must_use]
    pub fn to_normal_form(mut self) -> Self {
        let Code::Char(c) = self.code else { return self };
        if self.control || self.alt || self.super_key {
            self.shift |= c.is_uppercase();
            self.code = Code::Char(if self.control {
                same_control(to_lowercase_char(c))
            } else {
                to_lowercase_char(c)
            });
        } else if self.shift {
            self.code = Code::Char(to_uppercase_char(c));
            self.shift = false;
        }
        self
    }
}

/// The sign whose key sends the same byte with Control as the digit `c` does in old terminals.
fn same_control(c: char) -> char {
    match c {
        '4' => '\\',
        '5' => ']',
        '6' => '^',
        '7' => '_',
        other => other,
    }
}

/// The lower case form if it is one character, else the character.
fn to_lowercase_char(c: char) -> char {
    let mut forms = c.to_lowercase();
    match (forms.next(), forms.next()) {
        (Some(form), None) => form,
        _ => c,
    }
}

/// Reports whether the character is what Shift makes of another one, and of that one only.
fn is_shifted(c: char) -> bool {
    to_lowercase_char(c) != c && to_uppercase_char(to_lowercase_char(c)) == c
}

/// The upper case form if it is one character, else the character.
fn to_uppercase_char(c: char) -> char {
    let mut forms = c.to_uppercase();
    match (forms.next(), forms.next()) {
        (Some(form), None) => form,
        _ => c,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed_with_shift = matches!(self.code, Code::Char(c) if is_shifted(c));
        for (held, name) in [
            (self.control, "ctrl+"),
            (self.alt, "alt+"),
            (self.shift || typed_with_shift, "shift+"),
            (self.super_key, "super+"),
        ] {
            if held {
                f.write_str(name)?;
            }
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            Code::Char(c) if typed_with_shift => write!(f, "{}", to_lowercase_char(c)),
            Code::Char(c) => write!(f, "{c}"),
            Code::Function(number) => write!(f, "f{number}"),
            // Every other key has its name in the table.
            other => write!(f, "{other:?}"),
        }
    }
}

impl FromStr for Key {
    type Err = KeyError;

    /// Reads `ctrl+shift+left`; case matters only for a letter that stands alone.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let (held, last) = match text.rsplit_once('+') {
            None if text.is_empty() => return Err(KeyError::Empty),
            None => ("", text),
            // `+` is a key itself: alone, and at the end of `ctrl++`.
            Some((before, "")) => (before.strip_suffix('+').unwrap_or(before), "+"),
            Some((held, last)) => (held, last),
        };
        let mut key = Self::plain(code_of(last.trim())?);
        for modifier in held.split('+').map(str::trim).filter(|part| !part.is_empty()) {
            match modifier.to_ascii_lowercase().as_str() {
                "ctrl" | "control" => key.control = true,
                "alt" | "option" | "meta" => key.alt = true,
                "shift" => key.shift = true,
                "super" | "cmd" | "command" => key.super_key = true,
                _ => return Err(KeyError::Modifier(modifier.to_owned())),
            }
        }
        // `Ctrl+R` is how people write it; Shift is meant only where it is named.
        if let Code::Char(c) = key.code
            && !held.is_empty()
        {
            key.code = Code::Char(to_lowercase_char(c));
        }
        Ok(key.to_normal_form())
    }
}

fn code_of(name: &str) -> Result<Code, KeyError> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Ok(Code::Char(c));
    }
    let lowered = name.to_ascii_lowercase();
    if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == lowered) {
        return Ok(*code);
    }
    lowered
        .strip_prefix('f')
        .and_then(|number| number.parse().ok())
        .and_then(Code::function_key)
        .ok_or_else(|| KeyError::Code(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_read_as_people_write_them() {
        assert_eq!(key("Ctrl+R"), key("control+r"));
        assert_eq!(key("shift+a"), key("A"));
        assert_eq!(key("ctrl++").to_string(), "ctrl+plus");
        assert_eq!(key("+").typed_char(), Some('+'));
        assert_eq!(key("alt+Return").to_string(), "alt+enter");
        assert_eq!("f25".parse::<Key>(), Err(KeyError::Code("f25".to_owned())));
        assert_eq!("hyper+x".parse::<Key>(), Err(KeyError::Modifier("hyper".to_owned())));
        assert_eq!(" ".parse::<Key>(), Err(KeyError::Empty));
    }

    proptest! {
        #[test]
        fn every_key_is_read_back_from_its_name(
            code in prop_oneof![
                any::<char>().prop_filter("of all blanks, keys type the space alone", |c| *c == ' ' || !c.is_whitespace()).prop_map(Code::Char),
                (1_u8..=MAX_FUNCTION).prop_map(Code::Function),
                Just(Code::Enter), Just(Code::PageDown), Just(Code::Tab), Just(Code::Escape),
            ],
            (control, alt, shift, super_key) in any::<(bool, bool, bool, bool)>(),
        ) {
            let key = Key { code, control, alt, shift, super_key }.to_normal_form();
            prop_assert_eq!(key.to_string().parse::<Key>(), Ok(key));
        }
    }
}
