//! A whole turn on a terminal: what is written to it and what stands there.

use std::num::NonZero;

use gnoma_tui::{
    screen::{Layout, Screen, Traits},
    theme::{Depth, Shade, Theme},
};

use super::*;

/// Pieces of an answer, and how many of them come in a second.
const DELTAS: usize = 300;
const DELTAS_PER_SECOND: usize = 100;
const FRAMES_PER_SECOND: usize = 30;
/// What such an answer may cost, in bytes.
const MAX_BYTES: usize = 15_000;

struct Terminal {
    scene: Scene,
    screen: Screen,
    parser: vt100::Parser,
    bytes: usize,
}

impl Terminal {
    fn new(width: u16, height: u16) -> Self {
        let mut scene = Scene::new();
        scene.size = Size::new(width.into(), height.into());
        let theme = Theme::from_name("gnoma", Shade::Dark, Depth::True).unwrap();
        let traits = Traits { synchronized: true, reflows: true };
        Self {
            scene,
            screen: Screen::new(Layout::Inline, theme, traits),
            parser: vt100::Parser::new(cells(height), cells(width), 1_000),
            bytes: 0,
        }
    }

    fn draw(&mut self) {
        let frame = self.scene.state.render_frame(self.scene.size);
        let mut bytes = Vec::new();
        self.screen.draw(&frame, self.scene.size, &mut bytes);
        self.bytes += bytes.len();
        self.parser.process(&bytes);
    }

    fn text(&self) -> String {
        let rows = self.parser.screen().rows(0, self.parser.screen().size().1.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

#[test]
fn a_streamed_answer_costs_few_bytes_and_stands_there_whole() {
    let mut terminal = Terminal::new(80, 24);
    terminal.draw();
    terminal.scene.running("tell me a story");
    terminal.draw();
    terminal.bytes = 0;
    for number in 0..DELTAS {
        let end = if number % 20 == 19 { ".\n\n" } else { "" };
        terminal.scene.wait(1_000 / DELTAS_PER_SECOND as u64);
        terminal.scene.event(Event::Text { text: format!("word{number} {end}") });
        if number % (DELTAS_PER_SECOND / FRAMES_PER_SECOND) == 0 {
            terminal.draw();
        }
    }
    assert!(terminal.bytes < MAX_BYTES, "{} bytes", terminal.bytes);
    terminal.scene.ends(complete(), &[]);
    terminal.draw();
    let text = terminal.text();
    assert!(text.contains("word280 ") && text.contains("word299"), "{text}");
    assert_eq!(text.matches("word290").count(), 1, "{text}");
}

#[test]
fn what_is_typed_costs_next_to_nothing() {
    let mut terminal = Terminal::new(80, 24);
    terminal.draw();
    terminal.scene.write("hell");
    terminal.draw();
    terminal.bytes = 0;
    terminal.scene.write("o");
    terminal.draw();
    assert!(terminal.bytes < 100, "{} bytes", terminal.bytes);
    assert!(terminal.text().contains("› hello"));
    terminal.bytes = 0;
    terminal.draw();
    assert_eq!(terminal.bytes, 0);
}

#[test]
fn a_question_on_a_small_terminal_is_seen_whole() {
    let mut terminal = Terminal::new(40, 12);
    terminal.scene.running("clean up").wait(5_000).asks("c1", "rm -rf build && make");
    terminal.draw();
    insta::assert_snapshot!(terminal.text(), @r"
    › clean up
    ? Run this command?
      rm -rf build && make
      in ~/src/gnoma
      reason: `rm -rf build` removes files
    › y  yes, once
      a  always: bash(rm -rf build)
         for this session
         s: other scope · e: edit the rule
      n  no
      r  no, and tell the model why
    ? waiting for you · auto mode
    ");
}
