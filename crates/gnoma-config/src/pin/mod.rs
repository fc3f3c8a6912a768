//! Trust is pinned to content: hashes of every file that could run something on a project's behalf.
//!
//! That is the project's `.gnoma/config.toml`, the settings of other programs that gnoma reads, every file
//! in the folders of `.gnoma`, `.claude`, `.agents` and `.codex` that hold hooks, skills, plugins, agents
//! and commands, and every file of the project that one of these settings names, in a command or an
//! argument, that fits a pattern in a command, or that a program named there is known to run (`Makefile`,
//! `package.json`, the file of `python3 -m`) or that the rule there names which the command does ([`rules`]), and the
//! programs of the project that these start or load
//! ([`started`]), and the hooks of its git repository. Hooks and servers of the project's plugins count as settings. One changed byte, one more or one
//! less file is another pin.
//!
//! Not covered: data that they read, and what is named only when it runs ([`unpinned_commands`]).

mod build_rule_files;
mod dynamic_commands;
mod file_name_candidates;
mod git_hooks;
mod patterns;
mod ruled_commands;
mod rules;
mod settings;
mod started_scripts;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use gnoma_core::bounded_file;
use sha2::{Digest, Sha256};

use crate::paths;
pub use git_hooks::git_hooks;
use settings::SettingsTexts;

/// Settings of other programs that act here, too.
const SETTINGS: [&str; 5] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".mcp.json",
];
/// Folders of a project that hold what acts.
const HOLDING: [&str; 4] = [".agents", ".claude", ".codex", ".gnoma"];
/// Most bytes of settings that are searched for names of files.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// The one of these that holds plugins, and how deep in the project the folder of a plugin lies.
const PLUGINS: &str = "plugins";
const PLUGIN_DEPTH: usize = 3;
/// Most bytes of what plugins say, together.
const MAX_PLUGIN_BYTES: u64 = 16 << 20;
/// Folders in those whose files act.
const ACTING: [&str; 7] =
    ["agents", "commands", "hooks", "output-styles", PLUGINS, "skills", "tasks"];
/// Most files that are looked at; a folder with more has no pin.
const MAX_FILES: usize = 2000;
/// Most bytes of all files together.
const MAX_BYTES: u64 = 256 << 20;
/// The largest depth to which folders may be nested.
const MAX_DEPTH: usize = 16;
/// Most folders named by the configuration in which the other names are looked for.
const MAX_FOLDERS: usize = 32;
/// The files of the project in `folder` that could act on its behalf, seen from there; its configuration
/// has this `content`.
///
/// # Errors
/// There are too many to look at.
pub fn list_acting_files(folder: &Path, content: &[u8]) -> io::Result<Vec<PathBuf>> {
    Ok(acting_files(folder, content)?.into_iter().collect())
}

/// The pin of the project in `folder` whose configuration has this `content`.
///
/// # Errors
/// A file cannot be read, or there are too many to look at.
pub fn compute_pin(folder: &Path, content: &[u8]) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash_part(&mut hash, Path::new("config"), content.len() as u64);
    hash.update(content);
    let mut left = MAX_BYTES;
    for file in acting_files(folder, content)? {
        let mut opened = bounded_file::open(&folder.join(&file))?;
        let length = opened.metadata()?.len();
        left = left.checked_sub(length).ok_or_else(too_much)?;
        hash_part(&mut hash, &file, length);
        let copied = io::copy(&mut opened.by_ref().take(length), &mut hash)?;
        hash.update(copied.to_le_bytes());
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digits}"))
}

/// Lengths go in too, so that no content can pass for the start of another file.
fn hash_part(hash: &mut Sha256, name: &Path, length: u64) {
    let name = name.as_os_str().as_encoded_bytes();
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    hash.update(length.to_le_bytes());
}

fn too_much() -> io::Error {
    io::Error::other("it has too many hooks, skills and scripts to pin, or they are too large")
}

