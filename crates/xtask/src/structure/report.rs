//! Measures as text, and those that are taken over several crates.

use std::{collections::BTreeMap, fmt::Write as _};

use super::crate_measures::Structure;

/// Most modules that define a type of one name.
pub const MAX_SHARED_NAMES: usize = 3;

/// The lines that 99 of 100 functions keep within, of sorted lines.
#[must_use]
pub fn p99(sorted: &[usize]) -> usize {
    let rank = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or_default()
}

/// Types that more than [`MAX_SHARED_NAMES`] modules define, with the number of these modules.
#[must_use]
pub fn shared_names(all: &[Structure]) -> BTreeMap<String, usize> {
    let mut shared = BTreeMap::new();
    for (name, files) in all.iter().flat_map(|structure| &structure.types) {
        *shared.entry(name.clone()).or_default() += files.len();
    }
    shared.retain(|_, modules| *modules > MAX_SHARED_NAMES);
    shared
}

/// The measures of all crates as a table, and then what is wrong in the crates that are `asked` for.
#[must_use]
pub fn render_report(all: &[Structure], asked: &[String]) -> String {
    let mut text =
        "crate            files  in cycles  functions  lines p99/max  wide structs  long files\n"
            .to_owned();
    let mut sum = Structure { name: "all".to_owned(), ..Structure::default() };
    let (mut in_cycles, mut wide, mut long) = (0, 0, 0);
    for one in all {
        let counts = (one.files_in_cycles(), one.wide_structs.len(), one.long_files.len());
        text.push_str(&render_row(one, counts));
        sum.files += one.files;
        sum.function_lines.extend_from_slice(&one.function_lines);
        (in_cycles, wide, long) = (in_cycles + counts.0, wide + counts.1, long + counts.2);
    }
    sum.function_lines.sort_unstable();
    text.push_str(&render_row(&sum, (in_cycles, wide, long)));
    let names = shared_names(all);
    let names: Vec<String> =
        names.iter().map(|(name, modules)| format!("{name} {modules}")).collect();
    let _ = writeln!(
        text,
        "\ntypes of one name in more than {MAX_SHARED_NAMES} modules: {}",
        names.join(", ")
    );
    for one in all.iter().filter(|one| asked.contains(&one.name)) {
        let _ = write!(text, "\n{}\n{}", one.name, one.describe_faults());
    }
    text
}

fn render_row(one: &Structure, (in_cycles, wide, long): (usize, usize, usize)) -> String {
    let functions = &one.function_lines;
    let most = functions.last().copied().unwrap_or_default();
    format!(
        "{:<16} {:>5} {in_cycles:>10} {:>10} {:>14} {wide:>13} {long:>11}\n",
        one.name,
        one.files,
        functions.len(),
        format!("{}/{most}", p99(functions)),
    )
}
