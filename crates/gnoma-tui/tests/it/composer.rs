//! The editor: a text with a cursor mark and keys give a text with a cursor mark.

use std::path::PathBuf;

use gnoma_core::{Content, Image};
use gnoma_tui::{
    composer::{Composer, Draft, KeyOutcome, Mode, PasteOutcome},
    frame::Cell,
    keymap::{Action, Key, Keymap},
    text::Line,
};
use proptest::prelude::*;

/// Where the cursor is.
const MARK: char = '¦';

fn composer(marked: &str) -> Composer {
    let (before, behind) = marked.split_once(MARK).unwrap();
    let mut composer = Composer::default();
    composer.restore_draft(before.into());
    let place = composer.line_number();
    composer.restore_draft(format!("{before}{behind}").as_str().into());
    press(&mut composer, "ctrl+home");
    for _ in 0..place {
        press(&mut composer, "end right");
    }
    let column = before.rsplit('\n').next().unwrap().len();
    while composer.cursor_byte() < column {
        press(&mut composer, "right");
    }
    composer
}

fn marked(composer: &Composer) -> String {
    let text = composer.draft().text;
    let before: usize =
        text.split('\n').take(composer.line_number()).map(|line| line.len() + 1).sum();
    let (before, behind) = text.split_at(before + composer.cursor_byte());
    format!("{before}{MARK}{behind}")
}

fn press(composer: &mut Composer, keys: &str) -> KeyOutcome {
    let keymap = Keymap::built_in();
    let mut pressed = KeyOutcome::Ignored;
    for key in keys.split_whitespace() {
        pressed = composer.press(key.parse::<Key>().unwrap(), &keymap);
    }
    pressed
}

#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    check_with(false, cases);
}

#[track_caller]
fn check_with(vim: bool, cases: &[(&str, &str, &str)]) {
    for (before, keys, behind) in cases {
        let mut composer = composer(before);
        composer.set_vim(vim);
        press(&mut composer, keys);
        assert_eq!(marked(&composer), *behind, "{before:?} with {keys}");
    }
}

#[test]
fn cursor_movement_keys() {
    check(&[
        ("ab¦c", "left", "a¦bc"),
        ("a\n¦b", "ctrl+b", "a¦\nb"),
        ("a¦\nb", "ctrl+f", "a\n¦b"),
        ("e\u{301}👩‍🚀¦", "left left", "¦e\u{301}👩‍🚀"),
        ("one two_3, fo¦ur", "alt+b alt+b", "one ¦two_3, four"),
        ("¦one, two\n three", "alt+f alt+f alt+f", "one, two\n three¦"),
        ("one\nt¦wo", "ctrl+a", "one\n¦two"),
        ("o¦ne\ntwo", "ctrl+e", "one¦\ntwo"),
        ("one\nt¦wo", "alt+<", "¦one\ntwo"),
        ("o¦ne\ntwo", "ctrl+end", "one\ntwo¦"),
        ("long line\nab\nlong li¦ne", "up up", "long li¦ne\nab\nlong line"),
        ("long li¦ne\n漢字漢字漢", "down", "long line\n漢字漢¦字漢"),
    ]);
}

#[test]
fn deletion_and_kill_ring_keys() {
    check(&[
        ("a👩‍🚀¦b", "backspace", "a¦b"),
        ("a\n¦b", "ctrl+h", "a¦b"),
        ("a¦\nb", "delete", "a¦b"),
        ("a¦b", "ctrl+d", "a¦"),
        ("git commit --am¦end", "ctrl+w", "git commit ¦end"),
        ("src/main.rs¦", "alt+backspace", "src/main.¦"),
        ("a ¦b c", "alt+d", "a ¦ c"),
        ("one two¦ three", "ctrl+u ctrl+y ctrl+y", "one twoone two¦ three"),
        ("one ¦two\nthree", "ctrl+k ctrl+k ctrl+y", "one two\n¦three"),
        ("one two three¦", "ctrl+w ctrl+w ctrl+y", "one two three¦"),
        ("one two¦", "ctrl+w left ctrl+w ctrl+y alt+y", "two¦ "),
        ("one two¦", "ctrl+w left ctrl+w ctrl+y alt+y alt+y", "one¦ "),
        ("ab¦cd", "ctrl+t", "acb¦d"),
        ("abc¦", "ctrl+t", "acb¦"),
        ("¦abc", "ctrl+t", "¦abc"),
        ("¦hello world", "alt+u", "HELLO¦ world"),
        ("HELLO¦ wORLD", "alt+c", "HELLO World¦"),
        ("¦STRAßE", "alt+l", "straße¦"),
    ]);
}

