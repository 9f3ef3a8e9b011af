//! A request to an upstream and its encoding in a dialect: a path, a body and headers, and the files to upload
//! before it. Refuses what the dialect cannot say; only the seed may be omitted.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kinora_contract::{
    AspectRatio, Resolution, Size, VideoInputs, VideoLength, VideoSpec, uploaded,
};
use kinora_engine::ReferenceFile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::address::EncodedPath;
use super::calls::{BodyForm, InputKind};
use super::dialect::ServerDialect;
use super::template::{EachReference, Placeholder, TemplateScope, ValueForm, ValueName, text_of};
use crate::servers::{
    EncodedBody, FormPart, ReferenceReader, UpstreamError, encode_form, file_ending, is_media_type,
};

/// What a dialect without uploads cannot say.
pub(crate) const NO_UPLOADS: &str = "an uploaded file as a URL";

/// A request in a dialect, which can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct EncodedRequest {
    values: RequestValues,
    body: EncodedBody,
    pub(crate) path: EncodedPath,
    headers: Vec<(String, String)>,
    /// The files that a server must have first.
    pub(crate) files: Vec<EncodedFile>,
}

/// A reference that was uploaded to this service: nobody else can read its address, so its bytes are
/// uploaded to the upstream.
#[derive(Clone, Debug)]
pub(crate) struct EncodedFile {
    /// The reference in the spec.
    reference: String,
    /// The form of its upload.
    pub(crate) form: EncodedBody,
}

impl EncodedRequest {
    /// The body for a server that has the files at these addresses.
    pub(crate) fn body_with(&self, addresses: &[String]) -> Result<EncodedBody, UpstreamError> {
        if addresses.is_empty() {
            return Ok(self.body.clone());
        }
        let mut values = self.values.clone();
        for (file, address) in self.files.iter().zip(addresses) {
            let references = values.references.iter_mut().flatten();
            let same = references.filter(|one| one.reference == file.reference);
            same.for_each(|one| one.url = Some(address.clone()));
        }
        values.body()
    }

    /// The headers of the submit.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        let pairs = self.headers.iter();
        pairs
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    /// The ticket of the task `id` that this request became at `upstream`.
    pub(crate) fn ticket(&self, upstream: &str, id: String) -> RemoteTicket {
        let RequestValues {
            dialect, request, ..
        } = &self.values;
        let (path, model) = (&self.path.path, &request.model);
        let needs = |name| dialect.needs_later(name);
        RemoteTicket {
            path: needs(ValueName::Path).then(|| path.clone()),
            model: model.clone().filter(|_| needs(ValueName::Model)),
            ..RemoteTicket::new(upstream, id)
        }
    }
}

/// Reads the references and writes the body.
pub(crate) async fn encode(
    request: &RemoteRequest,
    dialect: &Arc<ServerDialect>,
    bytes_max: u64,
) -> Result<EncodedRequest, UpstreamError> {
    let mut values = RequestValues::new(request, dialect)?;
    let files = values.load(ReferenceReader::new(bytes_max)).await?;
    let kind = values.kind;
    let mut headers = Vec::new();
    for (name, value) in &dialect.submit.headers {
        if let Some(value) = value.text(&values)? {
            if !value.chars().all(|one| matches!(one, '\t' | ' '..='~')) {
                let what = format!("this value of the header {name}: only plain text of one line");
                return Err(UpstreamError::Unsupported(what.into()));
            }
            headers.push((name.clone(), value));
        }
    }
    if let Some(name) = &dialect.submit.idempotency_header {
        headers.push((name.clone(), request.key.clone()));
    }
    let path = dialect.submit.path(kind).expand(&values)?;
    let body = values.body()?;
    if body.body.len() as u64 > bytes_max {
        return Err(UpstreamError::RequestTooLarge(bytes_max));
    }
    Ok(EncodedRequest {
        values,
        body,
        path,
        headers,
        files,
    })
}

/// The values of a request.
#[derive(Clone, Debug)]
struct RequestValues {
    dialect: Arc<ServerDialect>,
    kind: InputKind,
    request: RemoteRequest,
    size: Size,
    seconds: Value,
    references: ReferenceLists,
}

/// The references of a request by their places: first frame, last frame, images, sounds.
type ReferenceLists = [Vec<LoadedReference>; 4];

