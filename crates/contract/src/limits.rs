//! Every bound of the public contract, in one table. A constant that is not here is not a limit;
//! the table in `docs/api.md` is compared with [`TABLE`] by a test. What an operator may change
//! is configuration, whose defaults refer to this file.

macro_rules! limits {
    ($($name:ident: $kind:ty = $value:expr, $unit:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] #[doc = concat!("\n\nUnit: ", $unit, ".")] pub const $name: $kind = $value;)*

        /// One row per limit: name, value, unit, meaning.
        pub const TABLE: &[Limit] = &[
            $(Limit { name: stringify!($name), value: $value as f64, unit: $unit, meaning: $meaning },)*
        ];
    };
}

/// A row of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The constant's name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// The unit that is counted.
    pub unit: &'static str,
    /// The thing that is bounded.
    pub meaning: &'static str,
}

limits! {
    BODY_BYTES_MAX: usize = 1 << 20, "bytes", "Largest request body";
    FORM_PARTS_MAX: usize = 200, "parts", "Most parts of a multipart body";
    REQUEST_LINE_BYTES_MAX: usize = 8 * 1024, "bytes", "Longest request line: method, URL and version";
    HEADERS_MAX: usize = 100, "headers", "Most headers of a request";
    HEADER_BYTES_MAX: usize = 32 * 1024, "bytes", "Largest sum of a request's header names and values";
    PROMPT_CHARS_MAX: usize = 5_000, "characters", "Longest prompt, after trimming";
    NEGATIVE_PROMPT_CHARS_MAX: usize = 2_500, "characters", "Longest negative prompt, after trimming";
    SECONDS_MIN: u32 = 2, "seconds", "Shortest video";
    SECONDS_MAX: u32 = 15, "seconds", "Longest video";
    SECONDS_DEFAULT: u32 = 5, "seconds", "Length when none is asked for";
    SIDE_MIN: u32 = 256, "pixels", "Shortest side of a video";
    SIDE_MAX: u32 = 2_520, "pixels", "Longest side of a video";
    PIXELS_MAX: u64 = 2_721_600, "pixels", "Largest frame of a video: that of 2520x1080";
    SEED_MAX: u32 = u32::MAX, "", "Largest seed";
    REFERENCES_MAX: usize = 12, "items", "Most reference items of one request";
    REFERENCE_IMAGE_BYTES_MAX: u64 = 30_000_000, "bytes", "Largest file of a reference image";
    REFERENCE_IMAGE_SIDE_MIN: u32 = 256, "pixels", "Shortest side of a reference image";
    REFERENCE_IMAGE_SIDE_MAX: u32 = 6_000, "pixels", "Longest side of a reference image";
    REFERENCE_IMAGE_RATIO_MIN: f64 = 0.4, "width / height", "Narrowest reference image";
    REFERENCE_IMAGE_RATIO_MAX: f64 = 2.5, "width / height", "Widest reference image";
    REFERENCE_AUDIO_BYTES_MAX: u64 = 15_000_000, "bytes", "Largest file of reference sound";
    REFERENCE_AUDIO_SECONDS_MIN: f64 = 1.0, "seconds", "Shortest reference sound";
    REFERENCE_AUDIO_SECONDS_MAX: f64 = 15.0, "seconds", "Longest reference sound, one or all of a request together";
    REFERENCE_LOOKUP_SECONDS: u64 = 10, "seconds", "How long looking up a reference's host name may take";
    REFERENCE_CONNECT_SECONDS: u64 = 10, "seconds", "How long connecting to a reference's host may take";
    REFERENCE_TURN_SECONDS: u64 = 60, "seconds", "How long one attempt at a fetch waits for its turn at a busy host";
    REFERENCE_FETCH_SECONDS: u64 = 60, "seconds", "How long the whole fetch of a reference may take";
    REFERENCE_FETCH_BASE_SECONDS: u64 = 10, "seconds", "Time for the body of a reference, on top of its declared size at the least rate";
    REFERENCE_FETCH_UNSIZED_SECONDS: u64 = 30, "seconds", "How long the whole fetch of a reference may take while its size is not declared";
    REFERENCE_RATE_WINDOW_SECONDS: u64 = 10, "seconds", "Time in which a reference must bring its least bytes";
    REFERENCE_RATE_BYTES_MIN: u64 = 327_680, "bytes", "Least bytes of a reference in that time: 32 KiB a second";
    REFERENCE_REDIRECTS_MAX: usize = 5, "redirects", "Most redirects on the way to a reference";
    FETCHES_MAX: usize = 16, "tasks", "Most tasks whose references are fetched at a time";
    FETCHES_PER_PROJECT_MAX: usize = 4, "tasks", "Most tasks of one project whose references are fetched at a time";
    REFERENCE_DECODE_BYTES_MAX: u64 = 285_000_000, "bytes", "Most memory that reading one reference image may take";
    URL_BYTES_MAX: usize = 2_048, "bytes", "Longest URL, as UTF-8";
    REQUEST_TEXT_BYTES_MAX: usize = 64 * 1024, "bytes", "Longest text of a request in all, as UTF-8: prompts, URLs and metadata";
    METADATA_PAIRS_MAX: usize = 16, "pairs", "Most metadata pairs";
    METADATA_KEY_CHARS_MAX: usize = 64, "characters", "Longest metadata key";
    METADATA_VALUE_CHARS_MAX: usize = 512, "characters", "Longest metadata value";
    MODEL_CHARS_MAX: usize = 128, "characters", "Longest model name";
    WARNINGS_MAX: usize = 16, "warnings", "Most warnings of a task; further ones are left out";
    PAGE_LIMIT_MIN: usize = 1, "tasks", "Smallest page of a list";
    PAGE_LIMIT_MAX: usize = 100, "tasks", "Largest page of a list";
    PAGE_LIMIT_DEFAULT: usize = 20, "tasks", "Page of a list when none is asked for";
    PAGE_BYTES_MAX: usize = 1 << 20, "bytes", "Most text in a page of several tasks; a page ends early rather than exceed it";
    RENDERED_BYTES_MAX: usize = 16 << 20, "bytes", "Most memory for task objects that are kept as JSON for the next query";
    WAIT_SECONDS_MAX: u64 = 60, "seconds", "Longest wait for a change of a task, by Prefer: wait";
    WAITS_MAX: usize = 10_000, "requests", "Most requests that wait for a change; a further one is answered at once";
    WAITS_PER_KEY_MAX: usize = 1_000, "requests", "Most requests of one API key that wait for a change";
    EVENT_STREAMS_MAX: usize = 20_000, "streams", "Most open event streams";
    EVENT_STREAMS_PER_KEY_MAX: usize = 1_000, "streams", "Most open event streams of one API key";
    EVENT_KEEP_ALIVE_SECONDS: u64 = 15, "seconds", "Time between two signs of life of an event stream, and between two looks at its key";
    EVENTS_UNREAD_MAX: usize = 1_024, "tasks", "Most tasks with updates that an event stream's client has not read; beyond it the stream ends, to be resumed";
    EVENTS_RESUMED_MAX: usize = 1_000, "tasks", "Most ended tasks that a resumed event stream begins with";
    IDEMPOTENCY_KEY_CHARS_MAX: usize = 255, "characters", "Longest Idempotency-Key";
    IDEMPOTENCY_HOURS: u64 = 24, "hours", "How long an Idempotency-Key is remembered";
    RETRY_AFTER_SECONDS_MAX: u64 = 120, "seconds", "Longest Retry-After ever sent";
    POLICY_QUESTIONS_MAX: usize = 64, "submits", "Most submits about which the operator's policy service is asked at a time";
    POLICY_QUESTIONS_PER_PROJECT_MAX: usize = 8, "submits", "Most submits of one project about which it is asked at a time";
    POLICY_ANSWER_BYTES_MAX: usize = 64 * 1024, "bytes", "Largest answer of the policy service";
    POLICY_REASON_CHARS_MAX: usize = 500, "characters", "Longest reason of a refusal by policy; a longer one is cut";
    POLICY_RESULT_SECONDS: u64 = 120, "seconds", "How long the policy service is asked about one result until it answers";
    ATTEMPTS_MAX: u32 = 3, "attempts", "Runs of one task before it fails with worker_lost";
    WEBHOOK_ATTEMPTS_MAX: u32 = 11, "attempts", "Most attempts at delivering an event to a webhook, over about 24 hours";
    WEBHOOK_SECONDS: u64 = 10, "seconds", "How long one attempt at a delivery may take, from the look-up to the head of the answer";
    WEBHOOK_DELIVERIES_MAX: usize = 64, "deliveries", "Most deliveries that one process makes at a time";
    WEBHOOK_DELIVERIES_EACH_MAX: usize = 4, "deliveries", "Most deliveries to one webhook at a time";
    WEBHOOK_LOG_MAX: u64 = 10_000, "deliveries", "Most deliveries of a webhook that are kept, the newest; older ones that were delivered or given up are forgotten";
    WEBHOOK_ROTATION_HOURS: u64 = 24, "hours", "How long deliveries are also signed with the secret that a rotation replaced";
    TRACE_SPANS_MAX: usize = 2_048, "spans", "Most spans that wait to be exported to the collector of traces; further ones are dropped";
    WEBHOOKS_MAX: usize = 16, "webhooks", "Most webhooks of a project";
    RETENTION_HOURS: u64 = 168, "hours", "How long a finished task and its files are kept";
    CLOCK_SETTLE_SECONDS: u64 = 600, "seconds", "How long wall and monotonic clock must have agreed before anything ends by time";
    CLOCK_STEP_SECONDS: u64 = 60, "seconds", "Difference from which they do not agree";
    KEY_LOG_ENTRIES_MAX: usize = 10_000, "entries", "Most entries of the log of key changes; the oldest go first";
    OVERVIEW_RUNNING_MAX: usize = 200, "tasks", "Most running tasks that operators are shown";
    TOMBSTONE_DAYS: u64 = 30, "days", "How long an expired task still answers 410";
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
