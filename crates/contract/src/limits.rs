//! Every limit of the public contract, in one table. A test compares the table in `docs/api.md`
//! with [`TABLE`]. Limits that an operator may change are configuration, whose defaults refer to
//! this file.

// Constants for code, rows for the documents: a limit that is not in the table does not exist, and
// a test compares the table with the page.
macro_rules! limits {
    ($($name:ident: $kind:ty = $value:expr, $unit:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub const $name: $kind = $value;)*

        /// One row per limit: name, value, unit, meaning.
        pub const TABLE: &[LimitRow] = &[
            $(LimitRow { name: stringify!($name), value: $value as f64, unit: $unit, meaning: $meaning },)*
        ];
    };
}

/// A row of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitRow {
    /// The constant's name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What it limits.
    pub meaning: &'static str,
}

limits! {
    BODY_BYTES_MAX: usize = 1 << 20, "bytes", "Largest request body";
    JSON_VALUES_MAX: usize = 256, "values", "Maximum number of values in a JSON body: fields, list items and pairs, at all levels";
    FORM_PARTS_MAX: usize = 200, "parts", "Maximum number of parts in a multipart body";
    REQUEST_LINE_BYTES_MAX: usize = 8 * 1024, "bytes", "Longest request line: method, URL and version";
    HEADERS_MAX: usize = 100, "headers", "Maximum number of request headers";
    HEADER_BYTES_MAX: usize = 32 * 1024, "bytes", "Maximum total size of a request's header names and values";
    PROMPT_CHARS_MAX: usize = 5_000, "characters", "Longest prompt, after trimming";
    NEGATIVE_PROMPT_CHARS_MAX: usize = 2_500, "characters", "Longest negative prompt, after trimming";
    SECONDS_MIN: u32 = 2, "seconds", "Shortest video";
    SECONDS_MAX: u32 = 15, "seconds", "Longest video";
    SECONDS_DEFAULT: u32 = 5, "seconds", "Default length";
    SIDE_MIN: u32 = 256, "pixels", "Shortest side of a video";
    SIDE_MAX: u32 = 2_520, "pixels", "Longest side of a video";
    PIXELS_MAX: u64 = 2_721_600, "pixels", "Largest frame of a video: 2520x1080";
    SEED_MAX: u32 = u32::MAX, "", "Largest seed";
    REFERENCES_MAX: usize = 12, "items", "Maximum number of reference items in one request";
    REFERENCE_IMAGE_BYTES_MAX: u64 = 30_000_000, "bytes", "Largest file of a reference image";
    REFERENCE_IMAGE_SIDE_MIN: u32 = 256, "pixels", "Shortest side of a reference image";
    REFERENCE_IMAGE_SIDE_MAX: u32 = 6_000, "pixels", "Longest side of a reference image";
    REFERENCE_IMAGE_RATIO_MIN: f64 = 0.4, "width / height", "Narrowest reference image";
    REFERENCE_IMAGE_RATIO_MAX: f64 = 2.5, "width / height", "Widest reference image";
    REFERENCE_AUDIO_BYTES_MAX: u64 = 15_000_000, "bytes", "Largest file of reference sound";
    REFERENCE_AUDIO_SECONDS_MIN: f64 = 1.0, "seconds", "Shortest reference sound";
    REFERENCE_AUDIO_SECONDS_MAX: f64 = 15.0, "seconds", "Longest reference sound, alone or all of a request together";
    REFERENCE_LOOKUP_SECONDS: u64 = 10, "seconds", "Maximum time to resolve a reference's host name";
    REFERENCE_CONNECT_SECONDS: u64 = 10, "seconds", "Maximum time to connect to a reference's host";
    REFERENCE_TURN_SECONDS: u64 = 60, "seconds", "Maximum wait of one fetch attempt for its turn at a busy host";
    REFERENCE_FETCH_SECONDS: u64 = 60, "seconds", "Maximum time for the whole fetch of a reference";
    REFERENCE_FETCH_BASE_SECONDS: u64 = 10, "seconds", "Time for the body of a reference, in addition to its declared size at the minimum rate";
    REFERENCE_FETCH_UNSIZED_SECONDS: u64 = 30, "seconds", "Maximum time for the whole fetch of a reference whose size is not declared";
    REFERENCE_RATE_WINDOW_SECONDS: u64 = 10, "seconds", "Period in which a reference must deliver its minimum bytes";
    REFERENCE_RATE_BYTES_MIN: u64 = 327_680, "bytes", "Minimum bytes of a reference in that period: 32 KiB per second";
    REFERENCE_REDIRECTS_MAX: usize = 5, "redirects", "Maximum number of redirects for a reference";
    REFERENCE_TRIES_MAX: u32 = 4, "tries", "Maximum number of tries to fetch the references of a task from hosts that fail for a moment";
    REFERENCE_PAUSE_SECONDS_MAX: u64 = 60, "seconds", "Longest pause before the next try that a reference's host may ask for";
    FILE_HOURS_DEFAULT: u64 = 24, "hours", "Default lifetime of an uploaded file";
    FILE_SECONDS_MIN: u64 = 3_600, "seconds", "Shortest lifetime of an uploaded file";
    FILE_SECONDS_MAX: u64 = 2_592_000, "seconds", "Longest lifetime of an uploaded file";
    FILES_PER_PROJECT_MAX: u64 = 1_000, "files", "Maximum number of uploaded files of a project";
    FILE_NAME_CHARS_MAX: usize = 255, "characters", "Longest name of an uploaded file; longer ones are truncated";
    FILE_PURPOSE_CHARS_MAX: usize = 64, "characters", "Longest purpose of an uploaded file";
    UPLOAD_SECONDS: u64 = 300, "seconds", "Maximum time for the body of an upload; it must also keep the minimum rate of references";
    UPLOAD_TURN_SECONDS: u64 = 30, "seconds", "Maximum wait of an uploaded file for its check";
    UPLOADS_MAX: usize = 16, "uploads", "Maximum number of uploads at a time, in one process";
    UPLOADS_PER_PROJECT_MAX: usize = 4, "uploads", "Maximum number of uploads of one project at a time, in one process";
    FETCHES_MAX: usize = 16, "tasks", "Maximum number of tasks whose references are fetched at a time";
    FETCHES_PER_PROJECT_MAX: usize = 4, "tasks", "Maximum number of tasks of one project whose references are fetched at a time";
    REFERENCE_DECODE_BYTES_MAX: u64 = 285_000_000, "bytes", "Maximum memory for decoding one reference image";
    URL_BYTES_MAX: usize = 2_048, "bytes", "Longest URL, as UTF-8";
    REQUEST_TEXT_BYTES_MAX: usize = 64 * 1024, "bytes", "Maximum total text of a request, as UTF-8: prompts, URLs and metadata";
    METADATA_PAIRS_MAX: usize = 16, "pairs", "Maximum number of metadata pairs";
    METADATA_KEY_CHARS_MAX: usize = 64, "characters", "Longest metadata key";
    METADATA_VALUE_CHARS_MAX: usize = 512, "characters", "Longest metadata value";
    MODEL_CHARS_MAX: usize = 128, "characters", "Longest model name";
    WARNINGS_MAX: usize = 16, "warnings", "Maximum number of warnings on a task; further ones are omitted";
    PAGE_LIMIT_MIN: usize = 1, "tasks", "Smallest page of a list";
    PAGE_LIMIT_MAX: usize = 100, "tasks", "Largest page of a list";
    PAGE_LIMIT_DEFAULT: usize = 20, "tasks", "Default page of a list";
    PAGE_BYTES_MAX: usize = 1 << 20, "bytes", "Maximum text in a page of several tasks; a page ends early rather than exceed it";
    RENDERED_BYTES_MAX: usize = 16 << 20, "bytes", "Maximum memory for task objects cached as JSON";
    WAIT_SECONDS_MAX: u64 = 60, "seconds", "Longest wait for a change of a task, with Prefer: wait";
    WAITS_MAX: usize = 10_000, "requests", "Maximum number of requests that wait for a change; further ones are answered at once";
    WAITS_PER_KEY_MAX: usize = 1_000, "requests", "Maximum number of requests of one API key that wait for a change";
    EVENT_STREAMS_MAX: usize = 20_000, "streams", "Maximum number of open event streams";
    EVENT_STREAMS_PER_KEY_MAX: usize = 1_000, "streams", "Maximum number of open event streams of one API key";
    PROJECT_EVENT_STREAMS_PER_KEY_MAX: usize = 16, "streams", "Maximum number of open event streams of one API key that follow a whole project";
    EVENT_RENDERINGS_BYTES_MAX: usize = 1 << 20, "bytes", "Maximum memory for task objects that the event streams of a project share";
    EVENT_KEEP_ALIVE_SECONDS: u64 = 15, "seconds", "Interval of keep-alives on an event stream";
    EVENTS_UNREAD_MAX: usize = 1_024, "tasks", "Maximum number of tasks with updates that an event stream's client has not read; beyond it the stream ends, and the client may resume it";
    EVENTS_RESUMED_MAX: usize = 1_000, "tasks", "Maximum number of ended tasks at the start of a resumed event stream";
    IDEMPOTENCY_KEY_CHARS_MAX: usize = 255, "characters", "Longest Idempotency-Key";
    IDEMPOTENCY_HOURS: u64 = 24, "hours", "Lifetime of an Idempotency-Key";
    USAGE_DAYS_MAX: u64 = 366, "days", "Maximum number of days of one request for usage";
    RETRY_AFTER_SECONDS_MAX: u64 = 120, "seconds", "Largest Retry-After, except of a used-up budget";
    POLICY_QUESTIONS_MAX: usize = 64, "submits", "Maximum number of submits at a time that wait for the operator's policy service";
    POLICY_QUESTIONS_PER_PROJECT_MAX: usize = 8, "submits", "Maximum number of submits of one project at a time that wait for it";
    POLICY_ANSWER_BYTES_MAX: usize = 64 * 1024, "bytes", "Largest answer of the policy service";
    POLICY_REASON_CHARS_MAX: usize = 500, "characters", "Longest reason of a refusal by policy; longer ones are truncated";
    POLICY_RESULT_SECONDS: u64 = 120, "seconds", "Maximum time to ask the policy service about one result";
    ENGINE_MESSAGES_MAX: u64 = 10_000, "messages", "Maximum number of messages of an engine process in a job, in addition to those of its seconds";
    ENGINE_MESSAGES_PER_SECOND_MAX: u64 = 10_000, "messages", "Further messages of an engine process for each second of the job";
    ENGINE_MESSAGE_CHARS_MAX: usize = 500, "characters", "Longest message of an engine process in the log; longer ones are truncated";
    ATTEMPTS_MAX: u32 = 3, "attempts", "Runs of one task before it fails with worker_lost";
    WEBHOOK_ATTEMPTS_MAX: u32 = 11, "attempts", "Maximum number of attempts to deliver an event to a webhook, over about 24 hours";
    WEBHOOK_SECONDS: u64 = 10, "seconds", "Maximum time of one delivery attempt, from the DNS lookup to the headers of the answer";
    WEBHOOK_DELIVERIES_MAX: usize = 64, "deliveries", "Maximum number of deliveries at a time, in one process";
    WEBHOOK_DELIVERIES_EACH_MAX: usize = 4, "deliveries", "Maximum number of deliveries to one webhook at a time";
    WEBHOOK_LOG_MAX: u64 = 10_000, "deliveries", "Number of deliveries kept for each webhook; older ones that were delivered or given up are deleted";
    WEBHOOK_PENDING_MAX: u64 = 10_000, "deliveries", "Number of pending deliveries kept for each webhook; further ones that have been due longest are dropped";
    WEBHOOK_ROTATION_HOURS: u64 = 24, "hours", "How long deliveries are also signed with the old secret after a rotation";
    TRACE_SPANS_MAX: usize = 2_048, "spans", "Maximum number of spans that wait for export to the trace collector; further ones are dropped";
    WEBHOOKS_MAX: usize = 16, "webhooks", "Maximum number of webhooks of a project";
    RETENTION_HOURS: u64 = 168, "hours", "Retention of a completed task and its files";
    FAILED_RETENTION_HOURS: u64 = 24, "hours", "Retention of a failed or cancelled task";
    STORE_ANSWER_SECONDS: u64 = 6, "seconds", "How long a submit, a cancel or a delete waits for a PostgreSQL server that does not answer";
    CLOCK_SETTLE_SECONDS: u64 = 600, "seconds", "How long the wall clock and the monotonic clock must agree before anything expires";
    CLOCK_STEP_SECONDS: u64 = 60, "seconds", "Difference at which they disagree";
    KEY_LOG_ENTRIES_MAX: usize = 10_000, "entries", "Maximum number of entries in the log of key changes; the oldest are deleted first";
    PAUSE_REASON_CHARS_MAX: usize = 200, "characters", "Longest reason of a pause, after trimming";
    SIGN_IN_SECONDS: u64 = 600, "seconds", "Lifetime of the link that signs a browser in to Studio";
    SIGN_IN_ATTEMPTS_PER_MINUTE: u32 = 30, "attempts", "Maximum number of attempts to sign in by a link, per minute and client address";
    OVERVIEW_RUNNING_MAX: usize = 200, "tasks", "Maximum number of running tasks shown to operators";
    TOMBSTONE_DAYS: u64 = 30, "days", "How long requests for an expired task get 410";
    POLL_AGE_MS: u64 = 200, "milliseconds", "How far a poll of an unfinished task may be behind a change that another process has made, over PostgreSQL";
    CONNECTION_FIRST_BYTE_SECONDS: u64 = 10, "seconds", "Maximum time until a new connection sends its first byte";
    CONNECTION_HEADER_SECONDS: u64 = 15, "seconds", "Maximum time from the first byte of a request to the end of its headers, and for a TLS handshake";
    CONNECTION_IDLE_SECONDS: u64 = 75, "seconds", "Maximum silence of a connection between two requests";
    CONNECTION_WRITE_SECONDS: u64 = 60, "seconds", "Maximum time in which a client reads the next 16 KiB of a response (of a list or a task an eighth of it, if that is more)";
    REFERENCE_HOST_CONNECTIONS_MAX: u64 = 4, "connections", "Maximum number of connections to one host for references, by name and by address";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_says_what_it_bounds() {
        for limit in TABLE {
            assert!(
                limit.meaning.len() > 5 && limit.value > 0.0,
                "{}",
                limit.name
            );
        }
    }
}
