//! Reports child sessions that were interrupted when their process died, once.

use std::sync::Arc;

use gnoma_core::{
    Message, Role, SYSTEM_NOTE,
    store::{Record, SessionFacts, SessionId},
    text_truncation,
};
use rusqlite::Connection;

use crate::{
    child,
    entry::{PreparedRecord, parse_record},
    error::Result,
    lock::Identity,
    path, session, session_row,
};

/// Sessions that are named.
const MAX_NAMED: usize = 32;
/// Bytes of what is told of what one was doing.
const MAX_SHOWN_BYTES: usize = 160;
/// Entries at the end of one that are looked at for that.
const MAX_LOOKED_AT: usize = 64;

/// Closes those that were cut off below a session that is taken in hand, and says so at the end of its
/// conversation.
pub(crate) fn close_interrupted(
    connection: &Connection,
    me: &Identity,
    id: &SessionId,
    now_ms: i64,
) -> Result<Vec<SessionFacts>> {
    let all = session::child_facts(connection, me, id, now_ms)?;
    let is_cut_off = |facts: &SessionFacts| {
        facts.held_by.is_none() && facts.child.as_ref().is_some_and(|child| child.is_open)
    };
    let mut cut_off: Vec<SessionFacts> = all.into_iter().filter(is_cut_off).collect();
    // Those that start at once are begun in any order.
    gnoma_core::sort::sort_by(&mut cut_off, |one, other| child_name(one).cmp(child_name(other)));
    if cut_off.is_empty() {
        return Ok(cut_off);
    }
    let mut text = format!(
        "{SYSTEM_NOTE}gnoma ended while these elfs of yours were at work. What they had said and done \
         until then is saved, and the files they changed stay changed. To continue one where it \
         stopped, give `elf.spawn` a task with `resume` set to its id."
    );
    for facts in cut_off.iter().take(MAX_NAMED) {
        text.push_str(&format!("\n- {}", describe_interrupted_child(connection, facts)?));
    }
    if cut_off.len() > MAX_NAMED {
        text.push_str(&format!("\n- and {} more", cut_off.len() - MAX_NAMED));
    }
    for facts in &cut_off {
        let number = session_row::find_session(connection, &facts.id)?.number;
        child::set_open(connection, number, false)?;
    }
    let known = session_row::find_session(connection, id)?;
    let message = Record::Message(Arc::new(Message::user_text(text)));
    session::insert_entry(connection, &known, known.tip, now_ms, &PreparedRecord::new(message)?)?;
    Ok(cut_off)
}

/// A line on one of them.
fn describe_interrupted_child(connection: &Connection, facts: &SessionFacts) -> Result<String> {
    let SessionFacts { id, title, messages, .. } = facts;
    let name = child_name(facts);
    let task = text_truncation::word_prefix(title, MAX_SHOWN_BYTES);
    let last = describe_last_action(connection, session_row::find_session(connection, id)?.tip)?;
    Ok(format!("`{name}` (resume: {id}): {task}; {messages} messages, {last}"))
}

fn child_name(facts: &SessionFacts) -> &str {
    facts.child.as_ref().map_or("", |child| child.name.as_str())
}

/// Describes what a session did last.
fn describe_last_action(connection: &Connection, tip: Option<i64>) -> Result<String> {
    let mut next = tip;
    for _ in 0..MAX_LOOKED_AT {
        let Some(id) = next else { break };
        let node = path::load_node(connection, id)?;
        if let Some(Record::Message(message)) = parse_record(&node.body).filter(|_| !node.hidden) {
            return Ok(describe_message(&message));
        }
        next = node.parent.filter(|parent| *parent < id);
    }
    Ok("it had not begun".to_owned())
}

fn describe_message(message: &Message) -> String {
    let names = |names: Vec<&str>| names.join(", ");
    match message.role() {
        Role::User => "it had not answered yet".to_owned(),
        Role::Tool => {
            let tools = message.tool_results().map(|result| result.name.as_str()).collect();
            format!("it had the results of {}", names(tools))
        }
        Role::Assistant if message.tool_calls().next().is_some() => {
            let calls = message.tool_calls().map(|call| call.name.as_str()).collect();
            format!("it was running {}", names(calls))
        }
        Role::Assistant => {
            let text = message.text_content();
            let line = text.lines().next().unwrap_or_default();
            format!("its last words were: {}", text_truncation::word_prefix(line, MAX_SHOWN_BYTES))
        }
    }
}
