//! A workflow as ComfyUI exports it for its API: nodes by identifier, each with a class and inputs. An
//! input is a literal, or a link `[node, output]` to another node. The editor's own format is refused.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Larger files are no workflows.
pub(crate) const WORKFLOW_BYTES_MAX: u64 = 8 << 20;

/// The nodes of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    nodes: BTreeMap<String, Node>,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The name of its class at the server.
    pub(crate) class: String,
    /// Its title in the editor, or its class.
    pub(crate) title: String,
    /// Literals and links, by name.
    pub(crate) inputs: Map<String, Value>,
}

/// Why a file is no usable workflow.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// Not JSON.
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The editor's own format.
    #[error(
        "it is a workflow as the editor saves it; in ComfyUI choose Workflow > Export (API), and use that file"
    )]
    OfTheEditor,
    /// Not an object of nodes.
    #[error("not a workflow in ComfyUI's API format: {0}")]
    Form(String),
}

impl Workflow {
    /// Parses an exported workflow.
    ///
    /// # Errors
    /// [`WorkflowError`], with what to do.
    pub fn read(bytes: &[u8]) -> Result<Self, WorkflowError> {
        let form = |what: &str| WorkflowError::Form(what.to_owned());
        let Value::Object(sent) = serde_json::from_slice(bytes)? else {
            return Err(form("it is not a JSON object"));
        };
        if sent.get("nodes").is_some_and(Value::is_array) {
            return Err(WorkflowError::OfTheEditor);
        }
        let mut nodes = BTreeMap::new();
        for (id, node) in sent {
            let class = node.get("class_type").and_then(Value::as_str);
            let inputs = node.get("inputs").and_then(Value::as_object);
            let (Some(class), Some(inputs)) = (class, inputs) else {
                return Err(form(&format!("node '{id}' has no class_type or no inputs")));
            };
            let title = node.pointer("/_meta/title").and_then(Value::as_str);
            let node = Node {
                class: class.to_owned(),
                title: title.unwrap_or(class).to_owned(),
                inputs: inputs.clone(),
            };
            nodes.insert(id, node);
        }
        if nodes.is_empty() {
            return Err(form("it has no nodes"));
        }
        Ok(Self { nodes })
    }

    /// The nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.nodes.iter()
    }

    pub(crate) fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.get(id)
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
        let left: Vec<&String> = graph.nodes().map(|(id, _)| id).collect();
        assert_eq!(left, ["1", "2", "3"]);
        assert_eq!(graph.node("3").unwrap().title, "Save");
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
}
