//! The places besides the workspace that commands may read which run unasked: programs, tool chains, git's own
//! settings, and what the settings add. Everything that is on no list is hidden from them.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    bounded_file, home,
    places::{
        self, CACHES, CACHES_BY_VARIABLE, CONFIGURED_BY_VARIABLE, PROGRAMS, SHOWN_AT_HOME,
        TOOL_CHAINS,
    },
    protocol::Environment,
};
use gnoma_sandbox::MemoryFolder;
use gnoma_tools::{ReadingPlaces, ScratchPlace};

use crate::{Folders as _, address_secrets, places::resolve_path};

/// Most bytes of git's settings that are looked at for the files they name.
const MAX_GIT_BYTES: u64 = 256 * 1024;
/// Names of git's settings that lead to a file with more of them or with patterns.
const GIT_FILES: [&str; 3] = ["path", "excludesfile", "attributesfile"];
/// Folders beside `bin` by which one sees where a program was installed.
const BESIDE_PROGRAMS: [&str; 4] = ["lib", "lib64", "libexec", "pkg"];
/// Most entries of a folder that are held against a pattern, and of all skills.
const MAX_ENTRIES: usize = 4096;
/// The folders of a user's skills: one among gnoma's settings, and below the home those of Claude Code.
const SKILLS: &str = "skills";
const CLAUDE_SKILLS: &str = ".claude/skills";
const SHARED_SKILLS: &str = ".agents/skills";
/// The depth to which folders of skills are searched.
const MAX_SKILL_DEPTH: usize = 8;

/// The places for this environment, with `more` of the settings.
pub(crate) fn reading_places(
    environment: &Environment,
    more: &[PathBuf],
    memory: Option<Arc<MemoryFolder>>,
) -> ReadingPlaces {
    let home = environment.home().filter(|home| home.is_absolute());
    let mut shown: Vec<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    let found = on_path(environment).chain(by_variables(environment, CONFIGURED_BY_VARIABLE));
    shown.extend(found.filter(|path| is_apart(path, home.as_deref())));
    shown.extend(caches_by_variable(environment));
    if let Some(home) = &home {
        let names = SHOWN_AT_HOME.iter().chain(CACHES).chain(TOOL_CHAINS);
        shown.extend(names.map(|name| home.join(name)));
        shown.extend(named_by_git(home));
    }
    shown.extend(skill_folders(environment));
    shown.extend(more.iter().cloned());
    shown.retain(|path| fs::symlink_metadata(path).is_ok());
    gnoma_core::sort::sort_items(&mut shown);
    shown.dedup();
    let hidden = home.iter().flat_map(|home| places::secrets_at_home().map(|name| home.join(name)));
    let hidden = hidden.chain(hidden_system_places());
    let hidden = hidden.filter(|path| fs::symlink_metadata(path).is_ok());
    let hidden = hidden.chain(hidden_skills(environment));
    ReadingPlaces {
        hidden: hidden.collect(),
        shown,
        scrubbed: address_secrets::credential_variables(environment),
        scratch: scratch_place(environment, memory),
    }
}

/// Returns the place of each session's temporary files: `memory`, if that is given.
pub(crate) fn scratch_place(
    environment: &Environment,
    memory: Option<Arc<MemoryFolder>>,
) -> ScratchPlace {
    match memory {
        Some(memory) => ScratchPlace::Memory(memory),
        None => ScratchPlace::Below(environment.state_dir().join("scratch")),
    }
}

/// The folders of a person's skills, whose scripts and texts commands find.
fn skill_folders(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let home = environment.home().filter(|home| home.is_absolute());
    let at_home = [CLAUDE_SKILLS, SHARED_SKILLS];
    let at_home = home.into_iter().flat_map(move |home| at_home.map(|name| home.join(name)));
    at_home.chain([environment.config_dir().join(SKILLS)])
}

/// Secrets among the skills of a person.
fn hidden_skills(environment: &Environment) -> Vec<PathBuf> {
    let mut waiting: VecDeque<_> = skill_folders(environment).map(|it| (it, 0)).collect();
    let (mut secrets, mut entries_left) = (Vec::new(), MAX_ENTRIES);
    while let Some((folder, depth)) = waiting.pop_front() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().take(entries_left);
        for entry in entries {
            entries_left -= 1;
            let (path, name) = (entry.path(), PathBuf::from(entry.file_name()));
            // Of what is around it, only the nearest folder tells.
            let near =
                folder.file_name().map_or(name.clone(), |folder| Path::new(folder).join(&name));
            if [&name, &near].into_iter().any(|below| places::find_secret(below).is_some()) {
                secrets.push(path);
            } else if path.is_dir() && depth < MAX_SKILL_DEPTH {
                waiting.push_back((path, depth + 1));
            } else if path.is_dir() {
                secrets.push(path);
            }
        }
        if entries_left == 0 {
            // What was not looked through is not shown.
            secrets.push(folder);
            secrets.extend(waiting.drain(..).map(|(folder, _)| folder));
        }
    }
    secrets
}

