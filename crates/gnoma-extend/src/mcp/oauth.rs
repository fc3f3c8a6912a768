//! Authorization at servers that require it: OAuth as the protocol defines it. rmcp decides what is sent in which
//! order; this module provides the connection, the storage of tokens, and a person's browser.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use gnoma_net::Http;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore, OAuthHttpClient,
    OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest, OAuthState,
    StoredCredentials,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::keyring::Keyring;

/// Most redirects that are followed, all at the same origin.
const MAX_REDIRECTS: usize = 5;
/// Largest answer of an authorization server, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Longest wait for one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How gnoma is called where it registers.
const CLIENT_NAME: &str = "gnoma";

/// The way to authorization servers: gnoma's own connections. No redirect leads to another origin.
struct Door(Http);

impl OAuthHttpClient for Door {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let http = self.0.clone();
        Box::pin(async move {
            let follows = matches!(request.redirect_policy, OAuthHttpRedirectPolicy::Follow);
            let (parts, body) = request.request.into_parts();
            let mut address = parts.uri.to_string();
            for _ in 0..=MAX_REDIRECTS {
                let sent = http
                    .raw(&address)?
                    .request(parts.method.clone(), &address)
                    .headers(parts.headers.clone())
                    .timeout(request.timeout.unwrap_or(ANSWER_TIMEOUT).min(ANSWER_TIMEOUT))
                    .body(body.clone())
                    .send();
                let response = sent.await?;
                let next = response.headers().get(http::header::LOCATION);
                let next = next.and_then(|next| response.url().join(next.to_str().ok()?).ok());
                if let Some(next) = next.filter(|_| follows && response.status().is_redirection()) {
                    if next.origin() != response.url().origin() {
                        return Err("it redirects to another place".into());
                    }
                    address = next.to_string();
                    continue;
                }
                let mut answer = http::Response::builder().status(response.status());
                if let Some(headers) = answer.headers_mut() {
                    *headers = response.headers().clone();
                }
                let mut all = Vec::new();
                let mut pieces = response.bytes_stream();
                while let Some(piece) = pieces.next().await {
                    all.extend_from_slice(&piece?);
                    if all.len() > MAX_ANSWER_BYTES {
                        return Err("its answer is too large".into());
                    }
                }
                return Ok(answer.body(all)?);
            }
            Err("it redirects in a circle".into())
        })
    }
}

/// Where the tokens of one server are: in memory, and in the person's keyring, or else in a file that only its
/// owner can read. Where they are in the keyring, the file says so.
#[derive(Clone)]
pub struct Tokens {
    kept: Arc<Mutex<Option<StoredCredentials>>>,
    path: Option<PathBuf>,
    keyring: Option<Keyring>,
    server: String,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum TokenFile {
    InKeyring { in_keyring: bool },
    Here(Box<StoredCredentials>),
}

impl Tokens {
    /// Tokens that nobody keeps.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { kept: Arc::default(), path: None, keyring: None, server: String::new() }
    }

    /// The tokens of the server at an address, in a keyring or a state folder.
    #[must_use]
    pub fn in_state(state: &Path, url: &str, keyring: Option<Keyring>) -> Self {
        let hash: String = Sha256::digest(url).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = state.join("mcp").join("tokens").join(format!("{hash}.json"));
        Self { kept: Arc::default(), path: Some(path), keyring, server: url.to_owned() }
    }

