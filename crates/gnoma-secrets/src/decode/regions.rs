//! Which parts of a text are worth decoding: the lines around markers.

use std::ops::Range;

use memchr::{memchr, memrchr};

/// The most bytes of a line that are decoded on each side of a marker.
const MAX_REACH_BYTES: usize = 2048;

/// The part of the line around `marker` that is decoded, bounded on long lines.
pub(crate) fn line_around(text: &[u8], marker: usize) -> Range<usize> {
    let low = marker.saturating_sub(MAX_REACH_BYTES);
    let high = text.len().min(marker + MAX_REACH_BYTES);
    let before = text.get(low..marker).unwrap_or_default();
    let after = text.get(marker..high).unwrap_or_default();
    let start = memrchr(b'\n', before).map_or(low, |at| low + at + 1);
    let end = memchr(b'\n', after).map_or(high, |at| marker + at);
    start..end
}

/// Lines around the markers that `next_marker(from)` finds, those that touch joined to one.
pub(crate) fn lines_with(
    text: &[u8],
    mut next_marker: impl FnMut(usize) -> Option<usize>,
) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(marker) = next_marker(from) {
        let line = line_around(text, marker);
        from = line.end.max(marker + 1);
        match regions.last_mut() {
            Some(last) if line.start <= last.end + 1 => last.end = last.end.max(line.end),
            _ => regions.push(line),
        }
    }
    regions
}
