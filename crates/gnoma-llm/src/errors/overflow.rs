//! Detects a context overflow: the refusal means that the prompt is too long.
//!
//! Servers say it in a hundred ways and in many languages, and a list of their sentences is never complete.
//! All of them say *what* is measured (the input), *how* (its length, tokens) and that it is *more* than
//! something; of tokens it need not be said what they are in. What sounds alike is another thing: the length of the
//! answer, of a name, of a picture, of a minute. A prompt that is taken for too long costs the history, so where a
//! field with a limit of its own is named, it is that.

use super::overflow_words::{
    BEFORE_FIELD, EXCESSES, INPUT_FIELDS, INPUTS, LEAST_SIZE, LEAST_WINDOW, MEASURES, MEDIA,
    OTHER_LIMITS, OTHER_NUMBERS, OTHER_TOKENS, OUTPUTS, PLAIN_INPUTS, ROOTS, WEAK_EXCESSES,
};

/// Reports whether `text` says that the prompt is longer than the model or its server takes.
pub(super) fn is_overflow(text: &str) -> bool {
    // Pydantic calls each field an input.
    let text = text.to_lowercase().replace("input should", "value should");
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_counted = counts_tokens(&text);
    let is_other = says(OTHER_LIMITS) || (says(MEDIA) && !is_counted);
    if is_other || names_other_field(&text) || is_of_short_text(&text) {
        return false;
    }
    let is_of_prompt = !says(OUTPUTS) || says(PLAIN_INPUTS);
    let is_more = |weak: bool| {
        let all = EXCESSES.iter().filter(|word| weak || !WEAK_EXCESSES.contains(word));
        all.into_iter().any(|word| text.contains(word))
    };
    let is_input = says(INPUTS) && says(MEASURES) && is_more(true);
    let is_of_tokens =
        is_counted && !says(OTHER_TOKENS) && (is_more(false) || has_two_sizes(&text));
    is_of_prompt && (is_input || is_of_tokens)
}

/// Reports whether `text`, in any language, contains the size of a prompt that has from `bytes.0` to `bytes.1` bytes,
/// and a smaller one that may be the most that its model takes.
pub(super) fn has_prompt_size(text: &str, bytes: (usize, usize)) -> bool {
    /// Bytes of a token, on average over a prompt, in any language.
    const TOKEN_BYTES: (usize, usize) = (1, 6);
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_other =
        [OTHER_LIMITS, OTHER_TOKENS, OTHER_NUMBERS, OUTPUTS, MEDIA].into_iter().any(says);
    if is_other || names_other_field(&text) || is_of_short_text(&text) {
        return false;
    }
    let sizes = || whole_numbers(&text).filter(|number| *number >= LEAST_SIZE);
    let (least, most) = ((bytes.0 / TOKEN_BYTES.1) as u64, (bytes.1 / TOKEN_BYTES.0) as u64);
    let (Some(smallest), Some(largest)) = (sizes().min(), sizes().max()) else { return false };
    smallest < largest && largest >= least && largest <= most
}

/// Reports whether a text counts tokens, and does not speak of a token that stands for a login.
fn counts_tokens(text: &str) -> bool {
    const BEHIND: &[&str] =
        &["s", "count", "length", "limit", "number", "size", "数", "數", "长度", "超", "总"];
    let is_counted = |(at, word): (usize, &str)| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        let after = text.get(at + word.len()..).unwrap_or_default().trim_start();
        before.ends_with(|c: char| c.is_ascii_digit())
            || BEHIND.iter().any(|word| after.starts_with(word))
    };
    text.match_indices("token").any(is_counted)
        || ["токен", "トークン", "토큰", "令牌数"].iter().any(|word| text.contains(word))
}

/// Reports whether a text contains two numbers that may be the size of a prompt and of a window, in any language.
fn has_two_sizes(text: &str) -> bool {
    let mut sizes: Vec<u64> =
        extract_numbers(text).filter(|number| *number >= LEAST_WINDOW).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.len() >= 2
}

fn extract_numbers(text: &str) -> impl Iterator<Item = u64> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != ',');
    words.filter_map(|word| word.replace(',', "").parse().ok())
}

