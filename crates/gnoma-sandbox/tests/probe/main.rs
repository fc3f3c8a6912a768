//! What the tests run: the launcher itself, a program that runs commands inside walls, and attempts
//! to break out. Not part of gnoma.

mod act;
mod inside;
mod trial;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.peek().is_some_and(|first| gnoma_sandbox::launcher::is_request(first)) {
        return gnoma_sandbox::launcher::main(args);
    }
    let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
    match args.next().as_deref() {
        Some("inside") => inside::main(&mut args),
        Some("trial") => trial::main(&mut args),
        Some("view") => trial::view(&mut args),
        Some("ops-lines") => trial::ops_lines(),
        Some("ops") => trial::ops(&mut args),
        Some("act") => act::main(&mut args),
        _ => ExitCode::FAILURE,
    }
}
