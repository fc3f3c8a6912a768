//! Where telemetry goes: settings of the person, and the variables that OpenTelemetry defines.
//!
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/> and
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>. The variables are read only where
//! the person turned telemetry on: they are usually meant for the program that somebody works on.

use std::{borrow::Cow, fmt, time::Duration};

use gnoma_core::Secret;

use crate::span::{Attribute, AttributeValue, find_attribute};

/// The GenAI conventions that names of spans, metrics and attributes follow; their repository has the text of each version.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/1.42.0";

/// The collector on this machine, at its usual port.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// Longest wait for an answer of the collector.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most attributes of the resource that variables add.
const MAX_RESOURCE_ATTRIBUTES: usize = 64;

/// The format in which messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Binary messages, as Protobuf.
    #[default]
    Protobuf,
    /// Text messages, as JSON.
    Json,
}

impl Format {
    /// The format of that name; `None` for others, such as `grpc`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "http/protobuf" => Some(Self::Protobuf),
            "http/json" => Some(Self::Json),
            _ => None,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// A header of requests; values may be keys.
type Header = (String, Secret<String>);

/// The telemetry options from the settings; environment variables take precedence over them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSettings {
    /// The address of the collector, below which signals have their paths.
    pub endpoint: Option<String>,
    /// The format in which messages are written.
    pub format: Format,
    /// Sent with each request.
    pub headers: Vec<Header>,
}

/// The destination of telemetry.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportOptions {
    /// Address for spans; `None` if none are sent.
    pub traces_url: Option<String>,
    /// Address for metrics; `None` if none are sent.
    pub metrics_url: Option<String>,
    /// Address for log records; `None` if none are sent.
    pub logs_url: Option<String>,
    /// The format in which messages are written.
    pub format: Format,
    /// Sent with each request.
    pub headers: Vec<Header>,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// The attributes that describe the sender.
    pub resource: Vec<Attribute>,
    /// A sentence for each part of a variable that is left out because it cannot be read.
    pub warnings: Vec<String>,
}

/// The reason why telemetry cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// An address is not one of HTTP; where it was written, and the address.
    Address(&'static str, String),
    /// A protocol that gnoma does not speak.
    Protocol(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(place, url) => {
                write!(f, "{place}: `{url}` is not an address; it begins with http:// or https://")
            }
            Self::Protocol(name) => write!(
                f,
                "gnoma does not speak the protocol `{name}` of OpenTelemetry; use `http/protobuf` or `http/json`"
            ),
        }
    }
}

impl std::error::Error for OptionError {}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
const LOGS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
/// Most warnings about parts of variables.
const MAX_WARNINGS: usize = 5;