/// Returns the numbers that stand alone: no parts of an id, a name, a date, an address or a time.
fn whole_numbers(text: &str) -> impl Iterator<Item = u64> {
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ',' | '-' | '_' | ':' | '/' | '.');
    text.split(move |c| !is_part(c))
        .filter_map(|word| word.trim_matches([',', '.', ':']).replace(',', "").parse().ok())
}

/// Reports whether the limit is one of a few characters.
fn is_of_short_text(text: &str) -> bool {
    let is_text = ["character", "string", "字符", "zeichen"].iter().any(|word| text.contains(word));
    is_text && extract_numbers(text).max().is_some_and(|most| most < LEAST_WINDOW)
}

/// Reports whether a text names a field that holds nothing of what is said to the model, as in
/// `messages[2].tool_calls[0].id`.
fn names_other_field(text: &str) -> bool {
    let is_other = |path: &str| {
        let is_number = |step: &&str| step.chars().all(|c| c.is_ascii_digit());
        let mut steps = path.split(['.', '[', ']', '/']).filter(|step| !step.is_empty());
        let last = steps.rfind(|step| !is_number(step));
        last.is_some_and(|last| {
            let is_size = ["token", "context", "ctx", "_len", "length"];
            !INPUT_FIELDS.contains(&last) && !is_size.iter().any(|part| last.contains(part))
        })
    };
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '/');
    let path_at = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        rest.split(|c| !is_path(c)).next().unwrap_or_default().trim_end_matches('.')
    };
    let bare = ROOTS.iter().flat_map(|root| text.match_indices(root)).filter_map(|(at, root)| {
        let path = path_at(at);
        let behind = path.get(root.len()..)?.strip_prefix(['.', '['])?;
        behind.starts_with(|c: char| c.is_ascii_digit()).then_some(path)
    });
    let quoted = text.match_indices(['\'', '`', '"']).filter_map(|(at, quote)| {
        let before = text.get(..at)?;
        let is_field = before.is_empty() || BEFORE_FIELD.iter().any(|word| before.ends_with(word));
        let path = path_at(at + 1);
        let is_whole = text.get(at + 1 + path.len()..)?.starts_with(quote);
        let is_name =
            !path.is_empty() && path.chars().all(|c| !c.is_ascii_digit() || path.contains('['));
        (is_field && is_whole && is_name).then_some(path)
    });
    bare.chain(quoted).any(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_recognized_by_meaning_in_many_languages() {
        for text in [
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
            "the request exceeds the available context size, try increasing it",
            "This model's maximum context length is 8192 tokens",
            "Your input exceeds the context window of this model.",
            "Trying to keep the first 15857 tokens when context the overflows.",
            "Please reduce the length of the messages or completion.",
            "The prompt is too large for this model: 300000 > 262144",
            "prompt is too long: 208310 tokens > 200000 maximum",
            "Requested token count exceeds the model's maximum context length of 32768 tokens",
            "Too many messages in the conversation: 5001, at most 5000",
            "sequence length is longer than the specified maximum sequence length for this model",
            "your message is too long",
            "输入长度超过模型最大上下文长度",
            "提示过长,请缩短输入",
            "input tokens 超出限制,最大为 32768",
            "入力トークン数が上限を超えています",
            "プロンプトが長すぎます",
            "입력 토큰 수가 최대 길이를 초과했습니다",
            "Die Eingabe überschreitet die maximale Kontextlänge von 8192 Token",
            "Der Prompt ist zu lang",
            "La longueur de l'entrée dépasse la fenêtre de contexte",
            "La entrada supera la longitud máxima del contexto",
            "O comprimento da entrada excede o máximo",
            "La lunghezza del contesto supera il massimo",
            "Длина запроса превышает максимальный размер контекста",
            "Prompt 超长",
            "Total tokens of image and text exceed max message tokens",
            "token数量超过上限",
            "Total tokens (9000) exceed the limit",
            "The request is too long: 9000 tokens",
            "total message token length exceed model limit",
            "exceeds the maximum number of tokens allowed",
            "Max context exceeded",
            "the max input characters is 24000",
            "입력 텍스트가 너무 깁니다",
            "コンテキストウィンドウを超えました",
            "请求内容过长",
            "Die Anfrage ist zu lang: 9000 Token",
            "De invoer is te lang voor dit model",
            "Đầu vào vượt quá độ dài tối đa",
            "Vstup je příliš dlouhý",
            "المدخلات طويلة جدا",
            "Запит задовгий: перевищує вікно контексту",
            "Masukan terlalu panjang",
            "Indata är för lång",
            "Ang 9000 token ay lampas sa 8192",
            "This request has 9000 input tokens; use at most 8192",
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576",
            "Invalid 'input[3].output': string too long. Expected a string with maximum length 10485760",
            "The input (9000 tokens) is longer than the context window of `llama3.1` (8192 tokens)",
            "the prompt does not fit into the context (n_ctx = 8192)",
            "max_seq_len exceeded: 40000",
            "n_tokens > n_ctx",
            "prompt exceeds maximum",
            "Der Prompt ist länger als das Kontextfenster (8192 Token)",
            "トークン数が多すぎます",
            "A entrada é longa demais",
            "Promptul este prea lung: 40000 de tokeni",
            "ข้อความยาวเกินไป: 40000 โทเค็น สูงสุด 32768",
            "ورودی بیش از حد طولانی است (۴۰۰۰۰ توکن)",
            "הקלט ארוך מדי: 40000 טוקנים, המקסימום 32768",
        ] {
            assert!(is_overflow(text), "{text}");
        }
    }

    #[test]
    fn context_overflow_is_recognized_by_prompt_size_above_a_smaller_number() {
        for text in
            ["Model's max length is 32768, got 40000", "40000 ዘንቢል: 32768", "40,000 / 32,768"]
        {
            assert!(has_prompt_size(text, (90_000, 90_000)), "{text}");
            assert!(!has_prompt_size(text, (30_000, 30_000)), "a prompt of fewer tokens: {text}");
            assert!(!has_prompt_size(text, (900_000, 900_000)), "a part of the prompt: {text}");
        }
        for text in [
            "max_tokens: 32768, got 40000",
            "Expecting ',' delimiter: line 1 column 40012 (char 40011)",
            "Limit 32768, used 40000 of the daily allowance",
            "40000 is no window",
            "temperature 40000 > 32768",
            "image of 40000 bytes, at most 32768",
            "12 > 8",
            "Invalid request (request id 7f45612a-9034-4c1d-40000)",
            "upstream http://10.0.0.3:8080 failed: job 41235 refused",
            "Unsupported value for this deployment gpt-4o-2024-11-20 (ref 20931)",
            "Bad request. trace 32345-46789",
        ] {
            assert!(!has_prompt_size(text, (90_000, 90_000)), "{text}");
        }
    }

    #[test]
    fn other_limit_errors_are_not_taken_for_context_overflow() {
        for text in [
            "max_tokens is too large: 32000. This model supports at most 16384 completion tokens",
            "Range of max_tokens should be [1, 8192]",
            "Invalid 'messages[3].tool_call_id': string too long. Expected maximum length 40",
            "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum",
            "Invalid 'tools[0].function.name': string too long",
            "Rate limit reached: too many tokens per minute, limit 6000",
            "temperature: Input should be less than or equal to 1",
            "thinking.budget_tokens: must be greater than or equal to 1024",
            "Input should be a valid string",
            "messages: at least one message is required",
            "The request exceeded the time limit",
            "prompt processing took too long",
            "context deadline exceeded",
            "error message: too many connections",
            "Invalid 'input[2].id': string too long. Expected a string with maximum length 64, but got a string with \
             length 612 instead.",
            "messages[2].tool_calls[0].id: string too long",
            "'prompt_cache_key': string too long. Expected maximum length 64, but got length 700",
            "messages.5: tool_use ids must be at most 64 characters long",
            "seed: Input should be less than 2147483647; value too large",
            "Input should be less than or equal to 1 (the size of the nucleus)",
            "Invalid 'safety_identifier': string too long",
            "messages.3.name: string is longer than 64 characters",
            "You have exceeded your monthly allowance of 1000000 tokens",
            "Your plan includes 100000 tokens, 120000 are used",
            "the access token exceeds the maximum size of 4096 bytes",
            "unexpected token at position 90000, line 1200",
            "a cached prefix needs at least 1024 tokens, this one has 800",
            "今日 token 用量超过套餐额度",
            "请求时间过长",
            "Die Anfrage dauert zu lange",
            "model not found",
            "invalid api key",
            "",
        ] {
            assert!(!is_overflow(text), "{text}");
        }
    }
}
