//! The control channel: permission and hook requests to the driving program, and its answers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use gnoma_core::{json_value::json, tool::BoxFuture};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{error::DriverError, ids::random_uuid};

/// Messages that may wait to be written; then whoever says one waits.
const MAX_WAITING: usize = 256;
/// Questions that may be open at once.
const MAX_OPEN: usize = 1_024;

/// A message on its way out.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    /// The message to send to the program.
    pub(super) message: Value,
    /// The call that it is about: what the model said of it is told first.
    pub(super) after_call: Option<String>,
}

/// The sender that passes the answer to the task that waits for it.
type Waiter = oneshot::Sender<Result<Value, DriverError>>;

/// The way to the program. Clones are the same.
#[derive(Clone)]
pub(super) struct ControlChannel(Arc<Channel>);

struct Channel {
    out: mpsc::Sender<OutgoingMessage>,
    open: Mutex<HashMap<String, Waiter>>,
    /// The program says nothing any more.
    has_left: AtomicBool,
}

impl ControlChannel {
    /// A channel, and what is to be written.
    pub(super) fn new() -> (Self, mpsc::Receiver<OutgoingMessage>) {
        let (out, outgoing) = mpsc::channel(MAX_WAITING);
        (
            Self(Arc::new(Channel {
                out,
                open: Mutex::default(),
                has_left: AtomicBool::new(false),
            })),
            outgoing,
        )
    }

    /// Says something that is about a call.
    pub(super) async fn send_message(&self, message: Value, after_call: Option<String>) {
        let _gone = self.0.out.send(OutgoingMessage { message, after_call }).await;
    }

    /// Asks the program. Dropping the future takes the question back.
    pub(super) fn send_request(
        &self,
        request: Value,
    ) -> BoxFuture<'static, Result<Value, DriverError>> {
        let this = self.clone();
        Box::pin(async move { this.await_response(request).await })
    }

    async fn await_response(&self, request: Value) -> Result<Value, DriverError> {
        if self.0.has_left.load(Ordering::Relaxed) {
            return Err(DriverError::ProgramLeft);
        }
        let id = random_uuid();
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= MAX_OPEN {
                return Err(DriverError::TooManyQuestions { max: MAX_OPEN });
            }
            open.insert(id.clone(), answer);
        }
        let mut question = OpenQuestion { control: self.clone(), id: Some(id.clone()) };
        let after_call = request.get("tool_use_id").and_then(Value::as_str).map(str::to_owned);
        let message = json!({"type": "control_request", "request_id": id, "request": request});
        let sent = self.0.out.send(OutgoingMessage { message, after_call }).await;
        sent.map_err(|_| DriverError::ProgramLeft)?;
        let answer = answered.await;
        question.id = None;
        answer.unwrap_or(Err(DriverError::ProgramLeft))
    }

    /// The program has answered.
    pub(super) fn on_response(&self, message: &Value) {
        let Some(response) = message.get("response") else { return };
        let text = |name: &str| response.get(name).and_then(Value::as_str);
        let asked = text("request_id").and_then(|id| self.open().remove(id));
        let Some(asked) = asked else { return };
        let answer = match text("subtype") {
            Some("success") => Ok(response.get("response").cloned().unwrap_or_default()),
            _ => {
                let why = text("error").unwrap_or("no reason was given");
                Err(DriverError::ProgramFailed(why.to_owned()))
            }
        };
        let _nobody_waits = asked.send(answer);
    }

    /// The program says nothing any more: whoever waits for an answer gets none.
    pub(super) fn on_input_ended(&self) {
        self.0.has_left.store(true, Ordering::Relaxed);
        self.open().clear();
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Waiter>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is taken back where nobody waits for its answer any more.
struct OpenQuestion {
    control: ControlChannel,
    /// The id of the question; `None` once it is answered.
    id: Option<String>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        if self.control.open().remove(&id).is_some() {
            let message = json!({"type": "control_cancel_request", "request_id": id});
            let _full = self.control.0.out.try_send(OutgoingMessage { message, after_call: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn control_response_resolves_its_request() {
        let (control, mut out) = ControlChannel::new();
        let mut asked = JoinSet::new();
        asked.spawn(control.send_request(json!({"subtype": "x", "tool_use_id": "c1"})));
        let OutgoingMessage { message, after_call } = out.recv().await.unwrap();
        assert_eq!(after_call.as_deref(), Some("c1"));
        let id = message["request_id"].as_str().unwrap();
        control.on_response(&json!({"response": {"subtype": "success", "request_id": "other"}}));
        control.on_response(
            &json!({"response": {"subtype": "success", "request_id": id, "response": {"a": 1}}}),
        );
        assert_eq!(asked.join_next().await.unwrap().unwrap().unwrap(), json!({"a": 1}));
    }

    #[tokio::test]
    async fn dropped_control_request_is_cancelled() {
        let (control, mut out) = ControlChannel::new();
        let mut asked = JoinSet::new();
        asked.spawn(control.send_request(json!({"subtype": "x"})));
        let id = out.recv().await.unwrap().message["request_id"].clone();
        asked.shutdown().await;
        let cancelled = out.recv().await.unwrap().message;
        assert_eq!(cancelled, json!({"type": "control_cancel_request", "request_id": id}));
        asked.spawn(control.send_request(json!({"subtype": "x"})));
        out.recv().await.unwrap();
        control.on_input_ended();
        assert!(asked.join_next().await.unwrap().unwrap().is_err());
        assert!(control.send_request(json!({"subtype": "x"})).await.is_err());
    }
}
