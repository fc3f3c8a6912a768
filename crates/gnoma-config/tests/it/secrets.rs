//! No key is ever shown.

use crate::home::Home;

const SECRET: &str = "sk-proj-Zx81-very-secret-value-0042";

fn hidden_in(text: &str) {
    assert!(!text.contains("very-secret"), "{text}");
}

#[test]
fn keys_are_used_but_never_shown() {
    let home = Home::new()
        .env("SOME_VARIABLE", SECRET)
        .env("GROQ_API_KEY", SECRET)
        .user(&format!(
            "[provider.api_keys]\nopenai = \"{SECRET}\"\nmistral = \"${{SOME_VARIABLE}}\"\nxai = \"short\"\n\
             [[mcp_servers]]\nname = \"git\"\ncommand = \"x\"\nenv = {{ TOKEN = \"${{SOME_VARIABLE}}\" }}\n"
        ))
        .flag("provider.api_keys.deepseek", SECRET);
    let loaded = home.load();
    for provider in ["openai", "mistral", "groq", "deepseek"] {
        assert_eq!(loaded.settings.provider.api_keys[provider].expose(), SECRET);
    }
    hidden_in(&format!("{loaded:?}"));
    hidden_in(&loaded.render_values(true));
    assert_eq!(loaded.explain_key("provider.api_keys.openai").unwrap().value, "\"***0042\"");
    assert_eq!(loaded.explain_key("provider.api_keys.xai").unwrap().value, "\"***\"");
    assert_eq!(loaded.explain_key("mcp_servers.git.env.TOKEN").unwrap().value, "\"***0042\"");
}

#[test]
fn errors_beside_a_key_do_not_show_it() {
    let broken = [
        format!("[provider.api_keys]\nopenai = \"{SECRET}\n"),
        format!("[provider.api_keys]\nopenai = [\"{SECRET}\"]\n"),
        format!("[provider]\napi_keys = \"{SECRET}\"\n"),
        format!("openai_api_key = \"{SECRET}\"\n"),
        format!("[provider]\ndefault = {SECRET}\n"),
        format!("[provider]\nendpoints.openai = \"https://me:{SECRET}@example.org\"\n"),
        format!("[[mcp_servers]]\nname = \"git\"\nenv = {{ A = [\"{SECRET}\"] }}\n"),
    ];
    for text in broken {
        let words = Home::new().user(&text).words();
        assert!(!words.is_empty());
        hidden_in(&words);
    }
}
