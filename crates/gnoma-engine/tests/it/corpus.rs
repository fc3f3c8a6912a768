//! The corpus of the fuzz targets that read what models write.

#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/engine.rs"]
mod bodies;
#[path = "../../../../fuzz/src/corpus.rs"]
mod inputs;

use std::path::Path;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

#[test]
fn repair() {
    inputs::run(&Path::new(CORPUS).join("repair"), bodies::repair);
}

#[test]
fn detect() {
    inputs::run(&Path::new(CORPUS).join("detect"), bodies::detect);
}
