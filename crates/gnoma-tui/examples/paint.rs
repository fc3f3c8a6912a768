//! Measures what drawing costs, with made-up conversations and without a terminal: `cargo run
//! --release -p gnoma-tui --example paint`. Prints a line for each case; judges nothing.

#![expect(clippy::print_stdout, reason = "figures for whoever runs it")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Event, RawJson, ToolCall,
    protocol::{Envelope, Epoch},
    session::{PermissionMode, SessionState},
    store::SessionId,
};
use gnoma_tui::{
    Input, Size,
    app::{AppOptions, State},
    effect::Effect,
    history::History,
    keymap::Keymap,
    run::View as _,
    screen::{Layout, Screen, Traits},
    status::StartFacts,
    theme::{Depth, Shade, Theme},
};

/// Lines of a long conversation.
const LINES: usize = 100_000;
/// Pieces of a long answer.
const DELTAS: usize = 20_000;
/// Frames that are drawn of each case.
const FRAMES: u32 = 200;
/// How far pieces come apart where frames are drawn as they are while somebody looks.
const BETWEEN_DELTAS: Duration = Duration::from_millis(10);
const SIZE: Size = Size { width: 120, height: 40 };
/// A piece of an answer: about what a model sends at once.
const DELTA: &str = "a few *words* of `text`, ";

fn main() {
    for layout in [Layout::Inline, Layout::FullScreen] {
        long_conversation(layout);
    }
    long_open_answer();
    stream(1);
    // Thirty frames a second of a hundred pieces.
    stream(3);
    // As fast as a session can say them.
    stream(1_000);
    keys();
    tool_output();
}

/// What is seen of a conversation, on an imagined terminal.
struct Rig {
    state: State,
    screen: Screen,
    now: Instant,
    out: Vec<u8>,
    seq: u64,
}

impl Rig {
    fn new(layout: Layout) -> Self {
        let now = Instant::now();
        let options = AppOptions {
            now,
            now_ms: 0,
            facts: StartFacts { mode: PermissionMode::Auto, ..StartFacts::default() },
            keymap: Keymap::built_in(),
            history: History::from_lines(""),
            theme: "gnoma".to_owned(),
            vim: false,
            accessible: false,
            drafts: Vec::new(),
            is_served: false,
            debug_log: None,
        };
        let theme = Theme::from_name("gnoma", Shade::Dark, Depth::True).unwrap_or_default();
        let traits = Traits { synchronized: true, reflows: true };
        let mut rig = Self {
            state: State::new(options),
            screen: Screen::new(layout, theme, traits),
            now,
            out: Vec::new(),
            seq: 0,
        };
        rig.input(Input::Resize(SIZE));
        rig
    }

    fn input(&mut self, input: Input) -> Vec<Effect> {
        self.state.on_input(input)
    }

    fn event(&mut self, event: Event) {
        self.seq += 1;
        let (session, epoch) = (SessionId::default(), Epoch::default());
        let envelope = Envelope { session, epoch, parent: None, seq: self.seq, at_ms: 0, event };
        self.input(Input::Session(Arc::new(envelope)));
    }

    fn text(&mut self, text: &str) {
        self.event(Event::Text { text: text.to_owned() });
    }

    /// Draws a frame and says how many bytes it took.
    fn draw(&mut self) -> usize {
        self.out.clear();
        self.screen.draw(&self.state.render_frame(SIZE), SIZE, &mut self.out);
        self.out.len()
    }

    fn later(&mut self, by: Duration) {
        self.now += by;
        self.input(Input::Tick(self.now));
    }
}

/// A turn that has written very much goes on.
fn long_conversation(layout: Layout) {
    let mut rig = Rig::new(layout);
    rig.event(Event::State(SessionState::Active));
    let start = Instant::now();
    for number in 0..LINES {
        rig.text(&format!("Line {number} of a long answer.\n\n"));
        if number % 1_000 == 0 {
            rig.draw();
        }
    }
    rig.draw();
    report(&format!("{layout:?}: {LINES} lines come in"), start.elapsed(), 0);
    measure(&format!("{layout:?}: a frame after them"), &mut rig, |rig| rig.text(DELTA));
}

/// One block that never ends: nothing of it can be handed over.
fn long_open_answer() {
    let mut rig = Rig::new(Layout::Inline);
    rig.event(Event::State(SessionState::Active));
    rig.text("```rust\n");
    for number in 0..2_000 {
        rig.text(&format!("let line_{number} = \"{number}\".to_owned(); // a comment\n"));
    }
    rig.draw();
    measure("a frame of 2,000 lines of open code", &mut rig, |rig| rig.text("let x = 1;\n"));
}

/// Many pieces, with a frame for every so many of them.
fn stream(per_frame: usize) {
    let mut rig = Rig::new(Layout::Inline);
    rig.event(Event::State(SessionState::Active));
    let (start, mut bytes) = (Instant::now(), 0);
    for number in 0..DELTAS {
        rig.text(if number % 20 == 19 { "the end.\n\n" } else { DELTA });
        rig.later(BETWEEN_DELTAS);
        if number % per_frame == 0 {
            bytes += rig.draw();
        }
    }
    report(&format!("{DELTAS} deltas, {per_frame} a frame"), start.elapsed(), bytes);
}

/// What somebody types into a conversation.
fn keys() {
    let mut rig = Rig::new(Layout::Inline);
    rig.draw();
    let Ok(key) = "x".parse() else { return };
    measure("a key and its frame", &mut rig, |rig| {
        rig.input(Input::Key(key));
    });
}

/// A tool that prints very much.
fn tool_output() {
    let mut rig = Rig::new(Layout::Inline);
    let Ok(arguments) = RawJson::parse(r#"{"command":"make"}"#) else { return };
    let call = ToolCall::new(CallId::new("c"), "bash", arguments);
    rig.event(Event::State(SessionState::Active));
    rig.event(Event::ToolStarted { call: call.clone() });
    let text = "a line of output that says little\n".repeat(1_000);
    measure("34 KB of a tool's output and a frame", &mut rig, |rig| {
        rig.event(Event::ToolProgress { call: call.id.clone(), text: text.clone() });
    });
}

fn measure(what: &str, rig: &mut Rig, mut change: impl FnMut(&mut Rig)) {
    let (mut all, mut worst, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    for _ in 0..FRAMES {
        rig.later(Duration::from_millis(33));
        let start = Instant::now();
        change(rig);
        bytes += rig.draw();
        let took = start.elapsed();
        all += took;
        worst = worst.max(took);
    }
    let (mean, count) = (all / FRAMES, FRAMES as usize);
    println!("{what:<48} mean {mean:>10.1?}  worst {worst:>10.1?}  {:>6} bytes", bytes / count);
}

fn report(what: &str, took: Duration, bytes: usize) {
    println!("{what:<48} {took:>15.1?}  {bytes:>10} bytes in all");
}
