//! Laws of keeping, on layers made by hand: no kernel needed. Whatever a layer holds, keeping it makes
//! the real folder what the view was; stopped anywhere, all of it or nothing is there after recovery.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use proptest::{collection::vec, prelude::*};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use tempfile::TempDir;

use super::{
    error::KeepError,
    folder::Layer,
    keep::KeepFailure,
    site::{KeepRecovery, Site},
    steps::HaltSignal,
};

/// What a tree holds, for comparing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(String, u32),
    Link(String),
    Folder(u32),
}

type Tree = BTreeMap<PathBuf, Node>;

/// What a layer says of a path.
#[derive(Clone, Debug)]
enum Mark {
    Gone,
    File(String, u32),
    Link(String),
    /// A folder; the flag says that nothing below shows through.
    Folder(bool, u32),
}

/// Few names, so that trees meet.
fn names() -> impl Strategy<Value = PathBuf> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c d")];
    vec(name, 1..4).prop_map(|names| names.into_iter().collect())
}

fn nodes() -> impl Strategy<Value = Node> {
    let mode = prop_oneof![Just(0o644), Just(0o755), Just(0o444)];
    prop_oneof![
        3 => ("[xy]{0,3}", mode).prop_map(|(text, mode)| Node::File(text, mode)),
        1 => Just(Node::Link("a".to_owned())),
        2 => prop_oneof![Just(0o755), Just(0o700)].prop_map(Node::Folder),
    ]
}

fn marks() -> impl Strategy<Value = Mark> {
    prop_oneof![
        2 => Just(Mark::Gone),
        3 => ("[xz]{0,3}").prop_map(|text| Mark::File(text, 0o640)),
        1 => Just(Mark::Link("b".to_owned())),
        2 => (any::<bool>(), prop_oneof![Just(0o755), Just(0o750)])
            .prop_map(|(opaque, mode)| Mark::Folder(opaque, mode)),
    ]
}

/// A tree in which every path has its folders, and only folders have something below.
fn sound<T: Clone>(
    list: Vec<(PathBuf, T)>,
    is_folder: fn(&T) -> bool,
    folder: &T,
) -> BTreeMap<PathBuf, T> {
    let mut tree: BTreeMap<PathBuf, T> = BTreeMap::new();
    for (path, node) in list {
        let above = || path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        if above().any(|above| tree.get(above).is_some_and(|node| !is_folder(node))) {
            continue;
        }
        for above in above() {
            tree.entry(above.to_owned()).or_insert_with(|| folder.clone());
        }
        let has_below = tree.keys().any(|known| known != &path && known.starts_with(&path));
        if !has_below || is_folder(&node) {
            tree.insert(path, node);
        }
    }
    tree
}

