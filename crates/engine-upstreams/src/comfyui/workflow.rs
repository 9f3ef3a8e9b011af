//! A workflow as ComfyUI exports it for its API, and `[engines.bindings]`: which input of which node takes which
//! part of a request. An input is a literal, or a link `[node, output]` to another node. The editor's own format
//! is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kinora_contract::Features;
use kinora_engine::KindError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::servers::OneOrMany;

/// Larger files are no workflows.
pub(crate) const WORKFLOW_BYTES_MAX: u64 = 8 << 20;

/// The nodes of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    pub(crate) nodes: BTreeMap<String, WorkflowNode>,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkflowNode {
    /// The name of its class at the server.
    pub(crate) class: String,
    /// Its title in the editor, or its class.
    title: String,
    /// Literals and links, by name.
    pub(crate) inputs: Map<String, Value>,
}

/// A file that is JSON, but no usable workflow.
fn unusable(what: &str) -> KindError {
    KindError(format!("not a workflow in ComfyUI's API format: {what}"))
}

impl Workflow {
    /// Parses an exported workflow.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub fn read(bytes: &[u8]) -> Result<Self, KindError> {
        let sent = serde_json::from_slice(bytes);
        let sent = sent.map_err(|error| KindError(format!("it is not JSON: {error}")))?;
        let Value::Object(sent) = sent else {
            return Err(unusable("it is not a JSON object"));
        };
        if sent.get("nodes").is_some_and(Value::is_array) {
            return Err(KindError(
                "it is a workflow as the editor saves it; in ComfyUI choose Workflow > Export (API), and use that file"
                    .to_owned(),
            ));
        }
        let mut nodes = BTreeMap::new();
        for (id, node) in sent {
            let class = node.get("class_type").and_then(Value::as_str);
            let inputs = node.get("inputs").and_then(Value::as_object);
            let (Some(class), Some(inputs)) = (class, inputs) else {
                let what = format!("node '{id}' has no class_type or no inputs");
                return Err(unusable(&what));
            };
            let title = node.pointer("/_meta/title").and_then(Value::as_str);
            let node = WorkflowNode {
                class: class.to_owned(),
                title: title.unwrap_or(class).to_owned(),
                inputs: inputs.clone(),
            };
            nodes.insert(id, node);
        }
        if nodes.is_empty() {
            return Err(unusable("it has no nodes"));
        }
        Ok(Self { nodes })
    }

    /// Only the nodes that `output` needs, itself included: other outputs would cost time, and their
    /// errors would hide ours.
    pub(crate) fn only_for(mut self, output: &str) -> Self {
        let mut needed = BTreeSet::new();
        let mut open = vec![output.to_owned()];
        while let Some(id) = open.pop() {
            if let Some(node) = self.nodes.get(&id)
                && needed.insert(id)
            {
                open.extend(node.inputs.values().filter_map(link).map(str::to_owned));
            }
        }
        self.nodes.retain(|id, _| needed.contains(id));
        self
    }

    /// The inputs that `id` feeds, as `(node, input)`.
    pub(crate) fn fed_by<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.nodes.iter().flat_map(move |(consumer, node)| {
            let fed = node
                .inputs
                .iter()
                .filter(move |(_, value)| link(value) == Some(id));
            fed.map(move |(input, _)| (consumer.as_str(), input.as_str()))
        })
    }

    /// Sets a literal. A node that is not there is left so: its file is not part of the request.
    pub(crate) fn set(&mut self, node: &str, input: &str, value: Value) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.inputs.insert(input.to_owned(), value);
        }
    }

    /// Removes a node and all links to it.
    pub(crate) fn remove(&mut self, id: &str) {
        self.nodes.remove(id);
        for node in self.nodes.values_mut() {
            node.inputs.retain(|_, value| link(value) != Some(id));
        }
    }

    /// As a server takes it.
    pub(crate) fn to_json(&self) -> Value {
        Value::Object(
            self.nodes
                .iter()
                .map(|(id, node)| {
                    let sent = json!({"class_type": node.class, "inputs": node.inputs});
                    (id.clone(), sent)
                })
                .collect(),
        )
    }
}

