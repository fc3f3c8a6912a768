//! What describes one kind of text that a secret stands in.

use std::ops::Range;

/// Takes the byte ranges of the secrets found.
pub(crate) type SpanSink<'a> = &'a mut dyn FnMut(Range<usize>);

/// One kind of text that a secret stands in.
#[derive(Debug)]
pub(crate) struct SecretContext {
    /// Shown like the id of a rule.
    pub(crate) id: &'static str,
    /// The keywords at which `find` is called, in lower case.
    pub(crate) keywords: &'static [&'static str],
    /// Looks around the keyword that stands at the range.
    pub(crate) find: fn(&[u8], Range<usize>, SpanSink),
}
