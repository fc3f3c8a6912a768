//! Programs of file operations, one after the other in a few processes: what starting and furnishing a machine for each
//! would take is a hundred times what they do.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, SystemTime},
};

use crate::cell::Cell;

/// A process that runs programs in the workspace of a cell, a line each.
pub(crate) struct Trials {
    pub(crate) cell: Cell,
    child: Child,
    programs: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Trials {
    /// Programs run on trial; with `keep` what they did is kept, else dropped.
    pub(crate) fn on_trial(keep: bool) -> Self {
        let cell = Cell::new();
        let at = format!("at={}", cell.workspace.display());
        let site = format!("site={}", cell.outside.join("layers").display());
        let settled = if keep { "keep" } else { "discard" };
        Self::start(cell, &["trial", &at, &site, settled, "lines"])
    }

    /// Programs run in place.
    pub(crate) fn bare() -> Self {
        Self::start(Cell::new(), &["ops-lines"])
    }

    fn start(cell: Cell, words: &[&str]) -> Self {
        let mut command = cell.command();
        let mut child =
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (programs, told) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { cell, child, programs, told }
    }

    /// Runs a program: the lines that were told of it.
    pub(crate) fn run(&mut self, program: &[String]) -> Vec<String> {
        writeln!(self.programs, "{}", program.join("\t")).unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.told.read_line(&mut line).unwrap() > 0, "ended: {lines:?} {program:?}");
            match line.trim_end() {
                "done" => return lines,
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// Puts something of everything into the workspace, and nothing else.
    pub(crate) fn furnish(&self) {
        let at = &self.cell.workspace;
        empty(at);
        for folder in ["a", "a/b", "d"] {
            self.cell.put_folder(folder);
        }
        for (name, text) in [("a/f", "1\n"), ("a/b/g", "22\n"), ("h", "333\n"), ("d/x", "x\n")] {
            self.cell.put(name, text);
        }
        symlink("a/f", at.join("l")).unwrap();
        self.cell.give_link(&at.join("l"));
        fs::hard_link(at.join("d/x"), at.join("d/y")).unwrap();
        fs::set_permissions(at.join("h"), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["a/f", "h"] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_001);
            fs::File::options()
                .write(true)
                .open(at.join(name))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Removes all that is in a folder, also what is closed.
fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            empty(&path);
            fs::remove_dir(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}
