//! Sessions that tools start: each lives for one turn, and never longer than its waiter or the session that started
//! it.
//!
//! A child is a session like any other, with its parent's name in its envelopes. Clients of the child may answer its
//! questions; so may clients of its parent, which shows the same question at the call.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{
    CallId, Content,
    info::ChildInfo,
    protocol::{Question as Asked, Request, RequestErrorKind},
    session::{Outcome, PermissionAnswer, SessionState},
    store::SessionId,
    sync::Mutex,
    task::box_future,
    tool::{
        BoxFuture, ChildControl, ChildEnd, ChildLink, ChildMerge, ChildResult, ChildStatus,
        ChildTask, MAX_CHILD_MESSAGES, Parent, Question, SpawnError, Spawner,
    },
};
use gnoma_engine::{CheckpointReadiness, ProjectCheckRunner};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, sleep_until},
};

use super::{
    child_result::{last_answer, to_child_end, to_spawn_error},
    child_start::{ReservedChild, prepare_opened, reserve_child, start_prepared},
    child_status::ChildStatusFold,
    handle::{SessionHandle, SessionMeta},
    ports::MergePreview,
    session_start::{self, SessionStartup},
    shared::HostShared,
};

/// The reason why nothing is merged if the checks could not run.
const UNPROVED: &str = "the project's checks could not run on the merged files";
/// The time after which an answer is given again to a session that has too much to do.
const BUSY_WAIT: Duration = Duration::from_millis(50);
/// The most runs of the project's checks on the merged files.
const MAX_PROOFS: u32 = 5;

/// Starts sessions in a host for the tools of its sessions.
pub(super) struct Children(pub(super) Weak<HostShared>);

impl Spawner for Children {
    fn new_id(&self) -> String {
        let shared = self.0.upgrade();
        shared.map(|shared| shared.opener.new_id().to_string()).unwrap_or_default()
    }