impl ExportOptions {
    /// Combines settings with the variables that `variable` reads; `None` if a variable turns everything off.
    ///
    /// # Errors
    /// An address or a protocol cannot be used.
    pub fn new<'v>(
        settings: &ExportSettings,
        variable: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<Option<Self>, OptionError> {
        let set =
            |name: &'static str| variable(name).map(str::trim).filter(|text| !text.is_empty());
        if set("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let format =
            set("OTEL_EXPORTER_OTLP_PROTOCOL").map_or(Ok(settings.format), parse_format)?;
        let base = match (set(ENDPOINT), &settings.endpoint) {
            (Some(url), _) => check_url(ENDPOINT, url)?,
            (None, Some(url)) => check_url("otel.endpoint", url)?,
            (None, None) => DEFAULT_ENDPOINT,
        };
        let url = |exporter: &'static str, place: &'static str, path: &str| match set(exporter) {
            Some("none") => Ok(None),
            _ => signal_url(base, (place, set(place)), path).map(Some),
        };
        let traces_url = url("OTEL_TRACES_EXPORTER", TRACES_ENDPOINT, "v1/traces")?;
        let metrics_url = url("OTEL_METRICS_EXPORTER", METRICS_ENDPOINT, "v1/metrics")?;
        let logs_url = url("OTEL_LOGS_EXPORTER", LOGS_ENDPOINT, "v1/logs")?;
        // A key of the settings is for the address there, not for one that a variable names.
        let addresses = [ENDPOINT, TRACES_ENDPOINT, METRICS_ENDPOINT, LOGS_ENDPOINT];
        let is_elsewhere = addresses.iter().any(|name| set(name).is_some());
        let mut headers = if is_elsewhere { Vec::new() } else { settings.headers.clone() };
        let mut warnings = Vec::new();
        add_headers(&mut headers, set(HEADERS).unwrap_or_default(), &mut warnings);
        let timeout = set(TIMEOUT).and_then(|text| parse_timeout(text, &mut warnings));
        let resource =
            resource_attributes(set("OTEL_SERVICE_NAME"), set("OTEL_RESOURCE_ATTRIBUTES"));
        let has_any = traces_url.is_some() || metrics_url.is_some() || logs_url.is_some();
        let options = Self {
            traces_url,
            metrics_url,
            logs_url,
            format,
            headers,
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            resource,
            warnings,
        };
        Ok(has_any.then_some(options))
    }

    /// The hosts that telemetry goes to: scheme, name and port.
    pub fn hosts(&self) -> impl Iterator<Item = String> {
        let urls = self.traces_url.iter().chain(&self.metrics_url).chain(&self.logs_url);
        urls.map(|url| host_of(url))
    }
}

fn parse_format(name: &str) -> Result<Format, OptionError> {
    Format::from_name(name).ok_or_else(|| OptionError::Protocol(name.to_owned()))
}

/// Returns the address of a signal: the one that the variable `place` has for it, else `path` below the base.
fn signal_url(
    base: &str,
    (place, own): (&'static str, Option<&str>),
    path: &str,
) -> Result<String, OptionError> {
    match own {
        Some(url) => check_url(place, url).map(str::to_owned),
        None => Ok(format!("{}/{path}", base.trim_end_matches('/'))),
    }
}

/// Reads a number of milliseconds; anything else is left out with a warning.
fn parse_timeout(text: &str, warnings: &mut Vec<String>) -> Option<Duration> {
    let ms: Option<u64> = text.parse().ok().filter(|ms| *ms > 0);
    if ms.is_none() {
        warnings.push(format!("{TIMEOUT}: `{text}` is no number of milliseconds; it is left out"));
    }
    ms.map(Duration::from_millis)
}

/// Adds the headers of a variable. What is no header is left out with a warning, which does not quote it: it may be a
/// part of a key.
fn add_headers(headers: &mut Vec<Header>, text: &str, warnings: &mut Vec<String>) {
    for (number, entry) in (1..).zip(text.split(',')) {
        let header = parse_pairs(entry).next().filter(|(name, value)| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            name.chars().all(is_name) && !value.contains(char::is_control)
        });
        if let Some((name, value)) = header {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            headers.push((name, Secret::new(value)));
        } else if !entry.trim().is_empty() && warnings.len() < MAX_WARNINGS {
            warnings
                .push(format!("{HEADERS}: entry {number} is no header NAME=VALUE; it is left out"));
        }
    }
}

/// Returns scheme, host and port of an address, without credentials and path.
#[must_use]
pub fn host_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

fn check_url<'u>(place: &'static str, url: &'u str) -> Result<&'u str, OptionError> {
    let is_http = ["http://", "https://"].iter().any(|scheme| {
        url.split_at_checked(scheme.len())
            .is_some_and(|(begin, host)| begin.eq_ignore_ascii_case(scheme) && !host.is_empty())
    });
    let is_plain = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_http && is_plain { Ok(url) } else { Err(OptionError::Address(place, host_of(url))) }
}

fn resource_attributes(service: Option<&str>, attributes: Option<&str>) -> Vec<Attribute> {
    let mut all: Vec<Attribute> = Vec::new();
    let named = service.map(|name| ("service.name".to_owned(), name.to_owned()));
    let given = attributes.into_iter().flat_map(parse_pairs).take(MAX_RESOURCE_ATTRIBUTES);
    for (name, value) in named.into_iter().chain(given) {
        if find_attribute(&all, &name).is_none() {
            all.push((Cow::Owned(name), AttributeValue::Text(value)));
        }
    }
    let own = [
        ("service.name", "gnoma"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("telemetry.sdk.name", "gnoma"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ("gnoma.semconv.schema_url", SCHEMA_URL),
    ];
    for (name, value) in own {
        if find_attribute(&all, name).is_none() {
            all.push((name.into(), value.into()));
        }
    }
    all
}

/// Reads `name=value,name=value`, whose values are percent-encoded. What is no pair is left out.
fn parse_pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = decode_percent(name.trim());
        (!name.is_empty()).then(|| (name, decode_percent(value.trim())))
    })
}

