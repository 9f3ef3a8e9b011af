//! State shared by all endpoints. The binary builds it; endpoints hold it by reference count.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kinora_blobs::sign::UrlSigner;
use kinora_blobs::{BlobStore, DiskReserve};
use kinora_contract::reference_url::AllowedPorts;
use kinora_contract::{
    Clock, EntropySource, FileObject, ModelCatalog, ResultLinks, Status, Task, TaskId, VideoObject,
    WorkerReadiness, uploaded,
};
use kinora_store::{
    Budget, DeliveryStore, FileStore, KeyStore, NewKey, OperatorStore, PauseStore, QueueBounds,
    SubmitBudgets, TaskStore, UploadedFile,
};
use kinora_traces::TaskTracer;
use tokio_util::sync::CancellationToken;

use crate::availability::ModelAvailability;
use crate::error::ApiError;
use crate::object_cache::ObjectCache;
use crate::policy_gate::PolicyGate;
use crate::request_turns::RequestTurns;
use crate::result_files::{LostFiles, ResultVariant};
use crate::sign_in_link::SignInLink;
use crate::uploads::Uploads;
use crate::watch::TaskWatch;

/// The service as its endpoints see it.
#[derive(Clone, Debug)]
pub struct Api {
    /// Tasks.
    pub tasks: Arc<dyn TaskStore>,
    /// Uploaded files.
    pub files: Arc<dyn FileStore>,
    /// API keys.
    pub keys: Arc<dyn KeyStore>,
    /// Webhooks, and the deliveries to them.
    pub webhooks: Arc<dyn DeliveryStore>,
    /// Data for operators.
    pub operations: Arc<dyn OperatorStore>,
    /// Pauses of models.
    pub pauses: Arc<dyn PauseStore>,
    /// Results.
    pub blobs: Arc<dyn BlobStore>,
    /// The models that may be requested.
    pub catalog: Arc<ModelCatalog>,
    /// Which of these models a living worker serves, and which are paused.
    pub availability: ModelAvailability,
    /// Signs and verifies result URLs.
    pub signer: Arc<UrlSigner>,
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub entropy: Arc<dyn EntropySource>,
    /// Operator settings.
    pub settings: Arc<ApiSettings>,
    /// Asks the operator's policy about submits, if there is one.
    pub gate: Option<PolicyGate>,
    /// Starts the traces of tasks.
    pub tracer: TaskTracer,
    /// Uploads in progress.
    pub uploads: Uploads,
    /// Schedules the reading of lists.
    pub turns: RequestTurns,
    /// Cached task objects.
    pub rendered: ObjectCache,
    /// Clients that wait for changes.
    pub watch: TaskWatch,
    /// Whether accepted tasks can run, as reported by the worker.
    pub readiness: WorkerReadiness,
    /// The link by which a browser may sign in, if this process has printed one.
    pub sign_in: Option<Arc<SignInLink>>,
    /// Result files that are missing or truncated.
    pub lost: LostFiles,
    /// Cancelled when the process stops: from then on submits are refused.
    pub stopping: CancellationToken,
}

/// The service, shared by all endpoints.
pub(crate) type SharedApi = Arc<Api>;

/// What the tasks of each project may cost.
#[derive(Clone, Debug, Default)]
pub struct ProjectBudgets {
    /// For a project without a budget of its own.
    pub default: Budget,
    /// By project.
    pub named: BTreeMap<String, Budget>,
}

/// Operator settings.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// Prefix of result URLs, without a trailing slash.
    pub base_url: String,
    /// Maximum number of waiting tasks, all projects together.
    pub waiting_max: u64,
    /// Maximum number of unfinished tasks per project, unless the key has its own.
    pub project_unfinished_max: u64,
    /// Maximum number of unexpired tasks per project.
    pub project_tasks_max: u64,
    /// Maximum stored bytes per project.
    pub project_bytes_max: u64,
    /// Maximum stored bytes, all projects together.
    pub bytes_max: u64,
    /// What the tasks of each project may cost.
    pub budgets: ProjectBudgets,
    /// Disk space that submits must leave for accepted tasks.
    pub reserve: DiskReserve,
    /// Ports that reference URLs may use.
    pub reference_ports: AllowedPorts,
    /// How long the service keeps failed and cancelled tasks, in milliseconds.
    pub failed_retention_ms: u64,
    /// Whether to redirect downloads to the result store, if it can sign URLs.
    pub redirects: bool,
    /// Whether the form of a submit may have files.
    pub form_uploads: bool,
    /// Whether to serve the web page.
    pub studio: bool,
}

