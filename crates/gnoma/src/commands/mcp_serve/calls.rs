//! The calls of a client that run.

use std::collections::BTreeMap;

use gnoma_core::task::box_future;
use serde_json::Value;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::wire::{self, McpClientMessage, ServedCall};

/// Most calls at once.
const MAX_CALLS: usize = 32;

/// The calls that run. Dropping this ends them.
#[derive(Default)]
pub(super) struct RunningCalls {
    all: JoinSet<Value>,
    by_id: BTreeMap<String, RunningCall>,
}

struct RunningCall {
    /// The id of the client's request.
    id: Value,
    task: AbortHandle,
}

impl RunningCalls {
    /// Handles a message of the client, with `run` for calls, and returns the answer if there is one at once.
    pub(super) fn on_incoming<F>(
        &mut self,
        incoming: McpClientMessage,
        run: impl FnOnce(ServedCall) -> F,
    ) -> Option<Value>
    where
        F: Future<Output = Value> + Send + 'static,
    {
        match incoming {
            McpClientMessage::Answered(answer) => Some(answer),
            McpClientMessage::Nothing => None,
            McpClientMessage::Cancelled(id) => {
                if let Some(call) = self.by_id.remove(&id.to_string()) {
                    call.task.abort();
                }
                None
            }
            McpClientMessage::Call(call) if self.by_id.contains_key(&call.id.to_string()) => {
                Some(wire::duplicate_id_response(&call.id))
            }
            McpClientMessage::Call(call) if self.all.len() >= MAX_CALLS => {
                let text = format!("{MAX_CALLS} calls are already running; retry later");
                let refused = wire::tool_result(&text, true, None);
                Some(wire::success_response(&call.id, refused, call.is_stateless))
            }
            McpClientMessage::Call(call) => {
                let id = call.id.clone();
                let task = self.all.spawn(box_future(run(call)));
                self.by_id.insert(id.to_string(), RunningCall { id, task });
                None
            }
        }
    }

    /// Waits for the next answer; `None` if a cancelled call ended. Never ends while no call runs. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Value> {
        match self.all.join_next_with_id().await {
            None => std::future::pending().await,
            Some(Ok((task, answer))) => self.remove_finished(task).map(|_| answer),
            Some(Err(error)) => {
                self.remove_finished(error.id()).map(|id| wire::crashed_call_response(&id))
            }
        }
    }

    /// The request's id of a call that has ended, unless it was cancelled.
    fn remove_finished(&mut self, task: Id) -> Option<Value> {
        let is_it = |_: &String, call: &mut RunningCall| call.task.id() == task;
        self.by_id.extract_if(.., is_it).next().map(|(_, call)| call.id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn call(id: u64) -> McpClientMessage {
        let arguments = Map::new();
        let (tool, is_stateless) = ("ask".to_owned(), false);
        McpClientMessage::Call(ServedCall { id: id.into(), tool, arguments, is_stateless })
    }

    #[tokio::test]
    async fn mcp_serve_answers_each_tool_call_once() {
        let mut calls = RunningCalls::default();
        assert_eq!(calls.on_incoming(call(1), |_| async { panic!("on purpose") }), None);
        assert_eq!(calls.next().await.unwrap()["id"], 1);
        assert_eq!(calls.on_incoming(call(1), |_| std::future::pending()), None);
        let refused = calls.on_incoming(call(1), |_| std::future::pending()).unwrap();
        assert_eq!((&refused["id"], refused["error"].is_object()), (&Value::Null, true));
        assert_eq!(
            calls.on_incoming(McpClientMessage::Cancelled(json!(1)), |_| std::future::pending()),
            None
        );
        assert_eq!(calls.next().await, None);
        assert_eq!(calls.on_incoming(call(1), |_| async { json!("done") }), None);
        assert_eq!(calls.next().await, Some(json!("done")));
    }
}
