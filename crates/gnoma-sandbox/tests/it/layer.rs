//! Commands on trial, with the kernel's own layers: dropped they were never there; kept they are what
//! running them in place makes, but for what is told to be different.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::Stdio,
    thread::sleep,
    time::Duration,
};

use proptest::{
    collection::vec,
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    cell::{Cell, Outcome, eventually, is_walled, processes_with},
    trials::Trials,
};

/// Type, mode, content or target, and the time where a program has set one.
type Tree = BTreeMap<PathBuf, (u32, String)>;

fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let facts = path.symlink_metadata().unwrap();
            let text = if facts.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if facts.is_dir() {
                folders.push(path.clone());
                String::new()
            } else {
                let told = (facts.mtime() < 1_100_000_000).then_some(facts.mtime());
                format!("{told:?} {}", fs::read_to_string(&path).unwrap())
            };
            tree.insert(path.strip_prefix(root).unwrap().to_owned(), (facts.mode(), text));
        }
    }
    tree
}

fn on_trial(cell: &Cell, words: &[&str], command: &[&str]) -> Outcome {
    let (at, site) = (
        format!("at={}", cell.workspace.display()),
        format!("site={}", cell.outside.join("layers").display()),
    );
    let mut trial = cell.command();
    trial.args(["trial", &at, &site]).args(words).arg("--").args(command);
    trial.output().unwrap().into()
}

/// A workspace with something of everything.
fn furnished() -> Cell {
    let cell = Cell::new();
    let script = "mkdir -p a/b d; echo 1 > a/f; echo 22 > a/b/g; echo 333 > h; ln -s a/f l; \
                  echo x > d/x; ln d/x d/y; chmod 755 h; touch -d @1000000001 a/f h";
    assert!(cell.freely(script).succeeded());
    cell
}

#[test]
fn trial_lists_changed_files_and_leaves_the_workspace_unchanged() {
    if !is_walled() {
        return;
    }
    let cell = furnished();
    let before = read(&cell.workspace);
    let script = "echo more >> a/f; rm -r a/b; echo new > n; mv h i; chmod 700 a; cat l; touch d/x; \
                  ln -s n m; mkdir -p e/f; mkfifo p";
    let outcome = on_trial(&cell, &[], &["sh", "-c", script]);
    assert!(outcome.succeeded(), "{outcome:?}");
    let at = |name: &str| cell.workspace.join(name).display().to_string();
    let expected = [
        format!("Mode Folder {}", at("a")),
        format!("Deleted Folder {}", at("a/b")),
        format!("Deleted File {}", at("a/b/g")),
        format!("Changed File {}", at("a/f")),
        format!("Touched File {}", at("d/x")),
        format!("Created Folder {}", at("e")),
        format!("Created Folder {}", at("e/f")),
        format!("Deleted File {}", at("h")),
        format!("Created File {} from {}", at("i"), at("h")),
        format!("Created Link {}", at("m")),
        format!("Created File {}", at("n")),
        format!("Created Pipe {}", at("p")),
        format!("difference HardLink(\"{}\")", at("d/x")),
    ];
    assert_eq!(outcome.stdout.lines().collect::<Vec<_>>(), expected);
    assert_eq!(read(&cell.workspace), before);
    let left = fs::read_dir(cell.outside.join("layers")).unwrap().count();
    assert_eq!(left, 1, "only the lock stays");
}

#[test]
fn trial_reports_a_difference_if_a_hard_link_would_be_split() {
    if !is_walled() {
        return;
    }
    for (script, torn) in [
        ("mv d/x z", Some("d/x")),
        ("mv d/x z; echo more >> z", Some("d/x")),
        ("mv d e", Some("d/x")),
        ("rm d/x; echo 1 > z", Some("d/x")),
        ("ln h z", Some("h")),
        ("ln d/x z", Some("d/x")),
        ("rm d/x", None),
        ("rm -r d", None),
        ("echo 1 > z; ln z y", None),
        ("mv h z", None),
    ] {
        let cell = furnished();
        let outcome = on_trial(&cell, &[], &["sh", "-c", script]);
        assert!(outcome.succeeded(), "{outcome:?}");
        let told: Vec<_> =
            outcome.stdout.lines().filter_map(|line| line.strip_prefix("difference ")).collect();
        let expected: Vec<_> = torn
            .iter()
            .map(|name| format!("HardLink(\"{}\")", cell.workspace.join(name).display()))
            .collect();
        assert_eq!(told, expected, "{script}: {}", outcome.stdout);
    }
}