/// The node that a link leads to; `None` for a literal.
pub(crate) fn link(value: &Value) -> Option<&str> {
    match value.as_array()?.as_slice() {
        [Value::String(node), Value::Number(_)] => Some(node),
        _ => None,
    }
}

/// One input of one node: `"6.text"`. Identifiers of nodes have no full stop; names of inputs may.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct BindingTarget {
    /// The node's identifier.
    pub node: String,
    /// The input's name.
    pub input: String,
}

/// Inputs that take the same value: one, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "OneOrMany<BindingTarget>")]
pub struct BindingTargets(pub Vec<BindingTarget>);

/// A file of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputRole {
    /// The image that the film starts with.
    FirstFrame,
    /// The image that the film ends with.
    LastFrame,
    /// Images to show.
    ReferenceImages,
    /// Sound to hear.
    ReferenceAudios,
    /// The video to edit.
    SourceVideo,
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowBindings {
    /// The prompt.
    pub prompt: BindingTargets,
    /// Things to avoid.
    pub negative_prompt: BindingTargets,
    /// The seed, a number of 32 bits.
    pub seed: BindingTargets,
    /// Width in pixels.
    pub width: BindingTargets,
    /// Height in pixels.
    pub height: BindingTargets,
    /// Number of frames.
    pub frames: BindingTargets,
    /// Frames per second.
    pub fps: BindingTargets,
    /// Whether the film has sound.
    pub generate_audio: BindingTargets,
    /// 0.0 keeps the source of an edit, 1.0 replaces it.
    pub edit_strength: BindingTargets,
    /// The image that the film starts with.
    pub first_frame: Option<BindingTarget>,
    /// The image that the film ends with.
    pub last_frame: Option<BindingTarget>,
    /// One input for each image.
    pub reference_images: Vec<BindingTarget>,
    /// One input for each sound.
    pub reference_audios: Vec<BindingTarget>,
    /// The video to edit.
    pub source_video: Option<BindingTarget>,
    /// Takes the start of the output's file name; by default the input of that name of `output`.
    pub filename_prefix: Option<BindingTarget>,
    /// The node whose film is the result.
    pub output: String,
    /// Files that a request may lack. Their nodes are left out then, with the links to them.
    pub optional: Vec<InputRole>,
}

impl TryFrom<String> for BindingTarget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('.') {
            Some((node, input)) if !node.is_empty() && !input.is_empty() => Ok(Self {
                node: node.to_owned(),
                input: input.to_owned(),
            }),
            _ => Err(format!(
                "'{text}' does not name an input of a node; write NODE.INPUT, such as \"6.text\""
            )),
        }
    }
}

impl fmt::Display for BindingTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.input)
    }
}

impl From<OneOrMany<BindingTarget>> for BindingTargets {
    fn from(given: OneOrMany<BindingTarget>) -> Self {
        Self(given.into())
    }
}

impl BindingTargets {
    /// Whether nothing is bound.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl InputRole {
    /// Every role.
    pub const ALL: [Self; 5] = [
        Self::FirstFrame,
        Self::LastFrame,
        Self::ReferenceImages,
        Self::ReferenceAudios,
        Self::SourceVideo,
    ];

    /// Its name in the configuration, and of its files at a server.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstFrame => "first_frame",
            Self::LastFrame => "last_frame",
            Self::ReferenceImages => "reference_images",
            Self::ReferenceAudios => "reference_audios",
            Self::SourceVideo => "source_video",
        }
    }
}

impl WorkflowBindings {
    /// The inputs of a role, one for each file.
    pub fn slots(&self, role: InputRole) -> &[BindingTarget] {
        match role {
            InputRole::FirstFrame => self.first_frame.as_slice(),
            InputRole::LastFrame => self.last_frame.as_slice(),
            InputRole::ReferenceImages => &self.reference_images,
            InputRole::ReferenceAudios => &self.reference_audios,
            InputRole::SourceVideo => self.source_video.as_slice(),
        }
    }

