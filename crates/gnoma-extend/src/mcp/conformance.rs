//! What the protocol's conformance suite requires of a client: connect, list, call everything. No model takes part,
//! forms are filled with their defaults, and a redirect replaces a person's browser.

use std::sync::atomic::{AtomicUsize, Ordering};

use gnoma_core::RawJson;
use gnoma_net::{Http, HttpRequest, NetError};
use serde_json::{Map, Value, json};

use super::{
    approval::DescribedTool,
    error::CallError,
    handler::Handler,
    live_connection::{self, LiveConnection},
    oauth::{self, ConfiguredClient, OauthError, Tokens},
    version::{Handshake, STATELESS},
};

/// The address to which the suite's browser would return.
const REDIRECT: &str = "http://localhost:3000/callback";
/// The document that describes the suite's client.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// The number of attempts at a request, each with a new authorization.
const MAX_TRIES: usize = 4;
/// Most authorizations of one run.
const MAX_AUTHORIZATIONS: usize = 3;

/// A scenario of the suite.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The address of the server.
    pub url: String,
    /// The scenario's data for the client, as JSON.
    pub context: Option<String>,
    /// The version of the protocol that it is about.
    pub version: Option<String>,
}

/// The reason why a scenario of the suite was not played, in a sentence.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct ScenarioError(#[from] ScenarioFailure);

/// The failure of a scenario.
#[derive(thiserror::Error)]
enum ScenarioFailure {
    #[error(transparent)]
    Call(Box<CallError>),
    #[error(transparent)]
    Login(#[from] OauthError),
    #[error(transparent)]
    Page(#[from] NetError),
    #[error("the authorization page redirects nowhere")]
    NoRedirect,
    #[error("it was not content with {0} authorizations")]
    TooManyAuthorizations(usize),
    /// The server did not take the tokens that it gave; its challenge.
    #[error("it did not let anybody in: {0}")]
    TokensRefused(String),
}

gnoma_core::debug_as_display!(ScenarioError, ScenarioFailure);

impl From<CallError> for ScenarioFailure {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Plays a scenario, and returns what was called, a line each.
///
/// # Errors
/// The server cannot be reached, or does not authorize gnoma.
pub async fn run_scenario(http: &Http, scenario: Scenario) -> Result<String, ScenarioError> {
    Ok(play_scenario(http, scenario).await?)
}

async fn play_scenario(http: &Http, scenario: Scenario) -> Result<String, ScenarioFailure> {
    let context: Value = scenario
        .context
        .as_deref()
        .and_then(|text| gnoma_core::json::from_str(text).ok())
        .unwrap_or_default();
    let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
    let player = Player {
        http,
        registered: ConfiguredClient {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            metadata_url: Some(METADATA.to_owned()),
        },
        tokens: Tokens::in_memory(),
        authorizations: AtomicUsize::new(0),
        scenario,
    };
    let (mut live, tools) = player.connect_and_list().await?;
    let mut said = String::new();
    for tool in &tools {
        let arguments =
            scenario_arguments(&context, &tool.name).unwrap_or_else(|| required_arguments(tool));
        for _ in 0..MAX_TRIES {
            match live.call_plain(&tool.name, &arguments).await {
                Ok(()) => said.push_str(&format!("{}: called\n", tool.name)),
                Err(CallError::Unauthorized(challenge)) => {
                    player.authorize(&challenge).await?;
                    live = player.connect().await?;
                    continue;
                }
                Err(error) => said.push_str(&format!("{}: {error}\n", tool.name)),
            }
            break;
        }
    }
    live.close().await;
    Ok(said)
}

struct Player<'a> {
    http: &'a Http,
    scenario: Scenario,
    registered: ConfiguredClient,
    tokens: Tokens,
    authorizations: AtomicUsize,
}

impl Player<'_> {
    /// A connection with its tools, authorized as often as the server wants.
    async fn connect_and_list(
        &self,
    ) -> Result<(LiveConnection, Vec<DescribedTool>), ScenarioFailure> {
        let mut last = String::new();
        for _ in 0..MAX_TRIES {
            let begun = async {
                let live = self.connect().await?;
                let (tools, _) = live.list_tools().await?;
                Ok::<_, CallError>((live, tools))
            };
            match begun.await {
                Ok(begun) => return Ok(begun),
                Err(CallError::Unauthorized(challenge)) => {
                    self.authorize(&challenge).await?;
                    last = challenge;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ScenarioFailure::TokensRefused(last))
    }

    async fn connect(&self) -> Result<LiveConnection, CallError> {
        let handler = Handler::filling_forms("conformance");
        let version = self.scenario.version.as_deref();
        let is_older = version.is_some_and(|version| version < STATELESS);
        let handshake = if is_older { Handshake::Yes } else { Handshake::Ask };
        live_connection::connect_to(self.http, &self.scenario.url, &self.tokens, handler, handshake)
            .await
    }

    /// Authorizes as a person would whose browser agrees at once.
    async fn authorize(&self, challenge: &str) -> Result<(), ScenarioFailure> {
        if self.authorizations.fetch_add(1, Ordering::Relaxed) >= MAX_AUTHORIZATIONS {
            return Err(ScenarioFailure::TooManyAuthorizations(MAX_AUTHORIZATIONS));
        }
        let begun = oauth::begin_login(
            self.http,
            &self.scenario.url,
            &self.tokens,
            REDIRECT,
            Some(challenge),
            &self.registered,
        );
        let (waiting, page) = begun.await?;
        let request = HttpRequest { url: page, headers: Vec::new(), body: None };
        let answer = self.http.send(request).await?;
        let location = answer.header("location").map(str::to_owned);
        Ok(waiting.finish(&location.ok_or(ScenarioFailure::NoRedirect)?).await?)
    }
}

/// The arguments that a scenario wants a tool to be called with.
fn scenario_arguments(context: &Value, tool: &str) -> Option<RawJson> {
    let calls = context.get("toolCalls")?.as_array()?;
    let call = calls.iter().find(|call| call.get("name").and_then(Value::as_str) == Some(tool))?;
    RawJson::from_value(call.get("arguments")?).ok()
}

/// Arguments that a schema takes: those that must be there.
fn required_arguments(tool: &DescribedTool) -> RawJson {
    let schema: Value = gnoma_core::json::from_str(&tool.schema).unwrap_or_default();
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut filled = Map::new();
    for name in required.iter().filter_map(Value::as_str) {
        let kind = fields.get(name).and_then(|field| field.get("type")).and_then(Value::as_str);
        let value = match kind {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            Some(_) | None => json!("x"),
        };
        filled.insert(name.to_owned(), value);
    }
    RawJson::from_value(&filled).unwrap_or_else(|_| RawJson::empty_object())
}
