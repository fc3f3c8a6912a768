//! What the processes of a spare launcher are told when the command has come.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
};

use super::{fault::Fault, protect::PathMount};
use crate::word_codec;

/// Stands before the command.
const END: &str = "--";

/// All that they could not know before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LateLaunchPlan {
    /// True if the paths that Landlock's rules name have not changed.
    pub(super) rules_hold: bool,
    /// The folder in which the command runs.
    pub(super) here: PathBuf,
    /// The paths to protect, with the kind of mount for each.
    pub(super) holds: BTreeMap<PathBuf, PathMount>,
    /// Sockets of the host to be masked.
    pub(super) sockets: BTreeSet<PathBuf>,
    /// The program of the command.
    pub(super) program: OsString,
    /// The arguments of the program.
    pub(super) args: Vec<OsString>,
}

impl LateLaunchPlan {
    /// Returns the message as bytes.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Fault> {
        let mut list: Vec<OsString> = Vec::new();
        let mut add = |key: &str, value: OsString| list.extend([key.into(), value]);
        add("rules", if self.rules_hold { "1" } else { "0" }.into());
        add("here", self.here.clone().into());
        for (path, hold) in &self.holds {
            add(name_of(*hold), path.clone().into());
        }
        for path in &self.sockets {
            add("mask", path.clone().into());
        }
        add(END, self.program.clone());
        list.extend(self.args.iter().cloned());
        word_codec::pack_words(list)
            .ok_or_else(|| Fault::new("pass a command on", "it is too long"))
    }

    /// Reads what was packed; `None` when it is something else.
    pub(super) fn from_words(words: Vec<OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        let mut last = Self {
            rules_hold: false,
            here: PathBuf::new(),
            holds: BTreeMap::new(),
            sockets: BTreeSet::new(),
            program: OsString::new(),
            args: Vec::new(),
        };
        loop {
            let (key, value) = (words.next()?, words.next()?);
            match key.to_str()? {
                "rules" => last.rules_hold = value == "1",
                "here" => last.here = value.into(),
                "pin" => drop(last.holds.insert(value.into(), PathMount::Pinned)),
                "hold" => drop(last.holds.insert(value.into(), PathMount::ReadOnly)),
                "mask" => drop(last.sockets.insert(value.into())),
                END => return Some(Self { program: value, args: words.collect(), ..last }),
                _ => return None,
            }
        }
    }
}

fn name_of(hold: PathMount) -> &'static str {
    match hold {
        PathMount::Pinned => "pin",
        PathMount::ReadOnly => "hold",
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::word_codec::LENGTH_BYTES;

    proptest! {
        #[test]
        fn late_launch_plan_round_trips_through_bytes(
            rules_hold: bool,
            here in "[ -~]{0,8}",
            holds in vec(("[ -~]{1,8}", any::<bool>()), 0..4),
            sockets in vec("[ -~]{1,8}", 0..4),
            program in "[ -~]{0,8}",
            args in vec("[ -~]{0,8}", 0..4),
        ) {
            let hold = |read_only| if read_only { PathMount::ReadOnly } else { PathMount::Pinned };
            let last = LateLaunchPlan {
                rules_hold,
                here: here.into(),
                holds: holds.into_iter().map(|(path, kind)| (path.into(), hold(kind))).collect(),
                sockets: sockets.into_iter().map(PathBuf::from).collect(),
                program: program.into(),
                args: args.into_iter().map(OsString::from).collect(),
            };
            let bytes = last.to_bytes().unwrap().split_off(LENGTH_BYTES);
            prop_assert_eq!(word_codec::unpack_words(&bytes).and_then(LateLaunchPlan::from_words), Some(last));
        }
    }
}
