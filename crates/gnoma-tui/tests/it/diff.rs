//! Diffs in, lines out.

use gnoma_tui::{
    diff,
    text::{BackgroundRole, Line},
};
use proptest::prelude::*;

const DIFF: &str = "--- a/src/sum.rs
+++ b/src/sum.rs
@@ -98,5 +98,6 @@ impl Sum
 fn sum() {
-\tlet total = first(a, b);
--- not a file
+\tlet total = first(a, c);
+\tlet more = \"text\"; // why
+\t+++ nor this
 }
 
@@ -200 +201 @@
-old
\\ No newline at end of file
+something else
[12 more diff lines]
";

/// The lines, with what is marked in them in brackets.
fn drawn(diff: &str, width: usize, max: usize) -> String {
    let mut drawn = String::new();
    for line in diff::render_diff(diff, width, max) {
        for span in &line.spans {
            match span.style.paper {
                BackgroundRole::AddedMark | BackgroundRole::RemovedMark => {
                    drawn.push_str(&format!("⟦{}⟧", span.text));
                }
                _ => drawn.push_str(&span.text),
            }
        }
        // What is painted behind a line is no text.
        drawn.truncate(drawn.trim_end_matches(' ').len());
        drawn.push('\n');
    }
    drawn
}

#[test]
fn diff_names_new_and_deleted_files_even_if_empty() {
    let diff = "--- /dev/null\n+++ b/empty.txt\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+one\n\
                --- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n--- a/none.txt\n+++ /dev/null\n";
    let lines = diff::render_diff_with_names(diff, 60, 40);
    let plain: Vec<String> =
        lines.iter().map(|line| line.plain_text().trim_end().to_owned()).collect();
    let expected = [
        "empty.txt (new, empty)",
        "new.txt (new)",
        "1 +one",
        "old.txt (deleted)",
        "1 -two",
        "none.txt (deleted, empty)",
    ];
    assert_eq!(plain, expected);
}

#[test]
fn diff_shows_line_numbers_and_word_changes() {
    insta::assert_snapshot!(drawn(DIFF, 60, 40), @r#"
     98  fn sum() {
     99 -    let total = first(a, ⟦b⟧);
    100 --- not a file
     99 +    let total = first(a, ⟦c⟧);
    100 +    let more = "text"; // why
    101 +    +++ nor this
    102  }
    ⋮
    200 -old
    \ No newline at end of file
    201 +something else
    [12 more diff lines]
    "#);
}

#[test]
fn diff_in_few_columns_omits_line_numbers() {
    insta::assert_snapshot!(drawn(DIFF, 20, 40), @r#"
     fn sum() {
    -    let total =
     first(a, ⟦b⟧);
    --- not a file
    +    let total =
     first(a, ⟦c⟧);
    +    let more =
     "text"; // why
    +    +++ nor this
     }
    ⋮
    -old
    \ No newline at end
    of file
    +something else
    [12 more diff lines]
    "#);
}

#[test]
fn a_long_diff_is_cut() {
    let body: String = (0..50).map(|number| format!("+line {number}\n")).collect();
    let diff = format!("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,50 @@\n{body}");
    insta::assert_snapshot!(drawn(&diff, 60, 3), @r#"
    1 +line 0
    2 +line 1
    … 48 more lines
    "#);
    assert_eq!(diff::count_changes(&diff), (50, 0));
    let next = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let cut = format!(
        "--- a/n\n+++ b/n\n@@ -1,9 +1,90 @@\n-old\n+new\n[97 more diff lines: +89 -8]\n{next}"
    );
    assert_eq!(diff::count_changes(&cut), (91, 10));
}

#[test]
fn diff_of_several_files_names_each() {
    let one = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let two = "diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n";
    insta::assert_snapshot!(drawn(&format!("{one}{two}"), 60, 40), @r#"
    x
    1 -a
    1 +b
    y
    1 -a
    1 +b
    "#);
}

proptest! {
    #[test]
    fn diff_lines_fit_the_width_without_control_characters(
        lines in prop::collection::vec("(@@ -1,3 \\+1,3 @@|\\+\\+\\+ b/x.rs|[-+ ])?[a-z \"\t漢\u{1b}(){}]{0,40}", 0..20),
        width in 2_usize..50,
        max in 0_usize..20,
    ) {
        let drawn = diff::render_diff(&lines.join("\n"), width, max);
        for line in &drawn {
            prop_assert!(line.width() <= width, "{:?}", line);
            prop_assert!(!line.plain_text().chars().any(char::is_control));
        }
        let text = drawn.iter().map(Line::plain_text).collect::<Vec<_>>();
        prop_assert!(drawn.len() <= max + 1, "{:?}", text);
    }
}
