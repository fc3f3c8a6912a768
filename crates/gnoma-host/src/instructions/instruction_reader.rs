//! Reading files of instructions with what they import. A repository is not believed: nothing brings in a
//! file from outside of it, and what is no file might never end.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use gnoma_core::{bounded_file, home, places::find_secret, text_truncation, written_text};
use gnoma_extend::in_a_line;

/// Most that is taken of one file.
pub(super) const MAX_FILE_BYTES: usize = 32 << 10;
/// Most that is taken of all files together.
const MAX_BYTES: usize = 64 << 10;
/// Bytes that are taken for one token where nobody has counted.
const BYTES_A_TOKEN: usize = 4;
/// The depth to which imports may be nested.
const MAX_DEPTH: usize = 5;
/// Most files of all.
const MAX_FILES: usize = 100;

/// One file of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionPart {
    /// The name of the file for people: seen from the project, or with `~`.
    pub place: String,
    /// `true` if the file is the user's own and not the project's.
    pub is_users: bool,
    /// The content of the file.
    pub text: String,
}

impl InstructionPart {
    /// About how many tokens it takes.
    #[must_use]
    pub fn estimate_tokens(&self) -> usize {
        self.text.len().div_ceil(BYTES_A_TOKEN)
    }
}

/// The instructions that were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The files, the weightiest last.
    pub parts: Vec<InstructionPart>,
    /// Rules for certain files, which the model gets when such a file is touched: each with its place and the
    /// files.
    pub scoped: Vec<(String, String)>,
    /// The instructions that were left out and why, a sentence each.
    pub warnings: Vec<String>,
}

impl Instructions {
    /// The texts, each under the name of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let part =
            |part: &InstructionPart| format!("--- {}\n{}\n", part.place, part.text.trim_end());
        self.parts.iter().map(part).collect()
    }
}

/// Reports whether a file of a project is a link to another of its files that, by its name, holds secrets.
fn leads_to_secret(path: &Path, real: &Path, root: &Path) -> bool {
    path != real && real.strip_prefix(root).is_ok_and(|below| find_secret(below).is_some())
}

/// The project's folder as it is named, and as it is without links.
type Project<'p> = (&'p Path, &'p Path);

pub(super) struct InstructionReader<'h> {
    home: Option<&'h Path>,
    found: Instructions,
    seen: HashSet<PathBuf>,
    /// The files that were read before and are nearer, the nearest first.
    nearer: Vec<Vec<InstructionPart>>,
    /// There were more files than are read.
    is_full: bool,
}

impl<'h> InstructionReader<'h> {
    pub(super) fn new(home: Option<&'h Path>) -> Self {
        let found = Instructions::default();
        Self { home, found, seen: HashSet::new(), nearer: Vec::new(), is_full: false }
    }

    /// Begins a group of files that are farther away and come before those already read.
    pub(super) fn begin_farther(&mut self) {
        self.nearer.push(std::mem::take(&mut self.found.parts));
    }

    /// Reads a file and what it imports. `project`: the file is that project's; else the person's.
    pub(super) fn read(&mut self, path: &Path, project: Option<Project<'_>>) {
        self.read_at(path, project, 0);
    }

    fn read_at(&mut self, path: &Path, project: Option<Project<'_>>, depth: usize) {
        let place = self.describe_place(path, project);
        let Some(real) = self.claim_file(path, &place) else { return };
        if let Some(why) = exclusion_reason((path, &real), project, depth) {
            return self.warn(format!("`{place}` was left out: {why}"));
        }
        let Some(text) = self.read_text(&real, &place) else { return };
        let (body, paths) = split_front_matter(&text);
        if !paths.is_empty() && path.components().any(|part| part.as_os_str() == "rules") {
            return self.found.scoped.push((place, paths.join(", ")));
        }
        let imports = if depth < MAX_DEPTH { find_imports(&text) } else { Vec::new() };
        let from = place.clone();
        let part = InstructionPart { place, is_users: project.is_none(), text: body };
        if !part.text.trim().is_empty() {
            self.found.parts.push(part);
        }
        for Import { line, path: import } in imports {
            if let Some(path) =
                self.resolve_import(&import, path, project, &format!("{from}:{line}"))
            {
                self.read_at(&path, project, depth + 1);
            }
        }
    }

