//! Prices of cards, estimates, and the cost at the end.

use super::*;
use crate::card::{CardRecord, Features, ModelCard};
use crate::spec::SPEC_VERSION;

fn card(prices: &str) -> Result<ModelCard, String> {
    let text = format!("id = \"m\"\nengine = \"e\"\nresolutions = [\"480p\", \"720p\"]\n{prices}");
    let record: CardRecord = toml::from_str(&text).map_err(|error| error.to_string())?;
    let card = record.card(Features::ALL);
    card.map_err(|error| error.to_string())
}

const BY_SIZE: &str = "[prices]\nper_second = { \"480p\" = 0.05, \"720p\" = 0.1 }\nper_clip = 0.02\n\
                       per_input_image = 0.005";

fn spec(seconds: VideoLength, frame: FrameSize) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "m".to_owned(),
        prompt: "a boat".to_owned(),
        negative_prompt: None,
        seconds,
        frame,
        seed: 1,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn hd(seconds: u32) -> VideoSpec {
    let frame = FrameSize::Fixed(Size::new(1280, 720));
    spec(VideoLength::Fixed(seconds), frame)
}

fn estimate(card: &ModelCard, spec: &VideoSpec) -> String {
    let cost = card.estimate(spec, Currency::USD).unwrap();
    assert!(cost.is_estimated);
    cost.amount.to_string()
}

#[test]
fn a_clip_costs_its_seconds_itself_and_its_pictures() {
    let card = card(BY_SIZE).unwrap();
    assert_eq!(estimate(&card, &hd(5)), "0.52");
    let mut small = spec(VideoLength::Fixed(2), FrameSize::Adaptive(Resolution::P480));
    assert_eq!(estimate(&card, &small), "0.12");
    small.inputs = VideoInputs::Frames {
        first: "https://example.org/a".to_owned(),
        last: Some("https://example.org/b".to_owned()),
    };
    assert_eq!(estimate(&card, &small), "0.13");
    small.inputs = VideoInputs::References {
        images: vec![String::new(); 3],
        audios: vec![String::new(); 3],
    };
    assert_eq!(estimate(&card, &small), "0.135");
    // A draft is rendered at 480p, whatever its final.
    let mut draft = hd(5);
    draft.draft = true;
    assert_eq!(estimate(&card, &draft), "0.27");
    // An automatic length is reserved at the longest; an edit may have the size of any video.
    let auto = spec(VideoLength::Auto, FrameSize::Fixed(Size::new(480, 480)));
    assert_eq!(estimate(&card, &auto), "0.77");
    let edit = spec(VideoLength::Fixed(1), FrameSize::Fixed(Size::new(64, 64)));
    assert_eq!(estimate(&card, &edit), "0.12");
}

#[test]
fn one_price_is_shown_for_every_resolution() {
    let one = card("[prices]\nper_second = 1").unwrap().prices.unwrap();
    let shown = serde_json::to_value(&one).unwrap();
    let expected = serde_json::json!({
        "per_second": {"480p": 1.0, "720p": 1.0}, "per_clip": 0.0, "per_input_image": 0.0,
    });
    assert_eq!(shown, expected);
    let own = "sizes = [\"1152x640\"]\n[prices]\nper_second = { \"1152x640\" = 0.25 }";
    let record = format!("id = \"m\"\nengine = \"e\"\n{own}");
    let record: CardRecord = toml::from_str(&record).unwrap();
    let own = record.card(Features::ALL).unwrap();
    let frame = FrameSize::Fixed(Size::new(1152, 640));
    assert_eq!(estimate(&own, &spec(VideoLength::Fixed(4), frame)), "1.00");
    assert_eq!(card("").unwrap().estimate(&hd(5), Currency::USD), None);
}

#[test]
fn a_wrong_price_is_refused_with_a_sentence() {
    for (prices, named) in [
        ("per_second = -0.1", "at least 0"),
        ("per_second = nan", "at least 0"),
        ("per_second = inf", "at least 0"),
        ("per_second = \"0.1\"", "a price, or a table of prices"),
        ("per_second = { \"480p\" = 0.1 }", "no price for 720p"),
        (
            "per_second = { \"480p\" = 1, \"720p\" = 1, \"1080p\" = 1 }",
            "\"1080p\", which the model does not make",
        ),
        ("per_clip = 10001", "at most 10000.00"),
        ("per_input_image = -1", "from 0 to"),
        ("per_minute = 1", "unknown field `per_minute`"),
    ] {
        let error = card(&format!("[prices]\n{prices}")).unwrap_err();
        assert!(error.contains(named), "{prices}: {error}");
    }
    assert!(card("[prices]\nper_clip = 10000").is_ok());
}

#[test]
fn the_end_sets_the_cost_by_the_clip_or_by_the_provider() {
    let card = card(BY_SIZE).unwrap();
    let auto = spec(VideoLength::Auto, FrameSize::Adaptive(Resolution::P720));
    let estimate = card.estimate(&auto, Currency::USD).unwrap();
    assert_eq!(estimate.amount.to_string(), "1.52");
    let settled = |charged: Option<(u64, &str)>, video_seconds: Option<f64>| {
        let mut cost = estimate.clone();
        if let Some((micros, currency)) = charged {
            cost.record_charge(Money {
                amount: Amount::from_micros(micros),
                currency: currency.parse().unwrap(),
            });
        }
        cost.settle(video_seconds);
        assert!(!cost.is_estimated);
        cost.amount.to_string()
    };
    assert_eq!(settled(None, Some(6.04)), "0.62");
    assert_eq!(settled(None, None), "0.00");
    assert_eq!(settled(Some((700_000, "USD")), Some(6.04)), "0.70");
    assert_eq!(settled(Some((30_000, "USD")), None), "0.03");
    // A server that makes more than it was asked for.
    assert_eq!(settled(None, Some(3_600.0)), "1.52");
    assert_eq!(settled(Some((20_000_000, "USD")), Some(3_600.0)), "20.00");
    // A hundred times the estimate is the most that counts.
    assert_eq!(settled(Some((152_000_000, "USD")), None), "152.00");
    assert_eq!(settled(Some((152_000_001, "USD")), Some(6.04)), "0.62");
    // Another currency means nothing here.
    assert_eq!(settled(Some((700_000, "EUR")), Some(6.04)), "0.62");
    let mut free = estimate.clone();
    free.amount = Amount::ZERO;
    let dollars = |units| Money {
        amount: Amount::from_units(units).unwrap(),
        currency: Currency::USD,
    };
    assert!(free.accepts(dollars(10_000.0)) && !free.accepts(dollars(10_000.01)));
    let text = serde_json::to_string(&estimate).unwrap();
    assert_eq!(serde_json::from_str::<TaskCost>(&text).unwrap(), estimate);
}
