//! What trust in a folder is pinned to: the content of all that could act on its behalf.
//!
//! That is the project's `.gnoma/config.toml`, the settings of other programs that gnoma reads, every file
//! in the folders of `.gnoma`, `.claude`, `.agents` and `.codex` that hold hooks, skills, plugins, agents
//! and commands, and every file of the project that one of these settings names, in a command or an
//! argument, or that a program named there is known to run (`Makefile`, `package.json`). One changed byte, one
//! more or one less file is another pin.
//!
//! Not covered: what those programs read or start themselves.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::paths;

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
/// Folders in those whose files act.
const ACTING: [&str; 5] = ["agents", "commands", "hooks", "plugins", "skills"];
/// Most files that are looked at; a folder with more has no pin.
const MAX_FILES: usize = 2000;
/// Most bytes of all files together.
const MAX_BYTES: u64 = 256 << 20;
/// How deep folders may lie in each other.
const MAX_DEPTH: usize = 16;
/// Most folders named by the configuration in which the other names are looked for.
const MAX_FOLDERS: usize = 32;
/// Programs that run what a file of the project says, which nobody names, and those files.
const RUNNERS: [(&[&str], &[&str]); 4] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "pnpm", "yarn", "bun", "npx"], &["package.json"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
];
/// What commands are cut at when they are searched for names of files.
const SEPARATORS: [char; 17] =
    ['"', '\'', '`', ';', '&', '|', '<', '>', '(', ')', '{', '}', '=', ',', ':', '$', '\\'];

/// The files of the project in `folder` that could act on its behalf, seen from there; its configuration
/// has this `content`.
///
/// # Errors
/// There are too many to look at.
pub fn acting(folder: &Path, content: &[u8]) -> io::Result<Vec<PathBuf>> {
    Ok(acting_files(folder, content)?.into_iter().collect())
}

/// The pin of the project in `folder` whose configuration has this `content`.
///
/// # Errors
/// A file cannot be read, or there are too many to look at.
pub fn pin(folder: &Path, content: &[u8]) -> io::Result<String> {
    let mut hash = Sha256::new();
    part(&mut hash, Path::new("config"), content.len() as u64);
    hash.update(content);
    let mut left = MAX_BYTES;
    for file in acting_files(folder, content)? {
        let mut opened = File::open(folder.join(&file))?;
        let length = opened.metadata()?.len();
        left = left.checked_sub(length).ok_or_else(too_much)?;
        part(&mut hash, &file, length);
        let copied = io::copy(&mut opened.by_ref().take(length), &mut hash)?;
        hash.update(copied.to_le_bytes());
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digits}"))
}

/// Lengths go in too, so that no content can pass for the start of another file.
fn part(hash: &mut Sha256, name: &Path, length: u64) {
    let name = name.as_os_str().as_encoded_bytes();
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    hash.update(length.to_le_bytes());
}

fn too_much() -> io::Error {
    io::Error::other("its hooks, skills and scripts are too many or too large to be pinned")
}

/// The files that act, seen from `folder`, sorted.
fn acting_files(folder: &Path, content: &[u8]) -> io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for (holding, name) in HOLDING.iter().flat_map(|holding| ACTING.map(|name| (holding, name))) {
        below(folder, &Path::new(holding).join(name), 0, &mut files)?;
    }
    let mut words = words(content);
    for name in SETTINGS {
        if folder.join(name).is_file() {
            words.extend(words_of_file(&folder.join(name))?);
            add(PathBuf::from(name), &mut files)?;
        }
    }
    // A variable may stand for the folder.
    let below_first = |word: &String| word.split_once('/').map(|(_, rest)| rest.to_owned());
    let shorter: Vec<String> = words.iter().filter_map(below_first).collect();
    words.extend(shorter.into_iter().filter(|word| !word.is_empty()));
    let named: Vec<_> = words.iter().map(|word| inside(folder, word)).collect();
    // A command may enter a folder before it names a file.
    let folders = named.iter().filter(|name| folder.join(name).is_dir()).take(MAX_FOLDERS);
    for below in std::iter::once(&PathBuf::new()).chain(folders) {
        for name in named.iter().map(|name| below.join(name)) {
            if folder.join(&name).is_file() {
                add(name, &mut files)?;
            }
        }
    }
    Ok(files)
}

/// A project's `.gnoma/config.toml`, empty where there is none but something else that acts; `None` where
/// nothing does.
///
/// # Errors
/// A file cannot be read.
pub fn content(folder: &Path) -> io::Result<Option<Vec<u8>>> {
    if let Some(content) = paths::read(&paths::project_file(folder))? {
        return Ok(Some(content));
    }
    Ok((!acting_files(folder, &[])?.is_empty()).then(Vec::new))
}

