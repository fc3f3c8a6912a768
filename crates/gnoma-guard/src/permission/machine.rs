//! Commands about the machine (processes, ports, mounts), which the sandbox would answer wrongly. In the sandbox they
//! would get an answer about the sandbox, or fail.

use std::{
    ffi::OsString,
    path::{Component, Path},
};

use gnoma_core::{session::PermissionMode, tool::MachineView};
use gnoma_shell::{Analysis, Effect, FilePlace, Invocation};

use super::{JudgementContext, command_words::program_of, opinion::Opinion, processes};

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
/// Programs that run another with more rights.
const RAISING: [&str; 6] = ["doas", "pkexec", "run0", "runas", "su", "sudo"];
/// Programs that may write elsewhere than their words seem to say, by the names in an archive or by options.
const WRITING_MORE: [&str; 29] = [
    "7z",
    "7za",
    "7zr",
    "7zz",
    "ar",
    "arj",
    "cargo",
    "cpio",
    "cscope",
    "csync2",
    "ctags",
    "detox",
    "etags",
    "fdupes",
    "jdupes",
    "lsyncd",
    "mmv",
    "pax",
    "prename",
    "pscp",
    "rar",
    "rcp",
    "rename",
    "rename.ul",
    "rsync",
    "scp",
    "unar",
    "unison",
    "unrar",
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

/// Returns what a simple command asks about the machine.
pub(super) fn view_for_command(command: &Invocation, world: &JudgementContext<'_>) -> MachineView {
    if !world.sandboxed {
        return MachineView::None;
    }
    let program = program_of(command);
    let asks = ASKING_OUTSIDE.contains(&program) && !only_describes_itself(command);
    if asks && world.repositories.can_answer(program) {
        return MachineView::Outside;
    }
    if names_processes_of_sockets(program, command) || processes::looks_into_process(command) {
        return MachineView::Outside;
    }
    let is_shown = looks_at_processes(command)
        || DESCRIBING.contains(&program)
        || command.effects.iter().any(reads_machine);
    match (is_shown, asks) {
        (true, _) => MachineView::Shown,
        (false, true) => MachineView::Absent,
        (false, false) => MachineView::None,
    }
}

fn looks_at_processes(command: &Invocation) -> bool {
    LISTING_PROCESSES.contains(&program_of(command)) || processes::names_process(command)
}

/// Reports whether a command runs something with the rights of another user.
pub(super) fn acts_as_another(command: &Invocation) -> bool {
    RAISING.contains(&program_of(command))
}

/// The reason why a line must run outside: it needs the processes of the machine and does what a command that only looks
/// cannot do, or it does what no sandbox allows.
fn reason_to_leave(analysis: &Analysis, world: &JudgementContext<'_>) -> Option<&'static str> {
    let acts = || analysis.commands.iter().any(processes::sends_signals);
    if !world.sandboxed || (analysis.is_read_only() && !acts()) {
        return None;
    }
    if analysis.commands.iter().any(acts_as_another) {
        return Some("the sandbox lets nothing act as another user");
    }
    if makes_new_at_home(analysis, world) {
        return Some("the sandbox lets nothing new be made in your home");
    }
    if processes::signals_others(analysis) {
        return Some("it signals processes outside the sandbox");
    }
    let looks = analysis.commands.iter().any(looks_at_processes)
        || processes::other_words_name_process(analysis);
    looks.then_some("it lists processes or sockets of the machine, and does more")
}

/// Reports whether a line makes a file or folder directly in the home and does nothing else that cannot be told. A
/// sandbox that let names be made there would let start-up files be made, too.
fn makes_new_at_home(analysis: &Analysis, world: &JudgementContext<'_>) -> bool {
    let is_new = |effect: &Effect| match effect {
        Effect::Write(FilePlace::Path(path)) => is_new_at_home(path, world),
        _ => false,
    };
    // Outside nothing holds the names in a folder that decide over later runs: only what is named is written.
    let is_plain = |effect: &Effect| match effect {
        Effect::Write(FilePlace::Path(path)) => {
            is_new_at_home(path, world) || !is_filled_folder(path, world)
        }
        Effect::Delete(FilePlace::Path(_)) => true,
        _ => effect.is_reading(),
    };
    let is_of_clone = |effect: &Effect| {
        effect.is_reading()
            || matches!(effect, Effect::Repository(_) | Effect::Network(_) | Effect::Write(_))
    };
    let is_told = |command: &Invocation| {
        let clones =
            |effect: &Effect| matches!(effect, Effect::Repository(what) if what == "git clone");
        if command.effects.iter().any(clones) {
            // Its other place to write is only where it would be without a folder's name.
            command.effects.iter().any(is_new) && command.effects.iter().all(is_of_clone)
        } else {
            !WRITING_MORE.contains(&program_of(command)) && command.effects.iter().all(is_plain)
        }
    };
    analysis.unparsed.is_none()
        && analysis.commands.iter().all(is_told)
        && analysis.commands.iter().flat_map(|command| &command.effects).any(is_new)
}

/// Reports whether a path is a folder of the workspace with something in it, the home, or a folder above one of them.
fn is_filled_folder(path: &Path, world: &JudgementContext<'_>) -> bool {
    let real = (world.resolve)(path);
    let home = world.home.map(|home| (world.resolve)(home));
    world.roots.iter().any(|root| root.starts_with(&real))
        || home.is_some_and(|home| home.starts_with(&real))
        || (world.list)(&real).is_some_and(|names| !names.is_empty())
}

/// Reports whether a path is in the home, outside the workspace, and begins with a name that is not there.
fn is_new_at_home(path: &Path, world: &JudgementContext<'_>) -> bool {
    let Some(home) = world.home.map(|home| (world.resolve)(home)) else { return false };
    let real = (world.resolve)(path);
    let Ok(below) = real.strip_prefix(&home) else { return false };
    let Some(Component::Normal(name)) = below.components().next() else { return false };
    let is_inside = world.roots.iter().any(|root| real.starts_with(root));
    let is_absent = |entries: Vec<OsString>| entries.iter().all(|entry| entry.as_os_str() != name);
    !is_inside && (world.list)(&home).is_some_and(is_absent)
}

/// The question that a line is which the sandbox can neither run nor try.
pub(super) fn machine_question(
    analysis: &Analysis,
    world: &JudgementContext<'_>,
    mode: PermissionMode,
) -> Option<Opinion> {
    let why = reason_to_leave(analysis, world)?;
    Some(match mode {
        PermissionMode::Plan | PermissionMode::Deny => Opinion::deny(format!("mode {mode}: {why}")),
        PermissionMode::Bypass => Opinion::allow(format!("mode bypass: {why}")),
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::AcceptEdits => {
            Opinion::ask(why)
        }
    })
}

/// Reports whether a trial could not tell what a line says about the machine: the processes in a trial are those of
/// the sandbox.
pub(super) fn misleads_on_trial(analysis: &Analysis, world: &JudgementContext<'_>) -> bool {
    is_about_machine(of_line(analysis, world))
}

/// Reports whether a sandbox without a view of the machine would give a wrong answer.
fn is_about_machine(view: MachineView) -> bool {
    matches!(view, MachineView::Shown | MachineView::Outside)
}

/// Reports whether a line does nothing but look at the machine, which the sandbox of reading commands shows.
pub(super) fn only_looks(analysis: &Analysis, world: &JudgementContext<'_>) -> bool {
    analysis.is_read_only() && of_line(analysis, world) == MachineView::Shown
}

/// Returns what a whole line asks about the machine.
pub(super) fn of_line(analysis: &Analysis, world: &JudgementContext<'_>) -> MachineView {
    if reason_to_leave(analysis, world).is_some() {
        return MachineView::Outside;
    }
    let parts = analysis.commands.iter().map(|command| view_for_command(command, world));
    let is_named = world.sandboxed && processes::other_words_name_process(analysis);
    let other = if is_named { MachineView::Shown } else { MachineView::None };
    match parts.max().unwrap_or_default().max(other) {
        // Its other parts need the sandbox.
        MachineView::Shown | MachineView::Absent if !analysis.is_read_only() => MachineView::None,
        view => view,
    }
}

/// Reports whether all of a line may run outside the sandbox with one approval: each part only looks, or is one of
/// those that the approval is about.
pub(super) fn may_run_outside(analysis: &Analysis, world: &JudgementContext<'_>) -> bool {
    let is_such = |command: &Invocation| {
        is_about_machine(view_for_command(command, world))
            || command.effects.iter().all(Effect::is_reading)
    };
    reason_to_leave(analysis, world).is_some() || analysis.commands.iter().all(is_such)
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
    let (Effect::Read(place) | Effect::Look(place)) = effect else { return false };
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
    use std::{path::PathBuf, sync::Arc};

    use gnoma_shell::StartContext;

    use super::*;
    use crate::git::{NoRepositories, Repositories};

    /// A machine on which no service runs.
    struct NoServices;

    impl Repositories for NoServices {
        fn find_program_setting(&self, _: &Path) -> Option<String> {
            None
        }

        fn secret_files(&self, _: &Path) -> Arc<[PathBuf]> {
            Arc::default()
        }

        fn own_compiler(&self, _: &Path) -> Option<PathBuf> {
            None
        }

        fn can_answer(&self, _: &str) -> bool {
            false
        }
    }

    fn view_of(line: &str) -> MachineView {
        in_world(line, &NoRepositories, of_line)
    }

    fn misleads_on_trial_in_world(line: &str) -> bool {
        in_world(line, &NoRepositories, misleads_on_trial)
    }

    fn in_world<T>(
        line: &str,
        repositories: &dyn Repositories,
        judge: impl FnOnce(&Analysis, &JudgementContext<'_>) -> T,
    ) -> T {
        let roots = [PathBuf::from("/w")];
        let resolve = |path: &Path| path.to_path_buf();
        let world = JudgementContext {
            cwd: Path::new("/w"),
            home: Some(Path::new("/home/ada")),
            roots: &roots,
            config_dirs: &[],
            programs: &[],
            copies: &[],
            trusted: true,
            sandboxed: true,
            network_on_grant: true,
            resolve: &resolve,
            list: &|_| Some(Vec::new()),
            repositories,
        };
        let start = StartContext { cwd: "/w".into(), home: Some("/home/ada".into()) };
        judge(&gnoma_shell::analyse_command(line, &start), &world)
    }

    #[test]
    fn ps_ss_df_and_proc_commands_get_the_machine_view() {
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
            "ps aux | grep [h]ttp.server",
            "ps -ef | grep -c [h]ttp",
            "ps aux | egrep python[3]",
            "pgrep -f [h]ttp",
            "test -d /proc/1234 && echo running || echo gone",
            "[ -d \"/proc/$(cat server.pid)\" ] && echo up",
            "[[ -d /proc/$PID ]] && echo up",
            "d=/proc/1234; [ -d \"$d\" ] && echo up",
            "for p in /proc/[0-9]*; do echo $p; done",
            "for p in /proc/[0-9]*; do cat $p/cmdline; done",
            "bash -c 'pgrep x >/dev/null && echo yes || echo no'",
            "sh -c 'ss -ltn | grep -q :80 && echo yes'",
        ] {
            assert_eq!(view_of(line), MachineView::Shown, "{line}");
        }
    }

    #[test]
    fn docker_lsof_kill_and_sudo_commands_run_outside_the_sandbox() {
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
            "kill 1234",
            "kill -9 -1234",
            "kill -- -1234",
            "kill -9 $(cat server.pid); rm server.pid",
            "kill -0 1234 && echo alive || echo dead",
            "pkill -0 node",
            "killall -0 node",
            "readlink /proc/1234/cwd",
            "ls -l /proc/[0-9]*/exe",
            "[ -e /proc/$(cat server.pid) ]",
            "python3 -c 'print(open(\"/proc/1234/status\").read())'",
            "ps aux | tee list.txt",
            "su -c id",
            "sudo make install; echo rc=$?",
            "echo x > ~/f.txt; cat ~/f.txt",
            "cp -a src ~/x/y",
            "git clone -q . ~/copy",
        ] {
            assert_eq!(view_of(line), MachineView::Outside, "{line}");
        }
    }

    #[test]
    fn docker_command_without_a_docker_service_runs_in_the_sandbox() {
        for (line, expected) in [
            ("docker ps | head; echo rc=$?", MachineView::Absent),
            ("docker --version", MachineView::None),
            ("docker ps; ps aux", MachineView::Shown),
            ("docker run x", MachineView::None),
        ] {
            assert_eq!(in_world(line, &NoServices, of_line), expected, "{line}");
        }
    }

    #[test]
    fn commands_that_inspect_processes_are_never_run_on_trial() {
        for line in [
            "ps aux | grep [h]ttp.server",
            "bash -c 'pgrep x >/dev/null && echo yes'",
            "[ -e /proc/$(cat server.pid) ]",
            "for p in /proc/[0-9]*; do cat $p/cmdline; done",
            "kill $(cat server.pid); rm server.pid",
            "[[ -d /proc/$PID ]] || make",
            "find /proc/1234 -exec wc {} +",
            "sleep 9 & ps -p $!; kill $!",
        ] {
            assert!(misleads_on_trial_in_world(line), "{line}");
        }
    }

    #[test]
    fn ordinary_commands_get_no_machine_view() {
        for line in [
            "ls -l",
            "cat /proc/cpuinfo",
            "docker --version",
            "echo x > /dev/null",
            "make -j$(nproc)",
            "ls /proc/self/fd",
            "echo 'see /proc/12' > notes.txt",
            "sleep 9 & kill $!",
            "server & PID=$!; sleep 1; kill $PID",
            "kill %1",
            "p=$$; kill -0 $p",
            "./build.sh > ~/f.txt",
            "tar xf evil.tar; cp a ~/x",
            "rsync -a --log-file=.x a ~/x",
            "mkdir ~/x; cd ~/x; cpio -id < /w/a.cpio",
            "wget --use-askpass=./evil -O ~/new example.org; touch ~/x",
            "git clone -c core.fsmonitor=./evil . ~/copy",
            "git clone --template=./t . ~/copy",
            "git worktree add ~/tree",
            "echo x > /w/f.txt",
            "echo x > /srv/f.txt",
            "kill -l",
            "trap 'kill $(jobs -p)' EXIT; make",
        ] {
            assert_eq!(view_of(line), MachineView::None, "{line}");
        }
    }
}
