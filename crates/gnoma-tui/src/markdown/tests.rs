//! Laws of streamed Markdown.

use proptest::prelude::*;

use super::*;

/// Pieces of Markdown, whole and broken, that tend to meet each other badly.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "word ",
        "two words",
        "\n",
        "\n\n",
        "# Head\n",
        "## \n",
        "- item\n",
        "- \n",
        "  more\n",
        "* star\n",
        "1. one\n",
        "7) seven\n",
        "  - inner\n",
        "    code\n",
        "```rust\n",
        "```\n",
        "~~~~\n",
        "   ```\n",
        "fn main() { /* \n",
        "> quote\n",
        ">> deep\n",
        "> [!NOTE]\n",
        "---\n",
        "***\n",
        "===\n",
        "**bold",
        "**",
        "*it*",
        "`code`",
        "`",
        "~~gone~~",
        "[a](https://x.org)",
        "[b][ref]",
        "[ref]: https://y.org\n",
        "[^1]",
        "[^1]: note\n",
        "| a | b |\n",
        "|--|:-:|\n",
        "| 漢字 | x |\n",
        "https://gnoma.dev/x.",
        "<br>",
        "<b>",
        "<!-- c -->\n",
        "- [x] done\n",
        "\t",
        "👩‍🚀",
        "e\u{301}",
        "שלום ",
        "\u{1b}[31m",
        "\u{7}",
        "\r\n",
        "\\",
        "!",
        "![i](p.png)",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "&amp;",
        "10. ten\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The text in pieces, drawn as it comes.
fn streamed(text: &str, cuts: &[usize], width: usize) -> Vec<Line> {
    let mut stream = Stream::default();
    let mut lines = Vec::new();
    let mut cuts = cuts.iter().cycle();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = cuts.next().copied().unwrap_or(1).min(rest.len());
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(cut));
        stream.push(piece);
        for line in stream.unfinished_lines(width) {
            assert!(line.width() <= width.max(2), "{line:?}");
        }
        lines.extend(stream.take_lines(width));
        rest = after;
    }
    stream.finish();
    lines.extend(stream.take_lines(width));
    lines
}

proptest! {
    #[test]
    fn streamed_markdown_renders_like_the_whole(
        text in markdown(),
        cuts in prop::collection::vec(1_usize..9, 1..5),
        width in 1_usize..60,
    ) {
        prop_assert_eq!(streamed(&text, &cuts, width), render(&text, width));
    }

    #[test]
    fn markdown_lines_fit_the_width_without_control_characters(text in markdown(), width in 2_usize..60) {
        for line in render(&text, width) {
            prop_assert!(line.width() <= width, "{} > {}: {:?}", line.width(), width, line);
            for span in &line.spans {
                prop_assert!(!span.text.chars().any(char::is_control), "{:?}", span);
                let link = span.link.as_deref().unwrap_or_default();
                prop_assert!(!link.chars().any(char::is_control), "{:?}", span);
            }
        }
    }

    #[test]
    fn markdown_rendering_loses_no_letters(text in "[a-z]{1,9}([ \n]{1,3}[a-z]{1,9}){0,9}", width in 1_usize..30) {
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let shown: String = render(&text, width).iter().map(Line::plain_text).collect();
        prop_assert_eq!(bare(&shown), bare(&text));
    }
}

/// Beginnings of texts and what they continue with forever.
const ENDLESS: [(&str, &str); 9] = [
    ("", "word "),
    ("", "word\n"),
    ("- x\n", "  y\n"),
    ("", "- x\n"),
    ("| a |\n|---|\n", "| b |\n"),
    ("", "> q\n"),
    ("", "    c\n"),
    ("```\n", "a漢"),
    ("", "a漢"),
];

#[test]
fn markdown_stream_buffer_is_bounded() {
    for (beginning, endless) in ENDLESS {
        let mut stream = Stream::default();
        stream.push(beginning);
        for _ in 0..40_000 {
            stream.push(endless);
            let open = stream.open_bytes();
            assert!(open <= 40_000, "{endless:?} keeps {open}");
            drop(stream.take_lines(80));
        }
    }
}

#[test]
fn streamed_long_markdown_blocks_render_like_the_whole() {
    for (beginning, endless) in ENDLESS {
        let text = format!("{beginning}{}", endless.repeat(40_000 / endless.len()));
        let whole = render(&text, 30);
        assert_eq!(streamed(&text, &[4_999, 7_777, 3], 30), whole, "{endless:?}");
    }
}

#[test]
fn long_markdown_table_repeats_its_header() {
    let table = |rows: usize| format!("| a | b |\n|---|---|\n{}", "| one | two |\n".repeat(rows));
    let rows = |text: &str| {
        let lines = render(text, 40);
        let is_row = |line: &&Line| line.plain_text().starts_with("one │ two");
        (lines.iter().filter(is_row).count(), lines.len())
    };
    assert_eq!(rows(&table(1_000)), (1_000, 1_000 + 2));
    assert_eq!(rows(&table(2_000)), (2_000, 2_000 + 2 + 3));
}

#[test]
fn streamed_code_block_is_rendered_line_by_line() {
    let mut stream = Stream::default();
    stream.push("```rust\nlet a = 1;\n/* open\n");
    assert_eq!(stream.take_lines(40).len(), 3);
    stream.push("still */ le");
    assert_eq!(stream.open_bytes(), "still */ le".len());
    assert_eq!(stream.unfinished_lines(40).len(), 1);
}
