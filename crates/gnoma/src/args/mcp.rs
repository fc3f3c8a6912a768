//! The part of the command line that is about MCP servers.

use clap::{Args, Subcommand};

/// What can be done with MCP servers.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum McpSub {
    /// List the servers: where they come from, whether they respond, and their tools.
    #[command(alias = "ls")]
    #[group(skip)]
    List {
        /// Do not start or contact any server.
        #[arg(long)]
        offline: bool,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Start a server, list its tools, and show what it wrote to standard error.
    #[group(skip)]
    Test {
        /// The server.
        name: String,
    },
    /// Show how the tools of a server differ from what was approved, and approve them.
    #[group(skip)]
    Approve {
        /// The server.
        name: String,
    },
    /// Add a server to your configuration.
    Add(NewServerArgs),
    /// Remove a server from your configuration.
    #[command(aliases = ["rm", "delete"])]
    #[group(skip)]
    Remove {
        /// The server.
        name: String,
    },
    /// Log in to a server that requires it, in a browser.
    #[group(skip)]
    Login {
        /// The server.
        name: String,
        /// Log out: delete the saved tokens.
        #[arg(long)]
        forget: bool,
    },
    /// Run gnoma as an MCP server on standard input and output: sessions and file tools, for other programs.
    ///
    /// Nobody is there to approve calls, so what needs approval is denied. `gnoma --permission MODE mcp serve`
    /// sets what runs.
    Serve,
    /// Run the protocol's conformance suite against a server.
    #[command(hide = true)]
    #[group(skip)]
    Conformance {
        /// The server's address.
        url: String,
    },
}

/// A new server.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct NewServerArgs {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// Its program and arguments (after `--`), or its address.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// An environment variable for the program; can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header for each request to the address; can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub header: Vec<String>,
    /// Let the program use the network.
    #[arg(long)]
    pub network: bool,
}
