//! Compresses the words that are read when a first value is weighed, the keywords, and the rules, in parts that are
//! read when a keyword of theirs is first met.

#![expect(clippy::disallowed_methods, reason = "a build script is told its folders by variables")]

use std::{env, fs, io, path::Path};

const RULES: &str = "data/rules.table";
/// Reading a part takes less time than compiling one of its rules; smaller ones are larger in sum.
const RULES_PER_PART: usize = 64;

fn main() -> io::Result<()> {
    gnoma_packed::pack(["data/assignment.txt", "data/keywords.table", "data/vocabulary.txt"])?;
    println!("cargo::rerun-if-changed={RULES}");
    pack_rules(&fs::read_to_string(RULES)?)
}

/// Writes `rules.rs`: how many rules there are, how many in a part, and the compressed parts.
fn pack_rules(table: &str) -> io::Result<()> {
    let lines: Vec<&str> = table.lines().collect();
    let mut parts = String::new();
    for (number, part) in lines.chunks(RULES_PER_PART).enumerate() {
        gnoma_packed::pack_text(&format!("rules.{number}"), &part.join("\n"))?;
        parts += &format!("gnoma_packed::packed!(\"rules.{number}\"),");
    }
    let code = format!(
        "/// The number of built-in rules. Their numbers begin with 0.
        pub(crate) const RULE_COUNT: usize = {};
        const RULES_PER_PART: usize = {RULES_PER_PART};
        const PACKED_PARTS: [&[u8]; {}] = [{parts}];",
        lines.len(),
        lines.len().div_ceil(RULES_PER_PART),
    );
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("rules.rs"), code)
}
