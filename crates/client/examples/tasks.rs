//! Lists the unfinished tasks and what the models can do: `KINORA_API_KEY=... cargo run -p kinora-client --example tasks`.

use kinora_client::Client;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example that prints")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("KINORA_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let client = Client::new(&url, std::env::var("KINORA_API_KEY")?)?;
    for model in client.models().await? {
        let can = &model.capabilities;
        println!(
            "{}: {} to {} s, drafts: {}",
            model.id, can.seconds_min, can.seconds_max, can.draft
        );
    }
    let mut tasks = client.list();
    while let Some(task) = tasks.next().await? {
        if !task.is_finished() {
            println!("{} {} {} %", task.id, task.status.name(), task.progress);
        }
    }
    Ok(())
}