#[test]
fn trial_reports_a_difference_if_a_folder_is_made_unreadable() {
    if !is_walled() {
        return;
    }
    for script in ["chmod 600 a", "chmod 0 a", "mkdir -p e/c; echo x > e/c/x; chmod 300 e/c"] {
        let cell = furnished();
        let outcome = on_trial(&cell, &[], &["sh", "-c", script]);
        assert!(outcome.succeeded(), "{outcome:?}");
        let closed = if script.contains("e/c") { "e/c" } else { "a" };
        let expected = format!("difference Closed(\"{}\")", cell.workspace.join(closed).display());
        assert_eq!(outcome.stdout.lines().last(), Some(&*expected), "{outcome:?}");
        assert_eq!(fs::read_dir(cell.outside.join("layers")).unwrap().count(), 1);
    }
}

#[test]
fn trial_that_rewrites_identical_content_lists_no_changes() {
    if !is_walled() {
        return;
    }
    let cell = furnished();
    let script =
        "cat a/f; exec 3<>h; cp -p h h2; mv h2 h; mkdir t; echo > t/x; rm -r t; chmod 755 h";
    let outcome = on_trial(&cell, &[], &["sh", "-c", script]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
}

#[test]
fn trial_has_only_a_loopback_network_interface() {
    if !is_walled() {
        return;
    }
    let cell = furnished();
    let script =
        "cat /proc/net/dev | tail -n +3 | cut -d: -f1 > net; ipcs -m >/dev/null 2>&1; true";
    let outcome = on_trial(&cell, &["keep"], &["sh", "-c", script]);
    assert!(outcome.succeeded(), "{outcome:?}");
    assert_eq!(fs::read_to_string(cell.workspace.join("net")).unwrap().trim(), "lo");
}

fn paths() -> impl Strategy<Value = String> {
    let name =
        prop_oneof![Just("a"), Just("b"), Just("d"), Just("f"), Just("h"), Just("n"), Just("x")];
    vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn operations() -> impl Strategy<Value = String> {
    let verbs = [
        "write", "append", "cut", "open", "remove", "rmdir", "rmtree", "mkdir", "mkdirs", "rename",
        "link", "symlink", "save", "rename", "remove",
    ];
    let two = (prop::sample::select(verbs.to_vec()), paths(), paths());
    prop_oneof![
        6 => two.prop_map(|(verb, one, other)| format!("{verb} {one} {other}")),
        1 => (paths(), prop::sample::select(vec!["644", "755", "600", "4755"]))
            .prop_map(|(path, mode)| format!("chmod {path} {mode}")),
        1 => (paths(), 0_u8..9).prop_map(|(path, time)| format!("touch {path} {time}")),
    ]
}

/// Programs of a run; `GNOMA_LAYER_CASES` names another number.
fn cases() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
    let wanted = std::env::var("GNOMA_LAYER_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(24)
}

/// What makes programs; `GNOMA_LAYER_SEED` has it make other ones.
fn runner(seed: u8) -> TestRunner {
    #[expect(clippy::disallowed_methods, reason = "what a test makes up is no setting")]
    let wanted = std::env::var("GNOMA_LAYER_SEED").ok().and_then(|text| text.parse().ok());
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[wanted.unwrap_or(seed); 32]);
    TestRunner::new_with_rng(Config::default(), seed)
}

/// Times that a keep is killed; `GNOMA_KILLS` names another number.
fn kills() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
    let wanted = std::env::var("GNOMA_KILLS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(8)
}

#[test]
fn trial_has_the_effect_of_a_run_in_place_or_reports_a_difference() {
    if !is_walled() {
        return;
    }
    let mut runner = runner(13);
    let [mut dropped, mut kept] = [false, true].map(Trials::on_trial);
    let mut place = Trials::bare();
    dropped.furnish();
    let before = read(&dropped.cell.workspace);
    let mut compared = 0;
    for _ in 0..cases() {
        let mut program = vec(operations(), 1..12).new_tree(&mut runner).unwrap().current();
        let told = dropped.run(&program);
        assert_eq!(read(&dropped.cell.workspace), before, "{program:?}");
        if told.iter().any(|line| line.starts_with("difference")) {
            continue;
        }
        kept.furnish();
        let told = kept.run(&program);
        assert!(told.iter().all(|line| !line.starts_with("error")), "{program:?} {told:?}");
        // Rights cannot be lent behind walls; who tries is refused.
        program.retain(|operation| !operation.ends_with(" 4755"));
        place.furnish();
        place.run(&program);
        let expected = read(&place.cell.workspace);
        assert_eq!(read(&kept.cell.workspace), expected, "{program:?} {told:?}");
        compared += 1;
    }
    assert!(compared * 3 > cases(), "only {compared} programs were compared");
}

/// What belongs to a person: the workspace, the home, and a folder of theirs among the machine's temporary files.
fn belongings(cell: &Cell, temporary: &Path) -> [Tree; 3] {
    let mut home = read(&cell.outside);
    home.retain(|path, _| !path.starts_with("layers") && !path.starts_with("scratch"));
    [read(&cell.workspace), home, read(temporary)]
}

#[test]
fn programs_on_trial_leave_workspace_home_and_temporary_files_as_they_were() {
    if !is_walled() {
        return;
    }
    let mut runner = runner(17);
    let theirs = tempfile::Builder::new().prefix("gnoma-theirs").tempdir_in("/tmp").unwrap();
    fs::set_permissions(theirs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let script = "mkdir -p a/b d; echo 1 > a/f; echo 22 > a/b/g; echo 333 > h; ln -s a/f l; \
                  ln -s $OUT/h out; ln -s $PWD/../outside up; echo x > d/x; ln d/x d/y; chmod 755 h; \
                  cp -r a h $OUT/; cp -r a h $THEIRS/";
    let cells: Vec<_> = cells().collect();
    for cell in &cells {
        let script = script.replace("$THEIRS", &theirs.path().display().to_string());
        assert!(cell.freely(&script).succeeded());
    }
    for round in 0..cases() {
        let cell = &cells[round as usize % cells.len()];
        let tops =
            ["", "", "", "$OUT/", "../outside/", "out/", "up/", "/tmp/", "$THEIRS/", "/var/tmp/"];
        let anywhere = vec((operations(), prop::sample::select(tops.to_vec())), 1..12);
        let program = anywhere.new_tree(&mut runner).unwrap().current();
        let mut script = "exec $P ops".to_owned();
        for (operation, top) in &program {
            let (verb, rest) = operation.split_once(' ').unwrap();
            let top = top.replace("$THEIRS", &theirs.path().display().to_string());
            let top = top.replace("$OUT", &cell.outside.display().to_string());
            script.push_str(&format!(" '{verb} {top}{rest}'"));
        }
        let before = belongings(cell, theirs.path());
        let words: &[&str] = if round % 16 == 0 { &["spare"] } else { &[] };
        let outcome = Outcome::from(cell.inside_with(words, &script).output().unwrap());
        assert!(outcome.code.is_some_and(|code| code <= 1), "{script}: {outcome:?}");
        assert_eq!(belongings(cell, theirs.path()), before, "{script}: {outcome:?}");
    }
}

#[test]
fn killed_apply_of_trial_changes_is_finished_or_undone_at_the_next_start() {
    if !is_walled() {
        return;
    }
    let cell = furnished();
    let script = "for i in $(seq 300); do mkdir -p k$((i % 7)); echo $i > k$((i % 7))/$i; done; \
                  rm -r a; echo changed > h";
    let (at, site) = (
        format!("at={}", cell.workspace.display()),
        format!("site={}", cell.outside.join("layers").display()),
    );
    let before = read(&cell.workspace);
    let mut killed = 0;
    for round in 0..kills() {
        let mut trial = cell.command();
        trial.args(["trial", &at, &site, "keep", "--", "sh", "-c", script]);
        let mut child = trial.stdout(Stdio::piped()).spawn().unwrap();
        wait_for_keeping(&mut child);
        // Spread over all that a keep takes, whatever their number.
        sleep(Duration::from_micros(round * 370 % 1500 * 8));
        child.kill().ok();
        killed += u32::from(child.wait().unwrap().signal().is_some());
        let outcome = on_trial(&cell, &["recover"], &[]);
        assert!(outcome.succeeded(), "{outcome:?}");
        let now = read(&cell.workspace);
        let made = now.keys().filter(|path| path.starts_with("k0")).count();
        assert!(now == before || (made > 40 && now.len() == 300 + 7 + 5), "{outcome:?}");
        assert_eq!(fs::read_dir(cell.outside.join("layers")).unwrap().count(), 1);
        assert!(cell.freely("rm -rf ./* && true").succeeded());
        let script = "mkdir -p a/b d; echo 1 > a/f; echo 22 > a/b/g; echo 333 > h; ln -s a/f l; \
                  echo x > d/x; ln d/x d/y; chmod 755 h; touch -d @1000000001 a/f h";
        assert!(cell.freely(script).succeeded());
    }
    assert!(killed > 0, "none was killed in time");
}

fn wait_for_keeping(child: &mut std::process::Child) {
    use std::io::{BufRead, BufReader};
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_keeping =
        |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line == "keeping");
    assert!(lines.into_iter().any(|line| is_keeping(&line)));
}

#[test]
fn trial_view_is_readable_as_a_folder_through_its_descriptor() {
    if !is_walled() {
        return;
    }
    let cell = furnished();
    let mut view = cell.command();
    view.arg("view").arg(&cell.workspace).arg(cell.outside.join("layers"));
    let outcome = Outcome::from(view.output().unwrap());
    let changed = format!("Changed File {}", cell.workspace.join("a/f").display());
    assert_eq!(outcome.stdout, format!("view in view real 1\n{changed}\n"), "{outcome:?}");
}

/// A command on trial in a root of its own, started at once and by somebody who stood ready.
fn both_ways(cell: &Cell, script: &str) -> [Outcome; 2] {
    let run = |words: &[&str]| cell.inside_with(words, script).output().unwrap().into();
    [run(&[]), run(&["spare"])]
}

/// The cell with a layer over its workspace.
fn with_layer(cell: Cell) -> Cell {
    let (write, layer) = (
        format!("write={}", cell.workspace.display()),
        format!("layer={}", cell.outside.join("layers").display()),
    );
    cell.with(&[&write, &layer])
}

/// Cells among temporary files and elsewhere.
fn cells() -> impl Iterator<Item = Cell> {
    [Some(Cell::for_reading()), Cell::for_reading_elsewhere()].into_iter().flatten().map(with_layer)
}

#[test]
fn spare_launcher_runs_a_trial_in_its_layer() {
    if !is_walled() {
        return;
    }
    for cell in cells() {
        cell.put_folder("src");
        cell.put("src/file", "old\n");
        cell.put("gone", "x\n");
        let script = "set -e; echo new > src/file; cat src/file; rm gone; mkdir deep; echo 1 > deep/made; \
                      sh -c 'sleep 61.4142 > /dev/null 2>&1 &'; pwd > /tmp/note; exit 3";
        for outcome in both_ways(&cell, script) {
            assert_eq!(outcome.code, Some(3), "{outcome:?}");
            let at = cell.workspace.display();
            let told = format!(
                "new\nCreated Folder {at}/deep\nCreated File {at}/deep/made\nDeleted File {at}/gone\n\
                 Changed File {at}/src/file\n"
            );
            assert_eq!(outcome.stdout, told, "{outcome:?}");
            assert_eq!(fs::read_to_string(cell.workspace.join("src/file")).unwrap(), "old\n");
            assert!(cell.workspace.join("gone").exists() && !cell.workspace.join("deep").exists());
            assert!(eventually(|| processes_with("61.4142") == 0), "what it started ends with it");
        }
    }
}

#[test]
fn secrets_of_the_workspace_are_neither_read_nor_replaced_on_trial() {
    if !is_walled() {
        return;
    }
    for mut cell in cells() {
        cell.put_folder("api");
        for name in [".env", "api/.env"] {
            cell.put(name, "KEY=secret\n");
            let hidden = format!("hide={}", cell.workspace.join(name).display());
            cell = cell.with(&[&hidden]);
        }
        for script in [
            "cat .env",
            "grep KEY api/.env",
            "cp .env copy",
            "ln .env link && cat link",
            "ln -s $PWD/.env soft; cat soft",
            "cat /proc/self/cwd/.env",
            "cp -r api other; cat other/.env",
            "tar c . | grep -a KEY",
            "rm .env",
            "mv api/.env x",
            "mv api other && cat other/.env",
            "echo x > .env",
            "echo x > new && mv new .env",
            "grep -r KEY .",
        ] {
            for outcome in both_ways(&cell, script) {
                assert!(!outcome.stdout.contains("KEY=secret"), "{script}: {outcome:?}");
                assert!(outcome.code != Some(0), "{script}: {outcome:?}");
                let touched = format!("{}/.env", cell.workspace.display());
                assert!(
                    !outcome.stdout.lines().any(|line| line.ends_with(&touched)),
                    "{outcome:?}"
                );
            }
        }
    }
}

#[test]
fn read_only_commands_see_unsaved_trial_changes_but_no_secrets() {
    if !is_walled() {
        return;
    }
    for cell in [Some(Cell::for_reading()), Cell::for_reading_elsewhere()].into_iter().flatten() {
        cell.put("real", "real\n");
        cell.put(".env", "KEY=secret\n");
        let upper = cell.outside.join("upper");
        fs::create_dir_all(upper.join("target")).unwrap();
        fs::write(upper.join("target/built"), "built\n").unwrap();
        fs::write(upper.join("real"), "changed\n").unwrap();
        let hidden = format!("hide={}", cell.workspace.join(".env").display());
        let view = format!("view={}", upper.display());
        let cell = cell.with(&[&hidden, &view]);
        for outcome in both_ways(&cell, "cat real target/built; ls") {
            assert_eq!(outcome.stdout, "changed\nbuilt\nreal\ntarget\n", "{outcome:?}");
        }
        for script in [
            "cat .env",
            "cp .env /tmp/copy",
            "echo x > new",
            "echo x > target/built",
            "rm real",
            "rm .env",
            "mkdir other",
        ] {
            for outcome in both_ways(&cell, script) {
                assert!(
                    outcome.code != Some(0) && outcome.stdout.is_empty(),
                    "{script}: {outcome:?}"
                );
            }
        }
        assert_eq!(fs::read_to_string(upper.join("target/built")).unwrap(), "built\n");
    }
}
