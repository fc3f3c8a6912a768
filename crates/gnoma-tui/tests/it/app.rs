//! What keys and events do and what is seen of it: inputs in, effects and screens out.

mod asking;
mod attached;
mod commands;
mod life;
mod panes;
mod stream;
mod writing;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Content, Event, Image, Message, RawJson, StopReason, ToolCall, Usage,
    message::ModelRef,
    protocol::{
        Choice, CommandInfo, ConnectBy, Envelope, Epoch, FoundKey, FoundProviders, FoundServer,
        Reply, Request, RequestError, RequestErrorKind, ResumedFrom, RewindPoint, SessionInfo,
        SessionView, Setting, Switch, TaskRequest, TaskResumeChoice, Topic, TypedKey, WindowUse,
    },
    session::{
        Inquiry, NoticeLevel, Outcome, PermissionAnswer, PermissionMode, Routing, Scope,
        SessionState,
    },
    store::{SessionFacts, SessionId},
};
use gnoma_tui::{
    Input, Size,
    app::{AppOptions, State},
    ask::ViewRequest,
    composer::Draft,
    effect::Effect,
    history::History,
    keymap::Keymap,
    run::View as _,
    status::StartFacts,
};

/// What the host was asked to do.
type Log = Arc<Mutex<Vec<String>>>;

fn models() -> Vec<Choice> {
    ["anthropic/opus", "anthropic/haiku", "ollama/qwen"]
        .map(|name| Choice {
            name: name.to_owned(),
            about: "200k".to_owned(),
            current: name.ends_with("haiku"),
            arm: name.strip_prefix("anthropic/").map(arm),
            window: Some(200_000),
        })
        .into()
}

fn known_models() -> Vec<Choice> {
    models().into_iter().filter(|choice| choice.arm.is_some()).collect()
}

/// What the host says to a request, from a table.
fn reply(request: &Request, log: &Log) -> Result<Reply, RequestError> {
    let note = |text: String| log.lock().unwrap().push(text);
    let text = |text: &str| Ok(Reply::Text(text.to_owned()));
    let refused = |cause: &str| Err(RequestError::new(RequestErrorKind::Refused, cause));
    match request {
        Request::Models { .. } => Ok(Reply::Choices(models())),
        Request::Providers => {
            Ok(Reply::Choices(vec![Choice { name: "ollama".to_owned(), ..Choice::default() }]))
        }
        Request::Profiles => Ok(Reply::Choices(Vec::new())),
        Request::Stored { .. } => {
            Ok(Reply::Stored(vec![stored("s2", "Fix the parser"), stored("s1", "Write docs")]))
        }
        Request::Points => {
            let prompt = "Fix the parser".to_owned();
            Ok(Reply::Points(vec![RewindPoint { turns: 1, prompt, at_ms: 0, files: Some(2) }]))
        }
        Request::Settings => {
            let row = |key: &str, value: &str, origin: &str, choices: &[&str]| Setting {
                key: key.to_owned(),
                value: value.to_owned(),
                origin: origin.to_owned(),
                choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            };
            Ok(Reply::Settings(vec![
                row("provider.timeout_s", "60", "built in", &[]),
                row("tui.vim", "false", "~/.config/gnoma/config.toml", &["true", "false"]),
            ]))
        }
        Request::SetSetting { key, value } => {
            note(format!("set {key} = {value}"));
            text(&format!("{key} = {value}, saved"))
        }
        Request::Changes => text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"),
        Request::Export { path } => {
            note(format!("export {}", path.display()));
            text(&format!("written to {}", path.display()))
        }
        Request::KeepRule { rule, .. } if rule.contains('(') != rule.ends_with(')') => {
            refused(&format!("`{rule}` is no rule"))
        }
        Request::KeepRule { scope: Scope::Session, .. } => Ok(Reply::Done),
        Request::KeepRule { scope: Scope::Project, dry_run: true, .. } => {
            refused("this project is not trusted")
        }
        Request::KeepRule { scope: Scope::Project, .. } => refused("the file cannot be written"),
        Request::KeepRule { dry_run: true, .. } => text("~/.config/gnoma/config.toml"),
        Request::KeepRule { rule, .. } => {
            note(format!("keep {rule}"));
            text(&format!("`{rule}` is kept"))
        }
        Request::Explain(Topic::Context) => Ok(Reply::Window {
            used: WindowUse {
                system: 500,
                tools: 2_000,
                instructions: 0,
                history: 3_000,
                results: 4_500,
            },
            sources: String::new(),
        }),
        Request::Explain(topic) => text(&format!("about {topic:?}")),
        Request::Task(TaskRequest::List) => {
            let task = |name: &str| Choice { name: name.to_owned(), ..Choice::default() };
            Ok(Reply::Choices(vec![task("release VERSION [REMOTE]"), task("standup [DAYS]")]))
        }
        Request::Task(TaskRequest::Complete { words }) => {
            let known: &[&str] = match words.as_str() {
                "" => &["release", "standup"],
                "release" => &["patch", "minor", "a b"],
                _ => &[],
            };
            let choice = |name: &&str| Choice { name: (*name).to_owned(), ..Choice::default() };
            Ok(Reply::Choices(known.iter().map(choice).collect()))
        }
        Request::Task(TaskRequest::Draft { .. }) => {
            text("--- /dev/null\n+++ b/t.md\n@@ -0,0 +1 @@\n+## One step\n")
        }
        Request::TryProvider(connection) => {
            note(format!("test {}", connection.provider));
            text("12 models")
        }
        Request::AddProvider(connection) => {
            let by = match &connection.by {
                ConnectBy::Key(TypedKey(by))
                | ConnectBy::Variable(by)
                | ConnectBy::Address(by)
                | ConnectBy::AddressAndKey { key: TypedKey(by), .. } => by,
            };
            note(format!("keep {} {by}", connection.provider));
            text("saved")
        }
        _ => Ok(Reply::Done),
    }
}