    /// Whether a request may lack the files of `role`.
    pub fn is_optional(&self, role: InputRole) -> bool {
        self.optional.contains(&role)
    }

    /// The inputs of values, with the names of their bindings.
    pub fn values(&self) -> [(&'static str, &BindingTargets); 9] {
        [
            ("prompt", &self.prompt),
            ("negative_prompt", &self.negative_prompt),
            ("seed", &self.seed),
            ("width", &self.width),
            ("height", &self.height),
            ("frames", &self.frames),
            ("fps", &self.fps),
            ("generate_audio", &self.generate_audio),
            ("edit_strength", &self.edit_strength),
        ]
    }

    /// The input that takes the start of the file name.
    pub fn prefix(&self) -> BindingTarget {
        self.filename_prefix
            .clone()
            .unwrap_or_else(|| BindingTarget {
                node: self.output.clone(),
                input: "filename_prefix".to_owned(),
            })
    }

    /// Roles without which no request can run.
    fn musts(&self) -> impl Iterator<Item = InputRole> + '_ {
        InputRole::ALL
            .into_iter()
            .filter(|role| !self.slots(*role).is_empty() && !self.is_optional(*role))
    }

    /// Whether requests that bring the files of `role` can run.
    fn takes(&self, role: InputRole) -> bool {
        !self.slots(role).is_empty() && self.musts().all(|must| must == role)
    }

    /// The requests that the engine takes.
    pub fn features(&self) -> Features {
        let first_frame = self.takes(InputRole::FirstFrame);
        let images = self.takes(InputRole::ReferenceImages);
        let count = |is_taken: bool, role| {
            if is_taken {
                u32::try_from(self.slots(role).len()).unwrap_or(u32::MAX)
            } else {
                0
            }
        };
        Features {
            text_to_video: self.musts().next().is_none(),
            first_frame,
            last_frame: first_frame && self.last_frame.is_some(),
            reference_images_max: count(images, InputRole::ReferenceImages),
            reference_audios_max: count(images, InputRole::ReferenceAudios),
            audio_output: !self.generate_audio.is_empty(),
            auto_duration: false,
            negative_prompt: !self.negative_prompt.is_empty(),
            draft: false,
            edit: self.takes(InputRole::SourceVideo),
        }
    }

