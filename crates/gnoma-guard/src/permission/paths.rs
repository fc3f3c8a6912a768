//! Rules about paths, such as `src/**` or `~/notes/*.md`.
//!
//! `*` and `?` match letters of one name, `**` any number of names. A relative path starts at every root of the
//! workspace. A rule that allows is compared with the resolved path, letter by letter. A rule that denies or asks
//! is also compared with the path as written, ignoring case; it covers everything below a folder and, if it is a
//! bare name, matches at any depth.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use super::{
    JudgementContext,
    command_words::Match,
    pattern_overlap::{
        Dialect, Letter, PatternStep, fold_name, pattern_letters, patterns_overlap, same_letter,
    },
};
use crate::places::{JudgedPath, MAX_PATH_BYTES};

/// Paths that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    text: String,
}

type Names = Vec<PatternStep<Vec<PatternStep<Letter>>>>;

/// All that a pattern forbids, with what is below it.
#[derive(Debug)]
pub(super) struct PathReach(Names);

/// Reports whether an absolute path is one of these, or below one.
pub(super) fn is_reached(all: &[PathReach], path: &Path) -> bool {
    let place = path_steps(path, Dialect::Plain, fold_name);
    all.iter().any(|reach| reach.overlaps_place(&place))
}

impl PathReach {
    fn from_pattern(pattern: &Path) -> Self {
        let mut reach = path_steps(pattern, Dialect::Rule, fold_name);
        reach.push(PatternStep::Run);
        Self(reach)
    }

    fn overlaps_place(&self, place: &Names) -> bool {
        patterns_overlap(&self.0, place, same_name).unwrap_or(true)
    }
}

/// The fault of a text that is not a pattern of paths.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathPatternError {
    /// The text is empty.
    #[error("it names no path; a rule for all paths is the tool's name alone")]
    NoPath,
    /// The text is longer than any path.
    #[error("it is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// The text has a control character.
    #[error("it contains a control character")]
    ControlCharacter,
    /// The text names the home of another user.
    #[error("`~` only stands for your own home")]
    ForeignHome,
    /// The text has `.` or `..` for a name.
    #[error("`{0}` is not allowed in it; write the path without")]
    Dots(String),
    /// A `**` is only a part of a name.
    #[error("`**` stands for whole names; write it between slashes")]
    StarsInName,
}

gnoma_core::debug_as_display!(PathPatternError);