    /// Marks a file as read and returns its path without links; `None` if it is no file, was read before, or too many
    /// were.
    fn claim_file(&mut self, path: &Path, place: &str) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        if !real.is_file() || self.seen.contains(&real) {
            return None;
        }
        if self.seen.len() == MAX_FILES {
            if !std::mem::replace(&mut self.is_full, true) {
                self.warn(format!(
                    "there are more than {MAX_FILES} instruction files; those farthest away were \
                     left out, such as `{place}`"
                ));
            }
            return None;
        }
        self.seen.insert(real.clone());
        Some(real)
    }

    /// Reads the beginning of a file; warns if that is not all of it, or no text.
    fn read_text(&mut self, real: &Path, place: &str) -> Option<String> {
        let warning = match read_start(real) {
            Ok(FileStart::Text(text, is_cut)) => {
                if is_cut {
                    let most = MAX_FILE_BYTES >> 10;
                    self.warn(format!("`{place}` is longer than {most} KiB; its end was cut off"));
                }
                return Some(text);
            }
            Ok(FileStart::OtherEncoding) => {
                format!("`{place}` is not UTF-8 and was left out; save it as UTF-8")
            }
            Ok(FileStart::Binary) => format!("`{place}` is not text and was left out"),
            Err(error) => format!("`{place}` cannot be read and was left out: {error}"),
        };
        self.warn(warning);
        None
    }

    /// Says why the file of a folder that is named like instructions cannot be read, if it is there and is no file.
    pub(super) fn warn_of_no_file(&mut self, path: &Path, project: Option<Project<'_>>) {
        let Ok(facts) = path.symlink_metadata() else { return };
        let why = match path.metadata() {
            Ok(target) if target.is_file() => return,
            Ok(target) if target.is_dir() => "is a folder",
            Ok(_) => "is not a regular file",
            Err(_) if facts.is_symlink() => "is a link that leads nowhere",
            Err(_) => return,
        };
        let place = self.describe_place(path, project);
        self.warn(format!("`{place}` {why} and was left out"));
    }

    /// The file that an import names, if there is one. A project cannot name the person's.
    fn resolve_import(
        &mut self,
        import: &str,
        from: &Path,
        project: Option<Project<'_>>,
        place: &str,
    ) -> Option<PathBuf> {
        let named = home::expand(import, self.home, from.parent()?);
        if is_named_like_text(import) && !named.exists() {
            let text = format!("`@{}` ({place}) does not exist", in_a_line(Path::new(import)));
            if !self.found.warnings.contains(&text) {
                self.warn(text);
            }
        }
        named.is_file().then_some(named).filter(|named| {
            let is_own = project.is_none_or(|(_, root)| {
                named.canonicalize().is_ok_and(|real| real.starts_with(root))
            });
            if !is_own {
                let text = format!("`@{import}` is not imported: it is outside the project");
                self.found.warnings.push(text);
            }
            is_own
        })
    }

    fn describe_place(&self, path: &Path, project: Option<Project<'_>>) -> String {
        // Without the `..` of an import.
        let real = path.canonicalize();
        let seen = |path: &Path| {
            let below = project.and_then(|(root, real)| {
                path.strip_prefix(root).or_else(|_| path.strip_prefix(real)).ok()
            });
            below.map(in_a_line)
        };
        let named =
            if path.components().any(|part| part.as_os_str() == "..") { None } else { seen(path) };
        let shown = named.or_else(|| seen(real.as_deref().ok()?));
        if let Some(shown) = shown {
            return shown;
        }
        in_a_line(&home::shorten(path, self.home))
    }

    fn warn(&mut self, text: String) {
        self.found.warnings.push(text);
    }

    /// All that was found, as far as it fits: what is farthest goes first.
    pub(super) fn into_instructions(mut self) -> Instructions {
        self.begin_farther();
        self.found.parts = self.nearer.drain(..).rev().flatten().collect();
        let mut left = MAX_BYTES;
        for part in self.found.parts.iter_mut().rev() {
            if part.text.len() > left {
                part.text.truncate(text_truncation::word_prefix(&part.text, left).len());
                self.found.warnings.push(format!(
                    "the instructions are longer than {} KiB in total; the end of `{}` was cut off",
                    MAX_BYTES >> 10,
                    part.place
                ));
            }
            left -= part.text.len();
        }
        self.found.parts.retain(|part| !part.text.is_empty());
        self.found
    }
}

