//! Notifications about sessions, by a command of the person's or by ntfy. No turn waits for them. What is told are
//! names and times; nothing that people, models or tools wrote.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    CallId, Event, Secret,
    duration::format_duration,
    json_value::json,
    session::{Outcome, SessionState},
    store::SessionId,
    text_truncation,
    tool::tool_label,
};
use gnoma_extend::hooks::{HookLineError, HookRunner};
use gnoma_guard::firewall::Firewall;
use gnoma_net::HttpRequest;
use serde_json::{Map, Value};
use tokio::{
    sync::{OnceCell, oneshot},
    time::timeout,
};

use crate::{Project, extensions, telemetry::host_of};

/// Longest time that the command or the server takes for a notification.
const MAX_SEND: Duration = Duration::from_secs(10);
/// Most bytes that are read of a server's answer.
const MAX_ANSWER_BYTES: usize = 1 << 16;
/// Most bytes of a notification's text.
const MAX_TEXT_BYTES: usize = 500;
/// Most open questions of a session that the person is told of.
const MAX_QUESTIONS: usize = 8;

/// The reason why a notification did not reach the person.
#[derive(thiserror::Error)]
enum NotificationError {
    #[error("was not started")]
    NotStarted,
    #[error(transparent)]
    Command(#[from] HookLineError),
    /// The words of the network, which name no more of the address than its host: it may be known to few.
    #[error("{0}")]
    Network(String),
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("it does not answer")]
    NoAnswer,
}

gnoma_core::debug_as_display!(NotificationError);

/// A notification about a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notification {
    /// The kind, as `notification_type` has it.
    kind: &'static str,
    text: String,
    /// More facts for the command.
    facts: Map<String, Value>,
}

impl Notification {
    /// Says that a spending cap nears.
    pub(crate) fn cap(text: String) -> Self {
        Self { kind: "cap_nears", text, facts: Map::new() }
    }

    fn turn_ended(place: &str, outcome: &Outcome, took: Duration) -> Self {
        let shown = format_duration(took);
        let text = match outcome {
            Outcome::Complete { .. } => format!("gnoma is done in {place} ({shown})"),
            _ => {
                let why = outcome.name().replace('_', " ");
                format!("gnoma has stopped in {place} ({shown}): {why}")
            }
        };
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let facts = [("outcome", json!(outcome.name())), ("duration_ms", json!(took_ms))];
        let facts = facts.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        Self { kind: "turn_ended", text, facts }
    }

    fn question(place: &str, tool: &str, is_inquiry: bool) -> Self {
        let text = if is_inquiry {
            format!("a question waits for you in {place}")
        } else {
            format!("{} needs your approval in {place}", tool_label(tool))
        };
        Self { kind: "permission_prompt", text, facts: Map::new() }
    }
}

/// The complaint about notifications that are too many.
const DROPPED: &str = "too many notifications are on their way, so one was dropped";

/// Sends notifications of one session.
pub(crate) struct NotificationSender {
    project: Arc<Project>,
    session: SessionId,
    /// Lets no secret pass, whatever the settings allow.
    firewall: Firewall,
    runner: OnceCell<Arc<HookRunner>>,
    has_failed: AtomicBool,
}

impl NotificationSender {
    /// Returns the sender of a session, if the person wants notifications. Nothing is sent to ntfy in incognito.
    pub(crate) fn open(project: &Arc<Project>, session: &SessionId) -> Option<Arc<Self>> {
        let notify = &project.personal.notify;
        let has_topic = notify.ntfy.is_some() && !project.is_incognito();
        if notify.command.is_none() && !has_topic {
            return None;
        }
        let firewall = project.strict_firewall();
        let firewall = firewall
            .map_err(|error| {
                project.notices.warning(format_args!("no notifications are sent: {error}"));
            })
            .ok()?;
        Some(Arc::new(Self {
            project: Arc::clone(project),
            session: session.clone(),
            firewall,
            runner: OnceCell::new(),
            has_failed: AtomicBool::new(false),
        }))
    }

    /// Sends a notification in the background.
    fn send(self: &Arc<Self>, notification: Notification) {
        let sender = Arc::clone(self);
        let work = async move { sender.deliver(notification).await };
        if !self.project.shared.run_in_background(work) {
            self.report_once(DROPPED);
        }
    }

    /// Hands a notification to the command and to the server, and waits for both.
    pub(crate) async fn deliver(&self, mut notification: Notification) {
        let text = self.firewall.redact_text(&notification.text);
        notification.text = text_truncation::word_prefix(&text, MAX_TEXT_BYTES).to_owned();
        let notify = &self.project.personal.notify;
        let ran = async {
            let Some(line) = &notify.command else { return };
            if let Err(why) = self.run_command(line, &notification).await {
                self.report_once(&format!("`notify.command` failed ({why})"));
            }
        };
        let posted = async {
            let Some(url) = notify.ntfy.as_ref().filter(|_| !self.project.is_incognito()) else {
                return;
            };
            if let Err(why) = self.post(url, &notification).await {
                let text = format!("a notification did not reach {}: {why}", host_of(url));
                self.report_once(&text);
            }
        };
        tokio::join!(ran, posted);
    }