/// The place of a value in [`ReferenceLists`]; an empty range for one that is no reference.
const fn places(name: ValueName) -> Range<usize> {
    match name {
        ValueName::FirstFrame => 0..1,
        ValueName::LastFrame => 1..2,
        ValueName::Images | ValueName::Image => 2..3,
        ValueName::Audios | ValueName::Sound => 3..4,
        _ => 0..0,
    }
}

/// A reference, of which the dialect may send the URL or the bytes.
#[derive(Clone, Debug)]
struct LoadedReference {
    /// As the spec names it.
    reference: String,
    file: ReferenceFile,
    /// An address that the server can read.
    url: Option<String>,
    /// Only if the dialect sends them.
    bytes: Option<Bytes>,
}

impl RequestValues {
    fn new(request: &RemoteRequest, dialect: &Arc<ServerDialect>) -> Result<Self, UpstreamError> {
        let spec = &request.spec;
        let kind = InputKind::of(&spec.inputs);
        check_said(request, dialect, kind)?;
        let references = references_of(request)?;
        let seconds = match spec.seconds {
            VideoLength::Fixed(seconds) => json!(seconds),
            VideoLength::Auto => {
                let auto = dialect.submit.auto_seconds.clone();
                auto.ok_or(UpstreamError::Unsupported("an automatic length".into()))?
            }
        };
        let size = spec.render_size();
        Ok(Self {
            dialect: dialect.clone(),
            kind,
            request: request.clone(),
            size: size.ok_or(UpstreamError::Unsupported("an undecided size".into()))?,
            seconds,
            references,
        })
    }

    /// Reads the bytes that the template needs; returns the files to upload.
    async fn load(
        &mut self,
        mut reader: ReferenceReader,
    ) -> Result<Vec<EncodedFile>, UpstreamError> {
        let dialect = self.dialect.clone();
        let mut uploads: Vec<EncodedFile> = Vec::new();
        let mut forms: Vec<(ValueName, ValueForm)> = Vec::new();
        dialect.submit.visit(self.kind, &mut |_, hole, _| {
            if hole.name.is_reference() {
                forms.push((hole.name, hole.form));
            }
        });
        for (name, form) in forms {
            for reference in self.references[places(name)].iter_mut().flatten() {
                match form {
                    ValueForm::MediaType => {}
                    ValueForm::Url | ValueForm::Plain if reference.url.is_some() => {}
                    ValueForm::Url => {
                        if uploads
                            .iter()
                            .any(|one| one.reference == reference.reference)
                        {
                            continue;
                        }
                        let call = dialect.uploads.as_ref();
                        let call = call.ok_or(UpstreamError::Unsupported(NO_UPLOADS.into()))?;
                        let bytes = read_typed(&mut reader, &reference.file).await?;
                        let part = file_part(&call.field, &reference.file, bytes);
                        uploads.push(EncodedFile {
                            reference: reference.reference.clone(),
                            form: encode_form(&[part]),
                        });
                    }
                    _ if reference.bytes.is_some() => {}
                    _ => reference.bytes = Some(read_typed(&mut reader, &reference.file).await?),
                }
            }
        }
        Ok(uploads)
    }

    fn named(
        &self,
        name: ValueName,
        item: Option<usize>,
    ) -> impl Iterator<Item = &LoadedReference> {
        let (first, count) = match name {
            ValueName::Image | ValueName::Sound => (item.unwrap_or_default(), 1),
            _ => (0, usize::MAX),
        };
        let all = self.references[places(name)].iter().flatten();
        all.skip(first).take(count)
    }

    fn body(&self) -> Result<EncodedBody, UpstreamError> {
        let template = self.dialect.submit.body(self.kind);
        let has_file = template.entries().iter().any(|(_, entry)| {
            let hole = entry.single().filter(|hole| hole.form == ValueForm::File);
            hole.is_some_and(|hole| self.named(hole.name, None).next().is_some())
        });
        let is_form = match self.dialect.submit.form {
            BodyForm::Json => false,
            BodyForm::Multipart => true,
            BodyForm::JsonUnlessFile => has_file,
        };
        if is_form {
            return self.form();
        }
        let body = template.value(self)?.unwrap_or_else(|| json!({}));
        Ok(EncodedBody::json(&body))
    }

