//! Measures gnoma. `bench/run` runs all of it; `bench/README.md` says what each figure means.
//!
//!     cargo run --profile dist -p gnoma-bench --bin gnoma-bench -- COMMAND …
//!
//! | command | what it does |
//! |---|---|
//! | `decode [DELTAS] [PASSES] [PROTOCOL]` | how fast answers are read |
//! | `guard GNOMA FOLDER` | what looking through everything costs |
//! | `history` | what a long conversation costs |
//! | `hot NAME [COUNT]` | one hot path, for `bench/budgets`, which counts instructions |
//! | `mock SCRIPT …` | a model server for `bench/one-shot`, `terminal`, `soak`, `serve`, `freeze` and `full-disk` |
//! | `pictures GNOMA FOLDER [--check] [SCENE …]` | the README's pictures, from the real program |
//! | `router` | what choosing between models costs |
//! | `tokens` | tokens of the request on standard input |
//! | `watch SOCKET PORT SUBSCRIBERS SESSION …` | how long deltas take to a session's subscribers, for `bench/serve` |

mod command;

use anyhow::{Result, bail};

const COMMANDS: &str = "decode, guard, history, hot, mock, pictures, router, tokens, watch";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, rest)) => match command.as_str() {
            "decode" => command::decode::run(rest),
            "guard" => command::guard::run(rest),
            "history" => command::history::run(rest),
            "hot" => command::hot::run(rest),
            "mock" => command::mock::run(rest.to_vec()),
            "pictures" => command::pictures::run(rest),
            "router" => command::router::run(rest),
            "tokens" => command::tokens::run(),
            "watch" => command::watch::run(rest),
            _ => bail!("there is no command `{command}`; there are {COMMANDS}"),
        },
        None => bail!("name a command: {COMMANDS}"),
    }
}
