//! A separate repository for a copy: with the person's history, branches and index as they are, and without any
//! effect on the person's repository.
//!
//! It is made from files alone: git never runs, so no program that a repository names runs, either. Objects are
//! read where they are; new ones go to the copy.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// Most bytes of the index, and of a list of references.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Most bytes of a small file.
const MAX_SMALL_BYTES: u64 = 1 << 20;
/// Most references that are files of their own.
const MAX_REFS: usize = 20_000;
/// Folders within folders of references.
const MAX_DEPTH: usize = 20;
/// The bytes that begin an index.
const INDEX: &[u8] = b"DIRC";
/// The flags for opening git's files: a file that is not git's is neither followed as a link nor waited for.
const NO_LINK: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// Makes the repository in `copy`, of that in `root`. Gives where its objects are read; `None` where there
/// is none, or one of a kind that cannot be read this way: then the copy has no repository.
///
/// # Errors
/// The copy cannot be written.
pub(super) fn create_repository(root: &Path, copy: &Path) -> io::Result<Option<PathBuf>> {
    let Some(of) = Repository::find(root) else { return Ok(None) };
    let own = copy.join(".git");
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        fs::create_dir_all(own.join(folder))?;
    }
    fs::write(own.join("HEAD"), &of.head)?;
    fs::write(own.join("config"), &of.config)?;
    let objects = of.common.join("objects");
    let mut alternates = objects.as_os_str().as_encoded_bytes().to_vec();
    alternates.push(b'\n');
    fs::write(own.join("objects/info/alternates"), alternates)?;
    if let Some(index) = read_regular_file(&of.own.join("index"), MAX_FILE_BYTES)
        && index.starts_with(INDEX)
    {
        fs::write(own.join("index"), index)?;
    }
    if let Some(packed) = read_regular_file(&of.common.join("packed-refs"), MAX_FILE_BYTES) {
        fs::write(own.join("packed-refs"), filter_references(&packed))?;
    }
    if let Some(excluded) = read_regular_file(&of.common.join("info/exclude"), MAX_SMALL_BYTES) {
        fs::write(own.join("info/exclude"), excluded)?;
    }
    if let Some(shallow) = read_regular_file(&of.common.join("shallow"), MAX_SMALL_BYTES) {
        fs::write(own.join("shallow"), filter_hashes(&shallow))?;
    }
    let mut left = MAX_REFS;
    for kind in ["refs/heads", "refs/tags", "refs/remotes"] {
        copy_loose_references(&of.common.join(kind), &own.join(kind), &mut left, MAX_DEPTH)?;
    }
    Ok(Some(objects))
}

/// A repository of the person's.
struct Repository {
    /// The separate parts of this work tree.
    own: PathBuf,
    /// The folder that all work trees of the repository share.
    common: PathBuf,
    head: Vec<u8>,
    config: String,
}

impl Repository {
    fn find(root: &Path) -> Option<Self> {
        let place = root.join(".git");
        let own = match place.symlink_metadata().ok()? {
            about if about.is_dir() => place,
            about if about.is_file() => {
                let named = String::from_utf8(read_regular_file(&place, MAX_SMALL_BYTES)?).ok()?;
                root.join(named.strip_prefix("gitdir:")?.trim())
            }
            _ => return None,
        };
        let common = read_regular_file(&own.join("commondir"), MAX_SMALL_BYTES);
        let common = common.and_then(|named| String::from_utf8(named).ok());
        let common = common.map_or_else(|| own.clone(), |named| own.join(named.trim()));
        let common = common.canonicalize().ok()?;
        let head = read_regular_file(&own.join("HEAD"), MAX_SMALL_BYTES)?;
        if !is_reference(head.trim_ascii()) || !common.join("objects").is_dir() {
            return None;
        }
        let said = read_regular_file(&common.join("config"), MAX_SMALL_BYTES).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).to_lowercase();
        // References that are no files are not read here.
        if said.contains("refstorage") {
            return None;
        }
        let is_other = said.contains("objectformat") && said.contains("sha256");
        let version = u8::from(is_other);
        let format = if is_other { "[extensions]\n\tobjectformat = sha256\n" } else { "" };
        let config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
             \tlogallrefupdates = true\n{format}"
        );
        Some(Self { own, common, head, config })
    }
}

