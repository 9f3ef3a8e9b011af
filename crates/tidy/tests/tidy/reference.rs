//! `docs/reference.md`: every call, field and answer, from `docs/openapi.json`. A test of the service compares that
//! document with what the service sends, so the page is as true.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::documents::{assert_tables, table};
use crate::files::root;
use crate::links::anchor;

#[test]
fn the_reference_is_what_the_openapi_document_says() {
    let text = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let (calls, webhooks) = (calls(&document, "paths"), calls(&document, "webhooks"));
    let overview = table(["call", ""], calls.iter().chain(&webhooks).map(Call::link));
    let details = |calls: &[Call<'_>]| -> String {
        let details: Vec<String> = calls.iter().map(Call::details).collect();
        details.join("\n")
    };
    let blocks = [
        ("overview", overview),
        ("calls", details(&calls)),
        ("webhooks", details(&webhooks)),
        ("objects", objects(&document)),
    ];
    assert_tables("docs/reference.md", &blocks);
}

/// One method of one path, or of one webhook.
struct Call<'d> {
    name: String,
    operation: &'d Value,
    /// Whether the service makes it.
    is_webhook: bool,
}

/// Every call of this part of the document, in the order of its tags.
fn calls<'d>(document: &'d Value, part: &str) -> Vec<Call<'d>> {
    let mut found = Vec::new();
    for tag in list(&document["tags"]) {
        for (path, methods) in entries(&document[part]) {
            for (method, operation) in entries(methods) {
                if operation["tags"][0] == tag["name"] {
                    let name = format!("{} {path}", method.to_uppercase());
                    found.push(Call {
                        name,
                        operation,
                        is_webhook: part == "webhooks",
                    });
                }
            }
        }
    }
    found
}

impl Call<'_> {
    fn link(&self) -> [String; 2] {
        let name = &self.name;
        [
            format!("[`{name}`](#{})", anchor(name)),
            cell(text(&self.operation["summary"])),
        ]
    }

    /// Who may make it.
    fn access(&self) -> &'static str {
        let security = list(&self.operation["security"]);
        let open = security.is_empty();
        let optional = security.iter().any(|way| entries(way).is_empty());
        match (self.is_webhook, open, optional) {
            (true, _, _) => "The service makes it, and signs it.",
            (false, true, _) => "Needs no API key.",
            (false, false, true) => "Takes an API key, or a signed address.",
            (false, false, false) => "Needs an API key.",
        }
    }

    fn details(&self) -> String {
        let operation = self.operation;
        let mut written = format!("### `{}`\n\n{}\n", self.name, text(&operation["summary"]));
        if let Some(description) = operation["description"].as_str() {
            write!(written, "\n{description}\n").unwrap();
        }
        write!(written, "\n{}\n", self.access()).unwrap();
        let parameters = list(&operation["parameters"]);
        if !parameters.is_empty() {
            let head = ["parameter", "in", "type", "meaning"];
            let rows = parameters.iter().map(parameter);
            write!(written, "\n{}", table(head, rows)).unwrap();
        }
        if let Some((schema, media)) = body(&operation["requestBody"]["content"]) {
            write!(written, "\nBody: {schema}, as {media}.\n").unwrap();
        }
        let answers = entries(&operation["responses"]);
        let rows = answers.iter().map(|(status, answer)| {
            let sent =
                body(&answer["content"]).map_or(String::new(), |(schema, media)| {
                    match media.contains("json") {
                        true => schema,
                        false => media,
                    }
                });
            let meaning = cell(text(&answer["description"]));
            [(*status).clone(), sent, meaning]
        });
        write!(written, "\n{}", table(["status", "body", "meaning"], rows)).unwrap();
        written
    }
}

fn parameter(parameter: &Value) -> [String; 4] {
    [
        format!("`{}`", text(&parameter["name"])),
        text(&parameter["in"]).to_owned(),
        type_name(&parameter["schema"]),
        cell(text(&parameter["description"])),
    ]
}

