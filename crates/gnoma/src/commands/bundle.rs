//! `gnoma doctor --bundle FILE`: writes an archive for a bug report, and says what is in it.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;
use gnoma_host::{Project, bug_report};

use super::common::print_safe_text;
use crate::{environment::ProcessEnvironment, report::Exit, screen::Size};

/// Variables that say how a terminal draws text.
const VARIABLES: [&str; 9] = [
    "TERM",
    "COLORTERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "NO_COLOR",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMUX",
];

/// Writes what `gnoma doctor` says, and the rest, into a new archive.
pub(super) fn write_bundle(
    project: &Project,
    doctor: &str,
    file: &Path,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let path = around.cwd.join(file);
    let files = bug_report::collect_files(project, doctor, &describe_terminal(around))?;
    bug_report::write_archive(&files, &path, project.now_ms())?;
    let mut text = format!("wrote {}, which has\n", path.display());
    for file in &files {
        let _infallible = writeln!(text, "  {:<20} {:>8} bytes", file.name, file.text.len());
    }
    text.push_str(
        "Nothing of your conversations is in it, and what looks like a secret is replaced. Look through it before \
         you send it, for example with `tar -xOf FILE`\n",
    );
    print_safe_text(&text)
}

fn describe_terminal(around: &ProcessEnvironment) -> String {
    let mut text = String::new();
    for (name, is_terminal) in [
        ("input", around.stdin_is_terminal),
        ("output", around.stdout_is_terminal),
        ("errors", around.stderr_is_terminal),
    ] {
        let kind = if is_terminal { "a terminal" } else { "not a terminal" };
        let _infallible = writeln!(text, "{name}: {kind}");
    }
    if around.stderr_is_terminal {
        let Size { columns, rows } = Size::of_terminal(std::io::stderr());
        let _infallible = writeln!(text, "size: {columns} x {rows}");
    }
    for name in VARIABLES {
        if let Some(value) = around.var(name) {
            let _infallible = writeln!(text, "{name}={value:?}");
        }
    }
    text
}
