//! The questions: asked within their time limit, counted by stage and answer; without an answer,
//! the operator's setting decides.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use kinora_contract::{Clock, Stopwatch};
use metrics::{counter, histogram};
use tokio::time::timeout;

use crate::answer::{PolicyVerdict, verdict};
use crate::error::{PolicyError, PolicyOptionsError};
use crate::exchange::PolicyEndpoint;
use crate::options::{FallbackVerdict, PolicyOptions};
use crate::question::{PolicyQuestion, QuestionSubject, ResultSummary};

/// The operator's policy service. Clones share it.
#[derive(Clone)]
pub struct PolicyService {
    options: Arc<PolicyOptions>,
    endpoint: Arc<PolicyEndpoint>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for PolicyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may contain a secret, and so does the token.
        let host = self.endpoint.url.host_str();
        f.debug_tuple("Policy").field(&host).finish()
    }
}

impl PolicyService {
    /// Creates a client for the service in these options. Does not call it yet.
    ///
    /// # Errors
    /// If the URL or the token is unusable.
    pub fn new(options: PolicyOptions, clock: Arc<dyn Clock>) -> Result<Self, PolicyOptionsError> {
        let endpoint = PolicyEndpoint::new(&options, clock.clone())?;
        Ok(Self {
            options: Arc::new(options),
            endpoint: Arc::new(endpoint),
            clock,
        })
    }

    /// Whether this request may become a task.
    ///
    /// # Errors
    /// If there is no answer, and nothing may pass without one.
    pub async fn judge_request(
        &self,
        subject: &QuestionSubject<'_>,
    ) -> Result<PolicyVerdict, PolicyError> {
        self.apply_fallback(self.ask(&PolicyQuestion::Request(subject)).await)
    }

    /// Whether this result may be published.
    ///
    /// # Errors
    /// As [`Self::judge_request`]; another attempt may get an answer.
    pub async fn judge_result(
        &self,
        subject: &QuestionSubject<'_>,
        made: &ResultSummary<'_>,
    ) -> Result<PolicyVerdict, PolicyError> {
        self.apply_fallback(self.ask(&PolicyQuestion::Result { subject, made }).await)
    }

    /// Asks a test question.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn check(&self) -> Result<PolicyVerdict, PolicyError> {
        self.ask(&PolicyQuestion::Check).await
    }

    fn apply_fallback(
        &self,
        asked: Result<PolicyVerdict, PolicyError>,
    ) -> Result<PolicyVerdict, PolicyError> {
        match (asked, self.options.otherwise) {
            (Err(error), FallbackVerdict::Allow) => {
                tracing::warn!(%error, "policy service did not answer; allowed as configured");
                Ok(PolicyVerdict::Allowed)
            }
            (asked, _) => asked,
        }
    }

    async fn ask(&self, question: &PolicyQuestion<'_>) -> Result<PolicyVerdict, PolicyError> {
        let (stage, watch) = (question.stage(), Stopwatch::start(&self.clock));
        let asked = self.exchange(question).await;
        let answer = match &asked {
            Ok(PolicyVerdict::Allowed) => "allowed",
            Ok(PolicyVerdict::Refused(_)) => "refused",
            Err(_) => "none",
        };
        counter!("kinora_policy_answers_total", "stage" => stage, "answer" => answer).increment(1);
        histogram!("kinora_policy_seconds", "stage" => stage).record(watch.elapsed());
        asked
    }

    async fn exchange(&self, question: &PolicyQuestion<'_>) -> Result<PolicyVerdict, PolicyError> {
        let question = Bytes::from(serde_json::to_vec(question)?);
        let limit = self.options.timeout;
        let answered = timeout(limit, self.endpoint.ask(question, limit)).await;
        let body = answered.unwrap_or(Err(PolicyError::Timeout(limit)))?;
        Ok(verdict(&body)?)
    }
}