impl Api {
    /// Random bytes.
    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], ApiError> {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes).map_err(ApiError::internal)?;
        Ok(bytes)
    }

    /// Refuses tasks and files that this process cannot store now.
    pub(crate) fn check_accepts(&self) -> Result<(), ApiError> {
        if self.stopping.is_cancelled() {
            let message = "The service is stopping; send the request again soon.";
            return Err(ApiError::shutting_down(message));
        }
        if !self.settings.reserve.has_room() {
            return Err(ApiError::storage("disk space below the reserve"));
        }
        Ok(())
    }

    /// The limits on a key's submits.
    pub(crate) fn bounds(&self, unfinished_max: Option<u32>) -> QueueBounds {
        QueueBounds {
            waiting_max: self.settings.waiting_max,
            project_unfinished_max: unfinished_max
                .map_or(self.settings.project_unfinished_max, u64::from),
            project_tasks_max: self.settings.project_tasks_max,
            project_bytes_max: self.settings.project_bytes_max,
            bytes_max: self.settings.bytes_max,
        }
    }

    /// The budgets that a key's submits count against.
    pub(crate) fn budgets(&self, key: &NewKey) -> SubmitBudgets {
        let ProjectBudgets { default, named } = &self.settings.budgets;
        SubmitBudgets {
            key: key.id.clone(),
            of_key: key.budget,
            of_project: *named.get(&key.project).unwrap_or(default),
        }
    }

    /// The task with this id in this project; refused if there is none.
    pub(crate) async fn find_task(&self, project: &str, id: TaskId) -> Result<Arc<Task>, ApiError> {
        let found = self.tasks.get(project, id).await?;
        found.ok_or_else(ApiError::video_not_found)
    }

    /// Like [`Self::find_task`], but the task may be slightly out of date, as a poll allows.
    pub(crate) async fn poll_task(&self, project: &str, id: TaskId) -> Result<Arc<Task>, ApiError> {
        let found = self.tasks.poll(project, id).await?;
        found.ok_or_else(ApiError::video_not_found)
    }

    /// The public object of a task; refused if the task has expired.
    pub(crate) async fn object(&self, task: &Task) -> Result<VideoObject, ApiError> {
        self.object_at(task, self.position(task).await?)
    }

    /// Like [`Self::object`], for a task with a known position.
    pub(crate) fn object_at(
        &self,
        task: &Task,
        position: Option<u64>,
    ) -> Result<VideoObject, ApiError> {
        let address = format!("{}/v1/videos/{}", self.settings.base_url, task.id);
        let object = VideoObject::from_task(task, position, address, |task| self.links(task));
        object.ok_or_else(ApiError::expired)
    }

    /// How many tasks are expected to start before this one.
    pub(crate) async fn position(&self, task: &Task) -> Result<Option<u64>, ApiError> {
        if task.status() != Some(Status::Queued) {
            return Ok(None);
        }
        let positions = self.tasks.positions(&[task.id]).await?;
        Ok(positions.first().copied().flatten())
    }

    /// Like [`Self::object_at`], as JSON from the cache.
    pub(crate) fn object_json(
        &self,
        task: &Arc<Task>,
        position: Option<u64>,
    ) -> Result<Bytes, ApiError> {
        let (json, is_new) = self.object_json_once(task, position)?;
        if is_new {
            self.rendered.put(task, position, json.clone());
        }
        Ok(json)
    }

    /// Like [`Self::object_json`], but for a single client, so not added to the cache. The second
    /// value is whether the cache lacked it.
    pub(crate) fn object_json_once(
        &self,
        task: &Arc<Task>,
        position: Option<u64>,
    ) -> Result<(Bytes, bool), ApiError> {
        if let Some(json) = self.rendered.get(task, position) {
            return Ok((json, false));
        }
        let json = serde_json::to_vec(&self.object_at(task, position)?);
        let json = json.map_err(ApiError::internal)?;
        // Drops the spare capacity: the cache counts only the length.
        Ok((Bytes::from(json.into_boxed_slice()), true))
    }

    /// The public object of an uploaded file.
    pub(crate) fn file_object(&self, file: &UploadedFile) -> FileObject {
        FileObject {
            id: file.id.to_string(),
            object: "file",
            bytes: file.bytes,
            created_at: file.created_at_ms / 1000,
            expires_at: file.expires_at_ms / 1000,
            filename: file.filename.clone(),
            purpose: file.purpose.clone(),
            status: "processed",
            url: self.file_address(file),
        }
    }

    /// The signed address of an uploaded file; it expires with the file.
    pub(crate) fn file_address(&self, file: &UploadedFile) -> String {
        let query = self.signer.sign_file(file.id, file.expires_at_ms / 1000);
        uploaded::address(&self.settings.base_url, file.id, &query)
    }

    /// The signed URLs of a completed task's files; they expire with the task.
    fn links(&self, task: &Task) -> ResultLinks {
        let expires_at_s = task.expires_at_ms.unwrap_or(task.created_at_ms) / 1000;
        let link = |variant: ResultVariant| {
            let query = self.signer.sign(task.id, variant.name(), expires_at_s);
            let choice = variant.query();
            format!(
                "{}/v1/videos/{}/content?{choice}{query}",
                self.settings.base_url, task.id
            )
        };
        ResultLinks {
            video: link(ResultVariant::Video),
            thumbnail: link(ResultVariant::Thumbnail),
            first_frame: link(ResultVariant::FirstFrame),
            last_frame: link(ResultVariant::LastFrame),
        }
    }
}
