//! The questions: asked within their time limit, counted by stage and answer; without an answer,
//! the operator's setting decides.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use kinora_contract::{Clock, Stopwatch};
use metrics::{counter, histogram};
use tokio::time::timeout;

use crate::answer::{Verdict, verdict};
use crate::error::{NoAnswer, OptionsError};
use crate::exchange::Endpoint;
use crate::options::{Options, Otherwise};
use crate::question::{Made, Question, Subject};

/// The operator's policy service. Clones share it.
#[derive(Clone)]
pub struct Policy {
    options: Arc<Options>,
    endpoint: Arc<Endpoint>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may contain a secret, and so does the token.
        let host = self.endpoint.url.host_str();
        f.debug_tuple("Policy").field(&host).finish()
    }
}

impl Policy {
    /// Creates a client for the service in these options. Does not call it yet.
    ///
    /// # Errors
    /// If the URL or the token is unusable.
    pub fn new(options: Options, clock: Arc<dyn Clock>) -> Result<Self, OptionsError> {
        let endpoint = Endpoint::new(&options, clock.clone())?;
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
    pub async fn judge_request(&self, subject: &Subject<'_>) -> Result<Verdict, NoAnswer> {
        self.settle(self.ask(&Question::Request(subject)).await)
    }

    /// Whether this result may be published.
    ///
    /// # Errors
    /// As [`Self::judge_request`]; another attempt may get an answer.
    pub async fn judge_result(
        &self,
        subject: &Subject<'_>,
        made: &Made<'_>,
    ) -> Result<Verdict, NoAnswer> {
        self.settle(self.ask(&Question::Result { subject, made }).await)
    }

    /// Asks a test question.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn check(&self) -> Result<Verdict, NoAnswer> {
        self.ask(&Question::Check).await
    }

    fn settle(&self, asked: Result<Verdict, NoAnswer>) -> Result<Verdict, NoAnswer> {
        match (asked, self.options.otherwise) {
            (Err(error), Otherwise::Allow) => {
                tracing::warn!(%error, "policy service did not answer; allowed as configured");
                Ok(Verdict::Allowed)
            }
            (asked, _) => asked,
        }
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Verdict, NoAnswer> {
        let (stage, watch) = (question.stage(), Stopwatch::start(&self.clock));
        let asked = self.exchange(question).await;
        let answer = match &asked {
            Ok(Verdict::Allowed) => "allowed",
            Ok(Verdict::Refused(_)) => "refused",
            Err(_) => "none",
        };
        counter!("kinora_policy_answers_total", "stage" => stage, "answer" => answer).increment(1);
        histogram!("kinora_policy_seconds", "stage" => stage).record(watch.elapsed());
        asked
    }

    async fn exchange(&self, question: &Question<'_>) -> Result<Verdict, NoAnswer> {
        let question = Bytes::from(serde_json::to_vec(question)?);
        let limit = self.options.timeout;
        let answered = timeout(limit, self.endpoint.ask(question, limit)).await;
        let body = answered.unwrap_or(Err(NoAnswer::Timeout(limit)))?;
        Ok(verdict(&body)?)
    }
}
