//! What holds where namespaces are refused: Landlock, the filter, and a memory of what is protected.

use std::{fs, process::Stdio};

use crate::cell::{Cell, Victim, eventually, processes_with, support};

/// The version of Landlock from which signals stay inside.
fn cell() -> Option<Cell> {
    let landlock = support().parts.iter().any(|part| part.name == "landlock" && part.holds);
    if !landlock {
        gnoma_testkit::skip_test("no sandbox: Landlock is missing");
    }
    landlock.then(|| Cell::repository().with(&["no-namespaces"]))
}

#[test]
fn landlock_fallback_denies_writes_outside_the_workspace() {
    let Some(cell) = cell() else { return };
    for attempt in [
        "echo out > $OUT/new",
        ": > $OUT/secret",
        "rm $OUT/secret",
        "echo out > here; mv here $OUT/new",
        "ln -s $OUT folder; echo out > folder/new",
        "ln $OUT/secret hard && echo out >> hard",
        "$P act unnamed-file $OUT $OUT/new",
        "$P act memory-program",
        "mkfifo $OUT/pipe",
    ] {
        cell.holds(attempt);
        cell.put_outside("secret", "secret\n");
        fs::remove_file(cell.outside.join("new")).ok();
    }
    cell.permits("echo x > file && mkdir d && mv file d/ && cat d/file");
}

#[test]
fn landlock_fallback_denies_reading_hidden_files() {
    let Some(cell) = cell() else { return };
    let hidden = format!("hide={}", cell.outside.display());
    let cell = cell.with(&[&hidden]);
    cell.holds("cat $OUT/secret");
    cell.holds("ln -s $OUT/secret link; cat link");
    cell.permits("cat /etc/passwd > here; ls / /tmp");
}

#[test]
fn seccomp_fallback_denies_sockets_and_dangerous_system_calls() {
    let Some(cell) = cell() else { return };
    for attempt in [
        "$P act socket 2 1 0",
        "$P act socket 10 2 0",
        "$P act socket 1 1 0",
        "$P act socket 16 3 0",
        "$P act call unshare 0x10000000",
        "$P act call ptrace 0 0 0 0",
        "$P act call io_uring_setup 4 x:00",
        "$P act call add_key s:user s:name s:value 5 -3",
        "cp /bin/true mine; chmod u+s mine",
    ] {
        cell.holds(attempt);
    }
    let mut victim = Victim::of(&cell);
    cell.holds(&format!("kill -0 {}", victim.number()));
    cell.holds(&format!("cat /proc/{}/environ | grep -a SECRET", victim.number()));
    assert!(victim.is_alive());
}

#[test]
fn landlock_fallback_denies_opening_the_terminal() {
    let Some(cell) = cell() else { return };
    if !crate::cell::has("script") {
        return;
    }
    let inner = "$P inside no-namespaces write=$WS -- sh -c 'echo out > /dev/tty'; echo code \\$?";
    let opened = cell.freely(&format!("script -qec \"{inner}\" /dev/null")).stdout;
    assert!(!opened.contains("code 0"), "{opened}");
}

#[test]
fn fallback_restores_protected_paths_before_the_command_ends() {
    let Some(cell) = cell() else { return };
    let outcome = cell.inside(
        "echo evil > .git/hooks/pre-commit; mv .git old; mkdir -p .git/hooks .gnoma; \
         echo evil > .git/config; exit 4",
    );
    assert_eq!(outcome.code, Some(4));
    assert!(
        outcome.stderr.contains("is protected and was changed; it was put back"),
        "{outcome:?}"
    );
    let workspace = &cell.workspace;
    assert!(!workspace.join(".gnoma").exists());
    assert!(!workspace.join(".git/hooks/pre-commit").exists());
    assert!(
        fs::read_to_string(workspace.join(".git/config")).unwrap().contains("repositoryformat")
    );
}

#[test]
fn fallback_kills_all_processes_when_gnoma_ends() {
    let Some(cell) = cell() else { return };
    let mark = format!("9111{}", std::process::id());
    let script = format!(
        "setsid -f sleep {mark}; (setsid sh -c 'setsid sleep {mark} & exit' &); touch started; sleep {mark}"
    );
    let mut owner = cell.inside_command(&script).stdout(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| cell.workspace.join("started").exists()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(eventually(|| processes_with(&mark) == 0));
}

#[test]
fn fallback_limits_the_number_of_processes() {
    let Some(cell) = cell() else { return };
    let cell = cell.with(&["processes=64"]);
    let mark = format!("59{}", std::process::id());
    let outcome = cell.inside(&format!("$P act forks 800 {mark}"));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(eventually(|| processes_with(&mark) == 0));
}