    fn spawn_child(
        &self,
        parent: Parent,
        child: ChildTask,
        link: ChildLink,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>> {
        let shared = Weak::clone(&self.0);
        Box::pin(
            async move { start_child(&shared, parent, child, link).await?.wait_for_result().await },
        )
    }
}

/// A running child, held by its waiter. Dropping it ends the child.
struct Child {
    live: SessionHandle,
    id: SessionId,
    name: String,
    begun: Instant,
    /// The receiver of what is wanted of the child while it runs; `None` once nothing can be wanted any more.
    control: Option<mpsc::Receiver<ChildControl>>,
    /// The requests that the child has too much to do to take yet.
    unsent: VecDeque<Request>,
    /// The time at which the unsent requests are sent again.
    retry: Option<Instant>,
    parent: Parent,
    /// The remembered facts about the child's parent.
    above: Weak<Mutex<SessionMeta>>,
    /// Counts what happens to sessions.
    changed: watch::Receiver<u64>,
    /// The child's questions that were put to the parent, each until it is decided.
    put: HashMap<(CallId, String), AbortHandle>,
    asking: JoinSet<()>,
    /// The number of runs of the project's checks on the merged files, and whether they run now.
    proofs: u32,
    is_proving: bool,
    shared: Weak<HostShared>,
}

/// The step that follows the end of a turn.
enum NextStep {
    /// Another turn of the child.
    Turn,
    /// The end, and why its changes cannot be merged, if that was determined.
    End(Option<String>),
}

impl Drop for Child {
    fn drop(&mut self) {
        self.live.close();
        let last = self.live.kept.lock().following.as_ref().map(|it| it.current_status().clone());
        if let (Some(last), Some(above)) = (last, self.above.upgrade()) {
            let mut above = above.lock();
            above.step_children.note(&self.parent.call, &last, None);
            above.following.iter_mut().for_each(|it| it.add_child_cost(&last));
        }
    }
}

/// Waits for the reason why the files of a child's copy will never be there; waits forever if they are there or
/// will be.
async fn copy_failure(copied: &mut Option<CheckpointReadiness>) -> String {
    if let Some(copied) = copied {
        let done = copied.wait_for(Option::is_some).await.map(|done| done.clone());
        if let Ok(Some(Err(error))) = done {
            return error.0;
        }
    }
    std::future::pending().await
}

async fn start_child(
    shared: &Weak<HostShared>,
    parent: Parent,
    mut task: ChildTask,
    ChildLink { status, control }: ChildLink,
) -> Result<Child, SpawnError> {
    let begun = Instant::now();
    let (notices, heard) = session_start::notice_channel();
    let (name, content) = (task.name.clone(), std::mem::take(&mut task.content));
    let ReservedChild { services, opening, above, starting: _starting } =
        reserve_child(shared, &parent, task, notices.clone())?;
    let (id, scope) = (opening.id.clone(), opening.scope.clone());
    let call = opening.task.call.clone().unwrap_or_else(|| parent.call.clone());
    let info = ChildInfo { call, name: name.clone() };
    let (spec, prepared) = prepare_opened(&*services, opening, info).await?;
    let is_saved = prepared.services.is_saved();
    let following = Some(ChildStatusFold::new((id.to_string(), is_saved), name.clone(), status));
    let startup = SessionStartup { spec, scope: Some(scope), following, notices, heard };
    let (live, changed) = start_prepared(shared, &id, startup, prepared)?;
    let child = Child {
        live,
        id,
        name,
        begun,
        control: Some(control),
        unsent: VecDeque::new(),
        retry: None,
        parent,
        above,
        changed,
        put: HashMap::new(),
        asking: JoinSet::new(),
        proofs: 0,
        is_proving: false,
        shared: Weak::clone(shared),
    };
    child.live.ask(Request::Send { content }).await.map_err(to_spawn_error)?;
    Ok(child)
}

impl Child {
    /// Waits for the end of its turn, ends it, and says what came of it.
    async fn wait_for_result(mut self) -> Result<ChildResult, SpawnError> {
        let mut copied = self.live.kept.lock().services.files_ready();
        let mut uncopied = None;
        let (outcome, unproved) = loop {
            self.changed.borrow_and_update();
            let outcome = self.live.kept.lock().outcome.take();
            if let Some(outcome) = outcome
                && let NextStep::End(why_not) = self.decide_next(&outcome).await
            {
                break (outcome, why_not);
            }
            if self.live.log().with_view(|view| view.state) == SessionState::Closed {
                let text = "the session was closed before it finished";
                return Err(SpawnError::Failed(text.to_owned()));
            }
            self.put_questions();
            tokio::select! {
                changed = self.changed.changed() => changed.map_err(|_| SpawnError::Unavailable)?,
                Some(_) = self.asking.join_next() => (),
                wish = next_control(&mut self.control), if self.unsent.len() < MAX_CHILD_MESSAGES => {
                    self.apply_control(wish).await;
                }
                () = wait_until(self.retry) => self.send_unsent().await,
                why = copy_failure(&mut copied), if uncopied.is_none() => {
                    uncopied = Some(why);
                    self.apply_control(Some(ChildControl::Cancel)).await;
                }
            }
        };
        let text = last_answer(&self.live);
        self.live.close();
        self.live.wait_until_ended().await;
        let end = uncopied.map_or_else(|| to_child_end(outcome), ChildEnd::Failed);
        let following =
            self.live.kept.lock().following.as_ref().map(|it| it.current_status().clone());
        let last = following.unwrap_or_default();
        if let Some(above) = self.above.upgrade() {
            above.lock().step_children.note(&self.parent.call, &last, Some(end.clone()));
        }
        let merge = self.merge_changes(&end, &last, unproved).await;
        let duration_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(ChildResult { session: self.id.to_string(), end, text, last, duration_ms, merge })
    }

