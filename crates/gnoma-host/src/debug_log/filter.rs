//! The filter of a debug log's lines: the directives of `GNOMA_LOG`, written as in other programs' `RUST_LOG`. Pure.

/// Directives that are read; more are left out.
const MAX_DIRECTIVES: usize = 32;

/// Targets that begin so are gnoma as a whole, as `gnoma=debug` and `gnoma_llm=debug` name it.
const PROGRAM: &str = "gnoma";

/// The amount of detail in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Only failures and warnings.
    Warn,
    /// Turns, model calls and routing as well.
    Info,
    /// Everything: tools, approvals and checks as well.
    Debug,
}

/// The lines that a log has: a level for all steps, and other levels for single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The level of steps that have none of their own; `None` for no lines.
    base: Option<LogLevel>,
    /// Steps with levels of their own, by the first word of their lines.
    steps: Vec<(String, Option<LogLevel>)>,
}

impl From<LogLevel> for LogFilter {
    fn from(level: LogLevel) -> Self {
        Self { base: Some(level), steps: Vec::new() }
    }
}

impl LogFilter {
    /// Reads directives such as `debug` or `info,tool=debug,cost=off`: a level for all, and `STEP=LEVEL` for the lines
    /// that begin with this word. The later of two directives counts. Returns `None` if there is none that can be
    /// read, and those that cannot.
    #[must_use]
    pub fn parse(text: &str) -> (Option<Self>, Vec<String>) {
        let (mut filter, mut unreadable) = (None, Vec::new());
        let directives = text.split(',').map(str::trim).filter(|directive| !directive.is_empty());
        for directive in directives.take(MAX_DIRECTIVES) {
            let (target, level) = directive.split_once('=').unwrap_or((PROGRAM, directive));
            let Some(level) = parse_level(level.trim()) else {
                unreadable.push(directive.to_owned());
                continue;
            };
            let filter = filter.get_or_insert_with(Self::default);
            match target.trim() {
                program if program.starts_with(PROGRAM) => filter.base = level,
                step => filter.steps.push((step.to_owned(), level)),
            }
        }
        (filter, unreadable)
    }

    /// Reports whether there are no lines at all.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.base.is_none() && self.steps.iter().all(|(_, level)| level.is_none())
    }

    /// Reports whether a line is written: its words, such as `tool end`, and its level.
    pub(super) fn allows(&self, what: &str, level: LogLevel) -> bool {
        let step = what.split(' ').next().unwrap_or_default();
        let own = self.steps.iter().rev().find(|(name, _)| name == step);
        own.map_or(self.base, |(_, level)| *level).is_some_and(|most| level <= most)
    }
}

/// Reads a level; the inner `None` stands for `off`.
fn parse_level(text: &str) -> Option<Option<LogLevel>> {
    match text.to_ascii_lowercase().as_str() {
        "off" => Some(None),
        "error" | "warn" => Some(Some(LogLevel::Warn)),
        "info" => Some(Some(LogLevel::Info)),
        "debug" | "trace" => Some(Some(LogLevel::Debug)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LogFilter {
        let (filter, unreadable) = LogFilter::parse(text);
        assert!(unreadable.is_empty(), "{text}: {unreadable:?}");
        filter.unwrap()
    }

    #[test]
    fn log_filter_level_parses_in_any_spelling() {
        for text in ["DEBUG", " debug ", "trace", "gnoma=debug", "info,gnoma_llm=debug"] {
            assert_eq!(read(text), LogFilter::from(LogLevel::Debug), "{text}");
        }
        assert_eq!(read("error"), LogFilter::from(LogLevel::Warn));
        assert!(read("off").is_off() && read("debug,off").is_off());
    }

    #[test]
    fn log_filter_sets_levels_per_target() {
        let filter = read("warn,tool=debug,model=off");
        assert!(filter.allows("tool end", LogLevel::Debug));
        assert!(!filter.allows("approval decided", LogLevel::Debug));
        assert!(filter.allows("warning", LogLevel::Warn));
        assert!(!filter.allows("model call failed", LogLevel::Warn));
        let alone = read("tool=debug");
        assert!(!alone.is_off() && !alone.allows("warning", LogLevel::Warn));
    }

    #[test]
    fn log_filter_returns_invalid_directives() {
        let (filter, unreadable) = LogFilter::parse("loud,info,tool=noisy");
        assert_eq!(filter, Some(LogFilter::from(LogLevel::Info)));
        assert_eq!(unreadable, ["loud", "tool=noisy"]);
        assert_eq!(LogFilter::parse(" , "), (None, Vec::new()));
    }
}
