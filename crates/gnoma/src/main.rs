//! The `gnoma` command: reads what the user wants, wires the crates together, reports.
//!
//! Only this crate reads the environment, the working folder and the settings as a whole; the others
//! get what they need as options.

mod args;
mod commands;
mod debugging;
mod demo;
mod environment;
mod launch_request;
mod metrics;
mod qr;
mod server;
mod tui;
mod usage_error;
mod web;
mod web_devices;

use std::{panic::resume_unwind, path::Path, process::ExitCode, thread};

use anyhow::{Context as _, Result};
use clap::Parser;
use futures_util::future::LocalBoxFuture;
use gnoma_claude::codex;
use gnoma_front::{
    self as front, answer_schema, prompt, report, screen, session_resume, table, terminal,
};
use gnoma_sandbox::launcher;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::{Args, LineAnswer},
    environment::ProcessEnvironment,
    report::Exit,
};

/// The size of the stack that everything but the sandbox's own processes runs on.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    // The walls around a command are built by a fresh copy of this program, before anything else.
    let mut words = std::env::args_os().skip(1).peekable();
    if words.peek().is_some_and(|word| launcher::is_request(word)) {
        return launcher::main(words);
    }
    // The stack of the first thread has the size that the shell allows (`ulimit -s`), which may be too small.
    let started = thread::Builder::new().name("main".to_owned()).stack_size(STACK_BYTES).spawn(run);
    match started {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => run(),
    }
}

/// Runs what the command line asks for.
fn run() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    match args::answer_line(&line) {
        Some(LineAnswer::Help(text)) => return usage_error::print_help(text),
        Some(LineAnswer::Mistake(told)) => return usage_error::report_misuse(&told),
        None => (),
    }
    let line = args::rewrite_line(&line).unwrap_or(line);
    if let Some(words) = gnoma_claude::command_words(&line) {
        return run_command(None, |around| {
            Box::pin(gnoma_claude::run(words, around, debugging::start_full_log))
        });
    }
    if let Some(words) = codex::command_words(&line) {
        return run_command(None, |around| Box::pin(codex::run(words, around)));
    }
    let args = match Args::try_parse_from(&line) {
        Ok(args) => args,
        Err(error) => return usage_error::report_usage_error(&error, &line),
    };
    let log = args.turn.log.clone();
    run_command(log.as_deref(), |around| Box::pin(commands::run(args, around)))
}

/// Runs a command in this process's environment, with a debug log if the command line or the environment asks for one.
fn run_command(
    log: Option<&Path>,
    command: impl FnOnce(&ProcessEnvironment) -> LocalBoxFuture<'_, Result<Exit>>,
) -> ExitCode {
    let around = environment::read_process();
    let exit = match debugging::start_log(log, &around) {
        Ok(()) => block_on(command(&around)),
        Err(error) => Err(error.into()),
    };
    ExitCode::from(exit.unwrap_or_else(|error| report::report_failure(&error)).code())
}

/// Waits for a command to end. It is boxed, so that this and the runtime are compiled once for all commands.
fn block_on(command: LocalBoxFuture<'_, Result<Exit>>) -> Result<Exit> {
    // One thread is enough: a session waits for the network or for a process nearly all the time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start")?;
    let exit = runtime.block_on(async {
        // A file at its limit (`ulimit -f`) must fail to be written, not end the program. Once a handler is there, it
        // stays.
        let _handled = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
        command.await
    });
    // Whatever still blocks (a question on the terminal) must not hold up the end.
    runtime.shutdown_background();
    exit
}