/// Type and media types of a body, when there is one.
fn body(content: &Value) -> Option<(String, String)> {
    let kinds = entries(content);
    let (_, first) = kinds.first()?;
    let media: Vec<String> = kinds.iter().map(|(kind, _)| format!("`{kind}`")).collect();
    Some((type_name(&first["schema"]), media.join(" or ")))
}

fn objects(document: &Value) -> String {
    let schemas = &document["components"]["schemas"];
    let mut written = String::new();
    for (name, schema) in entries(schemas) {
        let about = text(&schema["description"]);
        write!(written, "### {name}\n\n{about}\n\n").unwrap();
        let mut fields = BTreeMap::new();
        collect(schema, schemas, &mut fields);
        if fields.is_empty() {
            writeln!(written, "Type: {}.\n", type_name(schema)).unwrap();
            continue;
        }
        let rows = fields.into_iter().map(|(field, (schema, required))| {
            [
                format!("`{field}`"),
                type_name(schema),
                (if required { "yes" } else { "" }).to_owned(),
                cell(meaning(schema)),
            ]
        });
        let head = ["field", "type", "required", "meaning"];
        writeln!(written, "{}", table(head, rows)).unwrap();
    }
    written.trim_end().to_owned() + "\n"
}

/// The fields of an object and of all that it is made of; whether each must be there.
fn collect<'d>(
    schema: &'d Value,
    schemas: &'d Value,
    fields: &mut BTreeMap<&'d String, (&'d Value, bool)>,
) {
    for part in list(&schema["allOf"]) {
        collect(part, schemas, fields);
    }
    if let Some(name) = schema["$ref"].as_str().and_then(referred) {
        collect(&schemas[name], schemas, fields);
    }
    for (name, field) in entries(&schema["properties"]) {
        let required = list(&schema["required"]).iter().any(|one| one == name);
        fields.insert(name, (field, required));
    }
}

/// The description of a field, which may stand at the one type that it has beside null.
fn meaning(schema: &Value) -> &str {
    let mut kinds = list(&schema["oneOf"]).iter();
    let own = schema["description"].as_str();
    own.or_else(|| kinds.find_map(|kind| kind["description"].as_str()))
        .unwrap_or_default()
}

/// What a value is, in words.
fn type_name(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(referred) {
        return format!("[{name}](#{})", anchor(name));
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        let kinds = list(&schema[choice])
            .iter()
            .filter(|kind| kind["type"] != "null");
        let names: Vec<String> = kinds.map(type_name).collect();
        if !names.is_empty() {
            return names.join(" or ");
        }
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::Array(names) => names.iter().map(text).collect(),
        name => vec![text(name)],
    };
    let name = names
        .into_iter()
        .find(|name| *name != "null")
        .unwrap_or("any");
    match name {
        "array" => format!("array of {}", type_name(&schema["items"])),
        "object" if entries(&schema["additionalProperties"]).is_empty() => "object".to_owned(),
        "object" => format!("object of {}", type_name(&schema["additionalProperties"])),
        "string" if schema["format"] == "uri" => "URL".to_owned(),
        _ => format!("{name}{}", bounds(schema)),
    }
}

/// The values that a schema allows, after its type.
fn bounds(schema: &Value) -> String {
    let allowed: Vec<String> = list(&schema["enum"])
        .iter()
        .filter_map(Value::as_str)
        .map(|value| format!("`{value}`"))
        .collect();
    if !allowed.is_empty() {
        return format!(": {}", allowed.join(", "));
    }
    match (&schema["minimum"], &schema["maximum"], &schema["maxLength"]) {
        (_, _, Value::Number(most)) => format!(", up to {most} characters"),
        (Value::Number(least), Value::Number(most), _) => format!(", {least} to {most}"),
        _ => String::new(),
    }
}

fn referred(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// One line, with nothing that would end a cell.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn entries(value: &Value) -> Vec<(&String, &Value)> {
    value.as_object().into_iter().flatten().collect()
}
