//! Whole texts of files for another program's agent, which asks for them by the Agent Client Protocol: as
//! they are, without the numbers of lines that models get.

use gnoma_core::{ToolCx, tool::ToolOutput};
use serde::Deserialize;

use super::{FileAnswer, FileTools, Refusal, target::TargetKind};

/// Largest text, in bytes: it becomes part of the conversation.
const MAX_TEXT_BYTES: u64 = 256 << 10;

/// The arguments of a call of the tool.
#[derive(Deserialize)]
pub(super) struct PlainArguments {
    path: String,
    /// The first line, from 1.
    line: Option<usize>,
    /// The most lines to read.
    limit: Option<usize>,
}

/// Reads a text. The first line of the output says what follows, so that an empty file is told apart from
/// no output.
pub(super) fn read_plain(
    shared: &FileTools,
    arguments: &PlainArguments,
    cx: &ToolCx,
) -> FileAnswer {
    let target = shared.resolve_target(cx, &arguments.path)?;
    match target.kind()? {
        TargetKind::File(_) => (),
        TargetKind::Folder => return Err(target.is_folder()),
        TargetKind::Special => return Err(target.is_special()),
        TargetKind::Missing => return Err(target.is_missing()),
    }
    let name = &target.name;
    let text = String::from_utf8(target.read_content(MAX_TEXT_BYTES)?)
        .map_err(|_| Refusal::Failed(format!("`{name}` is not UTF-8 text")))?;
    let first = arguments.line.unwrap_or(1).saturating_sub(1);
    let lines = text.split_inclusive('\n').skip(first).take(arguments.limit.unwrap_or(usize::MAX));
    let shown: String = lines.collect();
    Ok(ToolOutput::from_text(format!("text of `{name}`:\n{shown}")))
}

#[cfg(test)]
mod tests {
    use super::{super::testing::Bench, *};

    #[test]
    fn plain_read_returns_lines_without_numbers() {
        let bench = Bench::new();
        bench.put("a", "one\ntwo\r\nthree");
        bench.put("empty", "");
        let shared = FileTools::new(&Default::default());
        let text = |path: &str, line, limit| {
            let arguments = PlainArguments { path: path.to_owned(), line, limit };
            let output =
                read_plain(&shared, &arguments, &bench.cx()).unwrap_or_else(|_| panic!("{path}"));
            let parts = serde_json::to_value(&output.parts).unwrap();
            parts[0].to_string()
        };
        assert!(text("a", None, None).contains(r"text of `a`:\none\ntwo\r\nthree"));
        assert!(text("a", Some(2), Some(1)).ends_with(r#"`:\ntwo\r\n"}}"#));
        assert!(text("empty", None, None).contains(r"`empty`:\n"));
    }
}
