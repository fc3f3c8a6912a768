//! What the face asks the program for: models, sessions, settings, changes. Asked only when a person
//! wants to see it; answers may take a moment.

use anyhow::Result;
use gnoma_config::{
    profile,
    schema::{Kind, ROWS},
};
use gnoma_core::{ModelRef, session::Scope, store::SessionFacts};
use gnoma_host::{
    Folders as _,
    changes::changes,
    clock,
    export::{self, Format},
    instructions,
    points::{Point, points},
    providers::{self, Reach},
    rule,
    sessions::sessions,
    setting,
};
use gnoma_tui::{
    desk::{self, By, Connection, Offer, PointRow, SessionRow, SettingRow, Topic},
    theme,
};

use super::{
    plan::{Session, Shared, open},
    wait::wait,
};

/// Most models that are offered.
const MAX_MODELS: usize = 500;
/// Most sessions that are offered.
const MAX_SESSIONS: usize = 200;

/// See the module.
pub(super) struct Desk {
    session: Shared,
}

impl Desk {
    pub(super) fn new(session: Shared) -> Self {
        Self { session }
    }

    fn session(&self) -> Session {
        open(&self.session).clone()
    }

    fn diff(&self) -> Result<String> {
        let Session { project, .. } = &self.session();
        let Some(id) = self.session().id() else { return Ok(String::new()) };
        let changes =
            wait(|| async { Ok(changes(project, Some(id.as_str()), None, true).await?) })?;
        let about = || format!("{}\n", changes.about.join("\n"));
        Ok(if changes.text.is_empty() { about() } else { changes.text.clone() })
    }

    fn exported(&self, file: &str) -> Result<String> {
        let session = self.session();
        let Some(id) = session.id() else { anyhow::bail!("nothing of this session is kept") };
        let file = if file.is_empty() { format!("gnoma-{id}.md") } else { file.to_owned() };
        let format = match file.rsplit('.').next() {
            Some("html" | "htm") => Format::Html,
            Some("jsonl") => Format::Lines,
            Some(_) | None => Format::Markdown,
        };
        let project = &session.project;
        let file = project.spec.folder.join(file);
        let id = Some(id.as_str());
        let id = wait(|| async { Ok(export::export_to_file(project, id, format, &file).await?) })?;
        Ok(format!("{id} is in {}", file.display()))
    }

    fn try_out(&self, Connection { provider, by }: &Connection) -> Result<String> {
        let Session { project, .. } = &self.session();
        let reach = reach(by);
        let count =
            wait(|| async { Ok(providers::try_provider(project, provider, &reach).await?) })?;
        Ok(format!("`{provider}` answers and has {count} models"))
    }

    fn points(&self) -> Result<Vec<PointRow>> {
        let session = self.session();
        let Some(id) = session.id() else { return Ok(Vec::new()) };
        let points = wait(|| async { Ok(points(&session.project, &id).await?) })?;
        let now_ms = clock::now_ms();
        let row = |Point { turns, prompt, at_ms, files }| {
            let when = at_ms.map_or_else(String::new, |at_ms| clock::ago(at_ms, now_ms));
            PointRow { turns, prompt, when, files }
        };
        Ok(points.into_iter().map(row).collect())
    }

    fn sessions(&self) -> Result<Vec<SessionRow>> {
        let session = self.session();
        let now_ms = clock::now_ms();
        let own = session.id();
        let all = wait(|| async { Ok(sessions(&session.project).await?) })?;
        let others = all.into_iter().filter(|facts| own.as_ref() != Some(&facts.id));
        let row = |facts: SessionFacts| SessionRow {
            id: facts.id.to_string(),
            when: clock::ago(facts.changed_ms, now_ms),
            title: facts.title,
        };
        Ok(others.take(MAX_SESSIONS).map(row).collect())
    }
}

fn reach(by: &By) -> Reach {
    match by.clone() {
        By::Variable(variable) => Reach::Variable(variable),
        By::Address(address) => Reach::Address(address),
        By::Key(key) => Reach::Key(key),
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
        let settings = &session.project.loaded.settings;
        let offer = |name: String| {
            let about = settings.provider.endpoints.get(&name).cloned().unwrap_or_default();
            let current = settings.provider.default.as_ref() == Some(&name);
            Offer { name, about, current, arm: None }
        };
        providers::configured(settings).into_iter().map(offer).collect()
    }

    fn profiles(&mut self) -> Vec<Offer> {
        let project = self.session().project;
        let current = &project.loaded.profile;
        let offer = |name: String| {
            let current = current.as_ref() == Some(&name);
            Offer { name, current, ..Offer::default() }
        };
        profile::available(&project.environment().config_dir()).into_iter().map(offer).collect()
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
        session.project.loaded.values.iter().map(row).collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<String, String> {
        setting::set_setting(&self.session().project, key, value).map_err(|error| error.to_string())
    }

    fn changes(&mut self) -> Result<String, String> {
        self.diff().map_err(|error| format!("{error:#}"))
    }

    fn export(&mut self, path: &str) -> Result<String, String> {
        self.exported(path).map_err(|error| format!("{error:#}"))
    }

    fn rule_place(&mut self, scope: Scope) -> Result<String, String> {
        rule::rule_place(&self.session().project, scope).map_err(|error| error.to_string())
    }

    fn keep_rule(&mut self, rule: &str, scope: Scope) -> Result<String, String> {
        rule::keep_rule(&self.session().project, rule, scope).map_err(|error| error.to_string())
    }

    fn explain(&mut self, topic: Topic) -> Result<String, String> {
        let Session { project, facts, .. } = self.session();
        Ok(match topic {
            Topic::Routing => {
                let model = facts.model.as_deref().unwrap_or("the first that can be asked");
                let origin = project.loaded.explain("provider.default").map(|set| set.origin);
                let origin =
                    origin.map_or_else(String::new, |origin| format!(" (set by {origin})"));
                format!("every call goes to {model}{origin}; /model and /provider change that")
            }
            Topic::Context => {
                let found =
                    instructions::find(&project.spec.folder, &project.environment().config_dir());
                let bytes = found.text.len();
                let answer = project.loaded.settings.provider.max_tokens;
                format!(
                    "instructions of the project: {bytes} bytes\nkept free for an answer: {answer} tokens"
                )
            }
        })
    }

    fn test(&mut self, connection: &Connection) -> Result<String, String> {
        self.try_out(connection).map_err(|error| format!("{error:#}"))
    }

    fn keep(&mut self, Connection { provider, by }: &Connection) -> Result<String, String> {
        let project = self.session().project;
        providers::add_provider(&project, provider, &reach(by)).map_err(|error| error.to_string())
    }
}

/// The models of a session, and those that the providers list, which may take a moment.
pub(super) fn all_models(session: &Session) -> Vec<Offer> {
    let settings = &session.project.loaded.settings;
    let found = wait(|| async { Ok(providers::models(settings).await) });
    let mut models = known(session);
    for name in found.unwrap_or_default() {
        if models.iter().all(|(other, _)| *other != name) {
            models.push((name, None));
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
