//! Secret files that a command finds and cannot open, files that it does not find, and commands that look at the
//! machine itself.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::{fs, net::TcpListener, os::unix::fs::symlink};

use crate::cell::{Cell, Outcome, Victim, has, is_root, is_walled};

/// What is done to a sealed file, in words that must fail.
const ATTEMPTS: [&str; 14] = [
    "cat key",
    "cp key copy",
    "tar cf x.tar key",
    "mv key gone",
    "rm -f key",
    "chmod 777 key",
    "echo x > key",
    "echo x >> key",
    "test -r key",
    "ln key other",
    "cat link",
    "cat folder/inner",
    "ls folder",
    "cp -r folder folder2",
];

fn sealed(cell: Cell) -> Cell {
    cell.put("key", "12345\n");
    cell.put("plain", "plain\n");
    cell.put_folder("folder");
    cell.put("folder/inner", "inner\n");
    symlink("key", cell.workspace.join("link")).unwrap();
    let words =
        ["key", "folder"].map(|name| format!("seal={}", cell.workspace.join(name).display()));
    cell.with(&words.each_ref().map(String::as_str))
}

/// A cell whose commands run on trial.
fn on_trial() -> Option<Cell> {
    is_walled().then(|| {
        let cell = sealed(Cell::new());
        let site = format!("layer={}", cell.outside.join("layers").display());
        fs::create_dir(cell.outside.join("layers")).unwrap();
        cell.give(&cell.outside.join("layers"));
        cell.with(&[&site])
    })
}

/// Runs a script as a user and as whoever runs the tests, with a launcher that gets ready before and without.
fn each_way(cell: &Cell, script: &str) -> Vec<(String, Outcome)> {
    let mut outcomes = Vec::new();
    for words in [&[][..], &["spare"]] {
        let outcome = cell.inside_with(words, script).output().unwrap().into();
        outcomes.push((format!("user, {words:?}"), outcome));
        if is_root() {
            outcomes.push((format!("root, {words:?}"), cell.inside_as_tester(words, script)));
        }
    }
    outcomes
}

#[test]
fn sealed_file_of_a_trial_looks_regular_and_every_open_fails_for_root_too() {
    let Some(cell) = on_trial() else { return };
    for (how, outcome) in each_way(&cell, "stat -c %F key folder; cat plain; echo new > made") {
        let text = outcome.stdout.replace("regular empty file", "regular file");
        assert!(text.contains("regular file\ndirectory\nplain\n"), "{how}: {outcome:?}");
        assert_eq!(outcome.code, Some(0), "{how}: {outcome:?}");
    }
    for attempt in ATTEMPTS {
        for (how, outcome) in each_way(&cell, attempt) {
            assert!(outcome.code.is_some_and(|code| code != 0), "{attempt}, {how}: {outcome:?}");
            assert!(outcome.was_walled(), "{attempt}, {how}: {outcome:?}");
        }
    }
    for (how, outcome) in each_way(&cell, "cat key plain; stat -c %s key") {
        assert!(outcome.stderr.contains("Permission denied"), "{how}: {outcome:?}");
        assert!(outcome.stdout.starts_with("plain\n"), "{how}: {outcome:?}");
    }
}

#[test]
fn trial_runs_nothing_if_namespaces_are_refused_when_it_starts() {
    let Some(cell) = on_trial() else { return };
    let outcome = Outcome::from(
        cell.inside_with(&["no-namespaces"], "cat key; echo new > made").output().unwrap(),
    );
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("nothing was run"), "{outcome:?}");
    assert!(outcome.stdout.is_empty() && !cell.workspace.join("made").exists(), "{outcome:?}");
}

#[test]
fn sealed_file_of_a_reading_command_is_seen_as_it_is_and_not_opened() {
    if !is_walled() {
        return;
    }
    let cell = sealed(Cell::for_reading());
    for (how, outcome) in each_way(&cell, "stat -c '%s %F' key; cat plain") {
        // Among temporary files a mask lies over it where nothing serves it.
        let is_seen = outcome.stdout == "6 regular file\nplain\n";
        assert!(is_seen || outcome.stdout == "0 regular empty file\nplain\n", "{how}: {outcome:?}");
    }
    for attempt in ATTEMPTS {
        for (how, outcome) in each_way(&cell, attempt) {
            assert!(outcome.code.is_some_and(|code| code != 0), "{attempt}, {how}: {outcome:?}");
        }
    }
}

#[test]
fn launcher_reports_attempted_opens_of_sealed_files() {
    if !is_walled() {
        return;
    }
    if fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return gnoma_testkit::skip_test("`/dev/fuse` cannot be opened");
    }
    let trial = on_trial().unwrap();
    for cell in [trial, sealed(Cell::for_reading())] {
        for (script, expected) in [
            ("stat key; ls -l; cat plain; test -e key", ""),
            ("cat key 2> /dev/null; cat key 2> /dev/null; true", "tried 0\n"),
            ("ls folder 2> /dev/null; cat key 2> /dev/null; true", "tried 1\ntried 0\n"),
            ("cat folder/inner 2> /dev/null | wc -l > /dev/null", "tried 1\n"),
            (
                "python3 -c 'import os; os.access(\"key\", os.R_OK)' || test -r key; true",
                "tried 0\n",
            ),
        ] {
            let outcome = cell.inside_as_tester(&["spare", "tells"], script);
            let told: Vec<_> =
                outcome.stdout.lines().filter(|line| line.starts_with("tried")).collect();
            assert_eq!(told, expected.lines().collect::<Vec<_>>(), "{script}: {outcome:?}");
        }
    }
}

