//! A session as a file for people or for another gnoma. Pure: entries in, text out, piece by piece,
//! so that a long session need not be in memory at once.

mod block;
mod html;
mod markdown;

use std::borrow::Cow;

use gnoma_core::store::{Entry, ResultId, SessionFacts};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use self::block::record_blocks;

/// The version of the JSON lines.
pub(crate) const LINES_VERSION: u32 = 1;

/// The form of an exported session.
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
    /// The facts of the session.
    pub(crate) facts: SessionFacts,
}

/// A large result among the JSON lines.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResultLine<'t> {
    /// The handle of the result.
    pub(crate) result: ResultId,
    /// The whole text of the result.
    pub(crate) text: Cow<'t, str>,
}

impl Format {
    /// The text before the entries. Formats for people say when the session began, in the time zone `zone`, which
    /// is called only for that.
    #[must_use]
    pub fn render_head(self, facts: &SessionFacts, zone: fn() -> TimeZone) -> String {
        match self {
            Self::Markdown => markdown::render_head(facts, zone()),
            Self::Html => html::render_head(facts, zone()),
            Self::Lines => {
                to_json_line(&LinesHead { gnoma_session: LINES_VERSION, facts: facts.clone() })
            }
        }
    }

    /// One entry; empty if the format leaves it out.
    #[must_use]
    pub fn render_entry(self, entry: &Entry) -> String {
        match self {
            Self::Markdown => {
                record_blocks(&entry.record).iter().map(markdown::render_block).collect()
            }
            Self::Html => record_blocks(&entry.record).iter().map(html::render_block).collect(),
            Self::Lines => to_json_line(entry),
        }
    }

    /// A large result that entries speak of by its handle; empty where the format leaves it out.
    #[must_use]
    pub fn render_result(self, id: &ResultId, text: &str) -> String {
        match self {
            Self::Markdown | Self::Html => String::new(),
            Self::Lines => {
                to_json_line(&ResultLine { result: id.clone(), text: Cow::Borrowed(text) })
            }
        }
    }

    /// Returns the text that comes after the entries.
    #[must_use]
    pub fn render_tail(self) -> &'static str {
        match self {
            Self::Markdown | Self::Lines => "",
            Self::Html => html::TAIL,
        }
    }
}

/// One JSON line. Records are plain data and always serialise.
fn to_json_line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}
