// Colours for code, a line at a time: comments, texts, numbers, words of the language, names that are called.
// Every pattern is linear, and what is not known stays plain.

/** Longer lines stay plain. */
const MAX_LINE = 1000;

const words = (text) => new Set(text.split(" "));

const C_WORDS = "if else for while do switch case default break continue return struct enum union const static void int char float double bool long short unsigned signed true false null goto typedef sizeof extern inline volatile class public private protected virtual override namespace using template typename new delete this throw try catch operator auto";
const KINDS = {
  c: { line: "//", block: ["/*", "*/"], quotes: "\"'", words: words(C_WORDS) },
  rust: { line: "//", block: ["/*", "*/"], quotes: "\"", words: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bool char str String Vec Option Result Some None Ok Err Box") },
  js: { line: "//", block: ["/*", "*/"], quotes: "\"'`", words: words("abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while yield string number boolean unknown never any") },
  go: { line: "//", block: ["/*", "*/"], quotes: "\"'`", words: words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false string int int64 uint byte rune error bool float64 any make new len append") },
  java: { line: "//", block: ["/*", "*/"], quotes: "\"'", words: words("abstract as assert boolean break by byte case catch char class companion const continue data default do double else enum extends false final finally float for fun func guard if implements import in init instanceof int interface internal is lateinit let long namespace native new null object open operator out override package private protected public record return sealed short static string struct super switch synchronized this throw throws trait true try type typealias using val var void volatile when where while yield async await def lazy match with extension protocol self nil") },
  python: { line: "#", quotes: "\"'", triple: true, words: words("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield print int str float bool list dict set tuple") },
  ruby: { line: "#", quotes: "\"'", words: words("alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield puts attr_reader attr_accessor local function my our sub use foreach") },
  shell: { line: "#", quotes: "\"'", words: words("if then else elif fi for in do done while until case esac function return exit export local readonly set unset shift source echo cd test true false FROM RUN COPY CMD ENV WORKDIR ENTRYPOINT EXPOSE ARG USER") },
  data: { line: "#", quotes: "\"'", words: words("true false null yes no on off") },
  json: { quotes: "\"", words: words("true false null") },
  sql: { line: "--", block: ["/*", "*/"], quotes: "'\"", anyCase: true, words: words("select from where insert into values update set delete create table index view drop alter add primary key foreign references not null unique default join left right inner outer on as and or in is like between group by order having limit offset union all distinct case when then else end begin commit rollback exists count sum min max avg with recursive") },
  lua: { line: "--", quotes: "\"'", words: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while where let data type module import case of deriving instance class") },
  css: { block: ["/*", "*/"], quotes: "\"'", words: words("important inherit initial unset none auto var calc media import from to") },
  markup: { block: ["<!--", "-->"], quotes: "\"'", tags: true, words: words("") },
};

const NAMES = {
  c: "c h cc cpp hpp cxx objc m", rust: "rust rs", js: "js jsx ts tsx mjs cjs javascript typescript", go: "go golang", java: "java kt kotlin kts swift cs csharp scala groovy gradle php dart zig proto",
  python: "py python pyi starlark bzl", ruby: "rb ruby perl pl elixir ex exs r jl", shell: "sh bash zsh fish shell console dockerfile makefile make mk just nix", data: "toml yaml yml ini conf cfg properties env gitignore", json: "json jsonc json5 jsonl",
  sql: "sql", lua: "lua hs haskell elm ada", css: "css scss less", markup: "html xml svg vue svelte xhtml",
};
const KIND_OF = new Map(Object.entries(NAMES).flatMap(([kind, names]) => names.split(" ").map((name) => [name, kind])));

/** The language of a fence or of a path's ending; null where it is not known. @param {string} name */
export function languageOf(name) {
  const key = name.toLowerCase().split("/").pop() ?? "";
  return KIND_OF.get(key) ?? KIND_OF.get(key.split(".").pop() ?? "") ?? null;
}

const NUMBER = /0x[\da-f_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:e[+-]?\d+)?/iy;
const WORD = /[A-Za-z_$@][\w$-]*/y;
const PLAIN_WORD = /[A-Za-z_$@][\w$]*/y;

/**
 * The parts of a line as pairs of class and text. `state` is what the line before left open, null at the beginning.
 * @param {string} line @param {string | null} language @param {string | null} state
 * @returns {[[string, string][], string | null]}
 */
export function highlight(line, language, state = null) {
  const kind = KINDS[language];
  if (!kind || line.length > MAX_LINE) return [[["", line]], kind ? state : null];
  const out = [];
  const add = (name, text) => {
    const last = out.at(-1);
    if (last && last[0] === name) last[1] += text;
    else if (text) out.push([name, text]);
  };
  let at = 0;
  /** Goes to the end of what is open; it may be on a later line. */
  const until = (end, name, from) => {
    const found = line.indexOf(end, from);
    const stop = found < 0 ? line.length : found + end.length;
    add(name, line.slice(at, stop));
    at = stop;
    return found < 0 ? end : null;
  };
  if (state) state = until(state, state === "*/" || state === "-->" ? "k-note" : "k-text", 0);
  while (at < line.length && !state) {
    const here = line[at];
    if (kind.line && line.startsWith(kind.line, at) && (kind.line !== "#" || at === 0 || /\s/.test(line[at - 1]))) {
      add("k-note", line.slice(at));
      break;
    }
    if (kind.block && line.startsWith(kind.block[0], at)) {
      state = until(kind.block[1], "k-note", at + kind.block[0].length);
    } else if (kind.triple && (line.startsWith('"""', at) || line.startsWith("'''", at))) {
      state = until(line.slice(at, at + 3), "k-text", at + 3);
    } else if (kind.quotes.includes(here)) {
      let end = at + 1;
      while (end < line.length && line[end] !== here) end += line[end] === "\\" ? 2 : 1;
      const isOpen = end >= line.length;
      if (isOpen && here === "`") { add("k-text", line.slice(at)); at = line.length; state = "`"; break; }
      add("k-text", line.slice(at, isOpen ? line.length : end + 1));
      at = isOpen ? line.length : end + 1;
    } else if (/\d/.test(here)) {
      NUMBER.lastIndex = at;
      const text = NUMBER.exec(line)?.[0] ?? here;
      add("k-number", text);
      at += text.length;
    } else {
      const pattern = language === "css" || language === "markup" ? WORD : PLAIN_WORD;
      pattern.lastIndex = at;
      const text = pattern.exec(line)?.[0];
      if (!text) { add("", here); at++; continue; }
      const isTag = kind.tags && (line[at - 1] === "<" || (line[at - 1] === "/" && line[at - 2] === "<"));
      const isWord = kind.words.has(kind.anyCase ? text.toLowerCase() : text);
      const next = line[at + text.length];
      const isKey = language === "data" && /^\s*[\w.-]+\s*[:=]/.test(line.slice(0, at + text.length + 2)) && !line.slice(0, at).trim();
      add(isWord || isTag ? "k-word" : next === "(" || isKey || (language === "css" && next === ":") ? "k-name" : "", text);
      at += text.length;
    }
  }
  return [out, state];
}
