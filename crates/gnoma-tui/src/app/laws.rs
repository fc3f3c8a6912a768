//! Whatever happens: nothing that was written is lost, nothing panics, and frames fit.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Content, Event, Message, RawJson, StopReason, ToolCall, Usage,
    protocol::{
        Choice, Envelope, Epoch, FoundProviders, Reply, Request, RequestError, RequestErrorKind,
        RewindPoint, SessionInfo, SessionView, Setting, Topic, WindowUse,
    },
    session::{Outcome, PermissionAnswer, Scope, SessionState},
    store::SessionId,
};
use proptest::prelude::*;

use super::{AppOptions, State, layer::Layer};
use crate::{
    ask::{Purpose, ViewRequest},
    effect::Effect,
    frame::Size,
    history::History,
    input::Input,
    keymap::Keymap,
    run::View,
    status::StartFacts,
};

/// What the host says, which has a little of everything.
fn reply(request: &Request) -> Result<Reply, RequestError> {
    let text = |text: &str| Ok(Reply::Text(text.to_owned()));
    let refused = || Err(RequestError::new(RequestErrorKind::Refused, "no"));
    match request {
        Request::Models { .. } => {
            Ok(Reply::Choices(vec![Choice { name: "small".to_owned(), ..Choice::default() }]))
        }
        Request::Providers | Request::Profiles => Ok(Reply::Choices(Vec::new())),
        Request::Points => {
            Ok(Reply::Points(vec![RewindPoint { turns: 1, ..RewindPoint::default() }]))
        }
        Request::Settings => {
            let key = "tui.vim".to_owned();
            Ok(Reply::Settings(vec![Setting { key, ..Setting::default() }]))
        }
        Request::Export { .. } | Request::KeepRule { scope: Scope::Project, .. } => refused(),
        Request::KeepRule { rule, .. } if rule.contains(' ') => refused(),
        Request::KeepRule { .. } => text("here"),
        Request::Explain(Topic::Context) => {
            Ok(Reply::Window { used: WindowUse::default(), sources: String::new() })
        }
        Request::Changes | Request::Explain(_) | Request::TryProvider(_) => text("because"),
        _ => Ok(Reply::Done),
    }
}

/// Keys that delete nothing.
const KEYS: [&str; 30] = [
    "enter",
    "enter",
    "enter",
    "tab",
    "tab",
    "esc",
    "esc",
    "up",
    "down",
    "ctrl+c",
    "ctrl+r",
    "ctrl+g",
    "shift+tab",
    "ctrl+x",
    "ctrl+o",
    "alt+t",
    "alt+m",
    "f1",
    "home",
    "end",
    "y",
    "a",
    "n",
    "r",
    "/",
    "!",
    "space",
    "shift+enter",
    "pageup",
    "ctrl+l",
];
/// Keys that do anything at all.
const WILD: [&str; 16] = [
    "backspace",
    "ctrl+w",
    "ctrl+u",
    "ctrl+k",
    "ctrl+y",
    "ctrl+_",
    "delete",
    "@",
    "s",
    "e",
    "m",
    "left",
    "ctrl+d",
    "ctrl+t",
    "漢",
    "alt+r",
];

/// Letters from now on are on no key.
const FIRST_LETTER: u32 = 0x5000;