/// Decodes `%20` and the like; what is not such a code stays as it is.
fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &'static str)]) -> Result<Option<ExportOptions>, OptionError> {
        let settings = ExportSettings {
            endpoint: Some("https://otel.example/base/".to_owned()),
            headers: vec![("X-Key".to_owned(), Secret::new("mine".to_owned()))],
            ..ExportSettings::default()
        };
        ExportOptions::new(&settings, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        })
    }

    #[test]
    fn otel_settings_apply_without_environment_variables() {
        let options = options(&[]).unwrap().unwrap();
        let expected =
            ["https://otel.example/base/v1/traces", "https://otel.example/base/v1/metrics"];
        let urls = [&options.traces_url, &options.metrics_url];
        assert_eq!(urls.map(|url| url.as_deref().unwrap()), expected);
        assert!(options.hosts().all(|host| host == "https://otel.example"));
        assert_eq!(options.format, Format::Protobuf);
        assert_eq!(find_attribute(&options.resource, "service.name"), Some(&"gnoma".into()));
        let plain = ExportOptions::new(&ExportSettings::default(), |_| None).unwrap().unwrap();
        assert_eq!(plain.traces_url.as_deref(), Some("http://localhost:4318/v1/traces"));
    }

    #[test]
    fn variables_win_over_settings() {
        let options = options(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/spans"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b%2,no pair,other=c"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%2Cb"),
        ]);
        let options = options.unwrap().unwrap();
        assert_eq!(options.traces_url.as_deref(), Some("http://127.0.0.1:9/spans"));
        assert_eq!(options.metrics_url.as_deref(), Some("http://127.0.0.1:4318/v1/metrics"));
        assert_eq!((options.format, options.timeout), (Format::Json, Duration::from_millis(250)));
        let headers =
            options.headers.iter().map(|(name, value)| (name.as_str(), value.expose().as_str()));
        assert_eq!(headers.collect::<Vec<_>>(), [("x-key", "a b%2"), ("other", "c")]);
        assert_eq!(find_attribute(&options.resource, "service.name"), Some(&"mine".into()));
        assert_eq!(find_attribute(&options.resource, "team"), Some(&"a,b".into()));
    }

    #[test]
    fn invalid_otel_header_and_timeout_values_are_skipped_with_a_warning() {
        let options = options(&[
            ("OTEL_EXPORTER_OTLP_HEADERS", "nonsense,=x,a b=c,,other=d\u{7}e,x-key=mine,"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "abc"),
        ]);
        let options = options.unwrap().unwrap();
        let names = options.headers.iter().map(|(name, _)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["x-key"]);
        assert_eq!(options.timeout, DEFAULT_TIMEOUT);
        let entry = |number: u32| {
            format!(
                "OTEL_EXPORTER_OTLP_HEADERS: entry {number} is no header NAME=VALUE; it is left out"
            )
        };
        let timeout =
            "OTEL_EXPORTER_OTLP_TIMEOUT: `abc` is no number of milliseconds; it is left out";
        let expected = [entry(1), entry(2), entry(3), entry(5), timeout.to_owned()];
        assert_eq!(options.warnings, expected);
    }

    #[test]
    fn otel_signals_can_be_disabled_individually() {
        let spans = options(&[("OTEL_METRICS_EXPORTER", "none")]).unwrap().unwrap();
        assert!(spans.traces_url.is_some() && spans.metrics_url.is_none());
        assert_eq!(options(&[("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        let all = ["OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_LOGS_EXPORTER"];
        assert_eq!(options(&all.map(|name| (name, "none"))), Ok(None));
        let logs = options(&all.map(|name| (name, "none"))[..2]).unwrap().unwrap();
        assert_eq!(logs.logs_url.as_deref(), Some("https://otel.example/base/v1/logs"));
    }

    #[test]
    fn unsupported_otlp_protocol_or_endpoint_is_named_in_the_error() {
        let said = |variables: &[(&str, &'static str)]| options(variables).unwrap_err().to_string();
        let grpc = said(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(grpc.contains("`grpc`") && grpc.contains("`http/protobuf`"), "{grpc}");
        for address in ["localhost:4317", "http://", "ftp://host", "http://a b"] {
            let said = said(&[("OTEL_EXPORTER_OTLP_ENDPOINT", address)]);
            assert!(said.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: "), "{said}");
        }
    }
}
