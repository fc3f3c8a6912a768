//! What a shell could expand to a name always meets it: laws against a matcher that does as shells do,
//! and the table of places against what others make of it.

use std::path::{Path, PathBuf};

use gnoma_core::places::{self, GUARDED, Group, LocalPlaces, OWN_FILES, SECRETS};
use proptest::prelude::*;

use super::{JudgedPath, guarded_kind, name::Name, secret_kind};
use crate::permission::{
    JudgementContext,
    pattern_overlap::{Dialect, fold_name},
};

/// Reports whether a shell with all its kinds of patterns takes `glob` for `name`.
fn matches_glob(glob: &[char], name: &[char]) -> bool {
    match glob {
        [] => name.is_empty(),
        [kind @ ('?' | '*' | '+' | '@' | '!'), '(', rest @ ..] if rest.contains(&')') => {
            let end = rest.iter().position(|letter| *letter == ')').unwrap();
            matches_group(*kind, &rest[..end], &rest[end + 1..], name)
        }
        ['*', rest @ ..] => (0..=name.len()).any(|at| matches_glob(rest, &name[at..])),
        ['?', rest @ ..] => !name.is_empty() && matches_glob(rest, &name[1..]),
        ['[', rest @ ..] => match match_bracket(rest, name.first().copied()) {
            Some((fits, length)) => fits && matches_glob(&rest[length..], &name[1..]),
            None => name.first() == Some(&'[') && matches_glob(rest, &name[1..]),
        },
        ['\\', letter, rest @ ..] | [letter, rest @ ..] => {
            name.first() == Some(letter) && matches_glob(rest, &name[1..])
        }
    }
}

/// `@(a|b)` and its like, without groups in groups.
fn matches_group(kind: char, alternatives: &[char], rest: &[char], name: &[char]) -> bool {
    let is_one = |part: &[char]| {
        alternatives
            .split(|letter| *letter == '|')
            .any(|alternative| matches_glob(alternative, part))
    };
    let splits = || (0..=name.len()).map(|at| name.split_at(at));
    let more = |part: &[char]| {
        (1..=part.len()).any(|at| is_one(&part[..at]) && is_repetition(&is_one, &part[at..]))
    };
    splits().any(|(part, after)| {
        let fits = match kind {
            '@' => is_one(part),
            '?' => part.is_empty() || is_one(part),
            '*' => part.is_empty() || more(part),
            '+' => is_one(part) || more(part),
            _ => !is_one(part),
        };
        fits && matches_glob(rest, after)
    })
}

fn is_repetition(is_one: &dyn Fn(&[char]) -> bool, part: &[char]) -> bool {
    part.is_empty()
        || (1..=part.len()).any(|at| is_one(&part[..at]) && is_repetition(is_one, &part[at..]))
}

/// Returns whether the bracket expression behind a `[` takes `letter`, and the expression's length; `None` when it
/// has no end.
fn match_bracket(text: &[char], letter: Option<char>) -> Option<(bool, usize)> {
    let is_not = matches!(text.first(), Some('!' | '^'));
    let mut at = usize::from(is_not);
    let first = at;
    let mut found = false;
    loop {
        let mut member = *text.get(at)?;
        if member == ']' && at > first {
            return Some((letter.is_some() && found != is_not, at + 1));
        }
        if member == '[' && text.get(at + 1) == Some(&':') {
            let name: String = text[at + 2..].iter().take_while(|it| **it != ':').collect();
            let fits = |letter: char| match name.as_str() {
                "alpha" => letter.is_ascii_alphabetic(),
                "punct" => letter.is_ascii_punctuation(),
                _ => letter.is_ascii_alphanumeric(),
            };
            found |= letter.is_some_and(fits);
            at += name.len() + 4;
            continue;
        }
        if member == '\\' {
            at += 1;
            member = *text.get(at)?;
        }
        if text.get(at + 1) == Some(&'-') && !matches!(text.get(at + 2), None | Some(']')) {
            found |= letter.is_some_and(|letter| (member..=text[at + 2]).contains(&letter));
            at += 3;
        } else {
            found |= letter == Some(member);
            at += 1;
        }
    }
}

/// The words of a text with groups in braces.
fn without_braces(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    let Some((before, inside, after)) = parts.filter(|(_, inside, _)| inside.contains(',')) else {
        return vec![text.to_owned()];
    };
    let rest = without_braces(after);
    let join = |choice: &str| {
        rest.iter().map(move |after| format!("{before}{choice}{after}")).collect::<Vec<_>>()
    };
    inside.split(',').flat_map(join).collect()
}

