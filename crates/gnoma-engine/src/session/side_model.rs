//! Models that are asked on behalf of what people added, beside the conversation: by whom the rules about
//! arms allow to see it, on the session's account, and behind its firewall.

use std::{fmt, sync::Arc, time::Duration};

use gnoma_core::{
    Content,
    lifecycle::{SideModel, SideQuestion},
    tool::{BoxFuture, ChildEnd, ChildLink, ChildTask, Parent, Spawner},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    added::MAX_BESIDE,
    pending::{PendingRequests, ToolRequest},
    state::Session,
};
use crate::{
    arm::Arm,
    routing::{
        ask::{Account, Share},
        offers::ChoiceContext,
        review::plain,
    },
};

/// Most tokens of an answer, thinking included.
const MAX_ANSWER_TOKENS: u32 = 2_048;
/// What one gets that looks at files first.
const LOOKING_TOOLS: [&str; 4] = ["fs.read", "fs.grep", "fs.glob", "fs.ls"];
/// What it is called.
const LOOKING_NAME: &str = "hook";

type Answer = Result<String, String>;

/// The way from what was added to its session.
pub(super) struct ModelPort {
    requests: mpsc::Sender<ToolRequest>,
    can_look: bool,
}

impl ModelPort {
    /// The way to the session of these requests. One that another has started starts none for hooks:
    /// its hooks are the same, and so would theirs be.
    pub(super) fn of(pending: &PendingRequests, is_child: bool) -> Self {
        let can_look = !is_child && pending.starter().is_some();
        Self { requests: pending.inlet(), can_look }
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

    fn ask(&self, question: SideQuestion) -> BoxFuture<'static, Answer> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let patience = question.patience;
            let asked = async {
                let over = || "the session is over".to_owned();
                let (answer, answered) = oneshot::channel();
                let request = ToolRequest::AskModel(question, answer);
                requests.send(request).await.map_err(|_gone| over())?;
                answered.await.unwrap_or_else(|_gone| Err(over()))
            };
            let late = || Err(format!("no answer within {} s", patience.as_secs_f32()));
            timeout(patience, asked).await.unwrap_or_else(|_| late())
        })
    }
}

impl Session {
    /// Has a model asked beside the session.
    pub(super) fn ask_model(&mut self, question: SideQuestion, answer: oneshot::Sender<Answer>) {
        while self.added.beside.try_join_next().is_some() {}
        if self.added.beside.len() >= MAX_BESIDE {
            let _gone = answer.send(Err("too much is under way already".to_owned()));
            return;
        }
        if question.may_look {
            let starter = self.pending.starter();
            self.added.beside.spawn(looked(starter, question, answer));
            return;
        }
        let arms = self.arms_beside(question.model.as_deref());
        let (account, requests) = (self.account(), self.pending.inlet());
        self.added.beside.spawn(async move {
            let SideQuestion { system, text, patience, .. } = question;
            let asking = Asking { arms, account, system, text, patience };
            let mut answer = answer;
            let mut shares = Vec::new();
            let said = tokio::select! {
                () = answer.closed() => None,
                said = asking.said(&mut shares) => Some(said),
            };
            let _gone = requests.send(ToolRequest::Paid(shares)).await;
            if let Some(said) = said {
                let _gone = answer.send(said);
            }
        });
    }

    /// Who may be asked beside the conversation, in their order, or why nobody.
    fn arms_beside(&mut self, wanted: Option<&str>) -> Result<Vec<Arm>, String> {
        self.look_for_paths();
        let (task, answering) = (self.task(), self.answering());
        let context = self.router.choice_context();
        let routes = &self.router.routes;
        let Some(wanted) = wanted else {
            let arms = routes.tellers(&task, context, answering.as_ref());
            let nobody = || "no model can be asked now".to_owned();
            return (!arms.is_empty()).then_some(arms).ok_or_else(nobody);
        };
        let named = self.router.named(wanted);
        let context = ChoiceContext { pin: named.as_ref(), ..context };
        let free = named.as_ref().map(|_| routes.tellers(&task, context, None));
        let mut arms = free.unwrap_or_default();
        arms.retain(|arm| named.as_ref() == Some(&arm.name()));
        let nobody =
            || format!("the model `{wanted}` cannot be asked now, or is none of this session's");
        (!arms.is_empty()).then_some(arms).ok_or_else(nobody)
    }
}

/// A question, and whom it is put to.
struct Asking {
    arms: Result<Vec<Arm>, String>,
    account: Account,
    system: String,
    text: String,
    patience: Duration,
}

impl Asking {
    /// Asks one arm after the other until one has answered.
    async fn said(self, shares: &mut Vec<Share>) -> Answer {
        let mut failures = Vec::new();
        for arm in &self.arms? {
            let request = plain(arm, &self.system, self.text.clone(), MAX_ANSWER_TOKENS);
            let said = self.account.ask(arm, request, self.patience).await;
            shares.extend(said.shares);
            match said.text {
                Ok(text) => return Ok(text),
                Err(error) => failures.push(format!("{}: {error}", arm.name())),
            }
        }
        Err(failures.join("; "))
    }
}

/// Asks a session that looks at files first. It ends when nobody waits for the answer any more.
async fn looked(
    starter: Option<(Arc<dyn Spawner>, Parent)>,
    question: SideQuestion,
    mut answer: oneshot::Sender<Answer>,
) {
    let Some((spawner, parent)) = starter else {
        let _gone = answer.send(Err("no sessions can be started here".to_owned()));
        return;
    };
    let task = ChildTask {
        name: LOOKING_NAME.to_owned(),
        content: vec![Content::text(question.text)],
        tools: Some(LOOKING_TOOLS.map(str::to_owned).into()),
        preferred_model: question.model,
        prompt: question.system,
        ..ChildTask::default()
    };
    let said = tokio::select! {
        () = answer.closed() => return,
        ended = spawner.spawn(parent, task, ChildLink::unwatched()) => ended,
    };
    let _gone = answer.send(match said {
        Ok(result) => match result.end {
            ChildEnd::Completed => Ok(result.text),
            ChildEnd::Cancelled => Err("it was cancelled".to_owned()),
            ChildEnd::Failed(why) => Err(why),
        },
        Err(error) => Err(error.to_string()),
    });
}
