use super::*;
use crate::Protocol;

fn read(status: u16, body: &str) -> ProviderError {
    let profile = Profile::new("p", Protocol::OpenAi, "http://x");
    from_status(&profile, status, None, body.as_bytes())
}

#[test]
fn error_bodies_of_every_shape_are_parsed() {
    let cases = [
        (401, r#"{"detail":"Invalid API Key"}"#, ErrorKind::Auth, "Invalid API Key", None),
        (
            404,
            r#"{"error":"model 'x' not found"}"#,
            ErrorKind::NotFound,
            "model 'x' not found",
            None,
        ),
        (
            400,
            r#"{"code":"invalid-argument","error":"Model not found: x"}"#,
            ErrorKind::NotFound,
            "Model not found: x",
            Some("invalid-argument"),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}"#,
            ErrorKind::Auth,
            "API key not valid.",
            Some("400"),
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
            ErrorKind::Quota,
            "You exceeded your current quota",
            Some("insufficient_quota"),
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
            ErrorKind::ContextTooLong,
            "prompt is too long: 9 > 8",
            Some("invalid_request_error"),
        ),
        (529, "", ErrorKind::Overloaded, "", None),
        (
            502,
            "<html>bad gateway</html>",
            ErrorKind::Overloaded,
            "the server answered with an HTML page",
            None,
        ),
    ];
    for (status, body, kind, message, code) in cases {
        let error = read(status, body);
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{body}");
        assert_eq!(error.code.as_deref(), code, "{body}");
    }
}

#[test]
fn google_retry_delay_is_read_from_the_error_body() {
    let body = r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED",
        "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}]}}"#;
    let error = read(429, body);
    assert_eq!(error.kind, ErrorKind::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_millis(17_500)));
}

