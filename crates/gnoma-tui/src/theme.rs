//! From meanings to colours. A theme is a data file with a dark and a light palette; what a terminal
//! can show decides how exactly its colours are met. Nothing here writes, asks or reads a setting.

mod colour;

use serde::Deserialize;

pub use colour::Colour;

use crate::text::{BackgroundRole, Style, TextRole};

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

/// The built-in themes: name and data.
const THEMES: [(&str, &str); 6] = [
    ("gnoma", include_str!("../data/themes/gnoma.toml")),
    ("terminal", TERMINAL),
    ("forest", include_str!("../data/themes/forest.toml")),
    ("ember", include_str!("../data/themes/ember.toml")),
    ("mono", include_str!("../data/themes/mono.toml")),
    ("clear", include_str!("../data/themes/clear.toml")),
];
/// The terminal's own sixteen colours, which also stand in where a terminal has no others.
const TERMINAL: &str = include_str!("../data/themes/terminal.toml");

/// The names of the built-in themes; the first is the one that is taken when nobody chooses.
pub fn theme_names() -> impl Iterator<Item = &'static str> {
    THEMES.iter().map(|(name, _)| *name)
}

/// A theme that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    /// There is no theme of this name.
    #[error("unknown theme `{name}`; choose one of {}", theme_names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name that is unknown.
        name: String,
    },
    /// The data of a theme cannot be read.
    #[error("the theme cannot be read: {0}")]
    Data(#[from] toml::de::Error),
}

/// A palette made ready for one terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    palette: Palette,
    /// Attributes say what colours cannot.
    sparse: bool,
}

impl Default for Theme {
    /// No colours at all.
    fn default() -> Self {
        Self { palette: Palette::default(), sparse: true }
    }
}

impl Theme {
    /// Returns the built-in theme of this name.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn from_name(name: &str, shade: Shade, depth: Depth) -> Result<Self, ThemeError> {
        let (_, data) = THEMES
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| ThemeError::Unknown { name: name.to_owned() })?;
        Self::parse(data, shade, depth)
    }

    /// A theme from the text of a theme file.
    ///
    /// # Errors
    /// When the text is no theme.
    pub fn parse(data: &str, shade: Shade, depth: Depth) -> Result<Self, ThemeError> {
        if depth == Depth::None {
            return Ok(Self::default());
        }
        let data = if depth == Depth::Sixteen { TERMINAL } else { data };
        let file: File = toml::from_str(data)?;
        let palette = match (shade, file.light) {
            (Shade::Light, Some(light)) => light,
            (Shade::Light, None) | (Shade::Dark, _) => file.dark,
        };
        let sparse = palette.is_sixteen();
        Ok(Self { palette: palette.with_depth(depth), sparse })
    }

    /// Returns the look of text of this style.
    #[must_use]
    pub fn resolve_style(&self, style: Style) -> TerminalStyle {
        let Style { ink, paper, bold, italic, underline, strike } = style;
        let mut look = TerminalStyle {
            front: self.palette.ink(ink),
            back: self.palette.paper(paper),
            bold: bold || ink == TextRole::Heading,
            italic,
            underline,
            strike,
            ..TerminalStyle::default()
        };
        if self.sparse {
            look.faint = matches!(ink, TextRole::Dim | TextRole::Comment) && !look.bold;
            look.reverse = matches!(
                paper,
                BackgroundRole::Chosen | BackgroundRole::AddedMark | BackgroundRole::RemovedMark
            );
        }
        look
    }
}

/// The look that a terminal gives a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Colour of the letters.
    pub front: Colour,
    /// The colour behind the letters.
    pub back: Colour,
    /// `true` if the text is bold.
    pub bold: bool,
    /// `true` if the text is less bright.
    pub faint: bool,
    /// `true` if the text is italic.
    pub italic: bool,
    /// `true` if the text is underlined.
    pub underline: bool,
    /// Front and back exchanged.
    pub reverse: bool,
    /// `true` if the text is struck through.
    pub strike: bool,
}

/// The content of a theme file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    dark: Palette,
    /// Without it the other one does for both.
    light: Option<Palette>,
}