    /// Merges the child's changes in a copy of the project, if the child finished and its checks pass.
    async fn merge_changes(
        &self,
        end: &ChildEnd,
        last: &ChildStatus,
        unproved: Option<String>,
    ) -> Option<ChildMerge> {
        let why_not = match end {
            ChildEnd::Completed if last.passed != Some(false) || unproved.is_some() => None,
            ChildEnd::Completed => Some("its checks fail"),
            ChildEnd::Cancelled => Some("it was cancelled"),
            ChildEnd::Failed(_) => Some("it did not finish"),
        };
        let services = Arc::clone(&self.live.kept.lock().services);
        let merge = services.merge_changes(unproved.or(why_not.map(str::to_owned))).await?;
        let line = format!("{}: {}", self.display_name(), merge.told);
        let shared = self.shared.upgrade()?;
        if let Ok(above) = shared.find_session(&SessionId::new(self.parent.session.as_str())) {
            above.kept.lock().remember_merge(line);
        }
        Some(merge)
    }

    /// Applies a request of the child's starter.
    async fn apply_control(&mut self, wish: Option<ChildControl>) {
        match wish {
            Some(ChildControl::Say(text)) => {
                self.unsent.push_back(Request::Send { content: vec![Content::from_text(text)] });
            }
            Some(ChildControl::Cancel) => self.unsent = VecDeque::from([Request::Cancel]),
            None => return self.control = None,
        }
        self.send_unsent().await;
    }

    /// Decides what follows a turn with this outcome. If the project has checks, they run on the merged files
    /// before anything lands, unless they already ran on exactly those.
    async fn decide_next(&mut self, outcome: &Outcome) -> NextStep {
        let was_proof = std::mem::take(&mut self.is_proving);
        if self.send_next_message(outcome).await {
            return NextStep::Turn;
        }
        let (passed, prover) = {
            let kept = self.live.kept.lock();
            let passed = kept.following.as_ref().and_then(|it| it.current_status().passed);
            (passed, kept.prover.clone())
        };
        let (Some(prover), Outcome::Complete { .. }) = (prover, outcome) else {
            return NextStep::End(None);
        };
        match passed {
            Some(false) if !was_proof => return NextStep::End(None),
            Some(false) => return NextStep::End(Some(self.describe_failed_checks())),
            None if was_proof => return NextStep::End(Some(UNPROVED.to_owned())),
            Some(true) | None => (),
        }
        let services = Arc::clone(&self.live.kept.lock().services);
        tokio::select! {
            () = services.merge_next() => (),
            () = self.wait_until_cancelled() => return NextStep::End(Some("it was cancelled".to_owned())),
        }
        if self.send_next_message(outcome).await {
            return NextStep::Turn;
        }
        match services.bring_up().await {
            None | Some(Ok(MergePreview::Nothing)) => NextStep::End(None),
            Some(Err(error)) => NextStep::End(Some(error.to_string())),
            Some(Ok(MergePreview::Same)) if passed == Some(true) => NextStep::End(None),
            Some(Ok(MergePreview::Same | MergePreview::BroughtUp)) => {
                self.run_checks(&prover).await
            }
        }
    }

    /// Has the project's checks run on what is in the copy.
    async fn run_checks(&mut self, prover: &ProjectCheckRunner) -> NextStep {
        self.proofs += 1;
        if self.proofs > MAX_PROOFS {
            let why = "the project kept changing while its checks ran";
            return NextStep::End(Some(why.to_owned()));
        }
        self.live.kept.lock().following.iter_mut().for_each(ChildStatusFold::forget_verdict);
        self.is_proving = prover.run_checks().await;
        if self.is_proving { NextStep::Turn } else { NextStep::End(Some(UNPROVED.to_owned())) }
    }

    /// Describes what the checks found in the merged files.
    fn describe_failed_checks(&self) -> String {
        let kept = self.live.kept.lock();
        let (by, evidence) =
            kept.following.as_ref().map(ChildStatusFold::last_review).unwrap_or_default();
        format!(
            "the project's checks fail on the merged files: {by}\nThe check {by} \
             says:\n{evidence}\n"
        )
    }

    /// Waits until the child's starter cancels it; other requests wait.
    async fn wait_until_cancelled(&mut self) {
        loop {
            match next_control(&mut self.control).await {
                Some(ChildControl::Cancel) => return,
                Some(ChildControl::Say(text)) => {
                    self.unsent
                        .push_back(Request::Send { content: vec![Content::from_text(text)] });
                }
                None => self.control = None,
            }
        }
    }

