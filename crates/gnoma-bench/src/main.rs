//! Measures gnoma. `bench/run` runs all of it; `bench/README.md` says what each figure means.
//!
//!     cargo run --profile dist -p gnoma-bench --bin gnoma-bench -- COMMAND …
//!
//! | command | what it does |
//! |---|---|
//! | `decode [DELTAS] [PASSES] [PROTOCOL]` | how fast answers are read |
//! | `history` | what a long conversation costs |
//! | `mock SCRIPT` | a model server for `bench/one-shot` |
//! | `tokens` | tokens of the request on standard input |

mod command;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, rest)) => match command.as_str() {
            "decode" => command::decode::run(rest),
            "history" => command::history::run(rest),
            "mock" => command::mock::run(rest.to_vec()),
            "tokens" => command::tokens::run(),
            _ => bail!("there is no command `{command}`; there are decode, history, mock, tokens"),
        },
        None => bail!("name a command: decode, history, mock, tokens"),
    }
}
