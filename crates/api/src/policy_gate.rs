//! Asks the operator's policy service about a request before it becomes a task. The number of
//! concurrent questions is limited, and so is each project's share of them, so slow answers for one
//! project do not delay the others.

use kinora_contract::limits::{POLICY_QUESTIONS_MAX, POLICY_QUESTIONS_PER_PROJECT_MAX};
use kinora_contract::{ErrorCode, VideoSpec};
use kinora_policy::{PolicyService, PolicyVerdict, QuestionSubject};
use kinora_store::NewTask;

use crate::error::ApiError;
use crate::memory::LimitReached;
use crate::request_turns::RequestTurns;

/// How soon a client should retry a request for which the policy service gave no answer.
const RETRY_SECONDS: u64 = 5;

/// Admits requests that the operator's policy allows. Clones share its turns.
#[derive(Clone, Debug)]
pub struct PolicyGate {
    policy: PolicyService,
    turns: RequestTurns,
}

impl PolicyGate {
    /// Creates a gate that asks `policy`.
    pub fn new(policy: PolicyService) -> Self {
        Self {
            policy,
            turns: RequestTurns::new(POLICY_QUESTIONS_MAX, POLICY_QUESTIONS_PER_PROJECT_MAX),
        }
    }

    /// Refuses requests that the policy does not allow; the service sees the spec as `shown`, if given. A
    /// request that gets no turn is always
    /// refused, even if the operator allows requests without an answer; otherwise a client could
    /// bypass the policy by flooding it.
    pub(crate) async fn check(
        &self,
        new: &NewTask,
        shown: Option<&VideoSpec>,
    ) -> Result<(), ApiError> {
        let turn = self.turns.acquire(&new.project).await;
        let _turn = turn.map_err(|full| match full {
            LimitReached::Owner => full.into(),
            LimitReached::All => unavailable(),
        })?;
        let spec = shown.unwrap_or(&new.spec);
        let subject = QuestionSubject::new(&new.project, spec, &new.metadata);
        match self.policy.judge_request(&subject).await {
            Ok(PolicyVerdict::Allowed) => Ok(()),
            Ok(PolicyVerdict::Refused(reason)) => {
                Err(ApiError::new(ErrorCode::ContentPolicy, reason))
            }
            Err(error) => {
                tracing::warn!(%error, "policy service did not answer; request refused");
                Err(unavailable())
            }
        }
    }
}

fn unavailable() -> ApiError {
    let message =
        "The request could not be checked against the policy of this service; send it again soon.";
    ApiError::new(ErrorCode::PolicyUnavailable, message).retry_after(RETRY_SECONDS)
}
