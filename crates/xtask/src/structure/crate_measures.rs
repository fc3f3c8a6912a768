//! What is measured of a crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use syn::visit::Visit as _;

use super::{
    cycles::find_cycles,
    references::{Reference, find_references},
    sizes::Sizes,
    source::MeasureError,
    tree::ModuleTree,
};

/// Most lines a function should have; one in a hundred may have more.
pub const MAX_FUNCTION_LINES: usize = 45;
/// Most fields of a struct.
pub const MAX_FIELDS: usize = 25;
/// Most lines of a file without its tests.
pub const MAX_FILE_LINES: usize = 500;
/// References shown of each edge of a cycle.
const MAX_SHOWN: usize = 3;

/// Files that all depend on each other.
#[derive(Debug)]
pub struct Cycle {
    /// The paths of the files, below `src`.
    pub files: Vec<String>,
    /// The references that close it, one line of text each.
    pub references: Vec<String>,
}

/// The measurements of one crate.
#[derive(Debug, Default)]
pub struct Structure {
    /// The name of the crate.
    pub name: String,
    /// Number of module files.
    pub files: usize,
    /// Groups of files that depend on each other.
    pub cycles: Vec<Cycle>,
    /// Lines of each function, sorted.
    pub function_lines: Vec<usize>,
    /// Functions with more than [`MAX_FUNCTION_LINES`] lines, one line of text each.
    pub long_functions: Vec<String>,
    /// Structs with more than [`MAX_FIELDS`] fields.
    pub wide_structs: Vec<String>,
    /// Files with more than [`MAX_FILE_LINES`] lines.
    pub long_files: Vec<String>,
    /// Names of types, each with the files that define it.
    pub types: BTreeMap<String, BTreeSet<String>>,
}

impl Structure {
    /// Number of files that are part of a cycle.
    #[must_use]
    pub fn files_in_cycles(&self) -> usize {
        self.cycles.iter().map(|cycle| cycle.files.len()).sum()
    }

    fn add_tree(&mut self, tree: &ModuleTree) {
        self.files += tree.files.len();
        let references = find_references(tree);
        self.cycles.extend(
            find_cycles(&references).iter().map(|group| describe_cycle(tree, group, &references)),
        );
        for source in &tree.files {
            let path = source.path.display().to_string();
            if source.lines > MAX_FILE_LINES {
                self.long_files.push(format!("{path}: {} lines", source.lines));
            }
            let mut sizes = Sizes::default();
            source.items.iter().for_each(|item| sizes.visit_item(item));
            for (name, lines) in sizes.functions {
                self.function_lines.push(lines);
                if lines > MAX_FUNCTION_LINES {
                    self.long_functions.push(format!("{path}: fn {name} has {lines} lines"));
                }
            }
            for (name, fields) in sizes.structs {
                if fields > MAX_FIELDS {
                    self.wide_structs.push(format!("{path}: struct {name} has {fields} fields"));
                }
            }
            for name in sizes.types {
                self.types.entry(name).or_default().insert(path.clone());
            }
        }
    }

    /// Everything that is wrong, one line each.
    #[must_use]
    pub fn describe_faults(&self) -> String {
        let mut text = String::new();
        for cycle in &self.cycles {
            let files = cycle.files.join(", ");
            let _ = writeln!(text, "cycle of {} files: {files}", cycle.files.len());
            cycle.references.iter().for_each(|line| text.extend(["  ", line, "\n"]));
        }
        for line in self.long_files.iter().chain(&self.wide_structs).chain(&self.long_functions) {
            text.extend([line, "\n"]);
        }
        text
    }
}

/// Measures every crate in the folder `crates`, sorted by name.
///
/// # Errors
/// The first file that cannot be read or parsed.
pub fn measure_all(crates: &Path) -> Result<Vec<Structure>, MeasureError> {
    let unreadable = |error| MeasureError::Unreadable { path: crates.to_owned(), error };
    let mut all = Vec::new();
    for entry in fs::read_dir(crates).map_err(unreadable)? {
        let folder = entry.map_err(unreadable)?.path();
        if folder.join("Cargo.toml").exists() {
            all.push(measure_crate(&folder)?);
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Measures the crate in `folder`.
///
/// # Errors
/// The first file that cannot be read or parsed.
pub fn measure_crate(folder: &Path) -> Result<Structure, MeasureError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut structure = Structure { name, ..Structure::default() };
    let src = folder.join("src");
    for root in ["lib.rs", "main.rs"] {
        if src.join(root).exists() {
            let tree = ModuleTree::read(&src, root, &structure.name)?;
            structure.add_tree(&tree);
        }
    }
    structure.function_lines.sort_unstable();
    Ok(structure)
}

fn describe_cycle(tree: &ModuleTree, group: &BTreeSet<usize>, references: &[Reference]) -> Cycle {
    let path = |file: usize| {
        let source = tree.files.get(file);
        source.map(|source| source.path.display().to_string()).unwrap_or_default()
    };
    let mut edges: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for one in references {
        if group.contains(&one.from) && group.contains(&one.to) {
            let shown = format!("`{}` in line {}", one.path, one.line);
            edges.entry((one.from, one.to)).or_default().push(shown);
        }
    }
    let edge = |((from, to), mut shown): ((usize, usize), Vec<String>)| {
        let more = shown.len().saturating_sub(MAX_SHOWN);
        shown.truncate(MAX_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} -> {}: {}{more}", path(from), path(to), shown.join(", "))
    };
    Cycle {
        files: group.iter().map(|file| path(*file)).collect(),
        references: edges.into_iter().map(edge).collect(),
    }
}
