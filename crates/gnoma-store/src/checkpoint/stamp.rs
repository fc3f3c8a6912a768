//! What the file system says about a file without reading it, and when that can be trusted.

use rustix::fs::{FileType, Stat};

/// Permission bits, with set-id and sticky.
pub(super) const MODE_BITS: u32 = 0o7777;

/// Clocks of file systems tick this coarsely at most.
const FINE_TICK_NS: i128 = 50_000_000;

/// Times without a fraction come from file systems that count seconds, FAT even in twos.
const COARSE_TICK_NS: i128 = 2_000_000_000;

/// Identity and age of a file. Two equal stamps mean equal contents, unless the stamp is
/// [racy](Self::is_racy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) links: u32,
    /// Last change of contents, in nanoseconds since 1970.
    pub(super) modified_ns: i128,
    /// Last change of contents or metadata; nobody can set it back.
    pub(super) changed_ns: i128,
}

impl Stamp {
    /// Returns the stamp that `stat` gives.
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self {
            device: convert_field(stat.st_dev),
            inode: convert_field(stat.st_ino),
            size: convert_field(stat.st_size),
            mode: convert_field::<u32>(stat.st_mode) & MODE_BITS,
            links: convert_field(stat.st_nlink),
            modified_ns: to_nanoseconds(
                convert_field(stat.st_mtime),
                convert_field(stat.st_mtime_nsec),
            ),
            changed_ns: to_nanoseconds(
                convert_field(stat.st_ctime),
                convert_field(stat.st_ctime_nsec),
            ),
        }
    }

    /// Reports whether something may have changed after `now_ns` and left the same stamp: the change is so recent
    /// that the clock has not moved on. Such a stamp proves nothing later.
    pub(super) fn is_racy(&self, now_ns: i128) -> bool {
        let whole_seconds = self.changed_ns % 1_000_000_000 == 0;
        let tick = if whole_seconds { COARSE_TICK_NS } else { FINE_TICK_NS };
        self.changed_ns + tick >= now_ns
    }

    /// Reports whether both are one file with equal contents, whatever its mode and names.
    pub(super) fn same_contents(&self, other: &Self) -> bool {
        (self.device, self.inode, self.size, self.modified_ns, self.changed_ns)
            == (other.device, other.inode, other.size, other.modified_ns, other.changed_ns)
    }
}

/// A field of `stat`, whose widths and signs differ between systems. What does not fit is never a
/// value that matters.
fn convert_field<T: Default>(field: impl TryInto<T>) -> T {
    field.try_into().unwrap_or_default()
}

fn to_nanoseconds(seconds: i64, fraction: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(fraction)
}

/// Returns the kind of thing that `stat` describes.
pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_stamp_within_one_clock_tick_is_racy() {
        let stamp = |changed_ns| Stamp { changed_ns, ..Stamp::default() };
        assert!(stamp(1_000_000_001).is_racy(1_000_000_001));
        assert!(stamp(1_000_000_001).is_racy(1_040_000_000));
        assert!(!stamp(1_000_000_001).is_racy(1_060_000_000));
        // From the future: a clock that runs ahead.
        assert!(stamp(9_000_000_001).is_racy(1_000_000_000));
        // Whole seconds: the file system may count no finer.
        assert!(stamp(1_000_000_000).is_racy(2_900_000_000));
        assert!(!stamp(1_000_000_000).is_racy(3_100_000_000));
    }
}
