//! What the face asks of the program around it: plain data, and a few deeds that belong to no
//! running session. Calls may take a moment; they are made only where a person asked for something.

use gnoma_core::{Secret, message::ModelRef, session::Scope};

/// The program around the face.
pub trait Desk: Send {
    /// Tokens of the context window of a model, where that is known, at once.
    fn window(&mut self, model: &str) -> Option<u64>;
    /// Models on offer that are known already, at once.
    fn known_models(&mut self) -> Vec<Offer>;
    /// Models on offer, with those that only the providers know.
    fn models(&mut self) -> Vec<Offer>;
    /// Providers that are configured.
    fn providers(&mut self) -> Vec<Offer>;
    /// Profiles of the settings.
    fn profiles(&mut self) -> Vec<Offer>;
    /// Sessions that can be resumed, the newest first.
    fn sessions(&mut self) -> Vec<SessionRow>;
    /// Places of this session that can be gone back to, the newest first.
    fn points(&mut self) -> Vec<PointRow>;
    /// All settings.
    fn settings(&mut self) -> Vec<SettingRow>;
    /// Stores a setting; returns a sentence that says where.
    ///
    /// # Errors
    /// A sentence for people.
    fn set(&mut self, key: &str, value: &str) -> Result<String, String>;
    /// What the session changed in files, as a unified diff.
    ///
    /// # Errors
    /// A sentence for people.
    fn changes(&mut self) -> Result<String, String>;
    /// Writes the conversation to a file; an empty path leaves the choice open. Returns a sentence
    /// that says where.
    ///
    /// # Errors
    /// A sentence for people.
    fn export(&mut self, path: &str) -> Result<String, String>;
    /// Where a rule of that scope is kept, in a few words; nothing to say about the session's own.
    ///
    /// # Errors
    /// A sentence for people that says why none can be kept there.
    fn rule_place(&mut self, scope: Scope) -> Result<String, String>;
    /// Keeps a rule that allows; returns a sentence that says where. One for the session is only
    /// looked at: the session itself remembers it.
    ///
    /// # Errors
    /// A sentence for people: it is no rule, or cannot be kept there.
    fn keep_rule(&mut self, rule: &str, scope: Scope) -> Result<String, String>;
    /// Lines about something that only the program knows.
    ///
    /// # Errors
    /// A sentence for people.
    fn explain(&mut self, topic: Topic) -> Result<String, String>;
    /// Tries a connection; returns a sentence about what answered.
    ///
    /// # Errors
    /// A sentence for people that says why not and what to do.
    fn test(&mut self, connection: &Connection) -> Result<String, String>;
    /// Stores a connection, its key included; returns a sentence that says where.
    ///
    /// # Errors
    /// A sentence for people.
    fn keep(&mut self, connection: &Connection) -> Result<String, String>;
}

/// What can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// How models are chosen, and why this one is.
    Routing,
    /// What fills the context window.
    Context,
}

/// Something of which one can be chosen by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The name to choose it by.
    pub name: String,
    /// A few words about it.
    pub about: String,
    /// It is in use.
    pub current: bool,
    /// The session itself can change to it, by this name.
    pub arm: Option<ModelRef>,
}

/// A session that can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: String,
    /// What it is called, or its first words.
    pub title: String,
    /// When it was used last, for people.
    pub when: String,
}

/// A place of the conversation that can be gone back to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointRow {
    /// How many turns are taken back.
    pub turns: usize,
    /// The prompt that begins the first of them.
    pub prompt: String,
    /// When that was, for people.
    pub when: String,
    /// How many files have changed since.
    pub files: usize,
}

/// A setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingRow {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
    /// The values that it can have, where there are few.
    pub choices: Vec<String>,
}

/// What was found on this machine that a provider could be made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Keys in the environment.
    pub keys: Vec<FoundKey>,
    /// Servers on this machine that answer.
    pub servers: Vec<FoundServer>,
    /// Providers for which a key can be entered.
    pub providers: Vec<String>,
}

/// A key in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundKey {
    /// The provider that it is for.
    pub provider: String,
    /// The variable that holds it.
    pub variable: String,
}

/// A server on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundServer {
    /// The provider to use it as.
    pub provider: String,
    /// Its address.
    pub address: String,
    /// How many models it has.
    pub models: usize,
}

/// A connection to be tried and stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The provider.
    pub provider: String,
    /// How to reach it.
    pub by: By,
}

/// How a provider is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// With the key in this variable of the environment.
    Variable(String),
    /// At this address, without a key.
    Address(String),
    /// With a key that was entered.
    Key(Secret<String>),
}
