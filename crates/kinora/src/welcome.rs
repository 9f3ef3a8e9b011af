//! The first start on an empty store: creates a key, shows it once, and explains how to use it. A
//! terminal shows the key. Any other output may be kept for ever (a journal, a container's log), so
//! there the key goes into a file in the data folder.

use std::io::IsTerminal;
use std::path::Path;

use kinora_contract::Clock;
use kinora_store::KeyStore;

use crate::cli::HomeArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::keys::NewKeyParts;
use crate::output::print;
use crate::system::{SystemClock, current_actor};
use crate::{folder, shell_hint};

/// Creates a key if there is none, and hands it over. `is_linked`: the output has a link to Studio already.
pub(crate) async fn hand_over_first_key(
    keys: &dyn KeyStore,
    config: &Config,
    base_url: &str,
    home: &HomeArgs,
    is_linked: bool,
) -> Result<(), Failure> {
    if !keys.list_keys().await?.is_empty() {
        return Ok(());
    }
    let (text, key) = NewKeyParts::for_first_start().generate(SystemClock.now_ms())?;
    // Before the key is stored: if the process dies in between, the next start makes another.
    // Standard output of a service usually ends in a journal or in a container's log, which keeps
    // it for ever and which many people may read. There the key must not appear.
    let file = if std::io::stdout().is_terminal() {
        None
    } else {
        Some(folder::write_first_key(&config.data, text.reveal())?)
    };
    if !keys.add_first_key(key, &current_actor()).await? {
        // Another process was first and hands over its own key.
        return file.map_or(Ok(()), |file| folder::remove_first_key(&file));
    }
    let handover = match file {
        None => shown_key(text.reveal()),
        Some(file) => key_in_file(&file),
    };
    print(&format!(
        "\n{handover}{}",
        first_steps(config, base_url, home, is_linked)
    ));
    Ok(())
}

fn shown_key(key: &str) -> String {
    format!(
        "Kinora is ready. This is your API key; it is shown only now:\n\n  \
         export KINORA_KEY={key}\n\n"
    )
}

fn key_in_file(path: &Path) -> String {
    tracing::info!(
        file = %path.display(),
        "first API key written to a file; keep the key elsewhere, then delete the file"
    );
    let path = shell_hint::shell_quoted(path.as_os_str());
    format!(
        "Kinora is ready. Your API key is in a file that only this user can read:\n\n  \
         export KINORA_KEY=\"$(cat {path})\"\n\n\
         Keep the key where you keep secrets, then delete the file:\n\n  rm {path}\n\n"
    )
}

fn first_steps(config: &Config, base_url: &str, home: &HomeArgs, is_linked: bool) -> String {
    let model = config.models.first().map_or("MODEL", |model| &*model.id);
    let page = if config.studio.enabled && !is_linked {
        format!("Open {base_url}/ in a browser and sign in with the key, or use the API.\n\n")
    } else {
        String::new()
    };
    format!(
        r#"{page}Submit a video:

  curl {base_url}/v1/videos -H "Authorization: Bearer $KINORA_KEY" \
    -H "Content-Type: application/json" \
    -d '{{"model": "{model}", "prompt": "A red balloon drifts over a calm sea at dawn"}}'

Poll it until its status is "completed", then open its result_url:

  curl {base_url}/v1/videos/VIDEO_ID -H "Authorization: Bearer $KINORA_KEY"

Or let one command do both, and save the video:

  KINORA_URL={base_url} {} generate "A red balloon drifts over a calm sea at dawn" -o balloon.mp4

Results are stored in {}. Make a key for each client:

  {}

"#,
        shell_hint::program(),
        config.results_shown(),
        shell_hint::command("keys create --name NAME", home),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_itself_is_said_to_a_terminal_only() {
        assert!(shown_key("kinora_abc").contains("export KINORA_KEY=kinora_abc\n"));
        let elsewhere = key_in_file(Path::new("/srv/my data/first-key"));
        assert!(
            elsewhere.contains("\"$(cat '/srv/my data/first-key')\"")
                && elsewhere.contains("rm '/srv/my data/first-key'"),
            "{elsewhere}"
        );
    }

    #[test]
    fn the_first_steps_lead_to_this_store() {
        let home = HomeArgs {
            data: Some("my data".into()),
            config: None,
        };
        let text = first_steps(&Config::defaults(), "http://x:1", &home, false);
        assert!(text.contains("curl http://x:1/v1/videos "), "{text}");
        assert!(text.contains("Open http://x:1/ in a browser"), "{text}");
        assert!(
            text.contains("  KINORA_URL=http://x:1 ") && text.contains(" generate "),
            "{text}"
        );
        assert!(
            text.contains("keys create --name NAME --data 'my data'\n"),
            "{text}"
        );
        let here = std::path::absolute(Config::defaults().results_url()).unwrap();
        let results = format!("Results are stored in {}.", here.display());
        assert!(text.contains(&results), "{text}");
    }

    #[test]
    fn p14_results_elsewhere_are_shown_by_their_address_without_its_secret() {
        let mut config = Config::defaults();
        config.results.url = "s3://id:secret@host/bucket?token=secret".to_owned();
        let home = HomeArgs {
            data: None,
            config: None,
        };
        let text = first_steps(&config, "http://x:1", &home, true);
        assert!(text.contains("stored in s3://host/bucket."), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert!(!text.contains("in a browser"), "the link is enough: {text}");
    }
}
