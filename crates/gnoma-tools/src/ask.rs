//! `ask`: the model asks the person instead of guessing.

use std::sync::Arc;

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    session::{Inquiry, PermissionAnswer},
    tool::{Access, BoxFuture, Question, Tier, ToolKind},
};
use serde::Deserialize;

use crate::args;

/// Most answers that one question offers; each is chosen by a digit.
const MAX_CHOICES: usize = 9;
/// Longest question, in bytes: it must be read at a glance.
const MAX_QUESTION_BYTES: usize = 2_000;
/// Longest answer that is offered, in bytes.
const MAX_CHOICE_BYTES: usize = 200;

/// The tool. Only for sessions in which somebody can answer.
#[must_use]
pub fn ask_tool() -> Arc<dyn Tool> {
    Arc::new(AskTool { spec: ask_spec() })
}

/// The arguments of a call of the tool.
#[derive(Deserialize)]
struct AskArguments {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
}

struct AskTool {
    spec: ToolSpec,
}

impl Tool for AskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let question = match args::read_arguments::<AskArguments>(&call).map(parse_question) {
                Ok(Ok(question)) => question,
                Ok(Err(error)) => return ToolOutcome::failure_text(error.to_string()),
                Err(outcome) => return outcome,
            };
            tokio::select! {
                biased;
                () = cx.stop.cancelled() => ToolOutcome::Interrupted(String::new()),
                answer = cx.ask_user(&call.id, question) => answer_outcome(answer),
            }
        })
    }
}

fn ask_spec() -> ToolSpec {
    let spec = args::tool_spec(
        "ask",
        Access::Read,
        [],
        Tier::Full,
        "Ask the user what only they can know and what changes your next step. One question; offer \
         answers where you can.",
        r#"{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"array","items":{"type":"string"},"description":"up to 9 short answers; others can be written"}},"required":["question"]}"#,
    );
    ToolSpec { kind: ToolKind::AsksPerson, ..spec }
}

/// The reason why a question is not asked, for the model.
#[derive(thiserror::Error)]
enum QuestionError {
    #[error("`question` must have 1 to {MAX_QUESTION_BYTES} bytes")]
    Length,
    #[error(
        "`choices` must be at most {MAX_CHOICES} answers of 1 to {MAX_CHOICE_BYTES} bytes each"
    )]
    Choices,
}

gnoma_core::debug_as_display!(QuestionError);

/// Makes the question of a call.
fn parse_question(
    AskArguments { question, choices }: AskArguments,
) -> Result<Question, QuestionError> {
    let text = question.trim();
    if text.is_empty() || text.len() > MAX_QUESTION_BYTES {
        return Err(QuestionError::Length);
    }
    let is_fit = |choice: &String| (1..=MAX_CHOICE_BYTES).contains(&choice.trim().len());
    if choices.len() > MAX_CHOICES || !choices.iter().all(is_fit) {
        return Err(QuestionError::Choices);
    }
    let line = |choice: String| choice.split_whitespace().collect::<Vec<_>>().join(" ");
    let inquiry = Inquiry { choices: choices.into_iter().map(line).collect() };
    let (text, inquiry) = (text.to_owned(), Some(inquiry));
    Ok(Question { text, inquiry, ..Question::default() })
}

fn answer_outcome(answer: PermissionAnswer) -> ToolOutcome {
    match answer.to_inquiry() {
        PermissionAnswer::Text { text } => ToolOutcome::success_text(text),
        PermissionAnswer::Deny { reason } if !reason.is_empty() => {
            ToolOutcome::failure_text(format!(
                "no answer: {reason}. Go on with what you think is best, and say what you assumed"
            ))
        }
        _ => ToolOutcome::failure_text(
            "the user did not answer. Go on with what you think is best, and say what you assumed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(question: &str, choices: &[&str]) -> Result<Question, QuestionError> {
        let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        super::parse_question(AskArguments { question: question.to_owned(), choices })
    }

    #[test]
    fn ask_tool_rejects_empty_questions_and_too_many_choices() {
        let question = asked(" Which\ndatabase? ", &["SQLite", "Post\n  gres"]).unwrap();
        assert_eq!(question.text, "Which\ndatabase?");
        assert_eq!(question.inquiry.unwrap().choices, ["SQLite", "Post gres"]);
        assert!(asked("Why?", &[]).is_ok());
        assert!(asked(" ", &[]).is_err() && asked("Why?", &["a", " "]).is_err());
        assert!(asked("Why?", &["a"; MAX_CHOICES + 1]).is_err());
        assert!(asked(&"x".repeat(MAX_QUESTION_BYTES + 1), &[]).is_err());
    }

    #[test]
    fn ask_tool_returns_the_answer_or_that_there_was_none() {
        let text = |answer| format!("{:?}", answer_outcome(answer));
        assert!(text(PermissionAnswer::Text { text: "SQLite".into() }).starts_with("Done"));
        for none in [PermissionAnswer::Allow, PermissionAnswer::Deny { reason: String::new() }] {
            let told = text(none);
            assert!(told.starts_with("Failed") && told.contains("did not answer"), "{told}");
        }
        let told = text(PermissionAnswer::Deny { reason: "nobody is there".into() });
        assert!(told.contains("no answer: nobody is there. Go on"), "{told}");
    }
}