/// Folders that programs are looked for in, with what was installed along with them.
fn on_path(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let path = environment.get("PATH").unwrap_or_default().to_owned();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter().flat_map(|folder| {
        let around = folder.parent().filter(|around| is_installation(around));
        let around = around.map(Path::to_path_buf);
        [Some(folder), around].into_iter().flatten()
    })
}

/// Reports whether programs were installed in a folder. A repository may look alike, and contains the user's work.
fn is_installation(folder: &Path) -> bool {
    BESIDE_PROGRAMS.iter().any(|name| folder.join(name).is_dir()) && !folder.join(".git").exists()
}

/// Caches that variables name, which commands may write as well.
pub(crate) fn caches_by_variable(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.home().filter(|home| home.is_absolute());
    let found = by_variables(environment, CACHES_BY_VARIABLE);
    found.filter(|path| is_apart(path, home.as_deref())).collect()
}

fn by_variables<'a>(
    environment: &'a Environment,
    variables: &'static [(&'static str, &'static str)],
) -> impl Iterator<Item = PathBuf> + use<'a> {
    variables.iter().flat_map(|(name, parts)| {
        let folder = environment.get(name).map(PathBuf::from);
        parts.split(' ').filter_map(move |part| {
            let folder = folder.as_ref()?;
            Some(if part == "." { folder.clone() } else { folder.join(part) })
        })
    })
}

/// Reports whether a place that was found, and not named by the user, is only a place for programs: neither the
/// home nor a folder around it, no secret, and not a place where all users leave files.
fn is_apart(path: &Path, home: Option<&Path>) -> bool {
    const FOR_ALL: [&str; 3] = ["/tmp", "/var/tmp", "/dev"];
    let real = resolve_path(path);
    let home = home.map(resolve_path);
    // A home may be among temporary files; its files are private all the same.
    let is_own = home.as_ref().is_some_and(|home| real.starts_with(home));
    path.is_absolute()
        && real.parent().is_some()
        && !home.is_some_and(|home| home.starts_with(&real) || home.join(".local") == real)
        && (is_own || !FOR_ALL.iter().any(|folder| real.starts_with(folder)))
        && [path, &real].iter().all(|path| places::find_secret(path).is_none())
}

/// Files of the home that git's settings there name.
fn named_by_git(home: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for settings in [".gitconfig", ".config/git/config"] {
        let settings = home.join(settings);
        if let Ok(Some(text)) = bounded_file::read_text(&settings, MAX_GIT_BYTES) {
            named.extend(text.lines().filter_map(|line| named_in(line, home)));
        }
    }
    named.retain(|path| path.starts_with(home) && path.is_file() && is_apart(path, Some(home)));
    named
}

fn named_in(line: &str, home: &Path) -> Option<PathBuf> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let value = value.trim().trim_matches('"');
    let is_file = GIT_FILES.iter().any(|known| name.eq_ignore_ascii_case(known));
    is_file.then(|| home::expand(value, Some(home), home))
}