#[test]
fn new_lines() {
    check(&[
        ("a¦b", "shift+enter", "a\n¦b"),
        ("a¦", "alt+enter ctrl+j x", "a\n\nx¦"),
        (r"a\¦", "enter", "a\n¦"),
    ]);
    assert_eq!(press(&mut composer("a¦"), "enter"), KeyOutcome::Wanted(Action::Send));
}

#[test]
fn undo_and_redo_step_word_by_word() {
    check(&[
        ("¦", "o n e space t w o ctrl+_", "one ¦"),
        ("¦", "o n e space t w o ctrl+_ ctrl+_", "¦"),
        ("¦", "o n e space t w o ctrl+_ ctrl+_ alt+r", "one ¦"),
        ("¦", "a b left c ctrl+_", "a¦b"),
        ("abcd¦", "backspace backspace ctrl+_", "abcd¦"),
        ("a ¦b", "ctrl+k ctrl+/ alt+r", "a ¦"),
        ("¦", "a ctrl+_ b alt+r", "b¦"),
    ]);
}

#[test]
fn non_editing_keys_return_their_action() {
    for (text, key, wanted) in [
        ("¦", "ctrl+d", Action::Quit),
        ("a¦", "tab", Action::Queue),
        ("a¦", "esc", Action::Stop),
        ("a¦", "ctrl+c", Action::Interrupt),
        ("a¦", "shift+tab", Action::CycleMode),
        ("a¦", "ctrl+g", Action::ExternalEditor),
        ("a¦", "ctrl+r", Action::HistorySearch),
        ("a¦", "ctrl+z", Action::Suspend),
        ("a¦", "ctrl+o", Action::Unfold),
        ("fi¦rst\nlast", "up", Action::HistoryOlder),
        ("first\nla¦st", "down", Action::HistoryNewer),
    ] {
        let mut composer = composer(text);
        assert_eq!(press(&mut composer, key), KeyOutcome::Wanted(wanted), "{key}");
        assert_eq!(marked(&composer), text);
    }
    assert_eq!(press(&mut composer("¦"), "f12"), KeyOutcome::Ignored);
}

#[test]
fn vim() {
    check_with(
        true,
        &[
            ("one two¦", "esc b x", "one ¦wo"),
            ("one two three¦", "esc 0 d w", "¦two three"),
            ("one two three¦", "esc 0 2 d w", "¦three"),
            ("one two¦", "esc b d w", "one¦ "),
            ("one two\nthree¦", "esc k 0 w d w", "one¦ \nthree"),
            ("one two three¦", "esc 0 w c w n e w", "one new¦ three"),
            ("one two¦", "esc 0 e a !", "one!¦ two"),
            ("a\nb\nc¦", "esc k d d", "a\n¦c"),
            ("a\nb\nc¦", "esc d d p", "a\nb\n¦c"),
            ("a\nb\nc¦", "esc g 2 d d shift+p", "¦a\nb\nc"),
            ("a¦", "esc d d", "¦"),
            ("one two¦", "esc 0 y w p", "oone¦ ne two"),
            ("a\nb¦", "esc y y k shift+p", "¦b\na\nb"),
            ("  one¦", "esc shift+i x", "  x¦one"),
            ("on¦e", "esc shift+a !", "one!¦"),
            ("a¦\nb", "esc o x", "a\nx¦\nb"),
            ("a\nb¦", "esc shift+o x", "a\nx¦\nb"),
            ("abc¦", "esc x x u", "a¦b"),
            ("abc¦", "esc x x u ctrl+r", "¦a"),
            ("one two¦", "esc 0 w shift+d", "one¦ "),
            ("one two¦", "esc 0 c c x", "x¦"),
            ("abc¦", "esc $ h i x", "ax¦bc"),
            ("abc¦", "esc d esc x", "a¦b"),
            ("a b c¦", "esc 9 9 9 9 9 b", "¦a b c"),
        ],
    );
}

