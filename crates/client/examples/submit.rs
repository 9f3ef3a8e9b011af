//! Makes a video and saves it: `KINORA_API_KEY=... cargo run -p kinora-client --example submit -- "a prompt" out.mp4`.

use kinora_client::{Client, NewVideo, Status, Variant};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example that prints")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let prompt = arguments
        .next()
        .unwrap_or_else(|| "A lighthouse in a storm".to_owned());
    let path = arguments.next().unwrap_or_else(|| "out.mp4".to_owned());
    let url = std::env::var("KINORA_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let client = Client::new(&url, std::env::var("KINORA_API_KEY")?)?;

    let task = client
        .submit(&NewVideo::new("kinora-a1", prompt).seconds(3))
        .await?;
    let mut watch = client.watch(&task.id);
    while let Some(task) = watch.next().await? {
        println!("{} {} %", task.status.name(), task.progress);
        if task.status == Status::Completed {
            let bytes = client
                .download(&task.id, Variant::Video, path.as_ref())
                .await?;
            println!("{path}: {bytes} bytes");
        }
        if let Some(failure) = &task.error {
            println!("{}: {}", failure.code, failure.message);
        }
    }
    Ok(())
}
