//! Stands in for `sd-server` in tests: the same command line, log, HTTP API and films, without
//! weights. `--stand-in MODE` chooses a misfortune.

mod film;
mod http;

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use http::Request;

const HELP: &str = "\
Usage: sd-server [options]
  -l, --listen-ip <string>               server listen ip
  --listen-port <int>                    server listen port
  --diffusion-model <string>             path to the standalone diffusion model
  --high-noise-diffusion-model <string>  path to the high noise diffusion model
  --vae <string>                         path to standalone vae model
  --audio-vae <string>                   path to the audio vae
  --t5xxl <string>                       path to the t5xxl text encoder
  --llm <string>                         path to the llm text encoder
  --clip_vision <string>                 path to the clip-vision encoder
  --embeddings-connectors <string>       path to the embeddings connectors
  --lora-model-dir <string>              lora model directory
  --hires-upscalers-dir <string>         highres fix upscaler model directory
  -t, --threads <int>                    number of threads
  --mmap                                 whether to memory-map model
  --diffusion-fa                         use flash attention in the diffusion model only
";

/// A server, and its only job.
struct StandIn {
    mode: String,
    has_sound: bool,
    job: Mutex<Value>,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout();
    match arguments.first().map(String::as_str) {
        Some("--version") => return writeln!(out, "stable-diffusion.cpp version stand-in"),
        Some("--help") => return out.write_all(help().as_bytes()),
        _ => {}
    }
    // Switches have no value; their names do no harm here.
    let options: HashMap<&str, &str> = arguments
        .windows(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()))
        .collect();
    let option = |name| options.get(name).copied().unwrap_or_default();
    let mode = option("--stand-in");
    say("[INFO ] main.cpp:1 - loading diffusion model");
    match mode {
        "no-weights" => {
            eprint("[ERROR] main.cpp:1 - new_sd_ctx_t failed");
            std::process::exit(1);
        }
        // As where another process has the port: it ends, and calls that no error.
        "port-taken" => return Ok(()),
        // As a script without `exec`.
        "wrapped" => {
            let program = std::env::current_exe()?;
            let same = arguments
                .iter()
                .filter(|argument| *argument != "--stand-in");
            let ended = Command::new(program).args(same).status()?;
            std::process::exit(ended.code().unwrap_or(1));
        }
        "never-listens" => loop {
            thread::park();
        },
        _ => {}
    }
    let listener = TcpListener::bind(format!(
        "{}:{}",
        option("--listen-ip"),
        option("--listen-port")
    ))?;
    let server = Arc::new(StandIn {
        mode: mode.to_owned(),
        has_sound: options.contains_key("--audio-vae"),
        job: Mutex::new(Value::Null),
    });
    for stream in listener.incoming() {
        let (stream, server) = (stream?, server.clone());
        thread::spawn(move || http::answer(stream, |request| server.answer(&request)));
    }
    Ok(())
}

/// The options; a program called `old-...` lacks those of newer models.
fn help() -> String {
    let name = std::env::args().next().unwrap_or_default();
    let is_old = name.contains("old-");
    let lines = HELP
        .lines()
        .filter(|line| !(is_old && line.contains("--embeddings-connectors")));
    lines.map(|line| format!("{line}\n")).collect()
}

fn say(line: &str) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn eprint(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

impl StandIn {
    fn answer(self: &Arc<Self>, request: &Request) -> (u16, Value) {
        let is_post = request.method == "POST";
        match request.path.as_str() {
            "/sdcpp/v1/capabilities" => {
                let mode = if self.mode == "images" {
                    "img_gen"
                } else {
                    "vid_gen"
                };
                (
                    200,
                    json!({"supported_modes": [mode], "samplers": ["euler", "lcm"], "schedulers": ["simple"]}),
                )
            }
            "/sdcpp/v1/vid_gen" if is_post => self.accept(&request.body),
            "/sdcpp/v1/jobs/job_1" => (200, self.job().clone()),
            _ => (404, json!({"error": "job not found"})),
        }
    }

    fn job(&self) -> std::sync::MutexGuard<'_, Value> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, body: &[u8]) -> (u16, Value) {
        if self.mode == "refuses" {
            return (400, json!({"error": "invalid generation parameters"}));
        }
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return (
                400,
                json!({"error": "invalid json", "message": "it is none"}),
            );
        };
        *self.job() = json!({"id": "job_1", "status": "generating", "result": null, "error": null});
        let server = self.clone();
        thread::spawn(move || {
            let ended = server.generate(&body);
            *server.job() = ended;
        });
        (202, json!({"id": "job_1", "status": "queued"}))
    }

    /// Works as the server does: words, steps, frames.
    fn generate(&self, body: &Value) -> Value {
        say("[INFO ] stable-diffusion.cpp:1 - get_learned_condition completed, taking 0.01s");
        let steps = body["sample_params"]["sample_steps"].as_u64().unwrap_or(0);
        for step in 1..=steps {
            let mut out = io::stdout();
            let bar = format!("\r  |=>  | {step}/{steps} - 9.99it/s\x1b[K");
            let _ = out.write_all(bar.as_bytes()).and_then(|()| out.flush());
            thread::sleep(Duration::from_millis(5));
        }
        match self.mode.as_str() {
            "hangs" | "hosted-hangs" => loop {
                thread::park();
            },
            "ends" => {
                eprint("[ERROR] ggml.c:1 - GGML_ASSERT(a != b) failed");
                std::process::exit(3);
            }
            "device-lost" => {
                eprint("CUDA error: an illegal memory access was encountered");
                std::process::abort();
            }
            "no-memory" => {
                say("[WARN ] ggml_extend.hpp:1 - cudaMalloc failed: out of memory");
                return json!({"id": "job_1", "status": "failed", "result": null,
                              "error": {"code": "generation_failed", "message": "generate_video returned no results"}});
            }
            _ => {}
        }
        say("\n[INFO ] stable-diffusion.cpp:1 - generating latent video completed, taking 0.10s");
        let film = film::make(body, &self.mode, self.has_sound);
        say("[INFO ] stable-diffusion.cpp:1 - decode_first_stage completed, taking 0.10s");
        json!({"id": "job_1", "status": "completed", "error": null,
               "result": {"output_format": "avi", "b64_json": BASE64_STANDARD.encode(film)}})
    }
}
