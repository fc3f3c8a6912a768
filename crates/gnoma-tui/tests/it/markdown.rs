//! Markdown in, lines out.

use gnoma_tui::{
    markdown,
    text::{Line, TextRole},
};

/// The lines, with marks for what is not letters: `*bold*`, `/italic/`, `` `code` ``, `<link>`.
fn drawn(text: &str, width: usize) -> String {
    let mut drawn = String::new();
    for line in markdown::render(text, width) {
        for span in &line.spans {
            let style = span.style;
            let mark = match style.ink {
                TextRole::Code => "`",
                TextRole::Link => "_",
                TextRole::Dim => "",
                _ if style.strike => "~",
                _ if style.bold => "*",
                _ if style.italic => "/",
                _ => "",
            };
            drawn.push_str(&format!("{mark}{}{mark}", span.text));
        }
        drawn.push('\n');
    }
    drawn
}

const TEXT: &str = "# A title

Some **bold**, *italic*, ~~gone~~ and `code` with a [link](https://gnoma.dev/docs) \
and https://gnoma.dev.
Second line.

1. first
2. second with words that are long enough to be broken
   - inner *one*
   - [x] done
   - [ ] open

     more of it
1. third

> A quote
> of two lines
>
> > and one inside

> [!WARNING]
> Take care.

```rust
fn main() { println!(\"hi\"); }
```

| Name | Value | What it is for |
|:-----|------:|:--------------:|
| `a`  | 1     | short          |
| 漢字 | 1000  | a longer text that has to be broken |

---

A note[^1] and a [name][ref].

[ref]: https://x.org/page
[^1]: The note
    goes on.

<details>
Line one<br>line two
";

#[test]
fn markdown_document_in_sixty_columns() {
    insta::assert_snapshot!(drawn(TEXT, 60), @r#"
    *A title*

    Some *bold*, /italic/, ~gone~ and `code` with a _link_
    (https://gnoma.dev/docs) and _https://gnoma.dev_.
    Second line.

    1. first
    2. second with words that are long enough to be broken
       ◦ inner /one/
       ◦ [x] done
       ◦ [ ] open

         more of it
    3. third

    │ A quote
    │ of two lines
    │
    │ │ and one inside

    │ *Warning*
    │ Take care.

      rust
      fn main() { println!("hi"); }

    *Name* │ *Value* │           *What it is for*
    ─────┼───────┼────────────────────────────────────
    `a`    │     1 │                short
    漢字 │  1000 │ a longer text that has to be broken

    ────────────────────────

    A note[^1] and a [name][ref].

    _[^1] _The note
         goes on.
    [ref]: https://x.org/page

    <details>
    Line one<br>line two
    "#);
}

#[test]
fn markdown_document_in_thirty_columns() {
    insta::assert_snapshot!(drawn(TEXT, 30), @r#"
    *A title*

    Some *bold*, /italic/, ~gone~ and
    `code` with a _link_
    (https://gnoma.dev/docs) and
    _https://gnoma.dev_.
    Second line.

    1. first
    2. second with words that are
       long enough to be broken
       ◦ inner /one/
       ◦ [x] done
       ◦ [ ] open

         more of it
    3. third

    │ A quote
    │ of two lines
    │
    │ │ and one inside

    │ *Warning*
    │ Take care.

      rust
      fn main() { println!("hi");
      }

    *Name* │ *Value* │ *What it is for*
    ─────┼───────┼────────────────
    `a`    │     1 │      short
    漢字 │  1000 │  a longer text
         │       │ that has to be
         │       │     broken

    ────────────────────────

    A note[^1] and a [name][ref].

    _[^1] _The note
         goes on.
    [ref]: https://x.org/page

    <details>
    Line one<br>line two
    "#);
}

#[test]
fn markdown_document_in_ten_columns() {
    insta::assert_snapshot!(drawn("- a list item\n  1. deep inside of it\n\n> quoted text here\n\n| Key | Value |\n|---|---|\n| abcdef | ghijkl |\n\n```py\nprint(\"hello\")\n```", 10), @r#"
    • a list
      item
      1. deep
         insid
         e of
         it

    │ quoted
    │ text
    │ here

    *Key*:
    abcdef
    *Value*:
    ghijkl

      py
      print("
      hello")
    "#);
}

#[test]
fn markdown_blocks_are_separated_without_blank_lines() {
    let text = "## Head\ntext\n- a\n- b\n```sh\nls\n```\nafter\n> q\n1. x\n\n2. y\n\n   z\nlazy";
    insta::assert_snapshot!(drawn(text, 40), @r#"
    *Head*
    text
    • a
    • b

      sh
      ls

    after
    │ q
    1. x

    2. y

       z
       lazy
    "#);
}

#[test]
fn code_in_a_list_stays_in_it() {
    let text = "1. Do\n   ```sh\n   - not an item\n\n   # nor a head\n   ```\n2. Done\n";
    insta::assert_snapshot!(drawn(text, 40), @r#"
    1. Do
         - not an item

         # nor a head
    2. Done
    "#);
}

#[test]
fn hostile_text_is_seen_and_does_nothing() {
    let text = "a\u{1b}]0;title\u{7}b \u{202e}c [x](javascript:alert) [y](https://e.org/\u{1b}[2J)";
    let lines = markdown::render(text, 80);
    insta::assert_snapshot!(lines.iter().map(Line::plain_text).collect::<String>(), @r#"a�]0;title�b �c x [y](https://e.org/� (https://e.org/)[2J)"#);
    let links: Vec<_> =
        lines.iter().flat_map(|line| &line.spans).filter_map(|span| span.link.as_deref()).collect();
    assert!(!links.iter().any(|link| link.chars().any(char::is_control)), "{links:?}");
}

#[test]
fn letters_of_all_kinds_stay_together() {
    let text = "👩‍🚀 e\u{301}a שלום עולם 한국어 🏳️‍🌈";
    assert_eq!(markdown::render(text, 80)[0].plain_text(), text);
}

#[test]
fn streamed_markdown_is_reparsed_in_linear_time() {
    let mut stream = markdown::Stream::default();
    let (mut read_again, mut pieces) = (0, 0);
    for _ in 0..100 {
        for piece in TEXT.split_inclusive(' ') {
            stream.push(piece);
            drop(stream.take_lines(80));
            read_again += stream.open_bytes();
            pieces += 1;
        }
    }
    assert!(pieces > 10_000);
    assert!(read_again / pieces < 100, "{} bytes for each piece", read_again / pieces);
}

#[test]
fn unfinished_markdown_is_rendered_as_if_closed() {
    let mut stream = markdown::Stream::default();
    stream.push("Some **bold and `code");
    let plain = |stream: &markdown::Stream| -> String {
        stream.unfinished_lines(40).iter().map(Line::plain_text).collect()
    };
    assert_eq!(plain(&stream), "Some **bold and `code`**".replace("**", "").replace('`', ""));
    stream.push("`** end.\n\n-");
    assert_eq!(stream.take_lines(40).len(), 1);
    assert_eq!(plain(&stream), "");
}