/// A piece of a pattern and a text that it can stand for.
fn pattern_piece() -> impl Strategy<Value = (String, String)> {
    const SETS: [&str; 9] = [
        "[[:alpha:]]",
        "[!]x]",
        "[]env]",
        "[a-z]",
        "[^q]",
        "[\\]env]",
        "[[:alnum:]_]",
        "[e-]",
        "[[:punct:][:alpha:]]",
    ];
    const GROUPS: [&str; 7] =
        ["@(e|n)", "+(e|env)", "?(x)e", "*(e|n)e", "!(x)", "{e,env}", "{,x}e"];
    prop_oneof![
        3 => "[.envidrsa_]".prop_map(|letter| (letter.clone(), letter)),
        1 => "[.env]{0,3}".prop_map(|some| ("*".to_owned(), some)),
        1 => "[.env]".prop_map(|one| ("?".to_owned(), one)),
        2 => (prop::sample::select(&SETS[..]), "[envx]").prop_map(|(set, one)| (set.to_owned(), one)),
        1 => (prop::sample::select(&GROUPS[..]), "[en]{1,2}")
            .prop_map(|(group, some)| (group.to_owned(), some)),
        1 => "[env\\[\\]*]".prop_map(|letter| (format!("\\{letter}"), letter)),
        1 => prop::sample::select(&["[", "]", "!", "-"][..])
            .prop_map(|letter| (letter.to_owned(), letter.to_owned())),
    ]
}

fn glob_overlaps_name(glob: &str, name: &str) -> bool {
    Name::new(glob, Dialect::Shell).overlaps_name(&Name::new(name, Dialect::Plain))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn glob_overlaps_every_name_that_a_shell_could_expand_it_to(
        pieces in prop::collection::vec(pattern_piece(), 1..6),
        other in "[.env]{0,4}",
    ) {
        let glob: String = pieces.iter().map(|(glob, _)| glob.as_str()).collect();
        let made: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        // Endings that only some file systems drop are folded away; folders lead to themselves.
        let names = [made.as_str(), other.as_str(), ".env", "id_rsa"];
        for name in names.into_iter().filter(|name| fold_name(name) == *name && name.contains(|it| it != '.')) {
            let expanded = without_braces(&glob).iter().any(|glob| {
                let (glob, name): (Vec<_>, Vec<_>) = (glob.chars().collect(), name.chars().collect());
                matches_glob(&glob, &name)
            });
            prop_assert!(!expanded || glob_overlaps_name(&glob, name), "{glob} {name}");
        }
    }
}

#[test]
fn globs_that_can_expand_to_a_secret_file_are_detected() {
    for glob in [
        ".[[:alpha:]]nv",
        ".[!]a]nv",
        ".e[^x]v",
        ".[[:alpha:]][[:alpha:]]v",
        "[.][e]nv",
        ".@(env|x)",
        ".{env,x}",
        ".EN[V]",
        ".en\\v",
        ".+([env])",
        ".[[=e=]]nv",
    ] {
        assert!(glob_overlaps_name(glob, ".env"), "{glob}");
    }
    assert!(!glob_overlaps_name("[[:alpha:]]*.rs", "server.pem"));
}

#[test]
fn glob_with_a_dot_in_a_bracket_set_matches_hidden_secret_files() {
    in_world(|world| {
        let kind = |pattern: &str| {
            let whole = format!("/home/ada/work/{pattern}");
            secret_kind(
                &JudgedPath::from_pattern(Path::new("/home/ada/work"), &whole, world),
                world,
            )
        };
        for pattern in ["[.]*", "sub/[.]?*", "[.x]*", "[+-.]*"] {
            assert!(kind(pattern).is_some(), "{pattern}");
        }
        for pattern in ["*", "[!.]*"] {
            assert_eq!(kind(pattern), None, "{pattern}");
        }
    });
}

#[test]
fn gnoma_config_dir_is_guarded_and_only_its_skills_can_be_read() {
    let own = [PathBuf::from("/home/ada/.config/gnoma"), PathBuf::from("/home/ada/.state/gnoma")];
    in_world(|world| {
        let world = &JudgementContext { config_dirs: &own, ..*world };
        let at = |path: &str| {
            let path = format!("/home/ada/.config/gnoma/{path}");
            JudgedPath::from_pattern(Path::new("/home/ada/work"), &path, world)
        };
        for readable in ["skills", "skills/pdf/run.py", "skills/./pdf"] {
            assert_eq!(secret_kind(&at(readable), world), None, "{readable}");
            assert_eq!(guarded_kind(&at(readable), world), Some(OWN_FILES), "{readable}");
        }
        for kept in [
            "config.toml",
            "skills/../config.toml",
            "skills/{x,../config.toml}",
            "skills/*",
            "*/x",
            "skillset/x",
            "",
            "skills/pdf/.env",
        ] {
            assert!(secret_kind(&at(kept), world).is_some(), "{kept}");
        }
    });
}

