//! Runs a command inside walls, with a policy from its arguments: `write=PATH … -- COMMAND`.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::PathBuf,
    process::{Command, ExitCode, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use gnoma_sandbox::{
    Overlay, Policy, ReadScope, SCRUBBED, SessionSandbox, Strength, Support, launcher,
    layer::{Layer, Site},
};

use crate::trial;

/// What the arguments asked for besides a policy.
#[derive(Default)]
struct Wishes {
    policy: Policy,
    hidden: Vec<String>,
    shown: Vec<String>,
    no_namespaces: bool,
    /// Where a layer lies over all that can be written.
    site: Option<PathBuf>,
    /// What lies over the working folder, which can only be looked at.
    view: Option<PathBuf>,
    times: u32,
    no_walls: bool,
    spare: bool,
    /// What the launcher tells is printed.
    tells: bool,
    /// The spare launcher is told nothing.
    silent: bool,
    /// What happens between getting ready and the command.
    meanwhile: Option<String>,
}

/// How long a spare launcher may take to get ready, and folders to look settled to it.
const TO_GET_READY: Duration = Duration::from_millis(60);

/// Ends with the command's code; a signal counts from 128.
pub(crate) fn main(args: &mut impl Iterator<Item = String>) -> ExitCode {
    let mut wishes = Wishes { times: 1, ..Wishes::default() };
    for arg in args.by_ref().take_while(|arg| arg != "--") {
        wishes.note(&arg);
    }
    let command: Vec<String> = args.collect();
    let mut support = Support::detect();
    if wishes.no_namespaces {
        support.parts.retain(|part| part.name != "namespaces");
    }
    if support.strength == Strength::None {
        return ExitCode::FAILURE;
    }
    let walls = SessionSandbox::new(launcher::ITSELF.into(), &support);
    let site = wishes.site.take();
    let layer = site
        .and_then(|site| Site::in_folder(site).create_layer(wishes.policy.writable.clone()).ok());
    wishes.policy.overlays = layer.as_ref().map(Layer::overlays).unwrap_or_default();
    if let (Some(upper), Ok(at)) = (wishes.view.take(), std::path::absolute(".")) {
        let lower = vec![upper, at.clone()];
        wishes.policy.overlays.push(Overlay { at, lower, ..Overlay::default() });
    }
    let code = wishes.run(&walls, &command);
    if let Some(changes) = layer.and_then(|layer| layer.changes().ok()) {
        trial::tell(&changes);
    }
    code
}

impl Wishes {
    fn note(&mut self, arg: &str) {
        let policy = &mut self.policy;
        let (key, value) = arg.split_once('=').unwrap_or((arg, ""));
        match key {
            "write" => policy.writable.push(value.into()),
            "protect" => policy.protected.push(value.into()),
            "hide" => self.hidden.push(value.to_owned()),
            "show" => self.shown.push(value.to_owned()),
            "seal" => policy.sealed.push(value.into()),
            "outside" => policy.outside_names.push(value.into()),
            "absent" => policy.absent.push(value.into()),
            "machine" => policy.shows_machine = true,
            "temporary" => policy.temporary = Some(value.into()),
            "beside" => policy.shown_temporary.push(value.into()),
            "alone" => policy.alone = true,
            "no-sockets" => policy.local_sockets = false,
            "sockets" => policy.local_sockets = true,
            "scrub" => policy.scrub = SCRUBBED.map(str::to_owned).to_vec(),
            "git" => policy.git_hardening = true,
            "bare" => policy.bare_repository = true,
            "network" => policy.network = true,
            "no-loopback" => policy.loopback = false,
            "processes" => policy.limits.processes = value.parse().unwrap_or(64),
            "no-namespaces" => self.no_namespaces = true,
            "umask" => policy.umask = u32::from_str_radix(value, 8).ok(),
            "times" => self.times = value.parse().unwrap_or(1),
            "no-walls" => self.no_walls = true,
            "spare" => self.spare = true,
            "tells" => self.tells = true,
            "silent" => self.silent = true,
            "layer" => self.site = Some(value.into()),
            "view" => self.view = Some(value.into()),
            "meanwhile" => self.meanwhile = Some(value.to_owned()),
            _ => {}
        }
        let hidden: Vec<_> = self.hidden.iter().map(Into::into).collect();
        policy.readable = match &self.shown[..] {
            [] if hidden.is_empty() => ReadScope::All,
            [] => ReadScope::Except(hidden),
            shown => ReadScope::Only { shown: shown.iter().map(Into::into).collect(), hidden },
        };
    }

    fn run(&self, walls: &SessionSandbox, command: &[String]) -> ExitCode {
        let Some((program, args)) = command.split_first() else {
            return ExitCode::FAILURE;
        };
        let mut code = ExitCode::FAILURE;
        for _ in 0..self.times {
            let (took, status) = self.once(walls, program, args);
            if self.times > 1 {
                writeln!(io::stdout(), "{}", took.as_micros()).ok();
            }
            code = status.map_or(ExitCode::FAILURE, |status| {
                let code = status.code().or_else(|| Some(128 + status.signal()?));
                ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
            });
        }
        if let Some(weakness) = walls.namespace_failure() {
            writeln!(std::io::stderr(), "weakness: {weakness}").ok();
        }
        code
    }

    /// Runs the command once; tells how long it took.
    fn once(
        &self,
        walls: &SessionSandbox,
        program: &str,
        args: &[String],
    ) -> (Duration, io::Result<ExitStatus>) {
        let spare = self.spare.then(|| walls.spare_command(&self.policy)).flatten();
        if let Some(spare) = spare {
            return self.by_spare(walls, spare, program, args);
        }
        let start = Instant::now();
        let mut command = if self.no_walls {
            let mut command = Command::new(program);
            command.args(args);
            command
        } else {
            walls.command(program, args, &self.policy)
        };
        let status = command.process_group(0).stdin(Stdio::null()).status();
        (start.elapsed(), status)
    }

    /// The same through a socket, where the launcher tells which sealed files were tried.
    fn by_socket(
        &self,
        walls: &SessionSandbox,
        mut spare: Command,
        program: &str,
        args: &[String],
    ) -> (Duration, io::Result<ExitStatus>) {
        let run = || {
            let (mut ours, theirs) = UnixStream::pair()?;
            let mut child = spare.process_group(0).stdin(OwnedFd::from(theirs)).spawn()?;
            // It holds the launcher's end of the socket.
            drop(spare);
            let here = std::path::absolute(".").unwrap_or_default();
            let order = walls.encode_order(program, args, &here, &self.policy).unwrap_or_default();
            ours.write_all(&order)?;
            ours.shutdown(Shutdown::Write)?;
            let status = child.wait();
            let mut told = Vec::new();
            ours.read_to_end(&mut told)?;
            for message in told.as_chunks().0 {
                if let Some(place) = gnoma_sandbox::decode_tried_file(*message) {
                    writeln!(io::stdout(), "tried {place}")?;
                }
            }
            status
        };
        (Duration::ZERO, run())
    }

    fn by_spare(
        &self,
        walls: &SessionSandbox,
        mut spare: Command,
        program: &str,
        args: &[String],
    ) -> (Duration, io::Result<ExitStatus>) {
        // Somebody other than the launcher's owner does what happens meanwhile.
        sleep(TO_GET_READY);
        if self.tells {
            return self.by_socket(walls, spare, program, args);
        }
        let mut child = match spare.process_group(0).stdin(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => return (Duration::ZERO, Err(error)),
        };
        sleep(TO_GET_READY);
        if let Some(script) = &self.meanwhile {
            Command::new("sh").args(["-c", script]).status().ok();
        }
        let start = Instant::now();
        let here = std::path::absolute(".").unwrap_or_default();
        if let (Some(mut input), Some(order), false) = (
            child.stdin.take(),
            walls.encode_order(program, args, &here, &self.policy),
            self.silent,
        ) {
            input.write_all(&order).ok();
        }
        let status = child.wait();
        (start.elapsed(), status)
    }
}
