//! What led to a snapshot, as its record keeps it. Pure.

use super::{
    codec::{ByteReader, put_bytes},
    snapshot_id::SnapshotId,
};

/// The event that led to a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SnapshotCause {
    /// The snapshot was requested, before or after a step.
    #[default]
    Asked,
    /// A restore kept what it was about to change.
    BeforeRestore {
        /// The snapshot that was to be restored.
        target: SnapshotId,
    },
    /// A restore was completed.
    Restored {
        /// The snapshot that was restored.
        target: SnapshotId,
        /// The snapshot of what had been there.
        before: SnapshotId,
    },
    /// Files are to become so: a merge or a restore makes them so next. No state that anything had.
    Planned {
        /// The snapshot of what is there until then.
        before: SnapshotId,
    },
    /// A merge was completed.
    Merged {
        /// The snapshot of what had been there.
        before: SnapshotId,
    },
}

impl SnapshotCause {
    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::Asked => out.push(b'a'),
            Self::BeforeRestore { target } => {
                out.push(b'b');
                put_bytes(out, target.as_str().as_bytes());
            }
            Self::Restored { target, before } => {
                out.push(b'r');
                put_bytes(out, target.as_str().as_bytes());
                put_bytes(out, before.as_str().as_bytes());
            }
            Self::Planned { before } | Self::Merged { before } => {
                out.push(if matches!(self, Self::Merged { .. }) { b'm' } else { b'p' });
                put_bytes(out, before.as_str().as_bytes());
            }
        }
    }

    pub(super) fn decode_from(reader: &mut ByteReader<'_>) -> Option<Self> {
        Some(match reader.read_byte()? {
            b'a' => Self::Asked,
            b'b' => Self::BeforeRestore { target: read_id(reader)? },
            b'r' => Self::Restored { target: read_id(reader)?, before: read_id(reader)? },
            b'p' => Self::Planned { before: read_id(reader)? },
            b'm' => Self::Merged { before: read_id(reader)? },
            _ => return None,
        })
    }

    /// Reports whether the files were ever in this state.
    pub(super) fn is_state(&self) -> bool {
        !matches!(self, Self::Planned { .. })
    }
}

fn read_id(reader: &mut ByteReader<'_>) -> Option<SnapshotId> {
    std::str::from_utf8(reader.read_bytes()?).ok()?.parse().ok()
}