#[test]
fn vim_mode_is_reported_and_esc_in_normal_mode_stops_the_turn() {
    let mut composer = Composer::default();
    assert_eq!(composer.mode(), None);
    composer.set_vim(true);
    assert_eq!(composer.mode(), Some(Mode::Insert));
    assert_eq!(press(&mut composer, "a esc"), KeyOutcome::Moved);
    assert_eq!(composer.mode(), Some(Mode::Normal));
    assert_eq!(press(&mut composer, "d esc"), KeyOutcome::Moved);
    assert_eq!(press(&mut composer, "esc"), KeyOutcome::Wanted(Action::Stop));
    assert_eq!(press(&mut composer, "enter"), KeyOutcome::Wanted(Action::Send));
    assert_eq!(press(&mut composer, "z"), KeyOutcome::Moved);
    assert_eq!(marked(&composer), "¦a");
}

#[test]
fn yank_pop_needs_the_cursor_at_the_yanked_text() {
    let mut composer = composer("one two¦");
    composer.set_vim(true);
    press(&mut composer, "ctrl+w ctrl+w esc ctrl+y 0 alt+y");
    assert_eq!(marked(&composer), "¦one two");
}

fn plain(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::plain_text).collect()
}

#[test]
fn composer_wraps_at_words_and_places_the_cursor() {
    let mut composer = composer("hello wide¦ 漢字漢字漢字 abcdefghijklmno");
    let (lines, cell) = composer.render_lines(11);
    assert_eq!(plain(&lines), ["hello wide", "漢字漢字漢", "字 ", "abcdefghij", "klmno"]);
    assert_eq!(cell, Cell { row: 0, column: 10 });
    press(&mut composer, "right");
    assert_eq!(composer.render_lines(11).1, Cell { row: 1, column: 0 });
    press(&mut composer, "down right down");
    assert_eq!(composer.render_lines(11).1, Cell { row: 3, column: 2 });
}

#[test]
fn composer_window_scrolls_minimally_with_the_cursor() {
    let text: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let mut composer = composer(&(text.join("\n") + "¦"));
    let seen = |composer: &mut Composer| {
        let (lines, cell) = composer.render_window(40, 3);
        (plain(&lines).join(" "), cell.row)
    };
    assert_eq!(seen(&mut composer), ("17 18 19".to_owned(), 2));
    press(&mut composer, "up");
    assert_eq!(seen(&mut composer), ("17 18 19".to_owned(), 1));
    press(&mut composer, "up up");
    assert_eq!(seen(&mut composer), ("16 17 18".to_owned(), 0));
    press(&mut composer, "down");
    assert_eq!(seen(&mut composer), ("16 17 18".to_owned(), 1));
    press(&mut composer, "ctrl+home");
    assert_eq!(seen(&mut composer), ("0 1 2".to_owned(), 0));
}

#[test]
fn large_pastes_are_chips_and_are_sent_in_full() {
    let mut composer = composer("see ¦ please");
    let pasted = "line\r\n".repeat(12);
    assert_eq!(composer.paste(pasted.clone()), PasteOutcome::Chip);
    assert_eq!(plain(&composer.render_lines(60).0), ["see [Pasted text #1 +12 lines] please"]);
    assert_eq!(plain(&composer.render_lines(12).0), ["see ", "[Pasted te…", "please"]);
    let draft = composer.draft();
    assert_eq!(draft.text, format!("see {} please", pasted.replace("\r\n", "\n")));
    press(&mut composer, "backspace");
    assert_eq!(composer.draft().text, "see  please");
    press(&mut composer, "ctrl+_");
    assert_eq!(composer.draft(), draft);
}

#[test]
fn restored_draft_has_its_paste_and_image_chips() {
    let mut composer = Composer::default();
    composer.paste("x\n".repeat(50));
    composer.attach(Image::from_bytes("image/png", b"pixels"), "cat.png");
    composer.insert(" and \u{10f000} more");
    let looks = plain(&composer.render_lines(100).0);
    assert_eq!(
        looks,
        ["[Pasted text #1 +50 lines][Image #1 cat.png] and [Pasted text #2 1 characters] more"]
    );
    let draft = composer.take_draft();
    assert!(composer.is_empty());
    press(&mut composer, "ctrl+_");
    assert_eq!(composer.draft(), draft);

    let file = serde_json::to_string(&draft).unwrap();
    let mut other = Composer::default();
    other.restore_draft(serde_json::from_str(&file).unwrap());
    assert_eq!(other.draft(), draft);
    assert_eq!(plain(&other.render_lines(100).0), looks);
    let content = draft.into_content();
    assert!(
        matches!(&content[..], [Content::Text(text), Content::Image(_)] if text.text.contains('\u{10f000}'))
    );
}

