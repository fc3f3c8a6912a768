//! OAuth login to an MCP server: the browser returns to an address of this machine.

use std::time::Duration;

use gnoma_net::Http;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    live_connection,
    oauth::{self, ConfiguredClient, OauthError, Tokens},
};

/// Longest wait for the browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(300);
/// Largest request of a browser that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;
/// Longest wait for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The page that the browser shows at the end of the login.
const PAGE: &str =
    "<!doctype html><meta charset=utf-8><title>gnoma</title><p>You can close this page.";

/// The reason why a person was not logged in at an MCP server, in a sentence.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct LoginError(#[from] OauthError);

gnoma_core::debug_as_display!(LoginError);

/// Logs in to the server at an address. `show` is given the page that a person is to open.
///
/// # Errors
/// The server has no login that gnoma can use, the person did not agree in time, or the tokens cannot be saved.
pub async fn log_in(
    http: &Http,
    url: &str,
    tokens: &Tokens,
    show: &(dyn Fn(&str) + Sync),
) -> Result<(), LoginError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(OauthError::Io)?;
    let port = listener.local_addr().map_err(OauthError::Io)?.port();
    let origin = format!("http://127.0.0.1:{port}");
    let redirect = format!("{origin}/callback");
    let challenge = live_connection::fetch_challenge(http, url).await;
    let registered = ConfiguredClient::default();
    let begun = oauth::begin_login(http, url, tokens, &redirect, challenge.as_deref(), &registered);
    let (waiting, page) = begun.await?;
    show(&page);
    let came_back = timeout(BROWSER_TIMEOUT, wait_for_callback(&listener)).await;
    let path = came_back.map_err(|_late| OauthError::NoBrowser(BROWSER_TIMEOUT))?;
    Ok(waiting.finish(&format!("{origin}{path}")).await?)
}

/// The path of the request that brings an answer.
async fn wait_for_callback(listener: &TcpListener) -> String {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let path = timeout(REQUEST_TIMEOUT, read_request_path(&mut stream)).await.ok().flatten();
        let is_answer = |path: &String| path.starts_with("/callback?");
        let (status, body) = match path.as_ref().filter(|path| is_answer(path)) {
            Some(_) => ("200 OK", PAGE),
            None => ("404 Not Found", ""),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        timeout(REQUEST_TIMEOUT, stream.write_all(answer.as_bytes())).await.ok();
        if let Some(path) = path.filter(is_answer) {
            return path;
        }
    }
}

/// The path that a browser asks for.
async fn read_request_path(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(2).any(|pair| pair == b"\r\n") && request.len() < MAX_REQUEST_BYTES {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.strip_prefix("GET ")?.split(' ').next()?;
    Some(path.to_owned())
}
