//! The OAuth authorization code flow with PKCE, through a person's browser.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gnoma_core::random::random_bytes;
use gnoma_net::Http;
use oauth2::{
    AuthorizationCode, CsrfToken, PkceCodeChallenge, PkceCodeVerifier, Scope, TokenResponse as _,
    basic::BasicTokenResponse, url::Url,
};

use super::{
    challenge,
    discovery::{AuthorizationServer, ProtectedResource, discover_servers},
    error::OauthError,
    oauth_http::OauthHttp,
    registration::{ConfiguredClient, RegisteredClient},
    tokens::{StoredCredentials, Tokens},
};

/// The scope for which an authorization server gives tokens that renew others.
const OFFLINE: &str = "offline_access";

/// A login that waits for a person's browser to come back.
pub(crate) struct PendingLogin {
    door: OauthHttp,
    tokens: Tokens,
    server: AuthorizationServer,
    resource: String,
    client: RegisteredClient,
    redirect: String,
    scopes: Vec<String>,
    state: CsrfToken,
    verifier: PkceCodeVerifier,
}

/// Begins a login, and gives the page that a person is to open. `challenge`: what the server said when it refused.
///
/// # Errors
/// The server has no authorization server that gnoma can use, or it does not register gnoma.
pub(crate) async fn begin_login(
    http: &Http,
    url: &str,
    tokens: &Tokens,
    redirect: &str,
    challenge: Option<&str>,
    registered: &ConfiguredClient,
) -> Result<(PendingLogin, String), OauthError> {
    let door = OauthHttp(http.clone());
    let (resource, server) = discover_servers(&door, url, challenge).await?;
    check_server(&server)?;
    let scopes = select_scopes(tokens, challenge, &resource, &server).await;
    let client = RegisteredClient::register(&door, &server, registered, redirect, &scopes).await?;
    let requests = client.request_client(&server, Some(redirect))?;
    let state = CsrfToken::new(random_text()?);
    let verifier = PkceCodeVerifier::new(random_text()?);
    let (page, state) = requests
        .authorize_url(|| state)
        .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
        .add_extra_param("resource", &resource.resource)
        .add_scopes(scopes.iter().cloned().map(Scope::new))
        .url();
    let pending = PendingLogin {
        door,
        tokens: tokens.clone(),
        server,
        resource: resource.resource,
        client,
        redirect: redirect.to_owned(),
        scopes,
        state,
        verifier,
    };
    Ok((pending, page.to_string()))
}

/// Random text of 43 characters. The generators of `oauth2` are 12 KB of the program.
fn random_text() -> io::Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(random_bytes()?))
}

/// Refuses a server that cannot do what gnoma needs.
fn check_server(server: &AuthorizationServer) -> Result<(), OauthError> {
    let lacks =
        |key: &str, wanted: &str| server.text_list(key).is_some_and(|all| !all.contains(&wanted));
    if lacks("code_challenge_methods_supported", "S256") {
        return Err(OauthError::NoPkce);
    }
    if lacks("response_types_supported", "code") {
        return Err(OauthError::NoCodes);
    }
    Ok(())
}

/// The scopes to ask for: at the first login those of the challenge, or else those of the server's description; later
/// those that were granted, and what the challenge wants besides.
async fn select_scopes(
    tokens: &Tokens,
    challenge: Option<&str>,
    resource: &ProtectedResource,
    server: &AuthorizationServer,
) -> Vec<String> {
    let wanted = challenge.map(challenge::requested_scopes).unwrap_or_default();
    let granted = tokens.read().await.ok().flatten().map(|known| known.granted_scopes);
    let mut scopes = match granted.filter(|granted| !granted.is_empty() && !wanted.is_empty()) {
        Some(granted) => granted.into_iter().chain(wanted).collect(),
        None if wanted.is_empty() => resource.scopes.clone(),
        None => wanted,
    };
    if !scopes.is_empty()
        && server.text_list("scopes_supported").is_some_and(|known| known.contains(&OFFLINE))
    {
        scopes.push(OFFLINE.to_owned());
    }
    let mut all: Vec<String> = Vec::new();
    for scope in scopes {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    all
}

impl PendingLogin {
    /// Takes the address that the browser came back to, and saves the tokens.
    ///
    /// # Errors
    /// The person did not agree, or what came back is not the answer to this login.
    pub(crate) async fn finish(self, came_back: &str) -> Result<(), OauthError> {
        let code = self.parse_code(came_back)?;
        let requests = self.client.request_client(&self.server, Some(&self.redirect))?;
        let request = requests
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(self.verifier)
            .add_extra_param("resource", &self.resource);
        let response = request.request_async(&self.door).await?;
        let stored = StoredCredentials {
            client_id: self.client.id,
            client_secret: self.client.secret,
            granted_scopes: granted_scopes(&response, &self.scopes),
            token_received_at: Some(now_s()),
            issuer: self.server.issuer,
            token_response: Some(response),
        };
        Ok(self.tokens.write(&stored).await?)
    }

    /// The code in the address that the browser came back to.
    fn parse_code(&self, came_back: &str) -> Result<String, OauthError> {
        let url = Url::parse(came_back)?;
        let parameter = |name: &str| {
            url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        // Before anything else of the answer counts: it may be of another server (RFC 9207).
        let issuer = parameter("iss");
        let must_say = self.server.has_flag("authorization_response_iss_parameter_supported");
        match (&self.server.issuer, issuer) {
            (Some(expected), Some(issuer)) if *expected != issuer => {
                let expected = expected.clone();
                return Err(OauthError::OtherIssuer { issuer, expected });
            }
            (_, None) if must_say => return Err(OauthError::NoIssuer),
            (None, Some(_)) => return Err(OauthError::UncheckedIssuer),
            _ => {}
        }
        if parameter("state").as_ref() != Some(self.state.secret()) {
            return Err(OauthError::OtherLogin);
        }
        if let Some(error) = parameter("error") {
            return Err(OauthError::Refused { error, about: parameter("error_description") });
        }
        parameter("code").ok_or(OauthError::NoCode)
    }
}

/// Returns the scopes that were granted: those in the answer, or else those that were asked for.
pub(super) fn granted_scopes(response: &BasicTokenResponse, asked: &[String]) -> Vec<String> {
    match response.scopes() {
        Some(scopes) => scopes.iter().map(|scope| scope.to_string()).collect(),
        None => asked.to_vec(),
    }
}

/// Returns the current time, in seconds since 1970.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
