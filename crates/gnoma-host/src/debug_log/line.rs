//! The line of an event: `2026-11-28T12:00:00.000Z session=… tool end …`. Pure.

use std::{borrow::Cow, fmt};

use gnoma_core::{
    Event, Role, Usage,
    message::ResultPart,
    session::{NoticeLevel, Outcome, SessionState, TrialEnd},
};
use gnoma_extend::hooks::HookRunReport;
use jiff::Timestamp;

use super::filter::{LogFilter, LogLevel};

/// Bytes of a value, such as an error of a provider, that are logged.
const MAX_VALUE_BYTES: usize = 400;

/// Makes the lines of one session. It remembers when the current model call began.
#[derive(Debug, Default)]
pub(super) struct SessionLines {
    turn_began_ms: i64,
    call: Option<Call>,
}

#[derive(Debug)]
struct Call {
    began_ms: i64,
    first_part_ms: Option<i64>,
    attempt: u32,
}

/// A line before it is written.
#[derive(Debug)]
pub(super) struct LogLine {
    level: LogLevel,
    what: &'static str,
    fields: Vec<(&'static str, String)>,
}

impl LogLine {
    pub(super) fn new(level: LogLevel, what: &'static str) -> Self {
        Self { level, what, fields: Vec::new() }
    }

    /// Reports whether the filter lets it be written.
    pub(super) fn is_allowed(&self, filter: &LogFilter) -> bool {
        filter.allows(self.what, self.level)
    }

    pub(super) fn with_field(mut self, name: &'static str, value: &dyn fmt::Display) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }

    /// The text of the line. Values are redacted first: what is cut or escaped no longer looks like a secret.
    pub(super) fn render<'v>(&'v self, redact: impl Fn(&'v str) -> Cow<'v, str>) -> String {
        let mut text = self.what.to_owned();
        for (name, value) in &self.fields {
            let value = redact(value);
            let value = gnoma_core::text_truncation::word_prefix(&value, MAX_VALUE_BYTES);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@".contains(c);
            text.push_str(&if !value.is_empty() && value.chars().all(is_plain) {
                format!(" {name}={value}")
            } else {
                // LogLine breaks and controls are escaped: a value never begins a line.
                format!(" {name}={value:?}")
            });
        }
        text
    }

    fn with_usage(self, usage: &Usage) -> Self {
        self.with_field("input", &usage.prompt_tokens())
            .with_field("cached", &usage.cache_read)
            .with_field("cache_write", &usage.cache_write)
            .with_field("output", &usage.output)
            .with_field("thinking", &usage.reasoning)
    }

    pub(super) fn with_some(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with_field(name, &value),
            None => self,
        }
    }
}

impl SessionLines {
    /// The line of an event without its time; `None` if it has none or the filter leaves it out.
    pub(super) fn format_event(
        &mut self,
        now_ms: i64,
        event: &Event,
        filter: &LogFilter,
    ) -> Option<LogLine> {
        self.observe(now_ms, event);
        let line = format_turn(event, now_ms.saturating_sub(self.turn_began_ms))
            .or_else(|| self.format_call(event, now_ms))
            .or_else(|| format_step(event))?;
        // An appended message has a line only if it is an answer.
        let is_answer_over =
            matches!(event, Event::Usage { .. } | Event::Appended(_) | Event::TurnEnded { .. });
        if is_answer_over {
            self.call = None;
        }
        line.is_allowed(filter).then_some(line)
    }

    /// Remembers when turns, calls and answers begin.
    fn observe(&mut self, now_ms: i64, event: &Event) {
        match event {
            Event::State(SessionState::Active) => self.turn_began_ms = now_ms,
            Event::RoundStarted { .. } => {
                self.call = Some(Call { began_ms: now_ms, first_part_ms: None, attempt: 1 });
            }
            Event::Retrying { attempt, .. } => {
                let call = Call { began_ms: now_ms, first_part_ms: None, attempt: *attempt };
                self.call = Some(call);
            }
            Event::Text { .. } | Event::Thinking { .. } | Event::ToolCallDrafted { .. } => {
                if let Some(call) = &mut self.call {
                    let since = now_ms.saturating_sub(call.began_ms);
                    call.first_part_ms.get_or_insert(since);
                }
            }
            _ => (),
        }
    }

