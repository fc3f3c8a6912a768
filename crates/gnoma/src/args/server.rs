//! Arguments about servers of sessions.

use std::{net::SocketAddr, time::Duration};

use super::{number, tunnel};

/// The way in which sessions are served.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ServeArgs {
    /// Exit after this much time without a window, a turn or an open question, such as 30m.
    #[arg(long, value_name = "TIME", value_parser = number::duration)]
    pub idle_exit: Option<Duration>,
    /// Replace a running server. Its sessions are saved and continue.
    #[arg(long)]
    pub replace: bool,
    /// Also serve the page and the HTTP API at this address of this machine, such as 127.0.0.1:4666.
    #[arg(long, value_name = "ADDR", value_parser = number::socket_address)]
    pub http: Option<SocketAddr>,
    /// Also serve metrics for Prometheus there, at `/metrics`, to programs that have the token.
    #[arg(long, requires = "http")]
    pub metrics: bool,
}

/// The page to serve, or what to do with the links of devices.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct WebArgs {
    /// Port to listen at.
    #[arg(long, value_name = "PORT", default_value_t = 4666, value_parser = number::parse_port, allow_negative_numbers = true)]
    pub port: u16,
    /// Explain how to reach the page from other machines.
    #[arg(long)]
    pub lan: bool,
    /// Replace the links: existing links and open pages stop working.
    #[arg(long)]
    pub new_links: bool,
    /// Show the page at the HTTPS address of your own tunnel as well; without NAME, print how to start one.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", value_parser = tunnel::tunnel_name)]
    pub tunnel: Option<String>,
    /// Print the link through the tunnel as a QR code as well; needs --tunnel NAME.
    #[arg(long)]
    pub qr: bool,
    /// Show a link for one device, which can be revoked alone; made once.
    #[arg(long, value_name = "NAME", value_parser = crate::web_devices::parse_name)]
    pub device: Option<String>,
    /// List the devices with a link of their own, and exit.
    #[arg(long, conflicts_with = "device")]
    pub devices: bool,
    /// Revoke the link of a device, and exit.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["device", "devices"])]
    pub revoke: Option<String>,
}