fn stored(id: &str, title: &str) -> SessionFacts {
    SessionFacts {
        id: SessionId::new(id),
        project: String::new(),
        title: title.to_owned(),
        created_ms: 0,
        changed_ms: 0,
        messages: 1,
        bytes: 1,
        usage: Usage::default(),
        forked_from: None,
        held_by: None,
        child: None,
    }
}

/// A face, what it wished for, and what has scrolled away.
struct Scene {
    state: State,
    now: Instant,
    size: Size,
    effects: Vec<Effect>,
    finished: Vec<String>,
    log: Log,
    /// Replies come when the test says so.
    is_slow: bool,
    late: VecDeque<ViewRequest>,
    view: SessionView,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut AppOptions)) -> Self {
        let mut scene = Self::before_any_event(change);
        scene.event(Event::Models { models: known_models() });
        scene.look();
        scene.effects.clear();
        scene
    }

    /// A face to which its session has said nothing yet.
    fn before_any_event(change: impl FnOnce(&mut AppOptions)) -> Self {
        let (now, log) = (Instant::now(), Log::default());
        let facts = StartFacts {
            version: "0.1.0".to_owned(),
            folder: "~/src/gnoma".to_owned(),
            branch: Some("main".to_owned()),
            model: Some("anthropic/haiku".to_owned()),
            window: 200_000,
            ..StartFacts::default()
        };
        let mut options = AppOptions {
            now,
            now_ms: 0,
            facts,
            keymap: Keymap::built_in(),
            history: History::from_lines("\"first prompt\"\n\"second prompt\"\n"),
            theme: "gnoma".to_owned(),
            vim: false,
            accessible: false,
            drafts: Vec::new(),
            is_served: false,
            debug_log: None,
        };
        change(&mut options);
        let state = State::new(options);
        let size = Size::new(80, 24);
        let (effects, finished, late) = (Vec::new(), Vec::new(), VecDeque::new());
        let view = SessionView::default();
        let mut scene =
            Self { state, now, size, effects, finished, log, is_slow: false, late, view };
        scene.input(Input::Tick(now));
        scene.input(Input::Resize(size));
        scene
    }

    /// A face for which no provider was found that could be asked.
    fn without_provider(accessible: bool) -> Self {
        let mut scene = Self::with(|options| options.accessible = accessible);
        let info = SessionInfo { found: Some(found()), ..info() };
        scene.event(Event::Info(Box::new(info))).look();
        scene.effects.clear();
        scene
    }

    fn input(&mut self, input: Input) -> &mut Self {
        for effect in self.state.on_input(input) {
            if let Effect::Ask(ask) = &effect {
                self.late.push_back(ask.clone());
            }
            self.effects.push(effect);
        }
        if !self.is_slow {
            self.replies();
        }
        self
    }

    /// The host answers what it was asked.
    fn replies(&mut self) -> &mut Self {
        while let Some(ViewRequest { request, purpose }) = self.late.pop_front() {
            let result = reply(&request, &self.log);
            self.input(Input::Reply { purpose, result });
        }
        self
    }

    /// The host refuses what it was asked last.
    fn refuses(&mut self) -> &mut Self {
        let ViewRequest { purpose, .. } = self.late.pop_back().expect("something was asked");
        let error = RequestError::new(RequestErrorKind::Busy, "it is busy");
        self.input(Input::Reply { purpose, result: Err(error) })
    }

    fn slow(&mut self) -> &mut Self {
        self.is_slow = true;
        self
    }

    /// Another life of the session, or another session, with that many messages.
    fn another(&mut self, session: &str, epoch: u64, messages: u64) -> &mut Self {
        let session = SessionId::new(session);
        self.view = SessionView::new(session, Epoch(epoch), None);
        (self.view.seq, self.view.messages, self.view.info) = (1, messages, info());
        self.view.models = known_models();
        self.input(Input::Snapshot(Box::new(self.view.clone())))
    }

    /// What the view does not hear of because it fell behind.
    fn unheard(&mut self, event: Event) -> &mut Self {
        let envelope = self.envelope(event);
        self.view.apply_envelope(&envelope);
        self
    }

    fn catches_up(&mut self) -> &mut Self {
        self.input(Input::Snapshot(Box::new(self.view.clone())))
    }

    fn envelope(&self, event: Event) -> Envelope {
        let SessionView { session, epoch, seq, .. } = &self.view;
        let (session, epoch, seq) = (session.clone(), *epoch, seq + 1);
        Envelope { session, epoch, parent: None, seq, at_ms: 0, event }
    }

    /// Presses keys that are named in a list with spaces.
    fn keys(&mut self, keys: &str) -> &mut Self {
        for key in keys.split(' ') {
            self.input(Input::Key(key.parse().unwrap()));
        }
        self
    }

    /// Types text, letter by letter.
    fn write(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            let name = if c == ' ' { "space".to_owned() } else { c.to_string() };
            self.input(Input::Key(name.parse().unwrap()));
        }
        self
    }

    fn send(&mut self, text: &str) -> &mut Self {
        self.write(text).keys("enter")
    }

    fn event(&mut self, event: Event) -> &mut Self {
        let envelope = Arc::new(self.envelope(event));
        self.view.apply_envelope(&envelope);
        self.input(Input::Session(envelope))
    }

    fn wait(&mut self, milliseconds: u64) -> &mut Self {
        self.now += Duration::from_millis(milliseconds);
        self.input(Input::Tick(self.now))
    }

    /// A turn that has begun with this prompt.
    fn running(&mut self, prompt: &str) -> &mut Self {
        self.send(prompt);
        self.event(Event::State(SessionState::Active)).appended(prompt);
        self.effects.clear();
        self
    }

    fn appended(&mut self, text: &str) -> &mut Self {
        self.event(Event::Appended(user(text)))
    }

    fn ends(&mut self, outcome: Outcome, undelivered: &[&str]) -> &mut Self {
        let undelivered = undelivered.iter().map(|text| user(text)).collect();
        let usage = Usage { input: 1_000, cache_read: 9_000, output: 200, ..Usage::default() };
        self.event(Event::TurnEnded { outcome, rounds: 1, usage, undelivered, answer: None });
        self.event(Event::State(SessionState::Idle))
    }

    fn asks(&mut self, id: &str, command: &str) -> &mut Self {
        let arguments = RawJson::from_value(&serde_json::json!({ "command": command })).unwrap();
        let call = ToolCall::new(CallId::new(id), "bash", arguments);
        let reason = "`rm -rf build` removes files".to_owned();
        let always = Some("bash(rm -rf build)".to_owned());
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
        })
    }

    fn look(&mut self) -> gnoma_tui::Frame {
        let frame = self.state.render_frame(self.size);
        self.finished
            .extend(frame.finished.iter().map(|line| line.plain_text().trim_end().to_owned()));
        frame
    }

    /// The live part, with a mark where the cursor is.
    fn live(&mut self) -> String {
        let frame = self.look();
        let mut text = String::new();
        for (row, line) in frame.live.iter().enumerate() {
            let mut line = line.plain_text();
            if let Some(cell) = frame.cursor.filter(|cell| cell.row == row) {
                let byte =
                    line.char_indices().nth(cell.column).map_or(line.len(), |(byte, _)| byte);
                line.insert(byte, '▏');
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// All that was ever finished.
    fn said(&mut self) -> String {
        self.look();
        self.finished.join("\n")
    }

    fn took(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The texts that were sent.
    fn sent(&mut self) -> Vec<String> {
        let sent = self.took().into_iter().filter_map(|effect| match effect {
            Effect::Ask(ViewRequest { request: Request::Send { content }, .. }) => {
                Some(text_of(&content))
            }
            _ => None,
        });
        sent.collect()
    }

    /// What the session was asked to do.
    fn told(&mut self) -> Vec<Request> {
        let is_order = |request: &Request| {
            matches!(
                request,
                Request::Send { .. }
                    | Request::Answer { .. }
                    | Request::Cancel
                    | Request::SetMode { .. }
                    | Request::Pin { .. }
                    | Request::Rate { .. }
                    | Request::Compact { .. }
                    | Request::EditSummary { .. }
                    | Request::UndoCompaction
            )
        };
        self.requests().into_iter().filter(is_order).collect()
    }

    fn requests(&mut self) -> Vec<Request> {
        let asked = self.took().into_iter().filter_map(|effect| match effect {
            Effect::Ask(ask) => Some(ask.request),
            _ => None,
        });
        asked.collect()
    }

    /// What takes the session's place.
    fn next(&mut self) -> Option<Request> {
        self.requests().into_iter().next_back()
    }

    fn logged(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn written(&self) -> String {
        self.state.unsent_drafts().swap_remove(0).text
    }
}

/// A model of Anthropic's.
fn arm(model: &str) -> ModelRef {
    ModelRef { provider: "anthropic".to_owned(), model: model.to_owned() }
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user_text(text))
}

fn text_of(content: &[Content]) -> String {
    let text = |part: &Content| match part {
        Content::Text(text) => text.text.clone(),
        other => panic!("{other:?} was sent"),
    };
    content.iter().map(text).collect()
}

fn complete() -> Outcome {
    Outcome::Complete { stop: StopReason::EndTurn }
}

fn image() -> Image {
    Image::from_bytes("image/png", b"made up")
}

fn info() -> SessionInfo {
    SessionInfo {
        version: "0.1.0".to_owned(),
        folder: "~/src/gnoma".to_owned(),
        branch: Some("main".to_owned()),
        model: Some("anthropic/haiku".to_owned()),
        window: Some(200_000),
        is_kept: true,
        connectable: vec!["mistral".to_owned(), "openai".to_owned()],
        ..SessionInfo::default()
    }
}

fn found() -> FoundProviders {
    let server = ("ollama".to_owned(), "http://localhost:11434".to_owned());
    FoundProviders {
        keys: vec![FoundKey {
            provider: "anthropic".to_owned(),
            variable: "ANTHROPIC_API_KEY".to_owned(),
        }],
        servers: vec![FoundServer { provider: server.0, address: server.1, models: 3 }],
        providers: vec!["openai".to_owned()],
    }
}