    fn format_answer(&self, now_ms: i64) -> LogLine {
        let call = self.call.as_ref();
        LogLine::new(LogLevel::Info, "model answer")
            .with_some("attempt", call.map(|call| call.attempt))
            .with_some("first_part_ms", call.and_then(|call| call.first_part_ms))
            .with_some("ms", call.map(|call| now_ms.saturating_sub(call.began_ms)))
    }

    fn format_call(&self, event: &Event, now_ms: i64) -> Option<LogLine> {
        match event {
            Event::RoundStarted { round, arm, why } => Some(
                LogLine::new(LogLevel::Info, "model call")
                    .with_field("round", round)
                    .with_field("arm", arm)
                    .with_field("why", why),
            ),
            Event::Usage { round, .. } => Some(self.format_answer(now_ms).with_usage(round)),
            // The message follows the usage, which the provider did not report if the call still runs.
            Event::Appended(message)
                if message.role() == Role::Assistant && self.call.is_some() =>
            {
                Some(self.format_answer(now_ms).with_field("usage", &"unknown"))
            }
            Event::Retrying { error, attempt, wait_ms, .. } => Some(
                LogLine::new(LogLevel::Warn, "model call failed")
                    .with_field("provider", &error.provider)
                    .with_field("kind", &format!("{:?}", error.kind))
                    .with_some("status", error.status)
                    .with_field("next_attempt", attempt)
                    .with_field("wait_ms", wait_ms)
                    .with_field("error", &error.message),
            ),
            Event::ArmChanged { from, to, why, .. } => Some(
                LogLine::new(LogLevel::Warn, "failover")
                    .with_field("from", from)
                    .with_field("to", to)
                    .with_field("why", why),
            ),
            Event::Cost { arm, call_micro_usd, estimated, .. } => {
                let cost = call_micro_usd.map_or("unknown".to_owned(), |cost| cost.to_string());
                Some(
                    LogLine::new(LogLevel::Debug, "cost")
                        .with_field("arm", arm)
                        .with_field("micro_usd", &cost)
                        .with_field("estimated", estimated),
                )
            }
            _ => None,
        }
    }
}

/// The line of a hook's run, without anything that it wrote; `None` if the filter leaves it out.
pub(super) fn format_hook(run: &HookRunReport<'_>, filter: &LogFilter) -> Option<LogLine> {
    let level = if run.error.is_some() { LogLevel::Warn } else { LogLevel::Debug };
    let line = LogLine::new(level, "hook")
        .with_field("event", &run.event)
        .with_field("ms", &run.took_ms)
        .with_some("exit", run.exit_code)
        .with_some("error", run.error);
    line.is_allowed(filter).then_some(line)
}

fn format_turn(event: &Event, turn_ms: i64) -> Option<LogLine> {
    match event {
        Event::State(SessionState::Active) => Some(LogLine::new(LogLevel::Info, "turn begin")),
        Event::State(SessionState::Cancelling) => Some(LogLine::new(LogLevel::Info, "turn cancel")),
        Event::TurnEnded { outcome, rounds, usage, .. } => {
            let level = if matches!(outcome, Outcome::Failed { .. }) {
                LogLevel::Warn
            } else {
                LogLevel::Info
            };
            let line = LogLine::new(level, "turn end")
                .with_field("outcome", &outcome_name(outcome))
                .with_field("rounds", rounds)
                .with_field("ms", &turn_ms)
                .with_usage(usage);
            Some(match outcome {
                Outcome::Failed { error, .. } => line
                    .with_field("provider", &error.provider)
                    .with_field("kind", &format!("{:?}", error.kind))
                    .with_some("status", error.status)
                    .with_field("error", &error.message),
                Outcome::Complete { .. }
                | Outcome::Cancelled
                | Outcome::RoundLimit { .. }
                | Outcome::Stuck { .. }
                | Outcome::Unfit { .. } => line,
            })
        }
        _ => None,
    }
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Complete { .. } => "complete",
        Outcome::Cancelled => "cancelled",
        Outcome::RoundLimit { .. } => "round_limit",
        Outcome::Stuck { .. } => "stuck",
        Outcome::Unfit { .. } => "unfit",
        Outcome::Failed { .. } => "failed",
    }
}

/// The line of a step that needs no memory: approvals, tools, routing, checks, notices.
fn format_step(event: &Event) -> Option<LogLine> {
    format_tool_step(event).or_else(|| format_other_step(event))
}

