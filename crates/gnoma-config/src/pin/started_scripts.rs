//! What the scripts that settings name load or start themselves: `. ./lib.sh`, `import helper`,
//! `require("./lib")`, `include rules.mk`, `sh tools/next.sh`.
//!
//! Not a parser of any language: a word of a script counts where it leads to a file of the project, as the
//! language would complete it, and stands behind a word that loads, or names a script of a shell or a neighbour.
//! Programs of the project that a script starts (`node src/index.js`, `pytest`) and data are not pinned: work on the
//! project would take its trust away.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use gnoma_core::bounded_file;

use super::file_name_candidates::as_a_shell_reads;

/// The number of scripts in a row that are followed, each started by the one before.
const MAX_STEPS: usize = 2;
/// Most bytes of a script that are read.
const MAX_SCRIPT_BYTES: u64 = 128 << 10;
/// Most scripts that are read, and most files that are looked for because of all of them; a project with more
/// has no pin.
const MAX_SCRIPTS: usize = 2_000;
const MAX_LOOKS: usize = 200_000;

/// Endings of scripts of a shell.
const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "fish"];
/// The endings of the file names of programs.
const PROGRAMS: [&str; 17] = [
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "pm", "lua", "php",
    "mk", "awk", "jq",
];
/// The endings that languages add to the name of a module.
const COMPLETIONS: [&str; 10] =
    [".py", "/__init__.py", ".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.ts", ".rb", ".pm"];
/// Words before the name of a module or file that is loaded.
const LOADERS: [&str; 9] =
    ["import", "from", "require", "require_relative", "use", "include", "source", ".", "load"];
/// The folders in which modules lie, below the script's own folder and the project's.
const LIBRARIES: [&str; 3] = ["", "lib", "src"];

/// The programs that those `named` start or load, seen from `folder`; without these themselves.
/// `None` where they are more than can be followed.
pub(super) fn find_started_scripts(
    folder: &Path,
    named: &BTreeSet<PathBuf>,
) -> Option<BTreeSet<PathBuf>> {
    let mut search = ScriptSearch { folder, looks: MAX_LOOKS, seen: BTreeSet::new() };
    let mut found = BTreeSet::new();
    let mut next: Vec<PathBuf> = named.iter().cloned().collect();
    next.retain(|file| is_script(&folder.join(file)));
    let mut scripts = MAX_SCRIPTS;
    for _ in 0..MAX_STEPS {
        let mut behind = Vec::new();
        for script in next.drain(..) {
            scripts = scripts.checked_sub(1)?;
            let Some(text) = read_script(&folder.join(&script)) else { continue };
            let here = script.parent().unwrap_or(Path::new(""));
            // The rules of `make` start what the project is made of.
            let starts = !is_rules(&script);
            let loaded = search.find_loaded_scripts(here, &text, starts).into_iter();
            behind
                .extend(loaded.filter(|file| !named.contains(file) && found.insert(file.clone())));
        }
        next = behind;
    }
    (search.looks > 0).then_some(found)
}

/// The text of a script; `None` where it is none.
fn read_script(path: &Path) -> Option<String> {
    let content = bounded_file::read_start(path, MAX_SCRIPT_BYTES).ok()?;
    (!content.contains(&0)).then(|| String::from_utf8_lossy(&content).into_owned())
}

struct ScriptSearch<'f> {
    folder: &'f Path,
    /// The number of files that may still be looked for.
    looks: usize,
    /// Folders of scripts with words that were looked for there.
    seen: BTreeSet<(PathBuf, String)>,
}

impl ScriptSearch<'_> {
    fn find_loaded_scripts(&mut self, here: &Path, text: &str, starts: bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for line in text.lines() {
            // Perl's and Ruby's `Foo::Bar` is `Foo/Bar`.
            let read = as_a_shell_reads(&line.replace("::", "/"));
            let mut loads = false;
            for word in read.iter().flat_map(|word| word.split([' ', ',', '`', '"', '\'', ':'])) {
                let word = word.trim_matches(['{', '}', '[', ']', ';']);
                let is_loaded = std::mem::replace(&mut loads, LOADERS.contains(&word));
                let may_be_one = is_loaded || starts && word.len() > 1 && word.contains(['.', '/']);
                if may_be_one && self.seen.insert((here.to_owned(), word.to_owned())) {
                    found.extend(self.of_word(here, word, is_loaded));
                }
            }
        }
        found
    }

    /// The program that one word of a script leads to.
    fn of_word(&mut self, here: &Path, word: &str, is_loaded: bool) -> Option<PathBuf> {
        // `"$(dirname "$0")/lib.sh"`, `$DIR/lib.sh`: a variable stands for a folder.
        let is_open = word.starts_with(['$', '{', '/']);
        let tail = if is_open { word.split_once('/').map_or(word, |(_, tail)| tail) } else { word };
        let is_path = word.starts_with("./") || word.starts_with("../");
        let mut names = vec![tail.to_owned()];
        if is_loaded || is_path {
            let module = tail.trim_start_matches('.').replace('.', "/");
            names.extend(COMPLETIONS.map(|ending| format!("{tail}{ending}")));
            names.extend(COMPLETIONS.map(|ending| format!("{module}{ending}")));
        }
        let places = [here, Path::new("")];
        let places = places.iter().flat_map(|start| LIBRARIES.map(|library| start.join(library)));
        for place in places {
            for name in &names {
                self.looks = self.looks.checked_sub(1)?;
                let Some(file) = normalize_inside_project(&place.join(name)) else { continue };
                let path = self.folder.join(&file);
                let is_next = is_loaded || is_started(here, &file, &path, is_path);
                if path.is_file() && is_next {
                    return Some(file);
                }
            }
        }
        None
    }
}

