//! Attempts on files outside the workspace.

use std::fs;

use crate::{
    attempts,
    cell::{Cell, is_walled},
};

attempts! {
    holds writing_by_path: "echo out > $OUT/new";
    holds appending: "echo out >> $OUT/secret";
    holds emptying: ": > $OUT/secret";
    holds removing: "rm $OUT/secret";
    holds renaming_a_file_out: "echo out > here; mv here $OUT/new";
    holds renaming_a_file_in: "mv $OUT/secret here 2>/dev/null; test ! -e $OUT/secret";
    holds writing_through_a_symbolic_link: "ln -s $OUT/secret link; echo out > link && grep out $OUT/secret";
    holds writing_through_a_linked_folder: "ln -s $OUT folder; echo out > folder/new";
    holds writing_through_a_hard_link: "ln $OUT/secret hard && echo out >> hard";
    holds linking_into_outside: "echo out > here; ln here $OUT/new";
    holds climbing_with_dots: "echo out > $WS/../outside/new";
    holds making_a_folder: "mkdir $OUT/folder";
    holds making_a_pipe: "mkfifo $OUT/pipe";
    holds making_a_link: "ln -s x $OUT/link";
    holds changing_a_mode: "chmod 600 $OUT/secret";
    holds changing_times: "touch -d 2001-01-01 $OUT/secret";
    holds naming_an_unnamed_file: "$P act unnamed-file $OUT $OUT/new";
    holds a_program_in_memory: "$P act memory-program";
    holds writing_start_up_files: "echo evil >> $HOME/.bashrc";
    holds making_credentials: "mkdir -p $HOME/.ssh && echo evil > $HOME/.ssh/authorized_keys";
    holds making_a_user_service: "mkdir -p $HOME/.config/systemd/user";
    holds leaving_through_the_root_link: "echo out > /proc/self/root$OUT/new";
    holds leaving_through_the_cwd_link: "cd $OUT && echo out > /proc/self/cwd/new";
    holds leaving_through_a_descriptor: "exec 3< $OUT; echo out > /proc/self/fd/3/new";
    holds reopening_for_writing: "exec 3< $OUT/secret; echo out > /proc/self/fd/3";
    holds marking_as_set_user: "cp /bin/true mine; chmod u+s mine; test -u mine";
    holds marking_as_set_group: "cp /bin/true mine; chmod g+s mine; test -g mine";
    holds making_as_set_user: "$P act call openat -100 s:mine 0x41 04755; $P act call openat -100 s:mine2 0x41 2541";
    holds making_as_set_user_by_the_new_call: "touch mine; $P act call fchmodat2 -100 s:mine 2541 0";
    refuses opening_with_hidden_arguments: "$P act call openat2 -100 s:mine x:41000000000000006d09 24";
    refuses writing_in_the_system: "echo out > /etc/walls";
    refuses writing_the_kernel: "echo out > /proc/sys/kernel/hostname";
    refuses writing_kernel_objects: "echo 1 > /sys/kernel/uevent_seqnum";
    refuses reading_memory_of_the_machine: "head -c 1 /dev/mem || head -c 1 /dev/kmem || head -c 1 /proc/kcore";
    refuses reading_the_disk: "for disk in /dev/sd? /dev/vd? /dev/nvme*; do head -c 1 $disk && exit; done; exit 1";
    refuses making_a_device: "mknod disk b 8 0 || mknod null c 1 3";
    refuses adding_a_timed_job: "echo '* * * * * true' | crontab -";
}

#[test]
fn hidden_files_cannot_be_read_by_any_name() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let hidden = format!("hide={}", cell.outside.display());
    let cell = cell.with(&[&hidden]);
    cell.holds("cat $OUT/secret");
    cell.holds("ls $OUT | grep secret");
    cell.holds("ln -s $OUT/secret link; cat link");
    cell.holds("cat $WS/../outside/secret");
    cell.holds("cat /proc/self/root$OUT/secret");
    cell.holds("rm -rf copy; cp -r $OUT copy && test -e copy/secret");
    cell.permits("cat /etc/passwd; ls /; echo x > here");
}

#[test]
fn a_hidden_file_in_the_workspace_cannot_be_read() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    cell.put(".env", "KEY=secret\n");
    let hidden = format!("hide={}/.env", cell.workspace.display());
    let cell = cell.with(&[&hidden]);
    cell.holds("grep secret .env");
    cell.holds("mv .env seen; grep secret seen");
    cell.put(".env", "KEY=secret\n");
    cell.holds("ln .env seen2; grep secret seen2");
}

#[test]
fn denied_writes_leave_no_files_outside_the_workspace() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    cell.refuses("echo out > $OUT/a; ln -s $OUT o; echo out > o/b; mv o/secret .; rm o/secret");
    let names: Vec<_> =
        fs::read_dir(&cell.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["secret"]);
    assert_eq!(fs::read(cell.outside.join("secret")).unwrap(), b"secret\n");
}

#[test]
fn policy_with_the_root_folder_writable_is_refused() {
    if !is_walled() {
        return;
    }
    let outcome = Cell::new().with(&["write=/"]).inside("echo out > $OUT/new");
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("nothing protected"), "{outcome:?}");
}

/// A cell whose commands may change the workspace and find temporary files of their session.
fn with_own_temporary_files() -> Cell {
    let cell = Cell::new();
    let scratch = cell.outside.join("scratch");
    for folder in [scratch.clone(), scratch.join("tmp"), scratch.join("var-tmp")] {
        fs::create_dir(&folder).unwrap();
        cell.give(&folder);
    }
    cell.with(&[&format!("temporary={}", scratch.display())])
}

#[test]
fn write_commands_use_the_session_tmp_and_not_that_of_the_machine() {
    if !is_walled() {
        return;
    }
    let cell = with_own_temporary_files();
    let scratch = cell.outside.join("scratch");
    for place in ["/tmp", "/var/tmp"] {
        let name = format!("{place}/own-{}", std::process::id());
        fs::write(&name, "of the machine\n").unwrap();
        cell.refuses(&format!("cat {name}"));
        cell.permits(&format!("echo of the session > {name} && mktemp && echo x > $WS/new"));
        assert_eq!(cell.permits(&format!("cat {name}")).stdout, "of the session\n");
        assert_eq!(fs::read_to_string(&name).unwrap(), "of the machine\n");
        fs::remove_file(&name).unwrap();
    }
    assert_eq!(fs::read_to_string(cell.workspace.join("new")).unwrap(), "x\n");
    assert!(fs::read_dir(scratch.join("tmp")).unwrap().count() >= 3);
    // What else lies among the machine's is not there.
    cell.refuses("cat $OUT/secret");
}

#[test]
fn only_granted_files_of_the_machine_tmp_are_visible_in_the_sandbox() {
    if !is_walled() {
        return;
    }
    let cell = with_own_temporary_files();
    let named = cell.outside.join("secret");
    if !named.starts_with("/tmp") {
        return;
    }
    cell.put_outside("other", "other\n");
    let cell = cell.with(&[&format!("beside={}", named.display())]);
    assert_eq!(cell.permits("cat $OUT/secret").stdout, "secret\n");
    cell.refuses("echo x > $OUT/secret");
    cell.refuses("cat $OUT/other");
    assert_eq!(fs::read_to_string(&named).unwrap(), "secret\n");
}