fn format_tool_step(event: &Event) -> Option<LogLine> {
    let debug = |what| LogLine::new(LogLevel::Debug, what);
    Some(match event {
        Event::PermissionAsked { call, reason, .. } => debug("approval asked")
            .with_field("call", &call.id)
            .with_field("tool", &call.name)
            .with_field("reason", reason),
        Event::PermissionDecided { call, allowed, reason } => debug("approval decided")
            .with_field("call", call)
            .with_field("allowed", allowed)
            .with_field("reason", reason),
        Event::ToolStarted { call } => debug("tool begin")
            .with_field("call", &call.id)
            .with_field("tool", &call.name)
            .with_field("argument_bytes", &call.arguments.get().len()),
        Event::ToolEnded { call, result, duration_ms, command, .. } => {
            let trial = command.as_ref().and_then(|command| command.trial);
            debug("tool end")
                .with_field("call", &call.id)
                .with_field("tool", &call.name)
                .with_field("error", &result.is_error)
                .with_field("ms", duration_ms)
                .with_field("result_bytes", &result_bytes(&result.parts))
                .with_some("exit", command.as_ref().and_then(|command| command.exit_code))
                .with_some("trial_kept", trial.map(|trial| trial == TrialEnd::Kept))
        }
        _ => return None,
    })
}

fn format_other_step(event: &Event) -> Option<LogLine> {
    let debug = |what| LogLine::new(LogLevel::Debug, what);
    Some(match event {
        Event::Routed(routing) => {
            let arms: Vec<String> = routing.arms.iter().map(ToString::to_string).collect();
            LogLine::new(LogLevel::Info, "routed")
                .with_field("kind", &routing.kind)
                .with_field("strategy", &routing.strategy)
                .with_field("arms", &arms.join(" "))
                .with_field("candidates", &routing.candidates.len())
                .with_field("why", &routing.why)
        }
        Event::Conferred { members, author, .. } => {
            debug("conferred").with_field("members", &members.len()).with_field("author", author)
        }
        Event::Checking { arm, .. } => debug("check begin").with_field("arm", arm),
        Event::Checked { arm, passed, .. } => {
            debug("check end").with_field("arm", arm).with_field("passed", passed)
        }
        Event::Compacted { summary, messages } => LogLine::new(LogLevel::Info, "compacted")
            .with_field("messages", messages)
            .with_field("summary_bytes", &summary.len()),
        Event::Waiting { arm, waited_ms, .. } => {
            debug("waiting").with_field("arm", arm).with_field("ms", waited_ms)
        }
        Event::ModeChanged { mode } => debug("mode").with_field("mode", &mode.name()),
        Event::Notice { level: NoticeLevel::Warning, text } => {
            LogLine::new(LogLevel::Warn, "warning").with_field("text", text)
        }
        _ => return None,
    })
}

fn result_bytes(parts: &[ResultPart]) -> usize {
    let bytes = parts.iter().map(|part| match part {
        ResultPart::Text { text } => text.len(),
        ResultPart::Image(_) => 0,
    });
    bytes.sum()
}

