//! Settings of single models and providers, their limits, and the small local model.

use gnoma_router::pool::Rates;

use super::section::Section;

/// The settings of an arm that override what the catalogue and the provider say. `None` leaves a value to them.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmSettings {
    /// Tasks may go to it.
    pub enabled: bool,
    /// Types of tasks it is good at.
    pub strengths: Vec<String>,
    /// The weight of the arm's price, from 0 to 1.
    pub cost_weight: Option<f64>,
    /// Micro-dollars for a million tokens read.
    pub input_price: Option<u64>,
    /// Micro-dollars for a million tokens written.
    pub output_price: Option<u64>,
    /// Micro-dollars for a million tokens read from its cache.
    pub cache_read_price: Option<u64>,
    /// Micro-dollars for a million tokens written to its cache.
    pub cache_write_price: Option<u64>,
    /// The size of the context window, in tokens.
    pub context: Option<u32>,
    /// Most tokens of one answer.
    pub max_output: Option<u32>,
    /// `true` if the arm counts as a small model, `false` if it does not.
    pub small: Option<bool>,
    /// `true` if the arm can call tools.
    pub tools: Option<bool>,
    /// `true` if the arm can see pictures.
    pub vision: Option<bool>,
    /// `true` if the arm can think before it answers.
    pub thinking: Option<bool>,
    /// Names in [`super::Settings::rate_limits`] that it draws on besides its provider's.
    pub pools: Vec<String>,
}

impl ArmSettings {
    pub(super) fn from_section(arm: &Section<'_>) -> Self {
        Self {
            enabled: arm.read_switch("enabled").unwrap_or(true),
            strengths: arm.texts("strengths"),
            cost_weight: arm.number("cost_weight"),
            input_price: arm.micro_usd("input_price"),
            output_price: arm.micro_usd("output_price"),
            cache_read_price: arm.micro_usd("cache_read_price"),
            cache_write_price: arm.micro_usd("cache_write_price"),
            context: arm.count("context"),
            max_output: arm.count("max_output"),
            small: arm.read_switch("small"),
            tools: arm.read_switch("tools"),
            vision: arm.read_switch("vision"),
            thinking: arm.read_switch("thinking"),
            pools: arm.texts("pools"),
        }
    }
}

/// Limits of a provider or a pool. `None` leaves them to what is built in and learnt; a 0 lifts them, except that 0
/// micro-dollars are none to spend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateLimits {
    /// Name of the plan, which has limits of its own.
    pub tier: Option<String>,
    /// The limits as they are stated. A month's spending is the lower of `spend_month` and the older `spend_cap`.
    pub rates: Rates,
}

impl RateLimits {
    pub(super) fn from_section(limits: &Section<'_>) -> Self {
        // Older files wrote a 0 for no limit.
        let older = limits.micro_usd("spend_cap").filter(|cap| *cap > 0);
        let spend_month = [limits.micro_usd("spend_month"), older].into_iter().flatten().min();
        let rates = Rates {
            rps: limits.number("rps"),
            rpm: limits.whole_number("rpm"),
            rpd: limits.whole_number("rpd"),
            tpm: limits.whole_number("tpm"),
            itpm: limits.whole_number("itpm"),
            otpm: limits.whole_number("otpm"),
            tokens_month: limits.whole_number("tokens_month"),
            spend_day_micro_usd: limits.micro_usd("spend_day"),
            spend_month_micro_usd: spend_month,
            custom: limits.whole_number("custom"),
            custom_month: limits.whole_number("custom_month"),
        };
        Self { tier: limits.text("tier"), rates }
    }
}

/// The small local model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slm {
    /// `true` if the small local model is used.
    pub enabled: bool,
    /// The program or server that runs it.
    pub backend: SlmBackend,
    /// The name of the model; `None` leaves the choice to the back end.
    pub model: Option<String>,
    /// The address of the back end; `None` is the usual one.
    pub base_url: Option<String>,
}

/// The program or server that runs the small local model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlmBackend {
    /// Any back end that is found.
    Auto,
    /// A server of Ollama.
    Ollama,
    /// A server of llama.cpp.
    LlamaCpp,
    /// A program that holds its model.
    Llamafile,
    /// A server that speaks like OpenAI's.
    Compatible,
    /// No back end at all.
    Disabled,
}

impl Slm {
    pub(super) fn from_section(slm: &Section<'_>) -> Self {
        Self {
            enabled: slm.read_switch("enabled").unwrap_or(false),
            backend: match slm.text("backend").as_deref() {
                Some("ollama") => SlmBackend::Ollama,
                Some("llamacpp") => SlmBackend::LlamaCpp,
                Some("llamafile") => SlmBackend::Llamafile,
                Some("openaicompat") => SlmBackend::Compatible,
                Some("disabled") => SlmBackend::Disabled,
                _ => SlmBackend::Auto,
            },
            model: slm.text("model"),
            base_url: slm.text("base_url"),
        }
    }
}
