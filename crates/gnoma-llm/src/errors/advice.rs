//! Remedies for failures that servers describe in words of their own.

use super::remedy::{LISTS_MODELS, wrong_address};
use crate::{Profile, host::host_of};

/// That a filter refused the prompt: Azure, DeepSeek, Alibaba.
const FILTER_WORDS: &[&str] = &[
    "content management policy",
    "responsibleaipolicyviolation",
    "content exists risk",
    "data_inspection_failed",
    "inappropriate content",
];

/// The advice for what `text` says; `None` where it says nothing known.
pub(super) fn of_text(profile: &Profile, text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let (name, url) = (&profile.name, &profile.base_url);
    let advice = if says(&["more system memory"]) {
        "The model does not fit into the memory of its machine. Choose a smaller one with --model, or give it a \
         smaller context in `provider.context`."
            .to_owned()
    } else if says(&["try pulling it"]) {
        format!("Get it with `ollama pull MODEL`. {LISTS_MODELS} of `{name}`.")
    } else if says(&["no models loaded"]) {
        format!("Load a model in the server of `{name}` ({url}) first.")
    } else if says(&["requires --jinja"]) {
        format!("Start the server of `{name}` with --jinja, which lets models call tools.")
    } else if says(&["unexpected endpoint or method"]) {
        wrong_address(profile)
    } else if says(&["unsupported_country", "region, or territory", "user location is not"]) {
        format!(
            "`{name}` does not serve the place that you connect from. Use another provider with --provider, \
             or check your proxy or VPN."
        )
    } else if says(&["must be verified", "verify organization"]) {
        format!(
            "Verify your organization in the settings of your account at `{name}`, or use another model \
             with --model."
        )
    } else {
        return of_hosted(name, says);
    };
    Some(advice)
}

/// The same for what only services on the network say.
fn of_hosted(name: &str, says: impl Fn(&[&str]) -> bool) -> Option<String> {
    Some(if says(&["deploymentnotfound", "api deployment for this resource"]) {
        format!(
            "At `{name}` a model goes by the name of its deployment: choose that with --model. A new deployment \
             takes a few minutes."
        )
    } else if says(&["data policy"]) {
        "Allow it in the privacy settings of your account, or use another model with --model."
            .to_owned()
    } else if says(FILTER_WORDS) {
        format!(
            "The content filter of `{name}` refused what was sent. Rephrase it (/rewind goes back to before the turn), or use \
             another model with --model."
        )
    } else {
        return None;
    })
}

/// Addresses of what is asked for behind the address of a provider.
const ASKED: &[&str] = &["/chat/completions", "/responses", "/messages", "/api/chat", "/models"];

/// Most of an address that a server points to which is told, in bytes.
const MAX_LOCATION_BYTES: usize = 200;

/// Advises what to do if the server points to `location`.
pub(super) fn of_redirect(profile: &Profile, location: &str) -> Option<String> {
    let (url, place) = (&profile.base_url, profile.address_place());
    if location.is_empty() {
        return None;
    }
    let location = resolve_location(url, location);
    let location = gnoma_core::text_truncation::word_prefix(&location, MAX_LOCATION_BYTES);
    let end = ASKED.iter().filter_map(|asked| location.find(asked)).min();
    let base = end.and_then(|end| location.get(..end)).filter(|base| base.contains("://"));
    let check = profile.describe_address();
    let is_same = location.strip_prefix(url.as_str()) == Some(profile.request_path());
    Some(match base {
        Some(_) if is_same => format!(
            "The server sends each request back to its own address, as a login or a proxy before it does that is set \
             up wrong. Give the address behind it in {place}."
        ),
        Some(base) if base == url => format!(
            "The server sends its own requests elsewhere, to `{location}`: a proxy or the framework before it rewrites \
             paths. Give the address behind it in {place}, or let it take {}.",
            profile.request_path()
        ),
        Some(base) => {
            format!("If you trust that address, change {place} to `{base}`. The key is sent there.")
        }
        None if origin_of(location) == origin_of(url) => {
            format!("{check}{}", profile.describe_usual_address())
        }
        None if profile.has_vendor_address() => check,
        None => {
            format!("{check} Your network may want you to log in: open a web page in a browser.")
        }
    })
}

/// The scheme, host and port of an address.
fn origin_of(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(begin..).and_then(|rest| rest.find(['/', '?'])).map(|at| begin + at);
    end.and_then(|end| url.get(..end)).unwrap_or(url)
}

/// An address that a server gives, which may leave out the host.
fn resolve_location(url: &str, location: &str) -> String {
    if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        let scheme = url.split_once("//").map_or("https:", |(scheme, _)| scheme);
        format!("{scheme}{location}")
    } else {
        format!("{}/{}", origin_of(url), location.trim_start_matches('/'))
    }
}

/// Advises what to do if another server than the one that was meant may have answered.
fn of_other_server(profile: &Profile, status: u16) -> String {
    let (url, check) = (&profile.base_url, profile.describe_address());
    let place = (!profile.has_vendor_address()).then(|| profile.address_place());
    match (status, place) {
        (421, place) => {
            let host = host_of(url);
            let check =
                place.map_or(check, |place| format!("Check the address in {place} and any proxy."));
            format!("The request reached a server that is not responsible for {host}. {check}")
        }
        (_, Some(place)) => {
            format!("A proxy or another kind of server may answer at {url}: check {place}.")
        }
        (_, None) => check,
    }
}

/// No vendor's key has so many bytes.
const LONG_KEY_BYTES: usize = 1_024;

/// Advises what to do about a status that says enough by itself.
pub(super) fn of_status(profile: &Profile, status: u16) -> Option<String> {
    let (name, url, check) = (&profile.name, &profile.base_url, profile.describe_address());
    let is_long_key = profile.key.as_ref().is_some_and(|key| key.expose().len() > LONG_KEY_BYTES);
    Some(match status {
        407 => "A proxy wants a name and a password: write them into the proxy variable, as in \
                HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT."
            .to_owned(),
        409 => format!(
            "`{name}` is busy with an earlier request. Retry in a moment; if that does not help, end other sessions \
             that use it."
        ),
        425 => format!("`{name}` was not ready to answer this request yet. Retry in a moment."),
        426 if url.starts_with("http://") && !profile.has_vendor_address() => {
            format!(
                "The server wants an encrypted connection: write https:// instead of http:// in {} (now {url}).",
                profile.address_place()
            )
        }
        415 | 421 => of_other_server(profile, status),
        426 => format!("A proxy may want another version of HTTP than gnoma speaks. {check}"),
        431 if is_long_key => {
            format!("The key in {} is very long: is it a whole file?", profile.key_place())
        }
        431 => format!(
            "The headers of the request are too long for the server; a proxy before {url} may add headers. {check}"
        ),
        451 => format!(
            "`{name}` refuses for legal reasons, often because of the country you connect from. Use another \
             provider with --provider."
        ),
        501 | 505 | 506 | 510 => {
            format!("The server at {url} does not support this request. {check}")
        }
        508 => format!("A proxy before {url} sends requests in a circle. {check}"),
        511 => "Your network wants you to log in first: open a web page in a browser.".to_owned(),
        _ => return None,
    })
}
