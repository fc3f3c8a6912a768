//! Walls around commands that only read: what is on the list is all there is, and nothing lasts.

use std::{
    fs,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{PermissionsExt, symlink},
            net::{SocketAddr, UnixListener},
        },
    },
    path::PathBuf,
    process::Stdio,
};

use crate::cell::{Cell, Outcome, Victim, has, is_walled};

/// A cell, where it can be one.
fn cell() -> Option<Cell> {
    is_walled().then(Cell::for_reading)
}

fn outside_entries(cell: &Cell) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        fs::read_dir(&cell.outside).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn read_only_sandbox_runs_ordinary_reading_commands() {
    let Some(cell) = cell() else { return };
    cell.put("notes", "one\ntwo\n");
    let said = cell.permits(
        "pwd; sort notes | head -n 1; cat < /dev/null; ls -d /proc/self > /dev/null; \
         id -u > /dev/null; cat /etc/passwd > /dev/null; echo > /dev/null; cat <<E\nhere\nE",
    );
    assert_eq!(said.stdout, format!("{}\none\nhere\n", cell.workspace.display()));
    if has("git") {
        cell.permits("git -C /usr status 2> /dev/null; git --version");
    }
}

#[test]
fn read_only_sandbox_hides_files_outside_its_allowlist() {
    let Some(cell) = cell() else { return };
    cell.put_outside("file", "secret\n");
    symlink(cell.outside.join("file"), cell.workspace.join("link")).unwrap();
    for script in [
        "cat $OUT/file",
        "ls $OUT",
        "cat ../outside/file",
        "cat link",
        "cat /proc/1/root$OUT/file",
        "cat /proc/self/cwd/../outside/file",
        "head -c 1 /proc/1/environ",
    ] {
        cell.refuses(script);
    }
    // Not even their names, wherever one starts from.
    let found =
        cell.inside("find / -name outside -o -name secret -not -path '/sys/*' 2> /dev/null");
    assert_eq!(found.stdout, "");
    let roots = cell.permits("ls / /home /root /mnt /media /srv /run/ 2> /dev/null; true").stdout;
    assert!(!roots.contains("home\n"), "{roots}");
}

#[test]
fn read_only_sandbox_denies_writes_except_to_temporary_files() {
    let Some(cell) = cell() else { return };
    cell.put("file", "old\n");
    for script in [
        "echo new > file",
        "rm file",
        "mv file other",
        "touch new",
        "chmod 777 file",
        "touch -d 2001-01-01 file",
        "ln file linked",
        "touch /x",
        "touch /dev/x",
        "touch /run/x",
        "touch /etc/x",
        "touch /usr/x",
        "echo 1 > /proc/sys/kernel/pid_max",
        "echo 1 > /proc/sys/vm/drop_caches",
    ] {
        cell.refuses(script);
    }
    assert_eq!(fs::read_to_string(cell.workspace.join("file")).unwrap(), "old\n");
    assert_eq!(cell.leftovers(), [cell.workspace.join("file")]);
}

#[test]
fn read_only_sandbox_uses_the_session_tmp() {
    let Some(cell) = cell() else { return };
    let names = ["/tmp", "/var/tmp"].map(|folder| format!("{folder}/walls-{}", std::process::id()));
    for name in &names {
        fs::write(name, "of the machine\n").unwrap();
        fs::set_permissions(name, fs::Permissions::from_mode(0o666)).unwrap();
        // It can be neither read, changed nor removed.
        cell.refuses(&format!("cat {name}"));
        cell.refuses(&format!("rm {name}"));
        cell.permits(&format!("echo of the session > {name}; mktemp > /dev/null"));
        // The next command finds it.
        assert_eq!(cell.permits(&format!("cat {name}")).stdout, "of the session\n");
        assert_eq!(fs::read_to_string(name).unwrap(), "of the machine\n");
        fs::remove_file(name).unwrap();
    }
    assert_eq!(cell.permits("echo $TMPDIR").stdout, "/tmp\n");
    assert_eq!(outside_entries(&cell), ["scratch", "secret"].map(|name| cell.outside.join(name)));
}

