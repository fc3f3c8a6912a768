//! Whole runs on a real pseudo-terminal: what a person types, what the terminal answers and what the
//! session says, and what is then on the screen.

use std::{
    io::{Read, Write},
    num::NonZeroU16,
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use gnoma_core::{
    Event,
    protocol::{Client, Envelope, Epoch, Peer, ServerMessage},
    store::SessionId,
};
use gnoma_tui::{
    Frame, Input, Size,
    frame::Cell,
    keymap::Key,
    run::{
        EffectHandler, Ending, Link, LoopAction, MAX_FRAMES_PER_SECOND, RunOptions, Stage, View,
    },
    screen::Layout,
    terminal::Terminal,
    text::{Line, Style},
    theme::{Shade, Theme},
};
use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use vt100::Parser;

const PATIENCE: Duration = Duration::from_secs(60);
const WIDTH: u16 = 40;
const HEIGHT: u16 = 12;
/// What terminals answer to the questions at the start.
const ANSWERS: &[u8] = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?2026;2$y\x1b[?62;22c";

/// A terminal with a person in front of it.
#[derive(Clone)]
struct Person {
    keyboard: Arc<OwnedFd>,
    printed: Arc<Mutex<Vec<u8>>>,
    size: Arc<Mutex<(u16, u16)>>,
}

impl Person {
    fn types(&self, bytes: &[u8]) {
        let mut file = std::fs::File::from(self.keyboard.try_clone().unwrap());
        file.write_all(bytes).unwrap();
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }

    fn sees(&self) -> String {
        let (width, height) = *self.size.lock().unwrap();
        let cells = |number| NonZeroU16::new(number).unwrap();
        let mut parser = Parser::new(cells(height), cells(width), 100);
        parser.process(&self.printed.lock().unwrap());
        parser.screen().contents()
    }

    #[track_caller]
    fn waits_for(&self, text: &str) {
        self.waits_until(text, |person| person.sees().contains(text));
    }

    #[track_caller]
    fn waits_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < end, "no {what:?} in {:?}", self.printed());
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn resizes(&self, width: u16, height: u16) {
        *self.size.lock().unwrap() = (width, height);
        set_size(&self.keyboard, width, height);
        let ours = rustix::process::getpid();
        rustix::process::kill_process(ours, rustix::process::Signal::WINCH).unwrap();
    }
}

fn set_size(terminal: &OwnedFd, width: u16, height: u16) {
    let size = Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

/// A person, the end of the terminal where the program is, and the thread that ends when everything
/// has been printed that ever will be.
fn terminal() -> (Person, OwnedFd, JoinHandle<()>) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap();
    let program =
        open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    set_size(&keyboard, WIDTH, HEIGHT);
    let printed = Arc::new(Mutex::new(Vec::new()));
    let mut screen = std::fs::File::from(keyboard.try_clone().unwrap());
    let sink = Arc::clone(&printed);
    let watch = thread::spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            sink.lock().unwrap().extend_from_slice(&buffer[..count]);
        }
    });
    let size = Arc::new(Mutex::new((WIDTH, HEIGHT)));
    (Person { keyboard: Arc::new(keyboard), printed, size }, program, watch)
}

/// Shows what was typed and said.
#[derive(Default)]
struct Notepad {
    typed: String,
    said: String,
    heard: Arc<Mutex<Vec<Input>>>,
    frames: Arc<AtomicUsize>,
}

enum Effect {
    Quit,
    Borrow,
}

impl View for Notepad {
    type Effect = Effect;

