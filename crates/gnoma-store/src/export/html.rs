//! HTML: one page, everything escaped, nothing that runs or loads.

use gnoma_core::store::SessionFacts;
use jiff::tz::TimeZone;

use super::block::Block;
use crate::time;

/// Kinds of pictures browsers show and that cannot hold scripts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The end of the page.
pub(super) const TAIL: &str = "</main></body></html>\n";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;background:#fff;color:#222}\
main{max-width:50rem;margin:2rem auto;padding:0 1rem}pre{background:#f4f4f4;padding:.7rem;\
overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}section{margin:1.5rem 0}\
.text{white-space:pre-wrap}.note{color:#666}img{max-width:100%}";

/// The beginning of the page.
pub(super) fn render_head(facts: &SessionFacts, zone: TimeZone) -> String {
    let title = escape_html(&facts.title);
    format!(
        "<!doctype html><html><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>\
         <p class=\"note\">Session {}, {}, {} messages, {} tokens</p>\n",
        escape_html(facts.id.as_str()),
        time::minute_in(zone, facts.created_ms),
        facts.messages,
        facts.usage.total_tokens(),
    )
}

/// Renders one block as HTML.
pub(super) fn render_block(block: &Block<'_>) -> String {
    match block {
        Block::Speech { who, text } => {
            format!(
                "<section><h2>{who}</h2><div class=\"text\">{}</div></section>\n",
                escape_html(text)
            )
        }
        Block::Verbatim { label, text } => format!(
            "<details><summary>{}</summary><pre>{}</pre></details>\n",
            escape_html(label),
            escape_html(text)
        ),
        Block::Picture { mime, base64 } if PICTURES.contains(mime) => {
            format!("<img alt=\"\" src=\"data:{mime};base64,{}\">\n", escape_html(base64))
        }
        Block::Picture { mime, .. } => {
            format!("<p class=\"note\">picture ({})</p>\n", escape_html(mime))
        }
        Block::Note(note) => format!("<p class=\"note\">{}</p>\n", escape_html(note)),
    }
}

fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Other controls are not allowed in HTML, not even as references.
            '\n' | '\t' => safe.push(c),
            control if control.is_control() => {
                safe.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => safe.push(other),
        }
    }
    safe
}