#[test]
fn symlink_in_the_session_tmp_cannot_redirect_the_workspace_mount() {
    let Some(cell) = cell() else { return };
    let root = cell.workspace.parent().unwrap().to_owned();
    // The workspace lies in the machine's temporary folder, so that its place is made in the session's.
    let Ok(below) = root.strip_prefix("/tmp") else { return };
    let place = cell.outside.join("scratch/tmp").join(below);
    fs::remove_dir_all(&place).ok();
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    symlink(&cell.outside, &place).unwrap();
    cell.permits("test -d $WS");
    assert_eq!(outside_entries(&cell), ["scratch", "secret"].map(|name| cell.outside.join(name)));
}

#[test]
fn read_only_sandbox_lists_workspace_secrets_but_denies_opening_them() {
    let Some(cell) = cell() else { return };
    let (cell, listed) = with_secrets(cell);
    // Where the workspace lies among temporary files, a mask stands for each.
    assert_eq!(listed, ".env\nmain\n0 character special file\ncode\n");
    drop(cell);
    let Some(cell) = Cell::for_reading_elsewhere() else { return };
    if cell.workspace.starts_with("/tmp") {
        return; // What is built lies among temporary files, too.
    }
    let (cell, listed) = with_secrets(cell);
    assert_eq!(listed, ".env\nmain\n11 regular file\ncode\n");
    if has("git") {
        let git = "git -c safe.directory='*' -c user.name=a -c user.email=a";
        let made = cell.freely(&format!("git init -q . && git add -A && {git} commit -qm one"));
        assert!(made.succeeded(), "{made:?}");
        assert_eq!(cell.permits(&format!("{git} status --porcelain")).stdout, "");
    }
}

/// Tries to get at secrets in the cell; returns what a listing shows.
fn with_secrets(mut cell: Cell) -> (Cell, String) {
    cell.put_folder("api");
    for name in [".env", "api/.env"] {
        cell.put(name, "KEY=secret\n");
        let hidden = format!("hide={}", cell.workspace.join(name).display());
        cell = cell.with(&[&hidden]);
    }
    cell.put("api/main", "code\n");
    for script in [
        "cat .env",
        "grep KEY api/.env",
        "cat < .env",
        "cp .env /tmp/copy",
        "ln .env /tmp/link && cat /tmp/link",
        "ln -s $PWD/.env /tmp/soft; cat /tmp/soft",
        "cat /proc/self/cwd/.env",
        "cat /proc/self/root$PWD/api/.env",
        "rm .env",
        "mv api/.env x",
        "echo x > .env",
        "grep -r KEY .",
    ] {
        cell.refuses(script);
    }
    let listed = cell.permits("ls -A api; stat -c '%s %F' .env; cat api/main").stdout;
    (cell, listed)
}

#[test]
fn read_only_sandbox_cannot_connect_to_tcp_or_unix_servers() {
    let Some(cell) = cell() else { return };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    cell.holds(&format!("$P act tcp {address}"));
    let path = cell.workspace.join("service.sock");
    let _service = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    cell.holds("$P act unix service.sock");
    let name = format!("walls-reading-{}", std::process::id());
    let named = SocketAddr::from_abstract_name(&name).unwrap();
    let _named = UnixListener::bind_addr(&named).unwrap();
    cell.holds(&format!("$P act abstract {name}"));
    cell.refuses("$P act tcp 192.0.2.1:443");
    cell.refuses("$P act udp 192.0.2.1:53");
    cell.permits("$P act loopback");
}