impl PathPattern {
    /// Reads a pattern as it is in a rule.
    ///
    /// # Errors
    /// The text is not a pattern of paths.
    pub(crate) fn parse(text: &str) -> Result<Self, PathPatternError> {
        if text.is_empty() {
            return Err(PathPatternError::NoPath);
        }
        if text.len() > MAX_PATH_BYTES {
            return Err(PathPatternError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(PathPatternError::ControlCharacter);
        }
        if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
            return Err(PathPatternError::ForeignHome);
        }
        for name in text.split('/') {
            if name == ".." || (name == "." && text != ".") {
                return Err(PathPatternError::Dots(name.to_owned()));
            }
            if name.contains("**") && name != "**" {
                return Err(PathPatternError::StarsInName);
            }
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Exactly `path`, relative where it is in the workspace. `None` when no rule can say it.
    pub(crate) fn from_path(path: &Path, world: &JudgementContext<'_>) -> Option<Self> {
        let below = |base: &Path| path.strip_prefix(base).ok().and_then(Path::to_str);
        let home = world.home.map(|home| (world.resolve)(home));
        let text = if let Some(rest) = world.roots.iter().find_map(|root| below(root)) {
            if rest.is_empty() { ".".to_owned() } else { rest.to_owned() }
        } else if let Some(rest) = home.as_deref().and_then(below) {
            format!("~/{rest}")
        } else {
            path.to_str()?.to_owned()
        };
        Self::parse(&text).ok().filter(Self::is_exact)
    }

    /// Reports whether the place is surely what the rule is about.
    pub(crate) fn covers_path(&self, spot: &JudgedPath, world: &JudgementContext<'_>) -> bool {
        let real = spot.real_form().path.as_path();
        let place = path_steps(real, Dialect::Plain, str::to_owned);
        let fits = |pattern: &PathBuf| {
            patterns_overlap(&path_steps(pattern, Dialect::Rule, str::to_owned), &place, same_name)
                .unwrap_or(false)
        };
        !spot.is_pattern() && self.allowed_places(world).iter().any(fits)
    }

    /// Returns whether the place is, or holds, or could turn out to be, what a rule that forbids is about.
    pub(crate) fn touches_path(&self, spot: &JudgedPath, world: &JudgementContext<'_>) -> Match {
        let patterns = self.forbidden_patterns(world);
        let verdict = |place: &Names| {
            let surely = patterns
                .iter()
                .any(|pattern| PathReach::from_pattern(pattern).overlaps_place(place));
            match (surely, spot.is_pattern()) {
                (true, false) => Match::Yes,
                (true, true) => Match::Maybe,
                (false, _) if patterns.iter().any(|pattern| is_above_pattern(place, pattern)) => {
                    Match::Maybe
                }
                (false, _) => Match::No,
            }
        };
        spot.forms().map(|form| verdict(&form.pattern_steps())).max().unwrap_or(Match::No)
    }

    /// All that it forbids.
    pub(super) fn forbidden_reach(&self, world: &JudgementContext<'_>) -> Vec<PathReach> {
        self.forbidden_patterns(world)
            .iter()
            .map(|pattern| PathReach::from_pattern(pattern))
            .collect()
    }

    /// Reports whether the pattern can only be one path.
    pub(crate) fn is_exact(&self) -> bool {
        !self.text.contains(['*', '?'])
    }

    /// Returns how specific the pattern is, for finding the most specific rule.
    pub(crate) fn specificity_score(&self) -> usize {
        self.text.chars().filter(|letter| !matches!(letter, '*' | '?')).count()
    }

    /// Returns the absolute paths that the pattern means, for allowing. Inside the workspace no link is followed: a
    /// place elsewhere that a link leads to is not what the rule was made for.
    fn allowed_places(&self, world: &JudgementContext<'_>) -> Vec<PathBuf> {
        match self.rooted_pattern(world) {
            Some(base) => vec![resolve_certain_part(&base, self.is_exact(), world), base],
            None => world.roots.iter().map(|root| root.join(self.relative_text())).collect(),
        }
    }

    /// Returns the absolute paths that the pattern means, for forbidding: from everywhere, links followed and not.
    fn forbidden_patterns(&self, world: &JudgementContext<'_>) -> Vec<PathBuf> {
        let mut bases = match self.rooted_pattern(world) {
            Some(base) => vec![base],
            None => {
                let starts = world.roots.iter().map(PathBuf::as_path).chain([world.cwd]);
                starts.map(|start| start.join(self.relative_text())).collect()
            }
        };
        let real: Vec<_> =
            bases.iter().map(|base| resolve_certain_part(base, false, world)).collect();
        bases.extend(real);
        bases.iter().map(|base| self.at_any_depth(base)).collect()
    }

    /// The pattern from the root when it is not relative to a workspace. One below an unknown home
    /// is about nothing.
    fn rooted_pattern(&self, world: &JudgementContext<'_>) -> Option<PathBuf> {
        if self.text.starts_with('/') {
            return Some(PathBuf::from(&self.text));
        }
        let rest = self.text.strip_prefix('~')?.trim_start_matches('/');
        Some(world.home.map_or_else(|| PathBuf::from("~"), |home| home.join(rest)))
    }

    fn relative_text(&self) -> &str {
        if self.text == "." { "" } else { &self.text }
    }

    /// A bare name forbids at any depth.
    fn at_any_depth(&self, base: &Path) -> PathBuf {
        let is_bare = !self.text.contains('/') && self.text != "." && self.text != "~";
        match (is_bare, base.parent(), base.file_name()) {
            (true, Some(folder), Some(name)) => folder.join("**").join(name),
            _ => base.to_path_buf(),
        }
    }
}

/// `pattern` with the links of its certain part followed, but for the last name where `keep_last`.
fn resolve_certain_part(pattern: &Path, keep_last: bool, world: &JudgementContext<'_>) -> PathBuf {
    let mut certain = certain_part(pattern);
    if keep_last {
        certain.pop();
    }
    let rest = pattern.strip_prefix(&certain).unwrap_or(Path::new(""));
    (world.resolve)(&certain).join(rest)
}

fn certain_part(pattern: &Path) -> PathBuf {
    let is_certain =
        |component: &Component<'_>| !component.as_os_str().to_string_lossy().contains(['*', '?']);
    pattern.components().take_while(is_certain).collect()
}

/// Reports whether the place is a folder above everything that the pattern names.
fn is_above_pattern(place: &Names, pattern: &Path) -> bool {
    let certain = path_steps(&certain_part(pattern), Dialect::Plain, fold_name);
    let mut below = place.clone();
    below.push(PatternStep::Run);
    certain.len() > place.len() && patterns_overlap(&below, &certain, same_name).unwrap_or(true)
}

fn path_steps(path: &Path, dialect: Dialect, spelling: fn(&str) -> String) -> Names {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) if name == "**" && dialect == Dialect::Rule => {
            Some(PatternStep::Run)
        }
        Component::Normal(name) => {
            Some(PatternStep::One(pattern_letters(&spelling(&name.to_string_lossy()), dialect)))
        }
        _ => None,
    };
    path.components().filter_map(step).collect()
}

#[expect(clippy::ptr_arg, reason = "the alphabet of `meet` is vectors of letters")]
fn same_name(one: &Vec<PatternStep<Letter>>, two: &Vec<PatternStep<Letter>>) -> bool {
    patterns_overlap(one, two, same_letter).unwrap_or(false)
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