/// The system's secrets; those with a pattern as they are now.
fn hidden_system_places() -> impl Iterator<Item = PathBuf> {
    places::secrets_of_system().flat_map(|name| {
        let path = Path::new(name);
        if !name.contains(['*', '?']) {
            return vec![path.to_path_buf()];
        }
        let folder = path.parent().filter(|folder| !folder.starts_with("/proc"));
        let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let found = entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path());
        found.filter(|path| places::find_secret(path).is_some()).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, os::unix::fs::symlink};

    use super::*;

    /// A home with empty files; a name that ends in `/` is a folder.
    fn home(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let home = fs::canonicalize(folder.path()).unwrap();
        for name in names {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match name.ends_with('/') {
                true => fs::create_dir_all(path).unwrap(),
                false => fs::write(path, "").unwrap(),
            }
        }
        (folder, home)
    }

    /// What is shown and what is hidden below the home.
    fn found(home: &Path, variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let value = |value: &str| value.replace('~', &home.display().to_string());
        let mut all: BTreeMap<String, String> =
            variables.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
        all.insert("HOME".to_owned(), home.display().to_string());
        let found = reading_places(&Environment::new(all), &[], None);
        let below = |paths: &[PathBuf]| {
            let names = paths.iter().filter_map(|path| path.strip_prefix(home).ok());
            names.map(|name| name.display().to_string()).collect()
        };
        (below(&found.shown), below(&found.hidden))
    }

    #[test]
    fn sandbox_exposes_toolchains_but_not_other_home_files() {
        let (_folder, home) = home(&[
            ".cargo/bin/cargo",
            ".cargo/registry/",
            ".cargo/credentials.toml",
            ".gitconfig",
            ".npmrc",
            ".rustup/",
            ".ssh/id_ed25519",
            ".config/secret-tool/token",
            "notes",
            "work/other/.git/",
        ]);
        let (shown, hidden) = found(&home, &[("PATH", "/usr/bin:~/.cargo/bin")]);
        assert_eq!(shown, [".cargo/bin", ".cargo/registry", ".gitconfig", ".rustup"]);
        for name in [".cargo/credentials.toml", ".npmrc", ".ssh"] {
            assert!(hidden.iter().any(|known| known == name), "{name}: {hidden:?}");
        }
    }

    #[test]
    fn sandbox_exposes_programs_named_by_path_and_toolchain_variables() {
        let (_folder, home) = home(&[
            "go/bin/",
            "go/src/mine/",
            "sdk/node/bin/node",
            "sdk/node/lib/",
            "work/other/bin/",
            "work/other/lib/",
            "work/other/.git/",
            "rust/bin/",
            "rust/credentials.toml",
            "rc",
        ]);
        let path = "~/sdk/node/bin:~/work/other/bin:~:/:/tmp:relative:~/missing";
        let variables = [
            ("PATH", path),
            ("GOPATH", "~/go"),
            ("CARGO_HOME", "~/rust"),
            ("RIPGREP_CONFIG_PATH", "~/rc"),
            ("JAVA_HOME", "~"),
            ("NVM_DIR", "/"),
        ];
        let (shown, _) = found(&home, &variables);
        let expected = ["go/bin", "rc", "rust/bin", "sdk/node", "sdk/node/bin", "work/other/bin"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn sandbox_exposes_caches_named_by_environment_variables() {
        let (_folder, home) = home(&["cache/", "gradle/caches/", "gradle/gradle.properties"]);
        let variables = [
            ("GOCACHE", "~/cache"),
            ("GRADLE_USER_HOME", "~/gradle"),
            ("UV_CACHE_DIR", "~"),
            ("PIP_CACHE_DIR", "/tmp/pip"),
            ("SCCACHE_DIR", "relative"),
        ];
        assert_eq!(found(&home, &variables).0, ["cache", "gradle/caches"]);
        let value = |text: &str| text.replace('~', &home.display().to_string());
        let variables = variables.map(|(name, text)| (name.to_owned(), value(text)));
        let mut all = BTreeMap::from(variables);
        all.insert("HOME".to_owned(), home.display().to_string());
        let caches = caches_by_variable(&Environment::new(all));
        assert_eq!(caches.len(), 7, "{caches:?}");
        assert!(caches.iter().all(|path| path.starts_with(&home) && *path != home), "{caches:?}");
    }

    #[test]
    fn sandbox_exposes_git_config_includes_unless_they_are_secret() {
        let (_folder, home) = home(&[".gitignore_mine", "more", ".netrc", ".ssh/config"]);
        let settings = "[include]\n\tpath = ~/more\n[core]\n\texcludesFile = \".gitignore_mine\"\n\
            [a]\npath = ~/.netrc\npath=~/.ssh/config\npath = /etc/hosts\npath = ~\n";
        fs::write(home.join(".gitconfig"), settings).unwrap();
        symlink(home.join(".netrc"), home.join("linked")).unwrap();
        assert_eq!(found(&home, &[]).0, [".gitconfig", ".gitignore_mine", "more"]);
    }

    #[test]
    fn a_named_pipe_in_place_of_gits_settings_is_not_waited_for() {
        let (_folder, home) = home(&[]);
        let pipe = home.join(".gitconfig");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(named_by_git(&home).is_empty());
    }

    #[test]
    fn sandbox_hides_secret_files_in_skill_folders() {
        let (_folder, home) = home(&[
            ".claude/skills/deploy/SKILL.md",
            ".claude/skills/deploy/.env",
            ".claude/skills/deploy/keys/server.key",
            ".claude/skills/deploy/.env.example",
            ".config/gnoma/skills/db/credentials.json",
            ".config/gnoma/skills/db/.kube/config",
            ".config/gnoma/skills/db/run.sh",
        ]);
        let (_, mut hidden) = found(&home, &[]);
        hidden.retain(|name| name.contains("skills"));
        hidden.sort();
        let expected = [
            ".claude/skills/deploy/.env",
            ".claude/skills/deploy/keys/server.key",
            ".config/gnoma/skills/db/.kube",
            ".config/gnoma/skills/db/credentials.json",
        ];
        assert_eq!(hidden, expected);
    }

    #[test]
    fn sandbox_exposes_configured_readable_folders() {
        let (_folder, home) = home(&["notes"]);
        let environment = Environment::new(BTreeMap::new());
        let found = reading_places(&environment, &[home.join("notes"), home.join("absent")], None);
        assert!(found.shown.contains(&home.join("notes")));
        assert!(!found.shown.contains(&home.join("absent")));
    }
}
