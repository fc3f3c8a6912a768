//! What the fuzz targets do with their input.
//!
//! Every body takes any bytes and panics when a law is broken. The bodies are plain functions without
//! libFuzzer, so that the tests of the crates they concern include these files and run the corpus.

pub mod acp;
pub mod engine;
pub mod guard;
pub mod llm;
pub mod serve;
pub mod web;
