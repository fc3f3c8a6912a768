//! Sends what was recorded, in a task of its own: recording takes a lock for a moment and never waits for the collector.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use gnoma_core::{Secret, sync::Mutex, task::box_future};
use gnoma_net::{Http, HttpRequest};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    answer::CollectorAnswer,
    encode,
    instrument::{Instrument, Metrics},
    log_record::{LogQueue, LogRecord},
    options::{ExportOptions, host_of},
    queue::SpanQueue,
    span::{Attribute, Span},
};

/// Longest time that the end of a process waits for what was not sent yet.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);
/// The part of it in which requests are sent again that a collector had no time for.
const ENDING_RETRIES: Duration = Duration::from_millis(700);
/// The wait before the second attempt at the end of a process; it doubles with each, up to the longest.
const FIRST_ENDING_RETRY: Duration = Duration::from_millis(50);
/// The longest wait between two attempts at the end of a process.
const LONGEST_ENDING_RETRY: Duration = Duration::from_millis(250);

/// Longest time that a span waits for others.
const SPAN_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two reports of metrics.
const METRIC_INTERVAL: Duration = Duration::from_secs(60);
/// The most times that a request is sent while the collector has no time for it.
const MAX_ATTEMPTS: u32 = 5;
/// The wait before the second attempt; it doubles with each.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Most bytes that are read of an answer.
const MAX_ANSWER_BYTES: usize = 1 << 16;

/// The complaint about a collector that takes a request and says nothing.
const SILENT: &str = "it does not answer";

/// Takes sentences for people; must not wait.
type MessageSink = Box<dyn Fn(&str) + Send + Sync>;

/// Sends spans, metrics and log records to one collector. Dropping it sends nothing more.
pub struct Exporter {
    sender: Arc<Sender>,
    /// At the end of the process, the time until which requests are sent again.
    ending: watch::Sender<Option<Instant>>,
    task: Mutex<JoinSet<()>>,
}

struct Sender {
    options: ExportOptions,
    http: Http,
    queue: Mutex<SpanQueue>,
    logs: Mutex<LogQueue>,
    metrics: Mutex<Metrics>,
    /// The time at which counting of metrics began, in nanoseconds since 1970.
    since_ns: u64,
    now_ns: fn() -> u64,
    is_full: Notify,
    /// Spans of the request that the collector has not answered.
    under_way: AtomicU64,
    say: MessageSink,
    has_said: AtomicBool,
}

impl Exporter {
    /// Begins to send. `now_ns` reads nanoseconds since 1970. `say` gets one sentence if something does not arrive.
    /// Must be called within a runtime.
    #[must_use]
    pub fn start(
        options: ExportOptions,
        http: Http,
        now_ns: fn() -> u64,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let sender = Arc::new(Sender {
            options,
            http,
            queue: Mutex::default(),
            logs: Mutex::default(),
            metrics: Mutex::default(),
            since_ns: now_ns(),
            now_ns,
            is_full: Notify::new(),
            under_way: AtomicU64::new(0),
            say: Box::new(say),
            has_said: AtomicBool::new(false),
        });
        let (ending, is_ending) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(box_future(Arc::clone(&sender).run(is_ending)));
        Self { sender, ending, task: Mutex::new(task) }
    }

    /// Records a finished span. It is dropped and counted if too many wait.
    pub fn send_span(&self, span: Span) {
        if self.sender.options.traces_url.is_some() && self.sender.queue.lock().push(span) {
            self.sender.is_full.notify_one();
        }
    }

    /// Records an event. It is dropped and counted if too many wait.
    pub fn send_log(&self, record: LogRecord) {
        if self.sender.options.logs_url.is_some() {
            self.sender.logs.lock().push(record);
        }
    }

    /// Adds to a count.
    pub fn add_count(&self, instrument: Instrument, amount: u64, attributes: Vec<Attribute>) {
        self.sender.metrics.lock().add_count(instrument, amount, attributes);
    }

    /// Records a value of a histogram.
    pub fn record_value(&self, instrument: Instrument, value: f64, attributes: Vec<Attribute>) {
        self.sender.metrics.lock().record_value(instrument, value, attributes);
    }