/// A line with its time in UTC and its end.
pub(super) fn add_timestamp(now_ms: i64, line: &str) -> String {
    let at = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.3} {line}\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{
        CallId, Content, ErrorKind, Message, ModelRef, ProviderError, RawJson,
        message::{ToolCall, ToolResult},
        session::CommandEnd,
    };

    use super::*;

    fn lines(events: &[(i64, Event)], level: LogLevel) -> Vec<String> {
        let (mut lines, filter) = (SessionLines::default(), LogFilter::from(level));
        let lines =
            events.iter().filter_map(|(at_ms, event)| lines.format_event(*at_ms, event, &filter));
        lines.map(|line| line.render(Cow::Borrowed)).collect()
    }

    fn arm() -> ModelRef {
        ModelRef { provider: "p".into(), model: "m".into() }
    }

    fn turn() -> Vec<(i64, Event)> {
        let error = ProviderError {
            status: Some(529),
            ..ProviderError::new(ErrorKind::Overloaded, "p", "too\nbusy")
        };
        let usage = Usage { input: 7, output: 3, cache_read: 5, ..Usage::default() };
        vec![
            (0, Event::State(SessionState::Active)),
            (10, Event::RoundStarted { round: 1, arm: arm(), why: "the only model".into() }),
            (
                20,
                Event::Retrying { error, attempt: 2, wait_ms: 100, retracted: false, limit: None },
            ),
            (50, Event::Text { text: "the secret of the answer".into() }),
            (90, Event::Usage { round: usage, turn: usage }),
            (
                99,
                Event::TurnEnded {
                    outcome: Outcome::Cancelled,
                    rounds: 1,
                    usage,
                    undelivered: Vec::new(),
                    answer: None,
                },
            ),
        ]
    }

    #[test]
    fn debug_log_of_a_turn_has_no_message_text() {
        let expected = [
            "turn begin",
            "model call round=1 arm=p/m why=\"the only model\"",
            "model call failed provider=p kind=Overloaded status=529 next_attempt=2 wait_ms=100 \
             error=\"too\\nbusy\"",
            "model answer attempt=2 first_part_ms=30 ms=70 input=12 cached=5 cache_write=0 \
             output=3 thinking=0",
            "turn end outcome=cancelled rounds=1 ms=99 input=12 cached=5 cache_write=0 output=3 \
             thinking=0",
        ];
        assert_eq!(lines(&turn(), LogLevel::Debug), expected);
        assert_eq!(lines(&turn(), LogLevel::Warn).len(), 1);
    }

    #[test]
    fn debug_log_has_a_line_for_an_answer_without_usage() {
        let message = Message::assistant(vec![Content::from_text("the answer")], Some(arm()), None);
        let answer = Event::Appended(Arc::new(message.unwrap()));
        let begin = Event::RoundStarted { round: 1, arm: arm(), why: "the only model".into() };
        let events = [(10, begin), (50, Event::Text { text: "the".into() }), (90, answer.clone())];
        assert_eq!(
            lines(&events, LogLevel::Info)[1..],
            ["model answer attempt=1 first_part_ms=40 ms=80 usage=unknown"]
        );
        let mut reported = turn();
        reported.insert(5, (91, answer));
        let lines = lines(&reported, LogLevel::Info);
        assert_eq!(lines.iter().filter(|line| line.starts_with("model answer")).count(), 1);
    }

    #[test]
    fn debug_log_of_tool_calls_has_sizes_and_no_content() {
        let arguments = RawJson::parse(r#"{"command":"cat key.pem"}"#).unwrap();
        let call = ToolCall::new(CallId::new("c1"), "bash", arguments);
        let result = ToolResult::from_text(&call, "BEGIN PRIVATE KEY", false);
        let ended = Event::ToolEnded {
            call: call.clone(),
            result,
            diff: None,
            duration_ms: 5,
            command: Some(CommandEnd { exit_code: Some(0), trial: Some(TrialEnd::Kept) }),
        };
        let lines = lines(&[(0, Event::ToolStarted { call }), (1, ended)], LogLevel::Debug);
        assert_eq!(
            lines,
            [
                "tool begin call=c1 tool=bash argument_bytes=25",
                "tool end call=c1 tool=bash error=false ms=5 result_bytes=17 exit=0 trial_kept=true"
            ]
        );
    }

    #[test]
    fn debug_log_of_a_failed_hook_is_a_warning() {
        let run =
            HookRunReport { event: "PreToolUse", took_ms: 7, exit_code: Some(2), error: None };
        let line = format_hook(&run, &LogFilter::from(LogLevel::Debug)).unwrap();
        assert_eq!(line.render(Cow::Borrowed), "hook event=PreToolUse ms=7 exit=2");
        let warnings = LogFilter::from(LogLevel::Warn);
        assert!(format_hook(&run, &warnings).is_none());
        let late = HookRunReport { exit_code: None, error: Some("timeout"), ..run };
        let line = format_hook(&late, &warnings).unwrap();
        assert_eq!(line.render(Cow::Borrowed), "hook event=PreToolUse ms=7 error=timeout");
    }

    #[test]
    fn values_are_redacted_before_they_are_cut() {
        let secret = "key=\"sk-1234\"";
        let text = format!("{}{secret}", "x".repeat(MAX_VALUE_BYTES - "[secret]".len()));
        let notice = Event::Notice { level: NoticeLevel::Warning, text };
        let filter = LogFilter::from(LogLevel::Warn);
        let line = SessionLines::default().format_event(0, &notice, &filter).unwrap();
        let line = line.render(|value| value.replace(secret, "[secret]").into());
        assert!(line.contains("[secret]") && !line.contains("sk-1"), "{line}");
    }

    #[test]
    fn debug_log_lines_begin_with_a_timestamp() {
        assert_eq!(add_timestamp(0, "turn begin"), "1970-01-01T00:00:00.000Z turn begin\n");
    }
}
