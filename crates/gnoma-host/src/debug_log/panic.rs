//! The lines of a panic: where it was, and its backtrace.
//!
//! The message of a panic can quote what people or models wrote, as that of a wrong string index does. So only messages
//! that are a part of the program are logged; of others, the log has the size.

use std::{backtrace::Backtrace, panic::PanicHookInfo, thread};

use super::line;
use crate::clock;

/// Lines of a backtrace that are logged.
const MAX_FRAME_LINES: usize = 200;

/// Has `append` write the lines of every panic from now on, and then does what was done before.
pub(super) fn install_hook(append: impl Fn(&str) + Send + Sync + 'static) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        append(&panic_lines(panic));
        before(panic);
    }));
}

fn panic_lines(panic: &PanicHookInfo<'_>) -> String {
    let backtrace = Backtrace::force_capture().to_string();
    let now_ms = clock::now_ms();
    std::iter::once(describe_panic(panic))
        .chain(frame_lines(&backtrace))
        .map(|line| line::add_timestamp(now_ms, &line))
        .collect()
}

fn describe_panic(panic: &PanicHookInfo<'_>) -> String {
    let thread = thread::current().name().unwrap_or("unnamed").to_owned();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let payload = panic.payload();
    let message = match (payload.downcast_ref::<&'static str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => format!(" message={text:?}"),
        (None, Some(text)) => format!(" message_bytes={}", text.len()),
        (None, None) => String::new(),
    };
    format!("panic thread={thread:?} at={place}{message}")
}

fn frame_lines(backtrace: &str) -> impl Iterator<Item = String> {
    let lines = backtrace.lines().take(MAX_FRAME_LINES);
    lines.map(|line| format!("panic frame={:?}", line.trim()))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, process::Command};

    use super::super::{LogLevel, install};

    /// The log that a child process writes.
    const LOG_FILE: &str = "GNOMA_HOST_TEST_PANIC_LOG";

    #[test]
    fn panic_is_logged_with_backtrace_and_without_message_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gnoma.log");
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "debug_log::panic::tests::panic_child"])
            .env(LOG_FILE, &path)
            .output()
            .unwrap()
            .status;
        assert!(status.success());
        let log = fs::read_to_string(path).unwrap();
        let first = log.lines().nth(1).unwrap();
        assert!(first.contains(" panic thread=\"worker\" at=crates/gnoma-host/src/"), "{log}");
        assert!(first.ends_with(" message=\"a fault of gnoma\""), "{log}");
        assert!(log.contains(" panic frame=\"") && log.contains("panic_child"), "{log}");
        assert!(log.contains(" message_bytes=32\n") && !log.contains("secret"), "{log}");
    }

    #[test]
    #[ignore = "another test runs it in a process of its own"]
    #[expect(clippy::disallowed_methods, reason = "how the test speaks to its child")]
    fn panic_child() {
        let Ok(path) = std::env::var(LOG_FILE) else { return };
        install(PathBuf::from(path), LogLevel::Warn.into(), false).unwrap();
        let run = |work: fn()| {
            let worker = std::thread::Builder::new().name("worker".into()).spawn(work).unwrap();
            assert!(worker.join().is_err());
        };
        run(|| panic!("a fault of gnoma"));
        run(|| panic!("wrong index into `{}`", std::hint::black_box("a secret text")));
    }
}
