//! Themes of the person's own: a built-in theme with other colours, whose contrast is checked. Pure: the texts of the
//! files come in.

use std::{io, sync::Arc};

use toml::{Table, Value};

use crate::theme::{
    Depth, ROLES, Shade, Theme, ThemeError, ThemeFile, ThemeFileError, theme_data, theme_names,
};

/// The theme that another one changes, unless it names one.
const USUAL_BASE: &str = "gnoma";
/// Least contrast of texts.
const LEAST_CONTRAST: f32 = 4.5;
/// Least contrast of texts that matter less.
const LEAST_FAINT_CONTRAST: f32 = 3.0;
/// The steps in which another colour is looked for, in percent.
const STEP_PERCENT: usize = 5;

/// The built-in themes and those of the person.
#[derive(Clone, Debug, Default)]
pub struct ThemeSet {
    own: Vec<OwnTheme>,
}

#[derive(Clone, Debug)]
struct OwnTheme {
    name: String,
    /// The colours, or why there are none.
    file: Result<ThemeFile, ThemeFileError>,
    /// Roles that are hard to read, a sentence each.
    faults: Vec<String>,
}

impl ThemeSet {
    /// Reads the person's themes: names, and the texts of their files or why there are none.
    #[must_use]
    pub fn from_files(files: impl IntoIterator<Item = (String, io::Result<String>)>) -> Self {
        let own = files.into_iter().map(|(name, text)| {
            let file = match (theme_data(&name), text) {
                (Some(_), _) => Err(ThemeFileError::BuiltInName),
                (None, Ok(text)) => parse_theme(&text),
                (None, Err(error)) => Err(ThemeFileError::Read(Arc::new(error))),
            };
            let faults = file.as_ref().map(find_faults).unwrap_or_default();
            OwnTheme { name, file, faults }
        });
        Self { own: own.collect() }
    }

