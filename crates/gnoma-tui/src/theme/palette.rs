//! The colours of a theme by their roles, and what a terminal can show of them.

use serde::Deserialize;

use super::colour::{self, Colour};
use crate::text::{BackgroundRole, TextRole};

/// The shade of the terminal's background, dark or light.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shade {
    /// Light text on a dark background; used if the terminal does not report its background.
    #[default]
    Dark,
    /// Dark text on light ground.
    Light,
}

impl Shade {
    /// The shade of a background of this colour.
    #[must_use]
    pub fn from_rgb(red: u8, green: u8, blue: u8) -> Self {
        if colour::relative_luminance(red, green, blue) < 0.18 { Self::Dark } else { Self::Light }
    }

    /// Returns the least helpful background of this shade, and the usual text on it.
    pub(crate) fn usual_colours(self) -> (Colour, Colour) {
        match self {
            Self::Dark => (Colour::Exact(0x26, 0x26, 0x26), Colour::Exact(0xd8, 0xd8, 0xd8)),
            Self::Light => (Colour::Exact(0xf2, 0xf2, 0xf2), Colour::Exact(0x28, 0x28, 0x28)),
        }
    }
}

/// The number of colours that the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// None: only bold, faint, underlined and reversed text.
    None,
    /// The sixteen that the terminal itself chooses.
    Sixteen,
    /// The fixed palette of 256.
    #[default]
    Indexed,
    /// All colours, not only a palette.
    True,
}

impl Depth {
    /// Returns the depth that the environment tells. `no_color` is whether `NO_COLOR` is set to anything but
    /// nothing.
    #[must_use]
    pub fn from_environment(no_color: bool, colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        let colorterm = colorterm.unwrap_or_default();
        if no_color || matches!(term, "" | "dumb") || term.starts_with("vt") {
            Self::None
        } else if matches!(colorterm, "truecolor" | "24bit") || term.ends_with("-direct") {
            Self::True
        } else if term.contains("256") || !colorterm.is_empty() {
            Self::Indexed
        } else {
            match term {
                "xterm-kitty" | "xterm-ghostty" | "alacritty" | "foot" | "wezterm" => Self::True,
                _ => Self::Sixteen,
            }
        }
    }
}

/// The names of all roles in theme files, as [`Palette::colours`] has them; those of backgrounds begin with `on_`.
pub(crate) const ROLES: [&str; 22] = [
    "dim",
    "accent",
    "person",
    "good",
    "bad",
    "warning",
    "heading",
    "link",
    "code",
    "keyword",
    "type",
    "function",
    "string",
    "number",
    "comment",
    "operator",
    "on_added",
    "on_added_mark",
    "on_removed",
    "on_removed_mark",
    "on_chosen",
    "on_person",
];

/// The content of a theme file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThemeFile {
    dark: Palette,
    /// Without it the other one does for both.
    light: Option<Palette>,
}

impl ThemeFile {
    /// Returns the palette for a background of this shade.
    pub(crate) fn palette(&self, shade: Shade) -> Palette {
        match (shade, self.light) {
            (Shade::Light, Some(light)) => light,
            (Shade::Light, None) | (Shade::Dark, _) => self.dark,
        }
    }
}

/// One colour for each meaning; what is left out is the terminal's own. [`TextRole::Text`] always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Palette {
    dim: Colour,
    accent: Colour,
    person: Colour,
    good: Colour,
    bad: Colour,
    warning: Colour,
    heading: Colour,
    link: Colour,
    code: Colour,
    keyword: Colour,
    r#type: Colour,
    function: Colour,
    string: Colour,
    number: Colour,
    comment: Colour,
    operator: Colour,
    on_added: Colour,
    on_added_mark: Colour,
    on_removed: Colour,
    on_removed_mark: Colour,
    on_chosen: Colour,
    on_person: Colour,
}

impl Palette {
    pub(crate) fn ink(&self, ink: TextRole) -> Colour {
        match ink {
            TextRole::Text => Colour::Own,
            TextRole::Dim => self.dim,
            TextRole::Accent => self.accent,
            TextRole::Person => self.person,
            TextRole::Good => self.good,
            TextRole::Bad => self.bad,
            TextRole::Warning => self.warning,
            TextRole::Heading => self.heading,
            TextRole::Link => self.link,
            TextRole::Code => self.code,
            TextRole::Keyword => self.keyword,
            TextRole::Type => self.r#type,
            TextRole::Function => self.function,
            TextRole::String => self.string,
            TextRole::Number => self.number,
            TextRole::Comment => self.comment,
            TextRole::Operator => self.operator,
        }
    }

    pub(crate) fn paper(&self, paper: BackgroundRole) -> Colour {
        match paper {
            BackgroundRole::None => Colour::Own,
            BackgroundRole::Added => self.on_added,
            BackgroundRole::AddedMark => self.on_added_mark,
            BackgroundRole::Removed => self.on_removed,
            BackgroundRole::RemovedMark => self.on_removed_mark,
            BackgroundRole::Chosen => self.on_chosen,
            BackgroundRole::Person => self.on_person,
        }
    }

    pub(crate) fn colours(&mut self) -> [&mut Colour; 22] {
        [
            &mut self.dim,
            &mut self.accent,
            &mut self.person,
            &mut self.good,
            &mut self.bad,
            &mut self.warning,
            &mut self.heading,
            &mut self.link,
            &mut self.code,
            &mut self.keyword,
            &mut self.r#type,
            &mut self.function,
            &mut self.string,
            &mut self.number,
            &mut self.comment,
            &mut self.operator,
            &mut self.on_added,
            &mut self.on_added_mark,
            &mut self.on_removed,
            &mut self.on_removed_mark,
            &mut self.on_chosen,
            &mut self.on_person,
        ]
    }

    pub(crate) fn is_sixteen(mut self) -> bool {
        self.colours().iter().all(|colour| !matches!(colour, Colour::Exact(..)))
    }

    pub(crate) fn with_depth(mut self, depth: Depth) -> Self {
        if depth == Depth::Indexed {
            for colour in self.colours() {
                *colour = colour.to_indexed();
            }
        }
        self
    }
}
