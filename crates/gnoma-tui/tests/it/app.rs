//! What keys and events do and what is seen of it: inputs in, wishes and screens out.

mod asking;
mod commands;
mod life;
mod stream;
mod writing;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Command, Content, Event, Image, Message, RawJson, StopReason, ToolCall, Usage,
    message::ModelRef,
    session::{Outcome, PermissionAnswer, PermissionMode, Routing, Scope, SessionState},
};
use gnoma_tui::{
    Input, Size,
    app::{Options, State},
    composer::Draft,
    desk::{
        By, Connection, Desk, Found, FoundKey, FoundServer, Offer, PointRow, SessionRow,
        SettingRow, Topic,
    },
    history::History,
    keymap::Keymap,
    run::Face as _,
    status::Facts,
    wish::{Again, Wish},
};

/// What the desk was asked to do.
type Log = Arc<Mutex<Vec<String>>>;

struct Desktop {
    log: Log,
    works: bool,
}

fn models() -> Vec<Offer> {
    ["anthropic/opus", "anthropic/haiku", "ollama/qwen"]
        .map(|name| Offer {
            name: name.to_owned(),
            about: "200k".to_owned(),
            current: name.ends_with("haiku"),
            arm: name.strip_prefix("anthropic/").map(arm),
        })
        .into()
}

impl Desktop {
    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }
}

impl Desk for Desktop {
    fn window(&mut self, _: &str) -> Option<u64> {
        Some(200_000)
    }
    fn known_models(&mut self) -> Vec<Offer> {
        models().into_iter().filter(|offer| offer.arm.is_some()).collect()
    }
    fn models(&mut self) -> Vec<Offer> {
        models()
    }
    fn providers(&mut self) -> Vec<Offer> {
        vec![Offer { name: "ollama".to_owned(), ..Offer::default() }]
    }
    fn profiles(&mut self) -> Vec<Offer> {
        Vec::new()
    }
    fn sessions(&mut self) -> Vec<SessionRow> {
        let row = |id: &str, title: &str| SessionRow {
            id: id.to_owned(),
            title: title.to_owned(),
            when: "2 h ago".to_owned(),
        };
        vec![row("s2", "Fix the parser"), row("s1", "Write docs")]
    }
    fn points(&mut self) -> Vec<PointRow> {
        let prompt = "Fix the parser".to_owned();
        vec![PointRow { turns: 1, prompt, when: "5 min ago".to_owned(), files: 2 }]
    }
    fn settings(&mut self) -> Vec<SettingRow> {
        let row = |key: &str, value: &str, origin: &str, choices: &[&str]| SettingRow {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: origin.to_owned(),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        };
        vec![
            row("provider.timeout_s", "60", "built in", &[]),
            row("tui.vim", "false", "~/.config/gnoma/config.toml", &["true", "false"]),
        ]
    }
    fn set(&mut self, key: &str, value: &str) -> Result<String, String> {
        self.note(format!("set {key} = {value}"));
        Ok(format!("{key} = {value}, saved"))
    }
    fn changes(&mut self) -> Result<String, String> {
        Ok("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n".to_owned())
    }
    fn export(&mut self, path: &str) -> Result<String, String> {
        self.note(format!("export {path}"));
        Ok(format!("written to {path}"))
    }
    fn rule_place(&mut self, scope: Scope) -> Result<String, String> {
        match scope {
            Scope::Session => Ok(String::new()),
            Scope::Project => Err("this project is not trusted".to_owned()),
            Scope::User => Ok("~/.config/gnoma/config.toml".to_owned()),
        }
    }
    fn keep_rule(&mut self, rule: &str, scope: Scope) -> Result<String, String> {
        if rule.contains('(') != rule.ends_with(')') {
            return Err(format!("`{rule}` is no rule"));
        }
        match scope {
            Scope::Session => Ok(String::new()),
            Scope::Project => Err("the file cannot be written".to_owned()),
            Scope::User => {
                self.note(format!("keep {rule}"));
                Ok(format!("`{rule}` is kept"))
            }
        }
    }
    fn explain(&mut self, topic: Topic) -> Result<String, String> {
        Ok(format!("about {topic:?}"))
    }
    fn test(&mut self, connection: &Connection) -> Result<String, String> {
        self.note(format!("test {}", connection.provider));
        if self.works { Ok("12 models".to_owned()) } else { Err("the key was refused".to_owned()) }
    }
    fn keep(&mut self, connection: &Connection) -> Result<String, String> {
        let by = match &connection.by {
            By::Key(key) => key.expose().clone(),
            By::Variable(name) | By::Address(name) => name.clone(),
        };
        self.note(format!("keep {} {by}", connection.provider));
        Ok("saved".to_owned())
    }
}

