"""Validates request bodies with the types of the vendors' own SDKs.

    validate.py FOLDER

FOLDER holds bodies called `<provider>--<case>.json`. Each is read strictly: a field the SDK does not
know, a wrong type and a key given twice are failures. What a vendor documents beside its SDK's types is
listed in EXTENSIONS and taken out first, that and nothing else.

Prints a line for each body and a summary. Exits with 1 when a body is refused, when there is none, and
when a provider is not known here.
"""

import collections.abc
import json
import sys
import typing
from pathlib import Path

import pydantic
from pydantic import ConfigDict, TypeAdapter

# Pydantic checks an `Iterable` only when somebody iterates over it, and a `List` at once. The SDKs
# describe lists of messages and blocks as the former.
typing.Iterable = typing.List
# Models inherit it unless they decide for themselves: what they do not know is refused.
pydantic.BaseModel.model_config["extra"] = "forbid"

from anthropic.types import message_create_params as anthropic_params  # noqa: E402
from google.genai import types as google_types  # noqa: E402
from mistralai.client import models as mistral_models  # noqa: E402
from ollama import _types as ollama_types  # noqa: E402
from openai.types.chat import completion_create_params as chat_params  # noqa: E402
from openai.types.responses import response_create_params as responses_params  # noqa: E402


# Most findings that are shown of one body, and most characters of a step on the way to one.
MAX_FINDINGS = 8
MAX_STEP = 40


class Refused(Exception):
    """A body that does not follow its vendor's types."""


def typed_dict(kind):
    """A check against a TypedDict, with everything in it."""
    # A list around it: only then does pydantic take a configuration from outside, and hand it down.
    adapter = TypeAdapter(
        list[kind], config=ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    )
    # Strictly: else the SDK's models of answers, which take any field, would pass for requests.
    return lambda body: adapter.validate_python([body], strict=True)


def mistral(body):
    # Strictly, and so as JSON: else words that the SDK does not know pass as "unrecognized".
    request = mistral_models.ChatCompletionStreamRequest.model_validate_json(
        json.dumps(body), strict=True
    )
    for path, value in walk(request.model_dump(mode="python")):
        if path and path[-1] == "is_unknown" and value:
            raise Refused(f"{'.'.join(path[:-1])}: a variant the SDK does not know")


GOOGLE_FIELDS = {
    "contents": TypeAdapter(list[google_types.Content]),
    "systemInstruction": TypeAdapter(google_types.Content),
    "tools": TypeAdapter(list[google_types.Tool]),
    "toolConfig": TypeAdapter(google_types.ToolConfig),
    "generationConfig": TypeAdapter(google_types.GenerationConfig),
}


def google(body):
    """The SDK has no type of the whole request, only of its parts."""
    if "contents" not in body:
        raise Refused("contents: missing")
    for field, value in body.items():
        if field not in GOOGLE_FIELDS:
            raise Refused(f"{field}: not a field of the request")
        # As JSON: signatures and pictures are base64 there.
        GOOGLE_FIELDS[field].validate_json(json.dumps(value), strict=True)


def ollama(body):
    """The SDK takes any mapping for a message, so messages are checked one by one."""
    messages = [
        {field: value for field, value in message.items() if field != "images"}
        for message in body["messages"]
    ]
    for message in messages:
        ollama_types.Message.model_validate(message)
    for message in body["messages"]:
        TypeAdapter(list[pydantic.Base64Bytes]).validate_python(message.get("images", []))
    ollama_types.ChatRequest.model_validate(body | {"messages": messages})


chat = typed_dict(chat_params.CompletionCreateParamsStreaming)

CHECKS = {
    "mistral": mistral,
    "anthropic": typed_dict(anthropic_params.MessageCreateParamsStreaming),
    "openai-chat": chat,
    "openai-responses": typed_dict(responses_params.ResponseCreateParamsStreaming),
    "google": google,
    "ollama": ollama,
    "openrouter": chat,
    "groq": chat,
    "deepseek": chat,
    "azure": chat,
    "llamacpp": chat,
}

