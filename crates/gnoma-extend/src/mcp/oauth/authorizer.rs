//! The token for requests to a server: the saved one, renewed before it ends and where the server does not take it.

use gnoma_core::Secret;
use gnoma_net::Http;
use oauth2::{RefreshToken, RequestTokenError, TokenResponse as _, basic::BasicErrorResponseType};
use tokio::sync::Mutex;

use super::{
    super::error::CallError,
    discovery::discover_servers,
    error::OauthError,
    flow::{granted_scopes, now_s},
    oauth_http::OauthHttp,
    registration::RegisteredClient,
    tokens::{StoredCredentials, Tokens},
};

/// A token is renewed when it has so many seconds left, or half of its time where that is less.
const RENEW_BEFORE_S: u64 = 30;

impl From<OauthError> for CallError {
    fn from(error: OauthError) -> Self {
        Self::Login(error.to_string())
    }
}

/// Says who asks, in requests to one server.
pub(crate) struct Authorizer {
    door: OauthHttp,
    url: String,
    tokens: Tokens,
    /// Held while tokens are renewed: the token that renews them is often good only once.
    renewing: Mutex<()>,
}

impl Authorizer {
    pub(crate) fn new(http: &Http, url: &str, tokens: &Tokens) -> Self {
        Self {
            door: OauthHttp(http.clone()),
            url: url.to_owned(),
            tokens: tokens.clone(),
            renewing: Mutex::default(),
        }
    }

    /// The token; `None` where nobody has logged in.
    ///
    /// # Errors
    /// The saved tokens cannot be read.
    pub(crate) async fn token(&self) -> Result<Option<Secret<String>>, CallError> {
        if !self.tokens.are_there() {
            return Ok(None);
        }
        let Some(stored) = self.read_stored().await? else { return Ok(None) };
        let token = access_token(&stored);
        if !ends_soon(&stored, now_s()) {
            return Ok(token);
        }
        match token {
            // One that cannot be renewed may still be taken: its server decides.
            Some(token) => Ok(Some(self.renew_token(&token).await?.unwrap_or(token))),
            None => Ok(None),
        }
    }

    /// Another token in the place of one that has ended; `None` where a person has to log in again.
    ///
    /// # Errors
    /// The authorization server cannot be asked.
    pub(crate) async fn renew_token(
        &self,
        old: &Secret<String>,
    ) -> Result<Option<Secret<String>>, CallError> {
        let _alone = self.renewing.lock().await;
        let Some(stored) = self.read_stored().await? else { return Ok(None) };
        // Another request has renewed it.
        if let Some(token) = access_token(&stored).filter(|token| token.expose() != old.expose()) {
            return Ok(Some(token));
        }
        let response = stored.token_response.as_ref();
        let Some(refresh) = response.and_then(|response| response.refresh_token()).cloned() else {
            return Ok(None);
        };
        self.exchange_refresh_token(stored, refresh).await
    }

    async fn exchange_refresh_token(
        &self,
        mut stored: StoredCredentials,
        refresh: RefreshToken,
    ) -> Result<Option<Secret<String>>, CallError> {
        let (resource, server) = discover_servers(&self.door, &self.url, None).await?;
        // A token of one server is not shown to another.
        if stored.issuer.is_some() && stored.issuer != server.issuer {
            return Ok(None);
        }
        let client = RegisteredClient::from_stored(&stored.client_id, stored.client_secret.clone());
        let requests = client.request_client(&server, None)?;
        let request = requests.exchange_refresh_token(&refresh);
        let request = request.add_extra_param("resource", &resource.resource);
        let mut response = match request.request_async(&self.door).await {
            Ok(response) => response,
            Err(RequestTokenError::ServerResponse(refused))
                if *refused.error() == BasicErrorResponseType::InvalidGrant =>
            {
                return Ok(None);
            }
            Err(error) => return Err(OauthError::from(error).into()),
        };
        if response.refresh_token().is_none() {
            response.set_refresh_token(Some(refresh));
        }
        if stored.granted_scopes.is_empty() {
            stored.granted_scopes = granted_scopes(&response, &[]);
        }
        stored.token_response = Some(response);
        stored.token_received_at = Some(now_s());
        self.tokens.write(&stored).await.map_err(OauthError::Io)?;
        Ok(access_token(&stored))
    }

    async fn read_stored(&self) -> Result<Option<StoredCredentials>, CallError> {
        Ok(self.tokens.read().await.map_err(OauthError::Io)?)
    }
}

fn access_token(stored: &StoredCredentials) -> Option<Secret<String>> {
    let response = stored.token_response.as_ref()?;
    Some(Secret::new(response.access_token().secret().clone()))
}

/// Returns whether the token has ended or is about to; one that says nothing of its end has not.
fn ends_soon(stored: &StoredCredentials, now_s: u64) -> bool {
    let lasts = stored.token_response.as_ref().and_then(oauth2::TokenResponse::expires_in);
    let Some((lasts, came)) = lasts.zip(stored.token_received_at) else { return false };
    let left = lasts.as_secs().saturating_sub(now_s.saturating_sub(came));
    left < RENEW_BEFORE_S.min(lasts.as_secs() / 2).max(1)
}
