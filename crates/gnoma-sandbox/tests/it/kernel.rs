//! Attempts on the kernel's interfaces, on terminals, and on rights.

use crate::{
    attempts,
    cell::{Cell, has, is_walled},
};

attempts! {
    holds a_user_namespace: "$P act call unshare 0x10000000";
    holds a_user_namespace_by_clone: "$P act clone 0x10000000";
    holds a_user_namespace_by_the_new_clone: "$P act clone3 0x10000000";
    holds a_user_namespace_by_a_program: "unshare -Ur true";
    holds a_mount_in_a_namespace: "unshare -Urm mount -t tmpfs none /mnt";
    refuses a_mount_namespace_by_clone: "$P act clone 0x20000";
    refuses a_network_namespace_by_clone: "$P act clone 0x40000000";
    refuses mounting: "$P act call mount s:none s:/mnt s:tmpfs 0 0";
    refuses mounting_on_the_walls: "$P act call mount s:$WS s:$OUT 0 4096 0";
    refuses making_writable_again: "$P act call mount 0 s:/ 0 0x1020 0";
    refuses making_writable_by_attributes: "$P act call mount_setattr -100 s:/ 0 x:000000000000000001 32";
    refuses unmounting: "$P act call umount2 s:$WS 2";
    refuses unmounting_proc: "$P act call umount2 s:/proc 2";
    refuses a_new_root: "$P act call pivot_root s:. s:.";
    refuses a_changed_root: "$P act call chroot s:.";
    refuses a_copy_of_mounts: "$P act call open_tree -100 s:/ 1";
    refuses a_new_file_system: "$P act call fsopen s:tmpfs 0";
    refuses a_filter_in_the_kernel: "$P act call bpf 0 x:01 48";
    refuses watching_the_processor: "$P act call perf_event_open x:0100000070 0 -1 -1 0";
    refuses page_faults_of_ones_own: "$P act call userfaultfd 1";
    refuses another_kernel: "$P act call kexec_load 0 0 0 0";
    refuses a_kernel_module: "$P act call init_module x:7f 1 s:";
    refuses the_kernel_log: "$P act call syslog 3 x:00 16";
    refuses restarting: "$P act call reboot 0xfee1dead 672274793 0 0";
    refuses swapping: "$P act call swapon s:here 0";
    refuses setting_the_clock: "$P act call settimeofday x:00 0";
    refuses naming_the_machine: "$P act call sethostname s:evil 4";
    holds keys_of_the_session: "$P act call add_key s:user s:name s:value 5 -3";
    holds asking_for_keys: "$P act call keyctl 0 -3 1";
    holds a_ring_of_requests: "$P act call io_uring_setup 4 x:00";
    holds a_file_by_number: "$P act call name_to_handle_at -100 s:/etc/passwd x:80 x:00 0";
    refuses opening_by_number: "$P act call open_by_handle_at 0 x:0800000001 0";
    refuses listening_to_files: "$P act call fanotify_init 0 0";
    holds a_foreign_personality: "$P act call personality 0x0400000";
    refuses becoming_root_by_su: "su -c true";
    refuses becoming_root_by_sudo: "sudo -n true";
    refuses mounting_by_a_program: "mount -t tmpfs none /mnt";
    refuses becoming_another_user: "setpriv --reuid 1 true";
}

#[test]
fn seccomp_kills_a_program_that_makes_32_bit_system_calls() {
    if cfg!(target_arch = "x86_64") && is_walled() {
        let cell = Cell::new();
        if cell.freely("$P act foreign-call").succeeded() {
            let outcome = cell.inside("$P act foreign-call; echo code $?");
            // 128 and the number of SIGSYS.
            assert_eq!(outcome.stdout, "code 159\n", "{outcome:?}");
        } else {
            gnoma_testkit::skip_test("the kernel knows one instruction set only");
        }
    }
}

#[test]
fn seccomp_allows_personality_without_address_randomization() {
    if is_walled() {
        Cell::new()
            .permits("$P act call personality 0x0040000 && $P act call personality 0xffffffff");
    }
}

#[test]
fn sandbox_drops_all_capabilities_and_sets_no_new_privs() {
    if !is_walled() {
        return;
    }
    let status = Cell::new().permits("cat /proc/self/status; ulimit -c").stdout;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    assert!(status.ends_with("\n0\n"), "core dumps are allowed: {status}");
}

#[test]
fn sandbox_denies_tiocsti_and_dev_tty() {
    if !is_walled() || !has("script") {
        return;
    }
    let cell = Cell::new();
    let in_terminal = |inner: &str| {
        // The streams of a command are the terminal here, which gnoma never does.
        cell.freely(&format!("script -qec \"{inner}; echo code \\$?\" /dev/null")).stdout
    };
    let policy = "inside write=$WS";
    let typed = in_terminal(&format!("$P {policy} -- $P act type-into-terminal"));
    assert!(typed.contains("code 1"), "{typed}");
    let opened = in_terminal(&format!("$P {policy} -- sh -c 'echo out > /dev/tty'"));
    assert!(!opened.contains("code 0"), "{opened}");
    assert!(in_terminal("echo in > /dev/tty").contains("code 0"));
}

#[test]
fn sandbox_hides_terminals_of_other_sessions() {
    if is_walled() {
        let listed =
            Cell::new().permits("ls /dev/pts; ls /dev | grep -c 'tty[0-9]\\|console' || true");
        assert_eq!(listed.stdout, "ptmx\n0\n");
    }
}
