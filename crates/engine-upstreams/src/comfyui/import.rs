//! Proposes bindings for an exported workflow, by the names that inputs usually have. A person must read
//! them: no name is certain.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::workflow::{BindingTarget, InputRole};
use super::workflow::{Workflow, WorkflowNode, link};

const TEXTS: [&str; 3] = ["text", "prompt", "positive_prompt"];
const SEEDS: [&str; 2] = ["seed", "noise_seed"];
const LENGTHS: [&str; 4] = ["length", "num_frames", "video_frames", "frame_count"];
const RATES: [&str; 2] = ["fps", "frame_rate"];
/// A rate for workflows that name none.
const FPS: u32 = 24;

/// The proposed tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingProposal {
    /// `[engines.bindings]` and `[engines.describe]`, as TOML.
    pub tables: String,
    /// What a person must decide.
    pub questions: Vec<String>,
}

/// Proposes bindings for `workflow`.
pub fn propose(workflow: &Workflow) -> BindingProposal {
    let mut questions = Vec::new();
    let output = output(workflow, &mut questions);
    let graph = workflow.clone().only_for(&output);
    let mut lines = String::new();
    let mut line = |name: &str, targets: &[BindingTarget]| {
        let texts: Vec<String> = targets.iter().map(|one| format!("\"{one}\"")).collect();
        let _ = match &texts[..] {
            [] => Ok(()),
            [one] if !name.starts_with("reference_") => writeln!(lines, "{name} = {one}"),
            many => writeln!(lines, "{name} = [{}]", many.join(", ")),
        };
    };
    let (prompt, negative) = prompts(&graph);
    if prompt.is_empty() {
        questions.push("No input looks like a prompt: set bindings.prompt.".to_owned());
    }
    line("prompt", &prompt);
    line("negative_prompt", &negative);
    line("seed", &literals(&graph, &SEEDS, Value::is_u64));
    let (width, height) = sizes(&graph);
    if width.is_empty() {
        questions.push(
            "No size is bound: restrict the model to the workflow's own size with `sizes`."
                .to_owned(),
        );
    }
    line("width", &width);
    line("height", &height);
    let frames = literals(&graph, &LENGTHS, Value::is_u64);
    if frames.is_empty() {
        questions.push(
            "No length is bound: restrict the model to the workflow's own seconds.".to_owned(),
        );
    }
    line("frames", &frames);
    let rates = literals(&graph, &RATES, Value::is_number);
    line("fps", &rates);
    let files = files(&graph);
    for role in InputRole::ALL {
        line(role.name(), &of_role(&files, role));
    }
    let _ = writeln!(lines, "output = \"{output}\"");
    let optional = optional(&files);
    if !optional.is_empty() {
        let _ = writeln!(lines, "optional = [{}]", optional.join(", "));
        questions.push(
            "Files in bindings.optional are left out where a request lacks them: `kinora models check` tells whether their nodes allow that.".to_owned(),
        );
    }
    if !files.is_empty() {
        questions.push("Check which loader takes which file.".to_owned());
    }
    questions.push("Set the grid of the model in [engines.describe].".to_owned());
    let describe = describe(&graph, &rates);
    BindingProposal {
        tables: format!("[engines.bindings]\n{lines}\n{describe}"),
        questions,
    }
}

/// The table of the rate and the grid. The rate is that of the workflow.
fn describe(graph: &Workflow, rates: &[BindingTarget]) -> String {
    let fps = rates.first().and_then(|rate| value(graph, rate)?.as_f64());
    let fps = fps.map_or(FPS, |fps| fps.round() as u32);
    format!(
        "[engines.describe]\nfps = {fps}\n\
         # The grid of the model: sides are multiples, films have step * n + offset frames.\n\
         # size_multiple = 16\n# frames = {{ step = 4, offset = 1 }}\n"
    )
}

fn value<'a>(graph: &'a Workflow, target: &BindingTarget) -> Option<&'a Value> {
    graph.nodes.get(&target.node)?.inputs.get(&target.input)
}

fn target(node: &str, input: &str) -> BindingTarget {
    BindingTarget {
        node: node.to_owned(),
        input: input.to_owned(),
    }
}

