//! The user, network and IPC namespaces of a session, held open by one idle process.
//!
//! They are shared by all commands of a session, so that a server which one command starts can be
//! reached by the next, and so that a command need not wait for a network to be made. Mounts and
//! processes are each command's own.

use std::{
    fs,
    io::{Read, Write, stdin, stdout},
    process::ExitCode,
};

use rustix::{
    fd::AsFd,
    io::{read, write},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, WaitOptions, getegid, geteuid, getpid, waitpid},
    thread::{CapabilitySet, UnshareFlags, capabilities},
};

use super::{
    fault::{Fault, FaultStep},
    raw_syscalls,
};

/// The line that the holder writes once the namespaces stand.
pub(crate) const READY: &[u8] = b"ready\n";

/// Makes the namespaces, says so, and keeps them until its input is closed.
pub(super) fn hold_session() -> ExitCode {
    match open_namespaces() {
        Ok(()) => {
            let mut nothing = Vec::new();
            let told = stdout().write_all(READY).and_then(|()| stdout().flush());
            // Ends when the owner goes, whichever way it goes.
            told.and_then(|()| stdin().read_to_end(&mut nothing)).ok();
            ExitCode::SUCCESS
        }
        Err(fault) => {
            writeln!(stdout(), "{fault}").ok();
            ExitCode::FAILURE
        }
    }
}

fn open_namespaces() -> Result<(), Fault> {
    let maps = Maps::of_this_process()?;
    let spaces = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    if maps.by_helper {
        unshare_mapped_from_outside(spaces, &maps)?;
    } else {
        raw_syscalls::unshare(spaces).with_step(|| "make namespaces".to_owned())?;
        maps.write("self")?;
    }
    raise_loopback()
}

/// Switches the loopback of the network this process is in on.
pub(super) fn raise_loopback() -> Result<(), Fault> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .with_step(|| "open a socket".to_owned())?;
    raw_syscalls::raise_loopback(socket.as_fd()).with_step(|| "turn on the loopback".to_owned())
}

/// The users and groups that exist inside, each under its own number.
struct Maps {
    users: String,
    groups: String,
    /// More than one number: only a process outside, with the right to be anybody, may say so.
    by_helper: bool,
}

impl Maps {
    /// A user sees himself; root keeps everybody, or could not work on files of others.
    fn of_this_process() -> Result<Self, Fault> {
        let rights = capabilities(None).with_step(|| "read capabilities".to_owned())?.effective;
        if rights.contains(CapabilitySet::SETUID | CapabilitySet::SETGID) {
            let users = identity_map(&read_map("uid_map")?);
            return Ok(Self {
                users,
                groups: identity_map(&read_map("gid_map")?),
                by_helper: true,
            });
        }
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Ok(Self {
            users: format!("{user} {user} 1"),
            groups: format!("{group} {group} 1"),
            by_helper: false,
        })
    }

    fn write(&self, process: &str) -> Result<(), Fault> {
        let set = |file: &str, text: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::write(&path, text).with_step(|| format!("write `{path}`"))
        };
        if !self.by_helper {
            set("setgroups", "deny")?;
        }
        set("uid_map", &self.users)?;
        set("gid_map", &self.groups)
    }
}

fn read_map(file: &str) -> Result<String, Fault> {
    let path = format!("/proc/self/{file}");
    fs::read_to_string(&path).with_step(|| format!("read `{path}`"))
}

/// Maps each number of a map (inside, outside, count) to itself.
fn identity_map(map: &str) -> String {
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, count) = (fields.next()?, fields.nth(1)?);
        Some(format!("{start} {start} {count}\n"))
    };
    map.lines().filter_map(line).collect()
}

/// The maps must be written after the namespace is made, by a process that stayed outside.
fn unshare_mapped_from_outside(spaces: UnshareFlags, maps: &Maps) -> Result<(), Fault> {
    let (made_reader, made_writer) =
        pipe_with(PipeFlags::CLOEXEC).with_step(|| "make a pipe".to_owned())?;
    let holder = getpid().as_raw_nonzero().to_string();
    let helper = raw_syscalls::fork_for(|| {
        let made = matches!(read(&made_reader, &mut [0]), Ok(1));
        u8::from(!made || maps.write(&holder).is_err())
    })
    .with_step(|| "start a helper".to_owned())?;
    raw_syscalls::unshare(spaces).with_step(|| "make namespaces".to_owned())?;
    write(&made_writer, &[1]).with_step(|| "wake the helper".to_owned())?;
    ended_well(helper)
}

fn ended_well(helper: Pid) -> Result<(), Fault> {
    let status =
        waitpid(Some(helper), WaitOptions::empty()).with_step(|| "wait for a helper".to_owned())?;
    match status {
        Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
        _ => Err(Fault::new("map users", "the helper was refused")),
    }
}

#[cfg(test)]
mod tests {
    use super::identity_map;

    #[test]
    fn user_namespace_identity_map_covers_all_ids() {
        assert_eq!(identity_map("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(identity_map("0 100000 65536\n65536 5 1\n"), "0 0 65536\n65536 65536 1\n");
    }
}
