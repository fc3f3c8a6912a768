//! Laws about what becomes of changes and how they are asked about, over trees that a command could have left.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use gnoma_core::{
    names::escape_path,
    places::{GUARDED, Group, LocalPlaces},
    session::NotableChange,
    tool::Trial,
};
use gnoma_sandbox::layer::{Changes, Layer, LayerChange, Site};
use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    chosen_changes,
    trial_facts::{ChangeDecision, decide_fate},
    trial_question::{ChangeFacts, ChangeQuestion},
};

/// The entry that a command has left at one path.
#[derive(Clone, Debug)]
enum LeftEntry {
    File,
    Program,
    LinkInside,
    LinkOutside,
    LinkToSecret,
}

/// A tree that a command has left in its layer, over a workspace that is a home.
struct TriedTree {
    _folder: tempfile::TempDir,
    root: PathBuf,
    layer: Layer,
    changes: Changes,
    local: LocalPlaces,
}

impl TriedTree {
    fn from_tree(tree: &[(String, LeftEntry)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        let root = at.join("home");
        fs::create_dir(&root).unwrap();
        let layer = Site::in_folder(at.join("layers")).create_layer(vec![root.clone()]).unwrap();
        let upper = layer.overlays()[0].upper.clone();
        for (name, left) in tree {
            let path = upper.join(name);
            let is_free = fs::create_dir_all(path.parent().unwrap()).is_ok();
            if !is_free || path.symlink_metadata().is_ok() {
                continue;
            }
            match left {
                LeftEntry::File => fs::write(&path, "x").unwrap(),
                LeftEntry::Program => {
                    fs::write(&path, "#!/bin/sh").unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
                }
                LeftEntry::LinkInside => symlink("plain", &path).unwrap(),
                LeftEntry::LinkToSecret => symlink(root.join(".env"), &path).unwrap(),
                LeftEntry::LinkOutside => symlink("../../../../etc/passwd", &path).unwrap(),
            }
        }
        let changes = layer.changes_but(&|_| false).unwrap();
        let local = LocalPlaces {
            homes: vec![root.clone()],
            works_at_home: true,
            ..LocalPlaces::default()
        };
        Self { _folder: folder, root, layer, changes, local }
    }

    fn change_question(&self) -> ChangeQuestion {
        let facts = ChangeFacts {
            layer: &self.layer,
            changes: &self.changes,
            roots: std::slice::from_ref(&self.root),
            local: &self.local,
            is_ignored: &|_| false,
            secrets: &[],
        };
        facts.build_question("sh make.sh")
    }

    fn display_name(&self, path: &Path) -> String {
        escape_path(path.strip_prefix(&self.root).unwrap())
    }

    fn decide_fate(&self) -> ChangeDecision {
        decide_fate(
            Trial::KeepEdits,
            &self.changes,
            None,
            std::slice::from_ref(&self.root),
            &self.local,
        )
    }
}

fn fill_patterns<W>(groups: &'static [Group<W>]) -> Vec<String> {
    let places = groups.iter().flat_map(Group::names).filter(|place| !place.starts_with('/'));
    // What is in git's own folder is asked about before.
    let places = places.filter(|place| !place.starts_with(".git/") && !place.starts_with("*.git/"));
    let place = |place: &str| {
        let below = if place.ends_with('/') { "own.sh" } else { "" };
        format!("{}{below}", place.trim_start_matches("~/").replace(['*', '?'], "a"))
    };
    places.map(place).collect()
}

fn tree_strategy() -> impl Strategy<Value = Vec<(String, LeftEntry)>> {
    let left = select(vec![
        LeftEntry::File,
        LeftEntry::File,
        LeftEntry::Program,
        LeftEntry::LinkInside,
        LeftEntry::LinkOutside,
    ]);
    let guarded = select(fill_patterns(GUARDED));
    let odd = "[!a]{1,3}[ \\n\\x1b\u{202e}\\\\x]{0,3}";
    let name = prop_oneof![
        3 => guarded.clone(),
        2 => ("[a-c]{1,2}", guarded).prop_map(|(folder, place)| format!("{folder}/{place}")),
        3 => odd,
        2 => "[a-c]{1,2}/[a-c]{1,2}/[a-z]{1,3}",
    ];
    let decoys = (0_usize..330).prop_map(|count| {
        (0..count).map(|number| (format!("!{number:04}.txt"), LeftEntry::File)).collect::<Vec<_>>()
    });
    (vec((name, left), 1..24), decoys).prop_map(|(named, decoys)| [decoys, named].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn trial_question_lists_guarded_files_first_and_saves_none_without_approval(tree in tree_strategy()) {
        let tried = TriedTree::from_tree(&tree);
        let asked = tried.change_question();
        let guarded: Vec<_> = tried
            .changes
            .list
            .iter()
            .map(LayerChange::path)
            .filter(|path| tried.local.guard_reason(path).is_some() && !path.is_dir())
            .filter(|path| !tried.layer_folder(path))
            .collect();
        for path in &guarded {
            let name = tried.display_name(path);
            prop_assert!(asked.notable.iter().any(|it| it.name == name), "{name} in {:?}", asked.notable);
            let is_plain = |text: &str| !text.contains(['\n', '\u{1b}', '\u{202e}']);
            prop_assert!(asked.notable.iter().all(|it| is_plain(&it.name)), "{:?}", asked.notable);
        }
        prop_assert!(!asked.text.contains(['\n', '\u{1b}', '\u{202e}']), "{}", asked.text);
        prop_assert!(asked.unnamed.is_empty());
        if !guarded.is_empty() {
            prop_assert_ne!(tried.decide_fate(), ChangeDecision::Kept);
            let parts = chosen_changes::nameable_changes(&asked.order, &tried.changes, std::slice::from_ref(&tried.root));
            let first: Vec<_> = asked.notable.iter().map(|it| it.name.clone()).collect();
            prop_assert_eq!(&parts[..first.len()], &first[..]);
        }
    }
}

impl TriedTree {
    /// Reports whether the path is a folder with something in it, which stands for nothing by itself.
    fn layer_folder(&self, path: &Path) -> bool {
        let others = self.changes.list.iter().map(LayerChange::path);
        others.clone().any(|other| other != path && other.starts_with(path))
    }
}

#[test]
fn trial_question_shows_change_kinds_symlink_targets_and_executable_bits() {
    let tree = [
        ("!0.txt", LeftEntry::File),
        (".husky/pre-commit", LeftEntry::Program),
        ("AGENTS.md", LeftEntry::File),
        ("id_rsa", LeftEntry::File),
        ("out", LeftEntry::LinkOutside),
        ("in", LeftEntry::LinkInside),
        ("run.sh", LeftEntry::Program),
    ];
    let tried = TriedTree::from_tree(&tree.map(|(name, left)| (name.to_owned(), left)));
    let asked = tried.change_question();
    let told: Vec<_> = asked.notable.iter().map(|it| format!("{}: {}", it.name, it.what)).collect();
    assert_eq!(
        told,
        [
            ".husky/pre-commit: creates: a program, which version control reads on every run",
            "AGENTS.md: creates: instructions of a coding agent",
            "out: creates: a link to `../../../../etc/passwd`, which is outside the workspace",
            "id_rsa: creates: keys of ssh",
            "run.sh: creates: a program",
        ]
    );
    let first = "`sh make.sh` creates `.husky/pre-commit` (a program, which version control reads on every run)";
    assert!(asked.is_danger && asked.text.starts_with(first), "{}", asked.text);
    assert!(asked.text.ends_with("; 2 more files change too"), "{}", asked.text);
    assert!(
        asked.preview.contains("it is a link to `../../../../etc/passwd`"),
        "{}",
        asked.preview
    );
}

#[test]
fn trial_question_names_new_symlinks_to_workspace_secrets() {
    let tree = [
        ("a/b/f", LeftEntry::LinkToSecret),
        ("plain", LeftEntry::LinkToSecret),
        ("in", LeftEntry::LinkInside),
        ("other/in", LeftEntry::LinkInside),
    ];
    let tried = TriedTree::from_tree(&tree.map(|(name, left)| (name.to_owned(), left)));
    let asked = tried.change_question();
    let named: Vec<_> = asked.notable.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(named, ["a/b/f", "in", "plain"], "a link by way of another as well");
    let is_told = |it: &NotableChange| it.what.ends_with("which leads to a secret");
    assert!(asked.notable.iter().all(is_told), "{:?}", asked.notable);
    assert!(!asked.may_be_always && asked.text.contains("leads to a secret"), "{}", asked.text);
}

#[test]
fn trial_approve_all_does_not_save_guarded_files_that_were_not_named() {
    let tree: Vec<_> =
        (0..260).map(|number| (format!(".vscode/{number}"), LeftEntry::File)).collect();
    let asked = TriedTree::from_tree(&tree).change_question();
    assert_eq!((asked.notable.len(), asked.unnamed.len()), (200, 60));
    assert!(asked.text.contains("60 more that always need approval"), "{}", asked.text);
}

#[test]
fn trial_changes_to_programs_and_scripts_of_the_home_need_approval() {
    for name in [
        ".local/bin/tool",
        "bin/t2",
        ".cargo/bin/t3",
        ".nvm/nvm.sh",
        ".bashrc.d/x.sh",
        ".newmanager/shims/node",
        "CLAUDE.md",
        "sub/AGENTS.md",
    ] {
        let tried = TriedTree::from_tree(&[(name.to_owned(), LeftEntry::File)]);
        assert_eq!(tried.decide_fate(), ChangeDecision::Asked, "{name}");
    }
    let tried = TriedTree::from_tree(&[("work/bin/t2".to_owned(), LeftEntry::File)]);
    assert_eq!(tried.decide_fate(), ChangeDecision::Kept);
}
