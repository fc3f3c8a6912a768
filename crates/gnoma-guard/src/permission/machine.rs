//! Which commands ask about the machine: about its processes, ports and mounts, which the sandbox can show, and about
//! what only a program outside can answer. In the sandbox either would get an answer about the sandbox.

use std::path::Path;

use gnoma_core::tool::MachineView;
use gnoma_shell::{Analysis, Effect, FilePlace, Invocation};

use super::{World, words::program_of};

/// Programs that list processes, sockets and routes, of which a sandbox has its own.
const LISTING_PROCESSES: [&str; 11] =
    ["ip", "ipcs", "lsipc", "netstat", "pgrep", "pidof", "pidstat", "ps", "pstree", "ss", "top"];
/// Programs that tell of mounts, users, load and what was logged, where a sandbox differs a little.
const DESCRIBING: [&str; 17] = [
    "df",
    "findmnt",
    "free",
    "groups",
    "hostname",
    "id",
    "iostat",
    "journalctl",
    "last",
    "lsblk",
    "mount",
    "mpstat",
    "uptime",
    "users",
    "vmstat",
    "w",
    "who",
];
/// Programs that ask a service, look into other processes, or use devices.
const ASKING_OUTSIDE: [&str; 76] = [
    "adb",
    "arp",
    "atq",
    "bluetoothctl",
    "bootctl",
    "brctl",
    "buildah",
    "busctl",
    "colima",
    "coredumpctl",
    "crictl",
    "crontab",
    "ctr",
    "dmesg",
    "docker",
    "docker-compose",
    "ethtool",
    "finger",
    "fuser",
    "homectl",
    "hostnamectl",
    "ifconfig",
    "incus",
    "initctl",
    "iotop",
    "iwconfig",
    "jps",
    "k3s",
    "kind",
    "lastb",
    "lastlog",
    "limactl",
    "localectl",
    "loginctl",
    "lpq",
    "lpstat",
    "lsfd",
    "lslocks",
    "lsns",
    "lsof",
    "lsusb",
    "lxc",
    "lxd",
    "machinectl",
    "minikube",
    "multipass",
    "nerdctl",
    "networkctl",
    "nmcli",
    "nvidia-smi",
    "pactl",
    "pinky",
    "pm2",
    "pmap",
    "podman",
    "pwdx",
    "rc-service",
    "rc-status",
    "resolvectl",
    "rocm-smi",
    "route",
    "screen",
    "sensors",
    "service",
    "snap",
    "supervisorctl",
    "sv",
    "systemctl",
    "systemd-analyze",
    "timedatectl",
    "tmux",
    "udevadm",
    "upower",
    "vboxmanage",
    "virsh",
    "wpctl",
];
/// Files about processes that are the same in a sandbox.
const SAME_INSIDE: [&str; 12] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/swaps",
    "/proc/sys",
    "/proc/thread-self",
    "/proc/uptime",
    "/proc/version",
    "/proc/vmstat",
];
/// Devices that a sandbox has as well.
const DEVICES_INSIDE: [&str; 11] = [
    "/dev/fd",
    "/dev/full",
    "/dev/null",
    "/dev/pts",
    "/dev/random",
    "/dev/shm",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/tty",
    "/dev/urandom",
];
/// The device that is full of zeros.
const ZERO: &str = "/dev/zero";

/// What a simple command asks about the machine.
pub(super) fn of_command(command: &Invocation, world: &World<'_>) -> MachineView {
    if !world.sandboxed {
        return MachineView::None;
    }
    let program = program_of(command);
    let is_outside = ASKING_OUTSIDE.contains(&program);
    if is_outside && !only_describes_itself(command) && world.repositories.can_answer(program) {
        return MachineView::Outside;
    }
    if names_processes_of_sockets(program, command) {
        return MachineView::Outside;
    }
    let is_shown = LISTING_PROCESSES.contains(&program)
        || DESCRIBING.contains(&program)
        || command.effects.iter().any(reads_machine);
    if is_shown { MachineView::Shown } else { MachineView::None }
}

/// Whether a line lists processes and also does what a command that only looks cannot do.
pub(super) fn does_more_than_look(analysis: &Analysis, world: &World<'_>) -> bool {
    let lists = |command: &Invocation| LISTING_PROCESSES.contains(&program_of(command));
    world.sandboxed && !analysis.is_read_only() && analysis.commands.iter().any(lists)
}

