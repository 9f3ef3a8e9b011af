//! `GET /v1/models`: OpenAI's list of models, each with its capabilities.

use axum::extract::State;
use kinora_contract::{Capabilities, Currency, ErrorCode, ModelCard, Prices};
use kinora_store::{ApiKey, Pause};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::extract::ReadKey;
use crate::refusals::{OfModel, OfModels};
use crate::responses::JsonResponse;
use crate::state::{Api, SharedApi};

/// A served model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Model {
    /// The identifier to send as `model`.
    #[schema(example = "kinora-a1")]
    id: String,
    /// Always `model`.
    #[schema(example = "model")]
    object: &'static str,
    /// Always 0: the creation time is not known. OpenAI's SDKs expect the field.
    created: u64,
    /// Always `kinora`.
    owned_by: &'static str,
    /// Other names for the model in requests.
    aliases: Vec<String>,
    /// Whether a worker serves the model; may be a second old. Tasks of an unavailable model are
    /// accepted and wait.
    #[schema(example = true)]
    available: bool,
    /// Present while an operator has paused the model; may be a second old. Running tasks end; waiting and
    /// new ones wait until it is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<ModelPause>,
    /// The engine that makes the model's videos, by its configured name. `storyboard` is the built-in
    /// one, which sketches by rules.
    #[schema(example = "storyboard")]
    engine: String,
    /// The model's capabilities.
    capabilities: Capabilities,
    /// What videos of the model cost; absent if they cost nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<ModelPrices>,
}

/// The prices of a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelPrices {
    /// The currency, by its code of ISO 4217.
    #[schema(value_type = String, example = "USD")]
    currency: Currency,
    /// The prices.
    #[serde(flatten)]
    prices: Prices,
}

/// The pause of a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelPause {
    /// Beginning of the pause, in Unix seconds.
    since: u64,
    /// The operator's reason; `null` if none was given.
    #[schema(example = "new weights")]
    reason: Option<String>,
}

impl From<Pause> for ModelPause {
    fn from(pause: Pause) -> Self {
        Self {
            since: pause.since_ms / 1000,
            reason: pause.reason,
        }
    }
}

/// The served models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// Always `list`.
    #[schema(example = "list")]
    object: &'static str,
    /// The models that the key may use.
    data: Vec<Model>,
    /// The key's scopes: `videos:write`, `videos:read`, `operations:read`, `operations:write`.
    #[schema(example = json!(["videos:write", "videos:read"]))]
    scopes: Vec<&'static str>,
}

impl Model {
    async fn from_card(api: &Api, card: &ModelCard) -> Self {
        Self {
            id: card.id.clone(),
            object: "model",
            created: 0,
            owned_by: "kinora",
            aliases: card.aliases.clone(),
            engine: card.engine.clone(),
            available: api.availability.serves(&card.id).await,
            paused: api.availability.pause(&card.id).await.map(ModelPause::from),
            capabilities: card.capabilities.clone(),
            prices: card.prices.clone().map(|prices| ModelPrices {
                currency: api.catalog.currency(),
                prices,
            }),
        }
    }
}

/// List models.
#[utoipa::path(
    get,
    operation_id = "list_models",
    path = "/v1/models",
    tag = "models",
    responses((status = 200, description = "The models that the key may use.", body = ModelList), OfModels),
    security(("bearer" = []))
)]
pub(crate) async fn list(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
) -> JsonResponse<ModelList> {
    let mut data = Vec::new();
    for card in api.catalog.cards() {
        if may_use(&key, card) {
            data.push(Model::from_card(&api, card).await);
        }
    }
    JsonResponse(ModelList {
        object: "list",
        data,
        scopes: key.key.scopes.iter().map(|scope| scope.name()).collect(),
    })
}

/// Query a model.
#[utoipa::path(
    get,
    operation_id = "read_model",
    path = "/v1/models/{id}",
    tag = "models",
    params(("id" = String, Path, description = "Identifier or alias.")),
    responses((status = 200, description = "The model.", body = Model), OfModel),
    security(("bearer" = []))
)]
pub(crate) async fn read(
    State(api): State<SharedApi>,
    ReadKey(key): ReadKey,
    params: Result<axum::extract::Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<JsonResponse<Model>, ApiError> {
    let name = params.map(|path| path.0).unwrap_or_default();
    match api.catalog.find(&name).filter(|card| may_use(&key, card)) {
        Some(card) => Ok(JsonResponse(Model::from_card(&api, card).await)),
        None => Err(ApiError::new(
            ErrorCode::NotFound,
            "There is no such model.",
        )),
    }
}

/// A key without a list of models may use all of them.
fn may_use(key: &ApiKey, card: &ModelCard) -> bool {
    key.key
        .models
        .as_ref()
        .is_none_or(|all| all.contains(&card.id))
}