#[test]
fn tampered_draft_file_restores_without_losing_text() {
    let file = r#"{"text":"añb","images":[{"mime":"image/png","base64":"AA=="}],
        "folds":[{"start":0,"end":2},{"start":3,"end":4,"image":7},{"start":9,"end":1},{"start":1,"end":900}]}"#;
    let mut composer = Composer::default();
    composer.restore_draft(serde_json::from_str(file).unwrap());
    let draft = composer.draft();
    assert_eq!(draft.text, "añb[Image #1]");
    assert_eq!(draft.images.len(), 1);
}

#[test]
fn blank_is_what_has_nothing_to_send() {
    let mut composer = composer(" \n ¦");
    assert!(composer.is_blank() && !composer.is_empty());
    composer.paste(" \n".repeat(20));
    assert!(composer.is_blank() && composer.draft().is_blank());
    composer.attach(Image::from_bytes("image/png", b"x"), "");
    assert!(!composer.is_blank() && !composer.draft().is_blank());
}

#[test]
fn restoring_a_draft_over_text_can_be_undone() {
    let mut composer = composer("mine¦");
    composer.restore_draft("from history".into());
    press(&mut composer, "ctrl+_");
    assert_eq!(marked(&composer), "mine¦");
    composer.clear();
    press(&mut composer, "ctrl+_");
    assert_eq!(marked(&composer), "mine¦");
}

#[test]
fn dropped_image_path_can_be_replaced_by_the_image() {
    let mut composer = composer("look: ¦");
    let PasteOutcome::Path { path, text } = composer.paste("'/tmp/my cat.png' ".to_owned()) else {
        panic!("a path")
    };
    assert_eq!(path, PathBuf::from("/tmp/my cat.png"));
    assert_eq!(marked(&composer), "look: '/tmp/my cat.png'¦");
    assert!(composer.attach_instead(&text, Image::from_bytes("image/png", b"x"), "my cat.png"));
    assert_eq!(plain(&composer.render_lines(80).0), ["look: [Image #1 my cat.png]"]);
    press(&mut composer, "ctrl+_");
    assert_eq!(marked(&composer), "look: '/tmp/my cat.png'¦");
}

#[test]
fn control_characters_are_seen_as_pictures_and_sent_as_they_are() {
    let mut composer = Composer::default();
    assert_eq!(
        composer.paste("a\u{1b}[31mb\u{7}\tc\u{7f}\u{202e}".to_owned()),
        PasteOutcome::Inserted
    );
    assert_eq!(composer.draft().text, "ab\u{7}\tc\u{7f}\u{202e}");
    let (lines, cell) = composer.render_lines(80);
    assert_eq!(plain(&lines), ["ab␇    c␡\u{fffd}"]);
    assert_eq!(cell.column, lines[0].width());
}

#[test]
fn huge_paste_is_processed_once() {
    let mut composer = Composer::default();
    let giant = "0123456789abcde\n".repeat(1 << 20);
    assert_eq!(composer.paste(giant.clone()), PasteOutcome::Chip);
    for _ in 0..1_000 {
        press(&mut composer, "x left right backspace");
        composer.render_window(80, 10);
    }
    assert_eq!(composer.take_draft().text, giant);
}

