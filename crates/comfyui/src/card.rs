//! A workflow with its bindings: checked against each other without a server, and filled in for one
//! request.

use std::collections::BTreeMap;

use kinora_contract::{Inputs, Seconds, VideoSpec};
use serde_json::{Value, json};

use crate::bindings::{Bindings, Role, Target, Targets};
use crate::describe::Describe;
use crate::error::ComfyError;
use crate::workflow::{Node, Workflow, link};

/// Where films are saved in a server's output folder.
const FOLDER: &str = "kinora";

/// A workflow that takes requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    workflow: Workflow,
    bindings: Bindings,
    describe: Describe,
}

/// Why workflow and bindings do not fit: a sentence for an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CardError(pub String);

/// The names of uploaded files, as their nodes take them, by role and in order.
pub(crate) type Uploaded = BTreeMap<Role, Vec<String>>;

impl Card {
    /// Checks that every binding names a literal input of a node that the output needs.
    ///
    /// # Errors
    /// The first binding that does not, with what there is instead.
    pub fn new(
        workflow: Workflow,
        bindings: Bindings,
        describe: Describe,
    ) -> Result<Self, CardError> {
        bindings.check().map_err(CardError)?;
        describe.check().map_err(CardError)?;
        if workflow.node(&bindings.output).is_none() {
            let known: Vec<String> = workflow.nodes().map(shown).collect();
            return Err(CardError(format!(
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

    /// Its bindings.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Its rate, grid and version.
    pub fn describe(&self) -> &Describe {
        &self.describe
    }

    /// The nodes that a run needs.
    pub(crate) fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// The graph of one request. `prompt_id` makes the output's name unique: from an identical graph a
    /// server would not save a film again.
    ///
    /// # Errors
    /// [`ComfyError::Unsupported`] for a request beyond the bindings.
    pub(crate) fn fill(
        &self,
        spec: &VideoSpec,
        prompt_id: &str,
        uploaded: &Uploaded,
    ) -> Result<Value, ComfyError> {
        let mut graph = self.workflow.clone();
        for (targets, value) in self.values(spec)? {
            for Target { node, input } in &targets.0 {
                graph.set(node, input, value.clone());
            }
        }
        let prefix = self.bindings.prefix();
        let name = format!("{FOLDER}/{prompt_id}");
        graph.set(&prefix.node, &prefix.input, json!(name));
        for role in Role::ALL {
            let none = Vec::new();
            self.place(&mut graph, role, uploaded.get(&role).unwrap_or(&none))?;
        }
        Ok(graph.to_json())
    }

    /// What the request says, with the inputs that take it.
    fn values(&self, spec: &VideoSpec) -> Result<Vec<(&Targets, Value)>, ComfyError> {
        let bindings = &self.bindings;
        let size = spec
            .render_size()
            .ok_or(ComfyError::Unsupported("an undecided size"))?;
        let Seconds::Fixed(seconds) = spec.seconds else {
            return Err(ComfyError::Unsupported("an automatic length"));
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
    fn place(&self, graph: &mut Workflow, role: Role, names: &[String]) -> Result<(), ComfyError> {
        let slots = self.bindings.slots(role);
        if names.len() > slots.len() {
            return Err(ComfyError::Unsupported("so many files"));
        }
        for (index, slot) in slots.iter().enumerate() {
            match names.get(index).or(names.last()) {
                Some(name) if index < names.len() || !self.bindings.is_optional(role) => {
                    graph.set(&slot.node, &slot.input, json!(name));
                }
                _ if self.bindings.is_optional(role) => graph.remove(&slot.node),
                _ => return Err(ComfyError::Unsupported("a request without a file")),
            }
        }
        Ok(())
    }
}

/// The roles of a spec's references, in their order.
pub(crate) fn roles(spec: &VideoSpec) -> Vec<Role> {
    match &spec.inputs {
        Inputs::Text => Vec::new(),
        Inputs::Frames { last: None, .. } => vec![Role::FirstFrame],
        Inputs::Frames { .. } => vec![Role::FirstFrame, Role::LastFrame],
        Inputs::References { images, audios } => {
            let images = images.iter().map(|_| Role::ReferenceImages);
            let audios = audios.iter().map(|_| Role::ReferenceAudios);
            images.chain(audios).collect()
        }
    }
}

/// Every bound input, with the name of its binding.
pub(crate) fn bound(bindings: &Bindings) -> Vec<(&'static str, Target)> {
    let mut all = Vec::new();
    for (name, targets) in bindings.values() {
        all.extend(targets.0.iter().map(|target| (name, target.clone())));
    }
    for role in Role::ALL {
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
    target: &Target,
) -> Result<(), CardError> {
    let wrong = |what: String| Err(CardError(format!("bindings.{name} = \"{target}\": {what}")));
    let Some(node) = needed.node(&target.node) else {
        return wrong(match whole.node(&target.node) {
            Some(_) => format!(
                "node {} does not lead to the output, node {output}",
                target.node
            ),
            None => format!("the workflow has no node '{}'", target.node),
        });
    };
    let named = shown((&target.node, node));
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
pub(crate) fn shown((id, node): (&String, &Node)) -> String {
    format!("{id} ({})", node.class)
}