    /// Refuses bindings that contradict each other.
    ///
    /// # Errors
    /// A sentence for an operator.
    pub fn check(&self) -> Result<(), KindError> {
        let wrong = |what: &str| Err(KindError(format!("bindings.{what}")));
        if self.prompt.is_empty() {
            return wrong("prompt must name the input that takes the prompt, such as \"6.text\"");
        }
        if self.output.is_empty() {
            return wrong("output must name the node that saves the film, such as \"9\"");
        }
        if self.width.is_empty() != self.height.is_empty() {
            return wrong("width and bindings.height go together");
        }
        if self.last_frame.is_some() && self.first_frame.is_none() {
            return wrong("last_frame needs bindings.first_frame");
        }
        if !self.reference_audios.is_empty() && self.reference_images.is_empty() {
            return wrong("reference_audios needs bindings.reference_images");
        }
        // A request may have the one without the other.
        for role in [InputRole::LastFrame, InputRole::ReferenceAudios] {
            if !self.slots(role).is_empty() && !self.is_optional(role) {
                let name = role.name();
                return wrong(&format!("optional must contain \"{name}\""));
            }
        }
        let musts: Vec<&str> = self.musts().map(InputRole::name).collect();
        if let [first, second, ..] = musts[..] {
            return wrong(&format!(
                "optional must contain \"{first}\" or \"{second}\": no request has both"
            ));
        }
        match self
            .optional
            .iter()
            .find(|role| self.slots(**role).is_empty())
        {
            Some(role) => wrong(&format!(
                "optional names {}, which is not bound",
                role.name()
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = r#"{
        "1": {"class_type": "LoadImage", "inputs": {"image": "a.png"}},
        "2": {"class_type": "Sampler", "inputs": {"start": ["1", 0], "steps": 20}},
        "3": {"class_type": "SaveVideo", "inputs": {"video": ["2", 0]}, "_meta": {"title": "Save"}},
        "4": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}}
    }"#;

    #[test]
    fn only_what_the_output_needs_is_left() {
        let graph = Workflow::read(GRAPH.as_bytes()).unwrap().only_for("3");
        let left: Vec<&String> = graph.nodes.keys().collect();
        assert_eq!(left, ["1", "2", "3"]);
        assert_eq!(graph.nodes.get("3").unwrap().title, "Save");
        assert_eq!(graph.fed_by("1").collect::<Vec<_>>(), [("2", "start")]);
    }

    #[test]
    fn a_node_goes_with_the_links_to_it() {
        let mut graph = Workflow::read(GRAPH.as_bytes()).unwrap().only_for("3");
        graph.remove("1");
        graph.set("1", "image", json!("b.png"));
        graph.set("2", "steps", json!(4));
        let sent = graph.to_json();
        assert_eq!(sent["2"]["inputs"], json!({"steps": 4}));
        assert!(sent.get("1").is_none());
    }

    #[test]
    fn what_is_no_exported_workflow_is_refused_with_what_to_do() {
        let of = |text: &str| Workflow::read(text.as_bytes()).unwrap_err().to_string();
        assert!(of(r#"{"nodes": [], "links": []}"#).contains("Export (API)"));
        for wrong in ["", "[]", "{}", r#"{"1": {"class_type": "A"}}"#] {
            assert!(!of(wrong).is_empty());
        }
    }

    fn bindings(text: &str) -> WorkflowBindings {
        toml::from_str(&format!("prompt = \"6.text\"\noutput = \"9\"\n{text}")).unwrap()
    }

    #[test]
    fn features_follow_from_the_bindings() {
        let text = bindings("").features();
        assert!(text.text_to_video && !text.first_frame && !text.negative_prompt);
        let image = bindings("first_frame = \"1.image\"").features();
        assert!(!image.text_to_video && image.first_frame && !image.last_frame && !image.edit);
        let all = bindings(
            "first_frame = \"1.image\"\nlast_frame = \"2.image\"\nreference_images = [\"3.image\", \"4.image\"]\n\
             reference_audios = [\"5.audio\"]\nsource_video = \"7.file\"\nnegative_prompt = [\"6.a\", \"8.b.c\"]\n\
             optional = [\"first_frame\", \"last_frame\", \"reference_images\", \"reference_audios\", \"source_video\"]",
        );
        all.check().unwrap();
        assert_eq!(all.negative_prompt.0[1].input, "b.c");
        let all = all.features();
        assert!(all.text_to_video && all.first_frame && all.last_frame && all.edit);
        assert_eq!((all.reference_images_max, all.reference_audios_max), (2, 1));
        assert!(!all.auto_duration && !all.draft && !all.audio_output);
    }

    #[test]
    fn bindings_that_no_request_could_meet_are_refused_with_what_to_do() {
        for (text, word) in [
            ("width = \"5.width\"", "height"),
            ("last_frame = \"1.image\"", "first_frame"),
            ("first_frame = \"1.i\"\nlast_frame = \"2.i\"", "last_frame"),
            (
                "first_frame = \"1.i\"\nsource_video = \"2.i\"",
                "no request has both",
            ),
            ("optional = [\"first_frame\"]", "not bound"),
        ] {
            let error = bindings(text).check().unwrap_err();
            assert!(error.0.contains(word), "{error}");
        }
        assert!(toml::from_str::<WorkflowBindings>("prompt = \"text\"").is_err());
        assert!(
            WorkflowBindings::default()
                .check()
                .unwrap_err()
                .0
                .contains("prompt")
        );
    }
}
