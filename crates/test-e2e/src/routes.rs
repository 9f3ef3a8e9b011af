//! Every route of the service. `openapi.rs` compares it with the document, the other topics walk it.

/// A route.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The path, with `{id}` in it.
    pub path: &'static str,
    /// What it takes, but for HEAD, which comes with GET.
    pub methods: &'static [&'static str],
    /// Whether it needs a key.
    pub key: bool,
    /// Whether it is in the OpenAPI document.
    pub described: bool,
    /// Whether the answer to a GET goes on until the client has enough.
    pub endless: bool,
}

const fn route(path: &'static str, methods: &'static [&'static str]) -> Route {
    Route {
        path,
        methods,
        key: true,
        described: true,
        endless: false,
    }
}

const fn open(path: &'static str) -> Route {
    Route {
        key: false,
        ..route(path, &["GET"])
    }
}

const fn refused(path: &'static str) -> Route {
    Route {
        described: false,
        ..route(path, &["POST"])
    }
}

/// All of them.
pub const ROUTES: &[Route] = &[
    route("/v1/videos", &["GET", "POST"]),
    route("/v1/videos/{id}", &["DELETE", "GET"]),
    Route {
        endless: true,
        ..route("/v1/videos/events", &["GET"])
    },
    route("/v1/videos/{id}/events", &["GET"]),
    route("/v1/videos/{id}/cancel", &["POST"]),
    route("/v1/videos/cancel", &["POST"]),
    route("/v1/videos/{id}/content", &["GET"]),
    route("/v1/videos/edits", &["POST"]),
    route("/v1/videos/{id}/remix", &["POST"]),
    route("/v1/files", &["GET", "POST"]),
    route("/v1/files/{id}", &["DELETE", "GET"]),
    route("/v1/files/{id}/content", &["GET"]),
    route("/v1/models", &["GET"]),
    route("/v1/models/{id}", &["GET"]),
    route("/v1/usage", &["GET"]),
    route("/v1/operations", &["GET"]),
    route("/v1/operations/pause", &["POST"]),
    route("/v1/operations/resume", &["POST"]),
    open("/healthz"),
    open("/readyz"),
    Route {
        described: false,
        ..open("/openapi.json")
    },
    refused("/v1/videos/extensions"),
    refused("/v1/videos/characters"),
];

/// A well-formed id that no task has.
pub const NO_TASK: &str = "video_01k3v8r2n8p5c1w9g7d4x6m2ta";

impl Route {
    /// The path with the id of a task in it, or with that of a file of the same number.
    pub fn with(&self, id: &str) -> String {
        let is_of_files = self.path.starts_with("/v1/files/");
        let id = if is_of_files {
            id.replace("video_", "file_")
        } else {
            id.to_owned()
        };
        self.path.replace("{id}", &id)
    }
}