#[test]
fn names_outside_the_workspace_are_visible_and_opening_them_is_reported() {
    let Some(cell) = Cell::for_reading_elsewhere() else { return };
    if !is_walled() || fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return gnoma_testkit::skip_test("`/dev/fuse` cannot be opened");
    }
    cell.put_outside("file", "far\n");
    let beside = cell.workspace.parent().unwrap().join("single");
    fs::write(&beside, "single\n").unwrap();
    let above = cell.workspace.parent().unwrap().to_owned();
    let names = [&cell.outside, &beside, &above].map(|path| format!("outside={}", path.display()));
    let cell = cell.with(&names.each_ref().map(String::as_str));
    for (script, expected) in [
        ("test -d ../outside; stat -c %F ../single; test -e ../none; realpath ../outside", ""),
        ("cat ../outside/file 2> /dev/null", "tried 0\n"),
        ("test -e ../outside/file; ls ../outside/file 2> /dev/null", "tried 0\n"),
        ("ls ../outside 2> /dev/null; cat ../single 2> /dev/null", "tried 0\ntried 1\n"),
        ("echo ../* > /dev/null", "tried 2\n"),
        (
            "cd ..; test -d work* -o -d .; cd \"$OLDPWD\" && ls > /dev/null; stat .. > /dev/null",
            "tried 2\n",
        ),
    ] {
        let outcome = cell.inside_as_tester(&["spare", "tells"], script);
        let told: Vec<_> =
            outcome.stdout.lines().filter(|line| line.starts_with("tried")).collect();
        assert_eq!(told, expected.lines().collect::<Vec<_>>(), "{script}: {outcome:?}");
    }
    for script in ["ls ..", "cat ../single", "cat ../outside/file", "echo x > ../outside/x"] {
        for words in [&["tells"][..], &["spare", "tells"]] {
            let outcome = cell.inside_as_tester(words, script);
            let is_refused = outcome.code.is_some_and(|code| code != 0);
            assert!(is_refused && !outcome.stdout.contains("outside"), "{words:?}: {outcome:?}");
        }
    }
}

#[test]
fn absent_sealed_files_are_not_found_and_other_files_are_unchanged() {
    if !is_walled() {
        return;
    }
    let cell = sealed(Cell::for_reading());
    let upper = cell.outside.join("upper");
    fs::create_dir(&upper).unwrap();
    cell.give(&upper);
    let absent = ["key", "folder/inner"]
        .map(|name| format!("absent={}", cell.workspace.join(name).display()));
    let view = format!("view={}", upper.display());
    for spare in [None, Some("spare")] {
        let words: Vec<_> =
            absent.iter().map(String::as_str).chain([view.as_str()]).chain(spare).collect();
        let script = "ls; cat plain; stat -c %a .; test -e key; echo $?; ls folder";
        let free = cell.freely("stat -c %a .").stdout;
        let outcome = Outcome::from(cell.inside_with(&words, script).output().unwrap());
        let expected = format!("folder\nlink\nplain\nplain\n{free}1\n");
        assert!(outcome.stdout.starts_with(&expected), "{spare:?}: {outcome:?}");
    }
}

#[test]
fn machine_view_shows_processes_and_ports_but_denies_acting_on_them() {
    if !is_walled() {
        return;
    }
    let cell = Cell::for_reading().with(&["machine"]);
    let mut victim = Victim::of(&cell);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (pid, port) = (victim.number(), listener.local_addr().unwrap().port());
    let run = |script: &str| {
        let mut outcomes = vec![Outcome::from(cell.inside_command(script).output().unwrap())];
        if is_root() {
            outcomes.push(cell.inside_as_tester(&[], script));
        }
        outcomes
    };
    let seen = [
        ("ps", format!("ps -o args= -p {pid}"), "sleep 1000".to_owned()),
        ("pgrep", format!("pgrep -x sleep | grep -x {pid}"), pid.to_string()),
        ("ss", format!("ss -ltn | grep -o ':{port} '"), format!(":{port}")),
        ("df", "df --output=target / | tail -n 1".to_owned(), "/".to_owned()),
        ("ls", "ls -d /dev/null /dev/shm".to_owned(), "/dev/shm".to_owned()),
    ];
    for (program, script, expected) in seen {
        for outcome in run(&script).into_iter().filter(|_| has(program)) {
            assert!(outcome.stdout.contains(&expected), "{script}: {outcome:?}");
        }
    }
    for script in [
        format!("kill {pid}"),
        format!("kill -0 {pid}"),
        format!("cat /proc/{pid}/environ"),
        format!("cat /proc/{pid}/root/etc/passwd"),
        format!("readlink /proc/{pid}/fd/0"),
        format!("renice 19 {pid}"),
        format!("prlimit --pid {pid} --nofile=1:1"),
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"),
        format!("echo x > /proc/{pid}/oom_score_adj"),
        "chmod 777 $WS".to_owned(),
        "touch $WS".to_owned(),
        "echo x > $WS/new".to_owned(),
        format!("cat {}/secret", cell.outside.display()),
        "head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/kmsg".to_owned(),
    ] {
        for outcome in run(&script) {
            assert!(outcome.code.is_some_and(|code| code != 0), "{script}: {outcome:?}");
            assert!(outcome.was_walled(), "{script}: {outcome:?}");
        }
    }
    assert!(victim.is_alive());
}
