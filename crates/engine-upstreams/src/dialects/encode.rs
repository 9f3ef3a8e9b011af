//! A request to an upstream and its encoding in a dialect: a body and its content type, and the files to upload
//! before it. Refuses fields that the dialect lacks; only the seed may be omitted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kinora_contract::{VideoInputs, VideoLength, VideoSpec, uploaded};
use kinora_engine::ReferenceFile;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::dialect::{BodyForm, FieldShape, ServerDialect, WireField};
use super::error::RemoteError;
use crate::servers::{EncodedBody, FormPart, PartContent, encode_form, file_ending, is_media_type};

/// One field with its value.
enum EncodedValue {
    Plain(Value),
    Upload { file: ReferenceFile, bytes: Bytes },
}

/// A request in a dialect, which can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct EncodedRequest {
    body: EncodedBody,
    /// The files that a server must have first.
    pub(crate) files: Vec<EncodedFile>,
}

/// A reference that was uploaded to this service: nobody else can read its address, so its bytes are
/// uploaded to the upstream.
#[derive(Clone, Debug)]
pub(crate) struct EncodedFile {
    /// The reference in the body.
    reference: String,
    /// The form of its upload.
    pub(crate) form: EncodedBody,
}

impl EncodedRequest {
    /// The body for a server that has the files at these addresses.
    pub(crate) fn body_with(&self, addresses: &[String]) -> EncodedBody {
        let mut encoded = self.body.clone();
        if !addresses.is_empty() {
            // A dialect that takes URLs sends JSON.
            let mut text = String::from_utf8_lossy(&encoded.body).into_owned();
            for (file, address) in self.files.iter().zip(addresses) {
                text = text.replace(
                    &json!(file.reference).to_string(),
                    &json!(address).to_string(),
                );
            }
            encoded.body = text.into();
        }
        encoded
    }
}

/// Reads the references and writes the body.
pub(crate) async fn encode(
    request: &RemoteRequest,
    dialect: &'static ServerDialect,
    bytes_max: u64,
) -> Result<EncodedRequest, RemoteError> {
    let mut speech = DialectEncoder {
        dialect,
        bytes_left: bytes_max,
        bytes_max,
        said: Vec::new(),
        files: Vec::new(),
    };
    speech.say_spec(request)?;
    speech.say_references(request).await?;
    let files = std::mem::take(&mut speech.files);
    let body = speech.write();
    if body.body.len() as u64 > bytes_max {
        return Err(RemoteError::RequestTooLarge(bytes_max));
    }
    Ok(EncodedRequest { body, files })
}

struct DialectEncoder {
    dialect: &'static ServerDialect,
    bytes_left: u64,
    bytes_max: u64,
    said: Vec<(&'static str, EncodedValue)>,
    files: Vec<EncodedFile>,
}

impl DialectEncoder {
    fn say_spec(&mut self, request: &RemoteRequest) -> Result<(), RemoteError> {
        let spec = &request.spec;
        refuse_chains(spec)?;
        if let Some(model) = &request.model {
            self.say(WireField::Model, "a model name", json!(model))?;
        }
        self.say(WireField::Prompt, "a prompt", json!(spec.prompt))?;
        if let Some(negative) = &spec.negative_prompt {
            self.say(
                WireField::NegativePrompt,
                "a negative prompt",
                json!(negative),
            )?;
        }
        let seconds = match spec.seconds {
            VideoLength::Fixed(seconds) => json!(seconds),
            VideoLength::Auto if self.dialect.auto_seconds => json!("auto"),
            VideoLength::Auto => return Err(RemoteError::Unsupported("an automatic length")),
        };
        self.say(WireField::Seconds, "a length", seconds)?;
        let Some(size) = spec.render_size() else {
            return Err(RemoteError::Unsupported("an undecided size"));
        };
        self.say(WireField::Size, "a size", json!(size.to_string()))?;
        if self.dialect.wire(WireField::Seed).is_some() {
            self.say(WireField::Seed, "a seed", json!(spec.seed))?;
        }
        if request.audio_switch {
            self.say(WireField::AudioSwitch, "sound", json!(spec.generate_audio))?;
        } else if spec.generate_audio {
            return Err(RemoteError::Unsupported("sound"));
        }
        Ok(())
    }

