//! Keeps a path legal where entries are missing from its middle: every call is answered by the very
//! next message, and nothing else is. Pure.

use std::{collections::HashSet, sync::Arc};

use gnoma_core::{CallId, Content, Message, Role, ToolResult, store::Record};

/// An entry to write again. Calls that have lost their results, and results that have lost their calls, are
/// told in words; a result whose call is there under a name that differs gets that name.
pub(crate) type Rewrite = (i64, Record);

/// Returns the rewrites that make `path`, oldest first, legal. Calls of the last message may stay open: they are
/// answered when the session is taken in hand.
pub(crate) fn repair_pairs(path: &[(i64, Record)]) -> Vec<Rewrite> {
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
            Some((_, caller)) if answers && let Some(named) = named_as(caller, message) => {
                mends.push((id, Record::Message(Arc::new(named))));
                continue;
            }
            Some((caller_id, caller)) => mends.extend(calls_in_words(caller_id, caller)),
            None => {}
        }
        if answers {
            mends.extend(results_in_words(id, message));
        } else if message.tool_calls().next().is_some() {
            open = Some((id, message));
        }
    }
    mends
}

/// Reports whether `results` answers all calls of `caller` and no others.
pub(crate) fn is_answer(caller: &Message, results: &Message) -> bool {
    let calls: HashSet<_> = caller.tool_calls().map(|call| &call.id).collect();
    let answered: HashSet<_> = results.tool_results().map(|result| &result.call_id).collect();
    calls == answered
}

/// The results under the names of the calls, where all but one fit and that one is the only call left.
fn named_as(caller: &Message, results: &Message) -> Option<Message> {
    let calls: Vec<_> = caller.tool_calls().map(|call| &call.id).collect();
    let mut results: Vec<ToolResult> = results.tool_results().cloned().collect();
    let (mut left, mut strange) = (calls.clone(), Vec::new());
    for result in &mut results {
        match left.iter().position(|call| **call == result.call_id) {
            Some(at) => drop(left.remove(at)),
            None => strange.push(result),
        }
    }
    match (left.as_slice(), strange.as_mut_slice()) {
        ([call], [result]) if is_like(call, &result.call_id) => {
            result.call_id = (*call).clone();
        }
        _ => return None,
    }
    Message::results(results).ok()
}

/// Reports whether two names differ by one letter.
fn is_like(one: &CallId, other: &CallId) -> bool {
    let (one, other) = (one.as_str(), other.as_str());
    let differ = one.chars().zip(other.chars()).filter(|(one, other)| one != other).count();
    one.chars().count() == other.chars().count() && differ <= 1
}

fn calls_in_words(id: i64, caller: &Message) -> Option<Rewrite> {
    let content = caller.content().iter().map(call_in_words).collect();
    let message =
        Message::assistant(content, caller.origin().cloned(), caller.stop_reason()).ok()?;
    Some((id, Record::Message(Arc::new(message))))
}

fn call_in_words(block: &Content) -> Content {
    match block {
        Content::ToolCall(call) => Content::from_text(format!(
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

/// Only calls can be answered: what is left of the results is told as if by the person.
fn results_in_words(id: i64, message: &Message) -> Option<Rewrite> {
    let mut content = Vec::new();
    for result in message.tool_results() {
        let text = result.joined_text();
        content.push(Content::from_text(format!(
            "[the result of a call of `{}` that is lost: {text}]",
            result.name
        )));
        content.extend(result.images().cloned().map(Content::Image));
    }
    Some((id, Record::Message(Arc::new(Message::user(content).ok()?))))
}

#[cfg(test)]
mod tests {
    use gnoma_core::{RawJson, ToolCall};
    use proptest::prelude::*;

    use super::*;

    fn call(id: u8) -> ToolCall {
        ToolCall::new(CallId::new(format!("c{id}")), "bash", RawJson::empty_object())
    }

    fn record(kind: u8, id: u8) -> Record {
        Record::Message(Arc::new(match kind {
            0 => Message::user_text("hello"),
            1 => Message::assistant(vec![Content::ToolCall(call(id))], None, None).unwrap(),
            _ => Message::results(vec![ToolResult::from_text(&call(id), "out", false)]).unwrap(),
        }))
    }

    fn is_legal(path: &[(i64, Record)]) -> bool {
        repair_pairs(path).is_empty()
    }

    proptest! {
        #[test]
        fn call_result_pairing_repairs_any_entry_sequence(kinds in prop::collection::vec((0..3_u8, 0..3_u8), 0..12)) {
            let path: Vec<_> =
                kinds.iter().zip(1..).map(|((kind, id), at)| (at, record(*kind, *id))).collect();
            let mends = repair_pairs(&path);
            let mended: Vec<_> = path
                .into_iter()
                .map(|(id, record)| match mends.iter().find(|(mended, _)| *mended == id) {
                    Some((_, other)) => (id, other.clone()),
                    None => (id, record),
                })
                .collect();
            prop_assert!(is_legal(&mended));
        }
    }

    #[test]
    fn unpaired_tool_results_become_text_and_mismatched_ids_are_fixed() {
        let Record::Message(results) = record(2, 1) else { panic!() };
        let (_, told) = repair_pairs(&[(1, record(0, 0)), (2, record(2, 1))]).pop().unwrap();
        let Record::Message(told) = told else { panic!() };
        assert!(told.role() == Role::User && told.text_content().contains("lost: out]"));
        let mends = repair_pairs(&[(1, record(1, 1)), (2, record(2, 7))]);
        assert_eq!(mends, [(2, Record::Message(results))]);
        assert_eq!(repair_pairs(&[(1, record(1, 1)), (2, record(2, 77))]).len(), 2);
    }

    #[test]
    fn call_result_pairing_leaves_a_valid_sequence_unchanged() {
        assert!(is_legal(&[(1, record(0, 0)), (2, record(1, 1)), (3, record(2, 1))]));
        assert!(is_legal(&[(1, record(0, 0)), (2, record(1, 1))]));
    }
}
