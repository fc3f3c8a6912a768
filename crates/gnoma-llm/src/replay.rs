//! Replays a bundled script.