    async fn run_command(
        &self,
        line: &str,
        notification: &Notification,
    ) -> Result<(), NotificationError> {
        let project = Arc::clone(&self.project);
        let runner = self.runner.get_or_try_init(|| async {
            let made = move || Arc::new(extensions::hook_runner(&project));
            tokio::task::spawn_blocking(made).await.map_err(|_| NotificationError::NotStarted)
        });
        let Notification { kind, text, facts } = notification;
        let mut input = facts.clone();
        let cwd = self.project.spec.folder.display().to_string();
        for (name, value) in [
            ("hook_event_name", json!("Notification")),
            ("session_id", json!(self.session.as_str())),
            ("cwd", json!(cwd)),
            ("title", json!("gnoma")),
            ("message", json!(text)),
            ("notification_type", json!(kind)),
        ] {
            input.insert(name.to_owned(), value);
        }
        let input = Value::Object(input).to_string();
        runner.await?.run_line(line, &input, MAX_SEND).await?;
        Ok(())
    }

    /// Publishes a message as ntfy's HTTP interface has it: the text as body, the rest in headers.
    async fn post(&self, url: &str, notification: &Notification) -> Result<(), NotificationError> {
        let mut headers = vec![(Cow::Borrowed("title"), Secret::new("gnoma".to_owned()))];
        if let Some(token) = &self.project.personal.notify.ntfy_token {
            let value = Secret::new(format!("Bearer {}", token.expose()));
            headers.push((Cow::Borrowed("authorization"), value));
        }
        let body = Some(vec![notification.text.clone().into()]);
        let request = HttpRequest { url: url.to_owned(), headers, body };
        let http = self.project.shared.http(&self.project.routing.network);
        let sent = async {
            let failed = |error: gnoma_net::NetError| {
                NotificationError::Network(error.to_string().replace(url, &host_of(url)))
            };
            let reply = http.send(request).await.map_err(failed)?;
            let status = reply.status;
            let _answer = reply.into_bytes(MAX_ANSWER_BYTES).await;
            let is_success = (200..300).contains(&status);
            if is_success { Ok(()) } else { Err(NotificationError::Status(status)) }
        };
        timeout(MAX_SEND, sent).await.unwrap_or(Err(NotificationError::NoAnswer))
    }

    fn report_once(&self, why: &str) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            self.project.notices.warning(format_args!("{why}; this is told once for a session"));
        }
    }
}

/// Decides what the person is told of a session.
pub(crate) struct SessionNotifier {
    sender: Arc<NotificationSender>,
    began_ms: i64,
    /// Open questions. Dropping the sender of one ends its wait.
    questions: BTreeMap<CallId, oneshot::Sender<()>>,
}

impl SessionNotifier {
    /// Watches a session of the person's own.
    pub(crate) fn new(sender: Arc<NotificationSender>) -> Self {
        Self { sender, began_ms: 0, questions: BTreeMap::new() }
    }

    /// Takes in what happens.
    pub(crate) fn observe(&mut self, event: &Event) {
        let project = &self.sender.project;
        let after = project.personal.notify.after;
        match event {
            Event::State(SessionState::Active) => self.began_ms = project.now_ms(),
            Event::TurnEnded { outcome, .. } => {
                self.questions.clear();
                let took_ms = project.now_ms().saturating_sub(self.began_ms);
                let took = Duration::from_millis(u64::try_from(took_ms).unwrap_or_default());
                if took >= after && !matches!(outcome, Outcome::Cancelled) {
                    let place = self.folder_name();
                    self.sender.send(Notification::turn_ended(&place, outcome, took));
                }
            }
            Event::PermissionAsked { call, inquiry, .. }
                if self.questions.len() < MAX_QUESTIONS =>
            {
                let question =
                    Notification::question(&self.folder_name(), &call.name, inquiry.is_some());
                let (open, decided) = oneshot::channel();
                self.questions.insert(call.id.clone(), open);
                let sender = Arc::clone(&self.sender);
                let work = async move {
                    if timeout(after, decided).await.is_err() {
                        sender.deliver(question).await;
                    }
                };
                if !self.sender.project.shared.run_in_background(work) {
                    self.sender.report_once(DROPPED);
                }
            }
            Event::PermissionDecided { call, .. } => {
                self.questions.remove(call);
            }
            _ => (),
        }
    }

    /// Returns the name of the session's folder.
    fn folder_name(&self) -> String {
        let folder = &self.sender.project.spec.folder;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| folder.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::StopReason;

    use super::*;

    #[test]
    fn notifications_have_names_and_times_alone() {
        let complete = Outcome::Complete { stop: StopReason::EndTurn };
        let done = Notification::turn_ended("shop", &complete, Duration::from_secs(125));
        assert_eq!(done.text, "gnoma is done in shop (2m 5s)");
        assert_eq!(done.facts["duration_ms"], 125_000);
        let stuck = Outcome::Stuck { what: "words of a model".to_owned() };
        let stopped = Notification::turn_ended("shop", &stuck, Duration::from_secs(5));
        assert_eq!(stopped.text, "gnoma has stopped in shop (5s): stuck");
        let asked = Notification::question("shop", "bash", false);
        assert_eq!(asked.text, "Bash needs your approval in shop");
    }
}
