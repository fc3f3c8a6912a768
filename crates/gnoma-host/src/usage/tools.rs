//! Counts the uses of tools in the saved sessions of a project: the ledger knows only model calls.
//!
//! Each entry counts once, also if several sessions share it. Rewound turns and unsaved sessions do not count.

use std::collections::{BTreeMap, HashMap, HashSet};

use gnoma_core::{
    CallId, ToolCall, ToolResult,
    store::{Entry, EntryId, Record, SessionFacts, SessionStore as _},
    tool::unkept_trial_changes,
};

use super::{
    checked_work::{CheckedWork, CheckedWorkFold},
    period::UsageStart,
    questions::{AnsweredQuestions, RuleOffer, narrow_rule_finder},
};
use crate::{Project, Result, project_history::ProjectHistory};

/// Most entries that are read; the newest sessions come first.
const MAX_ENTRIES: usize = 2_000_000;
/// Most calls without a result that are remembered.
const MAX_OPEN: usize = 10_000;
/// Most tools that are told apart; calls of further ones are summed up together.
const MAX_TOOLS: usize = 500;
/// Stands for the tools beyond [`MAX_TOOLS`].
const OTHERS: &str = "(others)";
/// The beginning of the line of a result that says that the command ran on trial.
const TRIAL_LINE: &str = "[ran on trial";
/// Lines behind the output that can say so.
const MAX_LINES_AFTER_OUTPUT: usize = 4;

/// The use of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// The name of the tool.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Calls that ran and ended with an error.
    pub failed: u64,
    /// Calls that a person was asked about.
    pub asked: u64,
    /// Calls that the person approved when asked.
    pub approved: u64,
    /// Calls that a person, a rule or a mode denied.
    pub denied: u64,
    /// Commands that ran on trial.
    pub tried: u64,
    /// Commands on trial whose changes were kept, or that changed nothing.
    pub kept: u64,
    /// Milliseconds that calls took, over [`timed`](Self::timed), without the time until they were approved.
    pub total_ms: u64,
    /// Calls whose time is known.
    pub timed: u64,
}

impl ToolUse {
    /// Returns the mean time of a call, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> Option<u64> {
        self.total_ms.checked_div(self.timed)
    }
}

/// The use of tools in the saved sessions of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUsage {
    /// The tools, the most used first.
    pub tools: Vec<ToolUse>,
    /// Rules that would answer questions that the person approved each time; none of them is added.
    pub offers: Vec<RuleOffer>,
    /// How the work of models was checked, by model.
    pub work: BTreeMap<String, CheckedWork>,
}

/// Reads how tools were used in the project's saved sessions. If the rules about permissions cannot be used, a notice
/// says so and no rule is offered.
///
/// # Errors
/// The sessions cannot be read.
pub async fn read_tool_usage(project: &Project, since: UsageStart) -> Result<ToolUsage> {
    let begin_ms =
        since.begin_ms(project.now_ms(), &crate::clock::local_time_zone()).unwrap_or(i64::MIN);
    let mut fold = ToolFold { begin_ms, ..ToolFold::default() };
    if let Some(past) = ProjectHistory::open_existing(project)? {
        let mut sessions = past.list_sessions().await?;
        sessions.reverse();
        while let Some(SessionFacts { id, changed_ms, .. }) = sessions.pop()
            && fold.seen.len() < MAX_ENTRIES
        {
            if changed_ms < begin_ms {
                continue;
            }
            for page in past.page_requests(&id).await? {
                let page = past.store.load(id.clone(), page).await?;
                page.entries.iter().for_each(|entry| fold.add(entry));
            }
            fold.open.clear();
            fold.work.end_session();
            sessions.extend(past.store.children(id).await?);
        }
    }
    let mut tools: Vec<ToolUse> = fold.tools.into_values().collect();
    gnoma_core::sort::by_key(&mut tools, |tool| std::cmp::Reverse(tool.calls));
    let offers = match narrow_rule_finder(project) {
        Ok(rule_of) => fold.answered.find_offers(rule_of),
        Err(error) => {
            project.notices.warning(error);
            Vec::new()
        }
    };
    Ok(ToolUsage { tools, offers, work: fold.work.models })
}

/// A call without a result so far.
struct PendingToolCall {
    call: ToolCall,
    began_ms: i64,
    is_asked: bool,
    is_denied: bool,
}