/// The node that saves the film: one that takes a name, of a class that speaks of video.
fn output(workflow: &Workflow, questions: &mut Vec<String>) -> String {
    let found: Vec<&String> = workflow
        .nodes
        .iter()
        .filter(|(_, node)| {
            let class = node.class.to_lowercase();
            let is_film = ["video", "webm"].iter().any(|word| class.contains(word));
            is_film && node.inputs.contains_key("filename_prefix")
        })
        .map(|(id, _)| id)
        .collect();
    if found.len() != 1 {
        let named = if found.is_empty() {
            "No node looks".to_owned()
        } else {
            format!("{} nodes look", found.len())
        };
        questions.push(format!(
            "{named} like the one that saves the film: set bindings.output."
        ));
    }
    found.first().map_or_else(String::new, |id| (*id).clone())
}

/// Literal inputs of one of these names and of this type.
fn literals(
    graph: &Workflow,
    names: &[&str],
    is_it: impl Fn(&Value) -> bool,
) -> Vec<BindingTarget> {
    graph
        .nodes
        .iter()
        .filter_map(|(id, node)| {
            let found = names
                .iter()
                .find(|name| node.inputs.get(**name).is_some_and(&is_it));
            found.map(|name| target(id, name))
        })
        .collect()
}

/// Prompt and negative prompt: the texts behind inputs called `positive` and `negative`, otherwise any.
fn prompts(graph: &Workflow) -> (Vec<BindingTarget>, Vec<BindingTarget>) {
    let positive = texts_behind(graph, "positive");
    if positive.is_empty() {
        (literals(graph, &TEXTS, Value::is_string), Vec::new())
    } else {
        (positive, texts_behind(graph, "negative"))
    }
}

/// The texts behind inputs called `name`.
fn texts_behind(graph: &Workflow, name: &str) -> Vec<BindingTarget> {
    let mut texts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = graph
        .nodes
        .values()
        .filter_map(|node| link(node.inputs.get(name)?).map(str::to_owned))
        .collect();
    while let Some(id) = open.pop() {
        let Some(node) = graph.nodes.get(&id).filter(|_| seen.insert(id.clone())) else {
            continue;
        };
        let text = TEXTS
            .iter()
            .find(|text| node.inputs.get(**text).is_some_and(Value::is_string));
        match (text, node.inputs.get(name).and_then(link)) {
            (Some(text), _) => texts.push(target(&id, text)),
            // A node that passes both on: the right one of them only.
            (None, Some(next)) => open.push(next.to_owned()),
            (None, None) => {
                open.extend(node.inputs.values().filter_map(link).map(str::to_owned));
            }
        }
    }
    texts.sort();
    texts.dedup();
    texts
}

/// Width and height where both stand in one node; of those, the nodes that also have a length.
fn sizes(graph: &Workflow) -> (Vec<BindingTarget>, Vec<BindingTarget>) {
    let sized: Vec<_> = graph
        .nodes
        .iter()
        .filter(|(_, node)| {
            let mut sides = ["width", "height"].iter();
            sides.all(|side| node.inputs.get(*side).is_some_and(Value::is_u64))
        })
        .collect();
    let has_length =
        |node: &WorkflowNode| LENGTHS.iter().any(|name| node.inputs.contains_key(*name));
    let any_length = sized.iter().any(|(_, node)| has_length(node));
    let chosen = sized
        .iter()
        .filter(|(_, node)| !any_length || has_length(node));
    chosen
        .map(|(id, _)| (target(id, "width"), target(id, "height")))
        .unzip()
}

/// Files that nodes load, with the role that the fed input's name suggests.
fn files(graph: &Workflow) -> Vec<(InputRole, BindingTarget)> {
    let loaders = [
        ("loadimage", "image"),
        ("loadvideo", "file"),
        ("loadvideo", "video"),
        ("loadaudio", "audio"),
    ];
    let mut files = Vec::new();
    for (id, node) in &graph.nodes {
        let class = node.class.to_lowercase().replace('_', "");
        let found = loaders.iter().find(|(loader, input)| {
            class.contains(loader) && node.inputs.get(*input).is_some_and(Value::is_string)
        });
        let Some((loader, input)) = found else {
            continue;
        };
        let fed: Vec<&str> = graph.fed_by(id).map(|(_, input)| input).collect();
        let says = |words: &[&str]| {
            fed.iter()
                .any(|one| words.iter().any(|word| one.contains(word)))
        };
        let role = match *loader {
            "loadvideo" => InputRole::SourceVideo,
            "loadaudio" => InputRole::ReferenceAudios,
            _ if says(&["end", "last"]) => InputRole::LastFrame,
            _ if says(&["ref"]) => InputRole::ReferenceImages,
            _ => InputRole::FirstFrame,
        };
        files.push((role, target(id, input)));
    }
    files
}

