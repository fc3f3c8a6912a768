//! Requests that are commands of the engine, and those of them that would come to nothing. Pure.

use std::sync::Arc;

use gnoma_core::{
    Command, Content, Event, Message, ModelRef, Role,
    info::Choice,
    protocol::{Request, RequestError, RequestErrorKind, RunningTurn},
    session::{PermissionAnswer, SessionState},
};

use super::log::EventLog;
use crate::rule;

/// Messages that may wait for a running turn.
const MAX_QUEUED: usize = 64;
/// Bytes of them: every front end is told all of them whenever one is added.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// The engine's command for a request; else the request.
pub(super) fn from_request(request: Request) -> Result<Command, Request> {
    Ok(match request {
        Request::Send { content } => Command::Send { content },
        Request::EditQueue { was, queue } => Command::EditQueue { was, queue },
        Request::Answer { call, answer } => Command::Answer { call, answer },
        Request::Cancel => Command::Cancel,
        Request::SetMode { mode } => Command::SetMode { mode },
        Request::SetThinking { thinking } => Command::SetThinking { thinking },
        Request::Pin { arm } => Command::Pin { arm },
        Request::Rate { good } => Command::Rate { good },
        Request::Compact { focus } => Command::Compact { focus },
        Request::EditSummary { summary } => Command::EditSummary { summary },
        Request::UndoCompaction => Command::UndoCompaction,
        other => return Err(other),
    })
}

/// Checks that a command would have an effect; the error says why it would not. `models`: those that can be chosen
/// now.
pub(super) fn check_command(
    command: &Command,
    log: &EventLog,
    models: impl Fn() -> Vec<Choice>,
) -> Result<(), RequestError> {
    match command {
        Command::Send { content } => {
            check_content(content)?;
            log.with_view(|view| has_room(view.turn.as_ref(), content))
        }
        Command::EditQueue { queue, .. } => {
            queue.iter().try_for_each(|content| check_content(content))
        }
        // The call would run before anybody hears that the rule is none.
        Command::Answer { answer: PermissionAnswer::Rule { rule, .. }, .. } => {
            let checked = rule::check_rules(rule);
            checked
                .map(drop)
                .map_err(|error| RequestError::new(RequestErrorKind::Invalid, error.to_string()))
        }
        Command::Compact { .. } | Command::EditSummary { .. } | Command::UndoCompaction
            if is_at_work(log) =>
        {
            Err(between_turns())
        }
        Command::Pin { arm: Some(arm) } if !is_known(&models(), arm) => {
            let cause = format!("there is no model `{arm}` to choose");
            Err(RequestError::new(RequestErrorKind::NotFound, cause))
        }
        _ => Ok(()),
    }
}

/// Reports whether a turn runs.
pub(super) fn is_at_work(log: &EventLog) -> bool {
    let state = log.with_view(|view| view.state);
    matches!(state, SessionState::Active | SessionState::Cancelling)
}

/// Reports whether an arm is among the models that can be chosen; if none is known, any may be.
fn is_known(models: &[Choice], arm: &ModelRef) -> bool {
    models.is_empty() || models.iter().any(|choice| choice.arm.as_ref() == Some(arm))
}

/// The texts that a person has said in the conversation, the oldest first.
pub(super) fn said_by_person(log: &EventLog) -> Vec<String> {
    let is_said =
        |message: &&Arc<Message>| message.role() == Role::User && !message.is_system_note();
    let (_, messages) = log.messages(None, usize::MAX);
    messages.iter().filter(is_said).map(|message| message.text_content()).collect()
}

/// Returns whether lists of sessions show something else after the event.
pub(super) fn changes_listing(event: &Event) -> bool {
    matches!(
        event,
        Event::State(_) | Event::PermissionAsked { .. } | Event::PermissionDecided { .. }
    )
}

pub(super) fn between_turns() -> RequestError {
    RequestError::new(RequestErrorKind::Busy, "a turn is running")
        .with_remedy("Wait for it to finish, or stop it first.")
}

pub(super) fn session_closed_error() -> RequestError {
    RequestError::new(RequestErrorKind::Closed, "the session is closed")
}

/// The error of a request to a session that could not be opened, for that reason.
pub(super) fn not_opened_error(why: RequestError) -> RequestError {
    let cause = format!("the session could not be opened: {}", why.cause);
    RequestError { kind: RequestErrorKind::Closed, cause, ..why }
}