/// The uses so far.
#[derive(Default)]
struct ToolFold {
    begin_ms: i64,
    tools: BTreeMap<String, ToolUse>,
    open: HashMap<CallId, PendingToolCall>,
    /// Open questions of running calls, such as whether to keep what a trial changed, with their call and time.
    questions: HashMap<CallId, (CallId, i64)>,
    answered: AnsweredQuestions,
    work: CheckedWorkFold,
    seen: HashSet<EntryId>,
}

impl ToolFold {
    fn add(&mut self, Entry { id, at_ms, record, .. }: &Entry) {
        if *at_ms < self.begin_ms || !self.seen.insert(*id) {
            return;
        }
        self.work.add(record);
        match record {
            Record::Message(message) => {
                message.tool_results().for_each(|result| self.end(result, *at_ms));
                message.tool_calls().for_each(|call| self.begin(call, *at_ms));
            }
            Record::ToolEnded(result) => self.end(result, *at_ms),
            Record::Asked { call } => self.ask(call, *at_ms),
            Record::Judged { call, allowed, .. } => match self.questions.remove(call) {
                Some((asking, asked_ms)) => {
                    self.answer_question(&asking, *allowed, at_ms.saturating_sub(asked_ms));
                }
                None => self.judge(call, *allowed, *at_ms),
            },
            Record::Routed { .. }
            | Record::Used(_)
            | Record::Paid { .. }
            | Record::Checked { .. }
            | Record::Summary { .. }
            | Record::Checkpoint { .. }
            | Record::Title { .. }
            | Record::Interrupted { .. }
            | Record::Rewound { .. }
            | Record::Tombstone { .. } => (),
        }
    }

    fn begin(&mut self, call: &ToolCall, at_ms: i64) {
        if self.open.len() < MAX_OPEN {
            self.tool(&call.name).calls += 1;
            let open = PendingToolCall {
                call: call.clone(),
                began_ms: at_ms,
                is_asked: false,
                is_denied: false,
            };
            self.open.insert(call.id.clone(), open);
        }
    }

    /// Counts a question about a call, or of a running call.
    fn ask(&mut self, question: &CallId, at_ms: i64) {
        let asking = self.asking_call(question);
        if let Some(asking) = &asking
            && asking != question
        {
            self.questions.insert(question.clone(), (asking.clone(), at_ms));
        }
        if let Some(open) = asking.and_then(|asking| self.open.get_mut(&asking))
            && !std::mem::replace(&mut open.is_asked, true)
        {
            let tool = open.call.name.clone();
            self.tool(&tool).asked += 1;
        }
    }

    /// Returns the call that a question is about: the one with its id, or the only one that runs. Of several that run at
    /// once none is told apart.
    fn asking_call(&self, question: &CallId) -> Option<CallId> {
        if self.open.contains_key(question) {
            return Some(question.clone());
        }
        let mut running = self.open.keys();
        running.next().filter(|_| running.next().is_none()).cloned()
    }

    /// Counts the answer to a question of a running call; the wait for it is no time of the tool.
    fn answer_question(&mut self, asking: &CallId, is_allowed: bool, waited_ms: i64) {
        let Some(open) = self.open.get_mut(asking) else { return };
        open.began_ms = open.began_ms.saturating_add(waited_ms);
        let tool = open.call.name.clone();
        let tool = self.tool(&tool);
        if is_allowed {
            tool.approved += 1;
        } else {
            tool.denied += 1;
        }
    }

    fn judge(&mut self, call: &CallId, is_allowed: bool, at_ms: i64) {
        let Some(open) = self.open.get_mut(call) else { return };
        open.began_ms = at_ms;
        let (was_denied, is_asked) = (open.is_denied, open.is_asked);
        open.is_denied |= !is_allowed;
        if is_asked {
            self.answered.add(&open.call, is_allowed);
        }
        let tool = open.call.name.clone();
        let tool = self.tool(&tool);
        if !is_allowed && !was_denied {
            tool.denied += 1;
        } else if is_allowed && is_asked {
            tool.approved += 1;
        }
    }

