//! First-start setup: no provider is configured, so one is chosen from what was found, tried and stored. What does not
//! work is corrected on the spot. A key that is entered is never shown. What is tried and stored is done elsewhere.

mod draft;
mod entry;
mod offers;
mod stage;

use gnoma_core::{
    Secret,
    protocol::{ConnectBy, Connection, FoundProviders, RequestError},
};

use self::{
    draft::ProviderDraft,
    entry::InputLine,
    offers::Choice,
    stage::{ADDRESS_KEY, BACK_LINE, MODEL_KEY, PLAIN_KEY, Stage},
};
use crate::{
    ask::describe_request_error,
    keymap::Action,
    picker::{Picker, PickerOutcome},
    text::{Line, Span, Style, TextRole},
};

/// The message about the search that was done before the first start is offered.
pub const LOOKED_FOR: &str =
    "gnoma found no API key in the environment, and no Ollama or llama.cpp on this machine";

/// The instruction for setting up a key where typed text would be seen.
const HOW_TO_HIDE: &str = "To enter a key without showing it, leave this list with q and type \
    `/shell gnoma providers add NAME`. Then `/provider NAME` uses it";
/// Bytes of a line that asks for a correction.
const MAX_LINE_BYTES: usize = 20;

/// Reads an address as people copy it: without a scheme, or with the path of a call. `None` if it is none.
#[must_use]
pub fn read_address(entered: &str) -> Option<String> {
    offers::normalize_address(entered)
}

/// The effect of a key on the guided start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupStep {
    /// The guided start is still open.
    Open,
    /// The guided start is still open, and these lines are to be read out.
    Explained(Vec<Line>),
    /// This is to be tried; [`Setup::on_connection_tried`] takes the result.
    Try(Connection),
    /// This is to be stored; [`Setup::on_saved`] takes the result.
    Keep(Connection),
    /// The guided start is over: this provider is asked from now on.
    Use(String),
    /// The person wants the demonstration.
    Demo,
    /// The guided start is over: one of the providers is to be removed.
    Remove,
    /// The person continues without a provider.
    Left,
}

/// The guided start, which sets up a provider.
#[derive(Clone, Debug)]
pub struct Setup {
    choices: Vec<Choice>,
    list: Picker,
    stage: Stage,
    /// Names that another server cannot have.
    taken: Vec<String>,
    /// Lines are written instead of keys, and what is typed is seen.
    by_line: bool,
    /// The line that is being written, where a stage has no entry.
    line: String,
    /// Providers are set up already.
    is_again: bool,
}

impl Setup {
    /// The first start, with what was found; `by_line` for people who type lines and hear the result.
    #[must_use]
    pub fn new(found: &FoundProviders, by_line: bool) -> Self {
        let (rows, choices) = offers::list_offers(found, by_line).into_iter().unzip();
        Self {
            choices,
            list: Picker::new("Set up a provider", rows).by_line(by_line),
            stage: Stage::Choosing,
            taken: found.providers.clone(),
            by_line,
            line: String::new(),
            is_again: false,
        }
    }

    /// The same where providers are set up already, each with its address. `wanted` goes straight to the key of that
    /// provider, if it can have one.
    #[must_use]
    pub fn with_existing_providers(
        found: &FoundProviders,
        existing: &[(String, String)],
        by_line: bool,
        wanted: &str,
    ) -> Self {
        let offers = offers::offers_again(found, existing, by_line);
        let (rows, choices): (Vec<_>, Vec<_>) = offers.into_iter().unzip();
        let taken = existing.iter().map(|(name, _)| name.clone());
        let mut setup = Self {
            list: Picker::new("Add or repair a provider", rows).by_line(by_line),
            taken: found.providers.iter().cloned().chain(taken).collect(),
            is_again: true,
            choices,
            ..Self::new(found, by_line)
        };
        if let Some(row) = setup.choices.iter().position(|choice| is_for(choice, wanted)) {
            setup.choose_row(row);
        }
        setup
    }

    /// Reports whether [`Self::with_existing_providers`] offers something for the provider `wanted`.
    #[must_use]
    pub fn can_offer(found: &FoundProviders, existing: &[(String, String)], wanted: &str) -> bool {
        let offers = offers::offers_again(found, existing, false);
        let is_ready =
            |choice: &Choice| matches!(choice, Choice::Ready(by) if by.provider == wanted);
        offers.iter().any(|(_, choice)| is_ready(choice) || is_for(choice, wanted))
    }