    fn say(
        &mut self,
        field: WireField,
        what: &'static str,
        value: Value,
    ) -> Result<(), RemoteError> {
        let (name, shape) = self
            .dialect
            .wire(field)
            .ok_or(RemoteError::Unsupported(what))?;
        let value = match (shape, value) {
            (FieldShape::Text, Value::Number(number)) => Value::String(number.to_string()),
            (_, value) => value,
        };
        self.said.push((name, EncodedValue::Plain(value)));
        Ok(())
    }

    async fn say_references(&mut self, request: &RemoteRequest) -> Result<(), RemoteError> {
        let urls: Vec<&str> = request
            .spec
            .inputs
            .references()
            .iter()
            .map(|reference| reference.url())
            .collect();
        if urls.len() != request.references.len() {
            return Err(RemoteError::Unsupported("references without their files"));
        }
        let all: Vec<(&str, &ReferenceFile)> = urls.into_iter().zip(&request.references).collect();
        match &request.spec.inputs {
            VideoInputs::Text => Ok(()),
            VideoInputs::Frames { .. } => {
                let (first, last) = all.split_at(1);
                self.say_items(WireField::FirstFrame, "a first frame", first)
                    .await?;
                self.say_items(WireField::LastFrame, "a last frame", last)
                    .await
            }
            VideoInputs::References { images, .. } => {
                let (images, audios) = all.split_at(images.len());
                self.say_items(WireField::Images, "so many reference images", images)
                    .await?;
                self.say_items(WireField::Audios, "so much reference sound", audios)
                    .await
            }
        }
    }

    async fn say_items(
        &mut self,
        field: WireField,
        what: &'static str,
        items: &[(&str, &ReferenceFile)],
    ) -> Result<(), RemoteError> {
        let Some((first_url, first_file)) = items.first() else {
            return Ok(());
        };
        let (name, shape) = self
            .dialect
            .wire(field)
            .ok_or(RemoteError::Unsupported(what))?;
        let said = match shape {
            FieldShape::Urls(max) if items.len() <= max as usize => {
                self.add_files(items).await?;
                let urls: Vec<&str> = items.iter().map(|(url, _)| *url).collect();
                EncodedValue::Plain(json!(urls))
            }
            FieldShape::Url if items.len() == 1 => {
                self.add_files(items).await?;
                EncodedValue::Plain(json!(first_url))
            }
            FieldShape::Upload if items.len() == 1 => EncodedValue::Upload {
                file: (*first_file).clone(),
                bytes: self.read(first_file).await?,
            },
            FieldShape::DataUrl(key) if items.len() == 1 => {
                let bytes = STANDARD.encode(self.read(first_file).await?);
                let url = format!("data:{};base64,{bytes}", first_file.media_type);
                EncodedValue::Plain(Value::Object(Map::from_iter([(
                    key.to_owned(),
                    json!(url),
                )])))
            }
            _ => return Err(RemoteError::Unsupported(what)),
        };
        self.said.push((name, said));
        Ok(())
    }

    /// Adds those of `items` whose URL nobody else can read.
    async fn add_files(&mut self, items: &[(&str, &ReferenceFile)]) -> Result<(), RemoteError> {
        for (reference, file) in items {
            let is_added = self.files.iter().any(|one| one.reference == *reference);
            if uploaded::blob_key(reference).is_none() || is_added {
                continue;
            }
            if self.dialect.uploads.is_none() {
                return Err(RemoteError::Unsupported("an uploaded file as a URL"));
            }
            let part = FormPart {
                name: "file".to_owned(),
                content: self.file_content(file).await?,
            };
            self.files.push(EncodedFile {
                reference: (*reference).to_owned(),
                form: encode_form(&[part]),
            });
        }
        Ok(())
    }

    async fn file_content(&mut self, file: &ReferenceFile) -> Result<PartContent, RemoteError> {
        Ok(PartContent::File {
            file_name: format!("reference.{}", file_ending(&file.media_type)),
            media_type: file.media_type.clone(),
            bytes: self.read(file).await?,
        })
    }