    fn end(&mut self, result: &ToolResult, at_ms: i64) {
        let Some(open) = self.open.remove(&result.call_id) else { return };
        let tool = self.tool(&open.call.name);
        if open.is_denied {
            return;
        }
        tool.failed += u64::from(result.is_error);
        tool.total_ms += u64::try_from(at_ms.saturating_sub(open.began_ms)).unwrap_or(0);
        tool.timed += 1;
        let text = result.joined_text();
        let mut last_lines = text.trim_end().lines().rev().take(MAX_LINES_AFTER_OUTPUT);
        if last_lines.any(|line| line.starts_with(TRIAL_LINE)) {
            tool.tried += 1;
            tool.kept += u64::from(unkept_trial_changes(&text).is_none());
        }
    }

    fn tool(&mut self, name: &str) -> &mut ToolUse {
        let is_full = self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(name);
        let name = if is_full { OTHERS } else { name };
        let tool = self.tools.entry(name.to_owned()).or_default();
        if tool.name.is_empty() {
            name.clone_into(&mut tool.name);
        }
        tool
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{Content, Message, RawJson};

    use super::*;

    fn folded(records: Vec<(i64, Record)>) -> Vec<ToolUse> {
        let mut fold = ToolFold::default();
        for (number, (at_ms, record)) in (1..).zip(records) {
            let entry = Entry { id: EntryId(number), parent: None, at_ms, record };
            fold.add(&entry);
            fold.add(&entry);
        }
        fold.tools.into_values().collect()
    }

    fn call(id: &str) -> ToolCall {
        ToolCall::new(CallId::new(id), "bash", RawJson::empty_object())
    }

    fn asks(id: &str) -> Record {
        let content = vec![Content::ToolCall(call(id))];
        Record::Message(Arc::new(Message::assistant(content, None, None).unwrap()))
    }

    fn judged(id: &str, allowed: bool) -> Record {
        Record::Judged { call: CallId::new(id), allowed, reason: String::new() }
    }

    fn ended(id: &str, text: &str, is_error: bool) -> Record {
        Record::ToolEnded(ToolResult::from_text(&call(id), text, is_error))
    }

    #[test]
    fn tool_usage_excludes_the_wait_for_a_trial_question() {
        let question = CallId::new("gnoma-question-1");
        let uses = folded(vec![
            (1_000, asks("a")),
            (1_000, judged("a", true)),
            (1_100, Record::Asked { call: question.clone() }),
            (61_100, Record::Judged { call: question, allowed: true, reason: String::new() }),
            (61_150, ended("a", "x\n[ran on trial; a was kept (a)]", false)),
        ]);
        let [bash] = &uses[..] else { panic!("{uses:?}") };
        assert_eq!((bash.asked, bash.approved, bash.denied, bash.total_ms), (1, 1, 0, 150));
    }

    #[test]
    fn tool_usage_records_answered_permission_questions_per_call() {
        let mut fold = ToolFold::default();
        for number in 1..=3 {
            let id = format!("c{number}");
            let asked = Record::Asked { call: CallId::new(&*id) };
            for (step, record) in
                (0..).zip([asks(&id), asked, judged(&id, true), ended(&id, "", false)])
            {
                let id = EntryId(number * 10 + step);
                fold.add(&Entry { id, parent: None, at_ms: 1_000, record });
            }
        }
        let offers = fold.answered.find_offers(|call| Some(call.name.clone()));
        assert_eq!(offers, [RuleOffer { rule: "bash".to_owned(), approved: 3 }]);
    }

    #[test]
    fn tool_usage_counts_calls_questions_times_and_trials() {
        let asked = |id: &str| Record::Asked { call: CallId::new(id) };
        let uses = folded(vec![
            (1_000, asks("a")),
            (1_010, asked("a")),
            (9_000, judged("a", true)),
            (9_200, ended("a", "x\n[ran on trial; a was kept (a)]", false)),
            (9_300, asks("b")),
            (9_310, asked("b")),
            (9_400, judged("b", false)),
            (9_410, ended("b", "denied", true)),
            (9_500, asks("c")),
            (9_510, judged("c", true)),
            (9_610, ended("c", "Exit code 1\n[ran on trial; it was not kept (b)]", true)),
        ]);
        assert_eq!(
            uses,
            [ToolUse {
                name: "bash".to_owned(),
                calls: 3,
                failed: 1,
                asked: 2,
                approved: 1,
                denied: 1,
                tried: 2,
                kept: 1,
                total_ms: 300,
                timed: 2,
            }]
        );
    }
}
