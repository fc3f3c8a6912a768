//! Authentication of the page: tokens, cookies, origins. Pure.
//!
//! One token opens everything; of those derived from it, one lets people watch, and each device may have one of its
//! own. A program shows its token with every request (`Authorization: Bearer`). A browser shows it once, as it stands in the fragment of
//! the link, and gets two things for it: a cookie that no script can read, and a key that the page
//! sends along and that no other origin can read. Both are needed: browsers send the cookie of a host to all
//! of its ports, so that any server on this machine may see it.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gnoma_core::Secret;
use hyper::{
    HeaderMap, Method,
    header::{AUTHORIZATION, COOKIE, HOST, HeaderName, HeaderValue, ORIGIN},
};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

/// The key of the page.
pub(crate) const KEY: HeaderName = HeaderName::from_static("gnoma-key");
/// The header in which a browser says where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The rights of a client that has access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// The right to do everything.
    Steer,
    /// See sessions, and change nothing.
    Watch,
}

impl Rights {
    /// The word for it in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::Watch => "watch",
        }
    }
}

/// A token that nobody can guess: 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(Secret<String>);

impl Token {
    /// Characters of a token.
    const CHARS: usize = 64;

    /// A token of random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(Secret::new(to_hex(&random)))
    }

    /// Reads a token that was stored; `None` where it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_token = text.len() == Self::CHARS && text.bytes().all(|it| it.is_ascii_hexdigit());
        is_token.then(|| Self(Secret::new(text.to_owned())))
    }

    /// The text, for the file it is stored in and for the link.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The token of the link that only lets people watch.
    #[must_use]
    pub fn for_watching(&self) -> Self {
        self.derive_token("watch")
    }

    /// The token of one device, which can be revoked alone. Another `mark` gives another token.
    #[must_use]
    pub fn for_device(&self, mark: &str) -> Self {
        self.derive_token(&format!("device {mark}"))
    }

    /// Returns this token, which allows everything, and the one that only lets people watch.
    #[must_use]
    pub fn with_watching(&self) -> Vec<(Rights, Self)> {
        vec![(Rights::Steer, self.clone()), (Rights::Watch, self.for_watching())]
    }

    /// Another token that follows from this one, and from which this one does not.
    fn derive_token(&self, purpose: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.expose().as_bytes());
        hash.update([0]);
        hash.update(purpose.as_bytes());
        Self(Secret::new(to_hex(&hash.finalize())))
    }

    fn matches_text(&self, shown: &str) -> bool {
        let own = self.expose().as_bytes();
        let differing = own.iter().zip(shown.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == shown.len() && differing == 0
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reason why a client is denied access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The request is for another host: a name that somebody has made to lead here.
    Host,
    /// Another site sent the browser.
    Origin,
    /// No token, or a wrong one.
    Token,
    /// A client that may only watch asks for more.
    Watching,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "this address is not the server's own",
            Self::Origin => "another site sent this request",
            Self::Token => "the request has no valid token",
            Self::Watching => "this link lets you watch, and nothing else",
        })
    }
}

/// The credentials that all clients with the same rights get.
#[derive(Clone, Debug)]
struct AccessTokens {
    rights: Rights,
    token: Token,
    cookie: Token,
    key: Token,
}

impl AccessTokens {
    fn new(rights: Rights, token: Token) -> Self {
        let (cookie, key) = (token.derive_token("cookie"), token.derive_token("key"));
        Self { rights, token, cookie, key }
    }
}

/// The source of the tokens.
pub trait TokenSource: Send + Sync + 'static {
    /// The tokens as they are now, with what each allows; where there are none any more, nobody is let in. They are
    /// asked for at each authentication, so that it has to be cheap.
    fn current_tokens(&self) -> Vec<(Rights, Token)>;
}

impl fmt::Debug for dyn TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}

/// One that stays the same.
impl TokenSource for Token {
    fn current_tokens(&self) -> Vec<(Rights, Token)> {
        self.with_watching()
    }
}

