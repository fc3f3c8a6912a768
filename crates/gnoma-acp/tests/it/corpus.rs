//! The corpus of the fuzz target that plays an editor.

#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/acp.rs"]
mod bodies;
#[path = "../../../../fuzz/src/corpus.rs"]
mod inputs;

use std::path::Path;

#[test]
fn editor() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/acp");
    inputs::run(Path::new(corpus), bodies::editor);
}