/// Returns the reason why a file must not be among the instructions. `real` is its path without links, and `depth` is 0
/// if no import names it.
fn exclusion_reason(
    (path, real): (&Path, &Path),
    project: Option<Project<'_>>,
    depth: usize,
) -> Option<&'static str> {
    if project.is_some_and(|(_, root)| !real.starts_with(root)) {
        return Some("it leads outside the project");
    }
    // An import and a link name any file; the others are named like instructions themselves.
    let is_link = project.is_some_and(|(_, root)| leads_to_secret(path, real, root));
    let is_secret = is_link || depth > 0 && find_secret(real).is_some();
    is_secret.then_some("it may contain secrets")
}

/// Reports whether a name after `@` means a text file: names of packages and people look alike otherwise.
fn is_named_like_text(import: &str) -> bool {
    [".md", ".mdc", ".txt"].iter().any(|ending| import.ends_with(ending))
}

/// Reports whether characters are those of a program, a picture or an archive: text has no NUL, and little that
/// cannot be decoded or shown.
fn is_binary(text: &str) -> bool {
    /// One odd character in so many is more than an old encoding makes.
    const MAX_ODD_SHARE: usize = 10;
    let is_odd = |c: &char| *c == char::REPLACEMENT_CHARACTER || c.is_control();
    let is_layout = |c: &char| matches!(c, '\n' | '\t' | '\r' | '\u{c}' | '\u{1b}');
    let odd = text.chars().filter(|c| is_odd(c) && !is_layout(c)).count();
    text.contains('\0') || odd * MAX_ODD_SHARE > text.chars().count()
}

/// The beginning of a file.
enum FileStart {
    /// Text, and whether the file goes on.
    Text(String, bool),
    /// Text in an encoding other than UTF-8 and UTF-16, so much of it that nothing sensible is left.
    OtherEncoding,
    /// A program, a picture, an archive.
    Binary,
}

/// Reads the beginning of a file.
fn read_start(real: &Path) -> io::Result<FileStart> {
    let bytes = bounded_file::read_start(real, MAX_FILE_BYTES as u64 + 1)?;
    let is_cut = bytes.len() > MAX_FILE_BYTES;
    let mut text = written_text::decode_lossy(&bytes);
    if is_binary(&text) {
        let without_letters = text.replace(char::REPLACEMENT_CHARACTER, "x");
        let is_text = !is_binary(&without_letters);
        return Ok(if is_text { FileStart::OtherEncoding } else { FileStart::Binary });
    }
    let is_cut = is_cut || text.len() > MAX_FILE_BYTES;
    if is_cut {
        text.truncate(text_truncation::word_prefix(&text, MAX_FILE_BYTES).len());
    }
    Ok(FileStart::Text(text, is_cut))
}

/// Returns the content of a file without the fields before it, and the paths that these fields say it is for.
fn split_front_matter(text: &str) -> (String, Vec<String>) {
    let Some((fields, rest)) =
        text.strip_prefix("---\n").and_then(|inner| inner.split_once("\n---\n"))
    else {
        return (text.to_owned(), Vec::new());
    };
    let mut paths = Vec::new();
    let mut is_list = false;
    for line in fields.lines() {
        if let Some(value) = line.strip_prefix("paths:") {
            is_list = value.trim().is_empty();
            paths.extend((!is_list).then(|| value.trim().trim_matches(['"', '\'']).to_owned()));
        } else if let Some(item) = line.trim().strip_prefix("- ").filter(|_| is_list) {
            paths.push(item.trim().trim_matches(['"', '\'']).to_owned());
        } else {
            is_list = false;
        }
    }
    (rest.to_owned(), paths)
}

/// A path behind `@`.
struct Import {
    /// The line of the import in the file, from 1.
    line: usize,
    path: String,
}

/// The paths behind `@` that stand apart and in no code.
fn find_imports(text: &str) -> Vec<Import> {
    let (mut all, mut is_code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        // Every other piece between backticks is code.
        for words in line.split('`').step_by(2) {
            let paths = words.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            let paths = paths.map(|path| path.trim_end_matches([',', ';', ':', ')', '.']));
            let paths = paths.filter(|path| path.contains(['.', '/']));
            all.extend(paths.map(|path| Import { line: number, path: path.to_owned() }));
        }
    }
    all
}
