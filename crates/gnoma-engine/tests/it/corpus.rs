//! The corpus of the fuzz targets that read what models write, and of those of the guard.

#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/engine.rs"]
mod bodies;
#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/guard.rs"]
mod guard;
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

#[test]
fn secrets() {
    inputs::run(&Path::new(CORPUS).join("secrets"), guard::secrets);
}

#[test]
fn unicode() {
    inputs::run(&Path::new(CORPUS).join("unicode"), guard::unicode);
}

#[test]
fn shell() {
    inputs::run(&Path::new(CORPUS).join("shell"), guard::shell);
}

#[test]
fn rule() {
    inputs::run(&Path::new(CORPUS).join("rule"), guard::rule);
}

#[test]
fn restore() {
    inputs::run(&Path::new(CORPUS).join("restore"), guard::restore);
}
