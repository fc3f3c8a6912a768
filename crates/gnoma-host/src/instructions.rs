//! What people write down for assistants: `AGENTS.md`, `CLAUDE.md` and what it imports, `.claude/rules`, of
//! the person and of the project, from its root down to the working folder. The nearest comes last and
//! so weighs most.

mod reading;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gnoma_config::project_root;

use self::reading::InstructionReader;
pub use self::reading::{InstructionPart, Instructions};

/// Names of which the first that is there counts, in each folder.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];
/// Read besides, where no `AGENTS.md` is.
const LOCAL: &str = "CLAUDE.local.md";
/// The folder of rules, in the home and in the project.
const RULES: &str = ".claude/rules";

/// Reads the instructions that hold in `cwd`.
#[must_use]
pub fn find(cwd: &Path, config_dir: &Path, home: Option<&Path>) -> Instructions {
    let root = project_root(cwd, config_dir).unwrap_or_else(|| cwd.to_owned());
    let Ok(real_root) = root.canonicalize() else { return Instructions::default() };
    let mut reader = InstructionReader::new(home);
    users(&mut reader, config_dir, home);
    let mut folders: Vec<_> =
        cwd.ancestors().take_while(|folder| folder.starts_with(&root)).collect();
    folders.reverse();
    for (depth, folder) in folders.into_iter().enumerate() {
        // Where the home is the project, its rules were read as the person's.
        if depth == 0 && home != Some(folder) {
            for path in files_of(&folder.join(RULES)) {
                reader.read(&path, Some((&root, &real_root)));
            }
        }
        let own = |name: &str| folder.join(name);
        let first = NAMES.iter().find(|name| own(name).is_file());
        let Some(first) = first else { continue };
        reader.read(&own(first), Some((&root, &real_root)));
        if *first == "CLAUDE.md" && own(LOCAL).is_file() {
            reader.read(&own(LOCAL), Some((&root, &real_root)));
        }
    }
    reader.done()
}

/// The person's own.
fn users(reader: &mut InstructionReader<'_>, config_dir: &Path, home: Option<&Path>) {
    let own = config_dir.join("AGENTS.md");
    if own.is_file() {
        return reader.read(&own, None);
    }
    let Some(home) = home else { return };
    let theirs = home.join(".claude/CLAUDE.md");
    if theirs.is_file() {
        reader.read(&theirs, None);
    }
    for path in files_of(&home.join(RULES)) {
        reader.read(&path, None);
    }
}

/// Markdown files of a folder, sorted.
fn files_of(folder: &Path) -> BTreeSet<PathBuf> {
    /// Most entries that are looked at.
    const MOST: usize = 200;
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST).flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[cfg(test)]
mod tests {
    use super::{reading::MAX_FILE_BYTES, *};

    fn found(cwd: &Path) -> Instructions {
        find(cwd, Path::new("/nowhere"), None)
    }

    fn project() -> tempfile::TempDir {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir(project.path().join(".git")).unwrap();
        project
    }

    fn put(project: &tempfile::TempDir, name: &str, text: &str) {
        let path = project.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_nearest_comes_last_and_too_much_is_cut_and_told() {
        let project = project();
        let inner = project.path().join("a/b");
        put(&project, "AGENTS.md", "root rules");
        put(&project, "CLAUDE.md", "not read");
        put(&project, "a/b/CLAUDE.md", "inner rules");
        let text = "--- AGENTS.md\nroot rules\n--- a/b/CLAUDE.md\ninner rules\n";
        assert_eq!(found(&inner).text(), text);
        put(&project, "a/AGENTS.md", "one");
        put(&project, "a/AGENTS.override.md", "other");
        assert!(found(&inner).text().contains("--- a/AGENTS.override.md\nother\n"));
        put(&project, "a/b/CLAUDE.md", &"x".repeat(MAX_FILE_BYTES + 1));
        let cut = found(&inner);
        assert_eq!(cut.parts.last().unwrap().text.len(), MAX_FILE_BYTES);
        assert!(cut.warnings[0].contains("a/b/CLAUDE.md"), "{:?}", cut.warnings);
        put(&project, "AGENTS.md", &"y".repeat(MAX_FILE_BYTES));
        put(&project, "a/AGENTS.override.md", "z");
        let cut = found(&inner);
        assert!(cut.text().ends_with("x\n"), "the nearest is whole");
        assert!(cut.warnings.iter().any(|text| text.contains("`AGENTS.md`")), "{:?}", cut.warnings);
    }

    #[test]
    fn imports_rules_and_the_persons_own_are_read() {
        let (project, home) = (project(), tempfile::tempdir().unwrap());
        put(
            &project,
            "CLAUDE.md",
            "see @docs/a.md and `@docs/code.md`\n```\n@docs/b.md\n```\nme@x.org",
        );
        put(&project, "CLAUDE.local.md", "local");
        put(&project, "docs/a.md", "imported @b.md @../CLAUDE.md");
        put(&project, "docs/b.md", "deeper");
        put(&project, "docs/code.md", "not this");
        put(&project, ".claude/rules/r.md", "---\npaths: src/**\n---\na rule");
        put(&project, ".claude/rules/all.md", "---\nname: x\n---\nfor all");
        put(&home, ".claude/CLAUDE.md", "mine @~/notes.md");
        put(&home, "notes.md", "noted");
        let found = find(project.path(), Path::new("/nowhere"), Some(home.path()));
        let places: Vec<_> = found.parts.iter().map(|part| &*part.place).collect();
        let wanted = [
            "~/.claude/CLAUDE.md",
            "~/notes.md",
            ".claude/rules/all.md",
            "CLAUDE.md",
            "docs/a.md",
            "docs/b.md",
            "CLAUDE.local.md",
        ];
        assert_eq!(places, wanted);
        assert!(found.text().contains("rules/all.md\nfor all"), "{}", found.text());
        let scoped = (".claude/rules/r.md".to_owned(), "src/**".to_owned());
        assert_eq!(found.scoped, [scoped]);
        assert_eq!(found.warnings, [""; 0]);
    }

    #[test]
    fn what_lies_outside_is_not_brought_in() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("id_rsa");
        std::fs::write(&secret, "PRIVATE KEY").unwrap();
        let project = project();
        std::os::unix::fs::symlink(&secret, project.path().join("AGENTS.md")).unwrap();
        let found1 = found(project.path());
        assert!(found1.parts.is_empty() && found1.warnings.len() == 1, "{found1:?}");
        std::fs::remove_file(project.path().join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", project.path().join("CLAUDE.local.md")).unwrap();
        put(&project, "CLAUDE.md", &format!("@{} @.env @nobody/here.md", secret.display()));
        put(&project, ".env", "KEY=1");
        let found2 = found(project.path());
        assert_eq!(found2.parts.len(), 1);
        assert_eq!(found2.warnings.len(), 2, "{:?}", found2.warnings);
    }

    #[test]
    fn a_link_named_like_instructions_brings_in_no_secret_file() {
        let project = project();
        put(&project, ".env", "KEY=1");
        put(&project, "docs/rules.md", "plain words");
        put(&project, ".claude/rules/a.md", "a rule");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, project.path().join(name)).unwrap();
        };
        link(".env", "AGENTS.md");
        link("../../docs/rules.md", ".claude/rules/l.md");
        link("../../.env", ".claude/rules/e.md");
        let found = found(project.path());
        assert!(!found.text().contains("KEY"), "{}", found.text());
        assert!(found.text().contains("plain words") && found.text().contains("a rule"));
        assert!(found.warnings[0].contains("it may hold secrets"), "{:?}", found.warnings);
    }
}
