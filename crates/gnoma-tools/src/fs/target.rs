//! The path that a call names: where it leads, what is there, and the error if it does not exist.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
};

use gnoma_core::{
    ToolCx,
    diff::similarity_ratio,
    names::{FileNames as _, spell_out, typed_form},
};

use super::{Refusal, address, name::Disk, open};

/// Names of a folder that are shown where none is like the one that is missing.
const MAX_NAMES_SHOWN: usize = 12;
/// Nearest names that are offered.
const MAX_NAMES_OFFERED: usize = 3;
/// The likeness that a name needs to be offered, from 0 to 1.
const MIN_LIKENESS: f32 = 0.6;

/// A path from a call.
#[derive(Debug)]
pub(super) struct Target {
    /// The path to which the target leads, every link followed when the call was looked at. Only this is opened.
    pub(super) path: PathBuf,
    /// As it is shown: relative inside the working folder, else absolute.
    pub(super) name: String,
    /// As it is found, where that is another place.
    pub(super) found_as: Option<PathBuf>,
}

/// A function that returns the place of what a call finds at a path among temporary files.
pub(super) type TemporaryPlace<'a> = &'a dyn Fn(&Path) -> Option<PathBuf>;

/// The kind of entry at a path, links followed.
#[derive(Debug)]
pub(super) enum TargetKind {
    /// There is no entry at the path.
    Missing,
    /// A regular file.
    File(Metadata),
    /// A folder.
    Folder,
    /// A device, pipe or socket: opening one could block forever.
    Special,
}

impl Target {
    /// The path `given` in a call, seen from the working folder. Among temporary files it is the session's, unless
    /// the verdict was about that of the machine.
    pub(super) fn from_call(
        cx: &ToolCx,
        given: &str,
        temporary: TemporaryPlace<'_>,
    ) -> Result<Self, Refusal> {
        if given.trim().is_empty() {
            return Err(Refusal::Failed("`path` is empty; name a file or folder".to_owned()));
        }
        if let Some(why) = address::path_refusal(given, &cx.cwd) {
            return Err(Refusal::Failed(format!("{why}; nothing was done")));
        }
        // Collecting components drops `.` and doubled slashes; `..` stays, since links give it meaning.
        let written: PathBuf = cx.cwd.join(given).components().collect();
        let name = relative_display(&cx.cwd, &written);
        let real = |path: &Path| {
            let failed = |error| Refusal::Failed(format!("cannot look at `{name}`: {error}"));
            open::resolve_links(path).map_err(failed)
        };
        let target = Self { path: real(&written)?, name: name.clone(), found_as: None };
        if target.is_in_reach(cx) {
            return target.check_judged(cx);
        }
        let Some(place) = temporary(&written) else { return Err(target.is_out_of_reach()) };
        let own = Self { path: real(&place)?, name: name.clone(), found_as: Some(written) };
        // A link among them leads nowhere else.
        if own.path == place { Ok(own) } else { Err(own.is_out_of_reach()) }
    }

    /// A path below it, as it is found.
    pub(super) fn path_as_found(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(&self.path).ok().zip(self.found_as.as_ref());
        below.map_or_else(
            || path.to_owned(),
            |(below, found)| found.join(below).components().collect(),
        )
    }

    /// Refuses a place that the verdict was not about: a link was changed since.
    fn check_judged(self, cx: &ToolCx) -> Result<Self, Refusal> {
        match &cx.grant.target {
            Some(judged) if *judged != self.path => Err(Refusal::Failed(format!(
                "`{}` leads elsewhere than when this call was checked; nothing was done. Try again",
                self.name
            ))),
            _ => Ok(self),
        }
    }

    /// Reports whether the call may use the path: in the workspace, or where its verdict was about.
    fn is_in_reach(&self, cx: &ToolCx) -> bool {
        cx.roots.iter().chain(&cx.grant.paths).any(|root| self.path.starts_with(root))
    }

    fn is_out_of_reach(&self) -> Refusal {
        Refusal::Failed(format!(
            "`{}` leads to `{}`, outside the workspace, which was not allowed for this call; nothing was done",
            self.name,
            self.path.display()
        ))
    }

