//! The corpus of the fuzz target that asks over HTTP.

#[path = "../../../../fuzz/src/corpus.rs"]
mod inputs;

use std::path::Path;

use super::rubbish::bodies;

#[test]
fn requests() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/http");
    inputs::run(Path::new(corpus), bodies::request);
}
