//! What a launcher is asked for in its first argument, and who does it.

use std::{ffi::OsString, process::ExitCode};

use super::{
    confine,
    entry::read_plan,
    fault::{Fault, FaultStep},
    launch::{Launch, refuse},
    memory_folder, raw,
    real::RealPaths,
    session, spare, view,
};

/// The first argument that asks for a walled command.
pub(crate) const RUN_COMMAND: &str = "walls:run";
/// The first argument that asks for a launcher whose command is told later.
pub(crate) const AWAIT_COMMAND: &str = "walls:await";
/// The first argument that asks for a holder of namespaces.
pub(crate) const HOLD_SESSION: &str = "walls:session";

/// The first argument that asks for the descriptor of a folder with a layer over it.
pub(crate) const OPEN_VIEW: &str = "walls:view";
/// The first argument that asks for the descriptor of an empty folder in memory.
pub(crate) const OPEN_MEMORY: &str = "walls:memory";

/// Does what the arguments after the program's name ask for: builds walls and runs a command, waits for one, or
/// holds namespaces. It counts on being the only thread.
pub(crate) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    match args.next() {
        Some(request) if request == HOLD_SESSION => session::hold(),
        Some(request) if request == RUN_COMMAND => {
            run(&mut args).unwrap_or_else(|fault| refuse(&fault).into())
        }
        Some(request) if request == AWAIT_COMMAND => {
            spare::serve(&mut args).unwrap_or_else(|fault| refuse(&fault).into())
        }
        Some(request) if request == OPEN_VIEW => {
            view::hand_out(&mut args).unwrap_or_else(|fault| refuse(&fault).into())
        }
        Some(request) if request == OPEN_MEMORY => {
            memory_folder::hand_out(&mut args).unwrap_or_else(|fault| refuse(&fault).into())
        }
        _ => refuse(&Fault::new("run a command", "the request is unknown")).into(),
    }
}

fn run(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw::close_inherited().step(|| "close files".to_owned())?;
    let plan = read_plan(args)?;
    confine::no_core_dumps()?;
    let session = plan.session();
    let launch = Launch::of(plan, args, &mut RealPaths::default())?;
    match session {
        Some(session) => launch.with_namespaces(session, None),
        None => launch.without_namespaces(),
    }
}
