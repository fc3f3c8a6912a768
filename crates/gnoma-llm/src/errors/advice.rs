//! What to do about failures that servers name in words of their own.

use crate::Profile;

/// The advice for what `text` says; `None` where it says nothing known.
pub(super) fn of(profile: &Profile, text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let (name, url) = (&profile.name, &profile.base_url);
    let advice = if says(&["more system memory"]) {
        "The model does not fit into the memory of its machine. Choose a smaller one with --model, or give it a \
         smaller context in `provider.context`."
            .to_owned()
    } else if says(&["try pulling it"]) {
        format!("Get it with `ollama pull MODEL`. `gnoma providers` lists the models of `{name}`.")
    } else if says(&["no models loaded"]) {
        format!("Load a model in the server of `{name}` ({url}) first.")
    } else if says(&["requires --jinja"]) {
        format!("Start the server of `{name}` with --jinja, which lets models call tools.")
    } else if says(&["unexpected endpoint or method"]) {
        format!(
            "The address of `{name}` may be wrong: {url}. It often ends in /v1; change it in \
             `provider.endpoints.{name}`."
        )
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
        return None;
    };
    Some(advice)
}
