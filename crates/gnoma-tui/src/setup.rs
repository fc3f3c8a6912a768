//! The first start: no provider is configured, so one is chosen from what was found, tried and
//! stored. A key that is entered is never shown. What is tried and stored is done elsewhere.

use gnoma_core::{
    Secret,
    protocol::{ConnectBy, Connection, FoundProviders, TypedKey},
};

use crate::{
    keymap::Action,
    picker::{Picked, Picker, Row, cut},
    text::{Ink, Line, Span, Style},
};

/// What was done before the first start is offered.
pub const LOOKED_FOR: &str =
    "gnoma found no API key in the environment, and no Ollama or llama.cpp on this machine";

/// Bytes of a key.
const MAX_KEY_BYTES: usize = 4_096;

/// What a key did to the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupStep {
    /// It goes on.
    Open,
    /// It goes on, and this is to be read out.
    Told(Vec<Line>),
    /// This is to be tried; [`Setup::tried`] takes what became of it.
    Try(Connection),
    /// This is to be stored; [`Setup::kept`] takes what became of it.
    Keep(Connection),
    /// It is over: this provider is asked from now on.
    Use(String),
    /// The demonstration is wanted.
    Demo,
    /// The person goes on without a provider.
    Left,
}

/// What can be chosen at the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Ready(Connection),
    /// A key for this provider is to be entered.
    Enter(String),
    Demo,
}

#[derive(Clone, Debug)]
enum Stage {
    Choosing,
    Entering {
        provider: String,
        key: Secret<String>,
    },
    Trying(Connection),
    /// It does not work.
    Failed {
        connection: Connection,
        why: String,
    },
    /// It works, and waits to be stored.
    Works {
        connection: Connection,
        answer: String,
    },
    /// It works and could not be stored.
    Unkept {
        connection: Connection,
        why: String,
    },
}

/// The guided start.
#[derive(Clone, Debug)]
pub struct Setup {
    choices: Vec<Choice>,
    list: Picker,
    stage: Stage,
}

impl Setup {
    /// A start from what was found; `by_line` for those who write lines and hear what comes of them.
    #[must_use]
    pub fn new(found: &FoundProviders, by_line: bool) -> Self {
        let offers = offers(found);
        let rows = offers.iter().map(|(row, _)| row.clone()).collect();
        Self {
            choices: offers.into_iter().map(|(_, choice)| choice).collect(),
            list: Picker::new("Set up a provider", rows).by_line(by_line),
            stage: Stage::Choosing,
        }
    }

