//! A launcher that got ready before its command was known: the same walls, whatever happens meanwhile.

use std::{fs, os::unix::fs::symlink, process::Stdio, time::Duration};

use crate::cell::{Cell, Outcome, eventually, is_any_alive, is_walled, launchers_of};

/// Runs a script by a spare launcher, after `meanwhile` has happened.
fn after(cell: &Cell, meanwhile: &str, script: &str) -> Outcome {
    let meanwhile = format!("meanwhile={meanwhile}");
    cell.inside_with(&["spare", &meanwhile], script).output().unwrap().into()
}

#[test]
fn spare_launcher_runs_a_command_like_a_new_one() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository().with(&["scrub"]);
    // The shell counts the processes itself: another program might be seen or not.
    let script = "pwd; cat; echo in > new; cat new; set -- /proc/[0-9]*; echo $#; \
                  echo err >&2; ls /proc/$$/fd; exit 7";
    let spare = after(&cell, "true", script);
    assert_eq!(spare.code, Some(7), "{spare:?}");
    assert_eq!(spare.stderr, "err\n");
    assert_eq!(spare.stdout, cell.inside(script).stdout);
    assert_eq!(cell.leftovers(), [cell.workspace.join("new")]);
    let killed = after(&cell, "true", "kill -KILL $$");
    assert_eq!(killed.code, Some(128 + 9), "{killed:?}");
    assert_eq!(after(&cell, "true", "exec no-such-program-here").code, Some(127));
}

#[test]
fn spare_launcher_sets_the_umask_of_the_policy() {
    if !is_walled() {
        return;
    }
    for (mask, bits) in [("077", "600"), ("002", "664")] {
        let cell = Cell::new().with(&[&format!("umask={mask}")]);
        let script = "rm -f new; touch new; stat -c %a new";
        assert_eq!(cell.permits(script).stdout.trim(), bits);
        assert_eq!(after(&cell, "true", script).stdout.trim(), bits);
    }
}

#[test]
fn spare_launcher_leaves_no_visible_files_before_its_command() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let seen = after(&cell, "ls -A $WS > $OUT/seen; ls -A $OUT >> $OUT/seen", "cat $OUT/seen");
    assert_eq!(seen.stdout, ".git\nsecret\nseen\n", "{seen:?}");
}

#[test]
fn spare_launcher_protects_and_hides_paths_that_appeared_later() {
    if !is_walled() {
        return;
    }
    let hidden = |cell: Cell| {
        let path = format!("hide={}", cell.outside.join("later").display());
        cell.with(&[&path])
    };
    for (meanwhile, script) in [
        ("echo key > $OUT/later", "cat $OUT/later"),
        ("mkdir $OUT/later; echo key > $OUT/later/key", "cat $OUT/later/key"),
        ("ln -s secret $OUT/later", "cat $OUT/secret"),
        ("mv $WS/.git $WS/old; mkdir -p $WS/.git/hooks", "echo evil > .git/hooks/pre-push"),
        ("mkdir $WS/.gnoma", "echo evil > .gnoma/config"),
        ("ln -s src $WS/.gnoma; mkdir $WS/src", "echo evil > src/config"),
    ] {
        let outcome = after(&hidden(Cell::repository()), meanwhile, script);
        assert!(outcome.code.is_some_and(|code| code != 0), "{meanwhile}: {outcome:?}");
        assert!(outcome.was_walled(), "{meanwhile}: {outcome:?}");
    }
}

#[test]
fn spare_launcher_grants_paths_that_appeared_later() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let hidden = format!("hide={}", cell.outside.join("secret").display());
    let later = format!("write={}", cell.outside.join("later").display());
    let cell = cell.with(&[&hidden, &later]);
    for (meanwhile, script) in [
        ("echo new > $OUT/new", "cat $OUT/new"),
        ("mkdir $OUT/later", "echo in > $OUT/later/x"),
        ("rm -r $WS; mkdir $WS", "cd $WS && echo in > x && cat x"),
        ("rm $OUT/secret", "test ! -e $OUT/secret"),
    ] {
        let outcome = after(&cell, meanwhile, script);
        assert!(outcome.succeeded(), "{meanwhile}: {outcome:?}");
    }
    let link = cell.workspace.join("link");
    symlink(cell.outside.join("secret"), &link).unwrap();
    cell.put_outside("secret", "secret\n");
    assert!(!after(&cell, "true", "cat link").succeeded());
}

#[test]
fn spare_launcher_ends_with_gnoma_or_after_an_idle_timeout() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    // The first waits in vain for an owner that is killed, the second for one that says nothing.
    let mut owner =
        cell.inside_with(&["spare", "meanwhile=touch $OUT/up; exec sleep 20 2> /dev/null"], "true");
    let mut owner = owner.stdout(Stdio::null()).spawn().unwrap();
    assert!(eventually(|| cell.outside.join("up").exists()));
    let all = launchers_of(owner.id());
    assert!(all.len() >= 3, "the launcher, and two that it has ready: {all:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(eventually(|| !is_any_alive(&all)));
    fs::remove_file(cell.outside.join("up")).unwrap();
    let mut silent = cell.inside_with(&["spare", "silent"], "touch $OUT/up").spawn().unwrap();
    let mut all = Vec::new();
    while silent.try_wait().unwrap().is_none() {
        all.extend(launchers_of(silent.id()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!all.is_empty(), "nothing was started");
    assert!(eventually(|| !is_any_alive(&all)));
    assert!(!cell.outside.join("up").exists());
}
