//! Attempts on processes outside, on their memory, and on the number of processes.

use crate::{
    attempts,
    cell::{Cell, Victim, eventually, is_walled, processes_with},
};

attempts! {
    refuses the_first_process_of_the_walls: "cat /proc/1/environ || ls -l /proc/1/fd/ | grep '->' || cat /proc/1/root/etc/hostname";
    refuses memory_of_the_first_process: "head -c 1 /proc/1/mem || $P act read-memory 1";
    holds an_open_file_of_a_neighbour: "sleep 3 & $P act call pidfd_open $! 0 && $P act call kcmp $$ $! 0 0 0";
    holds tracing_a_neighbour: "sleep 3 & $P act call ptrace 0x4206 $! 0 0";
    holds tracing_oneself: "$P act call ptrace 0 0 0 0";
    holds reading_a_neighbour: "sleep 3 & sleep 0.2; $P act read-memory $!";
}

#[test]
fn sandbox_cannot_signal_trace_or_read_processes_outside() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let mut victim = Victim::of(&cell);
    let number = victim.number();
    cell.holds(&format!("kill -0 {number}"));
    cell.holds(&format!("cat /proc/{number}/environ | grep -a SECRET"));
    cell.holds(&format!("ls /proc/{number}/root/"));
    cell.holds(&format!("cat /proc/{number}/cwd/secret"));
    cell.holds(&format!("$P act call ptrace 0x4206 {number} 0 0"));
    cell.holds(&format!("$P act read-memory {number}"));
    cell.holds(&format!("$P act call prlimit64 {number} 7 0 x:00"));
    cell.holds(&format!("renice -n 19 {number}"));
    cell.holds(&format!("$P act call pidfd_open {number} 0"));
    assert!(victim.is_alive());
}

#[test]
fn kill_all_in_the_sandbox_kills_no_process_outside() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let mut victim = Victim::of(&cell);
    cell.inside(
        "kill -9 -1; n=2; while [ $n -lt 300 ]; do kill -9 $n 2>/dev/null; n=$((n+1)); done",
    );
    cell.inside("kill -9 0");
    cell.inside("kill -9 1; kill -TERM 1; kill -STOP 1; exit 3");
    assert!(victim.is_alive());
}

#[test]
fn processes_outside_cannot_be_seen() {
    if is_walled() {
        let cell = Cell::new();
        let listed = cell.permits("ls -d /proc/[0-9]* | wc -l").stdout;
        assert!(listed.trim().parse::<u32>().unwrap() < 8, "{listed}");
    }
}

#[test]
fn a_fork_bomb_is_bounded_and_gone_afterwards() {
    if !is_walled() {
        return;
    }
    let mark = format!("57{}", std::process::id());
    let cell = Cell::new().with(&["processes=64"]);
    let attempt = format!("$P act forks 600 {mark}");
    let outcome = cell.inside(&attempt);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let made: u32 = outcome
        .stderr
        .split_whitespace()
        .zip(outcome.stderr.split_whitespace().skip(1))
        .find_map(|(number, word)| number.parse().ok().filter(|_| word == "made,"))
        .unwrap();
    assert!(made <= 64, "{made}");
    assert!(eventually(|| processes_with(&mark) == 0));
    cell.permits("true");
}

#[test]
fn shell_fork_bomb_is_killed_when_gnoma_ends() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new().with(&["processes=128"]);
    let mark = format!("bomb{}", std::process::id());
    let script = format!("bomb() {{ bomb {mark} | bomb {mark} & }}; bomb; sleep 1000; :");
    let mut owner =
        cell.inside_command(&script).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert!(eventually(|| processes_with(&mark) > 0));
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(eventually(|| processes_with(&mark) == 0), "{} left", processes_with(&mark));
}

#[test]
fn sandbox_cannot_write_ld_so_preload() {
    if is_walled() {
        Cell::new().refuses("echo $WS/evil.so > /etc/ld.so.preload");
    }
}