    /// Counts the spans that were dropped so far.
    #[must_use]
    pub fn dropped_spans(&self) -> u64 {
        self.sender.queue.lock().dropped_spans()
    }

    /// Sends everything within a second; what is left is dropped and counted. Nothing is sent afterwards.
    pub async fn finish(&self) {
        self.ending.send_replace(Some(Instant::now() + ENDING_RETRIES));
        let mut task = std::mem::take(&mut *self.task.lock());
        if timeout(FLUSH_PATIENCE, task.join_next()).await.is_ok() {
            return;
        }
        drop(task);
        let sender = &self.sender;
        let mut queue = sender.queue.lock();
        let unsent = queue.len() as u64 + sender.under_way.load(Ordering::Relaxed);
        queue.drop_spans(unsent);
        drop(queue);
        let url = sender.options.traces_url.as_ref().or(sender.options.metrics_url.as_ref());
        url.into_iter().for_each(|url| sender.report_once(url, SILENT));
    }
}

impl Sender {
    async fn run(self: Arc<Self>, mut ending: watch::Receiver<Option<Instant>>) {
        let mut metrics_due = Instant::now() + METRIC_INTERVAL;
        loop {
            let is_ending = tokio::select! {
                _ = ending.wait_for(Option::is_some) => true,
                () = self.is_full.notified() => false,
                () = sleep(SPAN_INTERVAL) => false,
            };
            self.send_spans(&mut ending).await;
            self.send_logs(&mut ending).await;
            if is_ending || Instant::now() >= metrics_due {
                self.send_metrics(&mut ending).await;
                metrics_due = Instant::now() + METRIC_INTERVAL;
            }
            if is_ending {
                return;
            }
        }
    }

    async fn send_spans(&self, ending: &mut watch::Receiver<Option<Instant>>) {
        let Some(url) = &self.options.traces_url else { return };
        loop {
            let spans = self.queue.lock().take_batch();
            if spans.is_empty() {
                return;
            }
            let count = spans.len() as u64;
            let body = encode::encode_spans(self.options.format, &self.options.resource, &spans);
            self.under_way.store(count, Ordering::Relaxed);
            let answer = self.post_with_retries(url, &body.into(), ending).await;
            self.under_way.store(0, Ordering::Relaxed);
            match answer {
                CollectorAnswer::Accepted { rejected: 0, .. } => (),
                CollectorAnswer::Accepted { rejected, why } => {
                    self.queue.lock().drop_spans(rejected.min(count));
                    let why = if why.is_empty() { "without a reason" } else { &why };
                    self.report_once(url, &format!("it rejects spans: {why}"));
                }
                CollectorAnswer::TooLarge => {
                    self.queue.lock().requeue_split(spans);
                    if count == 1 {
                        self.report_once(url, "a span is too large for it (status 413)");
                    }
                }
                CollectorAnswer::Later(why, _)
                | CollectorAnswer::Missing(why)
                | CollectorAnswer::Refused(why) => {
                    self.queue.lock().drop_spans(count);
                    self.report_once(url, &why);
                }
            }
        }
    }

    async fn send_logs(&self, ending: &mut watch::Receiver<Option<Instant>>) {
        let Some(url) = &self.options.logs_url else { return };
        let logs = self.logs.lock().take_all();
        if logs.is_empty() {
            return;
        }
        let body = encode::encode_logs(self.options.format, &self.options.resource, &logs);
        let count = logs.len() as u64;
        let (dropped, why) = match self.post_with_retries(url, &body.into(), ending).await {
            CollectorAnswer::Accepted { rejected: 0, .. } => return,
            CollectorAnswer::Accepted { rejected, why } => {
                (rejected.min(count), format!("it rejects log records: {why}"))
            }
            CollectorAnswer::TooLarge => {
                (count, "log records are too large for it (status 413)".to_owned())
            }
            CollectorAnswer::Later(why, _)
            | CollectorAnswer::Missing(why)
            | CollectorAnswer::Refused(why) => (count, why),
        };
        self.logs.lock().drop_records(dropped);
        self.report_once(url, &why);
    }

