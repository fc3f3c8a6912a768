//! Client registration at an authorization server: agreed on before, by a metadata document, or dynamic (RFC 7591).

use oauth2::{AuthType, ClientId, ClientSecret, basic::BasicClient};
use oauth2::{AuthUrl, EndpointNotSet, EndpointSet, RedirectUrl, TokenUrl};
use serde_json::{Value, json};

use super::{discovery::AuthorizationServer, error::OauthError, oauth_http::OauthHttp};

/// The name under which gnoma registers as a client.
const CLIENT_NAME: &str = "gnoma";
/// The list of how clients may say who they are where they ask for tokens.
const AUTH_METHODS: &str = "token_endpoint_auth_methods_supported";

/// Most bytes of a refusal that are shown.
const MAX_SAID_BYTES: usize = 300;

/// The identity of a client that was agreed on before.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfiguredClient {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    /// The address of a document that describes the client.
    pub(crate) metadata_url: Option<String>,
}

/// gnoma as an authorization server knows it.
#[derive(Clone, Debug)]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// The way in which the secret is sent, if the server named one.
    method: Option<String>,
}

/// A client of `oauth2` with its addresses.
pub(super) type Requests =
    BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// Returns the request that registers gnoma (RFC 7591).
fn registration_request(redirect: &str, scopes: &[String]) -> Value {
    let mut request = json!({
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    if !scopes.is_empty()
        && let Some(request) = request.as_object_mut()
    {
        request.insert("scope".to_owned(), scopes.join(" ").into());
    }
    request
}

impl RegisteredClient {
    /// One that was registered in an earlier session.
    pub(super) fn from_stored(id: &str, secret: Option<String>) -> Self {
        Self { id: id.to_owned(), secret, method: None }
    }

    /// Makes gnoma known to a server.
    ///
    /// # Errors
    /// The server does not take unknown clients, or not this one.
    pub(super) async fn register(
        door: &OauthHttp,
        server: &AuthorizationServer,
        registered: &ConfiguredClient,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Self, OauthError> {
        if let Some(id) = &registered.client_id {
            return Ok(Self::from_stored(id, registered.client_secret.clone()));
        }
        if let Some(url) = &registered.metadata_url
            && server.has_flag("client_id_metadata_document_supported")
        {
            return Ok(Self::from_stored(url, None));
        }
        let place = server.registration.as_ref().ok_or(OauthError::NoRegistration)?;
        let answer = door.post_document(place, &registration_request(redirect, scopes)).await?;
        let document = answer.json_document().unwrap_or_default();
        let text = |key: &str| {
            let text = document.get(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let Some(id) = text("client_id") else {
            let said = String::from_utf8_lossy(&answer.body);
            let said = gnoma_core::text_truncation::word_prefix(said.trim(), MAX_SAID_BYTES);
            let (status, said) = (answer.status, said.to_owned());
            return Err(OauthError::NotRegistered { status, said });
        };
        Ok(Self { id, secret: text("client_secret"), method: text("token_endpoint_auth_method") })
    }

    /// The client for requests to a server.
    ///
    /// # Errors
    /// The server's addresses are none.
    pub(super) fn request_client(
        &self,
        server: &AuthorizationServer,
        redirect: Option<&str>,
    ) -> Result<Requests, OauthError> {
        let unusable = |purpose, source| OauthError::Endpoint { purpose, source };
        let authorization = AuthUrl::new(server.authorization.clone())
            .map_err(|error| unusable("authorization", error))?;
        let token =
            TokenUrl::new(server.token.clone()).map_err(|error| unusable("token", error))?;
        let mut client = BasicClient::new(ClientId::new(self.id.clone()))
            .set_auth_uri(authorization)
            .set_token_uri(token);
        if let Some(redirect) = redirect {
            let redirect = RedirectUrl::new(redirect.to_owned());
            client = client.set_redirect_uri(redirect.map_err(|error| unusable("return", error))?);
        }
        if let Some(secret) = self.secret.clone().filter(|_| !self.is_public(server)) {
            client = client.set_client_secret(ClientSecret::new(secret));
        }
        if self.sends_secret_in_body(server) {
            client = client.set_auth_type(AuthType::RequestBody);
        }
        Ok(client)
    }

    fn is_public(&self, server: &AuthorizationServer) -> bool {
        match &self.method {
            Some(method) => method == "none",
            None => server.text_list(AUTH_METHODS).is_some_and(|methods| methods == ["none"]),
        }
    }

    fn sends_secret_in_body(&self, server: &AuthorizationServer) -> bool {
        const POST: &str = "client_secret_post";
        let is_only_post = |methods: Vec<&str>| {
            methods.contains(&POST) && !methods.contains(&"client_secret_basic")
        };
        match self.method.as_deref() {
            Some(POST) => true,
            Some("client_secret_basic") => false,
            Some(_) | None => server.text_list(AUTH_METHODS).is_some_and(is_only_post),
        }
    }
}
