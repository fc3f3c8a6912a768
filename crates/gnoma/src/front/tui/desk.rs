//! What the face asks the program for: models, sessions, settings, changes. Asked only when a person
//! wants to see it; answers may take a moment.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use gnoma_config::{
    Settings, profile,
    schema::{Kind, ROWS},
};
use gnoma_core::{ModelRef, Secret, session::Scope, store::SessionId};
use gnoma_store::checkpoint::Point;
use gnoma_tui::{
    desk::{self, By, Connection, Offer, PointRow, SessionRow, SettingRow, Topic},
    theme,
};

use super::{Shared, itself, open, plan::Session, rule, setting, setup, wait::wait};
use crate::{clock, instructions, past::Past, surroundings::Surroundings, timeline, wire};

/// How long a provider may take to list its models.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Most models that are offered.
const MAX_MODELS: usize = 500;
/// Most sessions that are offered.
const MAX_SESSIONS: usize = 200;
/// Most places to go back to.
const MAX_POINTS: usize = 50;

/// See the module.
pub(super) struct Desk {
    session: Shared,
    around: Surroundings,
}

impl Desk {
    pub(super) fn new(session: Shared, around: Surroundings) -> Self {
        Self { session, around }
    }

    fn session(&self) -> Session {
        open(&self.session).clone()
    }

    fn diff(&self) -> Result<String> {
        let session = self.session();
        match session.id() {
            Some(id) => itself::run(&session.args, &["changes", "--diff", "--session", &id]),
            None => Ok(String::new()),
        }
    }

    fn exported(&self, file: &str) -> Result<String> {
        let session = self.session();
        let Some(id) = session.id() else { anyhow::bail!("nothing of this session is kept") };
        let file = if file.is_empty() { format!("gnoma-{id}.md") } else { file.to_owned() };
        let format = match file.rsplit('.').next() {
            Some("html" | "htm") => "html",
            Some("jsonl") => "jsonl",
            Some(_) | None => "markdown",
        };
        itself::run(&session.args, &["sessions", "export", &id, "--format", format, "-o", &file])
    }

    fn try_out(&self, connection: &Connection) -> Result<String, String> {
        let session = self.session();
        let name = connection.provider.clone();
        let mut settings = session.loaded.settings.clone();
        match &connection.by {
            By::Variable(variable) => {
                let key = self.around.var(variable).unwrap_or_default().to_owned();
                settings.provider.api_keys.insert(name.clone(), Secret::new(key));
            }
            By::Address(address) => {
                settings.provider.endpoints.insert(name.clone(), address.clone());
            }
            By::Key(key) => {
                settings.provider.api_keys.insert(name.clone(), key.clone());
            }
        }
        let models = wait(|| async { listed(&settings, &name).await });
        let models =
            models.map_err(|error| session.firewall.text(&format!("{error:#}")).into_owned())?;
        Ok(format!("`{name}` answers and has {} models", models.len()))
    }

    fn points(&self) -> Result<Vec<PointRow>> {
        let session = self.session();
        let Some(id) = session.id() else { return Ok(Vec::new()) };
        let path = wait(|| async { path(&session, &id).await })?;
        let workspace = session.places.open(&session.loaded.settings).ok();
        let now_ms = clock::now_ms();
        let newest_first = timeline::turns(&path).into_iter().rev().take(MAX_POINTS);
        let row = |(turns, turn): (usize, timeline::Turn)| {
            let said = path.iter().find(|entry| entry.id == turn.said);
            let changes = match (&turn.files, &workspace) {
                (timeline::Files::Kept(id), Some(files)) => files.changes(id, Point::Now).ok(),
                _ => None,
            };
            PointRow {
                turns,
                prompt: turn.words,
                when: said.map_or_else(String::new, |said| clock::ago(said.at_ms, now_ms)),
                files: changes.map_or(0, |changes| changes.len()),
            }
        };
        Ok((1..).zip(newest_first).map(row).collect())
    }

    fn sessions(&self) -> Result<Vec<SessionRow>> {
        let session = self.session();
        let now_ms = clock::now_ms();
        let own = session.id();
        let all = wait(|| async {
            match Past::find(session.places.clone(), &session.firewall)? {
                Some(past) => past.all().await,
                None => Ok(Vec::new()),
            }
        })?;
        let others = all.into_iter().filter(|facts| own.as_deref() != Some(facts.id.as_str()));
        let row = |facts: gnoma_core::store::SessionFacts| SessionRow {
            id: facts.id.to_string(),
            when: clock::ago(facts.changed_ms, now_ms),
            title: facts.title,
        };
        Ok(others.take(MAX_SESSIONS).map(row).collect())
    }
}

impl desk::Desk for Desk {
    fn window(&mut self, model: &str) -> Option<u64> {
        open(&self.session).window(model)
    }

    fn known_models(&mut self) -> Vec<Offer> {
        let session = self.session();
        offers(&session, known(&session))
    }

    fn models(&mut self) -> Vec<Offer> {
        all_models(&self.session())
    }

    fn providers(&mut self) -> Vec<Offer> {
        let session = self.session();
        let settings = &session.loaded.settings;
        let offer = |name: String| {
            let about = settings.provider.endpoints.get(&name).cloned().unwrap_or_default();
            let current = settings.provider.default.as_ref() == Some(&name);
            Offer { name, about, current, arm: None }
        };
        setup::configured(settings).into_iter().map(offer).collect()
    }

