//! The rules on how crates are built inside: no cycles among module files, nothing too large, no type
//! name in many meanings. `cargo xtask structure CRATE` shows what is behind the figures.

use std::{fs, path::Path};

use xtask::structure::{
    self, MAX_FUNCTION_LINES, MAX_SHARED_NAMES, Structure, measure_all, measure_crate, p99,
    shared_names,
};

fn all() -> Vec<Structure> {
    measure_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

#[test]
fn crates_have_no_module_cycles_wide_structs_or_long_files() {
    let mut wrong = String::new();
    for one in all() {
        let found = (one.files_in_cycles(), one.wide_structs.len(), one.long_files.len());
        if found != (0, 0, 0) {
            wrong += &format!("`{}` has {found:?}:\n{}\n", one.name, one.describe_faults());
        }
    }
    assert!(wrong.is_empty(), "(files in cycles, wide structs, long files)\n{wrong}");
}

#[test]
fn functions_stay_within_the_line_limit() {
    let mut lines: Vec<usize> = all().into_iter().flat_map(|one| one.function_lines).collect();
    lines.sort_unstable();
    assert!(
        p99(&lines) <= MAX_FUNCTION_LINES,
        "99 of 100 functions have up to {} lines",
        p99(&lines)
    );
}

#[test]
fn type_names_are_shared_by_few_modules() {
    let all = all();
    let mut wrong = String::new();
    for (name, modules) in &shared_names(&all) {
        wrong +=
            &format!("{modules} modules define a type `{name}`, more than {MAX_SHARED_NAMES}:\n");
        for one in all.iter().filter(|one| one.types.contains_key(name)) {
            wrong += &format!("  {}: {:?}\n", one.name, one.types[name]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A crate of these files, measured.
fn crate_of(files: &[(&str, &str)]) -> Structure {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join("src").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    measure_crate(folder.path()).unwrap()
}

#[test]
fn reexporting_parent_module_does_not_depend_on_its_children() {
    let found = crate_of(&[
        ("lib.rs", "mod one; mod two; pub use one::One; pub use crate::two::*;"),
        ("one.rs", "pub struct One(crate::Two);"),
        ("two/mod.rs", "mod deep; pub use self::deep::{Deep as Two};"),
        ("two/deep.rs", "pub struct Deep; #[cfg(test)] mod tests { use crate::One; }"),
    ]);
    assert_eq!((found.files, found.files_in_cycles()), (4, 0), "{}", found.describe_faults());
}

#[test]
fn cycles_are_found_through_reexports_globs_macros_and_inline_modules() {
    let found = crate_of(&[
        ("lib.rs", "mod one; mod two; mod three; pub use one::One; pub const LIMIT: u8 = 1;"),
        ("one.rs", "use super::two::inner; pub struct One; fn f() { inner::two() }"),
        (
            "two.rs",
            "pub mod inner { use crate::three::*; pub fn two() { three(&[format!(\"\")]) } }",
        ),
        ("three.rs", "pub fn three(_: &[String]) { assert!(crate::One == one()) }"),
    ]);
    let cycle = found.cycles.first().unwrap();
    assert_eq!(cycle.files, ["one.rs", "two.rs", "three.rs"]);
    assert_eq!(
        cycle.references,
        [
            "one.rs -> two.rs: `inner::two` in line 1",
            "two.rs -> three.rs: `three` in line 1",
            "three.rs -> one.rs: `crate::One` in line 1",
        ]
    );
}

#[test]
fn local_binding_hides_an_item_of_the_same_name() {
    let found = crate_of(&[
        ("lib.rs", "mod one; pub use one::load; fn f(load: u8) -> u8 { load } pub struct Root;"),
        ("one.rs", "use crate::Root; pub fn load(_: Root) {}"),
    ]);
    assert_eq!(found.files_in_cycles(), 0, "{}", found.describe_faults());
    let found = crate_of(&[
        ("lib.rs", "mod one; pub use one::load; fn f() { load(Root) } pub struct Root;"),
        ("one.rs", "use crate::Root; pub fn load(_: Root) {}"),
    ]);
    assert_eq!(found.files_in_cycles(), 2);
}

#[test]
fn sizes_are_without_tests_and_documentation() {
    let long = "let _ = 1;\n".repeat(structure::MAX_FUNCTION_LINES);
    let fields = (0..26).map(|index| format!("f{index}: u8, ")).collect::<String>();
    let text = format!(
        "struct Wide {{ {fields} }}\n/// Words.\nfn long() {{\n{long}}}\n#[cfg(test)]\nmod tests {{\n{}}}",
        "\n".repeat(600)
    );
    let found = crate_of(&[("lib.rs", &text)]);
    assert_eq!(
        (found.wide_structs, found.long_functions, found.long_files),
        (
            vec!["lib.rs: struct Wide has 26 fields".to_owned()],
            vec!["lib.rs: fn long has 47 lines".to_owned()],
            Vec::new()
        )
    );
}

#[test]
fn a_file_that_cannot_be_parsed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), "\nfn f( {").unwrap();
    let error = measure_crate(folder.path()).unwrap_err().to_string();
    assert!(error.contains("lib.rs`, line 2"), "{error}");
}
