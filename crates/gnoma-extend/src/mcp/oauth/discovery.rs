//! Finds the authorization server of a server: RFC 9728 names it, RFC 8414 and OpenID Connect Discovery describe it.

use std::net::IpAddr;

use oauth2::url::{Host, Url};
use serde_json::{Map, Value};

use super::{challenge, error::OauthError, oauth_http::OauthHttp};

/// The part that the paths of all descriptions have in common.
const WELL_KNOWN: &str = "/.well-known/";

/// The description that a server gives of the authorization it requires.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtectedResource {
    /// The resource for which tokens are requested.
    pub(super) resource: String,
    /// The scopes that it knows.
    pub(super) scopes: Vec<String>,
    servers: Vec<String>,
}

/// The description that an authorization server gives of itself.
#[derive(Clone, Debug)]
pub(super) struct AuthorizationServer {
    /// The name of the authorization server; `None` where a server has none, which only older ones may.
    pub(super) issuer: Option<String>,
    pub(super) authorization: String,
    pub(super) token: String,
    pub(super) registration: Option<String>,
    document: Map<String, Value>,
}

impl AuthorizationServer {
    /// The texts of a list of its description; `None` where there is no such list.
    pub(super) fn text_list(&self, key: &str) -> Option<Vec<&str>> {
        Some(self.document.get(key)?.as_array()?.iter().filter_map(Value::as_str).collect())
    }

    /// Returns whether it says that it does something.
    pub(super) fn has_flag(&self, key: &str) -> bool {
        self.document.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Reads the description of an authorization server.
    fn from_document(document: Map<String, Value>) -> Option<Self> {
        let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            issuer: text("issuer"),
            authorization: text("authorization_endpoint")?,
            token: text("token_endpoint")?,
            registration: text("registration_endpoint"),
            document,
        })
    }
}

/// Finds both for the server at an address. `challenge`: what the server said when it refused.
///
/// # Errors
/// No authorization server that may be used describes itself.
pub(super) async fn discover_servers(
    door: &OauthHttp,
    url: &str,
    challenge: Option<&str>,
) -> Result<(ProtectedResource, AuthorizationServer), OauthError> {
    let base = Url::parse(url)
        .map_err(|source| OauthError::Address { address: url.to_owned(), source })?;
    let Some(resource) = protected_resource(door, &base, challenge).await? else {
        let resource =
            ProtectedResource { resource: canonical_resource(&base), ..Default::default() };
        return Ok((resource, server_of_origin(door, &base).await?));
    };
    if resource.servers.is_empty() {
        let server = server_of_origin(door, &base).await?;
        return Ok((resource, server));
    }
    for server in &resource.servers {
        let Ok(issuer) = Url::parse(server).or_else(|_| base.join(server)) else { continue };
        if !is_allowed(&base, &issuer) {
            continue;
        }
        if let Some(found) = fetch_metadata(door, &issuer, server).await? {
            return Ok((resource, found));
        }
    }
    Err(OauthError::NoServer(resource.servers))
}

/// Returns the description that a server gives of the authorization it requires; `None` where it gives none.
async fn protected_resource(
    door: &OauthHttp,
    base: &Url,
    challenge: Option<&str>,
) -> Result<Option<ProtectedResource>, OauthError> {
    const NAME: &str = "/.well-known/oauth-protected-resource";
    let named =
        challenge.and_then(|text| challenge::challenge_parameter(text, "resource_metadata"));
    let named = named.and_then(|named| Url::parse(&named).or_else(|_| base.join(&named)).ok());
    let path = base.path().trim_end_matches('/');
    let mut places: Vec<Url> = named.into_iter().filter(|url| is_allowed(base, url)).collect();
    for place in [same_origin_url(base, &format!("{NAME}{path}")), same_origin_url(base, NAME)] {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in places {
        if let Some(document) = door.fetch_document(place.as_str()).await? {
            return read_resource(base, &document).map(Some);
        }
    }
    Ok(None)
}

fn read_resource(
    base: &Url,
    document: &Map<String, Value>,
) -> Result<ProtectedResource, OauthError> {
    let texts = |key: &str| -> Vec<String> {
        let all = document.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let resource = document.get("resource").and_then(Value::as_str);
    if let Some(resource) = resource.filter(|resource| !is_resource_of(base, resource)) {
        return Err(OauthError::OtherResource(resource.to_owned()));
    }
    let single = document.get("authorization_server").and_then(Value::as_str);
    let servers = single.map(str::to_owned).into_iter().chain(texts("authorization_servers"));
    Ok(ProtectedResource {
        resource: resource.map_or_else(|| canonical_resource(base), str::to_owned),
        scopes: texts("scopes_supported"),
        servers: servers.collect(),
    })
}

/// Returns whether a resource is the server at an address, or what it is a part of.
fn is_resource_of(base: &Url, resource: &str) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    if resource.fragment().is_some() || resource.origin() != base.origin() {
        return false;
    }
    let (whole, part) = (base.path(), resource.path());
    whole == part
        || whole.strip_prefix(part).is_some_and(|rest| part.ends_with('/') || rest.starts_with('/'))
        || part.strip_suffix('/') == Some(whole)
}

/// The description of the authorization server with that name; `None` where there is none.
async fn fetch_metadata(
    door: &OauthHttp,
    issuer: &Url,
    name: &str,
) -> Result<Option<AuthorizationServer>, OauthError> {
    for place in metadata_urls(issuer) {
        let found = door.fetch_document(place.as_str()).await?;
        let Some(server) = found.and_then(AuthorizationServer::from_document) else { continue };
        let said = server.issuer.as_deref().unwrap_or_default();
        // A description of another server could send a person's consent to whoever wrote it.
        if !is_same_issuer(issuer, name, said) {
            let (name, issuer) = (name.to_owned(), said.to_owned());
            return Err(OauthError::OtherServer { name, issuer });
        }
        return Ok(Some(server));
    }
    Ok(None)
}

/// Returns whether a description is of the authorization server with that name. Only the slash behind a host may be
/// left out.
fn is_same_issuer(issuer: &Url, name: &str, said: &str) -> bool {
    let Ok(described) = Url::parse(said) else { return false };
    if issuer.path().contains(WELL_KNOWN) {
        return described.origin() == issuer.origin();
    }
    let is_root = issuer.path() == "/" && described.path() == "/";
    said == name || (is_root && said.trim_end_matches('/') == name.trim_end_matches('/'))
}

/// Returns the addresses at which the description of an authorization server may be.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let path = issuer.path().trim_end_matches('/');
    if path.contains(WELL_KNOWN) {
        return vec![issuer.clone()];
    }
    let mut places = vec![
        same_origin_url(issuer, &format!("{OAUTH}{path}")),
        same_origin_url(issuer, &format!("{OPENID}{path}")),
        same_origin_url(issuer, &format!("{path}{OPENID}")),
        same_origin_url(issuer, OAUTH),
    ];
    places.dedup();
    if path.is_empty() {
        places.truncate(2);
    }
    places
}