    /// What is typed now is a key and must not be shown or kept.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.stage, Stage::Entering { .. })
    }

    /// Does what a key asks for.
    pub fn act(&mut self, action: Action) -> SetupStep {
        match &mut self.stage {
            Stage::Choosing => match self.list.act(action) {
                Picked::Open => SetupStep::Open,
                Picked::Told(lines) => SetupStep::Told(lines),
                Picked::Nothing => SetupStep::Left,
                Picked::Row(row) => self.take(row),
            },
            Stage::Entering { provider, key } => match action {
                Action::Accept if !key.expose().trim().is_empty() => {
                    let by = ConnectBy::Key(TypedKey(key.expose().trim().to_owned()));
                    let provider = std::mem::take(provider);
                    self.attempt(Connection { provider, by })
                }
                Action::DeleteLeft => {
                    let mut shorter = key.expose().clone();
                    shorter.pop();
                    *key = Secret::new(shorter);
                    SetupStep::Open
                }
                Action::DeleteToLineStart => {
                    *key = Secret::new(String::new());
                    SetupStep::Open
                }
                Action::Close | Action::Stop | Action::Interrupt => self.back(),
                _ => SetupStep::Open,
            },
            Stage::Trying(_) if is_left(action) => self.back(),
            Stage::Trying(_) => SetupStep::Open,
            Stage::Failed { connection, .. } => match action {
                Action::Accept => {
                    let again = connection.clone();
                    self.attempt(again)
                }
                Action::Close | Action::Stop | Action::Interrupt => self.back(),
                _ => SetupStep::Open,
            },
            Stage::Works { connection, .. } | Stage::Unkept { connection, .. } => match action {
                Action::Accept => SetupStep::Keep(connection.clone()),
                Action::Close | Action::Stop | Action::Interrupt => self.back(),
                _ => SetupStep::Open,
            },
        }
    }

    /// Takes what was typed or pasted.
    pub fn type_text(&mut self, text: &str) {
        match &mut self.stage {
            Stage::Choosing => self.list.type_text(text),
            Stage::Entering { key, .. } => {
                let mut longer = key.expose().clone();
                longer.extend(text.chars().filter(|c| !c.is_control() && !c.is_whitespace()));
                if longer.len() <= MAX_KEY_BYTES {
                    *key = Secret::new(longer);
                }
            }
            Stage::Trying(_)
            | Stage::Failed { .. }
            | Stage::Works { .. }
            | Stage::Unkept { .. } => {}
        }
    }

    /// What became of the try, unless it was given up.
    pub fn tried(&mut self, tried: &Connection, outcome: Result<String, String>) {
        if let Stage::Trying(connection) = &self.stage
            && connection == tried
        {
            let connection = connection.clone();
            self.stage = match outcome {
                Ok(answer) => Stage::Works { connection, answer },
                Err(why) => Stage::Failed { connection, why },
            };
        }
    }

    /// What became of storing.
    pub fn kept(&mut self, kept: &Connection, outcome: Result<String, String>) -> SetupStep {
        let (Stage::Works { connection, .. } | Stage::Unkept { connection, .. }) = &self.stage
        else {
            return SetupStep::Open;
        };
        if connection != kept {
            return SetupStep::Open;
        }
        let connection = connection.clone();
        match outcome {
            Ok(_) => SetupStep::Use(connection.provider),
            Err(why) => {
                self.stage = Stage::Unkept { connection, why };
                SetupStep::Open
            }
        }
    }

    fn take(&mut self, row: usize) -> SetupStep {
        match self.choices.get(row).cloned() {
            None => SetupStep::Open,
            Some(Choice::Demo) => SetupStep::Demo,
            Some(Choice::Ready(connection)) => self.attempt(connection),
            Some(Choice::Enter(provider)) => {
                self.stage = Stage::Entering { provider, key: Secret::new(String::new()) };
                SetupStep::Open
            }
        }
    }

    fn attempt(&mut self, connection: Connection) -> SetupStep {
        self.stage = Stage::Trying(connection.clone());
        SetupStep::Try(connection)
    }

    fn back(&mut self) -> SetupStep {
        self.stage = Stage::Choosing;
        SetupStep::Open
    }

    /// The start in at most `height` lines, and the column of the cursor in the first of them.
    #[must_use]
    pub fn lines(&self, width: usize, height: usize) -> (Vec<Line>, Option<usize>) {
        let (text, hint) = match &self.stage {
            Stage::Choosing => {
                let (lines, cursor) = self.list.lines(width, height);
                return (lines, Some(cursor));
            }
            Stage::Entering { provider, key } => return entering(provider, key, width, height),
            Stage::Trying(connection) => (plain(format!("trying {}…", connection.provider)), ""),
            Stage::Failed { why, .. } => (
                Line::from([Span::new("✗ ", Style::of(Ink::Bad)), plain_span(why)]),
                "Enter retry · Esc back",
            ),
            Stage::Works { answer, connection } => (
                Line::from([
                    Span::new("✓ ", Style::of(Ink::Good)),
                    plain_span(&format!("{} works: {answer}", connection.provider)),
                ]),
                "Enter save and start · Esc back",
            ),
            Stage::Unkept { why, .. } => (
                Line::from([Span::new("✗ ", Style::of(Ink::Bad)), plain_span(why)]),
                "Enter save again · Esc back",
            ),
        };
        let mut lines = text.wrap(width, &Line::new("  ", Style::default()));
        lines.truncate(height.saturating_sub(1).max(1));
        if height > lines.len() {
            lines.push(cut(Line::new(hint, Style::of(Ink::Dim)), width));
        }
        (lines, None)
    }

    /// What there is to choose from, while there is; for those who hear it.
    #[must_use]
    pub fn read_out(&self) -> Vec<Line> {
        match self.stage {
            Stage::Choosing => self.list.read_out(),
            Stage::Entering { .. }
            | Stage::Trying(_)
            | Stage::Failed { .. }
            | Stage::Works { .. }
            | Stage::Unkept { .. } => Vec::new(),
        }
    }

    /// Where it stands, in one line; for those who hear it.
    #[must_use]
    pub fn spoken(&self) -> String {
        match &self.stage {
            Stage::Choosing => self.list.spoken(),
            Stage::Entering { provider, .. } => format!("enter the key for {provider}"),
            Stage::Trying(connection) => format!("trying {}", connection.provider),
            Stage::Failed { why, .. } | Stage::Unkept { why, .. } => why.clone(),
            Stage::Works { answer, .. } => format!("it works: {answer}. Press Enter to save it"),
        }
    }
}