#[derive(Clone, Debug)]
enum Step {
    Key(&'static str),
    Word,
    LongWord,
    Ask,
    Active,
    /// The oldest message that was sent becomes part of the conversation.
    Append,
    /// The turn ends; what was not appended comes back.
    End(bool),
    Late,
    Decided,
    Shell,
    Refused,
    /// The replies to what was asked come.
    Replies,
    Disconnected,
    /// Another life of the session, or another session.
    Another(bool),
    /// The window fell behind.
    Lagged,
    Wait(u16),
    Size(usize, usize),
}

fn step(wild: bool) -> impl Strategy<Value = Step> {
    let keys: Vec<&'static str> =
        KEYS.iter().chain(if wild { WILD.as_slice() } else { &[] }).copied().collect();
    prop_oneof![
        12 => proptest::sample::select(keys).prop_map(Step::Key),
        6 => Just(Step::Word),
        1 => Just(Step::LongWord),
        2 => Just(Step::Ask),
        1 => Just(Step::Active),
        2 => Just(Step::Append),
        3 => any::<bool>().prop_map(Step::End),
        1 => Just(Step::Late),
        1 => Just(Step::Decided),
        1 => Just(Step::Shell),
        1 => Just(Step::Refused),
        3 => Just(Step::Replies),
        1 => Just(Step::Disconnected),
        1 => any::<bool>().prop_map(Step::Another),
        1 => Just(Step::Lagged),
        2 => (0_u16..3_000).prop_map(Step::Wait),
        2 => (1_usize..100, 1_usize..30).prop_map(|(width, height)| Step::Size(width, height)),
    ]
}

struct Run {
    state: State,
    now: Instant,
    size: Size,
    /// Every text that left for good or is kept in a file.
    kept: String,
    sent: VecDeque<Vec<Content>>,
    asked_for: VecDeque<ViewRequest>,
    view: SessionView,
    words: Vec<String>,
    asked: u32,
}

impl Run {
    fn new(found: Option<FoundProviders>) -> Self {
        let now = Instant::now();
        let options = AppOptions {
            now,
            now_ms: 0,
            facts: StartFacts { folder: "~/src".to_owned(), ..StartFacts::default() },
            keymap: Keymap::built_in(),
            history: History::from_lines("\"older\"\n\"old\"\n"),
            theme: String::new(),
            vim: false,
            accessible: false,
            drafts: Vec::new(),
            is_served: true,
            debug_log: None,
        };
        let mut run = Self {
            state: State::new(options),
            now,
            size: Size::default(),
            kept: String::new(),
            sent: VecDeque::new(),
            asked_for: VecDeque::new(),
            view: SessionView::default(),
            words: Vec::new(),
            asked: 0,
        };
        if found.is_some() {
            run.event(Event::Info(Box::new(SessionInfo { found, ..SessionInfo::default() })));
        }
        run
    }

    fn input(&mut self, input: Input) {
        for effect in self.state.on_input(input) {
            match effect {
                Effect::Ask(ask) => {
                    match &ask.request {
                        Request::Send { content } => {
                            self.kept.push_str(&text_of(content));
                            self.sent.push_back(content.clone());
                            continue;
                        }
                        Request::Answer { answer: PermissionAnswer::Deny { reason }, .. } => {
                            self.kept.push_str(reason);
                        }
                        _ => (),
                    }
                    self.asked_for.push_back(ask);
                }
                Effect::Remember(line) => self.kept.push_str(&line),
                _ => (),
            }
        }
    }

