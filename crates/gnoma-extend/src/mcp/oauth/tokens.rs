//! OAuth tokens of an MCP server: in memory, and in the keyring or a private file.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{private_file, sync::Mutex};
use oauth2::basic::BasicTokenResponse;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::keyring::Keyring;

/// The stored facts about a login.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredCredentials {
    /// The id by which the authorization server knows gnoma.
    pub(super) client_id: String,
    /// gnoma's own secret there, if it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    /// The tokens that the server issued.
    pub(super) token_response: Option<BasicTokenResponse>,
    /// The scopes that were granted.
    #[serde(default)]
    pub(super) granted_scopes: Vec<String>,
    /// The time at which the tokens arrived, in seconds since 1970.
    #[serde(default)]
    pub(super) token_received_at: Option<u64>,
    /// The authorization server that issued them.
    #[serde(default)]
    pub(super) issuer: Option<String>,
}

/// The store of one server's tokens: in memory, and in the person's keyring, or else in a file that only its owner
/// can read. Where they are in the keyring, the file says so.
#[derive(Clone)]
pub struct Tokens {
    kept: Arc<Mutex<Option<StoredCredentials>>>,
    path: Option<PathBuf>,
    keyring: Option<Keyring>,
    server: String,
}

/// The content of the token file.
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
    pub async fn remove_all(&self) -> io::Result<bool> {
        let had = self.kept.lock().take().is_some();
        let Some(path) = &self.path else { return Ok(had) };
        if let Ok(TokenFile::InKeyring { .. }) = self.read_file() {
            let keyring = self.required_keyring()?;
            keyring.clear(&self.server).await.map_err(io::Error::other)?;
        }
        match std::fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(had),
            Err(error) => Err(error),
        }
    }

    /// Reports whether there are any tokens.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.exists()) || self.kept.lock().is_some()
    }

    fn read_file(&self) -> io::Result<TokenFile> {
        let path = self.path.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(gnoma_core::json::from_bytes(&std::fs::read(path)?)?)
    }

    fn required_keyring(&self) -> io::Result<&Keyring> {
        let missing = || {
            let text = "the tokens are in the keyring of another desktop session, which is not \
                        available here; log in again with `gnoma mcp login`";
            io::Error::other(text)
        };
        self.keyring.as_ref().ok_or_else(missing)
    }

    pub(super) async fn read(&self) -> io::Result<Option<StoredCredentials>> {
        if let Some(kept) = self.kept.lock().clone() {
            return Ok(Some(kept));
        }
        match self.read_file() {
            // Another process may have written it again.
            Ok(TokenFile::Here(credentials)) => Ok(Some(*credentials)),
            Ok(TokenFile::InKeyring { .. }) => {
                let found = self.required_keyring()?.look_up(&self.server).await;
                let credentials = gnoma_core::json::from_bytes(&found.map_err(io::Error::other)?)?;
                // They are wanted with each request, and the keyring is asked through a program.
                let mut kept = self.kept.lock();
                Ok(Some(StoredCredentials::clone(kept.insert(credentials))))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn write(&self, credentials: &StoredCredentials) -> io::Result<()> {
        *self.kept.lock() = Some(credentials.clone());
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = TokenFile::Here(Box::new(credentials.clone()));
        if let Some(keyring) = &self.keyring {
            // One that is locked or refuses leaves the file.
            if keyring.store(&self.server, &serde_json::to_vec(credentials)?).await.is_ok() {
                file = TokenFile::InKeyring { in_keyring: true };
            }
        }
        private_file::replace(path, &serde_json::to_vec(&file)?)
    }
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
        assert_eq!(
            Keyring::from_variables(&[pair("PATH", &path)]),
            None,
            "there is no session to ask"
        );
        Keyring::from_variables(&[pair("PATH", &path), pair("DBUS_SESSION_BUS_ADDRESS", "unix:x")])
    }

    fn credentials() -> StoredCredentials {
        StoredCredentials {
            client_id: "t0ken".to_owned(),
            client_secret: None,
            token_response: None,
            granted_scopes: vec!["all".to_owned()],
            token_received_at: None,
            issuer: None,
        }
    }

    #[test]
    fn oauth_tokens_of_earlier_versions_are_loaded() {
        let text = r#"{"client_id":"c","token_response":{"access_token":"t","token_type":"bearer","expires_in":3600,
            "refresh_token":"r","scope":"a b","other":{"x":1}},"granted_scopes":["a"],"token_received_at":5,"issuer":"https://a.example"}"#;
        let stored: StoredCredentials = serde_json::from_str(text).unwrap();
        let token = stored.token_response.unwrap();
        assert_eq!(oauth2::TokenResponse::access_token(&token).secret(), "t");
        assert!(oauth2::TokenResponse::refresh_token(&token).is_some());
    }

    #[tokio::test]
    async fn oauth_tokens_are_stored_in_the_keyring_and_not_in_the_file() {
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
        assert!(tokens().remove_all().await.unwrap() && !tokens().are_there());
        assert!(!folder.path().join("secret").exists());
    }

    #[tokio::test]
    async fn oauth_tokens_fall_back_to_an_owner_only_file_if_the_keyring_fails() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = keyring(folder.path(), "cat > /dev/null; exit 1");
        let state = folder.path().join("state");
        let tokens = || Tokens::in_state(&state, "https://h.example/mcp", keyring.clone());
        tokens().write(&credentials()).await.unwrap();
        let facts = fs::metadata(tokens().path.unwrap()).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        assert_eq!(tokens().read().await.unwrap().unwrap().client_id, "t0ken");
        assert!(tokens().remove_all().await.unwrap() && !tokens().are_there());
    }
}
