//! The commands, a file each.

pub(crate) mod decode;
pub(crate) mod guard;
pub(crate) mod history;
pub(crate) mod hot;
pub(crate) mod mock;
pub(crate) mod pictures;
pub(crate) mod router;
pub(crate) mod tokens;
pub(crate) mod watch;

use anyhow::{Context as _, Result};

/// The argument at `at` as a number.
pub(crate) fn parse_number_argument(
    arguments: &[String],
    at: usize,
    default: usize,
) -> Result<usize> {
    arguments
        .get(at)
        .map_or(Ok(default), |text| text.parse().with_context(|| format!("`{text}` is no number")))
}
