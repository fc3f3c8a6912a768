//! Tables of programs: their options, operands and effects, as data.
//!
//! The tables are texts of their own (`tables/`), read on first use; an entry is decoded when a command
//! names it. What no table has is unknown: nothing here guesses.

mod entry;
mod help;
mod options;

pub(crate) use entry::{Consequence, ProgramEffect, ProgramEntry, Role, Trait};
pub(crate) use help::only_prints;
pub(crate) use options::{GivenOption, SortedWords, sort_words};

use std::collections::HashMap;
use std::sync::LazyLock;

use gnoma_packed::{packed, unpack};

static TABLES: LazyLock<[String; 7]> = LazyLock::new(|| {
    [
        unpack(packed!("text.table")),
        unpack(packed!("files.table")),
        unpack(packed!("git.table")),
        unpack(packed!("development.table")),
        unpack(packed!("system.table")),
        unpack(packed!("network.table")),
        unpack(packed!("running.table")),
    ]
});

/// Name or command (`git log`) to the lines that describe it.
static INDEX: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut index = HashMap::new();
    for block in TABLES.iter().flat_map(|table| table_blocks(table)) {
        for name in entry::entry_names(block) {
            index.entry(name).or_insert(block);
        }
    }
    index
});

/// Blocks of a table: from one `[name]` line to the next.
fn table_blocks(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.split("\n[").skip(1)
}

/// Returns the known facts about the program or command `name`.
pub(crate) fn find_entry(name: &str) -> Option<ProgramEntry> {
    let block = INDEX.get(name)?;
    let mut entry = ProgramEntry::decode(block);
    for shared in std::mem::take(&mut entry.like) {
        if let Some(block) = INDEX.get(shared) {
            entry.take_from(ProgramEntry::decode(block));
        }
    }
    Some(entry)
}

/// True if a command of this name is described.
pub(crate) fn is_known(name: &str) -> bool {
    INDEX.contains_key(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_line_of_the_program_tables_is_parsed() {
        assert!(TABLES.iter().all(|table| table_blocks(table).next().is_some()));
        for block in TABLES.iter().flat_map(|table| table_blocks(table)) {
            let wrong = entry::unreadable_lines(block);
            assert!(wrong.is_empty(), "{wrong:?} in [{block}");
        }
    }

    #[test]
    fn every_program_is_described_once() {
        let mut seen = HashSet::new();
        for block in TABLES.iter().flat_map(|table| table_blocks(table)) {
            for name in entry::entry_names(block) {
                assert!(seen.insert(name), "[{name}] stands twice");
                assert!(!name.is_empty() && !name.ends_with("-none"), "[{name}]");
            }
        }
    }

    #[test]
    fn every_program_set_that_a_table_refers_to_exists() {
        for block in TABLES.iter().flat_map(|table| table_blocks(table)) {
            for shared in ProgramEntry::decode(block).like {
                assert!(INDEX.contains_key(shared), "{shared}");
            }
        }
    }
}