/// The files that act, seen from `folder`, sorted.
fn acting_files(folder: &Path, content: &[u8]) -> io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for hook in git_hooks(folder) {
        let inside = hook.strip_prefix(folder).map(Path::to_path_buf);
        add_file(inside.unwrap_or(hook), &mut files)?;
    }
    let said = read_settings_words(folder, content, &mut files)?;
    let mut words = file_name_candidates::collect_words(&said);
    // A variable may stand for the folder.
    let below_first = |word: &String| word.split_once('/').map(|(_, rest)| rest.to_owned());
    let shorter: Vec<String> = words.iter().filter_map(below_first).collect();
    words.extend(shorter.into_iter().filter(|word| !word.is_empty()));
    let named: Vec<_> =
        words.iter().map(|word| file_name_candidates::relative_to_folder(folder, word)).collect();
    // A command may enter a folder before it names a file.
    let folders = named.iter().filter(|name| folder.join(name).is_dir()).take(MAX_FOLDERS);
    for below in std::iter::once(&PathBuf::new()).chain(folders) {
        for name in named.iter().map(|name| below.join(name)) {
            if folder.join(&name).is_file() {
                add_file(name, &mut files)?;
            }
        }
    }
    let mut left = patterns::Budget::default();
    for command in said.command_lines() {
        for file in patterns::match_files(folder, command, &mut left).found {
            add_file(file, &mut files)?;
        }
    }
    for file in started_scripts::find_started_scripts(folder, &files).ok_or_else(too_much)? {
        add_file(file, &mut files)?;
    }
    Ok(files)
}

/// Reads the texts of the configuration, of the settings of other programs and of plugins. Adds to `files` the
/// files of everything that acts without being named.
fn read_settings_words(
    folder: &Path,
    content: &[u8],
    files: &mut BTreeSet<PathBuf>,
) -> io::Result<SettingsTexts> {
    for (holding, name) in HOLDING.iter().flat_map(|holding| ACTING.map(|name| (holding, name))) {
        add_files_below(folder, &Path::new(holding).join(name), 0, files)?;
    }
    let mut said = SettingsTexts::default();
    said.read_content(content);
    let mut left = MAX_PLUGIN_BYTES;
    for file in &*files {
        let mut parts = file.iter();
        if parts.nth(1).is_some_and(|kind| kind == PLUGINS) {
            let content = bounded_file::read_start(&folder.join(file), MAX_SETTINGS_BYTES)?;
            left = left.checked_sub(content.len() as u64).ok_or_else(too_much)?;
            let plugin: PathBuf = file.iter().take(PLUGIN_DEPTH).collect();
            said.read_plugin(&content, &plugin);
        }
    }
    for name in SETTINGS {
        let file = folder.join(name);
        if file.is_file() {
            said.read_content(&bounded_file::read_start(&file, MAX_SETTINGS_BYTES)?);
            add_file(PathBuf::from(name), files)?;
        }
    }
    let mut rules = rules::RuleSearch::new(folder);
    for command in &said.commands {
        let ruled = rules.follow_command(command).ok_or_else(too_much)?;
        said.texts.extend(ruled.lines.iter().cloned());
        said.ruled.push(ruled);
    }
    Ok(said)
}

/// The commands in the settings of the project in `folder` that name files only when they run, so that these are in
/// no pin.
///
/// # Errors
/// A file of settings cannot be read.
pub fn unpinned_commands(folder: &Path, content: &[u8]) -> io::Result<Vec<String>> {
    let said = read_settings_words(folder, content, &mut BTreeSet::new())?;
    let mut left = patterns::Budget::default();
    let mut is_open_itself = |command: &String| {
        let matched = patterns::match_files(folder, command, &mut left);
        matched.is_cut || dynamic_commands::shows_when_it_runs(command, &said.variables)
    };
    let mut is_open = |(command, ruled): &(&String, &ruled_commands::RuledCommands)| {
        is_open_itself(command) || ruled.is_open || ruled.lines.iter().any(&mut is_open_itself)
    };
    let commands = said.commands.iter().zip(&said.ruled).filter(|each| is_open(each));
    let commands: BTreeSet<&String> =
        gnoma_core::sort::to_set(commands.map(|(command, _)| command));
    Ok(commands.into_iter().cloned().collect())
}

