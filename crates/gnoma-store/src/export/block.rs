//! What a reader is shown of an entry, before a format writes it.

use gnoma_core::{Content, Message, ResultPart, Role, ToolCall, store::Record};

/// One piece of what every format for people shows.
pub(super) enum Block<'a> {
    /// A speaker and the text spoken.
    Speech { who: &'static str, text: &'a str },
    /// A text set apart word for word: code, output, reasoning.
    Verbatim { label: String, text: &'a str },
    /// A picture.
    Picture { mime: &'a str, base64: &'a str },
    /// A remark of the program's.
    Note(String),
}

/// Returns what is shown of a record; nothing of records that only programs need.
pub(super) fn record_blocks(record: &Record) -> Vec<Block<'_>> {
    match record {
        Record::Message(message) => message_blocks(message),
        Record::Routed { arm, why } => vec![Block::Note(format!("{arm}: {why}"))],
        Record::Judged { call, allowed, reason } => {
            let verdict = if *allowed { "approved" } else { "denied" };
            vec![Block::Note(format!("{verdict} {call}: {reason}"))]
        }
        Record::Summary { text, .. } if text.is_empty() => {
            vec![Block::Note("compaction undone".to_owned())]
        }
        Record::Summary { text, .. } => {
            vec![Block::Verbatim { label: "summary of the conversation so far".to_owned(), text }]
        }
        Record::Interrupted { calls } => {
            vec![Block::Note(format!("gnoma exited while {} calls were running", calls.len()))]
        }
        Record::Rewound { .. } => vec![Block::Note("rewound to here".to_owned())],
        Record::Title { text } => vec![Block::Note(format!("title: {text}"))],
        Record::Checked { arm, by, passed, evidence } => {
            let verdict = if *passed { "holds" } else { "does not hold" };
            vec![Block::Note(format!("the work of {arm} {verdict}, says {by}: {evidence}"))]
        }
        Record::Asked { .. }
        | Record::ToolEnded(_)
        | Record::Used(_)
        | Record::Paid { .. }
        | Record::Checkpoint { .. }
        | Record::Tombstone { .. } => Vec::new(),
    }
}

fn message_blocks(message: &Message) -> Vec<Block<'_>> {
    let who = match message.role() {
        Role::User => "You",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool",
    };
    message.content().iter().flat_map(|content| content_blocks(who, content)).collect()
}

fn content_blocks<'a>(who: &'static str, content: &'a Content) -> Vec<Block<'a>> {
    match content {
        Content::Text(text) => vec![Block::Speech { who, text: &text.text }],
        Content::Image(image) => vec![Block::Picture { mime: &image.mime, base64: &image.base64 }],
        Content::Thinking(thinking) if thinking.text.is_empty() => Vec::new(),
        Content::Thinking(thinking) => {
            vec![Block::Verbatim { label: "reasoning".to_owned(), text: &thinking.text }]
        }
        Content::RedactedThinking(_) => vec![Block::Note("hidden reasoning".to_owned())],
        Content::ToolCall(call) => vec![call_block(call)],
        Content::ToolResult(result) => {
            let kind = if result.is_error { "error" } else { "result" };
            let label = format!("{kind} of {}", result.name);
            result.parts.iter().map(|part| result_block(&label, part)).collect()
        }
    }
}

fn call_block(call: &ToolCall) -> Block<'_> {
    Block::Verbatim { label: format!("call of {}", call.name), text: call.arguments.get() }
}

fn result_block<'a>(label: &str, part: &'a ResultPart) -> Block<'a> {
    match part {
        ResultPart::Text { text } => Block::Verbatim { label: label.to_owned(), text },
        ResultPart::Image(image) => Block::Picture { mime: &image.mime, base64: &image.base64 },
    }
}
