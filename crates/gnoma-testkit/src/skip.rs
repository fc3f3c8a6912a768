//! Skipped tests are counted: libtest knows only "passed", "failed" and "ignored", and whether a machine has
//! what a test needs turns out while it runs.

use std::{fs::OpenOptions, io::Write as _, thread};

/// The variable that names the file to which skipped tests are appended, one `test<TAB>reason` a line.
/// The test runner (`cargo xtask test`) sets it for each test program.
pub const SKIPS_VARIABLE: &str = "GNOMA_SKIPS";

/// Records that the calling test cannot run on this machine, with the reason, such as `no tmux`.
/// The test returns right after it; the runner counts and names it in its closing lines.
///
/// The test's name is the name of its thread, so call this from the test itself, not from a thread that it started.
///
/// # Panics
/// If the file cannot be written, since the test would pass silently.
pub fn skip_test(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("main");
    #[expect(
        clippy::disallowed_methods,
        reason = "the runner hands its file to each test program this way"
    )]
    let file = std::env::var_os(SKIPS_VARIABLE);
    if let Some(file) = file {
        let line = format!("{test}\t{reason}\n");
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "cannot record a skipped test in {}: {written:?}", file.display());
    }
}