fn build(root: &Path, tree: &Tree) {
    for (path, node) in tree {
        let path = root.join(path);
        match node {
            Node::File(text, mode) => {
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Node::Link(target) => symlink(target, &path).unwrap(),
            Node::Folder(mode) => {
                fs::create_dir(&path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
    }
}

/// Makes the layer as the kernel would; `false` where the file system has no attributes.
fn lay(upper: &Path, marks: &BTreeMap<PathBuf, Mark>) -> bool {
    let note = |path: &Path, name: &str| setxattr(path, name, b"y", XattrFlags::empty()).is_ok();
    for (path, mark) in marks {
        let path = upper.join(path);
        match mark {
            Mark::Gone => mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap(),
            Mark::File(text, mode) => {
                fs::write(&path, text).unwrap();
                if !note(&path, "user.overlay.origin") {
                    return false;
                }
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Mark::Link(target) => symlink(target, &path).unwrap(),
            Mark::Folder(opaque, mode) => {
                fs::create_dir(&path).unwrap();
                if *opaque && !note(&path, "user.overlay.opaque") {
                    return false;
                }
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
    }
    true
}

/// What the view shows, told by the rules of the format.
fn merged(lower: &Tree, marks: &BTreeMap<PathBuf, Mark>) -> Tree {
    let is_covered = |path: &Path| {
        path.ancestors().any(|above| match marks.get(above) {
            Some(Mark::Gone | Mark::File(..) | Mark::Link(_)) => true,
            Some(Mark::Folder(opaque, _)) => {
                above != path && (*opaque || !matches!(lower.get(above), Some(Node::Folder(_))))
            }
            None => false,
        })
    };
    let below = lower.iter().filter(|(path, _)| !is_covered(path));
    let mut tree: Tree = below.map(|(path, node)| (path.clone(), node.clone())).collect();
    for (path, mark) in marks {
        let node = match mark {
            Mark::Gone => continue,
            Mark::File(text, mode) => Node::File(text.clone(), *mode),
            Mark::Link(target) => Node::Link(target.clone()),
            Mark::Folder(_, mode) => Node::Folder(*mode),
        };
        tree.insert(path.clone(), node);
    }
    tree
}

fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let below = folder.join(entry.file_name());
            let facts = entry.path().symlink_metadata().unwrap();
            let node = if facts.is_symlink() {
                Node::Link(fs::read_link(entry.path()).unwrap().display().to_string())
            } else if facts.is_dir() {
                folders.push(below.clone());
                Node::Folder(facts.mode() & 0o7777)
            } else {
                Node::File(fs::read_to_string(entry.path()).unwrap(), facts.mode() & 0o7777)
            };
            tree.insert(below, node);
        }
    }
    tree
}

/// A workspace with a layer over it.
struct Bench {
    _folder: TempDir,
    root: PathBuf,
    site: Site,
    layer: Layer,
}

impl Bench {
    fn new(lower: &Tree, marks: &BTreeMap<PathBuf, Mark>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        fs::create_dir(&root).unwrap();
        build(&root, lower);
        let site = Site::in_folder(folder.path().join("layers"));
        let layer = site.create_layer(vec![root.clone()]).unwrap();
        let upper = layer.overlays().remove(0).upper;
        // The command begins after all that was there before.
        std::thread::sleep(std::time::Duration::from_millis(1));
        let mut layer = layer;
        layer.record_start().unwrap();
        if !lay(&upper, marks) {
            gnoma_testkit::skip_test("the file system of the temporary folder has no attributes");
            return None;
        }
        Some(Self { _folder: folder, root, site, layer })
    }
}

type Marks = BTreeMap<PathBuf, Mark>;

fn trees() -> impl Strategy<Value = (Tree, Marks)> {
    let lower = vec((names(), nodes()), 0..8)
        .prop_map(|list| sound(list, |node| matches!(node, Node::Folder(_)), &Node::Folder(0o755)));
    let marks = vec((names(), marks()), 0..8).prop_map(|list| {
        sound(list, |mark| matches!(mark, Mark::Folder(..)), &Mark::Folder(false, 0o755))
    });
    (lower, marks)
}

fn cases() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
    let wanted = std::env::var("GNOMA_LAYER_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn applied_layer_equals_the_merged_view_and_a_discarded_one_changes_nothing((lower, marks) in trees()) {
        let Some(mut bench) = Bench::new(&lower, &marks) else { return Ok(()) };
        let changes = bench.layer.changes().unwrap();
        prop_assert!(changes.conflicts.is_empty(), "{:?}", changes.conflicts);
        prop_assert_eq!(&read(&bench.root), &lower);
        let seen = merged(&lower, &marks);
        prop_assert_eq!(changes.is_empty(), lower == seen, "{:?}", changes.list);
        bench.layer.apply_changes(&changes, &|_| true).unwrap();
        prop_assert_eq!(read(&bench.root), seen);
        drop(bench.layer);
        prop_assert!(bench.site.recover_layers().unwrap().is_empty());
    }

    #[test]
    fn interrupted_apply_of_layer_changes_recovers_to_all_or_nothing((lower, marks) in trees()) {
        let seen = merged(&lower, &marks);
        for stop in 0.. {
            let Some(mut bench) = Bench::new(&lower, &marks) else { return Ok(()) };
            let changes = bench.layer.changes().unwrap();
            let mut left = stop;
            let mut tick = || if left == 0 { Err(HaltSignal) } else { left -= 1; Ok(()) };
            let outcome = bench.layer.keep_watched(&changes, &|_| true, &mut tick);
            let Bench { _folder, root, site, layer } = bench;
            drop(layer);
            let recovered = site.recover_layers().unwrap();
            prop_assert!(recovered.len() <= 1);
            let now = read(&root);
            match (outcome, recovered.first()) {
                (Ok(()), _) => {
                    prop_assert_eq!(now, seen);
                    break;
                }
                (Err(KeepFailure::Halted), Some(KeepRecovery::Finished)) => prop_assert_eq!(now, seen.clone()),
                (Err(KeepFailure::Halted), None) => prop_assert_eq!(now, lower.clone()),
                other => prop_assert!(false, "{other:?}"),
            }
            prop_assert_eq!(fs::read_dir(root.with_file_name("layers")).unwrap().count(), 1);
        }
    }

    #[test]
    fn applying_layer_changes_never_overwrites_concurrent_external_changes(
        (lower, marks) in trees(),
        place: prop::sample::Index,
        before_listing: bool,
    ) {
        let files: Vec<_> =
            lower.iter().filter(|(_, node)| matches!(node, Node::File(..))).collect();
        if files.is_empty() {
            return Ok(());
        }
        let Some(mut bench) = Bench::new(&lower, &marks) else { return Ok(()) };
        let theirs = bench.root.join(place.get(&files).0);
        let change = || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            fs::remove_file(&theirs).unwrap();
            fs::write(&theirs, "theirs").unwrap();
        };
        if before_listing {
            change();
        }
        let changes = bench.layer.changes().unwrap();
        if !before_listing {
            change();
        }
        let with_theirs = read(&bench.root);
        match bench.layer.apply_changes(&changes, &|_| true) {
            Ok(()) => prop_assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs"),
            Err(KeepError::Conflict(_)) => prop_assert_eq!(read(&bench.root), with_theirs),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

#[test]
fn applying_selected_layer_changes_creates_their_parent_folders() {
    let lower: Tree = [("old".into(), Node::File("1".to_owned(), 0o644))].into();
    let marks: Marks = [
        ("new".into(), Mark::Folder(false, 0o755)),
        ("new/wanted".into(), Mark::File("w".to_owned(), 0o644)),
        ("new/other".into(), Mark::File("o".to_owned(), 0o644)),
        ("old".into(), Mark::Gone),
    ]
    .into();
    let Some(mut bench) = Bench::new(&lower, &marks) else { return };
    let changes = bench.layer.changes().unwrap();
    let wanted =
        |change: &super::LayerChange| change.path().file_name() == Some(OsStr::new("wanted"));
    bench.layer.apply_changes(&changes, &wanted).unwrap();
    let now: Vec<_> = read(&bench.root).into_keys().collect();
    assert_eq!(now, [PathBuf::from("new"), "new/wanted".into(), "old".into()]);
}

#[test]
fn applying_layer_changes_drops_setuid_and_does_not_follow_swapped_symlinks() {
    let lower: Tree = [("folder".into(), Node::Folder(0o755))].into();
    let marks: Marks = [
        ("folder".into(), Mark::Folder(false, 0o755)),
        ("folder/tool".into(), Mark::File("#!".to_owned(), 0o4755)),
    ]
    .into();
    let Some(mut bench) = Bench::new(&lower, &marks) else { return };
    let changes = bench.layer.changes().unwrap();
    let outside = bench.root.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir(bench.root.join("folder")).unwrap();
    symlink(&outside, bench.root.join("folder")).unwrap();
    assert!(matches!(bench.layer.apply_changes(&changes, &|_| true), Err(KeepError::Conflict(_))));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(bench.root.join("folder")).unwrap();
    fs::create_dir(bench.root.join("folder")).unwrap();
    bench.layer.apply_changes(&changes, &|_| true).unwrap();
    let tool = fs::metadata(bench.root.join("folder/tool")).unwrap();
    assert_eq!(tool.mode() & 0o7777, 0o755);
}

#[test]
fn layer_can_delete_all_hard_links_of_a_file() {
    let file = Node::File("1".to_owned(), 0o644);
    let lower: Tree = [("d".into(), Node::Folder(0o755)), ("d/x".into(), file)].into();
    let marks: Marks = [("d".into(), Mark::Gone)].into();
    let Some(mut bench) = Bench::new(&lower, &marks) else { return };
    fs::hard_link(bench.root.join("d/x"), bench.root.join("d/y")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    bench.layer.record_start().unwrap();
    let changes = bench.layer.changes().unwrap();
    assert!(changes.conflicts.is_empty(), "{:?}", changes.conflicts);
    bench.layer.apply_changes(&changes, &|_| true).unwrap();
    assert!(read(&bench.root).is_empty());
}