    /// Reports whether providers are set up already, so that nothing is lost when the guided start is left.
    #[must_use]
    pub fn is_again(&self) -> bool {
        self.is_again
    }

    /// Reports whether the text that is typed now is a key and must not be shown or kept.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(&self.stage, Stage::Key { .. })
    }

    /// Does what a key asks for.
    pub fn apply_action(&mut self, action: Action) -> SetupStep {
        if matches!(self.stage, Stage::Choosing) {
            return match self.list.apply_action(action) {
                PickerOutcome::Open => SetupStep::Open,
                PickerOutcome::Explained(lines) => SetupStep::Explained(lines),
                PickerOutcome::Nothing => SetupStep::Left,
                PickerOutcome::Row(row) => self.choose_row(row),
            };
        }
        match action {
            Action::Close | Action::Stop | Action::Interrupt => self.return_to_list(),
            Action::Accept if self.by_line => self.accept_line(),
            Action::Accept => self.on_enter(),
            _ => {
                if let Stage::Address { entry, .. }
                | Stage::Key { entry, .. }
                | Stage::Model { entry, .. } = &mut self.stage
                {
                    entry.apply_action(action);
                }
                SetupStep::Open
            }
        }
    }

    /// Takes a character that was typed: a part of what is entered, or a correction's key.
    pub fn type_char(&mut self, c: char) -> SetupStep {
        let asks = !matches!(
            self.stage,
            Stage::Choosing | Stage::Address { .. } | Stage::Key { .. } | Stage::Model { .. }
        );
        match (asks, self.by_line) {
            (false, _) => self.paste(c.encode_utf8(&mut [0; 4])),
            (true, true) if self.line.len() < MAX_LINE_BYTES => self.line.push(c),
            (true, true) => (),
            (true, false) => return self.apply_correction(c),
        }
        SetupStep::Open
    }

    /// Takes what was pasted, where something is entered.
    pub fn paste(&mut self, text: &str) {
        match &mut self.stage {
            Stage::Choosing => self.list.type_text(text),
            Stage::Address { entry, .. }
            | Stage::Key { entry, .. }
            | Stage::Model { entry, .. } => entry.insert(text),
            _ => (),
        }
    }

    /// Takes the result of trying a connection, unless the try was given up.
    pub fn on_connection_tried(
        &mut self,
        tried: &Connection,
        outcome: Result<String, RequestError>,
    ) {
        if let Stage::Trying(connection) = &self.stage
            && connection == tried
        {
            let connection = connection.clone();
            self.stage = match outcome {
                Ok(answer) => Stage::Works { connection, answer },
                Err(error) => Stage::Failed { connection, why: describe_request_error(&error) },
            };
        }
    }

    /// Takes the result of storing a connection.
    pub fn on_saved(
        &mut self,
        kept: &Connection,
        outcome: Result<String, RequestError>,
    ) -> SetupStep {
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
            Err(error) => {
                self.stage = Stage::Unkept { connection, why: describe_request_error(&error) };
                SetupStep::Open
            }
        }
    }

    fn choose_row(&mut self, row: usize) -> SetupStep {
        let named =
            |provider| ProviderDraft { provider: Some(provider), ..ProviderDraft::default() };
        match self.choices.get(row).cloned() {
            None => SetupStep::Open,
            Some(Choice::Demo) => {
                // What was typed to find it would hide the others afterwards.
                self.list = self.list.clone().without_filter();
                SetupStep::Demo
            }
            Some(Choice::Remove) => SetupStep::Remove,
            Some(Choice::Ready(connection)) => self.attempt(connection),
            Some(Choice::Key(provider)) => self.ask_key(named(provider)),
            Some(Choice::AddressAndKey(provider)) => self.ask_address(named(provider)),
            Some(Choice::KeyAt { provider, address }) => {
                let key_is_optional = provider != offers::WITHOUT_ADDRESS;
                let address = Some(address);
                self.ask_key(ProviderDraft { address, key_is_optional, ..named(provider) })
            }
            Some(Choice::AddressOf { provider, address }) => {
                self.ask_address(ProviderDraft { address: Some(address), ..named(provider) })
            }
            Some(Choice::Other) => self
                .ask_address(ProviderDraft { key_is_optional: true, ..ProviderDraft::default() }),
            Some(Choice::Local(server)) => {
                self.stage = Stage::Starting(server);
                SetupStep::Open
            }
            Some(Choice::Elsewhere) => {
                SetupStep::Explained(vec![Line::new(HOW_TO_HIDE, Style::default())])
            }
        }
    }

    fn ask_address(&mut self, draft: ProviderDraft) -> SetupStep {
        let entry =
            InputLine::with_text(draft.address.as_deref().filter(|_| !self.by_line).unwrap_or(""));
        self.stage = Stage::Address { draft, entry, trouble: "" };
        SetupStep::Open
    }

    fn ask_key(&mut self, draft: ProviderDraft) -> SetupStep {
        self.stage = Stage::Key { draft, entry: InputLine::new_hidden() };
        SetupStep::Open
    }

    /// Handles Enter, at the end of a line or alone.
    fn on_enter(&mut self) -> SetupStep {
        let connection = match &mut self.stage {
            Stage::Choosing | Stage::Trying(_) => return SetupStep::Open,
            Stage::Address { draft, entry, trouble } => {
                let text = Some(entry.text()).filter(|text| !text.is_empty());
                let Some(address) =
                    text.or(draft.address.as_deref()).and_then(offers::normalize_address)
                else {
                    *trouble = "an address looks like this: ";
                    return SetupStep::Open;
                };
                let mut draft = std::mem::take(draft);
                draft.address = Some(address);
                return self.address_known(draft);
            }
            Stage::Key { draft, entry } => {
                if entry.text().is_empty() && !draft.key_is_optional {
                    return SetupStep::Open;
                }
                let mut draft = std::mem::take(draft);
                let key = entry.text().to_owned();
                draft.key = (!key.is_empty()).then(|| Secret::new(key));
                draft.into_connection(&self.taken)
            }
            Stage::Model { connection, entry } => {
                let model = entry.text().trim();
                if model.is_empty() {
                    return SetupStep::Open;
                }
                Connection { model: Some(model.to_owned()), ..connection.clone() }
            }
            Stage::Starting(server) => {
                let by = ConnectBy::Address(server.address.to_owned());
                Connection { provider: server.provider.to_owned(), by, model: None }
            }
            Stage::Failed { connection, .. } => connection.clone(),
            Stage::Works { connection, .. } | Stage::Unkept { connection, .. } => {
                return SetupStep::Keep(connection.clone());
            }
        };
        self.attempt(connection)
    }

    /// A key is asked for next, unless it is known, cannot be wanted or would be seen.
    fn address_known(&mut self, draft: ProviderDraft) -> SetupStep {
        let is_local = draft.provider.as_deref().is_some_and(offers::is_keyless);
        if draft.key.is_none() && !is_local && !self.by_line {
            return self.ask_key(draft);
        }
        let connection = draft.into_connection(&self.taken);
        self.attempt(connection)
    }

    /// A whole line where a stage has none of its own: what it asks for.
    fn accept_line(&mut self) -> SetupStep {
        let line = std::mem::take(&mut self.line);
        let entered = match &self.stage {
            Stage::Address { entry, .. } | Stage::Model { entry, .. } => entry.text(),
            _ => line.trim(),
        };
        if entered == BACK_LINE {
            return self.return_to_list();
        }
        match (entered.chars().next(), &self.stage) {
            (None, _) | (_, Stage::Address { .. } | Stage::Model { .. }) => self.on_enter(),
            (Some(c), _) => self.apply_correction(c),
        }
    }

    /// Corrects what did not work, as the key of a correction asks.
    fn apply_correction(&mut self, key: char) -> SetupStep {
        let mut draft = match &self.stage {
            Stage::Failed { connection, .. } if key == MODEL_KEY => {
                let connection = connection.clone();
                return self.ask_model(connection);
            }
            Stage::Failed { connection, .. } | Stage::Works { connection, .. } => {
                ProviderDraft::from_connection(connection)
            }
            Stage::Starting(server) => ProviderDraft {
                provider: Some(server.provider.to_owned()),
                address: Some(server.address.to_owned()),
                ..ProviderDraft::default()
            },
            _ => return SetupStep::Open,
        };
        let corrections = self.stage.corrections(self.by_line);
        match key {
            _ if corrections.iter().all(|(known, _)| *known != key) => SetupStep::Open,
            ADDRESS_KEY => self.ask_address(draft),
            PLAIN_KEY => {
                draft.address = draft.address.as_deref().and_then(offers::without_tls);
                let connection = draft.into_connection(&self.taken);
                self.attempt(connection)
            }
            _ => self.ask_key(draft),
        }
    }

    fn ask_model(&mut self, connection: Connection) -> SetupStep {
        self.stage = Stage::Model { connection, entry: InputLine::with_text("") };
        SetupStep::Open
    }

    fn attempt(&mut self, connection: Connection) -> SetupStep {
        self.stage = Stage::Trying(connection.clone());
        SetupStep::Try(connection)
    }

    fn return_to_list(&mut self) -> SetupStep {
        self.stage = Stage::Choosing;
        SetupStep::Open
    }

    /// The start in at most `height` lines, and the column of the cursor in the first of them.
    #[must_use]
    pub fn render_lines(&self, width: usize, height: usize) -> (Vec<Line>, Option<usize>) {
        let (text, cursor) = match &self.stage {
            Stage::Choosing => {
                let (lines, cursor) = self.list.render_lines(width, height);
                return (lines, Some(cursor));
            }
            Stage::Address { entry, .. }
            | Stage::Key { entry, .. }
            | Stage::Model { entry, .. } => {
                let (line, cursor) = entry.render_line(&self.stage.title(), width);
                (vec![line], Some(cursor))
            }
            Stage::Starting(server) => {
                (server.steps.iter().map(|step| plain_line((*step).to_owned())).collect(), None)
            }
            Stage::Trying(connection) => {
                (vec![plain_line(format!("trying {}…", connection.provider))], None)
            }
            Stage::Works { answer, connection } => {
                let text = format!("{} works: {answer}", connection.provider);
                (vec![marked_line("✓ ", TextRole::Good, text)], None)
            }
            Stage::Failed { why, .. } | Stage::Unkept { why, .. } => {
                (vec![marked_line("✗ ", TextRole::Bad, why.clone())], None)
            }
        };
        let indent = Line::new("  ", Style::default());
        let mut lines: Vec<Line> =
            text.into_iter().flat_map(|line| line.wrap(width, &indent)).collect();
        let hint = Line::new(self.stage.hint(self.by_line), Style::with_ink(TextRole::Dim))
            .wrap(width, &Line::default());
        lines.truncate(height.saturating_sub(hint.len()).max(1));
        lines.extend(hint.into_iter().take(height.saturating_sub(lines.len())));
        (lines, cursor)
    }

    /// Returns the choices, while there are any, for people who hear them.
    #[must_use]
    pub fn read_out(&self) -> Vec<Line> {
        if matches!(self.stage, Stage::Choosing) { self.list.read_out() } else { Vec::new() }
    }

    /// The current step in one line, for people who hear it.
    #[must_use]
    pub fn describe_step(&self) -> String {
        match &self.stage {
            Stage::Choosing => self.list.describe_selection(),
            Stage::Address { .. } | Stage::Model { .. } => {
                format!("enter the {}, {}", self.stage.title(), self.stage.hint(self.by_line))
            }
            Stage::Key { .. } => format!("enter the {}", self.stage.title()),
            Stage::Starting(server) => {
                let steps: Vec<&str> = server.steps.iter().map(|step| step.trim()).collect();
                format!("{} {}", steps.join(" "), self.stage.hint(self.by_line))
            }
            Stage::Trying(connection) => format!("trying {}", connection.provider),
            Stage::Failed { why, .. } => format!("{why}. {}", self.stage.hint(self.by_line)),
            Stage::Unkept { why, .. } => why.clone(),
            Stage::Works { answer, .. } => format!("it works: {answer}. Press Enter to save it"),
        }
    }
}