/// One colour for each meaning; what is left out is the terminal's own. `Ink::Text` always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Palette {
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
    fn ink(&self, ink: TextRole) -> Colour {
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

    fn paper(&self, paper: BackgroundRole) -> Colour {
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

    fn colours(&mut self) -> [&mut Colour; 22] {
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

    fn is_sixteen(mut self) -> bool {
        self.colours().iter().all(|colour| !matches!(colour, Colour::Exact(..)))
    }

    fn with_depth(mut self, depth: Depth) -> Self {
        if depth == Depth::Indexed {
            for colour in self.colours() {
                *colour = colour.to_indexed();
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INKS: [TextRole; 16] = [
        TextRole::Dim,
        TextRole::Accent,
        TextRole::Person,
        TextRole::Good,
        TextRole::Bad,
        TextRole::Warning,
        TextRole::Heading,
        TextRole::Link,
        TextRole::Code,
        TextRole::Keyword,
        TextRole::Type,
        TextRole::Function,
        TextRole::String,
        TextRole::Number,
        TextRole::Comment,
        TextRole::Operator,
    ];
    const PAPERS: [BackgroundRole; 6] = [
        BackgroundRole::Added,
        BackgroundRole::AddedMark,
        BackgroundRole::Removed,
        BackgroundRole::RemovedMark,
        BackgroundRole::Chosen,
        BackgroundRole::Person,
    ];

    fn contrast(one: Colour, other: Colour) -> f32 {
        let (Colour::Exact(a, b, c), Colour::Exact(d, e, f)) = (one, other) else {
            return f32::INFINITY;
        };
        let (one, other) =
            (colour::relative_luminance(a, b, c), colour::relative_luminance(d, e, f));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// The least helpful ground and the usual text of each shade.
    fn ground(shade: Shade) -> (Colour, Colour) {
        match shade {
            Shade::Dark => (Colour::Exact(0x26, 0x26, 0x26), Colour::Exact(0xd8, 0xd8, 0xd8)),
            Shade::Light => (Colour::Exact(0xf2, 0xf2, 0xf2), Colour::Exact(0x28, 0x28, 0x28)),
        }
    }

    #[test]
    fn every_theme_can_be_read_on_its_ground() {
        for name in theme_names() {
            for shade in [Shade::Dark, Shade::Light] {
                let theme = Theme::from_name(name, shade, Depth::True).unwrap();
                let (ground, text) = ground(shade);
                for ink in INKS {
                    let least =
                        if matches!(ink, TextRole::Dim | TextRole::Comment) { 3.0 } else { 4.5 };
                    let found = contrast(theme.palette.ink(ink), ground);
                    assert!(found >= least, "{name} {shade:?} {ink:?}: {found:.2}");
                }
                for paper in PAPERS {
                    let found = contrast(text, theme.palette.paper(paper));
                    assert!(found >= 4.5, "{name} {shade:?} {paper:?}: {found:.2}");
                }
            }
        }
    }

    #[test]
    fn what_was_added_and_removed_can_be_told_apart() {
        for name in theme_names() {
            let theme = Theme::from_name(name, Shade::Dark, Depth::Indexed).unwrap();
            let look = |ink, paper| theme.resolve_style(Style::with_ink(ink).on_paper(paper));
            assert_ne!(
                look(TextRole::Good, BackgroundRole::None),
                look(TextRole::Bad, BackgroundRole::None),
                "{name}"
            );
            assert_ne!(
                look(TextRole::Text, BackgroundRole::None),
                look(TextRole::Text, BackgroundRole::Chosen),
                "{name}"
            );
            assert_ne!(
                look(TextRole::Text, BackgroundRole::Added),
                look(TextRole::Text, BackgroundRole::AddedMark),
                "{name}"
            );
        }
    }

    #[test]
    fn colours_are_only_used_where_they_are_understood() {
        for name in theme_names() {
            let none = Theme::from_name(name, Shade::Dark, Depth::None).unwrap();
            let sixteen = Theme::from_name(name, Shade::Dark, Depth::Sixteen).unwrap();
            let indexed = Theme::from_name(name, Shade::Dark, Depth::Indexed).unwrap();
            for ink in INKS {
                assert_eq!(none.resolve_style(Style::with_ink(ink)).front, Colour::Own);
                assert!(matches!(sixteen.palette.ink(ink), Colour::Own | Colour::Ansi(_)));
                assert!(!matches!(indexed.palette.ink(ink), Colour::Exact(..)));
            }
        }
    }

    #[test]
    fn the_environment_tells_how_many_colours_there_are() {
        assert_eq!(
            Depth::from_environment(false, Some("truecolor"), Some("xterm-256color")),
            Depth::True
        );
        assert_eq!(Depth::from_environment(false, None, Some("tmux-256color")), Depth::Indexed);
        assert_eq!(Depth::from_environment(false, None, Some("linux")), Depth::Sixteen);
        assert_eq!(Depth::from_environment(false, None, Some("alacritty")), Depth::True);
        assert_eq!(
            Depth::from_environment(true, Some("truecolor"), Some("xterm-256color")),
            Depth::None
        );
        assert_eq!(Depth::from_environment(false, None, None), Depth::None);
    }

    #[test]
    fn an_unknown_theme_names_the_known_ones() {
        let error = Theme::from_name("gnome", Shade::Dark, Depth::True).unwrap_err().to_string();
        assert!(
            error.starts_with("unknown theme `gnome`; choose one of gnoma, terminal"),
            "{error}"
        );
    }
}