    fn profiles(&mut self) -> Vec<Offer> {
        let current = self.session().loaded.profile.clone();
        let offer = |name: String| {
            let current = current.as_ref() == Some(&name);
            Offer { name, current, ..Offer::default() }
        };
        profile::available(&self.around.config_dir()).into_iter().map(offer).collect()
    }

    fn sessions(&mut self) -> Vec<SessionRow> {
        Self::sessions(self).unwrap_or_default()
    }

    fn points(&mut self) -> Vec<PointRow> {
        Self::points(self).unwrap_or_default()
    }

    fn settings(&mut self) -> Vec<SettingRow> {
        let session = self.session();
        let row = |value: &gnoma_config::Explained| SettingRow {
            key: value.key.clone(),
            value: value.value.trim_matches('"').to_owned(),
            origin: format!("{}: {}", value.origin, value.place),
            choices: choices(&value.key),
        };
        session.loaded.values.iter().map(row).collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<String, String> {
        setting::fits(key, value)?;
        setting::set(&self.around.config_dir(), key, value)
    }

    fn changes(&mut self) -> Result<String, String> {
        self.diff().map_err(|error| format!("{error:#}"))
    }

    fn export(&mut self, path: &str) -> Result<String, String> {
        self.exported(path).map_err(|error| format!("{error:#}"))
    }

    fn rule_place(&mut self, scope: Scope) -> Result<String, String> {
        rule::place(&self.session(), &self.around, scope)
    }

    fn keep_rule(&mut self, rule: &str, scope: Scope) -> Result<String, String> {
        rule::keep(&self.session(), &self.around, rule, scope)
    }

    fn explain(&mut self, topic: Topic) -> Result<String, String> {
        let session = self.session();
        let settings = &session.loaded.settings;
        Ok(match topic {
            Topic::Routing => {
                let model = session.facts.model.as_deref().unwrap_or("the first that can be asked");
                let origin = session.loaded.explain("provider.default").map(|set| set.origin);
                let origin =
                    origin.map_or_else(String::new, |origin| format!(" (set by {origin})"));
                format!("every call goes to {model}{origin}; /model and /provider change that")
            }
            Topic::Context => {
                let found = instructions::find(&session.cwd, &self.around.config_dir());
                let bytes = found.text.len();
                let answer = settings.provider.max_tokens;
                format!(
                    "instructions of the project: {bytes} bytes\nkept free for an answer: {answer} tokens"
                )
            }
        })
    }

    fn test(&mut self, connection: &Connection) -> Result<String, String> {
        self.try_out(connection)
    }

    fn keep(&mut self, connection: &Connection) -> Result<String, String> {
        let (folder, name) = (self.around.config_dir(), &connection.provider);
        match &connection.by {
            By::Variable(variable) => {
                let value = format!("${{{variable}}}");
                setting::set(&folder, &format!("provider.api_keys.{name}"), &value)?;
            }
            By::Address(address) => {
                setting::set(&folder, &format!("provider.endpoints.{name}"), address)?;
            }
            By::Key(key) => {
                setting::set(&folder, &format!("provider.api_keys.{name}"), key.expose())?;
            }
        }
        setting::set(&folder, "provider.default", name)
    }
}

/// The models of a session, and those that the providers list, which may take a moment.
pub(super) fn all_models(session: &Session) -> Vec<Offer> {
    let settings = &session.loaded.settings;
    let names = setup::configured(settings);
    let found = wait(|| async {
        let asked = names.iter().map(async |name| (name, listed(settings, name).await));
        Ok(join_all(asked).await)
    });
    let mut models = known(session);
    for (provider, listed) in found.unwrap_or_default() {
        for model in listed.unwrap_or_default() {
            let name = format!("{provider}/{model}");
            if models.iter().all(|(other, _)| *other != name) {
                models.push((name, None));
            }
        }
    }
    offers(session, models)
}

/// A model by its name, and as what the session changes to by itself.
type Model = (String, Option<ModelRef>);

fn known(session: &Session) -> Vec<Model> {
    session.arms().into_iter().map(|arm| (arm.to_string(), Some(arm))).collect()
}

fn offers(session: &Session, models: Vec<Model>) -> Vec<Offer> {
    let offer = |(name, arm): Model| {
        let current = session.facts.model.as_ref() == Some(&name);
        let about = if arm.is_some() { "" } else { "in another session that goes on" };
        Offer { name, about: about.to_owned(), current, arm }
    };
    models.into_iter().take(MAX_MODELS).map(offer).collect()
}

/// The values that a setting can have, where there are few.
fn choices(key: &str) -> Vec<String> {
    if key == "tui.theme" {
        return theme::names().map(str::to_owned).collect();
    }
    let row = ROWS.iter().find(|row| row.path == key);
    match row.map(|row| row.kind) {
        Some(Kind::Bool) => ["true", "false"].map(str::to_owned).to_vec(),
        Some(Kind::Word(words)) => words.iter().map(|word| (*word).to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// The models of a provider.
async fn listed(settings: &Settings, name: &str) -> Result<Vec<String>> {
    let provider = gnoma_llm::connect(wire::profile(settings, name)?, wire::http(settings));
    let models = tokio::time::timeout(TIMEOUT, provider.models()).await;
    let models = models.map_err(|_| anyhow::anyhow!("`{name}` does not answer"))??;
    Ok(models.into_iter().map(|model| model.id).collect())
}

fn past(session: &Session) -> Result<Past> {
    Past::open(session.places.clone(), &session.firewall)
}

async fn path(session: &Session, id: &str) -> Result<Vec<gnoma_core::store::Entry>> {
    past(session)?.path(&SessionId::new(id), None).await
}
