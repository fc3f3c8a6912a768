//! Keeps a path legal where entries are missing from its middle: every call is answered by the very
//! next message, and nothing else is. Pure.

use std::{collections::HashSet, sync::Arc};

use gnoma_core::{Content, Message, Role, store::Record};

/// What must happen to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mend {
    /// It answers calls that are gone.
    Hide,
    /// Its calls have lost their results: they are told in words instead.
    Rewrite(Record),
}

/// What to do so that `path`, oldest first, is legal. Calls of the last message may stay open: they
/// are answered when the session is taken in hand.
pub(crate) fn mend(path: &[(i64, Record)]) -> Vec<(i64, Mend)> {
    let messages: Vec<(i64, &Arc<Message>)> =
        path.iter()
            .filter_map(|(id, record)| {
                if let Record::Message(message) = record { Some((*id, message)) } else { None }
            })
            .collect();
    let mut mends = Vec::new();
    let mut open: Option<(i64, &Message)> = None;
    for (id, message) in messages {
        let answers = message.role() == Role::Tool;
        match open.take() {
            Some((_, caller)) if answers && is_answer(caller, message) => continue,
            Some((caller_id, caller)) => mends.extend(in_words(caller_id, caller)),
            None => {}
        }
        if answers {
            mends.push((id, Mend::Hide));
        } else if message.tool_calls().next().is_some() {
            open = Some((id, message));
        }
    }
    mends
}

/// Whether `results` answers all calls of `caller` and no others.
pub(crate) fn is_answer(caller: &Message, results: &Message) -> bool {
    let calls: HashSet<_> = caller.tool_calls().map(|call| &call.id).collect();
    let answered: HashSet<_> = results.tool_results().map(|result| &result.call_id).collect();
    calls == answered
}

fn in_words(id: i64, caller: &Message) -> Option<(i64, Mend)> {
    let content = caller.content().iter().map(call_in_words).collect();
    let message = Message::assistant(content, caller.origin().cloned(), caller.stop()).ok()?;
    Some((id, Mend::Rewrite(Record::Message(Arc::new(message)))))
}

fn call_in_words(block: &Content) -> Content {
    match block {
        Content::ToolCall(call) => Content::text(format!(
            "[a call of `{}` whose result is lost: {}]",
            call.name, call.arguments
        )),
        Content::Text(_)
        | Content::Image(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolResult(_) => block.clone(),
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolCall, ToolResult};
    use proptest::prelude::*;

    use super::*;

    fn call(id: u8) -> ToolCall {
        ToolCall::new(CallId::new(format!("c{id}")), "bash", RawJson::empty_object())
    }

    fn record(kind: u8, id: u8) -> Record {
        Record::Message(Arc::new(match kind {
            0 => Message::user_text("hello"),
            1 => Message::assistant(vec![Content::ToolCall(call(id))], None, None).unwrap(),
            _ => Message::results(vec![ToolResult::text(&call(id), "out", false)]).unwrap(),
        }))
    }

    fn is_legal(path: &[(i64, Record)]) -> bool {
        mend(path).is_empty()
    }

    proptest! {
        #[test]
        fn any_path_becomes_legal(kinds in prop::collection::vec((0..3_u8, 0..3_u8), 0..12)) {
            let path: Vec<_> =
                kinds.iter().zip(1..).map(|((kind, id), at)| (at, record(*kind, *id))).collect();
            let mends = mend(&path);
            let mended: Vec<_> = path
                .into_iter()
                .filter_map(|(id, record)| {
                    match mends.iter().find(|(mended, _)| *mended == id) {
                        Some((_, Mend::Hide)) => None,
                        Some((_, Mend::Rewrite(other))) => Some((id, other.clone())),
                        None => Some((id, record)),
                    }
                })
                .collect();
            prop_assert!(is_legal(&mended));
        }
    }

    #[test]
    fn a_legal_path_is_left_alone() {
        assert!(is_legal(&[(1, record(0, 0)), (2, record(1, 1)), (3, record(2, 1))]));
        assert!(is_legal(&[(1, record(0, 0)), (2, record(1, 1))]));
    }
}