/// The credentials that follow from the tokens.
#[derive(Debug)]
struct Keys {
    tokens: Vec<(Rights, Token)>,
    passes: Vec<AccessTokens>,
}

impl Keys {
    fn new(tokens: Vec<(Rights, Token)>) -> Self {
        let pass = |(rights, token): &(Rights, Token)| AccessTokens::new(*rights, token.clone());
        Self { passes: tokens.iter().map(pass).collect(), tokens }
    }

    /// Reports whether a client that has shown this token with these rights would get access.
    fn admits(&self, client: &(Rights, Token)) -> bool {
        self.tokens.contains(client)
    }
}

/// The record of whether a client has shown a token on a connection. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission(Arc<AtomicBool>);

impl Admission {
    pub(crate) fn set_admitted(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The access control at one address.
#[derive(Debug)]
pub struct Access {
    tokens: Box<dyn TokenSource>,
    keys: watch::Sender<Arc<Keys>>,
    hosts: Vec<String>,
    /// The name at which a tunnel of the person's shows the page by HTTPS.
    tunnel: Option<String>,
    cookie_name: String,
}

/// Somebody who was let in, as long as the token that was shown is valid.
#[derive(Debug)]
pub(crate) struct AuthorizedClient {
    access: Arc<Access>,
    shown: (Rights, Token),
}

impl AuthorizedClient {
    /// Returns what the client may do.
    pub(crate) fn rights(&self) -> Rights {
        self.shown.0
    }

    /// Reports whether the client would still get access.
    pub(crate) fn is_valid(&self) -> bool {
        self.access.current_keys().admits(&self.shown)
    }

    /// Ends when they would not be let in any more, and somebody has noticed.
    pub(crate) async fn wait_until_revoked(&self) {
        let mut keys = self.access.keys.subscribe();
        let _gone = keys.wait_for(|keys| !keys.admits(&self.shown)).await;
    }
}

impl Access {
    /// The address that the page is opened by.
    pub(crate) fn host(&self) -> Option<&str> {
        self.hosts.first().map(String::as_str)
    }

    /// Lets in whoever has the token, at this address.
    #[must_use]
    pub fn new(tokens: impl TokenSource, address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string(), format!("localhost:{port}")];
        if port == 80 {
            hosts.extend([address.ip().to_string(), "localhost".to_owned()]);
        }
        let keys = watch::Sender::new(Arc::new(Keys::new(tokens.current_tokens())));
        let cookie_name = format!("gnoma_{port}");
        Self { tokens: Box::new(tokens), keys, hosts, tunnel: None, cookie_name }
    }

    /// The same, which also lets in by HTTPS at the name of the person's own tunnel.
    #[must_use]
    pub fn with_tunnel(self, tunnel: Option<String>) -> Self {
        Self { tunnel, ..self }
    }

    /// Reports whether the request came through the tunnel.
    fn is_tunnel(&self, host: &str) -> bool {
        self.tunnel.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(host))
    }

    /// Returns the keys that follow from the tokens as they are now.
    fn current_keys(&self) -> Arc<Keys> {
        let tokens = self.tokens.current_tokens();
        self.keys.send_if_modified(|known| {
            let is_other = known.tokens != tokens;
            if is_other {
                *known = Arc::new(Keys::new(tokens));
            }
            is_other
        });
        Arc::clone(&self.keys.borrow())
    }

    /// Notices other tokens, also where nobody asks for anything.
    pub(crate) fn refresh_keys(&self) {
        self.current_keys();
    }