#[test]
fn commands_side_by_side_do_not_share_a_loopback() {
    if !is_walled() || !has("python3") {
        return;
    }
    let cell = Cell::for_reading();
    // The same session: the second command is a child of the same holder, and finds no server.
    let serve = "import socket,sys,time; s=socket.create_server((\"127.0.0.1\",0)); \
        print(s.getsockname()[1]); sys.stdout.flush(); time.sleep(2)";
    let shared = cell.inside_with(&["times=1"], &format!("python3 -c '{serve}' & sleep 0.5"));
    let mut shared = shared;
    let outcome = Outcome::from(shared.output().unwrap());
    let port = outcome.stdout.trim().to_owned();
    assert!(port.parse::<u16>().is_ok(), "{outcome:?}");
    cell.refuses(&format!("$P act tcp 127.0.0.1:{port}"));
}

#[test]
fn read_only_sandbox_hides_other_processes() {
    let Some(cell) = cell() else { return };
    let mut victim = Victim::of(&cell);
    cell.refuses(&format!("kill -9 {}", victim.number()));
    cell.refuses(&format!("cat /proc/{}/cmdline", victim.number()));
    assert!(victim.is_alive());
    let seen: u32 = cell.permits("ls -d /proc/[0-9]* | wc -l").stdout.trim().parse().unwrap();
    assert!(seen < 8, "{seen}");
    if has("ipcs") {
        let shared = cell.permits("ipcmk -M 4096 > /dev/null; ipcs -m | grep -c 0x; true");
        let again = cell.permits("ipcs -m | grep -c 0x; true");
        assert_eq!((shared.stdout.trim(), again.stdout.trim()), ("1", "0"));
    }
}

#[test]
fn read_only_sandbox_shows_an_allowed_symlink_and_its_target() {
    let Some(cell) = cell() else { return };
    fs::create_dir_all(cell.outside.join("tools/bin")).unwrap();
    fs::write(cell.outside.join("tools/bin/list"), "found\n").unwrap();
    symlink(cell.outside.join("tools"), cell.outside.join("current")).unwrap();
    let shown = format!("show={}", cell.outside.join("current/bin").display());
    let cell = cell.with(&[&shown]);
    let said = cell.permits("cat $OUT/current/bin/list $OUT/tools/bin/list");
    assert_eq!(said.stdout, "found\nfound\n");
    cell.refuses("cat $OUT/secret");
}

#[test]
fn read_only_allowlist_holds_without_namespaces() {
    if !is_walled() {
        return;
    }
    let cell = Cell::for_reading().with(&["no-namespaces"]);
    cell.put("file", "words\n");
    for script in [
        "cat $OUT/secret",
        "ls $OUT/scratch/..",
        "touch new",
        "echo x > file",
        "touch /tmp/walls-none",
        "$P act tcp 192.0.2.1:443",
        "$P act socket 1 1 0",
    ] {
        let outcome = cell.inside(script);
        assert!(!outcome.succeeded() && outcome.was_walled(), "{script}: {outcome:?}");
    }
    let said = cell.permits("cat file; echo kept > $TMPDIR/x; cat $TMPDIR/x");
    assert_eq!(said.stdout, "words\nkept\n");
}

/// Commands of a session whose workspace lies among temporary files run at once and again and again: each
/// finds the workspace, whatever the others do, whether or not somebody stood ready for it.
#[test]
fn parallel_read_only_commands_do_not_interfere_in_a_workspace_below_tmp() {
    if !is_walled() {
        return;
    }
    let cell = Cell::for_reading();
    cell.put_folder("src");
    cell.put("src/file", "here\n");
    let script = "cat src/file; sleep 0.05; rm -rf /tmp/* 2> /dev/null; \
                  mv /tmp/walls* /tmp/else 2> /dev/null; sleep 0.05; cat src/file $WS/src/file";
    for _ in 0..rounds() {
        let start = |number: usize| {
            let words: &[&str] = if number.is_multiple_of(2) { &["spare"] } else { &[] };
            let mut command = cell.inside_with(words, script);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = (0..20).map(start).collect();
        for child in running {
            let outcome = Outcome::from(child.wait_with_output().unwrap());
            assert_eq!(outcome.stdout, "here\nhere\nhere\n", "{outcome:?}");
        }
    }
}

/// How often that is repeated.
fn rounds() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
    let wanted = std::env::var("GNOMA_PARALLEL_ROUNDS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(2)
}
