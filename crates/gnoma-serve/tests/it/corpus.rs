//! The corpus of the fuzz target that reads what comes over the socket.

#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/serve.rs"]
mod bodies;
#[path = "../../../../fuzz/src/corpus.rs"]
mod inputs;

use std::path::Path;

#[test]
fn protocol() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/protocol");
    inputs::run(Path::new(corpus), bodies::protocol);
}
