//! The requests of Open WebUI's OpenAPI tool servers, replayed: as `open_webui/utils/tools.py` of its release 0.12.4 builds them from the
//! served document. The module itself needs the whole application, with its database, and cannot be imported alone.

use kinora_test_e2e::{Client, Reply};
use serde_json::{Value, json};

use crate::support::{quick, shared, slow};

/// A connection of type OpenAPI, with the functions that `docs/open-webui.md` lists.
struct ToolServer {
    client: Client,
    document: Value,
}

impl ToolServer {
    /// Fetches the document as the connection does: with the key, and as a request with JSON.
    fn connect(client: Client) -> Self {
        let document = client
            .request("GET", "/openapi.json")
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .send()
            .ok();
        Self { client, document }
    }

    /// Calls the function by the name of its operation: path parameters into the path, query parameters into the query, and all others
    /// that the body's schema has into a JSON body, which a POST always has.
    fn call(&self, function: &str, arguments: &Value) -> Reply {
        let (path, method, operation) = self.find(function);
        let mut target = path.to_owned();
        let mut query = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let given = match &arguments[name] {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match parameter["in"].as_str().unwrap() {
                "path" => target = target.replace(&format!("{{{name}}}"), &given),
                "query" => query.push(format!("{name}={given}")),
                _ => {}
            }
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        let request = self.client.request(&method.to_uppercase(), &target);
        if method == "get" {
            let request = request.header("content-type", "application/json");
            return request.send();
        }
        let known = self.body_properties(operation);
        let mut body = arguments.as_object().unwrap().clone();
        body.retain(|name, _| known.contains(name));
        request.json(&Value::Object(body)).send()
    }

    fn find(&self, function: &str) -> (&str, &str, &Value) {
        let paths = self.document["paths"].as_object().unwrap();
        let all = paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        });
        let mut named = all.filter(|(_, _, operation)| operation["operationId"] == function);
        named
            .next()
            .unwrap_or_else(|| panic!("no function {function}"))
    }

    /// The properties that a model is told of. A body whose schema is composed would have none.
    fn body_properties(&self, operation: &Value) -> Vec<String> {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let schema = match schema["$ref"].as_str() {
            Some(reference) => self
                .document
                .pointer(reference.trim_start_matches('#'))
                .unwrap(),
            None => schema,
        };
        let properties = schema["properties"].as_object();
        properties
            .into_iter()
            .flat_map(|all| all.keys().cloned())
            .collect()
    }
}

#[test]
fn the_replayed_requests_of_a_tool_server_make_list_and_cancel_videos() {
    let server = ToolServer::connect(shared().newcomer());
    let models = server.call("list_models", &json!({})).ok();
    let model = models["data"][0]["id"].as_str().unwrap();

    let made = server.call("submit", &quick(model)).video();
    server.client.wait_completed(made.id());
    let read = server.call("read", &json!({"id": made.id()})).video();
    assert!(read["result_url"].is_string(), "{read:?}");
    let (_, listed) = server.call("list", &json!({"limit": 1})).list();
    assert_eq!(listed[0].id(), made.id());

    // The body of a call without arguments for it is an empty object.
    let long = server.call("submit", &slow()).video();
    let cancelled = server.call("cancel", &json!({"id": long.id()})).video();
    assert_eq!(cancelled["error"]["code"], "cancelled");

    let wrong = json!({"model": model, "prompt": "A boat", "size": "1x1"});
    let refused = server.call("submit", &wrong);
    refused.refused_for(400, "invalid_value", Some("size"));
}
