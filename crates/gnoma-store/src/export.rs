//! A session as a file for people or for another gnoma. Pure: entries in, text out, piece by piece,
//! so that a long session need not be in memory at once.

mod html;
mod markdown;

use std::borrow::Cow;

use gnoma_core::{
    Content, Message, ResultPart, Role, ToolCall,
    store::{Entry, Record, ResultId, SessionFacts},
};
use serde::{Deserialize, Serialize};

/// The version of the JSON lines.
pub(crate) const LINES_VERSION: u32 = 1;

/// What an exported session looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For reading and for repositories.
    Markdown,
    /// One page without scripts, for browsers.
    Html,
    /// One JSON value a line, everything kept; [`crate::import`] reads it.
    Lines,
}

/// The first of the JSON lines.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LinesHead {
    /// The version of the lines.
    pub(crate) gnoma_session: u32,
    /// The session's facts.
    pub(crate) facts: SessionFacts,
}

/// A large result among the JSON lines.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResultLine<'t> {
    /// Its handle.
    pub(crate) result: ResultId,
    /// All of it.
    pub(crate) text: Cow<'t, str>,
}

impl Format {
    /// What comes before the entries.
    #[must_use]
    pub fn head(self, facts: &SessionFacts) -> String {
        match self {
            Self::Markdown => markdown::head(facts),
            Self::Html => html::head(facts),
            Self::Lines => line(&LinesHead { gnoma_session: LINES_VERSION, facts: facts.clone() }),
        }
    }

    /// One entry; may be empty where the format leaves it out.
    #[must_use]
    pub fn entry(self, entry: &Entry) -> String {
        match self {
            Self::Markdown => blocks(&entry.record).iter().map(markdown::block).collect(),
            Self::Html => blocks(&entry.record).iter().map(html::block).collect(),
            Self::Lines => line(entry),
        }
    }

    /// A large result that entries speak of by its handle; empty where the format leaves it out.
    #[must_use]
    pub fn result(self, id: &ResultId, text: &str) -> String {
        match self {
            Self::Markdown | Self::Html => String::new(),
            Self::Lines => line(&ResultLine { result: id.clone(), text: Cow::Borrowed(text) }),
        }
    }

    /// What comes after the entries.
    #[must_use]
    pub fn tail(self) -> &'static str {
        match self {
            Self::Markdown | Self::Lines => "",
            Self::Html => html::TAIL,
        }
    }
}

/// One JSON line. Records are plain data and always serialise.
fn line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

/// What a reader is shown, the same in every format for people.
enum Block<'a> {
    /// Somebody speaks.
    Speech { who: &'static str, text: &'a str },
    /// Something set apart word for word: code, output, reasoning.
    Verbatim { label: String, text: &'a str },
    /// A picture.
    Picture { mime: &'a str, base64: &'a str },
    /// A remark of the program's.
    Note(String),
}

fn blocks(record: &Record) -> Vec<Block<'_>> {
    match record {
        Record::Message(message) => message_blocks(message),
        Record::Routed { arm, why } => vec![Block::Note(format!("{arm}: {why}"))],
        Record::Judged { call, allowed, reason } => {
            let verdict = if *allowed { "allowed" } else { "refused" };
            vec![Block::Note(format!("{verdict} {call}: {reason}"))]
        }
        Record::Summary { text, .. } => {
            vec![Block::Verbatim { label: "summary of what was said before".to_owned(), text }]
        }
        Record::Interrupted { calls } => {
            vec![Block::Note(format!("the program ended while {} calls were running", calls.len()))]
        }
        Record::Rewound { .. } => vec![Block::Note("taken back to here".to_owned())],
        Record::Title { text } => vec![Block::Note(format!("title: {text}"))],
        Record::Checked { arm, by, passed, evidence } => {
            let verdict = if *passed { "holds" } else { "does not hold" };
            vec![Block::Note(format!("the work of {arm} {verdict}, says {by}: {evidence}"))]
        }
        Record::Used(_)
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
        Content::ToolCall(call) => vec![called(call)],
        Content::ToolResult(result) => {
            let kind = if result.is_error { "error" } else { "result" };
            let label = format!("{kind} of {}", result.name);
            result.parts.iter().map(|part| result_block(&label, part)).collect()
        }
    }
}

fn called(call: &ToolCall) -> Block<'_> {
    Block::Verbatim { label: format!("call of {}", call.name), text: call.arguments.get() }
}

fn result_block<'a>(label: &str, part: &'a ResultPart) -> Block<'a> {
    match part {
        ResultPart::Text { text } => Block::Verbatim { label: label.to_owned(), text },
        ResultPart::Image(image) => Block::Picture { mime: &image.mime, base64: &image.base64 },
    }
}