    /// Returns the names of the themes that can be used, the built-in ones first.
    pub fn names<'s>(&'s self) -> impl Iterator<Item = &'s str> {
        let own = self.own.iter().filter(|theme| theme.file.is_ok());
        theme_names().map(|name| -> &'s str { name }).chain(own.map(|theme| theme.name.as_str()))
    }

    /// Returns all themes with a note about each, which is empty for built-in ones.
    pub fn describe_all<'s>(&'s self) -> impl Iterator<Item = (&'s str, String)> {
        let note = |theme: &OwnTheme| match &theme.file {
            Err(why) => format!("cannot be used: {why}"),
            Ok(_) if theme.faults.is_empty() => "yours".to_owned(),
            Ok(_) => format!("yours; {}", theme.faults.join("; ")),
        };
        let own = self.own.iter().map(move |theme| (theme.name.as_str(), note(theme)));
        theme_names().map(|name| -> (&'s str, String) { (name, String::new()) }).chain(own)
    }

    /// Returns what is wrong with the theme of this name, a sentence each.
    #[must_use]
    pub fn faults_of(&self, name: &str) -> Vec<String> {
        let Some(theme) = self.own.iter().find(|theme| theme.name == name) else {
            return Vec::new();
        };
        let refusal = theme.file.as_ref().err().map(ToString::to_string);
        let faults = refusal.iter().chain(&theme.faults);
        faults.map(|fault| format!("theme `{name}`: {fault}")).collect()
    }

    /// Returns the theme of this name for a terminal.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be used.
    pub fn resolve(&self, name: &str, shade: Shade, depth: Depth) -> Result<Theme, ThemeError> {
        match self.own.iter().find(|theme| theme.name == name && theme_data(name).is_none()) {
            None => Theme::from_name(name, shade, depth),
            Some(OwnTheme { file: Ok(file), .. }) => Ok(Theme::from_file(file, shade, depth)),
            Some(OwnTheme { file: Err(why), .. }) => {
                Err(ThemeError::Own { name: name.to_owned(), why: why.clone() })
            }
        }
    }
}

/// Reads a theme file: `base` names a built-in theme, and `[dark]` and `[light]` have the colours that differ.
fn parse_theme(text: &str) -> Result<ThemeFile, ThemeFileError> {
    let mut own: Table = toml::from_str(text).map_err(ThemeFileError::Toml)?;
    let base = match own.remove("base") {
        None => USUAL_BASE.to_owned(),
        Some(Value::String(name)) => name,
        Some(_) => return Err(ThemeFileError::BaseIsNoText),
    };
    let data = theme_data(&base).ok_or(ThemeFileError::UnknownBase { base })?;
    let mut all: Table = toml::from_str(data).map_err(ThemeFileError::Toml)?;
    // A base without colours of its own for a light background has those for a dark one there.
    if own.contains_key("light") && !all.contains_key("light") {
        let dark = all.get("dark").cloned().unwrap_or(Value::Table(Table::new()));
        all.insert("light".to_owned(), dark);
    }
    for (shade, colours) in own {
        match (all.get_mut(&shade), colours) {
            (Some(Value::Table(known)), Value::Table(colours)) => known.extend(colours),
            _ => return Err(ThemeFileError::UnknownName { name: shade }),
        }
    }
    Value::Table(all).try_into().map_err(ThemeFileError::Toml)
}

/// Finds the roles that are hard to read on a dark or a light background.
fn find_faults(file: &ThemeFile) -> Vec<String> {
    let mut faults = Vec::new();
    for (shade, name) in [(Shade::Dark, "dark"), (Shade::Light, "light")] {
        let (ground, text) = shade.usual_colours();
        let mut palette = file.palette(shade);
        for (role, colour) in ROLES.iter().zip(palette.colours()) {
            let is_background = role.starts_with("on_");
            let other = if is_background { text } else { ground };
            let is_faint = matches!(*role, "dim" | "comment");
            let least = if is_faint { LEAST_FAINT_CONTRAST } else { LEAST_CONTRAST };
            let Some(found) = colour.contrast(other).filter(|found| *found < least) else {
                continue;
            };
            let is_lighter = (shade == Shade::Dark) != is_background;
            let near = (STEP_PERCENT..=100).step_by(STEP_PERCENT).find_map(|percent| {
                let near = colour.shifted(is_lighter, u16::try_from(percent).ok()?);
                near.contrast(other).is_some_and(|found| found >= least).then_some(near)
            });
            let near = near.map_or_else(String::new, |near| format!("; `{near}` would do"));
            faults.push(format!(
                "`{name}.{role}` has a contrast of {found:.1} and needs {least}{near}"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        text::{Style, TextRole},
        theme::Colour,
    };

    fn set(text: &str) -> ThemeSet {
        ThemeSet::from_files([("mine".to_owned(), Ok(text.to_owned()))])
    }

    fn accent(set: &ThemeSet, shade: Shade) -> Colour {
        let theme = set.resolve("mine", shade, Depth::True).unwrap();
        theme.resolve_style(Style::with_ink(TextRole::Accent)).front
    }

    #[test]
    fn own_theme_changes_colours_of_its_base() {
        let set = set("base = \"forest\"\n[dark]\naccent = \"#ffffff\"\n");
        assert_eq!(accent(&set, Shade::Dark), Colour::Exact(255, 255, 255));
        let forest = Theme::from_name("forest", Shade::Light, Depth::True).unwrap();
        assert_eq!(set.resolve("mine", Shade::Light, Depth::True).unwrap(), forest);
        assert!(set.names().any(|name| name == "mine") && set.faults_of("mine").is_empty());
        let sixteen = set.resolve("mine", Shade::Dark, Depth::Sixteen).unwrap();
        assert_eq!(sixteen, Theme::from_name("mono", Shade::Dark, Depth::Sixteen).unwrap());
    }

    #[test]
    fn role_that_is_hard_to_read_is_named_with_a_colour_that_would_do() {
        let set = set("[dark]\naccent = \"#303030\"\n[light]\non_person = \"#404040\"\n");
        let faults = set.faults_of("mine");
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].starts_with("theme `mine`: `dark.accent` has a contrast of 1."),
            "{faults:?}"
        );
        for fault in faults {
            let near = fault.split('`').nth(5).unwrap().to_owned();
            let (shade, role) =
                if fault.contains("dark") { ("dark", "accent") } else { ("light", "on_person") };
            let again = self::set(&format!("[{shade}]\n{role} = \"{near}\"\n"));
            assert!(again.faults_of("mine").is_empty(), "{fault}");
        }
    }

    #[test]
    fn theme_that_cannot_be_read_is_named_and_not_offered() {
        for (text, why) in [
            ("[dark]\naccent = \"mauve\"\n", "`mauve` is not a colour"),
            ("[dark]\nacent = \"#ffffff\"\n", "unknown field `acent`"),
            ("[dim]\naccent = \"#ffffff\"\n", "`dim` is not known"),
            ("base = \"none\"\n", "no built-in theme"),
            ("accent = ", "TOML parse error at line 1"),
        ] {
            let set = set(text);
            assert!(set.faults_of("mine")[0].contains(why), "{:?}", set.faults_of("mine"));
            assert!(!set.names().any(|name| name == "mine"));
            let error = set.resolve("mine", Shade::Dark, Depth::True).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let taken = ThemeSet::from_files([("ember".to_owned(), Ok(String::new()))]);
        assert!(taken.faults_of("ember")[0].contains("rename the file"));
        assert!(taken.resolve("ember", Shade::Dark, Depth::True).is_ok());
    }
}
