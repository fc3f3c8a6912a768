//! Frames through an emulated terminal: after any sequence of frames it shows, and keeps in its
//! scrollback, what a naive terminal that everything is simply written to would, with few bytes.

use std::num::NonZeroU16;

use gnoma_tui::{
    Frame, Size,
    frame::Cell,
    screen::{Layout, Screen, Traits, terminal_reflows},
    text::{BackgroundRole, Line, Span, Style, TextRole},
    theme::{Depth, Shade, Theme},
};
use proptest::prelude::*;
use vt100::Parser;

/// Rows that the shell has written before.
const SHELL: [&str; 3] = ["$ ls", "a b c", "$ gnoma"];
const SCROLLBACK: usize = 1_000;

fn parser(size: Size) -> Parser {
    let cells = |number: usize| NonZeroU16::new(u16::try_from(number).unwrap()).unwrap();
    Parser::new(cells(size.height), cells(size.width), SCROLLBACK)
}

fn theme() -> Theme {
    Theme::from_name("gnoma", Shade::Dark, Depth::Indexed).unwrap()
}

fn text(text: &str) -> Line {
    Line::new(text.to_owned(), Style::default())
}

/// A terminal with a screen on it.
struct Rig {
    parser: Parser,
    screen: Screen,
    size: Size,
    /// Bytes of the last frame.
    bytes: Vec<u8>,
}

impl Rig {
    fn new(layout: Layout, width: usize, height: usize) -> Self {
        let size = Size::new(width, height);
        let mut parser = parser(size);
        if layout == Layout::Inline {
            parser.process((SHELL.join("\r\n") + "\r\n").as_bytes());
        }
        let screen = Screen::new(layout, theme(), Traits { synchronized: true, reflows: true });
        Self { parser, screen, size, bytes: Vec::new() }
    }

    fn draw(&mut self, frame: &Frame) {
        self.bytes.clear();
        self.screen.draw(frame, self.size, &mut self.bytes);
        self.parser.process(&self.bytes);
    }

    fn show(&mut self, finished: &[&str], live: &[&str]) {
        self.draw(&Frame {
            finished: finished.iter().map(|line| text(line)).collect(),
            live: live.iter().map(|line| text(line)).collect(),
            cursor: None,
        });
    }

    /// The terminal's user changes its size; what it then shows is `reflow`ed as most terminals do.
    fn resize(&mut self, width: usize, height: usize) {
        self.size = Size::new(width, height);
        self.parser = reflow(&mut self.parser, self.size);
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Everything the terminal holds, scrollback first, as rows of formatted text.
fn rows(parser: &mut Parser) -> Vec<String> {
    let (height, width) = parser.screen().size();
    let above = parser.screen().scrollback_len();
    let mut rows = Vec::new();
    for back in (0..=above).rev() {
        parser.screen_mut().set_scrollback(back);
        let screen = parser.screen();
        let take = if back == 0 { usize::from(height.get()) } else { 1 };
        for row in 0..take {
            let row = u16::try_from(row).unwrap();
            let cells = (0..width.get()).filter_map(|column| screen.cell(row, column));
            rows.push(cells.map(cell_text).collect::<String>().trim_end().to_owned());
        }
    }
    rows
}

/// A cell with what matters of its looks.
fn cell_text(cell: &vt100::Cell) -> String {
    if cell.is_wide_continuation() {
        return String::new();
    }
    let text = if cell.has_contents() { cell.contents() } else { " " };
    let plain = cell.fgcolor() == vt100::Color::Default
        && cell.bgcolor() == vt100::Color::Default
        && !cell.bold();
    if plain {
        text.to_owned()
    } else {
        format!("{text}<{:?} {:?} {}>", cell.fgcolor(), cell.bgcolor(), cell.bold())
    }
}

/// The same terminal after its size has changed: rows that have become too wide are folded, and the
/// cursor stays with what it stood on.
fn reflow(old: &mut Parser, size: Size) -> Parser {
    let (cursor_row, cursor_column) = old.screen().cursor_position();
    let cursor_row = old.screen().scrollback_len() + usize::from(cursor_row);
    let mut rows = rows(old);
    while rows.len() > cursor_row + 1 && rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    let mut new = parser(size);
    let mut cursor = (0, 0);
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            new.process(b"\r\n");
        }
        if number == cursor_row {
            let width = gnoma_tui::text::display_width(row).min(usize::from(cursor_column));
            let before: String = row.chars().take(width).collect();
            new.process(before.as_bytes());
            let (row, column) = new.screen().cursor_position();
            cursor = (usize::from(row) + new.screen().scrollback_len(), column);
            new.process(row_rest(rows.get(number).unwrap(), width).as_bytes());
        } else {
            new.process(row.as_bytes());
        }
    }
    let top = new.screen().scrollback_len();
    let (row, column) = (cursor.0.saturating_sub(top) + 1, cursor.1 + 1);
    new.process(format!("\x1b[{row};{column}H").as_bytes());
    new
}