/// Reports whether the content of a file is run: prose and settings only name things.
fn is_script(path: &Path) -> bool {
    path.extension().is_none() || has_ending(path, &PROGRAMS)
}

/// Reports whether a script in `here` that names this file runs it as a part of itself.
fn is_started(here: &Path, file: &Path, path: &Path, is_path: bool) -> bool {
    let is_neighbour = here != Path::new("") && file.parent() == Some(here);
    has_ending(file, &SHELLS)
        || is_neighbour && has_ending(file, &PROGRAMS)
        || file.extension().is_none() && (is_path || has_right(path))
}

fn is_rules(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    has_ending(path, &["mk"]) || name.to_ascii_lowercase().ends_with("file")
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| endings.contains(&ending))
}

#[cfg(unix)]
fn has_right(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn has_right(_path: &Path) -> bool {
    false
}

/// Without `.` and `..`; `None` where it leads out of the project.
fn normalize_inside_project(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => inside.push(name),
            Component::ParentDir => {
                if !inside.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::pin::tests::pins;

    #[test]
    fn trust_pin_covers_scripts_that_scripts_run_or_load() {
        for (command, script, text, name, is_pinned) in [
            ("sh x.sh", "x.sh", ". ./lib.sh\n", "lib.sh", true),
            ("sh a/x.sh", "a/x.sh", ". \"$(dirname \"$0\")/lib.sh\"\n", "a/lib.sh", true),
            ("sh a/x.sh", "a/x.sh", "source ${DIR}/lib\n", "a/lib", true),
            ("./x", "x", "#!/usr/bin/env -S sh ./y\n", "y", true),
            ("python3 h.py", "h.py", "import helper\n", "helper.py", true),
            ("python3 h.py", "h.py", "from tools.a import b\n", "tools/a.py", true),
            ("python3 a/h.py", "a/h.py", "from .b import c\n", "a/b.py", true),
            ("python3 h.py", "h.py", "import json\n", "json.py", true),
            ("node h.js", "h.js", "const a = require('./lib');\n", "lib.js", true),
            ("node h.mjs", "h.mjs", "import a from \"./lib/index.js\";\n", "lib/index.js", true),
            ("node hooks", "hooks/index.js", "require('../tools/x')", "tools/x.js", true),
            ("make hook", "Makefile", "include sub.mk\n", "sub.mk", true),
            ("npm run hook", "package.json", "{\"main\":\"./x.js\"}", "x.js", false),
            (
                "make hook",
                "Makefile",
                "run:\n\tpython3 src/app.py\n\t./run.sh\n",
                "src/app.py",
                false,
            ),
            ("make hook", "Makefile", "run:\n\t./run.sh\n", "run.sh", false),
            ("sh x.sh", "x.sh", "node src/index.js && pytest tests/a.py\n", "tests/a.py", false),
            ("sh hooks/x.sh", "hooks/x.sh", "python3 hooks/check.py\n", "hooks/check.py", true),
            ("sh x.sh", "x.sh", "sh tools/next.sh\n", "tools/next.sh", true),
            ("npm run hook", "package.json", "{}", ".npmrc", true),
            ("perl -Ilib x.pl", "x.pl", "use Foo::Bar;\n", "lib/Foo/Bar.pm", true),
            ("sh x.sh", "x.sh", "cat notes.txt src/main.rs > out.json\n", "notes.txt", false),
            ("sh x.sh", "x.sh", "cargo fmt -- src/main.rs\n", "src/main.rs", false),
            ("sh x.sh", "x.sh", "sh ../other.sh /etc/x.sh\n", "etc/other.sh", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join(script).parent().unwrap()).unwrap();
            fs::write(folder.path().join(script), text).unwrap();
            assert_eq!(pins(folder.path(), command, name), is_pinned, "{command}: {name}");
        }
    }

    #[test]
    fn script_following_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        put("a.sh", ". ./b.sh\n. ./a.sh\n");
        put("b.sh", &format!(". ./c.sh\n{}", ". ./x/y.z\n./q.r s/t.u\n".repeat(40_000)));
        put("c.sh", ". ./d.sh\n");
        assert!(pins(folder.path(), "sh a.sh", "c.sh"));
        assert!(!pins(folder.path(), "sh a.sh", "d.sh"));
    }
}