    fn on_input(&mut self, input: Input) -> Vec<Effect> {
        if !matches!(input, Input::Tick(_)) {
            self.heard.lock().unwrap().push(input.clone());
        }
        match input {
            Input::Key(key) if key == "ctrl+d".parse::<Key>().unwrap() => {
                return vec![Effect::Quit];
            }
            Input::Key(key) if key == "ctrl+g".parse::<Key>().unwrap() => {
                return vec![Effect::Borrow];
            }
            Input::Key(key) if key == "ctrl+x".parse::<Key>().unwrap() => panic!("made to panic"),
            Input::Key(key) => self.typed.extend(key.typed_char()),
            Input::Paste(text) => self.typed += &format!("<{} bytes>", text.len()),
            Input::Edited(text) => self.typed += &text.unwrap(),
            Input::Session(envelope) => {
                if let Event::Text { text } = &envelope.event {
                    self.said += text;
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn render_frame(&mut self, size: Size) -> Frame {
        self.frames.fetch_add(1, Ordering::Relaxed);
        let line = |text: String| Line::new(text, Style::default());
        let mut live = line(self.said.clone()).wrap(size.width, &Line::default());
        live.push(line(format!("> {}", self.typed)));
        live.push(line(format!("{} columns", size.width)));
        let cursor = Cell { row: live.len() - 2, column: 2 + self.typed.len() };
        Frame { finished: Vec::new(), live, cursor: Some(cursor) }
    }

    fn next_tick(&self) -> Option<Instant> {
        None
    }
}

/// The host's end of the connection.
struct Host(Peer);

impl Host {
    /// A link and the other end of it.
    fn pair() -> (Link, Self) {
        let (client, peer) = Client::new_pair();
        (Link::new(client, SessionId::new("s"), None, None), Self(peer))
    }

    fn send(&self, event: Event) -> Result<(), ()> {
        let session = SessionId::new("s");
        let envelope = Envelope { session, epoch: Epoch(1), parent: None, seq: 1, at_ms: 0, event };
        self.0.messages.blocking_send(ServerMessage::Event(Arc::new(envelope))).map_err(drop)
    }
}

/// Lends the terminal to a program that looks whether it can read lines.
struct Lender(Arc<OwnedFd>);

impl EffectHandler for Lender {
    type Effect = Effect;

    fn perform(&mut self, effect: Effect) -> LoopAction {
        match effect {
            Effect::Quit => LoopAction::Quit,
            Effect::Borrow => {
                let terminal = Arc::clone(&self.0);
                LoopAction::Lend(Box::new(move || {
                    Input::Edited(Some(
                        if is_cooked(&terminal) { "as it was" } else { "raw" }.to_owned(),
                    ))
                }))
            }
        }
    }
}

fn is_cooked(terminal: &OwnedFd) -> bool {
    let modes = tcgetattr(terminal).unwrap().local_modes;
    modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
}

/// Runs a notepad while `script` is played by a person; gives how it ended and the person.
fn play(
    layout: Layout,
    notepad: &mut Notepad,
    script: impl FnOnce(&Person, &Host) + Send + 'static,
) -> (Ending, Person) {
    play_after(b"", layout, notepad, script)
}

/// The same with keys that are typed before the program has the terminal.
fn play_after(
    early: &[u8],
    layout: Layout,
    notepad: &mut Notepad,
    script: impl FnOnce(&Person, &Host) + Send + 'static,
) -> (Ending, Person) {
    let options = RunOptions { layout, ..RunOptions::default() };
    play_with(early, options, notepad, script)
}

fn play_with(
    early: &[u8],
    options: RunOptions,
    notepad: &mut Notepad,
    script: impl FnOnce(&Person, &Host) + Send + 'static,
) -> (Ending, Person) {
    let (person, program, watch) = terminal();
    person.types(early);
    // The system has taken it in once it has echoed it.
    let lines = early.iter().filter(|byte| **byte == b'\r').count();
    person.waits_until("the echo", |person| person.printed().matches('\n').count() >= lines);
    let program = Arc::new(program);
    let actor = person.clone();
    let (mut link, host) = Host::pair();
    let play = thread::spawn(move || script(&actor, &host));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ending = runtime.block_on(async {
        let ends = || program.try_clone().unwrap();
        let layout = options.layout;
        let terminal =
            Terminal::open_on(ends(), ends(), layout, "all is saved".to_owned()).unwrap();
        let mut hands = Lender(Arc::clone(&program));
        Stage::with_terminal(terminal, Theme::default(), options)
            .run_view(&mut link, notepad, &mut hands)
            .await
            .unwrap()
    });
    play.join().unwrap();
    assert!(is_cooked(&program), "the terminal is given back");
    drop((program, runtime));
    watch.join().unwrap();
    (ending, person)
}

#[test]
fn typed_keys_are_drawn_and_late_terminal_replies_are_not_typed() {
    let mut notepad = Notepad::default();
    let (ending, person) = play(Layout::Inline, &mut notepad, |person, _| {
        person.waits_for("40 columns");
        person.types(b"a");
        person.waits_for("> a");
        let (one, other) = ANSWERS.split_at(9);
        person.types(one);
        thread::sleep(Duration::from_millis(60));
        person.types(other);
        person.types("b漢".as_bytes());
        person.waits_for("> ab漢");
        person.types(b"\x04");
    });
    assert_eq!(ending, Ending::Quit);
    assert!(notepad.heard.lock().unwrap().contains(&Input::Background(Shade::Light)));
    let printed = person.printed();
    assert!(printed.contains("\x1b[?2026h"), "{printed:?}");
    for (taken, given) in
        [("[?2004h", "[?2004l"), ("[?1004h", "[?1004l"), ("[>5u", "[<u"), ("[?7l", "[?7h")]
    {
        assert_eq!(printed.matches(taken).count(), 1, "{taken}");
        assert_eq!(printed.matches(given).count(), 1, "{given}");
    }
    assert!(person.sees().ends_with("> ab漢\n40 columns"), "the last frame stays");
}

#[test]
fn enter_typed_before_raw_mode_is_enter() {
    let keys = |early: &[u8]| {
        let mut notepad = Notepad::default();
        let heard = Arc::clone(&notepad.heard);
        play_after(early, Layout::Inline, &mut notepad, |person, _| {
            person.types(ANSWERS);
            person.waits_for("> ab");
            person.types(b"\x04");
        });
        let heard = heard.lock().unwrap();
        let keys = heard.iter().filter_map(|input| match input {
            Input::Key(key) => Some(key.to_string()),
            _ => None,
        });
        keys.collect::<Vec<_>>().join(" ").to_lowercase()
    };
    assert_eq!(keys(b"ab\r"), "a b enter ctrl+d");
    assert_eq!(keys(b"a\rb\r"), "a ctrl+j b ctrl+j ctrl+d", "a text of two lines");
}

#[test]
fn keys_typed_after_quit_stay_for_the_next_program() {
    let (person, program, _watch) = terminal();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ends = || program.try_clone().unwrap();
    let mut hands = Lender(Arc::new(ends()));
    let mut notepad = Notepad::default();
    let (mut link, _host) = Host::pair();
    runtime.block_on(async {
        let terminal = Terminal::open_on(ends(), ends(), Layout::Inline, String::new()).unwrap();
        // Before that, the terminal itself makes something else of a key.
        person.types(ANSWERS);
        person.types(b"one\x04two");
        let mut stage = Stage::with_terminal(terminal, Theme::default(), RunOptions::default());
        let ending = stage.run_view(&mut link, &mut notepad, &mut hands).await;
        assert_eq!((ending.unwrap(), notepad.typed.as_str()), (Ending::Quit, "one"));
        assert!(!is_cooked(&program), "nothing that is typed in between is shown or changed");
        person.types(b"three\x04");
        stage.run_view(&mut link, &mut notepad, &mut hands).await.unwrap();
    });
    assert_eq!(notepad.typed, "onetwothree");
    // What is printed comes by a thread of its own.
    person.waits_until("the end", |person| person.printed().contains("\x1b[?2004l"));
    assert_eq!(person.printed().matches("\x1b[?2004h").count(), 1);
    assert!(is_cooked(&program));
}

/// Shows whole paragraphs, so that much is written.
#[derive(Default)]
struct Flood {
    lines: Vec<Line>,
    heard: Arc<AtomicUsize>,
}

impl View for Flood {
    type Effect = Effect;

    fn on_input(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Session(envelope) => {
                let Event::Text { text } = &envelope.event else { return Vec::new() };
                self.heard.fetch_add(1, Ordering::Relaxed);
                let line = Line::new(text.clone(), Style::default());
                self.lines.extend(line.wrap(usize::from(WIDTH), &Line::default()));
                Vec::new()
            }
            Input::Key(_) => vec![Effect::Quit],
            _ => Vec::new(),
        }
    }

    fn render_frame(&mut self, _: Size) -> Frame {
        Frame { finished: std::mem::take(&mut self.lines), ..Frame::default() }
    }

    fn next_tick(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn terminal_that_reads_nothing_delays_neither_events_nor_exit() {
    const EVENTS: usize = 200;
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap();
    let program =
        open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    set_size(&keyboard, WIDTH, HEIGHT);
    let mut flood = Flood::default();
    let heard = Arc::clone(&flood.heard);
    let (mut link, host) = Host::pair();
    let mut keys = std::fs::File::from(keyboard.try_clone().unwrap());
    let script = thread::spawn(move || {
        let end = Instant::now() + PATIENCE;
        for number in 1..=EVENTS {
            host.send(Event::Text { text: "word ".repeat(400) }).unwrap();
            while heard.load(Ordering::Relaxed) < number {
                assert!(Instant::now() < end, "{number} events were not heard");
                thread::sleep(Duration::from_millis(1));
            }
        }
        keys.write_all(b"q").unwrap();
        Instant::now()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ending = runtime.block_on(async {
        let ends = || program.try_clone().unwrap();
        let terminal = Terminal::open_on(ends(), ends(), Layout::Inline, String::new()).unwrap();
        let mut hands = Lender(Arc::new(ends()));
        let mut stage = Stage::with_terminal(terminal, Theme::default(), RunOptions::default());
        stage.run_view(&mut link, &mut flood, &mut hands).await
    });
    assert_eq!(ending.unwrap(), Ending::Quit);
    assert!(script.join().unwrap().elapsed() < Duration::from_secs(3));
    assert!(is_cooked(&program), "the terminal is given back");
}

#[test]
fn a_stream_is_drawn_in_few_frames_and_silence_in_none() {
    const DELTAS: usize = 80;
    let mut notepad = Notepad::default();
    let frames = Arc::clone(&notepad.frames);
    let (_, _) = play(Layout::Inline, &mut notepad, move |person, session| {
        person.types(ANSWERS);
        person.waits_for("40 columns");
        let start = Instant::now();
        for number in 0..DELTAS {
            session.send(Event::Text { text: format!("{number} ") }).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
        person.waits_for(&format!("{} {}", DELTAS - 2, DELTAS - 1));
        let allowed = start.elapsed().as_secs_f32() * MAX_FRAMES_PER_SECOND as f32;
        let drawn = frames.load(Ordering::Relaxed);
        assert!(drawn as f32 <= allowed + 3.0, "{drawn} frames, allowed {allowed}");

        thread::sleep(Duration::from_millis(100));
        let (drawn, printed) = (frames.load(Ordering::Relaxed), person.printed().len());
        thread::sleep(Duration::from_millis(200));
        assert_eq!((frames.load(Ordering::Relaxed), person.printed().len()), (drawn, printed));
        person.types(b"\x04");
    });
}

#[test]
fn resize_redraws_with_the_new_size() {
    let (_, person) = play(Layout::Inline, &mut Notepad::default(), |person, _| {
        person.types(ANSWERS);
        person.waits_for("40 columns");
        person.resizes(30, 10);
        person.waits_for("30 columns");
        person.types(b"\x04");
    });
    assert_eq!(person.sees().matches("columns").count(), 1);
}

#[test]
fn a_terminal_that_reports_its_size_late_is_asked_before_each_frame() {
    let options = RunOptions { tells_size_late: true, ..RunOptions::default() };
    let (_, person) = play_with(b"", options, &mut Notepad::default(), |person, _| {
        person.types(ANSWERS);
        let answered = AtomicUsize::new(0);
        let answers = |size: &str, columns: &str| {
            person.waits_until(columns, |person| {
                let asked = person.printed().matches("\x1b[18t").count();
                if asked > answered.swap(asked, Ordering::Relaxed) {
                    person.types(format!("\x1b[8;{size}t").as_bytes());
                }
                person.sees().contains(columns)
            });
        };
        answers("12;30", "30 columns");
        person.types(b"x");
        answers("12;20", "20 columns");
        person.types(b"\x04");
    });
    assert_eq!(person.sees().matches("columns").count(), 1);
}

#[test]
fn external_program_gets_the_terminal_in_its_original_state() {
    let (_, person) = play(Layout::Inline, &mut Notepad::default(), |person, _| {
        person.types(ANSWERS);
        person.waits_for("40 columns");
        person.types(b"\x07");
        person.waits_for("> as it was");
        person.types(b"!");
        person.waits_for("> as it was!");
        person.types(b"\x04");
    });
    assert_eq!(person.printed().matches("\x1b[>5u").count(), 2);
    assert_eq!(person.printed().matches("\x1b[<u").count(), 2);
}

#[test]
fn pastes_of_any_size_arrive_whole() {
    play(Layout::Inline, &mut Notepad::default(), |person, _| {
        person.types(ANSWERS);
        person.waits_for("40 columns");
        person.types(b"\x1b[200~");
        for _ in 0..1_000 {
            person.types(&[b'x'; 1_000]);
        }
        person.types(b"\x1b[201~");
        person.waits_for("> <1000000 bytes>");
        person.types(b"\x04");
    });
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let (person, program, _watch) = terminal();
    let ends = || program.try_clone().unwrap();
    person.types(ANSWERS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let terminal =
                Terminal::open_on(ends(), ends(), Layout::FullScreen, String::new()).unwrap();
            let (mut link, _host) = Host::pair();
            let options = RunOptions { layout: Layout::FullScreen, ..RunOptions::default() };
            let mut hands = Lender(Arc::new(ends()));
            person.types(b"\x18");
            let mut notepad = Notepad::default();
            let mut stage = Stage::with_terminal(terminal, Theme::default(), options);
            stage.run_view(&mut link, &mut notepad, &mut hands).await
        })
    }));
    assert!(result.is_err());
    assert!(is_cooked(&program));
    person.waits_until("main screen", |person| person.printed().contains("\x1b[?25h\x1b[?1049l"));
}

#[test]
fn closed_terminal_ends_the_run() {
    let mut notepad = Notepad::default();
    let heard = Arc::clone(&notepad.heard);
    let (ending, person) = play(Layout::Plain, &mut notepad, |person, _| {
        person.types(b"yes\n\x04");
    });
    assert_eq!(ending, Ending::InputEnded);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.last(), Some(&Input::Ending));
    let enter = Input::Key("enter".parse().unwrap());
    assert!(heard.contains(&enter), "{heard:?}");
    assert!(!person.printed().contains('\x1b'), "plain lines only: {:?}", person.printed());
}
