//! What is printed in place of a command: help that was asked for, or what is wrong with the command line.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use crate::{
    args,
    report::{Exit, exit_after_write_error, print_line, report_failure},
};

/// Prints help that was asked for.
pub(crate) fn print_help(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    exit_after_print(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Says what is wrong with the command line.
pub(crate) fn report_misuse(told: &str) -> ExitCode {
    print_line(format_args!("gnoma: {told}"));
    ExitCode::from(Exit::Misused.code())
}

/// The end after something was written to standard output.
fn exit_after_print(written: io::Result<()>) -> ExitCode {
    let exit = match written {
        Ok(()) => Exit::Done,
        Err(error) => exit_after_write_error(error).unwrap_or_else(|error| report_failure(&error)),
    };
    ExitCode::from(exit.code())
}

/// Prints help, the version, or what is wrong with the command line.
pub(crate) fn report_usage_error(error: &clap::Error, line: &[OsString]) -> ExitCode {
    if let Some(instead) = args::foreign_option_advice(error, line) {
        return report_misuse(&format!("{instead}\n`gnoma --help` lists the options"));
    }
    if let Some(told) = args::missing_argument_advice(error, line) {
        return report_misuse(&told);
    }
    if let Some(told) = args::unknown_option_advice(error) {
        print_line(told);
        if let Some(hint) = args::prompt_hint(line) {
            print_line(hint);
        }
        return ExitCode::from(Exit::Misused.code());
    }
    let written = error.print();
    if !error.use_stderr() {
        // The last line may still wait to be written.
        return exit_after_print(written.and_then(|()| io::stdout().flush()));
    }
    if let Some(hint) = args::prompt_hint(line) {
        print_line(hint);
    }
    ExitCode::from(Exit::Misused.code())
}
