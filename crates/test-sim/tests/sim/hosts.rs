//! The hosts of references: they nearly always answer, after a while, and some fail for a moment.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use kinora_http_fetch::{FetchCause, FetchError, ReferenceRequest};
use kinora_worker::ReferenceSource;
use tokio::time::sleep;

use crate::witness::Witness;

const SILENT: u64 = 3;
const HICCUP: u64 = 10;
const ANSWER_MS_MAX: u64 = 2_000;
/// The shortest that is taken.
const SIDE: u32 = 256;

static PICTURE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE, SIDE);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    let rgb = vec![0x80; (SIDE * SIDE * 3) as usize];
    writer.write_image_data(&rgb).unwrap();
    drop(writer);
    file
});

#[derive(Debug)]
pub(crate) struct Hosts {
    witness: Arc<Witness>,
}

impl Hosts {
    pub(crate) const fn new(witness: Arc<Witness>) -> Self {
        Self { witness }
    }
}

#[async_trait]
impl ReferenceSource for Hosts {
    async fn fetch(&self, request: &ReferenceRequest<'_>) -> Result<u64, FetchError> {
        sleep(Duration::from_millis(self.witness.draw(ANSWER_MS_MAX))).await;
        if self.witness.percent(SILENT) {
            return Err(FetchError::Unreachable(FetchCause::Redirects(5)));
        }
        if self.witness.percent(HICCUP) {
            self.witness.book().saw("host hiccuped".to_owned());
            return Err(FetchError::Unreachable(FetchCause::Status {
                status: 503,
                retry_after: None,
            }));
        }
        std::fs::write(request.to, &*PICTURE).map_err(FetchError::Storage)?;
        Ok(PICTURE.len() as u64)
    }
}
