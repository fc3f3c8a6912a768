//! The project's checks, run as a model's commands are: judged by the same gate, a person asked where
//! one would be, the files kept before, behind the same walls, and shown while they run.
//!
//! No model sees their calls. What they find is the verdict; a check that may not or cannot be run is
//! none, and where anybody may look then, a reviewing arm does.

use gnoma_core::{
    CallId, Event, RawJson, ToolCall, ToolOutcome,
    session::{Answer, NoticeLevel},
    tool::{Tier, ToolKind},
};
use serde_json::json;

use super::{Closed, Session, Way, checking::Found};
use crate::{
    routing::{desk::Verify, signals},
    turn::Verdict,
};

/// The checks under way, one after the other.
pub(super) struct Proof {
    commands: Vec<String>,
    /// Name of the tool that runs them.
    shell: String,
    /// Which of them is judged, asked for or run.
    at: usize,
    call: ToolCall,
    /// A person was asked and has not answered.
    is_asked: bool,
}

impl Proof {
    /// The command as a call; `None` when there is none any more.
    fn call(shell: &str, commands: &[String], at: usize, turn: u64) -> Option<ToolCall> {
        let arguments = RawJson::of(&json!({ "command": commands.get(at)? })).ok()?;
        // No model's call has such an id.
        let id = CallId::new(format!("gnoma-check-{turn}-{}", at + 1));
        Some(ToolCall::new(id, shell, arguments))
    }

    fn command(&self) -> &str {
        self.commands.get(self.at).map_or("", String::as_str)
    }
}

impl Way {
    /// The check of that id, if it is not over.
    pub(in crate::session) fn check_call(&self, id: &CallId) -> Option<&ToolCall> {
        self.proof.as_ref().map(|proof| &proof.call).filter(|call| call.id == *id)
    }
}

impl Session {
    /// Runs the commands that prove the project right, until one fails. False where nothing can run
    /// them.
    pub(super) async fn prove(&mut self, commands: Vec<String>) -> Result<bool, Closed> {
        let Some(shell) = self.tools.of_kind(Tier::Full, ToolKind::Shell) else {
            return Ok(false);
        };
        let shell = shell.name.clone();
        let call = Proof::call(&shell, &commands, 0, self.way.turns);
        let (Some(call), Some(course)) = (call, &self.way.course) else { return Ok(false) };
        let checking = Event::Checking { arm: course.arm.name(), by: quoted(&commands) };
        self.emit(checking).await?;
        self.way.proof = Some(Proof { commands, shell, at: 0, call, is_asked: false });
        self.judge_check().await?;
        Ok(true)
    }

    async fn judge_check(&mut self) -> Result<(), Closed> {
        let Some(call) = self.way.proof.as_ref().map(|proof| proof.call.clone()) else {
            return Ok(());
        };
        match self.judge(&call) {
            Verdict::Allow { reason } => self.run_check(reason).await,
            Verdict::Deny { reason } => self.refuse_check(reason).await,
            Verdict::Ask { reason, preview, always } => {
                if let Some(proof) = &mut self.way.proof {
                    proof.is_asked = true;
                }
                self.emit(Event::PermissionAsked { call, reason, preview, always }).await
            }
        }
    }

    /// A person has answered for the check.
    pub(in crate::session) async fn check_answered(
        &mut self,
        answer: Answer,
    ) -> Result<(), Closed> {
        let Some(proof) = self.way.proof.as_mut().filter(|proof| proof.is_asked) else {
            return Ok(());
        };
        proof.is_asked = false;
        match answer {
            Answer::Allow | Answer::Always | Answer::Rule { .. } => {
                self.run_check("allowed by the user".to_owned()).await
            }
            Answer::Deny { .. } => self.refuse_check("refused by the user".to_owned()).await,
        }
    }

    async fn run_check(&mut self, reason: String) -> Result<(), Closed> {
        let Some(call) = self.way.proof.as_ref().map(|proof| proof.call.clone()) else {
            return Ok(());
        };
        let id = call.id.clone();
        self.emit(Event::PermissionDecided { call: id.clone(), allowed: true, reason }).await?;
        self.emit(Event::ToolStarted { call }).await?;
        self.run_tool(&id);
        Ok(())
    }

    async fn refuse_check(&mut self, reason: String) -> Result<(), Closed> {
        let Some(proof) = self.way.proof.take() else { return Ok(()) };
        let call = proof.call.id.clone();
        let why = format!("`{}` was not run: {reason}", proof.command());
        self.emit(Event::PermissionDecided { call, allowed: false, reason: reason.clone() })
            .await?;
        self.show_end(&proof.call, ToolOutcome::Denied(reason), 0).await?;
        self.not_proven(why).await
    }

    /// A check has ended: the next one, or what was found.
    pub(in crate::session) async fn check_ended(
        &mut self,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> Result<(), Closed> {
        let Some(mut proof) = self.way.proof.take() else { return Ok(()) };
        self.show_end(&proof.call, outcome.clone(), duration_ms).await?;
        let command = proof.command().to_owned();
        let (ToolOutcome::Done(output) | ToolOutcome::Failed(output)) = outcome else {
            return self.not_proven(format!("`{command}` was not run to its end")).await;
        };
        let code = output.report.as_ref().and_then(|report| report.exit_code);
        let Some(code) = code.filter(|code| !signals::CANNOT_RUN.contains(code)) else {
            return self.not_proven(format!("`{command}` could not be run to its end")).await;
        };
        if code != 0 {
            return self.found(Found::failed(&command, &output)).await;
        }
        proof.at += 1;
        let Some(call) = Proof::call(&proof.shell, &proof.commands, proof.at, self.way.turns)
        else {
            return self.found(Found::passed(quoted(&proof.commands))).await;
        };
        self.way.proof = Some(Proof { call, ..proof });
        self.judge_check().await
    }

    /// The checks gave no verdict.
    async fn not_proven(&mut self, why: String) -> Result<(), Closed> {
        if self.way.routes.options.verify != Verify::Auto {
            return self.found(Found::nobody(&why)).await;
        }
        self.emit(Event::Notice { level: NoticeLevel::Warning, text: why }).await?;
        self.review().await
    }

    /// The check is not wanted any more.
    pub(in crate::session) async fn stop_check(&mut self) -> Result<(), Closed> {
        self.way.checking.shutdown().await;
        let Some(Proof { call, is_asked, .. }) = self.way.proof.take() else { return Ok(()) };
        std::mem::take(&mut self.stop).cancel();
        self.held.remove(&call.id);
        self.gate.forget(&call.id);
        if is_asked {
            let (id, reason) = (call.id.clone(), "the turn was stopped".to_owned());
            self.emit(Event::PermissionDecided { call: id, allowed: false, reason }).await?;
        }
        self.show_end(&call, ToolOutcome::Interrupted(String::new()), 0).await
    }

    async fn show_end(
        &mut self,
        call: &ToolCall,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> Result<(), Closed> {
        let result = outcome.into_result(call);
        self.emit(Event::ToolEnded { result, diff: None, duration_ms }).await
    }
}

fn quoted(commands: &[String]) -> String {
    commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ")
}