    /// Deletes them. Says whether there were any.
    ///
    /// # Errors
    /// They cannot be deleted.
    pub async fn forget(&self) -> io::Result<bool> {
        let had = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take().is_some();
        let Some(path) = &self.path else { return Ok(had) };
        if let Ok(TokenFile::InKeyring { .. }) = self.file() {
            let keyring = self.keyring()?;
            keyring.clear(&self.server).await.map_err(io::Error::other)?;
        }
        match std::fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(had),
            Err(error) => Err(error),
        }
    }

    /// Whether there are any.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.exists())
            || self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn file(&self) -> io::Result<TokenFile> {
        let path = self.path.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(gnoma_core::json::from_bytes(&std::fs::read(path)?)?)
    }

    fn keyring(&self) -> io::Result<&Keyring> {
        let missing = || {
            let text = "the tokens are in the keyring of another desktop session, which is not \
                        available here; log in again with `gnoma mcp login`";
            io::Error::other(text)
        };
        self.keyring.as_ref().ok_or_else(missing)
    }

    async fn read(&self) -> io::Result<Option<StoredCredentials>> {
        if let Some(kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(Some(kept));
        }
        match self.file() {
            // Another process may have written it again.
            Ok(TokenFile::Here(credentials)) => Ok(Some(*credentials)),
            Ok(TokenFile::InKeyring { .. }) => {
                let found = self.keyring()?.look_up(&self.server).await;
                let credentials = gnoma_core::json::from_bytes(&found.map_err(io::Error::other)?)?;
                // They are wanted with each request, and the keyring is asked through a program.
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(Some(StoredCredentials::clone(kept.insert(credentials))))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, credentials: &StoredCredentials) -> io::Result<()> {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(credentials.clone());
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = TokenFile::Here(Box::new(credentials.clone()));
        if let Some(keyring) = &self.keyring {
            // One that is locked or refuses leaves the file.
            if keyring.store(&self.server, &serde_json::to_vec(credentials)?).await.is_ok() {
                file = TokenFile::InKeyring { in_keyring: true };
            }
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        // Such a file can be read and written by its owner alone from the start.
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut new, &file)?;
        new.flush()?;
        new.as_file().sync_all()?;
        new.persist(path)?;
        Ok(())
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read().await.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let written = self.write(&credentials).await;
        written.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let cleared = self.forget().await.map(drop);
        cleared.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}

/// Who a client says that it is, where that was agreed on before.
#[derive(Clone, Debug, Default)]
pub(super) struct Registered {
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    /// Where a document describes the client.
    pub(super) metadata_url: Option<String>,
}

/// A manager for the requests to a server. Where there are no tokens, requests go out without.
pub(super) async fn manager(
    http: &Http,
    url: &str,
    tokens: &Tokens,
) -> Result<AuthorizationManager, String> {
    let mut manager = fresh(http, url, tokens).await?;
    if tokens.are_there() {
        manager.initialize_from_store().await.map_err(|error| error.to_string())?;
    }
    Ok(manager)
}

async fn fresh(http: &Http, url: &str, tokens: &Tokens) -> Result<AuthorizationManager, String> {
    let door = Arc::new(Door(http.clone()));
    let manager = AuthorizationManager::new_with_oauth_http_client(url, door).await;
    let mut manager = manager.map_err(|error| error.to_string())?;
    manager.set_credential_store(tokens.clone());
    Ok(manager)
}

/// An authorization that waits for a person's browser to come back.
pub(super) struct PendingLogin(OAuthState);

/// Begins an authorization, and gives the page that a person is to open. `challenge`: what the server
/// said when it refused.
pub(super) async fn begin(
    http: &Http,
    url: &str,
    tokens: &Tokens,
    redirect: &str,
    challenge: Option<&str>,
    registered: &Registered,
) -> Result<(PendingLogin, String), String> {
    let mut request = AuthorizationRequest::new(redirect)
        .with_client_name(CLIENT_NAME)
        .with_application_type("native");
    if let Some(challenge) = challenge {
        request = request.with_challenge(challenge);
    }
    if let Some(id) = &registered.client_id {
        request = request.with_preregistered_client(id);
        if let Some(secret) = &registered.client_secret {
            request = request.with_client_secret(secret);
        }
    }
    if let Some(metadata) = &registered.metadata_url {
        request = request.with_client_metadata_url(metadata);
    }
    let scopes = wider(tokens, challenge).await;
    request = if scopes.is_empty() {
        request.with_initial_scope_selection()
    } else {
        request.with_scopes(scopes)
    };
    let mut state = OAuthState::Unauthorized(fresh(http, url, tokens).await?);
    state.start_authorization(request).await.map_err(|error| error.to_string())?;
    let page = state.get_authorization_url().await.map_err(|error| error.to_string())?;
    Ok((PendingLogin(state), page))
}

impl PendingLogin {
    /// The browser came back to this address.
    pub(super) async fn finish(mut self, came_back: &str) -> Result<(), String> {
        self.0.handle_callback_url(came_back).await.map_err(|error| error.to_string())
    }
}

/// The scopes that were granted together with those that a challenge wants besides; empty where nothing was
/// granted yet.
async fn wider(tokens: &Tokens, challenge: Option<&str>) -> Vec<String> {
    let Ok(Some(credentials)) = tokens.read().await else { return Vec::new() };
    let wanted =
        challenge.and_then(|challenge| challenge.split_once("scope=\"")?.1.split_once('"'));
    let Some((wanted, _)) = wanted else { return Vec::new() };
    let mut scopes = credentials.granted_scopes;
    for scope in wanted.split_whitespace().map(str::to_owned) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// A keyring that is a script, which keeps one secret in its folder.
    fn keyring(folder: &Path, script: &str) -> Option<Keyring> {
        let program = folder.join("secret-tool");
        fs::write(&program, format!("#!/bin/sh\ncd '{}' || exit 1\n{script}", folder.display()))
            .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let path = format!("relative:{}:/usr/bin:/bin", folder.display());
        assert_eq!(Keyring::find(&[pair("PATH", &path)]), None, "there is no session to ask");
        Keyring::find(&[pair("PATH", &path), pair("DBUS_SESSION_BUS_ADDRESS", "unix:x")])
    }

    fn credentials() -> StoredCredentials {
        StoredCredentials::new("t0ken".to_owned(), None, vec!["all".to_owned()], None)
    }

    #[tokio::test]
    async fn tokens_are_in_the_keyring_and_the_file_only_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo \"$@\" >> asked\ncase $1 in store) cat > secret;; lookup) cat secret;; clear) rm secret;; esac";
        let keyring = keyring(folder.path(), script);
        assert!(keyring.is_some());
        let state = folder.path().join("state");
        let tokens = || Tokens::in_state(&state, "https://h.example/mcp", keyring.clone());
        tokens().write(&credentials()).await.unwrap();
        let path = tokens().path.unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("t0ken"));
        assert!(fs::read_to_string(folder.path().join("secret")).unwrap().contains("t0ken"));
        assert!(tokens().are_there());
        assert_eq!(tokens().read().await.unwrap().unwrap().client_id, "t0ken");
        let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
        assert!(
            asked.contains("server https://h.example/mcp") && !asked.contains("t0ken"),
            "{asked}"
        );
        // Without the session's keyring they cannot be read, and that is said.
        let elsewhere = Tokens::in_state(&state, "https://h.example/mcp", None);
        let why = elsewhere.read().await.unwrap_err().to_string();
        assert!(why.contains("gnoma mcp login"), "{why}");
        assert!(tokens().forget().await.unwrap() && !tokens().are_there());
        assert!(!folder.path().join("secret").exists());
    }

    #[tokio::test]
    async fn a_keyring_that_refuses_leaves_them_in_a_file_of_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = keyring(folder.path(), "cat > /dev/null; exit 1");
        let state = folder.path().join("state");
        let tokens = || Tokens::in_state(&state, "https://h.example/mcp", keyring.clone());
        tokens().write(&credentials()).await.unwrap();
        let facts = fs::metadata(tokens().path.unwrap()).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        assert_eq!(tokens().read().await.unwrap().unwrap().client_id, "t0ken");
        assert!(tokens().forget().await.unwrap() && !tokens().are_there());
    }
}
