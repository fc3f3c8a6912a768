//! What a launcher is asked for in its first argument, and who does it.

use std::{
    env,
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    process::ExitCode,
};

use super::{
    confine,
    entry::read_plan,
    fault::{Fault, FaultStep},
    launch::{Launch, report_fault},
    memory_folder, raw_syscalls,
    real::RealPaths,
    session, spare, view,
};
use crate::plan::MISSING_SESSION;

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
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    // Without it the launcher only looks like what it launches.
    hide_arguments().ok();
    let mut args = args.into_iter();
    match args.next() {
        Some(request) if request == HOLD_SESSION => session::hold_session(),
        Some(request) if request == RUN_COMMAND => {
            run_command(&mut args).unwrap_or_else(|fault| report_fault(&fault).into())
        }
        Some(request) if request == AWAIT_COMMAND => {
            spare::serve_spare(&mut args).unwrap_or_else(|fault| report_fault(&fault).into())
        }
        Some(request) if request == OPEN_VIEW => {
            view::hand_out(&mut args).unwrap_or_else(|fault| report_fault(&fault).into())
        }
        Some(request) if request == OPEN_MEMORY => {
            memory_folder::hand_out(&mut args).unwrap_or_else(|fault| report_fault(&fault).into())
        }
        _ => report_fault(&Fault::new("run a command", "the request is unknown")).into(),
    }
}

/// The fields of `/proc/PID/stat` behind the name that say where the arguments lie (proc_pid_stat(5): 48 and 49; the
/// first one behind the name is 3).
const ARGUMENTS_AT: usize = 48 - 3;

/// Takes what follows the request out of what is seen of this process: a command such as `pgrep -f vite || echo none`
/// would find its own launcher. What was read of the arguments before stays.
fn hide_arguments() -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let mut places = fields.split_whitespace().skip(ARGUMENTS_AT).map(str::parse::<u64>);
    let (Some(Ok(start)), Some(Ok(end))) = (places.next(), places.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let kept: usize = env::args_os().take(2).map(|word| word.len() + 1).sum();
    let start = start.saturating_add(kept.try_into().unwrap_or(u64::MAX));
    let hidden = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    memory.write_all_at(&vec![0; hidden], start)
}

fn run_command(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw_syscalls::close_inherited().with_step(|| "close files".to_owned())?;
    let plan = read_plan(args)?;
    confine::no_core_dumps()?;
    let session = plan.session_process();
    if plan.session == Some(MISSING_SESSION) {
        return Err(Fault::new("run a command", "namespaces are refused, and required"));
    }
    let launch = Launch::from_plan(plan, args, &mut RealPaths::default())?;
    match session {
        Some(session) => launch.with_namespaces(session, None),
        None if launch.policy.overlays.is_empty() => launch.without_namespaces(),
        // Namespaces may be refused from one moment to the next. Without mounts there is no layer, and what the command
        // changes would be changed for good.
        None => Err(Fault::new("lay a layer over the workspace", "namespaces are refused")),
    }
}