fn plain_line(text: String) -> Line {
    Line::new(text, Style::default())
}

fn marked_line(mark: &'static str, ink: TextRole, text: String) -> Line {
    Line::from([Span::new(mark, Style::with_ink(ink)), Span::new(text, Style::default())])
}

/// Reports whether a choice is about the provider of that name.
fn is_for(choice: &Choice, wanted: &str) -> bool {
    match choice {
        Choice::Key(name)
        | Choice::AddressAndKey(name)
        | Choice::KeyAt { provider: name, .. }
        | Choice::AddressOf { provider: name, .. } => name == wanted,
        Choice::Local(server) => server.provider == wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnoma_core::protocol::{FoundKey, FoundServer, RequestErrorKind, TypedKey};

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
            providers: vec!["openai".into(), "azure".into()],
        }
    }

    fn failure(cause: &str) -> Result<String, RequestError> {
        Err(RequestError::new(RequestErrorKind::Provider, cause))
    }

    fn shown(setup: &Setup) -> String {
        setup.render_lines(100, 14).0.iter().map(|line| line.plain_text() + "\n").collect()
    }

    #[test]
    fn setup_tries_and_saves_a_detected_provider() {
        let mut setup = Setup::new(&found(), false);
        let SetupStep::Try(connection) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        assert_eq!(connection.by, ConnectBy::Variable("ANTHROPIC_API_KEY".to_owned()));
        setup.on_connection_tried(&connection, Ok("12 models".to_owned()));
        assert!(shown(&setup).starts_with("✓ anthropic works: 12 models\n"));
        assert_eq!(setup.apply_action(Action::Accept), SetupStep::Keep(connection.clone()));
        let done = SetupStep::Use("anthropic".to_owned());
        assert_eq!(setup.on_saved(&connection, Ok(String::new())), done);
    }

    #[test]
    fn setup_never_shows_an_entered_api_key() {
        let mut setup = Setup::new(&found(), false);
        setup.paste("openai");
        setup.apply_action(Action::Accept);
        setup.paste("made-up-key\n");
        assert!(setup.is_secret());
        assert!(!shown(&setup).contains("made"));
        assert!(!format!("{setup:?}").contains("made"));
        let SetupStep::Try(connection) = setup.apply_action(Action::Accept) else {
            panic!("no key is tried")
        };
        assert_eq!(connection.by, ConnectBy::Key(TypedKey("made-up-key".to_owned())));
        setup.on_connection_tried(&connection, failure("the key was refused"));
        assert!(shown(&setup).contains("the key was refused"));
        assert!(matches!(setup.apply_action(Action::Accept), SetupStep::Try(_)));
    }

    #[test]
    fn setup_of_another_server_asks_for_address_and_optional_key() {
        let mut setup = Setup::new(&found(), false);
        setup.paste("another");
        setup.apply_action(Action::Accept);
        setup.paste("ftp://gpu");
        assert_eq!(setup.apply_action(Action::Accept), SetupStep::Open);
        assert!(shown(&setup).contains("an address looks like this: http://localhost:8000/v1"));
        setup.apply_action(Action::DeleteToLineStart);
        setup.paste("https://gpu:8000/v1/chat/completions");
        assert_eq!(setup.apply_action(Action::Accept), SetupStep::Open);
        assert!(shown(&setup).contains("or leave it empty"));
        let SetupStep::Try(connection) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        assert_eq!(connection.provider, "gpu");
        assert_eq!(connection.by, ConnectBy::Address("https://gpu:8000/v1".to_owned()));
    }

    #[test]
    fn setup_failure_returns_to_the_field_to_correct() {
        let mut setup = Setup::new(&found(), false);
        setup.paste("azure");
        setup.apply_action(Action::Accept);
        setup.paste("https://gpu:8000");
        setup.apply_action(Action::Accept);
        setup.paste("wrong-key");
        let SetupStep::Try(first) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        setup.on_connection_tried(&first, failure("no TLS: use http:// instead of https://"));
        assert!(shown(&setup).contains("h use http:// · a change the address · k enter another"));
        let SetupStep::Try(plain) = setup.type_char('h') else { panic!("nothing is tried") };
        let with = |key: &str| ConnectBy::AddressAndKey {
            address: "http://gpu:8000".to_owned(),
            key: TypedKey(key.to_owned()),
        };
        assert_eq!((plain.provider.as_str(), &plain.by), ("azure", &with("wrong-key")));
        setup.on_connection_tried(&first, Ok("late".to_owned()));
        setup.on_connection_tried(&plain, failure("the key was refused"));
        assert_eq!(setup.type_char('h'), SetupStep::Open, "it is http:// already");
        assert_eq!(setup.type_char('k'), SetupStep::Open);
        setup.paste("right-key");
        let SetupStep::Try(right) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        assert_eq!(right.by, with("right-key"));
        setup.on_connection_tried(&right, failure("not found"));
        setup.type_char('a');
        assert!(shown(&setup).starts_with("address of azure › http://gpu:8000\n"));
        setup.paste("/openai/v1");
        let SetupStep::Try(last) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        let ConnectBy::AddressAndKey { address, key } = last.by else { panic!("the key is gone") };
        assert_eq!((address.as_str(), key.0.as_str()), ("http://gpu:8000/openai/v1", "right-key"));
    }

    #[test]
    fn a_server_that_is_not_running_comes_with_how_to_start_it() {
        let mut setup = Setup::new(&found(), false);
        setup.paste("llamacpp");
        setup.apply_action(Action::Accept);
        assert!(shown(&setup).contains("llama-server -m MODEL.gguf --jinja"));
        let SetupStep::Try(connection) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        assert_eq!(connection.by, ConnectBy::Address("http://localhost:8080/v1".to_owned()));
        setup.on_connection_tried(&connection, failure("cannot connect"));
        assert!(shown(&setup).contains("a change the address"), "and no key: {}", shown(&setup));
        assert!(!shown(&setup).contains("another key"));
        setup.apply_action(Action::Close);
        assert!(shown(&setup).contains("Set up a provider"));
    }

    #[test]
    fn lines_enter_addresses_and_never_keys() {
        let mut setup = Setup::new(
            &FoundProviders { providers: vec!["openai".into()], ..Default::default() },
            true,
        );
        let line = |setup: &mut Setup, line: &str| {
            line.chars().for_each(|c| assert_eq!(setup.type_char(c), SetupStep::Open));
            setup.apply_action(Action::Accept)
        };
        assert!(matches!(line(&mut setup, "hosted provider"), SetupStep::Explained(_)));
        line(&mut setup, "another server");
        let SetupStep::Try(first) = line(&mut setup, "https://gpu:8000") else {
            panic!("nothing is tried")
        };
        setup.on_connection_tried(&first, failure("use http:// instead of https://"));
        assert!(setup.describe_step().contains("h use http:// · a change the address · q back"));
        let SetupStep::Try(plain) = line(&mut setup, "h") else { panic!("nothing is tried") };
        assert_eq!(plain.by, ConnectBy::Address("http://gpu:8000".to_owned()));
        setup.on_connection_tried(&plain, failure("no"));
        line(&mut setup, "a");
        assert_eq!(line(&mut setup, "q"), SetupStep::Open);
        assert!(!setup.read_out().is_empty(), "it is back at the list");
    }

    #[test]
    fn known_server_is_asked_for_its_key_first_and_keeps_its_address() {
        let existing = [("work".to_owned(), "http://gpu:8000/v1".to_owned())];
        let mut setup = Setup::with_existing_providers(&found(), &existing, false, "work");
        setup.paste("made-up-key");
        assert!(setup.is_secret() && !shown(&setup).contains("made"), "{}", shown(&setup));
        let SetupStep::Try(connection) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        let key = TypedKey("made-up-key".to_owned());
        let address = "http://gpu:8000/v1".to_owned();
        assert_eq!(connection.by, ConnectBy::AddressAndKey { address, key });
        setup.on_connection_tried(&connection, Ok("1 model".to_owned()));
        setup.type_char('a');
        assert!(shown(&setup).starts_with("address of work › http://gpu:8000/v1\n"));
        assert_eq!(setup.apply_action(Action::Accept), SetupStep::Try(connection));
    }

    #[test]
    fn server_that_lists_no_models_is_asked_for_one_by_name() {
        let mut setup = Setup::new(&found(), false);
        setup.paste("another");
        setup.apply_action(Action::Accept);
        setup.paste("http://gpu:8000/v1");
        setup.apply_action(Action::Accept);
        let SetupStep::Try(first) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        setup.on_connection_tried(&first, failure("`gpu` works but lists no models"));
        assert!(shown(&setup).contains("m name a model"), "{}", shown(&setup));
        setup.type_char('m');
        assert_eq!(setup.apply_action(Action::Accept), SetupStep::Open, "it needs a name");
        setup.paste("big/one");
        let SetupStep::Try(second) = setup.apply_action(Action::Accept) else {
            panic!("nothing is tried")
        };
        assert_eq!(second, Connection { model: Some("big/one".to_owned()), ..first });
    }

    #[test]
    fn the_demo_needs_nothing() {
        let mut setup = Setup::new(&FoundProviders::default(), false);
        setup.paste("demo");
        assert_eq!(setup.apply_action(Action::Accept), SetupStep::Demo);
        assert_eq!(
            Setup::new(&FoundProviders::default(), false).apply_action(Action::Close),
            SetupStep::Left
        );
    }
}