    fn call(&self) -> ToolCall {
        let arguments = RawJson::parse(r#"{"command":"ls -la"}"#).unwrap();
        ToolCall::new(CallId::new(format!("c{}", self.asked)), "bash", arguments)
    }

    fn event(&mut self, event: Event) {
        let envelope = Arc::new(self.envelope(event));
        self.view.apply_envelope(&envelope);
        self.input(Input::Session(envelope));
    }

    fn envelope(&self, event: Event) -> Envelope {
        let SessionView { session, epoch, seq, .. } = &self.view;
        let (session, epoch, seq) = (session.clone(), *epoch, seq + 1);
        Envelope { session, epoch, parent: None, seq, at_ms: 0, event }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Key(key) => self.input(Input::Key(key.parse().unwrap())),
            Step::Word => self.word(0),
            Step::LongWord => self.word(1_200),
            Step::Ask => {
                self.asked += 1;
                let (call, reason) = (self.call(), "`ls -la` is new".to_owned());
                let always = self.asked.is_multiple_of(2).then(|| "bash(ls *)".to_owned());
                self.event(Event::PermissionAsked {
                    call,
                    reason,
                    preview: None,
                    always,
                    inquiry: None,
                    during: None,
                    parts: Vec::new(),
                    notable: Vec::new(),
                    dangers: Vec::new(),
                });
            }
            Step::Active => self.event(Event::State(SessionState::Active)),
            Step::Append => {
                if let Some(content) = self.sent.pop_front() {
                    let message = Message::user(content).unwrap();
                    self.event(Event::Appended(message.into()));
                }
            }
            Step::End(complete) => {
                let outcome = if *complete {
                    Outcome::Complete { stop: StopReason::EndTurn }
                } else {
                    Outcome::Cancelled
                };
                let undelivered =
                    self.sent.drain(..).map(|content| Message::user(content).unwrap().into());
                let undelivered = undelivered.collect();
                let usage = Usage::default();
                self.event(Event::TurnEnded {
                    outcome,
                    rounds: 1,
                    usage,
                    undelivered,
                    answer: None,
                });
                self.event(Event::State(SessionState::Idle));
            }
            Step::Late => self.event(Event::State(SessionState::Idle)),
            Step::Decided => {
                let call = self.call().id;
                self.event(Event::PermissionDecided {
                    call,
                    allowed: true,
                    reason: "a rule".to_owned(),
                });
            }
            Step::Shell => self.input(Input::Shell {
                line: "ls".to_owned(),
                output: "a\tfile\nb".to_owned(),
                failure: None,
            }),
            Step::Refused => {
                if let Some(content) = self.sent.pop_back() {
                    let error = RequestError::new(RequestErrorKind::Busy, "it is busy");
                    self.input(Input::Reply {
                        purpose: Purpose::Send(content),
                        result: Err(error),
                    });
                }
            }
            Step::Replies => {
                for ViewRequest { request, purpose } in std::mem::take(&mut self.asked_for) {
                    self.input(Input::Reply { purpose, result: reply(&request) });
                }
            }
            Step::Disconnected => self.input(Input::Disconnected { returns: true }),
            Step::Another(same) => {
                let epoch = Epoch(self.view.epoch.0 + 1);
                let id = if *same { self.view.session.clone() } else { SessionId::new("other") };
                self.view = SessionView::new(id, epoch, None);
                (self.view.seq, self.view.messages) = (1, 3);
                self.input(Input::Snapshot(Box::new(self.view.clone())));
            }
            Step::Lagged => {
                let envelope = self.envelope(Event::State(SessionState::Active));
                self.view.apply_envelope(&envelope);
                let text = "unheard".to_owned();
                let envelope = self.envelope(Event::Text { text });
                self.view.apply_envelope(&envelope);
                self.input(Input::Snapshot(Box::new(self.view.clone())));
            }
            Step::Wait(milliseconds) => {
                self.now += Duration::from_millis((*milliseconds).into());
                self.input(Input::Tick(self.now));
            }
            Step::Size(width, height) => self.size = Size::new(*width, *height),
        }
    }

    /// Pastes a letter that occurs nowhere else, so that nothing can be written into its middle.
    fn word(&mut self, length: usize) {
        let is_written = self.state.layer.as_ref().is_none_or(|layer| {
            layer.unsent_draft().is_some() || matches!(layer, Layer::Confirm { .. })
        });
        let number = u32::try_from(self.words.len()).unwrap();
        let letter = char::from_u32(FIRST_LETTER + number).unwrap();
        let word = letter.to_string() + &"x".repeat(length);
        self.input(Input::Paste(word));
        if is_written {
            self.words.push(letter.to_string());
        }
    }

    fn look(&mut self) -> Result<(), TestCaseError> {
        let frame = self.state.render_frame(self.size);
        let Size { width, height } = self.size;
        prop_assert!(frame.live.len() <= height, "{} rows of {height}", frame.live.len());
        for line in &frame.live {
            prop_assert!(line.width() <= width, "{line:?} is wider than {width}");
        }
        if let Some(cell) = frame.cursor {
            prop_assert!(cell.column < width && cell.row < frame.live.len());
        }
        Ok(())
    }

    fn nothing_is_lost(&self) -> Result<(), TestCaseError> {
        let drafts = self.state.unsent_drafts();
        for word in &self.words {
            let is_kept = self.kept.contains(word)
                || drafts.iter().any(|draft| draft.text.contains(word.as_str()));
            prop_assert!(is_kept, "{word} is lost");
        }
        Ok(())
    }
}

fn text_of(content: &[Content]) -> String {
    let texts = content.iter().map(|part| match part {
        Content::Text(text) => text.text.as_str(),
        _ => "",
    });
    texts.collect()
}

/// Each case is a whole session.
const CASES: u32 = 100;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn nothing_written_is_lost(steps in proptest::collection::vec(step(false), 0..60)) {
        let mut run = Run::new(None);
        for step in &steps {
            run.step(step);
            run.look()?;
            run.nothing_is_lost()?;
        }
    }

    #[test]
    fn every_frame_fits(steps in proptest::collection::vec(step(true), 0..80), first in any::<bool>()) {
        let mut run = Run::new(first.then(FoundProviders::default));
        for step in &steps {
            run.step(step);
            run.look()?;
        }
    }
}