/// A project's `.gnoma/config.toml`, empty where there is none but something else that acts; `None` where
/// nothing does.
///
/// # Errors
/// A file cannot be read.
pub fn read_config_content(folder: &Path) -> io::Result<Option<Vec<u8>>> {
    if let Some(content) = paths::read_config_file(&paths::project_file(folder))? {
        return Ok(Some(content));
    }
    Ok((!acting_files(folder, &[])?.is_empty()).then(Vec::new))
}

fn add_file(file: PathBuf, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    files.insert(file);
    if files.len() > MAX_FILES { Err(too_much()) } else { Ok(()) }
}

/// All files at and below `relative`. Links are followed: what they lead to is what would act.
fn add_files_below(
    folder: &Path,
    relative: &Path,
    depth: usize,
    files: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(too_much());
    }
    let entries = match fs::read_dir(folder.join(relative)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let inside = relative.join(entry?.file_name());
        let path = folder.join(&inside);
        if path.is_dir() {
            add_files_below(folder, &inside, depth + 1, files)?;
        } else if path.is_file() {
            add_file(inside, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &[u8] = br#"[[hooks]]
exec = "sh ./scripts/check.sh --strict"
[[mcp_servers]]
command = "tools/server"
args = ["--data=tools/data.json"]
"#;

    #[test]
    fn named_pipes_in_a_project_do_not_block_the_trust_pin() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            build_rule_files::PACKAGE_FILES,
            build_rule_files::MAKEFILES,
            build_rule_files::JUSTFILES,
        ]
        .concat();
        let others = [
            ".git/config",
            ".git/commondir",
            ".git/hooks/pre-commit",
            ".claude/settings.json",
            "run.sh",
        ];
        for name in files.into_iter().chain(others).chain(SETTINGS) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !path.exists() {
                assert!(
                    std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()
                );
            }
        }
        let config = b"[[hooks]]\nexec = 'npm test && make test && just test && sh run.sh *.sh'\n";
        assert!(list_acting_files(folder.path(), config).unwrap().is_empty());
        assert!(compute_pin(folder.path(), config).is_ok());
        assert!(read_config_content(folder.path()).unwrap().is_none());
    }

    #[test]
    fn trust_pin_covers_exactly_the_files_that_act() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        let pin = || super::compute_pin(folder.path(), CONFIG).unwrap();
        let mut last = pin();
        for name in [
            "scripts/check.sh",
            "tools/server",
            "tools/data.json",
            ".gnoma/hooks/a",
            ".gnoma/skills/x/y/run.py",
        ] {
            for text in ["one", "two"] {
                put(name, text);
                let now = pin();
                assert_ne!(now, last, "{name}");
                last = now;
            }
        }
        put(".mcp.json", r#"{"mcpServers": {"a": {"command": "tools\u002fother"}}}"#);
        assert_ne!(pin(), last);
        let named = pin();
        put("tools/other", "one");
        assert_ne!(pin(), named);
        last = pin();
        put("README.md", "hello");
        put(".gnoma/sessions/1.json", "{}");
        assert_eq!(pin(), last);
        assert_ne!(super::compute_pin(folder.path(), b"").unwrap(), last);
        fs::remove_file(at("tools/server")).unwrap();
        assert_ne!(pin(), last);
    }

    #[test]
    fn trust_pin_finds_a_script_however_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("scripts")).unwrap();
        let script = folder.path().join("scripts/my run.sh");
        for exec in [
            r"sh 'scripts/my run.sh'".to_owned(),
            r"scripts\u002fmy run.sh".to_owned(),
            format!("{}", script.display()),
        ] {
            let config = format!("exec = \"{exec}\"\nargs = [\"my run.sh\", \"scripts\"]\n");
            let pin = || super::compute_pin(folder.path(), config.as_bytes()).unwrap();
            fs::write(&script, "one").unwrap();
            let before = pin();
            fs::write(&script, "two").unwrap();
            assert_ne!(pin(), before, "{exec}");
        }
        for (command, name) in [
            (r#"\"./a b.sh\""#, "a b.sh"),
            (r"./a\\ b.sh", "a b.sh"),
            (r#"./scripts/x\".sh\""#, "scripts/x.sh"),
            ("make all", "Makefile"),
            ("npm run -s hook", "package.json"),
        ] {
            let config = format!("exec = \"{command}\"\n");
            let pin = || super::compute_pin(folder.path(), config.as_bytes()).unwrap();
            fs::write(folder.path().join(name), "one").unwrap();
            let before = pin();
            fs::write(folder.path().join(name), "two").unwrap();
            assert_ne!(pin(), before, "{command}");
        }
        let config = br#"exec = "cd scripts && sh run.sh""#;
        let script = folder.path().join("scripts/run.sh");
        let pin = || super::compute_pin(folder.path(), config).unwrap();
        fs::write(&script, "one").unwrap();
        let before = pin();
        fs::write(&script, "two").unwrap();
        assert_ne!(pin(), before);
    }

    #[test]
    fn trust_pin_covers_files_named_by_plugin_hooks_and_servers() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let pin = || super::compute_pin(folder.path(), b"").unwrap();
        let hook = |command: &str| {
            let hook = serde_json::json!({"type": "command", "command": command});
            serde_json::json!({"hooks": {"Stop": [{"hooks": [hook]}]}}).to_string()
        };
        let server = r#"{"mcpServers": {"a": {"command": "sh", "args": ["./tools/serve.sh"]}}}"#;
        for (file, text, script) in [
            ("hooks/hooks.json", hook("sh ./scripts/a.sh"), "scripts/a.sh"),
            ("other.txt", hook("sh $CLAUDE_PROJECT_DIR/scripts/b.sh"), "scripts/b.sh"),
            ("hooks/more.json", hook("${CLAUDE_PLUGIN_ROOT}/../../../c.sh"), "c.sh"),
            ("hooks/python.json", hook("python3 -m tools.check"), "tools/check.py"),
            (".mcp.json", server.to_owned(), "tools/serve.sh"),
        ] {
            put(&format!(".gnoma/plugins/p/{file}"), &text);
            put(script, "one");
            let before = pin();
            put(script, "two");
            assert_ne!(pin(), before, "{file}");
        }
        let before = pin();
        put("scripts/unnamed.sh", "one");
        assert_eq!(pin(), before);
        put(".gnoma/plugins/p/hooks/open.json", &hook("sh $SCRIPT"));
        assert_eq!(unpinned_commands(folder.path(), b"").unwrap(), ["sh $SCRIPT"]);
    }

    /// Whether a change of `name` is another pin where `command` is a hook.
    pub(super) fn pins(folder: &Path, command: &str, name: &str) -> bool {
        let config = format!("[[hooks]]\nexec = {}\n", toml::Value::from(command));
        let pin = || super::compute_pin(folder, config.as_bytes()).unwrap();
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), "one").unwrap();
        let before = pin();
        fs::write(folder.join(name), "two").unwrap();
        pin() != before
    }

    #[test]
    fn trust_pin_resolves_globs_and_python_modules() {
        for (command, name, is_pinned) in [
            ("for x in hooks/*.sh; do sh $x; done", "hooks/a.sh", true),
            ("sh ./hooks/[ab]?.sh", "hooks/a1.sh", true),
            ("cat */check.sh | sh", "tools/check.sh", true),
            ("cat */check.sh | sh", "tools/other.sh", false),
            ("sh *", "README.md", false),
            ("cat src/**/* | sh", "src/a/b", false),
            ("python3 -m tools.check --strict", "tools/check.py", true),
            ("python3 -m tools.check", "tools/__init__.py", true),
            ("python -mtools", "tools/__main__.py", true),
            ("cd sub && python3.12 -u -m tool", "sub/tool.py", true),
            ("node scripts/hook", "scripts/hook.js", true),
            ("python3 -m json.tool", "src/json.rs", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(pins(folder.path(), command, name), is_pinned, "{command}: {name}");
        }
    }

    #[test]
    fn globs_of_other_settings_or_outside_folders_pin_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        for name in ["project/src/a.rs", "outside/a.sh"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("outside"), root.join("linked")).unwrap();
        let outside = folder.path().join("outside/*.sh").display().to_string();
        for config in [
            "[[permission.rules]]\nrule = \"fs.read(src/*.rs)\"\n".to_owned(),
            "[[hooks]]\nexec = \"sh ../outside/*.sh\"\n".to_owned(),
            "[[hooks]]\nexec = \"sh */*.sh\"\n".to_owned(),
            "[[hooks]]\nexec = \"sh linked/*.sh\"\n".to_owned(),
            format!("[[hooks]]\nexec = \"sh {outside}\"\n"),
        ] {
            assert_eq!(
                list_acting_files(&root, config.as_bytes()).unwrap(),
                [""; 0].map(PathBuf::from)
            );
        }
    }

    #[test]
    fn hostile_globs_are_matched_in_bounded_time() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..300 {
            fs::write(folder.path().join(format!("{}{number}", "a".repeat(200))), "").unwrap();
        }
        let stars = "*a".repeat(60) + "b";
        let many = vec![format!("sh {stars} {stars}/{stars}"); 500];
        let config = format!("[[hooks]]\nargs = {many:?}\n");
        assert_eq!(
            list_acting_files(folder.path(), config.as_bytes()).unwrap(),
            [""; 0].map(PathBuf::from)
        );
        let config = b"[[hooks]]\nexec = \"sh a*\"\n";
        assert!(list_acting_files(folder.path(), config).unwrap().len() < 300);
        assert_eq!(unpinned_commands(folder.path(), config).unwrap(), ["sh a*"]);
    }

    #[test]
    fn commands_resolved_only_at_run_time_are_reported_as_unpinned() {
        let folder = tempfile::tempdir().unwrap();
        let told = |exec: &str| {
            let config = format!("[[hooks]]\nexec = {}\n", toml::Value::from(exec));
            !unpinned_commands(folder.path(), config.as_bytes()).unwrap().is_empty()
        };
        for open in [
            "sh $SCRIPT",
            "sh ${D}ipts/run.sh",
            "sh $(cat which)",
            "sh `cat which`",
            "eval \"$X\"",
            "bash -c 'sh $SCRIPT'",
            "sh *",
            "cat src/**/* | sh",
            "find . -name '*.sh' -exec sh {} +",
            "ls | xargs sh",
            "sh hooks/{a,b}.sh",
        ] {
            assert!(told(open), "{open}");
        }
        for plain in [
            "sh ./run.sh",
            "\"$CLAUDE_PROJECT_DIR\"/run.sh",
            "${CLAUDE_PROJECT_DIR}/run.sh \"$1\"",
            "sh hooks/*.sh",
            "X=run.sh; sh $X",
            "for x in hooks/*.sh; do sh \"$x\"; done",
            "make check",
        ] {
            assert!(!told(plain), "{plain}");
        }
        let config = br#"[[mcp_servers]]
command = "sh"
args = ["-c", "exec $TOOL --serve"]
[mcp_servers.env]
TOOL = "./tools/x"
"#;
        assert!(unpinned_commands(folder.path(), config).unwrap().is_empty());
        let config = br#"[[mcp_servers]]
command = "sh"
args = ["-c", "exec $OTHER --serve"]
"#;
        assert_eq!(
            unpinned_commands(folder.path(), config).unwrap(),
            ["sh -c exec $OTHER --serve"]
        );
    }

    #[test]
    fn trust_pin_separates_file_names_from_content() {
        let folder = tempfile::tempdir().unwrap();
        let hooks = folder.path().join(".gnoma/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("a"), "xy").unwrap();
        let one = super::compute_pin(folder.path(), b"").unwrap();
        fs::write(hooks.join("a"), "x").unwrap();
        fs::write(hooks.join("b"), "y").unwrap();
        assert_ne!(super::compute_pin(folder.path(), b"").unwrap(), one);
    }
}