    /// Returns what a browser gets for the token of a link: rights, a `Set-Cookie` and the page's key.
    pub(crate) fn exchange_token(
        &self,
        token: &str,
        headers: &HeaderMap,
    ) -> Result<(Rights, String, String), Denial> {
        let keys = self.current_keys();
        let pass =
            keys.passes.iter().find(|pass| pass.token.matches_text(token)).ok_or(Denial::Token)?;
        let (name, value) = (&self.cookie_name, pass.cookie.expose());
        let is_tunnel = single_header(headers, &HOST).is_some_and(|host| self.is_tunnel(host));
        let secure = if is_tunnel { "; Secure" } else { "" };
        let cookie =
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}");
        Ok((pass.rights, cookie, pass.key.expose().to_owned()))
    }

    /// Checks that a request came to this server by its own name, and by no other site's will. `reads` is a page
    /// that anybody may open, also by a link elsewhere.
    pub(crate) fn check_host_and_origin(
        &self,
        method: &Method,
        headers: &HeaderMap,
        reads: bool,
    ) -> Result<(), Denial> {
        let host = single_header(headers, &HOST).ok_or(Denial::Host)?;
        let is_tunnel = self.is_tunnel(host);
        if !is_tunnel && !self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
            return Err(Denial::Host);
        }
        let scheme = if is_tunnel { "https://" } else { "http://" };
        if headers.contains_key(ORIGIN) {
            let origin = single_header(headers, &ORIGIN).and_then(|it| it.strip_prefix(scheme));
            if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
                return Err(Denial::Origin);
            }
        }
        let is_opened = reads && *method == Method::GET;
        match headers.get(&FETCH_SITE).map(HeaderValue::as_bytes) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) if is_opened => Ok(()),
            Some(_) => Err(Denial::Origin),
        }
    }

    /// Checks the credentials of a request and returns what its sender may do.
    pub(crate) fn authenticate_request(
        self: &Arc<Self>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<AuthorizedClient, Denial> {
        let keys = self.current_keys();
        let pass = self.request_pass(&keys.passes, method, headers)?;
        let shown = (pass.rights, pass.token.clone());
        Ok(AuthorizedClient { access: Arc::clone(self), shown })
    }

    fn request_pass<'a>(
        &self,
        passes: &'a [AccessTokens],
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<&'a AccessTokens, Denial> {
        if headers.contains_key(AUTHORIZATION) {
            // Names of schemes have no case: RFC 9110, section 11.1.
            let shown = single_header(headers, &AUTHORIZATION).and_then(|it| it.split_once(' '));
            let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let shown = shown.ok_or(Denial::Token)?.1.trim();
            let pass = passes.iter().find(|pass| pass.token.matches_text(shown));
            return pass.ok_or(Denial::Token);
        }
        let key = single_header(headers, &KEY).ok_or(Denial::Token)?;
        let pass = passes.iter().find(|pass| {
            pass.key.matches_text(key)
                && self.access_cookies(headers).any(|value| pass.cookie.matches_text(value))
        });
        let pass = pass.ok_or(Denial::Token)?;
        // A browser names the origin of everything that could change something.
        if *method != Method::GET && !headers.contains_key(ORIGIN) {
            return Err(Denial::Origin);
        }
        Ok(pass)
    }

    fn access_cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let all = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|text| text.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie_name).then_some(value)
        })
    }
}

