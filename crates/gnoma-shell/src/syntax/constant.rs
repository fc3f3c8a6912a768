//! Words whose value is certain without expanding anything.

use super::ast::{Word, WordPart, WordPartKind};

impl Word {
    /// Returns the text of the word if it is certain before anything runs: literals and quotes only.
    #[must_use]
    pub fn constant_text(&self) -> Option<String> {
        let mut text = String::new();
        constant_parts(&self.parts, &mut text).then_some(text)
    }

    /// Returns the text of the word if no part of it is quoted, expanded or a pattern.
    pub(super) fn plain_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [WordPart { span, kind: WordPartKind::Literal(text) }]
                if span.end - span.start == text.len() =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

fn constant_parts(parts: &[WordPart], text: &mut String) -> bool {
    parts.iter().all(|part| match &part.kind {
        WordPartKind::Literal(piece)
        | WordPartKind::SingleQuoted(piece)
        | WordPartKind::AnsiQuoted(Some(piece)) => {
            text.push_str(piece);
            true
        }
        WordPartKind::DoubleQuoted(parts) => constant_parts(parts, text),
        WordPartKind::AnsiQuoted(None)
        | WordPartKind::LocaleQuoted(_)
        | WordPartKind::Parameter(_)
        | WordPartKind::CommandSubstitution(_)
        | WordPartKind::Arithmetic(_)
        | WordPartKind::ProcessSubstitution { .. }
        | WordPartKind::Glob(_)
        | WordPartKind::ExtendedGlob { .. }
        | WordPartKind::BraceList(_)
        | WordPartKind::BraceRange(_)
        | WordPartKind::Tilde(_)
        | WordPartKind::Array(_) => false,
    })
}