    /// Returns the kind of entry at the path.
    pub(super) fn kind(&self) -> Result<TargetKind, Refusal> {
        match self.path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => Ok(TargetKind::File(metadata)),
            Ok(metadata) if metadata.is_dir() => Ok(TargetKind::Folder),
            // It was resolved: a link that is left leads nowhere.
            Ok(metadata) if metadata.is_symlink() => Ok(TargetKind::Missing),
            Ok(_) => Ok(TargetKind::Special),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TargetKind::Missing),
            Err(error) => Err(self.refuse_operation("look at", &error)),
        }
    }

    /// The first `length` bytes, fewer when the file is shorter.
    pub(super) fn read_head(&self, length: u64) -> Result<Vec<u8>, Refusal> {
        let mut head = Vec::new();
        self.open()
            .and_then(|file| file.take(length).read_to_end(&mut head))
            .map_err(|error| self.refuse_operation("read", &error))?;
        Ok(head)
    }

    /// The file, open for reading.
    pub(super) fn open(&self) -> io::Result<File> {
        let file = open::open_file(&self.path)?;
        // Between the look and now it may have become a pipe that never ends.
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// The whole file, unless it is larger than `max` bytes.
    pub(super) fn read_content(&self, max: u64) -> Result<Vec<u8>, Refusal> {
        let content = self.read_head(max.saturating_add(1))?;
        if content.len() as u64 > max {
            return Err(Refusal::Failed(format!(
                "`{}` is larger than {max} bytes, the most that is changed or shown whole; \
                 use `offset` and `limit` to read it, a shell command to change it",
                self.name
            )));
        }
        Ok(content)
    }

    /// The refusal for an operation the system refused.
    pub(super) fn refuse_operation(&self, verb: &str, error: &io::Error) -> Refusal {
        Refusal::Failed(format!("cannot {verb} `{}`: {error}", self.name))
    }

    /// The refusal for a folder where a file is needed.
    pub(super) fn is_folder(&self) -> Refusal {
        Refusal::Failed(format!("`{}` is a folder, not a file; list it with fs.ls", self.name))
    }

    /// The refusal for a device, pipe or socket.
    pub(super) fn is_special(&self) -> Refusal {
        Refusal::Failed(format!(
            "`{}` is a device, pipe or socket, not a regular file; nothing was done",
            self.name
        ))
    }

    /// The refusal for a missing path, with the nearest names there are.
    pub(super) fn is_missing(&self) -> Refusal {
        let mut why = format!("`{}` does not exist", self.name);
        let names = self.names_beside();
        let alike = self.names_alike(&names);
        if alike.len() > 1 {
            let there = alike.join(", ");
            why.push_str(&format!(
                "; {} look the same and are not chosen from: {there}",
                alike.len()
            ));
            return Refusal::Failed(why);
        }
        let near = self.nearest_names(&names);
        if near.is_empty() {
            why.push_str("; find files with fs.glob");
            if !names.is_empty() {
                why.push_str(&format!("; in that folder are: {}", first_of(names)));
            }
        } else {
            why.push_str("; similar names: ");
            why.push_str(&near.join(", "));
        }
        Refusal::Failed(why)
    }

    /// The names in the folder where it would be.
    fn names_beside(&self) -> Vec<String> {
        self.path.parent().map(|folder| Disk.names_in(folder)).unwrap_or_default()
    }

    /// The names there that look the same, spelled out so that they differ.
    fn names_alike(&self, names: &[String]) -> Vec<String> {
        let Some(wanted) = self.path.file_name() else { return Vec::new() };
        let wanted = typed_form(&wanted.to_string_lossy());
        let alike = names.iter().filter(|name| typed_form(name) == wanted);
        let spelled = |there: &String| format!("`{}`", spell_out(there));
        alike.take(MAX_NAMES_SHOWN).map(spelled).collect()
    }

    fn nearest_names(&self, names: &[String]) -> Vec<String> {
        let Some(wanted) = self.path.file_name() else { return Vec::new() };
        let beside = Path::new(&self.name).parent().unwrap_or(Path::new(""));
        similar_names(&wanted.to_string_lossy(), names)
            .into_iter()
            .map(|name| format!("`{}`", beside.join(name).display()))
            .collect()
    }
}