    /// Reports whether another turn follows one with this outcome, and sends the messages that the child could not
    /// take before.
    async fn send_next_message(&mut self, outcome: &Outcome) -> bool {
        if !matches!(outcome, Outcome::Complete { .. }) {
            return false;
        }
        while let Some(Ok(ChildControl::Say(text))) =
            self.control.as_mut().map(mpsc::Receiver::try_recv)
        {
            self.unsent.push_back(Request::Send { content: vec![Content::from_text(text)] });
        }
        let Some(first) = self.unsent.pop_front() else { return false };
        let goes_on = self.live.ask(first).await.is_ok();
        self.send_unsent().await;
        goes_on
    }

    /// Sends what it is to be sent, and what it cannot take yet again later.
    async fn send_unsent(&mut self) {
        self.retry = None;
        while let Some(request) = self.unsent.front().cloned() {
            // One that is about to end takes nothing any more.
            if let Err(error) = self.live.ask(request).await
                && error.kind == RequestErrorKind::Busy
            {
                return self.retry = Some(Instant::now() + BUSY_WAIT);
            }
            self.unsent.pop_front();
        }
    }

    /// Returns the name by which users know the child.
    fn display_name(&self) -> String {
        if self.name.is_empty() {
            return format!("session {}", self.id);
        }
        format!("elf `{}`", self.name)
    }

    /// Shows the child's open questions in its parent, and withdraws those that were decided.
    fn put_questions(&mut self) {
        let open: Vec<Asked> =
            self.live.log().with_view(|view| view.questions().cloned().collect());
        self.put.retain(|(call, reason), asking| {
            let is_open = open.iter().any(|it| it.call.id == *call && it.reason == *reason);
            if !is_open {
                asking.abort();
            }
            is_open
        });
        for asked in open {
            // A call may be asked for again, for another reason.
            let key = (asked.call.id.clone(), asked.reason.clone());
            if !self.put.contains_key(&key) {
                let (live, port) = (self.live.clone(), Arc::clone(&self.parent.port));
                let (question, call) = (self.build_question(asked), self.parent.call.clone());
                let child_call = key.0.clone();
                let asking = self.asking.spawn(box_future(async move {
                    let answer = limit_to_once(port.ask_user(call, question).await);
                    send_answer(&live, child_call, answer).await;
                }));
                self.put.insert(key, asking);
            }
        }
    }

    fn build_question(&self, asked: Asked) -> Question {
        let Asked { call, reason, preview, inquiry, parts, notable, dangers, .. } = asked;
        let (shown, from) = (self.display_name(), Some(self.name.clone()));
        if inquiry.is_some() {
            let text = format!("{shown} asks: {reason}");
            return Question { text, inquiry, from, ..Question::default() };
        }
        let text = format!("{shown} needs approval for `{}`: {reason}", call.name);
        // People must see what they approve.
        let preview = preview.or_else(|| Some(call.arguments.get().to_owned()));
        Question { text, preview, parts, notable, dangers, from, ..Question::default() }
    }
}

/// Waits for what is wanted next. Safe to drop.
async fn next_control(control: &mut Option<mpsc::Receiver<ChildControl>>) -> Option<ChildControl> {
    match control {
        Some(control) => control.recv().await,
        None => std::future::pending().await,
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// An answer that holds for this once: the question offered nothing else.
fn limit_to_once(answer: PermissionAnswer) -> PermissionAnswer {
    match answer {
        PermissionAnswer::Allow | PermissionAnswer::Always | PermissionAnswer::Rule { .. } => {
            PermissionAnswer::Allow
        }
        answer @ (PermissionAnswer::Deny { .. }
        | PermissionAnswer::Part { .. }
        | PermissionAnswer::Text { .. }) => answer,
    }
}

/// Answers the child's question; ignored if it was answered before.
async fn send_answer(live: &SessionHandle, call: CallId, answer: PermissionAnswer) {
    loop {
        let request = Request::Answer { call: call.clone(), answer: answer.clone() };
        match live.ask(request).await {
            Err(error) if error.kind == RequestErrorKind::Busy => sleep(BUSY_WAIT).await,
            Ok(_) | Err(_) => return,
        }
    }
}