/// The value of a header that stands there once and is text.
fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Arc<Access> {
        Arc::new(Access::new(Token::from_random([7; 32]), "127.0.0.1:4666".parse().unwrap()))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let mut map = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn host_header_must_name_the_server() {
        let access = access();
        let admits = |pairs: &[(&'static str, &str)]| {
            access.check_host_and_origin(&Method::POST, &headers(pairs), false)
        };
        for host in ["127.0.0.1:4666", "localhost:4666", "LOCALHOST:4666"] {
            assert_eq!(admits(&[("host", host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example:4666", "127.0.0.1", "127.0.0.1:4667", "localhost.evil.example:4666", ""]
        {
            assert_eq!(admits(&[("host", host)]), Err(Denial::Host), "{host}");
        }
        assert_eq!(admits(&[]), Err(Denial::Host));
        assert_eq!(
            admits(&[("host", "localhost:4666"), ("host", "evil.example")]),
            Err(Denial::Host)
        );
    }

    #[test]
    fn cross_site_and_cross_port_origins_are_refused() {
        let access = access();
        let host = ("host", "127.0.0.1:4666");
        let admits = |method: &Method, pairs: &[(&'static str, &str)], reads| {
            let mut all = vec![host];
            all.extend(pairs);
            access.check_host_and_origin(method, &headers(&all), reads)
        };
        assert_eq!(admits(&Method::POST, &[("origin", "http://127.0.0.1:4666")], false), Ok(()));
        for origin in [
            "http://127.0.0.1:3000",
            "https://127.0.0.1:4666",
            "http://evil.example",
            "null",
            "http://localhost:4666",
            "http://127.0.0.1:46660",
            "file://",
        ] {
            let denied = admits(&Method::POST, &[("origin", origin)], false);
            assert_eq!(denied, Err(Denial::Origin), "{origin}");
        }
        let from = |site| [("sec-fetch-site", site)];
        assert_eq!(admits(&Method::GET, &from("cross-site"), false), Err(Denial::Origin));
        assert_eq!(admits(&Method::GET, &from("same-site"), false), Err(Denial::Origin));
        assert_eq!(admits(&Method::GET, &from("cross-site"), true), Ok(()), "a link to the page");
        assert_eq!(admits(&Method::POST, &from("cross-site"), true), Err(Denial::Origin));
        assert_eq!(admits(&Method::POST, &from("same-origin"), false), Ok(()));
    }

    #[test]
    fn tunnel_is_reached_only_by_its_name_over_https() {
        let access = Access::new(Token::from_random([7; 32]), "127.0.0.1:4666".parse().unwrap());
        let access = access.with_tunnel(Some("desk.tail1.ts.net".into()));
        let admits = |host: &str, origin: &str| {
            access.check_host_and_origin(
                &Method::POST,
                &headers(&[("host", host), ("origin", origin)]),
                false,
            )
        };
        let name = "desk.tail1.ts.net";
        assert_eq!(admits(name, "https://desk.tail1.ts.net"), Ok(()));
        assert_eq!(admits("127.0.0.1:4666", "http://127.0.0.1:4666"), Ok(()));
        for (host, origin, denial) in [
            (name, "http://desk.tail1.ts.net", Denial::Origin),
            (name, "https://evil.ts.net", Denial::Origin),
            (name, "http://127.0.0.1:4666", Denial::Origin),
            ("127.0.0.1:4666", "https://desk.tail1.ts.net", Denial::Origin),
            ("desk.tail1.ts.net.evil.example", "https://desk.tail1.ts.net", Denial::Host),
        ] {
            assert_eq!(admits(host, origin), Err(denial), "{host} {origin}");
        }
        let cookie =
            |host| access.exchange_token(&to_hex(&[7; 32]), &headers(&[("host", host)])).unwrap().1;
        assert!(cookie(name).ends_with("; Secure"));
        assert!(!cookie("127.0.0.1:4666").contains("Secure"), "browsers drop it without HTTPS");
    }

    #[test]
    fn bearer_token_cookie_and_csrf_key_are_not_interchangeable() {
        let access = access();
        let (rights, cookie, key) =
            access.exchange_token(&to_hex(&[7; 32]), &HeaderMap::new()).unwrap();
        assert_eq!(rights, Rights::Steer);
        assert!(cookie.contains("HttpOnly; SameSite=Strict") && cookie.starts_with("gnoma_4666="));
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let rights = |pairs: &[(&'static str, &str)]| {
            access
                .authenticate_request(&Method::POST, &headers(pairs))
                .map(|admitted| admitted.rights())
        };
        let origin = ("origin", "http://127.0.0.1:4666");
        let other = format!("a=b; {cookie}");
        assert_eq!(rights(&[("cookie", &other), ("gnoma-key", &key), origin]), Ok(Rights::Steer));
        assert_eq!(rights(&[("cookie", &cookie), origin]), Err(Denial::Token), "no key");
        assert_eq!(rights(&[("gnoma-key", &key), origin]), Err(Denial::Token), "no cookie");
        assert_eq!(rights(&[("cookie", &cookie), ("gnoma-key", &key)]), Err(Denial::Origin));
        let bearer = format!("Bearer {}", to_hex(&[7; 32]));
        assert_eq!(rights(&[("authorization", &bearer)]), Ok(Rights::Steer));
        let small = bearer.to_lowercase();
        assert_eq!(rights(&[("authorization", &small)]), Ok(Rights::Steer));
        let value = cookie.split('=').nth(1).unwrap();
        for wrong in [value, &key, "", "x", &to_hex(&[8; 32])] {
            let bearer = format!("Bearer {wrong}");
            assert_eq!(rights(&[("authorization", &bearer)]), Err(Denial::Token), "{wrong}");
            assert!(access.exchange_token(wrong, &HeaderMap::new()).is_err());
        }
    }

    #[test]
    fn the_watchers_token_only_watches() {
        let access = access();
        let token = Token::from_random([7; 32]).for_watching().expose().to_owned();
        assert_eq!(access.exchange_token(&token, &HeaderMap::new()).unwrap().0, Rights::Watch);
        let bearer = format!("Bearer {token}");
        let admitted =
            access.authenticate_request(&Method::POST, &headers(&[("authorization", &bearer)]));
        assert_eq!(admitted.unwrap().rights(), Rights::Watch);
        assert!(!format!("{access:?}").contains(&token), "debugging output names no token");
    }

    /// A token that is replaced and taken away.
    #[derive(Clone, Debug, Default)]
    struct Replaced(Arc<std::sync::Mutex<Vec<(Rights, Token)>>>);

    impl TokenSource for Replaced {
        fn current_tokens(&self) -> Vec<(Rights, Token)> {
            self.0.lock().unwrap().clone()
        }
    }

    #[tokio::test]
    async fn revoked_device_token_ends_its_connections_only() {
        let own = Token::from_random([7; 32]);
        let phone = own.for_device("1 phone");
        let tokens = Replaced::default();
        let put = |more: &[Token]| {
            let mut all = own.with_watching();
            all.extend(more.iter().map(|token| (Rights::Steer, token.clone())));
            *tokens.0.lock().unwrap() = all;
        };
        put(std::slice::from_ref(&phone));
        let access = Arc::new(Access::new(tokens.clone(), "127.0.0.1:4666".parse().unwrap()));
        let admit = |token: &Token| {
            let bearer = format!("Bearer {}", token.expose());
            access.authenticate_request(&Method::POST, &headers(&[("authorization", &bearer)]))
        };
        let (desk, pocket) = (admit(&own).unwrap(), admit(&phone).unwrap());
        put(&[]);
        assert!(!pocket.is_valid() && desk.is_valid());
        pocket.wait_until_revoked().await;
        assert_eq!(admit(&phone).map(drop), Err(Denial::Token));
    }

    #[tokio::test]
    async fn replaced_token_ends_sessions_opened_with_the_old_one() {
        let tokens = Replaced::default();
        let put = |tokens_now| *tokens.0.lock().unwrap() = tokens_now;
        put(Token::from_random([7; 32]).with_watching());
        let access = Arc::new(Access::new(tokens.clone(), "127.0.0.1:4666".parse().unwrap()));
        let (_, cookie, key) = access.exchange_token(&to_hex(&[7; 32]), &HeaderMap::new()).unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let browser = headers(&[("cookie", cookie), ("gnoma-key", &key)]);
        let admitted = access.authenticate_request(&Method::GET, &browser).unwrap();
        assert!(admitted.is_valid());
        put(Token::from_random([8; 32]).with_watching());
        assert_eq!(
            access.authenticate_request(&Method::GET, &browser).map(drop),
            Err(Denial::Token),
            "a cookie"
        );
        assert!(
            access.exchange_token(&to_hex(&[7; 32]), &HeaderMap::new()).is_err()
                && access.exchange_token(&to_hex(&[8; 32]), &HeaderMap::new()).is_ok()
        );
        assert!(!admitted.is_valid());
        admitted.wait_until_revoked().await;
        put(Vec::new());
        assert!(
            access.exchange_token(&to_hex(&[8; 32]), &HeaderMap::new()).is_err(),
            "nobody is let in"
        );
    }
}
