//! Valid records and their cards, invalid records, and catalogs.

use super::*;

fn card(text: &str) -> Result<ModelCard, String> {
    let record: CardRecord = toml::from_str(text).map_err(|error| error.to_string())?;
    record
        .card(Features::ALL)
        .map_err(|error| error.to_string())
}

fn with(more: &str) -> Result<ModelCard, String> {
    card(&format!("id = \"m\"\nengine = \"e\"\n{more}"))
}

#[test]
fn every_built_in_card_is_read() {
    for text in BUILT_IN {
        let read = card(text).unwrap();
        assert_eq!(read.engine, "storyboard");
        assert!(built_in_cards().contains(&read), "{}", read.id);
    }
    assert_eq!(built_in_cards().len(), BUILT_IN.len());
    ModelCatalog::new(built_in_cards()).unwrap();
}

#[test]
fn a_record_of_its_own_has_its_own_sizes_lengths_and_features() {
    let card = with(
        "aliases = [\"n\"]\nsizes = [\"1152x640\", \"640x1152\"]\nseconds = [7, 2, 3]\n\
         features = { text_to_video = true, edit = true }",
    )
    .unwrap();
    let can = card.capabilities;
    assert_eq!(can.sizes, [Size::new(1152, 640), Size::new(640, 1152)]);
    assert_eq!(can.seconds, Some(vec![2, 3, 7]));
    let bounds = (can.seconds_min, can.seconds_max, can.seconds_default);
    assert_eq!(bounds, (2, 7, 3));
    let expected = Features {
        text_to_video: true,
        edit: true,
        ..Features::default()
    };
    assert_eq!(can.features, expected);
    assert_eq!((&*card.id, &card.aliases[..]), ("m", &["n".to_owned()][..]));
}

#[test]
fn settings_are_kept_for_the_engine_and_are_no_part_of_the_card() {
    let text = "id = \"m\"\nengine = \"e\"\nsettings = { steps = 4, guidance_scale = 1.0, loras = [{ name = \"a\" }] }";
    let record: CardRecord = toml::from_str(text).unwrap();
    let expected = serde_json::json!({"steps": 4, "guidance_scale": 1.0, "loras": [{"name": "a"}]});
    assert_eq!(record.preset(), expected.as_object());
    assert_eq!(record.card(Features::ALL).unwrap(), with("").unwrap());
    for none in ["", "settings = {}"] {
        let record: CardRecord =
            toml::from_str(&format!("id = \"m\"\nengine = \"e\"\n{none}")).unwrap();
        assert_eq!(record.preset(), None);
    }
    assert!(with("settings = 4").is_err());
}

#[test]
fn what_a_record_leaves_out_comes_from_its_card_or_from_its_engine() {
    let mut engine = Features::ALL;
    engine.draft = false;
    let record = |more: &str| -> CardRecord {
        toml::from_str(&format!("id = \"m\"\nengine = \"e\"\n{more}")).unwrap()
    };
    let bare = record("").card(engine).unwrap().capabilities;
    assert_eq!(bare.features, engine);
    assert_eq!(bare.sizes, listed_sizes());
    let named = record("card = \"kinora-a1\"").card(engine).unwrap();
    let of_card = built_in_cards()[0].capabilities.features;
    assert_eq!(named.capabilities.features, of_card.restricted_to(engine));
    let few = with("card = \"kinora-a1\"\nresolutions = [\"480p\"]\naspect_ratios = [\"1:1\"]");
    assert_eq!(few.unwrap().capabilities.sizes, [Size::new(480, 480)]);
    let short = with("card = \"kinora-a1\"\nseconds_max = 4").unwrap();
    let can = short.capabilities;
    assert_eq!(
        (can.seconds_min, can.seconds_max, can.seconds_default),
        (2, 4, 4)
    );
    assert_eq!(
        with("seconds = [6, 9]")
            .unwrap()
            .capabilities
            .seconds_default,
        6
    );
}