    fn form(&self) -> Result<EncodedBody, UpstreamError> {
        let mut parts = Vec::new();
        for (name, template) in self.dialect.submit.body(self.kind).entries() {
            let listed = format!("{name}[]");
            if let Some(hole) = template
                .single()
                .filter(|hole| hole.form == ValueForm::File)
            {
                let is_list = matches!(hole.name, ValueName::Images | ValueName::Audios);
                let name = if is_list { &listed } else { name };
                parts.extend(self.named(hole.name, None).map(|reference| {
                    let bytes = reference.bytes.clone().unwrap_or_default();
                    file_part(name, &reference.file, bytes)
                }));
                continue;
            }
            match template.value(self)? {
                None => {}
                Some(Value::Array(items)) => {
                    let texts = items.into_iter().map(text_of);
                    parts.extend(texts.map(|text| FormPart::text(&listed, text)));
                }
                Some(value) => parts.push(FormPart::text(name, text_of(value))),
            }
        }
        Ok(encode_form(&parts))
    }

    fn plain(&self, name: ValueName) -> Option<Value> {
        let (request, spec, size) = (&self.request, &self.request.spec, self.size);
        Some(match name {
            ValueName::Model => json!(request.model.as_ref()?),
            ValueName::Prompt => json!(spec.prompt),
            ValueName::NegativePrompt => json!(spec.negative_prompt.as_ref()?),
            ValueName::Seed => json!(spec.seed),
            ValueName::Seconds => self.seconds.clone(),
            ValueName::Size => json!(size.to_string()),
            ValueName::Width => json!(size.width),
            ValueName::Height => json!(size.height),
            ValueName::Ratio => json!(names_of(size).1.name()),
            ValueName::Tier => json!(names_of(size).0.name()),
            ValueName::Audio if request.audio_switch => json!(spec.generate_audio),
            ValueName::Key => json!(request.key),
            _ => return None,
        })
    }
}

/// The nearest named resolution and shape.
fn names_of(size: Size) -> (Resolution, AspectRatio) {
    if let Some(named) = size.named() {
        return named;
    }
    let short = size.width.min(size.height);
    let side = |one: &Resolution| one.size(AspectRatio::R1x1).width.abs_diff(short);
    let resolution = Resolution::ALL
        .into_iter()
        .min_by_key(side)
        .unwrap_or(Resolution::P720);
    let listed = resolution.nearest(size.width, size.height);
    listed.named().unwrap_or((resolution, AspectRatio::R16x9))
}

impl TemplateScope for RequestValues {
    fn value(
        &self,
        placeholder: &Placeholder,
        item: Option<usize>,
    ) -> Result<Option<Value>, UpstreamError> {
        let Placeholder { name, form, .. } = placeholder;
        if !name.is_reference() {
            return written(self.plain(*name), placeholder, &self.dialect);
        }
        let written = self.named(*name, item).map(|one| one.written(*form));
        Ok(match name {
            ValueName::Images | ValueName::Audios => {
                let all: Vec<Value> = written.flatten().collect();
                (!all.is_empty()).then(|| all.into())
            }
            _ => written.flatten().next(),
        })
    }

    fn count(&self, each: EachReference) -> usize {
        let name = match each {
            EachReference::Image => ValueName::Images,
            EachReference::Sound => ValueName::Audios,
        };
        self.named(name, None).count()
    }
}

/// A value in the form of `placeholder`, and as its table translates it.
pub(crate) fn written(
    value: Option<Value>,
    placeholder: &Placeholder,
    dialect: &ServerDialect,
) -> Result<Option<Value>, UpstreamError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let value = match placeholder.form {
        ValueForm::Text => Value::String(text_of(value)),
        ValueForm::Bits31 => json!(value.as_u64().unwrap_or_default() & 0x7fff_ffff),
        ValueForm::Upper => Value::String(text_of(value).to_uppercase()),
        ValueForm::Segments(count) => {
            let text = text_of(value);
            let segments: Vec<&str> = text.split('/').take(count).collect();
            Value::String(segments.join("/"))
        }
        _ => value,
    };
    let Some(table) = &placeholder.table else {
        return Ok(Some(value));
    };
    let text = text_of(value);
    let found = dialect.lookup.get(table).and_then(|table| table.get(&text));
    let found = found.ok_or_else(|| {
        let what = format!("{placeholder} {text}, which is not in its table {table}");
        UpstreamError::Unsupported(what.into())
    })?;
    Ok(Some(Value::String(found.clone())))
}

