//! The report for programs: JSON of our own, SARIF 2.1.0 (OASIS), GitLab's code quality report, and the body of
//! GitHub's `POST /repos/{owner}/{repo}/pulls/{number}/reviews`.

use std::fmt::Write as _;

use gnoma_core::json_value::json;
use serde_json::Value;

use super::{
    escape, markdown,
    review::{Comment, CommentLevel, Review},
};

/// Returns all of a review, as JSON of gnoma's own.
pub fn to_json(review: &Review) -> Value {
    let comment = |it: &Comment| {
        json!({
            "path": it.path, "line": it.line, "level": it.level.name(), "title": it.title, "message": it.message,
        })
    };
    json!({
        "base": review.base,
        "commit": review.commit,
        "files": review.files,
        "files_left_out": review.left_out,
        "summary": review.summary,
        "comments": review.comments.iter().map(comment).collect::<Vec<_>>(),
        "comments_dropped": review.dropped,
    })
}

/// Returns the review as SARIF 2.1.0: a run of a tool with one rule.
pub fn to_sarif(review: &Review) -> Value {
    let result = |it: &Comment| {
        json!({
            "ruleId": "review",
            "ruleIndex": 0,
            "level": it.level.name(),
            "message": { "text": escape::plain_text(&format!("{}\n{}", it.title, it.message)) },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": path_to_uri(&it.path), "uriBaseId": "%SRCROOT%" },
                "region": { "startLine": it.line },
            } }],
            "partialFingerprints": { "gnomaComment/v1": comment_fingerprint(it) },
        })
    };
    let rule = json!({
        "id": "review",
        "name": "Review",
        "shortDescription": { "text": "A comment of a model that reviewed the change" },
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "gnoma",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": [rule],
            } },
            "columnKind": "unicodeCodePoints",
            "results": review.comments.iter().map(result).collect::<Vec<_>>(),
            "properties": { "commentsDropped": review.dropped, "filesLeftOut": review.left_out.len() },
        }],
    })
}

/// Returns the review as GitLab's code quality report, which is shown beside a merge request.
pub fn code_quality(review: &Review) -> Value {
    let severity = |level: CommentLevel| match level {
        CommentLevel::Error => "critical",
        CommentLevel::Warning => "major",
        CommentLevel::Note => "info",
    };
    let issue = |it: &Comment| {
        json!({
            "description": escape::plain_text(&format!("{}: {}", it.title, it.message)),
            "check_name": "gnoma-review",
            "fingerprint": comment_fingerprint(it),
            "severity": severity(it.level),
            "location": { "path": it.path, "lines": { "begin": it.line } },
        })
    };
    Value::Array(review.comments.iter().map(issue).collect())
}

/// Returns the review as GitHub's API takes it; it approves nothing and asks for no changes.
pub fn to_github(review: &Review) -> Value {
    let comment = |it: &Comment| json!({ "path": it.path, "line": it.line, "side": "RIGHT", "body": markdown::render_comment(it) });
    json!({
        "commit_id": review.commit,
        "event": "COMMENT",
        "body": format!("**Review by gnoma:** {}", escape::markdown(&review.summary)),
        "comments": review.comments.iter().map(comment).collect::<Vec<_>>(),
    })
}

/// A path as a reference (RFC 3986).
fn path_to_uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into());
            }
            _ => {
                let _infallible = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// Returns the fingerprint (FNV-1a) by which the next report recognizes a comment.
fn comment_fingerprint(it: &Comment) -> String {
    let text = format!("{}\0{}\0{}\0{}", it.path, it.line, it.title, it.message);
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}
