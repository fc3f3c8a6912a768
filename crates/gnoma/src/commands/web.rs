//! `gnoma web`: the sessions in a browser.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::Result;

use gnoma_host::{Folders as _, HostError, project_settings::ProjectSettings};

use super::{
    common::{load_settings, print_safe_text},
    serve::{self, ServeOptions},
};
use crate::{
    args::{TurnArgs, WebArgs},
    environment::ProcessEnvironment,
    front::Signals,
    launch_request,
    report::{self, Exit},
    server,
    web::{self, OwnSite, SessionBackend, WebListener},
    web_devices,
};

/// Serves the page, or lists or revokes the links of devices.
pub(super) async fn run(
    wanted: &WebArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    match &wanted.revoke {
        _ if wanted.devices => list_devices(around),
        Some(name) => revoke_device(name, around),
        None => serve_page(wanted, args, around).await,
    }
}

/// Lists the devices with a link of their own.
fn list_devices(around: &ProcessEnvironment) -> Result<Exit> {
    print_safe_text(&(web_devices::describe_devices(&around.environment.state_dir()) + "\n"))?;
    Ok(Exit::Done)
}

/// Revokes the link of a device. Servers that run notice it within two seconds.
fn revoke_device(name: &str, around: &ProcessEnvironment) -> Result<Exit> {
    web_devices::revoke_device(&around.environment.state_dir(), name)?;
    report::print_line(format_args!("the link of `{name}` was revoked; its pages end"));
    Ok(Exit::Done)
}

/// Serves the page: for the server of this user where one runs, else as that server.
async fn serve_page(
    wanted: &WebArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    if wanted.lan {
        return Err(web::remote_access_error(wanted.port, "`--lan` is not available").into());
    }
    let running = server::connect_if_running(around).await?;
    if wanted.new_links {
        web::renew_token(around)?;
        report::print_line("the links were replaced; a running server shows the new ones");
    }
    let spec = launch_request::spec_from_args(args, around);
    // Settings that cannot be read are told by the sessions.
    let loaded = load_settings(args, around).map(|(_, loaded)| ProjectSettings::from(loaded));
    let is_private = loaded.map_or(args.incognito, |it| it.keeping.privacy.incognito);
    let listening = open_listener(wanted, is_private, around).await?;
    listening.tell_links();
    if wanted.qr {
        listening.tell_qr();
    }
    if running.is_none() {
        let http = serve::Http { listening, spec, metrics: None };
        let options = ServeOptions { idle_exit: None, replace: false, is_private };
        return serve::host_sessions(options, Some(http), around).await;
    }
    drop(running);
    report::print_line(
        "showing the sessions of the running gnoma server; Ctrl+C ends only the page",
    );
    let mut signals = Signals::new(around.ignores_hangup)?;
    let sessions = SessionBackend::Elsewhere(around.clone());
    let site = Arc::new(OwnSite { sessions, spec, metrics: None });
    tokio::select! {
        signal = signals.next() => Ok(Exit::Signalled(signal)),
        () = listening.serve(site) => Ok(Exit::Done),
    }
}

/// Listens for browsers, also at the name of a tunnel and with the link of a device, if those are wanted.
async fn open_listener(
    wanted: &WebArgs,
    is_private: bool,
    around: &ProcessEnvironment,
) -> Result<WebListener> {
    let tunnel = match &wanted.tunnel {
        Some(name) if name.is_empty() => {
            web::tell_tunnels(wanted.port, around);
            None
        }
        tunnel => tunnel.clone(),
    };
    if wanted.qr && tunnel.is_none() {
        return Err(web::unreachable_link_error().into());
    }
    let device = match &wanted.device {
        Some(_) if is_private => {
            let cause =
                "in incognito the links end with the server, so no device has one of its own";
            return Err(HostError::usage(cause).into());
        }
        Some(name) => Some(web_devices::add_device(&around.environment.state_dir(), name)?),
        None => None,
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.port));
    let listening = WebListener::open(address, is_private, tunnel, around).await?;
    Ok(listening.with_device(device))
}