    /// Reads a reference, within the remaining size of the body.
    async fn read(&mut self, file: &ReferenceFile) -> Result<Bytes, RemoteError> {
        if !is_media_type(&file.media_type) {
            return Err(RemoteError::Unsupported("a reference of unknown type"));
        }
        let metadata = tokio::fs::metadata(&file.path).await;
        let length = metadata.map_err(RemoteError::Storage)?.len();
        self.bytes_left = self
            .bytes_left
            .checked_sub(length)
            .ok_or(RemoteError::RequestTooLarge(self.bytes_max))?;
        let bytes = tokio::fs::read(&file.path).await;
        Ok(bytes.map_err(RemoteError::Storage)?.into())
    }

    fn write(self) -> EncodedBody {
        let has_upload = self
            .said
            .iter()
            .any(|(_, said)| matches!(said, EncodedValue::Upload { .. }));
        match self.dialect.form {
            BodyForm::Multipart => self.write_form(),
            BodyForm::JsonUnlessUpload if has_upload => self.write_form(),
            BodyForm::Json | BodyForm::JsonUnlessUpload => self.write_json(),
        }
    }

    fn write_json(self) -> EncodedBody {
        let object: Map<String, Value> = self
            .said
            .into_iter()
            .filter_map(|(name, said)| match said {
                EncodedValue::Plain(value) => Some((name.to_owned(), value)),
                // Only forms have uploads; each dialect's table ensures this.
                EncodedValue::Upload { .. } => None,
            })
            .collect();
        EncodedBody {
            content_type: "application/json".to_owned(),
            body: Value::Object(object).to_string().into(),
        }
    }

    fn write_form(self) -> EncodedBody {
        let mut parts = Vec::with_capacity(self.said.len());
        for (name, said) in self.said {
            match said {
                EncodedValue::Plain(Value::Array(items)) => {
                    parts.extend(
                        items
                            .into_iter()
                            .map(|item| text_part(format!("{name}[]"), item)),
                    );
                }
                EncodedValue::Plain(value) => parts.push(text_part(name.to_owned(), value)),
                EncodedValue::Upload { file, bytes } => parts.push(FormPart {
                    name: name.to_owned(),
                    content: PartContent::File {
                        file_name: format!("reference.{}", file_ending(&file.media_type)),
                        media_type: file.media_type,
                        bytes,
                    },
                }),
            }
        }
        encode_form(&parts)
    }
}

/// Refuses references to earlier tasks, which upstreams do not have.
fn refuse_chains(spec: &VideoSpec) -> Result<(), RemoteError> {
    for (is_asked, what) in [
        (spec.draft, "a draft"),
        (spec.final_of.is_some(), "the final of a draft"),
        (spec.edit.is_some(), "an edit"),
    ] {
        if is_asked {
            return Err(RemoteError::Unsupported(what));
        }
    }
    Ok(())
}

/// Strings unchanged, everything else as JSON.
fn text_part(name: String, value: Value) -> FormPart {
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    FormPart {
        name,
        content: PartContent::Text(text),
    }
}

/// A video to be generated by an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteRequest {
    /// The upstream's name of the model; `None` lets the upstream choose.
    pub model: Option<String>,
    /// The requested video; its size must be decided.
    pub spec: VideoSpec,
    /// The fetched reference files, in the order of the spec's
    /// [`references`](kinora_contract::VideoInputs::references).
    pub references: Vec<ReferenceFile>,
    /// Whether the upstream's model has a switch for sound.
    pub audio_switch: bool,
    /// Unique for each run that may be charged, and the same for its repetition: the task's id. 1
    /// to 255 visible ASCII characters.
    pub key: String,
    /// Names of upstreams at which it failed: it goes to another one while there is one.
    pub avoid: Vec<String>,
}

/// A task at an upstream: saved so that polling continues after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteTicket {
    /// The configured name of the upstream.
    pub upstream: String,
    /// The task's identifier there.
    pub id: String,
}
