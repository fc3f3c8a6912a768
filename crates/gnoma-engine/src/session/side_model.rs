//! Model calls beside the conversation, on behalf of hooks and other extensions.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Content,
    lifecycle::SideQuestion,
    task::box_future,
    tool::{ChildEnd, ChildLink, ChildTask, Parent, SpawnError, Spawner},
};
use gnoma_router::{Arm, choice::ChoiceContext};
use tokio::sync::oneshot;

use super::{
    extension_calls::MAX_BESIDE,
    pending::ToolRequest,
    side_answer::{SideAnswer, SideQuestionError},
    state::Session,
};
use crate::routing::{
    ask::{Account, Share},
    review::plain_request,
};

/// Most tokens of an answer, thinking included.
const MAX_ANSWER_TOKENS: u32 = 2_048;
/// The tools of a side model that looks at files before it answers.
const LOOKING_TOOLS: [&str; 4] = ["fs.read", "fs.grep", "fs.glob", "fs.ls"];
/// The name of a side model that looks at files first.
const LOOKING_NAME: &str = "hook";

impl Session {
    /// Has a model asked beside the session.
    pub(super) fn ask_model(
        &mut self,
        question: SideQuestion,
        answer: oneshot::Sender<SideAnswer>,
    ) {
        while self.added.beside.try_join_next().is_some() {}
        if self.added.beside.len() >= MAX_BESIDE {
            let _gone = answer.send(Err(SideQuestionError::TooMany));
            return;
        }
        if question.may_look {
            let starter = self.pending.child_spawner();
            self.added.beside.spawn(box_future(ask_with_files(starter, question, answer)));
            return;
        }
        let arms = self.arms_beside(question.model.as_deref());
        let (account, requests) = (self.account(), self.pending.request_sender());
        self.added.beside.spawn(box_future(async move {
            let SideQuestion { system, text, patience, .. } = question;
            let asking = SideRequest { arms, account, system, text, patience };
            let mut answer = answer;
            let mut shares = Vec::new();
            let said = tokio::select! {
                () = answer.closed() => None,
                said = asking.ask_arms(&mut shares) => Some(said),
            };
            let _gone = requests.send(ToolRequest::Paid(shares)).await;
            if let Some(said) = said {
                let _gone = answer.send(said);
            }
        }));
    }

    /// Returns the arms that may be asked beside the conversation, in the order in which they are asked, or the
    /// reason why none may.
    fn arms_beside(&mut self, wanted: Option<&str>) -> Result<Vec<Arc<Arm>>, SideQuestionError> {
        self.look_for_paths();
        let (task, answering) = (self.current_task(), self.answering_arm());
        let context = self.router.choice_context();
        let routes = &self.router.routes;
        let Some(wanted) = wanted else {
            let arms = routes
                .with_state(|state| state.rank_summarizers(&task, context, answering.as_ref()));
            return if arms.is_empty() { Err(SideQuestionError::NoModel) } else { Ok(arms) };
        };
        let named = self.router.model_by_name(wanted);
        let context = ChoiceContext { pin: named.as_ref(), ..context };
        let free = named
            .as_ref()
            .map(|_| routes.with_state(|state| state.rank_summarizers(&task, context, None)));
        let mut arms = free.unwrap_or_default();
        arms.retain(|arm| named.as_ref() == Some(&arm.id));
        if arms.is_empty() {
            return Err(SideQuestionError::UnknownModel(wanted.to_owned()));
        }
        Ok(arms)
    }
}

/// A question, and the arms that are asked.
struct SideRequest {
    arms: Result<Vec<Arc<Arm>>, SideQuestionError>,
    account: Account,
    system: String,
    text: String,
    patience: Duration,
}

impl SideRequest {
    /// Asks one arm after the other until one has answered.
    async fn ask_arms(self, shares: &mut Vec<Share>) -> SideAnswer {
        let mut failures = Vec::new();
        for arm in &self.arms? {
            let request = plain_request(arm, &self.system, self.text.clone(), MAX_ANSWER_TOKENS);
            let said = self.account.ask_arm(arm, request, self.patience).await;
            shares.extend(said.shares);
            match said.text {
                Ok(text) => return Ok(text),
                Err(error) => failures.push((arm.id.clone(), error)),
            }
        }
        Err(SideQuestionError::AllFailed(failures))
    }
}

/// Asks a session that looks at files first. It ends when nobody waits for the answer any more.
async fn ask_with_files(
    starter: Option<(Arc<dyn Spawner>, Parent)>,
    question: SideQuestion,
    mut answer: oneshot::Sender<SideAnswer>,
) {
    let Some((spawner, parent)) = starter else {
        let _gone = answer.send(Err(SpawnError::Unavailable.into()));
        return;
    };
    let task = ChildTask {
        name: LOOKING_NAME.to_owned(),
        content: vec![Content::from_text(question.text)],
        tools: Some(LOOKING_TOOLS.map(str::to_owned).into()),
        preferred_model: question.model,
        prompt: question.system,
        ..ChildTask::default()
    };
    let said = tokio::select! {
        () = answer.closed() => return,
        ended = spawner.spawn_child(parent, task, ChildLink::without_watcher()) => ended,
    };
    let _gone = answer.send(match said {
        Ok(result) => match result.end {
            ChildEnd::Completed => Ok(result.text),
            ChildEnd::Cancelled => Err(SideQuestionError::Cancelled),
            ChildEnd::Failed(why) => Err(SideQuestionError::ChildFailed(why)),
        },
        Err(error) => Err(error.into()),
    });
}