# Documented by the vendor, unknown to the SDK. `[]` stands for every item of a list.
EXTENSIONS = {
    # https://docs.ollama.com/api/chat and `Message` in the server's api/types.go
    "ollama": [
        ("messages", "[]", "tool_call_id"),
        ("messages", "[]", "tool_calls", "[]", "id"),
        # A JSON schema, of which the SDK lists a few keywords and the server takes them all.
        ("tools", "[]", "function", "parameters"),
    ],
    # https://openrouter.ai/docs/use-cases/reasoning-tokens
    "openrouter": [
        ("reasoning",),
        ("messages", "[]", "reasoning"),
        ("messages", "[]", "reasoning_details"),
    ],
    # https://console.groq.com/docs/api-reference#chat-create
    "groq": [("messages", "[]", "reasoning")],
    # https://api-docs.deepseek.com/guides/thinking_mode
    "deepseek": [("messages", "[]", "reasoning_content"), ("thinking",)],
    # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    "llamacpp": [("chat_template_kwargs",), ("messages", "[]", "reasoning_content")],
}


def walk(value, path=()):
    """Every value inside `value`, with the path to it."""
    yield path, value
    if isinstance(value, collections.abc.Mapping):
        for key, inner in value.items():
            yield from walk(inner, (*path, str(key)))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from walk(inner, (*path, str(at)))


def without(value, path):
    """Takes what stands at `path` out of `value`."""
    step, *rest = path
    if step == "[]":
        for inner in value:
            without(inner, rest)
    elif not rest:
        value.pop(step, None)
    elif step in value:
        without(value[step], rest)


def object_without_duplicates(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Refused(f"a key occurs twice among {[key for key, _ in pairs]}")
    return fields


def validate(path):
    """Why the body at `path` is refused; nothing when it is sound."""
    provider, _, case = path.stem.partition("--")
    check = CHECKS.get(provider)
    if check is None or not case:
        return "no check for this provider: add it to CHECKS"
    try:
        body = json.loads(path.read_text(), object_pairs_hook=object_without_duplicates)
        for extension in EXTENSIONS.get(provider, []):
            without(body, extension)
        check(body)
        if accepts_anything(check, body):
            return "the check is blind: it takes fields that nobody knows"
    except pydantic.ValidationError as refusal:
        return findings(refusal)
    except (Refused, ValueError, KeyError) as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return None


def accepts_anything(check, body):
    """Whether the check overlooks an unknown field, in the body or in its last message."""
    listed = next(body[field] for field in ("messages", "input", "contents") if field in body)
    for place in (body, listed[-1]):
        place["nobody_knows_this"] = 1
        try:
            check(body)
            return True
        except (Refused, ValueError):
            del place["nobody_knows_this"]
    return False


def findings(refusal):
    """What is wrong, a line each, without the complaints of variants that were not meant."""
    errors = refusal.errors(include_url=False)
    not_meant = [error["loc"][:-1] for error in errors if error["type"] == "literal_error"]
    telling = [
        error
        for error in errors
        if not any(error["loc"][: len(variant)] == variant for variant in not_meant)
    ]
    lines = []
    for error in (telling or errors)[:MAX_FINDINGS]:
        steps = ".".join(str(step)[:MAX_STEP] for step in error["loc"])
        lines.append(f"{steps}: {error['msg']}, not {str(error['input'])[:MAX_STEP]}")
    return "\n".join(lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    bodies = sorted(Path(sys.argv[1]).glob("*.json"))
    if not bodies:
        sys.exit(f"no body in {sys.argv[1]}")
    refused = 0
    for path in bodies:
        why = validate(path)
        refused += why is not None
        print(f"{'ok     ' if why is None else 'REFUSED'} {path.stem}")
        if why is not None:
            print("    " + why.replace("\n", "\n    "))
    silent = sorted(set(CHECKS) - {path.stem.partition("--")[0] for path in bodies})
    if silent:
        print(f"no body of: {', '.join(silent)}")
    print(f"{len(bodies)} bodies, {refused} refused")
    sys.exit(1 if refused or silent else 0)


if __name__ == "__main__":
    main()
