//! Checks that the operator's policy service answers.

use kinora_policy::Policy;

use super::finding::Finding;
use crate::config::Config;

/// Asks the service a test question, if one is configured.
pub(super) fn policy(config: &Config) -> Option<Finding> {
    match config.policy() {
        Ok(None) => None,
        Ok(Some(policy)) => Some(asked(&policy)),
        Err(failure) => Some(Finding::Bad(failure.to_string())),
    }
}

fn asked(policy: &Policy) -> Finding {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let asked = match runtime {
        Ok(runtime) => runtime.block_on(policy.check()),
        Err(error) => return Finding::Bad(error.to_string()),
    };
    match asked {
        Ok(_) => Finding::Good("the service answers".to_owned()),
        Err(error) => Finding::Bad(format!(
            "the service does not answer a question with the stage \"check\": {error}; see docs/policy.md"
        )),
    }
}
