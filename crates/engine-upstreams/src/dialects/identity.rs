//! Whether two identifiers name the same task. They are the same text, except behind LiteLLM: it wraps the
//! provider's identifier, and what it adds differs from answer to answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Whether an answer with `id` is about the task that its server called `task`.
pub(super) fn is_same(task: &str, id: &str) -> bool {
    task == id || unwrapped(task).is_some_and(|own| unwrapped(id) == Some(own))
}

/// The provider's identifier in one of LiteLLM, and the provider's name: `video_` and the base64 of
/// `litellm:custom_llm_provider:NAME;model_id:MODEL;video_id:ID`, after which more may follow. An answer to a submit names the model, one
/// to a poll does not (litellm 1.108.0, `types/videos/utils.py`).
fn unwrapped(id: &str) -> Option<(String, String)> {
    let wrapped = STANDARD.decode(id.strip_prefix("video_")?).ok()?;
    let wrapped = String::from_utf8(wrapped).ok()?;
    let parts: Vec<&str> = wrapped.strip_prefix("litellm:")?.split(';').collect();
    let part = |name: &str| {
        let found = parts.iter().find_map(|part| part.strip_prefix(name));
        found.filter(|found| !found.is_empty()).map(str::to_owned)
    };
    Some((part("custom_llm_provider:")?, part("video_id:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(provider: &str, model: &str, id: &str) -> String {
        let text = format!("litellm:custom_llm_provider:{provider};model_id:{model};video_id:{id}");
        format!("video_{}", STANDARD.encode(text))
    }

    #[test]
    fn an_identifier_is_the_same_text_or_litellm_s_of_the_same_task() {
        let submitted = wrap("openai", "kinora-a1", "video_1");
        let more = format!(
            "video_{}",
            STANDARD.encode(
                "litellm:custom_llm_provider:openai;model_id:;video_id:video_1;deployment_id:7"
            )
        );
        for same in [&submitted, &wrap("openai", "", "video_1"), &more] {
            assert!(is_same(&submitted, same), "{same}");
        }
        for other in [
            &wrap("openai", "kinora-a1", "video_2"),
            &wrap("azure", "kinora-a1", "video_1"),
            &wrap("openai", "kinora-a1", ""),
            "video_1",
            "video_",
            "",
        ] {
            assert!(!is_same(&submitted, other), "{other}");
        }
        assert!(is_same("video_1", "video_1") && !is_same("video_1", "video_2"));
        let empty = wrap("openai", "", "");
        assert!(is_same(&empty, &empty) && !is_same(&empty, &wrap("openai", "x", "")));
    }
}