impl LoadedReference {
    /// `None` for bytes that were not read: the template asks for none of them then.
    fn written(&self, form: ValueForm) -> Option<Value> {
        let base64 = || Some(STANDARD.encode(self.bytes.as_ref()?));
        let data_url = || {
            Some(format!(
                "data:{};base64,{}",
                self.file.media_type,
                base64()?
            ))
        };
        let text = match form {
            ValueForm::MediaType => Some(self.file.media_type.clone()),
            ValueForm::Base64 => base64(),
            ValueForm::DataUrl => data_url(),
            // Before its upload: takes the place of the address, so that the size of the body is known.
            ValueForm::Url => Some(self.url.clone().unwrap_or_else(|| self.reference.clone())),
            _ => self.url.clone().or_else(data_url),
        };
        text.map(Value::String)
    }
}

fn references_of(request: &RemoteRequest) -> Result<ReferenceLists, UpstreamError> {
    let inputs = &request.spec.inputs;
    let named = inputs.references();
    if named.len() != request.references.len() {
        return Err(UpstreamError::Unsupported(
            "references without their files".into(),
        ));
    }
    let mut all = named
        .iter()
        .zip(&request.references)
        .map(|(item, file)| LoadedReference {
            reference: item.url().to_owned(),
            file: file.clone(),
            url: uploaded::blob_key(item.url())
                .is_none()
                .then(|| item.url().to_owned()),
            bytes: None,
        });
    Ok(counts(inputs).map(|count| all.by_ref().take(count).collect()))
}

/// The bytes of a reference, whose type is a part of what is sent.
async fn read_typed(
    reader: &mut ReferenceReader,
    file: &ReferenceFile,
) -> Result<Bytes, UpstreamError> {
    if !is_media_type(&file.media_type) {
        let what = "a reference of unknown type";
        return Err(UpstreamError::Unsupported(what.into()));
    }
    reader.read(file).await
}

/// How many references a request has at each of their places.
fn counts(inputs: &VideoInputs) -> [usize; 4] {
    match inputs {
        VideoInputs::Text => [0; 4],
        VideoInputs::Frames { last, .. } => [1, usize::from(last.is_some()), 0, 0],
        VideoInputs::References { images, audios } => [0, 0, images.len(), audios.len()],
    }
}

fn file_part(name: &str, file: &ReferenceFile, bytes: Bytes) -> FormPart {
    let file_name = format!("reference.{}", file_ending(&file.media_type));
    FormPart::file(name, &file_name, &file.media_type, bytes)
}

/// Refuses what the submit of this kind does not name, and references to earlier tasks, which upstreams do not have.
fn check_said(
    request: &RemoteRequest,
    dialect: &ServerDialect,
    kind: InputKind,
) -> Result<(), UpstreamError> {
    let (spec, names) = (&request.spec, |name| dialect.submit.names(kind, name));
    let [firsts, lasts, images, audios] = counts(&spec.inputs);
    let lacks = |is_asked: bool, name| is_asked && !names(name);
    let exceeds = |count: usize, each| count > dialect.references_max(each) as usize;
    let has_sound = spec.generate_audio || request.audio_switch;
    let refusals = [
        (spec.draft, "a draft"),
        (spec.final_of.is_some(), "the final of a draft"),
        (spec.edit.is_some(), "an edit"),
        (
            lacks(request.model.is_some(), ValueName::Model),
            "a model name",
        ),
        (
            lacks(spec.negative_prompt.is_some(), ValueName::NegativePrompt),
            "a negative prompt",
        ),
        (lacks(has_sound, ValueName::Audio), "sound"),
        (spec.generate_audio && !request.audio_switch, "sound"),
        (lacks(firsts > 0, ValueName::FirstFrame), "a first frame"),
        (lacks(lasts > 0, ValueName::LastFrame), "a last frame"),
        (
            exceeds(images, EachReference::Image),
            "so many reference images",
        ),
        (
            exceeds(audios, EachReference::Sound),
            "so much reference sound",
        ),
    ];
    match refusals.into_iter().find(|(is_refused, _)| *is_refused) {
        Some((_, what)) => Err(UpstreamError::Unsupported(what.into())),
        None => Ok(()),
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
    /// The path of its submit, if later calls need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The upstream's name of its model, if later calls need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl RemoteTicket {
    /// The ticket of a submit without an answer yet.
    pub fn in_flight() -> Self {
        Self::new("", "")
    }

    /// Whether it stands for a submit without an answer.
    pub fn is_in_flight(&self) -> bool {
        self.id.is_empty()
    }

    /// The ticket of the task `id` at `upstream`.
    pub fn new(upstream: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            upstream: upstream.into(),
            id: id.into(),
            path: None,
            model: None,
        }
    }
}