fn row_rest(row: &str, from: usize) -> String {
    row.chars().skip(from).collect()
}

/// What a terminal holds to which these lines were simply written after the shell's, when `top` rows
/// of them have scrolled away.
fn expected(lines: &[Line], size: Size, top: usize) -> Vec<String> {
    let total = (SHELL.len() + lines.len()).max(1);
    let mut parser = parser(Size::new(size.width, total));
    let mut bytes = Vec::new();
    for (number, line) in
        SHELL.iter().map(|line| text(line)).chain(lines.iter().cloned()).enumerate()
    {
        bytes.extend_from_slice(if number > 0 { b"\r\n" } else { b"" });
        gnoma_tui::paint::paint_line(&line, &theme(), &mut bytes);
    }
    parser.process(&bytes);
    let mut rows = rows(&mut parser);
    rows.resize(top + size.height, String::new());
    rows
}

fn style() -> impl Strategy<Value = Style> {
    prop_oneof![
        3 => Just(Style::default()),
        1 => Just(Style::with_ink(TextRole::Accent).bold()),
        1 => Just(Style::with_ink(TextRole::Good).on_paper(BackgroundRole::Added)),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    let grapheme = prop::sample::select(vec!["a", "b", "漢", "ñ", "e\u{301}", "🚀", " ", "─"]);
    let span = (prop::collection::vec(grapheme, 0..6), style())
        .prop_map(|(graphemes, style)| Span::new(graphemes.concat(), style));
    prop::collection::vec(span, 0..3).prop_map(|spans| Line { spans })
}

/// How many live lines become finished, which others change, what is added below, how many go from
/// the end, and where the cursor stands.
type Change = (usize, Vec<(usize, Line)>, Vec<Line>, usize, Option<(usize, usize)>);

fn change() -> impl Strategy<Value = Change> {
    (
        0_usize..4,
        prop::collection::vec((0_usize..8, line()), 0..3),
        prop::collection::vec(line(), 0..4),
        0_usize..4,
        prop::option::of((0_usize..6, 0_usize..12)),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn inline_frames_leave_exactly_the_written_lines(
        changes in prop::collection::vec(change(), 1..12),
        height in 1_usize..9,
    ) {
        let mut rig = Rig::new(Layout::Inline, 18, height);
        let mut finished: Vec<Line> = Vec::new();
        let mut live: Vec<Line> = Vec::new();
        let mut top = (SHELL.len() + 1).saturating_sub(height);
        for (done, edits, added, removed, cursor) in changes {
            for (place, line) in edits {
                if let Some(old) = live.get_mut(place) {
                    *old = line;
                }
            }
            live.truncate(live.len().saturating_sub(removed));
            live.extend(added);
            let excess = live.len().saturating_sub(height);
            let leaving: Vec<_> = live.drain(..done.max(excess).min(live.len())).collect();
            finished.extend(leaving.iter().cloned());
            let cursor = cursor.map(|(row, column)| Cell { row, column });
            rig.draw(&Frame { finished: leaving, live: live.clone(), cursor });

            let mut all = finished.clone();
            all.extend(live.iter().cloned());
            if live.is_empty() {
                all.push(Line::default());
            }
            top = top.max((SHELL.len() + all.len()).saturating_sub(height));
            let wanted = expected(&all, rig.size, top);
            prop_assert_eq!(rows(&mut rig.parser), wanted, "after {:?}", rig.printed());
            rig.parser.screen_mut().set_scrollback(0);
            prop_assert_eq!(rig.parser.screen().hide_cursor(), cursor.is_none());
            if let Some(cell) = cursor {
                let row = SHELL.len() + finished.len() + cell.row.min(live.len().saturating_sub(1)) - top;
                let (cursor_row, cursor_column) = rig.parser.screen().cursor_position();
                prop_assert_eq!(usize::from(cursor_row), row);
                prop_assert_eq!(usize::from(cursor_column), cell.column);
            }

            rig.draw(&Frame { finished: Vec::new(), live: live.clone(), cursor });
            prop_assert_eq!(rig.printed(), "", "the same frame again");
        }
    }

    #[test]
    fn full_screen_shows_the_end_of_the_conversation(
        changes in prop::collection::vec(change(), 1..8),
        height in 2_usize..9,
    ) {
        let mut rig = Rig::new(Layout::FullScreen, 18, height);
        let mut finished: Vec<Line> = Vec::new();
        for (_, _, added, _, _) in changes {
            let live = vec![text("> input")];
            finished.extend(added.iter().cloned());
            rig.draw(&Frame { finished: added, live: live.clone(), cursor: None });
            let mut all = finished.clone();
            all.extend(live);
            let shown = all.len().min(height);
            let wanted = expected(&all[all.len() - shown..], rig.size, SHELL.len() + shown);
            let wanted = &wanted[SHELL.len()..SHELL.len() + shown];
            prop_assert_eq!(&rows(&mut rig.parser)[..shown], wanted);
        }
    }

    #[test]
    fn resize_preserves_finished_lines_and_shows_the_live_part_once(
        widths in prop::collection::vec(12_usize..60, 1..5),
        finished in prop::collection::vec("[a-z]{1,40}", 0..6),
        live in prop::collection::vec("[A-Z]{1,60}", 1..4),
        // The live part fits even when it is folded; what has been pushed into the scrollback by
        // folding is beyond reach.
        height in 16_usize..30,
        cursor in 0_usize..4,
    ) {
        let mut rig = Rig::new(Layout::Inline, 60, height);
        let show = |rig: &mut Rig, finished: Vec<Line>| {
            let width = rig.size.width;
            let live: Vec<_> = live
                .iter()
                .map(|line| text(&line.chars().take(width).collect::<String>()))
                .collect();
            rig.draw(&Frame { finished, live, cursor: Some(Cell { row: cursor, column: 0 }) });
        };
        show(&mut rig, finished.iter().map(|line| text(line)).collect());
        for width in widths {
            rig.resize(width, height);
            show(&mut rig, Vec::new());
            let all = rows(&mut rig.parser).concat();
            rig.parser.screen_mut().set_scrollback(0);
            let live: String = live.iter().flat_map(|line| line.chars().take(width)).collect();
            prop_assert_eq!(all, SHELL.concat() + &finished.concat() + &live);
        }
    }
}

#[test]
fn a_streamed_last_line_costs_what_is_new() {
    let mut rig = Rig::new(Layout::Inline, 120, 24);
    let rule = "─".repeat(120);
    let below = ["", rule.as_str(), "> ", rule.as_str(), "model · 3 s"];
    let show = |rig: &mut Rig, line: &str| {
        let mut live = vec![line];
        live.extend(below);
        rig.draw(&Frame {
            finished: Vec::new(),
            live: live.into_iter().map(text).collect(),
            cursor: Some(Cell { row: 3, column: 2 }),
        });
    };
    show(&mut rig, "An answer that");
    show(&mut rig, "An answer that is written");
    assert_eq!(
        rig.printed(),
        "\u{1b}[?2026h\u{1b}[3A\u{1b}[15G is written\n\n\n\u{1b}[3G\u{1b}[?2026l"
    );
}

#[test]
fn a_new_line_above_the_input_does_not_paint_the_input_again() {
    let mut rig = Rig::new(Layout::Inline, 40, 8);
    let rule = "─".repeat(40);
    rig.show(&[], &["first", &rule, "> typed", &rule, "1 s"]);
    rig.show(&["first"], &["second", &rule, "> typed", &rule, "2 s"]);
    assert!(!rig.printed().contains("typed"), "{:?}", rig.printed());
    assert!(rig.bytes.len() < 60, "{:?}", rig.printed());
    assert_eq!(
        rows(&mut rig.parser),
        ["$ ls", "a b c", "$ gnoma", "first", "second", &rule, "> typed", &rule, "2 s"]
    );
}

#[test]
fn an_answer_of_three_hundred_deltas_costs_less_than_fifteen_kilobytes() {
    const WORDS: [&str; 5] = ["stream", "of", "several", "words,", "written"];
    let mut rig = Rig::new(Layout::Inline, 120, 40);
    let rule = "─".repeat(120);
    let mut done = String::new();
    let mut total = 0;
    let mut given = 0;
    // 100 deltas a second make at most 30 frames.
    for frame in 0..90 {
        for delta in 0..if frame % 3 == 0 { 4 } else { 3 } {
            done += WORDS[(frame + delta) % WORDS.len()];
            done.push(' ');
        }
        let lines = text(&done).wrap(120, &Line::default());
        let open = lines.len() - 1;
        let mut live =
            vec![lines[open].clone(), Line::default(), text(&rule), text("> "), text(&rule)];
        live.push(text(&format!(
            "model · {}.{} s · {} tokens",
            frame / 30,
            frame % 30 / 3,
            frame * 3
        )));
        let cursor = Some(Cell { row: 3, column: 2 });
        rig.draw(&Frame { finished: lines[given..open].to_vec(), live, cursor });
        given = open;
        total += rig.bytes.len();
    }
    assert!(total < 8_000, "{total} bytes for {} of text", done.len());
}

#[test]
fn without_synchronized_output_the_cursor_is_hidden_while_painting() {
    let mut rig = Rig::new(Layout::Inline, 40, 8);
    rig.screen.set_traits(Traits::default());
    let frame = |live: &str, column| Frame {
        finished: Vec::new(),
        live: vec![text(live)],
        cursor: Some(Cell { row: 0, column }),
    };
    rig.draw(&frame("a", 1));
    assert_eq!(rig.printed(), "\u{1b}[?25l\ra\u{1b}[?25h");
    rig.draw(&frame("ab", 2));
    assert_eq!(rig.printed(), "\u{1b}[?25lb\u{1b}[?25h");
    rig.draw(&frame("ab", 0));
    assert_eq!(rig.printed(), "\r");
}

#[test]
fn ambiguous_width_emoji_do_not_shift_the_rest_of_the_line() {
    let mut rig = Rig::new(Layout::Inline, 20, 6);
    rig.show(&[], &["│ 👩‍🚀 flies 🇦🇹 │"]);
    let row = rows(&mut rig.parser)[SHELL.len()].clone();
    assert!(row.contains("flies"), "{row:?}");
    let screen = rig.parser.screen();
    let at = |column| screen.cell(3, column).unwrap().contents().to_owned();
    assert_eq!((at(0), at(5), at(14)), ("│".into(), "f".into(), "│".into()));
}

#[test]
fn a_live_part_that_is_too_tall_shows_its_end() {
    let mut rig = Rig::new(Layout::Inline, 20, 3);
    rig.show(&["done"], &["1", "2", "3", "4", "5"]);
    assert_eq!(rig.parser.screen().contents(), "3\n4\n5");
    rig.show(&[], &["1", "2", "3", "4", "5", "6"]);
    assert_eq!(rig.parser.screen().contents(), "4\n5\n6");
}

#[test]
fn theme_change_repaints_the_live_part_without_clearing() {
    let mut rig = Rig::new(Layout::Inline, 20, 6);
    let frame = Frame {
        finished: Vec::new(),
        live: vec![Line::new("name", Style::with_ink(TextRole::Accent)), text("rest")],
        cursor: None,
    };
    rig.draw(&frame);
    let before = rows(&mut rig.parser);
    rig.screen.set_theme(Theme::from_name("forest", Shade::Light, Depth::Indexed).unwrap());
    rig.draw(&frame);
    assert_ne!(rows(&mut rig.parser), before);
    assert!(!rig.printed().contains("\u{1b}[K") && !rig.printed().contains("\u{1b}[J"));
}

#[test]
fn screen_erase_and_leave_print_no_residue() {
    let mut rig = Rig::new(Layout::Inline, 20, 8);
    rig.show(&["said"], &["> typed", "status"]);
    let mut bytes = Vec::new();
    rig.screen.erase(&mut bytes);
    rig.parser.process(&bytes);
    assert_eq!(rig.parser.screen().contents(), "$ ls\na b c\n$ gnoma\nsaid");
    rig.parser.process(b"output\r\n");
    rig.show(&[], &["> typed", "status"]);
    bytes.clear();
    rig.screen.close(&mut bytes);
    rig.parser.process(&bytes);
    rig.parser.process(b"$");
    assert_eq!(
        rig.parser.screen().contents(),
        "$ ls\na b c\n$ gnoma\nsaid\noutput\n> typed\nstatus\n$"
    );
    assert!(!rig.parser.screen().hide_cursor());
}

#[test]
fn scrolled_full_screen_stays_in_place_on_new_lines() {
    let mut rig = Rig::new(Layout::FullScreen, 20, 4);
    rig.show(&["1", "2", "3", "4", "5", "6"], &["> "]);
    assert_eq!(rig.parser.screen().contents(), "4\n5\n6\n> ");
    rig.screen.scroll(2);
    rig.show(&["7"], &["> "]);
    let mark = |below: usize| format!("  {below} more below (PgD…\n> ");
    assert_eq!(rig.parser.screen().contents(), format!("3\n4\n{}", mark(3)));
    rig.screen.scroll(isize::MAX);
    rig.show(&[], &["> "]);
    assert_eq!(rig.parser.screen().contents(), format!("1\n2\n{}", mark(5)), "a full page");
    rig.resize(20, 6);
    rig.show(&[], &["> "]);
    assert_eq!(rig.parser.screen().contents(), format!("1\n2\n3\n4\n{}", mark(3)));
    rig.resize(20, 4);
    rig.screen.scroll(isize::MIN);
    rig.show(&[], &["> "]);
    assert_eq!(rig.parser.screen().contents(), "5\n6\n7\n> ");
}

#[test]
fn redraw_restores_a_corrupted_screen() {
    for layout in [Layout::Inline, Layout::FullScreen] {
        let mut rig = Rig::new(layout, 20, 6);
        rig.show(&["1", "2", "3", "4", "5", "6"], &["> ", "status"]);
        rig.parser.process(b"\x1b[3;4Hrubbish\x1b[31m\r\nand more");
        rig.screen.request_redraw();
        rig.show(&[], &["> ", "status"]);
        assert_eq!(rig.parser.screen().contents(), "3\n4\n5\n6\n> \nstatus", "{layout:?}");
        rig.show(&["7"], &["> x", "status"]);
        assert_eq!(rig.parser.screen().contents(), "4\n5\n6\n7\n> x\nstatus", "{layout:?}");
    }
}

#[test]
fn full_screen_rewraps_lines_after_a_resize() {
    let mut rig = Rig::new(Layout::FullScreen, 20, 6);
    rig.show(&["one two three four"], &["> "]);
    rig.resize(10, 6);
    rig.show(&[], &["> "]);
    assert_eq!(rig.parser.screen().contents(), "one two \nthree four\n> ");
}

#[test]
fn layout_is_selected_by_terminal_capabilities() {
    assert_eq!(Layout::for_terminal(true, false, Some("xterm")), Layout::FullScreen);
    assert_eq!(Layout::for_terminal(true, true, Some("xterm")), Layout::Plain);
    assert_eq!(Layout::for_terminal(false, false, Some("dumb")), Layout::Plain);
    assert!(terminal_reflows(Some("xterm-256color"), false, false, false));
    assert!(!terminal_reflows(Some("xterm-256color"), true, false, false));
    assert!(!terminal_reflows(Some("screen-256color"), false, true, false));
    assert!(terminal_reflows(Some("screen-256color"), true, false, true), "tmux folds");
}

#[test]
fn plain_lines_are_only_added() {
    let mut rig = Rig::new(Layout::Plain, 20, 8);
    rig.show(&["one  ", "two"], &["> typed"]);
    assert_eq!(rig.printed(), "one\ntwo\n");
    rig.show(&[], &["> typed more"]);
    assert_eq!(rig.printed(), "");
}

#[test]
fn a_conversation_of_a_hundred_thousand_lines_is_drawn_line_by_line() {
    let mut rig = Rig::new(Layout::Inline, 80, 24);
    let finished = (0..100_000).map(|number| text(&format!("line {number}"))).collect();
    rig.draw(&Frame { finished, live: vec![text("> ")], cursor: None });
    assert!(rig.bytes.len() < 1_400_000, "{}", rig.bytes.len());
    rig.show(&["last"], &["> "]);
    assert!(rig.bytes.len() < 40, "{:?}", rig.printed());
}
