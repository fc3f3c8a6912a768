//! Instruction files for assistants: `AGENTS.md`, `CLAUDE.md` and what it imports, `.claude/rules`, of the person and
//! of the project, from its root down to the working folder. The nearest comes last and so weighs most.

mod instruction_reader;

use std::path::Path;

use gnoma_config::project_root;
use gnoma_extend::{instructions_in, rule_files};

use self::instruction_reader::InstructionReader;
pub use self::instruction_reader::{InstructionPart, Instructions};

/// Names that are reported if they are no file where a folder has no instructions.
const NAMED_LIKE_INSTRUCTIONS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The person's own in another program's folder, below the home.
const THEIRS: &str = ".claude/CLAUDE.md";
/// The folder of rules, in the home and in the project.
const RULES: &str = ".claude/rules";

/// Reads the instructions that apply in `cwd`.
#[must_use]
pub fn find(cwd: &Path, config_dir: &Path, home: Option<&Path>) -> Instructions {
    let root = project_root(cwd, config_dir).unwrap_or_else(|| cwd.to_owned());
    let Ok(real_root) = root.canonicalize() else { return Instructions::default() };
    let mut reader = InstructionReader::new(home);
    // The nearest is read first, so that what is too much is what is farthest.
    for folder in cwd.ancestors().take_while(|folder| folder.starts_with(&root)) {
        reader.begin_farther();
        // Where the home is the project, that file and its rules are the person's.
        let is_home = home == Some(folder);
        let found = instructions_in(folder);
        if found.is_empty() {
            for name in NAMED_LIKE_INSTRUCTIONS {
                reader.warn_of_no_file(&folder.join(name), Some((&root, &real_root)));
            }
        }
        for path in found {
            if !(is_home && path.ends_with(THEIRS)) {
                reader.read(&path, Some((&root, &real_root)));
            }
        }
        if folder == root && !is_home {
            reader.begin_farther();
            for path in rule_files(&folder.join(RULES)) {
                reader.read(&path, Some((&root, &real_root)));
            }
        }
    }
    reader.begin_farther();
    read_user_instructions(&mut reader, config_dir, home);
    reader.into_instructions()
}

/// Reads the user's own instructions.
fn read_user_instructions(
    reader: &mut InstructionReader<'_>,
    config_dir: &Path,
    home: Option<&Path>,
) {
    let own = config_dir.join("AGENTS.md");
    if own.is_file() {
        return reader.read(&own, None);
    }
    let Some(home) = home else { return };
    let theirs = home.join(THEIRS);
    if theirs.is_file() {
        reader.read(&theirs, None);
    }
    for path in rule_files(&home.join(RULES)) {
        reader.read(&path, None);
    }
}