/// The first of the names, in order; hidden ones are left out.
fn first_of(mut names: Vec<String>) -> String {
    names.retain(|name| !name.starts_with('.') && !name.contains(char::is_control));
    gnoma_core::sort::sort_items(&mut names);
    let has_more = names.len() > MAX_NAMES_SHOWN;
    names.truncate(MAX_NAMES_SHOWN);
    let names = names.join(", ");
    if has_more { names + ", …" } else { names }
}

/// The names most like `wanted`, best first; case does not count.
fn similar_names<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a str> {
    let letters = |name: &str| name.to_lowercase().chars().collect::<Vec<char>>();
    let wanted = letters(wanted);
    let like = |name: &'a String| (similarity_ratio(&wanted, &letters(name)), name.as_str());
    let mut near: Vec<_> =
        names.iter().map(like).filter(|(likeness, _)| *likeness >= MIN_LIKENESS).collect();
    gnoma_core::sort::sort_by(&mut near, |(one, name), (other, beside)| {
        other.total_cmp(one).then_with(|| name.cmp(beside))
    });
    near.into_iter().take(MAX_NAMES_OFFERED).map(|(_, name)| name).collect()
}

/// `path` as people write it in the folder `cwd`.
pub(super) fn relative_display(cwd: &Path, path: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::testing::Bench;

    #[test]
    fn file_tool_call_stays_in_the_workspace_and_granted_paths() {
        let (bench, elsewhere) = (Bench::new(), tempfile::tempdir().unwrap());
        let outside = elsewhere.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&outside, bench.path("link")).unwrap();
        let mut cx = bench.cx();
        for given in ["link/a", "..", outside.join("a").to_str().unwrap()] {
            let refusal = words(Target::from_call(&cx, given, &|_| None).unwrap_err());
            assert!(refusal.contains("outside the workspace"), "{refusal}");
        }
        cx.grant.paths = vec![outside.join("a")];
        assert_eq!(Target::from_call(&cx, "link/a", &|_| None).unwrap().path, outside.join("a"));
        assert!(
            Target::from_call(&cx, "link/ab", &|_| None).is_err(),
            "a prefix of the name is no parent"
        );
    }

    #[test]
    fn symlink_changed_after_the_permission_check_is_refused() {
        let bench = Bench::new();
        let mut cx = bench.cx();
        cx.grant.target = Some(bench.path("harmless"));
        std::fs::write(bench.path(".env"), "").unwrap();
        std::os::unix::fs::symlink(bench.path(".env"), bench.path("link")).unwrap();
        let refusal = words(Target::from_call(&cx, "link", &|_| None).unwrap_err());
        assert!(refusal.contains("leads elsewhere"), "{refusal}");
        cx.grant.target = Some(bench.path(".env"));
        assert_eq!(Target::from_call(&cx, "link", &|_| None).unwrap().path, bench.path(".env"));
    }

    fn words(refusal: Refusal) -> String {
        match refusal {
            Refusal::Failed(why) | Refusal::Stopped(why) => why,
        }
    }

    #[test]
    fn target_names_are_relative_inside_the_workspace() {
        let bench = Bench::new();
        let name = |given: &str| Target::from_call(&bench.cx(), given, &|_| None).unwrap().name;
        assert_eq!(name("./a//b"), "a/b");
        assert_eq!(name("."), ".");
        assert_eq!(name(bench.path("x").to_str().unwrap()), "x");
        assert!(
            words(Target::from_call(&bench.cx(), " ", &|_| None).unwrap_err()).contains("empty")
        );
    }

    #[test]
    fn a_missing_file_is_answered_with_the_nearest_names() {
        let bench = Bench::new();
        bench.put("src/parser.rs", "");
        bench.put("src/README.md", "");
        let missing = |given: &str| {
            words(Target::from_call(&bench.cx(), given, &|_| None).unwrap().is_missing())
        };
        assert_eq!(
            missing("src/parsr.rs"),
            "`src/parsr.rs` does not exist; similar names: `src/parser.rs`"
        );
        assert!(missing("src/readme.md").contains("`src/README.md`"));
        assert!(
            missing("src/zzz")
                .ends_with("find files with fs.glob; in that folder are: README.md, parser.rs")
        );
    }
}
