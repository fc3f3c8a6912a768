//! An oracle for the judging of commands: whatever is judged to only read is run where nothing can come of
//! it, and what it really did is looked at. An effect is a failure, told with the shortest such command.
//!
//! `GNOMA_ORACLE=100000` runs that many commands, `GNOMA_ORACLE=sweep` every option of every program once with each
//! kind of argument, `GNOMA_ORACLE_SEED` other commands, `GNOMA_ORACLE_TOOLS` is a folder with more programs (below
//! `usr/bin`). `GNOMA_OBSERVE=FILE` observes the commands of a file of JSON lines and prints what each did; `bench/oracle`
//! does that with the files of another observer (`GNOMA_ORACLE_MACHINE`, `GNOMA_ORACLE_PATH`). Without name spaces and
//! overlays there is nothing to run commands in.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test with a main of its own: it is configured by variables, prints what it finds, and ends at a fault"
)]

#[cfg(target_os = "linux")]
mod canary;
#[cfg(target_os = "linux")]
mod grammar;
#[cfg(target_os = "linux")]
mod hunt;
#[cfg(target_os = "linux")]
mod observer;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod view;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [observer::KEEPER] => {
            observer::keep();
            ExitCode::SUCCESS
        }
        [observer::RUNNER, root, seconds] => {
            runner::serve(root, seconds);
            ExitCode::SUCCESS
        }
        words => hunt::test(words),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}