    async fn send_metrics(&self, ending: &mut watch::Receiver<Option<Instant>>) {
        let Some(url) = &self.options.metrics_url else { return };
        let dropped = [
            (Instrument::DroppedSpans, self.queue.lock().take_dropped()),
            (Instrument::DroppedLogs, self.logs.lock().take_dropped()),
        ];
        let series = {
            let mut metrics = self.metrics.lock();
            for (instrument, count) in dropped.into_iter().filter(|(_, count)| *count > 0) {
                metrics.add_count(instrument, count, Vec::new());
            }
            metrics.take_changed()
        };
        let Some(series) = series else { return };
        let times = (self.since_ns, (self.now_ns)());
        let body =
            encode::encode_metrics(self.options.format, &self.options.resource, &series, times);
        let why = match self.post_with_retries(url, &body.into(), ending).await {
            CollectorAnswer::Accepted { rejected: 0, .. } => return,
            CollectorAnswer::Accepted { why, .. } => {
                return self.report_once(url, &format!("it rejects metrics: {why}"));
            }
            CollectorAnswer::TooLarge => "metrics are too large for it (status 413)".to_owned(),
            CollectorAnswer::Later(why, _)
            | CollectorAnswer::Missing(why)
            | CollectorAnswer::Refused(why) => why,
        };
        // They are sums: the next report has them as well.
        self.metrics.lock().not_sent();
        self.report_once(url, &why);
    }

    /// Sends a request, again if the collector has no time for it; at the end of the process with short waits, and not
    /// where nothing answers.
    async fn post_with_retries(
        &self,
        url: &str,
        body: &Bytes,
        ending: &mut watch::Receiver<Option<Instant>>,
    ) -> CollectorAnswer {
        let (mut retry, mut ending_retry) = (FIRST_RETRY, FIRST_ENDING_RETRY);
        let mut attempt = 1;
        loop {
            let was_ending = ending.borrow().is_some();
            let answer = self.post(url, body.clone()).await;
            let asked = match &answer {
                CollectorAnswer::Later(_, wait) => *wait,
                CollectorAnswer::Missing(_) if !was_ending => None,
                CollectorAnswer::Accepted { .. }
                | CollectorAnswer::TooLarge
                | CollectorAnswer::Missing(_)
                | CollectorAnswer::Refused(_) => return answer,
            };
            let until = *ending.borrow();
            match until {
                None if attempt >= MAX_ATTEMPTS => return answer,
                None => {
                    tokio::select! {
                        () = sleep(asked.unwrap_or(retry)) => (),
                        _ = ending.wait_for(Option::is_some) => (),
                    }
                    (attempt, retry) = (attempt + 1, retry * 2);
                }
                Some(until) => {
                    let wait =
                        asked.unwrap_or_default().max(ending_retry).min(LONGEST_ENDING_RETRY);
                    if Instant::now() + wait > until {
                        return answer;
                    }
                    sleep(wait).await;
                    ending_retry *= 2;
                }
            }
        }
    }

    async fn post(&self, url: &str, body: Bytes) -> CollectorAnswer {
        let content_type = Secret::new(self.options.format.content_type().to_owned());
        let mut headers = vec![(Cow::Borrowed("content-type"), content_type)];
        for (name, value) in &self.options.headers {
            headers.push((Cow::Owned(name.clone()), value.clone()));
        }
        let request = HttpRequest { url: url.to_owned(), headers, body: Some(vec![body]) };
        let answered = async {
            let reply = self.http.send(request).await.map_err(|error| error.to_string())?;
            let status = reply.status;
            let retry_after = reply.header("retry-after").map(str::to_owned);
            let content_type = reply.header("content-type").map(str::to_owned);
            let body = reply.into_bytes(MAX_ANSWER_BYTES).await.unwrap_or_default();
            Ok(CollectorAnswer::from_response(
                status,
                (retry_after.as_deref(), content_type.as_deref()),
                self.options.format,
                &body,
            ))
        };
        match timeout(self.options.timeout, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => CollectorAnswer::Missing(why),
            Err(_late) => CollectorAnswer::Missing(SILENT.to_owned()),
        }
    }

