//! Limits for a server. It is someone else's program: it may be slow, silent, flooding, or lying.

use std::time::Duration;

/// Longest start of a server: its process, the handshake and its lists.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest silence within a call, unless the configuration says otherwise. Progress restarts it.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest call, however much progress it reports.
pub const MAX_CALL: Duration = Duration::from_secs(3600);
/// The time to wait before a server that could not be started is tried again.
pub const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The time from the start of a session to the start of servers with unknown tools, unless they are needed earlier:
/// late enough that starting them does not delay the first request.
pub const START_DELAY: Duration = Duration::from_millis(500);
/// The time that a message which names a server waits for it, where its tools were never seen.
pub const NAMED_WAIT: Duration = Duration::from_secs(10);
/// The time that a search which finds nothing waits for servers whose tools were never seen.
pub const SEARCH_WAIT: Duration = Duration::from_secs(10);
/// Largest message of a server, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Most messages to a program that wait for it to read them.
pub const MAX_UNSENT: usize = 64;
/// Most questions of a server that are open at a time.
pub const MAX_SERVER_REQUESTS: usize = 8;
/// The number of times that a server may ask for more while it works on one request.
pub const MAX_INPUT_ROUNDS: usize = 8;
/// The time that a server may take to answer what it perhaps does not know: for its versions, or for tools of which it
/// says nothing.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most redirects of one request, all at the server's own origin.
pub const MAX_REDIRECTS: usize = 3;
/// The number of times that a request is sent to a server that says that it is busy.
pub const MAX_ATTEMPTS: u32 = 3;
/// Longest wait for a server that says that it is busy, each time.
pub const MAX_BUSY_WAIT: Duration = Duration::from_secs(60);
/// The time to wait for a busy server that does not say how long.
pub const BUSY_WAIT: Duration = Duration::from_secs(1);
/// The time to wait for a server to open a stream of its own, on which it asks questions.
pub const STREAM_WAIT: Duration = Duration::from_secs(1);
/// The time to wait before a stream that broke is continued, unless the server says otherwise.
pub const RESUME_WAIT: Duration = Duration::from_secs(1);
/// Longest wait before a stream that broke is continued, whatever the server says.
pub const MAX_RESUME_WAIT: Duration = Duration::from_secs(60);
/// The number of times in a row that a stream which brings nothing is continued.
pub const MAX_RESUMES: u32 = 5;
/// Most bytes that a server sends while nothing is asked of it; more is a flood, which ends it.
pub const MAX_UNASKED_BYTES: u64 = 64 << 20;
/// Most servers of a session.
pub const MAX_SERVERS: usize = 64;
/// Most tools of a server that are used.
pub const MAX_TOOLS: usize = 512;
/// Most resources of a server that are listed.
pub const MAX_RESOURCES: usize = 1000;
/// Most prompts of a server that are used.
pub const MAX_PROMPTS: usize = 200;
/// Most of what is wrong with a list that is remembered.
pub const MAX_FAULTS: usize = 100;
/// Most pages of a list.
pub const MAX_PAGES: usize = 64;
/// Longest description of a tool that models get, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
/// Largest schema of a tool's arguments, in bytes. A tool with a larger one is left out.
pub const MAX_SCHEMA_BYTES: usize = 32 << 10;
/// Longest name of a tool, server's name included: what every provider takes.
pub const MAX_NAME_BYTES: usize = 64;
/// Most text of a result where the model can read the rest later, in bytes.
pub const MAX_STORED_TEXT_BYTES: usize = 8 << 20;
/// Most text of a result otherwise, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// Largest image of a result, in bytes of its base64.
pub const MAX_IMAGE_BYTES: usize = 8 << 20;
/// Most images of a result.
pub const MAX_IMAGES: usize = 8;
/// The most that is stored of a server's standard error, in bytes: the end of it.
pub const MAX_STDERR_BYTES: usize = 64 << 10;
/// Most of a file that names servers, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;