pub(super) fn not_asked() -> RequestError {
    let cause = "the question was already answered, or never asked";
    RequestError::new(RequestErrorKind::NotAsked, cause)
}

pub(super) fn for_one_turn() -> RequestError {
    let cause = "another session started this one for one turn, so it cannot be reopened";
    RequestError::new(RequestErrorKind::Invalid, cause)
}

/// Checks that a user can send this content: only the model's side has anything but text and images, and what a provider
/// refuses would be refused again with every later message.
fn check_content(content: &[Content]) -> Result<(), RequestError> {
    let invalid = |cause: String| Err(RequestError::new(RequestErrorKind::Invalid, cause));
    let mut says_something = false;
    for part in content {
        match part {
            Content::Text(text) => says_something |= !text.text.trim().is_empty(),
            Content::Image(image) if !image.is_base64() => {
                return invalid("the picture's data is not base64".to_owned());
            }
            Content::Image(image) => match image.detected_type() {
                Some(found) if found == image.mime => says_something = true,
                Some(found) => {
                    let called = &image.mime;
                    return invalid(format!(
                        "the picture is `{found}`, although it is called `{called}`"
                    ));
                }
                None => return invalid("the picture is no PNG, JPEG, GIF or WebP".to_owned()),
            },
            Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_)
            | Content::ToolResult(_) => {
                return invalid("a message can contain text and images only".to_owned());
            }
        }
    }
    if says_something { Ok(()) } else { invalid("the message is empty".to_owned()) }
}

/// Checks that one more message can wait for the turn that runs.
fn has_room(turn: Option<&RunningTurn>, content: &[Content]) -> Result<(), RequestError> {
    let Some(queue) = turn.map(|turn| &turn.queue).filter(|queue| !queue.is_empty()) else {
        return Ok(());
    };
    let bytes: usize = queue.iter().flatten().chain(content).map(content_bytes).sum();
    if queue.len() < MAX_QUEUED && bytes <= MAX_QUEUED_BYTES {
        return Ok(());
    }
    let cause = format!(
        "{} messages are queued already; at most {MAX_QUEUED}, of {} MB in total, can be",
        queue.len(),
        MAX_QUEUED_BYTES >> 20
    );
    Err(RequestError::new(RequestErrorKind::Busy, cause)
        .with_remedy("Wait until they are read, or remove some from the queue."))
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.text.len(),
        Content::Image(image) => image.base64.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::Image;

    use super::*;

    fn turn(messages: usize, bytes: usize) -> RunningTurn {
        let message = vec![Content::from_text("x".repeat(bytes))];
        RunningTurn { queue: vec![message; messages], ..RunningTurn::default() }
    }

    #[test]
    fn message_queue_is_limited_in_count_and_bytes() {
        let one = [Content::from_text("one")];
        assert!(has_room(None, &one).is_ok());
        assert!(
            has_room(Some(&turn(0, 0)), &[Content::from_text("x".repeat(2 * MAX_QUEUED_BYTES))])
                .is_ok()
        );
        assert!(has_room(Some(&turn(MAX_QUEUED - 1, 1)), &one).is_ok());
        for full in [turn(MAX_QUEUED, 1), turn(1, MAX_QUEUED_BYTES)] {
            assert_eq!(has_room(Some(&full), &one).unwrap_err().kind, RequestErrorKind::Busy);
        }
    }

    #[test]
    fn message_content_must_be_text_or_valid_images() {
        let picture = |mime: &str, base64: &str| {
            Content::Image(Image { mime: mime.into(), base64: base64.into() })
        };
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
        assert!(check_content(&[Content::from_text("one")]).is_ok());
        assert!(check_content(&[picture("image/png", png)]).is_ok());
        for (content, why) in [
            (vec![], "empty"),
            (vec![Content::from_text("")], "empty"),
            (vec![Content::from_text(" \n")], "empty"),
            (vec![picture("image/png", "!!")], "base64"),
            (vec![picture("image/png", "AAAA")], "is no PNG"),
            (vec![Content::from_text("see"), picture("image/jpeg", png)], "is called `image/jpeg`"),
        ] {
            let error = check_content(&content).unwrap_err();
            assert!(error.cause.contains(why), "{error:?}");
            assert_eq!(error.kind, RequestErrorKind::Invalid);
        }
    }
}
