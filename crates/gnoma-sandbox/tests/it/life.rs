//! How commands begin and end: codes, signals, survivors, environment, inherited files.

use std::{os::unix::process::CommandExt, process::Stdio, time::Instant};

use crate::cell::{Cell, eventually, is_walled, processes_with};

#[test]
fn sandboxed_command_has_the_same_exit_codes_and_signals() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
        ("kill -SEGV $$", 128 + 11),
        ("kill -PIPE $$", 128 + 13),
        // Not SIGINT, which shells ignore where the tests run in the background.
        ("kill -USR1 $$", 128 + 10),
    ] {
        assert_eq!(cell.inside(script).code, Some(code), "{script}");
        assert_eq!(cell.freely(script).code, Some(code), "{script}");
    }
}

#[test]
fn missing_program_in_the_sandbox_exits_with_127() {
    if !is_walled() {
        return;
    }
    let outcome = Cell::new().inside("exec no-such-program-here");
    assert_eq!(outcome.code, Some(127), "{outcome:?}");
}

/// Starts something that gets away from its shell, and ends the owner.
fn survives(script: &str) -> bool {
    // A number of seconds that nobody else sleeps.
    let mark = format!("{}{}", 7_000 + script.len(), std::process::id());
    let cell = Cell::new();
    let script = script.replace("NAP", &format!("sleep {mark}"));
    let mut owner = cell.inside_command(&format!("{script}\ntouch started; sleep {mark}"));
    let mut owner = owner.stdout(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| cell.workspace.join("started").exists()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    !eventually(|| processes_with(&mark) == 0)
}

#[test]
fn no_sandboxed_process_outlives_gnoma() {
    if !is_walled() {
        return;
    }
    for script in [
        "NAP & true",
        "nohup NAP > /dev/null 2>&1 & true",
        "setsid NAP & true",
        "setsid -f NAP",
        "(setsid sh -c 'setsid NAP & exit' &)",
        "sh -c 'trap \"\" TERM HUP INT; NAP' &",
        "setsid -f sh -c 'while true; do (setsid NAP &); sleep 0.1; done'",
    ] {
        assert!(!survives(script), "{script}");
    }
}

#[test]
fn background_processes_run_until_gnoma_ends() {
    if !is_walled() {
        return;
    }
    let mark = format!("8111{}", std::process::id());
    let cell = Cell::new();
    // The second command sees what the first has left, which is what a job is.
    let script = format!("(sleep 1; touch done) & setsid -f sleep {mark}; touch first");
    let mut owner = cell.inside_command(&script);
    let mut owner = owner.arg0("owner").stdout(Stdio::null()).spawn().unwrap();
    owner.wait().unwrap();
    assert!(cell.workspace.join("first").exists());
    assert!(eventually(|| processes_with(&mark) == 0));
}

#[test]
fn sandboxed_command_does_not_wait_for_its_background_processes() {
    if !is_walled() {
        return;
    }
    let start = Instant::now();
    Cell::new().permits("sleep 30 > /dev/null 2>&1 & true");
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn api_keys_are_not_readable_from_the_sandbox_environment_or_proc() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new().with(&["scrub"]);
    let mut command = cell.inside_command(
        "env; cat /proc/self/environ; cat /proc/1/environ; tr '\\0' '\\n' < /proc/1/cmdline; cat /proc/*/environ",
    );
    command
        .env("SOME_API_KEY", "very-secret")
        .env("GITHUB_TOKEN", "very-secret")
        .env("KEEP", "kept");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("KEEP=kept") && text.contains("AI_AGENT=gnoma"), "{text}");
    assert!(!text.contains("very-secret"), "{text}");
}

#[test]
fn sandboxed_command_inherits_no_open_file_descriptors() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let open = |inner: &str| {
        let script = format!("exec 7< $OUT/secret 9> $OUT/log; {inner}");
        cell.freely(&script)
    };
    let inside = open("$P inside write=$WS -- sh -c 'ls /proc/$$/fd; cat <&7 || echo out >&9'");
    assert_eq!(inside.stdout, "0\n1\n2\n", "{inside:?}");
    assert!(!inside.succeeded());
    let alone = open("$P inside write=$WS -- $P act inherited");
    assert!(!alone.succeeded(), "{alone:?}");
    assert!(open("$P act inherited").succeeded());
}

#[test]
fn launch_plan_inside_the_sandbox_cannot_widen_its_rights() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    cell.refuses("$P inside write=$OUT -- sh -c 'echo out > $OUT/new'");
    cell.refuses("$P walls:run owner $$ write $OUT network 1 -- sh -c 'echo out > $OUT/new'");
    cell.refuses("sh -c 'echo out > $OUT/new' -- write $OUT --");
    assert!(!cell.outside.join("new").exists());
}
