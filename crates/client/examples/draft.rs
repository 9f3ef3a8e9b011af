//! A draft, and its final once the draft is there: `KINORA_API_KEY=... cargo run -p kinora-client --example draft`.

use kinora_client::{Client, NewVideo, Variant};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example that prints")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("KINORA_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let client = Client::new(&url, std::env::var("KINORA_API_KEY")?)?;

    let wanted = NewVideo::new("kinora-a1", "A harbour at dawn")
        .size("1920x1080")
        .draft(true);
    let draft = client.submit(&wanted).await?;
    let draft = client.wait(&draft.id).await?;
    client
        .download(&draft.id, Variant::Video, "draft.mp4".as_ref())
        .await?;
    println!("draft.mp4, seed {}", draft.seed);

    let last = client.final_of(&draft.id).await?;
    let last = client.wait(&last.id).await?;
    client
        .download(&last.id, Variant::Video, "final.mp4".as_ref())
        .await?;
    println!("final.mp4, {}", last.size);
    Ok(())
}
