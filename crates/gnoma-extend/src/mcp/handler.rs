//! Handles what a server sends without being asked.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    calls::Calls,
    message_report::{MessageReport, MessageReporter, ReportedRequest},
    question::{ElicitationAnswer, ElicitationQuestion},
    wire::rpc::{METHOD_NOT_FOUND, RpcError},
};

/// gnoma as servers see it.
#[derive(Clone)]
pub(super) struct Handler {
    /// The server's name, for questions.
    server: Arc<str>,
    /// The calls that the server works on.
    pub(super) calls: Calls,
    /// Counts how often the server said that its list of tools is another one.
    pub(super) lists: watch::Sender<u64>,
    /// Forms are filled with their defaults, without asking anybody.
    fills_forms: bool,
    reporter: Option<MessageReporter>,
}

impl Handler {
    pub(super) fn new(server: &str) -> Self {
        Self {
            server: server.into(),
            calls: Calls::default(),
            lists: watch::Sender::new(0),
            fills_forms: false,
            reporter: None,
        }
    }

    /// The same, with a reporter of each message.
    pub(super) fn with_reporter(self, reporter: Option<MessageReporter>) -> Self {
        Self { reporter, ..self }
    }

    /// Begins the report of a request, which counts as failed until its result is known; `None` without a reporter.
    pub(super) fn report_request<'a>(&'a self, method: &'a str) -> Option<ReportedRequest<'a>> {
        let reporter = self.reporter.as_ref()?;
        let (server, began) = (&*self.server, Instant::now());
        Some(ReportedRequest { reporter, server, method, began, failed: true })
    }

    /// Reports a message that the server sends by itself.
    fn report_message(&self, method: &str) {
        if let Some(reporter) = &self.reporter {
            let server = &*self.server;
            reporter.report(&MessageReport { server, method, took_ms: None, failed: false });
        }
    }

    /// One that asks nobody, for checks of the protocol.
    pub(super) fn filling_forms(server: &str) -> Self {
        Self { fills_forms: true, ..Self::new(server) }
    }

    /// Takes in something that the server tells. What is not known is nothing.
    pub(super) fn on_notification(&self, method: &str, params: &Value) {
        self.report_message(method);
        match method {
            "notifications/progress" => self.calls.record_progress(params),
            "notifications/tools/list_changed" => self.list_may_have_changed(),
            _ => {}
        }
    }

    /// Has the list of tools read again.
    pub(super) fn list_may_have_changed(&self) {
        self.lists.send_modify(|count| *count += 1);
    }

    /// The answer to a request of the server.
    pub(super) async fn answer_request(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Value, RpcError> {
        self.report_message(method);
        match method {
            "ping" => Ok(json!({})),
            "elicitation/create" => Ok(self.answer_elicitation(params).await),
            other => {
                let said = format!("gnoma does not support `{other}`");
                Err(RpcError::new(METHOD_NOT_FOUND, said))
            }
        }
    }

    async fn answer_elicitation(&self, params: &Value) -> Value {
        let question = ElicitationQuestion::from_params(params);
        match (self.ask_person(&question).await, question) {
            (ElicitationAnswer::Decline, _) => json!({"action": "decline"}),
            (ElicitationAnswer::Accept(content), ElicitationQuestion::Form { .. }) => {
                json!({"action": "accept", "content": content})
            }
            (
                ElicitationAnswer::Accept(_),
                ElicitationQuestion::Page { .. } | ElicitationQuestion::Unknown,
            ) => {
                json!({"action": "accept"})
            }
        }
    }

    /// Puts a question to the person whose call the server works on. Without one nobody is asked.
    async fn ask_person(&self, asked: &ElicitationQuestion) -> ElicitationAnswer {
        if self.fills_forms {
            return asked.answer_with_defaults();
        }
        let Some(question) = asked.to_question(&self.server) else {
            return ElicitationAnswer::Decline;
        };
        let Some(asking) = self.calls.begin_question() else { return ElicitationAnswer::Decline };
        let answer = asking.running.cx.ask_user(&asking.running.id, question).await;
        asked.interpret_answer(&answer)
    }
}