#[test]
fn home_dotfiles_are_guarded_if_the_workspace_is_the_home() {
    let is_guarded = |root: &str, path: &str| {
        in_world(|world| {
            let world = &JudgementContext { roots: &[PathBuf::from(root)], ..*world };
            guarded_kind(&JudgedPath::from_pattern(Path::new("/home/ada"), path, world), world)
                .is_some()
        })
    };
    for path in [
        "/home/ada/.psqlrc",
        "/home/ada/.config/sway/config",
        "/home/ada/.ipython/profile_default/startup/a.py",
        "/home/ada/[.]psqlrc",
        "/home/ada/.local/{x,../.psqlrc}",
    ] {
        assert!(is_guarded("/home/ada", path), "{path}");
    }
    for path in ["/home/ada/notes.md", "/home/ada/work/.x/y", "/home/ada/.npm/_cacache/a"] {
        assert!(!is_guarded("/home/ada", path), "{path}");
    }
    assert!(!is_guarded("/home/ada/.own", "/home/ada/.own/main.rs"));
}

fn in_world<T>(look: impl FnOnce(&JudgementContext<'_>) -> T) -> T {
    look(&JudgementContext {
        cwd: Path::new("/home/ada/work"),
        home: Some(Path::new("/home/ada")),
        roots: &[PathBuf::from("/home/ada/work")],
        config_dirs: &[],
        programs: &[],
        copies: &[],
        trusted: true,
        sandboxed: true,
        network_on_grant: true,
        resolve: &Path::to_path_buf,
        list: &|_| None,
        repositories: &crate::git::NoRepositories,
    })
}

/// A path that fits a place of the table.
fn path_at(place: &str, filling: &str, folder: &str, below: &str) -> PathBuf {
    let filled = place.replace('*', filling).replace('?', " ");
    let base = if place.starts_with('/') { "/" } else { folder };
    let base = if place.starts_with('~') { "/home/ada" } else { base };
    let filled = filled.trim_start_matches(['~', '/']);
    let path = Path::new(base).join(filled.trim_end_matches('/'));
    if place.ends_with('/') { path.join(below) } else { path }
}

/// One place of a table, written as it is there.
fn place_of<W>(groups: &[Group<W>]) -> impl Strategy<Value = String> {
    let places: Vec<_> = groups.iter().flat_map(Group::names).map(str::to_owned).collect();
    prop::sample::select(places)
}

const FOLDERS: [&str; 3] = ["/home/ada/work/src", "/home/ada", "/srv/x"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn permission_check_and_places_table_agree_on_secret_files(
        place in prop_oneof![3 => place_of(SECRETS), 1 => "[.a-z*]{1,8}"],
        filling in "[a-z]{1,4}",
        folder in prop::sample::select(&FOLDERS[..]),
        below in "[a-z]{0,4}",
    ) {
        let path = path_at(&place, &filling, folder, &below);
        let judged = in_world(|world| secret_kind(&JudgedPath::from_path(&path, world), world));
        prop_assert_eq!(judged, places::find_secret(&path).map(|secret| secret.kind), "{:?}", path);
    }

    #[test]
    fn every_path_that_the_sandbox_protects_is_guarded_by_permissions(
        place in place_of(GUARDED),
        filling in "[a-z]{1,4}",
        folder in prop::sample::select(&FOLDERS[..]),
        below in "[a-z]{0,4}",
    ) {
        let path = path_at(&place, &filling, folder, &below);
        let judged = in_world(|world| guarded_kind(&JudgedPath::from_path(&path, world), world));
        prop_assert!(judged.is_some(), "{:?}", path);
    }

    #[test]
    fn trials_and_file_tools_guard_the_same_paths(
        place in prop_oneof![4 => place_of(GUARDED), 1 => "[.a-z*]{1,8}"],
        filling in "[a-z]{1,4}",
        folder in prop::sample::select(&FOLDERS[..]),
        below in "[a-z]{0,4}",
    ) {
        let path = path_at(&place, &filling, folder, &below);
        let local = LocalPlaces { homes: vec!["/home/ada".into()], works_at_home: true, ..LocalPlaces::default() };
        let by_name = |world: &JudgementContext<'_>| {
            let path = JudgedPath::from_path(&path, world);
            let named = |form| super::find_place_kind(form, super::tables::guarded_places(), world);
            path.forms().find_map(named).or_else(|| super::home_setting(&path, world))
        };
        prop_assert_eq!(in_world(by_name), local.guard_reason(&path), "{:?}", path);
    }
}
