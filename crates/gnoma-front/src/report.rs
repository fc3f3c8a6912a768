//! Exit codes, and error messages of the program.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, Write as _},
    sync::{Mutex, PoisonError},
};

use anyhow::Context as _;
use gnoma_core::{
    ErrorKind, ProviderError, error_policy::ExitMeaning, session::NoticeLevel,
    system_error::without_numbers,
};
use gnoma_engine::routing::OWN;
use gnoma_host::{HostError, HostErrorKind, Notices};

use crate::screen;

/// The way in which the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Code 0: the program succeeded.
    Done,
    /// Code 0: whoever read standard output has left, as `head` does.
    Unread,
    /// Code 1: something failed.
    Failed,
    /// Code 2: the command line or the configuration is wrong.
    Misused,
    /// Code 3: the provider refused the key.
    NotAuthorised,
    /// Code 4: something needed approval, and nobody could be asked.
    NotApproved,
    /// Code 5: a cap on money is reached.
    OverBudget,
    /// Code 6: the limit of model calls is reached.
    OverLimit,
    /// Code 7: no model could answer.
    NoModel,
    /// Code 8: no answer has the form that was asked for.
    Unfit,
    /// Code 9: a review found what it was told to fail for.
    Found,
    /// Code 130: the person stopped it.
    Interrupted,
    /// Code 128 and the signal's number: the system ended it.
    Signalled(i32),
}

/// The offset to which a signal's number is added to get an exit code.
const OF_SIGNALS: i32 = 128;
/// The code where a person has stopped something, as SIGINT has it.
const OF_INTERRUPT: u8 = 130;

impl Exit {
    /// Returns the exit for a program that ends after a failed model call.
    pub(crate) fn from_provider_error(error: &ProviderError) -> Self {
        Self::from_error_kind(error.kind, error.provider == OWN)
    }

    /// The same, by what kind of failure it was; `is_own`: a limit of gnoma's was in the way.
    fn from_error_kind(kind: ErrorKind, is_own: bool) -> Self {
        match kind {
            ErrorKind::Quota if is_own => Self::OverBudget,
            ErrorKind::NotFound if is_own => Self::NoModel,
            kind => match kind.policy().exit {
                ExitMeaning::NotAuthorised => Self::NotAuthorised,
                ExitMeaning::NoModel => Self::NoModel,
                ExitMeaning::Failed => Self::Failed,
            },
        }
    }

    /// Returns the exit code that the program's caller receives.
    pub fn code(self) -> u8 {
        match self {
            Self::Done | Self::Unread => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::NotAuthorised => 3,
            Self::NotApproved => 4,
            Self::OverBudget => 5,
            Self::OverLimit => 6,
            Self::NoModel => 7,
            Self::Unfit => 8,
            Self::Found => 9,
            Self::Interrupted => OF_INTERRUPT,
            Self::Signalled(number) => u8::try_from(OF_SIGNALS + number).unwrap_or(OF_INTERRUPT),
        }
    }
}

/// Lines that wait while somebody else draws on the terminal.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);
/// More lines than this are not kept waiting.
const MAX_HELD: usize = 100;

/// Writes a line to standard error, and ignores that nobody can read it.
pub fn print_line(text: impl fmt::Display) {
    let text = without_numbers(&text.to_string()).into_owned();
    match HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(held) if held.len() < MAX_HELD => held.push(text),
        Some(_) => (),
        None => {
            let _closed = writeln!(io::stderr(), "{}", screen::mark_unsafe_chars(&text));
        }
    }
}

/// Returns a sink that writes the host's notices to standard error.
pub fn stderr_notices() -> Notices {
    Notices::with_sink(|level, text| match level {
        NoticeLevel::Info => print_line(format_args!("note: {text}")),
        NoticeLevel::Warning => print_warning(text),
    })
}

/// The latest warnings, so that none appears twice.
static WARNINGS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
/// More warnings than this are not remembered.
const MAX_WARNINGS: usize = 64;

/// Writes a warning to standard error, unless it is one of the latest.
pub fn print_warning(text: &str) {
    if is_new_warning(text) {
        print_line(format_args!("warning: {text}"));
    }
}

/// True if a warning is not among the latest ones. The function adds it to them.
pub(crate) fn is_new_warning(text: &str) -> bool {
    let mut latest = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = !latest.iter().any(|known| known == text);
    if is_new {
        if latest.len() == MAX_WARNINGS {
            latest.pop_front();
        }
        latest.push_back(text.to_owned());
    }
    is_new
}

/// Holds the lines of [`print_line`] back from now on, while a screen is drawn.
pub fn hold_lines() {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Writes the lines that were held back, and holds none back from now on.
pub fn release_lines() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    held.unwrap_or_default().iter().for_each(print_line);
}

/// Says a line to people on standard error, dim.
pub(crate) fn say_dim(text: &str) {
    let _closed = writeln!(io::stderr(), "\x1b[2m{}\x1b[0m", screen::mark_unsafe_chars(text));
}

/// Maps a failed write to standard output to the way in which the program ends.
///
/// # Errors
/// The failure is more than a reader that has left: what was to be written is lost.
pub fn exit_after_write_error(error: io::Error) -> anyhow::Result<Exit> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(Exit::Unread),
        _ => Err(error).context("cannot write to standard output"),
    }
}

/// Reports an error on standard error and chooses the exit.
pub fn report_failure(error: &anyhow::Error) -> Exit {
    if let Some(error) = error.downcast_ref::<HostError>() {
        print_line(format_args!("gnoma: {error}"));
        return match error.kind {
            HostErrorKind::Usage | HostErrorKind::Held => Exit::Misused,
            HostErrorKind::Provider(kind) => Exit::from_error_kind(kind, false),
            HostErrorKind::NotFound | HostErrorKind::Failure => Exit::Failed,
        };
    }
    if let Some(error) = error.downcast_ref::<ProviderError>() {
        report_provider_error(error);
        return Exit::from_provider_error(error);
    }
    print_line(format_args!("gnoma: {error:#}"));
    Exit::Failed
}

/// Reports a provider's failure: what happened, then what to do.
pub(crate) fn report_provider_error(error: &ProviderError) {
    print_line(format_args!("gnoma: {error}"));
    if let Some(hint) = &error.hint {
        print_line(hint);
    }
}