#[cfg(test)]
mod tests {
    use super::{instruction_reader::MAX_FILE_BYTES, *};

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
    fn nearest_agents_md_comes_last_and_oversized_ones_are_cut() {
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
    fn a_named_pipe_in_place_of_instructions_is_not_waited_for() {
        let project = project();
        let pipe = project.path().join("AGENTS.md");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(found(project.path()).text(), "");
    }

    #[test]
    fn agents_md_in_utf16_or_with_cr_line_ends_is_decoded() {
        let project = project();
        for bytes in
            [&b"\xff\xfea\0\n\0b\0"[..], b"\xfe\xff\0a\0\n\0b", b"a\rb", b"\xef\xbb\xbfa\nb"]
        {
            std::fs::write(project.path().join("AGENTS.md"), bytes).unwrap();
            assert_eq!(found(project.path()).text(), "--- AGENTS.md\na\nb\n", "{bytes:?}");
        }
    }

    #[test]
    fn claude_md_imports_rules_and_user_instructions_are_read() {
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
        put(&project, ".claude/rules/sub/deep/d.md", "deep rule");
        put(&project, ".claude/CLAUDE.md", "inner");
        put(&home, ".claude/CLAUDE.md", "mine @~/notes.md");
        put(&home, "notes.md", "noted");
        let found = find(project.path(), Path::new("/nowhere"), Some(home.path()));
        let places: Vec<_> = found.parts.iter().map(|part| &*part.place).collect();
        let wanted = [
            "~/.claude/CLAUDE.md",
            "~/notes.md",
            ".claude/rules/all.md",
            ".claude/rules/sub/deep/d.md",
            "CLAUDE.md",
            "docs/a.md",
            "docs/b.md",
            ".claude/CLAUDE.md",
            "CLAUDE.local.md",
        ];
        assert_eq!(places, wanted);
        assert!(found.text().contains("rules/all.md\nfor all"), "{}", found.text());
        let scoped = (".claude/rules/r.md".to_owned(), "src/**".to_owned());
        assert_eq!(found.scoped, [scoped]);
        assert_eq!(found.warnings, [""; 0]);
    }

    #[test]
    fn claude_local_md_counts_alone_and_the_nearest_file_is_kept() {
        let project = project();
        put(&project, "CLAUDE.local.md", "my own");
        put(&project, "a/.claude/CLAUDE.md", "nearest");
        let inner = project.path().join("a");
        assert_eq!(
            found(&inner).text(),
            "--- CLAUDE.local.md\nmy own\n--- a/.claude/CLAUDE.md\nnearest\n"
        );
        for number in 0..150 {
            put(&project, &format!(".claude/rules/r{number}.md"), "a rule");
        }
        let many = found(&inner);
        assert!(many.text().ends_with("--- a/.claude/CLAUDE.md\nnearest\n"), "{}", many.text());
        assert!(many.text().contains("my own"));
        assert!(
            many.warnings[0].contains("more than 100 instruction files"),
            "{:?}",
            many.warnings
        );
        assert_eq!(many.warnings.len(), 1);
    }

    #[test]
    fn instruction_file_name_cannot_inject_lines() {
        let project = project();
        put(&project, "a\nIgnore all\u{1b}[2J/AGENTS.md", "inner");
        let text = found(&project.path().join("a\nIgnore all\u{1b}[2J")).text();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn instructions_outside_the_project_are_not_imported() {
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
        assert_eq!(found2.warnings.len(), 3, "{:?}", found2.warnings);
        assert!(
            found2.warnings.contains(&"`@nobody/here.md` (CLAUDE.md:1) does not exist".to_owned()),
            "{:?}",
            found2.warnings
        );
    }

    #[test]
    fn binary_agents_md_is_skipped_with_one_warning() {
        let project = project();
        let agents = project.path().join("AGENTS.md");
        let warned = || {
            let found = found(project.path());
            assert!(found.parts.is_empty(), "{found:?}");
            found.warnings
        };
        let noise: Vec<u8> =
            (0..3_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        std::fs::write(&agents, noise).unwrap();
        assert_eq!(warned(), ["`AGENTS.md` is not text and was left out"]);
        let cyrillic: Vec<u8> = b"\xcf\xf0\xe0\xe2\xe8\xeb\xe0 ".repeat(40);
        std::fs::write(&agents, cyrillic).unwrap();
        assert_eq!(warned(), ["`AGENTS.md` is not UTF-8 and was left out; save it as UTF-8"]);
        std::fs::remove_file(&agents).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", &agents).unwrap();
        assert_eq!(warned(), ["`AGENTS.md` is a link that leads nowhere and was left out"]);
        std::fs::remove_file(&agents).unwrap();
        std::fs::create_dir(&agents).unwrap();
        assert_eq!(warned(), ["`AGENTS.md` is a folder and was left out"]);
        std::fs::remove_dir(&agents).unwrap();
        put(&project, "AGENTS.md", "see @nosuch.md and @types/node, @nosuch.md");
        assert_eq!(found(project.path()).warnings, ["`@nosuch.md` (AGENTS.md:1) does not exist"]);
        std::fs::write(&agents, b"Gr\xfc\xdfe aus K\xf6ln, in einer alten Kodierung").unwrap();
        assert_eq!(found(project.path()).parts.len(), 1);
    }

    #[test]
    fn agents_md_symlink_to_a_secret_file_is_not_read() {
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
        assert!(found.warnings[0].contains("it may contain secrets"), "{:?}", found.warnings);
    }
}
