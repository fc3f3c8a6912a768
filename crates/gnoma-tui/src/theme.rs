//! Colour themes, dark and light. A theme is a data file with a dark and a light palette; what a terminal can show
//! decides how exactly its colours are met. Nothing here writes, asks or reads a setting.

mod colour;
mod palette;

use std::{io, sync::Arc};

pub(crate) use self::palette::{Palette, ROLES, ThemeFile};
pub use self::{
    colour::Colour,
    palette::{Depth, Shade},
};

use crate::text::{BackgroundRole, Style, TextRole};

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

/// Returns the data of the built-in theme of this name.
pub(crate) fn theme_data(name: &str) -> Option<&'static str> {
    THEMES.iter().find(|(known, _)| *known == name).map(|(_, data)| *data)
}

/// A theme that cannot be used.
#[derive(thiserror::Error)]
pub enum ThemeError {
    /// There is no theme of this name.
    #[error("unknown theme `{name}`; choose one of {}", theme_names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name that is unknown.
        name: String,
    },
    /// A theme of the person's own cannot be used.
    #[error("the theme `{name}` cannot be used: {why}")]
    Own {
        /// The name of the theme.
        name: String,
        /// The fault of its file.
        why: ThemeFileError,
    },
    /// The data of a theme cannot be read.
    #[error("the theme cannot be read: {0}")]
    Data(#[from] toml::de::Error),
}

/// A theme file of the person's own that cannot be used.
#[derive(Clone, thiserror::Error)]
pub enum ThemeFileError {
    /// The file has the name of a built-in theme.
    #[error("a built-in theme has this name; rename the file")]
    BuiltInName,
    /// The file cannot be read.
    #[error(transparent)]
    Read(Arc<io::Error>),
    /// The file is not TOML, or one of its values is no colour.
    #[error("{}", describe_toml_error(.0))]
    Toml(toml::de::Error),
    /// `base` is not a text.
    #[error("`base` is not a text; write the name of a theme")]
    BaseIsNoText,
    /// `base` does not name a built-in theme.
    #[error("`base` is `{base}`, which is no built-in theme; write one of {}", theme_names().collect::<Vec<_>>().join(", "))]
    UnknownBase {
        /// The value of `base`.
        base: String,
    },
    /// A name that no theme has.
    #[error("`{}` is not known; a theme has `base`, `[dark]` and `[light]`", name.escape_debug())]
    UnknownName {
        /// The name that is unknown.
        name: String,
    },
}

gnoma_core::debug_as_display!(ThemeError, ThemeFileError);

/// Returns the message of a TOML error in one line, without the excerpt of the file.
fn describe_toml_error(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains('|'));
    lines.collect::<Vec<_>>().join(" ")
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
        let data = theme_data(name).ok_or_else(|| ThemeError::Unknown { name: name.to_owned() })?;
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
        // By way of a table, as themes of a person's own are read: one reader in the program instead of two.
        let file: ThemeFile = toml::from_str::<toml::Table>(data)?.try_into()?;
        Ok(Self::from_palette(file.palette(shade), depth))
    }

    /// A theme with these colours.
    fn from_palette(palette: Palette, depth: Depth) -> Self {
        let sparse = palette.is_sixteen();
        Self { palette: palette.with_depth(depth), sparse }
    }

    /// A theme of the person's own, on terminals with as many colours as it may have.
    pub(crate) fn from_file(file: &ThemeFile, shade: Shade, depth: Depth) -> Self {
        match depth {
            Depth::None => Self::default(),
            Depth::Sixteen => Self::parse(TERMINAL, shade, depth).unwrap_or_default(),
            Depth::Indexed | Depth::True => Self::from_palette(file.palette(shade), depth),
        }
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
        one.contrast(other).unwrap_or(f32::INFINITY)
    }

    #[test]
    fn theme_colours_have_enough_contrast() {
        for name in theme_names() {
            for shade in [Shade::Dark, Shade::Light] {
                let theme = Theme::from_name(name, shade, Depth::True).unwrap();
                let (ground, text) = shade.usual_colours();
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
    fn theme_distinguishes_added_from_removed_text() {
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
    fn theme_colours_respect_the_terminal_colour_depth() {
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
    fn colour_depth_is_read_from_the_environment() {
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
