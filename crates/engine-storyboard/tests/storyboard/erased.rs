//! A clip that was made from a picture has this engine's letters, but cannot be made again: an edit takes
//! them off.

use std::sync::Arc;

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, VideoInputs, VideoSpec};
use kinora_engine::JobMaterials;

use super::support::*;

/// How many steps of light there are along the rows of a caption: letters are light on dark rims.
fn steps(rgb: &[u8]) -> usize {
    let row = SMALL.width as usize * 3;
    let lower = &rgb[row * 150..row * 172];
    let light: Vec<i32> = lower.chunks_exact(3).map(|p| i32::from(p[1])).collect();
    let steep = |two: &&[i32]| (two[0] - two[1]).abs() > 60;
    light.windows(2).filter(steep).count()
}

#[test]
fn old_letters_are_taken_off_and_new_ones_laid_on() {
    let words = "many words that stand over this picture for long";
    let made = VideoSpec {
        generate_audio: false,
        inputs: VideoInputs::Frames {
            first: String::new(),
            last: None,
        },
        ..spec(words, SMALL, 2, 5)
    };
    let given = JobMaterials {
        first_frame: Some(picture(SMALL, 0.3)),
        ..NONE.clone()
    };
    let lettered = whole_of(&made, &given).frames;
    let edit = VideoSpec {
        inputs: VideoInputs::Text,
        prompt: "x".to_owned(),
        edit: Some(EditSpec {
            task_id: TaskId::from_parts(1, [3; 10]),
            strength: 1.0,
        }),
        ..made.clone()
    };
    let mut materials = JobMaterials {
        source: Some(Arc::new(Memory::new(SMALL, 24, lettered))),
        ..NONE.clone()
    };
    let beneath = steps(&whole_of(&edit, &materials).frames[24]);
    materials.script = vec![Arc::new(made)];
    let without = steps(&whole_of(&edit, &materials).frames[24]);
    assert!(
        beneath > 60 && without < beneath / 4,
        "{without} of {beneath}"
    );
}