    /// Says once what is wrong; the metrics have the number of spans that were dropped.
    fn report_once(&self, url: &str, why: &str) {
        if !self.has_said.swap(true, Ordering::Relaxed) {
            let host = host_of(url);
            (self.say)(&format!("telemetry does not reach `{host}` as a whole: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use gnoma_net::HttpOptions;
    use gnoma_testkit::server::{Gate, Reply, Server};

    use super::*;
    use crate::{
        log_record::{LogSeverity, MAX_LOGS},
        options::{ExportSettings, Format},
        queue::MAX_SPANS,
        span::{SpanId, SpanKind, TraceId},
    };

    fn span(number: u64) -> Span {
        Span {
            trace: TraceId([1; 16]),
            id: SpanId::from_random(number),
            parent: None,
            name: "chat m".to_owned(),
            kind: SpanKind::Client,
            start_ns: 1,
            end_ns: 2,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    type Sentences = Arc<Mutex<Vec<String>>>;

    fn exporter(url: &str) -> (Exporter, Sentences) {
        let settings = ExportSettings {
            endpoint: Some(url.to_owned()),
            format: Format::Json,
            headers: vec![("x-key".to_owned(), Secret::new("mine".to_owned()))],
        };
        let options = ExportOptions::new(&settings, |_| None).unwrap().unwrap();
        let sentences = Sentences::default();
        let say = Arc::clone(&sentences);
        let http = Http::new(HttpOptions::default());
        let exporter =
            Exporter::start(options, http, || 3, move |text| say.lock().push(text.to_owned()));
        (exporter, sentences)
    }

    fn span_count(server: &Server) -> usize {
        let spans = |request: gnoma_testkit::server::Request| {
            let json = request.json();
            let spans = json["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array();
            spans.map_or(0, Vec::len)
        };
        server.requests().into_iter().map(spans).sum()
    }

    #[tokio::test]
    async fn exporter_flushes_spans_and_metrics_at_shutdown() {
        let server = Server::start(|_| Reply::json(200, "{}")).unwrap();
        let (exporter, sentences) = exporter(&server.url());
        (0..700).for_each(|number| exporter.send_span(span(number)));
        exporter.add_count(Instrument::Turns, 1, Vec::new());
        exporter.finish().await;
        assert_eq!((span_count(&server), exporter.dropped_spans()), (700, 0));
        let requests = server.requests();
        let paths: Vec<_> = requests.iter().map(|it| it.path().to_owned()).collect();
        assert_eq!(paths, ["/v1/traces", "/v1/traces", "/v1/metrics"]);
        assert!(requests.iter().all(|it| it.header("x-key") == Some("mine")));
        assert!(requests.iter().all(|it| it.header("content-type") == Some("application/json")));
        assert_eq!(sentences.lock().len(), 0);
    }

    #[tokio::test]
    async fn log_records_are_limited_and_those_that_were_dropped_are_counted() {
        let server = Server::start(|_| Reply::json(200, "{}")).unwrap();
        let (exporter, _) = exporter(&server.url());
        for at_ns in 1..=MAX_LOGS as u64 + 8 {
            let (severity, attributes) = (LogSeverity::Info, Vec::new());
            let event = "gnoma.question";
            exporter.send_log(LogRecord { event, severity, at_ns, context: None, attributes });
        }
        exporter.finish().await;
        let requests = server.requests();
        let paths: Vec<_> = requests.iter().map(|it| it.path().to_owned()).collect();
        assert_eq!(paths, ["/v1/logs", "/v1/metrics"]);
        let logs = requests[0].json()["resourceLogs"][0]["scopeLogs"][0]["logRecords"].clone();
        assert_eq!(logs.as_array().unwrap().len(), MAX_LOGS);
        let metric =
            requests[1].json()["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0].clone();
        assert_eq!(metric["name"], "gnoma.telemetry.logs.dropped");
        assert_eq!(metric["sum"]["dataPoints"][0]["asInt"], "8");
    }

    #[tokio::test]
    async fn unresponsive_collector_never_blocks_a_turn() {
        let gate = Gate::default();
        let server = Server::start({
            let gate = gate.clone();
            move |_| Reply::json(200, "{}").with_gate(&gate)
        })
        .unwrap();
        let (exporter, sentences) = exporter(&server.url());
        (0..20_000).for_each(|number| exporter.send_span(span(number)));
        tokio::task::yield_now().await;
        assert!(exporter.dropped_spans() >= 20_000 - 2 * MAX_SPANS as u64);
        let ending = Instant::now();
        exporter.finish().await;
        assert!(ending.elapsed() < FLUSH_PATIENCE * 30, "{:?}", ending.elapsed());
        assert_eq!(exporter.dropped_spans(), 20_000, "nothing has arrived");
        assert!(sentences.lock()[0].ends_with("it does not answer"), "{sentences:?}");
    }

    #[tokio::test]
    async fn export_is_retried_after_http_503_or_429_of_the_collector() {
        let replies = [
            Reply::text(503, "").with_header("retry-after", "0"),
            Reply::text(429, "").with_header("retry-after", "0"),
            Reply::json(200, "{}"),
        ];
        let server = Server::start_with_replies(replies).unwrap();
        let (exporter, sentences) = exporter(&server.url());
        (0..512).for_each(|number| exporter.send_span(span(number)));
        let all_came = async {
            while span_count(&server) < 3 * 512 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all_came).await.unwrap();
        exporter.finish().await;
        assert_eq!((exporter.dropped_spans(), sentences.lock().len()), (0, 0));
    }

    #[tokio::test]
    async fn shutdown_flush_is_retried_while_the_collector_is_briefly_busy() {
        let replies = [
            Reply::text(503, ""),
            Reply::text(429, "").with_header("retry-after", "1"),
            Reply::json(200, "{}"),
            Reply::json(200, "{}"),
        ];
        let server = Server::start_with_replies(replies).unwrap();
        let (exporter, sentences) = exporter(&server.url());
        exporter.send_span(span(1));
        exporter.add_count(Instrument::Turns, 1, Vec::new());
        exporter.finish().await;
        assert_eq!((exporter.dropped_spans(), sentences.lock().len()), (0, 0));
        assert_eq!(server.requests().len(), 4);
    }

    #[tokio::test]
    async fn rejected_spans_are_counted_and_warned_about_once() {
        let partial = r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too\nold"}}"#;
        for (status, body, dropped, said) in [
            (400, "", 5, "it refuses the data (status 400)"),
            (302, "", 5, "it redirects (status 302)"),
            (413, "", 5, "a span is too large for it (status 413)"),
            (503, "", 5, "it answers with status 503"),
            (200, partial, 2, "it rejects spans: too old"),
            (200, "<html>", 5, "it answers with application/json, as no collector does"),
        ] {
            let server = Server::start(move |_| Reply::json(status, body)).unwrap();
            let address = server.url().replace("http://", "http://user:secret@");
            let (exporter, sentences) = exporter(&address);
            (0..5).for_each(|number| exporter.send_span(span(number)));
            exporter.add_count(Instrument::Turns, 1, Vec::new());
            exporter.finish().await;
            assert_eq!(exporter.dropped_spans(), dropped, "{status}");
            let expected =
                format!("telemetry does not reach `{}` as a whole: {said}", server.url());
            assert_eq!(*sentences.lock(), [expected]);
        }
        let (exporter, sentences) = exporter(&Server::unused_address().unwrap());
        exporter.send_span(span(1));
        exporter.finish().await;
        assert_eq!((exporter.dropped_spans(), sentences.lock().len()), (1, 1));
    }

    #[tokio::test]
    async fn dropped_spans_are_among_the_metrics() {
        let server = Server::start(|request| match request.path() {
            "/v1/traces" => Reply::text(400, ""),
            _ => Reply::json(200, "{}"),
        });
        let server = server.unwrap();
        let (exporter, _sentences) = exporter(&server.url());
        (0..3).for_each(|number| exporter.send_span(span(number)));
        exporter.finish().await;
        let metrics = server.requests().pop().unwrap().json();
        let metric = &metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
        assert_eq!(metric["name"], "gnoma.telemetry.spans.dropped");
        assert_eq!(metric["sum"]["dataPoints"][0]["asInt"], "3");
    }
}