/// A name in the configuration as seen from `folder`. Joining an absolute one leads elsewhere.
fn inside(folder: &Path, word: &str) -> PathBuf {
    let path = Path::new(word);
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// What may be a name: every text of the configuration as it is read, whole and cut into words.
fn words(content: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(content);
    let mut texts = Vec::new();
    match text.parse::<toml::Table>() {
        Ok(table) => collect(&toml::Value::Table(table), &mut texts),
        Err(_) => match serde_json::from_str(&text) {
            Ok(json) => collect_json(&json, &mut texts),
            Err(_) => texts.push(text.into_owned()),
        },
    }
    cut(texts)
}

/// Texts, whole and cut into words.
fn cut(texts: Vec<String>) -> BTreeSet<String> {
    let is_between = |c: char| c.is_whitespace() || SEPARATORS.contains(&c);
    let mut words: BTreeSet<String> = texts
        .iter()
        .flat_map(|text| text.split(is_between))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.extend(texts.iter().flat_map(|text| as_a_shell_reads(text)));
    for (programs, files) in RUNNERS {
        if programs.iter().any(|program| words.contains(*program)) {
            words.extend(files.iter().map(|file| (*file).to_owned()));
        }
    }
    words.extend(texts);
    words
}

/// The words of a command without their quotes: `"./a b.sh"`, `./a\ b.sh` and `./x".sh"` name files.
fn as_a_shell_reads(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.extend(letters.next()),
            ('"' | '\'', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            (_, None) if letter.is_whitespace() || ";&|<>()=".contains(letter) => {
                words.push(std::mem::take(&mut word));
            }
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The same of settings in a file of their own, which may be JSON.
fn words_of_file(path: &Path) -> io::Result<BTreeSet<String>> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_SETTINGS_BYTES).read_to_end(&mut content)?;
    let Ok(value) = gnoma_core::json::from_bytes(&content) else { return Ok(words(&content)) };
    let mut texts = Vec::new();
    collect_json(&value, &mut texts);
    Ok(cut(texts))
}

fn collect_json(value: &serde_json::Value, texts: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect_json(item, texts)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|item| collect_json(item, texts));
        }
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => (),
    }
}

fn collect(value: &toml::Value, texts: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => texts.push(text.clone()),
        toml::Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        toml::Value::Table(fields) => fields.values().for_each(|item| collect(item, texts)),
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => (),
    }
}

fn add(file: PathBuf, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    files.insert(file);
    if files.len() > MAX_FILES { Err(too_much()) } else { Ok(()) }
}

/// All files at and below `relative`. Links are followed: what they lead to is what would act.
fn below(
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
            below(folder, &inside, depth + 1, files)?;
        } else if path.is_file() {
            add(inside, files)?;
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
    fn every_file_that_acts_is_part_of_the_pin_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        let pin = || super::pin(folder.path(), CONFIG).unwrap();
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
        assert_ne!(super::pin(folder.path(), b"").unwrap(), last);
        fs::remove_file(at("tools/server")).unwrap();
        assert_ne!(pin(), last);
    }

    #[test]
    fn a_script_is_found_however_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("scripts")).unwrap();
        let script = folder.path().join("scripts/my run.sh");
        for exec in [
            r"sh 'scripts/my run.sh'".to_owned(),
            r"scripts\u002fmy run.sh".to_owned(),
            format!("{}", script.display()),
        ] {
            let config = format!("exec = \"{exec}\"\nargs = [\"my run.sh\", \"scripts\"]\n");
            let pin = || super::pin(folder.path(), config.as_bytes()).unwrap();
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
            let pin = || super::pin(folder.path(), config.as_bytes()).unwrap();
            fs::write(folder.path().join(name), "one").unwrap();
            let before = pin();
            fs::write(folder.path().join(name), "two").unwrap();
            assert_ne!(pin(), before, "{command}");
        }
        let config = br#"exec = "cd scripts && sh run.sh""#;
        let script = folder.path().join("scripts/run.sh");
        let pin = || super::pin(folder.path(), config).unwrap();
        fs::write(&script, "one").unwrap();
        let before = pin();
        fs::write(&script, "two").unwrap();
        assert_ne!(pin(), before);
    }

    #[test]
    fn content_cannot_pass_for_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let hooks = folder.path().join(".gnoma/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("a"), "xy").unwrap();
        let one = super::pin(folder.path(), b"").unwrap();
        fs::write(hooks.join("a"), "x").unwrap();
        fs::write(hooks.join("b"), "y").unwrap();
        assert_ne!(super::pin(folder.path(), b"").unwrap(), one);
    }
}