/// What a whole line asks about the machine.
pub(super) fn of_line(analysis: &Analysis, world: &World<'_>) -> MachineView {
    let parts = analysis.commands.iter().map(|command| of_command(command, world));
    match parts.max().unwrap_or_default() {
        _ if does_more_than_look(analysis, world) => MachineView::Outside,
        // Its other parts need the sandbox.
        MachineView::Shown if !analysis.is_read_only() => MachineView::None,
        view => view,
    }
}

/// Whether all of a line may run outside the sandbox with one approval: each part only looks, or is one of those that
/// the approval is about.
pub(super) fn may_run_outside(analysis: &Analysis, world: &World<'_>) -> bool {
    let is_such = |command: &Invocation| {
        of_command(command, world) != MachineView::None
            || command.effects.iter().all(|effect| matches!(effect, Effect::Read(_)))
    };
    does_more_than_look(analysis, world) || analysis.commands.iter().all(is_such)
}

/// `docker --version`: nothing is asked.
fn only_describes_itself(command: &Invocation) -> bool {
    let is_one = |word: &String| matches!(word.as_str(), "--version" | "--help" | "-V");
    command.words.iter().skip(1).flatten().any(is_one)
}

/// `ss -p`, `netstat -tulpn`: for the names it looks into other processes.
fn names_processes_of_sockets(program: &str, command: &Invocation) -> bool {
    let names = |word: &String| match word.strip_prefix("--") {
        Some(long) => matches!(long, "processes" | "process" | "programs" | "program"),
        None => word.strip_prefix('-').is_some_and(|letters| letters.contains('p')),
    };
    matches!(program, "ss" | "netstat") && command.words.iter().skip(1).flatten().any(names)
}

fn reads_machine(effect: &Effect) -> bool {
    let Effect::Read(place) = effect else { return false };
    let path = match place {
        FilePlace::Path(path) => path.as_path(),
        FilePlace::Pattern { base, .. } => base.as_path(),
        FilePlace::Unknown(_) => return false,
    };
    let is_below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let is_same = is_below(&SAME_INSIDE) || is_below(&DEVICES_INSIDE) || path == Path::new(ZERO);
    is_below(&["/proc", "/dev"]) && !is_same
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use gnoma_shell::StartContext;

    use super::*;
    use crate::git::NoRepositories;

    fn view_of(line: &str) -> MachineView {
        let roots = [PathBuf::from("/w")];
        let resolve = |path: &Path| path.to_path_buf();
        let world = World {
            cwd: Path::new("/w"),
            home: Some(Path::new("/home/ada")),
            roots: &roots,
            config_dirs: &[],
            programs: &[],
            copies: &[],
            trusted: true,
            sandboxed: true,
            resolve: &resolve,
            list: &|_| Some(Vec::new()),
            repositories: &NoRepositories,
        };
        let start = StartContext { cwd: "/w".into(), home: Some("/home/ada".into()) };
        of_line(&gnoma_shell::analyse(line, &start), &world)
    }

    #[test]
    fn processes_ports_and_mounts_are_shown() {
        for line in [
            "ps aux | grep dev",
            "pgrep -f vite || echo not running",
            "echo $(pidof nginx)",
            "ss -ltn",
            "netstat -ltn 2>/dev/null | grep 3000",
            "top -b -n1 | head",
            "uptime",
            "df -h /",
            "cat /proc/1/cmdline",
            "cat /proc/net/tcp | wc -l",
            "ls /dev/video0",
            "who",
            "journalctl -u ssh --since '1 hour ago' | tail",
        ] {
            assert_eq!(view_of(line), MachineView::Shown, "{line}");
        }
    }

    #[test]
    fn services_and_what_looks_into_processes_are_outside() {
        for line in [
            "docker ps 2>/dev/null | grep web || echo not running",
            "lsof -i :3000",
            "fuser 3000/tcp",
            "ss -ltnp",
            "netstat -tulpn",
            "systemctl is-active nginx",
            "tmux ls",
            "crontab -l",
            "ps aux > list.txt",
            "kill $(pgrep node)",
        ] {
            assert_eq!(view_of(line), MachineView::Outside, "{line}");
        }
    }

    #[test]
    fn other_commands_ask_nothing_about_the_machine() {
        for line in [
            "ls -l",
            "cat /proc/cpuinfo",
            "docker --version",
            "echo x > /dev/null",
            "make -j$(nproc)",
        ] {
            assert_eq!(view_of(line), MachineView::None, "{line}");
        }
    }
}
