//! A workflow with its bindings and `[engines.describe]`: checked against each other without a server, and filled
//! in for one request. Also reads the files of a request for their upload.

use std::collections::BTreeMap;

use bytes::Bytes;
use kinora_contract::{Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{FilmJob, KindError, RenderGrid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::workflow::{
    BindingTarget, BindingTargets, InputRole, Workflow, WorkflowBindings, WorkflowNode, link,
};
use crate::servers::{ReferenceReader, UpstreamError, file_ending, is_media_type, setting};

/// Where films are saved in a server's output folder.
const FOLDER: &str = "kinora";

/// A workflow that takes requests.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowCard {
    /// The nodes that a run needs.
    pub(crate) workflow: Workflow,
    pub(crate) bindings: WorkflowBindings,
    pub(crate) describe: WorkflowDescription,
}

/// The names of uploaded files, as their nodes take them, by role and in order.
pub(crate) type UploadedFiles = BTreeMap<InputRole, Vec<String>>;

impl WorkflowCard {
    /// Checks that every binding names a literal input of a node that the output needs.
    ///
    /// # Errors
    /// The first binding that does not, with what there is instead.
    pub fn new(
        workflow: Workflow,
        bindings: WorkflowBindings,
        describe: WorkflowDescription,
    ) -> Result<Self, KindError> {
        bindings.check()?;
        describe.check()?;
        if !workflow.nodes.contains_key(&bindings.output) {
            let known: Vec<String> = workflow.nodes.iter().map(node_name).collect();
            return Err(KindError(format!(
                "bindings.output: the workflow has no node '{}'; it has {}",
                bindings.output,
                known.join(", ")
            )));
        }
        let whole = workflow.clone();
        let workflow = workflow.only_for(&bindings.output);
        for (name, target) in bound(&bindings) {
            check(&whole, &workflow, &bindings.output, name, &target)?;
        }
        Ok(Self {
            workflow,
            bindings,
            describe,
        })
    }

    /// The graph of one request. `prompt_id` makes the output's name unique: from an identical graph a
    /// server would not save a film again.
    pub(crate) fn fill(
        &self,
        spec: &VideoSpec,
        prompt_id: &str,
        uploaded: &UploadedFiles,
    ) -> Result<Value, UpstreamError> {
        let mut graph = self.workflow.clone();
        for (targets, value) in self.values(spec)? {
            for BindingTarget { node, input } in &targets.0 {
                graph.set(node, input, value.clone());
            }
        }
        let prefix = self.bindings.prefix();
        let name = format!("{FOLDER}/{prompt_id}");
        graph.set(&prefix.node, &prefix.input, json!(name));
        for role in InputRole::ALL {
            let none = Vec::new();
            self.place(&mut graph, role, uploaded.get(&role).unwrap_or(&none))?;
        }
        Ok(graph.to_json())
    }

    /// What the request says, with the inputs that take it.
    fn values(&self, spec: &VideoSpec) -> Result<Vec<(&BindingTargets, Value)>, UpstreamError> {
        let bindings = &self.bindings;
        let size = spec
            .render_size()
            .ok_or_else(|| UpstreamError::Unsupported("an undecided size".into()))?;
        let VideoLength::Fixed(seconds) = spec.seconds else {
            return Err(UpstreamError::Unsupported("an automatic length".into()));
        };
        let size = self.describe.size(size);
        let strength = spec.edit.as_ref().map(|edit| edit.strength);
        let mut values = vec![
            (&bindings.prompt, json!(spec.prompt)),
            (&bindings.seed, json!(spec.seed)),
            (&bindings.width, json!(size.width)),
            (&bindings.height, json!(size.height)),
            (&bindings.frames, json!(self.describe.frames(seconds))),
            (&bindings.fps, json!(self.describe.fps)),
            (&bindings.generate_audio, json!(spec.generate_audio)),
        ];
        // Without one, what the workflow says stays.
        if let Some(negative) = &spec.negative_prompt {
            values.push((&bindings.negative_prompt, json!(negative)));
        }
        if let Some(strength) = strength {
            values.push((&bindings.edit_strength, json!(strength)));
        }
        Ok(values)
    }

    /// Names the files of `role`. Inputs beyond the last file are left out if they may be, and otherwise
    /// get the last one again.
    fn place(
        &self,
        graph: &mut Workflow,
        role: InputRole,
        names: &[String],
    ) -> Result<(), UpstreamError> {
        let slots = self.bindings.slots(role);
        if names.len() > slots.len() {
            return Err(UpstreamError::Unsupported("so many files".into()));
        }
        for (index, slot) in slots.iter().enumerate() {
            match names.get(index).or(names.last()) {
                Some(name) if index < names.len() || !self.bindings.is_optional(role) => {
                    graph.set(&slot.node, &slot.input, json!(name));
                }
                _ if self.bindings.is_optional(role) => graph.remove(&slot.node),
                _ => {
                    return Err(UpstreamError::Unsupported(
                        "a request without a file".into(),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The roles of a spec's references, in their order.
pub(crate) fn roles(spec: &VideoSpec) -> Vec<InputRole> {
    match &spec.inputs {
        VideoInputs::Text => Vec::new(),
        VideoInputs::Frames { last: None, .. } => vec![InputRole::FirstFrame],
        VideoInputs::Frames { .. } => vec![InputRole::FirstFrame, InputRole::LastFrame],
        VideoInputs::References { images, audios } => {
            let images = images.iter().map(|_| InputRole::ReferenceImages);
            let audios = audios.iter().map(|_| InputRole::ReferenceAudios);
            images.chain(audios).collect()
        }
    }
}

/// Every bound input, with the name of its binding.
pub(crate) fn bound(bindings: &WorkflowBindings) -> Vec<(&'static str, BindingTarget)> {
    let mut all = Vec::new();
    for (name, targets) in bindings.values() {
        all.extend(targets.0.iter().map(|target| (name, target.clone())));
    }
    for role in InputRole::ALL {
        let slots = bindings.slots(role).iter();
        all.extend(slots.map(|target| (role.name(), target.clone())));
    }
    all.push(("filename_prefix", bindings.prefix()));
    all
}

fn check(
    whole: &Workflow,
    needed: &Workflow,
    output: &str,
    name: &str,
    target: &BindingTarget,
) -> Result<(), KindError> {
    let wrong = |what: String| Err(KindError(format!("bindings.{name} = \"{target}\": {what}")));
    let Some(node) = needed.nodes.get(&target.node) else {
        return wrong(match whole.nodes.get(&target.node) {
            Some(_) => format!(
                "node {} does not lead to the output, node {output}",
                target.node
            ),
            None => format!("the workflow has no node '{}'", target.node),
        });
    };
    let named = node_name((&target.node, node));
    match node.inputs.get(&target.input) {
        None => {
            let known: Vec<&str> = node.inputs.keys().map(String::as_str).collect();
            wrong(format!(
                "node {named} has no input '{}'; it has {}",
                target.input,
                known.join(", ")
            ))
        }
        Some(value) => match link(value) {
            Some(from) => wrong(format!(
                "node {from} feeds this input of node {named}; bind an input of node {from} instead"
            )),
            None => Ok(()),
        },
    }
}

/// A node, for an operator: `6 (CLIPTextEncode)`.
pub(crate) fn node_name((id, node): (&String, &WorkflowNode)) -> String {
    format!("{id} ({})", node.class)
}

/// No model has a coarser grid, and products with it stay far below overflow.
const STEP_MAX: u32 = 1_024;
/// A film may differ from the request by less than this, in pixels; see `docs/models.md`.
const SIZE_MULTIPLE_MAX: u32 = 62;
/// As fast as any screen that shows the result.
const FPS_MAX: u32 = 120;

/// The table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowDescription {
    /// Frames per second of the films.
    pub fps: u32,
    /// Sides are multiples of this.
    #[serde(default = "setting::<1>")]
    pub size_multiple: u32,
    /// The lengths that the model makes.
    #[serde(default)]
    pub frames: LengthSteps,
    /// Whether the pictures come from a trained model.
    #[serde(default = "yes")]
    pub is_trained: bool,
    /// Version of the workflow and its models, for tasks and files.
    #[serde(default = "first_version")]
    pub version: String,
}

/// `{ step = 4, offset = 1 }`: films have 4 n + 1 frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthSteps {
    /// See above; at least 1.
    pub step: u32,
    /// See above.
    #[serde(default)]
    pub offset: u32,
}

impl Default for LengthSteps {
    fn default() -> Self {
        Self { step: 1, offset: 0 }
    }
}

const fn yes() -> bool {
    true
}

fn first_version() -> String {
    "1".to_owned()
}

impl WorkflowDescription {
    /// Refuses numbers that no model has.
    ///
    /// # Errors
    /// A sentence for an operator.
    pub fn check(&self) -> Result<(), KindError> {
        let wrong = |what: &str| Err(KindError(format!("describe.{what}")));
        if !(1..=SIZE_MULTIPLE_MAX).contains(&self.size_multiple) {
            return wrong(
                "size_multiple must be between 1 and 62: results are off by half of it, and may be by 31 pixels",
            );
        }
        if !(1..=STEP_MAX).contains(&self.frames.step) || self.frames.offset > STEP_MAX {
            return wrong("frames.step must be between 1 and 1024, and frames.offset at most 1024");
        }
        if !(1..=FPS_MAX).contains(&self.fps) {
            return wrong("fps must be between 1 and 120");
        }
        Ok(())
    }

    /// The size on the grid that is nearest to `size`. Nobody crops the film, so it is not rounded up.
    pub fn size(&self, size: Size) -> Size {
        let [width, height] = [size.width, size.height].map(|side| {
            let multiple = self.size_multiple.max(1);
            let rounded = (side + multiple / 2) / multiple * multiple;
            rounded.max(multiple)
        });
        Size::new(width, height)
    }

    /// The smallest number of frames on the grid that lasts `seconds`.
    pub fn frames(&self, seconds: u32) -> u32 {
        let grid = RenderGrid {
            size_multiple: self.size_multiple,
            frame_step: self.frames.step,
            frame_offset: self.frames.offset,
        };
        grid.frames(seconds.saturating_mul(self.fps))
    }
}

/// A file to upload.
pub(crate) struct FileUpload {
    pub(crate) role: InputRole,
    /// Its name at the server, in the folder of its task.
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
}

/// Reads the files of `job`.
pub(crate) async fn read_files(
    job: &FilmJob<'_>,
    bytes_max: u64,
) -> Result<Vec<FileUpload>, UpstreamError> {
    let roles = roles(job.spec);
    if roles.len() != job.references.len() {
        return Err(UpstreamError::Unsupported(
            "references without their files".into(),
        ));
    }
    let source = job.source.map(|file| (InputRole::SourceVideo, file));
    let mut counts: BTreeMap<InputRole, u32> = BTreeMap::new();
    let mut uploads = Vec::new();
    for (role, file) in roles.into_iter().zip(job.references).chain(source) {
        let count = counts.entry(role).or_default();
        *count += 1;
        uploads.push(FileUpload {
            role,
            name: format!("{}-{count}.{}", role.name(), file_ending(&file.media_type)),
            media_type: if is_media_type(&file.media_type) {
                file.media_type.clone()
            } else {
                "application/octet-stream".to_owned()
            },
            bytes: ReferenceReader::new(bytes_max).read(file).await?,
        });
    }
    Ok(uploads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_film_is_made_at_the_nearest_size_and_the_next_length() {
        let text = "fps = 16\nsize_multiple = 16\nframes = { step = 4, offset = 1 }";
        let describe: WorkflowDescription = toml::from_str(text).unwrap();
        describe.check().unwrap();
        assert_eq!(describe.size(Size::new(854, 480)), Size::new(848, 480));
        assert_eq!(describe.size(Size::new(5, 25)), Size::new(16, 32));
        assert_eq!(describe.frames(5), 81);
        for wrong in [
            "fps = 0",
            "fps = 16\nsize_multiple = 64",
            "fps = 16\nframes = { step = 0 }",
        ] {
            assert!(
                toml::from_str::<WorkflowDescription>(wrong)
                    .unwrap()
                    .check()
                    .is_err()
            );
        }
    }
}
