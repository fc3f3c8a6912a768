//! Detects that the last tests, build or lint of a turn failed.
//!
//! Which commands are checks is for [`super::runner`] to say; here their outcomes are kept.

use gnoma_core::text_truncation;

use super::runner::{self, Purpose};

/// The most characters of a command that are retained for the message.
const MAX_COMMAND_CHARS: usize = 200;

/// Remembers the checks that are red.
///
/// One red command is kept for each purpose: test, build, lint. A green run of any command of that
/// purpose clears it, and green tests clear a red build too, because they needed one. A run
/// without exit code (killed, timed out) changes nothing. The exit code is that of the whole
/// command: what a pipe hides stays hidden, in favour of the model.
#[derive(Debug, Default)]
pub struct RedCheck {
    red: Vec<(Purpose, String)>,
}

impl RedCheck {
    /// Takes a command that has run; a command without a check in it is ignored.
    pub fn record_command(&mut self, command: &str, exit_code: Option<i32>) {
        let purposes = runner::command_purposes(command);
        let (Some(&strongest), Some(code)) = (purposes.last(), exit_code) else {
            return;
        };
        if code == 0 {
            let has_built = strongest == Purpose::Test;
            let is_proved =
                |red: &Purpose| purposes.contains(red) || has_built && *red == Purpose::Build;
            self.red.retain(|(red, _)| !is_proved(red));
        } else {
            self.red.retain(|(red, _)| *red != strongest);
            self.red.push((
                strongest,
                text_truncation::head_chars(command, MAX_COMMAND_CHARS).to_owned(),
            ));
        }
    }

    /// Reports whether the command is or contains a check.
    #[must_use]
    pub fn is_check(command: &str) -> bool {
        !runner::command_purposes(command).is_empty()
    }

    /// The latest check that was red and has not been green since; a long command is cut.
    #[must_use]
    pub fn failing_command(&self) -> Option<&str> {
        self.red.last().map(|(_, command)| command.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red_after(runs: &[(&str, Option<i32>)]) -> Option<String> {
        let mut checks = RedCheck::default();
        for (command, code) in runs {
            checks.record_command(command, *code);
        }
        checks.failing_command().map(str::to_owned)
    }

    #[test]
    fn failed_check_stays_failed_until_the_same_check_passes() {
        let red = ("cd app && cargo test", Some(101));
        let is = |runs: &[(&str, Option<i32>)]| red_after(runs);
        let still = Some("cd app && cargo test".to_owned());
        assert_eq!(is(&[red]), still);
        assert_eq!(is(&[red, ("ls", Some(0)), ("cat missing", Some(1))]), still);
        assert_eq!(is(&[red, ("cargo build", Some(0)), ("cargo clippy", Some(0))]), still);
        assert_eq!(is(&[red, ("cargo test", None)]), still);
        assert_eq!(is(&[red, ("cargo test -p app", Some(0))]), None);
        assert_eq!(is(&[("cargo test", Some(0))]), None);
        assert_eq!(is(&[("cat missing", Some(1))]), None);
    }

    #[test]
    fn passing_tests_clear_a_failed_build_but_not_a_failed_lint() {
        let build = ("cargo check", Some(101));
        let lint = ("cargo clippy", Some(101));
        let green = ("cargo test", Some(0));
        assert_eq!(red_after(&[build, green]), None);
        assert_eq!(red_after(&[lint, green]).as_deref(), Some("cargo clippy"));
        assert_eq!(red_after(&[lint, ("cargo clippy && cargo test", Some(0))]), None);
    }

    #[test]
    fn latest_failed_check_is_named_and_truncated() {
        let long = format!("pytest {}", "x.py ".repeat(1_000));
        let red = red_after(&[("npm run lint", Some(1)), (&long, Some(2))]).unwrap();
        assert!(red.starts_with("pytest x.py x") && red.chars().count() <= MAX_COMMAND_CHARS);
        // Not in the middle of a word: it could be a secret.
        assert!(red.ends_with("x.py "), "{red}");
        let red = red_after(&[("pytest", Some(1)), ("ruff check", Some(1)), ("pytest", Some(0))]);
        assert_eq!(red.as_deref(), Some("ruff check"));
    }
}