/// A regular file that is no link and not too large.
fn read_regular_file(path: &Path, max: u64) -> Option<Vec<u8>> {
    let file: File = OpenOptions::new().read(true).custom_flags(NO_LINK).open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file() && about.len() <= max)?;
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default());
    file.take(max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reports whether a file contains a reference and nothing else: another file that is only in its place is not
/// shown.
fn is_reference(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_graphic();
    is_hash(text) || text.strip_prefix(b"ref: refs/").is_some_and(|name| name.iter().all(plain))
}

fn is_hash(text: &[u8]) -> bool {
    matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
}

/// The lines of a list of references that are such.
fn filter_references(packed: &[u8]) -> Vec<u8> {
    let is_meant = |line: &&[u8]| {
        let line = line.trim_ascii_end();
        let hash = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let hash = hash.strip_prefix(b"^").unwrap_or(hash);
        line.starts_with(b"# pack-refs with:") || is_hash(hash)
    };
    packed.split_inclusive(|byte| *byte == b'\n').filter(is_meant).collect::<Vec<_>>().concat()
}

fn filter_hashes(listed: &[u8]) -> Vec<u8> {
    let lines = listed.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| is_hash(line.trim_ascii_end())).collect::<Vec<_>>().concat()
}

/// Copies the references that are files of their own.
fn copy_loose_references(from: &Path, to: &Path, left: &mut usize, depth: usize) -> io::Result<()> {
    let is_folder = from.symlink_metadata().is_ok_and(|about| about.is_dir());
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    if !is_folder || depth == 0 {
        return Ok(());
    }
    for entry in entries.flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy_loose_references(&path, &place, left, depth - 1)?,
            Ok(kind) if kind.is_file() => {
                let said = read_regular_file(&path, MAX_SMALL_BYTES);
                if let Some(said) = said.filter(|said| is_reference(said.trim_ascii())) {
                    fs::create_dir_all(to)?;
                    fs::write(place, said)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use super::*;

    fn git(at: &Path, line: &str) -> String {
        let mut all = Command::new("git");
        all.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(line.split(' '));
        all.current_dir(at).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = all.output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn git_in_a_workspace_copy_leaves_the_users_repository_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (work, copy) = (folder.path().join("work"), folder.path().join("copy"));
        fs::create_dir_all(&work).unwrap();
        git(&work, "init -q -b main .");
        fs::write(work.join("a"), "1\n").unwrap();
        git(&work, "add a");
        git(&work, "commit -qm one");
        git(&work, "branch other");
        git(&work, "pack-refs --all");
        fs::write(work.join("a"), "2\n").unwrap();
        git(&work, "commit -qam two");
        fs::write(work.join("a"), "3\n").unwrap();
        git(&work, "worktree add -q ../tree other");
        symlink("/etc/passwd", work.join(".git/refs/heads/leak")).unwrap();
        fs::write(work.join(".git/refs/heads/secret"), "a secret\n").unwrap();
        fs::remove_file(work.join(".git/refs/heads/secret")).unwrap();
        fs::remove_file(work.join(".git/refs/heads/leak")).unwrap();
        let before = (git(&work, "status --porcelain"), git(&work, "for-each-ref"));
        let index = fs::read(work.join(".git/index")).unwrap();

        fs::create_dir(&copy).unwrap();
        fs::copy(work.join("a"), copy.join("a")).unwrap();
        assert!(create_repository(&work, &copy).unwrap().is_some());
        assert_eq!(git(&copy, "status --porcelain"), " M a\n");
        assert_eq!(git(&copy, "log --format=%s"), "two\none\n");
        assert_eq!(git(&copy, "for-each-ref"), before.1);
        git(&copy, "commit -qam three");
        git(&copy, "branch more");
        git(&copy, "stash list");
        assert_eq!((git(&work, "status --porcelain"), git(&work, "for-each-ref")), before);
        assert_eq!(fs::read(work.join(".git/index")).unwrap(), index);

        let linked = folder.path().join("linked");
        fs::create_dir(&linked).unwrap();
        assert!(create_repository(&folder.path().join("tree"), &linked).unwrap().is_some());
        assert_eq!(git(&linked, "log --format=%s"), "one\n");
        assert!(create_repository(folder.path(), &linked).unwrap().is_none(), "no repository");
    }

    #[test]
    fn workspace_copy_does_not_expose_non_ref_files_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let (work, copy) = (folder.path().join("work"), folder.path().join("copy"));
        for below in [".git/objects", ".git/refs/heads"] {
            fs::create_dir_all(work.join(below)).unwrap();
        }
        fs::create_dir(&copy).unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "hunter2\n").unwrap();
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for name in ["packed-refs", "index", "refs/heads/a", "info", "shallow"] {
            symlink(&secret, work.join(".git").join(name)).unwrap();
        }
        fs::write(work.join(".git/refs/heads/b"), "hunter2\n").unwrap();
        create_repository(&work, &copy).unwrap();
        let own = copy.join(".git");
        for name in ["packed-refs", "index", "refs/heads/a", "refs/heads/b", "shallow"] {
            assert!(!own.join(name).exists(), "{name}");
        }
        fs::remove_file(work.join(".git/HEAD")).unwrap();
        symlink(&secret, work.join(".git/HEAD")).unwrap();
        assert!(create_repository(&work, &copy).unwrap().is_none());
    }
}
