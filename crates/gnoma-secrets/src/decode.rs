//! Decodes texts before they are scanned: colours, escapes, encodings.
//!
//! A decoder gives a [`View`]: decoded text that knows where each of its bytes came from. It only looks
//! at the parts of a text where its marker stands, so a text without markers costs one search for them.
//! Compression and encryption are left alone.

mod ansi;
mod blob;
mod entities;
mod escapes;
mod percent;
mod regions;
mod view;

pub(crate) use ansi::without_colours;
pub(crate) use blob::decode as blob;
pub(crate) use view::View;

/// Turns a text into what it means in one notation, or says that the notation does not occur.
pub(crate) type TextDecoder = fn(&[u8]) -> Option<View>;

/// Notations with a marker, in the order they are tried. [`blob`] has none: it needs to know the runs.
pub(crate) const DECODERS: &[TextDecoder] = &[escapes::decode, percent::decode, entities::decode];
