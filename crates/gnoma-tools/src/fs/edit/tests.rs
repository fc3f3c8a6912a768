//! What a model sees of `fs.edit`, on real files.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::{ToolOptions, fs::testing::Bench};

#[tokio::test]
async fn edit_changes_the_file_and_returns_a_diff() {
    let bench = Bench::new();
    bench.put("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let arguments = json!({"path": "a.rs", "old_string": "b()", "new_string": "bee()"});
    let preview = bench.preview("fs.edit", &arguments);
    assert_eq!(bench.get("a.rs"), b"fn a() {}\nfn b() {}\nfn c() {}\n");
    let output = bench.output("fs.edit", arguments.clone()).await;
    assert_eq!(bench.get("a.rs"), b"fn a() {}\nfn bee() {}\nfn c() {}\n");
    let hunk = "@@ -1,3 +1,3 @@\n fn a() {}\n-fn b() {}\n+fn bee() {}\n fn c() {}\n";
    let diff = format!("--- a/a.rs\n+++ b/a.rs\n{hunk}");
    assert_eq!(output.diff.as_deref(), Some(diff.as_str()));
    assert_eq!(preview, output.diff);
    assert_eq!(bench.preview("fs.edit", &arguments), None);
}

#[tokio::test]
async fn edit_result_reports_a_fuzzy_match_and_the_diff_hunk() {
    let bench = Bench::new();
    bench.put("a.py", "class A:\n    def f(self):\n        return 1\n");
    let text = bench
        .done(
            "fs.edit",
            json!({"path": "a.py", "old_string": "def f(self):\n    return 1", "new_string": "def f(self):\n    return 2"}),
        )
        .await;
    let expected = "edited `a.py`\nmatched ignoring indentation at lines 2–3\n@@ -1,3 +1,3 @@\n class A:\n     def f(self):\n-        return 1\n+        return 2";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn several_edits_are_all_made_or_none() {
    let bench = Bench::new();
    bench.put("a", "one\ntwo\ntwo\n");
    let edits = |last: &str| {
        json!({"path": "a", "old_string": "", "new_string": "", "edits": [
            {"old_string": "one", "new_string": "1"},
            {"old_string": last, "new_string": "2", "replace_all": true},
        ]})
    };
    let refusal = bench.failed("fs.edit", edits("three")).await;
    assert!(
        refusal.starts_with("nothing was changed: edit 2 of 2: `old_string` is not in `a`"),
        "{refusal}"
    );
    assert_eq!(bench.get("a"), b"one\ntwo\ntwo\n");
    let done = bench.done("fs.edit", edits("two")).await;
    assert!(done.starts_with("edited `a` (3 replacements)\n"), "{done}");
    assert_eq!(bench.get("a"), b"1\n2\n2\n");
}

#[tokio::test]
async fn edit_errors_say_what_to_do() {
    let bench = Bench::new();
    bench.put("a.txt", "alpha beta\ngamma\nalpha beta\n");
    bench.put("dir/x", "");
    let edit = |path, old, new| {
        bench.failed("fs.edit", json!({"path": path, "old_string": old, "new_string": new}))
    };
    let twice = edit("a.txt", "alpha beta", "x").await;
    let expected = "nothing was changed: `old_string` matches 2 times, at lines 1, 3: add lines around it to make it unique, or set `replace_all`";
    assert_eq!(twice, expected);
    bench.done("fs.read", json!({"path": "a.txt"})).await;
    let near = edit("a.txt", "gamma delta", "x").await;
    assert!(near.ends_with("1\talpha beta\n2\tgamma\n3\talpha beta"), "{near}");
    assert!(edit("a.txt", "zzz yyy", "x").await.contains("no similar text was found"));
    assert!(edit("a.txt", "x", "x").await.contains("are the same"));
    assert!(edit("a.txt", "", "x").await.contains("use fs.write"));
    assert!(edit("b.txt", "a", "x").await.contains("similar names: `a.txt`"));
    assert!(edit("dir", "a", "x").await.contains("is a folder"));
    let unclear = bench.failed("fs.edit", json!({"path": "a.txt", "old_string": "gamma"})).await;
    assert!(unclear.contains("give `old_string` and `new_string`"), "{unclear}");
    assert_eq!(bench.get("a.txt"), b"alpha beta\ngamma\nalpha beta\n");
}

#[tokio::test]
async fn edit_with_an_empty_old_string_creates_a_new_file() {
    let bench = Bench::new();
    let output = bench
        .output("fs.edit", json!({"path": "new/a", "old_string": "", "new_string": "x\n"}))
        .await;
    assert_eq!(bench.get("new/a"), b"x\n");
    assert!(output.diff.unwrap().starts_with("--- /dev/null\n+++ b/new/a\n"));
    // The model knows what it wrote.
    bench.done("fs.write", json!({"path": "new/a", "content": "y\n"})).await;
}

#[tokio::test]
async fn a_file_changed_since_it_was_read_must_be_read_again() {
    let bench = Bench::new();
    bench.put("a", "one\n");
    let edit = json!({"path": "a", "old_string": "one", "new_string": "two"});
    bench.done("fs.read", json!({"path": "a"})).await;
    bench.put("a", "one\nmore\n");
    assert_eq!(bench.preview("fs.edit", &edit), None);
    let refusal = bench.failed("fs.edit", edit.clone()).await;
    assert!(refusal.contains("read it again"), "{refusal}");
    bench.done("fs.read", json!({"path": "a"})).await;
    bench.done("fs.edit", edit).await;
    assert_eq!(bench.get("a"), b"two\nmore\n");
    // An own edit does not count as a change.
    bench.done("fs.edit", json!({"path": "a", "old_string": "two", "new_string": "three"})).await;
}

#[tokio::test]
async fn editing_an_unread_file_does_not_count_as_reading_it() {
    let bench = Bench::new();
    bench.put("a", "one\nunseen\n");
    bench.done("fs.edit", json!({"path": "a", "old_string": "one", "new_string": "two"})).await;
    let refusal = bench.failed("fs.write", json!({"path": "a", "content": "x"})).await;
    assert!(refusal.contains("Read it first"), "{refusal}");
}

#[tokio::test]
async fn edit_preserves_bytes_outside_the_edited_text() {
    let bench = Bench::new();
    let files: [(&[u8], &[u8]); 5] = [
        (b"\xef\xbb\xbfa\r\nKEY\r\nb\r\n", b"\xef\xbb\xbfa\r\n1\r\n2\r\nb\r\n"),
        (b"caf\xe9\xff\nKEY\n\x80", b"caf\xe9\xff\n1\n2\n\x80"),
        (b"a\rb KEY", b"a\rb 1\r2"),
        (b"a\rb KEY\n", b"a\rb 1\n2\n"),
        (b"\0\x01KEY\n\n\n", b"\0\x011\n2\n\n\n"),
    ];
    for (before, after) in files {
        bench.put("file", before);
        bench
            .done("fs.edit", json!({"path": "file", "old_string": "KEY", "new_string": "1\n2"}))
            .await;
        assert_eq!(bench.get("file"), after, "{before:?}");
    }
}

#[tokio::test]
async fn edit_preserves_symlinks_and_permission_bits() {
    let bench = Bench::new();
    bench.put("bin/run", "old");
    fs::set_permissions(bench.path("bin/run"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("bin/run", bench.path("run")).unwrap();
    bench.done("fs.edit", json!({"path": "run", "old_string": "old", "new_string": "new"})).await;
    assert!(bench.path("run").is_symlink());
    assert_eq!(bench.get("bin/run"), b"new");
    let mode = fs::metadata(bench.path("bin/run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(bench.names("bin"), ["run"]);
}

#[tokio::test]
async fn byte_order_mark_in_an_edit_is_that_of_the_file() {
    let bench = Bench::new();
    for new in ["bye", "\u{feff}bye"] {
        bench.put("a", "\u{feff}hello\n");
        bench
            .done("fs.edit", json!({"path": "a", "old_string": "\u{feff}hello", "new_string": new}))
            .await;
        assert_eq!(bench.get("a"), "\u{feff}bye\n".as_bytes());
    }
    // One within the file is text like any other.
    bench.put("joined", "a\n\u{feff}b\n");
    bench
        .done("fs.edit", json!({"path": "joined", "old_string": "\u{feff}b", "new_string": "b"}))
        .await;
    assert_eq!(bench.get("joined"), b"a\nb\n");
}

#[tokio::test]
async fn edit_refuses_files_above_the_size_limit() {
    let bench = Bench::with(&ToolOptions { max_file_bytes: 16, ..ToolOptions::default() });
    bench.put("big", "more than sixteen bytes");
    bench.put("small", "ab");
    let edit = |path, old, new: String| {
        bench.failed("fs.edit", json!({"path": path, "old_string": old, "new_string": new}))
    };
    assert!(edit("big", "more", "less".to_owned()).await.contains("larger than 16"));
    assert!(edit("small", "a", "x".repeat(20)).await.contains("would have 21 bytes"));
    assert_eq!(bench.get("small"), b"ab");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_edits_of_one_file_lose_no_change() {
    let bench = Bench::new();
    let lines: String = (0..8).map(|n| format!("line {n};\n")).collect();
    bench.put("a", &lines);
    bench.put("b", &lines);
    let edit = |file: &'static str, n: usize| {
        bench.done("fs.edit", json!({"path": file, "old_string": format!("line {n};"), "new_string": format!("done {n};")}))
    };
    let (a, b) = ("a", "b");
    tokio::join!(
        edit(a, 0),
        edit(b, 0),
        edit(a, 1),
        edit(b, 1),
        edit(a, 2),
        edit(b, 2),
        edit(a, 3),
        edit(b, 3),
        edit(a, 4),
        edit(b, 4),
        edit(a, 5),
        edit(b, 5),
        edit(a, 6),
        edit(b, 6),
        edit(a, 7),
        edit(b, 7),
    );
    let done = lines.replace("line", "done");
    assert_eq!(bench.get("a"), done.as_bytes());
    assert_eq!(bench.get("b"), done.as_bytes());
    assert_eq!(bench.names("."), ["a", "b"]);
}

#[tokio::test]
async fn failed_edit_of_an_unread_file_returns_its_content() {
    let bench = Bench::new();
    bench.put("m.py", "def double(x):\n    return x + 1\n");
    let guess =
        || json!({"path": "m.py", "old_string": "return 2 + x", "new_string": "return x * 2"});
    let refusal = bench.failed("fs.edit", guess()).await;
    let whole = "1\tdef double(x):\n2\t    return x + 1";
    assert!(refusal.contains("was not read yet") && refusal.ends_with(whole), "{refusal}");
    bench.done("fs.read", json!({"path": "m.py"})).await;
    let refusal = bench.failed("fs.edit", guess()).await;
    assert!(refusal.contains("nearest text"), "it is known by now: {refusal}");
    bench.put("long", "a line of words\n".repeat(1_000));
    let long = json!({"path": "long", "old_string": "no such", "new_string": "x"});
    assert!(bench.failed("fs.edit", long).await.len() < 1_000, "a long file is not shown");
}
