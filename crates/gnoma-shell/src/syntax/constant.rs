//! Words whose value is certain without expanding anything.

use super::ast::{Part, PartKind, Word};

impl Word {
    /// Its text when that is certain before anything runs: literals and quotes only.
    #[must_use]
    pub fn constant(&self) -> Option<String> {
        let mut text = String::new();
        constant_parts(&self.parts, &mut text).then_some(text)
    }

    /// Its text when nothing in it is quoted, expanded or a pattern.
    pub(super) fn plain_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part { span, kind: PartKind::Literal(text) }]
                if span.end - span.start == text.len() =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

fn constant_parts(parts: &[Part], text: &mut String) -> bool {
    parts.iter().all(|part| match &part.kind {
        PartKind::Literal(piece)
        | PartKind::SingleQuoted(piece)
        | PartKind::AnsiQuoted(Some(piece)) => {
            text.push_str(piece);
            true
        }
        PartKind::DoubleQuoted(parts) => constant_parts(parts, text),
        PartKind::AnsiQuoted(None)
        | PartKind::LocaleQuoted(_)
        | PartKind::Parameter(_)
        | PartKind::CommandSubstitution(_)
        | PartKind::Arithmetic(_)
        | PartKind::ProcessSubstitution { .. }
        | PartKind::Glob(_)
        | PartKind::ExtendedGlob { .. }
        | PartKind::BraceList(_)
        | PartKind::BraceRange(_)
        | PartKind::Tilde(_)
        | PartKind::Array(_) => false,
    })
}
