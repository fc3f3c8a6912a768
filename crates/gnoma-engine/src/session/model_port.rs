//! The way from what people added to the models of their session.

use std::fmt;

use gnoma_core::{
    lifecycle::{SideModel, SideQuestion},
    tool::BoxFuture,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    pending::{PendingRequests, ToolRequest},
    side_answer::{SideAnswer, SideQuestionError},
};

/// The way from what was added to its session.
pub(super) struct ModelPort {
    requests: mpsc::Sender<ToolRequest>,
    can_look: bool,
}

impl ModelPort {
    /// The way to the session of these requests. One that another has started starts none for hooks:
    /// its hooks are the same, and so would theirs be.
    pub(super) fn for_session(pending: &PendingRequests, is_child: bool) -> Self {
        let can_look = !is_child && pending.child_spawner().is_some();
        Self { requests: pending.request_sender(), can_look }
    }
}

impl fmt::Debug for ModelPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelPort").field("can_look", &self.can_look).finish_non_exhaustive()
    }
}

impl SideModel for ModelPort {
    fn can_look(&self) -> bool {
        self.can_look
    }

    fn ask(&self, question: SideQuestion) -> BoxFuture<'static, SideAnswer> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let patience = question.patience;
            let asked = async {
                let (answer, answered) = oneshot::channel();
                let request = ToolRequest::AskModel(question, answer);
                requests.send(request).await.map_err(|_gone| SideQuestionError::SessionOver)?;
                answered.await.unwrap_or(Err(SideQuestionError::SessionOver))
            };
            let answer = timeout(patience, asked).await;
            answer.unwrap_or(Err(SideQuestionError::Late(patience)))
        })
    }
}
