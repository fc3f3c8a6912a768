//! Judging calls, off the loop: the guard may follow links and probe walls, and a preview reads and
//! compares files. One call at a time, in the order in which they came.

use std::sync::Arc;

use gnoma_core::{
    Event, Tool, ToolCall, ToolCx,
    lifecycle::PointAnswer,
    message::CallId,
    session::NoticeLevel,
    tool::{Access, Grant, is_about},
};
use tokio::task::spawn_blocking;

use super::{
    added::Before,
    state::{Gone, Session},
    verdicts::{Decision, Judged, Said},
};
use crate::{
    gate::Judge,
    rights::ToolLimit,
    routing::several,
    turn::{Input, Verdict},
};

impl Session {
    pub(super) fn judge(&mut self, call: ToolCall) {
        self.judging.queue.push_back(call);
        self.judge_next();
    }

    /// A verdict is there, or the files are that calls wait for; the next call is judged.
    pub(super) async fn judged(&mut self, judged: Option<Judged>) -> Result<(), Gone> {
        let Some(judged) = judged else {
            self.judge_next();
            return self.follow().await;
        };
        let Judged { call, decision: Decision { verdict, admitted, said } } = judged;
        if let Some(admitted) = admitted {
            self.gate.admit(call.clone(), admitted);
        }
        self.inbox.extend(said.amended.map(Input::Amended));
        self.inbox.extend(said.context.into_iter().map(Input::Noted));
        self.inbox.extend(said.stop.map(Input::StopAfter));
        if let Verdict::Deny { reason } = &verdict {
            self.tell_refused(&call, reason);
        }
        self.inbox.push_back(Input::Judged(call, verdict));
        self.judge_next();
        self.follow().await
    }

    fn judge_next(&mut self) {
        while self.judging.current.is_none() {
            let Some(there) = self.judging.files() else { return };
            let Some(call) = self.judging.queue.pop_front() else { return };
            if let Err(reason) = there {
                self.tell_refused(&call.id, &reason);
                self.inbox.push_back(Input::Judged(call.id, Verdict::Deny { reason }));
                continue;
            }
            let Some(tool) = self.tools.by_name.get(&call.name).map(Arc::clone) else {
                let reason = format!("there is no tool `{}`", call.name);
                self.inbox.push_back(Input::Judged(call.id, Verdict::Deny { reason }));
                continue;
            };
            let starts = tool.starts(&call).is_some();
            if self.router.is_looking() && (tool.spec().access != Access::Read || starts) {
                let reason = several::ONLY_LOOKS.to_owned();
                self.inbox.push_back(Input::Judged(call.id, Verdict::Deny { reason }));
                continue;
            }
            self.judging.current = Some(call.id.clone());
            let deciding = Deciding {
                judge: self.gate.judge(),
                starter: self.tools.starter(),
                tool,
                cx: self.tool_cx(),
                limits: self.gate.rights.tool_limits(),
            };
            match self.before_calls() {
                None => {
                    self.judging.under_way.spawn_blocking(move || deciding.decide(&call, None));
                }
                Some(before) => {
                    self.judging.under_way.spawn(decided(before, deciding, call));
                }
            }
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

/// A call that is about to be decided.
#[derive(Clone)]
struct Deciding {
    judge: Judge,
    tool: Arc<dyn Tool>,
    /// The tool that starts sessions, as whose calls some of `tool` are judged and run.
    starter: Option<Arc<dyn Tool>>,
    cx: ToolCx,
    limits: Vec<ToolLimit>,
}

impl Deciding {
    /// Decides about a call; `ask`: a person has to be asked in any case, and why.
    fn decide(self, call: &ToolCall, ask: Option<String>) -> Decision {
        let started = self.starter.clone().and_then(|starter| {
            let arguments = self.tool.starts(call)?;
            let name = starter.spec().name.clone();
            Some((ToolCall { name, arguments, ..call.clone() }, starter))
        });
        let Some((started, starter)) = started else { return self.decide_as_it_is(call, ask) };
        // It must be allowed as what it is and as what it starts.
        let first = self.clone().decide_as_it_is(call, ask);
        let ask = match &first.verdict {
            Verdict::Deny { .. } => return first,
            Verdict::Ask { reason, .. } => Some(reason.clone()),
            Verdict::Allow { .. } => None,
        };
        Self { tool: starter, ..self }.decide_as_it_is(&started, ask)
    }

    fn decide_as_it_is(self, call: &ToolCall, ask: Option<String>) -> Decision {
        let Self { judge, tool, cx, limits, starter: _ } = self;
        let refused = |limit: &ToolLimit| match limit {
            ToolLimit::Only(tools, why) => (!judge.is_within(tools, tool.spec(), call))
                .then(|| format!("{why}: {}", tools.join(", "))),
            ToolLimit::Never(tools) => tools
                .iter()
                .any(|rule| is_about(rule, &tool.spec().name))
                .then(|| format!("this session may not use these tools: {}", tools.join(", "))),
        };
        if let Some(why) = limits.iter().find_map(refused) {
            return denied(why);
        }
        let preview = |call: &ToolCall, grant: &Grant| {
            tool.preview(call, &ToolCx { grant: grant.clone(), ..cx })
        };
        let (verdict, admitted) = match ask {
            None => judge.decide(tool.judged_as(), call, preview),
            Some(why) => judge.ask(tool.judged_as(), call, &why, preview),
        };
        Decision { verdict, admitted, said: Said::default() }
    }

    /// The same, on a separate thread.
    async fn off_loop(&self, call: &ToolCall, ask: Option<String>) -> Decision {
        let (deciding, judged) = (self.clone(), call.clone());
        spawn_blocking(move || deciding.decide(&judged, ask)).await.unwrap_or_else(|_panic| {
            denied("the permission check crashed; this is a bug in gnoma".to_owned())
        })
    }
}

fn denied(reason: String) -> Decision {
    Decision { verdict: Verdict::Deny { reason }, admitted: None, said: Said::default() }
}

/// Decides about a call once hooks have had their say. What they changed is judged like any call; what
/// they forbid is not judged at all.
async fn decided(before: Before, deciding: Deciding, mut call: ToolCall) -> Decision {
    let answer = before.said(&call).await;
    let PointAnswer { block, ask, arguments, context, stop, .. } = answer;
    let amended = arguments.map(|arguments| {
        call.arguments = arguments;
        call.clone()
    });
    let said = Said { amended, context, stop };
    if let Some(reason) = block {
        return Decision { said, ..denied(reason) };
    }
    let mut said = said;
    let mut decision = deciding.off_loop(&call, ask.clone()).await;
    if let Verdict::Ask { reason, .. } = &decision.verdict {
        let answer = before.asked(&call, reason.clone()).await;
        if let Some(reason) = answer.block {
            decision = denied(reason);
        } else if let Some(arguments) = answer.arguments {
            // Whoever would be asked wants it otherwise: that is judged like any call.
            call.arguments = arguments;
            said.amended = Some(call.clone());
            decision = deciding.off_loop(&call, ask).await;
        }
    }
    Decision { said, ..decision }
}