/// The authorization server at a server's own origin, as older versions of the protocol have it. Without a
/// description its addresses are the usual ones.
async fn server_of_origin(door: &OauthHttp, base: &Url) -> Result<AuthorizationServer, OauthError> {
    let origin = same_origin_url(base, "");
    for place in metadata_urls(base).into_iter().chain(metadata_urls(&origin)) {
        let found = door.fetch_document(place.as_str()).await?;
        if let Some(server) = found.and_then(AuthorizationServer::from_document) {
            let issuer = server.issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
            if issuer.is_none_or(|issuer| issuer.origin() == base.origin()) {
                return Ok(server);
            }
        }
    }
    let usual = |path: &str| same_origin_url(base, path).to_string();
    Ok(AuthorizationServer {
        issuer: None,
        authorization: usual("/authorize"),
        token: usual("/token"),
        registration: Some(usual("/register")),
        document: Map::new(),
    })
}

/// An address at the same origin.
fn same_origin_url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

/// Returns the name of a server that does not give its own.
fn canonical_resource(base: &Url) -> String {
    let mut url = base.clone();
    url.set_fragment(None);
    let text = url.to_string();
    if url.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

/// Returns whether a server may send gnoma to an address: its own origin, or one that it could reach itself. A server
/// of the internet does not send anybody to a service of this machine or network, and none leaves TLS.
fn is_allowed(base: &Url, url: &Url) -> bool {
    if base.origin() == url.origin() {
        return true;
    }
    let is_web = matches!((base.scheme(), url.scheme()), (_, "https") | ("http", "http"));
    is_web && (is_local(base) || !is_local(url))
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost") || name.ends_with(".internal")
        }
        Some(Host::Ipv4(address)) => is_local_address(address.into()),
        Some(Host::Ipv6(address)) => is_local_address(address.to_canonical()),
        None => true,
    }
}

fn is_local_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || is_shared
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn oauth_metadata_urls_follow_the_well_known_standards() {
        let paths = |issuer: &str| -> Vec<String> {
            metadata_urls(&url(issuer)).iter().map(|place| place.path().to_owned()).collect()
        };
        assert_eq!(
            paths("https://a.example"),
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]
        );
        assert_eq!(
            paths("https://a.example/tenant/"),
            [
                "/.well-known/oauth-authorization-server/tenant",
                "/.well-known/openid-configuration/tenant",
                "/tenant/.well-known/openid-configuration",
                "/.well-known/oauth-authorization-server",
            ]
        );
    }

    #[test]
    fn oauth_resource_must_be_the_mcp_server_or_its_parent() {
        let base = url("https://a.example/mcp/one");
        for resource in [
            "https://a.example",
            "https://a.example/mcp",
            "https://a.example/mcp/one",
            "https://a.example/mcp/one/",
        ] {
            assert!(is_resource_of(&base, resource), "{resource}");
        }
        for other in [
            "https://b.example/mcp/one",
            "https://a.example/mc",
            "https://a.example/mcp/one/x",
            "http://a.example/mcp/one",
            "https://a.example/mcp#x",
            "words",
        ] {
            assert!(!is_resource_of(&base, other), "{other}");
        }
    }

    #[test]
    fn oauth_discovery_of_a_public_server_refuses_local_network_addresses() {
        let (far, here) = (url("https://a.example/mcp"), url("http://127.0.0.1:8000/mcp"));
        for place in ["https://login.example/", "https://a.example/x"] {
            assert!(is_allowed(&far, &url(place)), "{place}");
        }
        for place in [
            "https://127.0.0.1/",
            "https://localhost:8443/",
            "https://10.1.2.3/",
            "https://169.254.169.254/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00::1]/",
            "http://login.example/",
            "file:///x",
        ] {
            assert!(!is_allowed(&far, &url(place)), "{place}");
        }
        assert!(is_allowed(&here, &url("http://localhost:9000/")));
    }
}
