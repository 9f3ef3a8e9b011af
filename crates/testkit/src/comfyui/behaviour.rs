//! How a server behaves: what a test may change at any time.

/// How jobs fare, those at work included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Works {
    /// They are pending at the first look, run at the second and are done at the third.
    Well,
    /// They begin and never end.
    Endless,
    /// They begin and fail with an exception of this type.
    Badly(&'static str),
}

/// A server's behaviour.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// How jobs fare.
    pub works: Works,
    /// Whether it takes connections and never answers.
    pub is_silent: bool,
    /// The bytes of every film.
    pub film: Vec<u8>,
    /// The key of the outputs: `images` of core nodes, `gifs` of VideoHelperSuite.
    pub key: &'static str,
    /// Number of looks into the history of a completed job that come too early.
    pub lag: u32,
    /// Whether it has `GET /api/jobs/{id}`, as since 0.6.0.
    pub has_jobs: bool,
    /// Whether it has `POST /api/jobs/{id}/cancel`, as since 0.26.0.
    pub has_cancel: bool,
    /// Whether it refuses a second job of the same name with 409; otherwise that runs too.
    pub refuses_duplicates: bool,
    /// Number of submits that it takes and does not answer.
    pub unanswered: u32,
    /// Number of submits that it neither takes nor answers.
    pub lost: u32,
    /// Whether it gives jobs names of its own, as before 0.3.45.
    pub names_jobs: bool,
    /// Classes that it lacks.
    pub lacks: Vec<&'static str>,
    /// The models that it has.
    pub models: Vec<&'static str>,
    /// A header without whose value it answers 401.
    pub wants: Option<(&'static str, &'static str)>,
    /// Bytes of its device that it holds.
    pub held: u64,
    /// Bytes of its device that it holds beside PyTorch, as DynamicVRAM does.
    pub unseen: u64,
    /// Number of bytes that it frees at each look once it does; `None`: all of them. PyTorch returns them at the end.
    pub frees_at_a_time: Option<u64>,
    /// Bytes of its device in all; `None`: it has no device but the processor.
    pub device_bytes: Option<u64>,
    /// Number of looks at its memory after it was told to free it until it has; `None`: it never does.
    pub frees_after: Option<u32>,
    /// Number of looks at its queue for which it runs a job of somebody else. Until then it frees nothing.
    pub works_for: u32,
    /// Number of looks at its memory that it answers with an error.
    pub fails: u32,
    /// Its version.
    pub version: &'static str,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            works: Works::Well,
            is_silent: false,
            film: b"\0\0\0\x18ftypisom".to_vec(),
            key: "images",
            lag: 0,
            has_jobs: true,
            has_cancel: true,
            refuses_duplicates: false,
            unanswered: 0,
            lost: 0,
            names_jobs: false,
            lacks: Vec::new(),
            models: vec!["model.safetensors"],
            wants: None,
            held: 0,
            unseen: 0,
            frees_at_a_time: None,
            device_bytes: Some(80 << 30),
            frees_after: Some(0),
            works_for: 0,
            fails: 0,
            version: "0.33.0",
        }
    }
}
