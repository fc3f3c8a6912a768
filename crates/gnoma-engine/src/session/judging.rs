//! Judging calls, off the loop: the guard may follow links and probe walls, and a preview reads and
//! compares files. One call at a time, in the order in which they came.

use std::sync::Arc;

use gnoma_core::{Event, ToolCall, ToolCx, message::CallId, session::NoticeLevel, tool::Access};

use super::{
    state::{Gone, Session},
    verdicts::Judged,
};
use crate::{
    routing::several,
    turn::{Input, Verdict},
};

impl Session {
    pub(super) fn judge(&mut self, call: ToolCall) {
        self.judging.queue.push_back(call);
        self.judge_next();
    }

    /// A verdict is there; the next call is judged.
    pub(super) async fn judged(&mut self, judged: Judged) -> Result<(), Gone> {
        let Judged { call, verdict, admitted } = judged;
        if let Some(admitted) = admitted {
            self.gate.admit(call.clone(), admitted);
        }
        self.inbox.push_back(Input::Judged(call, verdict));
        self.judge_next();
        self.follow().await
    }

    fn judge_next(&mut self) {
        while self.judging.current.is_none() {
            let Some(call) = self.judging.queue.pop_front() else { return };
            let Some(tool) = self.tools.by_name.get(&call.name).map(Arc::clone) else {
                let reason = format!("there is no tool `{}`", call.name);
                self.inbox.push_back(Input::Judged(call.id, Verdict::Deny { reason }));
                continue;
            };
            if self.router.is_looking() && tool.spec().access != Access::Read {
                let reason = several::ONLY_LOOKS.to_owned();
                self.inbox.push_back(Input::Judged(call.id, Verdict::Deny { reason }));
                continue;
            }
            self.judging.current = Some(call.id.clone());
            let (judge, cx) = (self.gate.judge(), self.tool_cx());
            self.judging.under_way.spawn_blocking(move || {
                judge.decide(tool.spec(), &call, |call, grant| {
                    tool.preview(call, &ToolCx { grant: grant.clone(), ..cx })
                })
            });
        }
    }

    /// A person's answer holds for later calls, too.
    pub(super) async fn remember(
        &mut self,
        call: &CallId,
        rule: Option<String>,
    ) -> Result<(), Gone> {
        let kept = match rule {
            None => {
                self.gate.remember(call);
                Ok(())
            }
            Some(rule) => self.gate.remember_written(call, &rule),
        };
        match kept {
            Ok(()) => Ok(()),
            Err(text) => self.emit(Event::Notice { level: NoticeLevel::Warning, text }).await,
        }
    }
}
