//! Handles what a server sends without being asked.

use std::sync::Arc;

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, FormElicitationCapability, Implementation,
        ProgressNotificationParam, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;
use tokio::sync::watch;

use super::{
    calls::Calls,
    question::{Answered, Elicited},
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
}

impl Handler {
    pub(super) fn new(server: &str) -> Self {
        Self {
            server: server.into(),
            calls: Calls::default(),
            lists: watch::Sender::new(0),
            fills_forms: false,
        }
    }

    /// One that asks nobody, for checks of the protocol.
    pub(super) fn filling_forms(server: &str) -> Self {
        Self { fills_forms: true, ..Self::new(server) }
    }

    /// Puts a question to the person whose call the server works on. Without one nobody is asked.
    async fn ask(&self, asked: &Elicited) -> Answered {
        if self.fills_forms {
            return asked.defaults();
        }
        let Some(question) = asked.question(&self.server) else { return Answered::Decline };
        let Some(asking) = self.calls.asking() else { return Answered::Decline };
        let answer = asking.running.cx.ask(&asking.running.id, question).await;
        asked.answered(&answer)
    }
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = Elicited::of(&request);
        Ok(match self.ask(&asked).await {
            Answered::Decline => ElicitResult::new(ElicitationAction::Decline),
            Answered::Accept(content) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                match asked {
                    Elicited::Form { .. } => accepted.with_content(Value::Object(content)),
                    Elicited::Page { .. } | Elicited::Unknown => accepted,
                }
            }
        })
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.calls.progress(&params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists.send_modify(|count| *count += 1);
    }

    fn get_info(&self) -> ClientConfig {
        let gnoma = Implementation::new("gnoma", env!("CARGO_PKG_VERSION"));
        let asks = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let mut can = ClientCapabilities::default();
        can.elicitation = Some(asks);
        ClientConfig::new(can, gnoma)
    }
}