#[test]
fn completion_replaces_a_range_in_the_line() {
    let mut composer = composer("see @ma¦ please");
    composer.replace_in_line(4..7, "@src/main.rs");
    assert_eq!(marked(&composer), "see @src/main.rs¦ please");
    composer.replace_in_line(4..900, "x");
    assert_eq!(marked(&composer), "see @src/main.rs¦ please");
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "a", "Z", "漢", "é", "\u{301}", "👩", "\u{200d}", "🚀", "🇩", "🇪", "space", "_", "/", "\\", "\u{10f001}", "\u{202e}", "0", "3",
        ]),
        4 => prop::sample::select(vec![
            "left", "right", "up", "down", "alt+b", "alt+f", "home", "end", "backspace", "delete", "ctrl+w", "alt+d",
            "ctrl+u", "ctrl+k", "ctrl+y", "alt+y", "ctrl+t", "alt+u", "alt+c", "ctrl+j", "enter", "ctrl+_", "alt+r",
        ]),
        2 => prop::sample::select(vec!["esc", "i", "d", "c", "y", "w", "b", "e", "p", "shift+p", "o", "x", "g", "shift+g", "j", "k", "u", "$"]),
        1 => prop::sample::select(vec![PASTE, ATTACH, TAKE, CLEAR]),
    ]
    .prop_map(str::to_owned)
}

/// What else can be done, between keys.
const PASTE: &str = "a paste";
const ATTACH: &str = "an image";
const TAKE: &str = "sent";
const CLEAR: &str = "cleared";

fn do_any(composer: &mut Composer, what: &str, keymap: &Keymap) {
    match what {
        PASTE => drop(composer.paste("x\n漢".repeat(9))),
        ATTACH => assert!(composer.attach(Image::from_bytes("image/png", b"x"), "x.png")),
        TAKE => drop(composer.take_draft()),
        CLEAR => composer.clear(),
        key => drop(composer.press(key.parse().unwrap(), keymap)),
    }
}

proptest! {
    #[test]
    fn undo_restores_the_text_after_any_keys(
        text in "[a-c 漢\u{301}\n]{0,30}",
        keys in prop::collection::vec(any_key(), 0..60),
        with_vim in any::<bool>(),
        width in 1_usize..30,
        rows in 1_usize..5,
    ) {
        let keymap = Keymap::built_in();
        let mut composer = Composer::default();
        composer.set_vim(with_vim);
        composer.restore_draft(text.as_str().into());
        for key in &keys {
            do_any(&mut composer, key, &keymap);
            let (lines, cell) = composer.render_window(width, rows);
            prop_assert!(composer.current_line().is_char_boundary(composer.cursor_byte()));
            prop_assert!(lines.len() <= rows && cell.row < lines.len());
            prop_assert!(cell.column < width.max(3), "{cell:?} in {width}");
            for line in &lines {
                prop_assert!(line.width() <= width.max(2), "{line:?} in {width}");
            }
        }
        let last = composer.draft();
        for _ in 0..200 {
            composer.apply_action(Action::Undo);
        }
        prop_assert_eq!(composer.draft().text, "");
        for _ in 0..200 {
            composer.apply_action(Action::Redo);
        }
        // What was undone in between is not made again.
        if !keys.iter().any(|key| ["ctrl+_", "u"].contains(&key.as_str())) {
            prop_assert_eq!(composer.draft(), last);
        }
    }

    #[test]
    fn cursor_cells_are_distinct_and_rows_contain_all_text(
        text in "[a-c 漢é👩\u{200d}🚀\t\n]{0,60}",
        width in 3_usize..20,
    ) {
        let mut composer = Composer::default();
        composer.restore_draft(text.as_str().into());
        let (lines, end) = composer.render_lines(width);
        let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        prop_assert_eq!(bare(&plain(&lines).concat()), bare(&text));
        let mut before = end;
        loop {
            let (line, column) = (composer.line_number(), composer.cursor_byte());
            composer.apply_action(Action::Left);
            if (line, column) == (composer.line_number(), composer.cursor_byte()) {
                break;
            }
            let (_, cell) = composer.render_lines(width);
            prop_assert!((cell.row, cell.column) <= (before.row, before.column));
            before = cell;
        }
        prop_assert_eq!(before, Cell::default());
    }

    #[test]
    fn pasted_text_is_sent_unchanged_except_line_breaks_and_sequences(text in any::<String>()) {
        let mut composer = Composer::default();
        let expected = text.replace("\r\n", "\n").replace('\r', "\n");
        let has_sequences = text.contains(['\u{1b}', '\u{9b}']);
        if composer.paste(text) == PasteOutcome::Inserted && !has_sequences {
            prop_assert_eq!(&composer.draft().text, &expected);
        }
        prop_assert_eq!(Draft::from(composer.draft().text).text, composer.draft().text);
    }
}