/// What vendors say of failures that matter for what happens next. A status of 0 is a record in
/// mid-stream.
#[test]
fn vendor_error_codes_are_mapped_to_error_kinds() {
    use ErrorKind::{
        Auth, BadRequest, ContextTooLong, Forbidden, NotFound, Overloaded, Quota, RateLimited,
        ServerError, Timeout,
    };
    let table = [
        // OpenAI
        (
            400,
            r#"{"error":{"message":"Input tokens exceed it","code":"context_length_exceeded"}}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 35000.","code":"rate_limit_exceeded"}}"#,
            ContextTooLong,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-x. Add a payment method at https://x/account/billing.","code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota"}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached"}}"#,
            Quota,
        ),
        (
            0,
            r#"{"type":"error","error":{"type":"server_error","message":"The server had an error"}}"#,
            ServerError,
        ),
        (
            0,
            r#"{"code":"rate_limit_exceeded","message":"Please try again in 11.054s."}"#,
            RateLimited,
        ),
        // Anthropic
        (
            0,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
        ),
        (
            0,
            r#"{"type":"error","error":{"type":"authentication_error","message":"expired"}}"#,
            Auth,
        ),
        (
            0,
            r#"{"type":"error","error":{"type":"timeout_error","message":"took too long"}}"#,
            Timeout,
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            Quota,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
            ContextTooLong,
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ContextTooLong,
        ),
        // Google
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}"#,
            RateLimited,
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute_per_project.","status":"RESOURCE_EXHAUSTED"}}"#,
            RateLimited,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ContextTooLong,
        ),
        // Mistral
        (
            422,
            r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#,
            BadRequest,
        ),
        (
            0,
            r#"{"object":"error","message":"Service tier capacity exceeded","type":"service_tier_capacity_exceeded","code":"3505"}"#,
            RateLimited,
        ),
        (
            0,
            r#"{"object":"error","message":"no","type":"rate_limited","code":"1300","raw_status_code":429}"#,
            RateLimited,
        ),
        // Local servers
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            ContextTooLong,
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            Overloaded,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
            BadRequest,
        ),
        (
            500,
            r#"{"error":"model requires more system memory (9.5 GiB) than is available (4.1 GiB)"}"#,
            BadRequest,
        ),
        (
            400,
            r#"{"error":"registry.ollama.ai/library/x:latest does not support tools"}"#,
            BadRequest,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096."}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":"Trying to keep the first 4000 tokens when context the overflows. However, the model is loaded with context length of only 2048 tokens"}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"message":"No models loaded. Please load a model in the developer page."}}"#,
            NotFound,
        ),
        // The others
        (
            402,
            r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#,
            Quota,
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens\"}}"}}}"#,
            ContextTooLong,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit reached on tokens per day (TPD). Please try again in 9m38s. Upgrade at https://x/settings/billing","code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM)","code":"rate_limit_exceeded"}}"#,
            ContextTooLong,
        ),
        (403, r#"{"code":"The caller does not have permission","error":"Invalid key"}"#, Auth),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx"}"#,
            Auth,
        ),
        (
            403,
            r#"{"code":"personal-team-blocked:spending-limit","error":"You have run out of credits."}"#,
            Quota,
        ),
        (
            400,
            r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            ContextTooLong,
        ),
        (
            404,
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
            NotFound,
        ),
        (
            429,
            r#"{"error":{"code":"429","message":"Requests have exceeded the call rate limit. Please retry after 24 seconds."}}"#,
            RateLimited,
        ),
        (400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#, ContextTooLong),
        (400, r#"{"error":{"code":"1261","message":"Prompt 超长"}}"#, ContextTooLong),
        (400, r#"{"error":{"code":"input_too_long","message":"no"}}"#, ContextTooLong),
        (500, r#"{"error":"context shift is disabled"}"#, ContextTooLong),
        (400, r#"{"error":"failed to find free space in the KV cache"}"#, ContextTooLong),
        // iFlytek, Baidu
        (400, r#"{"header":{"code":10907,"message":"token数量超过上限"}}"#, ContextTooLong),
        (
            400,
            r#"{"error_code":336007,"error_msg":"the max input characters is 5120, input is too long"}"#,
            ContextTooLong,
        ),
        // Gateways that give a status of their own.
        (403, r#"{"error":{"message":"Total tokens (9000) exceed the limit"}}"#, ContextTooLong),
        (406, r#"{"message":"Max context exceeded"}"#, ContextTooLong),
        (502, r#"{"error":{"message":"The request is too long: 9000 tokens"}}"#, ContextTooLong),
        (503, r#"{"error":{"message":"请求内容过长"}}"#, ContextTooLong),
        (502, "<html><h1>502 Bad Gateway</h1></html>", Overloaded),
        (503, r#"{"error":{"message":"too many requests in the queue, at most 100"}}"#, Overloaded),
        (403, r#"{"error":{"message":"You exceeded the tokens of your monthly plan"}}"#, Forbidden),
    ];
    let profile = Profile::new("p", Protocol::OpenAi, "http://x");
    for (status, body, kind) in table {
        let error = if status == 0 {
            from_value(&profile, None, &serde_json::from_str(body).unwrap())
        } else {
            read(status, body)
        };
        assert_eq!(error.kind, kind, "{status} {body}");
    }
}

#[test]
fn nested_validation_and_upstream_error_messages_are_shown() {
    let message = |body: &str| read(400, body).message;
    assert_eq!(
        message(r#"{"detail":[{"loc":["body","messages",0],"msg":"Field required"}]}"#),
        "body.messages.0: Field required"
    );
    assert_eq!(
        message(r#"{"message":{"detail":[{"loc":["body"],"msg":"a"},{"loc":["x"],"msg":"b"}]}}"#),
        "body: a; x: b"
    );
    assert_eq!(message(r#"{"error":["a",1]}"#), r#"["a",1]"#);
    let routed = |raw: &str| {
        let body = serde_json::json!({"error": {"message": "Provider returned error", "metadata": {"raw": raw}}});
        message(&body.to_string())
    };
    assert_eq!(routed("slow down"), "Provider returned error: slow down");
    assert_eq!(routed(r#"{"error":{"message":"no"}}"#), "Provider returned error: no");
    assert_eq!(routed(""), "Provider returned error");
}

#[test]
fn retry_wait_in_the_error_message_counts_without_a_header() {
    let body = r#"{"error":{"message":"Please try again in 1.5s","code":"rate_limit_exceeded"}}"#;
    assert_eq!(read(429, body).retry_after, Some(Duration::from_millis(1500)));
    let profile = Profile::new("p", Protocol::OpenAi, "http://x");
    let header = Some(Duration::from_secs(3));
    assert_eq!(from_status(&profile, 429, header, body.as_bytes()).retry_after, header);
}

#[test]
fn rate_limit_hint_names_the_retry_after_wait() {
    let profile = Profile::new("p", Protocol::OpenAi, "http://x");
    let wait = Some(Duration::from_secs(100_000));
    let error = from_status(&profile, 429, wait, b"");
    assert_eq!(error.retry_after, Some(MAX_RETRY_AFTER), "no more is believed");
    assert!(error.message.contains("it asks for a wait of 27h 46m"), "{error:?}");
    assert!(error.hint.as_deref().unwrap().starts_with("Retry in 27h 46m"), "{error:?}");
}

#[test]
fn placeholder_api_key_is_not_redacted_from_server_messages() {
    for word in ["x", "none", "ollama"] {
        let mut profile = Profile::new("work", Protocol::OpenAi, "http://x/v1");
        profile.key = Some(gnoma_core::Secret::new(word.to_owned()));
        let said = "none is supported by ollama: context exceeded";
        let body = format!(r#"{{"error":{{"message":"{said}"}}}}"#);
        assert_eq!(from_status(&profile, 400, None, body.as_bytes()).message, said);
    }
}

#[test]
fn api_key_quoted_by_the_server_is_redacted() {
    let mut profile = Profile::new("p", Protocol::OpenAi, "http://x");
    profile.key = Some(gnoma_core::Secret::new("sk-work-1234".to_owned()));
    let body = br#"{"error":{"message":"bad key Bearer sk-work-1234","code":"sk-work-1234"}}"#;
    for error in [
        from_status(&profile, 401, None, body),
        from_status(&profile, 401, None, b"bad key sk-work-1234"),
        redirect_error(&profile, 302, Some("https://y/?key=sk-work-1234")),
        redirect_error(&profile, 302, Some("https://y/sk-work-1234/models")),
    ] {
        assert!(!format!("{error:?}").contains("sk-work"), "{error:?}");
    }
}

/// OpenRouter and proxies say in place of an answer, and in the middle of one, what they like.
#[test]
fn error_inside_an_http_200_answer_counts_as_server_error() {
    let profile = Profile::new("p", Protocol::OpenAi, "http://x");
    let told = |body: &str, has_begun| {
        let value = serde_json::from_str(body).unwrap();
        in_answer(&profile, from_value(&profile, None, &value), has_begun)
    };
    for has_begun in [false, true] {
        let error = told(r#"{"error":{"message":"Provider returned error"}}"#, has_begun);
        assert_eq!(error.kind, ErrorKind::ServerError);
        assert!(
            error.hint.unwrap().contains("The problem is on the side of the server at http://x:")
        );
        assert_eq!(told(r#"{"error":"upstream"}"#, has_begun).kind, ErrorKind::ServerError);
        let refused = r#"{"error":{"message":"tool names must be unique","code":400}}"#;
        assert_eq!(told(refused, has_begun).kind, ErrorKind::BadRequest);
    }
    assert_eq!(told(r#"{"error":"invalid argument"}"#, false).kind, ErrorKind::BadRequest);
}

#[test]
fn http_409_and_425_are_retried() {
    assert_eq!(read(409, r#"{"error":{"message":"locked"}}"#).kind, ErrorKind::ServerError);
    assert_eq!(read(425, "").kind, ErrorKind::ServerError);
}

#[test]
fn error_hint_fits_the_server_message() {
    for (status, message, advice) in [
        (
            500,
            "model requires more system memory (12.1 GiB) than is available (7.5 GiB)",
            "smaller one",
        ),
        (404, "model 'llama9' not found, try pulling it first", "ollama pull"),
        (200, "Unexpected endpoint or method. (POST /chat/completions)", "often ends in /v1"),
        (403, "Country, region, or territory not supported", "another provider"),
        (400, "User location is not supported for the API use.", "another provider"),
        (
            400,
            "Your organization must be verified to use the model `o3`.",
            "Verify your organization",
        ),
        (400, "This model's maximum context length is 8192 tokens", "larger window"),
        (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "Check the account behind the server",
        ),
        (
            400,
            "Your credit balance is too low to access the Anthropic API.",
            "Check the account behind the server",
        ),
        (404, "The API deployment for this resource does not exist.", "name of its deployment"),
        (
            404,
            "No endpoints found matching your data policy (Free model publication).",
            "privacy settings",
        ),
        (
            400,
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            "Rephrase it",
        ),
        (400, "Content Exists Risk", "Rephrase it"),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let error = read(status, &body);
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains(advice), "{message}: {hint}");
        assert!(!hint.contains("rejected the key"), "{message}: {hint}");
    }
}

#[test]
fn model_not_found_error_is_recognized_for_each_vendor() {
    for (status, body) in [
        (400, r#"{"message":"Invalid model: mistral-larg","type":"invalid_model","code":"1500"}"#),
        (
            400,
            r#"{"error":{"message":"The model `x` has been decommissioned and is no longer supported.",
               "code":"model_decommissioned"}}"#,
        ),
        (400, r#"{"error":{"message":"Model Not Exist","code":"invalid_request_error"}}"#),
        (400, r#"{"error":{"message":"foo/bar is not a valid model ID","code":400}}"#),
        (404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#),
    ] {
        let error = read(status, body);
        assert_eq!(error.kind, ErrorKind::NotFound, "{body}");
        assert!(error.hint.is_some_and(|hint| hint.contains("`gnoma models`")), "{body}");
    }
}

#[test]
fn model_not_found_hint_suggests_a_similar_model() {
    let profile = Profile::new("openai", Protocol::OpenAi, "http://x");
    let gone = || from_status(&profile, 404, None, br#"{"error":{"message":"no such model"}}"#);
    let hint = suggest_model(&profile, gone(), "GPT-4o").hint.unwrap();
    assert!(hint.starts_with("Did you mean `gpt-4o`? `gnoma models`"), "{hint}");
    let hint = suggest_model(&profile, gone(), "nothing-like-it").hint.unwrap();
    assert!(hint.starts_with("`gnoma models`"), "{hint}");
    let page = from_status(&profile, 404, None, b"404 page not found");
    assert!(!suggest_model(&profile, page, "GPT-4o").hint.unwrap().contains("mean"));
}

#[test]
fn http_404_hint_names_the_base_url_form_of_the_protocol() {
    for (protocol, url, says, says_not) in [
        (Protocol::OpenAi, "http://x", "http://x/chat/completions. It often ends in /v1.", "beta"),
        (Protocol::OpenAi, "http://x/v1", "http://x/v1/chat/completions. Change it", "often ends"),
        (Protocol::Google, "http://x/v1", "It often ends in /v1beta.", "/v1."),
        (Protocol::Ollama, "http://x:11434", "http://x:11434/api/chat. Change it", "often ends"),
        (Protocol::Anthropic, "http://x/v1", "http://x/v1/messages. Change it", "often ends"),
    ] {
        let profile = Profile::new("work", protocol, url);
        let hint = from_status(&profile, 404, None, b"<html>404</html>").hint.unwrap();
        assert!(hint.contains(says) && !hint.contains(says_not), "{hint}");
    }
}

#[test]
fn http_403_of_a_self_hosted_server_hints_at_the_key_not_the_account() {
    let mut profile = Profile::new("work", Protocol::OpenAi, "http://x/v1");
    profile.key = Some(gnoma_core::Secret::new("k".to_owned()));
    profile.key_source = Some("WORK_KEY".to_owned());
    let hint = from_status(&profile, 403, None, br#"{"error":{"message":"no"}}"#).hint.unwrap();
    assert!(hint.contains("WORK_KEY") && !hint.contains("country"), "{hint}");
    // The setting names a variable that is not set.
    profile.key = None;
    profile.key_source = Some("`provider.api_keys.work` (c.toml:5)".to_owned());
    profile.key_variable = "WORK_KEY".to_owned();
    let hint = from_status(&profile, 401, None, b"{}").hint.unwrap();
    assert!(hint.starts_with("`provider.api_keys.work` (c.toml:5) takes the key"), "{hint}");
    assert!(hint.contains("from WORK_KEY, which is not set"), "{hint}");
}

#[test]
fn json_of_something_else_is_no_list_of_models() {
    let profile = Profile::new("work", Protocol::OpenAi, "http://x/v1");
    for body in [r#"{"hello":"world"}"#, r#"{"data":"x"}"#, "{}", "1", "null", r#"{"error":{}}"#] {
        let error = no_list(&profile, body.as_bytes()).expect(body);
        assert!(error.message.contains("no list of models"), "{body}: {error:?}");
    }
    for body in ["[]", r#"{"data":[]}"#, r#"{"object":"list","data":null}"#, r#"{"models":[1]}"#] {
        assert_eq!(no_list(&profile, body.as_bytes()), None, "{body}");
    }
}

#[test]
fn redirect_error_names_the_endpoint_to_set() {
    let profile = Profile::new("p", Protocol::OpenAi, "http://x/v1");
    let hint = |to: Option<&str>| redirect_error(&profile, 308, to).hint.unwrap();
    let moved = hint(Some("https://x/v1/chat/completions"));
    assert!(moved.contains("change `provider.endpoints.p` to `https://x/v1`."), "{moved}");
    assert!(hint(Some("http://wifi.example/login?to=x")).contains("log in"));
    // A path of its own: the address is right, and nobody has to log in.
    let slash = hint(Some("/v1/chat/completions/"));
    assert!(slash.contains("rewrites paths") && !slash.contains("log in"), "{slash}");
    let moved = hint(Some("/api/v1/chat/completions"));
    assert!(moved.contains("to `http://x/api/v1`"), "{moved}");
    let moved = hint(Some("//y/v1/chat/completions"));
    assert!(moved.contains("to `http://y/v1`"), "{moved}");
    assert!(!hint(Some("/elsewhere")).contains("log in"));
    let nowhere = redirect_error(&profile, 303, None);
    assert!(nowhere.message.contains("does not say where"), "{nowhere:?}");
    let back = redirect_error(&profile, 307, Some("http://x/v1/chat/completions")).hint.unwrap();
    assert!(back.starts_with("The server sends each request back to its own address"), "{back}");
}

#[test]
fn permanent_http_statuses_are_not_reported_as_overloaded() {
    for (status, advice) in [
        (407, "HTTPS_PROXY"),
        (426, "https://"),
        (431, "may add headers"),
        (451, "another provider"),
        (501, "provider.endpoints.p"),
        (505, "provider.endpoints.p"),
        (508, "in a circle"),
        (510, "provider.endpoints.p"),
        (511, "log in"),
        (999, "provider.endpoints.p"),
    ] {
        let error = read(status, "");
        assert!(!error.kind.is_transient(), "{status}: {error:?}");
        assert!(error.hint.is_some_and(|hint| hint.contains(advice)), "{status}");
    }
    assert!(read(403, "<html><title>Blocked</title>").message.contains("Blocked"));
}

/// A vendor's name at an address of one's own, such as a gateway's, is not spoken of as the vendor.
#[test]
fn gateway_named_like_a_vendor_counts_as_a_self_hosted_server() {
    let mut profile = Profile::new("openai", Protocol::Responses, "http://gateway.internal/v1");
    profile.key = Some(gnoma_core::Secret::new("k".to_owned()));
    profile.key_source = Some("WORK_KEY".to_owned());
    profile.address_source = Some("OPENAI_BASE_URL".to_owned());
    let server = "the server at http://gateway.internal/v1, from OPENAI_BASE_URL";
    for (status, says) in [
        (400, "refuses the request for the reason above"),
        (402, "wants payment. Check the account behind it"),
        (403, "does not allow this with the key in WORK_KEY; the key itself may be right"),
        (408, "stopped waiting for the model"),
        (500, "its log says more"),
        (502, "A proxy answers in place of"),
        (503, "may still be loading the model"),
    ] {
        let error = from_status(&profile, status, None, br#"{"error":{"message":"no"}}"#);
        let hint = error.hint.unwrap_or_default();
        assert!(hint.to_lowercase().contains(&server.to_lowercase()), "{status}: {hint}");
        assert!(hint.contains(says) && !hint.contains("`openai`"), "{status}: {hint}");
    }
    // The vendor's own address, written down.
    profile.base_url = "https://api.openai.com/v1".to_owned();
    assert!(!profile.is_own_server() && !profile.has_vendor_address());
    let mut europe = Profile::new("openai", Protocol::OpenAi, "https://eu.api.openai.com/v1");
    europe.address_source = Some("OPENAI_BASE_URL".to_owned());
    assert!(!europe.is_own_server());
    let mut gateway = Profile::new("openai", Protocol::OpenAi, "https://notopenai.com/v1");
    gateway.address_source = Some("OPENAI_BASE_URL".to_owned());
    assert!(gateway.is_own_server());
    let mut azure = Profile::new("azure", Protocol::OpenAi, "https://r.openai.azure.com/openai/v1");
    azure.address_source = Some("`provider.endpoints.azure`".to_owned());
    assert!(!azure.is_own_server());
}

#[test]
fn error_hint_names_the_setting_or_variable_of_address_and_key() {
    let vendor = Profile::new("google", Protocol::Google, "https://x/v1beta");
    let mut own = Profile::new("vllm", Protocol::OpenAi, "http://gpu.lab:8000/v1");
    own.address_source = Some("`provider.endpoints.vllm` (c.toml:5)".to_owned());
    let refused = remedy::of_connection(&own, NetErrorKind::Connect);
    assert_eq!(
        refused,
        "Start the server of `vllm`, or correct its address http://gpu.lab:8000/v1 in \
         `provider.endpoints.vllm` (c.toml:5)."
    );
    let unknown = remedy::of_unknown_host(&own);
    assert!(unknown.starts_with("There is no host gpu.lab: correct the address in"), "{unknown}");
    assert!(remedy::of_unknown_host(&vendor).contains("the network"));
    let hint = |profile: &Profile, status, body: &[u8]| {
        let error = from_status(profile, status, None, body);
        suggest_model(profile, error, "gemini-x").hint.unwrap()
    };
    let missing = hint(&own, 404, br#"{"error":{"message":"not found"}}"#);
    assert!(missing.starts_with("Either the model or the address is wrong."), "{missing}");
    let named = hint(&own, 404, br#"{"error":{"message":"no model gemini-x"}}"#);
    assert!(named.starts_with("`gnoma models` lists"), "{named}");
    assert!(hint(&vendor, 405, b"").contains("/models/gemini-x:streamGenerateContent"));
    let page = hint(&vendor, 403, b"<html>no</html>");
    assert!(page.starts_with("No key for `google` is set") && page.contains("proxy"), "{page}");
    assert!(hint(&own, 421, b"{}").contains("not responsible for gpu.lab. Check the address in"));
    assert!(hint(&own, 415, b"{}").contains("another kind of server may answer at http://gpu.lab"));
    own.key = Some(gnoma_core::Secret::new("k".to_owned()));
    own.key_source = Some("the command in `provider.key_commands.vllm`".to_owned());
    let command = hint(&own, 403, b"{}");
    assert!(command.contains("the key that the command in `provider.key_commands.vllm` prints"));
}

#[test]
fn unknown_error_with_the_prompt_size_counts_as_context_overflow() {
    let profile = Profile::new("p", Protocol::OpenAi, "http://x");
    let read = |bytes| {
        let body = br#"{"error":{"message":"Model's max length is 32768, got 40000"}}"#;
        detect_overflow(&profile, from_status(&profile, 400, None, body), bytes, bytes)
    };
    assert_eq!(read(120_000).kind, ErrorKind::ContextTooLong);
    assert!(read(120_000).hint.is_some_and(|hint| hint.contains("compact")));
    assert_eq!(read(2_000).kind, ErrorKind::BadRequest);
}