/// A key that goes back.
fn is_left(action: Action) -> bool {
    matches!(action, Action::Close | Action::Stop | Action::Interrupt)
}

fn offers(found: &FoundProviders) -> Vec<(Row, Choice)> {
    let mut offers = Vec::new();
    for key in &found.keys {
        let by = ConnectBy::Variable(key.variable.clone());
        let ready = Choice::Ready(Connection { provider: key.provider.clone(), by });
        offers.push((Row::new(&key.provider, format!("the key in {}", key.variable)), ready));
    }
    for server in &found.servers {
        let about = format!("{} · {} models", server.address, server.models);
        let by = ConnectBy::Address(server.address.clone());
        let ready = Choice::Ready(Connection { provider: server.provider.clone(), by });
        offers.push((Row::new(&server.provider, about), ready));
    }
    for provider in &found.providers {
        offers.push((Row::new(provider, "enter a key"), Choice::Enter(provider.clone())));
    }
    offers.push((
        Row::new("demo", "no provider needed: a scripted turn shows how it works"),
        Choice::Demo,
    ));
    offers
}

fn entering(
    provider: &str,
    key: &Secret<String>,
    width: usize,
    height: usize,
) -> (Vec<Line>, Option<usize>) {
    // Only that there is something is shown, not how much.
    let dots = if key.expose().is_empty() { "" } else { "••••••••" };
    let line = Line::from([
        Span::new(format!("key for {provider} › "), Style::of(Ink::Accent).bold()),
        Span::new(dots, Style::default()),
    ]);
    let line = cut(line, width);
    let cursor = line.width().min(width.saturating_sub(1));
    let hint = Line::new("type or paste it (hidden) · Enter test · Esc back", Style::of(Ink::Dim));
    let mut lines = vec![line, cut(hint, width)];
    lines.truncate(height.max(1));
    (lines, Some(cursor))
}

fn plain(text: String) -> Line {
    Line::new(text, Style::default())
}

fn plain_span(text: &str) -> Span {
    Span::new(text.to_owned(), Style::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnoma_core::protocol::{FoundKey, FoundServer};

    fn found() -> FoundProviders {
        FoundProviders {
            keys: vec![FoundKey {
                provider: "anthropic".into(),
                variable: "ANTHROPIC_API_KEY".into(),
            }],
            servers: vec![FoundServer {
                provider: "ollama".into(),
                address: "http://localhost:11434".into(),
                models: 3,
            }],
            providers: vec!["openai".into()],
        }
    }

    fn shown(setup: &Setup) -> String {
        setup.lines(60, 10).0.iter().map(|line| line.plain() + "\n").collect()
    }

    #[test]
    fn what_was_found_is_tried_and_stored() {
        let mut setup = Setup::new(&found(), false);
        let SetupStep::Try(connection) = setup.act(Action::Accept) else {
            panic!("nothing is tried")
        };
        assert_eq!(connection.by, ConnectBy::Variable("ANTHROPIC_API_KEY".to_owned()));
        setup.tried(&connection, Ok("12 models".to_owned()));
        assert!(shown(&setup).starts_with("✓ anthropic works: 12 models\n"));
        assert_eq!(setup.act(Action::Accept), SetupStep::Keep(connection.clone()));
        let done = SetupStep::Use("anthropic".to_owned());
        assert_eq!(setup.kept(&connection, Ok(String::new())), done);
    }

    #[test]
    fn a_key_that_is_entered_is_never_shown() {
        let mut setup = Setup::new(&found(), false);
        setup.type_text("openai");
        setup.act(Action::Accept);
        setup.type_text("made-up-key\n");
        assert!(setup.is_secret());
        assert!(!shown(&setup).contains("made"));
        assert!(!format!("{setup:?}").contains("made"));
        let SetupStep::Try(connection) = setup.act(Action::Accept) else {
            panic!("no key is tried")
        };
        assert_eq!(connection.by, ConnectBy::Key(TypedKey("made-up-key".to_owned())));
        setup.tried(&connection, Err("the key was refused".to_owned()));
        assert!(shown(&setup).contains("the key was refused"));
        assert!(matches!(setup.act(Action::Accept), SetupStep::Try(_)));
    }

    #[test]
    fn the_demo_needs_nothing() {
        let mut setup = Setup::new(&FoundProviders::default(), false);
        assert_eq!(setup.act(Action::Accept), SetupStep::Demo);
        assert_eq!(
            Setup::new(&FoundProviders::default(), false).act(Action::Close),
            SetupStep::Left
        );
    }
}
