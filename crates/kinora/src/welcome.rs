//! The first start on an empty store: makes a key, shows it once, and says what to do with it.

use std::path::Path;

use kinora_contract::Clock;
use kinora_store::KeyStore;

use crate::failure::Failure;
use crate::keys::NewKeyParts;
use crate::print;
use crate::system::SystemClock;

/// Makes and shows a key when there is none at all.
pub(crate) async fn greet(
    keys: &dyn KeyStore,
    base_url: &str,
    results: &str,
) -> Result<(), Failure> {
    let failed = |error| Failure::because("The store did not answer", error);
    if !keys.list_keys().await.map_err(failed)?.is_empty() {
        return Ok(());
    }
    let (text, key) = NewKeyParts::first().make(SystemClock.now_ms())?;
    keys.add_key(key).await.map_err(failed)?;
    print(&message(text.reveal(), base_url, results));
    Ok(())
}

fn message(key: &str, base_url: &str, results: &str) -> String {
    let results = Path::new(results);
    let shown = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    format!(
        r#"
Kinora is ready. This is your API key; it is shown only now:

  export KINORA_KEY={key}

Submit a video:

  curl {base_url}/v1/videos -H "Authorization: Bearer $KINORA_KEY" \
    -H "Content-Type: application/json" \
    -d '{{"model": "kinora-a1", "prompt": "A red balloon drifts over a calm sea at dawn"}}'

Poll it until its status is "completed", then open its result_url:

  curl {base_url}/v1/videos/VIDEO_ID -H "Authorization: Bearer $KINORA_KEY"

Results lie in {}. More keys: kinora keys create --name NAME

"#,
        shown.display()
    )
}
