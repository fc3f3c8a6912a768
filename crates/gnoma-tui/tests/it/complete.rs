//! Completion: what is asked for at the cursor, what is put there, and which files there are.

use std::{fs, sync::mpsc, time::Duration};

use gnoma_tui::complete::{self, CompletionKind, Limits, Lister, Listing, Mention};
use proptest::prelude::*;

/// How long a listing may take here.
const WAIT: Duration = Duration::from_secs(30);

/// The line and the cursor of a line with a mark, and what is completed there.
fn query(marked: &str) -> Option<(CompletionKind, String, String)> {
    let cursor = marked.find('¦').unwrap();
    let line = marked.replace('¦', "");
    let query = complete::find_query(&line, cursor, true)?;
    Some((query.kind, query.text, line[query.range].to_owned()))
}

#[test]
fn file_completion_starts_at_an_at_sign_that_begins_a_word() {
    for (line, text, replaced) in [
        ("@¦", "", "@"),
        ("see @sr¦c/m and", "sr", "@src/m"),
        ("(@a¦", "a", "@a"),
        ("@\"my fi¦le\" x", "my fi", "@\"my file\""),
        ("@\"my @fi¦", "my @fi", "@\"my @fi"),
        ("@\"a b\" @c¦", "c", "@c"),
        ("/model @a¦", "a", "@a"),
    ] {
        assert_eq!(
            query(line),
            Some((CompletionKind::File, text.to_owned(), replaced.to_owned())),
            "{line}"
        );
    }
    for line in ["me@hom¦e", "@a b¦", "¦@a", "", "@\"a b\"¦"] {
        let line = if line.is_empty() { "¦" } else { line };
        assert_eq!(query(line), None, "{line}");
    }
}

#[test]
fn commands_are_completed_at_the_start_of_the_first_line() {
    let command = |text: &str, replaced: &str| {
        Some((CompletionKind::Command, text.to_owned(), replaced.to_owned()))
    };
    assert_eq!(query("/¦"), command("", "/"));
    assert_eq!(query("/mo¦del x"), command("mo", "/model"));
    assert_eq!(query("/usr/b¦"), None);
    assert_eq!(query("/us¦r/b"), None);
    assert_eq!(query(" /mo¦"), None);
    assert_eq!(query("/model x¦"), None);
    assert_eq!(complete::find_query("/mo", 3, false), None);
}

#[test]
fn completion_quotes_paths_and_appends_a_space() {
    let accepted = |line: &str, path: &str| {
        let cursor = line.find('¦').unwrap();
        let line = line.replace('¦', "");
        let query = complete::find_query(&line, cursor, true).unwrap();
        let text = match query.kind {
            CompletionKind::File => complete::file_replacement(&line, &query, path),
            CompletionKind::Command => complete::command_replacement(&line, &query, path),
        };
        format!("{}{text}{}", &line[..query.range.start], &line[query.range.end..])
    };
    assert_eq!(accepted("see @ma¦", "src/main.rs"), "see @src/main.rs ");
    assert_eq!(accepted("see @ma¦ please", "src/main.rs"), "see @src/main.rs please");
    assert_eq!(accepted("@ma¦", "my file.rs"), "@\"my file.rs\" ");
    assert_eq!(accepted("@\"my fi¦le\"", "my file.rs"), "@\"my file.rs\" ");
    assert_eq!(accepted("@s¦", "src/"), "@src/");
    assert_eq!(accepted("@s¦", "my src/"), "@\"my src/");
    assert_eq!(accepted("/mo¦", "model"), "/model ");
}

#[test]
fn mentions_are_found_in_a_text() {
    let text = "Fix @src/a.rs, then\n(@b.rs) and @\"c d.rs\" but not me@home.org @ or @\"open";
    let paths: Vec<_> =
        complete::find_mentions(text).into_iter().map(|mention| mention.path).collect();
    assert_eq!(paths, ["src/a.rs", "b.rs", "c d.rs"]);
    assert_eq!(complete::find_mentions("@a")[..], [Mention { path: "a".to_owned(), range: 0..2 }]);
}

proptest! {
    #[test]
    fn completed_path_is_found_as_a_mention(path in "[a-z \"\\\\é/@]{0,8}[a-z]") {
        let query = complete::find_query("x @", 3, false).unwrap();
        let text = format!("x {}y", complete::file_replacement("x @", &query, &path));
        let mentions = complete::find_mentions(&text);
        prop_assert_eq!(mentions.first().map(|mention| &mention.path), Some(&path), "{}", text);
    }

    #[test]
    fn completion_ranges_are_valid_for_any_line(line in "[a@\"/\\\\ é(]{0,20}", cursor in 0_usize..24) {
        if let Some(query) = complete::find_query(&line, cursor, true) {
            prop_assert!(line.get(query.range).is_some());
        }
        for mention in complete::find_mentions(&line) {
            prop_assert!(line.get(mention.range).is_some_and(|text| text.starts_with('@')));
        }
    }
}

fn listing(root: &std::path::Path, limits: Limits) -> Listing {
    let (sender, receiver) = mpsc::channel();
    let _lister = Lister::start(root.to_owned(), limits, move |listing| {
        sender.send(listing).unwrap();
    });
    receiver.recv_timeout(WAIT).unwrap()
}

#[test]
fn files_are_listed_without_those_that_are_ignored_and_secrets_last() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for path in [
        ".git/config",
        ".gitignore",
        ".env",
        ".env.local",
        ".github/ci.yml",
        "src/main.rs",
        "src/a b.rs",
        "target/debug/x",
        "certs/site.pem",
        "notes.log",
        "sub/keep.log",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::write(root.join(".gitignore"), "target/\n*.log\n!keep.log\n").unwrap();
    let listing = listing(root, Limits::default());
    assert_eq!(
        listing.paths,
        [
            "certs/",
            "src/",
            "sub/",
            ".github/",
            ".gitignore",
            "src/a b.rs",
            "src/main.rs",
            "sub/keep.log",
            ".github/ci.yml",
            ".env",
            ".env.local",
            "certs/site.pem",
        ]
    );
    assert!(!listing.is_cut);
}

#[test]
fn a_listing_keeps_its_limits_and_a_missing_folder_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10 {
        fs::write(folder.path().join(number.to_string()), "").unwrap();
    }
    let few = listing(folder.path(), Limits { entries: 4, ..Limits::default() });
    assert_eq!((few.paths.len(), few.is_cut), (4, true));
    let none = listing(folder.path(), Limits { time: Duration::ZERO, ..Limits::default() });
    assert_eq!((none.paths, none.is_cut), (Vec::<String>::new(), true));
    assert_eq!(listing(&folder.path().join("missing"), Limits::default()), Listing::default());
}