#[test]
fn auto_is_offered_only_where_any_length_is_allowed() {
    let auto = |more: &str| {
        let card = with(&format!("card = \"kinora-b1\"\n{more}")).unwrap();
        card.capabilities.features.auto_duration
    };
    assert!(auto(""));
    assert!(!auto("seconds_max = 14"));
    assert!(!auto("seconds_min = 3"));
    assert!(!auto("seconds = [2, 15]"));
}

#[test]
fn what_no_card_can_be_is_named() {
    let long = format!("aliases = [\"{}\"]", "x".repeat(MODEL_CHARS_MAX + 1));
    for (more, named) in [
        ("aliases = [\"\"]", "no name"),
        ("aliases = [\" a\"]", "no name"),
        (&long, "no name"),
        (
            "card = \"c\"",
            "there is no card 'c'; there are: kinora-a1, kinora-b1",
        ),
        ("sizes = []", "sizes is empty"),
        ("sizes = [\"big\"]", "WIDTHxHEIGHT"),
        ("sizes = [\"512x512\", \"512x512\"]", "names 512x512 twice"),
        ("sizes = [\"513x512\"]", "the size 513x512"),
        ("sizes = [\"254x512\"]", "the size 254x512"),
        ("sizes = [\"2522x512\"]", "the size 2522x512"),
        ("sizes = [\"2048x1332\"]", "the size 2048x1332"),
        (
            "sizes = [\"512x512\"]\nresolutions = [\"480p\"]",
            "sizes and resolutions",
        ),
        (
            "sizes = [\"512x512\"]\naspect_ratios = [\"1:1\"]",
            "sizes and aspect_ratios",
        ),
        ("resolutions = [\"4k\"]", "4k"),
        ("aspect_ratios = [\"2:1\"]", "2:1"),
        ("seconds = []", "seconds is empty"),
        ("seconds = [3, 3]", "names 3 twice"),
        ("seconds = [1]", "seconds must be from 2 to 15"),
        ("seconds = [16]", "seconds must be from 2 to 15"),
        ("seconds = [3]\nseconds_min = 3", "exclude each other"),
        ("seconds_max = 16", "seconds_max must be from 2 to 15"),
        (
            "seconds_min = 9\nseconds_max = 8",
            "seconds_max must be from 9 to 15",
        ),
        ("seconds_default = 16", "seconds_default"),
        ("seconds = [2, 7]\nseconds_default = 3", "and is 3"),
        (
            "features = { last_frame = true }",
            "last_frame needs first_frame",
        ),
        (
            "features = { text_to_video = true, reference_audios_max = 1 }",
            "reference_audios_max needs reference_images_max",
        ),
        ("features = { reference_images_max = 13 }", "at most 12"),
        ("features = { draft = true }", "one of text_to_video"),
        ("features = { lip_sync = true }", "lip_sync"),
        (
            "seconds = [4]\nfeatures = { text_to_video = true, auto_duration = true }",
            "auto_duration needs",
        ),
        ("size = [\"512x512\"]", "unknown field `size`"),
    ] {
        let error = with(more).unwrap_err();
        assert!(error.contains(named), "{more}: {error}");
    }
    let record = "id = \"m\"\nengine = \"e\"\nfeatures = { text_to_video = true, draft = true }";
    let record: CardRecord = toml::from_str(record).unwrap();
    let mut engine = Features::ALL;
    engine.draft = false;
    let error = record.card(engine).unwrap_err().to_string();
    assert_eq!(
        error,
        "its engine 'e' cannot do what the features say: draft"
    );
}

#[test]
fn a_name_means_one_model() {
    let mut cards = built_in_cards();
    cards[1].aliases.push("kinora-a1".to_owned());
    assert_eq!(
        ModelCatalog::new(cards),
        Err(CatalogError::NameTwice("kinora-a1".to_owned()))
    );
    assert_eq!(ModelCatalog::new(Vec::new()), Err(CatalogError::Empty));
}

#[test]
fn a_card_is_never_widened_by_its_engine() {
    for card in built_in_cards() {
        let own = card.capabilities.features;
        assert_eq!(own.restricted_to(Features::ALL), own);
        assert_eq!(own.restricted_to(Features::default()), Features::default());
    }
}