/// The inputs of a role; of roles for one file, the first.
fn of_role(files: &[(InputRole, BindingTarget)], role: InputRole) -> Vec<BindingTarget> {
    let found = files.iter().filter(|(one, _)| *one == role);
    let found = found.map(|(_, target)| target.clone());
    match role {
        InputRole::ReferenceImages | InputRole::ReferenceAudios => found.collect(),
        _ => found.take(1).collect(),
    }
}

/// Roles that must be optional for the bindings to make sense.
fn optional(files: &[(InputRole, BindingTarget)]) -> Vec<String> {
    let bound: BTreeSet<InputRole> = files.iter().map(|(role, _)| *role).collect();
    let musts = [
        InputRole::FirstFrame,
        InputRole::ReferenceImages,
        InputRole::SourceVideo,
    ];
    let is_crowd = musts.iter().filter(|role| bound.contains(role)).count() > 1;
    let optional = bound.iter().filter(|role| match role {
        InputRole::LastFrame | InputRole::ReferenceAudios => true,
        _ => is_crowd,
    });
    optional
        .map(|role| format!("\"{}\"", role.name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::comfyui::card::{WorkflowCard, WorkflowDescription};
    use crate::comfyui::workflow::WorkflowBindings;

    #[derive(serde::Deserialize)]
    struct Read {
        engines: Tables,
    }

    #[derive(serde::Deserialize)]
    struct Tables {
        bindings: WorkflowBindings,
        describe: WorkflowDescription,
    }

    #[test]
    fn a_usual_workflow_is_bound_and_the_proposal_is_a_card() {
        let graph = json!({
            "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a", "clip": ["1", 0]}},
            "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "b", "clip": ["1", 0]}},
            "1": {"class_type": "CLIPLoader", "inputs": {"clip_name": "c"}},
            "2": {"class_type": "LoadImage", "inputs": {"image": "a.png"}},
            "5": {"class_type": "WanFirstLastFrameToVideo", "inputs": {"positive": ["6", 0], "negative": ["7", 0],
                "start_image": ["2", 0], "width": 832, "height": 480, "length": 81}},
            "3": {"class_type": "KSampler", "inputs": {"seed": 1, "steps": 20, "positive": ["5", 0],
                "negative": ["5", 1], "latent_image": ["5", 2]}},
            "8": {"class_type": "CreateVideo", "inputs": {"images": ["3", 0], "fps": 16}},
            "9": {"class_type": "SaveVideo", "inputs": {"video": ["8", 0], "filename_prefix": "x"}},
        });
        let workflow = Workflow::read(graph.to_string().as_bytes()).unwrap();
        let proposal = propose(&workflow);
        let read: Read = toml::from_str(&proposal.tables).unwrap();
        let bindings = read.engines.bindings.clone();
        assert_eq!(bindings.prompt.0, [target("6", "text")]);
        assert_eq!(bindings.negative_prompt.0, [target("7", "text")]);
        assert_eq!(bindings.frames.0, [target("5", "length")]);
        assert_eq!(bindings.first_frame, Some(target("2", "image")));
        assert_eq!(read.engines.describe.fps, 16);
        WorkflowCard::new(workflow, bindings, read.engines.describe).unwrap();
    }

    #[test]
    fn what_cannot_be_guessed_is_asked() {
        let graph = json!({"1": {"class_type": "A", "inputs": {}}});
        let workflow = Workflow::read(graph.to_string().as_bytes()).unwrap();
        let asked = propose(&workflow).questions.join("\n");
        assert!(asked.contains("bindings.output") && asked.contains("bindings.prompt"));
    }
}
