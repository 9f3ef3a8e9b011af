//! Credentials that a platform hands out: to containers, and to machines.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::{Bytes, S3Options, S3Variables, TestS3, open, options, read, url};

const ROLE: &str = "kinora-workers";
const SESSION: &str = "a session";

/// A platform's server of credentials, as containers (EKS) and machines (EC2) meet it.
struct Platform {
    address: String,
    /// The head of each request: its first line and its headers.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Platform {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    stream.read_line(&mut head).await.unwrap();
                }
                let body = answer(&head);
                let length = body.len();
                seen.lock().unwrap().push(head);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(head: &str) -> String {
    let path = head.split(' ').nth(1).unwrap();
    match path {
        "/latest/api/token" => SESSION.to_owned(),
        "/latest/meta-data/iam/security-credentials/" => ROLE.to_owned(),
        _ => format!(
            r#"{{"AccessKeyId": "{}", "SecretAccessKey": "{}", "Token": "marked", "Code": "Success",
                "LastUpdated": "2026-01-01T00:00:00Z", "Expiration": "2099-01-01T00:00:00Z"}}"#,
            TestS3::KEY_ID,
            TestS3::SECRET
        ),
    }
}

/// Writes and reads with the credentials that these variables lead to.
async fn works_with(server: &TestS3, variables: &[(&str, String)]) {
    let variables = S3Variables::read(|name| {
        let found = variables.iter().find(|(one, _)| *one == name);
        found.map(|(_, value)| value.clone())
    });
    let options = S3Options {
        variables,
        ..options(server)
    };
    let store = open(&url("kinora"), &options).unwrap();
    let bytes = Bytes::from_static(b"by a role");
    store.put_bytes("a/b", bytes.clone()).await.unwrap();
    assert_eq!(read(&*store, "a/b").await.unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_asks_its_platform_for_credentials() {
    let (server, platform) = (TestS3::start(), Platform::start().await);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "token of the pod").unwrap();
    let variables = [
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            format!("{}/v1/credentials", platform.address),
        ),
        (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            token.display().to_string(),
        ),
    ];
    works_with(&server, &variables).await;
    let asked = platform.asked();
    assert!(asked[0].starts_with("GET /v1/credentials "), "{asked:?}");
    assert!(asked[0].contains("token of the pod"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_asks_its_platform_for_credentials() {
    let (server, platform) = (TestS3::start(), Platform::start().await);
    let variables = [("AWS_METADATA_ENDPOINT", platform.address.clone())];
    works_with(&server, &variables).await;
    let asked = platform.asked();
    let last = asked.last().unwrap();
    assert!(last.contains(ROLE) && last.contains(SESSION), "{asked:?}");
}