/// A face, what it wished for, and what has scrolled away.
struct Scene {
    state: State,
    now: Instant,
    size: Size,
    wishes: Vec<Wish>,
    finished: Vec<String>,
    log: Log,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let (now, log) = (Instant::now(), Log::default());
        let facts = Facts {
            version: "0.1.0".to_owned(),
            folder: "~/src/gnoma".to_owned(),
            branch: Some("main".to_owned()),
            model: Some("anthropic/haiku".to_owned()),
            window: 200_000,
            ..Facts::default()
        };
        let mut options = Options {
            now,
            facts,
            keymap: Keymap::built_in(),
            history: History::from_lines("\"first prompt\"\n\"second prompt\"\n"),
            theme: "gnoma".to_owned(),
            vim: false,
            accessible: false,
            drafts: Vec::new(),
            found: None,
        };
        change(&mut options);
        let desk = Desktop { log: Arc::clone(&log), works: true };
        let state = State::new(options, Box::new(desk));
        let size = Size::new(80, 24);
        let mut scene = Self { state, now, size, wishes: Vec::new(), finished: Vec::new(), log };
        scene.input(Input::Tick(now));
        scene.input(Input::Resize(size));
        scene.look();
        scene.wishes.clear();
        scene
    }

    fn input(&mut self, input: Input) -> &mut Self {
        let wishes = self.state.on(input);
        self.wishes.extend(wishes);
        self
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
        self.input(Input::Session(event))
    }

    fn wait(&mut self, milliseconds: u64) -> &mut Self {
        self.now += Duration::from_millis(milliseconds);
        self.input(Input::Tick(self.now))
    }

    /// A turn that has begun with this prompt.
    fn running(&mut self, prompt: &str) -> &mut Self {
        self.send(prompt);
        self.event(Event::State(SessionState::Active)).appended(prompt);
        self.wishes.clear();
        self
    }

    fn appended(&mut self, text: &str) -> &mut Self {
        self.event(Event::Appended(user(text)))
    }

    fn ends(&mut self, outcome: Outcome, undelivered: &[&str]) -> &mut Self {
        let undelivered = undelivered.iter().map(|text| user(text)).collect();
        let usage = Usage { input: 1_000, cache_read: 9_000, output: 200, ..Usage::default() };
        self.event(Event::TurnEnded { outcome, rounds: 1, usage, undelivered });
        self.event(Event::State(SessionState::Idle))
    }

    fn asks(&mut self, id: &str, command: &str) -> &mut Self {
        let arguments = RawJson::of(&serde_json::json!({ "command": command })).unwrap();
        let call = ToolCall::new(CallId::new(id), "bash", arguments);
        let reason = "`rm -rf build` removes files".to_owned();
        let always = Some("bash(rm -rf build)".to_owned());
        self.event(Event::PermissionAsked { call, reason, preview: None, always })
    }

    fn look(&mut self) -> gnoma_tui::Frame {
        let frame = self.state.frame(self.size);
        self.finished.extend(frame.finished.iter().map(|line| line.plain().trim_end().to_owned()));
        frame
    }

    /// The live part, with a mark where the cursor is.
    fn live(&mut self) -> String {
        let frame = self.look();
        let mut text = String::new();
        for (row, line) in frame.live.iter().enumerate() {
            let mut line = line.plain();
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

    fn took(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }

    /// The texts that were sent.
    fn sent(&mut self) -> Vec<String> {
        let sent = self.took().into_iter().filter_map(|wish| match wish {
            Wish::Tell(Command::Send { content }) => Some(text_of(&content)),
            _ => None,
        });
        sent.collect()
    }

    /// The other things that the session was told.
    fn told(&mut self) -> Vec<Command> {
        let told = self.took().into_iter().filter_map(|wish| match wish {
            Wish::Tell(command) => Some(command),
            _ => None,
        });
        told.collect()
    }

    fn next(&mut self) -> Option<Again> {
        assert_eq!(self.took().last(), Some(&Wish::Quit));
        self.state.take_again()
    }

    fn logged(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn written(&self) -> String {
        self.state.drafts().swap_remove(0).text
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

fn found() -> Found {
    let server = ("ollama".to_owned(), "http://localhost:11434".to_owned());
    Found {
        keys: vec![FoundKey {
            provider: "anthropic".to_owned(),
            variable: "ANTHROPIC_API_KEY".to_owned(),
        }],
        servers: vec![FoundServer { provider: server.0, address: server.1, models: 3 }],
        providers: vec!["openai".to_owned()],
    }
}
